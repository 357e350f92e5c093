"""BM25 over a generated collection of MS MARCO's size: 8,841,823 passages of 56 words.

There are 6,980 queries. A second collection has each passage in two versions, by people and by a
language model: 17,683,646 documents, whose BM25 run is audited with all statistics. The second
version has 40 % of its words drawn anew.

Passages are written in parts, and read, indexed and searched in a process of their own, so that
the peak of memory is that of the work alone. Smaller collections show how cost grows.
`--documents N…` sets other sizes, and `--part` runs one of the two tables alone.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from ranktilt.data.collection import Collection
    from ranktilt.rankers.lexical.bm25 import BM25

PACKAGES = ("ranktilt", "numpy", "numba", "polars")
PASSAGES, QUERIES, WORDS, VOCABULARY = 8_841_823, 6_980, 56, 2_000_000
QUICK = 2_000
DEPTH = 1000


def prepare(folder: Path, args: argparse.Namespace) -> Measured:
    """Write as many passages as the folder's name says, and their queries.

    A name such as ``1000-mixed`` asks for two versions of each passage, 1,000 documents together.
    """
    import generate

    documents, _, kind = folder.name.partition("-")
    sources = generate.SOURCES if kind else generate.SOURCES[:1]
    count = int(documents) // len(sources)
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
            origins.append(numbers[: max(size.queries - start, 0)])
            origin = "D" + pl.int_range(start, start + shape[0], eager=True).cast(pl.String)
            for source in sources:
                if source != sources[0]:
                    is_new = rng.random(shape) < size.resampled
                    drawn = words.draw(numbers.size, rng).reshape(shape)
                    numbers = np.where(is_new, drawn, numbers)
                texts = words.write(numbers, marks, np.zeros(shape, dtype=bool))
                part = pl.DataFrame({"_id": origin + _suffix(source), "text": texts})
                part = part.with_columns(source=pl.lit(source), origin=origin)
                corpus.write(part.write_ndjson().encode())
    questions = generate.questions(size, 0, words, np.concatenate(origins))
    ids = [f"Q{number}" for number in range(size.queries)]
    pl.DataFrame({"_id": ids, "text": questions}).write_ndjson(folder / "queries.jsonl")
    lines = ["query-id\tcorpus-id\tscore"]
    for number in range(size.queries):
        lines += [f"Q{number}\tD{number}{_suffix(source)}\t1" for source in sources]
    (folder / "qrels" / "test.tsv").write_text("\n".join([*lines, ""]), encoding="utf-8")
    return {}


def _suffix(source: str) -> str:
    """Return the end of the ids of a source's documents."""
    return "" if source == "human" else f"-{source}"


def search(folder: Path, args: argparse.Namespace) -> Measured:
    """Load, index and search twice; the second time nothing is compiled."""
    watch = Watch()
    collection = indexed(folder, watch)
    ranker = bm25()
    with watch("first"):
        ranker.rank(collection)
    with watch("search"):
        run = ranker.rank(collection)
    return {**watch.parts, "queries": len(run.queries)}


def audit(folder: Path, args: argparse.Namespace) -> Measured:
    """Load, index, search, and audit the run: 7 measures, intervals, tests and confounds."""
    import ranktilt as rt

    watch = Watch()
    collection = indexed(folder, watch)
    with watch("search"):
        run = bm25().rank(collection)
    with watch("audit"):
        result = rt.audit(collection, run)
    return {**watch.parts, "queries": len(run.queries), "tilt": result.tilts[0].value}


def indexed(folder: Path, watch: Watch) -> Collection:
    """Load a collection, and index it; no index of an earlier run is used."""
    import ranktilt as rt
    from ranktilt.rankers.lexical.index import terms

    os.environ["RANKTILT_CACHE"] = tempfile.mkdtemp(dir=folder.parent)
    with watch("load"):
        collection = rt.load(folder)
    ranker = bm25()
    with watch("index"):
        terms(collection, ranker.analyzer, ranker.text)
    return collection


def bm25() -> BM25:
    """Return the ranker that is measured."""
    from ranktilt.rankers.lexical.bm25 import BM25

    return BM25(k=DEPTH)


CONTENDERS = {"prepare": prepare, "search": search, "audit": audit}


def measured(contender: str, names: list[str], folder: Path) -> dict[str, Measured]:
    """Measure the work on each collection once; a collection is removed after its work."""
    figures = {}
    for name in names:
        say(f"{contender}: {name} documents")
        fresh(__file__, "prepare", folder / name)
        figures[name] = fresh(__file__, contender, folder / name)
        shutil.rmtree(folder / name)
    return figures


def search_section(counts: list[int], folder: Path) -> str:
    """Measure the search of passages of each count."""
    figures = measured("search", [str(count) for count in counts], folder)
    parts = ("load", "index", "first", "search")
    header = ["passages", *(f"{part}, s" for part in parts), "queries/s", "peak memory"]
    rows = [
        [
            f"{int(name):,}",
            *(seconds(row[part]) for part in parts),
            f"{row['queries'] / row['search']:,.0f}",
            memory(row["peak"]),
        ]
        for name, row in figures.items()
    ]
    lines = [
        f"## MS MARCO's size: generated passages of {WORDS} words",
        "",
        machine(PACKAGES),
        "",
        f"One run, BM25, {DEPTH:,} documents a query:",
        "",
        table(header, rows),
        "",
        *growth(figures, ("load", "index", "search")),
    ]
    largest = figures[str(counts[-1])]
    if counts[-1] == PASSAGES:
        minutes = (largest["load"] + largest["index"]) / 60
        speed = largest["queries"] / largest["search"]
        lines += [
            target("load + index", minutes, at_most=8, unit=" minutes"),
            target("search", speed, at_least=80, unit=" queries/s"),
            target("peak memory", largest["peak"] / 1e9, at_most=8, unit=" GB"),
        ]
    return "\n".join(lines)


def audit_section(counts: list[int], folder: Path) -> str:
    """Measure the audit of mixed collections with each number of documents."""
    names = [f"{count}-mixed" for count in counts]
    figures = measured("audit", names, folder)
    parts = ("load", "index", "search", "audit")
    header = ["documents", *(f"{part}, s" for part in parts), "all, minutes", "peak memory"]
    rows = [
        [
            f"{count:,}",
            *(seconds(row[part]) for part in parts),
            f"{sum(row[part] for part in parts) / 60:.2f}",
            memory(row["peak"]),
        ]
        for count, row in zip(counts, figures.values(), strict=True)
    ]
    lines = [
        "## Twice MS MARCO's size: an audit of generated twins",
        "",
        machine(PACKAGES),
        "",
        f"One run of BM25, {DEPTH:,} documents a query, audited with 7 measures, 10,000 resamples, "
        "tests and confounds. The first search compiles, where no earlier search has:",
        "",
        table(header, rows),
        "",
        *growth(figures, parts),
    ]
    largest = figures[names[-1]]
    if counts[-1] == 2 * PASSAGES:
        minutes = sum(largest[part] for part in parts) / 60
        lines += [
            target("load to audit", minutes, at_most=90, unit=" minutes"),
            target("peak memory", largest["peak"] / 1e9, at_most=16, unit=" GB"),
        ]
    return "\n".join(lines)


def growth(figures: dict[str, Measured], parts: tuple[str, ...]) -> list[str]:
    """Say with which power of the documents each part's time grows, from first to last size."""
    if len(figures) < 2:
        return []
    names = list(figures)
    first, last = figures[names[0]], figures[names[-1]]
    factor = np.log(int(names[-1].split("-")[0]) / int(names[0].split("-")[0]))
    powers = [f"{part} {np.log(last[part] / first[part]) / factor:.2f}" for part in parts]
    return [f"- times grow with this power of the documents: {', '.join(powers)}"]


def main() -> None:
    """Measure everything and write the sections."""
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, nargs="+", help="sizes, the largest one last")
    parser.add_argument("--part", choices=["search", "audit"], help="one of the two tables")
    args = parser.parse_args()
    if args.contender:
        compete(args, CONTENDERS)
        return
    small = [QUICK] if args.quick else [100_000, 1_000_000]
    with tempfile.TemporaryDirectory() as temporary:
        if args.part != "audit":
            counts = args.documents or (small if args.quick else [*small, PASSAGES])
            publish("whole-msmarco", search_section(counts, Path(temporary)), args)
        if args.part != "search":
            counts = args.documents or (small if args.quick else [*small, 2 * PASSAGES])
            publish("mixed-msmarco", audit_section(counts, Path(temporary)), args)


if __name__ == "__main__":
    main()
