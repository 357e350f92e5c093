"""Write what a model made as a folder, in place of an earlier version as a whole or not at all."""

from __future__ import annotations

import errno
import gzip
import os
import re
import shutil
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import polars as pl

from ranktilt.datasets.save import corpus_files
from ranktilt.errors import UserError
from ranktilt.generation.generated import Generated
from ranktilt.generation.manifest import MANIFEST, SYSTEM, manifest, require_ours, require_same
from ranktilt.io.cache import alone
from ranktilt.io.files import Content, cannot_write, open_bytes, write_files
from ranktilt.io.jsonl import to_jsonl
from ranktilt.io.qrels import to_tsv

CARD, ANSWERS, LEFT_OUT = "README.md", "answers.jsonl.gz", "left-out.jsonl"
_ABANDONED = 3_600.0
_SAID = (
    "part", "attempt", "used", "answer", "opening", "closing", "flags", "finish", "model", "revision",
    "prompt_tokens", "completion_tokens", "time", "prompt",
)  # fmt: skip


class SavedFolder(NamedTuple):
    """What was written."""

    folder: Path
    splits: tuple[str, ...]
    """Names of the files of judgments."""
    dropped: int
    """Answers of an earlier version of the folder that are no part of this one."""


def open_folder(folder: str | Path, path: str | None, kind: str = "rewrites") -> Path:
    """Find the folder to write, as it was before a kill; refuses one that holds anything but what was made of `path`.

    The same folder for its place, links resolved.
    """
    place = Path(os.path.realpath(folder))
    recover(place)
    require_same(place, require_ours(place, kind), path, kind)
    return place


@contextmanager
def one_writer(folder: str | Path) -> Iterator[None]:
    """Refuse a folder that another command on this machine is about to write; nothing is left beside it."""
    with ExitStack() as stack:
        try:
            stack.enter_context(alone(f"write {os.path.realpath(folder)}"))
        except BlockingIOError as error:
            raise UserError(f"{folder}: another command is writing it; wait for it, or name another folder") from error
        yield


def write_folder(
    place: Path, generated: Generated, judged: Mapping[str, pl.DataFrame], card: str, spec: Mapping[str, Any],
    *, kind: str = "rewrites", parts: int | None = None,
) -> int:  # fmt: skip
    """Write a collection, its data card, every answer and the hashes of it all; `judged` are judgments by split.

    With `parts` the documents are Parquet files of so many each; see `ranktilt.datasets.save.save`.

    Returns how many answers of an earlier version are no part of this one.
    """
    contents: dict[str, Content] = {
        **corpus_files(generated.collection.docs, parts),
        "queries.jsonl": to_jsonl(generated.collection.queries),
        **{f"qrels/{split}.tsv": to_tsv(qrels) for split, qrels in judged.items()},
        CARD: card.encode(errors="backslashreplace"),
        LEFT_OUT: _left_out(generated.left_out),
        ANSWERS: gzip.compress(_answers(generated), compresslevel=6, mtime=0),
    }
    contents[MANIFEST] = manifest(spec, contents, kind)
    dropped = _dropped(place / ANSWERS, generated)
    _replace(place, contents)
    return dropped


def _left_out(left_out: pl.DataFrame) -> bytes:
    rows = left_out.rename({"id": "_id"}).iter_rows(named=True)
    return b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows)


def _answers(generated: Generated) -> bytes:
    answers = generated.answers.with_columns(used=_used(generated)).select(pl.col("id").alias("_id"), "source", *_SAID)
    rows = answers.iter_rows(named=True)
    return b"".join(
        orjson.dumps({k: v for k, v in row.items() if v is not None}, option=orjson.OPT_APPEND_NEWLINE) for row in rows
    )


def _used(generated: Generated) -> pl.Expr:
    """Whether an answer stands in the collection: good, and of a document that was not left out for another part."""
    lost = generated.left_out.select(pl.concat_str("source", "id", separator="\0"))["source"]
    return (pl.col("flags").list.len() == 0) & ~pl.concat_str("source", "id", separator="\0").is_in(lost.implode())


def _dropped(file: Path, generated: Generated) -> int:
    """How many answers of the version that is replaced are not asked for any more."""
    names = ["source", "part", "attempt", "prompt"]
    now = set(generated.answers.select(names).iter_rows())
    if not file.is_file():
        return 0
    with open_bytes(file) as stream:
        before = (orjson.loads(line) for line in stream)
        return sum(tuple(row.get(name) for name in names) not in now for row in before)


def recover(folder: Path) -> None:
    """Bring back an earlier version that a kill took away just before the new one came, and clear what is left over."""
    with suppress(OSError):
        _undo(folder)
        for new in _beside(folder / folder.name, "new"):
            shutil.rmtree(new, ignore_errors=True)
    with suppress(OSError):
        for old in _beside(folder, "old"):
            if folder.exists():
                shutil.rmtree(old, ignore_errors=True)
            else:
                os.rename(old, folder)
        for new in _beside(folder, "new"):
            if time.time() - new.stat().st_mtime > _ABANDONED:
                shutil.rmtree(new, ignore_errors=True)


def _beside(folder: Path, end: str) -> list[Path]:
    """Folders that `_replace` made for this one and no other: ``.out.v2.<mark>.old`` is not that of ``out``."""
    name = re.compile(rf"\.{re.escape(folder.name)}\.[0-9a-f]{{32}}\.{end}")
    return sorted(p for p in folder.parent.iterdir() if name.fullmatch(p.name) and p.is_dir())


def _replace(folder: Path, contents: Mapping[str, Content]) -> None:
    """Write all files beside the folder, or in it where it cannot be renamed, and let them take its place."""
    mark, stays = uuid.uuid4().hex, _stays(folder)
    place = folder / folder.name if stays else folder
    new, old = (place.with_name(f".{folder.name}.{mark}.{end}") for end in ("new", "old"))
    try:
        write_files({_plain(new / name): data for name, data in contents.items()})
        os.replace(_plain(new / ANSWERS), new / ANSWERS)
        for name in ("", *contents):
            if (folder / name).exists():
                shutil.copymode(folder / name, new / name)
        if stays:
            _swap(folder, new, old)
        else:
            if folder.exists():
                os.rename(folder, old)
            os.rename(new, folder)
    except OSError as error:
        raise cannot_write(folder, error) from error
    finally:
        if stays:
            _undo(folder)
        elif old.exists() and not folder.exists():
            os.rename(old, folder)
        shutil.rmtree(new, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def _stays(folder: Path) -> bool:
    """Whether a folder is there and cannot be renamed: a mount point, or one in a folder that may not be written."""
    if not folder.exists():
        return False
    try:
        os.rename(folder, folder / folder.name)  # never possible; why not tells a mount of the same disk too
    except OSError as error:
        return error.errno in (errno.EXDEV, errno.EBUSY) or not os.access(folder.parent, os.W_OK)
    return False


def _swap(folder: Path, new: Path, old: Path) -> None:
    """Let new files take the place of a folder's, name by name; until the last step `_undo` brings all of them back."""
    out = old.with_suffix(".out")
    out.mkdir()
    for path in _held(folder):
        os.rename(path, out / path.name)
    os.rename(out, old)  # from here on, what is in the folder is new
    for path in list(new.iterdir()):
        os.rename(path, folder / path.name)
    os.rename(old, new)  # from here on, it stays


def _undo(folder: Path) -> None:
    """Bring back what `_swap` has moved; without effect once it is done."""
    if not folder.is_dir():
        return
    for old in _beside(folder / folder.name, "old"):
        for path in _held(folder):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        os.rename(old, old.with_suffix(".out"))  # a kill from here on must not take away what came back
    for out in _beside(folder / folder.name, "out"):
        for path in list(out.iterdir()):
            os.rename(path, folder / path.name)
        out.rmdir()


def _held(folder: Path) -> list[Path]:
    """What a folder holds, but for the file system's own and what `_replace` makes in it."""
    made = {path for end in ("new", "old", "out") for path in _beside(folder / folder.name, end)}
    return [path for path in folder.iterdir() if path not in made and path.name != SYSTEM]


def _plain(path: Path) -> Path:
    """A name under which packed bytes are written as they are."""
    return path.with_name(f"{path.name}.packed") if path.suffix == ".gz" else path
