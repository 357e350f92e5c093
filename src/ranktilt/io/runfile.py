"""Files that hold a run: TREC lines, JSON as BEIR, Pyserini and ranx write it, and tables with named columns."""

from __future__ import annotations

import csv
import math
import os
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np
import orjson
import polars as pl

from ranktilt.errors import DataError, DataWarning, counted, shorten, unknown
from ranktilt.io.files import decode_lines, line_chunks, read_bytes
from ranktilt.io.jsonl import parse_line

_ORDERED = 3
"""Documents from which ranks say something that one score for all of them hides."""
SCORE_ORDERS = ("score", "rank")

_FIELDS = "query-id, Q0, document-id, rank, score"
_PLACES = {4: (0, 1, 2, 3), 5: (0, 2, 3, 4), 6: (0, 2, 3, 4)}
"""Where query, document, rank and score stand in lines of so many fields."""
_TAG = re.compile(r"(?!(?:ranktilt|rank|run|runid|standard|tag)$)[a-z][\w.+-]{1,39}", re.IGNORECASE)
_BLANKS = bytes.maketrans(b"\t\x0b\x0c\r", b"    ")
_SHAPE = "{query: {document: score}}"
_JSON = re.compile(r'\{\s*["}]|\[\s*["{[\]]')
_COLUMNS = {
    "query": ("qid", "query_id", "queryid", "query"), "document": ("docno", "doc_id", "docid", "corpus_id"),
    "score": ("score",), "rank": ("rank",),
}  # fmt: skip
"""Names of each column of a table, the first that is there counts."""
_BEIR_QRELS = ["query-id", "corpus-id", "score"]


@dataclass(frozen=True)
class RunFile:
    """What a file holds, entry by entry in its own order."""

    frame: pl.DataFrame
    """``query_id``, ``doc_id``, ``score`` (Float64, finite); ``rank``, null where there is none."""
    queries: pl.Series
    """Every query in order of first appearance; in JSON one may have no entry."""
    has_lines: bool = False
    """Whether each entry is a line of its own, as in TREC files."""
    score_order: str = "score"
    """``rank`` where scores are −rank."""
    read_as: str = ""
    """What was understood of a file that is neither TREC's nor ``{query: {document: score}}``."""
    tag: str = ""
    """What all lines of a TREC file say made them, where that is a name and no placeholder."""


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


def read_run_file(path: Path, *, score_order: str = "score") -> RunFile:
    """Read a run's file; its content tells the format, whatever its name. Entries are not sorted yet.

    TREC: query-id, Q0, document-id, rank, score and a tag, or no tag, or query-id, document-id, rank and score alone;
    every line has as many fields as the first. JSON: ``{query: {document: score}}``. CSV and TSV have a header. With
    the order ``"rank"`` scores become −rank.
    """
    if score_order not in SCORE_ORDERS:
        raise unknown("score order", score_order, SCORE_ORDERS)
    frames, width, chunks = list[pl.DataFrame](), 0, line_chunks(path)
    for first_line, lines in chunks:
        text = decode_lines(path, first_line, lines)
        if not width:
            start = text.lstrip(" \t\n\r\x0b\x0c")
            if not start:
                continue
            texts = chain([text], (decode_lines(path, *chunk) for chunk in chunks))
            if _JSON.match(start):
                return _read_json(path, "\n" * (first_line - 1) + "\n".join(texts), score_order)
            if delimiter := "" if _like_trec(start) else _delimiter(text):
                rows = (f"{line}\n" for part in texts for line in part.split("\n"))
                return _ranks_checked(path, _read_table(path, first_line, rows, delimiter, score_order))
            width = _width(path, first_line, lines)
        frames.append(_parse(path, first_line, lines, width=width, order=score_order))
    tags = pl.concat([part["tag"].unique() for part in frames]).unique()
    tag = str(tags[0]) if len(tags) == 1 and _TAG.fullmatch(str(tags[0])) and width == 6 else ""
    frame = pl.concat([part.drop("tag") for part in frames]).rechunk()
    return _ranks_checked(
        path, RunFile(frame, frame["query_id"].unique(maintain_order=True), True, score_order, tag=tag)
    )


def _ranks_checked(path: Path, run: RunFile) -> RunFile:
    if run.score_order == "score":
        _warn_of_ranks(path, run.frame)
    return replace(run, frame=run.frame.drop("rank"))


def _like_trec(text: str) -> bool:
    """Whether the first line could be TREC's, with commas in its ids."""
    fields = text.partition("\n")[0].split()
    try:
        return len(fields) in _PLACES and math.isfinite(float(fields[_PLACES[len(fields)][-1]]))
    except ValueError:
        return False


def _width(path: Path, first_line: int, lines: list[bytes]) -> int:
    """How many fields the first line has."""
    number, line = next((n, line) for n, line in enumerate(lines, start=first_line) if line.strip())
    width = len(line.split())
    if width not in _PLACES:
        expected = f"{_FIELDS} and a tag or none (6 or 5 fields), or these without Q0 and tag (4)"
        hint = "; judgments are named with --qrels" if width == 3 else ""
        raise DataError(path, f"expected {expected}, got {width}: {shorten(line.decode())}{hint}", line=number)
    if width == 4 and all(line.split()[1] in (b"0", b"Q0") for line in lines if line.strip()):
        message = f"expected a run, got judgments (query, 0, document, grade): {shorten(line.decode())}"
        raise DataError(path, f"{message}; they are named with --qrels", line=number)
    return width


def _parse(path: Path, first_line: int, lines: list[bytes], *, width: int, order: str) -> pl.DataFrame:
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
        data, separator=" ", quote_char=None, has_header=False, schema=dict.fromkeys(names, pl.String),
        truncate_ragged_lines=True,
    )  # fmt: skip
    if frame[names[-1]].null_count():  # one line too long, another too short
        raise _wrong_width(path, first_line, lines, width)
    query_id, doc_id, ranked, scored = (names[place] for place in _PLACES[width])
    rank = pl.col(ranked).cast(pl.Int32, strict=False)
    score = pl.col(scored).cast(pl.Float64, strict=False)
    score = score if order == "score" else (-rank.cast(pl.Int64)).cast(pl.Float64)
    found = frame.select(query_id=query_id, doc_id=doc_id, rank=rank, score=score, tag=names[-1])
    bad = found["score"].is_null() | ~found["score"].is_finite()
    # Without Q0 the rank is what tells a run from other tables of four columns.
    unranked = found["rank"].is_null() & (width == 4 or order == "rank")
    wrong = (bad | unranked).arg_true()
    if len(wrong):
        row = int(wrong[0])
        held = [number for number, line in enumerate(lines, start=first_line) if line.strip()]
        expected, raw = ("a whole number as rank", ranked) if unranked[row] else ("a finite number as score", scored)
        raise DataError(path, f"expected {expected}, got {shorten(frame[raw][row])}", line=held[row])
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


def _warn_of_ranks(path: Path, frame: pl.DataFrame) -> None:
    """Warn where scores contradict the ranks, or say nothing: engines differ in which of the two they mean."""
    ranked = frame.filter(pl.col("rank").is_not_null())
    hint = '(--score-order rank, score_order="rank" goes by the ranks)'
    if ranked["score"].n_unique() <= max(ranked["query_id"].n_unique(), 1):  # some engines export one for all
        lists = ranked.group_by("query_id").agg(pl.col("score", "rank").n_unique()).filter(pl.col("rank") >= _ORDERED)
        flat, queries = lists.filter(pl.col("score") == 1).height, counted(lists.height, "query", "queries")
        if 2 * flat > lists.height:
            told = f"all scores are equal in {flat:,} of {queries}, though the ranks order them"
            _warn(f"{path}: {told}; such documents are tied {hint}")
    if _falls(ranked):
        return
    ranked = ranked.sort("query_id", "rank", -pl.col("score"), maintain_order=True)
    after = (pl.col("query_id") == pl.col("query_id").shift()) & (pl.col("rank") > pl.col("rank").shift())
    against = ranked.filter(after & (pl.col("score") > pl.col("score").shift()))["query_id"].n_unique()
    if against:
        queries = counted(frame["query_id"].n_unique(), "query", "queries")
        _warn(f"{path}: the ranks contradict the scores in {against:,} of {queries}; scores decide {hint}")


def _warn(text: str) -> None:
    warnings.warn(text, DataWarning, stacklevel=6)


def _falls(frame: pl.DataFrame) -> bool:
    """Whether queries stand together and, in the file's order, ranks rise and scores do not: the usual case, fast."""
    query, rank, score = frame["query_id"].rle_id().to_numpy(), frame["rank"].to_numpy(), frame["score"].to_numpy()
    if not len(query) or query[-1] + 1 != frame["query_id"].n_unique():
        return False
    return bool(((query[1:] > query[:-1]) | ((rank[1:] > rank[:-1]) & (score[1:] <= score[:-1]))).all())


def _read_json(path: Path, text: str, order: str) -> RunFile:
    try:
        content = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        message = f"expected one JSON object {_SHAPE}, got broken JSON ({error.msg})"
        raise DataError(path, message, line=error.lineno) from error
    if order == "rank":
        raise DataError(path, "JSON holds scores and no ranks; leave --score-order rank (score_order) out")
    if not isinstance(content, dict) or not content:
        raise DataError(path, f"expected {_SHAPE}, got {'no query' if isinstance(content, dict) else 'a list'}")
    for query, found in content.items():
        if not isinstance(found, dict):
            raise DataError(path, f"query {query!r}: expected {{document: score}}, got {shorten(found)}")
    every = pl.Series(list(content), dtype=pl.String)
    names = every.gather(np.repeat(np.arange(len(content)), list(map(len, content.values()))))
    docs = pl.Series(chain.from_iterable(content.values()), dtype=pl.String)
    scores = [score for found in content.values() for score in found.values()]
    if (wrong := _first_not_finite(scores)) is not None:
        where = f"query {names[wrong]!r}, document {docs[wrong]!r}"
        raise DataError(path, f"{where}: expected a finite number as score, got {shorten(scores[wrong])}")
    if (docs == "").any() or "" in content:
        raise DataError(path, "the id of a query or a document is empty")
    frame = pl.DataFrame({"query_id": names, "doc_id": docs, "score": np.array(scores, dtype=np.float64)})
    return RunFile(frame, every)


def _first_not_finite(scores: Sequence[Any]) -> int | None:
    """Find the place of the first that is no finite number."""
    if set(map(type, scores)) <= {int, float} and np.isfinite(np.array(scores, dtype=np.float64)).all():
        return None
    return next(n for n, score in enumerate(scores) if type(score) not in (int, float) or not math.isfinite(score))


def _delimiter(text: str) -> str:
    """Return what stands between the columns of a run's header; empty where the first line is none."""
    header = next(filter(str.strip, text.split("\n"))).replace('"', "")
    tables = {sign: _named(header.split(sign)) for sign in "\t,"}
    return next((sign for sign, columns in tables.items() if "query" in columns and len(columns) > 1), "")


def _named(names: Iterable[str]) -> dict[str, str]:
    """Which of the names stands for the query, the document, the score, the rank."""
    folded = {name.strip().casefold().replace("-", "_"): name.strip() for name in names}
    firsts = {column: next((name for name in some if name in folded), "") for column, some in _COLUMNS.items()}
    return {column: folded[name] for column, name in firsts.items() if name}


def _read_table(path: Path, first_line: int, lines: Iterable[str], delimiter: str, order: str) -> RunFile:
    """Read a table whose first line names its columns; documents without score and rank are in their order."""
    table, numbers = _cells(path, first_line, lines, delimiter)
    form, columns = "CSV" if delimiter == "," else "TSV", _named(table.columns)
    if "document" not in columns:
        expected = f"a column for the document ({', '.join(_COLUMNS['document'])})"
        raise DataError(path, f"{form}: expected {expected}, got {', '.join(table.columns)}")
    cells = {name: table[column] for name, column in columns.items() if (table[column] != "").any()}
    by_score = order == "score" and "score" in cells

    def require(name: str, good: pl.Series, expected: str) -> None:
        wrong = good.fill_null(False).not_().arg_max()
        if wrong is not None and not good[wrong]:
            raise DataError(
                path, f"expected {expected}, got {shorten(table[columns[name]][wrong])}", line=numbers[wrong]
            )

    for name in ("query", "document"):
        require(name, table[columns[name]] != "", f"a {name} id")
    frame = table.select(query_id=columns["query"], doc_id=columns["document"])
    if "rank" in cells or by_score:
        rank = cells["rank"].cast(pl.Int32, strict=False) if "rank" in cells else pl.lit(None, dtype=pl.Int32)
        frame = frame.with_columns(rank=rank)
    else:
        frame = frame.with_columns(rank=pl.int_range(1, pl.len() + 1).over("query_id"))
    if by_score:
        score = cells["score"].cast(pl.Float64, strict=False)
        require("score", score.is_finite(), "a finite number as score (of all documents, or of none)")
    else:
        require("rank", frame["rank"].is_not_null(), "a whole number as rank (of all, or of none)")
        score = -frame["rank"].cast(pl.Float64)
    given = [columns[name] for name in ("query", "document", "score" if by_score else "rank") if name in columns]
    read_as = f"{form}: {', '.join(given)}{'' if by_score or 'rank' in cells else ', in their order'}"
    queries = frame["query_id"].unique(maintain_order=True)
    found = frame.with_columns(score=score)
    return RunFile(found, queries, score_order="score" if by_score else "rank", read_as=read_as)


def _cells(path: Path, first_line: int, lines: Iterable[str], delimiter: str) -> tuple[pl.DataFrame, list[int]]:
    """The table's cells as texts, and the line of each row."""
    table, names, rows, numbers = csv.reader(lines, delimiter=delimiter, strict=True), list[str](), [], list[int]()
    try:
        for row in table:
            cells, line = [cell.strip() for cell in row], first_line - 1 + table.line_num
            if not any(cells):
                continue
            if len(cells) != len(names or cells) or (not names and len({*cells}) < len(cells)):
                expected = f"{len(names or cells)} fields, each with a name of its own"
                raise DataError(path, f"expected {expected}, got {len(cells)}: {shorten(cells)}", line=line)
            if names:
                rows.append(cells)
                numbers.append(line)
            names = names or cells
    except csv.Error as error:
        raise DataError(path, f"expected a table: {error}", line=first_line - 1 + table.line_num) from error
    if not rows:
        raise DataError(path, "expected documents below the header, got none")
    if names == _BEIR_QRELS and all(cells[-1].isdecimal() for cells in rows):
        raise DataError(path, "expected a run, got judgments (whole numbers); they are named with --qrels")
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row"), numbers


def read_spec(path: Path) -> dict[str, Any]:
    """Read the spec in a run's sidecar, empty where there is none; what is used of it is of its kind."""
    if not os.path.exists(path):
        return {}
    try:
        spec = parse_line(read_bytes(path))
        if isinstance(spec, dict) and spec and all(isinstance(value, dict) for value in spec.values()):
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
