"""Write generated documents as a folder; an earlier one is replaced completely or not at all.

The folder holds a collection, all answers of the model, the texts that are *left out* because no
answer was good, a *data card* (the README that describes the collection), and a *manifest*, the
hashes of all files.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from ranktilt.data.files import Content, new_folder, sha256, task_lock, write_files
from ranktilt.data.formats.jsonl import to_jsonl
from ranktilt.data.formats.judgments.qrels import to_tsv
from ranktilt.data.save import corpus_files, design_file
from ranktilt.errors import UserError
from ranktilt.generation.generated import Generated
from ranktilt.generation.manifest import MANIFEST, manifest, require_ours

CARD = "README.md"
"""Name of the data card, which describes the collection."""
ANSWERS = "answers.jsonl.gz"
"""Name of the file of all answers, good or not."""
LEFT_OUT = "left-out.jsonl"
"""Name of the file of texts without a good answer."""
_ANSWER_COLUMNS = (
    "part",
    "attempt",
    "used",
    "answer",
    "opening",
    "closing",
    "flags",
    "finish",
    "model",
    "revision",
    "prompt_tokens",
    "completion_tokens",
    "time",
    "prompt",
)
"""Columns of the file of answers, after id and source."""


@dataclass(frozen=True, kw_only=True)
class SavedFolder:
    """The folder that was written."""

    folder: Path
    """Path of the folder."""
    splits: tuple[str, ...]
    """Names of the files of judgments."""


def open_folder(folder: str | Path, collection_path: str | None, kind: str = "rewrites") -> Path:
    """Return the folder to write, with links followed.

    A folder with other files than an earlier output from the same collection is refused, because
    these files would be lost. `kind` is a key of `ranktilt.generation.manifest.COMMANDS`.
    """
    target = Path(os.path.realpath(folder))
    require_ours(target, collection_path, kind)
    return target


@contextmanager
def one_writer(folder: str | Path) -> Iterator[None]:
    """Refuse a folder that another command on this machine is writing."""
    try:
        with task_lock(f"write {os.path.realpath(folder)}"):
            yield
    except BlockingIOError as error:
        raise UserError(
            f"{folder}: another command is writing it; wait for it, or name another folder"
        ) from error


def write_folder(
    folder: Path,
    generated: Generated,
    *,
    judged: Mapping[str, pl.DataFrame],
    card: str,
    spec: Mapping[str, Any],
    kind: str = "rewrites",
    rows_per_file: int | None = None,
) -> None:
    """Write a collection, its data card, every answer and a manifest.

    Parameters
    ----------
    folder : Path
        The folder, new or to be replaced.
    generated : Generated
        The collection, with answers and texts left out.
    judged : mapping
        Judgments by split.
    card : str
        The data card, in Markdown.
    spec : mapping
        How the collection was made, for the manifest.
    kind : str, optional
        Kind of generated documents, a key of `ranktilt.generation.manifest.COMMANDS`.
    rows_per_file : int, optional
        Documents per Parquet file; without it all documents are JSON lines in one file.
    """
    collection = generated.collection
    contents: dict[str, Content] = {
        **corpus_files(collection.docs, rows_per_file),
        "queries.jsonl": to_jsonl(collection.queries),
        **design_file(collection),
    }
    for split, qrels in judged.items():
        contents[f"qrels/{split}.tsv"] = to_tsv(qrels)
    contents[CARD] = card.encode(errors="backslashreplace")
    contents[LEFT_OUT] = _left_out(generated.left_out)
    contents[ANSWERS] = _answers(generated)
    with new_folder(folder) as new:
        write_files({new / name: content for name, content in contents.items()})
        hashes = {name: sha256(new / name) for name in sorted(contents)}
        (new / MANIFEST).write_bytes(manifest(spec, hashes, kind))


def _left_out(left_out: pl.DataFrame) -> bytes:
    """Return texts without a good answer as JSON lines."""
    rows = left_out.rename({"id": "_id"}).iter_rows(named=True)
    return b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows)


def _answers(generated: Generated) -> bytes:
    """Return all answers as JSON lines, without empty fields."""
    answers = generated.answers.with_columns(used=_is_used(generated))
    columns = answers.select(pl.col("id").alias("_id"), "source", *_ANSWER_COLUMNS)
    lines = []
    for row in columns.iter_rows(named=True):
        known = {name: value for name, value in row.items() if value is not None}
        lines.append(orjson.dumps(known, option=orjson.OPT_APPEND_NEWLINE))
    return b"".join(lines)


def _is_used(generated: Generated) -> pl.Expr:
    """Tell whether an answer is in the collection.

    It then has no flag, and its document was not left out because of another part, such as the
    title.
    """
    key = pl.concat_str("source", "id", separator="\0")
    left_out = generated.left_out.select(key.alias("key"))["key"]
    return (pl.col("flags").list.len() == 0) & ~key.is_in(left_out.implode())
