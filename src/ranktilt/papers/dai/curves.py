"""Tables for the figures of Dai et al.: spectra, and the numbers of a bench by method and strength.

A *source* is who wrote texts; the *reference* is the source whose texts the others rewrote. A
*spectrum* is the singular values of a source's embeddings, relative to the reference's. A *bench*
compares methods that reduce a *tilt* (how far a ranker favours a source), each at several
strengths, which are its *candidates*.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import polars as pl

from ranktilt.explaining.base import ProbeFigure
from ranktilt.explaining.explanation import Explanation
from ranktilt.mitigation.bench_result import Bench, Candidate


def spectra(explanation: Explanation) -> pl.DataFrame:
    """Return the values of each spectrum, in the column ``height``.

    The other columns are ``source``, ``index`` (from 1), ``system``, and the number of ``sources``.
    """
    rows = list[dict[str, Any]]()
    for result in explanation.results:
        if result.probe.partition(":")[0] == "spectrum":
            for figure in result.figures:
                rows.extend(_heights(figure))
    source_count = len(explanation.sources)
    ranker = str(explanation.spec["ranker"])
    return pl.DataFrame(rows).with_columns(system=pl.lit(ranker), sources=pl.lit(source_count))


def _heights(figure: ProbeFigure) -> Iterator[dict[str, Any]]:
    """Yield the heights of each source's spectrum, numbered from 1."""
    for source, heights in figure.series.items():
        for index, height in enumerate(heights, start=1):
            yield {"source": source, "index": index, "height": height}


def bench_tilts(bench: Bench) -> pl.DataFrame:
    """Return Relative Δ of each source by method and strength."""
    return pl.DataFrame(list(_tilts(bench)))


def bench_means(bench: Bench) -> pl.DataFrame:
    """Return effectiveness on the reference's documents alone, by method and strength.

    There are no rows if these documents were not ranked.
    """
    return pl.DataFrame(list(_means(bench)))


def _tilts(bench: Bench) -> Iterator[dict[str, Any]]:
    """Yield Relative Δ of each method, strength, measure and source."""
    for method, candidate in _candidates(bench):
        for measure, pair in product(bench.measures, bench.pairs):
            _, source = pair
            yield {
                "method": method,
                "strength": f"{candidate.strength:g}",
                "measure": measure,
                "source": source,
                "value": bench.tilt(candidate.name, pair, measure).value,
            }


def _means(bench: Bench) -> Iterator[dict[str, Any]]:
    """Yield the means on the reference's documents alone; nothing if these were not ranked."""
    reference = str(bench.spec.get("reference"))
    if reference not in bench.document_sets:
        return
    for method, candidate in _candidates(bench):
        for measure in bench.measures:
            yield {
                "method": method,
                "strength": f"{candidate.strength:g}",
                "measure": measure,
                "value": bench.mean(candidate.name, reference, measure).value,
            }


def _candidates(bench: Bench) -> Iterator[tuple[str, Candidate]]:
    """Yield each method with each of its strengths."""
    for method in bench.methods:
        for candidate in bench.strengths(method):
            yield method, candidate
