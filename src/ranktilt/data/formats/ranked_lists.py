"""Runs as engines give them: responses to searches, ranked lists in JSON, tables with named columns."""

from __future__ import annotations

import csv
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from operator import methodcaller
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import polars as pl

from ranktilt.data.formats.ids import ids_of, plain_float, scores_of
from ranktilt.data.formats.json_text import require_single_keys
from ranktilt.data.formats.parquet import as_parquet
from ranktilt.data.formats.score_order import IN_GIVEN_ORDER
from ranktilt.data.formats.search_responses import (
    allowed_failures,
    hits_of,
    is_response,
    response_fault,
    too_many_failures,
)
from ranktilt.errors import DataError, UserError, counted, shorten

Names = Mapping[str, Sequence[str]]
COLUMNS: Names = {
    "query": ("qid", "query_id", "queryid", "q_id", "query"),
    "document": ("docno", "doc_id", "docid", "corpus_id"),
    "score": ("score",),
    "rank": ("rank",),
}
"""Names of each column of a table, the first that is there counts."""
FIELDS: Names = {
    **COLUMNS,
    "document": (*COLUMNS["document"], "id", "_id"),
    "score": ("score", "_score"),
}
"""The same of records in JSON."""
_BLANKS = " \t\r\n"
"""What stands round a cell; other blanks, such as that which does not break, are part of an id, as in TREC's lines."""
_BEIR_QRELS = ["query-id", "corpus-id", "score"]
Documents = list[Mapping[str, Any]]
"""The fields of each document."""


@dataclass(frozen=True, kw_only=True)
class RunFile:
    """What a file holds, entry by entry in its own order."""

    frame: pl.DataFrame
    """``query_id``, ``doc_id``; ``score`` (Float64, finite; null where ranks count); ``rank``, null where none is."""
    queries: pl.Series
    """Every query in order of first appearance; in JSON one may have no entry."""
    has_lines: bool = False
    """Whether each entry is a line of its own, as in TREC files."""
    lines: Sequence[int] = ()
    """The line of each entry of a table."""
    score_order: str | None = None
    """Which of `SCORE_ORDERS` the scores have; ``rank`` where the file has none, None where nobody named one."""
    read_as: str = ""
    """What was understood of a file that is neither TREC's nor ``{query: {document: score}}``."""
    tag: str = ""
    """What all lines of a TREC file say made them, where that is a name and no placeholder."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """Why an engine's response to a query is an error or partial; such queries have no entries."""


def json_lists(
    path: Path,
    content: Any,
    queries: Sequence[str] | None,
    order: str | None,
    *,
    max_failures: float,
) -> RunFile | None:
    """Read what JSON holds; None where it may be ``{query: {document: score}}``. `queries` are those of responses."""
    responses = _unnamed_responses(content)
    if responses is not None:
        if not responses or len(responses) != len(queries or ()):
            count = f"{counted(len(responses), 'response', 'responses')} and {len(queries or ()) or 'no'} ids"
            hint = "responses do not name their queries: --queries FILE (queries=[…] in Python) does, in their order"
            raise DataError(
                path, f"expected responses to searches and an id for each, got {count}; {hint}"
            )
        return _read_responses(
            path, list(zip(queries or (), responses, strict=True)), order, max_failures=max_failures
        )
    if isinstance(content, list):
        return _read(path, "JSON records", _records(content), order)
    if not isinstance(content, dict) or not content:
        return None
    if any(map(is_response, content.values())):
        return _read_responses(path, list(content.items()), order, max_failures=max_failures)
    if not isinstance(next(iter(content.values())), list):
        return None
    for query, documents in content.items():
        if not isinstance(documents, list):
            raise DataError(
                path, f"query {query!r}: expected a list of documents, got {shorten(documents)}"
            )
    return _read_lists(path, "JSON lists", list(content.items()), order)


def _read_lists(
    path: Path, form: str, lists: Sequence[tuple[str, list[Any]]], order: str | None
) -> RunFile:
    """Read the documents of each query."""
    documents = Documents()
    query_ids = list[str]()
    for query, content in lists:
        documents += _records(content)
        query_ids += [query] * len(content)
    queries = [query for query, _ in lists]
    return _read(path, form, documents, order, queries=queries, query_ids=query_ids)


def _unnamed_responses(content: Any) -> list[Any] | None:
    """Responses that do not name their queries: those of ``_msearch``, a list of them, or a single one."""
    if is_response(content):
        return [content]
    responses = content.get("responses") if isinstance(content, dict) else content
    return (
        responses
        if isinstance(responses, list) and (not responses or any(map(is_response, responses)))
        else None
    )


def _records(content: list[Any]) -> Documents:
    """Return the fields of each document; of a bare id that alone."""
    if set(map(type, content)) <= {dict}:
        return content
    return [document if isinstance(document, dict) else {"id": document} for document in content]


def _read_responses(
    path: Path, responses: Sequence[tuple[str, Any]], order: str | None, *, max_failures: float
) -> RunFile:
    """Read responses that are whole; `DataError` where more are not than allowed."""
    faults = ((query, response_fault(response)) for query, response in responses)
    failed = {query: fault for query, fault in faults if fault}
    if failed and (
        len(failed) > allowed_failures(len(responses), max_failures)
        or len(failed) == len(responses)
    ):
        query, fault = next(iter(failed.items()))
        message = too_many_failures(len(failed), len(responses), max_failures)
        raise DataError(path, f"{message} (--max-failures): {query!r}: {fault}")
    lists = [(query, hits_of(response)) for query, response in responses if query not in failed]
    return replace(_read_lists(path, "responses to searches", lists, order), failed=failed)


MTEB = "mteb_model_meta"
"""The key by which mteb's predictions are known."""
_WRITTEN = {"query_id", "results"}
"""Keys of a line of sentence-transformers' predictions."""
_LINE = re.compile(r'\s*\{\s*"query_id"\s*:')
"""How such a line begins; nothing else is parsed line by line."""


def mteb_scores(
    path: Path | str, content: Mapping[str, Any], subset: str = "", split: str = ""
) -> Mapping[str, Any]:
    """Return the scores of one subset and split of mteb's predictions: the named ones, the only ones, or ``test``."""
    parts = {
        (part, name): scores
        for part, splits in content.items()
        if part != MTEB and isinstance(splits, dict)
        for name, scores in splits.items()
        if subset in ("", part) and split in ("", name)
    }
    chosen = list(parts) if len(parts) == 1 else [part for part in parts if part[1] == "test"]
    if len(chosen) != 1:
        held = ", ".join("/".join(map(str, part)) for part in parts) or "none of these"
        hint = "Run.from_mteb(predictions, subset=…, split=…) takes one in Python"
        raise DataError(path, f"expected predictions of one subset and split, got {held}; {hint}")
    scores: Mapping[str, Any] = parts[chosen[0]]
    if not isinstance(scores, dict):
        where = "/".join(map(str, chosen[0]))
        raise DataError(
            path, f"{where}: expected {{query: {{document: score}}}}, got {shorten(scores)}"
        )
    return scores


def prediction_lines(path: Path, text: str) -> dict[str, Any] | None:
    """Read the predictions that sentence-transformers writes, one query per line; None where the first line is none."""
    if not _LINE.match(text):
        return None
    lists = dict[str, Any]()
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError:
            record = None
        if not isinstance(record, dict) or not set(record) >= _WRITTEN:
            if not lists:
                return None
            raise DataError(
                path, f"expected query_id and results as JSON, got {shorten(line)}", line=number
            )
        require_single_keys(path, line, record, first_line=number)
        query = str(record["query_id"])
        if query in lists:
            raise DataError(path, f"query {query!r} occurs twice", line=number)
        lists[query] = record["results"]
    return lists


def parquet_lists(path: Path, order: str | None) -> RunFile:
    """Read a table of Parquet, as ranx writes runs."""
    with as_parquet(path):
        frame = pl.read_parquet(path, glob=False)
    return _read_columns(path, frame, order)


def _read_columns(path: Path, frame: pl.DataFrame, order: str | None) -> RunFile:
    """Read documents of a table whose columns have types, as `_read` does records."""
    columns = _columns(frame.columns, FIELDS)
    try:
        _require_distinct(frame.columns, columns)
        _require_columns(
            columns, FIELDS, ("query", "document"), form="Parquet", names=frame.columns
        )
        table = pl.DataFrame(
            {
                "query_id": ids_of(frame[columns["query"]], f"column {columns['query']!r}"),
                "doc_id": ids_of(frame[columns["document"]], f"column {columns['document']!r}"),
            }
        )
    except UserError as error:
        raise DataError(path, str(error)) from error
    score, rank = (frame[columns[noun]] if noun in columns else None for noun in ("score", "rank"))
    by_score = order != "rank" and score is not None and score.null_count() < len(score)
    by_rank = rank is not None and rank.null_count() < len(rank)

    def fault(row: int, expected: str, cells: pl.Series | None, hint: str = "") -> DataError:
        came = shorten(None if cells is None else cells[row])
        return DataError(path, f"document {row + 1}: expected {expected}, got {came}{hint}")

    places = pl.int_range(1, pl.len() + 1).over("query_id")
    table = table.with_columns(rank=_whole_ranks(rank) if by_rank or by_score else places)
    scores: Any = pl.lit(None, dtype=pl.Float64)
    if by_score and score is not None:
        scores = scores_of(score)
        if not (finite := np.isfinite(scores)).all():
            expected = "a finite number as score (of all documents, or of none)"
            raise fault(int(finite.argmin()), expected, score, f"; {IN_GIVEN_ORDER}")
    elif table["rank"].null_count():
        raise fault(
            table["rank"].is_null().arg_max() or 0,
            "a whole number as rank (of all, or of none)",
            rank,
        )
    return RunFile(
        frame=table.with_columns(score=scores),
        queries=table["query_id"].unique(maintain_order=True),
        score_order=order if by_score else "rank",
        read_as=_read_as("Parquet", columns, by_score=by_score, by_rank=by_rank),
    )


def _whole_ranks(ranks: pl.Series | None) -> pl.Expr | pl.Series:
    """Return ranks that are whole numbers of 32 bits, null elsewhere."""
    if ranks is None or not (ranks.dtype.is_integer() or ranks.dtype.is_float()):
        return pl.lit(None, dtype=pl.Int64)
    whole = ranks.cast(pl.Int32, strict=False)
    return (
        whole.to_frame("rank").select(pl.when(whole == ranks).then("rank"))["rank"].cast(pl.Int64)
    )


def _read_as(form: str, columns: Mapping[str, str], *, by_score: bool, by_rank: bool) -> str:
    """Say which columns were read."""
    given = [
        columns[name]
        for name in ("query", "document", "score" if by_score else "rank")
        if name in columns
    ]
    return f"{form}: {', '.join(given)}{'' if by_score or by_rank else ', in their order'}"


def _require_columns(
    columns: Mapping[str, str],
    valid: Names,
    needed: Sequence[str],
    *,
    form: str,
    names: Iterable[str],
) -> None:
    """Refuse a table without one of the needed columns."""
    if lacking := next((name for name in needed if name not in columns), ""):
        expected = f"a column for the {lacking} ({', '.join(valid[lacking])})"
        raise UserError(f"{form}: expected {expected}, got {', '.join(names) or 'none'}")


def delimiter_of(text: str) -> str:
    """Return what stands between the columns of a run's header; empty where the first line is none."""
    header = next(filter(str.strip, text.split("\n"))).replace('"', "")
    tables = {sign: _columns(header.split(sign), COLUMNS) for sign in "\t,"}
    return next(
        (sign for sign, columns in tables.items() if "query" in columns and len(columns) > 1), ""
    )


def table_lists(
    path: Path, first_line: int, lines: Iterable[str], delimiter: str, order: str | None
) -> RunFile:
    """Read a table whose first line names its columns."""
    table = csv.reader(lines, delimiter=delimiter, strict=True)
    names, documents, numbers = list[str](), Documents(), list[int]()
    try:
        for row in table:
            cells, line = [cell.strip(_BLANKS) for cell in row], first_line - 1 + table.line_num
            if not any(cells):
                continue
            if len(cells) != len(names or cells) or (not names and len({*cells}) < len(cells)):
                expected = f"{len(names or cells)} fields, each with a name of its own"
                raise DataError(
                    path, f"expected {expected}, got {len(cells)}: {shorten(cells)}", line=line
                )
            if names:
                documents.append(dict(zip(names, cells, strict=True)))
                numbers.append(line)
            names = names or cells
    except csv.Error as error:
        raise DataError(
            path, f"expected a table: {error}", line=first_line - 1 + table.line_num
        ) from error
    if not documents:
        raise DataError(path, "expected documents below the header, got none")
    if names == _BEIR_QRELS and all(document["score"].isdecimal() for document in documents):
        raise DataError(
            path, "expected a run, got judgments (whole numbers); they are named with --qrels"
        )
    return _read(path, "CSV" if delimiter == "," else "TSV", documents, order, lines=numbers)


def _columns(names: Iterable[str], valid: Names) -> dict[str, str]:
    """Which of the names stands for the query, the document, the score, the rank."""
    folded = {_folded(name): name.strip() for name in names}
    firsts = {
        column: next((name for name in some if name in folded), "")
        for column, some in valid.items()
    }
    return {column: folded[name] for column, name in firsts.items() if name}


def _folded(name: str) -> str:
    return name.strip().casefold().replace("-", "_")


def _require_distinct(names: Iterable[str], columns: Mapping[str, str]) -> None:
    """Refuse a second name for one of the columns that are read, such as Score beside score."""
    spellings = Counter(map(_folded, names))
    if twice := next((name for name in columns.values() if spellings[_folded(name)] > 1), ""):
        both = " and ".join(repr(name) for name in names if _folded(name) == _folded(twice))
        raise UserError(f"{both} are one column by name; keep one of them")


def result_columns(names: Sequence[str]) -> dict[str, str]:
    """Which columns of a table of results hold ``query_id``, ``doc_id``, ``score`` and ``rank``."""
    found = _columns(names, COLUMNS)
    _require_distinct(names, found)
    fields = {"query": "query_id", "document": "doc_id", "score": "score", "rank": "rank"}
    return {field: found[name] for name, field in fields.items() if name in found}


def _number(cell: str | None, kind: type) -> Any:
    """A cell's number, its text where it is none, None where it is empty."""
    if not cell:
        return None
    try:
        number = plain_float(cell)
    except ValueError:
        return cell
    return number if kind is float or not number.is_integer() else int(number)


def _read(
    path: Path,
    form: str,
    documents: Documents,
    order: str | None,
    *,
    lines: Sequence[int] = (),
    queries: Sequence[str] | None = None,
    query_ids: Sequence[str] = (),
) -> RunFile:
    """Read documents, of a table with their `lines`; those of `queries`' lists are ranked by their place there."""
    if twice := next((query for query, n in Counter(queries).items() if n > 1), None):
        raise DataError(path, f"query {twice!r} comes twice")
    valid = COLUMNS if lines else FIELDS
    names = dict.fromkeys(chain.from_iterable(documents))
    columns = _columns(names, valid if queries is None else {**valid, "query": ()})
    needed = ("query", "document") if queries is None else ("document",) if documents else ()
    try:
        _require_distinct(list(names), columns)
        _require_columns(columns, valid, needed, form=form, names=names)
    except UserError as error:
        raise DataError(path, str(error)) from error
    none = [None] * len(documents)
    cells: dict[str, list[Any]] = {
        name: list(map(methodcaller("get", columns[name]), documents)) if name in columns else none
        for name in valid
    }
    if queries is not None:
        cells["query"] = list(query_ids)
    if lines:
        cells |= {
            name: [_number(cell, of) for cell in cells[name]]
            for name, of in (("score", float), ("rank", int))
        }
    by_score = order != "rank" and any(score is not None for score in cells["score"])
    by_rank = any(rank is not None for rank in cells["rank"])

    def fault(row: int, expected: str, column: str, hint: str = "") -> DataError:
        message = f"expected {expected}, got {shorten(cells[column][row])}{hint}"
        where = {"line": lines[row]} if lines else {}
        return DataError(path, message if lines else f"document {row + 1}: {message}", **where)

    for noun in ("query", "document"):
        if (wrong := _first_no_id(cells[noun])) is not None:
            raise fault(wrong, f"a {noun} id", noun)
    frame = pl.DataFrame(
        {
            name: pl.Series(list(map(str, cells[noun])), dtype=pl.String)
            for name, noun in (("query_id", "query"), ("doc_id", "document"))
        }
    ).with_columns(rank=pl.int_range(1, pl.len() + 1).over("query_id"))
    if by_rank or (by_score and queries is None):
        ranks = [
            rank if type(rank) is int and abs(rank) < 1 << 31 else None for rank in cells["rank"]
        ]
        frame = frame.with_columns(rank=pl.Series(ranks, dtype=pl.Int64))
    if by_score and (wrong := first_not_finite(cells["score"])) is not None:
        raise fault(
            wrong,
            "a finite number as score (of all documents, or of none)",
            "score",
            f"; {IN_GIVEN_ORDER}",
        )
    if not by_score and frame["rank"].null_count():
        raise fault(
            frame["rank"].is_null().arg_max() or 0,
            "a whole number as rank (of all, or of none)",
            "rank",
        )
    scores = (
        pl.Series(np.array(cells["score"], dtype=np.float64))
        if by_score
        else pl.lit(None, dtype=pl.Float64)
    )
    read_as = _read_as(form, columns, by_score=by_score, by_rank=by_rank)
    frame = frame.with_columns(score=scores)
    every = (
        frame["query_id"].unique(maintain_order=True)
        if queries is None
        else pl.Series(queries, dtype=pl.String)
    )
    order = order if by_score else "rank"
    return RunFile(frame=frame, queries=every, lines=lines, score_order=order, read_as=read_as)


def _first_no_id(ids: Sequence[Any]) -> int | None:
    """Find the place of the first that is no id: neither text that is not empty nor a whole number."""
    if set(map(type, ids)) <= {int, str} and "" not in ids:
        return None
    return next(n for n, name in enumerate(ids) if type(name) not in (int, str) or name == "")


def first_not_finite(scores: Sequence[Any]) -> int | None:
    """Find the place of the first that is no finite number."""
    if (
        set(map(type, scores)) <= {int, float}
        and np.isfinite(np.array(scores, dtype=np.float64)).all()
    ):
        return None
    return next(
        n
        for n, score in enumerate(scores)
        if type(score) not in (int, float) or not math.isfinite(score)
    )
