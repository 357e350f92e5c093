"""Correct an audit of citations for wrong labels of pages.

An audit compares two groups of pages, a and b, by their labels: which are cited more often. Labels
may be wrong: a classifier calls some human pages AI, and some AI pages human. Sensitivity and
specificity say how often it is right on either group. J = sensitivity + specificity − 1 is the
*strength* of the labels: 1 if they are always right, 0 if they say nothing.

A corrected page counts in part for each group. Its *membership* of a group follows from its label
and from how often labels are wrong (`Confusion.inverse`); it may be negative or above 1. Summed
over pages, or over citations, memberships give numbers that are right on average (Rogan & Gladen,
American Journal of Epidemiology 107(1), 1978). A *rate* is the quotient of corrected citations and
corrected pages. A difference of shares is the observed one divided by J. The regression at equal
rank is not a sum over pages, and cannot be corrected this way.

Labels of some *parts* of the pages, such as short ones, may be wrong more often than others. Then
the membership of a page depends on its part too, and there is no single J to divide shares by:
`membership` computes shares anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from ranktilt.auditing.label_errors.model import LabelModel
from ranktilt.citing.effect import (
    CitationEffect,
    FunnelPart,
    ObservedCitations,
    QuestionKey,
    StageShare,
)
from ranktilt.citing.inference.infer import Spread, two_way_variance
from ranktilt.measures.citations.base import CitationEstimate, CitationRows, Floats, Ints
from ranktilt.statistics.bootstrap import FEWEST_ROWS
from ranktilt.statistics.label_errors import FIELLER_BELOW, Gap, fieller, gap_with_rate_error

UNCORRECTED: frozenset[QuestionKey] = frozenset({"equal rank"})
"""Questions whose value is not made of sums over pages, so that it cannot be corrected."""
_LARGEST_RATIO = 1e4
"""How many times the value the upper end of an interval may be.

If even a ratio that large is inside, the end is infinite.
"""
_HALVINGS = 60
"""Halvings in the search for an end of an interval: enough for the precision of a float."""
_EPSILON = 1e-12
"""Least distance of a p from 1 where its t quantile divides something: that of 1 is 0."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PairCorrection:
    """The correction of two groups of pages, a and b, for wrong labels."""

    model: LabelModel
    """How often labels of the two groups are wrong."""
    a: str
    """Name of group a."""

    @property
    def _index_of_a(self) -> int:
        """Index of group a in the model, which may have b before a."""
        return self.model.groups.names.index(self.a)

    # Arrays of memberships are indexed by part, by the group of the membership (0 is a, 1 is b),
    # and by the label of the page (0 is a, 1 is b).

    @property
    def part_memberships(self) -> Floats:
        """Membership of a page, by its part and label: shape (parts, 2 groups, 2 labels)."""
        order = [self._index_of_a, 1 - self._index_of_a]
        inverses = [confusion.inverse for confusion in self.model.confusions]
        return np.array([inverse[np.ix_(order, order)] for inverse in inverses], dtype=np.float64)

    @property
    def memberships(self) -> Floats:
        """Membership of a page by its label, if there is one part: shape (2 groups, 2 labels)."""
        memberships: Floats = self.part_memberships[0]
        return memberships

    def row_memberships(self, rows: CitationRows, group: int) -> Floats:
        """Return the membership of each row's page of group a (0) or group b (1)."""
        label = np.where(rows.is_a, 0, 1)
        memberships: Floats = self.part_memberships[_parts(rows), group, label]
        return memberships

    def with_membership(self, rows: CitationRows) -> CitationRows:
        """Return the rows with their membership of group a, which measures then use."""
        return replace(rows, membership=self.row_memberships(rows, 0))

    def inverse_strengths(self, rows: CitationRows) -> Floats:
        """Return 1/J of each row's part.

        It is what group a gains by a page that gets label a in place of label b.
        """
        of_a = self.part_memberships[:, 0]
        inverse_strengths: Floats = (of_a[:, 0] - of_a[:, 1])[_parts(rows)]
        return inverse_strengths

    def cells(self, rows: CitationRows) -> Ints:
        """Return a number for each row's combination of part and label: 2 · part, plus 1 for b."""
        cells: Ints = 2 * _parts(rows) + np.where(rows.is_a, 0, 1)
        return cells

    def part_totals(self, rows: CitationRows, amount: Floats) -> Floats:
        """Sum an amount over the rows of each part and label, shape (parts, 2 labels)."""
        parts = _parts(rows)
        totals = []
        for part in range(len(self.model.parts)):
            of_part = parts == part
            is_a, is_b = of_part & rows.is_a, of_part & ~rows.is_a
            totals.append([float(amount[is_a].sum()), float(amount[is_b].sum())])
        return np.array(totals)

    def group_totals(self, totals: Floats) -> Floats:
        """Turn totals by part and label into corrected totals of groups a and b."""
        by_part = [
            memberships @ total
            for memberships, total in zip(self.part_memberships, totals, strict=True)
        ]
        return np.asarray(np.sum(by_part, axis=0), dtype=np.float64)

    def error_components(self, weights: Floats, totals: Floats) -> Floats:
        """Return what each uncertain error rate adds to the error of a weighted sum of totals.

        The error is the root of the sum of their squares.

        Parameters
        ----------
        weights : array of float, shape (2,)
            Weights of the corrected totals of groups a and b.
        totals : array of float, shape (parts, 2 labels)
            Totals by labels, before the correction.
        """
        # The model may have b before a.
        order = slice(None, None, -1) if self._index_of_a else slice(None)
        by_part = totals.reshape(len(self.model.parts), -1)
        return self.model.error_parts(weights[order], by_part[:, order].ravel())

    def error_of_sum(self, totals: Floats) -> float:
        """Return the error that uncertain error rates add to the corrected total of group a."""
        return float(np.linalg.norm(self.error_components(np.array([1.0, 0.0]), totals)))

    def widen(self, gap: Gap, rate_error: float, *, is_scaled: bool) -> Gap:
        """Widen an interval, because the error rates of labels are uncertain too.

        `rate_error` is what they add to the error. `is_scaled` says that the gap, a distance from
        neutral, was divided by J. If J is small, and so may be near 0, the quotient has Fieller's
        interval.
        """
        strength = self.model.confusions[0].strength
        if is_scaled and strength < FIELLER_BELOW:
            return fieller(gap, 1 / strength)
        return gap_with_rate_error(gap, rate_error)


def _parts(rows: CitationRows) -> Ints:
    """Return the part of each row; 0 if there is only one."""
    return np.zeros(len(rows), dtype=np.int64) if rows.part is None else rows.part


# ---- rates --------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class CorrectedRates:
    """The corrected citation rates of both groups, whose ratio is asked for.

    To find which ratios are possible, each is tested by its *score*, rate_a − ratio · rate_b, which
    is 0 on average at the true ratio.
    """

    rows: CitationRows
    """The pages of both groups."""
    rates: Floats
    """Corrected citations divided by corrected pages, for groups a and b.

    0 or below if a group has no more citations than wrong labels alone would give it.
    """
    influences: tuple[Floats, Floats]
    """What each row adds to the error of rate a, and of rate b."""
    error_components: tuple[Floats, Floats]
    """What each uncertain error rate of labels adds to the error of rate a, and of rate b."""

    @property
    def ratio(self) -> float:
        """How many times as often group a is cited; NaN if group b has no citation."""
        if not self.rates[1] > 0:
            return np.nan
        return max(float(self.rates[0] / self.rates[1]), 0.0)

    def influence(self, ratio: float) -> Floats:
        """Return what each row adds to the error of the score at a ratio."""
        return self.influences[0] - ratio * self.influences[1]

    def rate_error(self, ratio: float) -> float:
        """Return the error that uncertain error rates of labels add to the score."""
        return float(np.linalg.norm(self.error_components[0] - ratio * self.error_components[1]))

    def score(self, ratio: float) -> float:
        """Return the score of a ratio: rate_a − ratio · rate_b."""
        return float(self.rates[0] - ratio * self.rates[1])

    def error(self, ratio: float) -> float:
        """Return the error of the score, over other questions, units, and estimated error rates."""
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
    """Return corrected citations divided by corrected pages, for both groups."""
    cited, in_pool = rate_amounts(question, rows)
    cited_totals = correction.part_totals(rows, cited)
    pool_totals = correction.part_totals(rows, in_pool)
    citations, pages = correction.group_totals(cited_totals), correction.group_totals(pool_totals)
    rates = np.divide(citations, pages, out=np.full(2, np.nan), where=pages > 0)
    influences, error_components = [], []
    for group, rate in enumerate(rates):
        row_memberships = correction.row_memberships(rows, group)
        # The derivative of citations / pages by the weight of a row.
        influences.append(row_memberships * (cited - rate * in_pool) / pages[group])
        weights = np.zeros(2)
        weights[group] = 1 / pages[group]
        error_components.append(
            correction.error_components(weights, cited_totals - rate * pool_totals)
        )
    return CorrectedRates(
        rows=rows,
        rates=rates,
        influences=(influences[0], influences[1]),
        error_components=(error_components[0], error_components[1]),
    )


def rate_amounts(question: QuestionKey, rows: CitationRows) -> tuple[Floats, Floats]:
    """Return what each row adds to the citations, and to the pages that could have been cited.

    These are consulted pages for the question ``rate``, else retrieved pages.
    """
    pool = rows.is_consulted if question == "rate" else rows.is_retrieved
    return rows.weight * (rows.is_cited & pool), rows.weight * pool


def score_interval(
    corrected: CorrectedRates, error: Callable[[float], float], critical: float
) -> tuple[float, float]:
    """Return the smallest and largest ratio whose score lies within `critical` errors of 0.

    This is Fieller's interval, found by bisection. An interval of the logarithm would not do,
    because a corrected number of citations may be as small as its error. The lower end is 0 if no
    ratio is too small, and the upper end infinite if none is too large.

    Parameters
    ----------
    corrected : CorrectedRates
        The rates of both groups.
    error : function
        Returns the error of the score at a ratio.
    critical : float
        Quantile of Student's t for the interval.
    """
    ratio = corrected.ratio
    if np.isnan(ratio) or not critical > 0:
        return np.nan, np.nan

    def is_inside(candidate: float) -> bool:
        return abs(corrected.score(candidate)) <= critical * error(candidate)

    low = 0.0 if is_inside(0.0) else _last_inside(0.0, ratio, is_inside)
    largest = _LARGEST_RATIO * max(ratio, 1.0)
    high = np.inf if is_inside(largest) else _last_inside(largest, ratio, is_inside)
    return low, high


def _last_inside(outside: float, inside: float, is_inside: Callable[[float], bool]) -> float:
    """Return the last value that is inside, on the way from `inside` to `outside`, by bisection."""
    for _step in range(_HALVINGS):
        middle = (outside + inside) / 2
        if is_inside(middle):
            inside = middle
        else:
            outside = middle
    return inside


def rate_spread(corrected: CorrectedRates, observed: Spread) -> Spread:
    """Return interval, error and p of a corrected ratio of rates.

    `observed` is the spread by the labels as they are. The p of its test by exchanged labels is
    kept, because if no group is preferred, wrong labels make no preference.
    """
    freedom = min(observed.effective_units, observed.effective_questions) - 1
    # At a ratio of 1, at which neither group is favoured, the score is the distance of the rates.
    error, distance = corrected.error(1.0), abs(corrected.score(1.0))
    if not freedom > 0 or not error > 0 or np.isnan(corrected.ratio):
        return replace(observed, low=np.nan, high=np.nan, error=np.nan, p=np.nan)
    two_way_p = float(2 * special.stdtr(freedom, -distance / error))
    p = float(np.fmax(observed.exchange_p, two_way_p))
    # Where the p of exchanged labels is the larger, the error is widened until it gives this p, so
    # that interval and p agree.
    error_of_p = distance / float(-special.stdtrit(freedom, min(p, 1 - _EPSILON) / 2))
    factor = max(error_of_p / error, 1.0) if p > two_way_p else 1.0
    low, high = np.nan, np.nan
    if freedom + 1 >= FEWEST_ROWS:
        critical = factor * float(special.stdtrit(freedom, 0.975))
        low, high = score_interval(corrected, corrected.error, critical)
    return replace(
        observed,
        low=low,
        high=high,
        error=factor * error / float(corrected.rates[1]),  # of the ratio, not of the score
        p=p,
        two_way_p=two_way_p,
    )


# ---- shares -------------------------------------------------------------------------------------


def corrected_share(
    observed: CitationEstimate, observed_spread: Spread, correction: PairCorrection
) -> tuple[CitationEstimate, Spread]:
    """Correct a share in percent, its neutral value, and its interval.

    The distance from neutral is the observed one divided by J. Without a pool nothing is neutral,
    and the interval is that of the share itself. `observed` and `observed_spread` are those by the
    labels as they are.
    """
    memberships = correction.memberships
    shares = np.array([observed.value_a, observed.value_b])
    value_a, value_b = np.clip(memberships @ shares, 0.0, 100.0).tolist()
    pool_shares = np.array([observed.neutral, 100 - observed.neutral])
    # Without a pool, what could have been cited, nothing is neutral and nothing is tested.
    has_pool = not np.isnan(observed.neutral)
    neutral = float((memberships @ pool_shares)[0]) if has_pool else np.nan
    centre = neutral if has_pool else float((memberships @ shares)[0])
    # 1/J: what group a gains by a page that gets label a in place of label b.
    inverse_strength = float(memberships[0, 0] - memberships[0, 1])
    origin = observed.neutral if has_pool else observed.value
    gap = Gap(
        value=inverse_strength * (observed.value - origin),
        low=inverse_strength * (observed_spread.low - origin),
        high=inverse_strength * (observed_spread.high - origin),
        error=inverse_strength * observed_spread.error,
        p=observed_spread.p,
    )
    totals = shares - pool_shares if has_pool else shares
    gap = correction.widen(gap, correction.error_of_sum(totals), is_scaled=has_pool)
    low, high = np.clip([centre + gap.low, centre + gap.high], 0.0, 100.0).tolist()
    estimate = replace(observed, value=value_a, value_a=value_a, value_b=value_b, neutral=neutral)
    return estimate, replace(observed_spread, low=low, high=high, error=gap.error, p=gap.p)


def observed_citations(effect: CitationEffect) -> ObservedCitations:
    """Return the values of an effect by the labels as they are, to keep beside corrected ones."""
    return ObservedCitations(
        value=effect.value,
        value_a=effect.value_a,
        value_b=effect.value_b,
        neutral=effect.neutral,
        low=effect.low,
        high=effect.high,
    )


def corrected_stage(stage: StageShare, correction: PairCorrection) -> StageShare:
    """Correct a group's share of a stage, such as the retrieved pages, if there is one part."""
    memberships = correction.memberships
    is_first = stage.group == correction.a
    # Memberships of the stage's group: of pages with its own label, and with the other label.
    of_labels = memberships[0] if is_first else memberships[1, ::-1]
    value, low, high = (
        float(100 * of_labels @ np.array([share, 100 - share]) / 100)
        for share in (stage.value, stage.low, stage.high)
    )
    totals = np.array([stage.value, 100 - stage.value])
    weights = np.array([1.0, 0.0])
    if not is_first:
        totals, weights = totals[::-1], weights[::-1]
    rate_error = float(np.linalg.norm(correction.error_components(weights, totals)))
    gap = gap_with_rate_error(
        Gap(value=value, low=low, high=high, error=np.nan, p=np.nan), rate_error
    )
    value, low, high = np.clip([gap.value, gap.low, gap.high], 0.0, 100.0).tolist()
    return replace(stage, value=value, low=low, high=high)


def corrected_part(part: FunnelPart, correction: PairCorrection) -> FunnelPart:
    """Correct a part of a difference of shares by dividing it by J, if pages have one part."""
    memberships = correction.memberships
    inverse_strength = float(memberships[0, 0] - memberships[0, 1])
    totals = np.array([part.value, -part.value])  # what group a gains, group b loses
    rate_error = correction.error_of_sum(totals)
    gap = Gap(
        value=inverse_strength * part.value,
        low=inverse_strength * part.low,
        high=inverse_strength * part.high,
        error=np.nan,
        p=part.p,
    )
    gap = correction.widen(gap, rate_error, is_scaled=True)
    return replace(part, value=gap.value, low=gap.low, high=gap.high, p=gap.p)
