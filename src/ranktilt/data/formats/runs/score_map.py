"""JSON ``{query: {document: number}}``: runs of BEIR, Pyserini, ranx and mteb, and judgments.

mteb's files have such an object for each *subset* (mostly a language) and *split* (such as
``test``) of a task.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ranktilt.data.formats.base import RunFile
from ranktilt.data.formats.runs.run_columns import without_empty_ids
from ranktilt.data.formats.runs.score_order import GIVEN_ORDER_HINT
from ranktilt.data.formats.tables.cells import NumberColumn, json_ids
from ranktilt.errors import DataError, UserError, error_in_file, shorten

SHAPE = "{query: {document: score}}"
"""What messages call this layout."""
MTEB = "mteb_model_meta"
"""Key in mteb's predictions by which they are recognised."""


@dataclass(frozen=True, kw_only=True)
class ScoreMap:
    """The columns of ``{query: {document: number}}``, with a row for each document of a query."""

    queries: pl.Series
    """Ids of all queries, each once."""
    query: pl.Series
    """Query's id in each row; null if it is empty."""
    document: pl.Series
    """Document's id in each row; null if it is empty."""
    numbers: NumberColumn
    """Number in each row: a score, or a grade."""


def map_of(path: Path, content: Mapping[str, Any]) -> ScoreMap:
    """Return the columns of ``{query: {document: number}}``; `DataError` for anything else."""
    if not content:
        raise DataError(path, f"expected {SHAPE}, got no query")
    for query, documents in content.items():
        if not isinstance(documents, Mapping):
            message = f"query {query!r}: expected {{document: score}}, got {shorten(documents)}"
            raise DataError(path, message)
    try:
        queries = json_ids(list(content), "query")
        document_ids = json_ids(list(chain.from_iterable(content.values())), "document")
    except UserError as error:
        raise error_in_file(path, error) from error
    counts = list(map(len, content.values()))
    numbers = list(chain.from_iterable(documents.values() for documents in content.values()))
    return ScoreMap(
        queries=queries.drop_nulls(),
        query=queries.gather(np.repeat(np.arange(len(counts)), counts)),
        document=document_ids,
        numbers=NumberColumn.from_json(numbers),
    )


def read_scores(path: Path, content: Mapping[str, Any], order: str | None, tag: str) -> RunFile:
    """Read a run from ``{query: {document: score}}``.

    With the order ``"rank"`` the order of the documents counts. `tag` is the name of the run.
    """
    scores = map_of(path, content)
    values = scores.numbers.values
    is_wrong = values.is_null() | values.is_nan() | (values == math.inf)
    if order != "rank" and is_wrong.any():
        row = int(is_wrong.arg_max() or 0)
        where = f"query {scores.query[row]!r}, document {scores.document[row]!r}"
        came = shorten(scores.numbers.raw[row])
        message = f"{where}: expected a finite number as score, got {came}; {GIVEN_ORDER_HINT}"
        raise DataError(path, message)
    nothing = pl.repeat(None, len(values), dtype=pl.Float64, eager=True)
    frame = pl.DataFrame(
        {
            "query_id": scores.query,
            "doc_id": scores.document,
            "score": nothing if order == "rank" else values,
            "rank": nothing.cast(pl.Int64),
        }
    )
    frame, _, skipped = without_empty_ids(path, frame, ())
    read_as = f"{SHAPE}, in their order" if order == "rank" else ""
    return RunFile(
        frame=frame,
        queries=scores.queries,
        score_order=order,
        read_as=read_as,
        tag=tag,
        skipped=skipped,
    )


def mteb_scores(
    path: Path | str, content: Mapping[str, Any], subset: str = "", split: str = ""
) -> Mapping[str, Any]:
    """Return the scores of one subset and split of mteb's predictions.

    By default the only subset and split, or the only split ``test``.
    """
    predictions_by_name = _predictions_by_name(content, subset, split)
    names = list(predictions_by_name)
    if len(names) > 1:
        names = [name for name in names if name.rpartition("/")[2] == "test"]
    if len(names) != 1:
        present = ", ".join(predictions_by_name) or "none of these"
        hint = "in Python, Run.from_mteb(predictions, subset=…, split=…) takes one"
        raise DataError(
            path, f"expected predictions of one subset and split, got {present}; {hint}"
        )
    predictions: Mapping[str, Any] = predictions_by_name[names[0]]
    if not isinstance(predictions, Mapping):
        raise DataError(path, f"{names[0]}: expected {SHAPE}, got {shorten(predictions)}")
    return predictions


def _predictions_by_name(content: Mapping[str, Any], subset: str, split: str) -> dict[str, Any]:
    """Return the predictions of each ``SUBSET/SPLIT``; an empty subset or split means all."""
    predictions = dict[str, Any]()
    for subset_name, splits in content.items():
        if subset_name == MTEB or not isinstance(splits, Mapping):
            continue
        for split_name, scores in splits.items():
            if subset in ("", subset_name) and split in ("", split_name):
                predictions[f"{subset_name}/{split_name}"] = scores
    return predictions
