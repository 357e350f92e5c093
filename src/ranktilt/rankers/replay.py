"""A ranker that reads a saved run, made by ranktilt or by another tool, instead of ranking."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.data.collection import Collection
from ranktilt.data.formats.notation import file_of
from ranktilt.data.formats.responses.search_responses import MAX_FAILURES
from ranktilt.data.formats.runs.runfile import read_spec
from ranktilt.data.formats.runs.score_order import SCORE_ORDERS
from ranktilt.data.labels.labels import no_overlap, warn_of_near_matches
from ranktilt.data.queries import query_texts
from ranktilt.data.runs.run import Run, collection_rows, replayed_name
from ranktilt.errors import DataError, UserError
from ranktilt.rankers.base import (
    Ranker,
    cut,
    entries,
    exclude,
    require_choices,
    require_depth,
    require_range,
)
from ranktilt.rankers.candidates import other_queries
from ranktilt.rankers.self_exclusion import exclusion_spec, self_documents


@dataclass(frozen=True)
class Replay(Ranker):
    """Ranks as a saved run did; `Run.load` reads its file, plain or gzip.

    The file may also hold the responses of a search engine. These do not name their queries, so
    `queries` names a file that does, and `max_failures` limits how many of them may be errors.
    """

    name: ClassVar[str] = "replay"
    argument: ClassVar[str | None] = "file"
    reranks: ClassVar[bool] = False

    file: str
    """Path of the run."""
    k: int | None = None
    """Number of documents for each query; None for all."""
    exclude_self: bool | None = None
    """Whether a query's own document is left out, for queries that are documents themselves.

    None: it is left out if most queries have the id of a document and share most of its words.
    """
    score_order: str | None = field(default=None, kw_only=True)
    """How to read the file's scores, one of `SCORE_ORDERS`; None if larger scores are better."""
    queries: str | None = field(default=None, kw_only=True)
    """File of the queries, for an engine's responses, which do not name them."""
    max_failures: float = field(default=MAX_FAILURES, kw_only=True)
    """Percentage of an engine's responses that may be errors or partial."""

    def __post_init__(self) -> None:
        require_depth("replay", self.k)
        require_range(self, "max_failures", least=0, most=100)
        if self.score_order is not None:
            require_choices(self, score_order=SCORE_ORDERS)

    def check(self) -> None:
        """Refuse a file that is missing, or whose spec, a file next to it, cannot be read."""
        read_spec(file_of(self.file))

    def rank(self, collection: Collection, run: Run | None = None) -> Run:
        """Read the file, and keep the judged queries; all queries if nothing is judged.

        Documents that the collection lacks keep their ranks: the run has its own table of ids.
        """
        if run is not None:
            raise UserError(f"{self!r} replays a whole run and cannot re-rank; put it first")
        return self._judged_part(self._load(), collection)

    def rank_repeats(self, collection: Collection, run: Run | None = None) -> Run:
        """Read the file with all its repeats, and keep the judged queries."""
        if run is not None:
            return self.rank(collection, run)
        loaded = self._load(repeats=True)
        # The first repeat holds the others.
        runs = [
            self._judged_part(repeat, collection)
            for repeat in (replace(loaded, repeats=()), *loaded.repeats)
        ]
        return replace(runs[0], repeats=tuple(runs[1:]))

    def _judged_part(self, loaded: Run, collection: Collection) -> Run:
        """Return the judged queries of a run, in the order of the collection."""
        rows = self._rows(loaded, collection)
        saved_queries = set(loaded.queries)
        names = [name for name in _query_ids(collection, loaded) if name in saved_queries]
        if not names:
            raise other_queries(loaded, collection)
        return self._cut(loaded, rows, names, collection)

    def rank_all(self, collection: Collection) -> Run:
        """Read the file, and keep all its queries, also those that the collection does not hold."""
        loaded = self._load()
        return self._cut(loaded, self._rows(loaded, collection), list(loaded.queries), collection)

    def _load(self, *, repeats: bool = False) -> Run:
        """Read the file; without `repeats`, a file of several rankings is refused."""
        texts = None if self.queries is None else query_texts(self.queries)
        return Run.load(
            self.file,
            score_order=self.score_order,
            queries=texts,
            max_failures=self.max_failures,
            repeats=repeats,
        )

    def _rows(self, loaded: Run, collection: Collection) -> npt.NDArray[np.int64]:
        """Return the row in the collection of each id; refuse a run without overlap."""
        rows = collection_rows(loaded, collection)
        if not (rows >= 0).any():
            raise DataError(file_of(self.file), no_overlap(loaded.ids, collection))
        unknown_ids = loaded.ids.filter(pl.Series(rows < 0))
        warn_of_near_matches(file_of(self.file), unknown_ids, collection.ids, "the collection")
        return rows

    def _cut(
        self, loaded: Run, rows: npt.NDArray[np.int64], names: list[str], collection: Collection
    ) -> Run:
        """Return the queries with these ids, without own documents and cut at the depth.

        `rows` has the row in the collection of each of the run's documents, and −1 for a document
        that the collection lacks.
        """
        excluded = self._excluded(names, collection)
        number = {query: index for index, query in enumerate(loaded.queries)}
        scored_rows = entries(loaded, (number[name] for name in names))
        keys = np.zeros(len(rows), dtype=np.uint64)
        if self.k is not None:
            # A document that is not in the collection has the row −1, and so the key 0.
            keys = np.append(collection.tie_keys(), np.uint64(0))[rows]
        offsets, docs, scores = cut(exclude(scored_rows, excluded, rows), keys, self.k)
        spec = {
            **loaded.spec,
            "ranker": repr(self),
            "name": replayed_name(loaded),
            "made_by": loaded.spec.get("ranker"),
            **exclusion_spec(excluded),
        }
        return Run(
            queries=tuple(names),
            offsets=offsets,
            docs=docs,
            scores=scores,
            ids=loaded.ids,
            spec=spec,
        )

    def _excluded(
        self, names: list[str], collection: Collection
    ) -> dict[int, npt.NDArray[np.int64]]:
        """Return the rows of each query's own documents, by the index of its id in `names`."""
        if self.exclude_self and not collection.queries.height:
            # Without texts of queries, only ids can say which document is a query's own.
            queries = pl.DataFrame({"id": names, "text": ""})
            collection = Collection(collection.docs, queries, collection.qrels)
        position = {name: index for index, name in enumerate(names)}
        ranked = collection.queries_with_judgments["id"]
        excluded = self_documents(collection, self.exclude_self)
        return {
            position[ranked[number]]: rows
            for number, rows in excluded.items()
            if ranked[number] in position
        }


def _query_ids(collection: Collection, loaded: Run) -> list[str]:
    """Return the ids of the judged queries; those of the file if nothing is judged.

    Judged queries whose texts are in the collection come first, then all other judged queries.
    """
    ranked = collection.queries_with_judgments["id"]
    judged = collection.qrels["query_id"].unique(maintain_order=True)
    judged_only = judged.filter(~judged.is_in(ranked.implode()))
    return [*ranked, *judged_only] or list(loaded.queries)
