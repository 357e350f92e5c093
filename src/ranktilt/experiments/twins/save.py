"""Write a designed collection as a folder, in place of an earlier version as a whole or not at all."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from ranktilt.errors import visible
from ranktilt.experiments.twins.make import DesignedTwins
from ranktilt.generation.output_folder import SavedFolder, open_folder, write_folder
from ranktilt.generation.rewrite.save import judgments_by_split

KIND = "twins"


def save_twins(
    made: DesignedTwins, folder: str | Path, *, rows_per_file: int | None = None
) -> SavedFolder:
    """Write a designed collection with its design, its data card, and every answer of a model.

    As `save_rewritten` does; besides ``design.json``, from which loading knows the design again.
    Judgments of a collection are carried over in all its splits, those of a table of versions in
    one called ``test``.
    """
    place = open_folder(folder, made.spec["collection"].get("path"), KIND)
    judged, inputs = (
        ({"test": made.collection.qrels}, {}) if "table" in made.spec else judgments_by_split(made)
    )
    spec = {**made.spec, "inputs": {**made.spec.get("inputs", {}), **inputs}}
    write_folder(place, made, judged, _card(made), spec, kind=KIND, rows_per_file=rows_per_file)
    return SavedFolder(Path(folder), tuple(judged))


def _card(made: DesignedTwins) -> str:
    """The data card, the same for the same versions."""
    design = made.collection.spec["design"]
    counts = made.collection.docs.select(
        pl.len(), pl.col("origin").n_unique().alias("origins")
    ).row(0)
    generators = f", {', '.join(design['generators'])}" if design["generators"] else ""
    levels = [f"| `{name}` | {low} | {high} |" for name, (low, high) in design["low_high"].items()]
    failed = design["failed"]
    parts = [
        "# Twins by design",
        f"{counts[0]:,} versions of {counts[1]:,} documents: a {design['kind']} design of {design['runs']} runs, "
        f"resolution {design['resolution']}{generators}.",
        "\n".join(["| factor | low | high |", "|---|---|---|", *levels]),
        f"Judgments: {design['judgments']}.",
        f"Failed its manipulation check: {', '.join(failed)}."
        if failed
        else "Every factor passed its check.",
        "The texts keep the licence they came with, and versions are made from them.",
    ]
    return visible("\n\n".join(parts)) + "\n"
