"""An audit: which ranker tilts, how surely, on which queries, and what else could explain it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ranktilt.auditing.answer.next_steps import next_steps
from ranktilt.auditing.answer.verdict import Verdict as Judged
from ranktilt.auditing.groups import ALL, Pair
from ranktilt.auditing.result import Audit
from ranktilt.errors import join_words
from ranktilt.reporting.document import SIDES, Document, Sentence
from ranktilt.reporting.explorer.section import BUDGET
from ranktilt.reporting.numbers import percent
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
_MOST_SUMMED = 4
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
        return _ungrouped(audit)
    if len(pairs) == len(audit.runs) == 1:
        words, bracket, _ = audit.verdict(audit.runs[0]).sentence.rpartition(" (")
        return f"{words if bracket else audit.verdict(audit.runs[0]).sentence}."
    said = _summed(audit, pairs[0]) if len(pairs) == 1 else _all_pairs(audit, pairs)
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


def _all_pairs(audit: Audit, pairs: Sequence[Pair]) -> str:
    """What is said over several pairs: of each ranker where they are few, else of all of them together."""
    kinds = {run: Counter[str](audit.verdict(run, *pair).kind for pair in pairs) for run in audit.runs}
    if len(audit.runs) <= _MOST_SUMMED:
        return "; ".join(f"{run} {_verdict_counts(found, len(pairs))}" for run, found in kinds.items())
    total = sum(kinds.values(), Counter[str]())
    where = f"{len(audit.runs)} rankers, {len(pairs)} pairs of groups"
    parts = [f"{total[kind]} {words[total[kind] > 1]}" for kind, words in VERDICT_WORDS.items() if total[kind]]
    if len(parts) == 1:
        return f"all {total.total()} comparisons ({where}) {VERDICT_WORDS[next(iter(total))][1]}"
    return f"of {total.total()} comparisons ({where}) {join_words(parts)}"


def _verdict_counts(kinds: Counter[str], pairs: int) -> str:
    """What is said of one ranker: ``favours one side in 2 of 3 pairs of groups and is level in 1``."""
    found = [(one, kinds[kind]) for kind, (one, _) in VERDICT_WORDS.items() if kinds[kind]]
    (first, count), *others = found
    if not others:
        return f"{first} in all {pairs} pairs of groups"
    return join_words([f"{first} in {count} of {pairs} pairs of groups", *(f"{said} in {n}" for said, n in others)])


def _ungrouped(audit: Audit) -> str:
    name = repr(audit.primary_measure)
    means = audit.by_group().filter(group=ALL, measure=name)["mean"].to_list()
    if len(means) == 1:
        return f"{audit.runs[0]}: {name} {percent(means[0])} %; no groups were compared."
    best = max(range(len(means)), key=lambda place: (means[place] == means[place], means[place]))
    first = f"{audit.runs[best]} has the highest mean of {len(means)} rankers: {name} {percent(means[best])} %"
    return f"{first}; no groups were compared."
