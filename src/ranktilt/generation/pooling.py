"""Pooling: only the documents that can matter are rewritten, those that are judged or that a ranker finds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.data.collection import POOL, Collection
from ranktilt.data.run import collection_rows
from ranktilt.data.stated_sources import with_named_side
from ranktilt.errors import UserError, counted, refuse_twice
from ranktilt.progress import report
from ranktilt.rankers.base import FirstStage, Ranker, cut
from ranktilt.rankers.candidates import check_reranked

JUDGED = "judged"
USUAL_DEPTH = 100
Flags = npt.NDArray[np.bool_]


class Reason(NamedTuple):
    """Why documents are in a pool."""

    name: str
    """``judged``, or the text of a ranker."""
    documents: int
    """Documents that it chose."""
    alone: int
    """Of these, the ones that nothing else chose."""


@dataclass(frozen=True, eq=False)
class Pool:
    """The documents that are worth a rewrite."""

    ids: pl.Series  # in the collection's order
    reasons: tuple[Reason, ...]
    """Judgments first, then ranker by ranker."""
    documents: int
    """Documents of that source in the collection, chosen or not."""
    queries: int
    """Queries that chose."""
    spec: Mapping[str, Any] = field(default_factory=dict)
    """How it was made: ``of``, ``rankers``, ``depth``, and the collection's ``path`` and ``split``."""

    @property
    def saved(self) -> int:
        """Documents that need no rewrite."""
        return self.documents - len(self.ids)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was chosen and why, in words: for a note, or for a data card."""
        share = f" ({100 * self.saved / self.documents:.1f} %)" if self.documents else ""
        chosen = counted(self.documents, "document", "documents")
        whose = counted(self.queries, "query", "queries")
        return (
            f"pool: {len(self.ids):,} of {chosen} chosen by {whose}; {self.saved:,} need no rewrite{share}",
            *(
                f"{_named(r, self.spec)}: {r.documents:,}, of these {r.alone:,} by nothing else"
                for r in self.reasons
            ),
        )


def _named(reason: Reason, spec: Mapping[str, Any]) -> str:
    return (
        "judged, whatever the grade"
        if reason.name == JUDGED
        else f"top {spec.get('depth')} of {reason.name}"
    )


def pool(
    collection: Collection,
    rankers: Sequence[Ranker],
    *,
    depth: int = USUAL_DEPTH,
    of: str = "human",
) -> Pool:
    """Choose the documents that can matter to an audit: the judged ones, and what rankers find for each judged query.

    Judged documents are in whatever their grade: the relevant ones are what Relative Δ counts,
    those of grade 0 some system found likely enough to be judged. Each ranker ranks the documents
    of the source `of` alone, and adds `depth` of them for each judged query (all queries where
    nothing is judged), or fewer by its own ``@k``.
    """
    rankers, collection = list(rankers), with_named_side(collection, of)
    _check(collection, rankers, depth, of)
    side = _side(collection, of)
    chosen = {JUDGED: side.ids.is_in(side.qrels["doc_id"].implode()).to_numpy()}
    for number, one in enumerate(rankers):
        report("pooling", number, len(rankers))
        chosen[repr(one)] = _found(one, side, depth)
    report("pooling", len(rankers), len(rankers))
    votes = np.sum(list(chosen.values()), axis=0)
    reasons = (
        Reason(name, int(flags.sum()), int((flags & (votes == 1)).sum()))
        for name, flags in chosen.items()
    )
    known = {name: collection.spec[name] for name in ("path", "split") if name in collection.spec}
    spec = {"of": of, "rankers": [repr(one) for one in rankers], "depth": depth, **known}
    return Pool(
        side.ids.filter(pl.Series(votes > 0)),
        tuple(reasons),
        side.docs.height,
        side.queries_with_judgments.height,
        spec,
    )


def pooled(collection: Collection, chosen: Pool) -> Collection:
    """Return the collection as if only a pool had been rewritten: other sources keep the twins of chosen documents.

    Of the pool's own source all documents are kept. Documents have a Boolean column ``pool``;
    judgments of those left out are left out too. `UserError` if a chosen document is not in the
    collection.
    """
    strange = chosen.ids.filter(~chosen.ids.is_in(collection.ids.implode()))
    if len(strange):
        raise UserError(
            f"the pool's document {strange[0]!r} is not in this collection; pool the same collection"
        )
    docs = collection.docs
    origins = docs.filter(pl.col("id").is_in(chosen.ids.implode()))["origin"]
    docs = docs.with_columns(pl.col("origin").is_in(origins.implode()).alias(POOL))
    docs = docs.filter((pl.col("source") == chosen.spec["of"]) | pl.col(POOL))
    gone = collection.docs.join(docs, on="id", how="anti")["id"]
    qrels = collection.qrels.filter(~pl.col("doc_id").is_in(gone.implode()))
    return Collection(
        docs, collection.queries, qrels, {**collection.spec, "pool": dict(chosen.spec)}
    )


def _check(collection: Collection, rankers: Sequence[Ranker], depth: int, of: str) -> None:
    if of not in collection.sources:
        raise collection.unknown_source(of)
    if depth < 1:
        raise UserError(f"expected a pool of at least 1 document deep, got {depth}")
    if not rankers and not collection.qrels.height:
        raise UserError(
            "nothing to pool: there are no judgments, so a pool needs a ranker, such as bm25"
        )
    refuse_twice([repr(one) for one in rankers], "ranker")
    for one in rankers:
        one.check()


def _side(collection: Collection, of: str) -> Collection:
    """The documents of one source, with all queries that choose."""
    if collection.sources == (of,) and not collection.sourceless:
        return collection
    return Collection(
        collection.docs.filter(pl.col("source") == of),
        collection.queries,
        collection.qrels,
        collection.spec,
    )


def _found(ranker: Ranker, side: Collection, depth: int) -> Flags:
    """Which documents a ranker finds for any query, down to a depth."""
    run = check_reranked(_no_deeper(ranker, depth).rank(side), None, ranker)
    rows = collection_rows(run, side)
    bounds = zip(run.offsets[:-1], run.offsets[1:], strict=True)
    known = ((rows[run.docs[low:high]], run.scores[low:high]) for low, high in bounds)
    found = cut(((r[r >= 0], s[r >= 0]) for r, s in known), side.tie_keys(), depth)[1]
    flags = np.zeros(side.docs.height, dtype=bool)
    flags[found] = True
    return flags


def _no_deeper(ranker: Ranker, depth: int) -> Ranker:
    """The same search, cut where the pool ends."""
    if (
        isinstance(ranker, FirstStage)
        and "k" in {f.name for f in fields(ranker)}
        and ranker.depth > depth
    ):
        return replace(ranker, k=depth)
    return ranker
