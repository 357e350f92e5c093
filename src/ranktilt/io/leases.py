"""Leases: which process asks what, so that two of them do not pay for the same answer."""

from __future__ import annotations

import os
import socket
import sqlite3
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

import orjson

LEASE = 120.0
"""Seconds that a lease holds; whoever lives renews it. On one machine the lease of a dead process ends at once."""
SCHEMA = """
CREATE TABLE IF NOT EXISTS owners (owner TEXT PRIMARY KEY, machine TEXT, pid INTEGER, started TEXT, expires REAL);
CREATE TABLE IF NOT EXISTS leases (key TEXT PRIMARY KEY, owner TEXT NOT NULL) WITHOUT ROWID;
"""
WITH_KEYS = "WHERE key IN (SELECT value FROM json_each(?))"


def names(keys: Collection[str]) -> str:
    """Return keys as the parameter of `WITH_KEYS`."""
    return orjson.dumps(list(keys)).decode()


def held(db: sqlite3.Connection, keys: Collection[str]) -> set[str]:
    """Return which of these keys somebody holds."""
    return {name for (name,) in db.execute(f"SELECT key FROM leases {WITH_KEYS}", [names(keys)])}


def take(db: sqlite3.Connection, owner: str, keys: Collection[str]) -> None:
    """Lease keys that nobody holds."""
    mine = (owner, _MACHINE, os.getpid(), _started(os.getpid()), time.time() + LEASE)
    db.execute("INSERT OR IGNORE INTO owners VALUES (?, ?, ?, ?, ?)", mine)
    db.executemany("INSERT INTO leases VALUES (?, ?)", [(name, owner) for name in keys])


def give_back(db: sqlite3.Connection, keys: Collection[str]) -> None:
    """End leases."""
    db.executemany("DELETE FROM leases WHERE key = ?", [(name,) for name in keys])


def renew(db: sqlite3.Connection, owner: str) -> None:
    """Let an owner's leases hold on."""
    db.execute("UPDATE owners SET expires = ? WHERE owner = ?", [time.time() + LEASE, owner])


def holders(db: sqlite3.Connection, keys: Collection[str], *, but: str) -> list[int]:
    """List the processes that hold some of these keys, by number, but for one owner."""
    chosen = f"owner != ? AND owner IN (SELECT owner FROM leases {WITH_KEYS})"
    return [
        pid for (pid,) in db.execute(f"SELECT DISTINCT pid FROM owners WHERE {chosen} ORDER BY pid", [but, names(keys)])
    ]


def forget(db: sqlite3.Connection, owner: str) -> None:
    """End an owner and all its leases."""
    db.execute("DELETE FROM leases WHERE owner = ?", [owner])
    db.execute("DELETE FROM owners WHERE owner = ?", [owner])


def forget_the_dead(db: sqlite3.Connection) -> list[str]:
    """End the owners that live no more, and return them."""
    rows = db.execute("SELECT owner, machine, pid, started, expires FROM owners").fetchall()
    dead = [
        owner
        for owner, machine, pid, started, expires in rows
        if expires < time.time() or (machine == _MACHINE and _started(pid) != started)
    ]
    for owner in dead:
        forget(db, owner)
    return dead


def _machine() -> str:
    """What process numbers belong to: a machine, or a container on it."""
    with suppress(OSError):
        return f"{socket.gethostname()} {os.stat('/proc/self/ns/pid').st_ino}"
    return socket.gethostname()


def _started(pid: int) -> str:
    """When a process started, which tells it from a later one of the same number; empty where it is dead."""
    try:
        state, *rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return "" if state in "ZX" else rest[18]
    except FileNotFoundError:
        if Path("/proc/self/stat").exists():
            return ""
    if os.name == "posix":
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return ""
        except PermissionError:
            return "unknown"
    return "unknown"  # only the lease's end tells


_MACHINE = _machine()
