"""Other tests of an audit's answers, printed as checks: they decide nothing."""

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
"""What each check of the instrument does."""


def check_table(audit: Audit) -> Table | None:
    """Show the p of each answer and those of other tests; None where there are no others."""
    # The card repeats the primary tilt.
    others = [effect for effect in audit.card if not isinstance(effect.estimand, RelativeDelta)]
    effects = [effect for effect in (*audit.tilts, *others) if effect.checks]
    names = list(dict.fromkeys(chain.from_iterable(effect.checks for effect in effects)))
    if not effects:
        return None
    rows = []
    for effect in effects:
        checks = (number_cell(effect.checks.get(name, float("nan")), p_value) for name in names)
        pair = f"{effect.a} | {effect.b}"
        cells = (Cell(effect.name), Cell(pair), number_cell(effect.p, p_value), *checks)
        rows.append(Row(cells, (effect.run,)))
    columns = (
        name_column("question"),
        name_column("groups"),
        Column("p"),
        *(Column(name) for name in names),
    )
    return Table(
        "Checks of p",
        columns,
        tuple(rows),
        note=_note(names),
        group_titles=("run",),
        collapsed=True,
        audience="page",
    )


def _note(names: Sequence[str]) -> str:
    """Say what the p means, and how the checks differ from it."""
    meanings = "; ".join(meaning for name, meaning in _MEANINGS.items() if name in names)
    return (
        "p is the level at which the interval first excludes the neutral value, before "
        f"correction. Checks assume less, detect less and decide nothing: {meanings}."
    )
