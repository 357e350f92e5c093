"""Pooling: choose the documents that are worth a rewrite.

To rewrite a large collection costs money, and most of its documents are never ranked high enough to
matter. A *pool* holds the documents that are judged, or that a ranker returns among its first
results for some query. *Twins* are an original document and its rewrites: they have the same
``origin``.
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
"""Name of the reason that a document is judged."""
USUAL_DEPTH = 100
"""Number of documents that a ranker adds for each query, by default."""
Mask = npt.NDArray[np.bool_]
"""Whether each document is chosen, in the collection's order."""


@dataclass(frozen=True, kw_only=True)
class Reason:
    """A reason why documents are in a pool."""

    name: str
    """``judged``, or the text of a ranker."""
    documents: int
    """Number of documents chosen for this reason."""
    alone: int
    """Number of documents chosen for this reason and no other."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Pool:
    """The documents that are worth a rewrite."""

    ids: pl.Series
    """Ids of the chosen documents, in the collection's order."""
    reasons: tuple[Reason, ...]
    """Why documents are in the pool: judgments first, then the rankers."""
    documents: int
    """Number of documents to choose from, those of one source."""
    queries: int
    """Number of queries that documents were chosen for."""
    spec: Mapping[str, Any] = field(default_factory=dict)
    """Options of the pool: ``of`` (the source of its documents), ``rankers`` and ``depth``; and the
    collection's ``path`` and ``split``.
    """

    @property
    def saved(self) -> int:
        """Number of documents that need no rewrite."""
        return self.documents - len(self.ids)

    @property
    def sentences(self) -> tuple[str, ...]:
        """Sentences about the pool and its reasons, for a note or a data card."""
        share = f" ({100 * self.saved / self.documents:.1f} %)" if self.documents else ""
        documents = counted(self.documents, "document", "documents")
        queries = counted(self.queries, "query", "queries")
        sentences = [
            f"pool: {len(self.ids):,} of {documents} chosen by {queries}; "
            f"{self.saved:,} {'needs' if self.saved == 1 else 'need'} no rewrite{share}"
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

    Judged documents are chosen whatever their grade. Relevant ones count in the difference between
    sources (Relative Δ). Those of grade 0 were judged because some system ranked them high, so
    other rankers may too.

    Parameters
    ----------
    collection : Collection
        The collection; if no document has a source, all get `of`.
    rankers : sequence of Ranker
        Each ranks the documents of the source alone, for each judged query, or for all queries if
        nothing is judged.
    depth : int, optional
        Number of documents that a ranker adds for each query; fewer if its ``@k`` is smaller.
    of : str, optional
        Source of the documents to choose from.
    """
    rankers, collection = list(rankers), with_named_side(collection, of)
    _check_options(collection, rankers, depth, of)
    originals = _originals(collection, of)
    masks = {JUDGED: originals.ids.is_in(originals.qrels["doc_id"].implode()).to_numpy()}
    for number, ranker in enumerate(rankers):
        report("pooling", number, len(rankers))
        masks[repr(ranker)] = _is_retrieved(ranker, originals, depth)
    report("pooling", len(rankers), len(rankers))
    # How many reasons there are for each document.
    reason_counts = np.sum(list(masks.values()), axis=0)
    reasons = []
    for name, mask in masks.items():
        alone = int((mask & (reason_counts == 1)).sum())
        reasons.append(Reason(name=name, documents=int(mask.sum()), alone=alone))
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


def restrict_to_pool(collection: Collection, chosen: Pool) -> Collection:
    """Return the collection as if only the documents of a pool had been rewritten.

    The pool's source keeps all its documents; other sources keep the twins of chosen documents.
    The Boolean column ``pool`` marks chosen documents and their twins. Judgments of documents that
    are left out are left out too.

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
    left_out = collection.docs.join(docs, on="id", how="anti")["id"]
    qrels = collection.qrels.filter(~pl.col("doc_id").is_in(left_out.implode()))
    return Collection(
        docs, collection.queries, qrels, {**collection.spec, "pool": dict(chosen.spec)}
    )


def _check_options(collection: Collection, rankers: Sequence[Ranker], depth: int, of: str) -> None:
    """Refuse an unknown source, a depth below 1, no reason to choose documents, and bad rankers."""
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


def _is_retrieved(ranker: Ranker, originals: Collection, depth: int) -> Mask:
    """Tell for each document whether a ranker finds it for any query, down to a depth."""
    run = _limit_depth(ranker, depth).rank(originals)
    # A ranker of a pool searches the collection: it re-ranks no candidates.
    run = check_reranked(run, candidates=None, ranker=ranker)
    _offsets, rows, _scores = cut(_ranked_lists(run, originals), originals.tie_keys(), depth)
    mask = np.zeros(originals.docs.height, dtype=bool)
    mask[rows] = True
    return mask


def _ranked_lists(run: Run, originals: Collection) -> Iterator[tuple[Rows, Scores]]:
    """Yield the documents of each query, as rows of the collection, with their scores.

    A live engine may return documents that `originals` lacks, such as rewrites; they are left out.
    """
    rows = collection_rows(run, originals)
    for low, high in zip(run.offsets[:-1], run.offsets[1:], strict=True):
        list_rows, scores = rows[run.docs[low:high]], run.scores[low:high]
        is_known = list_rows >= 0
        yield list_rows[is_known], scores[is_known]


def _limit_depth(ranker: Ranker, depth: int) -> Ranker:
    """Return the ranker with at most `depth` results for each query.

    Only a first stage is changed, because a re-ranker needs all its candidates. The option ``k``
    sets the number of results; rankers of other packages may lack it.
    """
    if not isinstance(ranker, FirstStage):
        return ranker
    has_k = "k" in {option.name for option in fields(ranker)}
    if not has_k or ranker.depth <= depth:
        return ranker
    return replace(ranker, k=depth)
