"""Random labels of groups that are not twins: what Relative Δ reads under them, and documents in many lists."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest

from ranktilt.auditing import random_band
from ranktilt.auditing.audit import audit
from ranktilt.auditing.groups import grouping
from ranktilt.auditing.judged_rankings import Aligned, Judgments, group_values
from ranktilt.auditing.label_clusters import judged_labels, listed_labels, page_labels
from ranktilt.auditing.random_band import SHUFFLES, Shuffles, TopRanks, enough, null_deltas, shuffled_labels, signs_of
from ranktilt.auditing.significance import Chance, Sample
from ranktilt.collection import Collection
from ranktilt.executing.memory_limits import MemoryLimits, limited
from ranktilt.measures.average_precision import AP
from ranktilt.measures.base import Measure, estimand, measure
from ranktilt.measures.contrast import RelativeDelta, relative_delta
from ranktilt.measures.ndcg import nDCG
from ranktilt.measures.precision import P
from ranktilt.measures.ranking import Judged, Ranking
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


def slow_deltas(
    aligned: Aligned, measures: Sequence[Measure], pair: tuple[int, int], labels: npt.NDArray[np.int8]
) -> list[list[float]]:
    """Relative Δ under each labeling: every document of the ranking counts, and every measure starts anew."""
    judgments, at = aligned.judgments, aligned.judgment
    found: list[list[float]] = [[] for _ in measures]
    for row in labels:
        for deltas, of in zip(found, measures, strict=True):
            sides = []
            for group in pair:
                gains = np.where((at >= 0) & (row[at] == group), judgments.grade[at], 0.0)
                mine = row == group
                judged = Judged(judgments.query[mine], judgments.grade[mine], len(judgments.queries))
                sides.append(values(of, aligned.ranking, gains, judged))
            both = ~np.isnan(sides).any(axis=0)
            a, b = (np.where(both, side, 0.0).sum() / max(both.sum(), 1) for side in sides)
            deltas.append(float(relative_delta(a, b)))
    return found


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

    def test_what_is_worked_on_together_fits_into_the_memory(self) -> None:
        collection = judged_groups(2, "ab", "ab")
        shuffles = Shuffles(pieces(collection, blind_run(collection, 0))[0], 0, 1 << 20)
        with limited(MemoryLimits(memory=64 << 20)):  # a quarter of it holds two results of 8 MiB
            assert list(shuffles.batches(5, 1)) == [slice(0, 2), slice(2, 4), slice(4, 5)]
            assert len(list(shuffles.batches(5, 4))) == 5


def test_about_95_percent_of_label_blind_rankings_lie_within() -> None:
    """Of 60 rankings each, whose ties and groups differ: 171 of 180 are expected."""
    inside = 0
    for docs, relevant, of, ties in (
        ("aaaaaabb", "aaaabb", nDCG @ 3, None), ("aaaabbbb", "aabbbb", AP @ 5, None), ("aaaaabbb", "aaabbb", RR, 4),
    ):  # fmt: skip
        collection = judged_groups(20, docs, relevant)
        for seed in range(60):
            judgments, aligned = pieces(collection, blind_run(collection, seed, ties=ties))
            (found,) = null_deltas([(aligned, (0, 1))], [of], Shuffles(judgments, seed, 300))
            ends = interval(found[0])
            a, b = group_values(aligned, [of], grouping(collection, "kind"), "expected")[0, 1:3].mean(axis=1)
            inside += ends.low <= 200 * (a - b) / (a + b) <= ends.high
    assert 164 <= inside <= 178


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
    scores: dict[str, dict[str, float]] = {q: {} for q in collection.queries["id"]}
    for doc, kind in collection.docs.select("id", "kind").iter_rows():
        scores[doc.split("d")[0]][doc] = float(kind == "b")
    runs = [run_of(collection, scores, ranker=name) for name in ("one", "two")]
    measures = ["nDCG@1", "nDCG@2", "nDCG@3", "AP@2", "AP@3", "RR", "P@2", "P@3", "R@2"]
    audited = audit(collection, runs, measures, by="kind", resamples=200)
    assert len(audited.tilts) == 54
    assert audited.verdict("one", "a", "b").side == "b"
    assert audited.verdict("two", "b", "c").side == "b"


SIDES = {"x": "a", "y": "b", "z": "b"}


def two_lists(*relevant: str, second: str = "x") -> tuple[Collection, Aligned]:
    """Two queries that rank x above y, and x, or another document of its side, above z."""
    docs = [{"id": d, "text": "", "side": s} for d, s in {**SIDES, second: "a"}.items()]
    collection = collection_of(docs, {"1": "one", "2": "two"}, {q: dict.fromkeys(relevant, 1) for q in "12"})
    run = run_of(collection, {"1": {"x": 2.0, "y": 1.0}, "2": {second: 2.0, "z": 1.0}})
    groups = grouping(collection, "side")
    return collection, Aligned.of(run, collection, Judgments.of(collection, groups))


@pytest.mark.parametrize("text", ["Share@1", "ExposureRatio", "ExposureRatio(aggregate=means)"])
def test_a_document_in_two_lists_adds_twice_to_one_label(text: str) -> None:
    """x adds .25 to Share@1 in both lists, y and z .25 in one each: √((.5² + 2 · .25²) / (4 · .25²)) = √1.5."""
    collection, aligned = two_lists()
    code = aligned.group_codes(grouping(collection, "side"))
    labels = listed_labels(aligned, estimand(text), code == 0, code == 1, np.arange(3))  # type: ignore[arg-type]
    assert labels is not None
    assert labels.spread == pytest.approx(np.sqrt(1.5))
    if text == "Share@1":
        assert labels.clusters.total.tolist() == [0.25] * 4
        assert labels.clusters.weight.tolist() == [1, 0, 1, 0]


def test_what_labels_add_sums_to_the_answer() -> None:
    """The first document's share of two ranks' exposure is 1 / (1 + 1/log2(3)), the second's the rest."""
    collection, aligned = two_lists()
    code = aligned.group_codes(grouping(collection, "side"))
    of = estimand("ExposureRatio")
    labels = listed_labels(aligned, of, code == 0, code == 1, np.arange(3))  # type: ignore[arg-type]
    assert labels is not None
    top = 1 / (1 + 1 / np.log2(3))
    assert labels.clusters.weight == pytest.approx([top, 1 - top] * 2)
    assert labels.clusters.total == pytest.approx([2 * top - 1] * 4)  # (e − ē)/ē, each group being one document
    only = np.array([True, True]), np.array([False, False])  # a list of one group says nothing
    for sides in (only, only[::-1]):
        added = of.label_effects(Ranking(np.array([0, 2]), np.array([2.0, 1.0])), *sides)  # type: ignore[attr-defined]
        assert [column.tolist() for column in added] == [[0.0, 0.0]] * 2


def test_relevant_documents_of_two_queries() -> None:
    """nDCG@1 of a is 1 and of b 0 in both queries; beside the mean of .5 x adds .5, y and z (not retrieved: 0) .5."""
    _, aligned = two_lists("x", "y", "z")
    of = measure("nDCG@1")
    sample = Sample("r", RelativeDelta(of=of), "a", "b", np.ones(2), np.zeros(2))
    labels = judged_labels(aligned, of, (0, 1), sample, np.arange(3))
    third = 1 / 3
    assert labels.clusters.total == pytest.approx([1 - third, third, third] * 2)
    assert labels.clusters.weight == pytest.approx([0.5, 0, 0] * 2)
    assert labels.spread == 1  # both queries have the same judgments, whose labels are drawn together already


def test_a_page_counts_relevant_documents_by_query_and_others_once() -> None:
    collection, aligned = two_lists()
    groups = grouping(collection, "side")
    page = TopRanks.of(aligned, estimand("NDSR@1"), 3)  # type: ignore[arg-type]
    labels = page_labels(aligned, page, signs_of(groups, ("a", "b")), groups, np.arange(3))
    added = np.bincount(labels.clusters.origin, weights=labels.clusters.total)
    assert added == pytest.approx([2 - 2 / 3, 2 / 3, 2 / 3])  # x holds both pages, the mean is 2/3
    assert labels.clusters.variance(0.0) == 0  # (16 + 4 + 4) / 9 over documents, 2 + 3 · 4/9 over single cells
    assert labels.spread == 1  # their labels are drawn once for all queries anyhow


@pytest.mark.parametrize("text", ["Share@1", "ExposureRatio"])
def test_documents_of_one_list_each_change_nothing(text: str) -> None:
    collection, aligned = two_lists(second="w")
    code = aligned.group_codes(grouping(collection, "side"))
    labels = listed_labels(aligned, estimand(text), code == 0, code == 1, np.arange(4))  # type: ignore[arg-type]
    assert labels is not None
    assert labels.spread == 1


def test_the_level_is_the_median_of_random_labels_and_stays_where_they_scatter_further() -> None:
    null = np.array([1.0, 1.0, 1.1, 1.4, 3.0])
    assert Chance.of(1.2, null).level == 1.1
    wide = Chance.of(1.2, null, spread=2.0)
    assert (wide.level, wide.low, wide.high) == pytest.approx((1.1, 0.9, 4.9))
    assert np.isnan(Chance.of(1.2, np.array([np.nan])).level)


def test_labels_that_a_coin_tossed_name_no_side_however_many_queries_meet_them() -> None:
    """40 documents in 150 queries; labels shuffled in each list anew named a side in most of these worlds."""
    small, away = np.zeros((2, 3))
    for seed in range(12):
        rng = np.random.default_rng([seed, 31])
        quality, side = rng.normal(size=40), rng.permutation(np.arange(40) < 20)
        docs = [{"id": f"d{n}", "text": "", "side": "ab"[int(s)]} for n, s in enumerate(side)]
        queries = {f"q{q}": f"query {q}" for q in range(150)}
        scores = {q: {f"d{n}": quality[n] + rng.normal() for n in rng.choice(40, 20, replace=False)} for q in queries}
        qrels = {q: dict.fromkeys(rng.choice(list(row), 6, replace=False).tolist(), 1) for q, row in scores.items()}
        collection = collection_of(docs, queries, qrels)
        found = audit(collection, run_of(collection, scores), ["nDCG@5", "Share@5", "NDSR@5"], by="side", resamples=200)
        every = [found.tilts[0], *(e for e in found.estimates if e.estimand.kind != "relevance")]
        small += [e.p < 0.05 for e in every]
        away += [e.leans != "" for e in every]
    assert (small <= 3).all(), small  # 1 of 20 is expected
    assert (away <= 3).all(), away
