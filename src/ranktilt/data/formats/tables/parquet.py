"""Read Parquet of public data sets: documents, queries and judgments; and tables of JSON."""

from __future__ import annotations

import io
import json
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
from ranktilt.errors import DataError, UserError, counted, located, shorten
from ranktilt.progress import report

PARQUET = ".parquet"
"""Ending of the files."""
JSON_COLUMNS = "ranktilt.json"
"""Key of a file's metadata: the names of its columns of bytes that are raw JSON."""
_EXACT = 2**53
"""Largest float of which every whole number below is exact."""
_TEXTS = ("text", "title")
"""Columns whose texts stay on disk until they are read."""
_JUDGMENT = {
    "query_id": ("query-id", "query_id", "qid"),
    "doc_id": ("corpus-id", "corpus_id", "doc_id", "docid"),
    "grade": ("score", "relevance", "grade", "label"),
}
"""Names of the columns of judgments."""


def read_parquet(
    path: Path, *, strings: tuple[str, ...] = (), mapped: bool | None = None
) -> pl.DataFrame:
    """Read documents or queries from a Parquet file as `read_jsonl` does JSON lines.

    With `mapped` texts are never held in memory; by default those of large files.
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
    raw = [
        _raw_json(column)
        for column in table.iter_columns()
        if column.dtype.is_nested() or column.dtype.is_temporal()
    ]
    return table.with_columns(raw).select("id", "text", pl.exclude("id", "text"))


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
    # Packed texts take about a fourth of their size.
    return sum(file.stat().st_size for file in files if file.is_file()) >= LARGE_BYTES // 4


def _with_mapped_texts(path: Path) -> pl.DataFrame:
    """Return all columns of a file, with the texts mapped."""
    columns = schema_of(path)
    texts = [name for name in _TEXTS if columns.get(name) == pl.String]
    table = _rows_of(path, columns=[name for name in columns if name not in texts])
    if not texts:
        return table

    def parts() -> Iterator[dict[str, pl.Series]]:
        for start in range(0, table.height, DOCUMENTS_AT_ONCE):
            part = read_table(path, columns=texts, rows=(start, DOCUMENTS_AT_ONCE))
            if "text" in texts:
                row_numbers = pl.int_range(start + 1, start + part.height + 1, eager=True)
                _require_values(path, part, {"text": "text"}, row_numbers)
            yield {name: part[name].cast(pl.String).fill_null("") for name in texts}

    return table.with_columns(**mapped_texts(parts))


def schema_of(path: Path) -> dict[str, pl.DataType]:
    """Return the columns of a Parquet file with their types; `DataError` for another file."""
    with as_parquet(path):
        return dict(pl.read_parquet_schema(path))


def read_judgments(path: Path) -> pl.DataFrame:
    """Read judgments as `judgments.qrels.read_qrels` does, from Parquet or JSON lines.

    ``line`` may be a row.
    """
    ids = (*_JUDGMENT["query_id"], *_JUDGMENT["doc_id"])
    if path.suffix == PARQUET:
        table = _rows_of(path)
        lines = pl.int_range(1, table.height + 1, eager=True)
    else:
        table, lines = json_rows(path, ids)
    names = _require_columns(path, table, _JUDGMENT)
    table = table.select(**{name: pl.col(column) for name, column in names.items()}, line=lines)
    table = table.with_columns(
        _text_ids(path, table[name], names[name]) for name in ("query_id", "doc_id")
    )
    _require_values(path, table, names, table["line"])
    grade = whole_or_fractions(table["grade"])
    bad = table.filter(grade.is_null())
    if bad.height:
        line, raw = bad["line"][0], bad["grade"][0]
        raise DataError(path, f"expected a number as {names['grade']}, got {raw!r}", line=line)
    return table.with_columns(grade.alias("grade"))


def read_table(
    path: Path, *, columns: list[str] | None = None, rows: tuple[int, int] | None = None
) -> pl.DataFrame:
    """Read columns and rows (first, number) of a Parquet file.

    UTF-8 in bytes is text; columns of types that cannot be used are left out.
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
    """Turn any exception that reading a Parquet file raises into a `DataError`."""
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
    """Read the objects of JSON lines, each value as text, and the numbers of their lines.

    In columns named in `ids`, 1.0 is ``1``.
    """
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
    """Return records of JSON as a table of texts; `dotted` are paths of further, nested values."""
    names = dict.fromkeys(chain.from_iterable(rows))
    nested = [dotted_path for dotted_path in dotted if "." in dotted_path]
    columns = dict[str, pl.Series]()
    try:
        for name in dict.fromkeys([*names, *nested]):
            values = _field_values(rows, name, is_key=name in names)
            as_text = _cell
            if name in ids:
                _require_ids(path, name, values, lines)
                as_text = _id_cell
            columns[name] = pl.Series(list(map(as_text, values)), dtype=pl.String)
    except TypeError as error:  # nested too deeply
        raise DataError(path, f"cannot be read as JSON: {error}") from error
    return pl.DataFrame(columns)


def _field_values(rows: Sequence[Mapping[str, Any]], name: str, *, is_key: bool) -> list[Any]:
    """Return the values of a field, by its key or its path."""
    return [row.get(name) if is_key else value_at(row, name) for row in rows]


def _require_ids(path: Path, name: str, values: Sequence[Any], lines: Sequence[int]) -> None:
    """Refuse values that cannot be ids: lists, objects and truth values."""
    if not {list, dict, bool} & set(map(type, values)):
        return
    row = next(row for row, value in enumerate(values) if type(value) in (list, dict, bool))
    message = f"expected a string or a whole number as {name}, got {shorten(values[row])}"
    raise DataError(path, message, line=lines[row] if lines else None)


def _cell(value: Any) -> str | None:
    """Return a value as text, or as JSON."""
    return value if value is None or isinstance(value, str) else orjson.dumps(value).decode()


def _id_cell(value: Any) -> str | None:
    """Return the value of an id as text."""
    # pandas writes 1 as 1.0 if a value of the column is missing.
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        return str(int(value))
    return _cell(value)


def _require_columns(
    path: Path, table: pl.DataFrame, known_names: dict[str, tuple[str, ...]]
) -> dict[str, str]:
    """Return the first known name of each column that a table has; `DataError` if it has none."""
    columns, missing = dict[str, str](), list[str]()
    for noun, names in known_names.items():
        present = [name for name in names if name in table.columns]
        if present:
            columns[noun] = present[0]
        else:
            missing.append(names[0])
    if missing:
        came = ", ".join(table.columns)
        noun = "column" if len(missing) == 1 else "columns"
        raise DataError(path, f"expected the {noun} {' and '.join(missing)}, got {came or 'none'}")
    return columns


def _text_ids(path: Path, ids: pl.Series, name: str) -> pl.Series:
    """Return a column of ids as texts; the error names the file."""
    try:
        return id_texts(ids, f"column {name!r}")
    except UserError as error:
        raise located(path, error) from error


def _require_values(
    path: Path, table: pl.DataFrame, columns: dict[str, str], lines: pl.Series
) -> None:
    """Refuse rows without a value in a column; `columns` has the file's name of each."""
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


_SHARD = re.compile(r"-\d+-of-(?P<count>\d+)$")
"""Name of a file that is one part of several."""


def part_files(folder: Path) -> list[Path]:
    """Return the parts of a corpus, ordered by the numbers in their names.

    `DataError` if one of ``-of-N`` is missing.
    """
    parts = [
        path
        for path in folder.iterdir()
        if path.name.endswith(PARQUET) and not path.name.startswith(".")
    ]
    parts.sort(key=_numbers_as_numbers)
    for part in parts:
        shard = _SHARD.search(part.stem)
        if shard and int(shard["count"]) != len(parts):
            expected = f"expected {int(shard['count']):,} parts by their names"
            raise DataError(folder, f"{expected}, got {len(parts):,}")
    return parts


def _numbers_as_numbers(path: Path) -> list[tuple[str, int]]:
    """Return a sort key that puts ``part-2`` before ``part-10``."""
    return [(word, int(number or 0)) for word, number in re.findall(r"(\D*)(\d*)", path.stem)]


def read_parts(folder: Path, *, strings: tuple[str, ...] = ()) -> pl.DataFrame:
    """Read all parts as one table: all have the columns of the first one, and no id comes twice."""
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
    """Name the columns of a file, with their types."""
    return ", ".join(f"{name} {kind}" for name, kind in sorted(schema_of(file).items()))


def part_contents(docs: pl.DataFrame, size: int) -> dict[str, Callable[[], Iterator[bytes]]]:
    """Return a corpus in parts of `size` documents, by file name; each is made when written."""
    count = max(-(-docs.height // size), 1)
    return {
        f"part-{number:05}-of-{count:05}{PARQUET}": partial(_part, docs.slice(number * size, size))
        for number in range(count)
    }


def _part(docs: pl.DataFrame) -> Iterator[bytes]:
    """Yield the bytes of a Parquet file."""
    table = docs.rename(
        {name: SWAPPED_NAMES[name] for name in docs.columns if name in SWAPPED_NAMES}
    )
    # The metadata name the columns of raw JSON, because Parquet has the same type for any bytes.
    json_columns = [name for name, kind in docs.schema.items() if kind == pl.Binary]
    stream = io.BytesIO()
    table.write_parquet(
        stream, row_group_size=DOCUMENTS_AT_ONCE, metadata={JSON_COLUMNS: json.dumps(json_columns)}
    )
    yield stream.getvalue()
