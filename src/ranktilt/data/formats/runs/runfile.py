"""Read runs in any layout, which the content of a file tells, whatever its name.

`LAYOUTS` has a module for each layout; a new one is a module with `sniff` and `read`, and a line
there. A run's *sidecar* is the file ``<path>.json``, which says how the run was made (its *spec*).
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
from ranktilt.data.formats.json_values import parse_with_null, require_single_keys
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
"""Layouts in the order of recognition; the first that a file has reads it."""
Queries = Sequence[str] | Mapping[str, str]
"""Ids of queries in the order of the responses, or their texts by id."""
_FEWEST_RANKS = 3
"""Fewest different ranks of a list whose scores are suspicious if all are equal.

Two documents may well have the same score.
"""


class _Truncated(msgspec.Struct):
    """How much of long texts a ranker cut off."""

    limit: int
    """Number of tokens after which the ranker cuts a text."""
    share: dict[str, float]
    """Share of each source's documents that were cut."""


class _Sidecar(msgspec.Struct):
    """The keys of a sidecar whose types are checked; any others are only passed on."""

    ranker: str = ""
    """Text of the ranker."""
    name: str = ""
    """Name of the run."""
    score_order: str = ""
    """How scores order documents: ``ascending`` or ``rank``."""
    file: str = ""
    """Name of the run's file."""
    own_documents_dropped: int = 0
    """Number of queries whose own document was left out of their list."""
    queries_without_documents: tuple[str, ...] = ()
    """Queries for which nothing was retrieved."""
    truncated: _Truncated | msgspec.UnsetType = msgspec.UNSET
    """How much of long texts the ranker cut off."""
    candidates: _Sidecar | msgspec.UnsetType = msgspec.UNSET
    """Spec of the run that the ranker re-ranked."""


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
    path : Path
        The file or folder.
    columns : mapping, optional
        The user's names of columns: ``{"id": "url"}``; ``hits`` names the key of lists of
        documents.
    score_order : {"score", "ascending", "rank"}, optional
        How scores order documents; with ``"rank"`` they are not read.
    queries : sequence of str, or mapping of id to text, optional
        Ids of the queries of responses that do not name them, in their order. With texts,
        responses that repeat the text of their query get its id.
    max_failures : float, optional
        Percentage of responses that may be errors or partial.
    """
    file = DataFile(path=path, columns=dict(columns))
    ids_by_text = dict[str, str]()
    if isinstance(queries, Mapping):
        ids_by_text = {text: query_id for query_id, text in queries.items()}
    request = RunRequest(
        score_order=score_order,
        queries=None if queries is None else list(queries),
        texts=ids_by_text,
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
    """Warn if scores contradict the ranks, or if they are all equal although ranks differ.

    The engine then probably means the ranks, but the scores count. `frame` has the entries.
    """
    ranked = frame.filter(pl.col("rank").is_not_null())
    hint = '(for the ranks, use --score-order rank or score_order="rank")'
    # Some engines export the same score for all documents. Counting all different scores is a quick
    # test of whether a list may have only one.
    if ranked["score"].n_unique() <= max(ranked["query_id"].n_unique(), 1):
        lists = ranked.group_by("query_id").agg(pl.col("score", "rank").n_unique())
        lists = lists.filter(pl.col("rank") >= _FEWEST_RANKS)
        tied_count = lists.filter(pl.col("score") == 1).height
        if 2 * tied_count > lists.height:
            queries = counted(lists.height, "query", "queries")
            message = f"all scores are equal in {tied_count:,} of {queries}, although ranks differ"
            _warn(f"{path}: {message}; these documents count as tied {hint}")
    if _is_in_both_orders(ranked):
        return
    ranked = ranked.sort("query_id", "rank", -pl.col("score"), maintain_order=True)
    is_same_query = pl.col("query_id") == pl.col("query_id").shift()
    is_ranked_lower = pl.col("rank") > pl.col("rank").shift()
    is_scored_higher = pl.col("score") > pl.col("score").shift()
    contradicting = ranked.filter(is_same_query & is_ranked_lower & is_scored_higher)
    contradicting_count = contradicting["query_id"].n_unique()
    if contradicting_count:
        queries = counted(frame["query_id"].n_unique(), "query", "queries")
        message = f"the ranks contradict the scores in {contradicting_count:,} of {queries}"
        _warn(f"{path}: {message}; the scores count {hint}")


def _warn(text: str) -> None:
    """Warn of a file, at the line of the code that reads it."""
    warnings.warn(text, DataWarning, stacklevel=4)


def _is_in_both_orders(frame: pl.DataFrame) -> bool:
    """Return whether a file is sorted by query, rank and falling score.

    This is the usual case, which saves sorting a large file.
    """
    # Numbers of the runs of entries with the same query, from 0.
    query = frame["query_id"].rle_id().to_numpy()
    rank = frame["rank"].to_numpy()
    score = frame["score"].to_numpy()
    has_scattered_query = len(query) > 0 and query[-1] + 1 != frame["query_id"].n_unique()
    if not len(query) or has_scattered_query:
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
        spec = parse_with_null(text)
        require_single_keys(path, text, spec)
        is_filled_object = isinstance(spec, dict) and bool(spec)
        if is_filled_object and all(isinstance(value, dict) for value in spec.values()):
            # The file with this name may be a run in JSON: {query: {document: score}}.
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
