"""Neural work in batches: planned by length, computed once, and stored while it is computed.

An *input* is what a model turns into one vector, such as a text or a pair of texts. Its result is
cached by a key, which is a hash of its content.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ranktilt.data.cache import Keys, StoredVectors, VectorCache, Vectors
from ranktilt.errors import UserError
from ranktilt.models.device import torch_device
from ranktilt.parallel.executor import executor
from ranktilt.progress import report

Ints = npt.NDArray[np.int64]
"""Numbers, or positions of inputs."""

TOKENS = 1_024
"""Most tokens of a batch on a processor, padding included; a longer text has its own batch."""
LOW_PRECISION_TOKENS = 4_096
"""The same below float32, where batches of `TOKENS` tokens took a fourth longer in all."""
GPU_TOKENS = 16_384
"""Most tokens of a batch on a GPU, which computes many at a time."""
WRITE_EVERY = 512
"""Number of new results after which they are written to the cache."""
MOST_ROWS = 256
"""Most rows of a batch, so that very short texts do not make huge batches."""
RESULTS_VERSION = 4
"""Part of every cache key; it is raised if results are computed in another way."""
_WRITE_SECONDS = 10.0
"""Seconds after which new results are written to the cache, however few there are."""
_BATCHES_A_PART = 4
"""Number of batches that are sent to a worker together: a second or two of work.

This much is computed again if a worker dies. It is also how long the last worker may take at the
end, while the others have nothing to do.
"""


def batch_tokens(device: str | None, precision: str = "float32") -> int:
    """Return how many tokens a batch should have on a device, in a precision."""
    if torch_device(device).startswith("cuda"):
        return GPU_TOKENS
    return TOKENS if precision == "float32" else LOW_PRECISION_TOKENS


@dataclass(frozen=True, kw_only=True)
class BatchJob:
    """Inputs that a model turns into vectors; a score is a vector of one number.

    `compute` and `context` are sent to other machines on a cluster. So they refer to the model but
    to no texts; `take` returns the texts of a batch.
    """

    keys: Keys
    """Content key of each input."""
    lengths: Ints
    """Number of tokens of each input, exact or estimated; similar lengths share a batch."""
    compute: Callable[[Any], Vectors]
    """Turns the inputs that `take` returns into float32 vectors, in the same order."""
    take: Callable[[Ints], Any] = lambda positions: positions
    """Returns the inputs at some positions, as `compute` needs them."""
    context: Callable[[], AbstractContextManager[None]] = nullcontext
    """Returns a context that is entered once around all batches."""
    tokens: int = TOKENS
    """Most tokens of a batch."""


def plan_batches(lengths: Ints, tokens: int, *, most: int = MOST_ROWS) -> list[Ints]:
    """Divide inputs into batches of at most `tokens` tokens and `most` rows, the longest first.

    Each batch is an array of positions in `lengths`. All its inputs are padded to the length of the
    first, which is the longest, so that similar lengths together waste the least.
    """
    order = np.argsort(-lengths, kind="stable")
    batches = []
    start = 0
    while start < len(order):
        size = min(max(tokens // max(int(lengths[order[start]]), 1), 1), most)
        batches.append(order[start : start + size])
        start += size
    return batches


def compute_missing(job: BatchJob, cache: VectorCache, label: str) -> StoredVectors:
    """Compute the results that the cache lacks, store them meanwhile, and return all results.

    After an interruption, the results that were computed before are in the cache. `label` names the
    work in the progress, which counts tokens.
    """
    is_cached, stored = cache.get(job.keys)
    if is_cached.all():
        return stored
    cache.require_writable()
    missing = np.flatnonzero(~is_cached)
    write_every = WRITE_EVERY * max(job.tokens // TOKENS, 1)
    plan = plan_batches(job.lengths[missing], job.tokens, most=min(MOST_ROWS, write_every))
    batches = [missing[batch] for batch in plan]
    unwritten = list[tuple[Ints, Vectors]]()  # positions and vectors of each batch

    def write() -> None:
        if unwritten:
            positions, vectors = (np.concatenate(parts) for parts in zip(*unwritten, strict=True))
            cache.put(job.keys[positions], vectors)
        unwritten.clear()

    written_at = time.monotonic()
    try:
        for batch, vectors in _vectors(job, batches, label):
            unwritten.append((batch, vectors))
            row_count = sum(len(positions) for positions, _ in unwritten)
            if row_count >= write_every or time.monotonic() - written_at > _WRITE_SECONDS:
                write()
                written_at = time.monotonic()
    finally:
        write()
    is_cached, stored = cache.get(job.keys)
    if not is_cached.all():
        raise UserError(
            f"{cache.folder}: stored values are gone; if the cache was pruned meanwhile, "
            "run it again"
        )
    return stored


def _vectors(job: BatchJob, batches: Sequence[Ints], label: str) -> Iterator[tuple[Ints, Vectors]]:
    """Yield each batch's positions and vectors, computed on this machine or by workers."""
    total = int(sum(job.lengths[batch].sum() for batch in batches))
    done = 0
    report(label, done, total)
    stage = partial(_vectors_of_batches, job.compute, job.context)
    inputs = map(job.take, batches)
    results = executor().map(stage, inputs, at_once=_BATCHES_A_PART, neural=True)
    with closing(results):
        for batch, vectors in zip(batches, results, strict=True):
            yield batch, vectors
            done += int(job.lengths[batch].sum())
            report(label, done, total)


def _vectors_of_batches(
    compute: Callable[[Any], Vectors],
    context: Callable[[], AbstractContextManager[None]],
    batches: Iterator[Any],
) -> Iterator[Vectors]:
    """Yield the vectors of each batch, in one context."""
    with context():
        yield from map(compute, batches)
