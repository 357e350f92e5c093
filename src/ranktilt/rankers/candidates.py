"""What a re-ranker is given, and what it may give back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt._version import __version__
from ranktilt.data.collection import Collection
from ranktilt.data.run import Run, codes, collection_rows
from ranktilt.errors import DataError, UserError, counted

Ints = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float64]
FITTED = "fitted_on"
"""Where a run's spec names the file of a fit and the queries that it was made on, which an audit leaves out."""
WITHOUT_SOURCE = "documents without a source"
_CARRIED = ("collection", "own_documents_dropped", "failed")


@dataclass(frozen=True)
class Candidates:
    """Entries of a run whose query is ranked, joined with the collection's queries and documents."""

    run: Run
    names: pl.Series
    """Ids of the queries, in the run's order."""
    texts: pl.Series
    """Texts of these queries."""
    lengths: Ints
    """Candidates of each query."""
    query: Ints
    """Each entry's query: its place in `names`."""
    rows: Ints
    """Each entry's document: its row in the collection."""

    @classmethod
    def from_run(cls, collection: Collection, run: Run | None, ranker: object) -> Candidates:
        """Join a run with a collection; refuses a run without a query of the collection, or with a foreign document."""
        if run is None:
            raise UserError(
                f"{ranker!r} re-ranks candidates; put a first stage before it, such as bm25@100>>{ranker!r}"
            )
        names = pl.Series(run.queries, dtype=pl.String)
        ranked = codes(names, collection.queries_with_judgments["id"]) >= 0
        if len(names) and not ranked.any():
            raise other_queries(run, collection)
        used = ranked[run.entry_queries]
        rows = collection_rows(run, collection)[run.docs[used]]
        lengths = np.diff(run.offsets)[ranked]
        names = names.filter(pl.Series(ranked))
        query = np.repeat(np.arange(len(lengths)), lengths)
        if len(rows) and rows.min() < 0:
            first = int(rows.argmin())
            lost, doc = int((rows < 0).sum()), run.ids[int(run.docs[used][first])]
            message = (
                f"{counted(lost, 'candidate', 'candidates')} of {len(rows):,} not in the collection, so there is no "
                f"text to re-rank (first: document {doc!r} of query {names[int(query[first])]!r})"
            )
            raise DataError(run.spec.get("file", run.name), message)
        texts = collection.queries["text"].gather(codes(names, collection.queries["id"]))
        return cls(run, names, texts, lengths, query, rows)

    def by_query(self, scores: Scores) -> Iterator[tuple[Ints, Scores]]:
        """Yield each query's document rows and their scores; `scores` has one an entry."""
        end = 0
        for length in self.lengths.tolist():
            start, end = end, end + length
            yield self.rows[start:end], scores[start:end]

    def truncated(
        self, over: npt.NDArray[np.bool_], limit: int, collection: Collection
    ) -> dict[str, Any]:
        """Return the share of each source's candidates that are read to `limit` tokens only; `over` says which."""
        return truncated_spec(collection.docs["source"].gather(self.rows), over, limit)


def other_queries(run: Run, collection: Collection) -> DataError:
    """Say that a run, which has a query, holds none of the collection's."""
    what = "has a judgment" if collection.qrels.height else "is in the collection"
    queries = counted(len(run.queries), "query", "queries")
    message = f"no overlap: none of its {queries} {what} (first: {run.queries[0]!r})"
    return DataError(run.spec.get("file", run.name), message)


def reranked_spec(candidates: Run, ranker: object) -> dict[str, Any]:
    """Return what a re-ranked run's spec says of where it comes from, the candidates' own spec included."""
    carried = {key: value for key, value in candidates.spec.items() if key in _CARRIED}
    return {
        "ranker": repr(ranker),
        "ranktilt": __version__,
        **carried,
        "candidates": dict(candidates.spec),
    }


def truncated_spec(sources: pl.Series, over: npt.NDArray[np.bool_], limit: int) -> dict[str, Any]:
    """Return what a run's spec says of documents that a model does not read to their end, by source.

    Documents without a source are under `WITHOUT_SOURCE`, so that all is said of a collection that
    names none.
    """
    table = pl.DataFrame({"source": sources.fill_null(WITHOUT_SOURCE), "over": over})
    shares = table.group_by("source", maintain_order=True).agg(pl.col("over").mean())
    return {"truncated": {"limit": limit, "share": dict(shares.iter_rows())}}


def check_reranked(found: Run, candidates: Run | None, ranker: object) -> Run:
    """Return what a stage gave, refused if it is no run or holds what was no candidate (None: of a first stage).

    A ranker of another package may search where it should re-rank.
    """
    if not isinstance(found, Run):
        raise UserError(f"ranker {ranker!r} gave {type(found).__name__}, expected a Run")
    if (
        candidates is not None
        and not np.isin(_entries(found, candidates), _entries(candidates, candidates)).all()
    ):
        raise UserError(
            f"{ranker!r} ranks documents that are not among its candidates; put it first"
        )
    return found


def same_entries(found: Run, candidates: Run) -> bool:
    """Tell whether a run holds exactly a run's candidates, in whatever order."""
    return np.array_equal(
        np.sort(_entries(found, candidates)), np.sort(_entries(candidates, candidates))
    )


def _entries(run: Run, table: Run) -> Ints:
    """A number for each pair of query and document; −1 where `table` does not know one of them."""
    query = codes(
        pl.Series(run.queries, dtype=pl.String), pl.Series(table.queries, dtype=pl.String)
    )[run.entry_queries]
    row = run.docs.astype(np.int64) if run.ids is table.ids else codes(run.ids, table.ids)[run.docs]
    return np.where((query < 0) | (row < 0), -1, query * len(table.ids) + row)
