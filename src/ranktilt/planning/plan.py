"""The one call: plan(collection, rankers, documents=…): what a larger collection would cost, before it is there."""

from __future__ import annotations

import math
import platform
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ranktilt.auditing.audit import audit_provenance
from ranktilt.collection import Collection
from ranktilt.errors import UserError, counted, refuse_twice
from ranktilt.executing.memory_limits import MemoryLimits, available_memory, limited, memory_limit, processors
from ranktilt.io.artifact import Result
from ranktilt.llm.estimate import duration
from ranktilt.planning.step_costs import (
    DOCUMENTS,
    LOAD,
    PRODUCT,
    QUERIES,
    RESULTS,
    Measurement,
    RankerSteps,
    Step,
    Stopwatch,
    loading,
)
from ranktilt.rankers.base import Ranker
from ranktilt.rankers.lexical.bm25 import BM25
from ranktilt.rankers.lexical.index import LARGE

Floats = npt.NDArray[np.float64]

QUANTITIES = ("seconds", "processor", "memory", "disk")
"""What is planned of a step: seconds that pass, seconds of processors, bytes held and bytes written."""
SECONDS = 60.0
_FEWEST, _CLOSE, _FAR = 20, 10, 1000
_WEIGHT = 0.3
"""Values below this share of the largest are fitted as closely as it, and no closer: they say little of large ones."""
_DEVIATION = 0.05
"""Relative deviation of a measurement that is assumed at least: a machine is as fast as that, from minute to minute."""


class Amount(NamedTuple):
    """What is expected, and its 95 % prediction interval; NaN where nothing is known."""

    value: float
    low: float
    high: float

    @property
    def known(self) -> bool:
        """Whether there is a number."""
        return not math.isnan(self.value)


_UNKNOWN = Amount(math.nan, math.nan, math.nan)


class PlannedStep(NamedTuple):
    """What one step would cost."""

    ranker: str
    """Empty where the step is for all of them."""
    name: str
    grows: str
    """The term of the size that most of its time comes from."""
    factor: float
    """How many times the cost of the largest measurement it is."""
    seconds: Amount
    processor: Amount
    """Of all processors."""
    memory: Amount
    """Bytes of the process at its peak, files that are mapped not counted."""
    disk: Amount


@dataclass(frozen=True, eq=False)
class CostPlan(Result, format="ranktilt-cost-plan", version=1, noun="a cost plan", command="ranktilt tools plan"):
    """What `plan` expects; immutable."""

    spec: Mapping[str, Any]
    """How it was made: collection, rankers, seed, machine, versions."""
    documents: int
    queries: int
    """What is planned for."""
    steps: tuple[PlannedStep, ...]
    """In the order of the work."""
    total: PlannedStep
    """All of them: sums, and of memory the most."""
    measurements: tuple[Measurement, ...]
    """What the sample took."""
    notes: tuple[str, ...] = ()
    """What a reader should know."""

    @property
    def headline(self) -> str:
        """The whole cost in one sentence."""
        size = f"{counted(self.documents, 'document', 'documents')} and {counted(self.queries, 'query', 'queries')}"
        span = self.total.seconds
        return f"{duration(span.value)} ({duration(span.low)} to {duration(span.high)}) for {size}"

    def derived(self) -> dict[str, Any]:
        """The headline, for those who read the file."""
        return {"headline": self.headline}


def plan(
    collection: Collection,
    rankers: Iterable[Ranker] | None = None,
    *,
    documents: int | None = None,
    queries: int | None = None,
    seconds: float = SECONDS,
    seed: int = 0,
) -> CostPlan:
    """Say what an audit of a larger collection of this kind would cost on this machine.

    Every step is measured on samples of several sizes, with an empty cache. A sum of terms (a fixed part, documents,
    queries, their product, results) is fitted to each and extrapolated, with 95 % prediction intervals.

    Parameters
    ----------
    collection : Collection
        What stands for the larger one: its texts, queries and judgments.
    rankers : iterable of Ranker, optional
        Each with all its stages; BM25 by default.
    documents, queries : int, optional
        Of the larger collection; as many as there are by default.
    seconds : float, optional
        About how long to measure; at least a few samples of each step are.
    seed : int, optional
        Of the samples.

    Returns
    -------
    CostPlan
        A row a step: seconds, memory and disk.

    Raises
    ------
    UserError
        If there is too little to measure, an option is out of its range, or a ranker asks a server or a language model.
    """
    rankers = [BM25()] if rankers is None else list(rankers)
    _check(collection, rankers, {"documents": documents, "queries": queries}, seconds)
    documents, queries = documents or collection.docs.height, queries or collection.judged.height
    works = [RankerSteps(ranker) for ranker in rankers]
    mean = float(collection.texts().str.len_bytes().mean())  # type: ignore[arg-type]  # a mean of integers
    large = mean * documents >= LARGE
    watch = Stopwatch(float(collection.docs.estimated_size() + collection.queries.estimated_size()))
    with limited(MemoryLimits(index_files_from=0 if large else None)):  # as it will be done
        experiments = [loading(collection, documents, large=large)]
        experiments += [one for work in works for one in work.experiments(collection, documents)]
        experiments.sort(key=lambda one: one.slow)  # what the quick ones leave of the time, the slow ones get
        end = time.perf_counter() + seconds
        for left, one in zip(range(len(experiments), 0, -1), experiments, strict=True):
            one.carry_out(watch, seconds=max(end - time.perf_counter(), 0.0) / left, seed=seed)
    each = (LOAD, *(step for work in works for step in work.steps))
    distinct = {step.key: step for step in each}.values()  # what rankers share counts once
    steps = tuple(
        _planned(step, [row for row in watch.measurements if row.step == step.key], documents, queries)
        for step in distinct
    )
    machine = {"processor": platform.machine(), "cores": processors(), "memory": available_memory()}
    spec = {"rankers": [repr(ranker) for ranker in rankers], "seconds": seconds, "seed": seed, "machine": machine}
    spec |= audit_provenance(collection, [])
    notes = tuple(_notes(documents / collection.docs.height))
    return CostPlan(spec, documents, queries, steps, _total(steps), tuple(watch.measurements), notes)


def _check(collection: Collection, rankers: Sequence[Ranker], least_one: dict[str, int | None], seconds: float) -> None:
    if not rankers:
        raise UserError("nothing to plan for: name a ranker, such as bm25")
    refuse_twice([repr(one) for one in rankers], "ranker")
    for name, value in least_one.items():
        if value is not None and value < 1:
            raise UserError(f"{name}: expected at least 1, got {value}")
    if not 0 < seconds < np.inf:
        raise UserError(f"expected seconds to measure above 0, got {seconds:g}")
    if collection.docs.height < _FEWEST or not collection.judged.height:
        raise UserError(
            f"a plan measures samples of at least {_FEWEST} documents and 1 query; here are {collection.docs.height} "
            f"and {collection.judged.height}"
        )


def _planned(step: Step, measured: Sequence[Measurement], documents: int, queries: int) -> PlannedStep:
    """What a step would cost, a quantity at a time."""
    measured = _paced(measured)
    most = max(measured, key=lambda row: (row.documents, row.queries))
    # Lists grow as the documents do, up to a depth.
    results = queries * min(most.results / most.queries * documents / most.documents, step.depth)
    found, grows, factor = dict[str, Amount](), "", 1.0
    for quantity in QUANTITIES:
        names = step.terms_of(quantity)
        values = np.array([getattr(row, quantity) for row in measured])
        if not np.isfinite(values).all():
            found[quantity] = _UNKNOWN
            continue
        design = np.array([_terms(names, row.documents, row.queries, row.results) for row in measured])
        whole = np.array(_terms(names, documents, queries, results))
        fit = CostFit.of(design, values)
        # What is done batch by batch grows as the batches do, however far.
        found[quantity] = fit.amount(whole, bends=not step.batched)
        if quantity == "seconds":
            factor = float(whole @ fit.coefficients) / max(float(np.max(fit.fitted)), 1e-12)
            grows = ("fixed", *names)[int(np.argmax(fit.coefficients * whole))]
        if quantity == "memory" and step.name == "search":
            limit = memory_limit() + float(fit.coefficients[0])
            found[quantity] = Amount(*(min(one, limit) for one in found[quantity]))
    return PlannedStep(step.ranker, step.name, grows, factor, **found)


def _terms(names: Sequence[str], documents: float, queries: float, results: float) -> list[float]:
    """What a cost at this size is made of, after the fixed part."""
    of = {DOCUMENTS: documents, QUERIES: queries, RESULTS: results, PRODUCT: documents * queries}
    return [1.0, *(of[name] for name in names)]


def _paced(rows: Sequence[Measurement]) -> Sequence[Measurement]:
    """Times as the processors' at the pace of the larger samples: others who use the machine disturb those less."""
    larger = rows[len(rows) // 2 :]
    pace = sum(row.seconds for row in larger) / max(sum(row.processor for row in larger), 1e-9)
    return [row._replace(seconds=row.processor * pace) for row in rows]


@dataclass(frozen=True)
class CostFit:
    """A sum of terms with coefficients of at least 0, fitted to the relative errors of measurements."""

    coefficients: Floats
    fitted: Floats
    deviation: float
    """Relative, of one measurement."""
    left: int
    """Degrees of freedom."""

    @classmethod
    def of(cls, terms: Floats, values: Floats) -> CostFit:
        """Fit measurements: a row of terms, at least 0, for each value."""
        from scipy.optimize import nnls

        weights = 1 / np.maximum(values, _WEIGHT * max(float(values.max()), 1e-12))
        design, wanted = terms * weights[:, None], values * weights
        scale = np.linalg.norm(design, axis=0)
        scale[scale == 0] = 1
        coefficients: Floats = nnls(design / scale, wanted)[0] / scale
        left = max(len(values) - int(np.count_nonzero(coefficients)), 1)
        deviation = float(np.sqrt(np.sum((wanted - design @ coefficients) ** 2) / left))
        return cls(coefficients, terms @ coefficients, max(deviation, _DEVIATION), left)

    def amount(self, terms: Floats, *, bends: bool = True) -> Amount:
        """Return a cost with the prediction interval of a line through the logarithms.

        It widens with the distance from what was measured: the exponent of growth is known as well as that of a line.
        """
        from scipy.special import stdtrit

        value = float(terms @ self.coefficients)
        logs = np.log(self.fitted[self.fitted > 0])
        if not value or not len(logs):
            return Amount(value, value, value)
        spread = float(np.sum((logs - logs.mean()) ** 2))
        far = max(np.log(value) - logs.mean(), 0.0) ** 2 / spread if bends and spread > 1e-9 else 0.0
        width = min(stdtrit(self.left, 0.975) * self.deviation * math.sqrt(1 + 1 / len(logs) + far), 2.0)
        return Amount(value, value * math.exp(-width), value * math.exp(width))


def _total(steps: Sequence[PlannedStep]) -> PlannedStep:
    """Sums of what is known, as if all erred alike; of memory, the most."""
    found = dict[str, Amount]()
    for name in QUANTITIES:
        known = [amount for step in steps if (amount := getattr(step, name)).known]
        merge = max if name == "memory" else sum
        found[name] = Amount(*map(merge, zip(*known, strict=True))) if known else _UNKNOWN
    return PlannedStep("", "total", "", 1.0, **found)


def _notes(times: float) -> Iterator[str]:
    """What the model leaves out, where it matters."""
    yield (
        "Not counted: starting Python, importing libraries, fetching models and collections. Disks and networks slower "
        "than this machine's, and a fuller memory, make it longer."
    )
    if times > _CLOSE:
        yield (
            "Memory is known worst: of a small sample it is mostly that of parts of which a large collection has no "
            "more at a time. Take it as an upper bound."
        )
    if times > _FAR:
        yield (
            f"The plan is for {times:,.0f} times the documents of this collection: plan again from a larger part of it "
            "once there is one."
        )
    yield f"Search and random labels hold at most {memory_limit() / 1e9:.1f} GB beside the collection (--memory)."
