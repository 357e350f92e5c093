"""A gate on an experiment with contexts: its primary effects against a limit.

A gate passes or fails a result, for CI. The experiment shows a language model documents that differ
in one thing, such as who wrote them. An effect says how often one of two is cited if only one is,
in percent; 50 % favours neither.
"""

from __future__ import annotations

from ranktilt.auditing.gate.options import check_policy
from ranktilt.auditing.gate.result import Gate, GateRow, LimitCheck, Outcome
from ranktilt.citing.experiment.result import ContextEffect, ContextExperiment
from ranktilt.data.notes.base import warnings_of
from ranktilt.errors import UserError
from ranktilt.field_checks import is_number, printed
from ranktilt.measures.margin import DEFAULT_MARGIN, Margin


def gate_experiment(
    experiment: ContextExperiment, *, max_tilt: Margin | None = None, inconclusive: str = "fail"
) -> Gate:
    """Pass or fail an experiment by a limit, with the outcomes and exit codes of `gate`.

    Parameters
    ----------
    experiment : ContextExperiment
        The experiment; its primary effects are checked.
    max_tilt : float, optional
        Largest distance from 50 %, either way, in points (default: 5).
    inconclusive : {"fail", "pass"}, optional
        Exit code of an inconclusive outcome: 3 or 0.

    Returns
    -------
    Gate
        One row for each primary effect.

    Raises
    ------
    UserError
        If the limit is negative, or in ranks.
    """
    limit = DEFAULT_MARGIN if max_tilt is None else max_tilt
    if isinstance(limit, str):
        raise UserError(f"expected points from 50 %; got {limit}")
    if not is_number(limit) or limit < 0:
        raise UserError(f"expected a limit of at least 0, got {printed(limit)}")
    check_policy(inconclusive)
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

    The outcome is *tilted* if the whole interval lies beyond the limit. If the whole interval lies
    within it, the outcome is *level*, or *within* if one of the two is favoured all the same. All
    else is *inconclusive*.
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
        favours=effect.side(verdict),
    )
