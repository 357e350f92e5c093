"""A run that was made elsewhere, replayed as a ranker."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ranktilt.collection import Collection
from ranktilt.errors import DataError, UserError
from ranktilt.rankers.base import Ranker, top_k
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
        """Read the file and keep the judged queries and known documents; see `Ranker.rank`.

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
        judged = collection.judged["id"]
        if not len(set(loaded.queries) & set(judged)):
            raise DataError(
                self.file,
                f"no overlap: none of its {len(loaded.queries)} queries has a judgment (first: {loaded.queries[0]!r})",
            )
        return self._cut(loaded, rows, collection)

    def _cut(self, loaded: Run, rows: npt.NDArray[np.int64], collection: Collection) -> Run:
        own = own_documents(collection, self.exclude_self)
        keys = np.append(collection.tie_keys(), np.uint64(0))
        where = {q: i for i, q in enumerate(loaded.queries)}
        docs, scores, lengths = [], [], []
        names = collection.judged["id"].to_list()
        for number, name in enumerate(names):
            at = where.get(name)
            part = slice(0, 0) if at is None else slice(loaded.offsets[at], loaded.offsets[at + 1])
            found, values = loaded.docs[part], loaded.scores[part]
            if number in own:
                keep = ~np.isin(rows[found], own[number])
                found, values = found[keep], values[keep]
            best = top_k(values, keys[rows[found]], self.k or max(len(values), 1))
            docs.append(found[best])
            scores.append(values[best])
            lengths.append(len(best))
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        spec = {**loaded.spec, "ranker": repr(self), "made_by": loaded.spec.get("ranker"), "file": self.file}
        spec |= own_spec(collection, own)
        missing = len(set(names) - set(loaded.queries))
        if missing:
            spec["judged_queries_missing"] = missing
        return Run(tuple(names), offsets, np.concatenate(docs), np.concatenate(scores), loaded.ids, spec)
