"""Random labels of groups that are not twins: what Relative Δ and the page read under them,
documents in many lists.
"""

import random
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest

from ranktilt import AP, RR, Collection, Measure, P, R, Run, audit, estimand, measure, nDCG
from ranktilt.auditing.grouping.labels import grouping
from ranktilt.auditing.groups import Groups
from ranktilt.auditing.judged_run import JudgedRun, group_values
from ranktilt.auditing.judgments import Judgments
from ranktilt.auditing.null_distributions import base
from ranktilt.auditing.null_distributions import pages as page_module
from ranktilt.auditing.null_distributions import twins as twin_module
from ranktilt.auditing.null_distributions.base import (
    SHUFFLES,
    LabelEffects,
    NullDistribution,
    Shuffles,
    shuffle_count,
    shuffled_labels,
)
from ranktilt.auditing.null_distributions.judged_documents import (
    ShuffledRun,
    judged_labels,
    null_deltas,
)
from ranktilt.auditing.null_distributions.lists import listed_labels
from ranktilt.auditing.null_distributions.pages import TopRanks, page_labels
from ranktilt.auditing.null_distributions.twins import signs_of
from ranktilt.auditing.significance import Sample
from ranktilt.measures.contrast import RelativeDelta, relative_delta
from ranktilt.measures.ndsr import NDSR
from ranktilt.measures.ranking import Judged, Ranking
from ranktilt.measures.relevance import values
from ranktilt.parallel.memory_limits import MemoryLimits, limit_memory
from ranktilt.statistics.bootstrap import interval
from tests.toy import collection_of, run_of

MEASURES: list[Measure] = [nDCG, nDCG @ 3, AP @ 5, P @ 2, R @ 4, RR]
GRADED: list[Measure] = [
    AP(rel=2),
    AP(rel=2) @ 4,
    P(rel=2) @ 4,
    R(rel=2) @ 3,
    RR(rel=2),
    RR(rel=2) @ 2,
    RR(rel=3),
]
EVERY: list[Measure] = [*MEASURES, AP, RR @ 3, *GRADED]


def judged_groups(queries: int, docs: str, relevant: str) -> Collection:
    """Per query, documents of its own in groups, the letters of `docs`; those of `relevant` are
    judged so.

    A letter "-" is a document without a group. Lone documents: no twins anywhere.
    """
    rows, qrels = [], {}
    for q in range(queries):
        names = [f"q{q}d{i}" for i in range(len(docs))]
        rows += [
            {"id": n, "text": n, "kind": None if k == "-" else k}
            for n, k in zip(names, docs, strict=True)
        ]
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
    scores: dict[str, dict[str, float]] = {q: {} for q in collection.queries["id"]}
    for doc in collection.ids:
        score = float(rng.integers(ties)) if ties else float(rng.random())
        scores[doc.split("d")[0]][doc] = score
    return run_of(collection, scores, ranker="blind")


def pieces(collection: Collection, run: Run) -> tuple[Judgments, JudgedRun]:
    judgments = Judgments.from_collection(collection, grouping(collection, "kind"))
    return judgments, JudgedRun.from_run(run, collection, judgments)


def slow_deltas(
    aligned: JudgedRun,
    measures: Sequence[Measure],
    pair: tuple[int, int],
    labels: npt.NDArray[np.int8],
) -> list[list[float]]:
    """Relative Δ under each labeling: every document of the ranking counts, and every measure
    starts anew.
    """
    judgments, at = aligned.judgments, aligned.judgment
    values_by_measure: list[list[float]] = [[] for _ in measures]
    for row in labels:
        for deltas, of in zip(values_by_measure, measures, strict=True):
            sides = []
            for group in pair:
                gains = np.where((at >= 0) & (row[at] == group), judgments.grade[at], 0.0)
                mine = row == group
                judged = Judged(
                    query=judgments.query[mine],
                    grade=judgments.grade[mine],
                    n_queries=len(judgments.queries),
                )
                sides.append(values(of, aligned.ranking, gains, judged))
            both = ~np.isnan(sides).any(axis=0)
            a, b = (np.where(both, side, 0.0).sum() / max(both.sum(), 1) for side in sides)
            deltas.append(float(relative_delta(a, b)))
    return values_by_measure


class TestShuffledLabels:
    def test_shuffled_labels_are_equally_likely(
        self,
    ) -> None:
        judgments, _ = pieces(c := judged_groups(5, "aaaabb-cc", "aaabb-c"), blind_run(c, 0))
        labels = shuffled_labels(judgments, 1, 200)
        assert labels.shape == (200, 5 * 7)
        for query in range(5):
            mine = np.sort(labels[:, judgments.query == query], axis=1)
            assert (mine == [-1, 0, 0, 0, 1, 1, 2]).all()
        judgments, _ = pieces(c := judged_groups(2, "aab", "aab"), blind_run(c, 0))
        labels = shuffled_labels(judgments, 3, 9000)
        seen = Counter((int(np.argmax(row[:3])), int(np.argmax(row[3:]))) for row in labels)
        assert len(seen) == 9
        assert max(abs(n - 1000) for n in seen.values()) < 120


class TestNullDeltas:
    @pytest.mark.parametrize("ties", [None, 1, 3])
    @pytest.mark.parametrize("trec_eval", [False, True])
    def test_relevant_documents_suffice(self, ties: int | None, trec_eval: bool) -> None:
        """Grades, documents without a group or unretrieved, queries with one group only, and two
        runs together.
        """
        collection = judged_groups(9, "aaaabbccc--", "aaabbc-")
        grade = pl.Series(np.random.default_rng(0).integers(1, 4, collection.qrels.height))
        qrels = collection.qrels.with_columns(grade=grade)
        qrels = qrels.filter(~pl.col("doc_id").is_in(["q0d4", "q0d5", "q1d0"]))
        collection = Collection(collection.docs, collection.queries, qrels)
        runs = [blind_run(collection, seed, ties=ties) for seed in (1, 2)]
        runs[1] = Run.from_frame(
            runs[1].frame().filter(pl.col("query_id") != "q3"), spec=dict(runs[1].spec)
        )
        aligned = [pieces(collection, run)[1] for run in runs]
        aligned = [lists.untied() for lists in aligned] if trec_eval else aligned
        judgments, pairs = aligned[0].judgments, [(0, 1), (2, 0), (1, 2)]
        tasks = [ShuffledRun(judged_run=run, groups=pair) for run in aligned for pair in pairs]
        labels = shuffled_labels(judgments, 3, 12)
        for task, deltas in zip(
            tasks,
            null_deltas(tasks, EVERY, Shuffles(judgments=judgments, seed=3, count=12)),
            strict=True,
        ):
            slow_rows = slow_deltas(task.judged_run, EVERY, task.groups, labels)
            for fast, slow in zip(deltas, slow_rows, strict=True):
                assert fast == pytest.approx(np.array(slow), rel=0, abs=1e-12, nan_ok=True)

    def test_result_independent_of_chunks_and_workers(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        collection = judged_groups(12, "aaabbcc", "aabc")
        judgments, first_run = pieces(collection, blind_run(collection, 1, ties=3))
        _, second_run = pieces(collection, blind_run(collection, 2, ties=3))
        tasks = [
            ShuffledRun(judged_run=run, groups=pair)
            for run in (first_run, second_run)
            for pair in ((0, 1), (1, 2))
        ]
        null = np.stack(
            list(null_deltas(tasks, MEASURES, Shuffles(judgments=judgments, seed=0, count=50)))
        )
        monkeypatch.setattr(base, "_FEWEST_SHUFFLES_PER_BLOCK", 1)
        for step, share in ((1, 4), (2, 4), (7, 4), (1 << 18, 1 << 40)):
            monkeypatch.setattr(base, "_LABELS_PER_BLOCK", step * len(judgments.group))
            monkeypatch.setattr(base, "_MEMORY_PARTS", share)
            assert np.array_equal(
                null,
                np.stack(
                    list(
                        null_deltas(
                            tasks, MEASURES, Shuffles(judgments=judgments, seed=0, count=50)
                        )
                    )
                ),
            )

    def test_what_is_worked_on_together_fits_into_the_memory(self) -> None:
        collection = judged_groups(2, "ab", "ab")
        shuffles = Shuffles(
            judgments=pieces(collection, blind_run(collection, 0))[0], seed=0, count=1 << 20
        )
        with limit_memory(
            MemoryLimits(memory=64 << 20)
        ):  # a quarter of it holds two results of 8 MiB
            assert list(shuffles.batches(5, 1)) == [slice(0, 2), slice(2, 4), slice(4, 5)]
            assert len(list(shuffles.batches(5, 4))) == 5


def test_about_95_percent_of_label_blind_rankings_lie_within() -> None:
    """Of 60 rankings each, whose ties and groups differ: 171 of 180 are expected."""
    inside = 0
    for docs, relevant, of, ties in (
        ("aaaaaabb", "aaaabb", nDCG @ 3, None),
        ("aaaabbbb", "aabbbb", AP @ 5, None),
        ("aaaaabbb", "aaabbb", RR, 4),
    ):
        collection = judged_groups(20, docs, relevant)
        for seed in range(60):
            judgments, aligned = pieces(collection, blind_run(collection, seed, ties=ties))
            task = ShuffledRun(judged_run=aligned, groups=(0, 1))
            (deltas,) = null_deltas(
                [task], [of], Shuffles(judgments=judgments, seed=seed, count=300)
            )
            ends = interval(deltas[0])
            a, b = group_values(aligned, [of], grouping(collection, "kind"), "expected")[
                0, 1:3
            ].mean(axis=1)
            inside += ends.low <= 200 * (a - b) / (a + b) <= ends.high
    assert 164 <= inside <= 178


def test_tilt_of_ten_against_one_lies_beyond_for_label_reader() -> None:
    """It puts the one relevant document of b first, so Relative Δ is near 0: far from what random
    labels give.
    """
    collection = judged_groups(60, "a" * 100 + "b" * 100, "a" * 10 + "b")
    run = blind_run(collection, 0)
    blind = audit(collection, run, ["nDCG"], by="kind", resamples=100)
    (tilt,) = blind.tilts
    assert tilt.value == pytest.approx(75, abs=7)
    assert 40 < tilt.null_low < 70 < 80 < tilt.null_high < 110
    assert (blind.verdict("blind").kind, tilt.twins) == ("inconclusive", False)
    first = [f"q{q}d100" for q in range(60)]
    score = pl.col("score") + 2 * pl.col("doc_id").is_in(first)
    tilted = Run.from_frame(run.frame().with_columns(score), spec={"ranker": "b-first"})
    result = audit(collection, tilted, ["nDCG"], by="kind", resamples=500)
    (tilt,) = result.tilts
    assert -100 < tilt.value < 0 < tilt.null_low
    assert tilt.checks["shuffled labels"] == pytest.approx(2 / 1001)
    assert tilt.p < 0.001
    assert result.verdict("b-first").side == "b"


def test_a_sure_tilt_survives_the_correction_in_a_long_table() -> None:
    """Three groups, nine measures and two runs make 54 tests: 1,000 shuffles could not reach p =
    .05 / 54.
    """
    assert [shuffle_count(tests) for tests in (1, 20, 21, 54)] == [SHUFFLES, SHUFFLES, 1050, 2700]
    assert 54 * 2 / (1 + 2700) < 0.05
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


def two_lists(*relevant: str, second: str = "x") -> tuple[Collection, JudgedRun]:
    """Two queries that rank x above y, and x, or another document of its side, above z."""
    docs = [{"id": d, "text": "", "side": s} for d, s in {**SIDES, second: "a"}.items()]
    collection = collection_of(
        docs, {"1": "one", "2": "two"}, {q: dict.fromkeys(relevant, 1) for q in "12"}
    )
    run = run_of(collection, {"1": {"x": 2.0, "y": 1.0}, "2": {second: 2.0, "z": 1.0}})
    groups = grouping(collection, "side")
    return collection, JudgedRun.from_run(
        run, collection, Judgments.from_collection(collection, groups)
    )


def labels_of(text: str, second: str) -> LabelEffects:
    collection, aligned = two_lists(second=second)
    code = aligned.group_codes(grouping(collection, "side"))
    question = estimand(text)
    labels = listed_labels(
        aligned,
        question,  # type: ignore[arg-type]
        code == 0,
        code == 1,
        origins=np.arange(4),
    )
    assert labels is not None
    return labels


@pytest.mark.parametrize("text", ["Share@1", "ExposureRatio", "ExposureRatio(aggregate=means)"])
def test_a_document_in_two_lists_adds_twice_to_one_label(text: str) -> None:
    """x adds .25 to Share@1 in both lists, y and z .25 in one each: √((.5² + 2 · .25²) / (4 ·
    .25²)) = √1.5.
    """
    labels = labels_of(text, "x")
    assert labels.spread == pytest.approx(np.sqrt(1.5))
    if text != "ExposureRatio(aggregate=means)":
        assert labels_of(text, "w").spread == 1  # documents of one list each change nothing
    if text == "Share@1":
        assert labels.clusters.total.tolist() == [0.25] * 4
        assert labels.clusters.weight.tolist() == [1, 0, 1, 0]


def test_what_labels_add_sums_to_the_answer() -> None:
    """The first document's share of two ranks' exposure is 1 / (1 + 1/log2(3)), the second's the
    rest.
    """
    labels = labels_of("ExposureRatio", "x")
    top = 1 / (1 + 1 / np.log2(3))
    assert labels.clusters.weight == pytest.approx([top, 1 - top] * 2)
    assert labels.clusters.total == pytest.approx(
        [2 * top - 1] * 4
    )  # (e − ē)/ē, each group being one document
    only, lists = (
        (np.array([True, True]), np.array([False, False])),
        Ranking(np.array([0, 2]), np.array([2.0, 1.0])),
    )
    for of, sides in product(
        (estimand("ExposureRatio"), estimand("Share@1")), (only, only[::-1])
    ):  # one group alone
        added = of.label_effects(lists, *sides)  # type: ignore[attr-defined]
        assert [column.tolist() for column in added] == [[0.0, 0.0]] * 2
    below = (
        Ranking(np.array([0, 4]), np.array([4.0, 3.0, 2.0, 1.0])),
        *(np.arange(4) == row for row in (2, 3)),
    )
    added = estimand("ExposureRatio@2").label_effects(*below)  # type: ignore[attr-defined]
    assert [column.tolist() for column in added] == [[0.0] * 4] * 2


def test_relevant_documents_of_two_queries() -> None:
    """nDCG@1 of a is 1 and of b 0 in both queries: x adds 1 beside a mean of 0 of the others, y and
    z 0 beside .5.
    """
    _, aligned = two_lists("x", "y", "z")
    of = measure("nDCG@1")
    sample = Sample(
        run="r",
        estimand=RelativeDelta(of=of),
        a="a",
        b="b",
        numerator=np.ones(2),
        denominator=np.zeros(2),
    )
    labels = judged_labels(aligned, of, (0, 1), sample, origins=np.arange(3))
    assert labels.clusters.total == pytest.approx([1, 0.5, 0.5] * 2)
    assert labels.clusters.weight == pytest.approx([0.5, 0, 0] * 2)
    assert (
        labels.spread == 1
    )  # both queries have the same judgments, whose labels are drawn together already


def test_a_page_counts_relevant_documents_by_query_and_others_once() -> None:
    collection, aligned = two_lists()
    groups = grouping(collection, "side")
    page = TopRanks.from_run(aligned, estimand("NDSR@1"), 3)  # type: ignore[arg-type]
    labels = page_labels(aligned, page, signs_of(groups, ("a", "b")), groups, origins=np.arange(3))
    added = np.bincount(labels.clusters.origin, weights=labels.clusters.total)
    # x holds both pages, the mean document 2/3; labels are 1, −1 and −1, their mean −1/3.
    assert added == pytest.approx([(1 + 1 / 3) * (2 - 2 / 3), (-2 / 3) * (-2 / 3), 4 / 9])
    assert labels.spread == 1  # their labels are drawn once for all queries anyhow


def test_relevant_documents_of_a_page_add_beside_their_query_means() -> None:
    docs = [
        {"id": name, "text": "", "side": side}
        for name, side in (("x", "a"), ("y", "b"), ("z", "b"))
    ]
    collection = collection_of(docs, {"q": "x"}, {"q": {"x": 1, "y": 1, "z": 1}})
    groups = grouping(collection, "side")
    run = run_of(collection, {"q": {"x": 3.0, "y": 2.0, "z": 1.0}})
    judged_run = JudgedRun.from_run(run, collection, Judgments.from_collection(collection, groups))
    page = TopRanks.from_run(judged_run, estimand("NDSR@1"), 3)  # type: ignore[arg-type]
    labels = page_labels(
        judged_run, page, signs_of(groups, ("a", "b")), groups, origins=np.arange(3)
    )
    added = np.bincount(labels.clusters.origin, weights=labels.clusters.total)
    # x holds the page, the mean document 1/3 of it; labels are 1, −1 and −1, their mean −1/3.
    assert added == pytest.approx([4 / 3 * 2 / 3, -2 / 3 * -1 / 3, -2 / 3 * -1 / 3])


def test_level_is_median_of_random_labels_wherever_they_scatter() -> None:
    null = np.array([1.0, 1.0, 1.1, 1.4, 3.0])
    assert NullDistribution.from_draws(1.2, null).median == 1.1
    wide = NullDistribution.from_draws(1.2, null, spread=2.0)
    assert (wide.median, wide.low, wide.high) == pytest.approx((1.1, 0.9, 4.9))
    assert np.isnan(NullDistribution.from_draws(1.2, np.array([np.nan])).median)


def test_coin_labels_name_no_side_over_many_queries() -> None:
    """40 documents in 150 queries; labels shuffled in each list anew named a side in most of these
    worlds.
    """
    small, away = np.zeros((2, 3))
    for seed in range(12):
        rng = np.random.default_rng([seed, 31])
        quality, side = rng.normal(size=40), rng.permutation(np.arange(40) < 20)
        docs = [{"id": f"d{n}", "text": "", "side": "ab"[int(s)]} for n, s in enumerate(side)]
        queries = {f"q{q}": f"query {q}" for q in range(150)}
        scores = {
            q: {f"d{n}": quality[n] + rng.normal() for n in rng.choice(40, 20, replace=False)}
            for q in queries
        }
        qrels = {
            q: dict.fromkeys(rng.choice(list(row), 6, replace=False).tolist(), 1)
            for q, row in scores.items()
        }
        collection = collection_of(docs, queries, qrels)
        result = audit(
            collection,
            run_of(collection, scores),
            ["nDCG@5", "Share@5", "NDSR@5"],
            by="side",
            resamples=200,
        )
        every = [result.tilts[0], *(e for e in result.card if e.estimand.kind != "relevance")]
        small += [e.p < 0.05 for e in every]
        away += [e.leans != "" for e in every]
    assert (small <= 3).all(), small  # 1 of 20 is expected
    assert (away <= 3).all(), away


# Who fills the page

Order = Sequence[Sequence[str]]
"""Documents of one query, block by block: those of a block tie."""


class Material(NamedTuple):
    collection: Collection
    groups: Groups
    aligned: JudgedRun


def material_of(
    sides: str, orders: Sequence[Order], relevant: Sequence[Sequence[str]] = ()
) -> Material:
    """Documents d0, d1 … of the sides named letter by letter ("-" for none); one order a query."""
    docs = [
        {"id": f"d{n}", "text": "x", "side": None if side == "-" else side}
        for n, side in enumerate(sides)
    ]
    qrels = {
        f"q{q}": dict.fromkeys(relevant_docs, 1)
        for q, relevant_docs in enumerate(relevant)
        if relevant_docs
    }
    queries = {f"q{q}": "x" for q in range(len(orders))}
    collection = collection_of(docs, queries, qrels)
    scores = {
        f"q{q}": {d: -float(n) for n, block in enumerate(order) for d in block}
        for q, order in enumerate(orders)
    }
    groups = grouping(collection, "side")
    run = run_of(collection, scores)
    return Material(
        collection,
        groups,
        JudgedRun.from_run(run, collection, Judgments.from_collection(collection, groups)),
    )


def null_of(
    material: Material, depth: int, *, shuffles: int = 1000, seed: int = 0
) -> npt.NDArray[np.float64]:
    page = TopRanks.from_run(material.aligned, NDSR @ depth, material.collection.docs.height)
    (band,) = page_module.share_bands(
        [page],
        material.groups,
        Shuffles(judgments=material.aligned.judgments, seed=seed, count=shuffles),
    )
    return band[0] - band[1]


def shares(order: Order, depth: int) -> dict[str, float]:
    """What each document holds of a page, ties shared."""
    length = min(depth, sum(map(len, order)))
    discount_sum = sum(1 / np.log2(1 + r) for r in range(1, length + 1))
    attention, rank = {}, 1
    for block in order:
        mass = sum(1 / np.log2(1 + r) for r in range(rank, min(rank + len(block), depth + 1)))
        attention |= dict.fromkeys(block, float(mass / discount_sum / len(block)))
        rank += len(block)
    return attention


def simulated(
    sides: str, orders: list[Order], relevant: list[list[str]], depth: int, rounds: int
) -> list[float]:
    """Draw labels anew in every round, document by document, with Python's own generator."""
    draw = random.Random(1)
    label: Mapping[str, str] = {f"d{n}": side for n, side in enumerate(sides)}
    ever = {d for right in relevant for d in right}
    labelled = [d for d in label if label[d] != "-"]
    strata = [[d for d in labelled if d in ever], [d for d in labelled if d not in ever]]
    differences = []
    for _ in range(rounds):
        everywhere = dict.fromkeys(label, "-")
        for stratum in strata:
            everywhere |= dict(
                zip(stratum, draw.sample([label[d] for d in stratum], len(stratum)), strict=True)
            )
        values = []
        for order, right in zip(orders, relevant, strict=True):
            known = [d for d in right if label[d] != "-"]
            drawn = everywhere | dict(
                zip(known, draw.sample([label[d] for d in known], len(known)), strict=True)
            )
            values.append(sum(share * SIGNS[drawn[d]] for d, share in shares(order, depth).items()))
        differences.append(statistics.fmean(values))
    return differences


SIGNS = {"a": 1, "b": -1, "-": 0}


class TestDifference:
    def test_by_hand_with_ties_a_cut_and_documents_of_no_group(self) -> None:
        material = material_of("abb-a", [[["d0"], ["d1", "d3"], ["d4"]], [["d2"]], []])
        page = TopRanks.from_run(material.aligned, NDSR @ 3, 5)
        t = 1 / np.log2(3)
        expected = [(1 - (t + 0.5) / 2) / (1.5 + t), -1, 0]
        assert page.difference(signs_of(material.groups, ("a", "b"))).tolist() == pytest.approx(
            expected
        )
        assert page.known.tolist() == [True, True, False]
        origins = np.array([0, 1, 0, -1, 1])  # d0 and d2 are of one origin, d1 and d4 of another
        nets = (
            page.clusters(signs_of(material.groups, ("a", "b"))).with_origins(origins).origin_totals
        )
        assert nets.tolist() == pytest.approx(
            [1 / (1.5 + t) - 1, (0.5 - (t + 0.5) / 2) / (1.5 + t) - 0.5 / (1.5 + t)]
        )

    def test_unknown_documents_keep_exposure(self) -> None:
        material = material_of("ab", [[["d0"], ["d1"]]])
        page = TopRanks.from_run(
            material.aligned, NDSR @ 2, 1
        )  # a collection of one document: d1 is beyond it
        assert page.row.tolist() == [0, -1]
        assert page.difference(np.array([1], dtype=np.int8)).tolist() == pytest.approx(
            [1 / (1 + 1 / np.log2(3))]
        )


class TestLevel:
    @pytest.mark.parametrize(
        ("sides", "expected"), [("aab", 1 / 3), ("abb-", -1 / 4), ("ab-----", 0)]
    )
    def test_share_difference(self, sides: str, expected: float) -> None:
        signs = np.array([SIGNS[side] for side in sides], dtype=np.int8)
        assert twin_module.share_difference(signs) == pytest.approx(expected)
        assert twin_module.share_difference(-signs) == -twin_module.share_difference(signs)

    def test_twins_are_all_paired_where_each_document_has_one(self) -> None:
        signs = np.array([1, -1, 1, -1, 0], dtype=np.int8)
        cases: list[list[tuple[int, int]]] = [
            [(0, 1), (2, 3)],
            [(0, 1)],
            [(0, 1), (2, 3), (0, 3)],
            [],
        ]
        sums = [
            twin_module.all_paired(signs, np.array(pairs, dtype=np.int64).reshape(-1, 2))
            for pairs in cases
        ]
        assert sums == [True, False, False, False]  # d2 and d3 have none, d0 has two, none has one


def random_case(
    seed: int, *, documents: int, depth: int
) -> tuple[str, list[Order], list[list[str]]]:
    rng = random.Random(seed)
    names = [f"d{n}" for n in range(documents)]
    sides = "".join(rng.choice("aabb-") for _ in names[2:]) + "ab"
    orders, relevant = [], []
    for _ in range(4):
        chosen = rng.sample(names, depth + 2)
        blocks: list[list[str]] = []
        for name in chosen:
            if not blocks or rng.random() >= 0.3:
                blocks.append([])
            blocks[-1].append(name)
        orders.append(blocks)
        relevant.append(rng.sample(names, rng.randint(1, 5)))
    return sides, orders, relevant


class TestRandomLabels:
    @pytest.mark.parametrize(("documents", "depth"), [(12, 5), (60, 14)])
    def test_they_are_distributed_as_a_slow_simulation_says(
        self, documents: int, depth: int
    ) -> None:
        sides, orders, relevant = random_case(documents, documents=documents, depth=depth)
        fast = null_of(material_of(sides, orders, relevant), depth, shuffles=4000)
        slow = simulated(sides, orders, relevant, depth, 4000)
        error = statistics.stdev(slow) * (2 / 4000) ** 0.5
        assert fast.mean() == pytest.approx(statistics.fmean(slow), abs=4 * error)
        assert fast.std() == pytest.approx(statistics.pstdev(slow), rel=0.06)
        for q in (0.025, 0.5, 0.975):
            assert np.quantile(fast, q) == pytest.approx(
                np.quantile(slow, q), abs=0.25 * statistics.stdev(slow)
            )

    def test_labels_drawn_without_replacement(
        self,
    ) -> None:
        # All six documents tie and fill the page: whoever is who, the sides hold 4/6 and 2/6 of it.
        full = [[f"d{n}" for n in range(6)]]
        assert null_of(material_of("aaaabb", [full]), 6).tolist() == pytest.approx([2 / 6] * 1000)
        # A query without results counts not at all.
        assert null_of(material_of("aaaabb", [full, [], full]), 6).tolist() == pytest.approx(
            [2 / 6] * 1000
        )
        # d0 (a) and d2 (b) are relevant, only d0 is retrieved: it is of a in half of the draws. The
        # rest is one tie.
        material = material_of("aabb", [[["d0"], ["d1", "d3"]]], [["d0", "d2"]])
        top = shares([["d0"], ["d1", "d3"]], 3)["d0"]
        counts = Counter(np.round(null_of(material, 3), 9).tolist())
        assert set(counts) == {round(top, 9), round(-top, 9)}
        assert counts[round(top, 9)] == pytest.approx(500, abs=80)

    def test_a_run_feels_neither_the_other_runs_nor_the_memory(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sides, orders, relevant = random_case(7, documents=60, depth=8)
        forward, backward = (material_of(sides, mine, relevant) for mine in (orders, orders[::-1]))
        pages = [
            TopRanks.from_run(material.aligned, NDSR @ 8, 60) for material in (forward, backward)
        ]
        shuffles = Shuffles(judgments=forward.aligned.judgments, seed=0, count=100)
        alone = [
            next(page_module.share_bands([page], forward.groups, shuffles)).tolist()
            for page in pages
        ]
        assert [
            band.tolist() for band in page_module.share_bands(pages, forward.groups, shuffles)
        ] == alone
        monkeypatch.setattr(base, "_MEMORY_PARTS", 1 << 40)
        assert [
            band.tolist() for band in page_module.share_bands(pages, forward.groups, shuffles)
        ] == alone


def test_judged_document_beyond_the_collection_is_in_no_group() -> None:
    docs = [{"id": "d1", "source": "human"}, {"id": "d2", "source": "llm"}]
    texts = [{**row, "title": "", "text": "x", "origin": row["id"]} for row in docs]
    known = collection_of(texts, {"q": "x"}, {"q": {"d1": 1, "new": 1}})
    groups = grouping(known, "source")
    run = Run.from_dict({"q": {"new": 3.0, "d2": 2.0, "d1": 1.0}})
    judged_run = JudgedRun.from_run(run, known, Judgments.from_collection(known, groups))
    assert judged_run.row.tolist() == [2, 1, 0]  # the collection has two rows
    assert judged_run.group_codes(groups).tolist() == [-1, 1, 0]
