"""Runs in whatever layout: the file's content tells it, whatever its name.

`LAYOUTS` has a module for each; a new one is a module with `sniff` and `read`, and a line there.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec
import orjson
import polars as pl

from ranktilt.data.files import read_text, sidecar
from ranktilt.data.formats.base import RUN, FileLayout, RunFile, RunRequest
from ranktilt.data.formats.data_file import DataFile
from ranktilt.data.formats.json_text import parse_json, require_single_keys
from ranktilt.data.formats.refusals import refusal, refuse_binary
from ranktilt.data.formats.responses import answer_run
from ranktilt.data.formats.responses import folder as response_folder
from ranktilt.data.formats.responses.search_responses import MAX_FAILURES
from ranktilt.data.formats.runs import parquet_run, table_run, three_column_run, trec_run
from ranktilt.errors import DataError, DataWarning, counted

LAYOUTS = (
    FileLayout(name="Parquet", sniff=parquet_run.sniff, read=parquet_run.read),
    FileLayout(name="TREC run", sniff=trec_run.sniff, read=trec_run.read),
    FileLayout(name="JSON", sniff=answer_run.sniff, read=answer_run.read),
    FileLayout(name="table", sniff=table_run.sniff, read=table_run.read),
    FileLayout(name="three columns", sniff=three_column_run.sniff, read=three_column_run.read),
)
"""In this order; the first that fits reads the file."""
Queries = Sequence[str] | Mapping[str, str]
"""Ids of queries in the order of the responses, or their texts by id."""
_ORDERED = 3
"""Documents from which ranks say something that one score for all of them hides."""


class _Truncated(msgspec.Struct):
    """How much a ranker cut off, as its sidecar says."""

    limit: int
    """Tokens after which it cuts."""
    share: dict[str, float]
    """Share of the documents that it cut, by source."""


class _Sidecar(msgspec.Struct):
    """Of a sidecar, what is read and not only passed on."""

    ranker: str = ""
    """Text of the ranker."""
    name: str = ""
    """Name of the run."""
    score_order: str = ""
    """How its scores order documents."""
    file: str = ""
    """Name of the run's file."""
    own_documents_dropped: int = 0
    """Number of entries that were a query's own document."""
    queries_without_documents: tuple[str, ...] = ()
    """Queries to which nothing was retrieved."""
    truncated: _Truncated | msgspec.UnsetType = msgspec.UNSET
    """How much the ranker cut off."""
    candidates: _Sidecar | msgspec.UnsetType = msgspec.UNSET
    """The run that was ranked again."""


def read_run_file(
    path: Path,
    *,
    columns: Mapping[str, str] = {},
    score_order: str | None = None,
    queries: Queries | None = None,
    max_failures: float = MAX_FAILURES,
) -> RunFile:
    """Read a run's file, or a folder of responses. Entries are in the file's order.

    Parameters
    ----------
    columns : mapping, optional
        What the user says of the columns: ``{"id": "url"}``; ``hits`` names the key of lists.
    score_order : str, optional
        With ``"rank"`` scores are not read.
    queries : sequence or mapping of str, optional
        Ids of the queries of responses that do not name them, in their order; with their texts, by
        which responses are known that repeat these.
    max_failures : float, optional
        Percentage of responses that may be errors or partial.
    """
    file = DataFile(path=path, columns=dict(columns))
    texts = dict[str, str]()
    if isinstance(queries, Mapping):
        texts = {text: name for name, text in queries.items()}
    request = RunRequest(
        score_order=score_order,
        queries=None if queries is None else list(queries),
        texts=texts,
        max_failures=max_failures,
    )
    if path.is_dir():
        return response_folder.read(file, request)
    refuse_binary(file, RUN)
    for layout in LAYOUTS:
        if layout.sniff(file):
            return cast(RunFile, layout.read(file, request))
    raise refusal(file, RUN)


def warn_of_ranks(path: Path, frame: pl.DataFrame) -> None:
    """Warn if scores contradict the ranks, or if all are equal: engines mean one or the other."""
    ranked = frame.filter(pl.col("rank").is_not_null())
    hint = '(for the ranks, use --score-order rank or score_order="rank")'
    # Some engines export the same score for all documents.
    if ranked["score"].n_unique() <= max(ranked["query_id"].n_unique(), 1):
        lists = ranked.group_by("query_id").agg(pl.col("score", "rank").n_unique())
        lists = lists.filter(pl.col("rank") >= _ORDERED)
        flat = lists.filter(pl.col("score") == 1).height
        if 2 * flat > lists.height:
            queries = counted(lists.height, "query", "queries")
            message = f"all scores are equal in {flat:,} of {queries}, although ranks differ"
            _warn(f"{path}: {message}; these documents count as tied {hint}")
    if _is_in_both_orders(ranked):
        return
    ranked = ranked.sort("query_id", "rank", -pl.col("score"), maintain_order=True)
    is_same_query = pl.col("query_id") == pl.col("query_id").shift()
    is_ranked_lower = pl.col("rank") > pl.col("rank").shift()
    is_scored_higher = pl.col("score") > pl.col("score").shift()
    contradicting = ranked.filter(is_same_query & is_ranked_lower & is_scored_higher)
    against = contradicting["query_id"].n_unique()
    if against:
        queries = counted(frame["query_id"].n_unique(), "query", "queries")
        message = f"the ranks contradict the scores in {against:,} of {queries}"
        _warn(f"{path}: {message}; the scores count {hint}")


def _warn(text: str) -> None:
    """Warn of a file, in the name of whoever reads it."""
    warnings.warn(text, DataWarning, stacklevel=4)


def _is_in_both_orders(frame: pl.DataFrame) -> bool:
    """Return whether a file is sorted by query, rank and falling score.

    This is the usual case, which saves sorting a large file.
    """
    query = frame["query_id"].rle_id().to_numpy()
    rank = frame["rank"].to_numpy()
    score = frame["score"].to_numpy()
    if not len(query) or query[-1] + 1 != frame["query_id"].n_unique():
        return False
    is_next_query = query[1:] > query[:-1]
    is_next_rank = (rank[1:] > rank[:-1]) & (score[1:] <= score[:-1])
    return bool((is_next_query | is_next_rank).all())


def read_spec(run_file: Path) -> dict[str, Any]:
    """Read the spec in a run's sidecar; empty if there is no such file."""
    path = sidecar(run_file)
    if not os.path.exists(path):
        return {}
    try:
        text = read_text(path)
        spec = parse_json(text)
        require_single_keys(path, text, spec)
        is_object = isinstance(spec, dict) and bool(spec)
        if is_object and all(isinstance(value, dict) for value in spec.values()):
            # The same run as JSON may have this name: {query: {document: score}}.
            return {}
        msgspec.convert(spec, _Sidecar)
    except ValueError as error:
        raise DataError(path, f"expected the run's spec as JSON: {error}") from error
    return cast(dict[str, Any], spec)


def unwritable(spec: Mapping[str, Any]) -> str:
    """Say why a spec cannot be written to JSON; empty if it can."""
    try:
        orjson.dumps(dict(spec), default=str, option=orjson.OPT_SERIALIZE_NUMPY)
    except (TypeError, ValueError) as error:
        return f"expected what JSON can hold: {error}"
    return ""
