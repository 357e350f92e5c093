"""The sections of an audit's page, from the forest plot to how it was made."""

from __future__ import annotations

from ranktilt.auditing.confounds import confound_sentence
from ranktilt.auditing.groups import Pair
from ranktilt.auditing.result import Audit
from ranktilt.reporting.document import Block, Code, Section
from ranktilt.reporting.explorer.section import explorer
from ranktilt.reporting.figures.audit import (
    MOST_PAIRS,
    card_figure,
    control_figure,
    drawn_pairs,
    effectiveness,
    effectiveness_figure,
    tilt_figure,
)
from ranktilt.reporting.reload import LoadedAudit
from ranktilt.reporting.views.audit_legend import conflict_sentences, control_sentences
from ranktilt.reporting.views.audit_ranks import ranks_section
from ranktilt.reporting.views.audit_tables import card_overview, card_table, confound_tables, control_table, group_table
from ranktilt.reporting.views.provenance import provenance


def audit_sections(opened: LoadedAudit, *, texts: bool = True) -> list[Section]:
    """Lay an audit out; what it could hold and does not is named with how to get it. Text shows the tables only."""
    audit = opened.audit
    found = [
        _tilt(audit),
        _table(audit),
        _effectiveness(audit),
        _card(audit),
        ranks_section(opened) if audit.pairs else None,
        _queries(opened, texts=texts),
        _confounds(audit),
        _controls(audit),
        provenance(audit.spec, audit.notes),
    ]
    return [section for section in found if section is not None]


def _tilt(audit: Audit) -> Section | None:
    title = "How far each ranker tilts"
    if audit.tilted_pairs:
        pairs = drawn_pairs(audit)
        lead = [_how_to_read(audit, pairs[0]) if len(pairs) == 1 else "Each figure compares two groups."]
        lead += [_left_out(audit, pairs)] if len(pairs) < len(audit.tilted_pairs) else []
        return Section("tilt", title, tuple(lead), tuple(tilt_figure(audit, pair) for pair in pairs))
    drawn = [card_figure(audit, pair) for pair in audit.pairs[:MOST_PAIRS]]
    figures = tuple(figure for figure in drawn if figure is not None)
    return (
        Section("tilt", title, ("Nothing is judged, so the card's questions are asked instead.",), figures)
        if figures
        else None
    )


def _how_to_read(audit: Audit, pair: Pair) -> str:
    if not audit.tilted_pairs or any((t.a, t.b) == pair and not t.twins for t in audit.tilts):
        return (
            f"Farther to the right, relevant documents of {pair[0]} stand higher; farther to the left, those of "
            f"{pair[1]}. The groups hold different documents, so 0 is not level: level is where labels dealt out at "
            "random would stand. A value inside that band does not show a tilt."
        )
    a, b = (f"{name} text" if audit.spec.get("by") == "source" else f"documents of {name}" for name in pair)
    return (
        f"To the right of 0 a ranker puts relevant {a} higher, to the left relevant {b}. An interval that holds 0 does "
        "not show a tilt; only a short one close to 0 shows that there is hardly any."
    )


def _left_out(audit: Audit, pairs: tuple[Pair, ...]) -> str:
    return (
        f"Drawn for the {len(pairs)} of {len(audit.tilted_pairs)} pairs of groups that tilt most clearly; the table "
        "below holds all."
    )


def _table(audit: Audit) -> Section | None:
    if not audit.measures:
        return None
    return Section("table", "The table", (), (group_table(audit),))


def _effectiveness(audit: Audit) -> Section | None:
    if not audit.tilted_pairs:
        return None
    found = effectiveness(audit)
    figures = tuple(effectiveness_figure(audit, pair, found) for pair in drawn_pairs(audit))
    lead = (
        "A ranker that tilts is not a poor one, and a level one is not a good one: both are to be looked at together."
    )
    return Section("effectiveness", "Effectiveness beside tilt", (lead,), figures)


def _card(audit: Audit) -> Section | None:
    if not audit.pairs:
        return None
    title = "Five questions, one run"
    lead = (
        "“Does it favour one side?” can be asked in several ways, and the answers need not agree: a ranker can put one "
        "side's right answers higher and yet fill the page with the other's."
    )
    if not audit.estimates:
        return Section("card", title, (lead, "This audit did not ask them. To ask:"), (_hint(audit, "--card"),))
    return Section("card", title, (lead, *conflict_sentences(audit)), (card_overview(audit), card_table(audit)))


def _queries(opened: LoadedAudit, *, texts: bool) -> Section:
    found = explorer(opened) if texts else None
    if found is not None:
        lead = "Which queries make the tilt, what was found for each, and what the two texts look like side by side."
        if opened.audit.tilts and not any(tilt.twins for tilt in opened.audit.tilts):
            lead = "Which queries make the difference, what was found for each, and what the texts say."
        if not opened.audit.pairs:
            lead = "How well each query is answered, and what was found for it."
        return Section("queries", "Queries", (lead, *opened.notes), (found,))
    if not texts:
        return Section("queries", "Queries", ("Queries, ranked lists and texts are left out, as was asked for.",))
    why = opened.notes or ("The audit was not opened together with its collection and runs.",)
    return Section("queries", "Queries", ("Queries, ranked lists and texts are left out.", *why))


def _confounds(audit: Audit) -> Section | None:
    pairs = [pair for pair in audit.pairs if any((one.a, one.b) == pair for one in audit.confounds)]
    if not pairs:
        return None
    said = (confound_sentence([one for one in audit.confounds if (one.a, one.b) == pair]) for pair in pairs)
    lead = "Who wrote a text is not all in which the sides differ. A ranker may respond to any of these."
    blocks = tuple(table for pair in pairs for table in confound_tables(audit, pair))
    return Section("confounds", "What else differs", (lead, *filter(None, said)), blocks)


def _controls(audit: Audit) -> Section | None:
    twins = any(tilt.twins for tilt in audit.tilts)
    if not audit.tilted_pairs or not (twins or audit.controls):
        return None
    title = "Raw and controlled"
    lead = "The same audit once more with what else differs between twins taken away: does the tilt stay?"
    if not audit.controls:
        return Section(
            "controls", title, (lead, "This audit has no controls. To have them:"), (_hint(audit, "--controls"),)
        )
    found = [f"{one}." for one in control_sentences(audit)] or ["No control changes a verdict on the primary measure."]
    figures: list[Block] = [control_figure(audit, pair) for pair in drawn_pairs(audit)]
    return Section("controls", title, (lead, *found), (*figures, control_table(audit)))


def _hint(audit: Audit, option: str) -> Code:
    made = str(audit.spec.get("command") or "ranktilt audit DIR -r RANKER")
    verb = "ranktilt audit "
    return Code("How to ask for it", made.replace(verb, f"{verb}{option} ", 1) if verb in made else f"{made} {option}")
