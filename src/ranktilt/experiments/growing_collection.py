"""A collection that grows: documents that are there first, and versions of them that enter round by round."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.collection import Collection
from ranktilt.errors import UserError, counted, unknown
from ranktilt.run import codes

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Growth:
    """What grows: documents that are there first, and their versions, which enter by the number of their origin."""

    collection: Collection
    source: str
    first: Bools
    """Whether each document is there in round 0."""
    number: Ints
    """Place of each document's origin among those with versions on both sides; −1 for none."""
    keys: npt.NDArray[np.uint64]
    """Tie key of each of these origins: decides between those that are shown equally often."""
    notes: tuple[str, ...]

    @classmethod
    def of(cls, collection: Collection, reference: str, source: str | None) -> Growth:
        """Find the rewrites of the reference's documents, and the queries that are judged before any has entered."""
        source = _source(collection, reference, source)
        own = pl.col("source") == reference
        docs = collection.docs.filter(own | (pl.col("source") == source))
        written = docs.filter(own)["origin"].implode()
        kept = docs.filter(own | pl.col("origin").is_in(written))
        rewritten = kept.filter(~own)["origin"]
        if not len(rewritten):
            raise UserError(f"nothing can enter: no document of {source!r} is of the origin of one of {reference!r}")
        base = _restricted(collection, kept)
        start = _restricted(base, kept.filter(own))
        if not start.judged.height:
            raise UserError("nothing to rank: the collection has no queries")
        asked = pl.col("query_id").is_in(start.judged["id"].implode())
        qrels = base.qrels.filter(asked) if (start.qrels["grade"] > 0).any() else base.qrels.clear()
        whole = Collection(kept, start.judged, qrels, collection.spec)
        number = codes(kept["origin"], rewritten.unique(maintain_order=True))
        first = np.unique(number, return_index=True)[1][-rewritten.n_unique() :]
        notes = list[str]()
        if outside := docs.height - kept.height:
            notes.append(f"left out: {counted(outside, 'rewrite', 'rewrites')} of no document of {reference}")
        if len(rewritten) > len(first):
            notes.append("some documents have several rewrites, so that the two directions are no mirror images")
        own_rows = (kept["source"] == reference).to_numpy()
        return cls(whole, source, own_rows, number, whole.tie_keys()[first], tuple(notes))

    @property
    def mirrored(self) -> Growth:
        """The other direction: rewrites are there first; without judgments, for all queries are ranked."""
        bare = Collection(
            self.collection.docs, self.collection.queries, self.collection.qrels.clear(), self.collection.spec
        )
        return replace(self, collection=bare, first=np.where(self.number >= 0, ~self.first, self.first))

    def rows(self, entered: Bools) -> Bools:
        """Return which documents are there once some origins have entered."""
        return self.first | (entered[self.number] & (self.number >= 0))

    def grown(self, rows: Bools) -> Collection:
        """Return the collection of some of the documents."""
        return _restricted(self.collection, self.collection.docs.filter(rows))


def _source(collection: Collection, reference: str, source: str | None) -> str:
    """The source whose documents enter: the one that is named, or the only other one."""
    others = [name for name in collection.sources if name != reference]
    if len(others) == len(collection.sources):
        raise unknown("source", reference, collection.sources)
    if not others:
        raise UserError(f"nothing can enter: only source {reference!r}; expected rewrites of its documents")
    if source is not None and source not in others:
        raise unknown("source", source, others)
    if source is None and len(others) > 1:
        raise UserError(f"rewrites of {len(others)} sources: name the one that enters, such as --source {others[0]}")
    return source or others[0]


def _restricted(collection: Collection, docs: pl.DataFrame) -> Collection:
    """Return a collection of some of its documents, without the judgments of the others."""
    gone = pl.col("doc_id").is_in(collection.ids.implode()) & ~pl.col("doc_id").is_in(docs["id"].implode())
    return Collection(docs, collection.queries, collection.qrels.filter(~gone), collection.spec)


class Entering(NamedTuple):
    """Which versions enter, and when."""

    rounds: int
    share: float
    random: bool
    seed: int

    def next(self, number: int, entered: Bools, shown: Floats, keys: npt.NDArray[np.uint64]) -> Bools:
        """Return what has entered by a round: drawn at random, or what pages showed, the most shown first."""
        start, stop = (min(math.ceil(n * self.share * len(keys) - 1e-9), len(keys)) for n in (number - 1, number))
        found = entered.copy()
        if self.random:
            found[np.random.default_rng(self.seed).permutation(len(keys))[start:stop]] = True
        else:
            weights = np.where(entered, 0.0, shown)
            order = np.lexsort((keys, -weights))
            found[order[weights[order] > 0][: stop - start]] = True
        return found
