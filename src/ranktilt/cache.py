"""The cache: vectors by the hash of their content, on disk, safe to share and to interrupt."""

from __future__ import annotations

import hashlib
import os
import uuid
import warnings
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import numpy as np
import numpy.typing as npt
import platformdirs

from ranktilt.errors import DataWarning
from ranktilt.files import cannot_write

KEY_BYTES = 16
Keys = npt.NDArray[np.void]
Vectors = npt.NDArray[np.float32]


def cache_folder() -> Path:
    """Return where RankTilt keeps what is expensive to make again.

    Returns
    -------
    Path
        The environment's ``RANKTILT_CACHE``, or the platform's user cache.
    """
    named = os.environ.get("RANKTILT_CACHE")
    return Path(named).expanduser() if named else platformdirs.user_cache_path("ranktilt")


def content_keys(texts: Iterable[str], *, prefix: str = "") -> Keys:
    """Hash texts.

    Parameters
    ----------
    texts : iterable of str
        The content.
    prefix : str, optional
        What else the cached value depends on.

    Returns
    -------
    ndarray of 16-byte records
        Equal for equal content, and for no other.
    """
    start = hashlib.blake2b(prefix.encode() + b"\0", digest_size=KEY_BYTES)
    digests = []
    for text in texts:
        one = start.copy()
        one.update(text.encode())
        digests.append(one.digest())
    return np.frombuffer(b"".join(digests), dtype=f"V{KEY_BYTES}")


class VectorCache:
    """Vectors of one length under content keys, in files that are written whole and never changed.

    Two processes may use one folder at the same time: each adds files of its own.

    Parameters
    ----------
    folder : Path
        Made when something is stored.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, keys: Keys) -> tuple[npt.NDArray[np.bool_], Vectors]:
        """Look up keys.

        Returns
        -------
        found : ndarray of bool, shape (n,)
            Which keys are there.
        vectors : ndarray of float32, shape (n, d)
            Their vectors, zeros where not found; d is 0 for an empty cache.
        """
        found = np.zeros(len(keys), dtype=bool)
        vectors: Vectors | None = None
        for shard in self._shards():
            order = np.argsort(shard["key"])
            known = shard["key"][order]
            at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
            hit = (known[at] == keys) & ~found
            if vectors is None:
                vectors = np.zeros((len(keys), shard["vector"].shape[1]), dtype=np.float32)
            vectors[hit] = shard["vector"][order[at[hit]]]
            found |= hit
        return found, np.zeros((len(keys), 0), dtype=np.float32) if vectors is None else vectors

    def put(self, keys: Keys, vectors: Vectors) -> None:
        """Store vectors; what is stored survives an interruption at any later moment.

        Raises
        ------
        UserError
            If the folder cannot be written.
        """
        shard = np.empty(len(keys), dtype=[("key", f"V{KEY_BYTES}"), ("vector", "<f4", (vectors.shape[1],))])
        shard["key"], shard["vector"] = keys, vectors
        final = self.folder / f"{uuid.uuid4().hex}.npy"
        temporary = final.with_suffix(".tmp")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with temporary.open("wb") as stream:
                np.save(stream, shard, allow_pickle=False)
            os.replace(temporary, final)
        except OSError as error:
            raise cannot_write(self.folder, error) from error
        finally:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)

    def require_writable(self) -> None:
        """Find out before hours of work whether the cache can be written; `UserError` if not."""
        probe = self.folder / f"{uuid.uuid4().hex}.probe"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            probe.write_bytes(b"0")
        except OSError as error:
            raise cannot_write(self.folder, error) from error
        finally:
            with suppress(OSError):
                probe.unlink(missing_ok=True)

    def _shards(self) -> Iterable[np.ndarray]:
        for path in sorted(self.folder.glob("*.npy")):
            try:
                shard = np.load(path, mmap_mode="r", allow_pickle=False)
            except (OSError, EOFError, ValueError) as error:
                message = f"{path}: a damaged file of the cache is passed over, what it held is made again: {error}"
                warnings.warn(message, DataWarning, stacklevel=3)
                continue
            if len(shard):
                yield shard
