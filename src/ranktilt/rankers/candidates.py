"""Candidates: the entries of a run that a re-ranker reorders, and checks of its result."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt._version import __version__
from ranktilt.data.collection import Collection
from ranktilt.data.runs.run import Run, codes, collection_rows
from ranktilt.errors import DataError, UserError, counted

Ints = npt.NDArray[np.int64]
"""Numbers or rows."""
Scores = npt.NDArray[np.float64]
"""Scores of documents: higher is better."""
FITTED = "fitted_on"
"""Key of a run's spec: what a ranker was fitted to, as the file of the fit and its queries.

An audit leaves these queries out: a ranker must not be measured on queries that it learned from.
"""
WITHOUT_SOURCE = "documents without a source"
"""Key for documents without a source, in counts by source."""
_KEYS_OF_BOTH = ("collection", "own_documents_dropped", "failed")
"""Keys of the candidates' spec that apply to the re-ranked run too."""


@dataclass(frozen=True, kw_only=True)
class Candidates:
    """The documents of a run for the queries that are ranked, with their rows in the collection.

    An *entry* is one document of one query; arrays of entries have the order of the run.
    """

    run: Run
    """Run of the stage before."""
    names: pl.Series
    """Ids of the queries, in the run's order."""
    texts: pl.Series
    """Texts of these queries."""
    lengths: Ints
    """Number of each query's candidates."""
    query: Ints
    """Index in `names` of each entry's query."""
    rows: Ints
    """Row in the collection of each entry's document."""

    @classmethod
    def from_run(cls, collection: Collection, run: Run | None, ranker: object) -> Candidates:
        """Look up the queries and documents of a run in a collection.

        Refuses a run that has no query of the collection, or a document that the collection lacks.
        `ranker` is named in the error if there is no run.
        """
        if run is None:
            raise UserError(
                f"{ranker!r} re-ranks candidates; put a first stage before it, "
                f"such as bm25@100>>{ranker!r}"
            )
        names = pl.Series(run.queries, dtype=pl.String)
        is_ranked = codes(names, collection.queries_with_judgments["id"]) >= 0
        if len(names) and not is_ranked.any():
            raise other_queries(run, collection)
        names = names.filter(pl.Series(is_ranked))
        lengths = np.diff(run.offsets)[is_ranked]
        docs = run.docs[is_ranked[run.entry_queries]]
        candidates = cls(
            run=run,
            names=names,
            texts=collection.queries["text"].gather(codes(names, collection.queries["id"])),
            lengths=lengths,
            query=np.repeat(np.arange(len(lengths)), lengths),
            rows=collection_rows(run, collection)[docs],
        )
        candidates.refuse_foreign(docs)
        return candidates

    def refuse_foreign(self, docs: npt.NDArray[np.int32]) -> None:
        """Refuse candidates that are not in the collection.

        `docs` has the row of each entry's document in the run's table of ids.
        """
        foreign = np.flatnonzero(self.rows < 0)
        if not len(foreign):
            return
        first = int(foreign[0])
        document = self.run.ids[int(docs[first])]
        query = self.names[int(self.query[first])]
        message = (
            f"{counted(len(foreign), 'candidate', 'candidates')} of {len(self.rows):,} not in the "
            f"collection, so there is no text to re-rank (first: document {document!r} of query "
            f"{query!r})"
        )
        raise DataError(self.run.spec.get("file", self.run.name), message)

    def by_query(self, scores: Scores) -> Iterator[tuple[Ints, Scores]]:
        """Yield the document rows and scores of each query; `scores` has one for each entry."""
        end = 0
        for length in self.lengths.tolist():
            start, end = end, end + length
            yield self.rows[start:end], scores[start:end]

    def truncated(
        self, is_truncated: npt.NDArray[np.bool_], limit: int, collection: Collection
    ) -> dict[str, Any]:
        """Return the share of each source's candidates of which only `limit` tokens are read.

        `is_truncated` says so of each entry.
        """
        return truncated_spec(collection.docs["source"].gather(self.rows), is_truncated, limit)


def other_queries(run: Run, collection: Collection) -> DataError:
    """Return the error that none of a run's queries is one of the collection."""
    role = "has a judgment" if collection.qrels.height else "is in the collection"
    queries = counted(len(run.queries), "query", "queries")
    message = f"no overlap: none of its {queries} {role} (first: {run.queries[0]!r})"
    return DataError(run.spec.get("file", run.name), message)


def reranked_spec(candidates: Run, ranker: object) -> dict[str, Any]:
    """Return the spec of a re-ranked run, which includes the spec of its candidates."""
    of_both = {key: value for key, value in candidates.spec.items() if key in _KEYS_OF_BOTH}
    return {
        "ranker": repr(ranker),
        "ranktilt": __version__,
        **of_both,
        "candidates": dict(candidates.spec),
    }


def truncated_spec(
    sources: pl.Series, is_truncated: npt.NDArray[np.bool_], limit: int
) -> dict[str, Any]:
    """Return, for a spec, the share of each source's documents that a model does not read whole.

    A model reads at most `limit` tokens. If one source writes longer texts, more of it is cut off,
    which can look like a preference. Documents without a source have the key `WITHOUT_SOURCE`.
    """
    table = pl.DataFrame({"source": sources.fill_null(WITHOUT_SOURCE), "truncated": is_truncated})
    shares = table.group_by("source", maintain_order=True).agg(pl.col("truncated").mean())
    return {"truncated": {"limit": limit, "share": dict(shares.iter_rows())}}


def check_reranked(run: Run, candidates: Run | None, ranker: object) -> Run:
    """Return a stage's result; refuse it if it is no run, or has documents besides the candidates.

    A first stage has no candidates (None). The check is for rankers of other packages, which may
    search the collection although they were given candidates.
    """
    if not isinstance(run, Run):
        raise UserError(f"ranker {ranker!r} gave {type(run).__name__}, expected a Run")
    if candidates is None:
        return run
    if not np.isin(_pair_codes(run, candidates), _pair_codes(candidates, candidates)).all():
        raise UserError(
            f"{ranker!r} ranks documents that are not among its candidates; put it first"
        )
    return run


def same_entries(run: Run, candidates: Run) -> bool:
    """Tell whether a run has exactly the candidates' documents, in any order."""
    run_codes = np.sort(_pair_codes(run, candidates))
    return np.array_equal(run_codes, np.sort(_pair_codes(candidates, candidates)))


def _pair_codes(run: Run, candidates: Run) -> Ints:
    """Return a code for each pair of query and document; −1 if `candidates` does not have both."""
    queries = pl.Series(run.queries, dtype=pl.String)
    candidate_queries = pl.Series(candidates.queries, dtype=pl.String)
    query = codes(queries, candidate_queries)[run.entry_queries]
    # If both share one table of ids, a row means the same document in both.
    has_same_ids = run.ids is candidates.ids
    row_of_id = np.arange(len(run.ids)) if has_same_ids else codes(run.ids, candidates.ids)
    row = row_of_id[run.docs]
    return np.where((query < 0) | (row < 0), -1, query * len(candidates.ids) + row)
