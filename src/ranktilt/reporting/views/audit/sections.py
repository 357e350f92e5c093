"""The sections of an audit's document, from the tilts to how it was computed.

A *tilt* is how far a ranker favours one of two groups of documents, by Relative Δ (the difference
of the groups' means in percent of their average). It needs relevance judgments. The *card* has
further questions about each ranker, some of which need none. *Controls* compute the tilt without a
possible other cause, and the *explorer* lets a reader look through queries and their lists.

The page's first screen already has a chart. Figures here that repeat it are only in papers
(``audience="paper"``), and those that refine it are collapsed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from ranktilt.auditing.answer.group_standings import group_displays
from ranktilt.auditing.effects import Effect
from ranktilt.auditing.groups import Pair
from ranktilt.auditing.result import Audit
from ranktilt.reporting.document import (
    Block,
    Figure,
    PageBlocks,
    PageSections,
    Section,
)
from ranktilt.reporting.explorer.section import BUDGET, explorer
from ranktilt.reporting.interval_chart import MOST_ROWS as MOST_ROWS_OF_CHART
from ranktilt.reporting.provenance import provenance
from ranktilt.reporting.reload import LoadedAudit
from ranktilt.reporting.sentences.notes import note_sentences
from ranktilt.reporting.views.audit.check_tables import (
    REPEATS_LEAD,
    SENSITIVITY_LEAD,
    check_table,
    repeat_tables,
    sensitivity_table,
)
from ranktilt.reporting.views.audit.figures import (
    MOST_PAIRS,
    card_figure,
    control_figure,
    drawn_pairs,
    effectiveness_figure,
    tilt_figure,
)
from ranktilt.reporting.views.audit.query_groups import query_group_section
from ranktilt.reporting.views.audit.ranks import NOT_OPENED, ranks_section
from ranktilt.reporting.views.audit.tables import (
    card_table,
    conflict_sentences,
    confound_table,
    control_sentences,
    control_table,
    group_table,
)
from ranktilt.reporting.views.compare.group_standings import standing_section


def audit_sections(
    loaded: LoadedAudit, *, budget: int = BUDGET
) -> Iterator[Section | PageSections]:
    """Yield the sections of an audit.

    Sections without a table are `PageSections`, for pages alone: a terminal could not print their
    figures. `budget` is how many characters lists and texts may add to a page; 0 leaves them out.
    """
    audit = loaded.audit
    yield from standing_section(audit)
    yield PageSections(make=partial(_tilt_section, audit))
    yield from _number_section(audit)
    yield PageSections(make=partial(_effectiveness_section, audit))
    yield from _card_section(audit)
    yield from query_group_section(audit)
    yield PageSections(make=partial(_list_sections, loaded, budget))
    yield from _confound_section(audit)
    yield from _control_section(audit)
    yield from _check_section(audit)
    yield PageSections(make=partial(_repeat_section, audit))
    yield PageSections(make=partial(_label_error_section, audit))
    yield PageSections(make=partial(_provenance_section, audit))


def _tilt_section(audit: Audit) -> Iterator[Section]:
    """Yield the section of figures of Relative Δ, or of the card where nothing is judged.

    Nothing where no pair of groups is compared.
    """
    title = "How far each ranker tilts"
    if audit.tilted_pairs:
        pairs = drawn_pairs(audit)
        lead = tuple(_tilt_lead(audit, len(pairs)))
        figures = tuple(tilt_figure(audit, pair) for pair in pairs)
        if _is_on_first_screen(audit):
            figures = tuple(replace(figure, audience="paper") for figure in figures)
        elif group_displays(audit):  # the first screen sums up what each pair shows
            figures = tuple(replace(figure, collapsed=True) for figure in figures)
        yield Section("tilt", title, lead=lead, blocks=figures, short_title="Every measure")
        return
    figures = tuple(_card_figures(audit))
    if figures:
        # Without judgments there is no Relative Δ.
        lead = ("Nothing is judged, so the audit asks the card's questions instead.",)
        yield Section("tilt", title, lead=lead, blocks=figures)


def _tilt_lead(audit: Audit, drawn_count: int) -> Iterator[str]:
    """Yield the sentences before the figures of tilts."""
    if all(tilt.twins for tilt in audit.tilts):
        yield (
            "If the interval includes 0, no tilt is shown. Only a narrow interval near 0 shows "
            "that there is (almost) none."
        )
    else:
        yield (
            "For groups with different documents, the value that favours nobody is what random "
            "labels give, not 0."
        )
    if drawn_count < len(audit.tilted_pairs):
        yield (
            f"The figures show the {drawn_count} of {len(audit.tilted_pairs)} pairs of groups that "
            "tilt most clearly."
        )


def _is_on_first_screen(audit: Audit) -> bool:
    """Tell whether the first screen of a page draws every tilt already."""
    if group_displays(audit):
        return False
    has_one_question = [repr(audit.primary)] == [repr(measure) for measure in audit.measures]
    return has_one_question and len(audit.tilts) <= MOST_ROWS_OF_CHART


def _card_figures(audit: Audit) -> Iterator[Figure]:
    """Yield a figure of the answers to the card's primary question for each pair of groups."""
    is_on_first_screen = len(audit.runs) * len(audit.pairs) <= MOST_ROWS_OF_CHART
    for pair in audit.pairs[:MOST_PAIRS]:
        answers = _primary_answers(audit, pair)
        if not answers:
            continue
        figure = card_figure(audit, pair, answers)
        if group_displays(audit):
            yield replace(figure, collapsed=True)
        else:
            yield replace(figure, audience="paper") if is_on_first_screen else figure


def _primary_answers(audit: Audit, pair: Pair) -> list[Effect]:
    """Return every run's answer to the card's primary question; none if it has no two sides."""
    return [
        effect
        for effect in audit.card
        if (effect.a, effect.b) == pair
        and effect.estimand == audit.primary
        and effect.estimand.sided
    ]


def _number_section(audit: Audit) -> Iterator[Section]:
    """Yield the section with the table of means and Relative Δ; nothing where nothing is judged."""
    if audit.measures:
        yield Section("table", "Every number", blocks=(group_table(audit),), short_title="Numbers")


def _effectiveness_section(audit: Audit) -> Iterator[Section]:
    """Yield the section with figures of tilt against effectiveness."""
    if not audit.tilted_pairs:
        return
    lead = "Tilt and quality are separate; look at both."
    figures = tuple(effectiveness_figure(audit, pair) for pair in drawn_pairs(audit))
    if group_displays(audit):
        figures = tuple(replace(figure, collapsed=True) for figure in figures)
    title = "Effectiveness and tilt"
    yield Section("effectiveness", title, lead=(lead,), blocks=figures, short_title="Effectiveness")


def _card_section(audit: Audit) -> Iterator[Section]:
    """Yield the section on the card's questions; nothing for an audit without a card."""
    if not audit.card:
        return
    lead = (
        "There are several ways to ask whether a ranker favours one side, and the answers can "
        "differ. A ranker can put one side's right answers higher and still fill the page with "
        "the other side's."
    )
    yield Section(
        "card",
        "Five questions, one run",
        lead=(lead, *conflict_sentences(audit)),
        blocks=(card_table(audit),),
        short_title="Five questions",
    )


def _list_sections(loaded: LoadedAudit, budget: int) -> Iterator[Section]:
    """Yield the section on the groups at each rank, and that on single queries and their lists."""
    if loaded.audit.pairs:
        yield ranks_section(loaded)
    yield _query_section(loaded, budget)


def _query_section(loaded: LoadedAudit, budget: int) -> Section:
    """Return the section on queries: an explorer, or the reason why there is none."""
    query_explorer = explorer(loaded, budget=budget) if budget else None
    if query_explorer is not None:
        lead = _queries_lead(loaded.audit, has_texts=bool(query_explorer.texts))
        return Section("queries", "Queries", lead=(lead, *loaded.notes), blocks=(query_explorer,))
    if not budget:
        return Section(
            "queries",
            "Queries",
            lead=("Queries, ranked lists and texts are left out, as you asked.",),
        )
    reasons = loaded.notes or (NOT_OPENED,)
    lead = "Queries, ranked lists and texts are left out."
    return Section("queries", "Queries", lead=(lead, *reasons))


def _queries_lead(audit: Audit, *, has_texts: bool) -> str:
    """Say what the explorer shows; nothing about texts where there are none."""
    if not audit.pairs:
        return "How well each query is answered, and its results."
    if audit.tilts and not any(tilt.twins for tilt in audit.tilts):
        queries, texts = "Which queries make the difference", "what the texts say"
    else:
        queries, texts = "Which queries make the tilt", "the two texts side by side"
    if not has_texts:
        return f"{queries}, and the results of each."
    return f"{queries}, the results of each, and {texts}."


def _confound_section(audit: Audit) -> Iterator[Section]:
    """Yield the section on other differences between the groups' texts."""
    if not audit.confounds:
        return
    lead = "The sides differ in more than who wrote them. A ranker may respond to any of these."
    yield Section(
        "confounds", "What else differs", lead=(lead,), blocks=(confound_table(audit.confounds),)
    )


def _control_section(audit: Audit) -> Iterator[Section]:
    """Yield the section on controls, with the verdicts that they change."""
    if not audit.controls:
        return
    lead = "The same audit, with other differences between twins removed. Does the tilt stay?"
    changes = [f"{sentence}." for sentence in control_sentences(audit)] or [
        "No control changes a verdict on the primary measure."
    ]
    blocks: tuple[Block, ...] = (
        PageBlocks(make=partial(_control_figures, audit)),
        control_table(audit),
    )
    yield Section("controls", "Raw and controlled", lead=(lead, *changes), blocks=blocks)


def _control_figures(audit: Audit) -> Iterator[Figure]:
    """Yield a figure of the controls for each pair."""
    for pair in drawn_pairs(audit):
        yield control_figure(audit, pair)


def _check_section(audit: Audit) -> Iterator[Section]:
    """Yield the section on other tests of the same answers, which check their p."""
    table = check_table(audit)
    if table is not None:
        yield Section("checks", "Other tests", blocks=(table,))


def _repeat_section(audit: Audit) -> Iterator[Section]:
    """Yield the section on runs that the same engine ranked several times."""
    if audit.repeats:
        title = "Repeats of one engine"
        tables = repeat_tables(audit.repeats)
        yield Section("repeats", title, lead=(REPEATS_LEAD,), blocks=tables, short_title="Repeats")


def _label_error_section(audit: Audit) -> Iterator[Section]:
    """Yield the section on how wrong the labels of groups would have to be to explain findings."""
    if audit.label_sensitivities:
        table = sensitivity_table(audit.label_sensitivities)
        yield Section(
            "label-errors", "If labels are wrong", lead=(SENSITIVITY_LEAD,), blocks=(table,)
        )


def _provenance_section(audit: Audit) -> Iterator[Section]:
    """Yield the section on inputs, options and versions."""
    yield provenance(audit.spec, note_sentences(audit.notes))
