"""The document of a sequential audit, which looks at more and more queries until it can decide.

A *tilt* is how far a ranker favours one of two groups of documents. Each *look* has the tilt over
the queries so far, with an interval from a *confidence sequence*: all intervals hold together, so
the audit may stop at any look.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ranktilt.auditing.sequential import Look, SequentialAudit
from ranktilt.errors import counted
from ranktilt.reporting.document import (
    Block,
    Column,
    Document,
    Figure,
    PageBlocks,
    Section,
    Sentence,
    Table,
    make_table,
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
from ranktilt.reporting.numbers import number_cells, with_commas
from ranktilt.reporting.provenance import provenance, titled
from ranktilt.reporting.sentences.sequential import (
    decision_sentence,
    look_words,
    query_count_sentence,
    sequential_meaning,
)
from ranktilt.reporting.tones import VERDICT_TONES, Tone

_MOST_LOOKS = 8
"""Most looks that a table has, without the last one."""


def view(audit: SequentialAudit) -> Document:
    """Return the document of a sequential audit."""
    looks = _printed_looks(audit.looks)
    question = (
        f"Which of {audit.a} and {audit.b} ranks higher? The audit decides for a tilt of "
        f"{audit.stop_at_tilt:g}."
    )
    figure = PageBlocks(make=partial(_figure, audit))
    blocks: tuple[Block, ...] = (figure, _look_table(audit, looks))
    section = Section("looks", "Look by look", lead=(question,), blocks=blocks)
    sentences = (
        Sentence(decision_sentence(audit), _decision_tone(audit), "strong"),
        Sentence(query_count_sentence(audit)),
    )
    return Document(
        kind=titled(f"Sequential audit of {audit.run} on", audit.spec),
        headline=headline(audit),
        sections=(section, provenance(audit.spec)),
        sentences=sentences,
        meaning=sequential_meaning(audit),
        first_figure=PageBlocks(make=partial(_first_figure, audit, looks)),
        legend=tuple(_legend(audit)),
        sides=(audit.a, audit.b),
    )


def _decision_tone(audit: SequentialAudit) -> Tone:
    """Return the tone of the decision: the favoured side, level or inconclusive."""
    if audit.decision == "tilted":
        return VERDICT_TONES["a" if audit.looks[-1].value > 0 else "b"]
    return VERDICT_TONES[audit.decision]


def _first_figure(audit: SequentialAudit, looks: list[Look]) -> Iterator[IntervalChart]:
    """Draw the last of `looks`, which are in the order of time."""
    rows = [_first_figure_row(audit, look) for look in looks[-MOST_ROWS:] if look.queries]
    if not rows:
        return
    yield interval_chart(
        f"{audit.measure} of {audit.run}, look by look",
        f"Line: 95 % confidence sequence. Shaded: ±{audit.stop_at_tilt:g}, the tilt to be decided.",
        rows,
        scale_titles=[f"{audit.measure},{audit.estimand.suffix or ' value'}"],
        sides=(f"◀ {audit.b}", f"{audit.a} ▶"),
    )


def _first_figure_row(audit: SequentialAudit, look: Look) -> IntervalRow:
    """Return the row of a look; only the last one has the colour of the decision."""
    scale = audit.estimand.scale
    is_last = look is audit.looks[-1]
    reading = IntervalReading(
        mark=IntervalMark(value=scale * look.value, low=scale * look.low, high=scale * look.high),
        text=look_words(audit, look).removeprefix(f"{audit.measure} "),
        tone=_decision_tone(audit) if is_last else "unsure",
        band=(-audit.stop_at_tilt, audit.stop_at_tilt),
    )
    return IntervalRow(label=_query_count(look), readings=(reading,))


def _query_count(look: Look) -> str:
    """Write the number of queries up to a look."""
    return counted(look.queries, "query", "queries")


def _printed_looks(looks: tuple[Look, ...]) -> list[Look]:
    """Return the first look, each that at least doubles the number of queries, and the last.

    Of many such looks the latest are returned.
    """
    if len(looks) == 1:
        return list(looks)
    doubling_looks = [looks[0]]
    for look in looks[1:-1]:
        if look.queries >= 2 * doubling_looks[-1].queries:
            doubling_looks.append(look)
    return [*doubling_looks[-_MOST_LOOKS:], looks[-1]]


def _look_table(audit: SequentialAudit, looks: list[Look]) -> Table:
    """Return the table of looks, with the numbers of queries and documents up to each."""
    amount = audit.estimand.amount
    columns = (
        (Column("queries", header=True), number_cells("queries", with_commas)),
        ("origins" if audit.twins else "documents", number_cells("documents", with_commas)),
        (audit.measure, number_cells("value", amount)),
        ("low", number_cells("low", amount)),
        ("high", number_cells("high", amount)),
    )
    return make_table("Some looks", looks, columns)


def _figure(audit: SequentialAudit) -> Iterator[Figure]:
    """Yield the figure of the interval at every look; nothing where no list says anything."""
    last = audit.looks[-1]
    points = [_look_point(audit, look) for look in audit.looks if look.queries]
    if not points:
        return
    yield Figure(
        "How the interval closed in",
        f"After {_query_count(last)} {look_words(audit, last)}. Bars: the 95 % confidence "
        "sequences. Shaded: "
        f"±{audit.stop_at_tilt:g}, the tilt to be decided.",
        lines(
            {audit.run: points},
            x="queries",
            y=f"{audit.measure},{audit.estimand.suffix or ' value'}",
            band=audit.stop_at_tilt,
        ),
    )


def _look_point(audit: SequentialAudit, look: Look) -> Point:
    """Return the point of a look: its tilt by the number of queries so far."""
    scale = audit.estimand.scale
    return Point(
        x=float(look.queries),
        value=scale * look.value,
        low=scale * look.low,
        high=scale * look.high,
        label=f"{_query_count(look)}: {look_words(audit, look)}",
    )


def _legend(audit: SequentialAudit) -> Iterator[str]:
    """Yield sentences on when the audit ends, and on its intervals."""
    yield (
        f"{audit.measure}: + favours {audit.a}. The audit ends where the interval excludes 0 "
        f"(tilted), or lies within ±{audit.stop_at_tilt:g} (level)."
    )
    yield (
        "Interval: the hull of two 95 % confidence sequences, which hold at all looks together, so "
        "you may stop at any look. One is over queries, by betting (Waudby-Smith and Ramdas, JRSS "
        "B 2024); one is over documents whose label no earlier query used, by a normal mixture "
        "(Robbins, 1970). Documents that appear again are no new evidence."
    )
