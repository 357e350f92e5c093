"""Limits of memory and processors: those of the machine, and those that the user sets.

Exact search and random labels divide their work so that it fits into the limit. Limits must change
no result; tests set them to check that they do not. A *control group* is how Linux limits the
memory and the processor time of a container.
"""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from ranktilt.errors import UserError, shorten

SMALLEST = 64 << 20
"""Smallest limit that users may set, in bytes."""
_MEMORY_DIVISOR = 4
"""A search may take the memory of the process divided by this number: a quarter."""
_UNKNOWN_MEMORY = 4 << 30
"""Number of bytes that is assumed if the machine does not say how much memory it has."""
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(?:([KMGT])(i?)B?|B)?", re.IGNORECASE)
"""A size in bytes, such as ``4 GB``."""
_MOST_CHARACTERS = 30
"""Most characters of the text of a size, so that no number is huge."""
_POWERS = {"K": 1, "M": 2, "G": 3, "T": 4}
"""Power of 1,000 or 1,024 by the letter of a unit."""
_CGROUPS = Path("/sys/fs/cgroup")
"""Folder with the limits of control groups."""
_OWN_CGROUPS = Path("/proc/self/cgroup")
"""File that names the control groups of this process."""
_CPU_QUOTA = _CGROUPS / "cpu.max"
"""File with the processor time of a container: a quota and a period, or ``max``."""


@dataclass(frozen=True, kw_only=True)
class MemoryLimits:
    """Limits of memory; None leaves the default."""

    memory: int | None = None
    """Number of bytes that exact search, the lexical index and random labels may each take.

    The collection itself is not counted.
    """
    index_files_from: int | None = None
    """Number of bytes of text from which a lexical index is made in files."""


_DEFAULT = MemoryLimits()
"""Limits of a process for which none are set."""
_limits: ContextVar[MemoryLimits] = ContextVar("ranktilt_memory_limits", default=_DEFAULT)
"""The limits in use."""


@contextmanager
def limit_memory(limits: MemoryLimits) -> Iterator[None]:
    """Set the limits that rankers keep to within the ``with`` block."""
    token = _limits.set(limits)
    try:
        yield
    finally:
        _limits.reset(token)


def memory_limit() -> int:
    """Return the number of bytes that search or random labels may take.

    It is the limit that was set, or else a quarter of the process's memory.
    """
    return _limits.get().memory or available_memory() // _MEMORY_DIVISOR


def chosen_memory_limit() -> int | None:
    """Return the limit that was set, in bytes; None if none was set."""
    return _limits.get().memory


def index_files_from(default: int) -> int:
    """Return the number of bytes of text from which a lexical index is made in files.

    It is the limit that was set, or else `default`.
    """
    limit = _limits.get().index_files_from
    return default if limit is None else limit


def read_size(text: str) -> int:
    """Read a size in bytes; `UserError` for less than `SMALLEST`.

    The text may be a number of bytes, ``1GB`` or ``512M`` (powers of 1000), or ``0.5GiB`` (powers
    of 1024).
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None or len(text) > _MOST_CHARACTERS:
        raise UserError(
            f"memory: expected a size such as 1GB, 512MB or 0.5GiB, got {shorten(text)}"
        )
    number, unit, binary_sign = match.groups()
    base = 1024 if binary_sign else 1000
    factor = base ** _POWERS[unit.upper()] if unit else 1
    size = int(min(float(number) * factor, sys.maxsize))
    if size < SMALLEST:
        raise UserError(f"memory: expected at least {SMALLEST >> 20}MiB, got {shorten(text)}")
    return size


def available_memory() -> int:
    """Return the number of bytes of memory that this process can have.

    It is the memory of the machine, or the smallest limit of the control groups of the process.
    """
    limits = [_installed_memory()]
    for file in _limit_files():
        with suppress(OSError, ValueError):  # "max", which is no limit, is no number either
            limits.append(int(file.read_text(encoding="ascii")))
    return min(limit for limit in limits if limit > 0)


def processors() -> int:
    """Count the processors that this process may use: its affinity and its container's quota."""
    count = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    text = _CPU_QUOTA.read_text(encoding="ascii") if _CPU_QUOTA.is_file() else "max"
    quota, _, period = text.partition(" ")
    if quota.strip() == "max":
        return count
    return min(count, math.ceil(int(quota) / int(period)))


def _installed_memory() -> int:
    """Return the number of bytes of memory of this machine."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return _UNKNOWN_MEMORY


def _limit_files() -> Iterator[Path]:
    """Yield the files with the memory limits of this process's control group and all above it.

    A container sees only its own groups.
    """
    try:
        lines = _OWN_CGROUPS.read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        if not line.startswith("0::"):  # a group of cgroups v1, which has no such files
            continue
        innermost = _CGROUPS / line.removeprefix("0::").lstrip("/")
        for folder in (innermost, *innermost.parents):
            yield folder / "memory.max"
