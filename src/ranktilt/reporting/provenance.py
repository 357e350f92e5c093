"""How a result was made, as a section of a page: the command, the options, the versions, and what to know."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any

from ranktilt.reporting.document import (
    Block,
    Code,
    Lines,
    Pairs,
    Section,
    Sentence,
    named,
    tabulated,
    worded,
)

_MOST, _SHOWN = 20, 3
"""Items of a list that are shown, and of a longer one; the file of the result holds them all."""
_REPEATS = "the same inputs, options and versions give the same numbers"
_NAMES = {"ranktilt": "RankTilt", "path": "collection", "python": "Python"}


def folder(spec: Mapping[str, Any]) -> str:
    """Return the name of the folder or file that a result was made from, without what is above it; empty for none."""
    collection = spec.get("collection")
    found = collection if isinstance(collection, Mapping) else {}
    path = spec.get("path") or found.get("path") or found.get("labels")
    return PurePath(str(path)).name if path else ""


def titled(kind: str, spec: Mapping[str, Any]) -> str:
    """Say what a result is, and of which folder where it has a name: ``titled("Study of", spec)``."""
    name = folder(spec)
    return f"{kind} {name}" if name else kind.rpartition(" ")[0]


def provenance(
    spec: Mapping[str, Any], notes: Iterable[str] = (), *, repeats: str = _REPEATS
) -> Section:
    """Say how a result was made, and what making it again would give."""
    blocks: list[Block] = []
    if said := tuple(notes):
        blocks.append(Lines(tuple(map(Sentence, said)), only="page"))
    lead: tuple[str, ...] = ()
    if spec.get("command"):
        lead = (f"Made by the command below; {repeats}.",)
        blocks.append(Code("The command that made it", str(spec["command"])))
    told = {name: value for name, value in spec.items() if name not in ("command", "inputs")}
    rest = tuple(
        (_NAMES.get(name, name.replace("_", " ")), _said(value)) for name, value in told.items()
    )
    blocks.append(Pairs(tuple((name, value) for name, value in rest if value)))
    if spec.get("inputs"):
        columns = (
            (named("file"), lambda one: one["path"]),
            (worded("SHA-256"), lambda one: one["sha256"]),
        )
        blocks.append(tabulated("Inputs", spec["inputs"], columns, only="page"))
    return Section("made", "How it was made", lead, tuple(blocks), folded=True)


def _said(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(_named(name, one) for name, one in value.items() if one is not None)
    if isinstance(value, list | tuple):
        if any(isinstance(one, Mapping) for one in value):
            return "\n".join(map(_said, value))
        more = f" and {len(value) - _SHOWN:,} more" if len(value) > _MOST else ""
        return ", ".join(map(_said, value[: _SHOWN if more else None])) + more
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    return "" if value is None else str(value)


def _named(name: str, value: Any) -> str:
    said = _said(value)
    return f"{name} ({said})" if isinstance(value, Mapping) else f"{name} {said}"
