"""The first results of every list of an audit, saved so that reports need not rank again.

A *tie block* is a stretch of a list whose documents have the same score. Its documents are saved
together or not at all: which of them would be above a cut is not known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.auditing.storage.array_text import array_of_text, text_of_array
from ranktilt.data.artifact import register
from ranktilt.data.runs.run import Run, codes

Ints = npt.NDArray[np.int64]

KEEP_TOP = 1000
"""Default number of ranks to keep of each list."""
MOST_RESULTS = 500_000
"""Most results to keep of all runs together, some 5 MB in the audit's file.

If there are more, lists are cut at fewer ranks.
"""
_FEWEST_RANKS = 10
"""Fewest ranks to keep of each list, however many results that makes."""
_DOCS_TYPE = "<i4"
"""Type of document numbers in a file: little-endian."""
_SCORES_TYPE = "<f8"
"""Type of scores in a file: little-endian."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TopResults:
    """The first results of each run. A tie block that crosses the depth is kept completely."""

    depth: int
    """Number of ranks that are kept of each list."""
    is_complete: bool
    """Whether no list was cut."""
    runs: tuple[Run, ...]
    """Runs, cut to these ranks."""

    @classmethod
    def from_runs(cls, runs: Sequence[Run], depth: int = KEEP_TOP) -> TopResults:
        """Cut runs to their first `depth` ranks, or to fewer if these are too many results.

        Runs with more than `MOST_RESULTS` results together are cut further, in steps.
        """
        longest = max((int(np.diff(run.offsets).max(initial=0)) for run in runs), default=0)
        ranks = min(depth, longest)
        while ranks > _FEWEST_RANKS and _count_results(runs, ranks) > MOST_RESULTS:
            ranks = max(ranks * 3 // 4, _FEWEST_RANKS)
        if _count_results(runs, ranks) == sum(len(run.docs) for run in runs):
            return cls(depth=depth, is_complete=True, runs=tuple(runs))
        return cls(depth=ranks, is_complete=False, runs=tuple(_head(run, ranks) for run in runs))

    @property
    def results(self) -> int:
        """Number of results of all runs together."""
        return sum(len(run.docs) for run in self.runs)

    def row(self) -> dict[str, Any]:
        """Return the results as they are written into a file.

        Ids are written once for all runs; arrays are little-endian, compressed (zlib) and base64.
        """
        ranked_ids = [run.ids.gather(np.flatnonzero(np.bincount(run.docs))) for run in self.runs]
        # Without runs there would be nothing to concatenate.
        no_ids = pl.Series([], dtype=pl.String)
        ids = pl.concat([no_ids, *ranked_ids]).unique(maintain_order=True)
        rows = []
        for run in self.runs:
            docs = codes(run.ids, ids)[run.docs]
            packed = {
                "docs": text_of_array(docs.astype(_DOCS_TYPE)),
                "scores": text_of_array(run.scores.astype(_SCORES_TYPE)),
            }
            rows.append({"queries": run.queries, "lengths": np.diff(run.offsets), **packed})
        return {
            "depth": self.depth,
            "is_complete": self.is_complete,
            "results": self.results,
            "ids": ids.to_list(),
            "runs": rows,
        }

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> TopResults:
        """Read the results that `row` wrote.

        The audit adds the ``names`` and ``specs`` of its runs, which its file holds once.
        """
        ids, names, specs = pl.Series(row["ids"], dtype=pl.String), row["names"], row["specs"]
        runs = []
        for index, (run_row, name) in enumerate(zip(row["runs"], names, strict=True)):
            lengths = np.array(run_row["lengths"], dtype=np.int64)
            spec = {**(specs[index] if index < len(specs) else {}), "ranker": name}
            run = Run(
                queries=tuple(map(str, run_row["queries"])),
                offsets=np.concatenate([[0], np.cumsum(lengths)]),
                docs=array_of_text(run_row["docs"], _DOCS_TYPE),
                scores=array_of_text(run_row["scores"], _SCORES_TYPE),
                ids=ids,
                spec=spec,
            )
            runs.append(run)
        return cls(depth=row["depth"], is_complete=row["is_complete"], runs=tuple(runs))


def _kept_lengths(run: Run, depth: int) -> Ints:
    """Return how many results of each list are kept at a depth; a tie block that crosses it whole.

    Only the entries at the depth are looked at, because a run may have millions.
    """
    starts, sizes = run.offsets[:-1], np.diff(run.offsets)
    lengths = np.minimum(sizes, depth)
    cut = np.flatnonzero((lengths > 0) & (lengths < sizes))
    ends = starts[cut] + lengths[cut]
    for query in cut[run.scores[ends] == run.scores[ends - 1]]:
        scores = run.scores[starts[query] : starts[query] + sizes[query]]
        # Scores fall, and a sorted search needs rising ones.
        lengths[query] = np.searchsorted(-scores, -scores[depth - 1], side="right")
    return lengths


def _count_results(runs: Sequence[Run], depth: int) -> int:
    """Count the results that all runs keep at a depth."""
    return sum(int(_kept_lengths(run, depth).sum()) for run in runs)


def _head(run: Run, depth: int) -> Run:
    """Return a run cut at the depth; a tie block that crosses it is included."""
    lengths = _kept_lengths(run, depth)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    entries = np.arange(offsets[-1]) + np.repeat(run.offsets[:-1] - offsets[:-1], lengths)
    return Run(
        queries=run.queries,
        offsets=offsets,
        docs=run.docs[entries],
        scores=run.scores[entries],
        ids=run.ids,
        spec=run.spec,
    )


# How files hold top results, as a field of an audit.
register(TopResults, TopResults.row, TopResults.from_row)
