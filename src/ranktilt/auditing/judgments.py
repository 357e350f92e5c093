"""Judgments of relevance as arrays.

A *judgment* (qrel) is a query, a document and a grade that people gave it; the document is relevant
to the query if the grade is above 0. Everything is an array: queries, documents and groups are
numbers. Documents have the number of their row in the collection. Judgments may also name documents
that the collection does not have; `Judgments.ids` says how these are numbered.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.auditing.groups import Groups
from ranktilt.data.collection import Collection
from ranktilt.data.runs.run import codes
from ranktilt.measures.ranking import Floats, Ints, Judged

MIXER = np.uint64(0x9E3779B97F4A7C15)
"""The odd constant of the random generator SplitMix64; it spreads keys over all 64 bits."""


@dataclass(frozen=True, kw_only=True)
class Judgments:
    """Relevant judgments, sorted by query and document.

    The arrays `query`, `row`, `grade` and `group` have an element for each judgment.
    """

    queries: tuple[str, ...]
    """Ids of the queries: those of the collection first."""
    known_query: npt.NDArray[np.bool_]
    """Whether the collection has each query; judgments of other queries count in no group."""
    ids: pl.Series
    """Ids of the documents, by row: first those of the collection, then those that only judgments
    name."""
    query: Ints
    """Index of each judgment's query in `queries`."""
    row: Ints
    """Row of each judgment's document."""
    grade: Floats
    """Grade of each judgment, above 0."""
    group: Ints
    """Index of the group of each judgment's document; -1 for none."""
    same_text: Ints
    """Index of the first query with the same text as each query.

    It is the query's own index if no earlier query has the text, or if it has no text.
    """
    documents: int
    """Number of documents of the collection."""

    @classmethod
    def from_collection(cls, collection: Collection, groups: Groups) -> Judgments:
        """Collect the relevant judgments, also those of queries that the collection lacks."""
        qrels = collection.qrels
        judged_queries = qrels["query_id"].unique(maintain_order=True)
        known_queries = collection.queries_with_judgments["id"]
        unknown_queries = judged_queries.filter(~judged_queries.is_in(known_queries.implode()))
        queries = pl.concat([known_queries, unknown_queries])
        unknown_ids = (
            qrels["doc_id"]
            .filter(~qrels["doc_id"].is_in(collection.ids.implode()))
            .unique(maintain_order=True)
        )
        ids = pl.concat([collection.ids, unknown_ids.alias("id")])
        relevant = qrels.filter(pl.col("grade") > 0)
        query, row = codes(relevant["query_id"], queries), codes(relevant["doc_id"], ids)
        order = np.lexsort((row, query))
        is_known = np.arange(len(queries)) < len(known_queries)
        group = np.append(groups.code, np.full(len(unknown_ids), -1))[row]
        group = np.where(is_known[query], group, -1)
        grade = relevant["grade"].to_numpy().astype(np.float64)
        return cls(
            queries=tuple(queries),
            known_query=is_known,
            ids=ids,
            query=query[order],
            row=row[order],
            grade=grade[order],
            group=group[order],
            same_text=_same_text(collection, queries),
            documents=collection.docs.height,
        )

    @cached_property
    def first_of_equal(self) -> Ints:
        """Position of the same judgment in the first query with the same judgments.

        If no earlier query has the same judgments, it is the judgment's own position.
        """
        key = signatures(self.query, self.row, self.grade, len(self.queries))
        _, first_query, key_number = np.unique(key, return_index=True, return_inverse=True)
        start = np.searchsorted(self.query, np.arange(len(self.queries)))
        # Equal queries have their judgments in the same order: only the start differs.
        shift = start[first_query[key_number.ravel()]] - start
        positions: Ints = shift[self.query] + np.arange(len(self.query))
        return positions

    def of_group(self, group: int | None) -> Judged:
        """Return the judgments of one group, or all of them where `group` is None."""
        keep = np.ones(len(self.query), dtype=bool) if group is None else self.group == group
        return Judged(query=self.query[keep], grade=self.grade[keep], n_queries=len(self.queries))

    @property
    def has_relevant(self) -> bool:
        """Whether any document is relevant to any query."""
        return len(self.grade) > 0

    def judged_groups(self, groups: Groups) -> set[str]:
        """Return the names of the groups that hold a relevant document."""
        return {groups.names[number] for number in np.unique(self.group) if number >= 0}

    def frame(self) -> pl.DataFrame:
        """Return query, document row and grade of each judgment as a table."""
        return pl.DataFrame({"query": self.query, "row": self.row, "grade": self.grade})

    def find(self, query: Ints, row: Ints) -> Ints:
        """Return the position of each query and document row among the judgments.

        -1 where the document is not relevant.
        """
        # Query and row as one number, the key. Judgments are sorted by query and row, so their keys
        # are sorted too, and can be searched by halving.
        width = len(self.ids) + 1
        judged_keys, keys = self.query * width + self.row, query * width + row
        if not len(judged_keys):
            return np.full(len(row), -1)
        position = np.minimum(np.searchsorted(judged_keys, keys), len(judged_keys) - 1)
        is_relevant = (row >= 0) & (judged_keys[position] == keys)
        return np.where(is_relevant, position, -1)


def _same_text(collection: Collection, queries: pl.Series) -> Ints:
    """Return the index of the first query with the same text as each of `queries`.

    A query without a text has its own index.
    """
    if not collection.queries.height:  # only judgments name queries
        return np.arange(len(queries))
    text = collection.queries["text"].str.strip_chars()
    row = codes(queries, collection.queries["id"])
    table = pl.DataFrame(
        {"number": np.arange(len(queries)), "row": row, "text": text.gather(np.maximum(row, 0))}
    )
    has_text = (pl.col("row") >= 0) & (pl.col("text") != "")
    first_of_text = pl.col("number").first().over("text", has_text)
    first = pl.when(has_text).then(first_of_text).otherwise("number")
    return table.select(first)["number"].to_numpy().astype(np.int64)


def signatures(
    query: Ints, keys: npt.NDArray[np.number], numbers: npt.NDArray[np.number], query_count: int
) -> npt.NDArray[np.uint64]:
    """Return a hash of each query's set of keys and numbers, of shape (query_count,).

    Equal sets have equal hashes whatever their order, because the hash of a set is the sum of the
    hashes of its elements. Different sets hardly ever have equal hashes.

    Parameters
    ----------
    query : array of int64
        Index of the query of each element.
    keys : array
        Key of each element, such as the row of a document.
    numbers : array
        Number of each element, such as a grade or a rank.
    query_count : int
        Number of queries.
    """
    mixed = keys.astype(np.uint64) * MIXER + numbers.astype(np.float64).view(np.uint64)
    # The three steps by which SplitMix64 mixes bits, on all elements together.
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    sums = np.zeros(query_count, dtype=np.uint64)
    np.add.at(sums, query, mixed)
    return sums
