"""Every question of the question card over random runs full of ties: null, antisymmetry and known tilt."""

from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktilt.auditing.audit import audit
from ranktilt.auditing.effects import Effect
from ranktilt.collection import Collection
from ranktilt.measures.ranking import Ranking
from ranktilt.measures.twins import base as twins
from ranktilt.measures.twins.head_to_head import pair_counts
from ranktilt.run import Run
from tests.auditing.calibration.test_result import IDS, SIDES, SOURCES, STEPS, World, relabelled, worlds
from tests.toy import collection_of, run_of

few = settings(max_examples=15)
TWINS = ["page", "relevant twins", "other twins", "rank gap", "score gap"]


def card(collection: Collection, run: Run, *, page: int = 3, **options: object) -> tuple[Effect, ...]:
    """The card without Relative Δ."""
    found = audit(collection, run, "nDCG@3", card=True, depth=page, resamples=200, **options)  # type: ignore[arg-type]
    return tuple(e for e in found.estimates if e.estimand.key != "relative delta")


def unjudged(collection: Collection) -> Collection:
    return Collection(collection.docs, collection.queries, collection.qrels.clear())


def numbers(one: Effect) -> list[float]:
    fields = [one.value, one.low, one.high, one.error, one.p, one.queries, one.level, one.band_low, one.band_high]
    return [*fields, *(one.parts[name] for name in sorted(one.parts))]


class TestNull:
    @pytest.mark.parametrize("ids", IDS.values(), ids=IDS)
    @given(worlds(same=True), st.sampled_from(SOURCES), st.integers(1, 9), st.integers(1, 9))
    @few
    def test_every_question_is_answered_with_nobody(
        self, ids: tuple[str, str], world: World, sources: tuple[str, str], cut: int, page: int
    ) -> None:
        collection = world.collection(ids, sources)
        found = card(collection, world.run(collection, cut=cut), page=page)
        assert [e.estimand.key for e in found] == TWINS
        for one in found:
            if one.queries:
                assert (one.value, one.low, one.high, one.error, one.p) == (0, 0, 0, 0, 1)
            else:
                assert np.isnan([one.value, one.low, one.high, one.p]).all()
            assert not one.leans

    @given(worlds(same=True), st.integers(1, 9))
    @few
    def test_without_judgments_too(self, world: World, cut: int) -> None:
        run = world.run(world.collection(), cut=cut)
        collection = unjudged(world.collection())
        found = audit(collection, run, card=True, resamples=200)
        assert [e.estimand.key for e in found.estimates] == ["page", "twins", "rank gap", "score gap"]
        assert all(e.value == e.low == e.high == 0 and e.p == 1 for e in found.estimates)
        assert found.verdict("r").side is None


class TestAntisymmetry:
    @pytest.mark.parametrize("twins", [True, False])
    @given(data=st.data(), cut=st.integers(1, 12), page=st.integers(1, 9))
    @few
    def test_swapping_the_labels_negates_every_answer_exactly(
        self, twins: bool, data: st.DataObject, cut: int, page: int
    ) -> None:
        world = data.draw(worlds(twins=twins))
        collection = world.collection()
        run = world.run(collection, cut=cut)
        one, two = card(collection, run, page=page), card(relabelled(collection), run, page=page)
        for a, b in zip(one, two, strict=True):
            assert np.array_equal(numbers(a.swapped()), numbers(b), equal_nan=True), a.name

    @given(worlds(), st.integers(1, 12))
    @few
    def test_so_does_asking_for_the_pair_the_other_way_round(self, world: World, cut: int) -> None:
        collection = world.collection()
        run = world.run(collection, cut=cut)
        one, two = card(collection, run), card(collection, run, pairs=[SIDES[::-1]])
        for a, b in zip(one, two, strict=True):
            assert (b.a, b.b) == SIDES[::-1]
            assert np.array_equal(numbers(a.swapped()), numbers(b), equal_nan=True), a.name

    @given(worlds(), st.integers(1, 12), st.randoms(use_true_random=False))
    @few
    def test_the_order_of_rows_changes_nothing(self, world: World, cut: int, random: object) -> None:
        collection = world.collection()
        order = list(range(collection.docs.height))
        random.shuffle(order)  # type: ignore[attr-defined]
        shuffled = Collection(collection.docs[order], collection.queries, collection.qrels)
        run = world.run(collection, cut=cut)
        kept = [e for e in card(collection, run) if e.estimand.key != "score gap"]
        for a, b in zip(kept, card(shuffled, run), strict=False):
            assert np.array_equal(numbers(a), numbers(b), equal_nan=True), a.name


class TestOneSidedJudgments:
    def test_a_lost_pair_stays_relevant_when_its_judged_side_is_not_retrieved(self) -> None:
        """Judged is the human side of pair 1 only; of it only the other side is found, then both, then only it."""
        docs = [{"id": f"{o}-{s}", "text": "x", "source": s, "origin": f"{o}"} for o in range(3) for s in SIDES]
        qrels = {q: {"0-human": 1, "0-llm": 1, "1-human": 1} for q in ("q0", "q1", "q2")}
        collection = collection_of(docs, dict.fromkeys(qrels, "x"), qrels)
        found = {"q0": {"1-llm": 2.0, "2-llm": 1.0}, "q1": {"1-llm": 2.0, "1-human": 1.0}, "q2": {"1-human": 2.0}}
        counts = audit(collection, run_of(collection, found, ranker="r"), "nDCG@3", resamples=100).pair_counts
        rows = {(q, r): (w, n) for q, r, w, n in counts.select("query", "relevant", "wins", "losses").iter_rows()}
        assert [rows[q, True] for q in found] == [(0, 1), (0, 1), (1, 0)]
        assert [rows[q, False] for q in found] == [(0, 1), (0, 0), (0, 0)]

    @pytest.mark.parametrize("cells", [1, 7, 1 << 20])
    @given(st.integers(0, 2**32 - 1))
    @few
    def test_counts_are_those_of_one_pair_at_a_time(self, cells: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        offsets = np.concatenate([[0], np.cumsum(rng.integers(0, 9, 4))])
        rows = np.concatenate([rng.permutation(8)[:n] for n in np.diff(offsets)])
        scores = rng.integers(0, 3, len(rows)).astype(float)
        pairs = np.array([[0, 4], [1, 5], [2, 6], [2, 7]])
        judged = {(int(q), int(d)) for q, d in zip(rng.integers(0, 4, 9), rng.integers(0, 11, 9), strict=True)}
        cell = np.array(sorted(judged, reverse=True))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(twins, "_CELLS", cells)
            made = pair_counts(twins.TwinLists(Ranking(offsets, scores), rows, pairs, (cell[:, 0], cell[:, 1])))
        wins = np.zeros((2, 4), dtype=int)
        losses = np.zeros((2, 4), dtype=int)
        for q in range(4):
            here = dict(zip(rows[offsets[q] : offsets[q + 1]], scores[offsets[q] : offsets[q + 1]], strict=True))
            for a, b in pairs.tolist():
                other = int((q, a) not in judged and (q, b) not in judged)
                wins[other, q] += here.get(a, -1.0) > here.get(b, -1.0)
                losses[other, q] += here.get(a, -1.0) < here.get(b, -1.0)
        assert [m.wins.tolist() for m in made] == wins.tolist()
        assert [m.losses.tolist() for m in made] == losses.tolist()


class TestKnownTilt:
    def falling(self, world: World, cut: int | None, page: int = 3, qrels: pl.DataFrame | None = None) -> list[str]:
        """Name the estimands that fall anywhere as the tilt grows."""
        whole = world.collection()
        collection = whole if qrels is None else Collection(whole.docs, whole.queries, qrels)
        found = [card(collection, world.run(collection, cut=cut, tilt=step), page=page) for step in STEPS]
        names = []
        for column in zip(*found, strict=True):
            values = [e.value for e in column if not np.isnan(e.value)]
            if column[0].estimand.key != "score gap" and any(b < a - 1e-9 for a, b in pairwise(values)):
                names.append(column[0].name)
        return names

    @given(worlds(), st.integers(1, 9))
    @settings(max_examples=6)
    def test_over_the_whole_ranking_with_its_ties(self, world: World, page: int) -> None:
        assert self.falling(world, None, page) == []

    @given(worlds(tied=False), st.integers(1, 9), st.integers(1, 9))
    @settings(max_examples=6)
    def test_before_a_cut(self, world: World, cut: int, page: int) -> None:
        assert self.falling(world, cut, page) == []

    @given(worlds(tied=False), st.integers(1, 9))
    @settings(max_examples=6)
    def test_where_one_side_of_a_pair_is_not_judged(self, world: World, cut: int) -> None:
        """A pair counts as relevant whichever of its sides is judged so, retrieved or not."""
        collection = world.collection()
        half = collection.qrels.filter(pl.col("doc_id").str.ends_with("human") | pl.col("doc_id").str.starts_with("0-"))
        assert self.falling(world, cut, qrels=half) == []

    def test_it_goes_all_the_way_from_one_side_to_the_other(self) -> None:
        world = World([[1, 0, 2]], [[(1.0, 1.2), (0.5, 0.4), (0.1, 0.3)]], frozenset())
        collection = world.collection()
        low, high = (
            {e.estimand.key: e.value for e in card(collection, world.run(collection, tilt=t))} for t in (-9.0, 9.0)
        )
        assert (low["relevant twins"], high["relevant twins"]) == (-1, 1)
        assert (low["other twins"], high["other twins"]) == (-1, 1)
        assert (low["page"], high["page"]) == pytest.approx((-1, 1))  # three ranks, and each side has three documents
        assert (low["rank gap"], high["rank gap"]) == (-3, 3)
