"""The queries that contribute most, as a table for readers without scripts and for print."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ranktilt.auditing.groups import ALL, Pair
from ranktilt.measures.base import signed
from ranktilt.reporting.document import Cell, Column, Row, Table, Tone
from ranktilt.reporting.explorer.pack import Material
from ranktilt.reporting.numbers import percent

Ints = npt.NDArray[np.int64]
MOST = 50
MOST_GROUPS = 3
"""Groups with a column of their own; where there are more, the first pair's only."""
MOST_VALUES = 9
"""Values of a query that fit on paper; where all rankers have more, each has its part of Relative Δ alone."""
_WORDS = 120


def rows(material: Material, queries: int) -> Table:
    """Make a table of the queries that contribute most."""
    chosen, every = material.order[: min(queries, MOST)], len(material.audit.queries)
    pair = material.numbers.pairs[0] if material.numbers.pairs else None
    names = _named(material, pair)
    sides = _sides(material, pair, names)
    per_run = _columns(material, pair, sides)
    columns = [Column("query", number=False, header=True, room=24)]
    columns += [Column(name, hint=f"relevant documents of {name}") for name in names if material.audit.measures]
    over = [("", 1), ("relevant documents", len(columns) - 1)][: 1 + (len(columns) > 1)]
    over += [(name, len(per_run)) for name in material.runs if per_run]
    if len(chosen) < every:
        which = f"{len(chosen):,} of {every:,} queries"
    else:
        which = "The query" if every == 1 else f"All {every:,} queries"
    return Table(
        f"{which}{_which(material, pair)}",
        (*columns, *(per_run * len(material.runs))),
        tuple(_row(material, query, pair, names) for query in chosen.tolist()),
        _note(material, pair, sides),
        spans=tuple(over),
    )


def _named(material: Material, pair: Pair | None) -> tuple[str, ...]:
    """The groups that have columns."""
    groups = material.groups.names
    return pair if pair is not None and len(groups) > MOST_GROUPS else groups


def _sides(material: Material, pair: Pair | None, names: tuple[str, ...]) -> tuple[str, ...]:
    """The groups whose values stand beside each ranker's part."""
    many = pair is not None and len(material.runs) * (1 + len(names)) > MOST_VALUES
    return () if many else names


def _columns(material: Material, pair: Pair | None, names: tuple[str, ...]) -> tuple[Column, ...]:
    """The columns of each run."""
    if not material.audit.measures:
        a, b = pair if pair is not None else ("", "")
        sides = ((a, f"twins in which {a} stands higher"), (b, f"twins in which {b} stands higher"))
        return tuple(Column(name, hint=hint) for name, hint in (*sides, ("tied", "twins with equal scores")))
    primary = repr(material.audit.measures[0])
    if pair is None:
        return (Column(primary, hint=f"{primary} of all relevant documents, in %"),)
    part = Column("part of Relative Δ", hint=f"points of Relative Δ that the query brings; positive for {pair[0]}")
    return (part, *(Column(name, hint=f"{primary} of {name} documents, in %") for name in names))


def _row(material: Material, query: int, pair: Pair | None, names: tuple[str, ...]) -> Row:
    text, name = material.queries[query], material.audit.queries[query]
    brief = text if len(text) <= _WORDS else text[: _WORDS - 1] + "…"
    cells = [Cell(brief, note=name) if text.strip() else Cell(name)]
    if material.audit.measures:
        relevant = (int(material.relevant[material.groups.names.index(group), query]) for group in names)
        cells += [Cell(f"{number:,}", number) for number in relevant]
    for run in range(len(material.runs)):
        if material.audit.measures:
            cells += _measured(material, run, query, pair, _sides(material, pair, names))
        else:
            cells += _heads(material.numbers.heads[run, 0, query])
    return Row(tuple(cells))


def _measured(material: Material, run: int, query: int, pair: Pair | None, names: tuple[str, ...]) -> list[Cell]:
    """What a run has of a query on the primary measure."""
    values = material.numbers.values[run, 0, :, query]
    shown = [float(values[material.audit.groups.index(name)]) for name in (names if pair is not None else (ALL,))]
    cells = [Cell(percent(value), value) for value in shown]
    return cells if pair is None else [_part(float(material.numbers.tilt[run, 0, 0, query])), *cells]


def _part(value: float) -> Cell:
    """Points of Relative Δ, with the side that they favour."""
    text = "–" if value != value else signed(value, 2)
    tone: Tone = "first" if value > 0 else "second" if value < 0 else ""
    return Cell(text, value, tone)


def _heads(met: Ints) -> list[Cell]:
    """Wins, losses and ties; dashes where no twins met."""
    return [Cell(f"{n:,}", n) if met.any() else Cell("–", float("nan")) for n in met.tolist()]


def _which(material: Material, pair: Pair | None) -> str:
    """What the order goes by."""
    if pair is None:
        return ""
    if material.audit.measures:
        return (
            f", those first that contribute most to Relative Δ ({material.audit.measures[0]!r}, {pair[0]} − {pair[1]})"
        )
    return f", those first in which the twins of {pair[0]} and {pair[1]} differ most"


def _note(material: Material, pair: Pair | None, sides: tuple[str, ...]) -> str:
    if not material.audit.measures:
        return "Of twins with at least one side retrieved: how often each stands higher."
    primary = repr(material.audit.measures[0])
    if pair is None:
        return f"{primary} in %."
    beside = f" Beside them {primary} of each group in %." if sides else ""
    return f"Parts in points, positive for {pair[0]}: over all queries of the audit they add up to Relative Δ.{beside}"
