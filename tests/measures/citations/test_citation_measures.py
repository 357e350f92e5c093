"""Questions about citations, by hand and against other code."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ranktilt.citing.inference.further_questions import interval_over_questions
from ranktilt.measures.citations import cited_words, equal_rank, first_citation, rate, share
from ranktilt.measures.citations.concentration import concentration
from ranktilt.measures.citations.funnel import funnel_terms, rank_blocks, rank_rates
from ranktilt.measures.citations.stability import citation_overlap, jaccard
from tests.measures.citations.rows import citation_rows, random_world

ROWS = """
q1 x.org a first 1
q1 y.org b cited 2
q1 z.org b -     3
q2 x.org a -     1
q2 y.org b first 2
q2 w.org a -     3
"""


def test_rates() -> None:
    estimate = rate.estimate(citation_rows(ROWS))
    assert estimate.value_a == pytest.approx(1 / 3)
    assert estimate.value_b == pytest.approx(2 / 3)
    assert estimate.value == pytest.approx(0.5)
    assert estimate.distance == pytest.approx(np.log(0.5))
    assert (estimate.citations_a, estimate.citations_b) == (1, 2)


def test_shares() -> None:
    rows = citation_rows(ROWS)
    cited = share.estimate(rows)
    assert cited.value == pytest.approx(100 / 3)
    assert cited.neutral == pytest.approx(50)
    assert first_citation.estimate(rows).value == pytest.approx(50)


def test_cited_words() -> None:
    rows = replace(citation_rows(ROWS), cited_words=np.array([6.0, 2.0, np.nan, np.nan, 4.0, 0.0]))
    assert cited_words.estimate(rows).value == pytest.approx(50)


def test_side_that_is_never_cited_has_a_distance() -> None:
    estimate = rate.estimate(citation_rows(ROWS.replace("a first", "a -    ")))
    assert estimate.value == 0
    assert estimate.distance == pytest.approx(np.log((0.5 / 3.5) / (2.5 / 3.5)))


def test_pages_of_a_side_that_is_never_cited_have_no_influence() -> None:
    rows = random_world(5, questions=60)
    rows = replace(rows, is_cited=rows.is_cited & ~rows.is_a)
    estimate = rate.estimate(rows)
    assert estimate.influence.sum() == pytest.approx(0)
    assert not estimate.influence[rows.is_a].any()
    # None of n pages is cited: Poisson's 97.5 % limit of their number is 3.69.
    interval = interval_over_questions(rows, estimate)
    pages, rate_b = rows.is_a.sum(), rows.is_cited[~rows.is_a].mean()
    assert interval.high == pytest.approx(3.69 / pages / rate_b, rel=0.15)


def test_share_without_a_pool_has_no_neutral_value() -> None:
    rows = citation_rows(ROWS)
    nothing = np.zeros(len(rows), dtype=bool)
    rows = replace(rows, is_consulted=nothing, retrieval_rank=np.zeros(len(rows), dtype=np.int64))
    assert np.isnan(share.estimate(rows).neutral)


@pytest.mark.parametrize("question", [rate, share, equal_rank])
def test_influence_is_the_derivative(question: object) -> None:
    # What a query adds to the error is what the estimate gains by its weight, to first order.
    rows = random_world(3, questions=40, rank_effect=0.5)
    estimate = question.estimate(rows)  # type: ignore[attr-defined]
    by_question = rows.per_question(estimate.influence)
    assert estimate.influence.sum() == pytest.approx(0, abs=1e-6)
    step = 1e-5
    for number in (0, 7):
        weight = np.where(rows.question == number, 1 + step, 1.0)
        heavier = question.estimate(replace(rows, weight=weight))  # type: ignore[attr-defined]
        change = (heavier.distance - estimate.distance) / step
        assert change == pytest.approx(by_question[number], abs=1e-3)


def test_equal_rank_is_a_poisson_regression() -> None:
    from statsmodels.api import GLM, families

    rows = random_world(11, questions=30, pages=12, selection=0.4, rank_effect=0.8)
    estimate = equal_rank.estimate(rows)
    per_query = rows.per_question(rows.is_cited.astype(float))
    used = per_query[rows.question] > 0
    blocks = equal_rank.rank_block(rows.retrieval_rank[used])
    query = rows.question[used]
    design = np.column_stack(
        [
            rows.is_a[used].astype(float),
            *[(blocks == block).astype(float) for block in np.unique(blocks)[1:]],
            *[(query == number).astype(float) for number in np.unique(query)],
        ]
    )
    fit = GLM(rows.is_cited[used].astype(float), design, family=families.Poisson()).fit(tol=1e-12)
    assert np.log(estimate.value) == pytest.approx(fit.params[0], abs=1e-6)


def test_exchanged_labels_at_equal_rank_get_what_queries_and_ranks_leave() -> None:
    rows = random_world(4)
    amount = equal_rank.estimate(rows).exchange.amount
    used = amount != 0
    blocks = equal_rank.rank_block(rows.retrieval_rank[used])
    # A fit of queries and ranks alone leaves nothing to any of them.
    by_block = np.bincount(blocks, weights=amount[used])
    by_query = np.bincount(rows.question[used], weights=amount[used])
    assert np.abs(by_block).max() < 1e-6
    assert np.abs(by_query).max() < 1e-6
    assert abs(amount[rows.is_a].sum()) > 0.1, "the group is left"


def test_equal_rank_needs_ten_citations_a_side() -> None:
    assert np.isnan(equal_rank.estimate(citation_rows(ROWS)).value)


@pytest.mark.parametrize("seed", range(5))
def test_funnel_adds_up(seed: int) -> None:
    rows = random_world(seed, exposure=1.0, selection=-0.5, rank_effect=0.7)
    is_retrieved = rows.retrieval_rank <= 10
    rows = replace(rows, retrieval_rank=np.where(is_retrieved, rows.retrieval_rank, 0))
    *terms, total = funnel_terms(rows)
    assert sum(term.points for term in terms) == pytest.approx(total.points, abs=1e-12)
    assert np.sum([term.influence for term in terms], axis=0) == pytest.approx(total.influence)


def test_influence_of_each_part_of_the_funnel_is_its_derivative() -> None:
    rows = random_world(5, questions=40, exposure=1.0, selection=-0.5, rank_effect=0.7)
    rows = replace(rows, retrieval_rank=np.where(rows.retrieval_rank <= 10, rows.retrieval_rank, 0))
    terms = funnel_terms(rows)
    step = 1e-5
    for row in (0, 33, 210):
        weight = np.ones(len(rows))
        weight[row] += step
        for term, heavier in zip(terms, funnel_terms(replace(rows, weight=weight)), strict=True):
            change = (heavier.points - term.points) / step
            assert change == pytest.approx(term.influence[row], abs=1e-3), term.name


def mean_terms(**settings: float) -> dict[str, float]:
    """Return the mean of each term over worlds."""
    sums = dict[str, float]()
    count = 20
    for seed in range(count):
        for term in funnel_terms(random_world(seed, questions=80, pages=20, **settings)):
            sums[term.name] = sums.get(term.name, 0.0) + term.points / count
    return sums


def test_funnel_tells_rank_from_choice() -> None:
    # Simpson's case: ranked low, and cited more at each rank.
    low_but_chosen = mean_terms(exposure=-1.0, selection=0.7, rank_effect=0.7)
    assert low_but_chosen["exposure"] < -4
    assert low_but_chosen["selection"] > 6
    ranked_high = mean_terms(exposure=1.0, rank_effect=0.7)
    assert ranked_high["exposure"] > 5
    assert abs(ranked_high["selection"]) < 2


def test_exposure_is_nothing_where_rank_plays_no_part() -> None:
    assert abs(mean_terms(exposure=1.0)["exposure"]) < 1


def test_questions_with_more_citations_are_a_term_of_their_own() -> None:
    # q1 brings all citations and holds only group a; rank plays no part.
    lines = [f"q1 a{number} a cited {number}" for number in range(1, 31)]
    lines += [
        f"q2 b{number} b {'cited' if number == 1 else '-'} {number}" for number in range(1, 31)
    ]
    terms = {term.name: term.points for term in funnel_terms(citation_rows("\n".join(lines)))}
    assert terms["questions"] == pytest.approx(100 * (30 / 31 - 0.5))
    assert terms["exposure"] == pytest.approx(0, abs=1e-9)
    assert terms["selection"] == pytest.approx(0, abs=1e-9)


def test_ranks_with_few_pages_share_a_rate() -> None:
    blocks = [block.tolist() for block in rank_blocks(np.array([0, 25, 15, 10, 30, 3]))]
    assert blocks == [[1], [2, 3], [4, 5]]
    rates = rank_rates(citation_rows(ROWS))
    assert rates[1:] == pytest.approx([0.5, 0.5, 0.5])


def test_concentration() -> None:
    spread = concentration(np.array([2.0, 1.0, 1.0]))
    assert spread.effective_number == pytest.approx(1 / 0.375)
    assert spread.largest_share == pytest.approx(0.5)
    assert np.isnan(concentration(np.zeros(3)).effective_number)


def test_stability() -> None:
    assert jaccard(["x", "y"], ["y", "z"]) == pytest.approx(1 / 3)
    assert np.isnan(jaccard([], []))
    assert citation_overlap(["x", "y"], ["x", "y"]) == pytest.approx(1)
    assert citation_overlap(["x"], []) == 0
    assert np.isnan(citation_overlap([], []))
