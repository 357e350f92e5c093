"""The sections of an audit's page with their figures, from the forest plot to how it was made."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.auditing.breakdown import RankShares, rank_shares
from ranktilt.auditing.effects import Effect
from ranktilt.auditing.groups import ALL, Pair
from ranktilt.auditing.result import Audit
from ranktilt.errors import counted
from ranktilt.reporting.document import (
    Block,
    Cell,
    Column,
    Figure,
    PageBlocks,
    PageSections,
    Row,
    Section,
    Table,
    named,
)
from ranktilt.reporting.explorer.section import BUDGET, explorer
from ranktilt.reporting.figures.charts import Mark, ScatterPoint, curves, forest, scatter
from ranktilt.reporting.figures.drawing import known_size
from ranktilt.reporting.interval_chart import MOST_ROWS as MOST_ROWS_OF_CHART
from ranktilt.reporting.numbers import decimal, interval, number, percent, signed
from ranktilt.reporting.provenance import provenance
from ranktilt.reporting.reload import LoadedAudit
from ranktilt.reporting.sentences.effects import corrected_p
from ranktilt.reporting.sentences.notes import note_sentences
from ranktilt.reporting.sentences.verdicts import sides_named
from ranktilt.reporting.tones import VERDICT_TONES
from ranktilt.reporting.views.audit_tables import (
    card_table,
    conflict_sentences,
    confound_table,
    control_sentences,
    control_table,
    group_table,
)
from ranktilt.reporting.views.check_tables import check_table
from ranktilt.reporting.views.group_standings import standing_section

Floats = npt.NDArray[np.float64]
_DEPTH = 100
_MOST_LINES = 8
_MOST_DRAWN = 3
_RANKS = (1, 3, 5, 10, 20, 50, 100)
MOST_ROWS = 42
"""Intervals that one figure can hold and still be read."""
MOST_PAIRS = 4
"""Pairs of groups that are drawn."""
_UNSEEN = "a tilt as small as this is found less than four times in five"
_BAND = " Hatched: what random labels give; their median is level, not 0."


def audit_sections(
    opened: LoadedAudit, *, budget: int = BUDGET
) -> tuple[Section | PageSections, ...]:
    """Lay out what was asked of an audit. Text shows the tables only."""
    audit = opened.audit
    return (
        *standing_section(audit),
        PageSections(make=partial(_tilt, audit)),
        *_table(audit),
        PageSections(make=partial(_effectiveness, audit)),
        *_card(audit),
        PageSections(make=partial(_lists, opened, budget)),
        *_confounds(audit),
        *_controls(audit),
        *_checks(audit),
        PageSections(make=partial(_provenance, audit)),
    )


def _tilt(audit: Audit) -> Iterator[Section]:
    title = "How far each ranker tilts"
    if audit.tilted_pairs:
        pairs = drawn_pairs(audit)
        more = f"Drawn for the {len(pairs)} of {len(audit.tilted_pairs)} pairs of groups that tilt most clearly."
        lead: tuple[str, ...] = (
            "An interval that holds 0 does not show a tilt; only a short one close to 0 shows "
            "that there is hardly any."
            if all(t.twins for t in audit.tilts)
            else "Groups that hold different documents are level where labels dealt out at random stand, not at 0.",
            *([more] if len(pairs) < len(audit.tilted_pairs) else []),
        )
        figures = tuple(tilt_figure(audit, pair) for pair in pairs)
        if _is_on_first_screen(audit):
            figures = tuple(replace(figure, only="paper") for figure in figures)
        yield Section("tilt", title, lead, figures, short_title="Every measure")
        return
    figures = tuple(_card_figures(audit))
    if figures:
        lead = ("Nothing is judged, so the card's questions are asked instead.",)
        yield Section("tilt", title, lead, figures)


def _is_on_first_screen(audit: Audit) -> bool:
    """Tell whether the first screen of a page draws every tilt already."""
    has_one_question = [repr(audit.primary)] == [repr(measure) for measure in audit.measures]
    return has_one_question and len(audit.tilts) <= MOST_ROWS_OF_CHART


def _card_figures(audit: Audit) -> Iterator[Figure]:
    for pair in audit.pairs[:MOST_PAIRS]:
        if answers := _primary_answers(audit, pair):
            figure = card_figure(audit, pair, answers)
            is_drawn = len(audit.runs) * len(audit.pairs) <= MOST_ROWS_OF_CHART
            yield replace(figure, only="paper") if is_drawn else figure


def _table(audit: Audit) -> Iterator[Section]:
    if audit.measures:
        yield Section("table", "Every number", (), (group_table(audit),), short_title="Numbers")


def _effectiveness(audit: Audit) -> Iterator[Section]:
    if not audit.tilted_pairs:
        return
    lead = (
        "A ranker that tilts is not a poor one, and a level one is not a good one: both are to be "
        "looked at together."
    )
    figures = tuple(effectiveness_figure(audit, pair) for pair in drawn_pairs(audit))
    title = "Effectiveness beside tilt"
    yield Section("effectiveness", title, (lead,), figures, short_title="Effectiveness")


def _card(audit: Audit) -> Iterator[Section]:
    if not audit.card:
        return
    lead = (
        "“Does it favour one side?” can be asked in several ways, and the answers need not "
        "agree: a ranker can put one "
        "side's right answers higher and yet fill the page with the other's."
    )
    yield Section(
        "card",
        "Five questions, one run",
        (lead, *conflict_sentences(audit)),
        (card_table(audit),),
        short_title="Five questions",
    )


def _lists(opened: LoadedAudit, budget: int) -> Iterator[Section]:
    if opened.audit.pairs:
        yield ranks_section(opened)
    yield _queries(opened, budget)


def _queries(opened: LoadedAudit, budget: int) -> Section:
    found = explorer(opened, budget=budget) if budget else None
    if found is not None:
        lead = _queries_lead(opened.audit, has_texts=bool(found.texts))
        return Section("queries", "Queries", (lead, *opened.notes), (found,))
    if not budget:
        return Section(
            "queries",
            "Queries",
            ("Queries, ranked lists and texts are left out, as was asked for.",),
        )
    why = opened.notes or ("The audit was not opened together with its collection and runs.",)
    return Section("queries", "Queries", ("Queries, ranked lists and texts are left out.", *why))


def _queries_lead(audit: Audit, *, has_texts: bool) -> str:
    """Say what can be seen of the queries; nothing of texts where there are none."""
    if not audit.pairs:
        return "How well each query is answered, and what was found for it."
    if audit.tilts and not any(tilt.twins for tilt in audit.tilts):
        lead, texts = "Which queries make the difference", "what the texts say"
    else:
        lead, texts = "Which queries make the tilt", "what the two texts look like side by side"
    if not has_texts:
        return f"{lead}, and what was found for each."
    return f"{lead}, what was found for each, and {texts}."


def _confounds(audit: Audit) -> Iterator[Section]:
    if not audit.confounds:
        return
    lead = "Who wrote a text is not all in which the sides differ. A ranker may respond to any of these."
    yield Section("confounds", "What else differs", (lead,), (confound_table(audit.confounds),))


def _controls(audit: Audit) -> Iterator[Section]:
    if not audit.controls:
        return
    lead = "The same audit once more with what else differs between twins taken away: does the tilt stay?"
    found = [f"{one}." for one in control_sentences(audit)] or [
        "No control changes a verdict on the primary measure."
    ]
    blocks: tuple[Block, ...] = (
        PageBlocks(make=partial(_control_figures, audit)),
        control_table(audit),
    )
    yield Section("controls", "Raw and controlled", (lead, *found), blocks)


def _control_figures(audit: Audit) -> Iterator[Figure]:
    for pair in drawn_pairs(audit):
        yield control_figure(audit, pair)


def _checks(audit: Audit) -> Iterator[Section]:
    table = check_table(audit)
    if table is not None:
        yield Section("checks", "Other tests", (), (table,))


def _provenance(audit: Audit) -> Iterator[Section]:
    yield provenance(audit.spec, note_sentences(audit.notes))


def ranks_section(opened: LoadedAudit) -> Section:
    """Show which groups fill the first ranks, and how soon the relevant documents of each are found."""
    title = "Who stands at which rank"
    if opened.collection is None or not opened.runs:
        why = opened.notes or ("The audit was not opened together with its collection and runs.",)
        return Section(
            "ranks", title, ("Left out here: it needs the collection and the runs.", *why)
        )
    found = [rank_shares(opened.collection, run, opened.audit, depth=_DEPTH) for run in opened.runs]
    judged = any(np.isfinite(one.found).any() for one in found)
    sooner = " And of the relevant documents of each group, how many?" if judged else ""
    lead = (
        f"Relevant or not, which documents does a searcher meet down to a rank?{sooner} Tied "
        "documents are spread "
        "evenly over the ranks that they share.",
    )
    groups = found[0].groups
    ahead = [groups.index(name) for name in (opened.audit.pairs or [()])[0]]
    order = [*ahead, *(g for g in range(len(groups)) if g not in ahead)]
    figures = _rank_figures(found[:_MOST_LINES], order[:_MOST_DRAWN], judged=judged)
    drawn = f"Drawn for the first {_MOST_LINES} of {len(found)} rankers; the tables hold all."
    more = (drawn,) if len(found) > _MOST_LINES else ()
    tables = [
        _rank_table(
            [_filled(one) for one in found], found, "Documents of each group down to a rank, in %"
        )
    ]
    if judged:
        values = [one.found for one in found]
        tables.append(
            _rank_table(
                values, found, "Relevant documents of each group found down to a rank, in %"
            )
        )
    leads = (*lead, *more)
    return Section("ranks", title, leads, (*figures, *tables), short_title="Rank by rank")


def _filled(one: RankShares) -> Floats:
    """Share of each group among all documents down to each rank, over all queries; NaN below the longest list."""
    held = np.cumsum(np.where(one.queries > 0, np.nan_to_num(one.at) * one.queries, 0.0), axis=1)
    of = np.cumsum(one.queries)
    return np.where(one.queries > 0, held / np.maximum(of, 1), np.nan)


def _reach(found: Sequence[RankShares]) -> int:
    return max(1, *(int((one.queries > 0).sum()) for one in found))


def _rank_figures(
    found: Sequence[RankShares], order: Sequence[int], *, judged: bool
) -> Iterator[Figure]:
    """What each group holds, and how much sooner the first one's relevant documents are found; a line a ranker."""
    reach, names = _reach(found), found[0].groups
    first, *others = order
    for g in order if len(others) > 1 else [first]:
        level = 100 * float(found[0].neutral[g])
        filled = {one.run: 100 * _filled(one)[g][:reach] for one in found}
        yield Figure(
            f"Who fills the first ranks: {names[g]}",
            f"Dotted: {names[g]} in the whole collection, {decimal(level)} %.",
            curves(filled, x="down to rank", y=f"{names[g]}, % of results", levels=[level]),
            half=judged or len(others) > 1,
        )
    for g in others if judged else ():
        sooner = {one.run: 100 * (one.found[first] - one.found[g])[:reach] for one in found}
        yield Figure(
            f"Whose right answers are found sooner: {names[first]} less {names[g]}",
            f"Share of the relevant documents found down to a rank, {names[first]} less "
            f"{names[g]}: above 0 those of "
            f"{names[first]} are found sooner, below 0 those of {names[g]}.",
            curves(sooner, x="down to rank", y="difference, points", zeroed=True),
            half=True,
        )


def _rank_table(values: Sequence[Floats], found: Sequence[RankShares], caption: str) -> Table:
    ranks = [rank for rank in _RANKS if rank <= _reach(found)]
    rows = (
        Row((Cell(group), *(number(float(of[rank - 1]), percent) for rank in ranks)), (one.run,))
        for one, shares in zip(found, values, strict=True)
        for group, of in zip(one.groups, shares, strict=True)
    )
    columns = (named("group"), *(Column(f"rank {rank}") for rank in ranks))
    return Table(caption, columns, tuple(rows), folded=True, only="page")


def drawn_pairs(audit: Audit) -> tuple[Pair, ...]:
    """Choose the pairs of groups that are drawn: all where they are few, else those that tilt most clearly."""
    pairs = audit.tilted_pairs
    if len(pairs) <= MOST_PAIRS:
        return pairs
    clear = dict.fromkeys(pairs, -1.0)
    for tilt in audit.tilts:
        size = abs(tilt.value - tilt.neutral)
        if tilt.measure == repr(audit.primary_measure) and size > 0:
            pair = tilt.a, tilt.b
            distance = size / tilt.error if tilt.error else np.inf
            clear[pair] = max(clear[pair], distance if tilt.has_interval else 0.0)
    chosen = set(sorted(pairs, key=lambda pair: -clear[pair])[:MOST_PAIRS])
    return tuple(pair for pair in pairs if pair in chosen)


def tilt_figure(audit: Audit, pair: Pair) -> Figure:
    """Draw Relative Δ of every ranker and measure between two groups."""
    every = len(audit.runs) * (len(audit.measures) + 1) <= MOST_ROWS
    measures = [repr(one) for one in (audit.measures if every else [audit.primary_measure])]
    found = {
        run: [t for t in _tilts(audit, run, pair) if t.measure in measures] for run in audit.runs
    }
    name = f"Relative Δ of {measures[0]}" if len(measures) == 1 else "Relative Δ"
    marks = {run: [tilt_mark(t, audit.margin_points) for t in some] for run, some in found.items()}
    return _intervals(audit, pair, name, marks, x="Relative Δ, %")


def control_figure(audit: Audit, pair: Pair) -> Figure:
    """Draw Relative Δ on the primary measure raw and under each control."""
    marks = defaultdict[str, list[Mark]](list)
    for one in audit.controls:
        if (one.a, one.b) == pair and one.tilts:
            marks[one.run].append(
                tilt_mark(one.tilts[audit.primary_index], audit.margin_points, one.control)
            )
    name = f"Relative Δ of {audit.primary_measure!r}"
    return _intervals(audit, pair, f"{name}, raw and controlled", marks, x=f"{name}, %")


def _primary_answers(audit: Audit, pair: Pair) -> list[Effect]:
    """Return every run's answer to the primary question of the card; none where it has no sides."""
    return [
        effect
        for effect in audit.card
        if (effect.a, effect.b) == pair
        and effect.estimand == audit.primary
        and effect.estimand.sided
    ]


def card_figure(audit: Audit, pair: Pair, answers: Sequence[Effect]) -> Figure:
    """Draw what verdicts rest on where nothing is judged, such as twins head to head."""
    name, unit = answers[0].name, answers[0].estimand.suffix.strip() or "points"
    marks = {effect.run: [_answer_mark(effect)] for effect in answers}
    return _intervals(audit, pair, name, marks, x=f"{name}, {unit}", level=0.0)


def _intervals(
    audit: Audit,
    pair: Pair,
    title: str,
    marks: Mapping[str, Sequence[Mark]],
    *,
    x: str,
    level: float | None = None,
) -> Figure:
    """Draw values with their intervals, and say how to read them."""
    drawn = [mark for some in marks.values() for mark in some]
    banded = any(mark.band != (0.0, 0.0) for mark in drawn)
    has_grey = any(known_size(mark.detectable) and not mark.is_detected for mark in drawn)
    grey = f" Grey: {_UNSEEN}." if has_grey else ""
    margin = 0.0 if banded else audit.margin_points if level is None else level
    middle, rest = ("the hatched band", _BAND) if banded else ("0", "")
    shaded = f" Dotted: ±{margin:g} points, which count as level." if margin else ""
    says = (
        f"Right of {middle}: {pair[0]}; left: {pair[1]}. Line: 95 % interval.{grey}{shaded}{rest}"
    )
    drawing = forest(marks, x=x, sides=pair, margin=margin, names=sides_named(pair))
    return Figure(f"{title}, {pair[0]} against {pair[1]}", says, drawing)


def tilt_mark(tilt: Effect, level: float, label: str = "") -> Mark:
    """Turn a Relative Δ into a mark of a figure."""
    known = tilt.value == tilt.value
    ends = f" {interval(tilt.low, tilt.high)}" if tilt.has_interval else ""
    said = f"{signed(tilt.value)} %{ends}" if known else "undefined"
    lines = [f"{tilt.run}, {label + ', ' if label else ''}{tilt.measure}", f"Relative Δ {said}"]
    if known:
        lines.append(
            ", ".join(filter(None, (corrected_p(tilt), counted(tilt.queries, "query", "queries"))))
        )
        # Nothing where the queries do not spread at all, or where a tilt was detected.
        if known_size(tilt.detectable) and not tilt.favours:
            some = f"could detect {tilt.detectable:.0f} % or more"
            lines.append("could not detect any tilt" if tilt.detectable > 200 else some)
    band = (tilt.null_low, tilt.null_high) if not tilt.twins else (0.0, 0.0)
    if not tilt.twins:
        lines.append(f"random labels {interval(*band)}")
    return Mark(
        label or tilt.measure,
        tilt.value,
        tilt.low,
        tilt.high,
        VERDICT_TONES[tilt.verdict(level)],
        detectable=tilt.detectable,
        neutral=tilt.neutral,
        band=band,
        hover=tuple(lines),
    )


def _answer_mark(e: Effect) -> Mark:
    value, low, high, detectable, neutral = (
        100 * v for v in (e.value, e.low, e.high, e.detectable, e.neutral)
    )
    ends = f" [{e.estimand.amount(e.low)}, {e.estimand.amount(e.high)}]" if e.has_interval else ""
    hover = (e.run, f"{e.name} {e.estimand.answer(e.value)}{ends}", *filter(None, [corrected_p(e)]))
    band = (100 * e.null_low, 100 * e.null_high) if e.banded else (0.0, 0.0)
    return Mark(
        e.name,
        value,
        low,
        high,
        VERDICT_TONES[e.favours or "inconclusive"],
        detectable=detectable,
        neutral=neutral,
        band=band,
        hover=hover,
    )


def effectiveness_figure(audit: Audit, pair: Pair) -> Figure:
    """Draw Relative Δ beside effectiveness, both on the primary measure."""
    name, (a, b) = repr(audit.primary_measure), pair
    means = audit.by_group().filter(group=ALL, measure=name)
    tilts = {run: _tilts(audit, run, pair)[audit.primary_index] for run in audit.runs}
    points = []
    for run, mean in means.select("run", 100 * pl.col("mean")).iter_rows():
        mark = tilt_mark(tilts[run], audit.margin_points, run)
        hover = (run, f"{name} {decimal(mean)} %", *mark.hover[1:])
        points.append(
            ScatterPoint(Mark(run, mark.value, mark.low, mark.high, mark.tone, hover=hover), mean)
        )
    twins = all(tilt.twins for tilt in tilts.values())
    heights = (
        f"above 0 relevant {a} stands higher, below 0 {b}."
        if twins
        else f"the higher, the more for {a}. Level is what random labels give (see the table), not 0."
    )
    left = [
        point.mark.label
        for point in points
        if point.x != point.x or point.mark.value != point.mark.value
    ]
    undrawn = f" Not drawn, because a value is undefined: {', '.join(left)}." if left else ""
    return Figure(
        f"{name} over all documents, and how far it tilts between {a} and {b}",
        f"The farther right, the higher the mean; {heights} Lines: 95 % intervals.{undrawn}",
        scatter(
            points,
            x=f"{name} over all documents, %",
            y=f"Relative Δ of {name}, %",
            margin=audit.margin_points if twins else 0.0,
            names=sides_named(pair),
        ),
        folded=True,
    )


def _tilts(audit: Audit, run: str, pair: Pair) -> list[Effect]:
    return [t for t in audit.tilts if t.run == run and (t.a, t.b) == pair]
