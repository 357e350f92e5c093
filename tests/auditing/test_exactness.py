"""Every answer of an audit over random runs full of ties: null, antisymmetry and known tilt, to the last bit."""

from collections.abc import Sequence
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

MEASURES = ["nDCG@1", "nDCG@3", "nDCG", "AP", "P@2", "R@4", "RR", "RR@2", "AP(rel=2)@5"]
CARD = ["page", "relevant twins", "other twins", "rank gap", "score gap"]
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


def unjudged(collection: Collection) -> Collection:
    return Collection(collection.docs, collection.queries, collection.qrels.clear())


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


def audited(collection: Collection, run: Run, *, page: int = 3, **options: object) -> Audit:
    return audit(collection, run, MEASURES, card=True, depth=page, resamples=200, **options)  # type: ignore[arg-type]


def answers(found: Audit) -> list[Effect]:
    """Relative Δ of every measure, and the other questions of the card."""
    return [*found.tilts, *(e for e in found.estimates if e.estimand.key != "relative delta")]


def is_null(one: Effect) -> bool:
    """Exactly level: 0 to the last bit with p = 1, or undefined because neither side has anything."""
    numbers = (one.value, one.low, one.high, one.error, one.p)
    if one.queries and not one.mean_a == one.mean_b == 0:
        return numbers == (0, 0, 0, 0, 1) and not one.leans
    return bool(np.isnan(numbers).all())


class TestNull:
    """The second source is a byte-identical copy with equal scores."""

    @pytest.mark.parametrize("ids", IDS.values(), ids=IDS)
    @given(worlds(same=True), st.sampled_from(SOURCES), st.none() | st.integers(1, 9), st.integers(1, 9))
    @few
    def test_every_question_is_answered_with_nobody(
        self, ids: tuple[str, str], world: World, sources: tuple[str, str], cut: int | None, page: int
    ) -> None:
        collection = world.collection(ids, sources)
        run = world.run(collection, cut=cut)
        judged = audited(collection, run, page=page)
        assert [e.estimand.key for e in answers(judged)[len(MEASURES) :]] == CARD
        bare = audit(unjudged(collection), run, card=True, resamples=200)
        assert [e.estimand.key for e in bare.estimates] == ["page", "twins", "rank gap", "score gap"]
        for found in (judged, bare):
            assert [e.name for e in answers(found) if not is_null(e)] == []
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
        assert all(map(is_null, found.tilts))


def numbers(one: Effect) -> list[float]:
    fields = [one.value, one.low, one.high, one.error, one.p, one.p_corrected, one.level, one.band_low, one.band_high]
    return [*fields, one.queries, one.dropped, one.twins, *(one.parts[name] for name in sorted(one.parts))]


def differing(one: Sequence[Effect], two: Sequence[Effect]) -> list[str]:
    """Names of the answers that are not the same to the last bit."""
    pairs = zip(one, two, strict=True)
    return [a.name for a, b in pairs if not np.array_equal(numbers(a), numbers(b), equal_nan=True)]


def relabelled(collection: Collection) -> Collection:
    swap = {SIDES[0]: SIDES[1], SIDES[1]: SIDES[0]}
    return Collection(
        collection.docs.with_columns(pl.col("source").replace_strict(swap)), collection.queries, collection.qrels
    )


class TestAntisymmetry:
    @pytest.mark.parametrize("twins", [True, False])
    @given(st.data(), st.none() | st.integers(1, 12), st.integers(1, 9), st.sampled_from(["permutation", "t"]))
    @few
    def test_other_labels_and_the_other_side_first_negate_everything_exactly(
        self, twins: bool, data: st.DataObject, cut: int | None, page: int, test: str
    ) -> None:
        world = data.draw(worlds(twins=twins))
        collection = world.collection()
        run = world.run(collection, cut=cut)
        one = audited(collection, run, page=page, test=test)
        assert {t.twins for t in one.tilts} == {twins}
        turned = [e.swapped() for e in answers(one)]
        assert differing(turned, answers(audited(relabelled(collection), run, page=page, test=test))) == []
        other = answers(audited(collection, run, page=page, test=test, pairs=[SIDES[::-1]]))
        assert {(e.a, e.b) for e in other} == {SIDES[::-1]}
        assert differing(turned, other) == []

    @given(worlds(), st.sampled_from(list(IDS.values())), st.integers(1, 12), st.randoms(use_true_random=False))
    @few
    def test_neither_names_nor_the_order_of_rows_matter(
        self, world: World, ids: tuple[str, str], cut: int, random: object
    ) -> None:
        plain, renamed = world.collection(), world.collection(ids)
        one, two = (audited(c, world.run(c)) for c in (plain, renamed))
        assert np.array_equal(one.values, two.values, equal_nan=True)
        assert set(differing(answers(one), answers(two))) <= {"score gap"}  # which sums pairs in their order
        order = list(range(plain.docs.height))
        random.shuffle(order)  # type: ignore[attr-defined]
        shuffled, run = Collection(plain.docs[order], plain.queries, plain.qrels), world.run(plain, cut=cut)
        one, two = (answers(audited(c, run)) for c in (plain, shuffled))
        assert set(differing(one, two)) <= {"score gap"}


STEPS = (-3.0, -1.0, -0.1, 0.0, 0.4, 1.0, 9.0)


def falling(world: World, cut: int | None = None, page: int = 3, *, half: bool = False) -> set[str]:
    """Name the questions whose answers fall anywhere as the tilt grows; `half`: most pairs are judged on one side."""
    collection = world.collection()
    if half:
        judged = pl.col("doc_id").str.ends_with("human") | pl.col("doc_id").str.starts_with("0-")
        collection = Collection(collection.docs, collection.queries, collection.qrels.filter(judged))
    found = [answers(audited(collection, world.run(collection, cut=cut, tilt=step), page=page)) for step in STEPS]
    names = set()
    for column in zip(*found, strict=True):
        values = [e.value for e in column if not np.isnan(e.value)]
        if any(b < a - 1e-9 for a, b in pairwise(values)):
            names.add(column[0].name)
    return names - {"score gap"}


class TestKnownTilt:
    """What is added to one side's scores moves every answer that way, monotonically."""

    @pytest.mark.parametrize("twins", [True, False])
    @given(data=st.data(), page=st.integers(1, 9))
    @settings(max_examples=6)
    def test_over_the_whole_ranking_with_its_ties(self, twins: bool, data: st.DataObject, page: int) -> None:
        assert falling(data.draw(worlds(twins=twins)), page=page) == set()

    @pytest.mark.parametrize("half", [False, True])
    @given(world=worlds(tied=False), cut=st.integers(1, 9), page=st.integers(1, 9))
    @settings(max_examples=6)
    def test_before_a_cut_whichever_sides_are_judged(self, half: bool, world: World, cut: int, page: int) -> None:
        assert falling(world, cut, page, half=half) == set()

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
        world = World([[1, 0, 2]], [[(1.0, 1.2), (0.5, 0.4), (0.1, 0.3)]])
        collection = world.collection()
        low, high = (
            {e.estimand.key: e.value for e in audited(collection, world.run(collection, tilt=t)).estimates}
            for t in (-9.0, 9.0)
        )
        for kind, most in (("relevant twins", 1), ("other twins", 1), ("page", 1), ("rank gap", 3)):
            assert (low[kind], high[kind]) == pytest.approx((-most, most))  # each side has three documents
