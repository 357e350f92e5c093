"""BM25 over a generated collection of MS MARCO's size: 8,841,823 passages of 56 words.

There are 6,980 queries.

`--documents N` makes a smaller one, so that you can see how cost grows. The passages are written
in parts, and read, indexed and searched in a process of their own.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
from common import (
    Measured,
    Watch,
    arguments,
    compete,
    fresh,
    machine,
    memory,
    publish,
    say,
    seconds,
    table,
    target,
)

PACKAGES = ("ranktilt", "numpy", "numba", "polars")
PASSAGES, QUERIES, WORDS, VOCABULARY = 8_841_823, 6_980, 56, 2_000_000
QUICK = 2_000
DEPTH = 1000


def prepare(folder: Path, args: argparse.Namespace) -> Measured:
    """Write as many passages as the folder's name says, part by part, and their queries."""
    import generate

    count = int(folder.name)
    vocabulary = VOCABULARY if count > QUICK else 5_000
    size = generate.Size(queries=min(QUERIES, count // 4), words=WORDS, vocabulary=vocabulary)
    words, origins = generate.Words(size, seed=0), []
    (folder / "qrels").mkdir(parents=True)
    with (folder / "corpus.jsonl").open("wb") as corpus:
        for start in range(0, count, generate.CHUNK):
            rng = np.random.default_rng([4, start])
            shape = (min(generate.CHUNK, count - start), WORDS)
            numbers = words.draw(shape[0] * shape[1], rng).reshape(shape)
            marks = np.searchsorted([0.87, 0.95], rng.random(shape))
            texts = words.write(numbers, marks, np.zeros(shape, dtype=bool))
            ids = pl.int_range(start, start + shape[0], eager=True).cast(pl.String)
            part = pl.DataFrame({"_id": "D" + ids, "text": texts})
            corpus.write(part.with_columns(source=pl.lit("human")).write_ndjson().encode())
            origins.append(numbers[: max(size.queries - start, 0)])
    questions = generate.questions(size, 0, words, np.concatenate(origins))
    ids = [f"Q{number}" for number in range(size.queries)]
    pl.DataFrame({"_id": ids, "text": questions}).write_ndjson(folder / "queries.jsonl")
    lines = [f"Q{number}\tD{number}\t1" for number in range(size.queries)]
    header = "query-id\tcorpus-id\tscore"
    (folder / "qrels" / "test.tsv").write_text("\n".join([header, *lines, ""]), encoding="utf-8")
    return {}


def search(folder: Path, args: argparse.Namespace) -> Measured:
    """Load, index and search twice; the second time nothing is compiled."""
    import ranktilt as rt
    from ranktilt.rankers.lexical.bm25 import BM25
    from ranktilt.rankers.lexical.index import terms

    os.environ["RANKTILT_CACHE"] = tempfile.mkdtemp(dir=folder.parent)  # no index of an earlier run
    watch, bm25 = Watch(), BM25(k=DEPTH)
    with watch("load"):
        collection = rt.load(folder)
    with watch("index"):
        terms(collection, bm25.analyzer, bm25.text)
    with watch("first"):
        bm25.rank(collection)
    with watch("search"):
        run = bm25.rank(collection)
    return {**watch.parts, "queries": len(run.queries)}


CONTENDERS = {"prepare": prepare, "search": search}


def section(counts: list[int], folder: Path) -> str:
    """Measure each size once; say how the times grow from the first to the last."""
    measured = {}
    for count in counts:
        say(f"{count:,} passages")
        fresh(__file__, "prepare", folder / str(count))
        measured[count] = fresh(__file__, "search", folder / str(count))
    rows = [
        [
            f"{count:,}",
            *(seconds(figures[part]) for part in ("load", "index", "first", "search")),
            f"{figures['queries'] / figures['search']:,.0f}",
            memory(figures["peak"]),
        ]
        for count, figures in measured.items()
    ]
    header = ["passages", "load, s", "index, s", "first search, s", "search, s", "queries/s"]
    lines = [
        f"## MS MARCO's size: generated passages of {WORDS} words",
        "",
        machine(PACKAGES),
        "",
        f"One run, BM25, {DEPTH:,} documents a query:",
        "",
        table([*header, "peak memory"], rows),
        "",
    ]
    last, figures = counts[-1], measured[counts[-1]]
    if len(counts) > 1:
        factor = np.log(last / counts[0])
        powers = [
            f"{part} {np.log(figures[part] / measured[counts[0]][part]) / factor:.2f}"
            for part in ("load", "index", "search")
        ]
        lines.append(f"- times grow with this power of the passages: {', '.join(powers)}")
    if last == PASSAGES:
        minutes = (figures["load"] + figures["index"]) / 60
        speed = figures["queries"] / figures["search"]
        lines += [
            target("load + index", minutes, at_most=8, unit=" minutes"),
            target("search", speed, at_least=80, unit=" queries/s"),
            target("peak memory", figures["peak"] / 1e9, at_most=8, unit=" GB"),
        ]
    return "\n".join(lines)


def main() -> None:
    """Measure everything and write the section."""
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, nargs="+", help="sizes, the largest one last")
    args = parser.parse_args()
    if args.contender:
        compete(args, CONTENDERS)
        return
    counts = [QUICK] if args.quick else args.documents or [100_000, 1_000_000, PASSAGES]
    with tempfile.TemporaryDirectory() as temporary:
        publish("whole-msmarco", section(counts, Path(temporary)), args)


if __name__ == "__main__":
    main()
