"""Neural work in batches: planned by length, computed once, and kept as it comes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ranktilt.data.cache import Keys, Stored, VectorCache, Vectors
from ranktilt.errors import UserError
from ranktilt.models.device import torch_device
from ranktilt.parallel.executor import executor
from ranktilt.progress import report

Ints = npt.NDArray[np.int64]

TOKENS, GPU_TOKENS = 1_024, 16_384
"""Tokens of a batch with its padding, at most; a longer item has a batch of its own."""
WRITE_EVERY, MOST_ROWS = 512, 256
RESULTS_VERSION = 3
"""Part of every cache key; of how results are made: by sentence-transformers, from weights that were checked."""
_SECONDS = 10.0
_BATCHES_A_PART = 4
"""A second or two of one processor: what a worker's death costs, and how long the last part keeps others waiting."""


def batch_tokens(device: str | None) -> int:
    """Return how many tokens a batch should have on a device."""
    return GPU_TOKENS if torch_device(device).startswith("cuda") else TOKENS


@dataclass(frozen=True)
class BatchJob:
    """Items that a model turns into vectors (a score is a vector of one number), each with its content key.

    `lengths` decide what is computed together; a guess will do. `take` gives what a model needs of
    some positions, and `compute` turns that into float32 vectors, in its order; `context` is
    entered around all batches. All but `take` may travel to other machines, and hold the model and
    no texts.
    """

    keys: Keys
    lengths: Ints
    compute: Callable[[Any], Vectors]
    take: Callable[[Ints], Any] = lambda positions: positions
    context: Callable[[], AbstractContextManager[None]] = nullcontext
    tokens: int = TOKENS


def plan_batches(lengths: Ints, tokens: int, *, most: int = MOST_ROWS) -> list[Ints]:
    """Divide items into batches of so many tokens and at most `most` items, the longest first; gives positions."""
    order = np.argsort(-lengths, kind="stable")
    batches, start = [], 0
    while start < len(order):
        size = min(max(tokens // max(int(lengths[order[start]]), 1), 1), most)
        batches.append(order[start : start + size])
        start += size
    return batches


def compute_missing(job: BatchJob, cache: VectorCache, label: str) -> Stored:
    """Compute what the cache lacks, store it as it comes, and return all items' results; progress counts tokens."""
    found, stored = cache.get(job.keys)
    if found.all():
        return stored
    cache.require_writable()
    missing = np.flatnonzero(~found)
    write_every = WRITE_EVERY * max(job.tokens // TOKENS, 1)
    most = min(MOST_ROWS, write_every)
    batches = [
        missing[batch] for batch in plan_batches(job.lengths[missing], job.tokens, most=most)
    ]
    computed, since = list[tuple[Ints, Vectors]](), time.monotonic()

    def write() -> None:
        if computed:
            positions, vectors = (np.concatenate(side) for side in zip(*computed, strict=True))
            cache.put(job.keys[positions], vectors)
        computed.clear()

    try:
        for batch, vectors in _computed(job, batches, label):
            computed.append((batch, vectors))
            if (
                sum(len(one) for one, _ in computed) >= write_every
                or time.monotonic() - since > _SECONDS
            ):
                write()
                since = time.monotonic()
    finally:
        write()
    found, stored = cache.get(job.keys)
    if not found.all():
        raise UserError(
            f"{cache.folder}: stored values are gone; if the cache was pruned meanwhile, run it again"
        )
    return stored


def _computed(job: BatchJob, batches: Sequence[Ints], label: str) -> Iterator[tuple[Ints, Vectors]]:
    total, done = int(sum(job.lengths[batch].sum() for batch in batches)), 0
    report(label, 0, total)
    stage = partial(_each, job.compute, job.context)
    with closing(
        executor().map(stage, map(job.take, batches), at_once=_BATCHES_A_PART, neural=True)
    ) as found:
        for batch, vectors in zip(batches, found, strict=True):
            yield batch, vectors
            done += int(job.lengths[batch].sum())
            report(label, done, total)


def _each(
    compute: Callable[[Any], Vectors],
    context: Callable[[], AbstractContextManager[None]],
    items: Iterator[Any],
) -> Iterator[Vectors]:
    with context():
        yield from map(compute, items)
