"""Write a collection with its rewrites as a folder, in place of an earlier version as a whole or not at all."""

from __future__ import annotations

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

from ranktilt.build.datacard import datacard
from ranktilt.build.manifest import MANIFEST, manifest, require_ours, require_same
from ranktilt.build.rewrite import Rewritten
from ranktilt.collection import Collection
from ranktilt.data.jsonl import to_jsonl
from ranktilt.data.load import load
from ranktilt.data.qrels import to_tsv
from ranktilt.errors import DataError
from ranktilt.files import cannot_write, open_bytes, sha256, write_files

CARD, ANSWERS, LEFT_OUT = "README.md", "answers.jsonl.gz", "left-out.jsonl"
_ABANDONED = 3_600.0
_SAID = (
    "part", "attempt", "used", "answer", "opening", "closing", "flags", "finish", "model", "revision",
    "prompt_tokens", "completion_tokens", "time", "prompt",
)  # fmt: skip


class Saved(NamedTuple):
    """What was written."""

    folder: Path
    splits: tuple[str, ...]
    """Names of the files of judgments."""
    dropped: int
    """Answers of an earlier version of the folder that are no part of this one."""


def save_rewritten(rewritten: Rewritten, folder: str | Path) -> Saved:
    """Write a collection with its rewrites, its data card, what was answered, and the hashes of it all.

    Parameters
    ----------
    rewritten : Rewritten
        What to write. Where it was loaded from a folder, the judgments of all splits there are carried over.
    folder : str or Path
        New or empty, or an earlier output, which is replaced as a whole: an interruption leaves the earlier one, or
        none, never a part.

    Returns
    -------
    Saved
        The folder holds ``corpus.jsonl``, ``queries.jsonl``, ``qrels/<split>.tsv``, ``README.md`` (the data card),
        ``left-out.jsonl``, ``answers.jsonl.gz`` (every answer as it came) and ``manifest.json``.

    Raises
    ------
    UserError
        If the folder holds anything else, or something in it was changed by hand; if it cannot be written; if the
        collection's own folder was changed meanwhile.
    """
    place = Path(folder).resolve()
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
    return Saved(Path(folder), tuple(judged), dropped)


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
    """Bring back an earlier version that a kill took away just before the new one came, and clear what is left over.

    Parameters
    ----------
    folder : Path
        Where an output is to go.
    """
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
    """Write all files beside the folder, and let them take its place."""
    mark = uuid.uuid4().hex
    new, old = (folder.with_name(f".{folder.name}.{mark}.{end}") for end in ("new", "old"))
    try:
        write_files({_plain(new / name): data for name, data in contents.items()})
        os.replace(_plain(new / ANSWERS), new / ANSWERS)
        if folder.exists():
            os.rename(folder, old)
        os.rename(new, folder)
    except OSError as error:
        raise cannot_write(folder, error) from error
    finally:
        if old.exists() and not folder.exists():
            os.rename(old, folder)
        shutil.rmtree(new, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def _plain(path: Path) -> Path:
    """A name under which packed bytes are written as they are."""
    return path.with_name(f"{path.name}.packed") if path.suffix == ".gz" else path
