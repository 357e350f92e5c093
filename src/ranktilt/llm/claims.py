"""Claims: which process asks what, so that two of them do not pay for the same answer."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ranktilt.optional import need

POLL = 0.002
"""Seconds between two tries for a file lock that another process has: they are held for less than that."""
_LOCK, _KEYS, _ROOM = ".lock", ".keys", ".room"
_ZEROS = bytes(1 << 20)


def file_lock(path: Path) -> Any:
    """Make a lock between processes that the system frees when its holder dies.

    Parameters
    ----------
    path : Path
        The file that stands for it; made when it is taken.

    Returns
    -------
    filelock.FileLock
        To be held in a ``with`` block, by any thread.

    Raises
    ------
    MissingExtra
        If the package filelock is not installed.
    """
    filelock = need("filelock", extra="llm", for_="the journal of answers")
    return filelock.FileLock(path, thread_local=False, poll_interval=POLL)


@dataclass
class _Other:
    """What is known of another holder: how much of its file is read, and the keys that it holds."""

    read: int = 0
    keys: set[str] = field(default_factory=set)


class Claims:
    """Keys that this holder has taken, and those that others hold.

    A holder is a pair of files: a lock that it holds for as long as it lives, and the keys that it took and gave
    back. The system frees the lock of a process that dies, however it dies, and its keys are free from then on.
    Every method but `close` has to be called while the journal's own lock is held.

    Parameters
    ----------
    folder : Path
        Made with the first claim.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mine: set[str] = set()
        self._name = f"{os.getpid()}-{uuid.uuid4().hex[:12]}"
        self._lock: Any = None
        self._others: dict[str, _Other] = {}
        self.room: bool | None = None
        """Whether room is kept; None where none was asked for."""

    def take(self, keys: Iterable[str]) -> None:
        """Write down keys as ours.

        Raises
        ------
        OSError
            If that cannot be written; then none of them is ours.
        """
        taken = list(keys)
        self._hold()
        self._note("+", taken)
        self.mine.update(taken)

    def give_back(self, keys: Iterable[str]) -> None:
        """Write down that keys are free again; without effect on keys that are not ours."""
        given = [key for key in keys if key in self.mine]
        self.mine.difference_update(given)
        if given:
            with suppress(OSError):  # a full disk: whoever waits for them does so until we close or end
                self._note("-", given)

    def keep_room(self, size: int) -> None:
        """Take so much of the disk, until `give_room` or `close`; without effect once it is taken or given.

        Raises
        ------
        OSError
            If there is not as much.
        """
        path = self.folder / f"{self._name}{_ROOM}"
        if self.room is not None:
            return
        self._hold()
        self.room = False
        try:
            _allocate(path, size)
        except BaseException:
            _remove(path)
            raise
        self.room = True

    def give_room(self) -> bool:
        """Leave the room to what is to be written now; False where none was kept."""
        kept, self.room = bool(self.room), False
        _remove(self.folder / f"{self._name}{_ROOM}")
        return kept

    def answered(self, key: str) -> None:
        """Forget a key whose answer lies in the journal, which needs nobody's claim any more."""
        self.mine.discard(key)

    def of_others(self) -> list[tuple[str, set[str]]]:
        """List the live holders beside us, and tidy up behind the dead.

        Returns
        -------
        list of (str, set of str)
            Name of the holder, which begins with the number of its process, and the keys that it holds.
        """
        found = {}
        for name in self._names():
            if not self._died(name):
                found[name] = self._others.get(name) or _Other()
                self._read(name, found[name])
        self._others = found
        return [(name, other.keys) for name, other in found.items()]

    def close(self) -> None:
        """Give back everything; what is taken afterwards begins anew."""
        if self._lock is not None:
            self.give_room()
            self.room = None
            _remove(self.folder / f"{self._name}{_KEYS}")
            _remove(self.folder / f"{self._name}{_LOCK}")
            self._lock.release()
            self._lock = None
        self.mine.clear()

    def _hold(self) -> None:
        if self._lock is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = file_lock(self.folder / f"{self._name}{_LOCK}")
            lock.acquire()
            self._lock = lock

    def _note(self, sign: str, keys: list[str]) -> None:
        data = "".join(f"{sign}{key}\n" for key in keys).encode()
        append(self.folder / f"{self._name}{_KEYS}", data)

    def _names(self) -> Iterator[str]:
        with suppress(FileNotFoundError):
            for path in sorted(self.folder.glob(f"*{_LOCK}")):
                if path.stem != self._name:
                    yield path.stem

    def _died(self, name: str) -> bool:
        filelock = need("filelock", extra="llm", for_="the journal of answers")
        lock = file_lock(self.folder / f"{name}{_LOCK}")
        try:
            lock.acquire(blocking=False)
        except filelock.Timeout:
            return False
        for end in (_ROOM, _KEYS, _LOCK):
            _remove(self.folder / f"{name}{end}")
        lock.release()
        return True

    def _read(self, name: str, other: _Other) -> None:
        with suppress(FileNotFoundError), (self.folder / f"{name}{_KEYS}").open("rb") as stream:
            stream.seek(other.read)
            data = stream.read()
            other.read += len(data)
            for line in data.decode("ascii").splitlines():
                (other.keys.add if line[0] == "+" else other.keys.discard)(line[1:])


def append(path: Path, data: bytes) -> None:
    """Append bytes to a file, all of them or none.

    Parameters
    ----------
    path : Path
        Made where it is not there.
    data : bytes
        What to append.

    Raises
    ------
    OSError
        If that cannot be written; the file is as long as before.
    """
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
    try:
        write(handle, data)
    finally:
        os.close(handle)


def write(handle: int, data: bytes, *, unit: bytes = b"") -> None:
    """Write bytes at the end of an open file, all of them or none.

    Parameters
    ----------
    handle : int
        Of a file opened to append.
    data : bytes
        What to write.
    unit : bytes, optional
        Ends a piece that is worth keeping: whole pieces that were written before an error stay.

    Raises
    ------
    OSError
        If there is no room; the file is cut back to what it was, and the whole pieces written since.
    """
    before, left = os.fstat(handle).st_size, memoryview(data)
    try:
        while left:
            left = left[os.write(handle, left) :]
    except BaseException:
        whole = data.rfind(unit, 0, len(data) - len(left)) + len(unit) if unit else 0
        os.ftruncate(handle, before + max(whole, 0))
        raise


def _allocate(path: Path, size: int) -> None:
    """Make a file whose every byte has its place on the disk."""
    with path.open("wb") as stream:
        if hasattr(os, "posix_fallocate"):
            with suppress(OSError):  # a file system that cannot, or no room: writing tells which
                os.posix_fallocate(stream.fileno(), 0, size)
                return
        for start in range(0, size, len(_ZEROS)):
            stream.write(_ZEROS[: size - start])


def _remove(path: Path) -> None:
    with suppress(OSError):  # where a file in use cannot go, the next holder's look takes it away
        path.unlink(missing_ok=True)
