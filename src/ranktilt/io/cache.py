"""The cache: vectors by the hash of their content, on disk, safe to share and to interrupt."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import uuid
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import platformdirs

from ranktilt.errors import DataWarning, UserError, unknown
from ranktilt.io.files import cannot_write
from ranktilt.io.vectors import KEY_BYTES, STORES, SUFFIX, Keys, Shard, rows_at_once, whole_file, write_shard

__all__ = ["ABOUT", "KEY_BYTES", "STORES", "Keys", "Stored", "VectorCache", "Vectors", "cache_folder", "content_keys"]

Vectors = npt.NDArray[np.float32]

ABOUT = "about.json"
MOST_FILES, MERGED = 64, 48
_AT_ONCE = 128
_TRIES = 100


def cache_folder() -> Path:
    """Return where expensive results are kept: ``RANKTILT_CACHE``, or the platform's user cache."""
    named = os.environ.get("RANKTILT_CACHE")
    return Path(named).expanduser() if named else platformdirs.user_cache_path("ranktilt")


def content_keys(texts: Iterable[str], *, prefix: str = "") -> Keys:
    """Hash texts, and what else a cached value depends on, to 16 bytes each."""
    start = hashlib.blake2b(prefix.encode() + b"\0", digest_size=KEY_BYTES)
    digests = []
    for text in texts:
        one = start.copy()
        one.update(text.encode())
        digests.append(one.digest())
    return np.frombuffer(b"".join(digests), dtype=f"V{KEY_BYTES}")


class Stored:
    """Vectors that lie in files, by part (−1: not found) and row, in the order in which keys were looked up."""

    def __init__(
        self, vectors: Sequence[npt.NDArray[np.floating[Any]]], part: npt.NDArray[np.int32], row: npt.NDArray[np.int64]
    ) -> None:
        self._vectors = vectors
        self._part = part
        self._row = row

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and length of a vector; the length is 0 where nothing is known."""
        return len(self._row), self._vectors[0].shape[1] if self._vectors else 0

    def __len__(self) -> int:
        """Rows."""
        return len(self._row)

    def read(self, start: int, stop: int) -> Vectors:
        """Read rows `start` to `stop`, as of a slice; zeros where one was not found."""
        return self._gather(self._part[start:stop], self._row[start:stop])

    def take(self, rows: npt.ArrayLike) -> Vectors:
        """Read any rows, repeats allowed; zeros where one was not found."""
        which = np.asarray(rows, dtype=np.int64)
        return self._gather(self._part[which], self._row[which])

    def _gather(self, part: npt.NDArray[np.int32], row: npt.NDArray[np.int64]) -> Vectors:
        made = np.zeros((len(row), self.shape[1]), dtype=np.float32)
        for number in np.unique(part[part >= 0]):
            here = part == number
            made[here] = self._vectors[number][row[here]]
        return made


class VectorCache:
    """Vectors of one length under content keys, in files that are written whole and never changed.

    Several processes may use one folder at the same time, and each may be killed at any moment: a file is either there,
    whole, or it is not. `about` says for ``ranktilt cache`` what is kept here.
    """

    def __init__(self, folder: Path, *, dtype: str = "float32", about: Mapping[str, Any] | None = None) -> None:
        if dtype not in STORES:
            raise unknown("store of vectors", dtype, STORES)
        self.folder = folder
        self._dtype = STORES[dtype]
        self._about = about

    def get(self, keys: Keys) -> tuple[npt.NDArray[np.bool_], Stored]:
        """Look up keys, repeats allowed: which are there, and their vectors, to be read."""
        part = np.full(len(keys), -1, dtype=np.int32)
        row = np.zeros(len(keys), dtype=np.int64)
        shards = self._shards()
        for number, shard in enumerate(shards):
            missing = np.flatnonzero(part < 0)
            at = np.minimum(np.searchsorted(shard.keys, keys[missing]), len(shard.keys) - 1)
            hit = np.flatnonzero(shard.keys[at] == keys[missing])
            sound = shard.sound(at[hit])
            if not sound.all():
                self._mend(shard)
            hit = hit[sound]
            part[missing[hit]], row[missing[hit]] = number, at[hit]
        found = part >= 0
        if found.any():
            with suppress(OSError):  # says when it was last of use; a folder of someone else's need not
                os.utime(self.folder / ABOUT)
        return found, Stored([shard.vectors for shard in shards], part, row)

    def put(self, keys: Keys, vectors: Vectors) -> None:
        """Store vectors under keys, each once; what is stored survives an interruption at any later moment."""
        if not vectors.size:
            return
        with np.errstate(over="ignore"):
            made = vectors.astype(self._dtype)
        if made.dtype != vectors.dtype and np.isinf(made).any():
            raise UserError(f"{self.folder}: float16 cannot hold numbers beyond 65,504; choose store=float32")
        order = np.argsort(keys)
        try:
            for _ in range(_TRIES):
                with suppress(FileNotFoundError, FileExistsError):  # another process prunes at this very moment
                    self._store(keys[order], made[order])
                    break
            else:
                self._store(keys[order], made[order])
        except OSError as error:
            raise self._cannot_write(error) from error
        with suppress(OSError):
            if len(self._paths()) > MOST_FILES:
                with locked(self.folder):
                    self._merge()

    def require_writable(self) -> None:
        """Find out before hours of work whether the cache can be written; `UserError` if not."""
        probe = self.folder / f"{uuid.uuid4().hex}.probe"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            probe.write_bytes(b"0")
        except OSError as error:
            raise self._cannot_write(error) from error
        finally:
            with suppress(OSError):
                probe.unlink(missing_ok=True)

    def _cannot_write(self, error: OSError) -> UserError:
        return UserError(f"{cannot_write(self.folder, error)} (RANKTILT_CACHE names the cache's folder)")

    def _store(self, keys: Keys, made: npt.NDArray[np.floating[Any]]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        if not (self.folder / ABOUT).exists():
            text = json.dumps({"what": self.folder.parent.name, **(self._about or {})}, ensure_ascii=False)
            with whole_file(self.folder / ABOUT) as stream:
                stream.write(text.encode())
        write_shard(self.folder, keys, made.shape[1], [made])

    def _paths(self) -> list[Path]:
        return sorted(self.folder.glob(f"*{SUFFIX}"))

    def _shards(self) -> list[Shard]:
        """Open all files; where one goes away meanwhile, because another process merges, look again."""
        for _ in range(_TRIES):
            with suppress(FileNotFoundError):
                return self._opened()
        raise UserError(f"{self.folder}: files of the cache vanish while they are read; is it being pruned?")

    def _opened(self) -> list[Shard]:
        found: list[Shard] = []
        for path in self._paths():
            try:
                shard = Shard.open(path)
                if found and shard.vectors.shape[1] != found[0].vectors.shape[1]:
                    raise ValueError(f"vectors of {shard.vectors.shape[1]} numbers, not {found[0].vectors.shape[1]}")
            except FileNotFoundError:
                raise
            except (OSError, ValueError) as error:
                message = f"{path}: a damaged file of the cache is passed over, what it held is made again: {error}"
                warnings.warn(message, DataWarning, stacklevel=5)
                continue
            found.append(shard)
        return found

    def _mend(self, shard: Shard) -> None:
        """Put a file of what is sound in the place of one that has changed; in a folder that is not ours it stays."""
        message = f"{shard.path}: a damaged file of the cache, what it held there is made again: it has changed"
        warnings.warn(message, DataWarning, stacklevel=3)
        with suppress(OSError), locked(self.folder):
            self._rewrite([shard])

    def _merge(self) -> None:
        """Write the smallest files as one."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            small = sorted(self._shards(), key=lambda shard: len(shard.keys))[:MERGED]
        if len(small) > 1:
            self._rewrite(small)

    def _rewrite(self, old: Sequence[Shard]) -> None:
        """Write what is sound in some files as one; who has the old ones open reads on."""
        rows = [np.flatnonzero(shard.sound(np.arange(len(shard.keys)))) for shard in old]
        keys = np.concatenate([shard.keys[some] for shard, some in zip(old, rows, strict=True)])
        part = np.repeat(np.arange(len(old), dtype=np.int32), [len(some) for some in rows])
        order = np.argsort(keys, kind="stable")
        order = order[np.append(True, keys[order][1:] != keys[order][:-1])[: len(order)]]
        stored = Stored([shard.vectors for shard in old], part[order], np.concatenate(rows)[order])
        step = rows_at_once(stored.shape[1], self._dtype) * _AT_ONCE
        blocks = (stored.read(i, i + step).astype(self._dtype) for i in range(0, len(order), step))
        if len(order):
            write_shard(self.folder, keys[order], stored.shape[1], blocks)
        for shard in old:
            with suppress(OSError):
                shard.path.unlink(missing_ok=True)


@contextmanager
def alone(task: str) -> Iterator[None]:
    """Keep other processes of this machine from the same task; `BlockingIOError` where one is at it."""
    digest = hashlib.blake2b(task.encode(errors="surrogateescape"), digest_size=KEY_BYTES).hexdigest()
    folder = Path(tempfile.gettempdir()) / f"ranktilt-{digest}"
    with ExitStack() as stack:
        try:
            folder.mkdir(exist_ok=True)
            stack.enter_context(locked(folder))
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
        except BlockingIOError:
            raise
        except OSError:  # no locks here
            pass
        yield


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other processes from doing the same to a folder; `OSError` where one does, or nothing can keep them."""
    try:
        import fcntl
    except ImportError as error:  # Windows: files stay as they are, which is only slower
        raise OSError("no locks here") from error
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)
