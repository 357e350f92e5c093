"""Effects: one run's answer to one question about two groups, with interval, p and verdict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

import numpy as np

from ranktilt.data.artifact import Coded, register
from ranktilt.measures.base import Estimand, Measure, estimand
from ranktilt.measures.contrast import RelativeDelta
from ranktilt.measures.margin import DEFAULT_MARGIN, Margin, half_width
from ranktilt.statistics.bootstrap import FEWEST_ROWS
from ranktilt.statistics.correction import detectable_effect
from ranktilt.statistics.variation import Variation

ALPHA = 0.05
"""Level of tests; intervals hold 95 %."""
FEW_QUERIES = 30
"""Queries below which a note warns that there are few."""
FEWEST = 10
"""Effective number of queries and documents below which nothing is decided."""
_SPREAD = ("low", "high", "error", "p", "p_corrected")
"""Fields that are undefined without enough queries for an interval."""
_OPPOSITES = (
    ("wins", "losses"),
    ("both_wins", "both_losses"),
    ("query_wins", "query_losses"),
    ("mean_wins", "mean_losses"),
    ("share_wins", "share_losses"),
    ("mean_a", "mean_b"),
    ("even_a", "even_b"),
)
"""Details that exchange their values when the two groups are exchanged."""
_TURNED = dict(_OPPOSITES) | {b: a for a, b in _OPPOSITES}
"""Name of each of these details after the exchange, in both directions."""
_NEGATED = ("raw", "shares")
"""Details that change their sign when the two groups are exchanged."""


def _negated(value: float) -> float:
    """Turn the sign of a value; 0 stays 0, because −0 would be printed with its sign."""
    return -value + 0.0


@dataclass(frozen=True, kw_only=True)
class ObservedAnswer:
    """An answer by the labels as they are, beside the one that is corrected for their errors."""

    value: float
    low: float
    high: float
    neutral: float
    error_parts: tuple[float, ...] = ()
    """What each uncertain rate adds to the corrected value; their squares sum to the variance.

    A difference of two answers under the same rates has the differences of their parts.
    """

    def swapped(self) -> Self:
        """Return the same answer seen from the other side."""
        return replace(
            self,
            value=_negated(self.value),
            low=_negated(self.high),
            high=_negated(self.low),
            neutral=_negated(self.neutral),
            error_parts=tuple(map(_negated, self.error_parts)),
        )


@dataclass(frozen=True, kw_only=True)
class Effect:
    """One run's answer to one question about two groups.

    Positive values favour `a`; the unit is the estimand's.
    """

    run: str
    estimand: Coded[Estimand]
    a: str
    b: str
    value: float
    low: float
    high: float
    """The answer with its 95 % bootstrap interval."""
    error: float
    """Standard error: the resamples' standard deviation."""
    p: float
    p_corrected: float
    """For the tests of its table; where groups are not twins, p comes from random labels."""
    queries: int
    excluded: int = 0
    """Queries that say nothing about it."""
    dropped: int = 0
    """Resamples in which the answer was undefined."""
    null_low: float = 0.0
    null_high: float = 0.0
    null_median: float = 0.0
    """What random labels give in 95 %, and their median; all 0 where they are not shown."""
    twins: bool = True
    """Whether each document that counts has a twin, so that the estimand's neutral value holds."""
    details: Mapping[str, float] = field(default_factory=dict)
    """Means and counts behind it, such as ``mean_a``, ``pairs``, ``wins`` (of `a`), ``losses``."""
    family_size: int = 1
    """Tests that are corrected together."""
    effective_n: float = -1.0
    """Effective number of queries, or of documents where that is smaller; −1 if unknown."""
    checks: Mapping[str, float] = field(default_factory=dict)
    """The p of other tests: ``sign flips``, ``exchanged labels``, ``shuffled labels``."""
    variation: Variation | None = None
    """How many of its lists could have come out otherwise; None where that is no question."""
    observed: ObservedAnswer | None = None
    """The answer by the labels as they are, where it is corrected for their errors."""

    def __post_init__(self) -> None:
        """Leave undefined what so small a sample cannot show.

        Every effect is made, corrected, turned and read from files through here, so that no table,
        sentence, page or file can show an interval or a p beside the words that there is too little
        for it.
        """
        for name in self._beyond_sample:
            object.__setattr__(self, name, np.nan)

    @property
    def _beyond_sample(self) -> tuple[str, ...]:
        """Fields that the sample is too small for."""
        if self.sample < FEWEST_ROWS:
            return _SPREAD
        return () if self.testable else ("p_corrected",)

    @property
    def has_interval(self) -> bool:
        """Whether both ends of its interval are defined."""
        return not (np.isnan(self.low) or np.isnan(self.high))

    @property
    def measure(self) -> str:
        """Notation of the measure whose Relative Δ it is; of the estimand itself for all others."""
        return (
            self.estimand.measure
            if isinstance(self.estimand, RelativeDelta)
            else repr(self.estimand)
        )

    @property
    def kind(self) -> str:
        """Name of the estimand without its cutoff, as in files: ``page``, ``rank gap``."""
        return self.estimand.key

    @property
    def name(self) -> str:
        """The estimand as printed, such as ``ΔNDSR@20``."""
        return self.estimand.title

    @property
    def mean_a(self) -> float:
        """Mean of the first group's values; NaN where the estimand has none."""
        return self.details.get("mean_a", np.nan)

    @property
    def mean_b(self) -> float:
        """Mean of the second group's values; NaN where the estimand has none."""
        return self.details.get("mean_b", np.nan)

    @property
    def detectable(self) -> float:
        """Smallest absolute effect that is detected with 80 % power; NaN where nothing is tested.

        See `detectable_effect`.
        """
        return (
            detectable_effect(self.error, self.family_size, self.sample)
            if self.testable
            else np.nan
        )

    @property
    def sample(self) -> float:
        """Votes; all queries where they are not known."""
        return self.queries if self.effective_n < 0 else self.effective_n

    @property
    def testable(self) -> bool:
        """Whether enough queries and documents speak for a verdict: an effective number of 10."""
        return self.sample >= FEWEST

    @property
    def can_be_level(self) -> bool:
        """Whether enough could vary for "level" to be a finding."""
        return self.variation is None or self.variation.enough

    @property
    def banded(self) -> bool:
        """Whether a random band is shown with it, because random labels give anything but 0."""
        return not (self.null_low == self.null_high == 0)

    @property
    def neutral(self) -> float:
        """Value that favours nobody: the estimand's for twins, else the median of random labels."""
        return self.estimand.neutral if self.twins else self.null_median

    @property
    def leans(self) -> Literal["a", "b", ""]:
        """The side of the neutral value on which the whole interval lies; empty for neither."""
        if self.low > self.neutral:
            return "a"
        return "b" if self.high < self.neutral else ""

    @property
    def favours(self) -> Literal["a", "b", ""]:
        """The side that it leans to, where that is shown."""
        return self.leans if self.is_shown and self.estimand.sided else ""

    @property
    def is_shown(self) -> bool:
        """Whether it is shown not to be level: corrected p < .05, and the interval excludes level.

        Of all groups at once: the value lies outside the random band. What only describes shows
        nothing.
        """
        beyond = bool(self.leans) if self.estimand.sided else self.null_position != "inside"
        return beyond and self.significant and not self.estimand.descriptive

    @property
    def significant(self) -> bool:
        """Whether the corrected p is below .05 and rests on enough."""
        return self.p_corrected < ALPHA and self.testable

    @property
    def null_position(self) -> Literal["inside", "below", "above"]:
        """Where the value lies in relation to the random band."""
        if self.value < self.null_low:
            return "below"
        return "above" if self.value > self.null_high else "inside"

    def extent(self, margin: Margin = DEFAULT_MARGIN) -> Literal["within", "beyond", "across"]:
        """Return where the interval lies: ``within`` ±`margin` of the neutral value, or ``beyond``.

        The ends are included. ``across`` in all other cases, also where the answer is undefined.
        """
        half = half_width(self.estimand, margin)
        low, high = self.neutral - half, self.neutral + half
        if not self.testable or not half >= 0 or np.isnan(self.value):
            return "across"
        if low <= self.low and self.high <= high:
            return "within" if self.can_be_level else "across"
        return "beyond" if self.low > high or self.high < low else "across"

    def verdict(
        self, margin: Margin = DEFAULT_MARGIN
    ) -> Literal["a", "b", "level", "inconclusive"]:
        """Return the verdict, by the rule of every command.

        It is a favoured side, or ``level`` where the whole interval lies within the margin.
        """
        if np.isnan(self.low) or np.isnan(self.value) or not self.testable:
            return "inconclusive"
        if self.favours:
            return self.favours
        is_level = not self.is_shown and self.extent(margin) == "within"
        return "level" if is_level else "inconclusive"

    def side(self, which: str) -> str:
        """Name of the group `a` or `b`; empty for neither."""
        return {"a": self.a, "b": self.b}.get(which, "")

    def swapped(self) -> Self:
        """Return the same answer seen from the other side, with every sign turned.

        A ratio of two groups stays as it is.
        """
        if self.estimand.directed:
            return self
        details = {
            _TURNED.get(name, name): (_negated(value) if name in _NEGATED else value)
            for name, value in self.details.items()
        }
        observed = None if self.observed is None else self.observed.swapped()
        return replace(
            self,
            a=self.b,
            b=self.a,
            value=_negated(self.value),
            low=_negated(self.high),
            high=_negated(self.low),
            null_low=_negated(self.null_high),
            null_high=_negated(self.null_low),
            null_median=_negated(self.null_median),
            details={name: details[name] for name in self.details},
            observed=observed,
        )

    def seen_from(self, a: str) -> Self:
        return self if self.a == a else self.swapped()

    def derived(self) -> dict[str, Any]:
        return {
            "measure": self.measure,
            "kind": self.estimand.key,
            "name": self.name,
            "neutral": self.neutral,
            "mean_a": self.mean_a,
            "mean_b": self.mean_b,
            "detectable": self.detectable,
        }


@dataclass(frozen=True, kw_only=True)
class Change(Effect):
    """New − old: of effectiveness or Relative Δ in points, or of another estimand in its unit.

    Where `value` is above 0, the new run is more effective, or lies further toward `a`. That need
    not mean that it tilts more: see `growth`.
    """

    old_run: str
    new: float
    old: float
    """Each run's answer over the compared queries, in percent or the estimand's unit."""
    neutral_new: float = 0.0
    neutral_old: float = 0.0
    """What favours nobody: 0 for twins, the median of each run's random labels otherwise."""
    growth: float = np.nan
    """|new − neutral_new| − |old − neutral_old|: above 0, the new run tilts more, whichever way."""
    growth_low: float = np.nan
    growth_high: float = np.nan
    """Its 95 % bootstrap interval; the neutral values are taken as known."""
    growth_error: float = np.nan

    @property
    def _beyond_sample(self) -> tuple[str, ...]:
        few = self.sample < FEWEST_ROWS
        return (
            *super()._beyond_sample,
            *(("growth_low", "growth_high", "growth_error") if few else ()),
        )

    @property
    def of_tilt(self) -> bool:
        return isinstance(self.estimand, RelativeDelta)

    @property
    def neutral(self) -> float:
        """The difference that favours nobody: between both runs' neutral values."""
        return self.neutral_new - self.neutral_old

    @property
    def unit(self) -> str:
        """The unit printed after a difference."""
        return (
            " points"
            if self.of_tilt or isinstance(self.estimand, Measure)
            else self.estimand.suffix
        )

    def amount(self, value: float, *, sign: bool | None = None) -> str:
        """Print a value, or with a `sign` a difference, without its unit; a dash if undefined."""
        usual = self.estimand.signed and not isinstance(self.estimand, Measure)
        return self.estimand.amount(value, sign=usual if sign is None else sign)

    @property
    def ends(self) -> tuple[str, str]:
        """The difference's interval, as printed."""
        return self.amount(self.low, sign=True), self.amount(self.high, sign=True)

    @property
    def is_shown(self) -> bool:
        """Whether a difference is shown: corrected p < .05 and the interval excludes 0."""
        return self.significant and bool(self.leans)

    @property
    def growth_detectable(self) -> float:
        """Smallest absolute growth that these queries detect with 80 % power by a single test."""
        few = self.sample < FEWEST
        return np.nan if few else detectable_effect(self.growth_error, queries=self.effective_n)

    def swapped(self) -> Self:
        """Return the same change seen from the other side; a tilt grows whichever way it points."""
        return replace(
            super().swapped(),
            new=_negated(self.new),
            old=_negated(self.old),
            neutral_new=_negated(self.neutral_new),
            neutral_old=_negated(self.neutral_old),
        )

    def derived(self) -> dict[str, Any]:
        return {**super().derived(), "growth_detectable": self.growth_detectable}


Outcome = Literal[
    "equivalent", "different within the margin", "different", "inconclusive", "not tested"
]


@dataclass(frozen=True, kw_only=True)
class Equivalence(Effect):
    """Difference of effectiveness on each side alone, by Student's t.

    `a` is the reference; values are positive where it is searched better.
    """

    margin: float
    """The largest difference that would not matter."""
    p_equivalent: float
    """The larger p of two one-sided paired t tests against ±margin (Schuirmann 1987)."""
    smallest: float
    """The smallest margin that these queries would have shown equivalence for."""
    outcome: Outcome = "not tested"
    pairs: int
    """Pairs of documents that both sides are made of."""
    left_out: int
    """Documents of both sources without a twin, which neither side holds."""

    @property
    def _beyond_sample(self) -> tuple[str, ...]:
        """Student's t is defined wherever it has an interval; turned signs do not bound its p."""
        return (*_SPREAD, "p_equivalent", "smallest") if self.sample < FEWEST_ROWS else ()

    @property
    def source(self) -> str:
        return self.b

    def derived(self) -> dict[str, Any]:
        beside = {
            "source": self.b,
            "on_reference": self.mean_a,
            "on_source": self.mean_b,
            "difference": self.value,
            "p_different": self.p,
        }
        return {**super().derived(), **beside}


register(Estimand, repr, estimand)


@dataclass(frozen=True, kw_only=True)
class Conflict:
    """Answers of one run that point to opposite sides of a pair."""

    run: str
    a: str
    b: str
    for_a: tuple[Effect, ...]
    for_b: tuple[Effect, ...]


def conflict_of(effects: Iterable[Effect]) -> Conflict | None:
    """Return how the answers for one run and pair conflict; None where they do not.

    What only describes is left out.
    """
    favouring = [effect for effect in effects if effect.favours]
    for_a = tuple(effect for effect in favouring if effect.favours == "a")
    for_b = tuple(effect for effect in favouring if effect.favours == "b")
    if not for_a or not for_b:
        return None
    first = favouring[0]
    return Conflict(run=first.run, a=first.a, b=first.b, for_a=for_a, for_b=for_b)
