"""Neural work in batches: planned by length, prepared one batch ahead, computed once, and kept as it comes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ranktilt.errors import UserError
from ranktilt.executing import memory_limits
from ranktilt.executing.executor import executor
from ranktilt.io.cache import Keys, Stored, VectorCache, Vectors
from ranktilt.models.device import on_gpu
from ranktilt.progress import report

Ints = npt.NDArray[np.int64]
Features = dict[str, Any]
Part = tuple[Ints, Any]
_Stage = tuple[Callable[[Any], Any], Callable[[Any], Vectors], Callable[[], AbstractContextManager[None]]]

TOKENS, GPU_TOKENS = 1_024, 16_384
"""Tokens of a batch with its padding, at most; a longer item has a batch of its own."""
WRITE_EVERY, MOST_ROWS = 512, 256
NARROWEST = 16
RESULTS_VERSION = 2
"""Part of every cache key; of how results are made: in batches of fixed shapes, from weights that were checked."""
_SECONDS = 10.0
_BATCHES_A_PART = 4
"""A second or two of one processor: what a worker's death costs, and how long the last part keeps others waiting."""


@dataclass(frozen=True)
class BatchShapes:
    """The shapes that batches of so many tokens may have: an item's own length decides which, and no other item.

    Kernels differ with the shape of a batch, and with them the last bits of a result (in bfloat16 the third digit).
    Within one shape a row of it depends on that row alone. Padding goes no further than `longest`, the tokens that the
    model has places for.
    """

    tokens: int
    longest: int = 1 << 30

    @classmethod
    def on(cls, device: str | None, longest: int) -> BatchShapes:
        """Shapes that suit a device."""
        return cls(GPU_TOKENS if on_gpu(device) else TOKENS, longest)

    def width(self, lengths: Ints) -> Ints:
        """Return to how many tokens items are padded: a multiple of 16, of an eighth of the length from 256 on."""
        wide = np.maximum(lengths, 1)
        step = np.maximum(NARROWEST, 2 ** np.log2(wide).astype(np.int64) // 8)
        return np.asarray(np.maximum(wide, np.minimum(-(-wide // step) * step, self.longest)), dtype=np.int64)

    def rows(self, width: int) -> int:
        """Return how many items a batch of this width has, always."""
        return min(max(self.tokens // width, 1), MOST_ROWS)


def _same(positions: Ints) -> Any:
    return positions


@dataclass(frozen=True)
class BatchJob:
    """Items that a model turns into vectors (a score is a vector of one number), each with its content key.

    `lengths` are tokens after any cut; a guess will do, for they decide what is prepared together, and no result.
    `take` gives what a model needs of some positions, by default these themselves; `prepare` turns that into features,
    in a thread while the batch before is computed; `forward` turns features into float32 vectors; `context` is entered
    around all batches, and only where there is something to compute. All but `take` may travel to other machines, and
    hold the model and no texts.
    """

    keys: Keys
    lengths: Ints
    prepare: Callable[[Any], Any]
    forward: Callable[[Any], Vectors]
    context: Callable[[], AbstractContextManager[None]] = nullcontext
    shapes: BatchShapes = BatchShapes(TOKENS)
    take: Callable[[Ints], Any] = _same


def plan_batches(lengths: Ints, shapes: BatchShapes, *, most: int = MOST_ROWS) -> list[Ints]:
    """Divide items into batches of one width and at most `most` items each, the longest first; gives positions."""
    order = np.argsort(-lengths, kind="stable")
    widths = shapes.width(lengths[order])
    batches, start = [], 0
    while start < len(order):
        width = widths[start]
        size = min(shapes.rows(int(width)), most, int(np.count_nonzero(widths[start:] == width)))
        batches.append(order[start : start + size])
        start += size
    return batches


def pad(features: Features, shapes: BatchShapes, padding: Mapping[str, int], *, left: bool) -> list[Part]:
    """Bring the features of some items to the shapes of batches: which items, and their features in that shape.

    `features` are arrays with a row an item, among them ``attention_mask``; what has no row an item stays as it is.
    `padding` fills up each array, by name (0 where it is not named). Rows that a shape lacks are copies, of no use.
    """
    mask = features["attention_mask"]
    widths = shapes.width(mask.sum(axis=1))
    parts = list[Part]()
    for width in np.unique(widths).tolist():
        same, rows = np.flatnonzero(widths == width), shapes.rows(width)
        for start in range(0, len(same), rows):
            some = same[start : start + rows]
            taken = np.resize(some, rows)
            padded = {
                name: _widened(value[taken], width, padding.get(name, 0), left) if _rows(value) == len(mask) else value
                for name, value in features.items()
            }
            parts.append((some, padded))
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


def compute_parts(forward: Callable[[Any], Vectors], parts: Sequence[Part]) -> Vectors:
    """Compute parts and put the items' results in their places; what copies give is dropped."""
    results = [forward(features)[: len(some)] for some, features in parts]
    vectors = np.empty((sum(map(len, results)), results[0].shape[1]), dtype=np.float32)
    for (some, _), values in zip(parts, results, strict=True):
        vectors[some] = values
    return vectors


def compute_missing(job: BatchJob, cache: VectorCache, label: str) -> Stored:
    """Compute what the cache lacks, store it as it comes, and return all items' results; progress counts tokens.

    An interruption loses nothing that was computed; a kill what was computed since the last write, a few batches.
    """
    found, stored = cache.get(job.keys)
    if found.all():
        return stored
    cache.require_writable()
    missing = np.flatnonzero(~found)
    write_every = memory_limits.texts_per_write(WRITE_EVERY * max(job.shapes.tokens // TOKENS, 1))
    most = min(memory_limits.texts_per_batch(MOST_ROWS), write_every)
    batches = [missing[batch] for batch in plan_batches(job.lengths[missing], job.shapes, most=most)]
    _compute(job, batches, _CacheWriter(cache, job.keys, write_every), label)
    found, stored = cache.get(job.keys)
    if not found.all():
        raise UserError(f"{cache.folder}: what was stored is gone; was the cache pruned meanwhile? Run it again")
    return stored


def _compute(job: BatchJob, batches: Sequence[Ints], writer: _CacheWriter, label: str) -> None:
    total, done = int(sum(job.lengths[batch].sum() for batch in batches)), 0
    report(label, 0, total)
    stage = partial(_forward, (job.prepare, job.forward, job.context))
    try:
        with closing(executor().map(stage, map(job.take, batches), at_once=_BATCHES_A_PART, neural=True)) as found:
            for batch, vectors in zip(batches, found, strict=True):
                writer.add(batch, vectors)
                done += int(job.lengths[batch].sum())
                report(label, done, total)
    finally:
        writer.write()


def _forward(steps: _Stage, items: Iterator[Any]) -> Iterator[Vectors]:
    """Compute batches, each of which is prepared while the one before is computed."""
    prepare, forward, context = steps

    def prepared() -> Any:
        return next(((prepare(item),) for item in items), None)

    with context(), ThreadPoolExecutor(1) as thread:
        following = thread.submit(prepared)
        while (features := following.result()) is not None:
            following = thread.submit(prepared)
            yield forward(features[0])


class _CacheWriter:
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
