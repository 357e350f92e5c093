"""Split the error of each answer of a repeated engine into queries, documents and repeats."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ranktilt.auditing.effects import Effect
from ranktilt.auditing.groups import ALL
from ranktilt.auditing.repeats.average import samples_by_answer
from ranktilt.auditing.repeats.residuals import residuals_by_repeat
from ranktilt.auditing.significance import Sample
from ranktilt.data.artifact import Coded
from ranktilt.measures.base import Estimand, Measure
from ranktilt.measures.contrast import RelativeDelta
from ranktilt.measures.margin import Margin
from ranktilt.measures.ranking import Floats
from ranktilt.statistics.repeats import RepeatAnova, p_with_scaled_error, repeat_anova

REPEAT_COUNTS = (1, 2, 5, 10)
"""Numbers of repeats whose error is computed, besides that of endlessly many."""
MOST_REPEATS = 1000
"""Largest number of repeats that is worth naming; beyond it, more queries are needed."""


@dataclass(frozen=True, kw_only=True)
class ErrorAtRepeats:
    """The standard error that an answer would have with so many repeats."""

    repeats: int
    """Number of repeats of each query."""
    error: float
    """Standard error, in the unit of the answer."""


@dataclass(frozen=True, kw_only=True)
class RepeatComponents:
    """What makes one answer of a repeated engine uncertain."""

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
    """Share of the squared error that other queries make, 0 to 1."""
    document_share: float
    """Share of the squared error that other documents make."""
    repeat_share: float
    """Share of the squared error that more repeats would take away."""
    query_variance: float
    """σ²_q: variance of queries' true values; below 0 where the data show none."""
    repeat_variance: float
    """σ²_r: variance of repeats as wholes; below 0 where the data show none."""
    residual_variance: float
    """σ²_e: variance of one answer to a query around the query's true value."""
    p_of_repeats: float
    """p of the F test that repeats do not differ as wholes."""
    errors: tuple[ErrorAtRepeats, ...]
    """Standard error with other numbers of repeats."""
    error_limit: float
    """Standard error with endlessly many repeats."""
    label_share: float = 0.0
    """Share of the squared error that uncertain rates of label errors make."""
    has_verdict: bool = False
    """Whether the question has a verdict; effectiveness has none."""
    is_decided: bool = False
    """Whether the verdict is decided with the present repeats."""
    least_repeats: int | None = None
    """Least number of repeats with which the present value would be decided.

    None if no number would do, or if there is no verdict.
    """

    @property
    def is_effectiveness(self) -> bool:
        """Whether it is about the effectiveness of the run, and not about two groups."""
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
    """Yield the components of each answer of a repeated run.

    `samples` are those of every repeat, `averaged` those of their means, and `effects` the answers.
    """
    samples_of = samples_by_answer(samples)
    mean_of = {key: means[0] for key, means in samples_by_answer(averaged).items()}
    for effect in effects:
        key = (effect.run, repr(effect.estimand), effect.a, effect.b)
        repeats = samples_of.get(key, [])
        if len(repeats) < 2:
            continue
        components = _of_answer(repeats, mean_of[key], effect, margin)
        if components is not None:
            yield components


def effectiveness_components(run: str, measure: Measure, values: Floats) -> RepeatComponents | None:
    """Return the components of effectiveness, from values of the shape (n_repeats, n_queries).

    They are in percent. None with fewer than two queries that every repeat answers.
    """
    table = 100 * values[:, ~np.isnan(values).any(axis=0)].T
    anova = repeat_anova(table)
    if anova is None:
        return None
    # Documents have no labels here, so that only queries and repeats make the mean uncertain.
    squared_error = anova.mean_square_queries / (anova.queries * anova.repeats)
    repeat_share = _share(anova.residual, anova.mean_square_queries)
    split = _ErrorSplit(
        error=math.sqrt(squared_error),
        of_queries=1.0,
        of_repeats=repeat_share,
        present=anova.repeats,
    )
    return RepeatComponents(
        run=run,
        estimand=measure,
        a=ALL,
        b=ALL,
        values=tuple(table.mean(axis=0).tolist()),
        **split.fields(),
        **_variances(anova),
    )


def _of_answer(
    repeats: Sequence[Sample], mean: Sample, effect: Effect, margin: Margin
) -> RepeatComponents | None:
    """Return the components of one answer; None where they are undefined."""
    anova = _anova(repeats, mean)
    if anova is None or math.isnan(effect.error):
        return None
    variance = mean.influence().variance()
    if not variance.of_both > 0:
        return None
    of_labels = _label_share(effect)
    of_queries = _share(variance.of_queries, variance.of_both) * (1 - of_labels)
    split = _ErrorSplit(
        error=effect.error,
        of_queries=of_queries,
        of_repeats=of_queries * _share(anova.residual, anova.mean_square_queries),
        of_labels=of_labels,
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
        **_variances(anova),
    )


def _variances(anova: RepeatAnova) -> dict[str, Any]:
    """Return the fields that an analysis of variance fills."""
    return {
        "repeats": anova.repeats,
        "queries": anova.queries,
        "query_variance": anova.query,
        "repeat_variance": anova.repeat,
        "residual_variance": anova.residual,
        "p_of_repeats": anova.p_of_repeats,
    }


def _anova(repeats: Sequence[Sample], mean: Sample) -> RepeatAnova | None:
    """Split the variance of an answer's linear form over queries and repeats.

    A query's value in one repeat is Q times its residual: what it adds to the distance of the
    repeat's answer from the answer of all.
    """
    table = residuals_by_repeat(repeats, mean)
    total_weight = float(table.weight.sum())
    if not total_weight > 0:
        return None
    scale = len(table.numbers) * mean.estimand.per_ratio / total_weight
    return repeat_anova(table.residual * scale)


def _label_share(effect: Effect) -> float:
    """Return the share of the squared error that uncertain rates of label errors make."""
    if effect.observed is None:
        return 0.0
    return _share(sum(part**2 for part in effect.observed.error_parts), effect.error**2)


def _share(part: float, total: float) -> float:
    """Return a part as a share of a total, 0 to 1; 0 where there is nothing."""
    return min(part / total, 1.0) if total > 0 else 0.0


@dataclass(frozen=True, kw_only=True)
class _ErrorSplit:
    """The standard error of an answer, and what makes it."""

    error: float
    """Standard error with the present repeats."""
    of_queries: float
    """Share of the squared error that queries and repeats make."""
    of_repeats: float
    """Share of the squared error that repeats make."""
    of_labels: float = 0.0
    """Share of the squared error that uncertain rates of label errors make."""
    present: int
    """Present number of repeats."""

    def factor(self, repeats: float) -> float:
        """Return the error with another number of repeats, as a multiple of the present one.

        Only the share of the repeats depends on it, and that falls with their number.
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
    """Return the least number of repeats that would decide an answer; None if none would."""

    def is_decided(repeats: float) -> bool:
        projected = _projected(effect, split.factor(repeats))
        return projected.verdict(margin) != "inconclusive"

    if not is_decided(MOST_REPEATS):
        return None
    # The error falls with the number, so a number that decides is followed by others that do.
    low, high = 0, MOST_REPEATS
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_decided(middle) else (middle, high)
    return high


def _projected(effect: Effect, factor: float) -> Effect:
    """Return an answer of the same value with an error that is `factor` times as large."""
    p = p_with_scaled_error(effect.p, factor, effect.sample)
    # What the correction for several tests multiplied p by, it would multiply the other p by.
    tests = effect.p_corrected / effect.p if effect.p > 0 else 1.0
    return replace(
        effect,
        low=effect.value - factor * (effect.value - effect.low),
        high=effect.value + factor * (effect.high - effect.value),
        error=factor * effect.error,
        p=p,
        p_corrected=min(p * tests, 1.0),
    )
