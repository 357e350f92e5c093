"""The result of a bench: candidates, their tilts and their costs, and the choice among them.

A *candidate* is a correction of a ranker at some strength, and the *baseline* is the ranker without
any correction. A *tilt* is how far a ranker favours one group over another; it is *level* if it is
within the margin. A *question* is a measure or another estimand (a number to estimate) of two
groups. An *effect* is one answer to a question, with its interval; a *change* is an effect of a
candidate minus the same effect of the baseline. The *neutral* value of an effect favours no group.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from ranktilt.auditing.answer.verdict import Verdict, effect_row, verdict_for
from ranktilt.auditing.effects import Change, Effect
from ranktilt.auditing.gate.result import (
    LARGEST_DELTA,
    Outcome,
    check_tilt,
    loss_outcome,
    percent_factor,
    worst,
)
from ranktilt.auditing.groups import ALL, Pair
from ranktilt.data.artifact import Coded, Result
from ranktilt.data.notes.base import Note
from ranktilt.errors import UserError, unknown_name
from ranktilt.field_checks import is_number, printed
from ranktilt.measures.margin import Margin
from ranktilt.mitigation.causal import CausalFit
from ranktilt.mitigation.movement import Movement
from ranktilt.mitigation.offset import OffsetFit
from ranktilt.mitigation.remedy import Remedy
from ranktilt.rankers.dense.direction import Direction

BUDGET = 1.0
"""Default budget with judgments: points of effectiveness that may be lost."""
MOVEMENT_BUDGET = 20.0
"""Default budget without judgments: percent of the first ten documents that may be replaced."""
MitigationOutcome = Literal[
    "mitigated", "level", "inconclusive", "cannot be mitigated within the budget"
]
"""What a bench says about a ranker.

- ``mitigated``: a candidate is shown to level it within the budget.
- ``level``: it is level without any correction.
- ``inconclusive``: the data are too few to show a tilt of the ranker, or what each candidate does.
- ``cannot be mitigated within the budget``: every candidate is shown to leave a tilt, or to cost
  too much.
"""
_BEST: tuple[Outcome, ...] = ("level", "within", "inconclusive", "tilted")
"""Outcomes of a candidate, the best first; `Choice` says what each one means."""


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One way to level a ranker, at one strength."""

    name: str
    """Name as printed, such as ``α = 0.001``; unique in a bench."""
    method: str
    """Method; empty for the baseline."""
    strength: float
    """How strongly the method is applied; candidates of one method differ in this alone."""
    ranker: str
    """Text of the corrected ranker, such as ``dense:models/alpha-0.001``."""
    dial: str = "strength"
    """What tables call the strength of this method, such as ``α``."""


@dataclass(frozen=True, kw_only=True)
class RefusedMethod:
    """A method that could not be tried."""

    method: str
    """Name of the method."""
    reason: str
    """Reason why it could not be tried."""


@dataclass(frozen=True, kw_only=True)
class MethodFits:
    """The fits of a bench's methods; None for a method that was not tried."""

    offset: OffsetFit | None = None
    """Constants for each group."""
    causal: CausalFit | None = None
    """Effect of perplexity on scores."""
    direction: Direction | None = None
    """Direction that a projection removes."""


@dataclass(frozen=True, kw_only=True)
class CandidateCheck:
    """A tilt compared with the margin, or a cost compared with the budget."""

    effect: Effect | Movement
    """The tilt (`Effect`), or the cost: a loss of effectiveness (`Change`), or how far lists move
    (`Movement`)."""
    outcome: Outcome
    """Outcome of the comparison."""

    @property
    def is_cost(self) -> bool:
        """Whether a cost is compared with the budget, and not a tilt with the margin."""
        return isinstance(self.effect, Change | Movement)


@dataclass(frozen=True, eq=False, kw_only=True)
class Bench(
    Result, format="ranktilt-bench", version=1, noun="a bench", command="ranktilt mitigate"
):
    """The result of `bench`; immutable.

    Parameters
    ----------
    spec : mapping
        How the bench was made: options, collection, runs, number of tests that are corrected
        together, versions.
    candidates : tuple of Candidate
        The baseline, then all others by method and rising strength. The baseline comes alone if it
        was not shown to be tilted, because then nothing was fitted.
    measures : tuple of str
        Relevance measures; empty if nothing is judged.
    tilts : tuple of Effect
        Tilts of every candidate, pair of groups and question: Relative Δ of each measure, and
        questions about groups such as ``Share@10``. For each candidate and pair, the primary
        question comes first. It decides what is level.
    effectiveness : tuple of Effect
        Mean of every candidate and measure, from 0 to 1, with its interval. An effect has fields
        for two groups; here both have the same value: ``all`` for a mean over all documents, or the
        reference's name for a mean on its documents alone.
    changes : tuple of Change
        How every tilt and effectiveness differs from the baseline's, over the same queries: in
        points, or in the unit of the question. The p of all changes are corrected together.
        Questions about twins (documents of the same origin in two groups) have no change.
    notes : tuple of Note
        Notes of the audits from which the bench was made.
    selected : tuple of str
        Names of the candidates that were selected on other queries, one for each method. If there
        are any, only these may be chosen.
    refused : tuple of RefusedMethod
        Methods that could not be tried, each with the reason.
    baseline_effects : tuple of Effect
        The baseline's tilts on the primary question, one for each pair of groups. `mitigate` takes
        them over all queries, not only those that test candidates. They decide whether there is
        anything to level.
    fits : MethodFits
        What methods learned from other queries.
    movements : tuple of Movement
        How far each candidate moves the lists of the baseline. It is the cost if nothing is judged.
    remedies : tuple of Remedy
        How to build each selected candidate into an engine.
    seen_queries : tuple of str
        Queries that were drawn to fit methods on or to choose strengths by.
    """

    spec: Mapping[str, Any]
    candidates: tuple[Candidate, ...]
    measures: tuple[str, ...]
    tilts: tuple[Effect, ...]
    effectiveness: tuple[Effect, ...]
    changes: tuple[Change, ...]
    notes: tuple[Coded[Note], ...]
    baseline_effects: tuple[Effect, ...]
    selected: tuple[str, ...] = ()
    refused: tuple[RefusedMethod, ...] = ()
    fits: MethodFits = MethodFits()
    movements: tuple[Movement, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    seen_queries: tuple[str, ...] = ()

    @property
    def baseline(self) -> Candidate:
        """The ranker without any correction."""
        return self.candidates[0]

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of the methods, in order."""
        return tuple(dict.fromkeys(candidate.method for candidate in self.candidates[1:]))

    def strengths(self, method: str) -> tuple[Candidate, ...]:
        """Return the baseline and one method's candidates by rising strength."""
        of_method = [candidate for candidate in self.candidates if candidate.method == method]
        return (self.baseline, *of_method)

    @property
    def margin(self) -> float:
        """Largest tilt that counts as level, in percent."""
        return float(self.spec["margin"])

    @property
    def budget(self) -> float:
        """Largest cost that a candidate may have, in points.

        The cost is the effectiveness that a candidate loses. Without judgments, it is the
        percentage of the first ten documents that the candidate replaces.
        """
        return float(self.spec.get("budget", default_budget(is_judged=self.is_judged)))

    @property
    def is_judged(self) -> bool:
        """Whether documents are judged, so that the cost is a loss of effectiveness."""
        return bool(self.document_sets)

    @property
    def effectiveness_measure(self) -> str:
        """The measure on which the cost is judged."""
        return str(self.spec.get("effectiveness", self.primary))

    @property
    def primary(self) -> str:
        """The question that decides whether a candidate is level: a measure or another estimand."""
        return self.questions[0]

    @cached_property
    def questions(self) -> tuple[str, ...]:
        """Measures whose Relative Δ was taken, and other estimands; the primary one first."""
        return tuple(dict.fromkeys(tilt.measure for tilt in self.tilts))

    @property
    def eligible(self) -> tuple[Candidate, ...]:
        """Candidates that may be chosen: all, or those that were selected on other queries."""
        others = self.candidates[1:]
        if not self.selected:
            return others
        return tuple(candidate for candidate in others if candidate.name in self.selected)

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """Pairs of groups that were compared."""
        return tuple(dict.fromkeys((tilt.a, tilt.b) for tilt in self.tilts))

    @property
    def document_sets(self) -> tuple[str, ...]:
        """Names of the sets of documents on which effectiveness was measured.

        ``all``, and the reference's name if its documents were ranked alone. Empty if nothing is
        judged.
        """
        return tuple(dict.fromkeys(effect.a for effect in self.effectiveness))

    def tilt(self, name: str, pair: Pair, measure: str | None = None) -> Effect:
        """Return a candidate's tilt for a pair of groups, by default on the primary question."""
        return self._effect(name, *pair, measure or self.primary)

    def mean(self, name: str, documents: str = ALL, measure: str | None = None) -> Effect:
        """Return the effectiveness of a candidate, by default on `effectiveness_measure`."""
        return self._effect(name, documents, documents, measure or self.effectiveness_measure)

    def change(self, name: str, pair: Pair, measure: str | None = None) -> Change | None:
        """Return how a candidate changed a tilt or an effectiveness.

        For effectiveness, `pair` is the name of a set of documents twice (`document_sets`). None
        for the baseline, and for questions about twins, which have no change.
        """
        is_effectiveness = pair[0] == pair[1]
        default = self.effectiveness_measure if is_effectiveness else self.primary
        return self._changes.get((name, *pair, measure or default))

    def costs(self, name: str) -> list[Change]:
        """Return how a candidate changed the effectiveness, on each set of documents.

        Empty for the baseline.
        """
        changes = [self.change(name, (documents, documents)) for documents in self.document_sets]
        return [change for change in changes if change is not None]

    def movement(self, name: str) -> Movement | None:
        """Return how far a candidate moves the lists of the baseline; None for the baseline."""
        return next((moved for moved in self.movements if moved.candidate == name), None)

    def remedy(self, name: str) -> Remedy | None:
        """Return how to build a candidate into an engine; None if it was not selected."""
        return next((remedy for remedy in self.remedies if remedy.candidate == name), None)

    def loss(self, name: str) -> float:
        """Return a candidate's cost, in points; 0 for the baseline.

        It is the largest loss of effectiveness over all sets of documents. If nothing is judged, it
        is the percentage of replaced documents.
        """
        moved = self.movement(name)
        if not self.is_judged and moved is not None:
            return moved.replaced.value
        return max((-change.value for change in self.costs(name)), default=0.0)

    def distance(self, name: str) -> float:
        """Return how far a candidate is from favouring no side, in percent.

        It is the largest distance of a tilt from the neutral value, over all pairs of groups;
        infinite if a tilt is undefined.
        """
        tilts = [self.tilt(name, pair) for pair in self.pairs]
        distances = [percent_factor(tilt) * abs(tilt.value - tilt.neutral) for tilt in tilts]
        return math.inf if any(map(math.isnan, distances)) else max(distances)

    def _effect(self, *key: str) -> Effect:
        """Return the effect with this run, groups and measure."""
        if key not in self._effects:
            known = map(", ".join, self._effects)
            raise unknown_name("candidate, groups and measure", ", ".join(key), known)
        return self._effects[key]

    @cached_property
    def _effects(self) -> dict[tuple[str, ...], Effect]:
        """Tilts and effectiveness by run, groups and measure."""
        effects = (*self.tilts, *self.effectiveness)
        return {(effect.run, effect.a, effect.b, effect.measure): effect for effect in effects}

    @cached_property
    def _changes(self) -> dict[tuple[str, ...], Change]:
        """Changes by run, groups and measure."""
        return {(change.run, change.a, change.b, change.measure): change for change in self.changes}

    def choose(self, *, margin: float | None = None, budget: float | None = None) -> Choice:
        """Decide which candidates are level within the budget, and which of them is the smallest.

        `margin` is a half-width and `budget` the largest cost, both in points; the bench's by
        default.
        """
        choice = Choice(
            bench=self,
            margin=self.margin if margin is None else margin,
            budget=self.budget if budget is None else budget,
        )
        check_limits(choice.margin, choice.budget)
        return choice

    def derived(self) -> dict[str, Any]:
        """Return the choice, for readers of the JSON file: it can be computed from the rest."""
        choice = self.choose()
        primary_tilts = [tilt for tilt in self.tilts if tilt.measure == self.primary]
        effects = [
            effect_row(effect, self.margin) for effect in (*self.baseline_effects, *primary_tilts)
        ]
        return {
            "outcome": choice.outcome,
            "chosen": choice.chosen.name if choice.chosen else None,
            "applied": choice.applied.name if choice.applied else None,
            "effects": effects,
        }


def default_budget(*, is_judged: bool) -> float:
    """Return the default budget, which depends on whether documents are judged."""
    return BUDGET if is_judged else MOVEMENT_BUDGET


def check_limits(margin: Margin, budget: float) -> None:
    """Refuse a margin or a budget out of range."""
    if isinstance(margin, str):
        raise UserError(f"level is judged in percent: expected a margin in points, got {margin}")
    if not is_number(margin) or not 0 <= margin < LARGEST_DELTA:
        raise UserError(
            f"expected a margin of at least 0 and below {LARGEST_DELTA:g} points, "
            f"got {printed(margin)}"
        )
    if not is_number(budget) or not 0 <= budget < 100:
        raise UserError(
            f"expected a budget of at least 0 and below 100 points, such as {BUDGET:g}, "
            f"got {printed(budget)}"
        )


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The candidates of a bench that are level within a budget, and the one to apply.

    Each candidate has an outcome. It compares the intervals of its tilts on the primary question
    with the margin, and the intervals of its costs with the budget:

    - ``level``: all intervals are within their limits.
    - ``within``: all intervals are within their limits, but a tilt is shown to favour a side.
    - ``tilted``: an interval is completely beyond its limit.
    - ``inconclusive``: none of these; the queries are too few to decide.

    No candidate is chosen if the baseline is not shown to be tilted.
    """

    bench: Bench
    """The bench."""
    margin: float
    """Largest tilt that counts as level, in percent."""
    budget: float
    """Largest cost that a candidate may have, in points: the lost effectiveness, or without
    judgments the percentage of replaced documents."""

    @cached_property
    def checks(self) -> dict[str, tuple[CandidateCheck, ...]]:
        """Checks of each candidate by its name: of its tilts, then of its costs."""
        return {
            candidate.name: (*self._tilt_checks(candidate), *self._cost_checks(candidate))
            for candidate in self.bench.candidates
        }

    def _tilt_checks(self, candidate: Candidate) -> list[CandidateCheck]:
        """Compare the tilts of a candidate on the primary question with the margin."""
        # The baseline is judged over all queries, and not only over those that test candidates.
        tilts = list(self.bench.baseline_effects)
        if candidate != self.bench.baseline:
            tilts = [self.bench.tilt(candidate.name, pair) for pair in self.bench.pairs]
        return [
            CandidateCheck(effect=tilt, outcome=check_tilt(tilt, self.margin).outcome)
            for tilt in tilts
        ]

    def _cost_checks(self, candidate: Candidate) -> list[CandidateCheck]:
        """Compare the costs of a candidate with the budget."""
        moved = self.bench.movement(candidate.name)
        if moved is not None and not self.bench.is_judged:
            return [CandidateCheck(effect=moved, outcome=moved.outcome(self.budget))]
        return [
            CandidateCheck(effect=change, outcome=loss_outcome(change, self.budget))
            for change in self.bench.costs(candidate.name)
        ]

    def outcome_of(self, name: str) -> Outcome:
        """Return the outcome of a candidate: the worst outcome of its checks."""
        return worst(check.outcome for check in self.checks[name])

    @cached_property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The verdicts that an audit would give on the baseline, one for each pair of groups."""
        noun = "text" if self.bench.spec["by"] == "source" else "documents"
        return tuple(
            verdict_for(self.bench.primary, [effect], self.margin, noun=noun)
            for effect in self.bench.baseline_effects
        )

    @property
    def is_tilted(self) -> bool:
        """Whether there is something to level: the baseline favours a side, and not only slightly.

        A tilt is slight if its whole interval is within the margin.
        """
        return any(verdict.kind == "favours" and not verdict.slight for verdict in self.verdicts)

    @property
    def chosen(self) -> Candidate | None:
        """The weakest candidate within the margin and the budget; None without one.

        If several methods have such a candidate, it is the one that costs least.
        """
        if not self.is_tilted:
            return None
        weakest_by_method = dict[str, Candidate]()
        # By falling strength, so that the last candidate of each method, which stays, is weakest.
        for candidate in reversed(self.bench.eligible):
            if self.outcome_of(candidate.name) in ("level", "within"):
                weakest_by_method[candidate.method] = candidate
        return min(
            weakest_by_method.values(),
            key=lambda candidate: self.bench.loss(candidate.name),
            default=None,
        )

    @cached_property
    def outcome(self) -> MitigationOutcome:
        """Conclusion of the bench about the ranker."""
        if not self.is_tilted:
            is_shown = self.outcome_of(self.bench.baseline.name) in ("level", "within")
            return "level" if is_shown else "inconclusive"
        if self.chosen is not None:
            return "mitigated"
        outcomes = [self.outcome_of(candidate.name) for candidate in self.bench.eligible]
        if "inconclusive" in outcomes:
            return "inconclusive"
        return "cannot be mitigated within the budget"

    @property
    def nearest(self) -> Candidate | None:
        """The candidate with the best outcome, if none is chosen; else None.

        Among several with this outcome it is the one nearest to level. None if there is nothing to
        level.
        """
        if self.chosen is not None or not self.is_tilted:
            return None
        return self._nearest_to_level

    @property
    def _nearest_to_level(self) -> Candidate | None:
        """The eligible candidate with the best outcome, and of several the one nearest to level."""
        ranks = {
            candidate: (
                _BEST.index(self.outcome_of(candidate.name)),
                self.bench.distance(candidate.name),
            )
            for candidate in self.bench.eligible
        }
        return min(ranks, key=ranks.__getitem__, default=None)

    @property
    def is_forced(self) -> bool:
        """Whether a candidate is applied although none is chosen: `MitigationOptions.always`."""
        return bool(self.bench.spec.get("mitigation", {}).get("always", False))

    @property
    def applied(self) -> Candidate | None:
        """The candidate that is used when a run is corrected or a ranker is saved.

        It is the chosen one. If none is chosen, it is the one nearest to level where that is forced
        (`is_forced`), and None otherwise.
        """
        if self.chosen is not None or not self.is_forced:
            return self.chosen
        return self._nearest_to_level

    def is_overcorrected(self, name: str) -> bool:
        """Return whether a candidate corrects too much.

        This is so if one of its tilts is shown to favour the group that the baseline disfavours,
        and its interval is not within the margin.
        """
        for pair in self.bench.pairs:
            before = self.bench.tilt(self.bench.baseline.name, pair)
            after = self.bench.tilt(name, pair)
            # The product is negative if the tilts are on different sides of the neutral value.
            # `leans` says that the whole interval is on one side of it.
            is_reversed = (before.value - before.neutral) * (after.value - after.neutral) < 0
            if is_reversed and after.leans and after.extent(self.margin) != "within":
                return True
        return False
