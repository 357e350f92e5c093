"""Triples for training: as many lines as are asked for, against the loops that one would write.

All write query, relevant document and a random other one as ids, a line each, into a file: for each
relevant document so many, none of them twice. The naive loop lists a query's other documents, draws
with `random.sample` and writes line after line; the careful one draws first and leaves out what is
relevant, as the authors of ChatGPT-RetrievalQA do.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from pathlib import Path

import polars as pl
from common import Measured, alternating, compete, machine, memory, publish, seconds, table, target
from common import arguments as common_arguments

PACKAGES = ("ranktilt", "numpy", "polars")
FULL, QUICK = (10_000, 1_000), (40, 5)
"""Queries, and triples of each: 10 million in all."""
CONTENDERS = ("ranktilt", "naive loop", "careful loop")
TRIPLES = "triples.tsv"


def size(folder: Path) -> tuple[int, int]:
    """How many queries, and how many triples of each."""
    queries, negatives = (folder / "size").read_text(encoding="utf-8").split()
    return int(queries), int(negatives)


def written_by_ranktilt(folder: Path, args: argparse.Namespace) -> Measured:
    """Stream the triples of a collection into a file."""
    from ranktilt.data.collection import Collection
    from ranktilt.papers.askari.triples import triples

    queries, negatives = size(folder)
    names = [str(number) for number in range(queries)]
    docs = [f"{name}_{copy}" for name in names for copy in range(2)]
    qrels = pl.DataFrame({"query_id": names, "doc_id": docs[::2], "grade": 1})
    texts = [f"text {doc}" for doc in docs]
    collection = Collection(
        pl.DataFrame({"id": docs, "text": texts}), pl.DataFrame({"id": names, "text": names}), qrels
    )
    start = time.process_time()
    with (folder / TRIPLES).open("wb") as stream:
        stream.writelines(triples(collection, negatives))
    return {"seconds": time.process_time() - start, "lines": lines(folder)}


def written_by_a_loop(folder: Path, args: argparse.Namespace) -> Measured:
    """Draw each relevant document's others and write them one after the other."""
    queries, negatives = size(folder)
    docs = [f"{number}_{copy}" for number in range(queries) for copy in range(2)]
    relevant = {str(number): {f"{number}_0"} for number in range(queries)}
    draw, naive = random.Random(0), args.contender == CONTENDERS[1]
    start = time.process_time()
    with (folder / TRIPLES).open("w", encoding="utf-8") as stream:
        for query, positives in relevant.items():
            others = [doc for doc in docs if doc not in positives] if naive else docs
            for positive in positives:
                drawn = draw.sample(others, negatives if naive else negatives + len(positives))
                chosen = (
                    drawn if naive else [doc for doc in drawn if doc not in positives][:negatives]
                )
                for negative in chosen:
                    stream.write(f"{query}\t{positive}\t{negative}\n")
    return {"seconds": time.process_time() - start, "lines": lines(folder)}


def lines(folder: Path) -> float:
    """Count the lines that were written, in memory that does not grow with them."""
    with (folder / TRIPLES).open("rb") as stream:
        return float(sum(block.count(b"\n") for block in iter(lambda: stream.read(1 << 20), b"")))


def main() -> None:
    """Measure both and write the section."""
    args = common_arguments(__doc__.splitlines()[0]).parse_args()
    if args.contender:
        compete(
            args,
            dict(
                zip(
                    CONTENDERS,
                    (written_by_ranktilt, written_by_a_loop, written_by_a_loop),
                    strict=True,
                )
            ),
        )
        return
    queries, negatives = QUICK if args.quick else FULL
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "size").write_text(f"{queries} {negatives}", encoding="utf-8")
        measured = alternating(__file__, CONTENDERS, Path(folder), 1 if args.quick else 3)
    ours, naive, careful = (measured[name] for name in CONTENDERS)
    rates = {name: figures["lines"] / figures["seconds"] for name, figures in measured.items()}
    rows = [
        [name, seconds(figures["seconds"]), f"{rates[name]:,.0f}", memory(figures["peak"])]
        for name, figures in measured.items()
    ]
    text = [
        "## Triples for training",
        machine(PACKAGES),
        (
            f"### {ours['lines']:,.0f} lines of ids, {negatives:,} for each of {queries:,} "
            "relevant "
            "documents"
        ),
        table(["contender", "seconds", "lines a second", "peak memory"], rows),
        "One thread each; seconds are the processor's.",
        "\n".join(
            [
                target(
                    "thousand lines a second", rates[CONTENDERS[0]] / 1_000, at_least=500, unit=""
                ),
                target("peak memory", ours["peak"] / 1e6, at_most=300, unit=" MB"),
                target(
                    "naive loop / ranktilt",
                    naive["seconds"] / ours["seconds"],
                    at_least=10,
                    unit="×",
                ),
                f"- careful loop / ranktilt: {careful['seconds'] / ours['seconds']:.1f}×",
            ]
        ),
    ]
    publish("triples", "\n\n".join(text), args)


if __name__ == "__main__":
    main()
