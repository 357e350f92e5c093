"""Measures of a group's documents, and Relative Δ, as ir_measures and PyTerrier's experiments take them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from ranktilt.auditing.groups import grouping
from ranktilt.auditing.judged_run import JudgedRun, group_values
from ranktilt.auditing.judgments import Judgments
from ranktilt.data.collection import Collection
from ranktilt.data.formats.ids import ids_of, pandas_columns, require_pandas, texts_of
from ranktilt.data.run import Run
from ranktilt.errors import UserError
from ranktilt.measures.base import Measure, measure
from ranktilt.measures.contrast import relative_delta
from ranktilt.measures.ranking import Floats
from ranktilt.optional import need

_KEYS = ("query_id", "doc_id")


def as_ir_measures(
    measures: str | Measure | Sequence[str | Measure] = "nDCG@10",
    *,
    pair: tuple[str, str] = ("human", "llm"),
    by: str = "source",
) -> list[Any]:
    """Give measures of two groups' documents, and Relative Δ between them, to ir_measures.

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
        Of each measure: the first group's, the second's (their means are over queries with a
        relevant document in the group, as in an audit), and Relative Δ in percent, of a query its
        part of it. Ties count in expectation.
    """
    given = [measures] if isinstance(measures, str | Measure) else measures
    return [made for asked in given for made in _of_measure(measure(asked), pair, by)]


def _of_measure(asked: Measure, pair: tuple[str, str], by: str) -> list[Any]:
    library = need("ir_measures", extra="adapters", for_="measures for ir_measures")
    names = [f"{asked!r}[{by}={name}]" for name in pair] + [
        f"RelativeDelta({asked!r})[{','.join(pair)}]"
    ]
    inputs = {
        "run_inputs": ["query_id", "doc_id", "score", by],
        "qrel_inputs": ["query_id", "doc_id", "relevance", by],
    }
    last: list[Any] = [None, None, None]
    """Qrels and run that were seen last, and their values: the three measures are asked for one after the other."""

    def column(number: int, qrels: Any, run: Any) -> Iterator[tuple[str, float]]:
        if last[0] is not qrels or last[1] is not run:
            last[:] = qrels, run, _values(qrels, run, asked, pair, by)
        queries, columns = last[2]
        yield from zip(queries, columns[number].tolist(), strict=True)

    return [
        library.define(partial(column, number), name=name, support_cutoff=False, **inputs)
        for number, name in enumerate(names)
    ]


def _values(
    qrels: Any, run: Any, asked: Measure, pair: tuple[str, str], by: str
) -> tuple[tuple[str, ...], tuple[Floats, ...]]:
    """Values of both groups and parts of Relative Δ, for each judged query.

    Other libraries take plain means over all queries: where a group has nothing relevant to a
    query, its value is the mean over the others, so that it moves nothing.
    """
    columns = {"qrels": (*_KEYS, "relevance", by), "run": (*_KEYS, "score", by)}
    judged, ranked = _table(qrels, columns["qrels"], "qrels"), _table(run, columns["run"], "run")
    frames = (frame.select(id="doc_id", source=pl.col(by)) for frame in (judged, ranked))
    sources = pl.concat(frames).unique(maintain_order=True)
    if (repeated := sources.filter(~pl.col("id").is_first_distinct())).height:
        doc = repeated["id"][0]
        both = " and ".join(map(repr, sources.filter(id=doc)["source"]))
        raise UserError(f"{asked!r} by {by}: document {doc!r} has two values of {by!r}: {both}")
    docs = sources.with_columns(title=pl.lit(""), text=pl.lit(""))
    queries = judged.select(id="query_id").unique(maintain_order=True).with_columns(text=pl.lit(""))
    judgments = judged.select("query_id", "doc_id", grade="relevance")
    collection = Collection(docs, queries, judgments)
    groups = grouping(collection, "source")
    held = Judgments.from_collection(collection, groups)
    ranking = Run.from_frame(
        ranked.select("query_id", "doc_id", "score"), spec={"ranker": "ir_measures"}
    )
    found = group_values(
        JudgedRun.from_run(ranking, collection, held), [asked], groups, "expected"
    )[0]
    one, two = (found[1 + groups.number(name)] for name in pair)
    both = ~np.isnan(one + two)
    if not both.any():
        raise UserError(
            f"{asked!r}: no query has a relevant document of both {pair[0]} and {pair[1]}"
        )
    means = float(np.mean(one[both])), float(np.mean(two[both]))
    parts = 200 * (one - two) / sum(means)
    filled = (np.where(np.isnan(side), np.nanmean(side), side) for side in (one, two))
    return held.queries, (*filled, np.where(both, parts, relative_delta(*means)))


def _table(frame: Any, columns: Sequence[str], noun: str) -> pl.DataFrame:
    """Return columns of a pandas frame: ids and groups as strings."""
    names = require_pandas(frame, noun)
    if lacking := next((name for name in columns if name not in names), None):
        raise UserError(
            f"measures by {columns[-1]}: expected a column {lacking!r} in the {noun}, got {', '.join(names)}"
        )
    table = pandas_columns(frame, {names.index(name): name for name in columns})
    ids = [ids_of(table[name], f"{noun}: column {name!r}").alias(name) for name in _KEYS]
    return table.with_columns(*ids, texts_of(table[columns[-1]], f"{noun}: column {columns[-1]!r}"))
