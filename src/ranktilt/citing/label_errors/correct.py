"""Correct an audit of citations for errors of labels, numerators and denominators apart.

Labels may be wrong: a classifier calls some human pages AI, and the other way round. Of two groups,
sensitivity and specificity say how often, and J = sensitivity + specificity − 1 is the strength of
the labels: 1 where they are always right, 0 where they say nothing.

A page then counts in part for each group, by what its label says on average (`Confusion.inverse`).
So the number of pages, and of citations, of a group is right on average (Rogan & Gladen, American
Journal of Epidemiology 107(1), 1978). A rate is the quotient of the two. A difference of shares is
the observed one divided by J. The regression at equal rank is no sum over labels and cannot be
corrected this way.

If rates differ by parts of the pages, such as short and long ones, a page counts what its label
says in its own part. There is no single J then to scale shares by: `membership` computes them anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from ranktilt.auditing.label_errors.model import LabelModel
from ranktilt.citing.effect import CitationEffect, ObservedCitations
from ranktilt.citing.inference.infer import Spread, two_way_variance
from ranktilt.citing.questions import QuestionKey
from ranktilt.citing.stages import FunnelPart, StageShare
from ranktilt.measures.citations.base import CitationEstimate, CitationRows, Floats, Ints
from ranktilt.statistics.bootstrap import FEWEST_ROWS
from ranktilt.statistics.label_errors import FIELLER_BELOW, Gap, fieller, gap_with_rate_error

UNCORRECTED: frozenset[QuestionKey] = frozenset({"equal rank"})
"""Questions that are no sums of labels."""
_LARGEST_RATIO = 1e4
"""Ratio, as a multiple of the value, beyond which an end of the interval counts as infinite."""
_HALVINGS = 60
"""Halvings of the interval in which an end is searched: beyond the precision of a float."""
_EPSILON = 1e-12
"""Distance from 1 that a p keeps where a quantile is taken of it; that of 1 is 0."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PairCorrection:
    """The correction of two groups of pages, the first and the second of a pair."""

    model: LabelModel
    """How often labels of two groups are wrong."""
    a: str
    """The first group of the pair."""

    @property
    def _first(self) -> int:
        """Number of group a in the model, whose groups have their own order."""
        return self.model.groups.names.index(self.a)

    @property
    def part_counts(self) -> Floats:
        """What a page counts for a group, by its part and label: (parts, 2 groups, 2 labels)."""
        order = [self._first, 1 - self._first]
        inverses = [confusion.inverse for confusion in self.model.confusions]
        return np.array([inverse[np.ix_(order, order)] for inverse in inverses], dtype=np.float64)

    @property
    def counts(self) -> Floats:
        """What a page counts for a group, by its label, if all pages have one part: (2, 2)."""
        counts: Floats = self.part_counts[0]
        return counts

    def page_counts(self, rows: CitationRows, group: int) -> Floats:
        """Return what each row counts for group a (0) or group b (1)."""
        label = np.where(rows.is_a, 0, 1)
        counts: Floats = self.part_counts[_parts(rows), group, label]
        return counts

    def with_membership(self, rows: CitationRows) -> CitationRows:
        """Return rows that count for group a what their labels say on average."""
        return replace(rows, membership=self.page_counts(rows, 0))

    def stretches(self, rows: CitationRows) -> Floats:
        """Return 1/J of each row's part: what moving a page from label b to a adds to group a."""
        counts = self.part_counts
        stretches: Floats = (counts[:, 0, 0] - counts[:, 0, 1])[_parts(rows)]
        return stretches

    def cells(self, rows: CitationRows) -> Ints:
        """Return the number of each row's part and label: 2 · part, plus 1 for label b."""
        cells: Ints = 2 * _parts(rows) + np.where(rows.is_a, 0, 1)
        return cells

    def totals(self, rows: CitationRows, amount: Floats) -> Floats:
        """Sum an amount over the pages of each part and label, shape (parts, 2 labels)."""
        parts = _parts(rows)
        totals = []
        for part in range(len(self.model.parts)):
            of_part = parts == part
            is_a, is_b = of_part & rows.is_a, of_part & ~rows.is_a
            totals.append([float(amount[is_a].sum()), float(amount[is_b].sum())])
        return np.array(totals)

    def corrected(self, totals: Floats) -> Floats:
        """Return what totals by part and label are for groups a and b, over all parts."""
        by_part = [counts @ total for counts, total in zip(self.part_counts, totals, strict=True)]
        return np.asarray(np.sum(by_part, axis=0), dtype=np.float64)

    def error_parts(self, weights: Floats, totals: Floats) -> Floats:
        """Return what uncertain error rates add to the error of Σ weight · corrected total.

        `weights` are of groups a and b, `totals` of each part's labels a and b; `Confusion` has the
        formula.
        """
        order = slice(None, None, -1) if self._first else slice(None)
        by_part = totals.reshape(len(self.model.parts), -1)
        return self.model.error_parts(weights[order], by_part[:, order].ravel())

    def share_error(self, totals: Floats) -> float:
        """Return the error that uncertain rates add to a sum over what pages count for group a."""
        return float(np.linalg.norm(self.error_parts(np.array([1.0, 0.0]), totals)))

    def widen(self, gap: Gap, rate_error: float, *, is_scaled: bool) -> Gap:
        """Widen an interval, because the error rates of labels are uncertain too.

        `is_scaled` says that the gap was divided by J. Where J itself is uncertain enough, its
        quotient has Fieller's interval.
        """
        strength = self.model.confusions[0].strength
        if is_scaled and strength < FIELLER_BELOW:
            return fieller(gap, 1 / strength)
        return gap_with_rate_error(gap, rate_error)


def _parts(rows: CitationRows) -> Ints:
    """Return the part of each row; 0 where labels of all pages err alike."""
    return np.zeros(len(rows), dtype=np.int64) if rows.part is None else rows.part


# ---- rates --------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class CorrectedRates:
    """The citation rates of both groups, whose ratio is asked for."""

    rows: CitationRows
    """The pages of both groups."""
    rates: Floats
    """Corrected citations divided by corrected pages; at most 0 where labels show fewer citations
    of a group than wrong labels alone would give."""
    influences: tuple[Floats, Floats]
    """What each row adds to the error of either rate."""
    error_parts: tuple[Floats, Floats]
    """What uncertain rates of errors add to either rate."""

    @property
    def ratio(self) -> float:
        """How many times as often the first group is cited; NaN where the second is never."""
        if not self.rates[1] > 0:
            return np.nan
        return max(float(self.rates[0] / self.rates[1]), 0.0)

    def influence(self, ratio: float) -> Floats:
        """Return the influence of the score at a ratio: rate_a − ratio · rate_b."""
        return self.influences[0] - ratio * self.influences[1]

    def rate_error(self, ratio: float) -> float:
        """Return the error that uncertain rates of errors add to the score."""
        return float(np.linalg.norm(self.error_parts[0] - ratio * self.error_parts[1]))

    def score(self, ratio: float) -> float:
        """Return rate_a − ratio · rate_b, which is 0 on average at the true ratio."""
        return float(self.rates[0] - ratio * self.rates[1])

    def error(self, ratio: float) -> float:
        """Return the error of the score over other questions, units and checked samples."""
        variance = two_way_variance(self.rows, self.influence(ratio))
        return float(np.hypot(np.sqrt(variance), self.rate_error(ratio)))

    def error_over_questions(self, ratio: float) -> float:
        """Return the error of the score over other questions about the same units."""
        by_question = self.rows.per_question(self.influence(ratio))
        count = max(int(np.count_nonzero(by_question)), 2)
        variance = float((by_question**2).sum()) * count / (count - 1)
        return float(np.hypot(np.sqrt(variance), self.rate_error(ratio)))


def corrected_rates(
    question: QuestionKey, rows: CitationRows, correction: PairCorrection
) -> CorrectedRates:
    """Correct citations and pages apart."""
    cited, in_pool = rate_amounts(question, rows)
    cited_totals, pool_totals = (correction.totals(rows, part) for part in (cited, in_pool))
    citations, pages = correction.corrected(cited_totals), correction.corrected(pool_totals)
    rates = np.divide(citations, pages, out=np.full(2, np.nan), where=pages > 0)
    influences, error_parts = [], []
    for group, rate in enumerate(rates):
        page_counts = correction.page_counts(rows, group)
        influences.append(page_counts * (cited - rate * in_pool) / pages[group])
        weights = np.zeros(2)
        weights[group] = 1 / pages[group]
        error_parts.append(correction.error_parts(weights, cited_totals - rate * pool_totals))
    return CorrectedRates(
        rows=rows,
        rates=rates,
        influences=(influences[0], influences[1]),
        error_parts=(error_parts[0], error_parts[1]),
    )


def rate_amounts(question: QuestionKey, rows: CitationRows) -> tuple[Floats, Floats]:
    """Return what each row adds to the citations, and to the pages that could be cited."""
    pool = rows.is_consulted if question == "rate" else rows.is_retrieved
    return rows.weight * (rows.is_cited & pool), rows.weight * pool


def score_interval(
    corrected: CorrectedRates, error: Callable[[float], float], critical: float
) -> tuple[float, float]:
    """Return the ratios whose score lies within `critical` errors of 0 (Fieller's, by bisection).

    The quotient of two corrected counts, of which one may be as small as its error, has no normal
    logarithm. Ends are 0 and infinite where no ratio is too small or too large.
    """
    ratio = corrected.ratio
    if np.isnan(ratio) or not critical > 0:
        return np.nan, np.nan

    def is_inside(candidate: float) -> bool:
        return abs(corrected.score(candidate)) <= critical * error(candidate)

    low = 0.0 if is_inside(0.0) else _border(0.0, ratio, is_inside)
    largest = _LARGEST_RATIO * max(ratio, 1.0)
    high = np.inf if is_inside(largest) else _border(largest, ratio, is_inside)
    return low, high


def _border(outside: float, inside: float, is_inside: Callable[[float], bool]) -> float:
    """Return the last value inside on the way from a value inside to one outside, by bisection."""
    for _step in range(_HALVINGS):
        middle = (outside + inside) / 2
        if is_inside(middle):
            inside = middle
        else:
            outside = middle
    return inside


def rate_spread(corrected: CorrectedRates, observed: Spread) -> Spread:
    """Return interval, error and p of a corrected ratio of rates.

    `observed` is that of the labels as they are, whose exchange tests the same question: without a
    preference no error of labels makes one.
    """
    freedom = min(observed.effective_units, observed.effective_questions) - 1
    error, distance = corrected.error(1.0), abs(corrected.score(1.0))
    if not freedom > 0 or not error > 0 or np.isnan(corrected.ratio):
        return replace(observed, low=np.nan, high=np.nan, error=np.nan, p=np.nan)
    two_way_p = float(2 * special.stdtr(freedom, -distance / error))
    p = float(np.fmax(observed.exchange_p, two_way_p))
    # Where exchange is the larger, errors are so much wider that interval and p say one thing.
    at_p = distance / float(-special.stdtrit(freedom, min(p, 1 - _EPSILON) / 2))
    wider = max(at_p / error, 1.0) if p > two_way_p else 1.0
    low, high = np.nan, np.nan
    if freedom + 1 >= FEWEST_ROWS:
        critical = wider * float(special.stdtrit(freedom, 0.975))
        low, high = score_interval(corrected, corrected.error, critical)
    return replace(
        observed,
        low=low,
        high=high,
        error=wider * error / float(corrected.rates[1]),
        p=p,
        two_way_p=two_way_p,
    )


# ---- shares -------------------------------------------------------------------------------------


def corrected_share(
    observed: CitationEstimate, around: Spread, correction: PairCorrection
) -> tuple[CitationEstimate, Spread]:
    """Correct a share in percent and its neutral value: both moved and divided by J."""
    counts = correction.counts
    shares = np.array([observed.value_a, observed.value_b])
    value_a, value_b = np.clip(counts @ shares, 0.0, 100.0).tolist()
    pool_shares = np.array([observed.neutral, 100 - observed.neutral])
    # Without a pool a share is described and not tested, and its own error matters.
    has_pool = not np.isnan(observed.neutral)
    neutral = float((counts @ pool_shares)[0]) if has_pool else np.nan
    centre = neutral if has_pool else float((counts @ shares)[0])
    # 1/J: what moving a page from label b to label a adds to group a.
    stretch = float(counts[0, 0] - counts[0, 1])
    origin = observed.neutral if has_pool else observed.value
    gap = Gap(
        value=stretch * (observed.value - origin),
        low=stretch * (around.low - origin),
        high=stretch * (around.high - origin),
        error=stretch * around.error,
        p=around.p,
    )
    totals = shares - pool_shares if has_pool else shares
    parts = correction.error_parts(np.array([1.0, 0.0]), totals)
    gap = correction.widen(gap, float(np.linalg.norm(parts)), is_scaled=has_pool)
    low, high = np.clip([centre + gap.low, centre + gap.high], 0.0, 100.0).tolist()
    estimate = replace(observed, value=value_a, value_a=value_a, value_b=value_b, neutral=neutral)
    return estimate, replace(around, low=low, high=high, error=gap.error, p=gap.p)


def observed_citations(effect: CitationEffect) -> ObservedCitations:
    """Return what an effect keeps of the answer by the labels as they are."""
    return ObservedCitations(
        value=effect.value,
        value_a=effect.value_a,
        value_b=effect.value_b,
        neutral=effect.neutral,
        low=effect.low,
        high=effect.high,
    )


def corrected_stage(stage: StageShare, correction: PairCorrection) -> StageShare:
    """Correct a group's share of one stage of the funnel."""
    counts = correction.counts
    is_first = stage.group == correction.a
    row = counts[0] if is_first else counts[1, ::-1]
    value, low, high = (
        float(100 * row @ np.array([share, 100 - share]) / 100)
        for share in (stage.value, stage.low, stage.high)
    )
    totals = np.array([stage.value, 100 - stage.value])
    weights = np.array([1.0, 0.0])
    if not is_first:
        totals, weights = totals[::-1], weights[::-1]
    rate_error = float(np.linalg.norm(correction.error_parts(weights, totals)))
    gap = gap_with_rate_error(
        Gap(value=value, low=low, high=high, error=np.nan, p=np.nan), rate_error
    )
    value, low, high = np.clip([gap.value, gap.low, gap.high], 0.0, 100.0).tolist()
    return replace(stage, value=value, low=low, high=high)


def corrected_part(part: FunnelPart, correction: PairCorrection) -> FunnelPart:
    """Correct a part of a difference of shares: it is divided by J."""
    counts = correction.counts
    stretch = float(counts[0, 0] - counts[0, 1])
    totals = np.array([part.value, -part.value])
    rate_error = float(np.linalg.norm(correction.error_parts(np.array([1.0, 0.0]), totals)))
    gap = Gap(
        value=stretch * part.value,
        low=stretch * part.low,
        high=stretch * part.high,
        error=np.nan,
        p=part.p,
    )
    gap = correction.widen(gap, rate_error, is_scaled=True)
    return replace(part, value=gap.value, low=gap.low, high=gap.high, p=gap.p)
