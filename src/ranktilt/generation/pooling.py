"""Pooling: the documents that are worth a rewrite, as they are judged or a ranker finds them.

To rewrite a large collection costs money, and most of its documents are never ranked high enough to
matter. A *pool* is those that are judged, or that some ranker returns among its first for a query.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.data.collection import POOL, Collection
from ranktilt.data.labels.stated_sources import with_named_side
from ranktilt.data.runs.run import Run, collection_rows
from ranktilt.errors import UserError, counted, refuse_twice
from ranktilt.generation.generated import collection_paths
from ranktilt.progress import report
from ranktilt.rankers.base import FirstStage, Ranker, Rows, Scores, cut
from ranktilt.rankers.candidates import check_reranked

JUDGED = "judged"
"""Name of a pool of judged documents alone."""
USUAL_DEPTH = 100
"""Documents that a ranker adds for each query, unless another number is given."""
Flags = npt.NDArray[np.bool_]
"""Whether each document is chosen, in the collection's order."""


@dataclass(frozen=True, kw_only=True)
class Reason:
    """A reason why documents are in a pool."""

    name: str
    """``judged``, or the text of a ranker."""
    documents: int
    """Documents chosen for this reason."""
    alone: int
    """Documents chosen for no other reason."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Pool:
    """The documents that are worth a rewrite."""

    ids: pl.Series
    """Ids of the chosen documents, in the collection's order."""
    reasons: tuple[Reason, ...]
    """Judgments first, then the rankers."""
    documents: int
    """Documents of the source in the collection, chosen or not."""
    queries: int
    """Number of queries that documents were chosen for."""
    spec: Mapping[str, Any] = field(default_factory=dict)
    """Options of the pool: ``of`` (its source), ``rankers`` and ``depth``; and the collection's
    ``path`` and ``split``.
    """

    @property
    def saved(self) -> int:
        """Documents that need no rewrite."""
        return self.documents - len(self.ids)

    @property
    def sentences(self) -> tuple[str, ...]:
        """Sentences about the pool and its reasons, for a note or a data card."""
        share = f" ({100 * self.saved / self.documents:.1f} %)" if self.documents else ""
        documents = counted(self.documents, "document", "documents")
        queries = counted(self.queries, "query", "queries")
        sentences = [
            f"pool: {len(self.ids):,} of {documents} chosen by {queries}; "
            f"{self.saved:,} need no rewrite{share}"
        ]
        for reason in self.reasons:
            name = f"top {self.spec.get('depth')} of {reason.name}"
            if reason.name == JUDGED:
                name = "judged, whatever the grade"
            sentences.append(
                f"{name}: {reason.documents:,}, {reason.alone:,} of them by nothing else"
            )
        return tuple(sentences)


def pool(
    collection: Collection,
    rankers: Sequence[Ranker],
    *,
    depth: int = USUAL_DEPTH,
    of: str = "human",
) -> Pool:
    """Choose the documents that can matter to an audit: judged ones, and those that rankers find.

    Judged documents are chosen whatever their grade: Relative Δ counts the relevant ones, and a
    system found those of grade 0 likely enough to be judged. Each ranker ranks the documents of the
    source `of` alone, and adds `depth` of them for each judged query (all queries if nothing is
    judged), or fewer if its ``@k`` is smaller.
    """
    rankers, collection = list(rankers), with_named_side(collection, of)
    _check(collection, rankers, depth, of)
    originals = _originals(collection, of)
    chosen = {JUDGED: originals.ids.is_in(originals.qrels["doc_id"].implode()).to_numpy()}
    for number, ranker in enumerate(rankers):
        report("pooling", number, len(rankers))
        chosen[repr(ranker)] = _retrieved(ranker, originals, depth)
    report("pooling", len(rankers), len(rankers))
    # How many reasons there are for each document.
    reason_counts = np.sum(list(chosen.values()), axis=0)
    reasons = []
    for name, flags in chosen.items():
        alone = int((flags & (reason_counts == 1)).sum())
        reasons.append(Reason(name=name, documents=int(flags.sum()), alone=alone))
    return Pool(
        ids=originals.ids.filter(pl.Series(reason_counts > 0)),
        reasons=tuple(reasons),
        documents=originals.docs.height,
        queries=originals.queries_with_judgments.height,
        spec={
            "of": of,
            "rankers": [repr(ranker) for ranker in rankers],
            "depth": depth,
            **collection_paths(collection),
        },
    )


def pooled(collection: Collection, chosen: Pool) -> Collection:
    """Return the collection as if only a pool had been rewritten.

    The pool's source keeps all its documents, other sources the twins of chosen ones. Documents
    have a Boolean column ``pool``. Judgments of documents that are left out are left out too.

    Raises
    ------
    UserError
        If a chosen document is not in the collection.
    """
    unknown_ids = chosen.ids.filter(~chosen.ids.is_in(collection.ids.implode()))
    if len(unknown_ids):
        raise UserError(
            f"the pool's document {unknown_ids[0]!r} is not in this collection; "
            "pool the same collection"
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
    """Refuse an unknown source, a depth below 1, and a pool with nothing in it."""
    if of not in collection.sources:
        raise collection.unknown_source(of)
    if depth < 1:
        raise UserError(f"expected a pool of at least 1 document deep, got {depth}")
    if not rankers and not collection.qrels.height:
        raise UserError(
            "nothing to pool: there are no judgments, so a pool needs a ranker, such as bm25"
        )
    refuse_twice([repr(ranker) for ranker in rankers], "ranker")
    for ranker in rankers:
        ranker.check()


def _originals(collection: Collection, of: str) -> Collection:
    """Return the documents of the source `of`, with all queries and judgments."""
    if collection.sources == (of,) and not collection.sourceless:
        return collection
    return Collection(
        collection.docs.filter(pl.col("source") == of),
        collection.queries,
        collection.qrels,
        collection.spec,
    )


def _retrieved(ranker: Ranker, originals: Collection, depth: int) -> Flags:
    """Tell which documents a ranker finds for any query, down to a depth."""
    # None: a ranker of a pool searches the collection, so its lists hold no given candidates.
    run = check_reranked(_no_deeper(ranker, depth).rank(originals), None, ranker)
    _offsets, docs, _scores = cut(_lists(run, originals), originals.tie_keys(), depth)
    flags = np.zeros(originals.docs.height, dtype=bool)
    flags[docs] = True
    return flags


def _lists(run: Run, originals: Collection) -> Iterator[tuple[Rows, Scores]]:
    """Yield rows and scores of each query's documents.

    A live engine may return documents that `originals` lacks, such as rewrites; they are left out.
    """
    rows = collection_rows(run, originals)
    for low, high in zip(run.offsets[:-1], run.offsets[1:], strict=True):
        list_rows, scores = rows[run.docs[low:high]], run.scores[low:high]
        is_known = list_rows >= 0
        yield list_rows[is_known], scores[is_known]


def _no_deeper(ranker: Ranker, depth: int) -> Ranker:
    """Return the same ranker, with no more results than the pool takes.

    Only a first stage is changed: a re-ranker needs all its candidates. `ranker.depth` is the
    number of results that it returns, and `k` the option that sets it, which rankers of other
    packages may lack.
    """
    if not isinstance(ranker, FirstStage):
        return ranker
    has_depth = "k" in {option.name for option in fields(ranker)}
    if not has_depth or ranker.depth <= depth:
        return ranker
    return replace(ranker, k=depth)
