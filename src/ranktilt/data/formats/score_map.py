"""JSON ``{query: {document: number}}``: runs of BEIR, Pyserini, ranx and mteb, and judgments in the same form."""

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
from ranktilt.data.formats.cells import NumberColumn, json_ids
from ranktilt.data.formats.run_columns import without_empty_ids
from ranktilt.data.formats.score_order import IN_GIVEN_ORDER
from ranktilt.errors import DataError, UserError, located, shorten

SHAPE = "{query: {document: score}}"
MTEB = "mteb_model_meta"
"""The key by which mteb's predictions are known."""


@dataclass(frozen=True, kw_only=True)
class ScoreMap:
    """Documents and numbers of each query."""

    queries: pl.Series
    """Every query."""
    query: pl.Series
    """Query of each entry, null where its id is empty."""
    document: pl.Series
    numbers: NumberColumn


def map_of(path: Path, content: Mapping[str, Any]) -> ScoreMap:
    """Take ``{query: {document: number}}`` apart; `DataError` where it is none."""
    if not content:
        raise DataError(path, f"expected {SHAPE}, got no query")
    for query, documents in content.items():
        if not isinstance(documents, Mapping):
            message = f"query {query!r}: expected {{document: score}}, got {shorten(documents)}"
            raise DataError(path, message)
    try:
        every = json_ids(list(content), "query")
        names = list(chain.from_iterable(content.values()))
        documents = json_ids(names, "document")
    except UserError as error:
        raise located(path, error) from error
    counts = list(map(len, content.values()))
    return ScoreMap(
        queries=every.drop_nulls(),
        query=every.gather(np.repeat(np.arange(len(counts)), counts)),
        document=documents,
        numbers=NumberColumn.from_json(
            list(chain.from_iterable(documents.values() for documents in content.values()))
        ),
    )


def read_scores(path: Path, content: Mapping[str, Any], order: str | None, tag: str) -> RunFile:
    """Read a run of scores; with the order ``"rank"`` the order of the documents counts."""
    scores = map_of(path, content)
    values = scores.numbers.values
    is_wrong = values.is_null() | values.is_nan() | (values == math.inf)
    if order != "rank" and is_wrong.any():
        row = int(is_wrong.arg_max() or 0)
        where = f"query {scores.query[row]!r}, document {scores.document[row]!r}"
        came = shorten(scores.numbers.raw[row])
        message = f"{where}: expected a finite number as score, got {came}; {IN_GIVEN_ORDER}"
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
    """Return the scores of one subset and split of mteb's predictions: the named ones, the only ones, or ``test``."""
    parts = dict[tuple[str, str], Any]()
    for part, splits in content.items():
        if part == MTEB or not isinstance(splits, Mapping) or subset not in ("", part):
            continue
        for name, scores in splits.items():
            if split in ("", name):
                parts[part, name] = scores
    chosen = list(parts) if len(parts) == 1 else [part for part in parts if part[1] == "test"]
    if len(chosen) != 1:
        present = ", ".join("/".join(map(str, part)) for part in parts) or "none of these"
        hint = "Run.from_mteb(predictions, subset=…, split=…) takes one in Python"
        raise DataError(
            path, f"expected predictions of one subset and split, got {present}; {hint}"
        )
    predictions: Mapping[str, Any] = parts[chosen[0]]
    if not isinstance(predictions, Mapping):
        where = "/".join(map(str, chosen[0]))
        raise DataError(path, f"{where}: expected {SHAPE}, got {shorten(predictions)}")
    return predictions
