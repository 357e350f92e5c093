"""Read a label file, which is a table, JSON or a bare list of ids."""

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
from ranktilt.errors import DataError, DataWarning, UserError, counted, shorten, unknown

TAKEN = ("id", "text", "title", LINE_COLUMN)
"""Names of columns that a file of labels cannot add to documents."""
_PACKED = (".gz", ".bz2", ".xz", ".zst")
"""Endings of packed files."""
_BEGINS = "a label file begins with column names"
"""Beginning of errors about the first line."""
_COLUMN_HINT = "; name the column of ids: FILE:id=COLUMN"
"""End of errors about a missing column of ids."""
_COLUMNS_HINT = "; name its columns: FILE:id=COLUMN,source=COLUMN"
"""End of errors about a header none of whose columns has a usual name."""
_LIST_HINT = "; for a bare list of ids, label all others with --rest LABEL"
"""End of errors about a list of ids."""
_ID_HEADERS = (*DOCUMENT_IDS, "id", "_id")
"""First lines of a bare list of ids that are a header."""


def read_labels(labels: str | Path | LabelFile, *, by: str = "source") -> pl.DataFrame:
    """Read documents and their labels.

    The file is TSV (quotes are plain), CSV (RFC 4180) or JSON lines, plain or packed, or Parquet.

    Returns ``doc_id`` (unique), the column that `by` names, ``origin`` if the file has it, and the
    other columns, as numbers if all of their values are. Labels that name no group are null: see
    `known_labels`. The `rest` of a `LabelFile` is not filled in here.
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
    """Read ids as strings, strip all strings, and set labels that name no group to null."""
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
    empty = frame["doc_id"].null_count()
    if not empty:
        return frame
    rows = counted(empty, "row", "rows")
    if 2 * empty > frame.height:
        row = frame["doc_id"].is_null().arg_max() or 0
        line = frame[LINE_COLUMN][row] if LINE_COLUMN in frame.columns else None
        raise DataError(path, f"doc_id is empty in {rows} of {frame.height:,}", line=line)
    warnings.warn(f"{path}: left out {rows} without a doc_id", DataWarning, stacklevel=4)
    return frame.filter(pl.col("doc_id").is_not_null())


def _read_table(label_file: LabelFile, path: Path, label: str) -> pl.DataFrame:
    """Read a file's columns; a bare list of ids gets the label ``listed``."""
    file = DataFile(path=path, columns=dict(label_file.columns))
    refuse_binary(file, LABELS)
    ending = _ending(label_file.path)
    if file.binary == "Parquet":
        frame = _plain_columns(label_file, read_table(path), path)
    elif file.has_json:
        frame = _plain_columns(label_file, _json_table(label_file, file), path)
    elif ending in ("csv", "tsv") or file.separator or label_file.rest is not None:
        separator = _separator(file, ending)
        frame = read_delimited(path, separator, label_file, comments=file.comments)
    else:
        raise _no_table(file)
    has_ids_alone = (set(label_file.columns) or set(frame.columns) - {LINE_COLUMN}) == {"doc_id"}
    if label_file.rest and has_ids_alone and label not in frame.columns:
        return frame.with_columns(pl.lit("listed").alias(label))
    return frame


def _no_table(file: DataFile) -> UserError:
    """Return the error for a file without columns; a list of ids lacks the label of the rest."""
    first = file.rows[0] if file.rows else ""
    if len(blank_fields(first)) == 1 and not re.search("[,;|]", first):
        message = f"expected labels, got one column{_LIST_HINT}"
        return DataError(file.path, message, line=file.comments + 1)
    return refusal(file, LABELS)


def _ending(name: str) -> str:
    """Return the ending of a file's name, without that of packing."""
    plain = name.lower()
    for packed in _PACKED:
        plain = plain.removesuffix(packed)
    return plain.rpartition(".")[2] if "." in plain else ""


def _separator(file: DataFile, ending: str) -> str:
    """Return the separator that the ending implies, unless the first line has another one only."""
    by_ending = {"tsv": "\t", "csv": ","}.get(ending, "")
    first = file.rows[0] if file.rows else ""
    if by_ending and (by_ending in first or not file.separator):
        return by_ending
    return file.separator or "\n"


# ---- JSON ---------------------------------------------------------------------------------------


def _json_table(label_file: LabelFile, file: DataFile) -> pl.DataFrame:
    """Read records of JSON: a line each, in one list, or an object of ids and labels."""
    ids, dotted = label_file.id_columns, label_file.columns.values()
    if file.has_json_lines and len(file.rows) > 1:
        return json_rows(file.path, ids, dotted=dotted)[0]
    records = _records(read_document(file.path), label_file)
    if not isinstance(records, list) or not _are_records(records):
        raise refusal(file, LABELS)
    return json_table(file.path, records, ids, dotted=dotted)


def _records(document: Any, label_file: LabelFile) -> Any:
    """Return the records in a JSON value; anything else comes back as it is."""
    if not isinstance(document, Mapping):
        return document
    if not any(map(_is_nested, document.values())):
        keys = set(map(str, document))
        is_record = "doc_id" in keys or not keys.isdisjoint(label_file.columns.values())
        if not is_record:
            return [{"doc_id": name, "source": label} for name, label in document.items()]
    if all(map(_is_list_of_ids, document.values())):
        records = list[dict[str, Any]]()
        for group, names in document.items():
            records += [{"doc_id": name, "source": group} for name in names]
        return records
    return _only_list(document)


def _is_list_of_ids(value: Any) -> bool:
    """Return whether a JSON value is a list of ids."""
    return isinstance(value, list) and all(type(name) in (str, int) for name in value)


def _only_list(document: Mapping[str, Any]) -> list[Any]:
    """Return an object's only list of records, such as a detector's; else the object itself."""
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

    With `has_choices` users may say which column holds the ids.
    """
    repeated = next((name for name in names if name and names.count(name) > 1), None)
    if repeated is not None:
        raise DataError(path, f"column {repeated!r} occurs twice; {_BEGINS}", line=line)
    if "doc_id" in names:
        return
    hint = ""
    if has_choices:
        hint = _LIST_HINT if len(names) == 1 else _COLUMN_HINT
    if has_choices and len(names) == 1 and ";" in names[0]:
        # With two usual names among them, the semicolon would have been found.
        names, hint = names[0].split(";"), _COLUMNS_HINT
    came = shorten(", ".join(filter(None, names)))
    raise DataError(path, f"expected a column doc_id, got {came}; {_BEGINS}{hint}", line=line)


def _label_column(path: Path, columns: list[str], by: str) -> str:
    """Return the column of labels that `by` names; refuse one that is missing or has a role."""
    candidates = [name for name in columns if name not in ("doc_id", "origin", LINE_COLUMN)]
    label = label_column(by, candidates)
    if label == LENGTH != by and label not in candidates:
        raise UserError(
            f"--by {by} needs texts: name a collection DIR, without --groups (a column of "
            "numbers can be divided too, such as year:3)"
        )
    if label in (*TAKEN, "origin", "doc_id"):
        valid = ", ".join(candidates) or "none"
        raise UserError(f"cannot group by {label!r} (valid: {valid})")
    if label not in candidates:
        message = str(unknown("column", label, candidates))
        raise DataError(path, f"{message}; choose the column of labels with --by (by=)")
    return label


def read_delimited(
    path: Path, separator: str, label_file: LabelFile | None = None, *, comments: int = 0
) -> pl.DataFrame:
    """Read a table of strings with ``doc_id`` and the line of each row (`LINE_COLUMN`).

    A `label_file` may name the columns, or say that the file is a bare list.
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
    """Content of each column; empty for a column to skip."""
    is_row: bool
    """Whether the line is a row already."""


def _header(path: Path, rows: pl.DataFrame, label_file: LabelFile | None) -> _Header:
    """Read the columns from a table's first row, or take them from the user."""
    fields = rows["fields"][0].to_list()
    cells = [str(name).strip() for name in fields]
    if label_file is None:
        _require_names(path, cells, rows[LINE_COLUMN][0], has_choices=False)
        return _Header(fields=fields, names=cells, is_row=False)
    is_headless = DataFile(path=path, columns=label_file.columns).is_headless
    is_bare = bool(label_file.rest) and not label_file.columns and len(cells) == 1
    columns = numbered_names(cells) if is_headless else cells
    names = ["doc_id"] if is_bare else label_file.rename_columns(columns)
    _require_names(path, names, rows[LINE_COLUMN][0])
    is_row = is_headless or (is_bare and cells[0].lower() not in _ID_HEADERS)
    return _Header(fields=fields, names=names, is_row=is_row)


def _named_columns(
    path: Path, rows: pl.DataFrame, names: Sequence[str], separator: str
) -> pl.DataFrame:
    """Return rows of fields as columns; `DataError` for a row with another number of fields."""
    wrong = rows.filter(pl.col("fields").list.len() != len(names))
    if wrong.height:
        line, fields = wrong.row(0)
        expected = counted(len(names), "field", "fields")
        message = f"expected {expected} as in the first line, got {len(fields)}"
        raise DataError(path, f"{message}: {shorten(separator.join(fields))}", line=line)
    columns = dict[str, pl.Expr]()
    for number, name in enumerate(names):
        if name and name not in TAKEN:
            columns[name] = pl.col("fields").list.get(number)
    return rows.select(LINE_COLUMN, **columns)


def _plain_columns(label_file: LabelFile, frame: pl.DataFrame, path: Path) -> pl.DataFrame:
    """Rename columns by their content, and drop those that are nested or taken."""
    columns = [
        column
        for column in frame.iter_columns()
        if not column.dtype.is_nested() and column.dtype != pl.Duration
    ]
    names = label_file.rename_columns([column.name for column in columns])
    _require_names(path, names, None)
    plain = list[pl.Series]()
    for column, name in zip(columns, names, strict=True):
        if not name or name in TAKEN:
            continue
        if column.dtype.is_temporal():
            column = column.cast(pl.String)
        elif column.dtype.is_float():
            column = column.fill_nan(None)
        plain.append(column.alias(name))
    return pl.DataFrame(plain)


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
    """Drop repeated rows, and refuse rows of one key that differ.

    `names` are the file's names of columns, for the message.
    """
    if frame[key].n_unique() == frame.height:
        return frame
    values = [name for name in frame.columns if name not in (key, LINE_COLUMN)]
    frame = frame.unique([key, *values], keep="first", maintain_order=True)
    repeated = frame.filter(~pl.col(key).is_first_distinct())
    if not repeated.height:
        return frame
    second = repeated.row(0, named=True)
    first = frame.filter(pl.col(key) == second[key]).row(0, named=True)
    name = next(name for name in values if first[name] != second[name])
    first_line = f" (line {first[LINE_COLUMN]})" if LINE_COLUMN in first else ""
    both = f"{first[name]!r}{first_line} and {second[name]!r}"
    message = f"{noun} {second[key]!r} has two values of {names.get(name, name)!r}: {both}{hint}"
    raise DataError(path, message, line=second.get(LINE_COLUMN))
