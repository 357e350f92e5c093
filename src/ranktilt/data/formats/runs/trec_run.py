"""TREC runs: ``query Q0 document rank score tag``, or without the tag, or without Q0 and tag.

Fields are separated by blanks or tabs, and nothing is quoted. ``Q0`` is never read. The *tag* names
the whole run, or numbers *repeats*: several rankings of each query by one engine. First lines that
begin with ``#`` and are no results are comments; ids may begin with it too.
"""

from __future__ import annotations

import math
import re
from pathlib import Path

import polars as pl

from ranktilt.data.files import decode_lines, line_chunks, read_text
from ranktilt.data.formats.base import RunFile, RunRequest
from ranktilt.data.formats.data_file import DataFile, blank_fields
from ranktilt.data.formats.ids import plain_float
from ranktilt.data.formats.json_values import parse_with_nan
from ranktilt.data.formats.runs.repeats import REPEAT, TAG, repeat_column, repeat_labels
from ranktilt.data.formats.runs.score_order import GIVEN_ORDER_HINT
from ranktilt.errors import DataError, UserError, error_in_file, shorten

_FIELD_NAMES = "query-id, Q0, document-id, rank, score"
"""Names of the fields of a line of TREC without a tag, for messages."""
_FIELD_NAMES_BY_WIDTH = {
    4: _FIELD_NAMES.replace(" Q0,", ""),
    5: _FIELD_NAMES,
    6: f"{_FIELD_NAMES}, tag",
}
"""Names of the fields of a line by their number."""
_POSITIONS = {4: (0, 1, 2, 3), 5: (0, 2, 3, 4), 6: (0, 2, 3, 4)}
"""Positions of query, document, rank and score by the number of fields in a line."""
_TAG = re.compile(r"(?!(?:ranktilt|rank|run|runid|standard|tag)$)[a-z][\w.+-]{1,39}", re.IGNORECASE)
"""Tag that names a run, and is no placeholder."""
_BLANKS_TO_SPACES = bytes.maketrans(b"\t\x0b\x0c\r", b"    ")
"""Table for `bytes.translate` that replaces other blanks by spaces."""


def sniff(file: DataFile) -> bool:
    """Return whether the first line that is no comment looks like a line of a TREC run."""
    # Only repeats can be named in a TREC file, whose columns have no other names.
    if set(file.columns) - {REPEAT} or not file.rows:
        return False
    fields = blank_fields(file.rows[0])
    if len(fields) not in _POSITIONS or _is_json(file):
        return False
    if fields[1] == "Q0":
        return True
    # The header of another table may have as many words, but no number among them.
    try:
        return not math.isnan(plain_float(fields[_POSITIONS[len(fields)][-1]]))
    except ValueError:
        return False


def _is_json(file: DataFile) -> bool:
    """Return whether a file that begins like JSON is JSON: a query's id may begin like it too."""
    if not file.has_json:
        return False
    if file.has_json_lines:
        return True
    try:
        parse_with_nan(read_text(file.path))
    except (ValueError, DataError):
        return len(blank_fields(file.rows[0])) not in (5, 6)
    return True


def read(file: DataFile, request: RunRequest) -> RunFile:
    """Read a TREC run, a few megabytes at a time; with the order ``"rank"`` scores are not read."""
    path, order = file.path, request.score_order
    frames, width = list[pl.DataFrame](), 0
    for first_line, chunk in line_chunks(path):
        comments = max(0, file.comments - first_line + 1)
        # Comments become blank lines, so that all other lines keep their numbers.
        lines = [b""] * min(comments, len(chunk)) + chunk[comments:]
        if not any(lines):
            continue
        decode_lines(path, first_line, lines)
        if not width:
            width = _width(path, first_line, lines)
        if width:
            frames.append(_parse(path, first_line, lines, width=width, order=order))
    if not frames:
        raise DataError(path, "expected a run, got comments only")
    tags = pl.concat([frame["tag"].unique() for frame in frames]).unique()
    tag = str(tags[0]) if len(tags) == 1 and _TAG.fullmatch(str(tags[0])) and width == 6 else ""
    repeats = None
    if width == 6 and (len(tags) > 1 or file.columns):
        repeats = _repeats(file, pl.concat(frames))
    frame = pl.concat([frame.drop(TAG) for frame in frames]).rechunk()
    if repeats is not None:
        frame = frame.with_columns(repeats.alias(REPEAT))
    return RunFile(
        frame=frame,
        queries=frame["query_id"].unique(maintain_order=True),
        has_lines=True,
        first_line=file.comments + 1,
        score_order=order,
        read_as="" if repeats is None else "TREC, whose sixth column numbers repeats",
        tag=tag,
    )


def _repeats(file: DataFile, frame: pl.DataFrame) -> pl.Series | None:
    """Return the repeat of each entry, by its tag; None if tags do not number repeats."""
    try:
        column = repeat_column([TAG], file.columns)
    except UserError as error:
        raise error_in_file(file.path, error) from error
    if column is None:
        return None
    return repeat_labels(file.path, frame.rename({TAG: REPEAT}), column)


def _width(path: Path, first_line: int, lines: list[bytes]) -> int:
    """Return the number of fields of the first line; 0 if all lines are blank."""
    numbered = enumerate(lines, start=first_line)
    rows = [(number, line) for number, line in numbered if line.strip()]
    if not rows:
        return 0
    number, line = rows[0]
    width = len(line.split())
    if width not in _POSITIONS:
        message = f"expected {_FIELD_NAMES}, got {width}: {shorten(line.decode())}"
        raise DataError(path, message, line=number)
    if width == 4 and all(line.split()[1] in (b"0", b"Q0") for _number, line in rows):
        message = (
            f"expected a run, got judgments (query, 0, document, grade): {shorten(line.decode())}"
        )
        raise DataError(path, f"{message}; name them with --qrels", line=number)
    return width


def _parse(
    path: Path, first_line: int, lines: list[bytes], *, width: int, order: str | None
) -> pl.DataFrame:
    """Return the entries of a chunk of lines.

    Parameters
    ----------
    path : Path
        The file, for errors.
    first_line : int
        Number of the first line.
    lines : list of bytes
        The lines.
    width : int
        Number of fields that each line must have.
    order : str or None
        How scores order documents; with ``"rank"`` a score may be anything.

    Returns
    -------
    polars.DataFrame
        ``query_id``, ``doc_id``, ``rank`` (null if it is no whole number), ``score`` and ``tag``.
    """
    data = _with_single_blanks(lines)
    if not data:
        texts = dict.fromkeys(("query_id", "doc_id", "tag"), pl.String)
        return pl.DataFrame(schema={**texts, "rank": pl.Int32, "score": pl.Float64})
    first_row = data.split(b"\n", 1)[0]
    row_count = data.count(b"\n") + 1
    has_right_width = first_row.count(b" ") == width - 1
    if not has_right_width or data.count(b" ") != (width - 1) * row_count:
        raise _wrong_width_error(path, first_line, lines, width)
    names = [f"f{position}" for position in range(width)]
    frame = pl.read_csv(
        data,
        separator=" ",
        quote_char=None,
        has_header=False,
        schema=dict.fromkeys(names, pl.String),
        truncate_ragged_lines=True,
    )
    if frame[names[-1]].null_count():  # a line is too long, and another one too short
        raise _wrong_width_error(path, first_line, lines, width)
    query_id, doc_id, rank_name, score_name = (names[index] for index in _POSITIONS[width])
    rank = pl.col(rank_name).cast(pl.Int32, strict=False)
    score = pl.col(score_name).cast(pl.Float64, strict=False)
    entries = frame.select(query_id=query_id, doc_id=doc_id, rank=rank, score=score, tag=names[-1])
    scores = entries["score"]
    # Minus infinity is below all others: programs print it for the logarithm of zero.
    is_wrong_score = scores.is_null() | scores.is_nan() | (scores == math.inf)
    # Without Q0 only the rank distinguishes a run from other tables of four columns.
    is_unranked = entries["rank"].is_null() & (width == 4 or order == "rank")
    wrong_rows = ((is_wrong_score & (order != "rank")) | is_unranked).arg_true()
    if len(wrong_rows):
        row = int(wrong_rows[0])
        numbers = [number for number, line in enumerate(lines, start=first_line) if line.strip()]
        expected, column, hint = "a finite number as score", score_name, f"; {GIVEN_ORDER_HINT}"
        if is_unranked[row]:
            expected, column, hint = "a whole number as rank", rank_name, ""
        message = f"expected {expected}, got {shorten(frame[column][row])}{hint}"
        raise DataError(path, message, line=numbers[row])
    return entries


def _with_single_blanks(lines: list[bytes]) -> bytes:
    """Join lines with one space between fields and none around them, without blank lines."""
    # A few passes over all bytes take a fraction of the time of splitting each line.
    data = b"\n".join(lines).translate(_BLANKS_TO_SPACES)
    while b"  " in data:
        data = data.replace(b"  ", b" ")
    data = data.replace(b" \n", b"\n").replace(b"\n ", b"\n")
    while b"\n\n" in data:
        data = data.replace(b"\n\n", b"\n")
    return data.strip(b" \n")


def _wrong_width_error(path: Path, first_line: int, lines: list[bytes], width: int) -> DataError:
    """Return the error for a line with another number of fields than the first."""
    expected = _FIELD_NAMES_BY_WIDTH[width]
    for number, line in enumerate(lines, start=first_line):
        count = len(line.split())
        if count not in (0, width):
            message = f"expected {expected} ({width} fields, as in the first line), got {count}"
            return DataError(path, f"{message}: {shorten(line.decode())}", line=number)
    return DataError(path, f"expected {expected} ({width} fields) in every line")
