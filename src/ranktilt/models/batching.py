"""Neural work in batches: planned by length, prepared one batch ahead, computed once, and kept as it comes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ranktilt.errors import UserError
from ranktilt.executing import memory_limits as chunks
from ranktilt.io.cache import Keys, Stored, VectorCache, Vectors
from ranktilt.models.folder import set_threads
from ranktilt.optional import need
from ranktilt.progress import report

Ints = npt.NDArray[np.int64]
Features = dict[str, Any]
Part = tuple[Ints, Any]

BUDGET, GPU_BUDGET = 1_024, 16_384
SHARD, MOST = 512, 256
NARROWEST = 16
VERSION = 2
"""Of how vectors and scores are made: in batches of fixed shapes, by models whose weights were checked."""
_SECONDS = 10.0


@dataclass(frozen=True)
class Shapes:
    """The shapes that batches may have: an item's own length decides which, and no other item.

    Kernels differ with the shape of a batch, and with them the last bits of a result (in bfloat16 the third digit).
    Within one shape a row of it depends on that row alone.

    Parameters
    ----------
    budget : int
        Tokens of a batch with its padding, at most; a longer item has a batch of its own.
    longest : int, optional
        Tokens that the model has places for: padding goes no further.
    """

    budget: int
    longest: int = 1 << 30

    def width(self, lengths: Ints) -> Ints:
        """Return to how many tokens items are padded: a multiple of 16, of an eighth of the length from 256 on."""
        wide = np.maximum(lengths, 1)
        step = np.maximum(NARROWEST, 2 ** np.log2(wide).astype(np.int64) // 8)
        return np.asarray(np.maximum(wide, np.minimum(-(-wide // step) * step, self.longest)), dtype=np.int64)

    def rows(self, width: int) -> int:
        """Return how many items a batch of this width has, always."""
        return min(max(self.budget // width, 1), MOST)


@dataclass(frozen=True)
class Job:
    """Items that a model turns into vectors (a score is a vector of one number).

    Parameters
    ----------
    keys : ndarray of 16-byte records, shape (n,)
        Content key of each item, each once; see `ranktilt.io.cache.content_keys`.
    lengths : ndarray of int64, shape (n,)
        Tokens of each item, after any cut. A guess will do: they decide what is prepared together, and no result.
    prepare : callable
        Positions (ndarray of int64) -> features: tokenization, run in a thread while the batch before is computed.
    forward : callable
        Features -> ndarray of float32, shape (n_positions, d).
    computing : callable, optional
        Makes the context around all batches, such as `computing`; called only where there is something to compute.
    shapes : Shapes, optional
        Of batches.
    """

    keys: Keys
    lengths: Ints
    prepare: Callable[[Ints], Any]
    forward: Callable[[Any], Vectors]
    computing: Callable[[], AbstractContextManager[None]] = nullcontext
    shapes: Shapes = Shapes(BUDGET)


def plan(lengths: Ints, shapes: Shapes, *, most: int = MOST) -> list[Ints]:
    """Divide items into batches of one width each, the longest first.

    Parameters
    ----------
    lengths : ndarray of int64, shape (n,)
        Tokens of each item.
    shapes : Shapes
        Of batches.
    most : int, optional
        Items of a batch, at most.

    Returns
    -------
    list of ndarray of int64
        Positions, each in one batch; no more than its width has rows.
    """
    order = np.argsort(-lengths, kind="stable")
    widths = shapes.width(lengths[order])
    batches, start = [], 0
    while start < len(order):
        width = widths[start]
        size = min(shapes.rows(int(width)), most, int(np.count_nonzero(widths[start:] == width)))
        batches.append(order[start : start + size])
        start += size
    return batches


def fixed(features: Features, shapes: Shapes, padding: Mapping[str, int], *, left: bool) -> list[Part]:
    """Bring the features of some items to the shapes of batches.

    Parameters
    ----------
    features : dict
        Arrays with a row an item, among them ``attention_mask``; what has no row an item stays as it is.
    shapes : Shapes
        Of batches.
    padding : mapping
        What fills up each array, by name; 0 where it is not named.
    left : bool
        Whether padding stands before an item.

    Returns
    -------
    list of (positions, features)
        Which items, and their features in one of the shapes: rows that are missing are copies, of no use.
    """
    mask = features["attention_mask"]
    widths = shapes.width(mask.sum(axis=1))
    parts = list[Part]()
    for width in np.unique(widths).tolist():
        same, rows = np.flatnonzero(widths == width), shapes.rows(width)
        for start in range(0, len(same), rows):
            some = same[start : start + rows]
            taken = np.resize(some, rows)
            made = {
                name: _widened(value[taken], width, padding.get(name, 0), left) if _rows(value) == len(mask) else value
                for name, value in features.items()
            }
            parts.append((some, made))
    return parts


def _rows(value: Any) -> int:
    return len(value) if isinstance(value, np.ndarray) and value.ndim else -1


def _widened(values: npt.NDArray[Any], width: int, padding: int, left: bool) -> npt.NDArray[Any]:
    if values.ndim == 1:
        return values
    more = width - values.shape[1]
    if more <= 0:
        return np.ascontiguousarray(values[:, -width:] if left else values[:, :width])
    return np.pad(values, ((0, 0), (more, 0) if left else (0, more)), constant_values=padding)


def assembled(forward: Callable[[Any], Vectors], parts: Sequence[Part]) -> Vectors:
    """Compute parts and put the items' results in their places; what copies give is dropped."""
    made = [forward(features)[: len(some)] for some, features in parts]
    vectors = np.empty((sum(map(len, made)), made[0].shape[1]), dtype=np.float32)
    for (some, _), values in zip(parts, made, strict=True):
        vectors[some] = values
    return vectors


def fill(job: Job, cache: VectorCache, label: str) -> Stored:
    """Compute what the cache lacks, store it as it comes, and return everything.

    An interruption loses nothing that was computed; a kill what was computed since the last write, a few batches.

    Parameters
    ----------
    job : Job
        What to compute, and how.
    cache : VectorCache
        Where results are kept.
    label : str
        Names the progress, which counts tokens.

    Returns
    -------
    Stored, shape (n, d)
        A row an item.

    Raises
    ------
    UserError
        If the cache cannot be written; found out before anything is computed.
    """
    found, stored = cache.get(job.keys)
    if found.all():
        return stored
    cache.require_writable()
    missing = np.flatnonzero(~found)
    shard = chunks.shard(SHARD * max(job.shapes.budget // BUDGET, 1))
    batches = plan(job.lengths[missing], job.shapes, most=min(chunks.piece(MOST), shard))
    _compute(job, [missing[batch] for batch in batches], _Writer(cache, job.keys, shard), label)
    found, stored = cache.get(job.keys)
    if not found.all():
        raise UserError(f"{cache.folder}: what was stored is gone; was the cache pruned meanwhile? Run it again")
    return stored


def _compute(job: Job, batches: Sequence[Ints], writer: _Writer, label: str) -> None:
    total, done = int(sum(job.lengths[batch].sum() for batch in batches)), 0
    report(label, 0, total)
    try:
        with job.computing():
            for batch, features in _ahead(job.prepare, batches):
                writer.add(batch, job.forward(features))
                done += int(job.lengths[batch].sum())
                report(label, done, total)
    finally:
        writer.write()


def _ahead(prepare: Callable[[Ints], Any], batches: Sequence[Ints]) -> Iterator[tuple[Ints, Any]]:
    """Yield each batch with its features, which are made while the batch before is computed."""
    with ThreadPoolExecutor(1) as thread:
        waiting = [thread.submit(prepare, batch) for batch in batches[:1]]
        for number, batch in enumerate(batches):
            features = waiting.pop().result()
            if number + 1 < len(batches):
                waiting.append(thread.submit(prepare, batches[number + 1]))
            yield batch, features


class _Writer:
    """Gathers whole batches and stores them now and then."""

    def __init__(self, cache: VectorCache, keys: Keys, size: int) -> None:
        self._cache, self._keys, self._size = cache, keys, size
        self._clear()

    def add(self, positions: Ints, vectors: Vectors) -> None:
        self._positions.append(positions)
        self._vectors.append(vectors)
        if sum(map(len, self._positions)) >= self._size or time.monotonic() - self._since > _SECONDS:
            self.write()

    def write(self) -> None:
        if self._positions:
            self._cache.put(self._keys[np.concatenate(self._positions)], np.concatenate(self._vectors))
        self._clear()

    def _clear(self) -> None:
        self._positions: list[Ints] = []
        self._vectors: list[Vectors] = []
        self._since = time.monotonic()


@contextmanager
def computing(device: Any, precision: str) -> Iterator[None]:
    """Let torch compute without gradients, in a precision, on the processors there are.

    Parameters
    ----------
    device : str or torch.device
        Where the model is.
    precision : {"float32", "bfloat16"}
        bfloat16 is by autocast: matrix products in bfloat16, what needs it in float32.
    """
    torch = need("torch", extra="neural", for_="a neural ranker")
    set_threads()
    kind = torch.device(device).type
    with torch.inference_mode(), torch.autocast(kind, dtype=torch.bfloat16, enabled=precision == "bfloat16"):
        yield
