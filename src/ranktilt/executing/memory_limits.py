"""How much is computed at once: sizes that must change no result, and can be set to see that they do not."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from ranktilt.errors import UserError, shorten
from ranktilt.io.cache import cache_folder

SMALLEST = 64 << 20
"""Bytes; less memory than this cannot be asked for."""
_SHARE = 4
_UNKNOWN = 4 << 30
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(?:([KMGT])(i?)B?|B)?", re.IGNORECASE)
_LONGEST = 30
_POWERS = {"K": 1, "M": 2, "G": 3, "T": 4}
_CGROUPS = Path("/sys/fs/cgroup")
_OWN_CGROUPS = Path("/proc/self/cgroup")


@dataclass(frozen=True)
class Chunks:
    """Sizes; None leaves the usual ones.

    Parameters
    ----------
    memory : int, optional
        Bytes that exact search, the lexical index and an audit's random labels may each hold beside the collection
        and files that are mapped.
    shard : int, optional
        Texts encoded between two writes to the cache.
    piece : int, optional
        Texts handed to the model together.
    cache : Path, optional
        Where vectors are kept in place of the usual folder; an empty one has all of them computed anew.
    """

    memory: int | None = None
    shard: int | None = None
    piece: int | None = None
    cache: Path | None = None


USUAL = Chunks()
_chunks: ContextVar[Chunks] = ContextVar("ranktilt_chunks", default=USUAL)


@contextmanager
def chunked(chunks: Chunks) -> Iterator[None]:
    """Let rankers work in chunks of these sizes inside the ``with`` block.

    Parameters
    ----------
    chunks : Chunks
        The sizes.
    """
    token = _chunks.set(chunks)
    try:
        yield
    finally:
        _chunks.reset(token)


def memory() -> int:
    """Return how many bytes search or random labels may hold: what was set, else a quarter of the process's memory."""
    return _chunks.get().memory or available() // _SHARE


def shard(usual: int) -> int:
    """Return how many texts to encode between two writes: what was set, else the usual number."""
    return _chunks.get().shard or usual


def piece(usual: int) -> int:
    """Return how many texts to hand to the model together: what was set, else the usual number."""
    return _chunks.get().piece or usual


def vector_folder() -> Path:
    """Return the folder that keeps vectors: what was set, else the usual one."""
    return _chunks.get().cache or cache_folder()


def read_size(text: str, *, what: str = "memory", least: int | None = None) -> int:
    """Read a size as people write it.

    Parameters
    ----------
    text : str
        A number of bytes, or a number with a unit: ``1GB``, ``512M``, ``0.5GiB``. KB, MB, GB and TB are powers of
        1000; KiB, MiB, GiB and TiB are powers of 1024.
    what : str, optional
        What it is the size of, for messages.
    least : int, optional
        Bytes; 64 MiB by default.

    Returns
    -------
    int
        Bytes.

    Raises
    ------
    UserError
        If it is no size, or less than `least`.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None or len(text) > _LONGEST:
        raise UserError(f"{what}: expected a size such as 1GB, 512MB or 0.5GiB, got {shorten(text)}")
    number, unit, binary = match.groups()
    size = int(float(number) * (1024 if binary else 1000) ** _POWERS[unit.upper()]) if unit else int(float(number))
    if size < (SMALLEST if least is None else least):
        smallest = f"{SMALLEST >> 20}MiB" if least is None else f"{least} bytes"
        raise UserError(f"{what}: expected at least {smallest}, got {shorten(text)}")
    return size


def available() -> int:
    """Return how many bytes this process can have.

    Returns
    -------
    int
        The machine's memory, or the smallest limit of the control groups (versions 1 and 2) around this process.
    """
    limits = [_installed()]
    for file in _limit_files():
        with suppress(OSError, ValueError):  # "max", which is no limit, is no number either
            limits.append(int(file.read_text(encoding="ascii")))
    return min(limit for limit in limits if limit > 0)


def _installed() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return _UNKNOWN


def _limit_files() -> Iterator[Path]:
    """Files with a limit: of the group that this process is in and of all above, up to what a container sees."""
    try:
        lines = _OWN_CGROUPS.read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        if controllers and "memory" not in controllers.split(","):
            continue
        root = _CGROUPS / "memory" if controllers else _CGROUPS
        name = "memory.limit_in_bytes" if controllers else "memory.max"
        own = root / group.lstrip("/")
        for folder in (own, *own.parents):
            yield folder / name
            if folder == root:
                break
