"""How steps are measured: wall and processor time, memory at its peak, bytes written; always with an empty cache."""

from __future__ import annotations

import gc
import math
import os
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ranktilt.collection import Collection
from ranktilt.errors import DataWarning
from ranktilt.io.cache import cache_folder
from ranktilt.planning.result import Measurement
from ranktilt.planning.sample import sample
from ranktilt.progress import listening, report

_PAUSE = 0.004
"""Seconds between two looks at the memory."""
_FRACTIONS = (1 / 8, 1 / 4, 1 / 2, 1.0)
_MANY = (1 / 2, 1.0)
"""Shares of many documents that are measured once; what is left of the time goes to the last."""
_FEWER_QUERIES = 4
_PASSES = 5
_LEAST = 8
"""Measurements of a step, at least."""
_LEAST_GROWTH = 4
"""How many times the smallest sample the largest is at least, whatever time it takes."""
_PILOT, _PILOT_DOCUMENTS = 1 / 16, 64
"""Share of the time after which a pilot says enough, and the documents of the first one."""
_STATUS = Path("/proc/self/statm")


@dataclass
class Taken:
    """What a step took; the block that is measured may say more of it."""

    results: int = 0
    documents: int = 0
    """In place of those of the collection, where they are numbers alone."""
    times: int = 1
    """How many times the collection holds each of its documents."""
    disk: float = 0.0
    """Bytes that it would write beside what it does."""
    tokens_in: float = 0.0
    tokens_out: float = 0.0
    seconds: float | None = None
    """In place of those that passed, where nothing was asked; NaN for unknown."""


class Stopwatch:
    """Takes the measurements of steps; `held` are bytes of the process that a run of the real size would not hold."""

    def __init__(self, held: float = 0.0) -> None:
        self.measurements: list[Measurement] = []
        self.first = True
        """Whether memory counts: later, what was given back to the process hides what a step needs."""
        self._held, self._before = held, dict[str, float]()

    @contextmanager
    def __call__(self, step: str, given: Collection) -> Iterator[Taken]:
        """Measure the block as a step on a sample."""
        taken, cache = Taken(), cache_folder()
        before, start = folder_size(cache), _anonymous_memory()
        with _peak_memory() as peak:
            wall, processor = time.perf_counter(), time.process_time()
            yield taken
            wall, processor = time.perf_counter() - wall, time.process_time() - processor
        if taken.seconds is not None:
            wall, processor = taken.seconds, math.nan
        # What other steps have left to the process is no part of how this one's memory grows.
        memory = self._before.setdefault(step, start) - self._held + peak[0] - start if self.first else math.nan
        disk = folder_size(cache) - before + taken.disk
        size = taken.documents or given.docs.height, given.judged.height, taken.results
        tokens = float(taken.tokens_in), float(taken.tokens_out)
        self.measurements.append(Measurement(step, *size, wall, processor, memory, disk, *tokens, taken.times))

    @contextmanager
    def unheeded_memory(self) -> Iterator[None]:
        """Measure time inside the block, and no memory."""
        before, self.first = self.first, False
        try:
            yield
        finally:
            self.first = before


@contextmanager
def _peak_memory() -> Iterator[list[float]]:
    """Follow the memory of the process that is no file's; NaN where the system does not tell."""
    peak, over = [_anonymous_memory()], threading.Event()

    def watch() -> None:
        while not over.wait(_PAUSE):
            peak[0] = max(peak[0], _anonymous_memory())

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peak
        peak[0] = max(peak[0], _anonymous_memory())
    finally:
        over.set()
        thread.join()


def _anonymous_memory() -> float:
    try:
        _, resident, shared = _STATUS.read_bytes().split()[:3]
    except OSError:
        return math.nan
    return float(int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")


def folder_size(folder: Path) -> float:
    """Bytes of all files below a folder."""
    return float(sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()))


@contextmanager
def empty_cache() -> Iterator[Path]:
    """Let everything be computed anew inside the block, and keep nothing of it."""
    usual = os.environ.get("RANKTILT_CACHE")
    with tempfile.TemporaryDirectory(prefix="ranktilt-plan-") as folder:
        os.environ["RANKTILT_CACHE"] = folder
        try:
            yield Path(folder)
        finally:
            os.environ.pop("RANKTILT_CACHE")
            if usual is not None:
                os.environ["RANKTILT_CACHE"] = usual


@dataclass(frozen=True)
class Experiment:
    """Steps that are measured together on one sample after the other."""

    label: str
    """Names the progress."""
    measure: Callable[[Collection, Stopwatch], None]
    most: tuple[int, int]
    """Documents and queries of the largest sample."""
    scaled: tuple[bool, bool] = (True, True)
    """Whether a smaller sample has fewer of them."""
    slow: bool = False
    """Whether a model computes in it."""
    repeats: int = 0
    """How often it is measured at most, at half its largest and at that; 0 for samples of more sizes."""

    @property
    def smallest(self) -> float:
        """The fraction that a pilot begins with."""
        return min(_PILOT_DOCUMENTS / self.most[0] if self.scaled[0] else 1 / self.most[1], 1.0)

    def size(self, fraction: float, fewer: int = 1) -> tuple[int, int]:
        """Documents and queries of a sample."""
        documents, queries = (n * fraction if varies else n for n, varies in zip(self.most, self.scaled, strict=True))
        return max(round(documents), 1), max(round(queries / fewer), 1)


def measured_once(
    experiment: Experiment, collection: Collection, size: tuple[int, int], stopwatch: Stopwatch, *, seed: int
) -> float:
    """Measure on one sample of so many documents and queries; gives the seconds of all of it."""
    drawn = sample(collection, *size, seed=seed)
    start = time.perf_counter()
    with empty_cache(), listening(lambda *_: None), warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        experiment.measure(drawn, stopwatch)
    return time.perf_counter() - start


def carry_out(
    experiment: Experiment, collection: Collection, stopwatch: Stopwatch, *, seconds: float, seed: int
) -> None:
    """Measure on samples of doubling sizes, with many and with few queries, as often as the time allows.

    A pilot comes first: it warms up, and tells how large the samples can be.
    """
    begun = time.perf_counter()
    for number in range(experiment.repeats):
        stopwatch.first = number < len(_MANY)
        size = experiment.size(_MANY[min(number, len(_MANY) - 1)])
        measured_once(experiment, collection, size, stopwatch, seed=seed + number)
        report(f"measuring {experiment.label}", number + 1, experiment.repeats)
        if time.perf_counter() - begun > seconds and number + 1 >= len(_MANY):
            break
    if experiment.repeats:
        return
    design = [(part, fewer) for part in _FRACTIONS for fewer in (_FEWER_QUERIES, 1)]
    largest = _affordable(
        experiment, lambda size: measured_once(experiment, collection, size, Stopwatch(), seed=seed), design, seconds
    )
    total, label = _PASSES * len(design), f"measuring {experiment.label}"
    for number in range(total):
        stopwatch.first = number < len(design)
        if time.perf_counter() - begun > (3 if stopwatch.first else 1) * seconds and number >= _LEAST:
            break
        if number % len(design) == 0:
            gc.collect()
        part, fewer = design[number % len(design)]
        size = experiment.size(part * largest, fewer)
        measured_once(experiment, collection, size, stopwatch, seed=seed + number + 1)
        report(label, number + 1, total)
    report(label, total, total)


def _affordable(
    experiment: Experiment,
    once: Callable[[tuple[int, int]], float],
    design: Sequence[tuple[float, int]],
    seconds: float,
) -> float:
    """The fraction of the largest sample at which one pass takes so many seconds; pilots warm up, and tell.

    They grow until one takes a good part of that time, so that little is left to guess.
    """
    fraction = experiment.smallest
    once(experiment.size(fraction))
    taken = once(experiment.size(fraction))
    while taken < seconds * _PILOT and fraction < 1:
        fraction = min(4 * fraction, 1.0)
        taken = once(experiment.size(fraction))
    found = fraction * seconds / (max(taken, 1e-6) * sum(part for part, _ in design))
    return min(max(found, _LEAST_GROWTH * experiment.smallest), 1.0)
