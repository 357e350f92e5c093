"""Explaining: perplexity beside what scripts do (see `perplexity.py`), exact singular values,
trigrams, attribution.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import perplexity
from common import (
    TINY,
    arguments,
    machine,
    memory,
    nfcorpus,
    peak_memory,
    publish,
    seconds,
    target,
)
from simulated import half_length_half_source

import ranktilt as rt
from ranktilt.data.text.ngram import cross_fitted_perplexity
from ranktilt.explaining.attribution import attribute
from ranktilt.explaining.spectrum import singular_values
from ranktilt.explaining.text_probes import WordsProbe
from ranktilt.statistics.regression.least_squares import regress

PACKAGES = ("ranktilt", "torch", "transformers", "numpy", "polars")
ROWS, DIMENSIONS, TWINS = 110_000, 768, 70_000


def timed(work: Callable[[], Any]) -> float:
    """Seconds that some work takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def planted(quick: bool) -> str:
    """Attribute a planted gap by depth, over twins of which both are retrieved, and over twins that
    are scored.
    """
    pairs, queries, seeds = (200, 20, 2) if quick else (800, 100, 8)
    head = " | ".join(
        f"{kind} pairs: share of length | intervals that hold .50"
        for kind in ("retrieved", "scored")
    )
    lines = [f"| depth | {head} |", "| ---: | ---: | ---: | ---: | ---: |"]
    for depth in (2 * pairs, pairs // 2, pairs // 8, pairs // 16)[: 2 if quick else 4]:
        shares_of_rankers: list[list[tuple[float, ...]]] = [[], []]
        for seed in range(seeds):
            collection, ranker = half_length_half_source(seed, pairs, queries, depth)
            for shares, run_or_ranker in zip(
                shares_of_rankers, (ranker.rank(collection), ranker), strict=True
            ):
                rows = attribute(collection, [run_or_ranker], [WordsProbe()]).rows
                row = next(row for row in rows if row["property"] == "length")
                shares.append(
                    tuple(row[name] / row["mean gap"] for name in ("part", "part low", "part high"))
                )
        cells = [
            (
                f"{np.mean([share for share, *_ in shares]):.2f} | "
                f"{sum(a <= 0.5 <= b for _, a, b in shares)} of {seeds}"
            )
            for shares in shares_of_rankers
        ]
        lines.append(f"| {depth:,} | {' | '.join(cells)} |")
    return "\n".join(lines)


def section(args: argparse.Namespace) -> str:
    """Measure everything in one run."""
    corpus = rt.bundled() if args.quick or nfcorpus() is None else rt.load(nfcorpus())
    texts = corpus.docs["text"].to_list()
    with tempfile.TemporaryDirectory() as folder:
        perplexities = perplexity.section(Path(folder), texts, args.quick)
    lines = []
    generator, count = np.random.default_rng(0), 2_000 if args.quick else ROWS
    blocks = [generator.standard_normal((2_000, DIMENSIONS), dtype=np.float32) for _ in range(4)]
    before = peak_memory()
    took = timed(
        lambda: singular_values(
            (blocks[n % 4].astype(np.float64) for n in range(count // 2_000)), DIMENSIONS
        )
    )
    lines.append(
        target(f"singular values of {count:,} × {DIMENSIONS}", took, at_most=60, unit=" s")
    )
    lines.append(
        f"- memory beyond the vectors: {memory(max(peak_memory() - before, 0.0))} (target ≤ 1 GB)"
    )
    docs = corpus.docs
    human = (docs["source"] == corpus.sources[0]).to_numpy()
    took = timed(lambda: cross_fitted_perplexity(docs["text"], docs["origin"], human))
    lines.append(target(f"trigrams over {docs.height:,} documents", took, at_most=10, unit=" s"))
    n = 2_000 if args.quick else TWINS
    x, y = generator.normal(size=(n, 10)), generator.normal(size=n)
    clusters = generator.integers(0, 300, n), generator.integers(0, 3_600, n)
    took = timed(lambda: regress(y, x, *clusters))
    lines.append(
        target(
            f"attribution: regression of {n:,} twins on ten properties", took, at_most=5, unit=" s"
        )
    )
    run = rt.ranker("bm25").rank(corpus)
    lines.append(
        f"- attribution of bm25 with seven properties, measured from the texts on: "
        f"{seconds(timed(lambda: attribute(corpus, [run])))} s"
    )
    return (
        f"## Explaining\n\n{machine(PACKAGES)}\n\n{perplexities}\n\n{planted(args.quick)}\n\n"
        + "\n".join(lines)
        + (f"\n\n{TINY}" if args.quick else "")
    )


def main() -> None:
    """Run it."""
    args = arguments("Explaining: perplexity, spectrum, trigrams, attribution.").parse_args()
    publish("explain", section(args), args)


if __name__ == "__main__":
    main()
