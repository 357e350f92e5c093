"""A check: per source a row a check, examples below, and one sentence."""

from __future__ import annotations

import math

from ranktilt.datasets.check import (
    LENGTH,
    LENGTH_NOTICE,
    CheckResult,
    CheckRow,
    Verdict,
    percent,
    shown,
)
from ranktilt.datasets.stated_sources import without_source
from ranktilt.reporting.document import (
    Cell,
    Column,
    ColumnOf,
    Document,
    Sentence,
    Table,
    named,
    printed,
    tabulated,
    worded,
)
from ranktilt.reporting.numbers import number
from ranktilt.reporting.tones import Tone

_LONGEST_NAME = 12
TONES: dict[Verdict, Tone] = {"ok": "good", "warning": "warning", "void": "bad"}


def view(check: CheckResult) -> Document:
    """Return what is said of a check."""
    return Document(
        kind=f"Check against {check.reference}"
        if check.reference
        else f"Check of {check.sources[0]}",
        headline=check.sentence,
        sections=printed([check_table(check)]),
        sentences=sentences(check),
        legend=tuple(legend(check)),
        notes=tuple(notes(check)),
    )


def sentences(check: CheckResult) -> tuple[Sentence, ...]:
    """Return the verdict on the whole; where there is no line below a row, then what faults mean."""
    many = len({row.source for row in check.rows if row.source}) > 1
    is_void = bool(check.of("void"))
    said = [
        Sentence(check.sentence, "bad" if is_void else "good", "alarm" if is_void else "strong")
    ]
    for outcome in check.instrument:
        is_right = outcome.is_calibrated
        said.append(
            Sentence(outcome.sentence, "good" if is_right else "bad", "" if is_right else "alarm")
        )
    for row in check.rows:
        name = f"{row.source}, {row.name}" if many and row.source else row.name
        meanings = (row.meaning if row.verdict != "ok" else "", row.note)
        said += [Sentence(f"{name}: {text}", emphasis="quiet") for text in meanings if text]
    return tuple(said)


def notes(check: CheckResult) -> list[str]:
    """Count the documents that are on no side."""
    return [without_source(check.sourceless)] if check.sourceless else []


def check_table(check: CheckResult) -> Table:
    """Lay a check out: a row a check of a source."""
    many = len({row.source for row in check.rows if row.source}) > 1
    name = check.reference if len(check.reference) <= _LONGEST_NAME else "reference"
    beside: tuple[ColumnOf, ...] = (
        (Column(name, spare=3), lambda row: number(row.reference, percent)),
        (Column("limit", spare=2), lambda row: row.limit),
    )
    columns: tuple[ColumnOf, ...] = (
        (
            named("check"),
            lambda row: Cell(row.name, emphasis="" if row.verdict == "ok" else "strong"),
        ),
        ("found", lambda row: Cell(f"{row.found:,} of {row.total:,}", row.found)),
        ("share", lambda row: Cell(shown(row), row.value)),
        *(beside if check.reference else ()),
        (worded("verdict"), _verdict),
        (worded("examples", spare=1), lambda row: ", ".join(row.examples)),
    )
    caption = f"Faults that would void a comparison with {check.reference}"
    if not check.reference:
        caption = f"What stands out in the texts of {check.sources[0]}"
    if not many:
        return tabulated(caption, check.rows, columns)
    return tabulated(
        caption,
        check.rows,
        columns,
        group=lambda row: (row.source or "judgments and queries",),
        groups=("source",),
    )


def _verdict(row: CheckRow) -> Cell:
    outside = row.name == LENGTH and row.verdict == "warning" and not math.isnan(row.value)
    note = f"outside {LENGTH_NOTICE[0]:g}–{LENGTH_NOTICE[1]:g}" if outside else ""
    return Cell(row.verdict, tone=TONES[row.verdict], note=note)


def legend(check: CheckResult) -> list[str]:
    """Say how the table is read, in a few lines."""
    low, high = LENGTH_NOTICE
    if not check.reference:
        return [
            f"Warning: a share over {check.limits.notice:g} %, or any dangling judgment or repeated query."
        ]
    return [
        "Found: documents, pairs, judgments or queries with the fault, and their share; beside it the share in "
        f"{check.reference} itself. Length ratio: pairs outside of the limits, and the median.",
        f"Void: beyond the limit. Warning: a share over {check.limits.notice:g} %, a median length ratio outside "
        f"{low:g}–{high:g}, any dangling judgment or repeated query, or nothing to count.",
    ]
