"""A run that was made elsewhere, replayed as a ranker."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ranktilt.collection import Collection
from ranktilt.errors import DataError, UserError
from ranktilt.rankers.base import Ranker, cut, without
from ranktilt.rankers.own import own_documents, own_spec
from ranktilt.run import Run, collection_rows


@dataclass(frozen=True)
class Replay(Ranker):
    """Ranks as a saved run did.

    Parameters
    ----------
    file : str
        A run in TREC format, plain or gzip.
    k : int, optional
        Cut at this depth; by default as deep as the file is.
    exclude_self : bool, optional
        Drop a query's own document and its versions; see `ranktilt.rankers.own.own_documents`.
    """

    name: ClassVar[str] = "replay"
    argument: ClassVar[str | None] = "file"

    file: str
    k: int | None = None
    exclude_self: bool | None = None

    def __post_init__(self) -> None:
        if self.k is not None and self.k < 1:
            raise UserError(f"replay: expected a depth of at least 1, got @{self.k}")

    def rank(self, collection: Collection, run: Run | None = None) -> Run:
        """Read the file and keep the judged queries; see `Ranker.rank`.

        Documents that the collection does not hold keep their places in the ranking: the run's own id
        table names them.
        """
        if run is not None:
            raise UserError(f"{self!r} replays a whole run and re-ranks nothing; put it first")
        loaded = Run.load(Path(self.file))
        rows = collection_rows(loaded, collection)
        if not (rows >= 0).any():
            raise DataError(
                self.file,
                f"no overlap: none of its {len(rows)} documents is in the collection "
                f"(first: {loaded.ids[0]!r}; the collection's ids look like {collection.ids[0]!r})",
            )
        names = _judged(collection, loaded)
        if set(loaded.queries).isdisjoint(names):
            raise DataError(
                self.file,
                f"no overlap: none of its {len(loaded.queries)} queries has a judgment (first: {loaded.queries[0]!r})",
            )
        return self._cut(loaded, rows, names, collection)

    def _cut(self, loaded: Run, rows: npt.NDArray[np.int64], names: list[str], collection: Collection) -> Run:
        own = own_documents(collection, self.exclude_self)
        where = {q: i for i, q in enumerate(loaded.queries)}
        bounds = ((loaded.offsets[where[n]], loaded.offsets[where[n] + 1]) if n in where else (0, 0) for n in names)
        found = ((loaded.docs[low:high].astype(np.int64), loaded.scores[low:high]) for low, high in bounds)
        keys = np.append(collection.tie_keys(), np.uint64(0))[rows]
        parts = cut(without(found, own, rows), keys, self.k)
        spec = {**loaded.spec, "ranker": repr(self), "made_by": loaded.spec.get("ranker"), "file": self.file}
        spec |= own_spec(collection, own)
        missing = sum(name not in where for name in names)
        if missing:
            spec["judged_queries_missing"] = missing
        return Run(tuple(names), *parts, loaded.ids, spec)


def _judged(collection: Collection, loaded: Run) -> list[str]:
    """The judged queries, and those that only judgments and run know: they count where nothing is grouped."""
    names = collection.judged["id"].to_list()
    known, held = set(names), set(loaded.queries)
    strange = collection.qrels["query_id"].unique(maintain_order=True).to_list()
    return names + [name for name in strange if name not in known and name in held]
