"""An audit: which ranker tilts, how surely, on which queries, and what else could explain it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import product

from ranktilt.auditing.answer.next_steps import next_steps
from ranktilt.auditing.groups import Pair
from ranktilt.auditing.result import Audit
from ranktilt.errors import counted, join_words
from ranktilt.reporting.document import SIDES, Document, Sentence
from ranktilt.reporting.explorer.section import BUDGET
from ranktilt.reporting.provenance import folder, titled
from ranktilt.reporting.reload import LoadedAudit
from ranktilt.reporting.verdicts import VERDICT_WORDS, verdict_tone
from ranktilt.reporting.views.audit_sections import audit_sections
from ranktilt.reporting.views.audit_tables import conflict_sentences, control_sentences, legend

_MOST_NAMED = 2
_MOST_AT_ONCE = 6


def view(result: Audit | LoadedAudit, *, budget: int = BUDGET) -> Document:
    """Return what is said of an audit, with as much of its collection and runs as could be opened again and fits."""
    opened = result if isinstance(result, LoadedAudit) else LoadedAudit(result)
    audit, pairs = opened.audit, opened.audit.judged_pairs
    return Document(
        kind=titled("Audit of", audit.spec) if folder(audit.spec) else "Audit of rankers",
        headline=audit_headline(audit),
        sections=tuple(audit_sections(opened, budget=budget)),
        sentences=audit_sentences(audit),
        next_steps=next_steps(audit),
        legend=tuple(legend(audit)),
        notes=audit.notes,
        sides=SIDES if len(pairs) > 1 else pairs[0] if pairs else (),
    )


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
    lines = []
    for run, pair in product(audit.runs, audit.judged_pairs):
        verdict = audit.verdict(run, *pair)
        front = f"{pair[0]} | {pair[1]}: " if len(audit.judged_pairs) > 1 else ""
        lines.append(Sentence(front + verdict.sentence, verdict_tone(verdict, pair[0]), "strong"))
    if len(lines) > _MOST_AT_ONCE:
        lines.sort(key=lambda line: line.tone not in ("first", "second"))
    told = [Sentence(text, "warning", "strong") for text in (*conflict_sentences(audit), *control_sentences(audit))]
    return (*lines, *told)


def _summed(audit: Audit, pair: Pair) -> str:
    """What is said of all rankers for one pair, such as: a and b favour human text, 3 of 5 rankers are inconclusive."""
    noun = "text" if audit.spec.get("by") == "source" else "documents"
    members = defaultdict[tuple[str, str | None], list[str]](list)
    for run in audit.runs:
        verdict = audit.verdict(run, *pair)
        members[verdict.kind, verdict.side].append(run)
    words: dict[tuple[str, str | None], tuple[str, str]] = {
        **{("favours", side): (f"favours {side} {noun}", f"favour {side} {noun}") for side in pair},
        **{(kind, None): said for kind, said in VERDICT_WORDS.items()},
    }
    parts = ((members[key], said) for key, said in words.items() if key in members)
    return "; ".join(f"{_who(some, audit.runs)} {said[len(some) > 1]}" for some, said in parts)


def _who(members: Sequence[str], runs: Sequence[str]) -> str:
    if len(members) <= _MOST_NAMED:
        return " and ".join(members)
    return f"all {len(runs)} rankers" if len(members) == len(runs) else f"{len(members)} of {len(runs)} rankers"
