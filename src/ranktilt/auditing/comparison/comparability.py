"""What makes two audits hard to compare: other twins, labels, judgments, documents or depths.

*Twins* are two versions of one document, of which each of two groups has one. The *depth* of a run
is the length of its longest list. None of these differences stops a comparison; each gives a note.
"""

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

_MOST_NAMED = 3
"""Most files that a note names."""


def comparability_notes(new: Audit, old: Audit, sides: tuple[str, str]) -> Iterator[Note]:
    """Note differences between two audits other than their runs.

    `sides` are the names of the two audits. An audit that is compared with itself has none.
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
                files=(new_files[part].first_names, old_files[part].first_names),
            )


def _twin_notes(new: Audit, old: Audit, sides: tuple[str, str]) -> Iterator[Note]:
    """Note that only one of two audits knows which documents are twins.

    The side that knows it is named first.
    """
    new_twins, old_twins = _twin_flags(new), _twin_flags(old)
    first, second = (f"the {side} audit" for side in sides)
    if new_twins == {True} and old_twins == {False}:
        yield TwinsInOneAudit(sides=(first, second))
    if new_twins == {False} and old_twins == {True}:
        yield TwinsInOneAudit(sides=(second, first))


def _twin_flags(audit: Audit) -> set[bool]:
    """Return which values `Effect.twins` has in an audit: both if only some groups are twins."""
    effects = [effect for effect in (*audit.tilts, *audit.card) if effect.estimand.sided]
    return {effect.twins for effect in effects}


@dataclass(frozen=True, kw_only=True)
class _Files:
    """The files behind one part of an audit."""

    hashes: set[str] = field(default_factory=set)
    """SHA-256 of each file."""
    paths: list[str] = field(default_factory=list)
    """Path of each file."""

    @property
    def first_names(self) -> tuple[str, ...]:
        """Names of the first files, without their folders."""
        return tuple(PurePath(path).name for path in self.paths[:_MOST_NAMED])


def _input_files(spec: Mapping[str, Any]) -> dict[InputPart, _Files]:
    """Return the files behind the labels, judgments and documents of an audit.

    `spec` is that of the audit; a part whose files it does not list is left out.
    """
    collection = spec.get("collection") or {}
    files_by_part: dict[InputPart, _Files] = {}
    for row in spec.get("inputs", ()):
        part = _input_part(str(row["path"]), collection)
        if part is not None:
            files = files_by_part.setdefault(part, _Files())
            files.hashes.add(str(row["sha256"]))
            files.paths.append(str(row["path"]))
    return files_by_part


def _input_part(path: str, collection: Mapping[str, Any]) -> InputPart | None:
    """Return the part of an audit that a file holds; None for runs, queries and unknown files."""
    if path == collection.get("qrels"):
        return "judgments"
    if path == collection.get("labels"):
        return "labels"
    folder = PurePath(str(collection.get("path") or "-"))  # "-" is the parent of no file
    if folder not in PurePath(path).parents:
        return None
    path_in_folder = PurePath(path).relative_to(folder)
    if "qrels" in path_in_folder.parts:
        # The file of --qrels replaces the judgments in the folder.
        return None if collection.get("qrels") else "judgments"
    return None if path_in_folder.name.startswith("queries") else "documents"


def depth_notes(
    new: Audit, old: Audit, runs: Sequence[tuple[str, str]], cutoff: int | None
) -> Iterator[Note]:
    """Note runs of two audits whose depths differ, if one of them does not reach the cutoff.

    `runs` are pairs of a new and an old run; `cutoff` is None for a measure of the whole list.
    """
    if new is old:
        return
    for run, old_run in runs:
        depth, old_depth = _depth(new, run), _depth(old, old_run)
        if depth is None or old_depth is None or depth == old_depth:
            continue
        if cutoff is None or min(depth, old_depth) < cutoff:
            yield ListDepthsDiffer(run=run, old_run=old_run, depth=depth, old_depth=old_depth)


def _depth(audit: Audit, run: str) -> int | None:
    """Return the length of a run's longest list; None if the audit does not hold whole lists."""
    top_results = audit.top_results
    if top_results is None or not top_results.is_complete:
        return None
    lists = top_results.runs[audit.runs.index(run)]
    return int(np.diff(lists.offsets).max(initial=0))
