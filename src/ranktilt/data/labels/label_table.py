"""Read a label file, which is a table, JSON or a bare list of ids.

A *label* is the value of a column by which documents are grouped. The *origin* of a document is the
id of the one that it was rewritten from. A *bare list* has only ids; all documents that it does not
name get the label of the *rest*, which the user chooses.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from ranktilt.data.files import rereadable_file
from ranktilt.data.formats.base import LABELS
from ranktilt.data.formats.data_file import DataFile, blank_fields, numbered_names
from ranktilt.data.formats.ids import id_texts, require_text
from ranktilt.data.formats.json_values import read_document
from ranktilt.data.formats.refusals import refusal, refuse_binary
from ranktilt.data.formats.tables.column_names import DOCUMENT_IDS
from ranktilt.data.formats.tables.delimited import LINE_COLUMN, field_rows, refuse_second_header
from ranktilt.data.formats.tables.parquet import json_rows, json_table, read_table
from ranktilt.data.labels.label_file import (
    LENGTH,
    SEVERAL_HINT,
    LabelFile,
    label_column,
    rename_labels,
)
from ranktilt.data.text.label_values import as_numbers, known_labels
from ranktilt.errors import DataError, DataWarning, UserError, counted, shorten, unknown_name

RESERVED_COLUMNS = ("id", "text", "title", LINE_COLUMN)
"""Names of columns that a file of labels cannot add to documents, because they have others there.
"""
_PACKED_ENDINGS = (".gz", ".bz2", ".xz", ".zst")
"""Endings of packed files."""
_HEADER_HINT = "a label file begins with column names"
"""Part of errors about the first line."""
_COLUMN_HINT = "; name the column of ids: FILE:id=COLUMN"
"""End of errors about a missing column of ids."""
_COLUMNS_HINT = "; name its columns: FILE:id=COLUMN,source=COLUMN"
"""End of errors about a header none of whose columns has a usual name."""
_LIST_HINT = "; for a bare list of ids, label all others with --rest LABEL"
"""End of errors about a list of ids."""
_ID_HEADERS = (*DOCUMENT_IDS, "id", "_id")
"""First lines of a bare list that are a header, and no id."""


def read_labels(labels: str | Path | LabelFile, *, by: str = "source") -> pl.DataFrame:
    """Read documents and their labels.

    The file is TSV, in which quotes have no meaning, CSV (RFC 4180) or JSON lines, plain or packed,
    or Parquet.

    Parameters
    ----------
    labels : str, Path or LabelFile
        The file; ``FILE:id=url,source=is_ai`` names its columns.
    by : str, optional
        Column of the labels; ``COLUMN:N`` will divide a column of numbers into N parts.

    Returns
    -------
    polars.DataFrame
        ``doc_id`` (unique), the column of labels, ``origin`` if the file has it, and the other
        columns. A column whose values are all numbers is read as numbers. Labels that name no
        group, such as an empty one, are null. The rest has no rows here.
    """
    label_file = LabelFile.from_text(labels)
    by = require_text(by, "by")
    with rereadable_file(Path(label_file.path)) as path:
        return _read_labels(label_file, path, by)


def _read_labels(label_file: LabelFile, path: Path, by: str) -> pl.DataFrame:
    """Read the labels of a file; `path` is the file itself, or a copy of a pipe."""
    frame = _read_table(label_file, path, label_column(by, ()))
    label = _label_column(path, frame.columns, by)
    if not frame.height:
        raise DataError(path, "expected labels, got column names only")
    frame = _with_known_values(path, frame, label)
    if label == by:
        frame = frame.with_columns(rename_labels(frame[label].cast(pl.String), label_file.names))
    elif label_file.names or label_file.rest:
        raise UserError(f"{by} makes parts of numbers, which --name and --rest cannot label")
    frame = _with_ids(path, frame)
    if frame[label].null_count() == frame.height:
        raise DataError(path, f"column {label!r} is blank or nan in every row")
    if label_file.several is not None:
        frame = frame.unique("doc_id", keep="first", maintain_order=True)
    frame = one_row_each(path, frame, "document", "doc_id", hint=SEVERAL_HINT)
    # The label stays a string, unless ``COLUMN:N`` makes parts of its numbers.
    strings = {"doc_id", "origin", label} if label == by else {"doc_id", "origin"}
    numbers = [as_numbers(frame[name]) for name in frame.columns if name not in strings]
    first = [name for name in ("doc_id", label, "origin") if name in frame.columns]
    return frame.with_columns(numbers).select(*first, pl.exclude(*first, LINE_COLUMN))


def _with_known_values(path: Path, frame: pl.DataFrame, label: str) -> pl.DataFrame:
    """Read ids as strings, strip all strings, and set labels that name no group to null.

    `label` is the column of labels.
    """
    id_columns = [name for name in ("doc_id", "origin") if name in frame.columns]
    try:
        ids = [id_texts(frame[name], f"column {name!r}").alias(name) for name in id_columns]
    except UserError as error:
        raise DataError(path, str(error)) from error
    frame = _without_blanks(frame.with_columns(ids), strings=id_columns)
    label_columns = [name for name in (label, "origin") if name in frame.columns]
    return frame.with_columns(known_labels(frame[name]) for name in label_columns)


def _with_ids(path: Path, frame: pl.DataFrame) -> pl.DataFrame:
    """Leave out rows without an id, with a warning; refuse a file with more than half of them."""
    empty_count = frame["doc_id"].null_count()
    if not empty_count:
        return frame
    rows = counted(empty_count, "row", "rows")
    if 2 * empty_count > frame.height:
        row = frame["doc_id"].is_null().arg_max() or 0
        line = frame[LINE_COLUMN][row] if LINE_COLUMN in frame.columns else None
        raise DataError(path, f"doc_id is empty in {rows} of {frame.height:,}", line=line)
    warnings.warn(f"{path}: left out {rows} without a doc_id", DataWarning, stacklevel=4)
    return frame.filter(pl.col("doc_id").is_not_null())


def _read_table(label_file: LabelFile, path: Path, label: str) -> pl.DataFrame:
    """Read a file's columns; the ids of a bare list get the label ``listed``.

    `path` is the file itself, or a copy of a pipe, and `label` the column of labels.
    """
    file = DataFile(path=path, columns=dict(label_file.columns))
    refuse_binary(file, LABELS)
    ending = _ending(label_file.path)
    if file.binary == "Parquet":
        frame = _label_columns(label_file, read_table(path), path)
    elif file.has_json:
        frame = _label_columns(label_file, _json_table(label_file, file), path)
    elif ending in ("csv", "tsv") or file.separator or label_file.rest is not None:
        separator = _separator(file, ending)
        frame = read_delimited(path, separator, label_file, comments=file.comments)
    else:
        raise _missing_columns_error(file)
    columns = set(label_file.columns) or set(frame.columns) - {LINE_COLUMN}
    is_bare_list = columns == {"doc_id"}
    if label_file.rest and is_bare_list and label not in frame.columns:
        return frame.with_columns(pl.lit("listed").alias(label))
    return frame


def _missing_columns_error(file: DataFile) -> UserError:
    """Return the error for a file without columns, which may be a bare list."""
    first = file.rows[0] if file.rows else ""
    if len(blank_fields(first)) == 1 and not re.search("[,;|]", first):
        message = f"expected labels, got one column{_LIST_HINT}"
        return DataError(file.path, message, line=file.comments + 1)
    return refusal(file, LABELS)


def _ending(name: str) -> str:
    """Return the ending of a file's name, such as ``csv``, without that of a packed file."""
    plain_name = name.lower()
    for packed_ending in _PACKED_ENDINGS:
        plain_name = plain_name.removesuffix(packed_ending)
    return plain_name.rpartition(".")[2] if "." in plain_name else ""


def _separator(file: DataFile, ending: str) -> str:
    """Return the separator of a table's columns.

    It is the one that the ending implies, unless the first line has only another one. A bare list
    has only line feeds.
    """
    usual_separator = {"tsv": "\t", "csv": ","}.get(ending, "")
    first_line = file.rows[0] if file.rows else ""
    if usual_separator and (usual_separator in first_line or not file.separator):
        return usual_separator
    return file.separator or "\n"


# ---- JSON ---------------------------------------------------------------------------------------


def _json_table(label_file: LabelFile, file: DataFile) -> pl.DataFrame:
    """Read records of JSON: a line each, in one list, or in an object."""
    id_columns, dotted = label_file.id_columns, label_file.columns.values()
    if file.has_json_lines and len(file.rows) > 1:
        table, _lines = json_rows(file.path, id_columns, dotted=dotted)
        return table
    records = _records(read_document(file.path), label_file)
    if not isinstance(records, list) or not _are_records(records):
        raise refusal(file, LABELS)
    return json_table(file.path, records, id_columns, dotted=dotted)


def _records(document: Any, label_file: LabelFile) -> Any:
    """Return the records in a JSON value; anything but an object is returned as it is.

    An object may be ``{id: label}``, ``{label: [id, …]}``, a record, or hold a list of records.
    """
    if not isinstance(document, Mapping):
        return document
    if not any(map(_is_nested, document.values())):
        keys = set(map(str, document))
        is_record = "doc_id" in keys or not keys.isdisjoint(label_file.columns.values())
        if not is_record:
            return [{"doc_id": doc_id, "source": label} for doc_id, label in document.items()]
    if all(map(_is_list_of_ids, document.values())):
        records = list[dict[str, Any]]()
        for label, ids in document.items():
            records += [{"doc_id": doc_id, "source": label} for doc_id in ids]
        return records
    return _only_list(document)


def _is_list_of_ids(value: Any) -> bool:
    """Return whether a JSON value is a list of ids."""
    return isinstance(value, list) and all(type(element) in (str, int) for element in value)


def _only_list(document: Mapping[str, Any]) -> list[Any]:
    """Return an object's only list of records, such as a detector's; else the object in a list."""
    lists = [value for value in document.values() if isinstance(value, list) and value]
    lists = [values for values in lists if _are_records(values)]
    return lists[0] if len(lists) == 1 else [document]


def _are_records(values: list[Any]) -> bool:
    """Return whether all values of a list are objects."""
    return all(isinstance(value, Mapping) for value in values)


def _is_nested(value: Any) -> bool:
    """Return whether a value is an object or a list."""
    return isinstance(value, Mapping | list)


# ---- columns ------------------------------------------------------------------------------------


def _require_names(
    path: Path, names: list[str], line: int | None, *, has_choices: bool = True
) -> None:
    """Refuse columns without ``doc_id``, or that share a name: often a file without a header.

    `line` is the line of the header, for errors. `has_choices` says whether users may name the
    column of ids, so that errors may say how.
    """
    repeated = next((name for name in names if name and names.count(name) > 1), None)
    if repeated is not None:
        raise DataError(path, f"column {repeated!r} occurs twice; {_HEADER_HINT}", line=line)
    if "doc_id" in names:
        return
    hint = ""
    if has_choices:
        hint = _LIST_HINT if len(names) == 1 else _COLUMN_HINT
    if has_choices and len(names) == 1 and ";" in names[0]:
        # Columns between semicolons, none of which has a usual name: otherwise the semicolon would
        # have been recognised as the separator.
        names, hint = names[0].split(";"), _COLUMNS_HINT
    came = shorten(", ".join(filter(None, names)))
    raise DataError(path, f"expected a column doc_id, got {came}; {_HEADER_HINT}{hint}", line=line)


def _label_column(path: Path, columns: list[str], by: str) -> str:
    """Return the column of labels that `by` names.

    Refuse a column that is missing, or that has another meaning, such as ``text``.
    """
    candidates = [name for name in columns if name not in ("doc_id", "origin", LINE_COLUMN)]
    label = label_column(by, candidates)
    if label == LENGTH != by and label not in candidates:
        raise UserError(
            f"--by {by} needs texts: name a collection DIR, without --groups (a column of "
            "numbers can be divided too, such as year:3)"
        )
    if label in (*RESERVED_COLUMNS, "origin", "doc_id"):
        valid = ", ".join(candidates) or "none"
        raise UserError(f"cannot group by {label!r} (valid: {valid})")
    if label not in candidates:
        message = str(unknown_name("column", label, candidates))
        raise DataError(path, f"{message}; choose the column of labels with --by (by=)")
    return label


def read_delimited(
    path: Path, separator: str, label_file: LabelFile | None = None, *, comments: int = 0
) -> pl.DataFrame:
    """Read a table of strings with ``doc_id`` and the line of each row (`LINE_COLUMN`).

    Parameters
    ----------
    path : Path
        The file.
    separator : str
        Character between the columns.
    label_file : LabelFile, optional
        The user's names of columns, and whether the file may be a bare list.
    comments : int, optional
        Number of lines to skip at the start of the file.
    """
    frames, header = list[pl.DataFrame](), None
    for rows in field_rows(path, separator, comments=comments):
        if header is None:
            header = _header(path, rows, label_file)
            rows = rows if header.is_row else rows[1:]
        if not header.is_row:
            refuse_second_header(path, rows, header.fields)
        frames.append(_named_columns(path, rows, header.names, separator))
    return pl.concat(frames)


@dataclass(frozen=True, kw_only=True)
class _Header:
    """The first line of a table."""

    fields: list[str]
    """Fields of the line."""
    names: list[str]
    """Name of each column by its content, such as ``doc_id``; empty for a column to skip."""
    is_row: bool
    """Whether the line is the first row, because the file has no header."""


def _header(path: Path, rows: pl.DataFrame, label_file: LabelFile | None) -> _Header:
    """Read the names of columns from a table's first row, or take them from the user."""
    fields = rows["fields"][0].to_list()
    cells = [str(field).strip() for field in fields]
    if label_file is None:
        _require_names(path, cells, rows[LINE_COLUMN][0], has_choices=False)
        return _Header(fields=fields, names=cells, is_row=False)
    is_headless = DataFile(path=path, columns=label_file.columns).is_headless
    is_bare_list = bool(label_file.rest) and not label_file.columns and len(cells) == 1
    columns = numbered_names(cells) if is_headless else cells
    names = ["doc_id"] if is_bare_list else label_file.rename_columns(columns)
    _require_names(path, names, rows[LINE_COLUMN][0])
    is_row = is_headless or (is_bare_list and cells[0].lower() not in _ID_HEADERS)
    return _Header(fields=fields, names=names, is_row=is_row)


def _named_columns(
    path: Path, rows: pl.DataFrame, names: Sequence[str], separator: str
) -> pl.DataFrame:
    """Return the columns of rows by name; `DataError` for a row with another number of fields."""
    wrong = rows.filter(pl.col("fields").list.len() != len(names))
    if wrong.height:
        line, fields = wrong.row(0)
        expected = counted(len(names), "field", "fields")
        message = f"expected {expected} as in the first line, got {len(fields)}"
        raise DataError(path, f"{message}: {shorten(separator.join(fields))}", line=line)
    columns = dict[str, pl.Expr]()
    for position, name in enumerate(names):
        if name and name not in RESERVED_COLUMNS:
            columns[name] = pl.col("fields").list.get(position)
    return rows.select(LINE_COLUMN, **columns)


def _label_columns(label_file: LabelFile, frame: pl.DataFrame, path: Path) -> pl.DataFrame:
    """Rename columns by their content; drop those with nested values or reserved names."""
    columns = [
        column
        for column in frame.iter_columns()
        if not column.dtype.is_nested() and column.dtype != pl.Duration
    ]
    names = label_file.rename_columns([column.name for column in columns])
    _require_names(path, names, None)
    label_columns = list[pl.Series]()
    for column, name in zip(columns, names, strict=True):
        if not name or name in RESERVED_COLUMNS:
            continue
        if column.dtype.is_temporal():
            column = column.cast(pl.String)
        elif column.dtype.is_float():
            column = column.fill_nan(None)
        label_columns.append(column.alias(name))
    return pl.DataFrame(label_columns)


def _without_blanks(frame: pl.DataFrame, *, strings: Sequence[str]) -> pl.DataFrame:
    """Strip columns of strings, and those named in `strings`; empty values become null."""
    kinds = (pl.String, pl.Categorical, pl.Enum)
    names = [
        column.name
        for column in frame.iter_columns()
        if column.name in strings or isinstance(column.dtype, kinds)
    ]
    stripped = frame.with_columns(pl.col(names).cast(pl.String).str.strip_chars())
    return stripped.with_columns(pl.when(pl.col(names) != "").then(pl.col(names)))


def one_row_each(
    path: Path,
    frame: pl.DataFrame,
    noun: str,
    key: str,
    *,
    names: Mapping[str, str] = {},
    hint: str = "",
) -> pl.DataFrame:
    """Drop repeated rows, and refuse rows with the same key that differ.

    Parameters
    ----------
    path : Path
        The file, for errors.
    frame : polars.DataFrame
        The rows, with `LINE_COLUMN` if they have lines.
    noun : str
        What a row describes, such as ``document``, for errors.
    key : str
        Column of the key.
    names : mapping, optional
        Names of columns in the file, for errors; by default those in `frame`.
    hint : str, optional
        End of the error.
    """
    if frame[key].n_unique() == frame.height:
        return frame
    columns = [name for name in frame.columns if name not in (key, LINE_COLUMN)]
    frame = frame.unique([key, *columns], keep="first", maintain_order=True)
    repeated = frame.filter(~pl.col(key).is_first_distinct())
    if not repeated.height:
        return frame
    second = repeated.row(0, named=True)
    first = frame.filter(pl.col(key) == second[key]).row(0, named=True)
    column = next(name for name in columns if first[name] != second[name])
    first_line = f" (line {first[LINE_COLUMN]})" if LINE_COLUMN in first else ""
    both = f"{first[column]!r}{first_line} and {second[column]!r}"
    column_name = names.get(column, column)
    message = f"{noun} {second[key]!r} has two values of {column_name!r}: {both}{hint}"
    raise DataError(path, message, line=second.get(LINE_COLUMN))
