"""Keep what each document adds to the answers of an audit, so that two audits can be compared.

The standard error of a difference between two runs is computed from what each document adds to the
*difference*. So an audit's file holds, for every answer that `compare` reads, a number for each
query and document.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.auditing.array_text import array_of_text, text_of_array
from ranktilt.auditing.significance import Sample
from ranktilt.data.artifact import register
from ranktilt.data.collection import Collection
from ranktilt.statistics.two_way import Clusters

MOST_ENTRIES = 500_000
"""Most entries that an audit keeps of all its answers: some 5 MB in its file."""
_COLUMNS = {"query": "<i4", "origin": "<i4", "total": "<f8", "weight": "<f8"}
"""Columns of `Clusters` with their little-endian types in a file."""
Key = tuple[str, str, str, str]
"""An answer: run, notation of the estimand, first and second group."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Contributions:
    """What each document adds to each answer of an audit."""

    queries: tuple[str, ...]
    """Ids of the queries."""
    origins: pl.Series
    """Names of the origins."""
    answers: Mapping[Key, Clusters]
    """Entries of each answer.

    In `Clusters`, a query or an origin is its index in `queries` or `origins`; the query −1 is
    none.
    """

    @classmethod
    def from_samples(
        cls, samples: Sequence[Sample], collection: Collection, queries: Sequence[str]
    ) -> Contributions:
        """Keep the largest entries of the answers, `MOST_ENTRIES` of all together."""
        answers = {
            (sample.run, repr(sample.estimand), sample.a, sample.b): sample.clusters
            for sample in samples
            if sample.clusters is not None
        }
        share = MOST_ENTRIES // max(len(answers), 1)
        answers = {key: _largest(clusters, share) for key, clusters in answers.items()}
        names = pl.DataFrame(
            {"number": collection.origin_codes(), "name": collection.docs["origin"]}
        )
        names = names.unique("number").sort("number")
        numbers = np.concatenate([[], *(clusters.origin for clusters in answers.values())])
        origins = np.unique(numbers.astype(np.int64))
        return cls(
            queries=tuple(queries),
            origins=names["name"].gather(origins),
            answers={
                key: clusters._replace(origin=np.searchsorted(origins, clusters.origin))
                for key, clusters in answers.items()
            },
        )

    def clusters_of(self, key: Key, numbering: CommonNumbering) -> Clusters | None:
        """Return what documents add to one answer, with the common numbers of `numbering`.

        None if nothing is stored. If the answer is stored with its groups exchanged, its sign is
        turned.
        """
        run, estimand, a, b = key
        clusters = self.answers.get(key)
        if clusters is None:
            turned = self.answers.get((run, estimand, b, a))
            if turned is None:
                return None
            clusters = turned._replace(total=-turned.total)
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
    names_of = [audit.origins.to_numpy().astype(np.str_) for audit in contributions]
    names = [names for names in names_of if len(names)]
    all_names = np.unique(np.concatenate(names)) if names else np.empty(0, dtype=np.str_)
    row_of = {query: row for row, query in enumerate(queries)}
    numberings = []
    for audit, origins in zip(contributions, names_of, strict=True):
        rows = [row_of.get(query, -1) for query in audit.queries]
        numbering = CommonNumbering(
            row=np.array(rows, dtype=np.int64), origin=np.searchsorted(all_names, origins)
        )
        numberings.append(numbering)
    return numberings


def _largest(clusters: Clusters, count: int) -> Clusters:
    """Keep the `count` entries that add most, in an order that depends only on their values."""
    # Not on how the run stored its documents: the same floats add up to the same sum.
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


register(Contributions, Contributions.row, Contributions.from_row)
