"""Cells that follow from others, computed again: Relative Δ from two means, a ratio from two shares."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ranktilt.measures.contrast import relative_delta
from ranktilt.reporting.papers.cells import KEYS, Cell
from ranktilt.reporting.papers.layouts import Layout

DELTA = "relative_delta"
SHARES = ("unprotected share", "protected share")
RATIO = "PairwiseRatio"


def printed(cells: Sequence[Cell], layout: Layout, *, rounding: str = "paper") -> list[Cell]:
    """Give each cell the text that is printed, and compute again what follows from other cells."""
    found = [replace(cell, text=layout.printed(cell.value, cell.measure)) for cell in cells]
    if layout.derived == DELTA:
        return list(_with_deltas(found, cells, layout, rounding))
    if layout.derived == "ratio":
        return list(_with_ratios(found, layout))
    return found


def _apart(cells: Sequence[Cell], key: str) -> dict[tuple[str, ...], dict[str, Cell]]:
    """Cells that differ in one key alone, by what they share and by that key; in order."""
    found: dict[tuple[str, ...], dict[str, Cell]] = {}
    for cell in cells:
        rest = tuple(str(getattr(cell, other)) for other in KEYS if other != key)
        found.setdefault(rest, {})[str(getattr(cell, key))] = cell
    return found


def _with_deltas(found: Sequence[Cell], cells: Sequence[Cell], layout: Layout, rounding: str) -> Iterator[Cell]:
    given = {cell.place: cell.text for cell in cells}
    made = {}
    for sides in _apart(found, "target").values():
        parts = _parts(sides)
        if len(parts) == 2:
            delta = _delta(parts[0], parts[1], sides.get(DELTA), layout, rounding)
            made[delta.place] = _told(delta, sides.get(DELTA), given)
    for cell in found:
        yield made.pop(cell.place, cell)
    yield from made.values()


def _parts(sides: dict[str, Cell]) -> list[Cell]:
    """Both sides: human and LLM wherever a file puts them, or the two groups that there are, in order."""
    named = [sides[target] for target in ("human", "llm") if target in sides]
    return named if len(named) == 2 else [cell for target, cell in sides.items() if target != DELTA]


def _delta(a: Cell, b: Cell, given: Cell | None, layout: Layout, rounding: str) -> Cell:
    numbers = (float(cell.text) if rounding == "paper" and cell.value == cell.value else cell.value for cell in (a, b))
    value = float(relative_delta(*numbers))
    cell = given or replace(b, target=DELTA, note="")
    return replace(cell, value=value, text=layout.printed(value, cell.measure))


def _told(made: Cell, given: Cell | None, texts: dict[tuple[str, ...], str]) -> Cell:
    """Note where a Relative Δ that a file prints is not what the means give."""
    before = texts.get(made.place, "") if given is not None else ""
    if not before or given is None or given.text == made.text:
        return made
    return replace(made, note=_differs(before, "the two means", made.text, given.note))


def _with_ratios(found: Sequence[Cell], layout: Layout) -> Iterator[Cell]:
    made = {}
    for sides in _apart(found, "measure").values():
        if all(share in sides for share in SHARES):
            ratio = _ratio(sides[SHARES[0]], sides[SHARES[1]], sides.get(RATIO), layout)
            made[ratio.place] = ratio
    for cell in found:
        yield made.pop(cell.place, cell)
    yield from made.values()


def _ratio(unprotected: Cell, protected: Cell, given: Cell | None, layout: Layout) -> Cell:
    value = protected.value / unprotected.value if unprotected.value else math.nan
    made = replace(given or protected, measure=RATIO, value=value, text=layout.printed(value, RATIO))
    if given is None:
        return replace(made, note="")
    half, last = layout.unit(SHARES[0]), layout.unit(RATIO)
    low = (protected.value - half) / (unprotected.value + half)
    high = (protected.value + half) / (unprotected.value - half) if unprotected.value > half else math.inf
    if low - last <= given.value <= high + last:
        return given
    return replace(made, note=_differs(given.text, "the shares", made.text, given.note))


def _differs(before: str, parts: str, now: str, note: str) -> str:
    said = note if now in note else "; ".join(filter(None, (f"{parts} give {now}", note)))
    return f"printed as {before}, recomputed from its parts ({said})"
