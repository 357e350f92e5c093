"""Published numbers: the same measures through ir_measures, with trec_eval's order of ties."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import ir_measures
import numpy as np
import polars as pl

from ranktilt.measures.base import Measure
from ranktilt.measures.ranking import Floats


def trec_eval_values(
    measures: Sequence[Measure], queries: Sequence[str], run: pl.DataFrame, qrels: pl.DataFrame
) -> list[Floats]:
    """Compute measures per query, ties broken by document id, descending, as by trec_eval; `qrels` are one group's.

    NaN for a query without a relevant document, 0 for one that is missing from the run.
    """
    judgments: dict[str, dict[str, int]] = {}
    for query, doc, grade in qrels.select("query_id", "doc_id", "grade").iter_rows():
        judgments.setdefault(query, {})[doc] = grade
    through = [m for m in measures if m.name != "RR"]
    computed = _ir_measures(through, run, judgments) if judgments else {}
    order = {q: i for i, q in enumerate(queries)}
    results = []
    for m in measures:
        per_query = _reciprocal_ranks(m, run, qrels) if m.name == "RR" else computed.get(m, {})
        values = np.zeros(len(queries))
        for query, value in per_query.items():
            if query in order:
                values[order[query]] = value
        relevant = qrels.filter(pl.col("grade") >= (m.rel if m.binary else 1))["query_id"].unique()
        has_relevant = pl.Series(queries, dtype=pl.String).is_in(relevant.implode()).to_numpy()
        results.append(np.where(has_relevant, values, np.nan))
    return results


def _ir_measures(
    measures: Sequence[Measure], run: pl.DataFrame, judgments: dict[str, dict[str, int]]
) -> dict[Measure, dict[str, float]]:
    scored: dict[str, dict[str, float]] = {}
    for query, doc, score in run.select("query_id", "doc_id", "score").iter_rows():
        if query in judgments:
            scored.setdefault(query, {})[doc] = score
    theirs = {ir_measures.parse_measure(repr(m)): m for m in measures}
    found: dict[Measure, dict[str, float]] = {m: {} for m in measures}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        for metric in ir_measures.iter_calc(list(theirs), judgments, scored) if theirs else ():
            found[theirs[metric.measure]][metric.query_id] = metric.value
    return found


def _reciprocal_ranks(measure: Measure, run: pl.DataFrame, qrels: pl.DataFrame) -> dict[str, float]:
    """RR in pytrec_eval's own order: score as float32, then id, both descending (the library's provider differs)."""
    ordered = run.select("query_id", "doc_id", pl.col("score").cast(pl.Float32)).sort(
        ["query_id", "score", "doc_id"], descending=[False, True, True]
    )
    ordered = ordered.with_columns((pl.int_range(pl.len()).over("query_id") + 1).alias("rank"))
    relevant = qrels.filter(pl.col("grade") >= measure.rel)
    hits = ordered.join(relevant, on=["query_id", "doc_id"], how="semi")
    if measure.cutoff is not None:
        hits = hits.filter(pl.col("rank") <= measure.cutoff)
    best = hits.group_by("query_id").agg(pl.col("rank").min())
    return {query: 1 / rank for query, rank in best.iter_rows()}
