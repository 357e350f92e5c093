"""Whether a judge's confidence is right, and whether its unsure grades favour a source.

A judge, a language model that grades how relevant documents are, may say with each grade how sure
it is: its *confidence*, from 0 to 1. A grade is *right* if it is the human grade. A judge is well
calibrated if of the grades with confidence .8 just 80 % are right. To see this, pairs of query and
document with similar confidence are put into *bins*.

A *tilt* of grades is how much higher a judge grades documents of one source, such as a model, than
those of another source. Where documents are twins, two versions of one text, it is their grade gap;
else it is the judge's grade minus the human one, for one source minus the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.data.notes.base import Note
from ranktilt.data.notes.judges import ConfidenceUnused
from ranktilt.judging.grade_means import GradeMean, mean_change
from ranktilt.judging.kept_grades import PAIR_COLUMNS, KeptGrades
from ranktilt.judging.records import (
    FEWEST_QUERIES,
    Calibration,
    ConfidenceBin,
    Estimate,
    UnsureTilt,
)
from ranktilt.measures.ranking import Floats
from ranktilt.statistics.bootstrap import interval, resampled_means
from ranktilt.statistics.correction import correct
from ranktilt.statistics.query_ratio import QueryRatio

FEWEST_PAIRS = 40
"""Fewest pairs of query and document with a confidence and a human grade for a curve."""
_MOST_BINS = 10
"""Most bins of the curve of agreement by confidence."""
_PAIRS_OF_BIN = 20
"""Smallest mean number of pairs in a bin, which holds pairs of similar confidence.

With few pairs there are fewer bins.
"""
_UNSURE_SHARE = 1 / 3
"""Share of grades, with the lowest confidence, that count as unsure."""


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
    """Calibration of every judge whose grades have a confidence, with notes on the others."""

    calibrations: tuple[Calibration, ...]
    """Calibration, for each judge."""
    notes: tuple[Note, ...]
    """Judges whose confidences cannot be used, and why."""


def calibrate(
    by_judge: Mapping[str, pl.DataFrame], judged: KeptGrades, options: CalibrationOptions
) -> Calibrations:
    """Compare confidence with agreement, for each judge whose grades have a ``confidence``.

    `by_judge` holds all grades of each judge, and `judged` the same with human grades and sources.
    """
    calibrations, notes = list[Calibration](), list[Note]()
    for judge, grades in by_judge.items():
        has_confidence = "confidence" in grades.columns and grades["confidence"].count() > 0
        if not has_confidence or not judged.is_complete:
            continue
        rows = judged.graded_by(judge).join(
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
        without_confidence = rows.height - with_confidence.height
        calibrations.append(replace(calibration, without=without_confidence, tilt=tilt))
    return Calibrations(
        calibrations=tuple(_with_corrected_p(calibrations, options.correction)), notes=tuple(notes)
    )


def _unused_reason(graded: pl.DataFrame) -> Literal["few", "constant"] | None:
    """Return why confidences cannot make a curve: too few, or all the same; None if they can."""
    if graded.height < FEWEST_PAIRS:
        return "few"
    return "constant" if graded["confidence"].n_unique() == 1 else None


def _with_corrected_p(
    calibrations: Sequence[Calibration], correction: str
) -> Iterator[Calibration]:
    """Correct the p of unsure tilts over all judges."""
    ps = [np.nan if row.tilt is None else row.tilt.p for row in calibrations]
    for row, p in zip(calibrations, correct(ps, correction).tolist(), strict=True):
        tilt = None if row.tilt is None else replace(row.tilt, p_corrected=p)
        yield replace(row, tilt=tilt)


def equal_bins(confidence: Floats) -> npt.NDArray[np.int64]:
    """Return the bin of each pair, numbered from the lowest confidence on.

    Bins have about as many pairs each, but pairs of equal confidence stay together: they are all in
    the bin in which the middle of them belongs.
    """
    count = len(confidence)
    bins = min(_MOST_BINS, max(2, count // _PAIRS_OF_BIN))
    values, value_of_pair, sizes = np.unique(confidence, return_inverse=True, return_counts=True)
    # Where the middle of each value's pairs lies among all pairs, from 0 to 1.
    middle = (np.cumsum(sizes) - sizes / 2) / count
    bin_of_value = np.minimum((middle * bins).astype(np.int64), bins - 1)
    # A curve needs two bins, so the highest value gets its own.
    if len(values) > 1 and bin_of_value[0] == bin_of_value[-1]:
        bin_of_value[-1] += 1
    # Numbers of bins that no value has are skipped.
    _, bin_of_pair = np.unique(bin_of_value[value_of_pair], return_inverse=True)
    return bin_of_pair.astype(np.int64)


def _calibration(judge: str, graded: pl.DataFrame, options: CalibrationOptions) -> Calibration:
    """Compute the curve, the calibration error, and the excess of confidence over agreement.

    `graded` has ``query_id``, ``confidence``, and the judge's ``grade`` and the ``human`` one. The
    caller adds the fields `without` and `tilt`.
    """
    confidence = graded["confidence"].to_numpy()
    is_right = (graded["grade"] == graded["human"]).cast(pl.Float64).to_numpy()
    bin_of = equal_bins(confidence)
    query = graded["query_id"].rank("dense").to_numpy().astype(np.int64) - 1
    sums = _BinSums.from_rows(query, bin_of, is_right, confidence)
    samples = sums.resampled_totals(options) if sums.queries >= FEWEST_QUERIES else None
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
        error=_error_estimate(sums.observed.error, samples),
        excess=_excess_estimate(sums.observed.excess, samples),
        confidence=float(confidence.mean()),
        agreement=float(is_right.mean()),
        pairs=len(confidence),
        queries=sums.queries,
        without=0,
        tilt=None,
    )


def _error_estimate(value: Floats, samples: _BinTotals | None) -> Estimate:
    """Return the calibration error with its interval; without samples it has none.

    Resampling adds noise to every bin, which raises the error. So the interval reaches as far as
    the percentiles of the resamples, and as far as these reflected in the value.
    """
    observed = float(value)
    if samples is None:
        return Estimate(observed)
    spread = interval(samples.error)
    low = max(0.0, min(spread.low, 2 * observed - spread.high))
    return Estimate(observed, low, min(1.0, max(spread.high, 2 * observed - spread.low)))


def _excess_estimate(value: Floats, samples: _BinTotals | None) -> Estimate:
    """Return the excess of confidence with its interval; without samples it has none."""
    if samples is None:
        return Estimate(float(value))
    spread = interval(samples.excess)
    return Estimate(float(value), spread.low, spread.high)


@dataclass(frozen=True, kw_only=True, eq=False)
class _BinTotals:
    """Sums of each bin over queries: of shape (bins,), or (bins, resamples) in resamples."""

    pairs: Floats
    """Number of pairs."""
    right: Floats
    """Number of pairs with the human grade."""
    confidence: Floats
    """Sum of the confidences."""

    @property
    def error(self) -> Floats:
        """Expected calibration error: mean distance of agreement from confidence.

        Bins count by their pairs: |right − confidence| of a bin is its distance times its pairs.
        """
        error: Floats = np.abs(self.right - self.confidence).sum(0) / self.pairs.sum(0)
        return error

    @property
    def excess(self) -> Floats:
        """Mean confidence minus the share of pairs with the human grade."""
        excess: Floats = (self.confidence - self.right).sum(0) / self.pairs.sum(0)
        return excess


@dataclass(frozen=True, kw_only=True, eq=False)
class _BinSums:
    """Sums of each bin and query, each of shape (bins, queries)."""

    pairs: Floats
    """Number of pairs."""
    right: Floats
    """Number of pairs with the human grade."""
    confidence: Floats
    """Sum of the confidences."""

    @classmethod
    def from_rows(
        cls,
        query: npt.NDArray[np.int64],
        bin_of: npt.NDArray[np.int64],
        is_right: Floats,
        confidence: Floats,
    ) -> _BinSums:
        """Sum the pairs of every bin and query.

        The arrays have an element for each pair: the index of its query, its bin, whether its grade
        is right (0 or 1), and its confidence.
        """
        queries, bins = int(query.max()) + 1, int(bin_of.max()) + 1
        # Index of each pair's cell in a table of bins and queries that is written row by row.
        cell = bin_of * queries + query
        tables = [
            np.bincount(cell, weights=column, minlength=bins * queries).astype(np.float64)
            for column in (np.ones(len(cell)), is_right, confidence)
        ]
        pairs, right, confidence_sum = (table.reshape(bins, queries) for table in tables)
        return cls(pairs=pairs, right=right, confidence=confidence_sum)

    @property
    def bins(self) -> int:
        """Number of bins."""
        return int(self.pairs.shape[0])

    @property
    def queries(self) -> int:
        """Number of queries."""
        return int(self.pairs.shape[1])

    @property
    def observed(self) -> _BinTotals:
        """Sums over all queries."""
        return _BinTotals(
            pairs=self.pairs.sum(1), right=self.right.sum(1), confidence=self.confidence.sum(1)
        )

    def agreement(self, number: int, options: CalibrationOptions) -> Estimate:
        """Return the share of right grades in the bin `number`, with its interval.

        If all grades of a bin are right, so are those of every resample. `QueryRatio` still gives
        an interval, which is wide if there are few queries.
        """
        share = QueryRatio(numerator=self.right[number], denominator=self.pairs[number])
        inference = share.inference(
            neutral=0.5, bounds=(0.0, 1.0), resamples=options.resamples, seed=options.seed
        )
        return Estimate(share.value, inference.low, inference.high)

    def resampled_totals(self, options: CalibrationOptions) -> _BinTotals:
        """Return sums of resampled queries, divided by the number of queries.

        The division makes no difference, because totals are only used in ratios.
        """
        # Resampled together, so that all three have the same draws of queries.
        rows = list(np.concatenate([self.pairs, self.right, self.confidence]))
        means = np.stack(
            resampled_means(rows, resamples=options.resamples, seed=options.seed), axis=0
        )
        pairs, right, confidence = np.split(means, 3)
        return _BinTotals(pairs=pairs, right=right, confidence=confidence)


def _unsure_tilt(
    rows: pl.DataFrame, twins: Sequence[str], options: CalibrationOptions
) -> UnsureTilt | None:
    """Compare the tilt of the least sure third of grades with the tilt of the rest.

    `rows` are the judge's grades with a confidence, and `twins` the two sources; a positive tilt
    favours the first. It is the grade gap of twins if six queries have some, else it is computed
    from the judge's grades minus the human ones. None if all grades have one confidence, or if the
    unsure grades or the rest lack a source.
    """
    differences = _twin_differences(rows, twins)
    is_of_twins = differences["query_id"].n_unique() >= FEWEST_QUERIES
    if not is_of_twins:
        differences = _human_differences(rows, twins)
    if differences["confidence"].n_unique() < 2:
        return None
    border = unsure_border(differences["confidence"].to_numpy())
    is_unsure = differences["confidence"] <= border
    unsure_means = _tilt_means(differences.filter(is_unsure), is_of_twins, twins)
    rest_means = _tilt_means(differences.filter(~is_unsure), is_of_twins, twins)
    minus_rest = [replace(mean, factor=-mean.factor) for mean in rest_means]
    # A difference of two tilts adds up to four means, none of which is larger than the largest
    # value.
    largest = max(float(differences["new"].abs().to_numpy().max()), 1.0)
    bound = 4.0 * largest
    estimates = []
    for means in (unsure_means, rest_means, [*unsure_means, *minus_rest]):
        tilt = mean_change(means, bound=bound, resamples=options.resamples, seed=options.seed)
        if tilt is None:
            return None
        estimates.append(tilt)
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
        rows=differences.height,
        queries=difference.queries,
    )


def unsure_border(confidence: Floats) -> float:
    """Return the confidence up to which grades count as unsure.

    The share of unsure grades is as near to a third as equal confidences allow. The highest
    confidence never counts as unsure.
    """
    values, sizes = np.unique(confidence, return_counts=True)
    shares = np.cumsum(sizes) / len(confidence)
    return float(values[np.abs(shares[:-1] - _UNSURE_SHARE).argmin()])


def _tilt_means(rows: pl.DataFrame, is_of_twins: bool, twins: Sequence[str]) -> list[GradeMean]:
    """Return the means whose sum is the tilt of rows.

    For twins it is the mean of their gaps; else the mean of the first source minus the mean of the
    second. `rows` come from `_twin_differences` or `_human_differences`.
    """
    if is_of_twins:
        return [GradeMean(rows=rows)]
    return [
        GradeMean(rows=rows.filter(pl.col("source") == name), factor=factor)
        for name, factor in zip(twins, (1.0, -1.0), strict=True)
    ]


def _twin_differences(rows: pl.DataFrame, twins: Sequence[str]) -> pl.DataFrame:
    """Return the grade gap of twins as ``new``, with the mean of their confidences.

    Twins with different human grades are left out. ``old`` is 0, because `GradeMean` compares two
    judges and here is only one.
    """
    first, second = (rows.filter(pl.col("source") == name) for name in twins)
    graded_twins = first.join(second, on=["query_id", "origin"], suffix="_b")
    graded_twins = graded_twins.filter(pl.col("human").eq_missing(pl.col("human_b")))
    return graded_twins.select(
        "query_id",
        "origin",
        new=(pl.col("grade") - pl.col("grade_b")).cast(pl.Float64),
        old=pl.lit(0.0),
        confidence=(pl.col("confidence") + pl.col("confidence_b")) / 2,
    ).sort("query_id", "origin")


def _human_differences(rows: pl.DataFrame, twins: Sequence[str]) -> pl.DataFrame:
    """Return the judge's grade minus the human one as ``new``, for documents of both sources.

    ``old`` is 0, because `GradeMean` compares two judges and here is only one.
    """
    graded = rows.drop_nulls("human").filter(pl.col("source").is_in(list(twins)))
    return graded.select(
        "query_id",
        "source",
        origin=pl.coalesce("origin", "doc_id"),
        new=(pl.col("grade") - pl.col("human")).cast(pl.Float64),
        old=pl.lit(0.0),
        confidence="confidence",
    ).sort("query_id", "origin")
