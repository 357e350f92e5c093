"""Interval and p of an estimate from citations, for other questions and other domains.

Labels that are constant in a domain make the domains the sample. Exchanging the labels of domains
is blind to questions, and the two-way t with G − 1 degrees of freedom, G the effective number of
domains on the thinner side, errs where few domains carry a side; the larger of both p rejects at
most 5 % of null worlds (docs/measures/citations.md). The interval is that of the two-way error,
widened where exchange is the larger, so that interval and p say one thing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special

from ranktilt.auditing.effects import FEWEST
from ranktilt.measures.citations.base import (
    Bools,
    CitationEstimate,
    CitationRows,
    Floats,
    Ints,
)
from ranktilt.statistics.bootstrap import FEWEST_ROWS
from ranktilt.statistics.two_way import effective_number, sums, two_way

Over = Literal["questions", "questions and units"]
FEWEST_UNITS = FEWEST
"""Effective number of units on a side below which nothing is decided about a kind of pages."""
FEWEST_CITATIONS = 10
"""Citations on a side below which an interval over questions takes the score form."""
_CELLS = 10_000_000
"""Most exchanged labels that are drawn, over all resamples."""
_LEAST_RESAMPLES = 1_000
_EPSILON = 1e-12
_SIZE_CLASSES = 3
_FARTHEST = 8.0
"""Logarithm of a ratio over the value beyond which an interval has no end."""
_NEAREST = 1e-6


@dataclass(frozen=True, kw_only=True)
class Spread:
    """How far an estimate scatters over other questions and units."""

    low: float
    high: float
    error: float
    """Standard error on the estimate's scale."""
    p: float
    """The larger of `exchange_p` and `two_way_p`."""
    exchange_p: float
    two_way_p: float
    effective_units: float
    """G: the smaller effective number of units of both sides."""
    effective_questions: float
    questions: int
    """Queries that carry weight."""


@dataclass(frozen=True, kw_only=True)
class QuestionsAlone:
    """An estimate for further questions about the same units, such as these domains."""

    low: float
    high: float
    score_low: float
    score_high: float
    """Ends by the score of a Poisson rate, below ten citations on a side; NaN from ten on."""


@dataclass(frozen=True, kw_only=True)
class PlainSpread:
    """How far a share, a rate or a difference scatters, without exchanged labels."""

    value: float
    low: float
    high: float
    p: float
    """That it is 0, by the t test."""
    over: Over
    """What it is uncertain over: ``questions`` alone where a side has fewer than ten units."""


def plain_spread(
    rows: CitationRows,
    value: float,
    influence: Floats,
    *,
    support: Bools,
    bounds: tuple[float, float] = (-np.inf, np.inf),
) -> PlainSpread:
    """Return the interval of a value by its influence, and the p of 0.

    `support` are the rows behind it, whose units count. A value on one of its `bounds`, such as a
    rate of 0, has no scatter to go by; its interval is that of a share of no vote in G.
    """
    sides = (support & rows.is_a, support & ~rows.is_a)
    # Rates of one group have one side only.
    numbers = [
        effective_number(sums(rows.cluster, rows.weight * side)) for side in sides if side.any()
    ]
    questions = effective_number(rows.per_question(rows.weight * support))
    units = min(numbers, default=np.nan)
    over: Over = "questions and units" if units >= FEWEST_UNITS else "questions"
    freedom = (min(units, questions) if over == "questions and units" else questions) - 1
    if not np.isfinite(influence).all() or not freedom > 0:
        return PlainSpread(value=value, low=np.nan, high=np.nan, p=np.nan, over=over)
    if value in bounds and not influence.any():
        reach = (bounds[1] - bounds[0]) * (1 - 0.025 ** (1 / (freedom + 1)))
        low, high = max(value - reach, bounds[0]), min(value + reach, bounds[1])
        return PlainSpread(value=value, low=low, high=high, p=np.nan, over=over)
    if over == "questions":
        variance = float((rows.per_question(influence) ** 2).sum()) * (freedom + 1) / freedom
    else:
        variance = two_way_variance(rows, influence)
    error = float(np.sqrt(variance))
    half = error * float(special.stdtrit(freedom, 0.975))
    p = t_p(value, error, freedom)
    low, high = max(value - half, bounds[0]), min(value + half, bounds[1])
    return PlainSpread(value=value, low=low, high=high, p=p, over=over)


def spread(rows: CitationRows, estimate: CitationEstimate, *, resamples: int, seed: int) -> Spread:
    """Return interval, error and p of an estimate over other questions and units."""
    units = float(min(effective_units_of_sides(rows, estimate)))
    supports = rows.per_question(estimate.support_a + estimate.support_b)
    questions = effective_number(supports)
    distance = estimate.distance
    exchange_p = exchanged_p(rows, estimate, resamples=resamples, seed=seed)
    error, two_way_p = np.nan, np.nan
    if np.isfinite(distance) and np.isfinite(estimate.influence).all():
        error = float(np.sqrt(two_way_variance(rows, estimate.influence)))
        two_way_p = t_p(distance, error, min(units, questions) - 1)
    p = float(np.maximum(exchange_p, two_way_p))
    wide_error = widened(distance, error, p, min(units, questions) - 1)
    low, high = np.nan, np.nan
    # Where every page that could be cited is cited, nothing varies and nothing was selected.
    if wide_error > 0:
        low, high = _interval(estimate, distance, wide_error, min(units, questions) - 1)
    return Spread(
        low=low,
        high=high,
        error=wide_error,
        p=p,
        exchange_p=exchange_p,
        two_way_p=two_way_p,
        effective_units=units,
        effective_questions=questions,
        questions=int((supports > 0).sum()),
    )


def effective_units_of_sides(rows: CitationRows, estimate: CitationEstimate) -> tuple[float, float]:
    """Return the effective number of units of group a, and of group b."""
    supports = estimate.support_a, estimate.support_b
    of_a, of_b = (effective_number(sums(rows.cluster, support)) for support in supports)
    return of_a, of_b


def questions_alone(rows: CitationRows, estimate: CitationEstimate) -> QuestionsAlone:
    """Return the interval for further questions, with the units as they are: ± t(Q − 1) errors.

    Below ten citations on a side, the score of a Poisson rate gives an interval too, which does not
    rest on the few citations that came.
    """
    by_question = rows.per_question(estimate.influence)
    counts = rows.per_question(estimate.support_a + estimate.support_b) > 0
    count = int(counts.sum())
    if count < 2 or not np.isfinite(estimate.distance):
        return QuestionsAlone(low=np.nan, high=np.nan, score_low=np.nan, score_high=np.nan)
    error = float(np.sqrt((by_question**2).sum() * count / (count - 1)))
    low, high = _interval(estimate, estimate.distance, error, count - 1)
    score_low, score_high = np.nan, np.nan
    few = min(estimate.citations_a, estimate.citations_b) < FEWEST_CITATIONS
    if few and estimate.scale == "log ratio":
        score_low, score_high = _score_interval(rows, estimate, count)
    return QuestionsAlone(low=low, high=high, score_low=score_low, score_high=score_high)


def exchanged_p(
    rows: CitationRows,
    estimate: CitationEstimate,
    *,
    resamples: int,
    seed: int,
    within_sizes: bool = False,
) -> float:
    """Return the p of an estimate by exchanging labels of units: (1 + #{|T*| ≥ |T|})/(1 + n).

    A unit with pages of both groups is two, each with the label of its pages. With `within_sizes`
    labels are exchanged between units of about the same size alone; see `size_classes`.
    """
    amount, support = estimate.exchange.amount, estimate.exchange.support
    # Units that carry nothing, such as pages that were retrieved only, are no draws of a label.
    carries = amount != 0 if support is None else support > 0
    unit_of_row = (2 * rows.cluster + rows.is_a)[carries]
    units = np.flatnonzero(np.bincount(unit_of_row))
    is_a = units % 2 == 1
    amounts = sums(unit_of_row, amount[carries])[units]
    supports = None if support is None else sums(unit_of_row, support[carries])[units]
    if not is_a.any() or is_a.all() or np.isnan(estimate.value):
        return np.nan
    classes = None
    if within_sizes:
        sizes = sums(unit_of_row, (estimate.support_a + estimate.support_b)[carries])[units]
        classes = size_classes(sizes)
    observed = abs(exchange_statistic(is_a[None, :], amounts, supports)[0])
    hits, count = 0, 0
    for labels in exchange_blocks(is_a, resamples=resamples, seed=seed, classes=classes):
        statistics = exchange_statistic(labels, amounts, supports)
        hits += int((np.abs(statistics) >= observed - _EPSILON).sum())
        count += len(labels)
    return (1 + hits) / (1 + count)


def size_classes(sizes: Floats) -> Ints:
    """Return the class of each unit: three classes with about equally many pages.

    The smallest units that hold a third of all pages together are the first class.
    """
    order = np.argsort(sizes, kind="stable")
    pages = np.cumsum(sizes[order])
    classes = np.empty(len(sizes), dtype=np.int64)
    # A unit is of the class in which its last page lies.
    parts = np.ceil(_SIZE_CLASSES * pages / pages[-1] - _EPSILON) - 1
    classes[order] = np.clip(parts, 0, _SIZE_CLASSES - 1).astype(np.int64)
    return classes


def exchange_blocks(
    is_a: Bools, *, resamples: int, seed: int, classes: Ints | None = None
) -> Iterator[Bools]:
    """Yield labels of units that were exchanged, a row for each time, in blocks.

    With classes, labels are exchanged between units of one class.
    """
    count = int(np.clip(_CELLS // len(is_a), _LEAST_RESAMPLES, resamples))
    rng = np.random.default_rng(seed)
    block = max(1, 4_000_000 // len(is_a))
    for start in range(0, count, block):
        labels = np.repeat(is_a[None, :], min(block, count - start), axis=0)
        if classes is None:
            yield rng.permuted(labels, axis=1)
            continue
        for number in np.unique(classes):
            members = np.flatnonzero(classes == number)
            labels[:, members] = rng.permuted(labels[:, members], axis=1)
        yield labels


def exchange_statistic(labels: Bools, amounts: Floats, supports: Floats | None) -> Floats:
    """Return the statistic of each row of labels; see `Exchange`."""
    of_a: Floats = labels @ amounts
    if supports is None:
        return of_a
    support_a = labels @ supports
    rest, support_b = amounts.sum() - of_a, supports.sum() - support_a
    ratio_a = (of_a + 0.5) / (support_a + 0.5)
    ratio_b = (rest + 0.5) / (support_b + 0.5)
    logs: Floats = np.log(ratio_a / ratio_b)
    return logs


def two_way_variance(rows: CitationRows, influence: Floats) -> float:
    """Return the larger of V_q + V_u − V_qu, V_q and V_u; see `two_way`."""
    by_question = np.bincount(rows.question, weights=influence)
    by_unit = np.bincount(rows.cluster, weights=influence)
    by_cell = np.bincount(rows.cell, weights=influence)
    variance = two_way(
        queries=float((by_question**2).sum()),
        origins=float((by_unit**2).sum()),
        cells=float((by_cell**2).sum()),
        effective_n=np.nan,
    )
    # Few units widen through the degrees of freedom alone: G/(G − 1) on top is twice the price.
    return variance.of_both


def t_p(distance: float, error: float, freedom: float) -> float:
    """Return the two-sided p of a distance from neutral; NaN without degrees of freedom."""
    if not freedom > 0 or not error > 0:
        return np.nan
    return float(2 * special.stdtr(freedom, -abs(distance) / error))


def widened(distance: float, error: float, p: float, freedom: float) -> float:
    """Return the error at which the t test gives `p`, where that is larger than `error`."""
    # At neutral every error gives a p of 1, so that none is to be found.
    if not freedom > 0 or not p > 0 or not np.isfinite(distance) or distance == 0:
        return error
    # A p of 1 is that of a distance of 0 errors, which no finite error gives.
    at_p = abs(distance) / float(-special.stdtrit(freedom, min(p, 1 - _EPSILON) / 2))
    return float(np.fmax(error, at_p))


def _interval(
    estimate: CitationEstimate, distance: float, error: float, freedom: float
) -> tuple[float, float]:
    """Return the 95 % interval in the unit of the value; shares stay within 0 and 100 %."""
    if freedom + 1 < FEWEST_ROWS or not np.isfinite(error):
        return np.nan, np.nan
    half = error * float(special.stdtrit(freedom, 0.975))
    if estimate.scale == "share":
        ends = estimate.value - half, estimate.value + half
        return max(ends[0], 0.0), min(ends[1], 100.0)
    with np.errstate(over="ignore"):
        ends = np.exp(distance - half), np.exp(distance + half)
    return float(ends[0] * estimate.neutral), float(ends[1] * estimate.neutral)


def _score_interval(
    rows: CitationRows, estimate: CitationEstimate, question_count: int
) -> tuple[float, float]:
    """Return the ratios whose score lies within t(Q − 1) errors of 0.

    The score of a ratio r is rate_a − r · rate_b; its variance over questions is at least that of
    Poisson counts with the rates that r allows.
    """
    critical = float(special.stdtrit(question_count - 1, 0.975))
    start = estimate.distance
    ends = []
    for direction in (-1.0, 1.0):
        near, far = start, start + direction * _FARTHEST
        for _step in range(60):
            middle = (near + far) / 2
            is_inside = _score(rows, estimate, float(np.exp(middle)), question_count) <= critical
            near, far = (middle, far) if is_inside else (near, middle)
        is_bounded = abs(near - start) < _FARTHEST - _NEAREST
        ends.append(float(np.exp(near if is_bounded else direction * np.inf)))
    # Without a citation of a, no ratio above 0 is too small; without one of b, none is too large.
    low = ends[0] if estimate.citations_a else 0.0
    return low, ends[1] if estimate.citations_b else np.inf


def _score(
    rows: CitationRows, estimate: CitationEstimate, ratio: float, question_count: int
) -> float:
    """Return how many errors the score of a ratio lies from 0."""
    total_a, total_b = float(estimate.support_a.sum()), float(estimate.support_b.sum())
    cited_a, cited_b = estimate.value_a * total_a, estimate.value_b * total_b
    rate_b = (cited_a + cited_b) / (ratio * total_a + total_b)
    rate_a = ratio * rate_b
    cited = estimate.exchange.amount
    part_a = (cited * rows.is_a - rate_a * estimate.support_a) / total_a
    part_b = (cited * ~rows.is_a - rate_b * estimate.support_b) / total_b
    by_question = rows.per_question(part_a - ratio * part_b)
    variance = float((by_question**2).sum()) * question_count / (question_count - 1)
    floor = rate_a / total_a + ratio**2 * rate_b / total_b
    return abs(estimate.value_a - ratio * estimate.value_b) / float(np.sqrt(max(variance, floor)))
