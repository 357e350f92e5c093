"""Files that hold a run: TREC lines, JSON as BEIR, Pyserini, ranx and mteb write it, and lists as engines give them."""

from __future__ import annotations

import math
import os
import re
import warnings
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np
import orjson
import polars as pl

from ranktilt.data.files import decode_lines, line_chunks, read_text
from ranktilt.data.formats import ranked_lists as lists
from ranktilt.data.formats.ids import plain_float
from ranktilt.data.formats.json_text import parse_json, require_single_keys
from ranktilt.data.formats.ranked_lists import RunFile
from ranktilt.data.formats.score_order import IN_GIVEN_ORDER
from ranktilt.data.formats.search_responses import MAX_FAILURES
from ranktilt.errors import DataError, DataWarning, counted, shorten

_ORDERED = 3
"""Documents from which ranks say something that one score for all of them hides."""

_FIELDS = "query-id, Q0, document-id, rank, score"
_PLACES = {4: (0, 1, 2, 3), 5: (0, 2, 3, 4), 6: (0, 2, 3, 4)}
"""Where query, document, rank and score stand in lines of so many fields."""
_TAG = re.compile(r"(?!(?:ranktilt|rank|run|runid|standard|tag)$)[a-z][\w.+-]{1,39}", re.IGNORECASE)
_BLANKS = bytes.maketrans(b"\t\x0b\x0c\r", b"    ")
_SHAPE = "{query: {document: score}}"
_JSON = re.compile(r'\{\s*["}]|\[\s*["{[\]]')


class _Truncated(msgspec.Struct):
    limit: int
    share: dict[str, float]


class _Sidecar(msgspec.Struct):
    """Of a sidecar, what is read and not only passed on."""

    ranker: str = ""
    name: str = ""
    score_order: str = ""
    file: str = ""
    own_documents_dropped: int = 0
    queries_without_documents: tuple[str, ...] = ()
    truncated: _Truncated | msgspec.UnsetType = msgspec.UNSET
    candidates: _Sidecar | msgspec.UnsetType = msgspec.UNSET


def read_run_file(
    path: Path,
    *,
    score_order: str | None = None,
    queries: Sequence[str] | None = None,
    max_failures: float = MAX_FAILURES,
) -> RunFile:
    """Read a run's file; its content tells the format, whatever its name. Entries are in the file's order.

    TREC: query-id, Q0, document-id, rank, score and a tag, or no tag, or query-id, document-id,
    rank and score alone; every line has as many fields as the first. JSON: ``{query: {document:
    score}}``, and what `ranked_lists` reads, of which responses are to `queries`. With the order
    ``"rank"`` scores are not read.
    """
    if path.suffix in (".parquet", ".parq"):
        return lists.parquet_lists(path, score_order)
    frames, width, chunks = list[pl.DataFrame](), 0, line_chunks(path)
    for first_line, lines in chunks:
        if not any(lines):  # nothing but blank lines
            continue
        text = decode_lines(path, first_line, lines)
        if not width:
            start = text.lstrip(" \t\n\r\x0b\x0c")
            if not start:
                continue
            texts = chain([text], (decode_lines(path, *chunk) for chunk in chunks))
            if _JSON.match(start):
                text = "\n".join(texts)
                if not _like_trec(start) or _is_json(text):
                    text = "\n" * (first_line - 1) + text
                    return _read_json(path, text, score_order, queries, max_failures=max_failures)
                # The first query's id begins as JSON does.
                texts, lines = chain([text]), text.encode().split(b"\n")
            if delimiter := "" if _like_trec(start) else lists.delimiter_of(text):
                rows = (f"{line}\n" for part in texts for line in part.split("\n"))
                return lists.table_lists(path, first_line, rows, delimiter, score_order)
            width = _width(path, first_line, lines)
        frames.append(_parse(path, first_line, lines, width=width, order=score_order))
    tags = pl.concat([part["tag"].unique() for part in frames]).unique()
    tag = str(tags[0]) if len(tags) == 1 and _TAG.fullmatch(str(tags[0])) and width == 6 else ""
    frame = pl.concat([part.drop("tag") for part in frames]).rechunk()
    every = frame["query_id"].unique(maintain_order=True)
    return RunFile(frame=frame, queries=every, has_lines=True, score_order=score_order, tag=tag)


def _is_json(text: str) -> bool:
    """Whether a text is one JSON value."""
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True


def _like_trec(text: str) -> bool:
    """Whether the first line could be TREC's, with commas in its ids."""
    fields = text.partition("\n")[0].split()
    try:
        return len(fields) in _PLACES and math.isfinite(
            plain_float(fields[_PLACES[len(fields)][-1]])
        )
    except ValueError:
        return False


def _width(path: Path, first_line: int, lines: list[bytes]) -> int:
    """How many fields the first line has."""
    number, line = next(
        (n, line) for n, line in enumerate(lines, start=first_line) if line and line.strip()
    )
    width = len(line.split())
    if width not in _PLACES:
        expected = f"{_FIELDS} and a tag or none (6 or 5 fields), or these without Q0 and tag (4)"
        hint = "; judgments are named with --qrels" if width == 3 else ""
        raise DataError(
            path, f"expected {expected}, got {width}: {shorten(line.decode())}{hint}", line=number
        )
    if width == 4 and all(line.split()[1] in (b"0", b"Q0") for line in lines if line.strip()):
        message = (
            f"expected a run, got judgments (query, 0, document, grade): {shorten(line.decode())}"
        )
        raise DataError(path, f"{message}; they are named with --qrels", line=number)
    return width


def _parse(
    path: Path, first_line: int, lines: list[bytes], *, width: int, order: str | None
) -> pl.DataFrame:
    """Table of a chunk: ``query_id``, ``doc_id``, ``rank`` (null where it is no whole number), ``score``, ``tag``."""
    data = _single_blanks(lines)
    if not data:
        texts = dict.fromkeys(("query_id", "doc_id", "tag"), pl.String)
        return pl.DataFrame(schema={**texts, "rank": pl.Int32, "score": pl.Float64})
    first_blanks, blanks = data.split(b"\n", 1)[0].count(b" "), data.count(b" ")
    if first_blanks != width - 1 or blanks != (width - 1) * (data.count(b"\n") + 1):
        raise _wrong_width(path, first_line, lines, width)
    names = [f"f{i}" for i in range(width)]
    frame = pl.read_csv(
        data,
        separator=" ",
        quote_char=None,
        has_header=False,
        schema=dict.fromkeys(names, pl.String),
        truncate_ragged_lines=True,
    )
    if frame[names[-1]].null_count():  # one line too long, another too short
        raise _wrong_width(path, first_line, lines, width)
    query_id, doc_id, ranked, scored = (names[place] for place in _PLACES[width])
    rank = pl.col(ranked).cast(pl.Int32, strict=False)
    score = pl.col(scored).cast(pl.Float64, strict=False)
    found = frame.select(query_id=query_id, doc_id=doc_id, rank=rank, score=score, tag=names[-1])
    bad = (found["score"].is_null() | ~found["score"].is_finite()) & (order != "rank")
    # Without Q0 the rank is what tells a run from other tables of four columns.
    unranked = found["rank"].is_null() & (width == 4 or order == "rank")
    wrong = (bad | unranked).arg_true()
    if len(wrong):
        row = int(wrong[0])
        held = [number for number, line in enumerate(lines, start=first_line) if line.strip()]
        expected, raw = (
            ("a whole number as rank", ranked)
            if unranked[row]
            else ("a finite number as score", scored)
        )
        hint = "" if unranked[row] else f"; {IN_GIVEN_ORDER}"
        raise DataError(
            path, f"expected {expected}, got {shorten(frame[raw][row])}{hint}", line=held[row]
        )
    return found


def _single_blanks(lines: list[bytes]) -> bytes:
    """The lines with one space between fields and none around them, without blank lines."""
    data = b"\n".join(lines).translate(_BLANKS)
    while b"  " in data:
        data = data.replace(b"  ", b" ")
    data = data.replace(b" \n", b"\n").replace(b"\n ", b"\n")
    while b"\n\n" in data:
        data = data.replace(b"\n\n", b"\n")
    return data.strip(b" \n")


def _wrong_width(path: Path, first_line: int, lines: list[bytes], width: int) -> DataError:
    fields = {4: _FIELDS.replace(" Q0,", ""), 5: _FIELDS, 6: f"{_FIELDS}, tag"}[width]
    for number, line in enumerate(lines, start=first_line):
        found = len(line.split())
        if found not in (0, width):
            line_text = shorten(line.decode())
            message = f"expected {fields} ({width} fields, as in the first line), got {found}: {line_text}"
            return DataError(path, message, line=number)
    return DataError(path, f"expected {fields} ({width} fields) in every line")


def warn_of_ranks(path: Path, frame: pl.DataFrame) -> None:
    """Warn where scores contradict the ranks, or say nothing: engines differ in which of the two they mean."""
    ranked = frame.filter(pl.col("rank").is_not_null())
    hint = '(--score-order rank, score_order="rank" goes by the ranks)'
    if ranked["score"].n_unique() <= max(
        ranked["query_id"].n_unique(), 1
    ):  # some engines export one for all
        lists = (
            ranked.group_by("query_id")
            .agg(pl.col("score", "rank").n_unique())
            .filter(pl.col("rank") >= _ORDERED)
        )
        flat, queries = (
            lists.filter(pl.col("score") == 1).height,
            counted(lists.height, "query", "queries"),
        )
        if 2 * flat > lists.height:
            told = f"all scores are equal in {flat:,} of {queries}, though the ranks order them"
            _warn(f"{path}: {told}; such documents are tied {hint}")
    if _falls(ranked):
        return
    ranked = ranked.sort("query_id", "rank", -pl.col("score"), maintain_order=True)
    after = (pl.col("query_id") == pl.col("query_id").shift()) & (
        pl.col("rank") > pl.col("rank").shift()
    )
    against = ranked.filter(after & (pl.col("score") > pl.col("score").shift()))[
        "query_id"
    ].n_unique()
    if against:
        queries = counted(frame["query_id"].n_unique(), "query", "queries")
        _warn(
            f"{path}: the ranks contradict the scores in {against:,} of {queries}; scores decide {hint}"
        )


def _warn(text: str) -> None:
    warnings.warn(text, DataWarning, stacklevel=4)


def _falls(frame: pl.DataFrame) -> bool:
    """Whether queries stand together and, in the file's order, ranks rise and scores do not: the usual case, fast."""
    query, rank, score = (
        frame["query_id"].rle_id().to_numpy(),
        frame["rank"].to_numpy(),
        frame["score"].to_numpy(),
    )
    if not len(query) or query[-1] + 1 != frame["query_id"].n_unique():
        return False
    return bool(
        ((query[1:] > query[:-1]) | ((rank[1:] > rank[:-1]) & (score[1:] <= score[:-1]))).all()
    )


def _read_json(
    path: Path, text: str, order: str | None, queries: Sequence[str] | None, *, max_failures: float
) -> RunFile:
    tag, content = "", cast(Any, lists.prediction_lines(path, text))
    try:
        if content is None:
            content = orjson.loads(text)
            require_single_keys(path, text, content)
    except orjson.JSONDecodeError as error:
        message = f"expected one JSON object {_SHAPE}, got broken JSON ({error.msg})"
        raise DataError(path, message, line=error.lineno) from error
    if isinstance(content, dict) and isinstance(content.get(lists.MTEB), dict):
        tag, content = (
            str(content[lists.MTEB].get("model_name", "")),
            lists.mteb_scores(path, content),
        )
        order = order or "score"  # mteb's dictionaries are in no order
    engine_lists = lists.json_lists(path, content, queries, order, max_failures=max_failures)
    if engine_lists is not None:
        return engine_lists
    if not content:
        raise DataError(path, f"expected {_SHAPE}, got no query")
    for query, found in content.items():
        if not isinstance(found, dict):
            raise DataError(
                path, f"query {query!r}: expected {{document: score}}, got {shorten(found)}"
            )
    every = pl.Series(list(content), dtype=pl.String)
    names = every.gather(np.repeat(np.arange(len(content)), list(map(len, content.values()))))
    docs = pl.Series(chain.from_iterable(content.values()), dtype=pl.String)
    scores = [score for found in content.values() for score in found.values()]
    if order != "rank" and (wrong := lists.first_not_finite(scores)) is not None:
        where = f"query {names[wrong]!r}, document {docs[wrong]!r}"
        message = f"{where}: expected a finite number as score, got {shorten(scores[wrong])}"
        raise DataError(path, f"{message}; {IN_GIVEN_ORDER}")
    if (docs == "").any() or "" in content:
        raise DataError(path, "the id of a query or a document is empty")
    frame = pl.DataFrame({"query_id": names, "doc_id": docs})
    frame = frame.with_columns(
        score=pl.lit(None, dtype=pl.Float64)
        if order == "rank"
        else np.array(scores, dtype=np.float64),
        rank=pl.lit(None, dtype=pl.Int64),
    )
    read_as = f"{_SHAPE}, in their order" if order == "rank" else ""
    return RunFile(frame=frame, queries=every, score_order=order, read_as=read_as, tag=tag)


def read_spec(path: Path) -> dict[str, Any]:
    """Read the spec in a run's sidecar, empty where there is none; what is used of it is of its kind."""
    if not os.path.exists(path):
        return {}
    try:
        text = read_text(path)
        spec = parse_json(text)
        require_single_keys(path, text, spec)
        if (
            isinstance(spec, dict)
            and spec
            and all(isinstance(value, dict) for value in spec.values())
        ):
            return {}  # the same run in JSON may lie beside it under that name
        msgspec.convert(spec, _Sidecar)
    except ValueError as error:
        raise DataError(path, f"expected the run's spec as JSON: {error}") from error
    return cast(dict[str, Any], spec)


def unwritable(spec: Mapping[str, Any]) -> str:
    """Say why a spec cannot be written into a result's JSON; empty where it can."""
    try:
        orjson.dumps(dict(spec), default=str, option=orjson.OPT_SERIALIZE_NUMPY)
    except (TypeError, ValueError) as error:
        return f"expected what JSON can hold: {error}"
    return ""
