"""Write a collection as a folder in BEIR's layout.

The folder has ``corpus.jsonl`` (documents), ``queries.jsonl``, and judgments in
``qrels/<split>.tsv``. A collection of versions that were made by design also has
``design.json``, which says how they differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import orjson
import polars as pl

from ranktilt.data.collection import Collection
from ranktilt.data.files import Content, has_content, write_files
from ranktilt.data.formats.jsonl import to_jsonl
from ranktilt.data.formats.judgments.qrels import to_tsv
from ranktilt.data.formats.tables.parquet import part_contents
from ranktilt.data.loading.load import DESIGN
from ranktilt.data.texts import DOCUMENTS_AT_ONCE
from ranktilt.errors import UserError
from ranktilt.field_checks import require_whole_number


def save(
    collection: Collection,
    path: str | Path,
    *,
    rows_per_file: int | None = None,
    beside: Mapping[str, bytes] | None = None,
) -> Path:
    """Write a collection as a folder in BEIR's layout.

    Loading the folder gives an equal collection.

    Parameters
    ----------
    collection : Collection
        The collection to write. The file of judgments has the name of its split, or ``test``.
        Without judgments there is no such file, and the folder is loaded with ``qrels="none"``.
    path : str or Path
        The folder; made if needed.
    rows_per_file : int, optional
        Number of documents in each Parquet file of ``corpus/``; by default the documents are in
        one file, ``corpus.jsonl``. Parquet files are smaller, and loading them never holds all
        texts in memory.
    beside : mapping, optional
        Content of further files of the folder by their names. Loading does not read them. Either
        all files of the folder are written or none.

    Returns
    -------
    Path
        The folder. It has ``design.json`` too if the collection's spec has the design of its
        versions.

    Raises
    ------
    UserError
        If the folder holds another collection, or it cannot be written.
    """
    if rows_per_file is not None:
        require_whole_number(rows_per_file, "rows_per_file of at least 1", least=1)
    folder = Path(path)
    contents: dict[str, Content] = dict(corpus_files(collection.docs, rows_per_file))
    contents["queries.jsonl"] = to_jsonl(collection.queries)
    if collection.qrels.height:
        contents[f"qrels/{_split(collection)}.tsv"] = to_tsv(collection.qrels)
    contents |= design_file(collection)
    contents |= beside or {}
    files = {folder / name: content for name, content in contents.items()}
    _refuse_another_collection(folder, files)
    write_files(files)
    return folder


def _split(collection: Collection) -> str:
    """Return the stem of the judgments' file: the split, which may be a path to judgments."""
    name = Path(str(collection.spec.get("split", "test"))).name
    for ending in (".gz", ".tsv", ".txt", ".qrels"):
        name = name.removesuffix(ending)
    return name or "test"


def corpus_files(docs: pl.DataFrame, rows_per_file: int | None = None) -> dict[str, Content]:
    """Return the files of a corpus in BEIR's layout by name.

    They are one file of JSON lines, or Parquet files of `rows_per_file` documents each. Their
    content is made when it is written, a few documents at a time.
    """
    if rows_per_file is None:
        return {"corpus.jsonl": partial(_lines, docs)}
    parts = part_contents(docs, rows_per_file)
    return {f"corpus/{name}": content for name, content in parts.items()}


def design_file(collection: Collection) -> dict[str, bytes]:
    """Return the file ``design.json`` by its name; empty for a collection without a design.

    A design says which versions of the documents were written, and how.
    """
    if "design" not in collection.spec:
        return {}
    option = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
    return {DESIGN: orjson.dumps(collection.spec["design"], option=option)}


def _lines(docs: pl.DataFrame) -> Iterator[bytes]:
    """Yield documents as JSON lines, a few thousand at a time."""
    return map(to_jsonl, docs.iter_slices(DOCUMENTS_AT_ONCE))


def _refuse_another_collection(folder: Path, files: Mapping[Path, Content]) -> None:
    """Refuse a folder with files of a collection that differ from those to write."""
    further_files = set[Path]()
    for pattern in ("corpus*.jsonl*", "corpus/*.jsonl*", "corpus/*.parquet", "qrels/*.tsv*"):
        further_files.update(path for path in folder.glob(pattern) if path not in files)
    different_files = [
        path for path, content in files.items() if path.is_file() and not has_content(path, content)
    ]
    conflicts = [*sorted(further_files, key=str), *different_files]
    if conflicts:
        raise UserError(
            f"{folder}: holds another collection ({conflicts[0]}); choose an empty folder"
        )
