"""Split the error of each answer of an engine into the parts of queries, documents and repeats.

A *repeat* is one of several rankings of the same queries by an engine whose answers are random. The
analysis of variance (ANOVA) of a table queries × repeats tells how much repeats differ; from that
follows the error with more repeats. So a user learns whether to ask the engine more often, or to
ask it more queries.

The table has the *residual* of each query, which is how far the query pulls the answer away from
its value: ``numerator − ratio · denominator`` for a ratio. A *sample* holds the values per query
behind one answer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ranktilt.auditing.effects import Effect
from ranktilt.auditing.groups import ALL
from ranktilt.auditing.repeats.average import sample_key, samples_by_answer
from ranktilt.auditing.significance import Sample, numbers_of
from ranktilt.data.artifact import Coded
from ranktilt.measures.base import Estimand, Measure
from ranktilt.measures.contrast import RelativeDelta
from ranktilt.measures.margin import Margin
from ranktilt.measures.ranking import Floats, Ints
from ranktilt.statistics.bootstrap import sum_repeats
from ranktilt.statistics.repeats import RepeatAnova, p_with_scaled_error, repeat_anova

REPEAT_COUNTS = (1, 2, 5, 10)
"""Numbers of repeats for which the error is computed, besides infinitely many."""
_MOST_REPEATS = 1000
"""Largest number of repeats to recommend; beyond it, more queries are needed."""


@dataclass(frozen=True, kw_only=True)
class ErrorAtRepeats:
    """The standard error that an answer would have with another number of repeats."""

    repeats: int
    """Number of repeats of each query."""
    error: float
    """Standard error, in the unit of the answer."""


@dataclass(frozen=True, kw_only=True)
class RepeatComponents:
    """How uncertain one answer of a run with repeats is, and where the uncertainty comes from.

    The shares of the squared error add up to 1.
    """

    run: str
    """Name of the run."""
    estimand: Coded[Estimand]
    """Question that is answered; a measure of relevance for effectiveness, in percent."""
    a: str
    """The first group; ``all`` for effectiveness."""
    b: str
    """The second group; ``all`` for effectiveness."""
    repeats: int
    """Number of repeats."""
    queries: int
    """Number of queries that every repeat answers."""
    values: tuple[float, ...]
    """The answer of each repeat alone."""
    error: float
    """Standard error of the answer with the present repeats."""
    query_share: float
    """Share of the squared error that comes from the choice of queries, 0 to 1."""
    document_share: float
    """Share of the squared error that comes from the choice of documents."""
    repeat_share: float
    """Share of the squared error that comes from the repeats; with more repeats it vanishes."""
    query_variance: float
    """σ²_q: variance of the queries' true values.

    It is an estimate, which is below 0 if queries differ less than repeats alone let expect.
    """
    repeat_variance: float
    """σ²_r: variance of the repeats' means; an estimate that may be below 0."""
    residual_variance: float
    """σ²_e: variance of one answer to a query around the query's true value."""
    p_of_repeats: float
    """p of the F test that the means of the repeats do not differ."""
    errors: tuple[ErrorAtRepeats, ...]
    """Standard error with other numbers of repeats."""
    error_limit: float
    """Standard error with infinitely many repeats."""
    label_share: float = 0.0
    """Share of the squared error that comes from uncertain rates of label errors."""
    has_verdict: bool = False
    """Whether the question has a verdict; effectiveness has none."""
    is_decided: bool = False
    """Whether the verdict is not inconclusive with the present repeats."""
    least_repeats: int | None = None
    """Smallest number of repeats with which the verdict would not be inconclusive any more.

    The value of the answer is taken to stay as it is. None if no number up to 1,000 would do, or if
    the question has no verdict.
    """

    @property
    def is_effectiveness(self) -> bool:
        """Whether the answer is the effectiveness of the run, and not about two groups."""
        return isinstance(self.estimand, Measure)

    @property
    def question(self) -> str:
        """The question as it is printed, such as ``Relative Δ nDCG@10``."""
        return self.estimand.title

    @property
    def measure(self) -> str:
        """Notation of the measure that Relative Δ compares, else of the question itself."""
        if isinstance(self.estimand, RelativeDelta):
            return self.estimand.measure
        return repr(self.estimand)


def repeat_components(
    samples: Sequence[Sample], averaged: Sequence[Sample], effects: Iterable[Effect], margin: Margin
) -> Iterator[RepeatComponents]:
    """Yield the components of each answer of a run with repeats.

    Parameters
    ----------
    samples : sequence of Sample
        Values per query of each repeat, for all answers.
    averaged : sequence of Sample
        Their means over the repeats.
    effects : iterable of Effect
        The answers.
    margin : float or str
        Largest distance from the neutral value that counts as level.
    """
    samples_of_answers = samples_by_answer(samples)
    means = {sample_key(sample): sample for sample in averaged}
    for effect in effects:
        key = (effect.run, repr(effect.estimand), effect.a, effect.b)
        repeats = samples_of_answers.get(key, [])
        if len(repeats) < 2:
            continue
        components = _answer_components(repeats, means[key], effect, margin)
        if components is not None:
            yield components


def effectiveness_components(run: str, measure: Measure, values: Floats) -> RepeatComponents | None:
    """Return the components of effectiveness, in percent.

    `values` has the shape (n_repeats, n_queries). Returns None with fewer than two queries that
    every repeat answers.
    """
    is_common = ~np.isnan(values).any(axis=0)
    table = 100 * values[:, is_common].T
    anova = repeat_anova(table)
    if anova is None:
        return None
    # Documents have no labels here, so that only queries and repeats make the mean uncertain.
    squared_error = anova.mean_square_queries / (anova.queries * anova.repeats)
    split = _ErrorSplit(
        error=math.sqrt(squared_error),
        of_queries=1.0,
        of_repeats=_clipped_share(anova.residual, anova.mean_square_queries),
        present=anova.repeats,
    )
    return RepeatComponents(
        run=run,
        estimand=measure,
        a=ALL,
        b=ALL,
        values=tuple(table.mean(axis=0).tolist()),
        **split.fields(),
        **_anova_fields(anova),
    )


def _answer_components(
    repeats: Sequence[Sample], mean: Sample, effect: Effect, margin: Margin
) -> RepeatComponents | None:
    """Return the components of one answer; None if they are undefined.

    `repeats` are the samples of all repeats, and `mean` is their mean.
    """
    anova = _anova(repeats, mean)
    if anova is None or math.isnan(effect.error):
        return None
    variance = mean.influence().variance()
    if not variance.of_both > 0:
        return None
    label_share = _label_share(effect)
    query_share = _clipped_share(variance.of_queries, variance.of_both) * (1 - label_share)
    split = _ErrorSplit(
        error=effect.error,
        of_queries=query_share,
        of_repeats=query_share * _clipped_share(anova.residual, anova.mean_square_queries),
        of_labels=label_share,
        present=anova.repeats,
    )
    has_verdict = not effect.estimand.descriptive and effect.estimand.sided
    return RepeatComponents(
        run=effect.run,
        estimand=effect.estimand,
        a=effect.a,
        b=effect.b,
        values=tuple(sample.value for sample in repeats),
        has_verdict=has_verdict,
        is_decided=has_verdict and effect.verdict(margin) != "inconclusive",
        least_repeats=_least_repeats(effect, margin, split) if has_verdict else None,
        **split.fields(),
        **_anova_fields(anova),
    )


def _anova_fields(anova: RepeatAnova) -> dict[str, Any]:
    """Return the fields of `RepeatComponents` that come from the analysis of variance."""
    return {
        "repeats": anova.repeats,
        "queries": anova.queries,
        "query_variance": anova.query,
        "repeat_variance": anova.repeat,
        "residual_variance": anova.residual,
        "p_of_repeats": anova.p_of_repeats,
    }


def _label_share(effect: Effect) -> float:
    """Return the share of the squared error that comes from uncertain rates of label errors."""
    if effect.observed is None:
        return 0.0
    return _clipped_share(sum(part**2 for part in effect.observed.error_parts), effect.error**2)


def _clipped_share(part: float, total: float) -> float:
    """Return a part as a share of a total, 0 to 1; 0 if the total is not above 0."""
    return min(part / total, 1.0) if total > 0 else 0.0


# ---- analysis of variance -----------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class RepeatResiduals:
    """How far each query pulls an answer from its value, in each repeat."""

    numbers: Ints
    """Numbers of the queries that count in every repeat.

    Queries that repeat each other have one number.
    """
    residual: Floats
    """Residuals, of the shape (n_queries, n_repeats)."""
    weight: Floats
    """Weight of each query in the mean of the repeats."""


def residuals_by_repeat(repeats: Sequence[Sample], mean: Sample) -> RepeatResiduals:
    """Return the residuals of one answer in each repeat, from the value of their mean.

    `repeats` are the samples of the repeats, and `mean` is the sample that averages them.
    """
    estimand = mean.estimand
    is_common = np.all([sample.mask for sample in repeats], axis=0)
    distinct = None if mean.distinct is None else mean.distinct[is_common]
    weight = estimand.denominator(mean.numerator[is_common], mean.denominator[is_common])
    ratio = mean.value / estimand.per_ratio
    columns = []
    for sample in repeats:
        residuals = estimand.residuals(
            sample.numerator[is_common], sample.denominator[is_common], ratio
        )
        columns.append(sum_repeats(residuals, distinct))
    return RepeatResiduals(
        numbers=numbers_of(is_common, mean.distinct),
        residual=np.stack(columns, axis=1),
        weight=sum_repeats(weight, distinct),
    )


def _anova(repeats: Sequence[Sample], mean: Sample) -> RepeatAnova | None:
    """Return the analysis of variance of an answer over queries and repeats.

    The answer may be a ratio, so that its values per query are residuals: what a query adds to the
    distance of the repeat's answer from the mean answer, times the number of queries.
    """
    table = residuals_by_repeat(repeats, mean)
    total_weight = float(table.weight.sum())
    if not total_weight > 0:
        return None
    query_count = len(table.numbers)
    scale = query_count * mean.estimand.per_ratio / total_weight
    return repeat_anova(table.residual * scale)


# ---- errors with other numbers of repeats -------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class _ErrorSplit:
    """The standard error of an answer, and the shares that its squared error consists of."""

    error: float
    """Standard error with the present repeats."""
    of_queries: float
    """Share of the squared error that comes from queries and repeats."""
    of_repeats: float
    """Share of the squared error that comes from repeats alone, a part of `of_queries`."""
    of_labels: float = 0.0
    """Share of the squared error that comes from uncertain rates of label errors."""
    present: int
    """Present number of repeats."""

    def factor(self, repeats: float) -> float:
        """Return the error with another number of repeats, as a multiple of the present error.

        The squared error of the repeats is in inverse proportion to their number; the rest stays.
        """
        return math.sqrt(1 + self.of_repeats * (self.present / repeats - 1))

    def fields(self) -> dict[str, Any]:
        """Return the fields of `RepeatComponents` about errors."""
        errors = [
            ErrorAtRepeats(repeats=count, error=self.error * self.factor(count))
            for count in REPEAT_COUNTS
        ]
        return {
            "error": self.error,
            "query_share": self.of_queries - self.of_repeats,
            "document_share": 1 - self.of_queries - self.of_labels,
            "label_share": self.of_labels,
            "repeat_share": self.of_repeats,
            "errors": tuple(errors),
            "error_limit": self.error * self.factor(math.inf),
        }


def _least_repeats(effect: Effect, margin: Margin, split: _ErrorSplit) -> int | None:
    """Return the smallest number of repeats that would decide an answer; None if none would.

    At most `_MOST_REPEATS` are tried.
    """

    def is_decided(repeats: float) -> bool:
        projected = _with_error_factor(effect, split.factor(repeats))
        return projected.verdict(margin) != "inconclusive"

    if not is_decided(_MOST_REPEATS):
        return None
    # The error falls with the number of repeats, so that all numbers above one that decides decide
    # too, and bisection finds the smallest.
    low, high = 0, _MOST_REPEATS
    while high - low > 1:
        middle = (low + high) // 2
        if is_decided(middle):
            high = middle
        else:
            low = middle
    return high


def _with_error_factor(effect: Effect, factor: float) -> Effect:
    """Return an answer of the same value with an error that is `factor` times as large."""
    p = p_with_scaled_error(effect.p, factor, effect.sample)
    # The correction for several tests is taken to multiply p by the same number as before.
    correction_factor = effect.p_corrected / effect.p if effect.p > 0 else 1.0
    return replace(
        effect,
        low=effect.value - factor * (effect.value - effect.low),
        high=effect.value + factor * (effect.high - effect.value),
        error=factor * effect.error,
        p=p,
        p_corrected=min(p * correction_factor, 1.0),
    )
