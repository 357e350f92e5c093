"""Write a designed collection as a folder; an earlier one is replaced as a whole or not at all.

A *designed* collection has several *versions* of each document, which differ in *factors* such as
length. A *data card* is the README of a collection.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from ranktilt.errors import counted, escape_invisible
from ranktilt.generation.output_folder import SavedFolder, open_folder, write_folder
from ranktilt.generation.rewrite.save import judgments_by_split
from ranktilt.generation.versions.make import DesignedVersions

KIND = "versions"
"""Kind of generated documents, a key of `ranktilt.generation.manifest.COMMANDS`."""


def save_versions(
    designed: DesignedVersions, folder: str | Path, *, rows_per_file: int | None = None
) -> SavedFolder:
    """Write a designed collection, its data card, every answer of a model, and a manifest.

    The folder has the files that `ranktilt.generation.rewrite.save.save_rewritten` writes, and
    ``design.json``, from which the design is read when the folder is loaded. Versions of a
    collection get the judgments of all its splits; versions from a table have one split, ``test``.

    Parameters
    ----------
    designed : DesignedVersions
        The versions.
    folder : str or Path
        New or empty, or an earlier output, which is replaced completely or not at all.
    rows_per_file : int, optional
        Documents per Parquet file; without it all documents are JSON lines in one file.

    Returns
    -------
    SavedFolder
        The folder, and the names of its splits.
    """
    path = open_folder(folder, designed.spec["collection"].get("path"), KIND)
    spec = dict(designed.spec)
    if "table" in spec:
        qrels_by_split = {"test": designed.collection.qrels}
    else:
        qrels_by_split, inputs = judgments_by_split(designed)
        spec["inputs"] = {**spec.get("inputs", {}), **inputs}
    write_folder(
        path,
        designed,
        judged=qrels_by_split,
        card=_data_card(designed),
        spec=spec,
        kind=KIND,
        rows_per_file=rows_per_file,
    )
    return SavedFolder(folder=Path(folder), splits=tuple(qrels_by_split))


def _data_card(designed: DesignedVersions) -> str:
    """Return the data card as Markdown; the same versions give the same card."""
    design = designed.collection.spec["design"]
    counts = designed.collection.docs.select(versions=pl.len(), origins=pl.col("origin").n_unique())
    versions, origins = counts.row(0)
    generators = f", {', '.join(design['generators'])}" if design["generators"] else ""
    levels = [f"| `{name}` | {low} | {high} |" for name, (low, high) in design["low_high"].items()]
    verdict = "Every factor passed its check."
    if design["failed"]:
        verdict = f"Failed its manipulation check: {', '.join(design['failed'])}."
    paragraphs = [
        "# Versions by design",
        f"{counted(versions, 'version', 'versions')} of "
        f"{counted(origins, 'document', 'documents')}: a {design['kind']} design of "
        f"{design['runs']} runs, resolution {design['resolution']}{generators}.",
        "\n".join(["| factor | low | high |", "|---|---|---|", *levels]),
        f"Judgments: {design['judgments']}.",
        verdict,
        "The texts keep the licence they came with, and versions are made from them.",
    ]
    return escape_invisible("\n\n".join(paragraphs)) + "\n"
