"""Write a collection with its rewrites as a folder, in place of an earlier version as a whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import polars as pl

from ranktilt.data.collection import Collection
from ranktilt.data.files import sha256
from ranktilt.data.load import load, splits
from ranktilt.generation.output_folder import SavedFolder, open_folder, write_folder
from ranktilt.generation.rewrite.datacard import datacard
from ranktilt.generation.rewrite.rewrite import Rewritten


class JudgedAnew(Protocol):
    """Documents made of a collection's, under the judgments of any of its splits."""

    @property
    def given(self) -> Collection: ...

    @property
    def collection(self) -> Collection: ...

    def united(self, qrels: pl.DataFrame) -> Collection: ...


def save_rewritten(
    rewritten: Rewritten, folder: str | Path, *, rows_per_file: int | None = None
) -> SavedFolder:
    """Write a collection with its rewrites, its data card, what was answered, and the hashes of it all.

    The judgments of all splits of the folder that it was loaded from are carried over. `folder` is
    new or empty, or an earlier output, which is replaced as a whole, or not at all; it holds
    ``corpus.jsonl`` (with `rows_per_file` Parquet files of so many documents), ``queries.jsonl``,
    ``qrels/<split>.tsv``, ``README.md`` (the data card), ``left-out.jsonl``, ``answers.jsonl.gz``
    (every answer as it came) and ``manifest.json``. `UserError` if it holds anything else, or
    cannot be written.
    """
    place = open_folder(folder, rewritten.spec["collection"].get("path"))
    judged, inputs = judgments_by_split(rewritten)
    spec = {**rewritten.spec, "inputs": {**rewritten.spec.get("inputs", {}), **inputs}}
    write_folder(
        place,
        rewritten,
        judged,
        datacard(rewritten, tuple(judged)),
        spec,
        rows_per_file=rows_per_file,
    )
    return SavedFolder(Path(folder), tuple(judged))


def judgments_by_split(rewritten: JudgedAnew) -> tuple[dict[str, pl.DataFrame], dict[str, str]]:
    """Carry over the judgments of every split, by its name; also the hashes of further files that were read."""
    given, qrels = rewritten.given, rewritten.collection.qrels
    split, path = given.spec.get("split"), Path(str(given.spec.get("path", "")))
    here = splits(path) if "path" in given.spec else []
    found, inputs = dict[str, pl.DataFrame](), dict[str, str]()
    if qrels.height and split not in here:
        named = split is not None and Path(str(split)).name == split
        found[str(split) if named else "test"] = qrels
    for name in here:
        if name == split and qrels.height:
            found[name] = qrels
            continue
        other = load(path, split=name, ignore_unknown=True)
        found[name] = rewritten.united(other.qrels).qrels
        file = Path(other.spec["files"][-1])
        inputs[str(file)] = sha256(file)
    return found, inputs
