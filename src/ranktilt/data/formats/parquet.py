"""Parquet as public data sets hold it: rows of documents and queries, and judgments of Parquet or JSON lines."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from ranktilt.data.formats.columns import whole_or_fractions
from ranktilt.data.formats.ids import id_texts
from ranktilt.data.formats.jsonl import SWAP, json_objects, stack
from ranktilt.data.formats.notation import value_at
from ranktilt.data.texts import AT_ONCE, LARGE, aside
from ranktilt.errors import DataError, UserError, counted, located, shorten
from ranktilt.progress import report

PARQUET = ".parquet"
JSON_COLUMNS = "ranktilt.json"
"""Key of a file's metadata: which of its columns of bytes are raw JSON."""
_EXACT = 2**53
_TEXTS = ("text", "title")
_JUDGMENT = {
    "query_id": ("query-id", "query_id", "qid"),
    "doc_id": ("corpus-id", "corpus_id", "doc_id", "docid"),
    "grade": ("score", "relevance", "grade", "label"),
}


def read_parquet(
    path: Path, *, strings: tuple[str, ...] = (), mapped: bool | None = None
) -> pl.DataFrame:
    """Read documents or queries from a Parquet file as `read_jsonl` does JSON lines; `mapped` texts are never held."""
    table = (
        _with_mapped_texts(path)
        if (is_large([path]) if mapped is None else mapped)
        else _rows_of(path)
    )
    named = "id" if "id" in table.columns and "_id" not in table.columns else "_id"
    _require(path, table, {"_id": (named,), "text": ("text",)})
    if named == "_id":
        table = table.rename({name: SWAP[name] for name in table.columns if name in SWAP})
    table = table.with_columns(_plain(path, table["id"], "_id"))
    for name in ("text", *strings):
        if name in table.columns and table[name].dtype not in (pl.String, pl.Null):
            raise DataError(path, f"expected {name} to be a string, got {table[name].dtype}")
    _complete(
        path, table, {"id": "_id", "text": "text"}, pl.int_range(1, table.height + 1, eager=True)
    )
    repeated = table.filter(pl.col("id").is_first_distinct().not_())
    if repeated.height:
        raise DataError(path, f"_id {repeated['id'][0]!r} occurs twice; ids must be unique")
    raw = [_raw(s) for s in table.iter_columns() if s.dtype.is_nested() or s.dtype.is_temporal()]
    return table.with_columns(raw).select("id", "text", pl.exclude("id", "text"))


def is_large(files: Iterable[Path]) -> bool:
    """Whether the texts of these Parquet files are worth mapping; packed they take a fourth or so."""
    return sum(file.stat().st_size for file in files if file.is_file()) >= LARGE // 4


def _with_mapped_texts(path: Path) -> pl.DataFrame:
    """All columns of a file; those of texts mapped."""
    columns = schema_of(path)
    texts = [name for name in _TEXTS if columns.get(name) == pl.String]
    table = _rows_of(path, columns=[name for name in columns if name not in texts])
    if not texts:
        return table

    def parts() -> Iterator[dict[str, pl.Series]]:
        for start in range(0, table.height, AT_ONCE):
            part = read_table(path, columns=texts, rows=(start, AT_ONCE))
            if "text" in texts:
                _complete(
                    path,
                    part,
                    {"text": "text"},
                    pl.int_range(start + 1, start + part.height + 1, eager=True),
                )
            yield {name: part[name].cast(pl.String).fill_null("") for name in texts}

    return table.with_columns(**aside(parts))


def schema_of(path: Path) -> dict[str, pl.DataType]:
    """Columns of a Parquet file and their types; `DataError` for what is none."""
    with as_parquet(path):
        return dict(pl.read_parquet_schema(path))


def read_judgments(path: Path) -> pl.DataFrame:
    """Read judgments as `ranktilt.data.formats.qrels.read_qrels` does, from Parquet or JSON lines.

    ``line`` may be a row.
    """
    ids = (*_JUDGMENT["query_id"], *_JUDGMENT["doc_id"])
    table, lines = json_rows(path, ids) if path.suffix != PARQUET else (_rows_of(path), None)
    found = _require(path, table, _JUDGMENT)
    lines = pl.int_range(1, table.height + 1, eager=True) if lines is None else lines
    table = table.select(
        *(pl.col(column).alias(name) for name, column in found.items()), line=lines
    )
    table = table.with_columns(
        _plain(path, table[name], found[name]) for name in ("query_id", "doc_id")
    )
    _complete(path, table, found, table["line"])
    grade = whole_or_fractions(table["grade"])
    bad = table.filter(grade.is_null())
    if bad.height:
        line, raw = bad["line"][0], bad["grade"][0]
        raise DataError(path, f"expected a number as {found['grade']}, got {raw!r}", line=line)
    return table.with_columns(grade.alias("grade"))


def read_table(
    path: Path, *, columns: list[str] | None = None, rows: tuple[int, int] | None = None
) -> pl.DataFrame:
    """Read columns and rows (first, number) of a Parquet file; UTF-8 in bytes is text, other kinds are passed over."""
    if rows is None:
        report(f"reading {path.name}", 0, 1)
    with as_parquet(path):
        if rows is None:
            table = pl.read_parquet(path, glob=False, columns=columns)
        else:
            table = (
                pl.scan_parquet(path, glob=False).select(columns or pl.all()).slice(*rows).collect()
            )
        raw = json.loads(pl.read_parquet_metadata(path).get(JSON_COLUMNS, "[]"))
    if rows is None:
        report(f"reading {path.name}", 1, 1)
    found = (series if series.name in raw else _readable(series) for series in table.iter_columns())
    return pl.DataFrame([series for series in found if series is not None])


@contextmanager
def as_parquet(path: Path) -> Iterator[None]:
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
    known = (
        kind in (pl.String, pl.Boolean, pl.Null)
        or kind.is_nested()
        or kind.is_temporal()
        or kind.is_float()
    )
    whole = (
        kind.is_integer()
        and series.cast(pl.Int64, strict=False).null_count() == series.null_count()
    )
    return series if known or whole else None


def _rows_of(path: Path, *, columns: list[str] | None = None) -> pl.DataFrame:
    table = read_table(path, columns=columns)
    if not table.height:
        raise DataError(path, "the file is empty")
    return table


def json_rows(
    path: Path, ids: Collection[str], *, dotted: Iterable[str] = ()
) -> tuple[pl.DataFrame, pl.Series]:
    """Read the objects of JSON lines, each value as text, and the numbers of their lines; of `ids` 1.0 is ``1``."""
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
    """Return records of JSON as a table of texts; `dotted` are paths of nested values that are wanted, too."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    nested = [path for path in dotted if path not in names and "." in path]
    columns = dict[str, pl.Series]()
    try:
        for name in [*names, *nested]:
            values = [value_at(row, name) if name in nested else row.get(name) for row in rows]
            if name in ids:
                _require_ids(path, name, values, lines)
            as_text = _id_cell if name in ids else _cell
            columns[name] = pl.Series(list(map(as_text, values)), dtype=pl.String)
    except TypeError as error:  # nested too deeply
        raise DataError(path, f"cannot be read as JSON: {error}") from error
    return pl.DataFrame(columns)


def _require_ids(path: Path, name: str, values: Sequence[Any], lines: Sequence[int]) -> None:
    """Refuse what is no id: lists, objects and truth values."""
    if not {list, dict, bool} & set(map(type, values)):
        return
    row = next(row for row, value in enumerate(values) if type(value) in (list, dict, bool))
    message = f"expected a string or a whole number as {name}, got {shorten(values[row])}"
    raise DataError(path, message, line=lines[row] if lines else None)


def _cell(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else orjson.dumps(value).decode()


def _id_cell(value: Any) -> str | None:
    is_whole = isinstance(value, float) and value.is_integer() and abs(value) < _EXACT
    return (
        str(int(value)) if is_whole else _cell(value)
    )  # pandas writes 1 as 1.0 beside a missing value


def _require(path: Path, table: pl.DataFrame, wanted: dict[str, tuple[str, ...]]) -> dict[str, str]:
    """The column that holds each wanted thing."""
    found = {
        name: next((c for c in names if c in table.columns), "") for name, names in wanted.items()
    }
    missing = [wanted[name][0] for name, column in found.items() if not column]
    if missing:
        came = ", ".join(table.columns)
        noun = "column" if len(missing) == 1 else "columns"
        raise DataError(path, f"expected the {noun} {' and '.join(missing)}, got {came or 'none'}")
    return found


def _plain(path: Path, ids: pl.Series, name: str) -> pl.Series:
    try:
        return id_texts(ids, f"column {name!r}")
    except UserError as error:
        raise located(path, error) from error


def _complete(path: Path, table: pl.DataFrame, columns: dict[str, str], lines: pl.Series) -> None:
    for name, shown in columns.items():
        blank = table[name].is_null()
        if name.endswith("id"):
            blank = blank | (table[name] == "")
        if blank.any():
            raise DataError(
                path,
                f"{counted(int(blank.sum()), 'row', 'rows')} without {shown}",
                line=lines.filter(blank)[0],
            )


def _raw(series: pl.Series) -> pl.Series:
    values = [None if v is None else orjson.dumps(v, default=str) for v in series.to_list()]
    return pl.Series(series.name, values, dtype=pl.Binary)


_SHARD = re.compile(r"-(\d+)-of-(\d+)$")


def part_files(folder: Path) -> list[Path]:
    """The parts of a corpus, numbers in their names as numbers; `DataError` where one of ``-of-N`` is missing."""
    found = [p for p in folder.iterdir() if p.name.endswith(PARQUET) and not p.name.startswith(".")]
    found.sort(key=lambda p: [(word, int(n or 0)) for word, n in re.findall(r"(\D*)(\d*)", p.stem)])
    for match in filter(None, (_SHARD.search(p.stem) for p in found)):
        if int(match[2]) != len(found):
            raise DataError(
                folder, f"expected {int(match[2]):,} parts, as their names say, got {len(found):,}"
            )
    return found


def read_parts(folder: Path, *, strings: tuple[str, ...] = ()) -> pl.DataFrame:
    """Read all parts as one table: all have the columns of the first one, and no id comes twice."""
    files = part_files(folder)
    first, *others = (
        ", ".join(f"{name} {kind}" for name, kind in sorted(schema_of(file).items()))
        for file in files
    )
    for file, columns in zip(files[1:], others, strict=True):
        if columns != first:
            raise DataError(
                file,
                f"expected the columns {first}, as in {files[0].name}, got {columns or 'none'}",
            )
    mapped = is_large(files)
    table = stack([read_parquet(file, strings=strings, mapped=mapped) for file in files])
    repeated = table["id"].is_first_distinct().not_().arg_max()
    if repeated is not None and table["id"].n_unique() < table.height:
        raise DataError(folder, f"_id {table['id'][repeated]!r} occurs twice; ids must be unique")
    return table


def part_contents(docs: pl.DataFrame, size: int) -> dict[str, Callable[[], Iterator[bytes]]]:
    """Files of a corpus in parts of so many documents, by name; each is made only when it is written."""
    count = max(-(-docs.height // size), 1)
    return {
        f"part-{number:05}-of-{count:05}{PARQUET}": partial(_part, docs.slice(number * size, size))
        for number in range(count)
    }


def _part(docs: pl.DataFrame) -> Iterator[bytes]:
    """One Parquet file; columns of raw JSON are named in its metadata, for Parquet does not tell them from bytes."""
    raw = [name for name, kind in docs.schema.items() if kind == pl.Binary]
    named = docs.rename({name: SWAP[name] for name in docs.columns if name in SWAP})
    stream = io.BytesIO()
    named.write_parquet(stream, row_group_size=AT_ONCE, metadata={JSON_COLUMNS: json.dumps(raw)})
    yield stream.getvalue()
