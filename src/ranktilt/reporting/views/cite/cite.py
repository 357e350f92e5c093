"""The document of an audit of citations: whose pages an answer engine cites.

An engine retrieves pages, consults some of them, and cites some in its answer: the *stages* of the
*funnel*. Pages carry a *group*, such as shop or forum, and a pair of groups are the two *sides*. A
*unit* is what labels are exchanged between in tests: a page, or a domain whose pages share a group.
An *effect* is the answer to one question about two groups, such as the ratio of their citation
rates; the *verdict* says which side it favours. *Neutral* is the value that favours neither.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import isfinite, log2

from ranktilt.citing.effect import CitationEffect, RankRate, StageShare
from ranktilt.citing.result import CitationAudit
from ranktilt.errors import counted
from ranktilt.reporting.document import Block, Document, Figure, PageBlocks, Section, Sentence
from ranktilt.reporting.figures.charts import Point, lines
from ranktilt.reporting.headline import headline
from ranktilt.reporting.interval_chart import (
    MOST_ROWS,
    IntervalChart,
    IntervalMark,
    IntervalReading,
    IntervalRow,
    drawn_words,
    interval_chart,
)
from ranktilt.reporting.numbers import decimal
from ranktilt.reporting.provenance import provenance
from ranktilt.reporting.sentences.citing.cite import (
    citing_meaning,
    citing_steps,
    funnel_sentence,
    site_noun,
    steadiness_sentences,
    these_units_sentences,
    units_of,
    verdict_sentence,
)
from ranktilt.reporting.sentences.grammar import ratio_words
from ranktilt.reporting.sentences.notes import note_sentences
from ranktilt.reporting.tones import Tone
from ranktilt.reporting.views.cite.query_groups import (
    cite_group_section,
    cite_group_sentences,
)
from ranktilt.reporting.views.cite.tables import (
    NOT_RETRIEVED,
    domain_table,
    effect_table,
    funnel_table,
    rank_name,
    rank_table,
    stage_table,
)

_DODGE = 0.12
"""Distance along the horizontal axis between the points of two groups, which none may hide."""


def view(audit: CitationAudit) -> Document:
    """Return the document of an audit of citations."""
    notes = note_sentences(audit.notes)
    first = audit.primary[0]
    sections = [
        Section("rates", "Who is cited, and how much more often", blocks=(effect_table(audit),)),
        _funnel_section(audit),
        *_rank_section(audit),
        *cite_group_section(audit),
        _domain_section(audit),
        provenance(audit.spec, notes),
    ]
    return Document(
        kind="Whom the answers cite",
        headline=headline(audit),
        sections=tuple(sections),
        sentences=tuple(_sentences(audit)),
        meaning=citing_meaning(audit),
        first_figure=PageBlocks(make=partial(_first_figure, audit)),
        next_steps=tuple(citing_steps(audit)),
        legend=tuple(_legend(audit)),
        notes=notes,
        sides=(first.a, first.b),
        names=audit.groups,
    )


def _sentences(audit: CitationAudit) -> Iterator[Sentence]:
    """Yield the verdict on each pair of groups and, where units are few, what holds for these."""
    for effect in audit.primary:
        yield Sentence(verdict_sentence(audit, effect), _tone(audit, effect), "strong")
        for text in these_units_sentences(audit, effect):
            yield Sentence(text)
    yield from cite_group_sentences(audit)


def _tone(audit: CitationAudit, effect: CitationEffect) -> Tone:
    """Return the tone of the side that an effect favours."""
    tones: dict[str, Tone] = {"a": "first", "b": "second", "level": "good"}
    return tones.get(effect.verdict(audit.margin), "unsure")


def _funnel_section(audit: CitationAudit) -> Section:
    """Return the section on the stages.

    Where retrieved lists are known, it also splits the difference between cited and retrieved
    pages into parts, one for each step; the lead is about the first pair of groups.
    """
    blocks: list[Block] = [stage_table(audit)]
    lead: tuple[str, ...] = ()
    if audit.funnel:
        first = audit.funnel[0]
        parts = [part for part in audit.funnel if (part.a, part.b) == (first.a, first.b)]
        lead = (f"{funnel_sentence(parts)}.",)
        blocks.append(funnel_table(audit))
    return Section("funnel", "Retrieved, consulted, cited", lead=lead, blocks=tuple(blocks))


def _rank_section(audit: CitationAudit) -> Iterator[Section]:
    """Yield the section on citations by rank; nothing where ranks are not known."""
    if audit.rank_rates:
        blocks = (rank_table(audit), PageBlocks(make=partial(_rank_figure, audit)))
        yield Section("ranks", "By rank", blocks=blocks)


def _rank_figure(audit: CitationAudit) -> Iterator[Figure]:
    """Draw how often pages are cited by their rank, with a line for each group.

    Neighbouring ranks may be taken together as a band, such as 4–5. Pages that were not retrieved
    have no rank (their first rank is 0); they are drawn to the right of all ranks.
    """
    # In one group a band may end earlier, at the longest list; the longest name is that of all.
    band_names: dict[int, str] = {}
    for rate in audit.rank_rates:
        if rate.first and len(rank_name(rate)) >= len(band_names.get(rate.first, "")):
            band_names[rate.first] = rank_name(rate)
    positions = {first: float(index) for index, first in enumerate(sorted(band_names))}
    tick_names = {positions[first]: name for first, name in band_names.items()}
    points: dict[str, list[Point]] = {}
    for rate in audit.rank_rates:
        series = rate.group if rate.first else f"{rate.group}, {NOT_RETRIEVED}"
        position = positions.get(rate.first, float(len(positions)))
        tick_names.setdefault(position, "none")
        points.setdefault(series, []).append(_rank_point(rate, position))
    highs = [100 * max(rate.value, rate.high) for rate in audit.rank_rates if isfinite(rate.high)]
    domain = (0.0, min(1.1 * max(highs, default=100.0), 100.0))
    drawing = lines(
        points, x="rank", y="cited, %", dodge=_DODGE, tick_names=tick_names, domain=domain
    )
    yield Figure(
        title="How often a page is cited, by its rank and its group",
        description="Bars: 95 % intervals. Pages without a rank were consulted and not retrieved.",
        drawing=drawing,
    )


def _rank_point(rate: RankRate, position: float) -> Point:
    """Return the point of a citation rate, in percent, at a position of the horizontal axis."""
    pages = counted(rate.pages, "page", "pages")
    return Point(
        x=position,
        value=100 * rate.value,
        low=100 * rate.low,
        high=100 * rate.high,
        label=f"rank {rank_name(rate)}: {decimal(100 * rate.value)} % of {pages}",
    )


def _domain_section(audit: CitationAudit) -> Section:
    """Return the section on the most cited domains, and on how steadily they are cited."""
    lead = tuple(steadiness_sentences(audit))
    title = f"{site_noun(audit).title()}s"
    return Section("domains", title, lead=lead, blocks=(domain_table(audit),), titled=True)


def _first_figure(audit: CitationAudit) -> Iterator[IntervalChart]:
    """Draw the first group's share of pages at every stage, or the ratio of every pair of groups.

    The ratios are drawn where there are several pairs, or only one stage is known.
    """
    if len(audit.primary) == 1 and len({stage.stage for stage in audit.stages}) > 1:
        first = audit.primary[0].a
        shares = [stage for stage in audit.stages if stage.group == first]
        yield interval_chart(
            f"{first} pages at each stage",
            "Where the share falls from one stage to the next, these pages were passed over.",
            [_stage_row(stage) for stage in shares],
            scale_titles=("share of pages, %",),
        )
        return
    ratios = [_ratio_row(effect) for effect in audit.primary if _is_drawn(effect)]
    rows = ratios[:MOST_ROWS]
    if rows:
        yield interval_chart(
            "How many times as often one side is cited, in doublings",
            "At 0 both sides are cited alike; at 1 the first is cited twice as often."
            f"{drawn_words(len(rows), len(ratios), 'pairs')}",
            rows,
            scale_titles=("doublings",),
        )


def _stage_row(stage: StageShare) -> IntervalRow:
    """Return the row of a stage: the group's share of its pages, which has no neutral value."""
    reading = IntervalReading(
        mark=IntervalMark(value=stage.value, low=stage.low, high=stage.high),
        text=f"{decimal(stage.value)} % [{decimal(stage.low)}, {decimal(stage.high)}]",
        neutral=float("nan"),
    )
    return IntervalRow(
        label=stage.stage, readings=(reading,), note=counted(stage.pages, "page", "pages")
    )


def _is_drawn(effect: CitationEffect) -> bool:
    """Tell whether an effect is a ratio that has a place on a logarithmic scale."""
    return effect.scale == "log ratio" and isfinite(effect.value) and effect.value > 0


def _ratio_row(effect: CitationEffect) -> IntervalRow:
    """Return the row of a ratio in doublings: its logarithm to base 2.

    With too few units to speak of others, its interval is over further queries about the same
    units.
    """
    low, high = effect.low, effect.high
    if effect.these_units is not None:
        low, high = effect.these_units.low, effect.these_units.high
    reading = IntervalReading(
        mark=IntervalMark(value=log2(effect.value), low=_doublings(low), high=_doublings(high)),
        text=f"{ratio_words(effect.value)} [{ratio_words(low)}, {ratio_words(high)}]",
    )
    return IntervalRow(label=f"{effect.a} / {effect.b}", readings=(reading,))


def _doublings(ratio: float) -> float:
    """Return the logarithm of a ratio to base 2; NaN where it is not finite."""
    return log2(ratio) if isfinite(ratio) and ratio > 0 else float("nan")


def _legend(audit: CitationAudit) -> Iterator[str]:
    """Yield sentences on how citations are counted and tested."""
    yield (
        "A page cited twice in an answer counts once; every query counts alike, however often it "
        "was asked."
    )
    units = units_of(audit)
    yield (
        f"p is the larger of two tests: labels exchanged between {units}, and a t test over "
        f"questions and {units} with as many degrees of freedom as the side with fewer {units} "
        "allows. Intervals are one at a time; p is corrected "
        f"({audit.correction.title()})."
    )
    if any(stage.over == "questions" for stage in audit.stages):
        yield (
            f"Shares of stages are given for these {units} in further questions: too few {units} "
            "carry a side to speak of its kind."
        )
