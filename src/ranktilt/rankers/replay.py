"""A run that was made elsewhere, replayed as a ranker."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.data.collection import Collection
from ranktilt.data.files import sidecar
from ranktilt.data.formats.notation import file_of
from ranktilt.data.formats.runfile import read_spec
from ranktilt.data.formats.score_order import SCORE_ORDERS
from ranktilt.data.formats.search_responses import MAX_FAILURES
from ranktilt.data.labels import no_overlap, warn_of_near_matches
from ranktilt.data.queries import query_texts
from ranktilt.data.run import Run, collection_rows, replayed_name
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
    """Ranks as a saved run did; the file is one that `Run.load` reads, plain or gzip.

    `score_order` says which scores are better, or that the file's ranks give the order; `queries`
    names the file of the queries of responses, which do not name them, and `max_failures` the share
    of these that may be errors or partial.
    """

    name: ClassVar[str] = "replay"
    argument: ClassVar[str | None] = "file"
    reranks: ClassVar[bool] = False

    file: str
    k: int | None = None
    exclude_self: bool | None = None
    score_order: str | None = field(default=None, kw_only=True)
    queries: str | None = field(default=None, kw_only=True)
    max_failures: float = field(default=MAX_FAILURES, kw_only=True)

    def __post_init__(self) -> None:
        require_depth("replay", self.k)
        require_range(self, "max_failures", least=0, most=1)
        if self.score_order is not None:
            require_choices(self, score_order=SCORE_ORDERS)

    def check(self) -> None:
        read_spec(sidecar(file_of(self.file)))

    def rank(self, collection: Collection, run: Run | None = None) -> Run:
        """Read the file and keep the queries that count and that it holds.

        Documents that the collection does not hold keep their places: the run's own id table names
        them.
        """
        if run is not None:
            raise UserError(f"{self!r} replays a whole run and cannot re-rank; put it first")
        loaded, rows = self._load(collection)
        held = set(loaded.queries)
        names = [name for name in _queries(collection, loaded) if name in held]
        if not names:
            raise other_queries(loaded, collection)
        return self._cut(loaded, rows, names, collection)

    def rank_all(self, collection: Collection) -> Run:
        """Read the file, and keep all its queries, also those that the collection does not hold."""
        loaded, rows = self._load(collection)
        return self._cut(loaded, rows, list(loaded.queries), collection)

    def _load(self, collection: Collection) -> tuple[Run, npt.NDArray[np.int64]]:
        """Read the file, with the row in the collection of each id; refuse one without overlap."""
        texts = None if self.queries is None else query_texts(self.queries)
        loaded = Run.load(
            self.file,
            score_order=self.score_order,
            queries=texts,
            max_failures=self.max_failures,
        )
        rows = collection_rows(loaded, collection)
        if not (rows >= 0).any():
            raise DataError(file_of(self.file), no_overlap(loaded.ids, collection))
        strange = loaded.ids.filter(pl.Series(rows < 0))
        warn_of_near_matches(file_of(self.file), strange, collection.ids, "the collection")
        return loaded, rows

    def _cut(
        self, loaded: Run, rows: npt.NDArray[np.int64], names: list[str], collection: Collection
    ) -> Run:
        excluded = self._excluded(names, collection)
        number = {query: i for i, query in enumerate(loaded.queries)}
        found = entries(loaded, (number[name] for name in names))
        keys = np.zeros(len(rows), dtype=np.uint64)
        if self.k is not None:
            keys = np.append(collection.tie_keys(), np.uint64(0))[rows]
        parts = cut(exclude(found, excluded, rows), keys, self.k)
        own = {
            "ranker": repr(self),
            "name": replayed_name(loaded),
            "made_by": loaded.spec.get("ranker"),
        }
        spec = {**loaded.spec, **own}
        return Run(tuple(names), *parts, loaded.ids, {**spec, **exclusion_spec(excluded)})

    def _excluded(
        self, names: list[str], collection: Collection
    ) -> dict[int, npt.NDArray[np.int64]]:
        """Rows to leave out by the query's place in `names`."""
        if self.exclude_self and not collection.queries.height:
            queries = pl.DataFrame({"id": names, "text": ""})
            collection = Collection(collection.docs, queries, collection.qrels)
        place, ranked = (
            {name: i for i, name in enumerate(names)},
            collection.queries_with_judgments["id"],
        )
        excluded = self_documents(collection, self.exclude_self)
        return {
            place[ranked[number]]: rows
            for number, rows in excluded.items()
            if ranked[number] in place
        }


def _queries(collection: Collection, loaded: Run) -> list[str]:
    """The queries that count: ranked ones, those that only judgments know, or the file's where there is neither."""
    ranked = collection.queries_with_judgments["id"]
    strange = collection.qrels["query_id"].unique(maintain_order=True)
    return [*ranked, *strange.filter(~strange.is_in(ranked.implode()))] or list(loaded.queries)
