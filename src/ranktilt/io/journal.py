"""The journal: every answer that was paid for is on disk before it counts, and leases say who is asking what.

It is one SQLite file in WAL mode, or in that of a plain rollback journal where WAL is not available.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import threading
import time
import uuid
import warnings
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import orjson

from ranktilt.errors import DataWarning, UserError, shorten
from ranktilt.io import leases
from ranktilt.io.cache import ABOUT
from ranktilt.io.files import cannot_write, write_bytes
from ranktilt.io.records import old_records, unsealed

JOURNAL, JSONL = "journal.sqlite", "answers.jsonl"
"""The file, and that of earlier versions, which is taken over once and left where it is."""
_VERSION = 1
_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS records (key TEXT PRIMARY KEY, record BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS taken_over (file TEXT PRIMARY KEY, bytes INTEGER NOT NULL);
{leases.SCHEMA}"""
_SYNC = 1.0
"""Seconds between two waits for the disk: what a loss of power may take, and nothing else can."""
_BUSY = 60.0
_CHECKPOINT = 8_000
"""Pages (of 4 kB) in the WAL until they are moved into the file, which waits for the disk twice."""
_ZEROS = bytes(1 << 20)
_NETWORK = ("nfs", "cifs", "smb", "9p", "fuse", "lustre", "gpfs", "beegfs", "ceph", "afs", "pvfs", "ocfs", "gfs")


class Journal:
    """The answers of one model, by the keys of requests.

    Several processes may use one folder at the same time, and each may be killed at any moment: what was appended
    stays. Reading needs no right to write. An object may be used by several threads. The folder is of one model only,
    and made when something is leased or appended; `about` says for people what the model is (plain JSON, never a key).
    """

    def __init__(self, folder: Path, *, about: Mapping[str, Any] | None = None) -> None:
        self.folder, self.path = folder, folder / JOURNAL
        self._about = about
        self._guard = threading.RLock()
        self._db: sqlite3.Connection | None = None
        self._file: os.stat_result | None = None
        self._writable = self._wal = False
        self._owner = f"{os.getpid()}-{uuid.uuid4().hex[:12]}"
        self._leased: set[str] = set()
        self._renewing: threading.Event | None = None
        self._room: bool | None = None  # None where none was asked for
        self._synced = time.monotonic()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        """Answers so far."""
        with self._reading() as db:
            return 0 if db is None else int(db.execute("SELECT count(*) FROM records").fetchone()[0])

    def __contains__(self, key: str) -> bool:
        """Whether the answer to a request is known so far."""
        return key in self.known([key])

    def read(self, keys: Collection[str]) -> dict[str, dict[str, Any]]:
        """Look up records: those that are known so far, by key."""
        with self._reading() as db:
            return {} if db is None else self._found(db, keys)[0]

    def known(self, keys: Collection[str]) -> set[str]:
        """Return which requests have an answer so far; quicker than `read`, which looks whether it is whole."""
        with self._reading() as db:
            if db is None:
                return set()
            rows = db.execute(f"SELECT key FROM records {leases.WITH_KEYS}", [leases.names(keys)])
            return {name for (name,) in rows}

    def append(self, records: Mapping[str, bytes]) -> None:
        """Write records down, as `sealed` makes them; they survive an interruption or kill at any later moment.

        The first record of a key counts. Raises `UserError` if the disk is full or the folder cannot be written: all
        of them are kept where `keep_room` has kept enough, or else none.
        """
        try:
            self._store(records)
        except UserError:
            if self._give_room():  # nothing paid for is lost; asking for more ends all the same
                self._store(records)
            raise

    def lease(self, keys: Collection[str], *, most: int | None = None) -> set[str]:
        """Take requests without an answer for this process, so that no other asks them; at most so many.

        They are held until `append`, `release` or `close`, or the end of the process, however it ends. Of the others,
        those that are in the journal by now have their answer, and the rest are being asked by someone who is alive.
        """
        with self._writing() as db:
            self._forget_the_dead(db)
            found, damaged = self._found(db, keys)
            held = leases.held(db, keys)
            taken = [name for name in dict.fromkeys(keys) if name not in held and name not in found][:most]
            db.executemany("DELETE FROM records WHERE key = ?", [(name,) for name in damaged])
            if taken:
                leases.take(db, self._owner, taken)
        with self._guard:
            self._leased.update(taken)
            if self._leased and self._renewing is None:
                self._renewing = threading.Event()
                threading.Thread(target=self._renew, args=(self._renewing,), daemon=True).start()
        return set(taken)

    def release(self, keys: Collection[str]) -> None:
        """Give back requests that got no answer: another process may ask them."""
        with self._guard:
            given = self._leased.intersection(keys)
            self._leased -= given
            if given:
                with suppress(UserError), self._writing() as db:  # on a full disk they are held until we end
                    leases.give_back(db, given)

    def holders(self, keys: Collection[str]) -> list[int]:
        """List the processes that hold some of these requests, by number; this one is not among them."""
        with self._writing() as db:
            self._forget_the_dead(db)
            return leases.holders(db, keys, but=self._owner)

    def keep_room(self, size: int) -> None:
        """Keep bytes of the disk for answers that are under way when it fills up; `UserError` where it has not as many.

        They are held until they are needed, or until `close`; 0 for none.
        """
        with self._guard:
            if not size or self._room is not None:
                return
            try:
                self._make_folder()
                self._room = False
                _allocate(self._room_file, size)
            except OSError as error:
                self._room_file.unlink(missing_ok=True)
                raise self._cannot_write(error) from error
            self._room = True

    def close(self) -> None:
        """Give back every lease and bring what was appended to the disk; the journal can be used again."""
        with self._guard:
            if self._renewing is not None:
                self._renewing.set()
                self._renewing = None
                with suppress(UserError), self._writing() as db:
                    leases.forget(db, self._owner)
            self._leased.clear()
            self._give_room()
            self._room = None
            if self._db is not None:
                self._db.close()
                self._db = None

    def _store(self, records: Mapping[str, bytes]) -> None:
        with self._writing() as db:
            db.executemany("INSERT INTO records VALUES (?, ?) ON CONFLICT DO NOTHING", list(records.items()))
            leases.give_back(db, records)
        with self._guard:
            self._leased.difference_update(records)

    def _found(self, db: sqlite3.Connection, keys: Collection[str]) -> tuple[dict[str, dict[str, Any]], list[str]]:
        """Whole records, and the keys of damaged ones, which are warned of and asked again."""
        found, damaged = dict[str, dict[str, Any]](), list[str]()
        for name, record in db.execute(f"SELECT key, record FROM records {leases.WITH_KEYS}", [leases.names(keys)]):
            try:
                found[name] = unsealed(record)
            except ValueError:
                damaged.append(name)
                shown = shorten(bytes(record).decode(errors="replace"))
                message = f"{self.path}: a damaged answer is passed over, it is asked again: {shown}"
                warnings.warn(message, DataWarning, stacklevel=4)
        return found, damaged

    # Leases

    def _renew(self, stopped: threading.Event) -> None:
        while not stopped.wait(leases.LEASE / 4):
            with self._guard, suppress(UserError):
                if not stopped.is_set() and self._leased:
                    with self._writing() as db:
                        leases.renew(db, self._owner)

    def _forget_the_dead(self, db: sqlite3.Connection) -> None:
        for owner in leases.forget_the_dead(db):
            (self.folder / f"{owner}.room").unlink(missing_ok=True)

    @property
    def _room_file(self) -> Path:
        return self.folder / f"{self._owner}.room"

    def _give_room(self) -> bool:
        """Leave the room to what is to be written now; False where none was kept."""
        kept, self._room = bool(self._room), False if self._room is not None else None
        if kept:
            with suppress(OSError):
                self._room_file.unlink(missing_ok=True)
        return kept

    # The file

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection | None]:
        """The file as it is; None where there is none, and nothing is made."""
        with self._guard:
            try:
                if self._db is None and any(_is_file(self.folder / name) for name in (JOURNAL, JSONL)):
                    try:
                        self._open()
                    except sqlite3.OperationalError as error:
                        if not error.sqlite_errorname.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN")):
                            raise
                        self._open_read_only()
                yield self._db
            except OSError as error:
                raise UserError(f"{self.path}: cannot be read: {error.strerror}") from error
            except sqlite3.Error as error:
                raise self._refusal(error) from error

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction: all of it is written, or nothing."""
        with self._guard:
            try:
                if self._db is None or not self._writable:
                    self._make_folder()
                    self._open()
                db = self._db
                if db is None or self._file is None or not os.path.samestat(self._file, self.path.stat()):
                    raise FileNotFoundError
                self._begin(db)
                try:
                    yield db
                    db.execute("COMMIT")
                finally:
                    if db.in_transaction:
                        db.execute("ROLLBACK")
            except FileNotFoundError as error:
                message = f"{self.path}: something else changed the file while it was in use; run the command again"
                raise UserError(message) from error
            except OSError as error:
                raise self._cannot_write(error) from error
            except sqlite3.Error as error:
                raise self._refusal(error) from error

    def _begin(self, db: sqlite3.Connection) -> None:
        """Begin a transaction; once a second one that waits until the disk has all before."""
        if self._wal:
            durable = time.monotonic() - self._synced > _SYNC
            db.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            self._synced = time.monotonic() if durable else self._synced
        db.execute("BEGIN IMMEDIATE")

    def _open(self) -> None:
        db = sqlite3.connect(self.path, timeout=_BUSY, isolation_level=None, check_same_thread=False)
        try:
            (version,) = db.execute("PRAGMA user_version").fetchone()
            if version > _VERSION:
                raise UserError(
                    f"{self.path}: was written by a later version of RankTilt; update it to use this journal"
                )
            self._wal = _mode(db, self.folder) == "wal"
            db.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT}")
            if version < _VERSION or self._old_bytes() != _taken_over(db):
                db.execute("BEGIN IMMEDIATE")
                for statement in _SCHEMA.split(";"):
                    db.execute(statement)
                db.execute(f"PRAGMA user_version = {_VERSION}")
                self._take_over(db)
                db.execute("COMMIT")
        except BaseException:
            db.close()
            raise
        if self._db is not None:
            self._db.close()
        self._db, self._writable, self._file = db, True, self.path.stat()

    def _open_read_only(self) -> None:
        """Open what may not be written: nobody can change it, so that no lock is needed."""
        if _is_file(self.path):
            place = f"{self.path.absolute().as_uri()}?immutable=1"
            db = sqlite3.connect(place, uri=True, isolation_level=None, check_same_thread=False)
        else:
            db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
            db.executescript(_SCHEMA)
            self._take_over(db)
        self._db, self._writable = db, False

    def _make_folder(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        if self._about is not None and not (self.folder / ABOUT).exists():
            about = orjson.dumps({"what": "llm", **self._about}, option=orjson.OPT_APPEND_NEWLINE)
            write_bytes(self.folder / ABOUT, about)

    def _old_bytes(self) -> int:
        return (self.folder / JSONL).stat().st_size if _is_file(self.folder / JSONL) else 0

    def _take_over(self, db: sqlite3.Connection) -> None:
        """Copy the lines of an earlier version's file, those that were added since the last time."""
        if not self._old_bytes():
            return
        old, start = self.folder / JSONL, _taken_over(db)
        data = old.read_bytes()
        start = start if data[:start].endswith(b"\n") and start <= len(data) else 0
        whole = old_records(old, data, start=start)
        db.executemany("INSERT INTO records VALUES (?, ?) ON CONFLICT DO NOTHING", whole)
        db.execute("INSERT OR REPLACE INTO taken_over VALUES (?, ?)", [JSONL, len(data)])

    def _refusal(self, error: sqlite3.Error) -> UserError:
        if not isinstance(error, sqlite3.OperationalError):
            return UserError(f"{self.path}: is damaged ({error}); move it away, and its answers are asked again")
        if error.sqlite_errorname.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            return UserError(f"{self.path}: another process holds it since {_BUSY:g} s; run the command again")
        if error.sqlite_errorname == "SQLITE_FULL":
            return self._cannot_write(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
        return self._cannot_write(self._reason() or OSError(errno.EIO, str(error)))

    def _reason(self) -> OSError | None:
        """Why the folder cannot be written, in the system's words, which SQLite keeps to itself."""
        try:
            probe = self._room_file.with_suffix(".probe")  # never the file itself: closing it would drop our locks
            probe.touch()
            probe.unlink()
        except OSError as error:
            return error
        return None if os.access(self.path, os.W_OK) else OSError(errno.EACCES, os.strerror(errno.EACCES))

    def _cannot_write(self, error: OSError) -> UserError:
        return UserError(f"{cannot_write(self.path, error)} (RANKTILT_CACHE names the cache's folder)")


def count_records(folder: Path) -> int:
    """Count the answers in a journal's folder, those of an earlier version too; 0 where none can be read."""
    if not (folder / JOURNAL).is_file():
        with suppress(OSError):
            return (folder / JSONL).read_bytes().count(b"\n")
    for access in ("mode=ro", "immutable=1"):  # the second where nobody may write
        place = f"{(folder / JOURNAL).absolute().as_uri()}?{access}"
        with suppress(OSError, sqlite3.Error), closing(sqlite3.connect(place, uri=True)) as db:
            return int(db.execute("SELECT count(*) FROM records").fetchone()[0])
    return 0


def _is_file(path: Path) -> bool:
    """Whether it is there; `OSError` where that cannot be told, as below a file in the place of a folder."""
    try:
        path.stat()
    except FileNotFoundError:
        return False
    return True


def _taken_over(db: sqlite3.Connection) -> int:
    row = db.execute("SELECT bytes FROM taken_over WHERE file = ?", [JSONL]).fetchone()
    return row[0] if row else 0


def _allocate(path: Path, size: int) -> None:
    """Make a file whose every byte has its place on the disk."""
    with path.open("wb") as stream:
        if hasattr(os, "posix_fallocate"):
            with suppress(OSError):  # a file system that cannot, or no room: writing tells which
                os.posix_fallocate(stream.fileno(), 0, size)
                return
        for start in range(0, size, len(_ZEROS)):
            stream.write(_ZEROS[: size - start])


def _mode(db: sqlite3.Connection, folder: Path) -> str:
    """Switch to WAL where that is available; returns the mode that holds.

    WAL keeps an index in shared memory, which other machines on a network file system do not see.
    """
    wanted, (mode,) = "delete" if _on_network(folder) else "wal", db.execute("PRAGMA journal_mode").fetchone()
    if mode != wanted:
        with suppress(sqlite3.OperationalError):
            (mode,) = db.execute(f"PRAGMA journal_mode = {wanted}").fetchone()
    return str(mode)


def _on_network(folder: Path) -> bool:
    """Whether a folder lies on a file system that other machines reach too."""
    with suppress(OSError):
        place, kinds = os.path.realpath(folder), dict[str, str]()
        for line in Path("/proc/mounts").read_text(encoding="utf-8", errors="replace").splitlines():
            mount, kind = (part.replace("\\040", " ") for part in line.split(" ")[1:3])
            if f"{place}/".startswith(f"{mount.rstrip('/')}/"):
                kinds[mount] = kind
        return bool(kinds) and kinds[max(kinds, key=len)].startswith(_NETWORK)
    return False
