"""Gelbach's decomposition: the numbers of a fixed-effects regression, and intervals that cover."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ranktilt.statistics.regression.gelbach import Decomposition, InferredValue, ListRows, decompose

GAMMAS, BETAS, REMAINING = (0.8, -0.5, 0.0), (0.5, 0.4, 0.5), 0.2


def drawn_rows(seed: int, *, queries: int = 60, size: int = 20, documents: int = 300) -> ListRows:
    """Draw lists whose gap is .2 at equal properties, and .4 − .2 + 0 by three of them."""
    rng = np.random.default_rng(seed)
    side = (rng.random(documents) < 0.5).astype(np.float64)
    properties = side[:, None] * GAMMAS + rng.standard_normal((documents, 3))
    quality = 0.5 * rng.standard_normal(documents)
    document = np.concatenate(
        [rng.choice(documents, size, replace=False) for _ in range(queries)]
    ).astype(np.int64)
    query = np.repeat(np.arange(queries), size)
    outcome = rng.standard_normal(queries)[query] + REMAINING * side[document]
    outcome += properties[document] @ BETAS + quality[document]
    outcome += rng.standard_normal(len(query))
    return ListRows(
        outcome=outcome,
        side=side[document],
        properties=properties[document],
        query=query,
        document=document,
    )


def dummies(query: np.ndarray) -> np.ndarray:
    return (query[:, None] == np.unique(query)).astype(np.float64)


def values(decomposition: Decomposition) -> list[float]:
    shares = decomposition.shares
    return [
        decomposition.gap.value,
        decomposition.remaining.value,
        *(share.difference.value for share in shares),
        *(share.coefficient.value for share in shares),
    ]


def test_coefficients_are_those_of_dummies_for_queries() -> None:
    rows = drawn_rows(1, queries=12, size=9, documents=60)
    effects = dummies(rows.query)
    short = np.linalg.lstsq(
        np.column_stack([rows.side, effects]),
        np.column_stack([rows.outcome, rows.properties]),
        rcond=None,
    )[0][0]
    long = np.linalg.lstsq(
        np.column_stack([rows.side, rows.properties, effects]), rows.outcome, rcond=None
    )[0]
    expected = [short[0], long[0], *short[1:], *long[1:4]]
    assert values(decompose(rows, draws=10)) == pytest.approx(expected, abs=1e-10)


def test_coefficients_are_those_of_statsmodels() -> None:
    models = pytest.importorskip("statsmodels.api", reason="statsmodels comes with [dev]")
    rows = drawn_rows(2, queries=25, size=8, documents=90)
    effects = dummies(rows.query)
    short = models.OLS(rows.outcome, np.column_stack([rows.side, effects])).fit()
    long = models.OLS(rows.outcome, np.column_stack([rows.side, rows.properties, effects])).fit()
    decomposition = decompose(rows, draws=10)
    coefficients = [share.coefficient.value for share in decomposition.shares]
    assert decomposition.gap.value == pytest.approx(short.params[0], abs=1e-8)
    assert decomposition.remaining.value == pytest.approx(long.params[0], abs=1e-8)
    assert coefficients == pytest.approx(long.params[1:4].tolist(), abs=1e-8)


def test_parts_add_up_in_any_order() -> None:
    rows = drawn_rows(3)
    decomposition = decompose(rows)
    parts = [share.part.value for share in decomposition.shares]
    gap, remaining = decomposition.gap.value, decomposition.remaining.value
    assert sum(parts) == pytest.approx(gap - remaining, abs=1e-12)
    assert decomposition.explained.value == pytest.approx(gap - remaining, abs=1e-12)
    turned = decompose(replace(rows, properties=rows.properties[:, ::-1]))
    assert [share.part.value for share in turned.shares] == pytest.approx(parts[::-1], abs=1e-12)


def test_by_hand() -> None:
    # Two lists of two documents, one a side: x differs by 2 and by 0, y by 5 and by 1, so that
    # β = (5 − 1) / (2 − 0) = 2, δ_x = 1, δ = 3, Γ = 1 and the part is 2.
    rows = ListRows(
        outcome=np.array([6.0, 1.0, 9.0, 8.0]),
        side=np.array([1.0, 0.0, 1.0, 0.0]),
        properties=np.array([[3.0], [1.0], [4.0], [4.0]]),
        query=np.array([0, 0, 1, 1]),
        document=np.arange(4),
    )
    decomposition = decompose(rows, draws=100)
    assert values(decomposition) == pytest.approx([3.0, 1.0, 1.0, 2.0])
    assert decomposition.shares[0].part.value == pytest.approx(2.0)
    assert decomposition.effective_n == pytest.approx(2.0)


def test_swapped_sides_negate_gap_and_parts() -> None:
    rows = drawn_rows(4)
    first = decompose(rows)
    second = decompose(replace(rows, side=1 - rows.side))
    for estimate, mirrored in zip(_estimates(first), _estimates(second), strict=True):
        assert mirrored.value == pytest.approx(-estimate.value, abs=1e-12)
        # Draws of mirrored estimates are other draws, so ends agree as closely as these do.
        assert mirrored.low == pytest.approx(-estimate.high, abs=0.02)
        assert mirrored.p == pytest.approx(estimate.p, abs=0.02)


def test_units_do_not_matter() -> None:
    rows = drawn_rows(5)
    first = decompose(rows)
    second = decompose(replace(rows, properties=rows.properties * [1e9, 1e-9, 1.0]))
    assert _estimates(second)[3].value == pytest.approx(_estimates(first)[3].value, rel=1e-9)
    assert second.shares[0].difference.value == pytest.approx(
        1e9 * first.shares[0].difference.value, rel=1e-9
    )
    assert second.shares[0].coefficient.value == pytest.approx(
        1e-9 * first.shares[0].coefficient.value, rel=1e-9
    )


def test_p_agrees_with_interval() -> None:
    for seed in range(10, 30):
        for estimate in _estimates(decompose(drawn_rows(seed, queries=30), draws=2_000)):
            is_excluded = estimate.low > 0 or estimate.high < 0
            assert (estimate.p < 0.05) == is_excluded


def test_documents_count_where_lists_repeat_them() -> None:
    # The same ten documents in a hundred lists are ten documents, however many lists there are.
    rng = np.random.default_rng(6)
    side = np.tile([1.0, 0.0], 5)
    rows = ListRows(
        outcome=np.tile(rng.standard_normal(10), 100) + 0.1 * rng.standard_normal(1_000),
        side=np.tile(side, 100),
        properties=np.tile(rng.standard_normal(10), 100)[:, None],
        query=np.repeat(np.arange(100), 10),
        document=np.tile(np.arange(10), 100),
    )
    decomposition = decompose(rows, draws=500)
    assert decomposition.effective_n == pytest.approx(10.0)
    assert decomposition.gap.error > 0.3


def test_single_query_has_no_interval() -> None:
    decomposition = decompose(drawn_rows(7, queries=1, documents=20), draws=100)
    assert np.isfinite(decomposition.gap.value)
    assert np.isnan([decomposition.gap.low, decomposition.shares[0].part.p]).all()


@pytest.mark.long
def test_intervals_cover_planted_shares() -> None:
    draw_count = 600
    truth = np.array([*np.multiply(GAMMAS, BETAS), np.dot(GAMMAS, BETAS)])
    truth = np.array([REMAINING + truth[-1], REMAINING, truth[-1], *truth[:-1]])
    covered = np.zeros(len(truth))
    for seed in range(draw_count):
        estimates = _estimates(decompose(drawn_rows(1_000 + seed), draws=2_000))
        low = np.array([estimate.low for estimate in estimates])
        high = np.array([estimate.high for estimate in estimates])
        covered += (low <= truth) & (truth <= high)
    # 95 ± 2 %, and 2.6 Monte Carlo errors of 600 draws.
    assert (np.abs(covered / draw_count - 0.95) <= 0.02 + 0.023).all()


def _estimates(decomposition: Decomposition) -> list[InferredValue]:
    parts = [share.part for share in decomposition.shares]
    return [decomposition.gap, decomposition.remaining, decomposition.explained, *parts]
