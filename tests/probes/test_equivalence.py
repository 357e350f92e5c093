"""The paired equivalence test by hand, by scipy, and on small collections whose rankings are given."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from ranktilt.auditing.effects import Equivalence
from ranktilt.auditing.significance import outcome
from ranktilt.collection import Collection
from ranktilt.datasets.load import load
from ranktilt.errors import UserError
from ranktilt.measures.average_precision import AP
from ranktilt.measures.ndcg import nDCG
from ranktilt.probes.validation import equivalences
from ranktilt.rankers.base import Ranker
from ranktilt.registry import ranker
from ranktilt.run import Run
from ranktilt.statistics.equivalence import smallest_margin, t_interval, tost_p
from tests.toy import collection_of, run_of, versions

FIVE = np.array([0.01, 0.02, 0.03, 0.04, 0.05])
"""Mean .03, standard error √(.00025/5) = .0070711."""
SECOND = 1 / math.log2(3)
"""nDCG of one relevant document on rank 2."""
VECTORS = arrays(np.float64, st.integers(3, 40), elements=st.floats(-1, 1, width=32).map(lambda v: round(v, 3)))


def test_by_hand() -> None:
    # Student's t with 4 degrees of freedom: F(t) = 1/2 + 3/8 · t/√(1+t²/4) · (1 − t²/(12·(1+t²/4))),
    # here at (.03 − .05)/.0070711 = −√8: 1/2 − 3/8 · √8/√3 · (1 − 8/36)
    assert tost_p(FIVE, 0.05) == pytest.approx(0.5 - 3 / 8 * math.sqrt(8 / 3) * 7 / 9)


@pytest.mark.parametrize("margin", [0.001, 0.02, 0.1])
@pytest.mark.parametrize("seed", range(2))
def test_as_scipy_s_one_sided_tests(margin: float, seed: int) -> None:
    found = np.random.default_rng(seed).normal(0.01 * seed, 0.1, 50)
    above = stats.ttest_1samp(found, -margin, alternative="greater").pvalue
    below = stats.ttest_1samp(found, margin, alternative="less").pvalue
    assert tost_p(found, margin) == pytest.approx(max(above, below), rel=1e-9)


@pytest.mark.parametrize(("value", "p"), [(0.0, 0.0), (0.01, 0.0), (-0.01, 0.0), (0.02, 1.0), (-0.5, 1.0)])
def test_without_any_spread(value: float, p: float) -> None:
    assert tost_p(np.full(7, value), 0.02) == p


@pytest.mark.parametrize("count", [0, 1])
def test_below_two_queries_there_is_no_test(count: int) -> None:
    assert math.isnan(tost_p(np.zeros(count), 0.02))
    assert math.isnan(smallest_margin(np.zeros(count)))
    assert all(map(math.isnan, t_interval(np.zeros(count))))


@given(VECTORS, st.floats(0.001, 0.5))
@settings(max_examples=40)
def test_the_sign_does_not_matter_and_a_wider_margin_is_easier(found: np.ndarray, margin: float) -> None:
    assert tost_p(-found, margin) == pytest.approx(tost_p(found, margin), abs=1e-12)
    assert tost_p(found, 2 * margin) <= tost_p(found, margin)


@given(VECTORS, st.sampled_from([0.01, 0.05, 0.1]))
@settings(max_examples=40)
def test_equivalence_is_shown_from_the_smallest_margin_on(found: np.ndarray, alpha: float) -> None:
    least = smallest_margin(found, alpha)
    assert tost_p(found, least + 1e-6) < alpha
    if least > 2e-6:
        assert tost_p(found, least - 1e-6) > alpha


def test_intervals_are_those_of_scipy() -> None:
    found = np.random.default_rng(1).normal(-0.2, 1, 30)
    wide, narrow = (stats.ttest_1samp(found, 0).confidence_interval(level) for level in (0.95, 0.9))
    assert t_interval(found) == (pytest.approx(wide.low), pytest.approx(wide.high))
    assert smallest_margin(found) == pytest.approx(max(abs(narrow.low), abs(narrow.high)))
    assert t_interval(np.full(3, 0.1)) == (0.1, 0.1)
    assert smallest_margin(np.full(3, -0.1)) == 0.1


@pytest.mark.parametrize(
    ("equivalent", "different", "expected"),
    [
        (0.01, 0.5, "equivalent"),
        (0.01, 0.01, "different within the margin"),
        (0.5, 0.01, "different"),
        (0.5, 0.5, "inconclusive"),
        (0.05, 0.05, "inconclusive"),
        (math.nan, 0.01, "not tested"),
        (0.01, math.nan, "not tested"),
    ],
)
def test_what_two_p_values_show_together(equivalent: float, different: float, expected: str) -> None:
    assert outcome(equivalent, different, 0.05) == expected


@dataclass(frozen=True)
class Given(Ranker):
    """Ranks by given scores, by query and document."""

    name: ClassVar[str] = "given"
    scores: Mapping[str, Mapping[str, float]]

    def rank(self, collection: Collection, run: Run | None = None) -> Run:
        held = set(collection.ids)
        found = {q: {d: s for d, s in self.scores[q].items() if d in held} for q in collection.judged["id"]}
        return run_of(collection, found, ranker="given")

    def __repr__(self) -> str:
        return "given"


def bed(count: int = 4, sources: tuple[str, ...] = ("human", "llm")) -> Collection:
    """Query n has the one relevant document n, in a version of every source."""
    docs = versions({s: [f"text {n} of {s}" for n in range(count)] for s in sources}, "d")
    qrels = {f"q{n}": {f"d{n}-{s}": 1 for s in sources} for n in range(count)}
    return collection_of(docs, dict.fromkeys(qrels, "text"), qrels)


def ranks(places: Mapping[str, list[int]]) -> Given:
    """Put query n's relevant document of a source on the given rank, 1 or 2, among those of its source."""
    scores: dict[str, dict[str, float]] = {}
    for source, found in places.items():
        for n, place in enumerate(found):
            other = (n + 1) % len(found)
            scores.setdefault(f"q{n}", {}).update({f"d{n}-{source}": 2.0 - place, f"d{other}-{source}": 0.5})
    return Given(scores)


def rows(collection: Collection, one: Ranker, **options: object) -> tuple[Equivalence, ...]:
    how: dict[str, object] = {"reference": "human", "sources": ["llm"], **options}
    return equivalences(collection, [one], [nDCG @ 10], **how)  # type: ignore[arg-type]


def test_each_side_is_ranked_among_its_own_documents() -> None:
    (row,) = rows(bed(), ranks({"human": [1, 1, 1, 2], "llm": [1, 2, 2, 2]}))
    assert row.mean_a == pytest.approx((3 + SECOND) / 4)
    assert row.mean_b == pytest.approx((1 + 3 * SECOND) / 4)
    differences = np.array([0, 1 - SECOND, 1 - SECOND, 0])
    assert row.value == pytest.approx(differences.mean())
    assert row.error == pytest.approx(stats.sem(differences))
    expected = stats.ttest_1samp(differences, 0)
    assert row.p == row.p_corrected == pytest.approx(expected.pvalue)
    assert (row.low, row.high) == tuple(map(pytest.approx, expected.confidence_interval(0.95)))
    assert (row.outcome, row.statement) == ("inconclusive", "inconclusive")
    assert (row.queries, row.excluded, row.pairs, row.left_out) == (4, 0, 4, 0)


def test_a_difference_is_called_one() -> None:
    # On the mixed list each of these documents would stand below twins of the other source.
    (row,) = rows(bed(), ranks({"human": [1, 1, 1, 1], "llm": [1, 1, 1, 1]}))
    assert (row.mean_a, row.mean_b, row.p, row.p_equivalent, row.smallest) == (1.0, 1.0, 1.0, 0.0, 0.0)
    assert row.statement == "equivalent within ±0.02"
    (row,) = rows(bed(8), ranks({"human": [1] * 8, "llm": [2] * 8}))
    assert row.value == pytest.approx(1 - SECOND)
    assert (row.outcome, row.p, row.p_equivalent) == ("different", 0.0, 1.0)
    (wide,) = rows(bed(8), ranks({"human": [1] * 8, "llm": [2] * 8}), margin=0.5)
    assert wide.statement == "different within ±0.5"


def test_swapping_the_sides_turns_the_sign_and_nothing_else() -> None:
    one = ranks({"human": [1, 1, 2, 1], "llm": [1, 2, 2, 1]})
    (there,) = rows(bed(), one)
    (back,) = rows(bed(), one, reference="llm", sources=["human"])
    assert back.value == -there.value
    assert (back.low, back.high) == (pytest.approx(-there.high), pytest.approx(-there.low))
    assert back.p_equivalent == pytest.approx(there.p_equivalent)
    assert back.outcome == there.outcome


def test_both_sides_are_restricted_to_the_pairs() -> None:
    whole = bed()
    pooled = Collection(whole.docs.filter(pl.col("id") != "d3-llm"), whole.queries, whole.qrels)
    (row,) = rows(pooled, ranks({"human": [1, 1, 1, 2], "llm": [1, 1, 1, 2]}))
    assert (row.pairs, row.left_out, row.queries, row.excluded) == (3, 1, 3, 1)
    # Without d3 the third query has nothing above its document any more, on either side.
    assert (row.mean_a, row.mean_b) == (1.0, 1.0)


def test_a_query_without_an_answer_on_one_side_is_excluded_and_counted() -> None:
    whole = bed()
    lame = Collection(whole.docs, whole.queries, whole.qrels.filter(pl.col("doc_id") != "d0-llm"))
    (row,) = rows(lame, ranks({"human": [2, 1, 1, 1], "llm": [1, 1, 1, 1]}))
    assert (row.queries, row.excluded, row.mean_a) == (3, 1, 1.0)
    whole = bed(2)
    apart = whole.qrels.filter(pl.col("doc_id").is_in(["d0-human", "d1-llm"]))
    (row,) = rows(Collection(whole.docs, whole.queries, apart), ranks({"human": [1, 1], "llm": [1, 1]}))
    assert (row.outcome, row.queries, row.excluded) == ("not tested", 0, 2)
    assert all(map(math.isnan, (row.mean_a, row.mean_b, row.value, row.low, row.p_corrected)))


def test_judgments_of_queries_that_are_not_there_count_nowhere() -> None:
    whole = bed()
    more = pl.concat([whole.qrels, whole.qrels.with_columns(query_id=pl.lit("q99") + pl.col("query_id"))])
    one = ranks({"human": [1, 1, 1, 2], "llm": [1, 2, 2, 2]})
    assert rows(Collection(whole.docs, whole.queries, more), one) == rows(whole, one)


def test_one_query_cannot_be_tested() -> None:
    (row,) = rows(bed(1), Given({"q0": {"d0-human": 1.0, "d0-llm": 1.0}}))
    assert (row.outcome, row.queries, row.mean_a) == ("not tested", 1, 1.0)
    assert all(map(math.isnan, (row.p_equivalent, row.smallest, row.error)))


def test_holm_counts_every_row_and_the_equivalence_test_none() -> None:
    whole = bed(6, ("human", "llm", "other"))
    one = ranks({"human": [1] * 6, "llm": [1, 1, 2, 2, 2, 1], "other": [1, 1, 1, 1, 1, 2]})
    found = equivalences(whole, [one], [nDCG @ 10, AP @ 5], reference="human", sources=["llm", "other"])
    assert [(row.source, row.measure) for row in found] == [
        ("llm", "nDCG@10"), ("llm", "AP@5"), ("other", "nDCG@10"), ("other", "AP@5"),
    ]  # fmt: skip
    ps = [row.p for row in found]
    assert ps[0] == pytest.approx(ps[1])  # the same three queries, and one value where they differ
    smaller, larger = 4 * min(ps), min(1, max(4 * min(ps), 2 * max(ps)))
    assert sorted(row.p_corrected for row in found) == pytest.approx([smaller, smaller, larger, larger])
    for row, measure in zip(found, [nDCG @ 10, AP @ 5] * 2, strict=True):
        (alone,) = equivalences(whole, [one], [measure], reference="human", sources=[row.source])
        assert alone.p_equivalent == row.p_equivalent


@pytest.mark.parametrize(("option", "value"), [
    ("margin", 0.0), ("margin", 1.0), ("margin", math.nan), ("alpha", 0.0), ("alpha", 0.5), ("alpha", math.nan),
])  # fmt: skip
def test_a_margin_or_alpha_out_of_range_is_refused(option: str, value: float) -> None:
    with pytest.raises(UserError, match=rf"^expected an? {option} above 0 and below .*, got "):
        rows(bed(), ranks({"human": [1] * 4, "llm": [1] * 4}), **{option: value})


def test_a_stricter_level_shows_less() -> None:
    places = {"human": [1] * 40, "llm": [2] + [1] * 39}
    (usual,) = rows(bed(40), ranks(places))
    (strict,) = rows(bed(40), ranks(places), alpha=0.001)
    assert usual.value == pytest.approx((1 - SECOND) / 40)
    # Mean and standard error are both (1 − SECOND)/40.
    expected = stats.t.cdf(1 - 40 * 0.02 / (1 - SECOND), 39)
    assert usual.p_equivalent == strict.p_equivalent == pytest.approx(expected)
    assert (usual.outcome, strict.outcome) == ("inconclusive", "inconclusive")
    assert strict.smallest > usual.smallest
    (loose,) = rows(bed(40), ranks(places), alpha=0.2)
    assert loose.outcome == "equivalent"


@pytest.mark.data
def test_nfcorpus_is_as_easy_to_search_on_either_side(shared_data: Path) -> None:
    whole = load(shared_data / "cocktail-nfcorpus")
    source = next(name for name in whole.sources if name != "human")
    strong = ranker("bm25(k1=0.9,b=0.4)")
    (row,) = equivalences(whole, [strong], [nDCG @ 10], reference="human", sources=[source])
    assert row.mean_a == pytest.approx(0.3218, abs=0.003)  # published for human text alone
    assert (row.queries, row.pairs, row.outcome) == (323, 3633, "equivalent")


def test_a_difference_that_the_correction_takes_away_is_none() -> None:
    # Half of ten queries differ by one value: t = 3, p = .015; over four rows .06.
    one = ranks({"human": [1] * 10, "llm": [1, 2] * 5})
    (alone,) = rows(bed(10), one)
    four = equivalences(
        bed(10), [one], [nDCG @ 10, nDCG @ 5, AP @ 10, AP @ 5], reference="human", sources=["llm"]
    )  # fmt: skip
    assert (alone.outcome, alone.p) == ("different", pytest.approx(0.01496, abs=1e-5))
    assert [row.outcome for row in four] == ["inconclusive"] * 4
    assert [row.p_corrected for row in four] == [pytest.approx(4 * alone.p)] * 4


def test_each_comparison_has_its_own_reference_side_and_a_shared_one_is_ranked_once() -> None:
    ranked: list[tuple[str, ...]] = []

    @dataclass(frozen=True)
    class Counting(Given):
        def rank(self, collection: Collection, run: Run | None = None) -> Run:
            ranked.append(collection.sources)
            return super().rank(collection, run)

    whole = bed(4, ("human", "llm", "other"))
    one = Counting(ranks({"human": [1, 1, 1, 2], "llm": [1, 1, 1, 1], "other": [1, 1, 1, 1]}).scores)
    equivalences(whole, [one], [nDCG @ 10], reference="human", sources=["llm", "other"])
    assert ranked == [("human",), ("llm",), ("other",)]
    part = Collection(whole.docs.filter(pl.col("id") != "d3-llm"), whole.queries, whole.qrels)
    found = equivalences(part, [one], [nDCG @ 10], reference="human", sources=["llm", "other"])
    assert [(row.pairs, row.queries) for row in found] == [(3, 3), (4, 4)]
    assert [row.mean_a for row in found] == [1.0, pytest.approx((3 + SECOND) / 4)]
