"""What a re-ranker is trained on: a query's relevant documents, and those that BM25 mistakes for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.collection import Collection
from ranktilt.errors import UserError, unknown
from ranktilt.rankers.lexical.bm25 import BM25
from ranktilt.run import collection_rows

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Lesson:
    """One query to learn from.

    Parameters
    ----------
    query : str
        Its text.
    positives : ndarray of int64
        Places of its relevant documents in `Lessons.documents`; at least one.
    negatives : ndarray of int64
        Places of documents that BM25 finds and nobody judged relevant, best first; at least one.
    """

    query: str
    positives: Ints
    negatives: Ints


@dataclass(frozen=True)
class Lessons:
    """What is learned from a collection.

    Parameters
    ----------
    queries : tuple of Lesson
        In the collection's order.
    documents : list of str
        Texts of the documents that are somebody's positive or negative, in the collection's order.
    skipped : int
        Queries with a relevant document that are left out, because BM25 finds none of these or nothing else.
    """

    queries: tuple[Lesson, ...]
    documents: list[str]
    skipped: int


def lessons(
    collection: Collection, *, sources: Sequence[str] | None = None, depth: int = 100, text: str = "title+text"
) -> Lessons:
    """Find what a re-ranker can learn from a collection's judgments.

    Positives are the relevant documents among BM25's best, because only those reach a re-ranker: trained on the
    others too, it would learn that few shared words are a sign of relevance. Negatives are the rest of BM25's best,
    without any version (same origin) or copy (same text) of a relevant document.

    Parameters
    ----------
    collection : Collection
        With judgments; a grade above 0 is relevant.
    sources : sequence of str, optional
        Learn from documents of these sources only, as if the others did not exist; all by default. What is relevant
        in another source keeps its versions from being negatives all the same.
    depth : int, optional
        How many of BM25's documents.
    text : {"title+text", "text", "title"}, optional
        What of a document is read.

    Returns
    -------
    Lessons
        At least one query.

    Raises
    ------
    UserError
        For an unknown source, and where there is nothing to learn from.
    """
    part = _of_sources(collection, sources)
    relevant = collection.qrels.filter(pl.col("grade") > 0)
    wanted = relevant.join(part.docs.select(doc_id="id"), on="doc_id", how="semi")
    wanted = wanted.join(part.queries.select(query_id="id"), on="query_id", how="semi")
    if not wanted.height:
        raise UserError(
            f"{_named(collection)}: no document{_of(sources)} is judged relevant; there is nothing to learn"
        )
    found = _candidates(part, depth, text)
    positive = found.join(wanted, on=["query_id", "doc_id"], how="semi", maintain_order="left")
    versions = relevant.join(collection.docs.select("origin", doc_id="id"), on="doc_id").select("query_id", "origin")
    copies = wanted.join(part.docs.select(doc_id="id", copy=_copies(part, text)), on="doc_id")
    negative = found.join(versions, on=["query_id", "origin"], how="anti", maintain_order="left")
    negative = negative.join(copies, on=["query_id", "copy"], how="anti", maintain_order="left")
    used, learned = _by_query(part, positive, negative)
    if not learned:
        raise UserError(
            f"{_named(collection)}: BM25 finds no relevant document{_of(sources)} beside others "
            f"among its best {depth}; there is nothing to learn"
        )
    return Lessons(learned, part.texts(text)[used].to_list(), wanted["query_id"].n_unique() - len(learned))


def _of_sources(collection: Collection, sources: Sequence[str] | None) -> Collection:
    if sources is None:
        return collection
    for name in sources:
        if name not in collection.sources:
            raise unknown("source", name, collection.sources)
    docs = collection.docs.filter(pl.col("source").is_in(list(sources)))
    qrels = collection.qrels.join(docs.select(doc_id="id"), on="doc_id", how="semi", maintain_order="left")
    return Collection(docs, collection.queries, qrels, collection.spec)


def _candidates(part: Collection, depth: int, text: str) -> pl.DataFrame:
    """BM25's best of each query: ``query_id``, ``doc_id``, ``row``, ``origin``, ``copy``, best first."""
    run = BM25(k=depth, text=text).rank(part)
    rows = pl.Series("row", collection_rows(run, part)[run.docs])
    docs = part.docs.select("origin", copy=_copies(part, text))
    return run.frame().select("query_id", "doc_id").with_columns(rows).hstack(docs[rows])


def _copies(part: Collection, text: str) -> pl.Series:
    """A number that documents of one text share."""
    return part.texts(text).hash()


def _by_query(part: Collection, positive: pl.DataFrame, negative: pl.DataFrame) -> tuple[Ints, tuple[Lesson, ...]]:
    """Rows of the documents that are learned from, and the lessons with their places among these."""
    good, bad = _rows(positive), _rows(negative)
    both = good.keys() & bad.keys()
    texts = {query: text for query, text in part.queries.select("id", "text").iter_rows() if query in both}
    used = np.unique(np.concatenate([np.empty(0, np.int64), *(side[q] for q in texts for side in (good, bad))]))
    places = ({query: np.searchsorted(used, side[query]) for query in texts} for side in (good, bad))
    positives, negatives = places
    return used, tuple(Lesson(text, positives[query], negatives[query]) for query, text in texts.items())


def _rows(side: pl.DataFrame) -> dict[str, Ints]:
    grouped = side.group_by("query_id", maintain_order=True).agg("row")
    return {query: np.array(rows, dtype=np.int64) for query, rows in grouped.iter_rows()}


def _named(collection: Collection) -> str:
    split = collection.spec.get("split")
    return f"{collection.spec.get('path', 'the collection')}{f', split {split}' if split else ''}"


def _of(sources: Sequence[str] | None) -> str:
    return f" of source {' or '.join(map(repr, sources))}" if sources is not None else ""
