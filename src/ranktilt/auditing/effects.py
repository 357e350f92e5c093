"""Effects: the answer of one run to one question about two groups, with interval, p and verdict.

`Effect.verdict` is the rule by which every command decides. `Change` is the difference between two
runs, and `Conflict` two answers that favour different groups.

- *tilt*: an answer that favours a group; most often it is Relative Δ, the difference of two groups'
  means of a measure in percent
- *neutral value*: the answer that favours neither group. For twins it is that of the question,
  usually 0. Twins are two versions of one document, one in each group
- *random band*: the middle 95 % of the answers that random labels of groups would give. For groups
  that are not twins, the median of these answers is the neutral value
- *margin*: how far from the neutral value an answer may lie and still be called *level*
- *effective number*: how many equally weighted queries, or documents, would be as informative as
  those at hand
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, Self

import numpy as np

from ranktilt.data.artifact import Coded, register
from ranktilt.measures.base import Estimand, Measure, estimand
from ranktilt.measures.contrast import RelativeDelta
from ranktilt.measures.margin import DEFAULT_MARGIN, Margin, half_width
from ranktilt.measures.printing import ends_apart
from ranktilt.statistics.bootstrap import FEWEST_ROWS
from ranktilt.statistics.correction import detectable_effect
from ranktilt.statistics.variation import Variation

ALPHA = 0.05
"""Level of tests; intervals hold 95 %."""
FEW_QUERIES = 30
"""Queries below which a note warns that there are few; verdicts are given all the same."""
FEWEST = 10
"""Effective number of queries, or of documents, below which every verdict is inconclusive."""
INTERVAL_FIELDS = ("low", "high", "error", "p", "p_corrected")
"""Fields that are undefined if there are too few queries for an interval."""
_OPPOSITES = (
    ("wins", "losses"),
    ("both_wins", "both_losses"),
    ("query_wins", "query_losses"),
    ("mean_wins", "mean_losses"),
    ("share_wins", "share_losses"),
    ("mean_a", "mean_b"),
    ("even_a", "even_b"),
)
"""Names of details that exchange their values when the two groups are exchanged."""
_NAME_AFTER_EXCHANGE = dict(_OPPOSITES) | {b: a for a, b in _OPPOSITES}
"""Name that the value of each of these details gets by the exchange."""
_SIGNED_DETAILS = ("raw", "shares")
"""Details that change their sign when the two groups are exchanged."""


def _negated(value: float) -> float:
    """Turn the sign of a value; 0 stays 0, because −0 would be printed with its sign."""
    return -value + 0.0


@dataclass(frozen=True, kw_only=True)
class ObservedAnswer:
    """The answer before it was corrected for wrong labels: as the labels say."""

    value: float
    """The answer."""
    low: float
    """Lower end of its 95 % interval."""
    high: float
    """Upper end of its 95 % interval."""
    neutral: float
    """Value that favours nobody."""
    error_parts: tuple[float, ...] = ()
    """Standard errors of the corrected value, one for each error rate, with their signs.

    The rates of wrong labels are known only from a sample. Each part says how far the corrected
    value moves if one rate is higher by its own standard error; the squares of the parts sum to the
    variance that this adds. Two answers that were corrected with the same rates move together, so
    their difference has the differences of their parts.
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
    """Name of the run."""
    estimand: Coded[Estimand]
    """Question that is answered."""
    a: str
    """Name of the first group, which positive values favour."""
    b: str
    """Name of the second group."""
    value: float
    """The answer."""
    low: float
    """Lower end of its 95 % interval."""
    high: float
    """Upper end of its 95 % interval."""
    error: float
    """Standard error: the standard deviation over the resamples."""
    p: float
    """Probability of a value at least as far from neutral if neither group were favoured."""
    p_corrected: float
    """The p, corrected for the number of tests in the table: verdicts read this one."""
    queries: int
    """Number of queries that the answer rests on."""
    excluded: int = 0
    """Number of queries that say nothing about the question, such as those without twins."""
    dropped: int = 0
    """Number of resamples in which the answer was undefined."""
    null_low: float = 0.0
    """Lower end of the random band.

    A document's label is its group. `null_low`, `null_high` and `null_median` are 0 where no labels
    were drawn.
    """
    null_high: float = 0.0
    """Upper end of the random band."""
    null_median: float = 0.0
    """Median of the answers under random labels."""
    twins: bool = True
    """Whether the groups are twins, so that the question's own neutral value holds."""
    details: Mapping[str, float] = field(default_factory=dict)
    """Means and counts behind the answer, such as ``mean_a``, ``pairs``, ``wins`` (of `a`),
    ``losses``."""
    family_size: int = 1
    """Number of tests that are corrected together."""
    effective_n: float = -1.0
    """Effective number of queries, or of documents where that is smaller; −1 if unknown."""
    checks: Mapping[str, float] = field(default_factory=dict)
    """p of further tests, by name: ``sign flips``, ``exchanged labels``, ``shuffled labels``."""
    variation: Variation | None = None
    """How many of the lists behind the answer could have come out differently; None if unknown.

    A list whose documents are all tied, for example, favours nobody whatever the ranker is.
    """
    observed: ObservedAnswer | None = None
    """The answer before its correction for wrong labels; None if it was not corrected."""

    def __post_init__(self) -> None:
        """Set to NaN what so small a sample cannot show.

        This is done here, and not where effects are computed, because effects are also corrected,
        swapped and read from files. So no table, sentence, page or file can show an interval or a p
        next to the words that there are too few queries for it.
        """
        for name in self._beyond_sample:
            object.__setattr__(self, name, np.nan)

    @property
    def _beyond_sample(self) -> tuple[str, ...]:
        """Names of the fields that the sample is too small for."""
        if self.sample < FEWEST_ROWS:
            return INTERVAL_FIELDS
        return () if self.testable else ("p_corrected",)

    @property
    def has_interval(self) -> bool:
        """Whether both ends of its interval are defined."""
        return not (np.isnan(self.low) or np.isnan(self.high))

    @property
    def measure(self) -> str:
        """Notation of the measure that Relative Δ compares, else of the estimand itself."""
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
        """Smallest absolute effect that would be detected with 80 % power; NaN if not tested."""
        return (
            detectable_effect(self.error, self.family_size, self.sample)
            if self.testable
            else np.nan
        )

    @property
    def sample(self) -> float:
        """Size of the sample: the effective number, or the number of queries if it is unknown."""
        return self.queries if self.effective_n < 0 else self.effective_n

    @property
    def testable(self) -> bool:
        """Whether there is enough for a verdict: an effective number of at least `FEWEST`."""
        return self.sample >= FEWEST

    @property
    def can_be_level(self) -> bool:
        """Whether enough lists could have come out differently for "level" to be a finding."""
        return self.variation is None or self.variation.enough

    @property
    def has_random_band(self) -> bool:
        """Whether a random band is shown with the value; both its ends are 0 where none is."""
        return not (self.null_low == self.null_high == 0)

    @property
    def neutral(self) -> float:
        """Value that favours nobody: the estimand's for twins, else the median of random labels."""
        return self.estimand.neutral if self.twins else self.null_median

    @property
    def leans(self) -> Literal["a", "b", ""]:
        """The side of the neutral value that the whole interval is on; empty if it is on both."""
        if self.low > self.neutral:
            return "a"
        return "b" if self.high < self.neutral else ""

    @property
    def favours(self) -> Literal["a", "b", ""]:
        """The group that is shown to be favoured; empty if none is."""
        return self.leans if self.is_shown and self.estimand.sided else ""

    @property
    def is_shown(self) -> bool:
        """Whether a tilt is shown: corrected p < .05, and the interval excludes the neutral value.

        Both are asked, because p is corrected for the number of tests and the interval is not. A
        question about all groups together, such as AWRF, has no neutral value; its answer must lie
        outside the random band. A question that only describes shows nothing.
        """
        is_beyond = bool(self.leans) if self.estimand.sided else self.null_position != "inside"
        return is_beyond and self.significant and not self.estimand.descriptive

    @property
    def significant(self) -> bool:
        """Whether the corrected p is below .05, and there is enough for a verdict."""
        return self.p_corrected < ALPHA and self.testable

    @property
    def null_position(self) -> Literal["inside", "below", "above"]:
        """Position of the value in relation to the random band."""
        if self.value < self.null_low:
            return "below"
        return "above" if self.value > self.null_high else "inside"

    def extent(self, margin: Margin = DEFAULT_MARGIN) -> Literal["within", "beyond", "across"]:
        """Return where the interval lies: ``within`` the margin, ``beyond`` it, or ``across``.

        ``within`` if all of it lies inside ±`margin` of the neutral value, ends included;
        ``beyond`` if none of it does. ``across`` for all others, for undefined answers, and if
        there are too few queries or lists to say ``within`` or ``beyond``.
        """
        # NaN if the margin is in another unit than the answer. Then `half >= 0` is false below.
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

        ``a`` or ``b`` if a group is shown to be favoured, ``level`` if the whole interval lies
        within the margin and nothing is shown, else ``inconclusive``.
        """
        if np.isnan(self.low) or np.isnan(self.value) or not self.testable:
            return "inconclusive"
        if self.favours:
            return self.favours
        is_level = not self.is_shown and self.extent(margin) == "within"
        return "level" if is_level else "inconclusive"

    def side(self, letter: str) -> str:
        """Return the name of the group with the letter ``a`` or ``b``; empty for other verdicts."""
        return {"a": self.a, "b": self.b}.get(letter, "")

    def swapped(self) -> Self:
        """Return the same answer with the two groups exchanged, so that every sign turns.

        A directed question stays as it is. For example, a mean of ratios with the groups exchanged
        is not 1 over that mean: it would be the answer to another question.
        """
        if self.estimand.directed:
            return self
        details = {
            _NAME_AFTER_EXCHANGE.get(name, name): (
                _negated(value) if name in _SIGNED_DETAILS else value
            )
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
            details={name: details[name] for name in self.details},  # in the same order as before
            observed=observed,
        )

    def seen_from(self, a: str) -> Self:
        """Return the answer with `a` as the first group."""
        return self if self.a == a else self.swapped()

    def derived(self) -> dict[str, Any]:
        """Return numbers that follow from the fields, for the file."""
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
    """Difference between two runs' answers to one question, new − old.

    The difference is in points for effectiveness and Relative Δ, and in the question's unit for
    others. If `value` is above 0, the new run is more effective, or favours `a` more. A run that
    favours `a` more need not tilt more: if the old run favoured `b`, the answer may have come
    nearer to the neutral value. The field `growth` says how much more it tilts.
    """

    old_run: str
    """Name of the old run; `run` is the new one."""
    new: float
    """Answer of the new run over the compared queries, in percent or the estimand's unit."""
    old: float
    """Answer of the old run, in the same unit."""
    neutral_new: float = 0.0
    """Value of the new run that favours nobody: 0 for twins, else its median of random labels."""
    neutral_old: float = 0.0
    """Value of the old run that favours nobody."""
    growth: float = np.nan
    """|new − neutral_new| − |old − neutral_old|.

    Above 0, the new run tilts more than the old one, whichever group either favours.
    """
    growth_low: float = np.nan
    """Lower end of the growth's 95 % interval; the neutral values are taken as known."""
    growth_high: float = np.nan
    """Upper end of the growth's 95 % interval."""
    growth_error: float = np.nan
    """Standard error of the growth."""

    @property
    def _beyond_sample(self) -> tuple[str, ...]:
        """Names of the fields that the sample is too small for."""
        names = super()._beyond_sample
        if self.sample < FEWEST_ROWS:
            names = (*names, "growth_low", "growth_high", "growth_error")
        return names

    @property
    def of_tilt(self) -> bool:
        """Whether it is a change of Relative Δ, and not of effectiveness or another estimand."""
        return isinstance(self.estimand, RelativeDelta)

    @property
    def neutral(self) -> float:
        """Difference that favours nobody: the difference between the runs' neutral values."""
        return self.neutral_new - self.neutral_old

    @property
    def unit(self) -> str:
        """Unit to print after a difference."""
        return (
            " points"
            if self.of_tilt or isinstance(self.estimand, Measure)
            else self.estimand.suffix
        )

    def amount(self, value: float, *, sign: bool | None = None, digits: int | None = None) -> str:
        """Print a value without its unit, with its sign where `sign` says so; a dash if undefined.

        Without `sign`, effectiveness has no sign, and other values have it as usual. `digits` says
        how many decimals are printed; if None, the estimand decides.
        """
        has_sign = self.estimand.signed and not isinstance(self.estimand, Measure)
        is_signed = has_sign if sign is None else sign
        return self.estimand.amount(value, sign=is_signed, digits=digits)

    @property
    def ends(self) -> tuple[str, str]:
        """Ends of the difference's interval, with decimals enough to tell them from neutral."""
        show = partial(self.amount, sign=True)
        return ends_apart((self.low, self.high), self.neutral, show)

    @property
    def is_shown(self) -> bool:
        """Whether a difference is shown: corrected p < .05 and the interval excludes 0."""
        return self.significant and bool(self.leans)

    @property
    def has_growth_apart(self) -> bool:
        """Whether the interval of the growth is another one than that of the difference.

        If both runs favour the same group in all resamples, the growth is the difference itself, or
        its negative. It is neither if the runs favour different groups in some resamples.
        """
        if not self.has_interval or np.isnan(self.growth_low):
            return False
        growth_ends = (self.growth_low, self.growth_high)
        low, high = self.low - self.neutral, self.high - self.neutral
        is_difference = np.allclose(growth_ends, (low, high))
        is_negative = np.allclose(growth_ends, (-high, -low))
        return not (is_difference or is_negative)

    @property
    def growth_detectable(self) -> float:
        """Smallest absolute growth that a single test would detect with 80 % power."""
        if self.sample < FEWEST:
            return np.nan
        return detectable_effect(self.growth_error, effective_n=self.effective_n)

    def swapped(self) -> Self:
        """Return the same change with the two groups exchanged.

        The growth stays as it is: it does not depend on which group is favoured.
        """
        return replace(
            super().swapped(),
            new=_negated(self.new),
            old=_negated(self.old),
            neutral_new=_negated(self.neutral_new),
            neutral_old=_negated(self.neutral_old),
        )

    def derived(self) -> dict[str, Any]:
        """Return numbers that follow from the fields, for the file."""
        return {**super().derived(), "growth_detectable": self.growth_detectable}


# Files hold an estimand as its notation, such as "NDSR@20".
register(Estimand, repr, estimand)


@dataclass(frozen=True, kw_only=True)
class Conflict:
    """Answers of one run that point to opposite sides of a pair."""

    run: str
    """Name of the run."""
    a: str
    """The first group."""
    b: str
    """The second group."""
    for_a: tuple[Effect, ...]
    """Answers that favour the first group."""
    for_b: tuple[Effect, ...]
    """Answers that favour the second group."""


def conflict_of(effects: Iterable[Effect]) -> Conflict | None:
    """Return the conflict between a run's answers about two groups; None if there is none.

    Answers that only describe favour nobody.
    """
    favouring = [effect for effect in effects if effect.favours]
    for_a = tuple(effect for effect in favouring if effect.favours == "a")
    for_b = tuple(effect for effect in favouring if effect.favours == "b")
    if not for_a or not for_b:
        return None
    first = favouring[0]
    return Conflict(run=first.run, a=first.a, b=first.b, for_a=for_a, for_b=for_b)
