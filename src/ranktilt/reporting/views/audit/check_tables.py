"""The table of checks: p-values of an audit's answers by other tests, on which no verdict rests."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from ranktilt.auditing.result import Audit
from ranktilt.measures.contrast import RelativeDelta
from ranktilt.reporting.document import Cell, Column, Row, Table, name_column
from ranktilt.reporting.numbers import number_cell, p_value

_MEANINGS = {
    "sign flips": "sign flips exchange the sides of queries",
    "exchanged labels": "exchanged labels exchange those of documents, alike in all queries",
    "shuffled labels": "shuffled labels are dealt to the documents at random",
}
"""Explanation of each test, by its name."""


def check_table(audit: Audit) -> Table | None:
    """Return the table of each answer's p and those of other tests; None where none was made."""
    # The card repeats the primary Relative Δ, which is among the tilts.
    card = [effect for effect in audit.card if not isinstance(effect.estimand, RelativeDelta)]
    effects = [effect for effect in (*audit.tilts, *card) if effect.checks]
    if not effects:
        return None
    tests = list(dict.fromkeys(chain.from_iterable(effect.checks for effect in effects)))
    rows = []
    for effect in effects:
        checks = (number_cell(effect.checks.get(test, float("nan")), p_value) for test in tests)
        groups = f"{effect.a} | {effect.b}"
        cells = (Cell(effect.name), Cell(groups), number_cell(effect.p, p_value), *checks)
        rows.append(Row(cells, (effect.run,)))
    columns = (
        name_column("question"),
        name_column("groups"),
        Column("p"),
        *map(Column, tests),
    )
    return Table(
        "Checks of p",
        columns,
        tuple(rows),
        note=_note(tests),
        group_titles=("run",),
        collapsed=True,
        audience="page",
    )


def _note(tests: Sequence[str]) -> str:
    """Say how p was computed, and what each of the other tests does."""
    meanings = "; ".join(meaning for test, meaning in _MEANINGS.items() if test in tests)
    return (
        "p is the level at which the interval first excludes the neutral value, before "
        f"correction. Checks assume less, detect less and decide nothing: {meanings}."
    )
