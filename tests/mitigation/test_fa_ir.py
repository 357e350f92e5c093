"""FA*IR's table: published numbers, and every list there is."""

import itertools
from functools import cache

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from ranktilt.mitigation.fair_rerank import fail_probability, m_table


@cache
def every_list(k: int) -> npt.NDArray[np.int64]:
    return np.array(list(itertools.product((0, 1), repeat=k)))


def enumerated(table: tuple[int, ...], p: float) -> float:
    """Probability of all lists that fall below a table somewhere, one by one."""
    lists = every_list(len(table))
    fails = (np.cumsum(lists, axis=1) < np.array(table)).any(axis=1)
    chance = np.where(lists == 1, p, 1 - p).prod(axis=1)
    return float(chance[fails].sum())


def test_the_published_table() -> None:
    table = m_table(20, 0.25, 0.1)
    assert table == (0,) * 8 + (1,) * 7 + (2,) * 5
    assert fail_probability(table, 0.25) == pytest.approx(0.10515247355215251, abs=1e-15)
    unadjusted = (0,) * 8 + (1,) * 6 + (2,) * 5 + (3,)
    assert fail_probability(unadjusted, 0.25) == pytest.approx(0.14688718869911094, abs=1e-15)


@pytest.mark.parametrize("p", [0.05, 0.25, 0.5, 0.7])
def test_the_probability_to_fail_is_that_of_all_lists(p: float) -> None:
    rng = np.random.default_rng(3)
    for k in (1, 2, 5, 12):
        tables = [m_table(k, p, alpha) for alpha in (0.05, 0.1, 0.4)]
        tables += [tuple(np.minimum(np.sort(rng.integers(0, k + 2, k)), 4).tolist()) for _ in range(3)]
        for table in tables:
            assert fail_probability(table, p) == pytest.approx(enumerated(table, p), abs=1e-14)


@pytest.mark.parametrize(("k", "p"), [(1, 0.95), (1, 0.5), (7, 0.3), (9, 0.5), (8, 0.62)])
@pytest.mark.parametrize("alpha", [0.02, 0.1, 0.3])
def test_of_all_tables_it_is_the_one_that_fails_nearest_to_alpha(k: int, p: float, alpha: float) -> None:
    distribution = [stats.binom.cdf(np.arange(i + 1), i, p) for i in range(1, k + 1)]
    steps = np.unique([0, *(value for one in distribution for value in one if value < 1)])
    tables = {tuple(int((one <= c + 1e-12).sum()) for one in distribution) for c in steps[:-1]}
    tables |= {(0,) * k, tuple(range(1, k + 1))}
    nearest = min(tables, key=lambda table: (abs(enumerated(table, p) - alpha), sum(table)))
    assert m_table(k, p, alpha) == nearest


def test_a_group_of_none_or_of_all() -> None:
    assert m_table(4, 0.0, 0.1) == (0, 0, 0, 0)
    assert m_table(4, 1.0, 0.1) == (1, 2, 3, 4)
    assert fail_probability((0, 0, 0), 0.0) == 0
    assert fail_probability((0, 1), 0.0) == 1
    assert fail_probability((1, 2), 1.0) == 0
    assert fail_probability((3, 3), 0.5) == 1
