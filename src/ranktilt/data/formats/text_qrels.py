"""Judgments as lines: BEIR's three columns, parted by tabs or blanks, and TREC's four; both may have a header."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import polars as pl

from ranktilt.data.files import decode_lines, line_chunks
from ranktilt.data.formats.base import JudgmentFile
from ranktilt.data.formats.columns import whole_or_fractions
from ranktilt.data.formats.data_file import DataFile
from ranktilt.data.formats.three_column_run import has_ranks
from ranktilt.errors import DataError, shorten

_HEADER = ("query-id", "corpus-id", "score")
_FIRST = ("query-id", "qid", "query")
"""What a header begins with."""
_FIELD = r"[^ \t\x0b\x0c\r]+"
_NUMBER = r"^\s*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\s*$"


class _Form(NamedTuple):
    """What a line of judgments holds."""

    expected: str
    indices: tuple[int, int, int]
    """Of query, document and grade."""
    noun: str
    tabs: bool = False

    @property
    def width(self) -> int:
        return self.indices[-1] + 1


_BEIR = _Form(f"{', '.join(_HEADER)} (3 tab-separated fields)", (0, 1, 2), "score", tabs=True)
_BLANKS = _Form(f"{', '.join(_HEADER)} (3 fields)", (0, 1, 2), "score")
_TREC = _Form("query-id, iteration, document-id, grade (4 fields)", (0, 2, 3), "grade")


_MOST_RANKS = 5
"""Documents of a query from which a third column that counts them is one of ranks, not of grades."""


def sniff(file: DataFile) -> bool:
    """Return whether the first line has the fields of judgments, or names them."""
    if file.columns or not file.rows or file.has_json:
        return False
    form = _form(file.rows[0])
    fields = file.rows[0].split("\t") if form.tabs else re.findall(_FIELD, file.rows[0])
    return len(fields) == form.width or form is not _BEIR


def read(file: DataFile) -> JudgmentFile:
    """Read judgments; the first line tells whether they are BEIR's or TREC's."""
    path = file.path
    frames, form = list[pl.DataFrame](), None
    for first_line, lines in line_chunks(path):
        text = pl.Series("text", decode_lines(path, first_line, lines).split("\n"))
        frame = text.to_frame().with_row_index("line", offset=first_line)
        frame = frame.filter(pl.col("text").str.strip_chars() != "")
        frame = frame.filter(pl.col("line") > file.comments)
        if not frame.height:
            continue
        form = _form(frame["text"][0]) if form is None else form
        frames.append(_parse(path, frame, form, head_line=file.comments + 1))
    if not any(frame.height for frame in frames):
        raise DataError(path, "expected judgments, got a header only")
    judgments = pl.concat(frames)
    skipped = int((judgments["query_id"].is_null() | judgments["doc_id"].is_null()).sum())
    if form is _TREC:
        _refuse_run(path, judgments)
    else:
        _refuse_ranks(path, judgments)
    grade = whole_or_fractions(judgments["grade"])
    return JudgmentFile(frame=judgments.drop("second").with_columns(grade), skipped=skipped)


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


def _parse(path: Path, frame: pl.DataFrame, form: _Form, *, head_line: int) -> pl.DataFrame:
    """Judgments of a chunk's lines, given as ``line`` and ``text``; ``second`` is the field after the query."""
    split = pl.col("text").str.split("\t") if form.tabs else pl.col("text").str.extract_all(_FIELD)
    frame = frame.with_columns(fields=split)
    head = (
        pl.col("fields").list.get(0, null_on_oob=True).str.to_lowercase().str.replace_all("_", "-")
    )
    head = head.is_in(_FIRST) & ~pl.col("fields").list.last().str.contains(_NUMBER)
    frame = frame.filter(~((pl.col("line") == head_line) & head))
    wrong = frame.filter(pl.col("fields").list.len() != form.width)
    if wrong.height:
        line, raw, fields = wrong.row(0)
        message = f"expected {form.expected}, got {len(fields)}: {shorten(raw)}"
        raise DataError(path, message, line=line)
    query, doc, grade = (pl.col("fields").list.get(index) for index in form.indices)
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
    _require_grades(path, frame, form.noun)
    ids = [pl.when(pl.col(name) != "").then(pl.col(name)) for name in ("query_id", "doc_id")]
    return frame.select(*ids, "grade", "line", "second")


def _refuse_run(path: Path, frame: pl.DataFrame) -> None:
    """Refuse a run of four columns, in which the third counts from 1 (or 0) in every query."""
    offset = pl.col("doc_id").cast(pl.Int64, strict=False) - pl.int_range(pl.len()).over("query_id")
    first = frame.select(offset)["doc_id"]
    if first[0] in (0, 1) and first.null_count() == 0 and first.n_unique() == 1:
        if frame["second"].is_in(["0", "Q0"]).all():
            return
        message = "expected judgments, got a run (query, document, rank, score); runs are named with --run"
        raise DataError(path, message, line=frame["line"][0])


def _refuse_ranks(path: Path, frame: pl.DataFrame) -> None:
    """Refuse a run of three columns, in which the third counts 1, 2, 3, … in every query."""
    deepest = frame.group_by("query_id").len()["len"].max()
    is_deep = isinstance(deepest, int) and deepest >= _MOST_RANKS
    if is_deep and has_ranks(frame["query_id"], frame["grade"]):
        message = "expected judgments, got a run (query, document, rank); runs are named with --run"
        raise DataError(path, message, line=frame["line"][0])


def _require_grades(path: Path, frame: pl.DataFrame, noun: str) -> None:
    bad = frame.filter(whole_or_fractions(frame["grade"]).is_null())
    if bad.height:
        row = bad.row(0, named=True)
        raise DataError(path, f"expected a number as {noun}, got {row['raw']!r}", line=row["line"])
