"""What each document adds to the answers of an audit, stored so that two audits can be compared.

The standard error of a difference between two runs is computed from what each document adds to the
*difference*: a document that helps both runs alike adds nothing. So an audit's file holds, for
every answer that `compare` reads, a number for each query and document: its *contribution*.
Documents that are versions of one text count as one: their *origin*. `Clusters` are these numbers
as arrays, with an *entry* for each query and origin.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.auditing.significance import Sample
from ranktilt.auditing.storage.array_text import array_of_text, text_of_array
from ranktilt.data.artifact import register
from ranktilt.data.collection import Collection
from ranktilt.statistics.two_way import Clusters

MOST_ENTRIES = 500_000
"""Most entries that an audit stores for all its answers together.

They take some 5 MB in its file. The smallest contributions are left out first.
"""
_COLUMNS = {"query": "<i4", "origin": "<i4", "total": "<f8", "weight": "<f8"}
"""Columns of `Clusters` with their little-endian types in a file."""
Key = tuple[str, str, str, str]
"""Key of an answer: run, notation of the estimand, first and second group."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Contributions:
    """What each document adds to each answer of an audit."""

    queries: tuple[str, ...]
    """Ids of the queries."""
    origins: pl.Series
    """Ids of the origins."""
    answers: Mapping[Key, Clusters]
    """What documents add to each answer.

    In `Clusters`, a query or an origin is its index in `queries` or `origins`. Entries with the
    query −1 belong to no query.
    """

    @classmethod
    def from_samples(
        cls, samples: Sequence[Sample], collection: Collection, queries: Sequence[str]
    ) -> Contributions:
        """Return the contributions of all samples: the largest ones, `MOST_ENTRIES` together.

        `queries` are the ids of the queries, by their number in the samples.
        """
        answers = {
            (sample.run, repr(sample.estimand), sample.a, sample.b): sample.clusters
            for sample in samples
            if sample.clusters is not None
        }
        most = MOST_ENTRIES // max(len(answers), 1)
        answers = {key: _largest(clusters, most) for key, clusters in answers.items()}
        origin_ids = pl.DataFrame(
            {"number": collection.origin_codes(), "id": collection.docs["origin"]}
        )
        origin_ids = origin_ids.unique("number").sort("number")
        numbers = np.concatenate([[], *(clusters.origin for clusters in answers.values())])
        stored_origins = np.unique(numbers.astype(np.int64))
        return cls(
            queries=tuple(queries),
            origins=origin_ids["id"].gather(stored_origins),
            answers={
                key: clusters._replace(origin=np.searchsorted(stored_origins, clusters.origin))
                for key, clusters in answers.items()
            },
        )

    def clusters_of(self, key: Key, numbering: CommonNumbering) -> Clusters | None:
        """Return what documents add to one answer, with the common numbers of `numbering`.

        None if nothing is stored. If the answer is stored with its groups in the other order, the
        totals change their sign.
        """
        run, estimand, a, b = key
        clusters = self.answers.get(key)
        if clusters is None:
            swapped = self.answers.get((run, estimand, b, a))
            if swapped is None:
                return None
            clusters = swapped._replace(total=-swapped.total)
        row = numbering.row[clusters.query]
        has_no_query = clusters.query < 0
        is_compared = has_no_query | (row >= 0)
        return Clusters(
            query=np.where(has_no_query, -1, row)[is_compared],
            origin=numbering.origin[clusters.origin[is_compared]],
            total=clusters.total[is_compared],
            weight=clusters.weight[is_compared],
        )

    def row(self) -> dict[str, Any]:
        """Return the contributions as they are written into a file.

        Names are written once; arrays are little-endian, compressed (zlib) and written as base64.
        """
        rows = []
        for key, clusters in self.answers.items():
            packed = {
                name: text_of_array(column.astype(kind))
                for (name, kind), column in zip(_COLUMNS.items(), clusters, strict=True)
            }
            rows.append({**dict(zip(("run", "estimand", "a", "b"), key, strict=True)), **packed})
        return {"queries": self.queries, "origins": self.origins.to_list(), "answers": rows}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Contributions:
        """Read the contributions that `row` wrote."""
        answers = {}
        for answer in row["answers"]:
            columns = [array_of_text(answer[name], dtype) for name, dtype in _COLUMNS.items()]
            query, origin, total, weight = columns
            key = (answer["run"], answer["estimand"], answer["a"], answer["b"])
            answers[key] = Clusters(
                query=query.astype(np.int64),
                origin=origin.astype(np.int64),
                total=total,
                weight=weight,
            )
        return cls(
            queries=tuple(row["queries"]),
            origins=pl.Series(row["origins"], dtype=pl.String),
            answers=answers,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class CommonNumbering:
    """Numbers that an audit's queries and origins have in a comparison of several audits."""

    row: npt.NDArray[np.int64]
    """Row of each query of the audit among the compared queries; −1 if it is not compared."""
    origin: npt.NDArray[np.int64]
    """Number of each origin of the audit among the origins of all audits."""


def common_numbering(
    contributions: Sequence[Contributions], queries: Sequence[str]
) -> list[CommonNumbering]:
    """Return the common numbers of several audits' queries and origins.

    There is a numbering for each audit. `queries` are the compared queries; a query's number is its
    position there.
    """
    ids_by_audit = [audit.origins.to_numpy().astype(np.str_) for audit in contributions]
    # NumPy gives an empty array another type, which would change that of all ids.
    filled = [ids for ids in ids_by_audit if len(ids)]
    all_ids = np.unique(np.concatenate(filled)) if filled else np.empty(0, dtype=np.str_)
    row_of_query = {query: row for row, query in enumerate(queries)}
    numberings = []
    for audit, ids in zip(contributions, ids_by_audit, strict=True):
        rows = [row_of_query.get(query, -1) for query in audit.queries]
        numbering = CommonNumbering(
            row=np.array(rows, dtype=np.int64), origin=np.searchsorted(all_ids, ids)
        )
        numberings.append(numbering)
    return numberings


def _largest(clusters: Clusters, count: int) -> Clusters:
    """Keep the `count` entries with the largest totals.

    Their order depends only on their values, and not on how the run stored its documents: so the
    same numbers are added in the same order, and sums are equal to the last digit.
    """
    order = np.lexsort((clusters.weight, clusters.total, clusters.origin, clusters.query))
    size = np.abs(clusters.total[order])
    if len(size) > count:
        order = order[np.sort(np.argsort(-size, kind="stable")[:count])]
    return Clusters(
        query=clusters.query[order],
        origin=clusters.origin[order],
        total=clusters.total[order],
        weight=clusters.weight[order],
    )


# How files hold contributions, as a field of an audit.
register(Contributions, Contributions.row, Contributions.from_row)
