"""Write a collection as a folder in BEIR's layout."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import orjson
import polars as pl

from ranktilt.data.collection import Collection
from ranktilt.data.files import Content, holds, write_files
from ranktilt.data.formats.jsonl import to_jsonl
from ranktilt.data.formats.parquet import part_contents
from ranktilt.data.formats.qrels import to_tsv
from ranktilt.data.load import DESIGN
from ranktilt.data.texts import AT_ONCE
from ranktilt.errors import UserError


def save(
    collection: Collection,
    path: str | Path,
    *,
    rows_per_file: int | None = None,
    beside: Mapping[str, bytes] | None = None,
) -> Path:
    """Write a collection as a folder in BEIR's layout that `load` reads back equal.

    Parameters
    ----------
    collection : Collection
        What to write; its split's name (``test`` where it has none) names the judgments' file.
        Without judgments there is none, and the folder is loaded with ``qrels="none"``.
    path : str or Path
        The folder; made where needed.
    rows_per_file : int, optional
        Write the documents as Parquet files in ``corpus/`` with so many each, in place of one ``corpus.jsonl``:
        smaller, and read without ever holding all texts.
    beside : mapping, optional
        Further files of the folder, name → content, which loading does not read; all files are
        written or none. The design of versions is written as ``design.json``, and loading reads it.

    Raises
    ------
    UserError
        If the folder holds another collection, or it cannot be written.
    """
    if rows_per_file is not None and rows_per_file < 1:
        raise UserError(f"expected rows_per_file of at least 1, got {rows_per_file}")
    folder = Path(path)
    split = _split(collection)
    files = {
        folder / name: data for name, data in corpus_files(collection.docs, rows_per_file).items()
    }
    files[folder / "queries.jsonl"] = to_jsonl(collection.queries)
    if collection.qrels.height:
        files[folder / "qrels" / f"{split}.tsv"] = to_tsv(collection.qrels)
    files |= {
        folder / name: data for name, data in (design_file(collection) | dict(beside or {})).items()
    }
    _refuse_other(folder, files)
    write_files(files)
    return folder


def _split(collection: Collection) -> str:
    """Name for the judgments' file; where they were read from a file of its own, that file's, never its folder."""
    name = Path(str(collection.spec.get("split", "test"))).name
    for ending in (".gz", ".tsv", ".txt", ".qrels"):
        name = name.removesuffix(ending)
    return name or "test"


def corpus_files(docs: pl.DataFrame, rows_per_file: int | None = None) -> dict[str, Content]:
    """Files of a corpus in BEIR's layout by name, each made a few documents at a time: JSON lines, or Parquet parts."""
    if rows_per_file is None:
        return {"corpus.jsonl": partial(_lines, docs)}
    return {
        f"corpus/{name}": content for name, content in part_contents(docs, rows_per_file).items()
    }


def design_file(collection: Collection) -> dict[str, bytes]:
    """Return the file that keeps how a collection's versions were designed, by name; none where they were not."""
    if "design" not in collection.spec:
        return {}
    option = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
    return {DESIGN: orjson.dumps(collection.spec["design"], option=option)}


def _lines(docs: pl.DataFrame) -> Iterator[bytes]:
    return map(to_jsonl, docs.iter_slices(AT_ONCE))


def _refuse_other(folder: Path, ours: dict[Path, Content]) -> None:
    patterns = ("corpus*.jsonl*", "corpus/*.jsonl*", "corpus/*.parquet", "qrels/*.tsv*")
    strange = sorted(str(p) for pattern in patterns for p in folder.glob(pattern) if p not in ours)
    strange += [str(p) for p, data in ours.items() if p.is_file() and not holds(p, data)]
    if strange:
        raise UserError(
            f"{folder}: holds another collection ({strange[0]}); choose an empty folder"
        )
