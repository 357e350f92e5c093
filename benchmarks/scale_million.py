"""A million documents from folder to report: every command in a process of its own, with the memory
that it holds.

Generated twins of about 600 characters; half of the documents are rewrites of the others. The
vectors of the dense ranker are stored beforehand (seeded noise around the vector of a topic, under
the fingerprint of a small model of random weights), so that no model runs. Anonymous memory is what
is not a mapped file: files that are mapped stay in the system's page cache, which gives them up
when something else needs the room.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
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
from search import anonymous, exponent

PACKAGES = ("ranktilt", "numpy", "scipy", "polars")
SIZES, QUICK_SIZES = (10_000, 100_000, 1_000_000), (200, 400)
QUERIES, WORDS, VOCABULARY, DIMENSIONS, PART = 300, 98, 200_000, 384, 50_000
TOPICS, AT_ONCE = 500, 50_000
MOST = 8.0
"""Gigabytes of resident memory, mapped files too, that no step may exceed."""


def words_of(step: str, folder: Path) -> list[str]:
    """What the user types for a step."""
    lines, parts, mixed, model = (
        str(folder / name) for name in ("lines", "parts", "mixed", "model")
    )
    runs = [word for name in ("bm25", "dense") for word in ("--run", str(folder / f"{name}.trec"))]
    audit = ["audit", mixed, *runs, "--card", "--json", str(folder / "audit.json")]
    return {
        "load JSON lines, write parts": [
            "data",
            "load",
            lines,
            "-o",
            parts,
            "--rows-per-file",
            str(PART),
        ],
        "mix: read parts, write parts": [
            "data",
            "mix",
            parts,
            "-o",
            mixed,
            "--rows-per-file",
            str(PART),
        ],
        "rank: BM25, index made": ["rank", mixed, "-r", "bm25", "-o", str(folder / "bm25.trec")],
        "rank: BM25, index stored": ["rank", mixed, "-r", "bm25", "-o", str(folder / "again.trec")],
        "rank: dense, vectors stored": [
            "rank",
            mixed,
            "-r",
            f"dense:{model}",
            "-o",
            str(folder / "dense.trec"),
        ],
        "audit of both runs, with card": audit,
        "report": ["report", str(folder / "audit.json"), "-o", str(folder / "report.html")],
    }[step]


STEPS = (
    "load JSON lines, write parts",
    "mix: read parts, write parts",
    "rank: BM25, index made",
    "rank: BM25, index stored",
    "rank: dense, vectors stored",
    "audit of both runs, with card",
    "report",
)
STORE = 4
"""Number of the step before which vectors are stored."""


def command(step: str, folder: Path, args: argparse.Namespace) -> Measured:
    """One command as a user types it."""
    from ranktilt.cli.main import main

    sys.argv = ["ranktilt", *words_of(step, folder), "--quiet"]
    watch, start, busy = Watch(), time.perf_counter(), time.process_time()
    with anonymous(watch), open(os.devnull, "w") as nothing:
        terminal, sys.stdout = sys.stdout, nothing
        try:
            main()
        except SystemExit as end:
            if end.code not in (0, None):
                raise
        finally:
            sys.stdout = terminal
    return {
        **watch.parts,
        "wall": time.perf_counter() - start,
        "processor": time.process_time() - busy,
    }


def prepare(folder: Path, args: argparse.Namespace) -> Measured:
    """Write as many documents as the folder's name ends in as JSON lines, and a model of random
    weights.
    """
    import generate
    from transformers import AutoTokenizer, BertConfig, BertModel

    import ranktilt as rt
    from ranktilt.training.model import find_base_model

    pairs = int(folder.name.partition("-")[2]) // 2
    queries = min(QUERIES, pairs // 4)
    size = generate.Size(
        pairs=pairs, queries=queries, words=WORDS, vocabulary=VOCABULARY if pairs > 1_000 else 5_000
    )
    rt.save(generate.collection(size), folder / "lines")
    heads = DIMENSIONS // 32
    tokenizer = AutoTokenizer.from_pretrained(find_base_model("minilm"))
    body = {
        "hidden_size": DIMENSIONS,
        "num_hidden_layers": 1,
        "num_attention_heads": heads,
        "intermediate_size": 64,
    }
    BertModel(BertConfig(vocab_size=len(tokenizer), **body)).save_pretrained(folder / "model")
    tokenizer.save_pretrained(folder / "model")
    return {}


def store(folder: Path, args: argparse.Namespace) -> Measured:
    """Put vectors and counts of tokens of all documents and queries into the cache."""
    import polars as pl

    import ranktilt as rt
    from ranktilt.data.cache import VectorCache, cache_folder, content_keys
    from ranktilt.rankers.dense.retriever import Dense

    collection = rt.load(folder / "mixed")
    model = Dense(str(folder / "model")).encoder
    vectors = VectorCache(cache_folder() / "embeddings" / model.fingerprint, about=model.about)
    tokens = VectorCache(cache_folder() / "tokens" / model.tokens._fingerprint)
    rng = np.random.default_rng(0)
    topics = rng.standard_normal((TOPICS, DIMENSIONS), dtype=np.float32)
    pair = collection.docs.select(number=pl.col("origin").str.extract(r"(\d+)").cast(pl.Int64))[
        "number"
    ].to_numpy()

    def drawn(numbers: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        vectors = np.stack(
            [
                np.random.default_rng([1, n]).standard_normal(DIMENSIONS, dtype=np.float32)
                for n in numbers
            ]
        )
        noise = rng.standard_normal((len(numbers), DIMENSIONS), dtype=np.float32)
        return topics[numbers % TOPICS] + vectors + 0.5 * noise

    for start in range(0, len(pair), AT_ONCE):
        texts = collection.texts().slice(start, AT_ONCE)
        keys, first = np.unique(content_keys(texts, prefix="document"), return_index=True)
        vectors.put(keys, drawn(pair[start : start + AT_ONCE][first]))
        counts = texts.str.count_matches(" ").cast(pl.Float32).to_numpy()[:, None]
        keys, first = np.unique(content_keys(texts, prefix="tokens "), return_index=True)
        tokens.put(keys, counts[first])
    query_texts = collection.queries_with_judgments["text"]
    vectors.put(content_keys(query_texts, prefix="query"), drawn(np.arange(len(query_texts))))
    return {}


def measured_at(base: Path, n: int, *options: str) -> dict[str, Measured]:
    """Every step over so many documents, and what lies on the disk at the end."""
    folder = base / f"documents-{n}"
    folder.mkdir()
    os.environ["RANKTILT_CACHE"] = str(folder / "cache")
    measured = dict[str, Measured]()
    fresh(__file__, "prepare", folder, *options)
    for number, step in enumerate(STEPS):
        if number == STORE:
            fresh(__file__, "store", folder, *options)
        measured[step] = fresh(__file__, step, folder, *options)
        figures = ", ".join(f"{name} {value:,.1f}" for name, value in measured[step].items())
        say(f"{n:,} documents, {step}: {figures}")
    patterns = {
        "JSON lines": "lines/corpus.jsonl",
        "Parquet parts": "parts/corpus",
        "texts, mapped": "cache/texts",
        "BM25 index": "cache/lexical",
        "vectors": "cache/embeddings",
        "runs": "*.trec",
        "report": "report.html",
    }
    measured["disk"] = {name: size_of(folder, pattern) for name, pattern in patterns.items()}
    return measured


def size_of(folder: Path, pattern: str) -> float:
    """Bytes of the files that a pattern names, or below the folders that it names."""
    files = [
        file
        for path in folder.glob(pattern)
        for file in (path.rglob("*") if path.is_dir() else [path])
    ]
    return float(sum(file.stat().st_size for file in files if file.is_file()))


def section(measured: Sequence[dict[str, Measured]], sizes: Sequence[int], *, quick: bool) -> str:
    """The tables and targets."""
    last = measured[-1]

    def grown(values: list[float]) -> list[str]:
        """Exponents of all sizes, and of the last tenfold growth."""
        values = [max(value, 1e-3) for value in values]
        return [f"{exponent(sizes, values):.2f}", f"{exponent(sizes[-2:], values[-2:]):.2f}"]

    times, memory_peaks = [], []
    for step in STEPS:
        busy, most_held = (
            [figures[step][name] for figures in measured] for name in ("processor", "anonymous")
        )
        times.append([step, *map(seconds, busy), *grown(busy), seconds(last[step]["wall"])])
        memory_peaks.append(
            [step, *map(memory, most_held), *grown(most_held), memory(last[step]["peak"])]
        )
    disk = [
        [name, *(f"{figures['disk'][name] / 1e6:,.1f} MB" for figures in measured)]
        for name in last["disk"]
    ]
    names = [f"{n:,}" for n in sizes]
    most = max(last[step]["peak"] for step in STEPS) / 1e9
    total = sum(last[step]["wall"] for step in STEPS)
    lines = [
        "## A million documents, from folder to report",
        machine(PACKAGES),
        f"Half of the documents are rewrites; {WORDS} words each, {QUERIES} queries, {DIMENSIONS} "
        "numbers a vector, "
        f"parts of {PART:,} documents. One run, every command in a process of its own. The "
        "exponents are those of all "
        "sizes and of the last growth alone, in which fixed costs have the smaller part: 1 is "
        "linear. Texts and the "
        "index are kept from 32 MB of text on.",
        "Processor seconds; wall-clock seconds of the largest:",
        table(["", *names, "exponent", "last", "wall"], times),
        "Anonymous memory at its peak; resident memory of the largest with what it had mapped:",
        table(["", *names, "exponent", "last", "resident"], memory_peaks),
        "Disk:",
        table(["", *names], disk),
        f"- all steps over {sizes[-1]:,} documents: {seconds(total)} s"
        + (
            ""
            if quick
            else "\n"
            + target("most resident memory, mapped files too", most, at_most=MOST, unit=" GB")
        ),
    ]
    return "\n\n".join(lines)


def main() -> None:
    """Measure and publish."""
    args = arguments(__doc__ or "").parse_args()
    contenders: dict[str, Callable[[Path, argparse.Namespace], Measured]] = {
        "prepare": prepare,
        "store": store,
    }
    contenders |= {step: partial(command, step) for step in STEPS}
    if args.contender:
        compete(args, contenders)
        return
    sizes, options = (QUICK_SIZES, ["--quick"]) if args.quick else (SIZES, [])
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as base:
        measured = [measured_at(Path(base), n, *options) for n in sizes]
    publish("scale-million", section(measured, sizes, quick=args.quick), args)


if __name__ == "__main__":
    main()
