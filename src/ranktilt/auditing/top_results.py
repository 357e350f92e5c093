"""Keep the first results of every list of an audit, so that reports need not rank again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from ranktilt.auditing.array_text import array_of_text, text_of_array
from ranktilt.data.artifact import register
from ranktilt.data.runs.run import Run, codes
from ranktilt.measures.ranking import Ranking

KEEP_TOP = 1000
"""Default number of ranks to keep of each list."""
MOST_RESULTS = 500_000
"""Most results to keep of all runs together, some 5 MB in the audit's file.

If there are more, lists are cut at fewer ranks.
"""
_FEWEST = 10
"""Fewest ranks to keep of each list, however many results that makes."""
_DOCS = "<i4"
_SCORES = "<f8"
"""Little-endian types of documents and scores in a file."""


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
        """Keep the first results of runs, down to `depth` or less; see `MOST_RESULTS`."""
        cut = min(depth, max((int(np.diff(run.offsets).max(initial=0)) for run in runs), default=0))
        while cut > _FEWEST and sum(_results(run, cut) for run in runs) > MOST_RESULTS:
            cut = max(cut * 3 // 4, _FEWEST)
        is_uncut = all(_results(run, cut) == len(run.docs) for run in runs)
        if is_uncut:
            return cls(depth=depth, is_complete=True, runs=tuple(runs))
        return cls(depth=cut, is_complete=False, runs=tuple(_head(run, cut) for run in runs))

    @property
    def results(self) -> int:
        """Number of results of all runs together."""
        return sum(len(run.docs) for run in self.runs)

    def row(self) -> dict[str, Any]:
        """Return the results as they are written into a file.

        Ids are written once for all runs; arrays are little-endian, compressed (zlib) and base64.
        """
        ranked = [run.ids.gather(np.flatnonzero(np.bincount(run.docs))) for run in self.runs]
        ids = pl.concat([pl.Series([], dtype=pl.String), *ranked]).unique(maintain_order=True)
        rows = []
        for run in self.runs:
            docs = codes(run.ids, ids)[run.docs]
            packed = {
                "docs": text_of_array(docs.astype(_DOCS)),
                "scores": text_of_array(run.scores.astype(_SCORES)),
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

        The audit adds the names and specs of its runs.
        """
        ids, names, specs = pl.Series(row["ids"], dtype=pl.String), row["names"], row["specs"]
        runs = []
        for index, (run_row, name) in enumerate(zip(row["runs"], names, strict=True)):
            lengths = np.array(run_row["lengths"], dtype=np.int64)
            spec = {**(specs[index] if index < len(specs) else {}), "ranker": name}
            run = Run(
                queries=tuple(map(str, run_row["queries"])),
                offsets=np.concatenate([[0], np.cumsum(lengths)]),
                docs=array_of_text(run_row["docs"], _DOCS),
                scores=array_of_text(run_row["scores"], _SCORES),
                ids=ids,
                spec=spec,
            )
            runs.append(run)
        return cls(depth=row["depth"], is_complete=row["is_complete"], runs=tuple(runs))


def _results(run: Run, depth: int) -> int:
    """Count the results within the depth; a tie block that crosses it counts completely."""
    ranking = Ranking(run.offsets, run.scores)
    return int(ranking.sizes[ranking.before < depth].sum())


def _head(run: Run, depth: int) -> Run:
    """Return a run cut at the depth, with the whole of a tie block that crosses it."""
    ranking, keep = Ranking(run.offsets, run.scores).head(depth)
    return Run(
        queries=run.queries,
        offsets=ranking.offsets,
        docs=run.docs[keep],
        scores=ranking.scores,
        ids=run.ids,
        spec=run.spec,
    )


register(TopResults, TopResults.row, TopResults.from_row)
