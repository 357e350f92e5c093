"""The grade of a passage as a function of its length.

A passage is lengthened with sentences of other documents that have nothing to do with the query. A
*dose* is how much: the length of the longer passage, in times the length of the original. A judge,
the model that grades, should give all lengths the same grade.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.auditing.effects import ALPHA
from ranktilt.judging.grading.parsing import GRADES
from ranktilt.measures.ranking import Floats
from ranktilt.statistics.query_ratio import QueryRatio

Course = Literal["rising", "falling", "constant", "mixed"]
"""How the mean grade changes from each dose to the next larger one."""
_RANGE = (float(GRADES[0]), float(GRADES[-1]))
"""Lowest and highest grade of the scale."""


@dataclass(frozen=True, kw_only=True)
class DoseGrade:
    """The mean grade of passages at one dose of length."""

    dose: int
    """Length that is aimed at, in times the original's."""
    length: float
    """Mean length that the passages have, in times the original's words."""
    grade: float
    """Mean grade."""
    low: float
    """Lower end of its 95 % interval over queries."""
    high: float
    """Upper end of the same interval."""


@dataclass(frozen=True, kw_only=True)
class LengthDoses:
    """How a judge's grade depends on the length of a passage whose content does not change."""

    judge: str
    """Name of the judge."""
    grades: tuple[DoseGrade, ...]
    """Mean grade at each dose, the original first."""
    slope: float
    """Grades per doubling of the length, within passages."""
    low: float
    """Lower end of the slope's 95 % interval over queries."""
    high: float
    """Upper end of the same interval."""
    p: float
    """p if the true slope is 0."""
    pairs: int
    """Pairs of query and passage with a grade at every dose."""
    queries: int
    """Number of their queries."""
    left_out: int
    """Pairs without a grade at some dose, or whose passage could not be lengthened."""

    @property
    def course(self) -> Course:
        """Whether the mean grade rises or falls at every step."""
        steps = np.diff([dose.grade for dose in self.grades])
        if not steps.any():
            return "constant"
        if (steps >= 0).all():
            return "rising"
        return "falling" if (steps <= 0).all() else "mixed"

    @property
    def is_shown(self) -> bool:
        """Whether the slope is shown."""
        return self.p < ALPHA

    def derived(self) -> dict[str, Any]:
        """Return what follows from the fields."""
        return {"course": self.course, "is_shown": self.is_shown}


def length_doses(
    judge: str, passages: pl.DataFrame, doses: dict[str, int], *, resamples: int, seed: int
) -> LengthDoses | None:
    """Compare the grades of passages at several lengths.

    The slope is that of a regression of grades on the binary logarithm of the length, with an
    intercept for each passage.

    Parameters
    ----------
    judge : str
        Name of the judge.
    passages : polars.DataFrame
        A row for each passage at each length: ``origin`` (the same for all lengths of a passage),
        ``query_id``, ``probe`` (name of the rule that lengthened it), ``words`` (its number of
        words) and ``grade`` (null without one).
    doses : dict of str to int
        The dose of each probe, beginning with that of the original.
    resamples, seed : int
        Bootstrap resamples of the queries; random seed.

    Returns
    -------
    LengthDoses or None
        None if no passage has a grade at every dose.
    """
    dosed = passages.filter(pl.col("probe").is_in(list(doses)))
    graded = dosed.drop_nulls("grade")
    complete = graded.filter(pl.len().over("origin") == len(doses))
    passage_count = dosed["origin"].n_unique()
    if not complete.height or len(doses) < 2:
        return None
    # Tables of the same passages in the same order, one for each dose.
    tables = [complete.filter(pl.col("probe") == probe).sort("origin") for probe in doses]
    grades = np.stack([table["grade"].cast(pl.Float64).to_numpy() for table in tables])
    words = np.stack([table["words"].cast(pl.Float64).to_numpy() for table in tables])
    lengths = words / words[0]  # in times the original's
    query = tables[0]["query_id"].rank("dense").to_numpy().astype(np.int64) - 1
    passage_counts = _query_sums(query, np.ones(len(query)))
    dose_grades = []
    for dose, grade, length in zip(doses.values(), grades, lengths, strict=True):
        mean = QueryRatio(numerator=_query_sums(query, grade), denominator=passage_counts)
        of_mean = mean.inference(neutral=0.0, bounds=_RANGE, resamples=resamples, seed=seed)
        dose_grade = DoseGrade(
            dose=dose,
            length=float(length.mean()),
            grade=mean.value,
            low=of_mean.low,
            high=of_mean.high,
        )
        dose_grades.append(dose_grade)
    slope = _slope(query, np.log2(lengths), grades)
    of_slope = slope.inference(
        neutral=0.0, bounds=(-np.inf, np.inf), resamples=resamples, seed=seed
    )
    return LengthDoses(
        judge=judge,
        grades=tuple(dose_grades),
        slope=slope.value,
        low=of_slope.low,
        high=of_slope.high,
        p=of_slope.p,
        pairs=len(query),
        queries=len(passage_counts),
        left_out=passage_count - len(query),
    )


def _slope(query: npt.NDArray[np.int64], logarithms: Floats, grades: Floats) -> QueryRatio:
    """Return the slope of grades on the logarithm of length, within passages.

    An intercept for each passage is the same as subtracting the passage's means, and the slope is
    then a ratio of two sums over queries. `query` is the index of each passage's query;
    `logarithms` and `grades` have the shape (doses, passages).
    """
    centred = logarithms - logarithms.mean(axis=0)
    products = (centred * (grades - grades.mean(axis=0))).sum(axis=0)
    squares = (centred * centred).sum(axis=0)
    return QueryRatio(
        numerator=_query_sums(query, products), denominator=_query_sums(query, squares)
    )


def _query_sums(query: npt.NDArray[np.int64], values: Floats) -> Floats:
    """Return the sum of the passages' values for each query."""
    return np.bincount(query, weights=values).astype(np.float64)
