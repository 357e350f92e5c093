"""Write a collection with its rewrites as a folder, in place of an earlier version as a whole or not at all."""

from __future__ import annotations

import errno
import gzip
import os
import re
import shutil
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import orjson
import polars as pl

from ranktilt.collection import Collection
from ranktilt.datasets.load import load
from ranktilt.errors import DataError
from ranktilt.generation.manifest import MANIFEST, SYSTEM, manifest, require_ours, require_same
from ranktilt.generation.rewrite.datacard import datacard
from ranktilt.generation.rewrite.rewrite import Rewritten
from ranktilt.io.files import cannot_write, open_bytes, sha256, write_files
from ranktilt.io.jsonl import to_jsonl
from ranktilt.io.qrels import to_tsv

CARD, ANSWERS, LEFT_OUT = "README.md", "answers.jsonl.gz", "left-out.jsonl"
_ABANDONED = 3_600.0
_SAID = (
    "part", "attempt", "used", "answer", "opening", "closing", "flags", "finish", "model", "revision",
    "prompt_tokens", "completion_tokens", "time", "prompt",
)  # fmt: skip


class SavedRewrites(NamedTuple):
    """What was written."""

    folder: Path
    splits: tuple[str, ...]
    """Names of the files of judgments."""
    dropped: int
    """Answers of an earlier version of the folder that are no part of this one."""


def save_rewritten(rewritten: Rewritten, folder: str | Path) -> SavedRewrites:
    """Write a collection with its rewrites, its data card, what was answered, and the hashes of it all.

    Parameters
    ----------
    rewritten : Rewritten
        What to write. Where it was loaded from a folder, the judgments of all splits there are carried over.
    folder : str or Path
        New or empty, or an earlier output, which is replaced as a whole: an interruption leaves the earlier one, or
        none, never a part. In a folder that cannot be renamed, such as a mount point, a kill while names are changed
        is undone by the next run.

    Returns
    -------
    SavedRewrites
        The folder holds ``corpus.jsonl``, ``queries.jsonl``, ``qrels/<split>.tsv``, ``README.md`` (the data card),
        ``left-out.jsonl``, ``answers.jsonl.gz`` (every answer as it came) and ``manifest.json``.

    Raises
    ------
    UserError
        If the folder holds anything else, or something in it was changed by hand; if it cannot be written; if the
        collection's own folder was changed meanwhile.
    """
    place = Path(os.path.realpath(folder))
    recover(place)
    earlier = require_ours(place)
    require_same(place, earlier, rewritten.spec["collection"].get("path"))
    judged, inputs = _judgments(rewritten)
    contents = {
        "corpus.jsonl": to_jsonl(rewritten.collection.docs),
        "queries.jsonl": to_jsonl(rewritten.collection.queries),
        **{f"qrels/{split}.tsv": to_tsv(qrels) for split, qrels in judged.items()},
        CARD: datacard(rewritten, tuple(judged)).encode(errors="backslashreplace"),
        LEFT_OUT: _left_out(rewritten.left_out),
        ANSWERS: gzip.compress(_answers(rewritten), compresslevel=6, mtime=0),
    }
    spec = {**rewritten.spec, "inputs": {**rewritten.spec.get("inputs", {}), **inputs}}
    contents[MANIFEST] = manifest(spec, contents)
    dropped = _dropped(place / ANSWERS, rewritten) if earlier is not None else 0
    _replace(place, contents)
    return SavedRewrites(Path(folder), tuple(judged), dropped)


def splits(folder: Path) -> list[str]:
    """List the names of a folder's judgments, by name; none where it has none."""
    found = (folder / "qrels").glob("[!.]*.tsv*") if os.path.isdir(folder / "qrels") else ()
    names = {f.name.removesuffix(".gz").removesuffix(".tsv") for f in found if f.name.endswith((".tsv", ".tsv.gz"))}
    return sorted(names)


def _judgments(rewritten: Rewritten) -> tuple[dict[str, pl.DataFrame], dict[str, str]]:
    """Judgments by split, all carried over, and the hashes of further files that were read."""
    given, qrels = rewritten.given, rewritten.collection.qrels
    split, path = given.spec.get("split"), Path(str(given.spec.get("path", "")))
    here = splits(path) if "path" in given.spec else []
    found, inputs = dict[str, pl.DataFrame](), dict[str, str]()
    if qrels.height and split not in here:
        named = split is not None and Path(str(split)).name == split
        found[str(split) if named else "test"] = qrels
    if here:
        _require_unchanged(path, rewritten.spec.get("inputs", {}))
    for name in here:
        if name == split and qrels.height:
            found[name] = qrels
            continue
        other = load(path, split=name, ignore_unknown=True)
        found[name] = rewritten.united(_of(given, other)).qrels
        file = Path(other.spec["files"][-1])
        inputs[str(file)] = sha256(file)
    return found, inputs


def _require_unchanged(path: Path, inputs: Mapping[str, str]) -> None:
    for name, digest in inputs.items():
        if not Path(name).is_file() or sha256(Path(name)) != digest:
            message = f"{name} was changed while its collection was rewritten; the same command again asks what is new"
            raise DataError(path, message)


def _of(given: Collection, other: Collection) -> pl.DataFrame:
    """Judgments of a folder, without those of documents and queries that were taken out of what was given."""
    gone = [
        pl.col(column).is_in(theirs["id"].implode()) & ~pl.col(column).is_in(ours["id"].implode())
        for column, theirs, ours in (
            ("doc_id", other.docs, given.docs),
            ("query_id", other.queries, given.queries),
        )
    ]
    return other.qrels.filter(~gone[0] & ~gone[1])


def _left_out(left_out: pl.DataFrame) -> bytes:
    rows = left_out.rename({"id": "_id"}).iter_rows(named=True)
    return b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows)


def _answers(rewritten: Rewritten) -> bytes:
    answers = rewritten.answers.with_columns(used=_used(rewritten)).select(pl.col("id").alias("_id"), "source", *_SAID)
    rows = answers.iter_rows(named=True)
    return b"".join(
        orjson.dumps({k: v for k, v in row.items() if v is not None}, option=orjson.OPT_APPEND_NEWLINE) for row in rows
    )


def _used(rewritten: Rewritten) -> pl.Expr:
    """Whether an answer stands in the collection: good, and of a document that was not left out for another part."""
    lost = rewritten.left_out.select(pl.concat_str("source", "id", separator="\0"))["source"]
    return (pl.col("flags").list.len() == 0) & ~pl.concat_str("source", "id", separator="\0").is_in(lost.implode())


def _dropped(file: Path, rewritten: Rewritten) -> int:
    """How many answers of the version that is replaced are not asked for any more."""
    names = ["source", "part", "attempt", "prompt"]
    now = set(rewritten.answers.select(names).iter_rows())
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


def _replace(folder: Path, contents: Mapping[str, bytes]) -> None:
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
