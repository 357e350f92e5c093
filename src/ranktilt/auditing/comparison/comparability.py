"""What makes two audits hard to compare: other twins, labels, judgments, documents or depths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

import numpy as np

from ranktilt.auditing.result import Audit
from ranktilt.data.notes.base import Note
from ranktilt.data.notes.comparisons import (
    InputPart,
    InputsDiffer,
    ListDepthsDiffer,
    TwinsInOneAudit,
)

_NAMED = 3
"""Most files that a note names."""


def comparability_notes(new: Audit, old: Audit, sides: tuple[str, str]) -> Iterator[Note]:
    """Note what else differs between two audits than their runs; nothing of an audit and itself.

    `sides` are the names of the two audits.
    """
    if new is old:
        return
    yield from _twin_notes(new, old, sides)
    new_files, old_files = _input_files(new.spec), _input_files(old.spec)
    for part in new_files:
        if part in old_files and new_files[part].hashes != old_files[part].hashes:
            yield InputsDiffer(
                severity="note" if part == "documents" else "warning",
                part=part,
                sides=sides,
                files=(new_files[part].names, old_files[part].names),
            )


def _twin_notes(new: Audit, old: Audit, sides: tuple[str, str]) -> Iterator[Note]:
    """Note that only one of two audits knows which documents are twins."""
    has_twins = [_has_twins(audit) for audit in (new, old)]
    first, second = (f"the {side} audit" for side in sides)
    if has_twins == [{True}, {False}]:
        yield TwinsInOneAudit(sides=(first, second))
    if has_twins == [{False}, {True}]:
        yield TwinsInOneAudit(sides=(second, first))


def _has_twins(audit: Audit) -> set[bool]:
    """Return whether the answers about two groups compare twins; both where some do."""
    effects = [effect for effect in (*audit.tilts, *audit.card) if effect.estimand.sided]
    return {effect.twins for effect in effects}


@dataclass(frozen=True, kw_only=True)
class _Files:
    """The files behind one part of an audit."""

    hashes: set[str] = field(default_factory=set)
    """SHA-256 of each."""
    paths: list[str] = field(default_factory=list)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the first few."""
        return tuple(PurePath(path).name for path in self.paths[:_NAMED])


def _input_files(spec: Mapping[str, Any]) -> dict[InputPart, _Files]:
    """Return the files behind the labels, judgments and documents of an audit, as far as known."""
    collection = spec.get("collection") or {}
    files = dict[InputPart, _Files]()
    for row in spec.get("inputs", ()):
        part = _input_part(str(row["path"]), collection)
        if part is not None:
            members = files.setdefault(part, _Files())
            members.hashes.add(str(row["sha256"]))
            members.paths.append(str(row["path"]))
    return files


def _input_part(path: str, collection: Mapping[str, Any]) -> InputPart | None:
    """Return the part of an audit that a file holds; None for runs, queries and unknown files."""
    if path == collection.get("qrels"):
        return "judgments"
    if path == collection.get("labels"):
        return "labels"
    folder = PurePath(str(collection.get("path") or "-"))
    if folder not in PurePath(path).parents:
        return None
    inner = PurePath(path).relative_to(folder)
    if "qrels" in inner.parts:
        # Judgments that --qrels replaces do not count.
        return None if collection.get("qrels") else "judgments"
    return None if inner.name.startswith("queries") else "documents"


def depth_notes(
    new: Audit, old: Audit, runs: Sequence[tuple[str, str]], cutoff: int | None
) -> Iterator[Note]:
    """Note runs of two audits whose lists have other depths within the cutoff of the measure."""
    if new is old:
        return
    for run, old_run in runs:
        depth, old_depth = _depth(new, run), _depth(old, old_run)
        if depth is None or old_depth is None or depth == old_depth:
            continue
        if cutoff is None or min(depth, old_depth) < cutoff:
            yield ListDepthsDiffer(run=run, old_run=old_run, depth=depth, old_depth=old_depth)


def _depth(audit: Audit, run: str) -> int | None:
    """Return the length of a run's longest list; None if its lists are not kept or cut."""
    top_results = audit.top_results
    if top_results is None or not top_results.is_complete:
        return None
    lists = top_results.runs[audit.runs.index(run)]
    return int(np.diff(lists.offsets).max(initial=0))
