"""A gate on judges: level between twins, and systems in the human order."""

from __future__ import annotations

import math

from ranktilt.auditing.gate.limit_checks import check_tilt
from ranktilt.auditing.gate.options import POLICIES
from ranktilt.auditing.gate.result import Gate, GateRow, LimitCheck, Outcome, effect_gate
from ranktilt.data.notes.base import warnings_of
from ranktilt.errors import UserError, unknown
from ranktilt.judging.records import RankAgreement
from ranktilt.judging.result import JudgeAudit


def gate_judges(
    audit: JudgeAudit,
    *,
    max_gap: float | None = None,
    min_tau: float | None = None,
    inconclusive: str = "fail",
) -> Gate:
    """Judge an audit of judges by limits: exit codes and outcomes are those of `gate`.

    Parameters
    ----------
    audit : JudgeAudit
        With twins for `max_gap`, with runs for `min_tau`.
    max_gap : float, optional
        Largest grade gap between twins, either way, in grades; judged as a tilt is.
    min_tau : float, optional
        Smallest Kendall's τ-b of systems, −1 to 1: *level* if the whole interval lies at or above
        it, *tilted* if it lies below, else *inconclusive*.
    inconclusive : {"fail", "pass"}, optional
        Exit code of an inconclusive outcome: 3 or 0.

    Returns
    -------
    Gate
        One row per judge and limit.

    Raises
    ------
    UserError
        If no limit is given, or the audit lacks what a limit asks for.
    """
    if max_gap is None and min_tau is None:
        raise UserError("an audit of judges needs a limit: --max-gap .1 (grades), --min-tau .8")
    if inconclusive not in POLICIES:
        raise unknown("policy for inconclusive", inconclusive, POLICIES)
    rows = list[GateRow]()
    limit = None if max_gap is None else f"{max_gap:g} grades"
    if limit is not None:
        if not audit.main_gaps:
            raise UserError("--max-gap needs twins: audit with a collection (ranktilt judge DIR)")
        rows += [effect_gate(effect, check_tilt(effect, limit)) for effect in audit.main_gaps]
    if min_tau is not None:
        if not audit.rank_agreements:
            raise UserError("--min-tau needs systems: audit with --runs DIR")
        rows += [
            GateRow(
                run=agreement.judge,
                measure=agreement.measure,
                a="systems",
                b="systems",
                queries=agreement.queries,
                checks=(_check_tau(agreement, min_tau),),
            )
            for agreement in audit.rank_agreements
        ]
    spec = {
        "max_tilt": limit,
        "min_tau": min_tau,
        "baseline": False,
        "min_effect": 0.0,
        "inconclusive": inconclusive,
        "audit": audit.spec.get("command"),
        **({"file": audit.loaded_from} if audit.loaded_from else {}),
    }
    return Gate(spec=spec, rows=tuple(rows), notes=warnings_of(audit.notes))


def _check_tau(row: RankAgreement, least: float) -> LimitCheck:
    """Check that a judge orders systems as humans do, up to a least τ-b."""
    value, low, high = row.tau
    outcome: Outcome = "inconclusive"
    if low >= least:
        outcome = "level"
    elif high < least:
        outcome = "tilted"
    return LimitCheck(
        name="tau",
        outcome=outcome,
        value=value,
        low=low,
        high=high,
        floor=least,
        ceiling=math.inf,
    )
