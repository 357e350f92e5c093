"""A sequential audit: the decision, and how the interval closed in on it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ranktilt.auditing.sequential import Look, SequentialAudit
from ranktilt.reporting.document import (
    Block,
    Column,
    Document,
    Figure,
    PageBlocks,
    Section,
    Sentence,
    Table,
    tabulated,
)
from ranktilt.reporting.figures.charts import Point, lines
from ranktilt.reporting.headline import headline
from ranktilt.reporting.interval_chart import (
    MOST_ROWS,
    IntervalChart,
    IntervalMark,
    IntervalReading,
    IntervalRow,
    interval_chart,
)
from ranktilt.reporting.numbers import count, number
from ranktilt.reporting.provenance import provenance, titled
from ranktilt.reporting.sentences.sequential import (
    decision_sentence,
    look_words,
    query_count_sentence,
    sequential_meaning,
)
from ranktilt.reporting.tones import VERDICT_TONES

_SHOWN = 8


def view(found: SequentialAudit) -> Document:
    """Return what is said of a sequential audit."""
    lead = (
        f"Which of {found.a} and {found.b} stands higher, decided for a tilt of "
        f"{found.stop_at_tilt:g}?",
    )
    some = _some(found.looks)
    side = "a" if found.looks[-1].value > 0 else "b"
    tone = VERDICT_TONES[side if found.decision == "tilted" else found.decision]
    blocks: tuple[Block, ...] = (PageBlocks(make=partial(_figure, found)), _table(found, some))
    return Document(
        kind=titled(f"Sequential audit of {found.run} on", found.spec),
        headline=headline(found),
        sections=(Section("looks", "Look by look", lead, blocks), provenance(found.spec)),
        sentences=(
            Sentence(decision_sentence(found), tone, "strong"),
            Sentence(query_count_sentence(found)),
        ),
        meaning=sequential_meaning(found),
        hero=PageBlocks(make=partial(_hero, found, some)),
        legend=tuple(_legend(found)),
        sides=(found.a, found.b),
    )


def _hero(audit: SequentialAudit, looks: list[Look]) -> Iterator[IntervalChart]:
    """Draw some looks, the last one below all others."""
    rows = [_hero_row(audit, look) for look in looks[-MOST_ROWS:] if look.queries]
    if not rows:
        return
    yield interval_chart(
        f"{audit.measure} of {audit.run}, look by look",
        f"Line: 95 % confidence sequence. Shaded: ±{audit.stop_at_tilt:g}, the tilt to be decided.",
        rows,
        scales=[f"{audit.measure},{audit.estimand.suffix or ' value'}"],
        sides=(f"◀ {audit.b}", f"{audit.a} ▶"),
    )


def _hero_row(audit: SequentialAudit, look: Look) -> IntervalRow:
    scale = audit.estimand.scale
    is_last = look is audit.looks[-1]
    side = "a" if look.value > 0 else "b"
    decided = VERDICT_TONES[side if audit.decision == "tilted" else audit.decision]
    reading = IntervalReading(
        mark=IntervalMark(value=scale * look.value, low=scale * look.low, high=scale * look.high),
        text=look_words(audit, look).removeprefix(f"{audit.measure} "),
        tone=decided if is_last else "unsure",
        band=(-audit.stop_at_tilt, audit.stop_at_tilt),
    )
    return IntervalRow(label=f"{look.queries:,} queries", readings=(reading,))


def _some(looks: tuple[Look, ...]) -> list[Look]:
    """Looks at about doubling numbers of queries, and the last."""
    kept = [looks[0]]
    for look in looks[1:-1]:
        if look.queries >= 2 * kept[-1].queries:
            kept.append(look)
    return [*kept[-_SHOWN:], *looks[-1:]] if len(looks) > 1 else kept


def _table(found: SequentialAudit, some: list[Look]) -> Table:
    of = found.estimand
    columns = (
        (Column("queries", header=True), lambda look: number(look.queries, count)),
        ("origins" if found.twins else "documents", lambda look: number(look.documents, count)),
        (found.measure, lambda look: number(look.value, of.amount)),
        ("low", lambda look: number(look.low, of.amount)),
        ("high", lambda look: number(look.high, of.amount)),
    )
    return tabulated("Some looks", some, columns)


def _figure(found: SequentialAudit) -> Iterator[Figure]:
    of, last = found.estimand, found.looks[-1]
    points = [
        Point(
            float(look.queries),
            of.scale * look.value,
            of.scale * look.low,
            of.scale * look.high,
            f"{look.queries:,} queries: {look_words(found, look)}",
        )
        for look in found.looks
        if look.queries
    ]
    yield Figure(
        "How the interval closed in",
        f"After {last.queries:,} queries {look_words(found, last)}. Bars: the 95 % confidence "
        "sequences. Shaded: "
        f"±{found.stop_at_tilt:g}, the tilt to be decided.",
        lines(
            {found.run: points},
            x="queries",
            y=f"{found.measure},{of.suffix or ' value'}",
            band=found.stop_at_tilt,
        ),
    )


def _legend(found: SequentialAudit) -> Iterator[str]:
    yield (
        f"{found.measure}: + favours {found.a}. The audit ends where the interval excludes 0 "
        "(tilted), or lies within "
        f"±{found.stop_at_tilt:g} (level)."
    )
    yield (
        "Interval: from the lower to the higher end of two 95 % confidence sequences, which "
        "hold at all looks "
        "together, so that one may stop at any of them: over queries, by betting (Waudby-Smith "
        "and Ramdas, JRSS B "
        "2024), and over documents whose label no earlier query used, by a normal mixture "
        "(Robbins, 1970). Documents "
        "that queries bring back are no new evidence."
    )
