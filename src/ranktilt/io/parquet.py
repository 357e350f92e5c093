"""Parquet as public data sets hold it: rows of documents and queries, and judgments of Parquet or JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from ranktilt.errors import DataError, counted
from ranktilt.io.columns import whole_or_fractions
from ranktilt.io.files import sha256
from ranktilt.io.jsonl import SWAP, json_objects
from ranktilt.io.texts import AT_ONCE, LARGE, kept_texts
from ranktilt.progress import report

PARQUET = ".parquet"
JSON_COLUMNS = "ranktilt.json"
"""Key of a file's metadata: which of its columns of bytes are raw JSON."""
_TEXTS = ("text", "title")
_JUDGMENT = {
    "query_id": ("query-id", "query_id", "qid"),
    "doc_id": ("corpus-id", "corpus_id", "doc_id", "docid"),
    "grade": ("score", "relevance", "grade", "label"),
}


def read_parquet(path: Path, *, strings: tuple[str, ...] = (), mapped: bool | None = None) -> pl.DataFrame:
    """Read documents or queries from a Parquet file, as `ranktilt.io.jsonl.read_jsonl` does from JSON lines.

    The id's column is ``_id`` or ``id``; lists and structures are Binary columns of raw JSON. With `mapped`, by default
    of a large file, texts are never held all at once; see `ranktilt.io.texts`.
    """
    table = _with_mapped_texts(path) if (is_large([path]) if mapped is None else mapped) else _rows_of(path)
    named = "id" if "id" in table.columns and "_id" not in table.columns else "_id"
    _require(path, table, {"_id": (named,), "text": ("text",)})
    if named == "_id":
        table = table.rename({name: SWAP[name] for name in table.columns if name in SWAP})
    table = table.with_columns(_plain(path, table["id"], "_id"))
    for name in ("text", *strings):
        if name in table.columns and table[name].dtype not in (pl.String, pl.Null):
            raise DataError(path, f"expected {name} to be a string, got {table[name].dtype}")
    _complete(path, table, {"id": "_id", "text": "text"}, pl.int_range(1, table.height + 1, eager=True))
    repeated = table.filter(pl.col("id").is_first_distinct().not_())
    if repeated.height:
        raise DataError(path, f"_id {repeated['id'][0]!r} came before; ids must be unique")
    raw = [_raw(s) for s in table.iter_columns() if s.dtype.is_nested() or s.dtype.is_temporal()]
    return table.with_columns(raw).select("id", "text", pl.exclude("id", "text"))


def is_large(files: Iterable[Path]) -> bool:
    """Whether the texts of these Parquet files are worth mapping; packed they take a fourth or so."""
    return sum(file.stat().st_size for file in files if file.is_file()) >= LARGE // 4


def _with_mapped_texts(path: Path) -> pl.DataFrame:
    """All columns of a file; those of texts mapped, and read from the file itself the first time only."""
    columns = schema_of(path)
    texts = [name for name in _TEXTS if columns.get(name) == pl.String]
    table = _rows_of(path, columns=[name for name in columns if name not in texts])
    if not texts:
        return table

    def parts() -> Iterator[dict[str, pl.Series]]:
        for start in range(0, table.height, AT_ONCE):
            part = read_table(path, columns=texts, rows=(start, AT_ONCE))
            if "text" in texts:
                _complete(path, part, {"text": "text"}, pl.int_range(start + 1, start + part.height + 1, eager=True))
            yield {name: part[name].cast(pl.String).fill_null("") for name in texts}

    return table.with_columns(**kept_texts(sha256(path), {"file": str(path.absolute())}, parts))


def schema_of(path: Path) -> dict[str, pl.DataType]:
    """Columns of a Parquet file and their types; `DataError` for what is none."""
    with _as_parquet(path):
        return dict(pl.read_parquet_schema(path))


def read_judgments(path: Path) -> pl.DataFrame:
    """Read judgments from a Parquet file or JSON lines with ``query-id``, ``corpus-id`` and ``score``.

    As `ranktilt.io.qrels.read_qrels` gives them; ``line`` is the number of the line or row, from 1.
    """
    table, lines = json_rows(path) if path.suffix != PARQUET else (_rows_of(path), None)
    found = _require(path, table, _JUDGMENT)
    lines = pl.int_range(1, table.height + 1, eager=True) if lines is None else lines
    table = table.select(*(pl.col(column).alias(name) for name, column in found.items()), line=lines)
    table = table.with_columns(_plain(path, table[name], found[name]) for name in ("query_id", "doc_id"))
    _complete(path, table, found, table["line"])
    grade = whole_or_fractions(table["grade"])
    bad = table.filter(grade.is_null())
    if bad.height:
        line, raw = bad["line"][0], bad["grade"][0]
        raise DataError(path, f"expected a number as {found['grade']}, got {raw!r}", line=line)
    return table.with_columns(grade.alias("grade"))


def read_table(path: Path, *, columns: list[str] | None = None, rows: tuple[int, int] | None = None) -> pl.DataFrame:
    """Read a Parquet file's columns of texts, numbers, truth values, times, lists and structures.

    Bytes that are UTF-8 are text, which some writers keep so; columns of other kinds are passed over. A file that is
    no Parquet, or a damaged one, is a `DataError`. Only some columns, or some rows (first and number), if these are
    named.
    """
    if rows is None:
        report(f"reading {path.name}", 0, 1)
    with _as_parquet(path):
        if rows is None:
            table = pl.read_parquet(path, glob=False, columns=columns)
        else:
            table = pl.scan_parquet(path, glob=False).select(columns or pl.all()).slice(*rows).collect()
        raw = json.loads(pl.read_parquet_metadata(path).get(JSON_COLUMNS, "[]"))
    if rows is None:
        report(f"reading {path.name}", 1, 1)
    found = (series if series.name in raw else _readable(series) for series in table.iter_columns())
    return pl.DataFrame([series for series in found if series is not None])


@contextmanager
def _as_parquet(path: Path) -> Iterator[None]:
    """Turn what is wrong with a file into one line."""
    try:
        yield
    except (OSError, ValueError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise DataError(path, f"cannot be read as Parquet: {reason}; fetch it again") from error


def _readable(series: pl.Series) -> pl.Series | None:
    """A column in a kind that is read here; None for any other."""
    kind = series.dtype
    try:
        if kind == pl.Binary or isinstance(kind, pl.Categorical | pl.Enum):
            return series.cast(pl.String)
        if kind.is_decimal():
            return series.cast(pl.Float64)
    except pl.exceptions.PolarsError:  # bytes of another kind
        return None
    known = kind in (pl.String, pl.Boolean, pl.Null) or kind.is_nested() or kind.is_temporal() or kind.is_float()
    whole = kind.is_integer() and series.cast(pl.Int64, strict=False).null_count() == series.null_count()
    return series if known or whole else None


def _rows_of(path: Path, *, columns: list[str] | None = None) -> pl.DataFrame:
    table = read_table(path, columns=columns)
    if not table.height:
        raise DataError(path, "the file is empty")
    return table


def json_rows(path: Path) -> tuple[pl.DataFrame, pl.Series]:
    """Read the objects of JSON lines, each value as text, and the numbers of their lines."""
    lines, rows = zip(*json_objects(path), strict=True)
    try:
        return text_table(rows), pl.Series(lines, dtype=pl.Int64)
    except TypeError as error:  # nested too deeply
        raise DataError(path, f"cannot be read as JSON: {error}") from error


def text_table(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Make a table of JSON objects, each value as text."""
    names = dict.fromkeys(name for row in rows for name in row)
    return pl.DataFrame({name: pl.Series([_cell(row.get(name)) for row in rows], dtype=pl.String) for name in names})


def _cell(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else orjson.dumps(value).decode()


def _require(path: Path, table: pl.DataFrame, wanted: dict[str, tuple[str, ...]]) -> dict[str, str]:
    """The column that holds each wanted thing."""
    found = {name: next((c for c in names if c in table.columns), "") for name, names in wanted.items()}
    missing = [wanted[name][0] for name, column in found.items() if not column]
    if missing:
        came = ", ".join(table.columns)
        noun = "column" if len(missing) == 1 else "columns"
        raise DataError(path, f"expected the {noun} {' and '.join(missing)}, got {came or 'none'}")
    return found


def _plain(path: Path, ids: pl.Series, name: str) -> pl.Series:
    if not (ids.dtype == pl.String or ids.dtype.is_integer()):
        raise DataError(path, f"expected {name} to be strings or whole numbers, got {ids.dtype}")
    return ids.cast(pl.String)


def _complete(path: Path, table: pl.DataFrame, columns: dict[str, str], lines: pl.Series) -> None:
    for name, shown in columns.items():
        blank = table[name].is_null()
        if name.endswith("id"):
            blank = blank | (table[name] == "")
        if blank.any():
            raise DataError(
                path, f"{counted(int(blank.sum()), 'row', 'rows')} without {shown}", line=lines.filter(blank)[0]
            )


def _raw(series: pl.Series) -> pl.Series:
    values = [None if v is None else orjson.dumps(v, default=str) for v in series.to_list()]
    return pl.Series(series.name, values, dtype=pl.Binary)
