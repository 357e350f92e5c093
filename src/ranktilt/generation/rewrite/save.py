"""Write a collection with its rewrites as a folder, in place of an earlier version as a whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import polars as pl

from ranktilt.collection import Collection
from ranktilt.datasets.load import load
from ranktilt.errors import DataError
from ranktilt.generation.output_folder import SavedFolder, open_folder, write_folder
from ranktilt.generation.rewrite.datacard import datacard
from ranktilt.generation.rewrite.rewrite import Rewritten
from ranktilt.io.files import sha256


def save_rewritten(rewritten: Rewritten, folder: str | Path, *, parts: int | None = None) -> SavedFolder:
    """Write a collection with its rewrites, its data card, what was answered, and the hashes of it all.

    Parameters
    ----------
    rewritten : Rewritten
        What to write. Where it was loaded from a folder, the judgments of all splits there are carried over.
    folder : str or Path
        New or empty, or an earlier output, which is replaced as a whole: an interruption leaves the earlier one, or
        none, never a part.
    parts : int, optional
        Documents in a Parquet file of ``corpus/``, in place of one ``corpus.jsonl``.

    Returns
    -------
    SavedFolder
        The folder holds ``corpus.jsonl``, ``queries.jsonl``, ``qrels/<split>.tsv``, ``README.md`` (the data card),
        ``left-out.jsonl``, ``answers.jsonl.gz`` (every answer as it came) and ``manifest.json``.

    Raises
    ------
    UserError
        If the folder holds anything else, or something in it was changed by hand; if it cannot be written; if the
        collection's own folder was changed meanwhile.
    """
    place = open_folder(folder, rewritten.spec["collection"].get("path"))
    judged, inputs = _judgments(rewritten)
    spec = {**rewritten.spec, "inputs": {**rewritten.spec.get("inputs", {}), **inputs}}
    dropped = write_folder(place, rewritten, judged, datacard(rewritten, tuple(judged)), spec, parts=parts)
    return SavedFolder(Path(folder), tuple(judged), dropped)


def splits(folder: Path) -> list[str]:
    """List the names of a folder's judgments, by name; none where it has none."""
    found = (folder / "qrels").glob("[!.]*.tsv*") if os.path.isdir(folder / "qrels") else ()
    names = {f.name.removesuffix(".gz").removesuffix(".tsv") for f in found if f.name.endswith((".tsv", ".tsv.gz"))}
    return sorted(names)


def _judgments(rewritten: Rewritten) -> tuple[dict[str, pl.DataFrame], dict[str, str]]:
    """Judgments by split, all carried over, and the hashes of further files that were read."""
    given, qrels = rewritten.given, rewritten.collection.qrels
    split, path = given.spec.get("split"), Path(str(given.spec.get("path", "")))
    here = splits(path) if "path" in given.spec else []
    found, inputs = dict[str, pl.DataFrame](), dict[str, str]()
    if qrels.height and split not in here:
        named = split is not None and Path(str(split)).name == split
        found[str(split) if named else "test"] = qrels
    if here:
        _require_unchanged(path, rewritten.spec.get("inputs", {}))
    for name in here:
        if name == split and qrels.height:
            found[name] = qrels
            continue
        other = load(path, split=name, ignore_unknown=True)
        found[name] = rewritten.united(_of(given, other)).qrels
        file = Path(other.spec["files"][-1])
        inputs[str(file)] = sha256(file)
    return found, inputs


def _require_unchanged(path: Path, inputs: Mapping[str, str]) -> None:
    for name, digest in inputs.items():
        if not Path(name).is_file() or sha256(Path(name)) != digest:
            message = f"{name} was changed while its collection was rewritten; the same command again asks what is new"
            raise DataError(path, message)


def _of(given: Collection, other: Collection) -> pl.DataFrame:
    """Judgments of a folder, without those of documents and queries that were taken out of what was given."""
    gone = [
        pl.col(column).is_in(theirs["id"].implode()) & ~pl.col(column).is_in(ours["id"].implode())
        for column, theirs, ours in (
            ("doc_id", other.docs, given.docs),
            ("query_id", other.queries, given.queries),
        )
    ]
    return other.qrels.filter(~gone[0] & ~gone[1])
