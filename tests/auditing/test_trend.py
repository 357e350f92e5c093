"""A trend over temperatures: rank correlation by the book, honest intervals, and words that claim no more."""

import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ranktilt.auditing.significance import Columns
from ranktilt.auditing.study import Trend, trend, trend_sentence
from ranktilt.statistics.trend import rank_correlation

Floats = npt.NDArray[np.float64]
RESAMPLES = 400
THREE = (0.2, 0.7, 1.0)


def decided(*wins: int, queries: int = 40) -> Floats:
    """Per temperature, human text stands first in so many queries and the rewrite in all others."""
    human = np.array([np.arange(queries) < n for n in wins], dtype=np.float64)
    return np.stack([human, 1 - human], axis=1)


def trend_of(values: Floats, temperatures: tuple[float, ...] = THREE, resamples: int = RESAMPLES) -> Trend:
    columns = Columns(np.concatenate([values[:, 0], values[:, 1]]), None)
    names = {"run": "bm25", "measure": "nDCG@1", "series": "llama", "a": "human"}
    return trend(columns, temperatures, resamples=resamples, seed=0, **names)


def test_values_correlation_and_change_by_hand() -> None:
    # Relative Δ = 200 · (wins − losses)/40: 10, 15 and 12 wins of 40 give −100, −50 and −80.
    found = trend_of(decided(10, 15, 12))
    assert found.values == pytest.approx((-100, -50, -80))
    assert found.correlation == pytest.approx(0.5)  # ranks 1, 3, 2 beside 1, 2, 3
    assert found.change == pytest.approx(20)
    assert found.queries == 40
    assert found.kind == "inconclusive"


def test_a_resample_without_any_order_is_dropped_and_counted_and_shows_no_trend() -> None:
    # One query of 40 differs: (39/40)^40 = 36 % of resamples lack it, and the others all order the temperatures alike.
    found = trend_of(decided(10, 10, 11), resamples=4000)
    assert found.dropped / 4000 == pytest.approx((39 / 40) ** 40, abs=0.03)
    assert found.low > 0
    assert found.change_low == 0
    assert found.kind == "inconclusive"


def test_wins_that_grow_query_by_query_rise_in_every_resample() -> None:
    found = trend_of(decided(5, 20, 35))
    assert (found.low, found.correlation, found.high) == (1, 1, 1)
    assert found.change == pytest.approx(300)  # from −150 to +150
    assert 0 < found.change_low < found.change < found.change_high
    assert found.kind == "rises"
    assert trend_of(decided(35, 20, 5)).kind == "falls"


@given(st.lists(st.lists(st.integers(0, 4), min_size=3, max_size=3), min_size=4, max_size=4))
@settings(max_examples=60)
def test_rank_correlation_is_scipys(rows: list[list[int]]) -> None:
    temperatures, values = [0.2, 0.7, 0.7, 1.3], np.array(rows, dtype=np.float64)
    found = rank_correlation(temperatures, values)
    for column, one in zip(values.T, found, strict=True):
        if len(set(column)) == 1:
            assert math.isnan(one)
        else:
            assert one == pytest.approx(stats.spearmanr(temperatures, column).statistic)


def test_the_interval_is_that_of_a_plain_bootstrap() -> None:
    rng = np.random.default_rng(3)
    values = (rng.random((3, 2, 60)) < np.array([[0.3], [0.5]])[None] + np.array([0, 0.05, 0.1])[:, None, None]).astype(
        np.float64
    )
    found = trend_of(values, resamples=4000)
    changes = []
    for _ in range(4000):
        kept = values[:, :, rng.integers(0, 60, 60)].mean(axis=2)
        delta = 200 * (kept[:, 0] - kept[:, 1]) / (kept[:, 0] + kept[:, 1])
        changes.append(delta[2] - delta[0])
    low, high = np.quantile(changes, (0.025, 0.975))
    assert found.change_low == pytest.approx(low, abs=6)
    assert found.change_high == pytest.approx(high, abs=6)


def test_only_queries_that_are_defined_everywhere_count() -> None:
    values = decided(10, 15, 12)
    values[1, 0, :4] = np.nan
    values[2, 1, 2:6] = np.nan
    found = trend_of(values)
    assert found.queries == 34
    assert found == trend_of(values[:, :, 6:])


def test_without_a_query_nothing_is_said() -> None:
    found = trend_of(np.full((3, 2, 5), np.nan))
    assert found.queries == 0
    assert math.isnan(found.correlation)
    assert math.isnan(found.change_low)
    assert found.kind == "inconclusive"
    assert trend_sentence(found).startswith("bm25, llama: no trend to ask for: no query has a relevant document")


def test_temperatures_that_share_a_value_are_averaged_at_the_ends() -> None:
    found = trend_of(decided(10, 20, 30, 30), (0.2, 0.2, 0.7, 1.0))
    assert found.change == pytest.approx(100 - (-100 + 0) / 2)


def test_swapping_the_sides_turns_every_sign() -> None:
    values = decided(10, 15, 12)
    there, back = trend_of(values), trend_of(values[:, ::-1])
    assert (back.correlation, back.low, back.high) == (-there.correlation, -there.high, -there.low)
    assert (back.change_low, back.change_high) == pytest.approx((-there.change_high, -there.change_low))


def test_noise_alone_rarely_makes_a_trend() -> None:
    """Nothing changes with temperature here: each draw decides every query anew with the same odds."""
    rng, found = np.random.default_rng(0), 0
    for _ in range(200):
        human = (rng.random((3, 60)) < 0.4).astype(np.float64)
        found += trend_of(np.stack([human, 1 - human], axis=1)).kind != "inconclusive"
    assert found <= 20  # 10 % of draws; 3 % are usual


@pytest.mark.parametrize(
    ("wins", "expected"),
    [
        ((5, 20, 35), "Relative Δ on nDCG@1 moves toward human as temperature rises: rank correlation +1.00 "),
        ((35, 20, 5), "Relative Δ on nDCG@1 moves away from human as temperature rises: rank correlation −1.00 "),
        ((10, 15, 12), "inconclusive, no trend with temperature shown on nDCG@1: rank correlation +0.50 ["),
        ((10, 10, 10), "no trend to ask for: nDCG@1 has the same Relative Δ at every temperature, or none"),
    ],
)
def test_what_is_said(wins: tuple[int, int, int], expected: str) -> None:
    assert trend_sentence(trend_of(decided(*wins))).startswith(f"bm25, llama: {expected}")


@pytest.mark.parametrize(
    ("low", "high", "change_low", "change_high", "kind"),
    [
        (0.5, 1.0, 0.1, 9.0, "rises"),
        (0.5, 1.0, -0.1, 9.0, "inconclusive"),
        (0.0, 1.0, 0.1, 9.0, "inconclusive"),
        (-1.0, -0.5, -9.0, -0.1, "falls"),
        (-1.0, 0.0, -9.0, -0.1, "inconclusive"),
        (-1.0, -0.5, -9.0, 0.0, "inconclusive"),
    ],
)
def test_both_intervals_must_exclude_0_on_one_side(
    low: float, high: float, change_low: float, change_high: float, kind: str
) -> None:
    found = Trend("r", "m", "s", "human", THREE, (0.0,) * 3, 0.0, low, high, 0.0, change_low, change_high, 40, 0)
    assert found.kind == kind
    assert found.derived()["kind"] == kind
