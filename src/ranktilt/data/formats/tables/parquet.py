"""Read documents, queries and judgments from Parquet, and tables from records of JSON.

A large corpus may consist of several Parquet files, its *parts*. Texts of large files are *mapped*
into memory: the operating system reads them when they are used.
"""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from ranktilt.data.formats.ids import id_texts
from ranktilt.data.formats.jsonl import SWAPPED_NAMES, json_objects, stack
from ranktilt.data.formats.notation import value_at
from ranktilt.data.formats.tables.columns import whole_or_fractions
from ranktilt.data.texts import DOCUMENTS_AT_ONCE, LARGE_BYTES, mapped_texts
from ranktilt.errors import DataError, UserError, counted, error_in_file, shorten
from ranktilt.progress import report

PARQUET = ".parquet"
"""Ending of the files."""
JSON_COLUMNS = "ranktilt.json"
"""Key of a file's metadata: the names of its columns of bytes that are raw JSON."""
_INEXACT_FROM = 2**53
"""Number from which on two whole numbers may have the same float."""
_TEXT_COLUMNS = ("text", "title")
"""Columns whose texts are mapped."""
_JUDGMENT_COLUMNS = {
    "query_id": ("query-id", "query_id", "qid"),
    "doc_id": ("corpus-id", "corpus_id", "doc_id", "docid"),
    "grade": ("score", "relevance", "grade", "label"),
}
"""Possible names in a file of each column of judgments."""


def read_parquet(
    path: Path, *, strings: tuple[str, ...] = (), mapped: bool | None = None
) -> pl.DataFrame:
    """Read documents or queries from a Parquet file, as `jsonl.read_jsonl` does from JSON lines.

    Parameters
    ----------
    path : Path
        The file.
    strings : tuple of str, optional
        Columns that must be strings, besides ``text``.
    mapped : bool, optional
        Whether to map the texts into memory; by default the texts of large files are.
    """
    is_mapped = is_large([path]) if mapped is None else mapped
    table = _with_mapped_texts(path) if is_mapped else _rows_of(path)
    table = _with_id_column(path, table)
    for name in ("text", *strings):
        if name in table.columns and table[name].dtype not in (pl.String, pl.Null):
            raise DataError(path, f"expected {name} to be a string, got {table[name].dtype}")
    rows = pl.int_range(1, table.height + 1, eager=True)
    _require_values(path, table, {"id": "_id", "text": "text"}, rows)
    repeated = table.filter(pl.col("id").is_first_distinct().not_())
    if repeated.height:
        raise DataError(path, f"_id {repeated['id'][0]!r} occurs twice; ids must be unique")
    json_columns = [
        _raw_json(column)
        for column in table.iter_columns()
        if column.dtype.is_nested() or column.dtype.is_temporal()
    ]
    return table.with_columns(json_columns).select("id", "text", pl.exclude("id", "text"))


def _with_id_column(path: Path, table: pl.DataFrame) -> pl.DataFrame:
    """Call the column of ids ``id``, which files call ``_id`` or ``id``, and read it as strings."""
    id_column = "id" if "id" in table.columns and "_id" not in table.columns else "_id"
    _require_columns(path, table, {"_id": (id_column,), "text": ("text",)})
    if id_column == "_id":
        table = table.rename(
            {name: SWAPPED_NAMES[name] for name in table.columns if name in SWAPPED_NAMES}
        )
    return table.with_columns(_text_ids(path, table["id"], "_id"))


def is_large(files: Iterable[Path]) -> bool:
    """Return whether Parquet files have so much text that it is mapped."""
    # Parquet packs texts to about a fourth of their size.
    return sum(file.stat().st_size for file in files if file.is_file()) >= LARGE_BYTES // 4


def _with_mapped_texts(path: Path) -> pl.DataFrame:
    """Return all columns of a file, with the texts mapped."""
    columns = schema_of(path)
    text_columns = [name for name in _TEXT_COLUMNS if columns.get(name) == pl.String]
    table = _rows_of(path, columns=[name for name in columns if name not in text_columns])
    if not text_columns:
        return table

    def text_blocks() -> Iterator[dict[str, pl.Series]]:
        for start in range(0, table.height, DOCUMENTS_AT_ONCE):
            block = read_table(path, columns=text_columns, rows=(start, DOCUMENTS_AT_ONCE))
            if "text" in text_columns:
                row_numbers = pl.int_range(start + 1, start + block.height + 1, eager=True)
                _require_values(path, block, {"text": "text"}, row_numbers)
            yield {name: block[name].cast(pl.String).fill_null("") for name in text_columns}

    return table.with_columns(**mapped_texts(text_blocks))


def schema_of(path: Path) -> dict[str, pl.DataType]:
    """Return the columns of a Parquet file with their types; `DataError` for another file."""
    with as_parquet(path):
        return dict(pl.read_parquet_schema(path))


def read_judgments(path: Path) -> pl.DataFrame:
    """Read ``query_id``, ``doc_id``, ``grade`` and ``line`` from Parquet or JSON lines.

    In Parquet, ``line`` is the number of the row, from 1.
    """
    id_names = (*_JUDGMENT_COLUMNS["query_id"], *_JUDGMENT_COLUMNS["doc_id"])
    if path.suffix == PARQUET:
        table = _rows_of(path)
        lines = pl.int_range(1, table.height + 1, eager=True)
    else:
        table, lines = json_rows(path, id_names)
    names_in_file = _require_columns(path, table, _JUDGMENT_COLUMNS)
    columns = {name: pl.col(name_in_file) for name, name_in_file in names_in_file.items()}
    table = table.select(**columns, line=lines)
    table = table.with_columns(
        _text_ids(path, table[name], names_in_file[name]) for name in ("query_id", "doc_id")
    )
    _require_values(path, table, names_in_file, table["line"])
    grades = whole_or_fractions(table["grade"])
    wrong_rows = table.filter(grades.is_null())
    if wrong_rows.height:
        line, raw_grade = wrong_rows["line"][0], wrong_rows["grade"][0]
        message = f"expected a number as {names_in_file['grade']}, got {raw_grade!r}"
        raise DataError(path, message, line=line)
    return table.with_columns(grades.alias("grade"))


def read_table(
    path: Path, *, columns: list[str] | None = None, rows: tuple[int, int] | None = None
) -> pl.DataFrame:
    """Read a Parquet file.

    Parameters
    ----------
    path : Path
        The file.
    columns : list of str, optional
        Columns to read; by default all.
    rows : tuple of int, optional
        Index of the first row to read, and number of rows; by default all rows.

    Returns
    -------
    polars.DataFrame
        Columns of texts, numbers, truth values, times and nested values. Bytes of UTF-8 are read as
        texts. Columns of other types are left out.
    """
    if rows is None:
        report(f"reading {path.name}", 0, 1)
    with as_parquet(path):
        if rows is None:
            table = pl.read_parquet(path, glob=False, columns=columns)
        else:
            scan = pl.scan_parquet(path, glob=False).select(columns or pl.all())
            table = scan.slice(*rows).collect()
        json_columns = json.loads(pl.read_parquet_metadata(path).get(JSON_COLUMNS, "[]"))
    if rows is None:
        report(f"reading {path.name}", 1, 1)
    readable = list[pl.Series]()
    for column in table.iter_columns():
        series = column if column.name in json_columns else _readable(column)
        if series is not None:
            readable.append(series)
    return pl.DataFrame(readable)


@contextmanager
def as_parquet(path: Path) -> Iterator[None]:
    """Turn any exception that reading a Parquet file raises into a `DataError`.

    Put the code that reads the file `path` into its ``with`` block.
    """
    try:
        yield
    except (OSError, ValueError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise DataError(path, f"cannot be read as Parquet: {reason}; fetch it again") from error


def _readable(series: pl.Series) -> pl.Series | None:
    """Return a column in a type that is read here; None for any other."""
    kind = series.dtype
    try:
        if kind == pl.Binary or isinstance(kind, pl.Categorical | pl.Enum):
            return series.cast(pl.String)
        if kind.is_decimal():
            return series.cast(pl.Float64)
    except pl.exceptions.PolarsError:  # bytes that are no UTF-8
        return None
    if kind.is_integer():
        fits = series.cast(pl.Int64, strict=False).null_count() == series.null_count()
        return series if fits else None
    is_plain = kind in (pl.String, pl.Boolean, pl.Null) or kind.is_float()
    return series if is_plain or kind.is_nested() or kind.is_temporal() else None


def _rows_of(path: Path, *, columns: list[str] | None = None) -> pl.DataFrame:
    """Read a file; `DataError` where it is empty."""
    table = read_table(path, columns=columns)
    if not table.height:
        raise DataError(path, "the file is empty")
    return table


def json_rows(
    path: Path, ids: Collection[str], *, dotted: Iterable[str] = ()
) -> tuple[pl.DataFrame, pl.Series]:
    """Read the objects of JSON lines as `json_table` does, and the numbers of their lines."""
    lines, rows = zip(*json_objects(path), strict=True)
    table = json_table(path, rows, ids, dotted=dotted, lines=lines)
    return table, pl.Series(lines, dtype=pl.Int64)


def json_table(
    path: Path,
    rows: Sequence[Mapping[str, Any]],
    ids: Collection[str],
    *,
    dotted: Iterable[str] = (),
    lines: Sequence[int] = (),
) -> pl.DataFrame:
    """Return records of JSON as a table of texts.

    Parameters
    ----------
    path : Path
        File of the records, for errors.
    rows : sequence of mapping
        The records.
    ids : collection of str
        Fields that hold ids, in which 1.0 is ``1``.
    dotted : iterable of str, optional
        Paths of nested values, such as ``document.url``, that get columns too.
    lines : sequence of int, optional
        Line of each record, for errors.
    """
    names = dict.fromkeys(chain.from_iterable(rows))
    nested_paths = [dotted_path for dotted_path in dotted if "." in dotted_path]
    columns = dict[str, pl.Series]()
    try:
        for name in dict.fromkeys([*names, *nested_paths]):
            values = _field_values(rows, name, is_key=name in names)
            to_text = _cell_text
            if name in ids:
                _require_ids(path, name, values, lines)
                to_text = _id_text
            columns[name] = pl.Series(list(map(to_text, values)), dtype=pl.String)
    except TypeError as error:  # nested too deeply
        raise DataError(path, f"cannot be read as JSON: {error}") from error
    return pl.DataFrame(columns)


def _field_values(rows: Sequence[Mapping[str, Any]], name: str, *, is_key: bool) -> list[Any]:
    """Return the value of a field in each record; `name` is its key or its dotted path."""
    return [row.get(name) if is_key else value_at(row, name) for row in rows]


def _require_ids(path: Path, name: str, values: Sequence[Any], lines: Sequence[int]) -> None:
    """Refuse values that cannot be ids: lists, objects and truth values."""
    if not {list, dict, bool} & set(map(type, values)):
        return
    row = next(row for row, value in enumerate(values) if type(value) in (list, dict, bool))
    message = f"expected a string or a whole number as {name}, got {shorten(values[row])}"
    raise DataError(path, message, line=lines[row] if lines else None)


def _cell_text(value: Any) -> str | None:
    """Return a text as it is, and any other value as JSON."""
    return value if value is None or isinstance(value, str) else orjson.dumps(value).decode()


def _id_text(value: Any) -> str | None:
    """Return the value of an id as text."""
    # pandas writes 1 as 1.0 if a value of the column is missing.
    if isinstance(value, float) and value.is_integer() and abs(value) < _INEXACT_FROM:
        return str(int(value))
    return _cell_text(value)


def _require_columns(
    path: Path, table: pl.DataFrame, known_names: dict[str, tuple[str, ...]]
) -> dict[str, str]:
    """Return the name that each column has in a table: the first of its known names.

    `DataError` if the table lacks a column.
    """
    names_in_file, missing = dict[str, str](), list[str]()
    for column, names in known_names.items():
        present = [name for name in names if name in table.columns]
        if present:
            names_in_file[column] = present[0]
        else:
            missing.append(names[0])
    if missing:
        came = ", ".join(table.columns)
        noun = "column" if len(missing) == 1 else "columns"
        raise DataError(path, f"expected the {noun} {' and '.join(missing)}, got {came or 'none'}")
    return names_in_file


def _text_ids(path: Path, ids: pl.Series, name: str) -> pl.Series:
    """Return a column of ids as texts; errors name the file and the column."""
    try:
        return id_texts(ids, f"column {name!r}")
    except UserError as error:
        raise error_in_file(path, error) from error


def _require_values(
    path: Path, table: pl.DataFrame, columns: dict[str, str], lines: pl.Series
) -> None:
    """Refuse rows without a value in a column.

    `columns` has the columns to check, with their names in the file; `lines` has the line of each
    row, for errors.
    """
    for name, name_in_file in columns.items():
        is_blank = table[name].is_null()
        if name.endswith("id"):
            is_blank = is_blank | (table[name] == "")
        if is_blank.any():
            rows = counted(int(is_blank.sum()), "row", "rows")
            line = lines.filter(is_blank)[0]
            raise DataError(path, f"{rows} without {name_in_file}", line=line)


def _raw_json(series: pl.Series) -> pl.Series:
    """Return a column as raw JSON."""
    documents = [
        None if value is None else orjson.dumps(value, default=str) for value in series.to_list()
    ]
    return pl.Series(series.name, documents, dtype=pl.Binary)


_NUMBERED_PART = re.compile(r"-\d+-of-(?P<count>\d+)$")
"""End of the name of a part that says how many parts there are: ``part-00000-of-00003``."""


def part_files(folder: Path) -> list[Path]:
    """Return the parts of a corpus in a folder, ordered by the numbers in their names.

    `DataError` if there are not as many as their names say.
    """
    parts = [
        path
        for path in folder.iterdir()
        if path.name.endswith(PARQUET) and not path.name.startswith(".")
    ]
    parts.sort(key=_numbers_as_numbers)
    for part in parts:
        match = _NUMBERED_PART.search(part.stem)
        if match and int(match["count"]) != len(parts):
            expected = f"expected {int(match['count']):,} parts by their names"
            raise DataError(folder, f"{expected}, got {len(parts):,}")
    return parts


def _numbers_as_numbers(path: Path) -> list[tuple[str, int]]:
    """Return a sort key that puts ``part-2`` before ``part-10``."""
    return [(word, int(number or 0)) for word, number in re.findall(r"(\D*)(\d*)", path.stem)]


def read_parts(folder: Path, *, strings: tuple[str, ...] = ()) -> pl.DataFrame:
    """Read all parts of a corpus as one table.

    `DataError` if a part has other columns than the first, or an id comes twice. Columns named in
    `strings` must be strings.
    """
    files = part_files(folder)
    first_columns = _described_columns(files[0])
    for file in files[1:]:
        columns = _described_columns(file)
        if columns != first_columns:
            expected = f"expected the columns {first_columns}, as in {files[0].name}"
            raise DataError(file, f"{expected}, got {columns or 'none'}")
    mapped = is_large(files)
    table = stack([read_parquet(file, strings=strings, mapped=mapped) for file in files])
    repeated = table["id"].is_first_distinct().not_().arg_max()
    if repeated is not None and table["id"].n_unique() < table.height:
        raise DataError(folder, f"_id {table['id'][repeated]!r} occurs twice; ids must be unique")
    return table


def _described_columns(file: Path) -> str:
    """Return the names of a file's columns with their types, for a message."""
    return ", ".join(f"{name} {dtype}" for name, dtype in sorted(schema_of(file).items()))


def part_contents(docs: pl.DataFrame, size: int) -> dict[str, Callable[[], Iterator[bytes]]]:
    """Return the content of the parts of a corpus by file name; a part has `size` documents.

    The content is a function that yields bytes, so that each part is made when it is written.
    """
    count = max(math.ceil(docs.height / size), 1)
    contents = dict[str, Callable[[], Iterator[bytes]]]()
    for number in range(count):
        name = f"part-{number:05}-of-{count:05}{PARQUET}"
        contents[name] = partial(_parquet_bytes, docs.slice(number * size, size))
    return contents


def _parquet_bytes(docs: pl.DataFrame) -> Iterator[bytes]:
    """Yield the bytes of a Parquet file."""
    names = {name: SWAPPED_NAMES[name] for name in docs.columns if name in SWAPPED_NAMES}
    table = docs.rename(names)
    # The metadata name the columns of raw JSON, because Parquet has the same type for any bytes.
    json_columns = [name for name, dtype in docs.schema.items() if dtype == pl.Binary]
    stream = io.BytesIO()
    table.write_parquet(
        stream, row_group_size=DOCUMENTS_AT_ONCE, metadata={JSON_COLUMNS: json.dumps(json_columns)}
    )
    yield stream.getvalue()
