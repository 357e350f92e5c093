"""Labels of documents that stand in many lists: no fresh evidence in each."""

from __future__ import annotations

import numpy as np
import pytest

from ranktilt import Collection, audit
from ranktilt.auditing.groups import grouping
from ranktilt.auditing.judged_rankings import Aligned, Judgments
from ranktilt.auditing.label_clusters import judged_labels, listed_labels, page_labels
from ranktilt.auditing.random_band import TopRanks, signs_of
from ranktilt.auditing.significance import Chance, Sample
from ranktilt.measures.base import estimand, measure
from ranktilt.measures.contrast import RelativeDelta
from tests.toy import collection_of, run_of

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
    for seed in range(20):
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
    assert (small <= 4).all(), small  # 1 of 20 is expected
    assert (away <= 4).all(), away
