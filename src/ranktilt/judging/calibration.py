"""Whether a judge's confidence is right: calibration, and whether unsure grades favour a side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.data.notes.base import Note
from ranktilt.data.notes.judges import ConfidenceUnused
from ranktilt.judging.calibration_result import Calibration, ConfidenceBin, UnsureTilt
from ranktilt.judging.grade_means import GradeMean, mean_change
from ranktilt.judging.kept_grades import PAIR_COLUMNS, KeptGrades
from ranktilt.judging.records import FEWEST_QUERIES, Estimate
from ranktilt.measures.ranking import Floats
from ranktilt.statistics.bootstrap import interval, resampled_means
from ranktilt.statistics.correction import correct
from ranktilt.statistics.query_ratio import QueryRatio

FEWEST_PAIRS = 40
"""Fewest pairs with a confidence and a human grade for a curve."""
_MOST_BINS = 10
"""Most bins of the curve."""
_PAIRS_OF_BIN = 20
"""Pairs that a bin has on average, at least."""
_UNSURE_SHARE = 1 / 3
"""Share of grades that count as unsure."""


@dataclass(frozen=True, kw_only=True)
class CalibrationOptions:
    """How calibration is resampled and corrected."""

    resamples: int
    """Bootstrap resamples."""
    seed: int
    """Random seed."""
    correction: str
    """Correction of the p of unsure tilts over judges."""


@dataclass(frozen=True, kw_only=True)
class Calibrations:
    """Calibration of every judge that tells a confidence, with notes on the others."""

    calibrations: tuple[Calibration, ...]
    """Calibration, for each judge."""
    notes: tuple[Note, ...]
    """Confidences that say nothing, and why."""


def calibrate(
    by_judge: Mapping[str, pl.DataFrame], judged: KeptGrades, options: CalibrationOptions
) -> Calibrations:
    """Compare confidences with agreement, for each judge whose grades have a ``confidence``."""
    calibrations, notes = list[Calibration](), list[Note]()
    for judge, grades in by_judge.items():
        has_confidence = "confidence" in grades.columns and grades["confidence"].count() > 0
        if not has_confidence or not judged.is_complete:
            continue
        rows = judged.of_judge(judge).join(
            grades.select(*PAIR_COLUMNS, "confidence"),
            on=PAIR_COLUMNS,
            how="inner",
            maintain_order="left",
        )
        with_confidence = rows.drop_nulls("confidence")
        graded = with_confidence.drop_nulls("human")
        reason = _unused_reason(graded)
        if reason is not None:
            notes.append(ConfidenceUnused(judge=judge, reason=reason, pairs=graded.height))
            continue
        calibration = _calibration(judge, graded, options)
        tilt = None
        if judged.twins:
            tilt = _unsure_tilt(with_confidence, judged.twins, options)
        without = rows.height - with_confidence.height
        calibrations.append(replace(calibration, without=without, tilt=tilt))
    return Calibrations(
        calibrations=tuple(_corrected(calibrations, options.correction)), notes=tuple(notes)
    )


def _unused_reason(graded: pl.DataFrame) -> Literal["few", "constant"] | None:
    """Say why confidences make no curve; None where they do."""
    if graded.height < FEWEST_PAIRS:
        return "few"
    return "constant" if graded["confidence"].n_unique() == 1 else None


def _corrected(calibrations: Sequence[Calibration], correction: str) -> Iterator[Calibration]:
    """Correct the p of unsure tilts over all judges."""
    ps = [np.nan if row.tilt is None else row.tilt.p for row in calibrations]
    for row, p in zip(calibrations, correct(ps, correction).tolist(), strict=True):
        tilt = None if row.tilt is None else replace(row.tilt, p_corrected=p)
        yield replace(row, tilt=tilt)


def equal_bins(confidence: Floats) -> npt.NDArray[np.int64]:
    """Return bins of equal count, from the lowest confidence on; equal confidences stay together.

    A value belongs to the bin of the middle of its ranks.
    """
    count = len(confidence)
    bins = min(_MOST_BINS, max(2, count // _PAIRS_OF_BIN))
    values, value_of_row, sizes = np.unique(confidence, return_inverse=True, return_counts=True)
    middle = (np.cumsum(sizes) - sizes / 2) / count
    bin_of_value = np.minimum((middle * bins).astype(np.int64), bins - 1)
    # Two values or more are never one bin: there would be no curve.
    if len(values) > 1 and bin_of_value[0] == bin_of_value[-1]:
        bin_of_value[-1] += 1
    # Bins without a value get no number.
    return np.unique(bin_of_value[value_of_row], return_inverse=True)[1].astype(np.int64)


def _calibration(judge: str, graded: pl.DataFrame, options: CalibrationOptions) -> Calibration:
    """Compute the curve, the calibration error, and whether confidence is too high."""
    confidence = graded["confidence"].to_numpy()
    is_right = (graded["grade"] == graded["human"]).cast(pl.Float64).to_numpy()
    bin_of = equal_bins(confidence)
    query = graded["query_id"].rank("dense").to_numpy().astype(np.int64) - 1
    sums = _BinSums.from_rows(query, bin_of, is_right, confidence)
    samples = sums.resampled(options) if sums.queries >= FEWEST_QUERIES else None
    bins = []
    for number in range(sums.bins):
        inside = bin_of == number
        agreement = Estimate(float(is_right[inside].mean()))
        if samples is not None:
            agreement = sums.agreement(number, options)
        confidence_bin = ConfidenceBin(
            lowest=float(confidence[inside].min()),
            highest=float(confidence[inside].max()),
            confidence=float(confidence[inside].mean()),
            agreement=agreement,
            pairs=int(inside.sum()),
        )
        bins.append(confidence_bin)
    return Calibration(
        judge=judge,
        bins=tuple(bins),
        error=_reflected(sums.observed.error, samples),
        excess=_excess(sums.observed.excess, samples),
        confidence=float(confidence.mean()),
        agreement=float(is_right.mean()),
        pairs=len(confidence),
        queries=sums.queries,
        without=0,
        tilt=None,
    )


def _reflected(value: Floats, samples: _Totals | None) -> Estimate:
    """Return the calibration error with its interval.

    Resampling adds noise to every bin, which raises the error. So the interval is the wider of the
    percentiles and their reflection in the value, as for coefficients of orders.
    """
    observed = float(value)
    if samples is None:
        return Estimate(observed)
    spread = interval(samples.error)
    low = max(0.0, min(spread.low, 2 * observed - spread.high))
    return Estimate(observed, low, min(1.0, max(spread.high, 2 * observed - spread.low)))


def _excess(value: Floats, samples: _Totals | None) -> Estimate:
    """Return the excess of confidence with the interval of its resamples, if any."""
    if samples is None:
        return Estimate(float(value))
    spread = interval(samples.excess)
    return Estimate(float(value), spread.low, spread.high)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Totals:
    """Sums of each bin, of shape (bins, …)."""

    count: Floats
    """Number of pairs."""
    right: Floats
    """Pairs with the human grade."""
    sure: Floats
    """Sum of the confidences."""

    @property
    def error(self) -> Floats:
        """Expected calibration error: mean distance of agreement from confidence, over bins."""
        error: Floats = np.abs(self.right - self.sure).sum(0) / self.count.sum(0)
        return error

    @property
    def excess(self) -> Floats:
        """Mean confidence minus the share of pairs with the human grade."""
        excess: Floats = (self.sure - self.right).sum(0) / self.count.sum(0)
        return excess


@dataclass(frozen=True, kw_only=True, eq=False)
class _BinSums:
    """Sums of each bin and query."""

    by_query: tuple[Floats, Floats, Floats]
    """Pairs, pairs with the human grade, and confidences: each of shape (bins, queries)."""

    @classmethod
    def from_rows(
        cls,
        query: npt.NDArray[np.int64],
        bin_of: npt.NDArray[np.int64],
        is_right: Floats,
        confidence: Floats,
    ) -> _BinSums:
        """Sum the rows of every bin and query."""
        queries, bins = int(query.max()) + 1, int(bin_of.max()) + 1
        cell = bin_of * queries + query
        tables = [
            np.bincount(cell, weights=column, minlength=bins * queries).astype(np.float64)
            for column in (np.ones(len(cell)), is_right, confidence)
        ]
        count, right, sure = (table.reshape(bins, queries) for table in tables)
        return cls(by_query=(count, right, sure))

    @property
    def bins(self) -> int:
        """Number of bins."""
        return len(self.by_query[0])

    @property
    def queries(self) -> int:
        """Number of queries."""
        return int(self.by_query[0].shape[1])

    @property
    def observed(self) -> _Totals:
        """Sums over all queries."""
        count, right, sure = (table.sum(1) for table in self.by_query)
        return _Totals(count=count, right=right, sure=sure)

    def agreement(self, number: int, options: CalibrationOptions) -> Estimate:
        """Return the share of right grades in a bin, with its interval.

        Of a bin whose grades are all right, resamples know no others; `QueryRatio` knows that a
        share of 1 in few queries is not sure.
        """
        count, right, _ = self.by_query
        share = QueryRatio(numerator=right[number], denominator=count[number])
        around = share.inference(
            neutral=0.5, bounds=(0.0, 1.0), resamples=options.resamples, seed=options.seed
        )
        return Estimate(share.value, around.low, around.high)

    def resampled(self, options: CalibrationOptions) -> _Totals:
        """Return means over resampled queries, of shape (bins, resamples)."""
        rows = list(np.concatenate(self.by_query))
        means = np.stack(
            resampled_means(rows, resamples=options.resamples, seed=options.seed), axis=0
        )
        count, right, sure = np.split(means, 3)
        return _Totals(count=count, right=right, sure=sure)


def _unsure_tilt(
    rows: pl.DataFrame, twins: Sequence[str], options: CalibrationOptions
) -> UnsureTilt | None:
    """Compare the tilt of the least sure third of grades with that of the rest.

    None where all are of one confidence, or a part has no grade of a side.
    """
    sides = _twin_rows(rows, twins)
    is_of_twins = sides["query_id"].n_unique() >= FEWEST_QUERIES
    if not is_of_twins:
        sides = _source_rows(rows, twins)
    if sides["confidence"].n_unique() < 2:
        return None
    border = unsure_border(sides["confidence"].to_numpy())
    is_unsure = sides["confidence"] <= border
    parts = [_means(sides.filter(part), is_of_twins, twins) for part in (is_unsure, ~is_unsure)]
    both = [*parts[0], *(replace(mean, factor=-mean.factor) for mean in parts[1])]
    bound = 4.0 * max(float(sides["new"].abs().to_numpy().max()), 1.0)
    estimates = []
    for means in (*parts, both):
        change = mean_change(means, bound=bound, resamples=options.resamples, seed=options.seed)
        if change is None:
            return None
        estimates.append(change)
    unsure, rest, difference = estimates
    first, second = twins
    return UnsureTilt(
        a=first,
        b=second,
        is_of_twins=is_of_twins,
        border=border,
        share=float(is_unsure.to_numpy().mean()),
        unsure=Estimate(unsure.new, unsure.change.low, unsure.change.high),
        rest=Estimate(rest.new, rest.change.low, rest.change.high),
        difference=Estimate(difference.new, difference.change.low, difference.change.high),
        p=difference.change.p,
        p_corrected=np.nan,
        rows=sides.height,
        queries=difference.queries,
    )


def unsure_border(confidence: Floats) -> float:
    """Return the confidence up to which grades are unsure: as near to a third as values allow."""
    values, sizes = np.unique(confidence, return_counts=True)
    shares = np.cumsum(sizes) / len(confidence)
    return float(values[np.abs(shares[:-1] - _UNSURE_SHARE).argmin()])


def _means(rows: pl.DataFrame, is_of_twins: bool, twins: Sequence[str]) -> list[GradeMean]:
    """Return the tilt of some rows: the mean gap of twins, or the first source minus the second."""
    if is_of_twins:
        return [GradeMean(rows=rows)]
    return [
        GradeMean(rows=rows.filter(pl.col("source") == name), factor=factor)
        for name, factor in zip(twins, (1.0, -1.0), strict=True)
    ]


def _twin_rows(rows: pl.DataFrame, twins: Sequence[str]) -> pl.DataFrame:
    """Return the grade gap of twins, with the mean of their confidences."""
    first, second = (rows.filter(pl.col("source") == name) for name in twins)
    both = first.join(second, on=["query_id", "origin"], suffix="_b")
    both = both.filter(pl.col("human").eq_missing(pl.col("human_b")))
    return both.select(
        "query_id",
        "origin",
        new=(pl.col("grade") - pl.col("grade_b")).cast(pl.Float64),
        old=pl.lit(0.0),
        confidence=(pl.col("confidence") + pl.col("confidence_b")) / 2,
    ).sort("query_id", "origin")


def _source_rows(rows: pl.DataFrame, twins: Sequence[str]) -> pl.DataFrame:
    """Return how much higher than humans the judge grades documents of both sources."""
    graded = rows.drop_nulls("human").filter(pl.col("source").is_in(list(twins)))
    return graded.select(
        "query_id",
        "source",
        origin=pl.coalesce("origin", "doc_id"),
        new=(pl.col("grade") - pl.col("human")).cast(pl.Float64),
        old=pl.lit(0.0),
        confidence="confidence",
    ).sort("query_id", "origin")
