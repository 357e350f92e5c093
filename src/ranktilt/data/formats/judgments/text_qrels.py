"""Judgments as lines: BEIR's three columns and TREC's four; both may have a header.

BEIR's are ``query document grade``, TREC's ``query iteration document grade``, where the iteration
is a number without a meaning, mostly 0. The *form* of a file's lines says which of these they are.
Runs may have three or four columns too (``query document rank``), and are refused: audits would
take their ranks for grades.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from ranktilt.data.files import decode_lines, line_chunks
from ranktilt.data.formats.base import JudgmentFile
from ranktilt.data.formats.data_file import DataFile
from ranktilt.data.formats.runs.three_column_run import has_ranks
from ranktilt.data.formats.tables.columns import whole_or_fractions
from ranktilt.errors import DataError, shorten

_HEADER = ("query-id", "corpus-id", "score")
"""Names of the columns of BEIR's judgments."""
_FIRST_NAMES = ("query-id", "qid", "query")
"""Possible first fields of a header."""
_FIELD = r"[^ \t\x0b\x0c\r]+"
"""A field between blanks."""
_NUMBER = r"^\s*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\s*$"
"""A number, with an exponent or without."""


@dataclass(frozen=True, kw_only=True)
class _LineForm:
    """The positions of the fields in a line of judgments, counted from 0."""

    expected: str
    """Description of such a line, for the message about a line of another form."""
    query: int = 0
    """Position of the query's id among the fields."""
    document: int
    """Position of the document's id."""
    grade: int
    """Position of the grade: the last field."""
    grade_name: str
    """What messages call a grade."""
    has_tabs: bool = False
    """Whether tabs separate the fields, and not any blanks."""

    @property
    def width(self) -> int:
        """Number of fields."""
        return self.grade + 1

    def fields(self, line: str) -> list[str]:
        """Split a line into its fields."""
        return line.split("\t") if self.has_tabs else re.findall(_FIELD, line)


_BEIR = _LineForm(
    expected=f"{', '.join(_HEADER)} (3 tab-separated fields)",
    document=1,
    grade=2,
    grade_name="score",
    has_tabs=True,
)
"""Lines of BEIR, with tabs."""
_BEIR_WITH_BLANKS = _LineForm(
    expected=f"{', '.join(_HEADER)} (3 fields)",
    document=1,
    grade=2,
    grade_name="score",
)
"""Lines of BEIR, with any blanks between fields."""
_TREC = _LineForm(
    expected="query-id, iteration, document-id, grade (4 fields)",
    document=2,
    grade=3,
    grade_name="grade",
)
"""Lines of TREC."""
_FEWEST_RANKS = 5
"""Fewest documents of a query from which ranks can be recognised.

If the last column counts 1, 2, … over fewer documents, it may have grades.
"""


def sniff(file: DataFile) -> bool:
    """Return whether the first line has the fields of judgments, or names them."""
    if file.columns or not file.rows or file.has_json:
        return False
    # A line that `_form_of` does not recognise gets the form `_BEIR`, and has another width.
    form = _form_of(file.rows[0])
    return len(form.fields(file.rows[0])) == form.width or form is not _BEIR


def read(file: DataFile) -> JudgmentFile:
    """Read judgments; the first line tells whether they are BEIR's or TREC's."""
    path = file.path
    frames = list[pl.DataFrame]()
    form: _LineForm | None = None
    for first_line, lines in line_chunks(path):
        text = pl.Series("text", decode_lines(path, first_line, lines).split("\n"))
        frame = text.to_frame().with_row_index("line", offset=first_line)
        frame = frame.filter(pl.col("text").str.strip_chars() != "")
        frame = frame.filter(pl.col("line") > file.comments)
        if not frame.height:
            continue
        form = _form_of(frame["text"][0]) if form is None else form
        frames.append(_parse(path, frame, form, header_line=file.comments + 1))
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


def _form_of(line: str) -> _LineForm:
    """Recognise the form of a file's lines by the first line, which may be a header.

    For a line that fits no form, `_BEIR` is returned.
    """
    blank_fields, tab_fields = _BEIR_WITH_BLANKS.fields(line), _BEIR.fields(line)
    is_number = re.compile(_NUMBER).match
    # Ids may contain blanks if fields are separated by tabs. A line that both forms fit is BEIR's.
    if len(tab_fields) == _BEIR.width:
        is_trec = len(blank_fields) == _TREC.width and is_number(blank_fields[-1])
        if is_number(tab_fields[-1]) or not is_trec:
            return _BEIR
    has_header = blank_fields[0].lower().replace("_", "-") in _FIRST_NAMES
    if not has_header and not is_number(blank_fields[-1]):
        return _BEIR
    if len(blank_fields) == _BEIR_WITH_BLANKS.width:
        return _BEIR_WITH_BLANKS
    return _TREC if len(blank_fields) == _TREC.width else _BEIR


def _parse(path: Path, frame: pl.DataFrame, form: _LineForm, *, header_line: int) -> pl.DataFrame:
    """Return the judgments of a chunk of lines.

    Parameters
    ----------
    path : Path
        The file, for errors.
    frame : polars.DataFrame
        The lines: ``line``, the number of each, and ``text``.
    form : _LineForm
        Form of the lines.
    header_line : int
        Number of the line that may be a header.

    Returns
    -------
    polars.DataFrame
        ``query_id``, ``doc_id``, ``grade``, ``line``, and ``second``, the field after the query, by
        which runs are recognised.
    """
    text, fields = pl.col("text"), pl.col("fields")
    split = text.str.split("\t") if form.has_tabs else text.str.extract_all(_FIELD)
    frame = frame.with_columns(fields=split)
    first = fields.list.get(0, null_on_oob=True).str.to_lowercase().str.replace_all("_", "-")
    is_header = first.is_in(_FIRST_NAMES) & ~fields.list.last().str.contains(_NUMBER)
    frame = frame.filter(~((pl.col("line") == header_line) & is_header))
    wrong = frame.filter(pl.col("fields").list.len() != form.width)
    if wrong.height:
        line, raw, cells = wrong.row(0)
        message = f"expected {form.expected}, got {len(cells)}: {shorten(raw)}"
        raise DataError(path, message, line=line)
    grade = fields.list.get(form.grade)
    number = pl.when(grade.str.contains(_NUMBER)).then(grade.str.strip_chars())
    frame = frame.select(
        "line",
        "text",
        query_id=fields.list.get(form.query),
        doc_id=fields.list.get(form.document),
        raw=grade,
        grade=number.cast(pl.Float64, strict=False),
        second=fields.list.get(1),
    )
    _require_grades(path, frame, form.grade_name)
    ids = [pl.when(pl.col(name) != "").then(pl.col(name)) for name in ("query_id", "doc_id")]
    return frame.select(*ids, "grade", "line", "second")


def _refuse_run(path: Path, frame: pl.DataFrame) -> None:
    """Refuse a run of four columns: query, document, rank, score.

    In judgments, the third column has the documents. If it counts from 1 (or 0) in every query, it
    has ranks.
    """
    position = pl.int_range(pl.len()).over("query_id")
    first_ranks = frame.select(pl.col("doc_id").cast(pl.Int64, strict=False) - position)["doc_id"]
    has_one_start = first_ranks.null_count() == 0 and first_ranks.n_unique() == 1
    if has_one_start and first_ranks[0] in (0, 1):
        # The second field of TREC's judgments is the iteration, mostly 0. If it is, the documents
        # themselves are called 1, 2, 3, ….
        if frame["second"].is_in(["0", "Q0"]).all():
            return
        message = "expected judgments, got a run (query, document, rank, score)"
        raise DataError(path, f"{message}; name runs with --run", line=frame["line"][0])


def _refuse_ranks(path: Path, frame: pl.DataFrame) -> None:
    """Refuse a run of three columns, in which the third counts 1, 2, 3, … in every query."""
    deepest = frame.group_by("query_id").len()["len"].max()
    is_deep = isinstance(deepest, int) and deepest >= _FEWEST_RANKS
    if is_deep and has_ranks(frame["query_id"], frame["grade"]):
        message = "expected judgments, got a run (query, document, rank); name runs with --run"
        raise DataError(path, message, line=frame["line"][0])


def _require_grades(path: Path, frame: pl.DataFrame, grade_name: str) -> None:
    """Refuse a grade that is no number; the error calls it `grade_name`, and names the line."""
    wrong_rows = frame.filter(whole_or_fractions(frame["grade"]).is_null())
    if wrong_rows.height:
        row = wrong_rows.row(0, named=True)
        message = f"expected a number as {grade_name}, got {row['raw']!r}"
        raise DataError(path, message, line=row["line"])
