"""The result of a gate: a row of checks against limits for each answer, and the worst outcome.

A *tilt* is the answer to a question about two groups; its *neutral value* favours neither. Its
*growth* is how much farther from its neutral value it is than in the *baseline*, an earlier audit.
Gates of judges and of citations fill the same records, from their own rooms: so a `LimitCheck` can
have names that no audit of rankings uses.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ranktilt.auditing.effects import Change, Effect
from ranktilt.data.artifact import Coded, Result
from ranktilt.data.notes.base import Note
from ranktilt.measures.margin import Margin, half_width

Outcome = Literal["level", "within", "tilted", "inconclusive"]
"""Outcome of a check: ``within`` is a tilt that is shown, but smaller than the limit."""
EXIT: dict[Outcome, int] = {"level": 0, "within": 0, "tilted": 1, "inconclusive": 3}
"""Exit code of the command line by outcome; 2 is that of wrong usage."""
LARGEST_DELTA = 200.0
"""Largest absolute value of Relative Δ, in percent: no interval lies beyond such a limit."""
_WORST_FIRST: tuple[Outcome, ...] = ("tilted", "inconclusive", "within", "level")
"""Outcomes, the worst first."""


@dataclass(frozen=True, kw_only=True)
class LimitCheck:
    """One check against a limit: whether a tilt is small, or has not grown, for example.

    A growth, loss, agreement or shift is measured since the baseline.
    """

    name: Literal["tilt", "growth", "loss", "tau", "citations", "agreement", "shift", "gap growth"]
    """What is checked against the limit."""
    outcome: Outcome
    """Outcome; ``within`` is a tilt that is shown, but smaller than the limit."""
    value: float
    """Value that was checked. What it is depends on `name`:

    - ``tilt``: the answer, in points or its own unit
    - ``growth``: how much farther from its neutral value the tilt is than in the baseline, in the
      same unit
    - ``loss``: the change of effectiveness, in points
    - ``tau``: rank correlation τ-b of two rankings
    - ``citations``: how far a share of citations is from its neutral value, in points, or a ratio
      in percent
    - ``agreement``: for judges, the change of κ or τ-b
    - ``shift``: for judges, the change of the mean grade
    - ``gap growth``: for judges, how much farther from 0 the gap between two groups' grades is, in
      grades
    """
    low: float
    """Lower end of the 95 % interval of `value`."""
    high: float
    """Upper end of the 95 % interval of `value`."""
    floor: float
    """Smallest allowed value; −inf for ``growth`` and ``gap growth``."""
    ceiling: float
    """Largest allowed value; inf for ``loss``, ``tau`` and ``agreement``."""
    queries: int | None = None
    """Number of queries behind the value; None if it is that of the row, `GateRow.queries`."""
    asked_limit: Margin = 0.0
    """Largest tilt (to either side), largest growth, or largest loss that the caller allows."""
    checked_tilt: Effect | None = None
    """The answer that was checked."""
    checked_change: Change | None = None
    """The change since the baseline that was checked."""
    favours: str = ""
    """Group that a tilt is shown to favour, whatever the limit; empty for none."""
    is_on_common_queries: bool = False
    """Whether the change leaves out queries that only one of the audits holds."""


@dataclass(frozen=True, kw_only=True)
class GateRow:
    """Checks of one run, measure and pair of groups."""

    run: str
    """Name of the run."""
    measure: str
    """Notation of the question."""
    a: str
    """The first group."""
    b: str
    """The second group."""
    queries: int
    """Number of queries that the answer rests on."""
    checks: tuple[LimitCheck, ...]
    """Checks against limits."""

    @property
    def outcome(self) -> Outcome:
        """Worst outcome of the row's checks."""
        return worst(check.outcome for check in self.checks)

    @property
    def deciding_checks(self) -> tuple[LimitCheck, ...]:
        """The checks that gave the outcome."""
        return tuple(check for check in self.checks if check.outcome == self.outcome)

    @property
    def groups(self) -> str:
        """Names of both groups; one name if effectiveness is judged over all documents."""
        return self.a if self.a == self.b else f"{self.a} | {self.b}"

    def derived(self) -> dict[str, Any]:
        """Return the outcome, for the file."""
        return {"outcome": self.outcome}


@dataclass(frozen=True, kw_only=True, eq=False)
class Gate(
    Result, format="ranktilt-gate", version=1, noun="a gate's report", command="ranktilt gate"
):
    """The result of `gate`."""

    spec: Mapping[str, Any]
    """Options of the gate, and the command behind the audit."""
    rows: tuple[GateRow, ...]
    """Rows, one for each run, measure and pair of groups."""
    notes: tuple[Coded[Note], ...]
    """Notes for the reader."""

    @property
    def outcome(self) -> Outcome:
        """Worst outcome of all rows."""
        return worst(row.outcome for row in self.rows)

    @property
    def exit_code(self) -> int:
        """Exit code of the command line.

        0 for level or within the limit, 1 for tilted, 3 for inconclusive, or 0 if that passes.
        """
        code = EXIT[self.outcome]
        return 0 if code == EXIT["inconclusive"] and self.passes_inconclusive else code

    @property
    def passes_inconclusive(self) -> bool:
        """Whether an inconclusive outcome lets a build continue."""
        return bool(self.spec["inconclusive"] == "pass")

    def derived(self) -> dict[str, Any]:
        """Return the outcome and the exit code, for the file."""
        return {"outcome": self.outcome, "exit_code": self.exit_code}


def worst(outcomes: Iterable[Outcome]) -> Outcome:
    """Return the worst outcome: tilted, then inconclusive, then within the limit, then level."""
    return min(outcomes, key=_WORST_FIRST.index)


def worst_first(rows: Iterable[GateRow]) -> list[GateRow]:
    """Sort rows by their outcome, the worst first; rows of one outcome stay in their order."""
    return sorted(rows, key=lambda row: _WORST_FIRST.index(row.outcome))


def effect_gate(effect: Effect, *checks: LimitCheck) -> GateRow:
    """Return the row of an effect, with the checks of it."""
    return GateRow(
        run=effect.run,
        measure=effect.measure,
        a=effect.a,
        b=effect.b,
        queries=effect.queries,
        checks=checks,
    )


# ---- checks against limits ----------------------------------------------------------------------


def check_tilt(tilt: Effect, limit: Margin) -> LimitCheck:
    """Check that a tilt is within ±`limit` of its neutral value, by the same rule as a verdict."""
    half, scale = half_width(tilt.estimand, limit), _printed_factor(tilt)
    return LimitCheck(
        name="tilt",
        outcome=_tilt_outcome(tilt, limit),
        value=scale * tilt.value,
        low=scale * tilt.low,
        high=scale * tilt.high,
        floor=scale * (tilt.neutral - half),
        ceiling=scale * (tilt.neutral + half),
        asked_limit=limit,
        favours=tilt.side(tilt.favours),
        checked_tilt=tilt,
    )


def _tilt_outcome(tilt: Effect, limit: Margin) -> Outcome:
    """Return the outcome of a check of a tilt.

    ``level`` if the whole interval lies within the limit, or ``within`` if it also shows a favoured
    group; ``tilted`` if it shows one and lies beyond the limit; else ``inconclusive``.
    """
    is_defined = not math.isnan(tilt.value) and not math.isnan(tilt.neutral)
    if not is_defined or not tilt.has_interval or not tilt.testable:
        return "inconclusive"
    extent = tilt.extent(limit)
    if extent == "within" and tilt.can_be_level:
        return "within" if tilt.is_shown else "level"
    return "tilted" if extent == "beyond" and tilt.is_shown else "inconclusive"


def check_growth(
    change: Change, max_growth: float, *, is_on_common_queries: bool = False
) -> LimitCheck:
    """Check that a tilt has not grown by more than `max_growth`: ``|Δ new| − |Δ old|``.

    The limit is in points; 0 is a limit in any unit. `is_on_common_queries` says whether queries
    that only one audit holds were left out.
    """
    scale = _printed_factor(change)
    return LimitCheck(
        name="growth",
        outcome=_growth_outcome(change, max_growth),
        value=scale * change.growth,
        low=scale * change.growth_low,
        high=scale * change.growth_high,
        floor=-math.inf,
        ceiling=max_growth,
        queries=change.queries,
        asked_limit=max_growth,
        checked_change=change,
        is_on_common_queries=is_on_common_queries,
    )


def _growth_outcome(change: Change, max_growth: float) -> Outcome:
    """Return the outcome of a check of a growth, whose interval decides alone."""
    # The limit in the unit of `change`. 0 is not converted: that would give NaN for a unit other
    # than points.
    ceiling = half_width(change.estimand, max_growth) if max_growth else 0.0
    if math.isnan(change.growth) or not change.testable:
        return "inconclusive"
    if change.growth_low > ceiling:
        return "tilted"
    if change.growth_high <= ceiling and change.can_be_level:
        return "level"
    return "inconclusive"


def check_loss(
    change: Change, max_loss: float, *, is_on_common_queries: bool = False
) -> LimitCheck:
    """Check that effectiveness has not fallen by more than `max_loss` points.

    `is_on_common_queries` says whether queries that only one audit holds were left out.
    """
    return LimitCheck(
        name="loss",
        outcome=loss_outcome(change, max_loss),
        value=change.value,
        low=change.low,
        high=change.high,
        floor=-max_loss,
        ceiling=math.inf,
        queries=change.queries,
        asked_limit=max_loss,
        checked_change=change,
        is_on_common_queries=is_on_common_queries,
    )


def loss_outcome(change: Change, max_loss: float) -> Outcome:
    """Return the outcome of a check that effectiveness has fallen by at most `max_loss` points."""
    if math.isnan(change.value) or not (change.testable and change.has_interval):
        return "inconclusive"
    if change.low >= -max_loss:
        return "level"
    return "tilted" if change.high < -max_loss else "inconclusive"


def percent_factor(effect: Effect) -> float:
    """Return the factor from an effect's values to percent; NaN if it has another unit."""
    return 1 / effect.estimand.point


def _printed_factor(effect: Effect) -> float:
    """Return the factor from an effect's values to printed numbers, in percent or its own unit."""
    has_points = not math.isnan(effect.estimand.point)
    return percent_factor(effect) if has_points else effect.estimand.scale
