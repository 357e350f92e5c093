"""An audit of citations: rates by side, the funnel, rates by rank, and domains."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import isfinite, isnan, log2
from operator import attrgetter

from ranktilt.citing.result import CitationAudit, CitationEffect, FunnelPart, RankRate, StageShare
from ranktilt.reporting.document import (
    Block,
    Cell,
    Column,
    ColumnOf,
    Document,
    PageBlocks,
    Section,
    Sentence,
    Table,
    name_column,
    tabulated,
    text_column,
)
from ranktilt.reporting.headline import headline
from ranktilt.reporting.interval_chart import (
    MOST_ROWS,
    IntervalChart,
    IntervalMark,
    IntervalReading,
    IntervalRow,
    interval_chart,
)
from ranktilt.reporting.numbers import count, decimal, estimate, number, p_value, percent, signed
from ranktilt.reporting.provenance import provenance
from ranktilt.reporting.sentences.citing import (
    FUNNEL_WORDS,
    QUESTION_WORDS,
    citing_meaning,
    funnel_sentence,
    ratio_words,
    steps,
    these_units_sentences,
    verdict_sentence,
)
from ranktilt.reporting.sentences.notes import note_sentences
from ranktilt.reporting.tones import Tone

_MOST_DOMAINS = 10
_OVER = {"questions": "these domains, further questions", "questions and units": ""}


def view(audit: CitationAudit) -> Document:
    """Return the document of an audit of citations."""
    notes = note_sentences(audit.notes)
    return Document(
        kind="Whom the answers cite",
        headline=headline(audit),
        sections=(
            Section("rates", "Who is cited, and how much more often", (), (_effects(audit),)),
            *_funnel_section(audit),
            *_rank_section(audit),
            _domain_section(audit),
            provenance(audit.spec, notes),
        ),
        sentences=tuple(_sentences(audit)),
        meaning=citing_meaning(audit),
        hero=PageBlocks(make=partial(_hero, audit)),
        next_steps=steps(audit),
        legend=tuple(_legend(audit)),
        notes=notes,
        sides=(audit.primary[0].a, audit.primary[0].b),
        names=audit.groups,
    )


def _sentences(audit: CitationAudit) -> Iterator[Sentence]:
    """Say the verdict on each pair, and which units it rests on."""
    for effect in audit.primary:
        yield Sentence(verdict_sentence(audit, effect), _tone(audit, effect), "strong")
        for text in these_units_sentences(audit, effect):
            yield Sentence(text)


def _tone(audit: CitationAudit, effect: CitationEffect) -> Tone:
    tones: dict[str, Tone] = {"a": "first", "b": "second", "level": "good"}
    return tones.get(effect.verdict(audit.margin), "unsure")


def _effects(audit: CitationAudit) -> Table:
    """Lay out a row for each question, below a heading for each of several pairs."""
    first = audit.primary[0]
    has_pairs = len(audit.primary) > 1
    titles = ("first", "second") if has_pairs else (first.a, first.b)
    columns: list[ColumnOf] = [
        (name_column("question"), lambda effect: QUESTION_WORDS[effect.question]),
        (Column(titles[0], hint="rate or part, in %"), partial(_side, side="value_a")),
        (Column(titles[1], hint="rate or part, in %"), partial(_side, side="value_b")),
        (Column("ratio, or part in %"), _value),
        (Column("neutral", spare=5), _neutral),
        (Column("corrected p", spare=6), lambda effect: number(effect.p_corrected, p_value)),
        (Column("citations", spare=2), _citations),
    ]
    caption = "Citations by question, with 95 % intervals over questions and domains"
    if not has_pairs:
        return tabulated(caption, audit.effects, columns)
    rows = sorted(audit.effects, key=lambda effect: (effect.a, effect.b))
    return tabulated(
        caption,
        rows,
        columns,
        group=lambda effect: (f"{effect.a} against {effect.b}",),
        groups=("pair",),
    )


def _side(effect: CitationEffect, side: str) -> Cell:
    value = getattr(effect, side)
    if effect.scale == "share":
        return number(value, decimal)
    return number(value, _small_percent)


def _small_percent(rate: float) -> str:
    return decimal(100 * rate, 2 if rate < 0.1 else 1)


def _value(effect: CitationEffect) -> Cell:
    if effect.scale == "share":
        return estimate(effect, decimal)
    return estimate(effect, ratio_words)


def _neutral(effect: CitationEffect) -> Cell:
    show = decimal if effect.scale == "share" else partial(decimal, digits=0)
    return number(effect.neutral, show)


def _citations(effect: CitationEffect) -> str:
    return f"{effect.citations_a:,} | {effect.citations_b:,}"


def _funnel_section(audit: CitationAudit) -> Iterator[Section]:
    """Lay out the stages and, where lists are known, the parts of the difference."""
    columns: list[ColumnOf] = [
        (name_column("stage"), attrgetter("stage")),
        (text_column("group"), attrgetter("group")),
        (Column("share, %"), lambda stage: estimate(stage, decimal)),
        (Column("pages", spare=1), lambda stage: number(stage.pages, count)),
    ]
    blocks: list[Block] = [tabulated("From stage to stage", audit.stages, columns)]
    lead: tuple[str, ...] = ()
    if audit.funnel:
        pair = _pair(audit.funnel[0])
        parts = tuple(part for part in audit.funnel if _pair(part) == pair)
        lead = (f"{funnel_sentence(parts)}.",)
        part_columns: list[ColumnOf] = [
            (name_column("part"), attrgetter("name")),
            (text_column("which is", spare=1), lambda part: FUNNEL_WORDS[part.name]),
            (Column("points"), lambda part: estimate(part, signed)),
            (Column("p", spare=2), lambda part: number(part.p, p_value)),
        ]
        blocks.append(
            tabulated(
                "Share of citations less share of what was retrieved, in parts",
                audit.funnel,
                part_columns,
                group=lambda part: (f"{part.a} against {part.b}",),
                groups=("pair",),
            )
        )
    yield Section("funnel", "Retrieved, consulted, cited", lead, tuple(blocks))


def _pair(part: FunnelPart) -> tuple[str, str]:
    return part.a, part.b


def _rank_section(audit: CitationAudit) -> Iterator[Section]:
    if not audit.rank_rates:
        return
    columns: list[ColumnOf] = [
        (name_column("ranks"), _ranks),
        (text_column("group"), attrgetter("group")),
        (Column("cited, %"), lambda rate: estimate(rate, percent)),
        (Column("pages"), lambda rate: number(rate.pages, count)),
    ]
    table = tabulated("How often a page at a rank is cited", audit.rank_rates, columns, folded=True)
    yield Section("ranks", "By rank", (), (table,))


def _ranks(rate: RankRate) -> str:
    return str(rate.first) if rate.first == rate.last else f"{rate.first}–{rate.last}"


def _domain_section(audit: CitationAudit) -> Section:
    """List the most cited domains, and how concentrated and steady citations are."""
    steady = audit.steadiness
    lead = [
        f"Citations are spread as over {decimal(steady.effective_domains)} equally cited domains; "
        f"the largest has {percent(steady.largest_share)} %."
    ]
    if steady.repeats and not isnan(steady.jaccard):
        lead.append(
            f"Two answers to one query share {percent(steady.jaccard)} % of the pages that either "
            f"cites ({steady.repeats:,} pairs of repeats; in order, rank-biased overlap "
            f"{decimal(steady.overlap, 2)})."
        )
    columns: list[ColumnOf] = [
        (name_column("domain"), attrgetter("domain")),
        (text_column("group"), attrgetter("group")),
        (Column("citations"), lambda domain: number(domain.citations, count)),
        (Column("consulted", spare=2), lambda domain: number(domain.consulted, count)),
        (Column("retrieved", spare=1), lambda domain: number(domain.retrieved, count)),
    ]
    cited = [domain for domain in audit.domains if domain.citations][:_MOST_DOMAINS]
    table = tabulated("The most cited domains", cited, columns, folded=True)
    return Section("domains", "Domains", tuple(lead), (table,), titled=True)


def _hero(audit: CitationAudit) -> Iterator[IntervalChart]:
    """Draw group a's share of every stage, or the primary ratio of every pair."""
    if len(audit.primary) == 1 and len({stage.stage for stage in audit.stages}) > 1:
        first = audit.primary[0].a
        shares = [stage for stage in audit.stages if stage.group == first]
        yield interval_chart(
            f"{first} pages at each stage",
            "Where the share falls from one stage to the next, these pages were passed over.",
            [_stage_row(stage) for stage in shares],
            scales=("share of pages, %",),
        )
        return
    rows = [_ratio_row(effect) for effect in audit.primary if _is_drawn(effect)][:MOST_ROWS]
    if rows:
        yield interval_chart(
            "How many times as often one side is cited, in doublings",
            "At 0 both sides are cited alike; at 1 the first is cited twice as often.",
            rows,
            scales=("doublings",),
        )


def _stage_row(stage: StageShare) -> IntervalRow:
    reading = IntervalReading(
        mark=IntervalMark(value=stage.value, low=stage.low, high=stage.high),
        text=f"{decimal(stage.value)} % [{decimal(stage.low)}, {decimal(stage.high)}]",
        neutral=float("nan"),
    )
    return IntervalRow(label=stage.stage, readings=(reading,), note=f"{stage.pages:,} pages")


def _is_drawn(effect: CitationEffect) -> bool:
    return effect.scale == "log ratio" and isfinite(effect.value) and effect.value > 0


def _ratio_row(effect: CitationEffect) -> IntervalRow:
    low, high = effect.low, effect.high
    if effect.these_units is not None:
        low, high = effect.these_units.low, effect.these_units.high
    ends = [log2(end) if isfinite(end) and end > 0 else float("nan") for end in (low, high)]
    reading = IntervalReading(
        mark=IntervalMark(value=log2(effect.value), low=ends[0], high=ends[1]),
        text=f"{ratio_words(effect.value)} [{ratio_words(low)}, {ratio_words(high)}]",
    )
    return IntervalRow(label=f"{effect.a} / {effect.b}", readings=(reading,))


def _legend(audit: CitationAudit) -> Iterator[str]:
    yield (
        "A page cited twice in an answer counts once; every query counts alike, however often it "
        "was asked."
    )
    yield (
        "p is the larger of two tests: labels exchanged between domains, and a t test over "
        "questions and domains with as many degrees of freedom as the side with fewer domains "
        "allows. Intervals are one at a time; p is corrected "
        f"({audit.correction.title()})."
    )
    if any(stage.over == "questions" for stage in audit.stages):
        yield (
            "Shares of stages are given for these domains in further questions: too few domains "
            "carry a side to speak of its kind."
        )
