"""The journal: every answer of a language model on disk, one line each, before it counts."""

from __future__ import annotations

import hashlib
import os
import threading
import time
import warnings
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import orjson

from ranktilt.errors import DataWarning, UserError, shorten
from ranktilt.io.cache import ABOUT, cache_folder
from ranktilt.io.files import CHUNK, cannot_write, write_bytes
from ranktilt.llm.base import LLM, Answer
from ranktilt.llm.claims import Claims, file_lock, write
from ranktilt.llm.entry import KEY_BYTES, Entry, key, key_of, read

__all__ = ["Entry", "Journal", "journal_folder", "key"]

ANSWERS, CLAIMS, LOCK = "answers.jsonl", "claims", "journal.lock"
_BLOCK = 16_384
_BINARY = getattr(os, "O_BINARY", 0)
_SYNC = 1.0
"""Seconds between two waits for the disk: what a loss of power may take, and nothing else can."""


def journal_folder(llm: LLM) -> Path:
    """Return where a model's answers are kept: a folder of the cache named after a hash of its identity."""
    name = hashlib.blake2b(llm.identity.encode(), digest_size=KEY_BYTES).hexdigest()
    return cache_folder() / "llm" / name


class Journal:
    """The answers of one model, in a file that grows line by line.

    Several processes may use one folder at the same time, and each may be killed at any moment: what was appended
    stays, and a line that was cut off is taken away by the next who appends. Reading needs no right to write. An
    object may be used by several threads.

    Parameters
    ----------
    folder : Path
        Of one model only; made when something is claimed or appended.
    about : mapping, optional
        What the model is, for people; written beside the answers. Plain JSON values, never a key.
    """

    def __init__(self, folder: Path, *, about: Mapping[str, Any] | None = None) -> None:
        self.folder = folder
        self.path = folder / ANSWERS
        self._about = about
        self._claims = Claims(folder / CLAIMS)
        self._between_threads = threading.RLock()
        self._offsets: dict[str, int] = {}
        self._read = self._lines = 0
        self._reading: int | None = None
        self._ready = self._looked = self._unsynced = False
        self._synced = time.monotonic()

    @classmethod
    def of(cls, llm: LLM) -> Journal:
        """Return the journal of a model, in its folder of the cache."""
        return cls(journal_folder(llm), about=llm.spec)

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        """Answers known so far."""
        self._look()
        return len(self._offsets)

    def __contains__(self, key: str) -> bool:
        """Whether the answer to a request is known so far."""
        self._look()
        return key in self._offsets

    def found(self, key: str) -> Answer | None:
        """Look up an answer.

        Parameters
        ----------
        key : str
            As `key` makes it.

        Returns
        -------
        Answer or None
            None where no answer is known so far.
        """
        entry = self.entry(key)
        return None if entry is None else entry.answer

    def entry(self, key: str) -> Entry | None:
        """Look up an answer together with what was asked for it; as `found`."""
        with self._between_threads:
            self._look()
            offset = self._offsets.get(key)
            if offset is None:
                return None
            try:
                return read(self._line(offset))
            except (OSError, ValueError, KeyError, TypeError) as error:
                raise self._changed() from error

    def _line(self, offset: int) -> bytes:
        if self._reading is None:
            self._reading = os.open(self.path, os.O_RDONLY | _BINARY)
        os.lseek(self._reading, offset, os.SEEK_SET)
        blocks = [os.read(self._reading, _BLOCK)]
        while blocks[-1] and b"\n" not in blocks[-1]:
            blocks.append(os.read(self._reading, _BLOCK))
        return b"".join(blocks).partition(b"\n")[0]

    def append(self, *entries: Entry) -> None:
        """Write answers down; they survive an interruption or kill at any later moment.

        Parameters
        ----------
        *entries : Entry
            Any number; written at once.

        Raises
        ------
        UserError
            If the disk is full or the folder cannot be written; the file is left with whole lines: with all of these
            entries where `keep_room` has kept enough.
        """
        with self._alone() as handle:
            start, lines = os.fstat(handle).st_size, [entry.line() for entry in entries]
            try:
                write(handle, b"".join(lines), unit=b"\n")
            except OSError:
                self._catch_up(handle)
                if self._claims.give_room():  # nothing paid for is lost; asking for more ends all the same
                    write(handle, b"".join(e.line() for e in entries if e.key not in self._offsets), unit=b"\n")
                    self._catch_up(handle)
                    self._unsynced = True
                raise
            for entry, line in zip(entries, lines, strict=True):
                self._offsets.setdefault(entry.key, start)
                self._claims.answered(entry.key)
                start += len(line)
            self._read, self._lines, self._unsynced = start, self._lines + len(lines), True
            if time.monotonic() - self._synced > _SYNC:
                self._sync(handle)

    def keep_room(self, size: int) -> None:
        """Keep bytes of the disk for answers that are under way when it fills up; `UserError` where it has not as many.

        Parameters
        ----------
        size : int
            Bytes; 0 for none. They are held until they are needed, or until `close`.
        """
        if size and self._claims.room is None:
            with self._alone():
                self._claims.keep_room(size)

    def claim(self, keys: Collection[str], *, most: int | None = None) -> set[str]:
        """Take requests for this process, so that no other asks them.

        Also learns what others have answered meanwhile: of the keys that are not taken, those that are in the
        journal now have their answer, the others are being asked by someone who is alive.

        Parameters
        ----------
        keys : collection of str
            Requests without an answer so far.
        most : int, optional
            Take no more than that.

        Returns
        -------
        set of str
            Those that are to be asked here. They are held until `append`, `release` or `close`, or the end of the
            process, however it ends.

        Raises
        ------
        UserError
            If the folder cannot be written.
        """
        with self._alone():
            others = [held for _, held in self._claims.of_others()]
            free = [
                k for k in keys if not (k in self._offsets or k in self._claims.mine or any(k in o for o in others))
            ]
            taken = list(dict.fromkeys(free))[:most]
            if taken:
                self._claims.take(taken)
            return set(taken)

    def release(self, keys: Collection[str]) -> None:
        """Give back requests that got no answer: another process may ask them."""
        if any(key in self._claims.mine for key in keys):
            with self._alone():
                self._claims.give_back(keys)

    def holders(self, keys: Collection[str]) -> list[int]:
        """List the processes that hold some of these requests, by number; this one is not among them."""
        with self._alone():
            wanted = set(keys)
            return sorted({int(name.partition("-")[0]) for name, held in self._claims.of_others() if held & wanted})

    def close(self) -> None:
        """Give back every claim and bring what was appended to the disk; the journal can be used again."""
        with self._between_threads:
            if self._reading is not None:
                os.close(self._reading)
                self._reading = None
            self._claims.close()
            if self._unsynced:
                self._to_disk()

    def _look(self) -> None:
        """Read the file when it is asked for the first time; later, whoever claims or appends reads on."""
        if self._looked:
            return
        with self._between_threads:
            try:
                handle = os.open(self.path, os.O_RDONLY | _BINARY)
            except FileNotFoundError:
                self._looked = True
                return
            except OSError as error:
                raise UserError(f"{self.path}: cannot be read: {error.strerror}") from error
            try:
                self._catch_up(handle)
                self._looked = True
            finally:
                os.close(handle)

    @cached_property
    def _lock(self) -> Any:
        return file_lock(self.folder / LOCK)

    @contextmanager
    def _alone(self) -> Iterator[int]:
        """Keep everyone else out; gives the file, whole and read to its end."""
        with self._between_threads:
            try:
                self._prepare()
                with self._lock:
                    handle = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | _BINARY, 0o666)
                    try:
                        self._catch_up(handle)
                        self._repair(handle)
                        yield handle
                    finally:
                        os.close(handle)
            except OSError as error:
                raise UserError(
                    f"{cannot_write(self.path, error)} (RANKTILT_CACHE names the cache's folder)"
                ) from error

    def _prepare(self) -> None:
        if self._ready:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        if self._about is not None and not (self.folder / ABOUT).exists():
            about = orjson.dumps({"what": "llm", **self._about}, option=orjson.OPT_APPEND_NEWLINE)
            write_bytes(self.folder / ABOUT, about)
        self._ready = True

    def _catch_up(self, handle: int) -> None:
        """Read the whole lines that were added since the last look."""
        if os.fstat(handle).st_size < self._read:
            raise self._changed()
        rest, _ = b"", os.lseek(handle, self._read, os.SEEK_SET)
        while block := os.read(handle, CHUNK):
            *lines, rest = (rest + block).split(b"\n")
            for line in lines:
                self._note(line)

    def _note(self, line: bytes) -> None:
        """Remember where a line stands, which comes without its end."""
        offset = self._read
        self._read, self._lines = offset + len(line) + 1, self._lines + 1
        name = key_of(line)
        if name is not None:
            self._offsets.setdefault(name, offset)
            self._claims.answered(name)
        elif line.strip():
            message = f"{self.path}:{self._lines}: a damaged line is passed over, its answer is asked again: "
            warnings.warn(message + shorten(line.decode(errors="replace").strip()), DataWarning, stacklevel=2)

    def _repair(self, handle: int) -> None:
        """Cut off what stands behind the last whole line: whoever wrote it is dead, for nobody else has the lock."""
        size = os.fstat(handle).st_size
        if size == self._read:
            return
        os.lseek(handle, self._read, os.SEEK_SET)
        rest = os.read(handle, size - self._read)
        if key_of(rest) is not None:  # nothing but the line's end is missing
            write(handle, b"\n")
            self._note(rest)
            return
        os.ftruncate(handle, self._read)
        message = f"{self.path}:{self._lines + 1}: the last line was cut off when a process was killed, and is removed"
        warnings.warn(message, DataWarning, stacklevel=2)

    def _to_disk(self) -> None:
        try:
            handle = os.open(self.path, os.O_RDWR | _BINARY)
            try:
                self._sync(handle)
            finally:
                os.close(handle)
        except OSError as error:
            raise cannot_write(self.path, error) from error

    def _sync(self, handle: int) -> None:
        self._unsynced, self._synced = False, time.monotonic()
        os.fsync(handle)

    def _changed(self) -> UserError:
        return UserError(f"{self.path}: something else changed the file while it was in use; run the command again")
