"""An audit: which ranker tilts, how surely, on which queries, and what else could explain it."""

from __future__ import annotations

from ranktilt.auditing.answer.next_steps import next_steps
from ranktilt.auditing.result import Audit
from ranktilt.reporting.document import SIDES, Document, Sentence
from ranktilt.reporting.explorer.section import BUDGET
from ranktilt.reporting.headline import findings_of, headline
from ranktilt.reporting.provenance import folder, titled
from ranktilt.reporting.reload import LoadedAudit
from ranktilt.reporting.sentences.findings import Finding
from ranktilt.reporting.sentences.next_steps import next_commands
from ranktilt.reporting.sentences.verdicts import verdict_tone
from ranktilt.reporting.tones import Tone
from ranktilt.reporting.views.audit_sections import audit_sections
from ranktilt.reporting.views.audit_tables import control_sentences, legend
from ranktilt.reporting.views.group_standings import standing_sentences


def view(result: Audit | LoadedAudit, *, budget: int = BUDGET) -> Document:
    """Return what is said of an audit, with as much of its collection and runs as could be opened again and fits."""
    opened = result if isinstance(result, LoadedAudit) else LoadedAudit(result)
    audit, pairs = opened.audit, opened.audit.judged_pairs
    return Document(
        kind=titled("Audit of", audit.spec) if folder(audit.spec) else "Audit of rankers",
        headline=headline(audit),
        sections=audit_sections(opened, budget=budget),
        sentences=audit_sentences(audit),
        next_steps=next_commands(next_steps(audit)),
        legend=tuple(legend(audit)),
        notes=audit.notes,
        sides=SIDES if len(pairs) > 1 else pairs[0] if pairs else (),
    )


def audit_sentences(audit: Audit) -> tuple[Sentence, ...]:
    """Give the verdicts and conflicts, the largest finding first, and then what controls change."""
    told = [Sentence(finding.sentence, _tone(finding), "strong") for finding in findings_of(audit)]
    return (
        *standing_sentences(audit),
        *told,
        *(Sentence(text, "warning", "strong") for text in control_sentences(audit)),
    )


def _tone(finding: Finding) -> Tone:
    return (
        "warning" if finding.verdict is None else verdict_tone(finding.verdict, finding.verdict.a)
    )
