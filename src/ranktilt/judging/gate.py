"""A gate on judges: passes or fails an audit of judges by limits, for CI.

A *judge* is whoever gives grades of relevance. Limits may be set on its *grade gap*, which is how
much higher it grades one side of *twins*, two versions of one text; on how well it orders systems,
by Kendall's τ-b with the human order; and on how far it has changed since a *baseline*, an earlier
audit of it.

A check is decided by an interval: *level* if it lies within the limits, *tilted* if it lies beyond
one, else *inconclusive*. `ranktilt.auditing.gate.result` holds the checks and their rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from ranktilt.auditing.comparison.common_queries import MAX_LEFT_OUT
from ranktilt.auditing.comparison.options import ComparisonOptions
from ranktilt.auditing.gate.options import check_policy
from ranktilt.auditing.gate.result import (
    Gate,
    GateRow,
    LimitCheck,
    Outcome,
    check_tilt,
    effect_gate,
)
from ranktilt.data.notes.base import Note, warnings_of
from ranktilt.errors import UserError
from ranktilt.field_checks import is_number, printed
from ranktilt.judging.drift.result import DriftQuestion, JudgeChange, JudgeDrift
from ranktilt.judging.records import RankAgreement
from ranktilt.judging.result import JudgeAudit
from ranktilt.statistics.bootstrap import RESAMPLES

# Errors for a limit that the audit has no numbers for.
_NO_HUMANS = (
    "--max-loss needs human grades of pairs that both judges graded: audit both against the same "
    "--human FILE"
)
_NO_GRADES = "--max-shift needs grades: audit judges with --judge FILE"
_NO_SOURCES = (
    "the growth of a grade gap needs documents of two sources in both audits: audit with a "
    "collection (ranktilt judge DIR), or limit another change with --max-loss 5 or --max-shift .1"
)


@dataclass(frozen=True, kw_only=True)
class DriftLimits:
    """How far a judge may have changed since a baseline."""

    baseline: JudgeAudit | None = None
    """An earlier audit; None to check the new audit alone."""
    min_effect: float | None = None
    """Growth of the grade gap to accept, either way, in grades; None for 0, if it is checked."""
    max_loss: float | None = None
    """Loss of κ with humans to accept, in points: 5 are .05."""
    max_shift: float | None = None
    """Change of the mean grade to accept, either way, in grades."""
    max_left_out: float | None = None
    """Percentage of all queries that may be in only one of audit and baseline."""

    @property
    def checks_growth(self) -> bool:
        """Whether the growth of the grade gap is checked.

        With a baseline it is checked if the user limits it, or limits nothing else.
        """
        has_other_limit = self.max_loss is not None or self.max_shift is not None
        return self.baseline is not None and (self.min_effect is not None or not has_other_limit)

    @property
    def growth_limit(self) -> float:
        """Growth of the grade gap to accept, either way, in grades."""
        return 0.0 if self.min_effect is None else self.min_effect

    @property
    def spec(self) -> dict[str, Any]:
        """The limits as the spec of a gate holds them; None for one that is not checked."""
        return {
            "max_growth": self.growth_limit if self.checks_growth else None,
            "max_loss": self.max_loss,
            "max_shift": self.max_shift,
        }

    def check(self) -> None:
        """Refuse limits that are out of range, or that need a baseline where there is none."""
        is_option_used = {
            "--min-effect": self.min_effect is not None,
            "--max-loss": self.max_loss is not None,
            "--max-shift": self.max_shift is not None,
            "--max-left-out": self.max_left_out is not None,
        }
        for option, is_used in is_option_used.items():
            if is_used and self.baseline is None:
                raise UserError(f"{option} needs a baseline: --baseline OLD.json")
        _require_grades("--min-effect", self.growth_limit)
        _require_grades("--max-shift", self.max_shift)
        loss = self.max_loss
        if loss is not None and (not is_number(loss) or not 0 <= loss < 100):
            raise UserError(f"--max-loss: expected points of κ from 0 to 100, got {printed(loss)}")


def gate_judges(
    audit: JudgeAudit,
    *,
    max_gap: float | None = None,
    min_tau: float | None = None,
    drift: DriftLimits = DriftLimits(),
    inconclusive: str = "fail",
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Gate:
    """Pass or fail an audit of judges by limits, with the outcomes and exit codes of `gate`.

    Parameters
    ----------
    audit : JudgeAudit
        The new audit. It needs twins for `max_gap`, and runs for `min_tau`.
    max_gap : float, optional
        Largest grade gap between twins, either way, in grades; judged as a tilt is.
    min_tau : float, optional
        Smallest Kendall's τ-b of systems, −1 to 1: *level* if the whole interval lies at or above
        it, *tilted* if it lies below, else *inconclusive*.
    drift : DriftLimits, optional
        An earlier audit, and how far the judge may have changed since, on the pairs that both
        graded. A limit holds if the whole interval keeps to it, and is broken if the whole interval
        lies beyond it.
    inconclusive : {"fail", "pass"}, optional
        Exit code of an inconclusive outcome: 3 or 0.
    resamples, seed : int, optional
        Bootstrap resamples and random seed for changes since the baseline; other intervals come
        from the audit.

    Returns
    -------
    Gate
        One row per judge and limit.

    Raises
    ------
    UserError
        If no limit is given, one is out of range, or the audit lacks what a limit asks for.
    """
    drift.check()
    if max_gap is None and min_tau is None and drift.baseline is None:
        raise UserError(
            "an audit of judges needs a limit: --max-gap .1 (grades), --min-tau .8, or "
            "--baseline OLD.json"
        )
    _require_range(max_gap, min_tau)
    check_policy(inconclusive)
    limit = None if max_gap is None else f"{max_gap:g} grades"
    rows, notes = list[GateRow](), list[Note](warnings_of(audit.notes))
    if limit is not None:
        if not audit.main_gaps:
            raise UserError("--max-gap needs twins: audit with a collection (ranktilt judge DIR)")
        rows += [effect_gate(effect, check_tilt(effect, limit)) for effect in audit.main_gaps]
    if min_tau is not None:
        rows += _tau_rows(audit, min_tau)
    if drift.baseline is not None:
        options = ComparisonOptions(
            resamples=resamples,
            seed=seed,
            correction="holm",
            max_left_out=MAX_LEFT_OUT if drift.max_left_out is None else drift.max_left_out,
        )
        options.check()
        compared = audit.compared_with(drift.baseline, options)
        notes += compared.notes
        rows += _drift_rows(compared, drift)
    spec = {
        "max_tilt": limit,
        "min_tau": min_tau,
        "baseline": False,
        "min_effect": 0.0,
        **drift.spec,
        "inconclusive": inconclusive,
        "audit": audit.spec.get("command"),
        **({"file": audit.loaded_from} if audit.loaded_from else {}),
    }
    return Gate(spec=spec, rows=tuple(rows), notes=tuple(dict.fromkeys(notes)))


def _require_range(max_gap: float | None, min_tau: float | None) -> None:
    """Refuse limits that no audit, or every audit, keeps to."""
    _require_grades("--max-gap", max_gap)
    if min_tau is not None and (not is_number(min_tau) or not -1 <= min_tau <= 1):
        raise UserError(f"--min-tau: expected τ-b from -1 to 1, got {printed(min_tau)}")


def _require_grades(option: str, limit: float | None) -> None:
    """Refuse a limit of an option that is no number of grades; None for a limit that is not set."""
    if limit is not None and (not is_number(limit) or limit < 0):
        raise UserError(
            f"{option}: expected a number of grades of at least 0, got {printed(limit)}"
        )


def _tau_rows(audit: JudgeAudit, min_tau: float) -> Iterator[GateRow]:
    """Yield a row for each judge and measure: whether it orders systems as humans do."""
    if not audit.rank_agreements:
        raise UserError("--min-tau needs systems: audit with --runs DIR")
    for agreement in audit.rank_agreements:
        yield GateRow(
            run=agreement.judge,
            measure=agreement.measure,
            a="systems",  # the row is not about two groups of documents
            b="systems",
            queries=agreement.queries,
            checks=(_check_tau(agreement, min_tau),),
        )


def _drift_rows(compared: JudgeDrift, limits: DriftLimits) -> Iterator[GateRow]:
    """Yield a row for each judge and limit on its changes since the baseline."""
    if limits.max_loss is not None:
        yield from _loss_rows(compared, limits.max_loss)
    if limits.max_shift is not None:
        for change in _changes_on(compared, "grade", _NO_GRADES):
            yield _drift_row(change, _check_shift(change, limits.max_shift))
    if limits.checks_growth:
        for change in _changes_on(compared, "tilt", _NO_SOURCES):
            yield _drift_row(change, _check_growth(change, limits.growth_limit))


def _loss_rows(compared: JudgeDrift, max_loss: float) -> Iterator[GateRow]:
    """Yield a row for each judge: whether it agrees less with humans than before.

    Agreement is κ of grades. Audits of published values have no grades; there it is τ-b of systems.
    """
    losses = [change for change in compared.changes if change.question == "agreement"]
    losses = losses or _changes_on(compared, "order", _NO_HUMANS)
    for change in losses:
        yield _drift_row(change, _check_loss(change, max_loss))


def _changes_on(compared: JudgeDrift, question: DriftQuestion, message: str) -> list[JudgeChange]:
    """Return the changes that answer a question; `UserError` with `message` if there is none."""
    changes = [change for change in compared.changes if change.question == question]
    if not changes:
        raise UserError(message)
    return changes


def _drift_row(change: JudgeChange, check: LimitCheck) -> GateRow:
    """Return the row of one change, with the names of its measure and of two groups."""
    words_by_question = {
        "agreement": ("κ", "humans", "humans"),
        "grade": ("mean grade", change.subject or "all", change.subject or "all"),
        "tilt": ("grade gap", change.a, change.b),
        "order": (change.subject, "systems", "systems"),
    }
    measure, group_a, group_b = words_by_question[change.question]
    return GateRow(
        run=change.judge,
        measure=measure,
        a=group_a,
        b=group_b,
        queries=change.queries,
        checks=(check,),
    )


# ---- checks --------------------------------------------------------------------------------------


def _check_tau(row: RankAgreement, least: float) -> LimitCheck:
    """Check that a judge orders systems as humans do, with a τ-b of at least `least`."""
    value, low, high = row.tau
    return LimitCheck(
        name="tau",
        outcome=_outcome(low, high, least, math.inf),
        value=value,
        low=low,
        high=high,
        floor=least,
        ceiling=math.inf,
    )


def _check_loss(change: JudgeChange, max_loss: float) -> LimitCheck:
    """Check that κ with humans has not fallen by more than `max_loss` points; 5 are .05."""
    return _change_check(
        change, "agreement", floor=-max_loss / 100, ceiling=math.inf, limit=max_loss
    )


def _check_shift(change: JudgeChange, max_shift: float) -> LimitCheck:
    """Check that the mean grade has not moved by more than `max_shift` grades, either way."""
    return _change_check(change, "shift", floor=-max_shift, ceiling=max_shift, limit=max_shift)


def _check_growth(change: JudgeChange, max_growth: float) -> LimitCheck:
    """Check that the grade gap is at most `max_growth` grades further from 0 than before."""
    is_testable = change.is_testable and not math.isnan(change.growth_low)
    low, high = change.growth_low, change.growth_high
    outcome = _outcome(low, high, -math.inf, max_growth) if is_testable else "inconclusive"
    return LimitCheck(
        name="gap growth",
        outcome=outcome,
        value=change.growth,
        low=low,
        high=high,
        floor=-math.inf,
        ceiling=max_growth,
        queries=change.queries,
        asked_limit=max_growth,
    )


def _change_check(
    change: JudgeChange,
    name: Literal["agreement", "shift"],
    *,
    floor: float,
    ceiling: float,
    limit: float,
) -> LimitCheck:
    """Check a change against its limits.

    The limits are `floor` and `ceiling` in the unit of the change, and `limit` as the user wrote
    it.
    """
    outcome: Outcome = "inconclusive"
    if change.is_testable:
        outcome = _outcome(change.low, change.high, floor, ceiling)
        # A shift may be significant and yet within the limits, which is not called level.
        if outcome == "level" and name == "shift" and change.kind == "changed":
            outcome = "within"
    return LimitCheck(
        name=name,
        outcome=outcome,
        value=change.value,
        low=change.low,
        high=change.high,
        floor=floor,
        ceiling=ceiling,
        queries=change.queries,
        asked_limit=limit,
    )


def _outcome(low: float, high: float, floor: float, ceiling: float) -> Outcome:
    """Decide by the interval from `low` to `high`: within the limits, beyond one, or neither."""
    if floor <= low and high <= ceiling:
        return "level"
    return "tilted" if high < floor or low > ceiling else "inconclusive"
