"""Relevant judgments of a collection: queries by number, documents by row."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.auditing.groups import Groups
from ranktilt.data.collection import Collection
from ranktilt.data.run import codes
from ranktilt.measures.ranking import Floats, Ints, Judged

MIXER = np.uint64(0x9E3779B97F4A7C15)
"""The odd constant of SplitMix64, by which parts of a signature are told apart."""


@dataclass(frozen=True)
class Judgments:
    """Relevant judgments: queries by number, documents by row; rows beyond the collection's are unknown documents."""

    queries: tuple[str, ...]
    known_query: npt.NDArray[np.bool_]
    """Whether the collection has the query; judgments of others count in no group."""
    ids: pl.Series
    query: Ints
    row: Ints
    grade: Floats
    group: Ints
    """Group of each judged document; -1 for none."""
    same_text: Ints
    """Number of the first query with the same text; its own where it has none."""
    documents: int
    """Documents of the collection."""

    @classmethod
    def from_collection(cls, collection: Collection, groups: Groups) -> Judgments:
        """Collect the relevant judgments of a collection's queries."""
        qrels = collection.qrels
        names = qrels["query_id"].unique(maintain_order=True)
        known = collection.queries_with_judgments["id"]
        queries = pl.concat([known, names.filter(~names.is_in(known.implode()))])
        strange = (
            qrels["doc_id"]
            .filter(~qrels["doc_id"].is_in(collection.ids.implode()))
            .unique(maintain_order=True)
        )
        ids = pl.concat([collection.ids, strange.alias("id")])
        relevant = qrels.filter(pl.col("grade") > 0)
        query, row = codes(relevant["query_id"], queries), codes(relevant["doc_id"], ids)
        order = np.lexsort((row, query))
        is_known = np.arange(len(queries)) < len(known)
        group = np.append(groups.code, np.full(len(strange), -1))[row]
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
        """Place of each judgment in the first query with the same ones, whose documents have one label only."""
        key = signatures(self.query, self.row, self.grade, len(self.queries))
        first = np.unique(key, return_index=True, return_inverse=True)[1:]
        start = np.searchsorted(self.query, np.arange(len(self.queries)))
        moved: Ints = (start[first[0][first[1].ravel()]] - start)[self.query] + np.arange(
            len(self.query)
        )
        return moved

    def of_group(self, group: int | None) -> Judged:
        keep = np.ones(len(self.query), dtype=bool) if group is None else self.group == group
        return Judged(self.query[keep], self.grade[keep], len(self.queries))

    @property
    def has_relevant(self) -> bool:
        """Whether any document is relevant to any query."""
        return len(self.grade) > 0

    def judged_groups(self, groups: Groups) -> set[str]:
        """Return the names of the groups that hold a relevant document."""
        return {groups.names[number] for number in np.unique(self.group) if number >= 0}

    def frame(self) -> pl.DataFrame:
        return pl.DataFrame({"query": self.query, "row": self.row, "grade": self.grade})

    def find(self, query: Ints, row: Ints) -> Ints:
        """Position of each (query, document row) among the judgments; -1 where it is not relevant."""
        width = len(self.ids) + 1
        keys, wanted = self.query * width + self.row, query * width + row
        at = np.searchsorted(keys, wanted)
        at = np.minimum(at, max(len(keys) - 1, 0))
        return (
            np.where((row >= 0) & (keys[at] == wanted), at, -1)
            if len(keys)
            else np.full(len(row), -1)
        )


def _same_text(collection: Collection, queries: pl.Series) -> Ints:
    text = collection.queries["text"].str.strip_chars()
    row = codes(queries, collection.queries["id"])
    named = pl.DataFrame(
        {"at": np.arange(len(queries)), "row": row, "text": text.gather(np.maximum(row, 0))}
    )
    told = (pl.col("row") >= 0) & (pl.col("text") != "")
    first = pl.when(told).then(pl.col("at").first().over("text", told)).otherwise("at")
    return named.select(first)["at"].to_numpy().astype(np.int64)


def signatures(
    query: Ints, one: npt.NDArray[np.number], two: npt.NDArray[np.number], n: int
) -> npt.NDArray[np.uint64]:
    """A number for each query's set of (one, two): equal sets have equal numbers, others hardly ever."""
    mixed = one.astype(np.uint64) * MIXER + two.astype(np.float64).view(np.uint64)
    for shift, factor in (
        (30, 0xBF58476D1CE4E5B9),
        (27, 0x94D049BB133111EB),
        (31, 1),
    ):  # the mixing of SplitMix64
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    sums = np.zeros(n, dtype=np.uint64)
    np.add.at(sums, query, mixed)
    return sums
