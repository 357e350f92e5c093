"""A gate on an experiment with contexts: what was varied, against a limit."""

from __future__ import annotations

from ranktilt.auditing.gate.options import POLICIES
from ranktilt.auditing.gate.result import Gate, GateRow, LimitCheck, Outcome
from ranktilt.citing.experiment.result import ContextEffect, ContextExperiment
from ranktilt.data.notes.base import warnings_of
from ranktilt.errors import UserError, unknown
from ranktilt.measures.margin import DEFAULT_MARGIN, Margin


def gate_experiment(
    experiment: ContextExperiment, *, max_tilt: Margin | None = None, inconclusive: str = "fail"
) -> Gate:
    """Judge an experiment by a limit: exit codes and outcomes are those of `gate`.

    Parameters
    ----------
    experiment : ContextExperiment
        The experiment; its primary questions are judged.
    max_tilt : float, optional
        Largest distance from 50 %, either way, in points (default: 5).
    inconclusive : {"fail", "pass"}, optional
        Exit code of an inconclusive outcome: 3 or 0.

    Returns
    -------
    Gate
        One row a primary question.

    Raises
    ------
    UserError
        If the limit is negative, or in ranks.
    """
    limit = DEFAULT_MARGIN if max_tilt is None else max_tilt
    if isinstance(limit, str):
        raise UserError(f"expected points from 50 %; got {limit}")
    if not limit >= 0:
        raise UserError(f"expected a limit of at least 0, got {limit}")
    if inconclusive not in POLICIES:
        raise unknown("policy for inconclusive", inconclusive, POLICIES)
    rows = [_row(experiment, effect, limit) for effect in experiment.primary]
    spec = {
        "max_tilt": limit,
        "baseline": False,
        "min_effect": 0.0,
        "inconclusive": inconclusive,
        "audit": experiment.spec.get("command"),
    }
    if experiment.loaded_from:
        spec["file"] = experiment.loaded_from
    return Gate(spec=spec, rows=tuple(rows), notes=warnings_of(experiment.notes))


def _row(experiment: ContextExperiment, effect: ContextEffect, limit: float) -> GateRow:
    """Return the check of one effect as a row of a gate, whose run is the model."""
    return GateRow(
        run=experiment.model,
        measure=effect.question,
        a=effect.a,
        b=effect.b,
        queries=effect.queries,
        checks=(check_effect(effect, limit),),
    )


def check_effect(effect: ContextEffect, limit: float) -> LimitCheck:
    """Check an effect against a limit, in points from 50 %.

    It is tilted where the whole interval lies beyond the limit, level where the whole interval lies
    within and the verdict says so, *within* where the limit holds although one is favoured, and
    inconclusive otherwise.
    """
    low, high = effect.low - effect.neutral, effect.high - effect.neutral
    verdict = effect.verdict(limit)
    outcome: Outcome = "inconclusive"
    if effect.is_testable and -limit <= low and high <= limit:
        outcome = "level" if verdict == "level" else "within"
    elif verdict in ("a", "b") and (low > limit or high < -limit):
        outcome = "tilted"
    return LimitCheck(
        name="citations",
        outcome=outcome,
        value=effect.value - effect.neutral,
        low=low,
        high=high,
        floor=-limit,
        ceiling=limit,
        asked_limit=limit,
    )
