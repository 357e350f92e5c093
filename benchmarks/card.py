"""The question card on NFCorpus, and existing runs audited without texts: of twins, and of groups
that are none.

The card: two lexical runs, six questions each, 10,000 resamples. A run of a million rows: the whole
command in a fresh process, from file to verdict, beside pytrec_eval's reader, which only makes
dictionaries of the same file. Groups that are not twins, whose random labels take the time: many
runs and measures on TREC DL 2019, and many groups.
"""

from __future__ import annotations

import argparse
import hashlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
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
    fresh,
    machine,
    memory,
    nfcorpus,
    peak_memory,
    publish,
    seconds,
    shared,
    table,
    target,
)

PACKAGES = ("ranktilt", "numpy", "scipy", "polars", "pytrec_eval-terrier")
ROWS, QUICK_ROWS, DEPTH, SOURCES = 1_000_000, 2_000, 100, ("human", "llm")
RUNS, QUICK_RUNS, GROUPS = 37, 3, 20
MEASURES = ("nDCG@10", "nDCG@3", "nDCG", "AP", "AP@10", "P@10", "R@100", "RR")


def write_run(folder: Path, rows: int) -> None:
    """Write ``run.trec`` and ``labels.tsv``: 100 documents a query, both versions of 50 drawn from
    100,000.
    """
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
            for rank, (document, score) in enumerate(
                zip(rng.permutation(DEPTH), scores, strict=True), start=1
            ):
                stream.write(f"q{query} Q0 {ids[document]} {rank} {score:.6f} engine\n")
    write_arguments(folder, ())


def write_arguments(folder: Path, options: Sequence[str]) -> None:
    """Write what the command is called with: the runs and labels of a folder, and some options."""
    runs = [word for file in sorted(folder.glob("*.trec")) for word in ("--run", str(file))]
    words = [*runs, "--groups", str(folder / "labels.tsv"), *options]
    (folder / "arguments.txt").write_text("\n".join(words), encoding="utf-8")


def write_buckets(folder: Path, ids: Iterable[str], number: int) -> None:
    """Write ``labels.tsv``: so many groups, by the hash of the id."""
    with (folder / "labels.tsv").open("w", encoding="utf-8") as stream:
        stream.write("doc_id\tbucket\n")
        stream.writelines(
            f"{i}\tg{int(hashlib.sha256(i.encode()).hexdigest(), 16) % number}\n" for i in ids
        )


def write_noisy_runs(folder: Path, data: Path, number: int, measures: Sequence[str]) -> None:
    """Write runs made of the real ones of TREC DL 2019 by noise on their ranks; one in four has
    ties.
    """
    rng, qrels = np.random.default_rng(0), data / "qrels.dl19-passage.txt"
    real = [
        [line.split() for line in file.read_text().splitlines()]
        for file in sorted((data / "runs").glob("*.trec"))
    ]
    for index in range(number):
        lines = real[index % len(real)]
        scores = rng.normal(0, 1 + index, len(lines)) - np.array([int(line[3]) for line in lines])
        scores = np.round(scores / 5) if index % 4 == 0 else scores
        with (folder / f"run-{index:02}.trec").open("w", encoding="utf-8") as stream:
            stream.writelines(
                f"{q} Q0 {d} 1 {s:.6f} noise\n"
                for (q, _, d, *_), s in zip(lines, scores, strict=True)
            )
    judged = {line.split()[2] for line in qrels.read_text().splitlines()}
    write_buckets(folder, sorted(judged.union(*({line[2] for line in lines} for lines in real))), 2)
    chosen = [word for name in measures for word in ("-m", name)]
    write_arguments(folder, ["--by", "bucket", "--qrels", str(qrels), *chosen, "--card"])


def write_many_groups(folder: Path, rows: int) -> None:
    """Write a run of 100 documents a query, three of them relevant, and documents in 20 groups."""
    rng, documents = np.random.default_rng(0), max(rows // 5, DEPTH)
    with (folder / "run.trec").open("w") as run, (folder / "qrels.txt").open("w") as qrels:
        for query in range(rows // DEPTH):
            drawn = rng.choice(documents, DEPTH, replace=False)
            scores = np.sort(rng.normal(size=DEPTH))[::-1]
            run.writelines(
                f"q{query} Q0 d{d} 1 {s:.6f} engine\n" for d, s in zip(drawn, scores, strict=True)
            )
            qrels.writelines(f"q{query} 0 d{d} 1\n" for d in rng.choice(drawn, 3, replace=False))
    write_buckets(folder, (f"d{number}" for number in range(documents)), GROUPS)
    pairs = [word for number in range(1, GROUPS) for word in ("--pair", f"g0,g{number}")]
    write_arguments(
        folder, ["--by", "bucket", "--qrels", str(folder / "qrels.txt"), *pairs, "--card"]
    )


def ranktilt(folder: Path, args: argparse.Namespace) -> Measured:
    """The command as a user types it."""
    words = (folder / "arguments.txt").read_text(encoding="utf-8").splitlines()
    sys.argv = ["ranktilt", "audit", *words, "--json", str(folder / "audit.json"), "--quiet"]
    from ranktilt.cli.main import main

    start, busy = time.perf_counter(), time.process_time()
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
    return {"total": time.perf_counter() - start, "processor": time.process_time() - busy}


def reader(folder: Path, args: argparse.Namespace) -> Measured:
    """pytrec_eval's own reader."""
    import pytrec_eval

    start = time.perf_counter()
    with (folder / "run.trec").open(encoding="utf-8") as stream:
        pytrec_eval.parse_run(stream)
    return {"total": time.perf_counter() - start}


CONTENDERS: dict[str, Contender] = {"ranktilt": ranktilt, "reader": reader}


def run_section(args: argparse.Namespace) -> str:
    """Measure the audit of an existing run."""
    rows = QUICK_ROWS if args.quick else ROWS
    with tempfile.TemporaryDirectory() as name:
        write_run(Path(name), rows)
        measured = alternating(__file__, list(CONTENDERS), Path(name), 1 if args.quick else 3)
        command = [sys.executable, __file__, "--contender", "ranktilt", "--folder", name]
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.PIPE)
        process = time.perf_counter() - start
    ours, theirs = measured["ranktilt"], measured["reader"]
    lines = [
        f"## An existing run without texts: {rows:,} rows{f' ({TINY})' if args.quick else ''}",
        "",
        machine(PACKAGES),
        "",
        table(
            ["contender", "seconds", "peak memory"],
            [
                [
                    "ranktilt: file to card and verdict",
                    seconds(ours["total"]),
                    memory(ours["peak"]),
                ],
                ["pytrec_eval: parse_run only", seconds(theirs["total"]), memory(theirs["peak"])],
            ],
        ),
        "",
        target("whole process, start of Python included", process, at_most=5, unit=" s"),
        target("peak memory", ours["peak"] / 1e9, at_most=1, unit=" GB"),
        f"- ranktilt / parse_run: {ours['total'] / theirs['total']:.2g}×",
    ]
    return "\n".join(lines)


def groups_section(args: argparse.Namespace) -> str:
    """Measure audits of groups that are not twins."""
    data = shared("dl19")
    if data is None:
        return "TREC DL 2019: skipped, its folder is absent (RANKTILT_TEST_DATA says where it is)."
    rows, runs = (QUICK_ROWS, QUICK_RUNS) if args.quick else (ROWS, RUNS)
    measures = MEASURES[:2] if args.quick else MEASURES
    measured_runs = {}
    for name in ("runs", "groups"):
        with tempfile.TemporaryDirectory() as folder:
            if name == "runs":
                write_noisy_runs(Path(folder), data, runs, measures)
            else:
                write_many_groups(Path(folder), rows)
            measured_runs[name] = fresh(__file__, "ranktilt", Path(folder))
    cases = {
        "runs": (
            f"{runs} runs of TREC DL 2019 with noise, {len(measures)} measures, 2 groups by hash"
        ),
        "groups": f"{rows:,} rows, {GROUPS} groups by hash, {GROUPS - 1} pairs, 6 measures",
    }
    lines = [
        f"## Groups that are not twins{f' ({TINY})' if args.quick else ''}",
        "",
        machine(PACKAGES),
        "",
        table(
            ["audit, with the card", "seconds", "seconds of processor", "peak memory"],
            [
                [
                    cases[name],
                    seconds(figures["total"]),
                    seconds(figures["processor"]),
                    memory(figures["peak"]),
                ]
                for name, figures in measured_runs.items()
            ],
        ),
        "",
        target("many runs and measures", measured_runs["runs"]["total"], at_most=60, unit=" s"),
        target("their peak memory", measured_runs["runs"]["peak"] / 1e9, at_most=1, unit=" GB"),
        target("many groups", measured_runs["groups"]["total"], at_most=60, unit=" s"),
    ]
    return "\n".join(lines)


def card_section(args: argparse.Namespace) -> str:
    """Measure what the card adds to an audit of two runs."""
    folder = nfcorpus()
    if folder is None:
        return ABSENT
    import ranktilt as rt

    collection = rt.load(folder)
    runs = [rt.ranker(spec).rank(collection) for spec in ("tfidf", "bm25")]
    parts: dict[str, list[float]] = {"plain": [], "card": []}
    for _ in range(1 if args.quick else 5):
        watch = Watch()
        for part in parts:
            with watch(part):
                rt.audit(collection, runs, card=part == "card")
            parts[part].append(watch.parts[part])
    plain, card = (statistics.median(parts[part]) for part in ("plain", "card"))
    lines = [
        "## The question card: NFCorpus, TF-IDF and BM25, 323 queries, 10,000 resamples",
        "",
        machine(PACKAGES),
        "",
        table(
            ["audit", "seconds"],
            [["six measures", seconds(plain)], ["and the card", seconds(card)]],
        ),
        "",
        target("audit with the card, after retrieval", card, at_most=5, unit=" s"),
        f"- with / without the card: {card / plain:.2g}×; peak memory {memory(peak_memory())}",
    ]
    return "\n".join(lines)


def main() -> None:
    """Run all parts."""
    args = arguments("The question card, and existing runs.").parse_args()
    if args.contender:
        compete(args, CONTENDERS)
        return
    publish("card", card_section(args), args)
    publish("existing-run", run_section(args), args)
    publish("groups", groups_section(args), args)


if __name__ == "__main__":
    main()
