"""The estimand card on NFCorpus, and an existing run of a million rows audited without texts.

The card: two lexical runs, six questions each, 10,000 resamples. The run: the whole command in a fresh process, from
file to verdict, beside pytrec_eval's reader, which only makes dictionaries of the same file.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from common import (
    ABSENT,
    TINY,
    Contender,
    Measured,
    Watch,
    alternating,
    arguments,
    compete,
    machine,
    memory,
    nfcorpus,
    peak_memory,
    publish,
    seconds,
    table,
    target,
)

PACKAGES = ("ranktilt", "numpy", "scipy", "polars", "pytrec_eval-terrier")
ROWS, QUICK_ROWS, DEPTH, SOURCES = 1_000_000, 2_000, 100, ("human", "llm")


def write_run(folder: Path, rows: int) -> None:
    """Write ``run.trec`` and ``labels.tsv``: 100 documents a query, both versions of 50 drawn from 100,000."""
    rng = np.random.default_rng(0)
    origins = max(rows // 10, DEPTH)
    with (folder / "labels.tsv").open("w", encoding="utf-8") as stream:
        stream.write("doc_id\tsource\torigin\n")
        stream.writelines(f"d{i}-{s}\t{s}\td{i}\n" for i in range(origins) for s in SOURCES)
    with (folder / "run.trec").open("w", encoding="utf-8") as stream:
        for query in range(rows // DEPTH):
            drawn = rng.choice(origins, DEPTH // 2, replace=False)
            ids = [f"d{d}-{s}" for d in drawn for s in SOURCES]
            scores = np.sort(rng.normal(size=DEPTH))[::-1]
            for rank, (place, score) in enumerate(zip(rng.permutation(DEPTH), scores, strict=True), start=1):
                stream.write(f"q{query} Q0 {ids[place]} {rank} {score:.6f} engine\n")


def ranktilt(folder: Path, given: argparse.Namespace) -> Measured:
    """The command as a user types it."""
    sys.argv = ["ranktilt", "audit", "--run", str(folder / "run.trec"), "--groups", str(folder / "labels.tsv")]
    sys.argv += ["--json", str(folder / "audit.json"), "--quiet"]
    from ranktilt.cli.main import main

    start = time.perf_counter()
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
    return {"total": time.perf_counter() - start}


def reader(folder: Path, given: argparse.Namespace) -> Measured:
    """pytrec_eval's own reader."""
    import pytrec_eval

    start = time.perf_counter()
    with (folder / "run.trec").open(encoding="utf-8") as stream:
        pytrec_eval.parse_run(stream)
    return {"total": time.perf_counter() - start}


CONTENDERS: dict[str, Contender] = {"ranktilt": ranktilt, "reader": reader}


def run_section(given: argparse.Namespace) -> str:
    """Measure the audit of an existing run."""
    rows = QUICK_ROWS if given.quick else ROWS
    with tempfile.TemporaryDirectory() as name:
        write_run(Path(name), rows)
        found = alternating(__file__, list(CONTENDERS), Path(name), 1 if given.quick else 3)
        command = [sys.executable, __file__, "--contender", "ranktilt", "--folder", name]
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.PIPE)
        process = time.perf_counter() - start
    ours, theirs = found["ranktilt"], found["reader"]
    lines = [
        f"## An existing run without texts: {rows:,} rows{f' ({TINY})' if given.quick else ''}",
        "",
        machine(PACKAGES),
        "",
        table(
            ["contender", "seconds", "peak memory"],
            [
                ["ranktilt: file to card and verdict", seconds(ours["total"]), memory(ours["peak"])],
                ["pytrec_eval: parse_run only", seconds(theirs["total"]), memory(theirs["peak"])],
            ],
        ),
        "",
        target("whole process, start of Python included", process, at_most=5, unit=" s"),
        target("peak memory", ours["peak"] / 1e9, at_most=1, unit=" GB"),
        f"- ranktilt / parse_run: {ours['total'] / theirs['total']:.2g}×",
    ]
    return "\n".join(lines)


def card_section(given: argparse.Namespace) -> str:
    """Measure what the card adds to an audit of two runs."""
    folder = nfcorpus()
    if folder is None:
        return ABSENT
    import ranktilt as rt

    collection = rt.load(folder)
    runs = [rt.ranker(spec).rank(collection) for spec in ("tfidf", "bm25")]
    parts: dict[str, list[float]] = {"plain": [], "card": []}
    for _ in range(1 if given.quick else 5):
        watch = Watch()
        for part in parts:
            with watch(part):
                rt.audit(collection, runs, card=part == "card")
            parts[part].append(watch.parts[part])
    plain, card = (statistics.median(parts[part]) for part in ("plain", "card"))
    lines = [
        "## The estimand card: NFCorpus, TF-IDF and BM25, 323 queries, 10,000 resamples",
        "",
        machine(PACKAGES),
        "",
        table(["audit", "seconds"], [["six measures", seconds(plain)], ["and the card", seconds(card)]]),
        "",
        target("audit with the card, after retrieval", card, at_most=5, unit=" s"),
        f"- with / without the card: {card / plain:.2g}×; peak memory {memory(peak_memory())}",
    ]
    return "\n".join(lines)


def main() -> None:
    """Run both parts."""
    given = arguments("The estimand card, and existing runs.").parse_args()
    if given.contender:
        compete(given, CONTENDERS)
        return
    publish("card", card_section(given), given)
    publish("existing-run", run_section(given), given)


if __name__ == "__main__":
    main()
