"""What a re-ranker is given: entries of a run, joined with the collection's queries and documents."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt._version import __version__
from ranktilt.collection import Collection
from ranktilt.errors import DataError, UserError, counted
from ranktilt.rankers.self_exclusion import IN_DOUBT
from ranktilt.run import Run, codes, collection_rows

Ints = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float64]
TAILS = ("drop", "keep")
"""What becomes of documents that a pipeline's stage ranked below its ``@k``, when the next stage has re-ranked."""
_CARRIED = ("collection", "own_documents_dropped", "own_documents_differ", IN_DOUBT, "failed")


def reranked(found: Run, candidates: Run | None, ranker: object) -> Run:
    """Refuse what a stage gives if it is no run, or holds what was no candidate of the query.

    Parameters
    ----------
    found : Run
        What the stage gave.
    candidates : Run or None
        What it was given; None for a first stage.
    ranker : object
        The stage, for the message: its ``repr``.

    Returns
    -------
    Run
        `found`.

    Raises
    ------
    UserError
        As said above: a ranker of another package may search where it should re-rank.
    """
    if not isinstance(found, Run):
        raise UserError(f"ranker {ranker!r} gave {type(found).__name__}, expected a Run")
    if candidates is not None and not np.isin(_entries(found, candidates), _entries(candidates, candidates)).all():
        raise UserError(f"{ranker!r} ranks documents that are not among its candidates; put it first")
    return found


def _entries(run: Run, table: Run) -> Ints:
    """A number for each pair of query and document; −1 where `table` does not know one of them."""
    query = codes(pl.Series(run.queries, dtype=pl.String), pl.Series(table.queries, dtype=pl.String))[run.entry_queries]
    row = run.docs.astype(np.int64) if run.ids is table.ids else codes(run.ids, table.ids)[run.docs]
    return np.where((query < 0) | (row < 0), -1, query * len(table.ids) + row)


@dataclass(frozen=True)
class Candidates:
    """Entries of a run whose query is ranked.

    Parameters
    ----------
    run : Run
        Where they come from.
    names : polars.Series
        Ids of the queries, in the run's order.
    texts : polars.Series
        Texts of these queries.
    lengths : ndarray of int64, shape (n_queries,)
        Candidates of each.
    query : ndarray of int64, shape (n_entries,)
        Each entry's query: its place in `names`.
    rows : ndarray of int64, shape (n_entries,)
        Each entry's document: its row in the collection.
    """

    run: Run
    names: pl.Series
    texts: pl.Series
    lengths: Ints
    query: Ints
    rows: Ints

    @classmethod
    def of(cls, collection: Collection, run: Run | None, ranker: object) -> Candidates:
        """Join a run with a collection.

        Parameters
        ----------
        collection : Collection
            Holds the texts.
        run : Run or None
            The candidates.
        ranker : object
            What re-ranks them, for the message: its ``repr``.

        Returns
        -------
        Candidates
            Of the run's queries that are ranked.

        Raises
        ------
        UserError
            If there is no run.
        DataError
            If the run has no query in common with the collection, or a document that the collection does not hold.
        """
        if run is None:
            raise UserError(
                f"{ranker!r} re-ranks candidates; put a first stage before it, such as bm25@100>>{ranker!r}"
            )
        names = pl.Series(run.queries, dtype=pl.String)
        ranked = codes(names, collection.judged["id"]) >= 0
        if len(names) and not ranked.any():
            what = "has a judgment" if collection.qrels.height else "is in the collection"
            queries = counted(len(names), "query", "queries")
            message = f"no overlap: none of its {queries} {what} (first: {names[0]!r})"
            raise DataError(run.spec.get("file", run.name), message)
        kept = ranked[run.entry_queries]
        rows = collection_rows(run, collection)[run.docs[kept]]
        lengths = np.diff(run.offsets)[ranked]
        names = names.filter(pl.Series(ranked))
        query = np.repeat(np.arange(len(lengths)), lengths)
        if len(rows) and rows.min() < 0:
            first = int(rows.argmin())
            lost, doc = int((rows < 0).sum()), run.ids[int(run.docs[kept][first])]
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

    def spec(self, ranker: object) -> dict[str, Any]:
        """Return what the re-ranked run's spec says of where it comes from.

        Parameters
        ----------
        ranker : object
            What re-ranks: its ``repr`` is the run's name.

        Returns
        -------
        dict
            With the candidates' own spec under ``candidates``.
        """
        run = self.run.spec
        told = {key: value for key, value in run.items() if key in _CARRIED}
        return {"ranker": repr(ranker), "ranktilt": __version__, **told, "candidates": dict(run)}

    def truncated(self, over: npt.NDArray[np.bool_], limit: int, collection: Collection) -> dict[str, Any]:
        """Return what the spec says of documents that a model does not read to their end.

        Parameters
        ----------
        over : ndarray of bool, shape (n_entries,)
            Which entries' documents are cut.
        limit : int
            Tokens that are read.
        collection : Collection
            Says of which source a document is.

        Returns
        -------
        dict
            ``truncated``: the limit, and the share of each source's candidates that are cut.
        """
        entries = pl.DataFrame({"source": collection.docs["source"].gather(self.rows), "over": over})
        shares = entries.group_by("source", maintain_order=True).agg(pl.col("over").mean())
        return {"truncated": {"limit": limit, "share": dict(shares.iter_rows())}}
