"""The random band: what Relative Δ reads when labels mean nothing, for groups that are not twins."""

import tracemalloc
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest

from ranktilt.auditing import random_band
from ranktilt.auditing.audit import audit
from ranktilt.auditing.groups import grouping
from ranktilt.auditing.judged_rankings import Aligned, Judgments, group_values
from ranktilt.auditing.random_band import SHUFFLES, Shuffles, enough, null_deltas, shuffled_labels
from ranktilt.collection import Collection
from ranktilt.executing.memory_limits import MemoryLimits, limited
from ranktilt.measures.average_precision import AP
from ranktilt.measures.base import Measure
from ranktilt.measures.contrast import relative_delta
from ranktilt.measures.ndcg import nDCG
from ranktilt.measures.precision import P
from ranktilt.measures.ranking import Judged
from ranktilt.measures.recall import R
from ranktilt.measures.reciprocal_rank import RR
from ranktilt.measures.relevance import values
from ranktilt.run import Run
from ranktilt.statistics.bootstrap import interval
from tests.toy import collection_of, run_of

MEASURES: list[Measure] = [nDCG, nDCG @ 3, AP @ 5, P @ 2, R @ 4, RR]
GRADED: list[Measure] = [AP(rel=2), AP(rel=2) @ 4, P(rel=2) @ 4, R(rel=2) @ 3, RR(rel=2), RR(rel=2) @ 2, RR(rel=3)]
EVERY: list[Measure] = [*MEASURES, AP, RR @ 3, *GRADED]


def judged_groups(queries: int, docs: str, relevant: str) -> Collection:
    """Per query, documents of its own in groups, the letters of `docs`; those of `relevant` are judged so.

    A letter "-" is a document without a group. Lone documents: no twins anywhere.
    """
    rows, qrels = [], {}
    for q in range(queries):
        names = [f"q{q}d{i}" for i in range(len(docs))]
        rows += [{"id": n, "text": n, "kind": None if k == "-" else k} for n, k in zip(names, docs, strict=True)]
        left, grades = Counter(relevant), {}
        for name, kind in zip(names, docs, strict=True):
            if left[kind]:
                left[kind] -= 1
                grades[name] = 1
        qrels[f"q{q}"] = grades
    return collection_of(rows, dict.fromkeys(qrels, "x"), qrels)


def blind_run(collection: Collection, seed: int, *, ties: int | None = None) -> Run:
    """Each query's own documents in random order; with `ties`, that many distinct scores."""
    rng = np.random.default_rng(seed)
    found: dict[str, dict[str, float]] = {q: {} for q in collection.queries["id"]}
    for doc in collection.ids:
        score = float(rng.integers(ties)) if ties else float(rng.random())
        found[doc.split("d")[0]][doc] = score
    return run_of(collection, found, ranker="blind")


def pieces(collection: Collection, run: Run) -> tuple[Judgments, Aligned]:
    judgments = Judgments.of(collection, grouping(collection, "kind"))
    return judgments, Aligned.of(run, collection, judgments)


class AsTheyAre(Shuffles):
    """One "shuffle": the labels as they are."""

    def blocks(self, label: str, done: float = 0.0, share: float = 1.0) -> Iterator[tuple[slice, npt.NDArray[np.int8]]]:
        yield slice(0, 1), self.judgments.group[None, :].astype(np.int8)


def slow_deltas(
    aligned: Aligned, measures: Sequence[Measure], pair: tuple[int, int], labels: npt.NDArray[np.int8]
) -> list[list[float]]:
    """Relative Δ under each labeling: every document of the ranking counts, and every measure starts anew."""
    judgments, at = aligned.judgments, aligned.judgment
    found: list[list[float]] = [[] for _ in measures]
    for row in labels:
        for deltas, measure in zip(found, measures, strict=True):
            sides = []
            for group in pair:
                gains = np.where((at >= 0) & (row[at] == group), judgments.grade[at], 0.0)
                mine = row == group
                judged = Judged(judgments.query[mine], judgments.grade[mine], len(judgments.queries))
                sides.append(values(measure, aligned.ranking, gains, judged))
            both = ~np.isnan(sides).any(axis=0)
            a, b = (np.where(both, side, 0.0).sum() / max(both.sum(), 1) for side in sides)
            deltas.append(float(relative_delta(a, b)))
    return found


def observed(aligned: Aligned, collection: Collection, measure: Measure) -> float:
    a, b = group_values(aligned, [measure], grouping(collection, "kind"), "expected")[0, 1:3]
    return float(200 * (a.mean() - b.mean()) / (a.mean() + b.mean()))


class TestShuffledLabels:
    def test_every_query_keeps_its_numbers_of_each_group(self) -> None:
        judgments, _ = pieces(c := judged_groups(5, "aaaabb-cc", "aaabb-c"), blind_run(c, 0))
        labels = shuffled_labels(judgments, 1, 200)
        assert labels.shape == (200, 5 * 7)
        for query in range(5):
            mine = np.sort(labels[:, judgments.query == query], axis=1)
            assert (mine == [-1, 0, 0, 0, 1, 1, 2]).all()

    def test_every_order_is_equally_likely_and_queries_are_independent(self) -> None:
        judgments, _ = pieces(c := judged_groups(2, "aab", "aab"), blind_run(c, 0))
        labels = shuffled_labels(judgments, 3, 9000)
        seen = Counter((int(np.argmax(row[:3])), int(np.argmax(row[3:]))) for row in labels)
        assert len(seen) == 9
        assert max(abs(n - 1000) for n in seen.values()) < 120


@pytest.mark.parametrize(("tests", "shuffles"), [(1, SHUFFLES), (20, SHUFFLES), (21, 1050), (54, 2700)])
def test_a_longer_table_needs_more_shuffles(tests: int, shuffles: int) -> None:
    assert enough(tests) == shuffles
    assert tests * 2 / (1 + shuffles) < 0.05


class TestNullDeltas:
    @pytest.mark.parametrize("ties", [None, 1, 3])
    @pytest.mark.parametrize("trec_eval", [False, True])
    def test_relevant_documents_alone_give_what_the_whole_ranking_gives(
        self, ties: int | None, trec_eval: bool
    ) -> None:
        """Grades, documents without a group or unretrieved, queries with one group only, and two runs together."""
        collection = judged_groups(9, "aaaabbccc--", "aaabbc-")
        grade = pl.Series(np.random.default_rng(0).integers(1, 4, collection.qrels.height))
        collection = Collection(collection.docs, collection.queries, collection.qrels.with_columns(grade=grade))
        cut = collection.qrels.filter(~pl.col("doc_id").is_in(["q0d4", "q0d5", "q1d0"]))
        collection = Collection(collection.docs, collection.queries, cut)
        runs = [blind_run(collection, seed, ties=ties) for seed in (1, 2)]
        runs[1] = Run.from_frame(runs[1].frame().filter(pl.col("query_id") != "q3"), spec=dict(runs[1].spec))
        aligned = [pieces(collection, run)[1] for run in runs]
        aligned = [one.untied() for one in aligned] if trec_eval else aligned
        judgments, pairs = aligned[0].judgments, [(0, 1), (2, 0), (1, 2)]
        tasks = [(one, pair) for one in aligned for pair in pairs]
        labels = shuffled_labels(judgments, 3, 12)
        for (one, pair), found in zip(tasks, null_deltas(tasks, EVERY, Shuffles(judgments, 3, 12)), strict=True):
            for fast, slow in zip(found, slow_deltas(one, EVERY, pair, labels), strict=True):
                assert fast == pytest.approx(np.array(slow), rel=0, abs=1e-12, nan_ok=True)

    @pytest.mark.parametrize("ties", [None, 3])
    def test_under_the_labels_as_they_are_it_is_the_observed_one(self, ties: int | None) -> None:
        collection = judged_groups(8, "aaaabb--", "aabb-")
        judgments, aligned = pieces(collection, blind_run(collection, 5, ties=ties))
        (found,) = null_deltas([(aligned, (0, 1))], MEASURES, AsTheyAre(judgments, 0, 1))
        expected = [observed(aligned, collection, m) for m in MEASURES]
        assert [float(f[0]) for f in found] == pytest.approx(expected, abs=1e-9)

    def test_neither_the_size_of_a_piece_nor_what_is_worked_on_together_matters(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        collection = judged_groups(12, "aaabbcc", "aabc")
        judgments, one = pieces(collection, blind_run(collection, 1, ties=3))
        _, two = pieces(collection, blind_run(collection, 2, ties=3))
        tasks = [(run, pair) for run in (one, two) for pair in ((0, 1), (1, 2))]
        whole = np.stack(list(null_deltas(tasks, MEASURES, Shuffles(judgments, 0, 50))))
        monkeypatch.setattr(random_band, "_FEWEST", 1)
        for step, share in ((1, 4), (2, 4), (7, 4), (1 << 18, 1 << 40)):
            monkeypatch.setattr(random_band, "_ENTRIES", step * len(judgments.group))
            monkeypatch.setattr(random_band, "_SHARE", share)
            assert np.array_equal(whole, np.stack(list(null_deltas(tasks, MEASURES, Shuffles(judgments, 0, 50)))))

    def test_swapping_the_pair_negates_exactly(self) -> None:
        collection = judged_groups(7, "aaabbcc", "aabcc")
        judgments, aligned = pieces(collection, blind_run(collection, 1, ties=4))
        tasks = [(aligned, pair) for pair in ((0, 2), (2, 0), (1, 2))]
        one, two, other = null_deltas(tasks, MEASURES, Shuffles(judgments, 0, 50))
        assert np.array_equal(np.stack(one), -np.stack(two))
        assert not np.array_equal(np.stack(one), np.stack(other))

    def test_labels_are_never_held_together(self) -> None:
        """4,000 judgments × 1,500 shuffles: 6 MB of labels, and many times that as numbers."""
        collection = judged_groups(40, "a" * 60 + "b" * 60, "a" * 50 + "b" * 50)
        judgments, aligned = pieces(collection, blind_run(collection, 1))
        tracemalloc.start()
        try:
            (found,) = null_deltas([(aligned, (0, 1))], [nDCG @ 10], Shuffles(judgments, 0, 1500))
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert len(found[0]) == 1500
        assert peak < 12e6

    def test_what_is_worked_on_together_fits_into_the_memory(self) -> None:
        collection = judged_groups(2, "ab", "ab")
        shuffles = Shuffles(pieces(collection, blind_run(collection, 0))[0], 0, 1 << 20)
        with limited(MemoryLimits(memory=64 << 20)):  # a quarter of it holds two results of 8 MiB
            assert list(shuffles.batches(5, 1)) == [slice(0, 2), slice(2, 4), slice(4, 5)]
            assert len(list(shuffles.batches(5, 4))) == 5


def share_within(docs: str, relevant: str, measure: Measure, cases: int, *, ties: int | None = None) -> float:
    """Share of label-blind rankings whose Relative Δ lies within its band."""
    collection = judged_groups(20, docs, relevant)
    inside = 0
    for seed in range(cases):
        judgments, aligned = pieces(collection, blind_run(collection, seed, ties=ties))
        (found,) = null_deltas([(aligned, (0, 1))], [measure], Shuffles(judgments, seed, 300))
        ends = interval(found[0])
        inside += ends.low <= observed(aligned, collection, measure) <= ends.high
    return inside / cases


@pytest.mark.parametrize(
    ("docs", "relevant", "measure", "ties"),
    [
        ("aaaaaabb", "aaaabb", nDCG @ 3, None),
        ("aaaabbbb", "aabbbb", AP @ 5, None),
        ("aaaaabbb", "aaabbb", RR, 4),
    ],
)
def test_about_95_percent_of_label_blind_rankings_lie_within(
    docs: str, relevant: str, measure: Measure, ties: int | None
) -> None:
    assert 0.90 <= share_within(docs, relevant, measure, 150, ties=ties) <= 0.99


@pytest.fixture(scope="module")
def ten_against_one() -> Collection:
    """200 documents a query, 10 relevant ones of one group against 1 of the other."""
    return judged_groups(60, "a" * 100 + "b" * 100, "a" * 10 + "b")


def test_ten_relevant_against_one_tilt_by_themselves(ten_against_one: Collection) -> None:
    found = [
        audit(ten_against_one, blind_run(ten_against_one, seed), ["nDCG"], by="kind", resamples=100)
        for seed in range(2)
    ]
    (tilts,) = zip(*(f.tilts for f in found), strict=True)
    assert np.mean([t.value for t in tilts]) == pytest.approx(75, abs=5)
    assert all(t.band_low < t.value < t.band_high for t in tilts)
    assert all(40 < t.band_low < 75 < t.band_high < 110 for t in tilts)
    assert {f.verdict("blind").kind for f in found} == {"inconclusive"}
    assert not any(t.twins for t in tilts)


def test_a_ranker_that_sees_labels_lies_beyond_the_band(ten_against_one: Collection) -> None:
    """It puts the one relevant document of b first, so Relative Δ is near 0: far from what random labels give."""
    judged = set(ten_against_one.qrels["doc_id"])
    run = blind_run(ten_against_one, 0)
    frame = run.frame()
    up = [
        s + (2 if d in judged and int(d.split("d")[1]) >= 100 else 0)
        for d, s in frame.select("doc_id", "score").iter_rows()
    ]
    tilted = Run.from_frame(frame.with_columns(score=np.array(up)), spec={"ranker": "b-first"})
    found = audit(ten_against_one, tilted, ["nDCG"], by="kind", resamples=500)
    (tilt,) = found.tilts
    assert -100 < tilt.value < 0 < tilt.band_low
    assert tilt.p == pytest.approx(2 / 1001)
    assert found.verdict("b-first").side == "b"


def test_a_sure_tilt_survives_the_correction_in_a_long_table() -> None:
    """Three groups, nine measures and two runs make 54 tests: 1,000 shuffles could not reach p = .05 / 54."""
    collection = judged_groups(40, "aaaabbcc", "aaabc")
    runs = []
    for name in ("one", "two"):
        found = {q: {d: float("aaaabbcc"[int(d.split("d")[1])] == "b") for d in mine} for q, mine in own(collection)}
        runs.append(run_of(collection, found, ranker=name))
    measures = ["nDCG@1", "nDCG@2", "nDCG@3", "AP@2", "AP@3", "RR", "P@2", "P@3", "R@2"]
    audited = audit(collection, runs, measures, by="kind", resamples=200)
    assert len(audited.tilts) == 54
    assert audited.verdict("one", "a", "b").side == "b"
    assert audited.verdict("two", "b", "c").side == "b"


def own(collection: Collection) -> list[tuple[str, list[str]]]:
    """Each query with its own documents."""
    names = collection.ids.to_list()
    return [(q, [d for d in names if d.split("d")[0] == q]) for q in collection.queries["id"]]


def tied_run(queries: int, seed: int) -> tuple[Collection, Run]:
    """All documents of a query tie; ids, and so trec_eval's order, know nothing of groups."""
    rng = np.random.default_rng(seed)
    rows, qrels, found = [], {}, {}
    for q in range(queries):
        ids = [f"{rng.integers(10**12):012}" for _ in range(8)]
        rows += [{"id": d, "text": d, "kind": "ab"[i % 2]} for i, d in enumerate(ids)]
        qrels[f"q{q}"] = dict.fromkeys(ids[:6], 1)
        found[f"q{q}"] = dict.fromkeys(ids, 1.0)
    collection = collection_of(rows, dict.fromkeys(qrels, "x"), qrels)
    return collection, run_of(collection, found, ranker="tied")


def test_with_trec_evals_ties_random_labels_meet_the_same_order() -> None:
    collection, run = tied_run(60, 4)
    found = audit(collection, run, ["nDCG@1"], by="kind", ties="trec_eval")
    (tilt,) = found.tilts
    assert tilt.band_low < -20 < 20 < tilt.band_high
    assert tilt.band_low <= tilt.value <= tilt.band_high
    assert found.verdict("tied").kind == "inconclusive"


def test_with_expected_ties_the_same_run_is_exactly_level() -> None:
    collection, run = tied_run(60, 4)
    found = audit(collection, run, ["nDCG@1"], by="kind")
    (tilt,) = found.tilts
    assert (tilt.value, tilt.low, tilt.high, tilt.band_low, tilt.band_high, tilt.p) == (0, 0, 0, 0, 0, 1)
    assert found.verdict("tied").kind == "level"


def test_trec_evals_order_without_ties_is_its_own() -> None:
    collection = judged_groups(9, "aaaabb--", "aabb-")
    groups = grouping(collection, "kind")
    _, aligned = pieces(collection, blind_run(collection, 3, ties=3))
    untied = aligned.untied()
    assert (untied.ranking.sizes == 1).all()
    through: npt.NDArray[np.float64] = group_values(aligned, MEASURES, groups, "trec_eval")
    judgments, at = untied.judgments, untied.judgment
    for position, group in enumerate([None, 0, 1]):
        mine = (at >= 0) & ((judgments.group[at] == group) | (group is None))
        gains = np.where(mine, judgments.grade[at], 0.0)
        for i, measure in enumerate(MEASURES):
            found = values(measure, untied.ranking, gains, judgments.of_group(group))
            assert found == pytest.approx(through[i, position], abs=1e-9, nan_ok=True)
