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
    """A collection made from another one, whose judgments it can take over, split by split."""

    @property
    def originals(self) -> Collection:
        """The collection that it was made from."""

    @property
    def collection(self) -> Collection:
        """The derived collection, under the judgments that it was made with."""

    def unite(self, qrels: pl.DataFrame) -> Collection:
        """Return the derived collection under other judgments of the originals."""


def save_rewritten(
    rewritten: Rewritten, folder: str | Path, *, rows_per_file: int | None = None
) -> SavedFolder:
    """Write a collection with its rewrites, its data card, every answer and a manifest.

    Rewrites get the judgments of their originals, in all splits of the collection's folder. The
    folder gets ``corpus.jsonl`` (or Parquet files), ``queries.jsonl``, ``qrels/<split>.tsv``,
    ``README.md`` (the data card), ``left-out.jsonl``, ``answers.jsonl.gz`` (every answer as it
    came) and ``manifest.json``.

    Parameters
    ----------
    rewritten : Rewritten
        The rewrites.
    folder : str or Path
        New or empty, or an earlier output, which is replaced completely or not at all.
    rows_per_file : int, optional
        Documents per Parquet file; without it all documents are JSON lines in one file.

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
    """Return the judgments of every split of the originals, carried over to the derived collection.

    Also returns hashes of the files that were read for this, by path.
    """
    spec, qrels = derived.originals.spec, derived.collection.qrels
    split, path = spec.get("split"), Path(str(spec.get("path", "")))
    split_names = splits(path) if "path" in spec else []
    judged, hashes = dict[str, pl.DataFrame](), dict[str, str]()
    if qrels.height and split not in split_names:
        # A split may be the path of a file, which is no name for a file of judgments.
        is_name = split is not None and Path(str(split)).name == split
        judged[str(split) if is_name else "test"] = qrels
    for name in split_names:
        if name == split and qrels.height:
            judged[name] = qrels
            continue
        loaded = load(path, split=name, ignore_unknown=True)
        judged[name] = derived.unite(loaded.qrels).qrels
        file = Path(loaded.spec["files"][-1])
        hashes[str(file)] = sha256(file)
    return judged, hashes
