"""Loading 100,000 documents of 200 words beside polars' reader and beside Python's json, with peak
memory.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from common import (
    Contender,
    Measured,
    Watch,
    alternating,
    arguments,
    compete,
    fresh,
    machine,
    memory,
    peak_memory,
    publish,
    seconds,
    table,
    target,
)

PACKAGES = ("ranktilt", "polars", "orjson")


def prepare(folder: Path, args: argparse.Namespace) -> Measured:
    """Write the collection."""
    import generate

    import ranktilt as rt

    size = (
        generate.QUICK
        if folder.name == "quick"
        else replace(generate.FULL, pairs=50_000, queries=1_000, words=200)
    )
    rt.save(generate.collection(size), folder)
    return {"bytes": (folder / "corpus.jsonl").stat().st_size}


def ours(folder: Path, args: argparse.Namespace) -> Measured:
    """Load the whole collection, every line checked."""
    import ranktilt as rt
    from ranktilt.data.loading.load import load

    rt.Collection  # noqa: B018  imports are not timed
    before, watch = peak_memory(), Watch()
    with watch("load"):
        load(folder)
    return {**watch.parts, "memory": peak_memory() - before}


def polars(folder: Path, args: argparse.Namespace) -> Measured:
    """Let polars read the documents, unchecked."""
    import polars as pl

    before, watch = peak_memory(), Watch()
    with watch("load"):
        frame = pl.read_ndjson(folder / "corpus.jsonl")
    return {**watch.parts, "memory": peak_memory() - before, "documents": frame.height}


def plain(folder: Path, args: argparse.Namespace) -> Measured:
    """Read the documents into dictionaries, as the BEIR package does."""

    def lines() -> Iterator[dict[str, str]]:
        with (folder / "corpus.jsonl").open(encoding="utf-8") as stream:
            yield from map(json.loads, stream)

    before, watch = peak_memory(), Watch()
    with watch("load"):
        docs = {d["_id"]: {"title": d.get("title"), "text": d["text"]} for d in lines()}
    return {**watch.parts, "memory": peak_memory() - before, "documents": len(docs)}


CONTENDERS: dict[str, Contender] = {
    "prepare": prepare,
    "ranktilt": ours,
    "polars": polars,
    "json": plain,
}
LABELS = {
    "ranktilt": "ranktilt: documents, queries and judgments, every line checked",
    "polars": "polars.read_ndjson: documents only, unchecked",
    "json": "json.loads into dictionaries, as the BEIR package: documents only",
}


def main() -> None:
    """Measure and write the section."""
    args = arguments(__doc__.splitlines()[0]).parse_args()
    if args.contender:
        compete(args, CONTENDERS)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / ("quick" if args.quick else "documents")
        size = fresh(__file__, "prepare", folder)["bytes"]
        measured = alternating(__file__, tuple(LABELS), folder, 1 if args.quick else 5)
    rows = [
        [LABELS[n], seconds(m["load"]), memory(m["memory"]), f"{m['memory'] / size:.2f}×"]
        for n, m in measured.items()
    ]
    lines = [
        "## Loading",
        machine(PACKAGES),
        f"### 100,000 documents of 200 words, {memory(size)} on disk, median of 5",
        table(["contender", "seconds", "memory added", "× the file's size"], rows),
        "\n".join(
            [
                target("loading", measured["ranktilt"]["load"], at_most=1, unit=" s"),
                target(
                    "memory over the file's size",
                    measured["ranktilt"]["memory"] / size,
                    at_most=2.5,
                    unit="×",
                ),
            ]
        ),
    ]
    publish("load", "\n\n".join(lines), args)


if __name__ == "__main__":
    main()
