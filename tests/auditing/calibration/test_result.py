"""The instrument before its readings: null, antisymmetry and known tilt over random runs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktilt.auditing.audit import audit
from ranktilt.auditing.effects import Effect
from ranktilt.auditing.result import Audit
from ranktilt.collection import Collection
from ranktilt.rankers.base import top_k
from ranktilt.registry import ranker
from ranktilt.run import Run
from tests.toy import collection_of, run_of

MEASURES = ["nDCG@1", "nDCG@3", "nDCG", "AP@3", "AP", "P@2", "R@4", "RR", "RR@2", "AP(rel=2)@5"]
SIDES = ("human", "llm")
IDS: dict[str, tuple[str, str]] = {
    "cocktail": ("{}-human", "{}-llm"),
    "copy wins by id": ("a{}", "z{}"),
    "human wins by id": ("z{}", "a{}"),
    "suffix": ("{}", "{}~"),
    "misleading": ("{}-llama", "{}-human"),
}
SOURCES = [SIDES, ("zebra", "ant"), ("ant", "zebra"), ("llm", "gpt"), ("éa", "語")]
exact = settings(max_examples=40)
few = settings(max_examples=15)


@dataclass(frozen=True)
class World:
    """Origins with one document on each side, grades and scores by query and origin."""

    grades: list[list[int]]
    scores: list[list[tuple[float, float]]]
    """Per query and origin the scores of both sides."""
    one_sided: frozenset[int] = frozenset()
    """Origins whose second document is judged not relevant: with one of them the groups are no twins."""

    def collection(self, ids: tuple[str, str] = IDS["cocktail"], sources: Sequence[str] = SIDES) -> Collection:
        docs = [
            {"id": ids[side].format(o), "text": f"text {o}", "source": sources[side], "origin": ids[0].format(o)}
            for o in range(len(self.grades[0]))
            for side in (0, 1)
        ]
        qrels = {
            f"q{q}": {
                ids[side].format(o): 0 if side and o in self.one_sided else grade
                for o, grade in enumerate(grades)
                for side in (0, 1)
            }
            for q, grades in enumerate(self.grades)
        }
        return collection_of(docs, dict.fromkeys(qrels, "x"), qrels)

    def run(self, collection: Collection, *, cut: int | None = None, tilt: float = 0.0) -> Run:
        """Rank everything, or the best `cut`; `tilt` is added to the first side's whole score vector before."""
        keys, found = collection.tie_keys(), {}
        for q, scores in enumerate(self.scores):
            flat = np.array([s + (tilt if side == 0 else 0.0) for pair in scores for side, s in enumerate(pair)])
            best = top_k(flat, keys, cut or len(flat))
            found[f"q{q}"] = {collection.ids[int(i)]: float(flat[i]) for i in best}
        return run_of(collection, found, ranker="r")


@st.composite
def worlds(draw: st.DrawFn, *, same: bool = False, tied: bool = True, twins: bool = True) -> World:
    """Random worlds; `same` gives both sides one score, `tied` few distinct scores, so that most of them tie."""
    queries, origins = draw(st.sampled_from([1, 2, 3, 7, 20])), draw(st.integers(2, 7))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    grades = rng.choice([0, 0, 1, 2, 3], (queries, origins))
    grades[0, 0] = 1
    shape = (queries, origins, 2)
    scores = rng.integers(0, draw(st.integers(1, 4)), shape).astype(float) if tied else rng.normal(size=shape)
    if same:
        scores[:, :, 1] = scores[:, :, 0]
    lone = frozenset() if twins else frozenset({1, *rng.integers(1, origins, 2).tolist()})
    if not twins:
        grades[0, 1] = 2
    return World(grades.tolist(), [[(a, b) for a, b in q] for q in scores.tolist()], lone)


def audited(collection: Collection, run: Run, **options: object) -> Audit:
    return audit(collection, run, MEASURES, resamples=200, **options)  # type: ignore[arg-type]


def is_null(tilt: Effect) -> bool:
    """Exactly level: 0 to the last bit, or undefined because neither side has anything."""
    ends = (tilt.value, tilt.low, tilt.high)
    nothing = tilt.mean_a == tilt.mean_b == 0 or tilt.queries == 0
    return bool(np.isnan(ends).all()) if nothing else ends == (0.0, 0.0, 0.0) and tilt.error == 0.0


class TestNull:
    """The second source is a byte-identical copy with equal scores."""

    @pytest.mark.parametrize("ids", IDS.values(), ids=IDS)
    @given(worlds(same=True), st.sampled_from(SOURCES))
    @few
    def test_every_estimand_is_exactly_level(
        self, ids: tuple[str, str], world: World, sources: tuple[str, str]
    ) -> None:
        collection = world.collection(ids, sources)
        found = audited(collection, world.run(collection))
        assert all(is_null(t) for t in found.tilts)
        assert {t.p for t in found.tilts if not np.isnan(t.value)} <= {1.0}
        assert all(np.isnan(t.p) for t in found.tilts if np.isnan(t.value))
        assert found.verdict("r").side is None

    @given(worlds(same=True), st.integers(1, 9), st.sampled_from(list(IDS.values())))
    @exact
    def test_a_cut_through_a_tie_keeps_twins_together(self, world: World, cut: int, ids: tuple[str, str]) -> None:
        collection = world.collection(ids)
        run = world.run(collection, cut=cut)
        origin = dict(collection.docs.select("id", "origin").iter_rows())
        for start, stop in pairwise(run.offsets):
            kept = [origin[run.ids[int(d)]] for d in run.docs[start:stop]]
            assert all(kept.count(o) == 2 for o in kept)
            assert cut <= len(kept) or len(kept) == len(origin)
            assert len(kept) <= cut + 1
        found = audited(collection, run)
        assert all(is_null(t) for t in found.tilts)
        assert found.verdict("r").side is None

    @pytest.mark.parametrize("text", ["bm25@5", "tfidf@5", "bm25(analyzer=whitespace)@1", "tfidf@1000"])
    @pytest.mark.parametrize("ids", [IDS["copy wins by id"], IDS["human wins by id"]])
    def test_lexical_rankers_see_no_difference_between_copies(self, text: str, ids: tuple[str, str]) -> None:
        rng = np.random.default_rng(5)
        words = np.array([f"w{i}" for i in range(25)])
        texts = [" ".join(rng.choice(words, rng.integers(3, 30))) for _ in range(30)]
        docs = [
            {"id": ids[side].format(i), "text": t, "source": SIDES[side], "origin": ids[0].format(i)}
            for side in (0, 1)
            for i, t in enumerate(texts)
        ]
        queries = {f"q{i}": " ".join(rng.choice(words, 3)) for i in range(20)}
        qrels = {q: {ids[s].format(i): 1 for i in rng.integers(0, 30, 4) for s in (0, 1)} for q in queries}
        collection = collection_of(docs, queries, qrels)
        found = audit(collection, ranker(text).rank(collection), ["nDCG@1", "nDCG@5", "AP@3", "RR"])
        assert all(is_null(t) and t.p == 1.0 for t in found.tilts)


def seen_from_the_other_side(one: Effect, two: Effect) -> bool:
    """Whether every sign is turned, exactly, and every p is the same."""
    signed = [(one.value, two.value), (one.low, two.high), (one.high, two.low)]
    signed += [(one.band_low, two.band_high), (one.band_high, two.band_low)]
    same = [(one.p, two.p), (one.p_corrected, two.p_corrected), (one.error, two.error), (one.mean_a, two.mean_b)]
    turned = [a == -b or (np.isnan(a) and np.isnan(b)) for a, b in signed]
    kept = [a == b or (np.isnan(a) and np.isnan(b)) for a, b in same]
    return all(turned) and all(kept) and (one.queries, one.dropped, one.twins) == (two.queries, two.dropped, two.twins)


def relabelled(collection: Collection) -> Collection:
    swap = {SIDES[0]: SIDES[1], SIDES[1]: SIDES[0]}
    return Collection(
        collection.docs.with_columns(pl.col("source").replace_strict(swap)), collection.queries, collection.qrels
    )


class TestAntisymmetry:
    @pytest.mark.parametrize("twins", [True, False])
    @pytest.mark.parametrize("test", ["permutation", "t"])
    @given(data=st.data())
    @few
    def test_swapping_the_labels_negates_everything_exactly(self, twins: bool, test: str, data: st.DataObject) -> None:
        world = data.draw(worlds(twins=twins))
        collection = world.collection()
        run = world.run(collection)
        one, two = audited(collection, run, test=test), audited(relabelled(collection), run, test=test)
        assert {t.twins for t in one.tilts} == {twins}
        assert all(seen_from_the_other_side(a, b) for a, b in zip(one.tilts, two.tilts, strict=True))

    @pytest.mark.parametrize("twins", [True, False])
    @given(data=st.data())
    @few
    def test_asking_for_the_pair_the_other_way_round_does_too(self, twins: bool, data: st.DataObject) -> None:
        world = data.draw(worlds(twins=twins))
        collection = world.collection()
        run = world.run(collection)
        one, two = audited(collection, run), audited(collection, run, pairs=[SIDES[::-1]])
        assert all(seen_from_the_other_side(a, b) for a, b in zip(one.tilts, two.tilts, strict=True))

    @given(worlds(), st.sampled_from(list(IDS.values())))
    @few
    def test_names_of_documents_do_not_matter(self, world: World, ids: tuple[str, str]) -> None:
        plain, renamed = world.collection(), world.collection(ids)
        one, two = (audited(c, world.run(c)) for c in (plain, renamed))
        assert np.array_equal(one.values, two.values, equal_nan=True)
        assert [repr(t) for t in one.tilts] == [repr(t) for t in two.tilts]


STEPS = (-3.0, -1.0, -0.4, -0.1, 0.0, 0.1, 0.4, 1.0, 3.0, 9.0)


def rises(collection: Collection, run: Callable[[float], Run]) -> bool:
    """Whether Relative Δ of every measure rises with the tilt (where it is defined)."""
    found = [audit(collection, run(step), MEASURES, resamples=100).tilts for step in STEPS]
    for column in zip(*found, strict=True):
        values = [t.value for t in column if not np.isnan(t.value)]
        if any(b < a - 1e-9 for a, b in pairwise(values)):
            return False
    return True


class TestKnownTilt:
    """What is added to one side's scores moves Relative Δ that way, monotonically."""

    @pytest.mark.parametrize("twins", [True, False])
    @given(data=st.data())
    @settings(max_examples=6)
    def test_over_the_whole_ranking(self, twins: bool, data: st.DataObject) -> None:
        world = data.draw(worlds(twins=twins))
        collection = world.collection()
        assert rises(collection, lambda step: world.run(collection, tilt=step))

    @given(worlds(tied=False), st.integers(1, 9))
    @settings(max_examples=6)
    def test_before_a_cut(self, world: World, cut: int) -> None:
        collection = world.collection()
        assert rises(collection, lambda step: world.run(collection, cut=cut, tilt=step))

    @given(worlds(same=True))
    @few
    def test_a_copy_with_a_bonus_wins_every_pair(self, world: World) -> None:
        collection = world.collection()
        found = audited(collection, world.run(collection, tilt=0.5))
        assert all(t.value > 0 for t in found.tilts if t.measure == "nDCG")
        assert all(t.value >= 0 or np.isnan(t.value) for t in found.tilts)
        counts = found.pair_counts.select(pl.col("wins", "losses", "ties").sum()).row(0)
        assert counts[0] > 0
        assert counts[1:] == (0, 0)

    def test_from_one_end_to_the_other(self) -> None:
        rng = np.random.default_rng(3)
        scores = rng.normal(size=(40, 14, 2)).tolist()
        world = World([[1, 1, 2, 1, 1, 1, 1] * 2] * 40, [[(a, b) for a, b in q] for q in scores])
        collection = world.collection()
        far = [audited(collection, world.run(collection, cut=3, tilt=step)) for step in (-99.0, 99.0)]
        assert [t.value for t in far[0].tilts if t.mean_b] == [-200.0] * len(MEASURES)
        assert [t.value for t in far[1].tilts if t.mean_a] == [200.0] * len(MEASURES)
        assert [f.verdict("r").side for f in far] == ["llm", "human"]
