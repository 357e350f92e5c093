"""Write a collection with its rewrites as a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import polars as pl

from ranktilt.data.collection import Collection
from ranktilt.data.files import sha256
from ranktilt.data.loading.load import load, splits
from ranktilt.generation.output_folder import SavedFolder, open_folder, write_folder
from ranktilt.generation.rewrite.datacard import datacard
from ranktilt.generation.rewrite.rewrite import Rewritten


class DerivedCollection(Protocol):
    """A collection made of another one, whose judgments of any split it can take over."""

    @property
    def originals(self) -> Collection:
        """The collection that it was made of."""

    @property
    def collection(self) -> Collection:
        """The derived collection, under the judgments that it was made with."""

    def united(self, qrels: pl.DataFrame) -> Collection:
        """Return the derived collection under other judgments of the originals."""


def save_rewritten(
    rewritten: Rewritten, folder: str | Path, *, rows_per_file: int | None = None
) -> SavedFolder:
    """Write a collection with its rewrites, its data card, every answer and a manifest.

    The judgments of all splits of the collection's folder are carried over. The folder gets
    ``corpus.jsonl`` (with `rows_per_file` Parquet files of so many documents), ``queries.jsonl``,
    ``qrels/<split>.tsv``, ``README.md`` (the data card), ``left-out.jsonl``, ``answers.jsonl.gz``
    (every answer as it came) and ``manifest.json``.

    Parameters
    ----------
    rewritten : Rewritten
        The rewrites.
    folder : str or Path
        New or empty, or an earlier output, which is replaced completely or not at all.
    rows_per_file : int, optional
        Documents per Parquet file; without it they are JSON lines.

    Returns
    -------
    SavedFolder
        The folder, and the names of its splits.

    Raises
    ------
    UserError
        If the folder has other files, or cannot be written.
    """
    target = open_folder(folder, rewritten.spec["collection"].get("path"))
    judged, hashes = judgments_by_split(rewritten)
    spec = {**rewritten.spec, "inputs": {**rewritten.spec.get("inputs", {}), **hashes}}
    write_folder(
        target,
        rewritten,
        judged=judged,
        card=datacard(rewritten, tuple(judged)),
        spec=spec,
        rows_per_file=rows_per_file,
    )
    return SavedFolder(folder=Path(folder), splits=tuple(judged))


def judgments_by_split(
    derived: DerivedCollection,
) -> tuple[dict[str, pl.DataFrame], dict[str, str]]:
    """Carry over the judgments of every split, by its name.

    Also returns the hashes of the files read for this, by path.
    """
    spec, qrels = derived.originals.spec, derived.collection.qrels
    split, path = spec.get("split"), Path(str(spec.get("path", "")))
    split_names = splits(path) if "path" in spec else []
    judged, hashes = dict[str, pl.DataFrame](), dict[str, str]()
    if qrels.height and split not in split_names:
        is_name = split is not None and Path(str(split)).name == split
        judged[str(split) if is_name else "test"] = qrels
    for name in split_names:
        if name == split and qrels.height:
            judged[name] = qrels
            continue
        loaded = load(path, split=name, ignore_unknown=True)
        judged[name] = derived.united(loaded.qrels).qrels
        file = Path(loaded.spec["files"][-1])
        hashes[str(file)] = sha256(file)
    return judged, hashes
