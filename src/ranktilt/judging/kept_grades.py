"""The grades of each judge, and values of systems per query, as the file of an audit keeps them.

A later audit compares its judges with these, grade by grade, so the file holds every grade. A pair
is a query and a document; a system is a ranker whose run was evaluated. To keep the file small, it
holds the names of queries and documents once, and numbers as compressed arrays in text form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from ranktilt.auditing.storage.array_text import (
    array_of_text,
    names_of_text,
    text_of_array,
    text_of_names,
)
from ranktilt.data.artifact import register
from ranktilt.data.collection import Collection
from ranktilt.measures.ranking import Floats

MOST_ROWS = 3_000_000
"""Most grades that are kept, some 20 MB in the file; an audit with more keeps none."""
PAIR_COLUMNS = ("query_id", "doc_id")
"""Columns that identify a graded pair."""
_UNGRADED = -1
"""Number that stands for a missing grade in a file."""
_SCHEMA = {
    "query_id": pl.String,
    "doc_id": pl.String,
    "human": pl.Int64,
    "source": pl.String,
    "origin": pl.String,
}
"""Columns of `KeptGrades.pairs`."""


@dataclass(frozen=True, kw_only=True, eq=False)
class KeptValues:
    """One measure of all systems and queries, under human grades and under one judge."""

    judge: str
    """Name of the judge."""
    measure: str
    """Notation of the measure."""
    runs: tuple[str, ...]
    """Names of the systems."""
    queries: tuple[str, ...]
    """Ids of the queries."""
    human: Floats
    """Values under human grades, of shape (systems, queries)."""
    judged: Floats
    """Values under the judge, of the same shape."""


@dataclass(frozen=True, kw_only=True, eq=False)
class KeptGrades:
    """Every pair that a judge graded, with the human grade and the document's source."""

    pairs: pl.DataFrame
    """A row for each pair that a judge graded: ``query_id``, ``doc_id``, ``human``, ``source``,
    ``origin``.

    ``human`` is null without a human grade. ``origin``, which versions of one text share, and
    ``source`` are null without a collection of two sources.
    """
    grades: Mapping[str, pl.Series]
    """Grades of each judge, a row for each pair; null where it gave none."""
    values: tuple[KeptValues, ...] = ()
    """Values of systems, for each judge and measure."""
    twins: tuple[str, ...] = ()
    """The two sources that are compared; empty without a collection of two sources."""
    steps: int = 1
    """Number of steps that make one grade in the judges' files, such as 4 for quarters.

    Here each step counts as one grade.
    """
    is_complete: bool = True
    """False where there were too many grades to keep."""

    @classmethod
    def from_grades(
        cls,
        by_judge: Mapping[str, pl.DataFrame],
        human: pl.DataFrame,
        collection: Collection | None,
        *,
        values: Sequence[KeptValues] = (),
        twins: Sequence[str] = (),
        steps: int = 1,
    ) -> KeptGrades:
        """Take the grades of every judge; none if there are more than `MOST_ROWS` of them.

        Parameters
        ----------
        by_judge : mapping
            The grades of each judge: ``query_id``, ``doc_id``, ``grade``.
        human : polars.DataFrame
            The human grades, with the same columns.
        collection : Collection or None
            Documents with their sources and origins.
        values, twins, steps
            The fields of these names.
        """
        frames = [frame.select(*PAIR_COLUMNS, "grade") for frame in by_judge.values()]
        is_complete = sum(frame.height for frame in frames) <= MOST_ROWS
        if not is_complete:
            frames = [frame.clear() for frame in frames]
        empty = pl.DataFrame(schema=dict.fromkeys(PAIR_COLUMNS, pl.String))
        graded_pairs = pl.concat([empty, *(frame.select(PAIR_COLUMNS) for frame in frames)])
        pairs = graded_pairs.unique(PAIR_COLUMNS, keep="first", maintain_order=True)
        grades = dict[str, pl.Series]()
        for name, frame in zip(by_judge, frames, strict=True):
            with_grade = pairs.join(frame, on=PAIR_COLUMNS, how="left", maintain_order="left")
            grades[name] = with_grade["grade"].cast(pl.Int64)
        human = human.select(*PAIR_COLUMNS, human=pl.col("grade").cast(pl.Int64))
        pairs = pairs.join(human, on=PAIR_COLUMNS, how="left", maintain_order="left")
        return cls(
            pairs=_with_sources(pairs, collection if twins else None).select(list(_SCHEMA)),
            grades=grades,
            values=tuple(values),
            twins=tuple(twins),
            steps=steps,
            is_complete=is_complete,
        )

    @classmethod
    def from_values(cls, values: Sequence[KeptValues]) -> KeptGrades:
        """Take values of systems alone, for an audit of published values without grades."""
        return cls(
            pairs=pl.DataFrame(schema=_SCHEMA),
            grades={},
            values=tuple(values),
        )

    def graded_by(self, judge: str) -> pl.DataFrame:
        """Return the pairs that a judge graded, with its ``grade``."""
        if judge not in self.grades:
            return self.pairs.clear().with_columns(grade=pl.lit(None, dtype=pl.Int64))
        return self.pairs.with_columns(grade=self.grades[judge]).drop_nulls("grade")

    def row(self) -> dict[str, Any]:
        """Return the record in an audit's file, which `from_row` reads.

        Queries and documents are named once. Pairs hold their numbers, which are indices of the
        names.
        """
        queries = self.pairs["query_id"].unique(maintain_order=True)
        documents = self.pairs.unique("doc_id", keep="first", maintain_order=True)
        row: dict[str, Any] = {
            "queries": text_of_names(queries),
            "documents": text_of_names(documents["doc_id"]),
            "sources": text_of_names(documents["source"]),
            "origins": text_of_names(documents["origin"]),
        }
        row["query"] = _text_of_numbers(self.pairs["query_id"], queries)
        row["document"] = _text_of_numbers(self.pairs["doc_id"], documents["doc_id"])
        row["human"] = _text_of_grades(self.pairs["human"])
        row["grades"] = {name: _text_of_grades(column) for name, column in self.grades.items()}
        row["values"] = [_row_of_values(values) for values in self.values]
        row["twins"] = list(self.twins)
        return {**row, "steps": self.steps, "is_complete": self.is_complete}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> KeptGrades:
        """Read the record that `row` writes."""
        queries, documents = names_of_text(row["queries"]), names_of_text(row["documents"])
        sources, origins = names_of_text(row["sources"]), names_of_text(row["origins"])
        query, document = (array_of_text(row[name], "<i4") for name in ("query", "document"))
        pairs = pl.DataFrame(
            {
                "query_id": queries.gather(query),
                "doc_id": documents.gather(document),
                "human": _grades_of_text(row["human"]),
                "source": sources.gather(document),
                "origin": origins.gather(document),
            },
            schema=_SCHEMA,
        )
        return cls(
            pairs=pairs,
            grades={name: _grades_of_text(text) for name, text in row["grades"].items()},
            values=tuple(map(_values_of_row, row["values"])),
            twins=tuple(row["twins"]),
            steps=row["steps"],
            is_complete=row["is_complete"],
        )


def nothing_kept() -> KeptGrades:
    """Return the record of an audit that keeps no grades."""
    return KeptGrades(pairs=pl.DataFrame(schema=_SCHEMA), grades={}, is_complete=False)


def _with_sources(pairs: pl.DataFrame, collection: Collection | None) -> pl.DataFrame:
    """Add the source and the origin of each document; null without a collection."""
    if collection is None:
        unknown = pl.lit(None, dtype=pl.String)
        return pairs.with_columns(source=unknown, origin=unknown)
    documents = collection.docs.select(doc_id="id", source="source", origin="origin")
    return pairs.join(documents, on="doc_id", how="left", maintain_order="left")


def _text_of_grades(grades: pl.Series) -> str:
    """Write grades as the text of an array, missing ones as `_UNGRADED`."""
    return text_of_array(grades.fill_null(_UNGRADED).to_numpy().astype("<i4"))


def _grades_of_text(text: str) -> pl.Series:
    """Read grades from the text of an array, `_UNGRADED` as missing."""
    grades = pl.Series(array_of_text(text, "<i4"), dtype=pl.Int64)
    return grades.replace(_UNGRADED, None)


def _text_of_numbers(names: pl.Series, distinct_names: pl.Series) -> str:
    """Write each name as its index in a list of distinct names."""
    numbers = pl.DataFrame({"name": distinct_names}).with_row_index("number")
    column = pl.DataFrame({"name": names}).join(
        numbers, on="name", how="left", maintain_order="left"
    )
    return text_of_array(column["number"].to_numpy().astype("<i4"))


def _row_of_values(values: KeptValues) -> dict[str, Any]:
    """Return the record of a measure's values, which `_values_of_row` reads."""
    return {
        "judge": values.judge,
        "measure": values.measure,
        "runs": list(values.runs),
        "queries": list(values.queries),
        "human": text_of_array(np.ascontiguousarray(values.human, dtype="<f8")),
        "judged": text_of_array(np.ascontiguousarray(values.judged, dtype="<f8")),
    }


def _values_of_row(row: Mapping[str, Any]) -> KeptValues:
    """Read the record of a measure's values."""
    shape = len(row["runs"]), len(row["queries"])
    return KeptValues(
        judge=row["judge"],
        measure=row["measure"],
        runs=tuple(row["runs"]),
        queries=tuple(row["queries"]),
        human=array_of_text(row["human"], "<f8").reshape(shape),
        judged=array_of_text(row["judged"], "<f8").reshape(shape),
    )


register(KeptGrades, KeptGrades.row, KeptGrades.from_row)
