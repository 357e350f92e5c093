"""Write what a model made as a folder, in place of an earlier version as a whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import polars as pl

from ranktilt.data.files import Content, alone, new_folder, sha256, write_files
from ranktilt.data.formats.jsonl import to_jsonl
from ranktilt.data.formats.qrels import to_tsv
from ranktilt.data.save import corpus_files, design_file
from ranktilt.errors import UserError
from ranktilt.generation.generated import Generated
from ranktilt.generation.manifest import MANIFEST, manifest, require_ours

CARD, ANSWERS, LEFT_OUT = "README.md", "answers.jsonl.gz", "left-out.jsonl"
_SAID = (
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


class SavedFolder(NamedTuple):
    """What was written."""

    folder: Path
    splits: tuple[str, ...]
    """Names of the files of judgments."""


def open_folder(folder: str | Path, path: str | None, kind: str = "rewrites") -> Path:
    """Find the folder to write, links resolved; refuses one that holds anything but what was made of `path`."""
    place = Path(os.path.realpath(folder))
    require_ours(place, path, kind)
    return place


@contextmanager
def one_writer(folder: str | Path) -> Iterator[None]:
    """Refuse a folder that another command on this machine is about to write."""
    try:
        with alone(f"write {os.path.realpath(folder)}"):
            yield
    except BlockingIOError as error:
        raise UserError(
            f"{folder}: another command is writing it; wait for it, or name another folder"
        ) from error


def write_folder(
    folder: Path,
    generated: Generated,
    judged: Mapping[str, pl.DataFrame],
    card: str,
    spec: Mapping[str, Any],
    *,
    kind: str = "rewrites",
    rows_per_file: int | None = None,
) -> None:
    """Write a collection, its data card, every answer and the hashes of it all; `judged` are judgments by split.

    With `rows_per_file` the documents are Parquet files of so many each; see
    `ranktilt.data.save.save`.
    """
    contents: dict[str, Content] = {
        **corpus_files(generated.collection.docs, rows_per_file),
        "queries.jsonl": to_jsonl(generated.collection.queries),
        **design_file(generated.collection),
        **{f"qrels/{split}.tsv": to_tsv(qrels) for split, qrels in judged.items()},
        CARD: card.encode(errors="backslashreplace"),
        LEFT_OUT: _left_out(generated.left_out),
        ANSWERS: _answers(generated),
    }
    with new_folder(folder) as new:
        write_files({new / name: content for name, content in contents.items()})
        hashes = {name: sha256(new / name) for name in sorted(contents)}
        (new / MANIFEST).write_bytes(manifest(spec, hashes, kind))


def _left_out(left_out: pl.DataFrame) -> bytes:
    rows = left_out.rename({"id": "_id"}).iter_rows(named=True)
    return b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows)


def _answers(generated: Generated) -> bytes:
    answers = generated.answers.with_columns(used=_used(generated)).select(
        pl.col("id").alias("_id"), "source", *_SAID
    )
    rows = answers.iter_rows(named=True)
    return b"".join(
        orjson.dumps(
            {k: v for k, v in row.items() if v is not None}, option=orjson.OPT_APPEND_NEWLINE
        )
        for row in rows
    )


def _used(generated: Generated) -> pl.Expr:
    """Whether an answer stands in the collection: good, and of a document that was not left out for another part."""
    lost = generated.left_out.select(pl.concat_str("source", "id", separator="\0"))["source"]
    return (pl.col("flags").list.len() == 0) & ~pl.concat_str("source", "id", separator="\0").is_in(
        lost.implode()
    )
