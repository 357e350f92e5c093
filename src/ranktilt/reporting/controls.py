"""Raw beside controlled, as cells before any format: per run and pair a row for each control."""

from __future__ import annotations

from dataclasses import dataclass

from ranktilt.auditing.effects import ALPHA, Effect
from ranktilt.auditing.groups import Pair
from ranktilt.auditing.result import RAW, Audit, Controlled
from ranktilt.auditing.verdict import bounds, signed
from ranktilt.errors import counted


@dataclass(frozen=True)
class ControlRow:
    """One row: raw, or a control."""

    label: str
    cells: tuple[str, ...]
    """Relative Δ on each measure, marked where significant; none where the control was not applied."""
    moved: str
    """Change on the primary measure, in points, with its interval."""
    changed: str
    favoured: tuple[str, ...]
    """Per measure ``a``, ``b`` or nothing, by the verdict's rule."""


def control_titles(audit: Audit) -> tuple[str, ...]:
    """Column titles after the label."""
    return (*(repr(m) for m in audit.measures), f"moved on {audit.measures[0]!r}", "changed")


def control_rows(audit: Audit, run: str, pair: Pair) -> list[ControlRow]:
    """Lay out the controls of one run and pair, the raw values first."""
    # Controls that were not applied name only the first pair.
    return [_row(audit, one) for one in audit.controls if one.run == run and ((one.a, one.b) == pair or not one.tilts)]


def _row(audit: Audit, one: Controlled) -> ControlRow:
    moved = ""
    if one.moves and one.moves[0].value == one.moves[0].value:
        moved = f"{signed(one.moves[0].value)} {bounds(one.moves[0].low, one.moves[0].high)}"
    cells = tuple(("–" if t.value != t.value else signed(t.value)) + ("*" if _starred(t) else "") for t in one.tilts)
    favoured = tuple(k if (k := t.verdict(audit.level)) in ("a", "b") else "" for t in one.tilts)
    empty = ("",) * (len(audit.measures) - len(cells))
    return ControlRow(one.control, cells + empty, moved, one.changed, favoured + empty)


def _starred(tilt: Effect) -> bool:
    return tilt.p_corrected < ALPHA


def control_sentences(audit: Audit) -> list[str]:
    """Say for each run which control changes the verdict on the primary measure."""
    said = []
    raws = {(one.run, one.a, one.b): one.tilts[0] for one in audit.controls if one.control == RAW and one.tilts}
    for one in audit.controls:
        raw = raws.get((one.run, one.a, one.b))
        if raw is None or not one.moves or not one.moves[0].shown:
            continue
        before, after = raw.verdict(audit.level), one.tilts[0].verdict(audit.level)
        if before != after:
            said.append(
                f"{one.run}, control {one.control}: Relative Δ on {raw.measure} moves from {signed(raw.value)} to "
                f"{signed(one.tilts[0].value)} %; the verdict from {_kind(raw, before)} to {_kind(raw, after)}"
            )
    return said


def _kind(tilt: Effect, kind: str) -> str:
    side = {"a": tilt.a, "b": tilt.b}.get(kind)
    return f"favours {side}" if side else kind


def control_legend(audit: Audit) -> list[str]:
    """Say what each control takes away."""
    meanings = dict.fromkeys((c.control, c.meaning) for c in audit.controls if c.control != RAW and c.tilts)
    if not meanings:  # the rows say why none was applied
        return []
    said = "; ".join(f"{name}: {meaning}" for name, meaning in meanings)
    tests = counted(max(t.tests for c in audit.controls for t in c.tilts), "test", "tests")
    return [
        f"Controls (Relative Δ in %, ranked again where texts changed): {said}. * corrected p < .05 over the raw and "
        f"controlled values together ({tests}); moved: points, with 95 % paired bootstrap interval."
    ]
