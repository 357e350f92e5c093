"""Which mode an SQLite file is written in: WAL, or a plain rollback journal where WAL is not available."""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress
from pathlib import Path

_NETWORK = ("nfs", "cifs", "smb", "9p", "fuse", "lustre", "gpfs", "beegfs", "ceph", "afs", "pvfs", "ocfs", "gfs")


def journal_mode(db: sqlite3.Connection, folder: Path) -> str:
    """Switch to WAL where that is available; returns the mode that holds.

    WAL keeps an index in shared memory, which other machines on a network file system do not see.
    """
    wanted, (mode,) = "delete" if on_network(folder) else "wal", db.execute("PRAGMA journal_mode").fetchone()
    if mode != wanted:
        with suppress(sqlite3.OperationalError):
            (mode,) = db.execute(f"PRAGMA journal_mode = {wanted}").fetchone()
    return str(mode)


def on_network(folder: Path) -> bool:
    """Whether a folder lies on a file system that other machines reach too."""
    with suppress(OSError):
        place, kinds = os.path.realpath(folder), dict[str, str]()
        for line in Path("/proc/mounts").read_text(encoding="utf-8", errors="replace").splitlines():
            mount, kind = (part.replace("\\040", " ") for part in line.split(" ")[1:3])
            if f"{place}/".startswith(f"{mount.rstrip('/')}/"):
                kinds[mount] = kind
        return bool(kinds) and kinds[max(kinds, key=len)].startswith(_NETWORK)
    return False
