"""How much is computed at once: sizes that must change no result, and can be set to see that they do not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from ranktilt.cache import cache_folder


@dataclass(frozen=True)
class Chunks:
    """Sizes; None leaves a ranker's own.

    Parameters
    ----------
    cells : int, optional
        Scores that exact search computes in one product: queries × distinct texts.
    shard : int, optional
        Texts encoded between two writes to the cache.
    piece : int, optional
        Texts handed to the model together.
    cache : Path, optional
        Where vectors are kept in place of the usual folder; an empty one has all of them computed anew.
    """

    cells: int | None = None
    shard: int | None = None
    piece: int | None = None
    cache: Path | None = None


USUAL = Chunks()
_chunks: ContextVar[Chunks] = ContextVar("ranktilt_chunks", default=USUAL)


@contextmanager
def chunked(chunks: Chunks) -> Iterator[None]:
    """Let neural rankers work in chunks of these sizes inside the ``with`` block.

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


def cells(usual: int) -> int:
    """Return how many scores to compute at once: what was set, else the usual number."""
    return _chunks.get().cells or usual


def shard(usual: int) -> int:
    """Return how many texts to encode between two writes: what was set, else the usual number."""
    return _chunks.get().shard or usual


def piece(usual: int) -> int:
    """Return how many texts to hand to the model together: what was set, else the usual number."""
    return _chunks.get().piece or usual


def vector_folder() -> Path:
    """Return the folder that keeps vectors: what was set, else the usual one."""
    return _chunks.get().cache or cache_folder()
