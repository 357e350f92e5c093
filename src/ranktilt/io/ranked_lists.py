"""Runs as engines give them: responses to searches, ranked lists in JSON, tables with named columns."""

from __future__ import annotations

import csv
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from ranktilt.errors import DataError, counted, shorten

Names = Mapping[str, Sequence[str]]
COLUMNS: Names = {
    "query": ("qid", "query_id", "queryid", "query"), "document": ("docno", "doc_id", "docid", "corpus_id"),
    "score": ("score",), "rank": ("rank",),
}  # fmt: skip
"""Names of each column of a table, the first that is there counts."""
FIELDS: Names = {**COLUMNS, "document": (*COLUMNS["document"], "id", "_id"), "score": ("score", "_score")}
"""The same of records in JSON."""
_BEIR_QRELS = ["query-id", "corpus-id", "score"]


class JsonObject(list[tuple[str, Any]]):
    """A JSON object as its pairs, so that a key that comes twice is seen."""


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


class _Record(NamedTuple):
    query: str | None
    where: int | str  # its line, or what tells it from others
    fields: dict[Any, Any]


def json_lists(path: Path, content: Any, queries: Sequence[str] | None, order: str) -> RunFile | None:
    """Read what JSON holds; None where it may be ``{query: {document: score}}``. `queries` are those of responses."""
    keys = dict(content) if type(content) is JsonObject else {}
    responses = keys.get("responses", [content] if keys else content)
    flat = type(content) is list
    if type(responses) is list and all(map(_is_response, responses)):
        if not responses or len(responses) != len(queries or ()):
            count = f"{counted(len(responses), 'response', 'responses')} and {len(queries or ()) or 'no'} ids"
            hint = "responses do not name their queries: --queries FILE (queries=[…] in Python) does, in their order"
            raise DataError(path, f"expected responses to searches and an id for each, got {count}; {hint}")
        content, flat = list(zip(queries or (), responses, strict=True)), False
    lists: Any = [(None, content)] if flat else content
    first = lists[0][1] if lists else None
    if not (_is_response(first) or type(first) is list):
        return None
    records = []
    for number, (query, found) in enumerate(lists, start=1):
        items = _hits(path, f"response {number}, to query {query!r}", found) if _is_response(found) else found
        if type(items) is not list:
            raise DataError(path, f"query {query!r}: expected a list of documents, got {kind(items)}")
        for n, item in enumerate(items, start=1):
            where = f"record {n}" if flat else f"query {query!r}, document {n}"
            records.append(_Record(query, where, dict(item) if type(item) is JsonObject else {"id": item}))
    form = "JSON records" if flat else "responses to searches" if _is_response(first) else "JSON lists"
    return _read(path, form, records, order, queries=None if flat else [query for query, _ in lists])


def _is_response(value: Any) -> bool:
    keys = dict(value) if type(value) is JsonObject else {}
    return type(keys.get("hits")) is JsonObject or ("status" in keys and type(keys.get("error")) in (JsonObject, str))


def _hits(path: Path, where: str, response: JsonObject) -> Any:
    keys = dict(response)
    if "error" in keys:
        reason = dict(keys["error"]).get("reason") if type(keys["error"]) is JsonObject else keys["error"]
        raise DataError(path, f"{where}: the engine's error is {shorten(reason)}")
    return dict(keys["hits"]).get("hits")


def delimiter_of(text: str) -> str:
    """Return what stands between the columns of a run's header; empty where the first line is none."""
    header = next(filter(str.strip, text.split("\n"))).replace('"', "")
    tables = {sign: _columns(header.split(sign), COLUMNS) for sign in "\t,"}
    return next((sign for sign, columns in tables.items() if "query" in columns and len(columns) > 1), "")


def table_lists(path: Path, first_line: int, lines: Iterable[str], delimiter: str, order: str) -> RunFile:
    """Read a table whose first line names its columns."""
    rows, names, records = csv.reader(lines, delimiter=delimiter, strict=True), list[str](), list[_Record]()
    try:
        for row in rows:
            cells, line = [cell.strip() for cell in row], first_line - 1 + rows.line_num
            if not any(cells):
                continue
            if names:
                records.append(_Record(None, line, dict(zip(names, cells, strict=False))))
            names = names or cells
            if len(cells) != len(names) or len({*names}) < len(names):
                expected = f"{len(names)} fields, each with a name of its own"
                raise DataError(path, f"expected {expected}, got {len(cells)}: {shorten(cells)}", line=line)
    except csv.Error as error:
        raise DataError(path, f"expected a table: {error}", line=first_line - 1 + rows.line_num) from error
    if not records:
        raise DataError(path, "expected documents below the header, got none")
    if names == _BEIR_QRELS and all(record.fields["score"].isdecimal() for record in records):
        raise DataError(path, "expected a run, got judgments (whole numbers); they are named with --qrels")
    return _read(path, "CSV" if delimiter == "," else "TSV", records, order, valid=COLUMNS)


def _columns(names: Iterable[str], valid: Names) -> dict[str, str]:
    """Which of the names stands for the query, the document, the score, the rank."""
    folded = {name.strip().casefold().replace("-", "_"): name.strip() for name in names}
    firsts = {column: next((name for name in some if name in folded), "") for column, some in valid.items()}
    return {column: folded[name] for column, name in firsts.items() if name}


def _number(cell: str) -> int | float | str | None:
    """A cell's number, its text where it is none, None where it is empty."""
    try:
        return int(cell) if cell.isdecimal() else float(cell)
    except ValueError:
        return cell or None


def _read(
    path: Path, form: str, records: list[_Record], order: str, *, valid: Names = FIELDS,
    queries: Sequence[str] | None = None,
) -> RunFile:  # fmt: skip
    """Read records; those of lists have their query from `queries`, and are ranked by their place there."""
    if twice := next((query for query, n in Counter(queries).items() if n > 1), None):
        raise DataError(path, f"query {twice!r} comes twice")
    names = dict.fromkeys(name for record in records for name in record.fields)
    columns = _columns(names, valid if queries is None else {**valid, "query": ()})
    needed = ("query", "document") if queries is None else ("document",) if records else ()
    if lacking := next((name for name in needed if name not in columns), ""):
        expected = f"a column for the {lacking} ({', '.join(valid[lacking])})"
        raise DataError(path, f"{form}: expected {expected}, got {', '.join(names) or 'none'}")
    cells = {column: [record.fields.get(columns.get(column)) for record in records] for column in valid}
    if valid is COLUMNS:
        cells |= {column: [_number(cell or "") for cell in cells[column]] for column in ("score", "rank")}
    by_score = order == "score" and any(score is not None for score in cells["score"])
    by_rank = any(rank is not None for rank in cells["rank"])
    rows, lengths = dict[tuple[str, str], tuple[int | None, float]](), Counter[str]()
    for record, query, doc, score, rank in zip(records, *cells.values(), strict=True):
        key = _id(path, record, "query", record.query or query), _id(path, record, "document", doc)
        lengths[key[0]] += 1
        if key in rows:
            raise _fault(path, record.where, f"document {key[1]!r} comes twice for query {key[0]!r}")
        place: Any = rank if by_rank else lengths[key[0]] if queries is not None or not by_score else None
        whole = type(place) is int and abs(place) < 1 << 31
        if not (is_finite(score) if by_score else whole):
            expected, value = ("a finite number as score", score) if by_score else ("a whole number as rank", place)
            hint = "; all documents have one, or none has" if value is None else ""
            raise _fault(path, record.where, f"expected {expected}, got {kind(value)}{hint}")
        rows[key] = place if whole else None, float(score if by_score else -place)
    given = [columns[name] for name in ("query", "document", "score" if by_score else "rank") if name in columns]
    read_as = f"{form}: {', '.join(given)}{'' if by_score or by_rank else ', in their order'}"
    ids = [text_ids(path, noun, [key[n] for key in rows]) for n, noun in enumerate(("query", "document"))]
    numbers = [pl.Series([pair[n] for pair in rows.values()], dtype=of) for n, of in enumerate((pl.Int64, pl.Float64))]
    frame = pl.DataFrame({"query_id": ids[0], "doc_id": ids[1], "rank": numbers[0], "score": numbers[1]})
    every = ids[0].unique(maintain_order=True) if queries is None else text_ids(path, "query", queries)
    return RunFile(frame, every, score_order="score" if by_score else "rank", read_as=read_as)


def _fault(path: Path, where: int | str, message: str) -> DataError:
    return DataError(path, message, line=where) if isinstance(where, int) else DataError(path, f"{where}: {message}")


def _id(path: Path, record: _Record, noun: str, value: Any) -> str:
    if type(value) is int or (type(value) is str and value):
        return str(value)
    raise _fault(path, record.where, f"expected a {noun} id, got {kind(value)}")


def text_ids(path: Path, noun: str, ids: Sequence[str]) -> pl.Series:
    """Ids as a column; `DataError` where one is empty or no text."""
    try:
        names = pl.Series(ids, dtype=pl.String)
    except UnicodeEncodeError as error:  # JSON can name halves of characters
        raise DataError(path, f"{noun} id {error.object!a} is no Unicode text") from error
    if (names == "").any():
        raise DataError(path, f"a {noun} id is empty")
    return names


def is_finite(score: Any) -> bool:
    """Whether it is a finite number, and none beyond any float."""
    try:
        return type(score) in (int, float) and math.isfinite(score)
    except OverflowError:
        return False


def kind(value: Any) -> str:
    """What a JSON value is, in JSON's words."""
    if isinstance(value, list):
        return "an object" if type(value) is JsonObject else "a list"
    text = json.dumps(value, ensure_ascii=False)
    text = text if len(text) <= 80 else text[:79] + "…"
    return f"the string {text}" if isinstance(value, str) else text
