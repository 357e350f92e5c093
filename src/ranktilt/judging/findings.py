"""What an audit of judges found, in sentences."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ranktilt.auditing.answer.verdict import finding
from ranktilt.errors import counted, join_words
from ranktilt.judging.result import Agreement, JudgeAudit, RankAgreement
from ranktilt.measures.margin import Margin
from ranktilt.measures.printing import rounded

GAP_LEVEL: Margin = "0.1 grades"
"""Grade gaps within this margin count as level."""


def sentences(audit: JudgeAudit) -> list[str]:
    """Say what was found: favoured sources and families first, then the order of systems, then agreement."""
    found = [gap["sentence"] for gap in _gaps(audit)]
    found += [row.sentence for row in audit.preferences]
    found += [_order(audit, row) for row in audit.rank_agreements]
    found += _moved_tilts(audit)
    return found + [_agreement(row) for row in audit.overall]


def verdicts(audit: JudgeAudit) -> list[dict[str, Any]]:
    """List verdicts as other results do: on sources by grade gap, on families by preference."""
    families = [
        {"run": row.judge, "kind": row.verdict, "side": row.family if row.verdict == "favours" else None,
         "sentence": row.sentence, "primary": row.measure, "margin": None, "a": row.family, "b": "others"}
        for row in audit.preferences
    ]  # fmt: skip
    return _gaps(audit) + families


def _gaps(audit: JudgeAudit) -> list[dict[str, Any]]:
    found = []
    for effect in audit.main_gaps:
        kind = effect.verdict(GAP_LEVEL)
        side = effect.side(kind)
        front = {
            "level": f"{effect.run} is level between {effect.a} and {effect.b} twins, within ±{GAP_LEVEL}",
            "inconclusive": f"{effect.run}: inconclusive on twins",
        }.get(kind, f"{effect.run} favours {side} text on twins")
        found.append(
            {"run": effect.run, "kind": "favours" if side else kind, "side": side or None,
             "sentence": f"{front}: {finding(effect, 'text')}", "primary": repr(effect.estimand), "margin": GAP_LEVEL,
             "a": effect.a, "b": effect.b}
        )  # fmt: skip
    return found


def _order(audit: JudgeAudit, row: RankAgreement) -> str:
    pairs = [one.fate for one in audit.system_pairs if (one.judge, one.measure) == (row.judge, row.measure)]
    fates = Counter(pairs)
    shown = len(pairs) - fates["new"]
    changed = [f"{fates[fate]} {fate}" for fate in ("reversed", "lost") if fates[fate]]
    shown_by_humans = counted(shown, "significant difference", "significant differences")
    kept = f"of {shown_by_humans} {join_words(changed) if changed else 'none is lost'}"
    new = f", {fates['new']} new" if fates["new"] else ""
    return (
        f"{row.judge} orders {counted(row.systems, 'system', 'systems')} by {row.measure} with Kendall's τ-b "
        f"{_decimal(row.tau.value)} [{_decimal(row.tau.low)}, {_decimal(row.tau.high)}]: {kept}{new}"
    )


def _moved_tilts(audit: JudgeAudit) -> list[str]:
    found = []
    for judge in audit.judges:
        tilts = [one.change for one in audit.tilts if one.judge == judge]
        if tilts:
            shown = sum(one.shown for one in tilts) or "none"
            number = counted(len(tilts), "ranker's tilt", "rankers' tilts")
            found.append(f"{judge}: of {number} under its grades, {shown} differs from that under human grades")
    return found


def _agreement(row: Agreement) -> str:
    kappa, gap = row.kappa, row.gap
    if kappa.value != kappa.value:
        return f"{row.judge}: κ is undefined: one judge gives one grade to all {row.pairs:,} pairs"
    side = "higher" if gap.value > 0 else "lower"
    level = f", grades {abs(gap.value):.2f} {side} on average" if gap.low > 0 or gap.high < 0 else ""
    return (
        f"{row.judge} agrees with humans at κ {_decimal(kappa.value)} [{_decimal(kappa.low)}, {_decimal(kappa.high)}] "
        f"over {row.pairs:,} pairs of {counted(row.queries, 'query', 'queries')}{level}"
    )


def _decimal(value: float) -> str:
    """Print a coefficient with two decimals and no zero before them: ``.29``."""
    text = rounded(value, 2).replace("-", "−")
    return text.replace("0.", ".", 1) if text.lstrip("−").startswith("0.") else text
