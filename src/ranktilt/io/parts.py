"""A corpus in parts: Parquet files of one folder, read and written a few documents at a time."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import polars as pl

from ranktilt.errors import DataError
from ranktilt.io.jsonl import SWAP, stack
from ranktilt.io.parquet import JSON_COLUMNS, PARQUET, is_large, read_parquet, schema_of
from ranktilt.io.texts import AT_ONCE

_SHARD = re.compile(r"-(\d+)-of-(\d+)$")


def part_files(folder: Path) -> list[Path]:
    """The parts of a corpus, numbers in their names as numbers; `DataError` where one of ``-of-N`` is missing."""
    found = [p for p in folder.iterdir() if p.name.endswith(PARQUET) and not p.name.startswith(".")]
    found.sort(key=lambda p: [(word, int(n or 0)) for word, n in re.findall(r"(\D*)(\d*)", p.stem)])
    for match in filter(None, (_SHARD.search(p.stem) for p in found)):
        if int(match[2]) != len(found):
            raise DataError(folder, f"expected {int(match[2]):,} parts, as their names say, got {len(found):,}")
    return found


def read_parts(folder: Path, *, strings: tuple[str, ...] = ()) -> pl.DataFrame:
    """Read all parts as one table, texts mapped where they are large; see `ranktilt.io.parquet.read_parquet`.

    All have the columns of the first one, and no id comes twice.
    """
    files = part_files(folder)
    first, *others = (", ".join(f"{name} {kind}" for name, kind in sorted(schema_of(file).items())) for file in files)
    for file, columns in zip(files[1:], others, strict=True):
        if columns != first:
            raise DataError(file, f"expected the columns {first}, as in {files[0].name}, got {columns or 'none'}")
    mapped = is_large(files)
    table = stack([read_parquet(file, strings=strings, mapped=mapped) for file in files])
    repeated = table["id"].is_first_distinct().not_().arg_max()
    if repeated is not None and table["id"].n_unique() < table.height:
        raise DataError(folder, f"_id {table['id'][repeated]!r} came before; ids must be unique")
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
