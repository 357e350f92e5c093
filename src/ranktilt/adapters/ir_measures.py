"""Measures of a group's documents, and Relative Δ, for ir_measures and PyTerrier's experiments.

A *group* is the documents with one value in a column, such as ``human`` in ``source``. Relative Δ
is the difference between the means of two groups, in percent of their average. *Judgments*
(*qrels*) say which documents are relevant to a query.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from ranktilt.auditing.grouping.labels import grouping
from ranktilt.auditing.judged_run import JudgedRun, group_values
from ranktilt.auditing.judgments import Judgments
from ranktilt.data.collection import Collection
from ranktilt.data.formats.ids import ids_of, pandas_columns, require_pandas, texts_of
from ranktilt.data.runs.run import Run
from ranktilt.errors import UserError
from ranktilt.measures.base import Measure, measure
from ranktilt.measures.contrast import relative_delta
from ranktilt.measures.ranking import Floats
from ranktilt.optional import need

_KEYS = ("query_id", "doc_id")
"""Columns that both judgments and results have."""


def as_ir_measures(
    measures: str | Measure | Sequence[str | Measure] = "nDCG@10",
    *,
    pair: tuple[str, str] = ("human", "llm"),
    by: str = "source",
) -> list[Any]:
    """Return measures of two groups' documents, and Relative Δ between them, for ir_measures.

    Parameters
    ----------
    measures : str or Measure, or a sequence of these, optional
        Measures of relevance, such as ``"nDCG@10"``.
    pair : (str, str), optional
        Two groups; a positive Relative Δ favours the first.
    by : str, optional
        The column of the groups, which both the run and the qrels must have.

    Returns
    -------
    list of ir_measures.Measure
        Three for each measure: the first group's value, the second group's value, and Relative Δ in
        percent. Means of a group are over queries with a relevant document in it, as in an audit.
        The value of Relative Δ for a query is the query's part of it. For tied documents, values
        are expected values over all their orders.
    """
    selection = [measures] if isinstance(measures, str | Measure) else measures
    their_measures = []
    for text in selection:
        contrast = _GroupContrast(measure=measure(text), pair=pair, by=by)
        their_measures += contrast.as_ir_measures()
    return their_measures


@dataclass(frozen=True, kw_only=True)
class _GroupValues:
    """Values of a measure for a run; each array has a number for each judged query."""

    queries: tuple[str, ...]
    """Ids of the queries."""
    first: Floats
    """Values of the first group's documents."""
    second: Floats
    """Values of the second group's documents."""
    relative_delta: Floats
    """Each query's part of Relative Δ."""


@dataclass(kw_only=True, eq=False)
class _GroupContrast:
    """A measure of two groups' documents, and Relative Δ between them.

    ir_measures calls a function for each measure, which returns a value for each query of a run. It
    calls the three functions of this contrast one after the other, with the same run. So `column`
    keeps the values of the last run.
    """

    measure: Measure
    """The measure."""
    pair: tuple[str, str]
    """The two groups."""
    by: str
    """Column of the groups."""
    _inputs: tuple[Any, Any] = (None, None)
    """The judgments and results that `_values` was computed from."""
    _values: _GroupValues | None = None
    """Values of the last judgments and results; None before the first."""

    def as_ir_measures(self) -> list[Any]:
        """Define the three measures in ir_measures."""
        library = need("ir_measures", extra="adapters", for_="measures for ir_measures")
        first, second = self.pair
        names = {
            "first": f"{self.measure!r}[{self.by}={first}]",
            "second": f"{self.measure!r}[{self.by}={second}]",
            "relative_delta": f"RelativeDelta({self.measure!r})[{first},{second}]",
        }
        return [
            library.define(
                partial(self.column, field),
                name=name,
                support_cutoff=False,
                run_inputs=["query_id", "doc_id", "score", self.by],
                qrel_inputs=["query_id", "doc_id", "relevance", self.by],
            )
            for field, name in names.items()
        ]

    def column(self, field: str, qrels: Any, run: Any) -> Iterator[tuple[str, float]]:
        """Yield each judged query with its value of one measure, a field of `_GroupValues`."""
        last_qrels, last_run = self._inputs
        if self._values is None or last_qrels is not qrels or last_run is not run:
            self._values = self.values(qrels, run)
            self._inputs = qrels, run
        values: Floats = getattr(self._values, field)
        yield from zip(self._values.queries, values.tolist(), strict=True)

    def values(self, qrels: Any, run: Any) -> _GroupValues:
        """Compute the values of both groups and the parts of Relative Δ, for each judged query.

        Relative Δ is 200 (F − S) / (F + S), with the means F and S of the groups over the queries
        that have relevant documents of both. A query's part is the same with its own difference
        instead of F − S, so that the mean of the parts is Relative Δ.

        Other libraries take plain means over all queries. So for a query to which no document of a
        group is relevant, the group's value is its mean over the other queries, which leaves the
        mean as it is.
        """
        judged = _table(qrels, (*_KEYS, "relevance", self.by), "qrels")
        ranked = _table(run, (*_KEYS, "score", self.by), "run")
        collection = self._collection(judged, ranked)
        groups = grouping(collection, "source")
        judgments = Judgments.from_collection(collection, groups)
        scores = ranked.select("query_id", "doc_id", "score")
        ranking = Run.from_frame(scores, spec={"ranker": "ir_measures"})
        judged_run = JudgedRun.from_run(ranking, collection, judgments)
        (by_group,) = group_values(judged_run, [self.measure], groups, "expected")
        # Before the values of the groups are those of all documents.
        first, second = (by_group[1 + groups.index(name)] for name in self.pair)
        is_known = ~np.isnan(first + second)
        if not is_known.any():
            raise UserError(
                f"{self.measure!r}: no query has a relevant document of both "
                f"{' and '.join(self.pair)}"
            )
        first_mean = float(np.mean(first[is_known]))
        second_mean = float(np.mean(second[is_known]))
        with np.errstate(invalid="ignore"):  # 0 / 0 if both means are 0: Relative Δ is undefined
            parts = 200 * (first - second) / (first_mean + second_mean)
        return _GroupValues(
            queries=judgments.queries,
            first=np.where(np.isnan(first), np.nanmean(first), first),
            second=np.where(np.isnan(second), np.nanmean(second), second),
            relative_delta=np.where(is_known, parts, relative_delta(first_mean, second_mean)),
        )

    def _collection(self, judged: pl.DataFrame, ranked: pl.DataFrame) -> Collection:
        """Make a collection without texts, whose sources are the groups."""
        frames = [frame.select(id="doc_id", source=pl.col(self.by)) for frame in (judged, ranked)]
        sources = pl.concat(frames).unique(maintain_order=True)
        repeated = sources.filter(~pl.col("id").is_first_distinct())
        if repeated.height:
            doc = repeated["id"][0]
            both = " and ".join(map(repr, sources.filter(id=doc)["source"]))
            raise UserError(
                f"{self.measure!r} by {self.by}: document {doc!r} has two values of {self.by!r}: "
                f"{both}"
            )
        queries = judged.select(id="query_id").unique(maintain_order=True)
        return Collection(
            sources.with_columns(title=pl.lit(""), text=pl.lit("")),
            queries.with_columns(text=pl.lit("")),
            judged.select("query_id", "doc_id", grade="relevance"),
        )


def _table(frame: Any, columns: Sequence[str], noun: str) -> pl.DataFrame:
    """Return columns of a pandas frame: ids and groups as strings."""
    names = require_pandas(frame, noun)
    for name in columns:
        if name not in names:
            raise UserError(
                f"measures by {columns[-1]}: expected a column {name!r} in the {noun}, "
                f"got {', '.join(names)}"
            )
    table = pandas_columns(frame, {names.index(name): name for name in columns})
    ids = [ids_of(table[name], f"{noun}: column {name!r}").alias(name) for name in _KEYS]
    return table.with_columns(*ids, texts_of(table[columns[-1]], f"{noun}: column {columns[-1]!r}"))
