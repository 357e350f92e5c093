"""How often the interval of a difference of two κ holds the true one, and how often equal judges
differ.
"""

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest

from ranktilt.judging.agreement import QueryDraws
from ranktilt.judging.comparison import compare_kappas
from ranktilt.judging.grades import GradedPairs, join_grades
from ranktilt.judging.records import JudgeComparison
from ranktilt.statistics.judges.agreement import cohen_kappa

Ints = npt.NDArray[np.int64]
DRAWS, QUERIES = 400, 25
BORDERS = [0.0, 0.8, 1.6]
MONTE_CARLO_ERRORS = 2.6


def grades(
    seed: int, queries: int, noises: tuple[float, float]
) -> tuple[Ints, Ints, tuple[Ints, Ints]]:
    """Return queries, human grades and those of two judges that see worth through noise of each
    query's size.
    """
    rng = np.random.default_rng([seed, queries])
    query = np.repeat(np.arange(queries), rng.integers(20, 120, queries))
    worth = rng.normal(0, 1, len(query)) + (2 * rng.beta(2, 2, queries) - 1)[query]
    first, second = (
        np.digitize(
            worth + rng.normal(0, noise * np.exp(rng.normal(0, 0.5, queries))[query]), BORDERS
        )
        for noise in noises
    )
    return query, np.digitize(worth, BORDERS), (first, second)


def compared(seed: int, noises: tuple[float, float]) -> JudgeComparison:
    query, human, judged = grades(seed, QUERIES, noises)
    ids = {"query_id": query.astype(str), "doc_id": np.arange(len(query)).astype(str)}
    frames = [pl.DataFrame({**ids, "grade": column}) for column in (human, *judged)]
    both: list[GradedPairs] = [
        join_grades(frames[0], frame, name) for frame, name in zip(frames[1:], "ab", strict=True)
    ]
    draws = QueryDraws(resamples=1_000, seed=0)
    (comparison,) = compare_kappas(both, top=3, correction="holm", draws=draws)
    return comparison


def true_difference(noises: tuple[float, float]) -> float:
    _, human, judged = grades(1, 20_000, noises)
    tables = [np.bincount(4 * human + column, minlength=16).reshape(4, 4) for column in judged]
    first, second = (float(cohen_kappa(table.astype(np.float64))) for table in tables)
    return first - second


def most(rate: float) -> float:
    return float(MONTE_CARLO_ERRORS * np.sqrt(rate * (1 - rate) / DRAWS))


@pytest.mark.long
def test_intervals_hold_the_true_difference() -> None:
    truth = true_difference((0.6, 1.0))
    hits = 0
    for seed in range(DRAWS):
        comparison = compared(seed, (0.6, 1.0))
        sign = 1 if comparison.judge_a == "a" else -1
        hits += comparison.low <= sign * truth <= comparison.high
    assert hits / DRAWS >= 0.93 - most(0.93)


@pytest.mark.long
def test_equal_judges_differ_in_one_of_twenty() -> None:
    significant = sum(compared(seed, (0.8, 0.8)).p < 0.05 for seed in range(DRAWS))
    assert significant / DRAWS <= 0.05 + most(0.05)
