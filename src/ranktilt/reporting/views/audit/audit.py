"""The document of an audit: which ranker tilts, how surely, on which queries, and why it might.

A ranker *tilts* if it favours one of two groups of documents, such as human texts. The *verdict* on
a ranker and a pair of groups is that it favours a group, is level or inconclusive; a *finding* is a
verdict, or a conflict between questions. *Controls* are audits without a possible other cause, such
as length. An audit that was *opened* comes with its collection and runs, so that the page can show
queries, lists and texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from ranktilt.auditing.answer.group_standings import group_displays
from ranktilt.auditing.answer.next_steps import next_steps
from ranktilt.auditing.answer.verdict import Verdict
from ranktilt.auditing.result import Audit
from ranktilt.reporting.document import SIDES, Document, PageBlocks, Sentence
from ranktilt.reporting.explorer.section import BUDGET
from ranktilt.reporting.headline import findings_of, headline
from ranktilt.reporting.interval_chart import IntervalChart
from ranktilt.reporting.provenance import audited
from ranktilt.reporting.reload import LoadedAudit
from ranktilt.reporting.sentences.findings import Finding, next_commands
from ranktilt.reporting.sentences.meaning import audit_meaning
from ranktilt.reporting.sentences.notes import note_sentences
from ranktilt.reporting.sentences.repeats import repeat_sentences
from ranktilt.reporting.sentences.verdicts import verdict_tone
from ranktilt.reporting.tones import Tone
from ranktilt.reporting.views.audit.query_groups import query_group_sentences
from ranktilt.reporting.views.audit.sections import audit_sections
from ranktilt.reporting.views.audit.tables import control_sentences, legend
from ranktilt.reporting.views.compare.group_standings import standing_chart, standing_sentences
from ranktilt.reporting.views.readings import scale_title, verdict_chart


def view(result: Audit | LoadedAudit, *, budget: int = BUDGET) -> Document:
    """Return the document of an audit.

    If its collection and runs could be opened again, the document also has queries, lists and
    texts, up to a `budget` of characters.
    """
    opened = result if isinstance(result, LoadedAudit) else LoadedAudit(result)
    audit = opened.audit
    findings = findings_of(audit)
    return Document(
        kind=audited(audit.runs, audit.spec),
        headline=headline(audit),
        sections=tuple(audit_sections(opened, budget=budget)),
        sentences=audit_sentences(audit),
        meaning=audit_meaning(audit, findings),
        first_figure=PageBlocks(make=partial(_first_figure, audit, findings)),
        next_steps=next_commands(next_steps(audit)),
        legend=tuple(legend(audit)),
        notes=note_sentences(audit.notes),
        sides=_side_names(audit),
        names=audit.runs + audit.groups,
    )


def _side_names(audit: Audit) -> tuple[str, ...]:
    """Return the names of both sides, or general ones where there are several pairs."""
    pairs = audit.judged_pairs
    if len(pairs) > 1:
        return SIDES
    return pairs[0] if pairs else ()


def _first_figure(audit: Audit, findings: Sequence[Finding]) -> Iterator[IntervalChart]:
    """Draw the answers to the primary question; with three groups or more, how each is treated."""
    if displays := group_displays(audit):
        # Rankers come in the order of their findings, the largest first.
        run_order = [finding.run for finding in findings if finding.verdict is not None]
        yield standing_chart(audit, sorted(displays, key=lambda row: run_order.index(row.run)))
        return
    verdicts = [finding.verdict for finding in findings if finding.verdict is not None]
    if not verdicts:
        return
    # The title of the scale ends with the unit, after a comma; the rest names the question.
    question = scale_title(verdicts[0].effect).rpartition(",")[0] or verdicts[0].effect.name
    sides = None
    if len(audit.judged_pairs) == 1:
        ((a, b),) = audit.judged_pairs
        sides = (b, a)  # values to the left of neutral favour b
        if verdicts[0].effect.estimand.sided:
            question += f", {a} against {b}"
    chart = verdict_chart(
        verdicts, partial(_first_figure_label, audit), title=question, sides=sides
    )
    if chart is not None:
        yield chart


def _first_figure_label(audit: Audit, verdict: Verdict) -> str:
    """Name the pair and the run of a verdict, each where the audit has several."""
    if len(audit.judged_pairs) == 1:
        return verdict.run
    pair = f"{verdict.a} | {verdict.b}"
    return pair if len(audit.runs) == 1 else f"{pair}, {verdict.run}"


def audit_sentences(audit: Audit) -> tuple[Sentence, ...]:
    """Return the sentences of the answer, the most general first.

    These are how groups stand (with three or more), verdicts and conflicts, the largest first,
    groups of queries, verdicts that a control changes, and how much repeats of a run differ.
    """
    findings = [Sentence(f.sentence, _tone(f), "strong") for f in findings_of(audit)]
    changes = [Sentence(text, "warning", "strong") for text in control_sentences(audit)]
    groups = query_group_sentences(audit)
    repeats = [Sentence(text) for text in repeat_sentences(audit)]
    return (*standing_sentences(audit), *findings, *groups, *changes, *repeats)


def _tone(finding: Finding) -> Tone:
    """Return the tone of the verdict; a finding without one is a conflict, which is a warning."""
    if finding.verdict is None:
        return "warning"
    return verdict_tone(finding.verdict, finding.verdict.a)
