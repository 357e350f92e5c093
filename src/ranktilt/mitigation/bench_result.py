"""The bench: effectiveness against tilt for interventions of rising strength, as one versioned file."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

from ranktilt.auditing.answer.gate import (
    MOST,
    GateRow,
    LimitCheck,
    Outcome,
    check_tilt,
    effect_gate,
    in_percent,
    worst,
)
from ranktilt.auditing.answer.verdict import Verdict, effect_row, judge
from ranktilt.auditing.effects import Change, Effect
from ranktilt.auditing.groups import ALL, Pair
from ranktilt.data.artifact import Result
from ranktilt.errors import UserError, unknown

BUDGET = 0.01


@dataclass(frozen=True)
class Intervention:
    """One way to level a ranker, at one strength."""

    name: str
    """As printed, such as ``α = 0.001``; no two of a bench share it."""
    method: str
    """What it is a strength of, such as ``debias``; empty for the baseline, which nothing was done to."""
    strength: float
    """Its place on the method's dial: the smaller, the less is done."""
    ranker: str
    """The text of the ranker that has it, such as ``dense:models/alpha-0.001``."""
    dial: str = "strength"
    """What the strength is called, such as ``α``."""


class RefusedMethod(NamedTuple):
    """A method that was named and could not be tried."""

    method: str
    reason: str


@dataclass(frozen=True, eq=False)
class Bench(
    Result, format="ranktilt-bench", version=1, noun="a bench", command="ranktilt mitigate"
):
    """What `bench` found; immutable.

    Parameters
    ----------
    spec : mapping
        How it was made: options, collection, runs, the number of tests in the family, versions.
    interventions : tuple of Intervention
        The baseline, then by method and rising strength.
    measures : tuple of str
        Relevance measures; none where nothing is judged.
    tilts : tuple of Effect
        Relative Δ of every intervention, pair of groups and measure, and the other estimands of the
        groups. Those of the primary one come first of each pair; level is judged on them.
    effectiveness : tuple of Effect
        Mean of every intervention and measure, 0 to 1, with its interval: where both groups are
        ``all`` over all documents, where both are the reference on its documents alone.
    changes : tuple of Change
        Every one of these less the baseline's, in points or the estimand's unit, paired over
        queries; p corrected over all of them. Estimands of twins have none.
    notes : tuple of str
        What a reader should know.
    selected : tuple of str
        Interventions that were chosen on other queries, one a method; where there are any, only
        they are judged.
    refused : tuple of RefusedMethod
        Methods that could not be tried, each with the reason.
    before : tuple of Effect
        The baseline's answers to the primary question as an audit of it gives them, pair by pair:
        over all queries where the bench is on some of them. They say whether there is anything to
        level.
    """

    spec: Mapping[str, Any]
    interventions: tuple[Intervention, ...]
    measures: tuple[str, ...]
    tilts: tuple[Effect, ...]
    effectiveness: tuple[Effect, ...]
    changes: tuple[Change, ...]
    notes: tuple[str, ...]
    selected: tuple[str, ...] = ()
    refused: tuple[RefusedMethod, ...] = ()
    before: tuple[Effect, ...] = ()

    @property
    def baseline(self) -> Intervention:
        """The ranker as it is without any intervention."""
        return self.interventions[0]

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of the methods, in order."""
        return tuple(dict.fromkeys(one.method for one in self.interventions[1:]))

    def strengths(self, method: str) -> tuple[Intervention, ...]:
        """Return the baseline and one method's interventions by rising strength."""
        return (self.baseline, *(one for one in self.interventions if one.method == method))

    @property
    def level(self) -> float:
        """Half-width, in percent, of what counts as level."""
        return float(self.spec["level"])

    @property
    def budget(self) -> float:
        """Effectiveness that an intervention may cost, 0 to 1."""
        return float(self.spec.get("budget", BUDGET))

    @property
    def valued(self) -> str:
        """Measure of effectiveness, on which the cost is judged."""
        return str(self.spec.get("effectiveness", self.primary))

    @property
    def primary(self) -> str:
        """What level is judged on: a measure, whose Relative Δ it is, or another estimand of two groups."""
        return self.questions[0]

    @cached_property
    def questions(self) -> tuple[str, ...]:
        """Measures whose Relative Δ was taken, and other estimands of two groups; the primary one first."""
        return tuple(dict.fromkeys(tilt.measure for tilt in self.tilts))

    @property
    def judged(self) -> tuple[Intervention, ...]:
        """The baseline and those that may be chosen: all, or the ones that were selected on other queries."""
        found = [
            one for one in self.interventions[1:] if not self.selected or one.name in self.selected
        ]
        return (self.baseline, *found)

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """Pairs of groups that were compared."""
        return tuple(dict.fromkeys((t.a, t.b) for t in self.tilts))

    @property
    def over(self) -> tuple[str, ...]:
        """What effectiveness is measured over: ``all`` documents, and the reference's alone where that was ranked."""
        return tuple(dict.fromkeys(e.a for e in self.effectiveness))

    def tilt(self, name: str, pair: Pair, measure: str | None = None) -> Effect:
        """Return an intervention's answer for one pair of groups, by default to the primary question."""
        return self._effect(name, *pair, measure or self.primary)

    def mean(self, name: str, over: str = ALL, measure: str | None = None) -> Effect:
        """Return the effectiveness of an intervention, by default on the measure on which the cost is judged."""
        return self._effect(name, over, over, measure or self.valued)

    def change(self, name: str, pair: Pair, measure: str | None = None) -> Change | None:
        """Return how an intervention moved a tilt, or an effectiveness (a group twice); None where that is not known.

        It is not known of the baseline, and of estimands of twins.
        """
        usual = self.valued if pair[0] == pair[1] else self.primary
        return self._changes.get((name, *pair, measure or usual))

    def costs(self, name: str) -> list[Change]:
        """Return how an intervention changed the effectiveness that the budget is about; none of the baseline."""
        changes = [self.change(name, (over, over)) for over in self.over]
        return [change for change in changes if change is not None]

    def loss(self, name: str) -> float:
        """Return the largest loss of effectiveness of an intervention, in points."""
        return max((-change.value for change in self.costs(name)), default=0.0)

    def distance(self, name: str) -> float:
        """Return how far the tilts of an intervention are from level at most, in percent; infinite if undefined."""
        far = [
            in_percent(tilt) * abs(tilt.value - tilt.level)
            for tilt in (self.tilt(name, p) for p in self.pairs)
        ]
        return math.inf if any(map(math.isnan, far)) else max(far)

    def _effect(self, *key: str) -> Effect:
        if key not in self._effects:
            raise unknown(
                "intervention, groups and measure", ", ".join(key), map(", ".join, self._effects)
            )
        return self._effects[key]

    @cached_property
    def _effects(self) -> dict[tuple[str, ...], Effect]:
        return {(e.run, e.a, e.b, e.measure): e for e in (*self.tilts, *self.effectiveness)}

    @cached_property
    def _changes(self) -> dict[tuple[str, ...], Change]:
        return {(c.run, c.a, c.b, c.measure): c for c in self.changes}

    def choose(self, *, level: float | None = None, budget: float | None = None) -> Choice:
        """Say which interventions reach level within the budget, and which of them is the smallest.

        `level` is a half-width in percent, `budget` what may be lost of effectiveness, 0 to 1; the
        bench's by default.
        """
        limits = self.level if level is None else level, self.budget if budget is None else budget
        check_limits(*limits)
        return Choice(self, *limits)

    def derived(self) -> dict[str, Any]:
        """The choice, for those who read the file."""
        found = self.choose()
        effects = [
            effect_row(tilt, self.level)
            for tilt in (*self.before, *self.tilts)
            if tilt.measure == self.primary
        ]
        return {
            "outcome": found.outcome,
            "chosen": found.chosen.name if found.chosen else None,
            "effects": effects,
            "next_steps": (),
        }


def check_limits(level: float, budget: float) -> None:
    """Refuse what is no half-width of level, or no share of effectiveness."""
    if not 0 <= level < MOST:
        raise UserError(f"expected a level of at least 0 and below {MOST:g} points, got {level:g}")
    if not 0 <= budget < 1:
        raise UserError(
            f"expected a budget of at least 0 and below 1, such as {BUDGET:g} (1 point), got {budget:g}"
        )


@dataclass(frozen=True)
class Choice:
    """Which interventions of a bench reach level within a budget; none where the baseline is not shown to be tilted.

    An intervention is *level* (*within* where it favours a side all the same) where the intervals
    of its tilts on the primary question and of its costs keep to their limits, *tilted* where one
    lies wholly beyond, else *inconclusive*.
    """

    bench: Bench
    level: float
    budget: float

    @cached_property
    def rows(self) -> dict[str, tuple[GateRow, ...]]:
        """What was asked of each intervention, by its name: its tilts, then its costs."""
        return {
            one.name: (*self._tilts(one.name), *self._costs(one.name))
            for one in self.bench.interventions
        }

    def _tilts(self, name: str) -> Iterator[GateRow]:
        baseline = name == self.bench.baseline.name
        for tilt in (
            self.bench.before
            if baseline
            else [self.bench.tilt(name, pair) for pair in self.bench.pairs]
        ):
            yield replace(effect_gate(tilt, check_tilt(tilt, self.level)), run=name)

    def _costs(self, name: str) -> Iterator[GateRow]:
        for change in self.bench.costs(name):
            yield replace(effect_gate(change, check_cost(change, self.budget)), run=name)

    def outcome_of(self, name: str) -> Outcome:
        """Return the worst of what was asked of an intervention: see `worst`."""
        return worst(row.outcome for row in self.rows[name])

    @cached_property
    def verdicts(self) -> tuple[Verdict, ...]:
        """What an audit says of the baseline, pair by pair."""
        noun = "text" if self.bench.spec["by"] == "source" else "documents"
        return tuple(
            judge(self.bench.primary, [e], self.level, noun=noun) for e in self.bench.before
        )

    @property
    def tilted(self) -> bool:
        """Whether there is something to level: the baseline is shown to favour a side, and more than slightly."""
        return any(one.kind == "favours" and not one.slight for one in self.verdicts)

    @property
    def chosen(self) -> Intervention | None:
        """The smallest that is within the margin and the budget, of several methods the least costly; or None."""
        if not self.tilted:
            return None
        level = [
            one for one in self.bench.judged[1:] if self.outcome_of(one.name) in ("level", "within")
        ]
        smallest = {one.method: one for one in reversed(level)}  # in the order of rising strength
        return min(smallest.values(), key=lambda one: self.bench.loss(one.name), default=None)

    @property
    def outcome(self) -> Outcome:
        """That of the baseline where nothing is to be levelled, or of the chosen one; tilted where each is excluded."""
        if self.chosen is not None or not self.tilted:
            return self.outcome_of((self.chosen or self.bench.baseline).name)
        open_ones = any(
            self.outcome_of(one.name) == "inconclusive" for one in self.bench.judged[1:]
        )
        return "inconclusive" if open_ones else "tilted"

    def overcorrected(self, name: str) -> list[Effect]:
        """Return the tilts of an intervention that are not level, and wholly on the other side than the baseline's."""
        found = []
        for pair in self.bench.pairs:
            before, now = (
                self.bench.tilt(self.bench.baseline.name, pair),
                self.bench.tilt(name, pair),
            )
            turned = (before.value - before.level) * (now.value - now.level) < 0
            if turned and now.leans and now.extent(self.level) != "within":
                found.append(now)
        return found

    @property
    def nearest(self) -> Intervention | None:
        """The intervention nearest to level, where none is chosen; None elsewhere."""
        if self.chosen is not None or not self.tilted:
            return None
        left = [one for one in self.bench.judged[1:] if self.outcome_of(one.name) == self.outcome]
        return min(left, key=lambda one: self.bench.distance(one.name))


def check_cost(change: Change, budget: float) -> LimitCheck:
    """Hold the interval of a change of effectiveness against the loss that is allowed."""
    floor = -100 * budget
    outcome: Outcome = "inconclusive"
    if change.testable and not math.isnan(change.value):
        if change.low >= floor:
            outcome = "level"
        elif change.high < floor:
            outcome = "tilted"
    return LimitCheck(
        name="cost",
        outcome=outcome,
        value=change.value,
        low=change.low,
        high=change.high,
        floor=floor,
        ceiling=math.inf,
        asked_limit=100 * budget,
        checked_change=change,
    )
