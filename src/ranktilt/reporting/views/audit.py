"""An audit: which ranker tilts, how surely, on which queries, and what else could explain it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ranktilt.auditing.answer.next_steps import next_steps
from ranktilt.auditing.answer.verdict import Verdict as Judged
from ranktilt.auditing.groups import Pair
from ranktilt.auditing.result import Audit
from ranktilt.errors import counted, join_words
from ranktilt.reporting.document import SIDES, Document, Sentence
from ranktilt.reporting.explorer.section import BUDGET
from ranktilt.reporting.reload import LoadedAudit
from ranktilt.reporting.tones import VERDICT_TONES, Tone
from ranktilt.reporting.verdicts import VERDICT_WORDS
from ranktilt.reporting.views.audit_sections import audit_sections
from ranktilt.reporting.views.audit_tables import (
    conflict_sentences,
    control_sentences,
    legend,
    verdict_sentences,
)
from ranktilt.reporting.views.provenance import folder

_MOST_NAMED = 2
_MOST_AT_ONCE = 6


def view(result: Audit | LoadedAudit, *, budget: int = BUDGET) -> Document:
    """Return what is said of an audit, with as much of its collection and runs as could be opened again and fits."""
    opened = result if isinstance(result, LoadedAudit) else LoadedAudit(result)
    audit = opened.audit
    name = folder(audit.spec)
    return Document(
        title=f"Audit of {name}" if name else "Audit",
        kind=f"Audit of {name}" if name else "Audit of rankers",
        headline=audit_headline(audit),
        sections=tuple(audit_sections(opened, budget=budget)),
        sentences=audit_sentences(audit),
        next_steps=next_steps(audit),
        legend=tuple(legend(audit)),
        notes=audit.notes,
        sides=_compared_groups(audit),
    )


def _compared_groups(audit: Audit) -> tuple[str, ...]:
    """Name both sides of the pair; of several pairs, which is which; none where no groups are compared."""
    pairs = audit.judged_pairs
    return SIDES if len(pairs) > 1 else pairs[0] if pairs else ()


def audit_headline(audit: Audit) -> str:
    """Say in one sentence how many rankers favour which side, are level, or are inconclusive; few are named."""
    pairs = audit.judged_pairs
    if not pairs:
        return f"{counted(len(audit.runs), 'ranker', 'rankers')}; no groups were compared."
    if len(pairs) == 1:
        said = _summed(audit, pairs[0])
    else:
        kinds = Counter[str](audit.verdict(run, *pair).kind for run in audit.runs for pair in pairs)
        parts = [f"{kinds[kind]} {words[kinds[kind] > 1]}" for kind, words in VERDICT_WORDS.items() if kinds[kind]]
        rankers = counted(len(audit.runs), "ranker", "rankers")
        said = f"of {kinds.total()} comparisons ({rankers}, {len(pairs)} pairs of groups) {join_words(parts)}"
    return f"{said} (by {'' if audit.primary is None else audit.primary.title})."


def audit_sentences(audit: Audit) -> tuple[Sentence, ...]:
    """Give one verdict a ranker and pair, of many those first that favour a side; then conflicts and controls."""
    pairs = audit.judged_pairs
    tones = [_tone(audit.verdict(run, *pair), pair) for run in audit.runs for pair in pairs]
    lines = [Sentence(text, tone, "strong") for text, tone in zip(verdict_sentences(audit), tones, strict=True)]
    if len(lines) > _MOST_AT_ONCE:
        lines.sort(key=lambda line: line.tone not in ("first", "second"))
    told = [Sentence(text, "warning", "strong") for text in (*conflict_sentences(audit), *control_sentences(audit))]
    return (*lines, *told)


def _tone(found: Judged, pair: Pair) -> Tone:
    if found.kind == "favours":
        return "first" if found.side == pair[0] else "second"
    return VERDICT_TONES[found.kind]


def _summed(audit: Audit, pair: Pair) -> str:
    """What is said of all rankers for one pair, such as: a and b favour human text, 3 of 5 rankers are inconclusive."""
    noun = "text" if audit.spec.get("by") == "source" else "documents"
    found = {run: audit.verdict(run, *pair) for run in audit.runs}
    parts = []
    for words, plural, members in (
        (f"favours {pair[0]} {noun}", f"favour {pair[0]} {noun}", _of(found, "favours", pair[0])),
        (f"favours {pair[1]} {noun}", f"favour {pair[1]} {noun}", _of(found, "favours", pair[1])),
        ("is level", "are level", _of(found, "level")),
        (*VERDICT_WORDS["outside"], _of(found, "outside")),
        ("is inconclusive", "are inconclusive", _of(found, "inconclusive")),
    ):
        if members:
            parts.append(f"{_who(members, audit.runs)} {words if len(members) == 1 else plural}")
    return "; ".join(parts)


def _of(found: dict[str, Judged], kind: str, favours: str | None = None) -> list[str]:
    return [run for run, one in found.items() if one.kind == kind and one.side == favours]


def _who(members: Sequence[str], runs: Sequence[str]) -> str:
    if len(members) <= _MOST_NAMED:
        return " and ".join(members)
    return f"all {len(runs)} rankers" if len(members) == len(runs) else f"{len(members)} of {len(runs)} rankers"
