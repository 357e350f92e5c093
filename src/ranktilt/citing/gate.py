"""A gate on an audit of citations: the primary question against a limit.

A gate passes or fails an audit, for CI. The audit compares how often answers cite pages of two
groups; its primary question decides. *Neutral* is the value that favours neither group. Distances
from it are in points of a share, or in percent of a ratio: 1.1 times as often is 10 %.
"""

from __future__ import annotations

import math

from ranktilt.auditing.gate.options import check_policy
from ranktilt.auditing.gate.result import Gate, GateRow, LimitCheck, Outcome
from ranktilt.citing.effect import CitationEffect
from ranktilt.citing.result import CitationAudit
from ranktilt.data.notes.base import warnings_of
from ranktilt.errors import UserError
from ranktilt.field_checks import is_number, printed
from ranktilt.measures.margin import DEFAULT_MARGIN, Margin


def gate_citations(
    audit: CitationAudit, *, max_tilt: Margin | None = None, inconclusive: str = "fail"
) -> Gate:
    """Pass or fail an audit of citations by a limit, with the outcomes and exit codes of `gate`.

    Parameters
    ----------
    audit : CitationAudit
        An audit whose primary question has a neutral value.
    max_tilt : float, optional
        Largest distance from neutral, either way: percent more or less often for a citation rate,
        points for a share (default: 5).
    inconclusive : {"fail", "pass"}, optional
        Exit code of an inconclusive outcome: 3 or 0.

    Returns
    -------
    Gate
        One row for each pair of groups.

    Raises
    ------
    UserError
        If the limit is negative, or it is not known what could have been cited.
    """
    limit = DEFAULT_MARGIN if max_tilt is None else max_tilt
    if isinstance(limit, str):
        raise UserError(f"expected percent of a rate, or points of a share; got {limit}")
    if not is_number(limit) or limit < 0:
        raise UserError(f"expected a limit of at least 0, got {printed(limit)}")
    check_policy(inconclusive)
    if any(math.isnan(effect.neutral) for effect in audit.primary):
        raise UserError(
            "a share of citations alone favours nobody, so that no limit can be set; audit with "
            "what was retrieved (--run), or answers that list what they consulted"
        )
    rows = tuple(_row(effect, limit) for effect in audit.primary)
    spec = {
        "max_tilt": limit,
        "baseline": False,
        "min_effect": 0.0,
        "inconclusive": inconclusive,
        "audit": audit.spec.get("command"),
    }
    if audit.loaded_from:
        spec["file"] = audit.loaded_from
    return Gate(spec=spec, rows=rows, notes=warnings_of(audit.notes))


def _row(effect: CitationEffect, limit: float) -> GateRow:
    """Return the check of one effect as a row of a gate, whose run is called ``answers``."""
    return GateRow(
        run="answers",
        measure=effect.question,
        a=effect.a,
        b=effect.b,
        queries=effect.questions,
        checks=(check_citations(effect, limit),),
    )


def check_citations(effect: CitationEffect, limit: float) -> LimitCheck:
    """Check an effect against a limit, in percent of a ratio or points of a share.

    The outcome is *tilted* if the whole interval lies beyond the limit. If the whole interval lies
    within it, the outcome is *level*, or *within* if a group is favoured all the same. All else is
    *inconclusive*.
    """
    low, high = (_from_neutral(effect, end) for end in (effect.low, effect.high))
    floor, ceiling = (_from_neutral(effect, end) for end in effect.level_range(limit))
    outcome: Outcome = "inconclusive"
    verdict = effect.verdict(limit)
    if effect.is_testable and floor <= low and high <= ceiling:
        outcome = "level" if verdict == "level" else "within"
    elif verdict in ("a", "b") and (low > ceiling or high < floor):
        outcome = "tilted"
    return LimitCheck(
        name="citations",
        outcome=outcome,
        value=_from_neutral(effect, effect.value),
        low=low,
        high=high,
        floor=floor,
        ceiling=ceiling,
        asked_limit=limit,
        favours=effect.side(verdict),
    )


def _from_neutral(effect: CitationEffect, value: float) -> float:
    """Return how far a value lies from neutral: points of a share, percent of a ratio."""
    if effect.scale == "share":
        return value - effect.neutral
    return 100 * (value / effect.neutral - 1)
