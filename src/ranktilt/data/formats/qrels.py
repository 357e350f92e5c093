"""Relevance judgments: BEIR's tab-separated files and TREC's."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import polars as pl

from ranktilt.data.files import decode_lines, line_chunks, require_path
from ranktilt.data.formats.columns import whole_or_fractions
from ranktilt.errors import DataError, UserError, shorten

_HEADER = ("query-id", "corpus-id", "score")
_FIRST = ("query-id", "qid", "query")
"""What a header begins with."""
_FIELD = r"[^ \t\x0b\x0c\r]+"
_NUMBER = r"^\s*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\s*$"


class _Form(NamedTuple):
    """What a line of judgments holds."""

    expected: str
    places: tuple[int, int, int]
    """Of query, document and grade."""
    noun: str
    tabs: bool = False

    @property
    def width(self) -> int:
        return self.places[-1] + 1


_BEIR = _Form(f"{', '.join(_HEADER)} (3 tab-separated fields)", (0, 1, 2), "score", tabs=True)
_BLANKS = _Form(f"{', '.join(_HEADER)} (3 fields)", (0, 1, 2), "score")
_TREC = _Form("query-id, iteration, document-id, grade (4 fields)", (0, 2, 3), "grade")


def read_qrels(path: str | Path) -> pl.DataFrame:
    """Read judgments in BEIR's format (tabs, or blanks where there is none) or TREC's; the first line tells which.

    Both may begin with a header. Returns ``query_id``, ``doc_id``, ``grade`` (Int32, Float64 where
    one is a fraction) and ``line``; a judgment that is repeated with the same grade is kept once.
    `DataError` names the line of a fault.
    """
    path = require_path(path)
    frames, form = list[pl.DataFrame](), None
    for first_line, lines in line_chunks(path):
        text = pl.Series("text", decode_lines(path, first_line, lines).split("\n"))
        frame = text.to_frame().with_row_index("line", offset=first_line)
        frame = frame.filter(pl.col("text").str.strip_chars() != "")
        if not frame.height:
            continue
        form = _form(frame["text"][0]) if form is None else form
        frames.append(_parse(path, frame, form))
    if not any(frame.height for frame in frames):
        raise DataError(path, "expected judgments, got a header only")
    found = pl.concat(frames)
    if form is _TREC:
        _refuse_run(path, found)
    return one_grade(path, found.drop("second").with_columns(whole_or_fractions(found["grade"])))


def one_grade(path: Path, frame: pl.DataFrame) -> pl.DataFrame:
    """Keep a judgment that is repeated once; a second, different grade for a pair is a `DataError`."""
    frame = frame.unique(["query_id", "doc_id", "grade"], keep="first", maintain_order=True)
    clash = frame.filter(pl.struct("query_id", "doc_id").is_first_distinct().not_())
    if clash.height:
        row = clash.row(0, named=True)
        message = f"a second grade ({row['grade']}) for query {row['query_id']!r}, document {row['doc_id']!r}"
        raise DataError(path, message, line=row["line"])
    return frame


def _form(line: str) -> _Form:
    """Tell a file's form by its first line, which may be a header; BEIR's ids may have blanks in them."""
    number = re.compile(_NUMBER)
    fields, tabs = re.findall(_FIELD, line), line.split("\t")
    known = bool(number.match(fields[-1])) or fields[0].lower().replace("_", "-") in _FIRST
    if len(tabs) == 3 and (
        len(fields) != 4 or number.match(tabs[2]) or not number.match(fields[3])
    ):
        return _BEIR
    return {3: _BLANKS, 4: _TREC}.get(len(fields), _BEIR) if known else _BEIR


def _parse(path: Path, frame: pl.DataFrame, form: _Form) -> pl.DataFrame:
    """Judgments of a chunk's lines, given as ``line`` and ``text``; ``second`` is the field after the query."""
    split = pl.col("text").str.split("\t") if form.tabs else pl.col("text").str.extract_all(_FIELD)
    frame = frame.with_columns(fields=split)
    head = (
        pl.col("fields").list.get(0, null_on_oob=True).str.to_lowercase().str.replace_all("_", "-")
    )
    head = head.is_in(_FIRST) & ~pl.col("fields").list.last().str.contains(_NUMBER)
    frame = frame.filter(~((pl.col("line") == 1) & head))
    wrong = frame.filter(pl.col("fields").list.len() != form.width)
    if wrong.height:
        line, raw, fields = wrong.row(0)
        message = f"expected {form.expected}, got {len(fields)}: {shorten(raw)}"
        raise DataError(path, message, line=line)
    query, doc, grade = (pl.col("fields").list.get(place) for place in form.places)
    number = (
        pl.when(grade.str.contains(_NUMBER))
        .then(grade.str.strip_chars())
        .cast(pl.Float64, strict=False)
    )
    frame = frame.select(
        "line",
        "text",
        query_id=query,
        doc_id=doc,
        raw=grade,
        grade=number,
        second=pl.col("fields").list.get(1),
    )
    _check(path, frame, form.noun)
    return frame.select("query_id", "doc_id", "grade", "line", "second")


def _refuse_run(path: Path, frame: pl.DataFrame) -> None:
    """Refuse a run of four columns, in which the third counts from 1 (or 0) in every query."""
    place = pl.col("doc_id").cast(pl.Int64, strict=False) - pl.int_range(pl.len()).over("query_id")
    first = frame.select(place)["doc_id"]
    if first[0] in (0, 1) and first.null_count() == 0 and first.n_unique() == 1:
        if frame["second"].is_in(["0", "Q0"]).all():
            return
        message = "expected judgments, got a run (query, document, rank, score); runs are named with --run"
        raise DataError(path, message, line=frame["line"][0])


def _check(path: Path, frame: pl.DataFrame, noun: str) -> None:
    blank = frame.filter((pl.col("query_id") == "") | (pl.col("doc_id") == ""))
    if blank.height:
        row = blank.row(0, named=True)
        raise DataError(
            path,
            f"expected a query-id and a corpus-id, one is empty: {shorten(row['text'])}",
            line=row["line"],
        )
    bad = frame.filter(whole_or_fractions(frame["grade"]).is_null())
    if bad.height:
        row = bad.row(0, named=True)
        raise DataError(path, f"expected a number as {noun}, got {row['raw']!r}", line=row["line"])


def to_tsv(qrels: pl.DataFrame) -> bytes:
    """Write judgments as a BEIR file, the inverse of `read_qrels`; `UserError` if an id has a tab or line end in it."""
    ids = pl.concat([qrels["query_id"], qrels["doc_id"]])
    unfit = ids.filter(ids.str.contains(r"[\t\r\n]"))
    if len(unfit):
        raise UserError(
            f"id {unfit[0]!r} has a tab or line end in it, which a qrels file cannot hold"
        )
    lines = ["\t".join(_HEADER)]
    lines += [
        f"{q}\t{d}\t{g}" for q, d, g in qrels.select("query_id", "doc_id", "grade").iter_rows()
    ]
    return ("\n".join(lines) + "\n").encode()
