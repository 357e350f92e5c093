"""A gate: a row a check, the reasons, and the outcome."""

from __future__ import annotations

import math
from collections.abc import Iterator

import polars as pl

from ranktilt.auditing.answer.gate import Gate, GateRow, LimitCheck
from ranktilt.reporting.document import PAGE, TEXT, Cell, Column, Document, Row, Sentence, Table, printed
from ranktilt.reporting.numbers import ends, signed
from ranktilt.reporting.tones import TEXT_SIGNS, VERDICT_TONES

_LABEL = 26


def view(gate: Gate) -> Document:
    """Return what is said of a gate."""
    columns = (
        Column("measure", number=False, width=_LABEL, header=True),  # it holds the names of runs too
        Column("groups", number=False),
        Column("check", number=False),
        Column("value"),
        Column("95 % interval"),
        Column("allowed", spare=1),
        Column("queries", spare=1),
        Column("outcome", number=False),
    )
    rows = tuple(_row(row, check) for row in gate.rows for check in row.checks)
    return Document(
        title="Gate",
        kind="Gate on a bench" if "budget" in gate.spec else "Gate on an audit",
        headline=gate.headline,
        sections=printed([Table("Checks", columns, rows, groups=("ranker",), optional=True)]),
        sentences=tuple(sentence for row in gate.rows for sentence in _sentences(row)),
        notes=gate.notes,
        outcome=VERDICT_TONES[gate.outcome],
        commands=tuple(str(gate.spec[key]) for key in ("audit", "command") if gate.spec.get(key)),
        data=_data(gate),
    )


def _sentences(row: GateRow) -> Iterator[Sentence]:
    """In text with a sign; a page sets it."""
    text, tone = f"{row.run}, {row.measure}, {row.groups}: {row.word}: {row.reason}", VERDICT_TONES[row.outcome]
    yield Sentence(f"{TEXT_SIGNS[tone]} {text}", tone, only=TEXT)
    yield Sentence(text, tone, only=PAGE)


def _row(row: GateRow, check: LimitCheck) -> Row:
    tone = VERDICT_TONES[check.outcome]
    cells = (
        Cell(row.measure),
        Cell(row.groups),
        Cell(check.name),
        Cell(signed(check.value), check.value),
        Cell(" … ".join(ends(check.low, check.high))),
        Cell(_allowed(check)),
        Cell(str(row.queries), row.queries),
        Cell(f"{TEXT_SIGNS[tone]} {check.word}", None, tone, page=check.word),
    )
    return Row(cells, (row.run,), repeats=0 if check is row.checks[0] else 2)


def _allowed(check: LimitCheck) -> str:
    if not math.isfinite(check.floor):  # a file holds no infinity
        return f"≤ {check.ceiling:g}"
    if not math.isfinite(check.ceiling):
        return f"≥ {signed(check.floor)}"
    return f"{signed(check.floor)} … {signed(check.ceiling)}"


def _data(gate: Gate) -> pl.DataFrame:
    records = [
        {
            "run": row.run, "measure": row.measure, "a": row.a, "b": row.b, "check": check.name, "value": check.value,
            "low": check.low, "high": check.high, "floor": check.floor, "ceiling": check.ceiling,
            "queries": row.queries, "outcome": check.outcome, "reason": check.reason,
        }
        for row in gate.rows
        for check in row.checks
    ]  # fmt: skip
    return pl.DataFrame(records, infer_schema_length=None)
