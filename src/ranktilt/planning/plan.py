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
from ranktilt.llm.base import LLM
from ranktilt.llm.base import llm as language_model
from ranktilt.llm.estimate import counting, duration, price_of
from ranktilt.planning.step_costs import (
    DOCUMENTS,
    LOAD,
    PRODUCT,
    QUERIES,
    RESULTS,
    REWRITE,
    Experiment,
    Measurement,
    RankerSteps,
    Step,
    Stopwatch,
    loading,
    rewriting,
    with_rewrites,
)
from ranktilt.rankers.base import Ranker
from ranktilt.rankers.lexical.bm25 import BM25
from ranktilt.rankers.lexical.index import LARGE
from ranktilt.statistics.extrapolation import fit_costs

Floats = npt.NDArray[np.float64]

QUANTITIES = ("seconds", "processor", "memory", "disk", "tokens_in", "tokens_out")
"""What is measured of a step: seconds that pass, seconds of processors, bytes held and written, tokens of LLMs."""
USUAL_LLM = "openai:gpt-4o-mini"
SECONDS = 60.0
_FEWEST, _CLOSE, _FAR = 20, 10, 1000
_QUICK_SHARE = 0.4


class Amount(NamedTuple):
    """What is expected, and its 95 % prediction interval; NaN where nothing is known."""

    value: float
    low: float
    high: float

    @property
    def known(self) -> bool:
        """Whether there is a number."""
        return not math.isnan(self.value)


class PlannedStep(NamedTuple):
    """What one step would cost."""

    ranker: str
    """Empty where the step is for all of them."""
    name: str
    spreads: bool
    """Whether machines share it."""
    grows: str
    """The term of the size that most of its time comes from."""
    factor: float
    """How many times the cost of the largest measurement it is."""
    seconds: Amount
    """On the machines."""
    processor: Amount
    """Of all processors of all machines."""
    memory: Amount
    """Bytes of the process at its peak, files that are mapped not counted."""
    disk: Amount
    tokens_in: Amount
    tokens_out: Amount
    price: Amount
    """In the currency of the price given."""


@dataclass(frozen=True, eq=False)
class CostPlan(Result, format="ranktilt-cost-plan", version=1, noun="a cost plan", command="ranktilt plan"):
    """What `plan` expects; immutable.

    Parameters
    ----------
    spec : mapping
        How it was made: collection, rankers, seed, machine, versions.
    documents, queries : int
        What is planned for.
    rewrites : int
        Documents that a language model would add, which are ranked too.
    machines : int
        Those that share the steps that spread.
    steps : tuple of PlannedStep
        In the order of the work.
    total : PlannedStep
        All of them: sums, and of memory the most.
    measurements : tuple of Measurement
        What the sample took.
    notes : tuple of str
        What a reader should know.
    """

    spec: Mapping[str, Any]
    documents: int
    queries: int
    rewrites: int
    machines: int
    steps: tuple[PlannedStep, ...]
    total: PlannedStep
    measurements: tuple[Measurement, ...]
    notes: tuple[str, ...] = ()

    @property
    def headline(self) -> str:
        """The whole cost in one sentence."""
        size = f"{counted(self.documents + self.rewrites, 'document', 'documents')}"
        size += f" and {counted(self.queries, 'query', 'queries')}"
        where = f" on {self.machines} machines" if self.machines > 1 else ""
        span, price = self.total.seconds, self.total.price
        sentence = f"{duration(span.value)} ({duration(span.low)} to {duration(span.high)}) for {size}{where}"
        if price.known and price.value:
            sentence += f", and tokens for {price.value:,.2f} ({price.low:,.2f} to {price.high:,.2f})"
        return sentence

    def derived(self) -> dict[str, Any]:
        """The headline, for those who read the file."""
        return {"headline": self.headline}


class _Scale(NamedTuple):
    """What is planned for."""

    documents: int
    queries: int
    rewrites: int
    machines: int
    price: tuple[float, float] | None
    seed: int


class _Estimate(NamedTuple):
    """An expected amount, and draws of what it may turn out to be."""

    value: float
    draws: Floats
    factor: float = 1.0
    grows: str = ""

    @property
    def amount(self) -> Amount:
        """With the middle 95 % of the draws."""
        if not np.isfinite(self.value):
            return Amount(np.nan, np.nan, np.nan)
        low, high = np.quantile(self.draws, [0.025, 0.975]).tolist()
        return Amount(self.value, min(low, self.value), max(high, self.value))


_NOTHING = _Estimate(np.nan, np.full(1, np.nan))


def plan(
    collection: Collection,
    rankers: Iterable[Ranker] | None = None,
    *,
    documents: int | None = None,
    queries: int | None = None,
    llm: str | LLM | None = None,
    llm_price: tuple[float, float] | None = None,
    machines: int = 1,
    seconds: float = SECONDS,
    seed: int = 0,
) -> CostPlan:
    """Say what an audit of a larger collection of this kind would cost on machines like this one.

    Every step is measured on samples of several sizes, with an empty cache. A sum of terms (a fixed part, documents,
    queries, their product, results) is fitted to each and extrapolated, with 95 % prediction intervals. No language
    model, engine or server is asked.

    Parameters
    ----------
    collection : Collection
        What stands for the larger one: its texts, queries and judgments.
    rankers : iterable of Ranker, optional
        Each with all its stages; BM25 by default.
    documents, queries : int, optional
        Of the larger collection; as many as there are by default.
    llm : str or LLM, optional
        What would rewrite the human documents, whose rewrites would be ranked too; none by default, ``openai:…`` where
        a price is given.
    llm_price : (float, float), optional
        Of a million tokens read, and of a million written.
    machines : int, optional
        Machines like this one; steps that spread are shared by them.
    seconds : float, optional
        About how long to measure; at least a few samples of each step are.
    seed : int, optional
        Of the samples and intervals.

    Returns
    -------
    CostPlan
        A row a step: seconds, memory, disk, tokens and price.

    Raises
    ------
    UserError
        If there is too little to measure, an option is out of its range, or a ranker asks a server.
    """
    rankers = [BM25()] if rankers is None else list(rankers)
    _check(collection, rankers, {"documents": documents, "queries": queries, "machines": machines}, seconds)
    price_of(0, 0, llm_price)
    model = language_model(llm) if isinstance(llm, str) else llm
    if model is None and llm_price is not None:
        model = language_model(USUAL_LLM)
    ranked = collection
    if model is not None and len(collection.sources) == 1:  # the audit will be one of two sources
        ranked = with_rewrites(collection)
    prompts, share = rewriting(collection, model) if model is not None else (None, 0.0)
    asked = documents or collection.docs.height, queries or collection.judged.height
    scale = _Scale(*asked, round(asked[0] * share), machines, llm_price, seed)
    total, works = asked[0] + scale.rewrites, [RankerSteps(one) for one in rankers]
    large = sum(collection.texts().str.len_bytes().to_list()) / collection.docs.height * total >= LARGE
    watch = Stopwatch(float(ranked.docs.estimated_size() + ranked.queries.estimated_size()))
    with limited(MemoryLimits(index_files_from=0 if large else None)):  # as it will be done
        experiments = [loading(ranked, total, large=large), *([prompts] if prompts else [])]
        experiments += [one for work in works for one in work.experiments(ranked, total)]
        _measure(experiments, watch, seconds, seed)
    each = (*([REWRITE] if prompts else []), LOAD, *(step for work in works for step in work.steps))
    steps = {step.key: step for step in each}  # what rankers share counts once
    found = {key: _expected(step, scale, watch.measurements) for key, step in steps.items()}
    return CostPlan(
        {"rankers": [repr(one) for one in rankers], "llm": None if model is None else model.name, "price": llm_price,
         "seconds": seconds, "seed": seed, "machine": _machine(), **audit_provenance(collection, [])},
        *asked, scale.rewrites, machines,
        tuple(_planned(step, found[key], scale) for key, step in steps.items()),
        _planned(Step("", "total", ()), _total(list(found.values())), scale),
        tuple(watch.measurements),
        tuple(_notes(collection, scale, model)),
    )  # fmt: skip


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


def _measure(experiments: Sequence[Experiment], watch: Stopwatch, seconds: float, seed: int) -> None:
    """Carry out all experiments; those that a model's speed decides have most of the time, and what others leave."""
    begun, slow = time.perf_counter(), [one for one in experiments if one.slow]
    quick = [one for one in experiments if not one.slow]
    for group, share in ((quick, _QUICK_SHARE if slow else 1.0), (slow, 1.0)):
        for number, one in enumerate(group):
            left = max(share * seconds - (time.perf_counter() - begun), 0.0)
            one.carry_out(watch, seconds=left / (len(group) - number), seed=seed)


def _terms(names: Sequence[str], documents: float, queries: float, results: float) -> list[float]:
    """What a cost at this size is made of, after the fixed part."""
    of = {DOCUMENTS: documents, QUERIES: queries, RESULTS: results, PRODUCT: documents * queries}
    return [1.0, *(of[name] for name in names)]


def _expected(step: Step, scale: _Scale, measured: Sequence[Measurement]) -> dict[str, _Estimate]:
    """What a step would cost, a quantity at a time; rewrites are loaded and ranked as the documents are."""
    measured = _paced([row for row in measured if row.step == step.key])
    documents = scale.documents if step is REWRITE else scale.documents + scale.rewrites
    most = max(measured, key=lambda row: (row.documents, row.queries))
    # Lists grow as the documents do, up to a depth.
    results = scale.queries * min(most.results / most.queries * documents / most.documents, step.depth)
    found = dict[str, _Estimate]()
    for number, quantity in enumerate(QUANTITIES):
        names = step.terms_of(quantity)
        rows = [row for row in measured if np.isfinite(getattr(row, quantity))]
        if not rows:
            found[quantity] = _NOTHING
            continue
        design = np.array([_terms(names, row.documents, row.queries, row.results) for row in rows])
        if quantity.startswith("tokens"):
            design[:, 0] = 0.0  # no text, no tokens
        # One seed for all steps: what disturbs one measurement disturbs others too, so their errors add up.
        fit = fit_costs(design, np.array([getattr(row, quantity) for row in rows]), seed=scale.seed + number)
        whole = np.array(_terms(names, documents, scale.queries, results))
        shared = whole / (scale.machines if step.spreads and quantity == "seconds" else 1)
        shared[0] = 1.0
        factor = fit.value(whole) / max(float(np.max(design @ fit.coefficients)), 1e-12)
        # What is done batch by batch grows as the batches do, however far.
        value, draws = fit.value(shared), fit.drawn(shared, 1.0 if step.batched else factor)
        if quantity == "memory" and step.name == "search":
            limit = memory_limit() + float(fit.coefficients[0])
            value, draws = min(value, limit), np.minimum(draws, limit)
        grows = ("fixed", *names)[int(np.argmax(fit.coefficients * whole))]
        found[quantity] = _Estimate(value, draws, factor, grows)
    return found


def _paced(rows: Sequence[Measurement]) -> Sequence[Measurement]:
    """Times as the processors' at the pace of the larger samples: others who use the machine disturb those less."""
    larger = rows[len(rows) // 2 :]
    pace = sum(row.seconds for row in larger) / max(sum(row.processor for row in larger), 1e-9)
    return rows if math.isnan(pace) else [row._replace(seconds=row.processor * pace) for row in rows]


def _total(steps: Sequence[dict[str, _Estimate]]) -> dict[str, _Estimate]:
    """Sums of what is known; of memory, the most."""
    found = dict[str, _Estimate]()
    for quantity in QUANTITIES:
        known = [one[quantity] for one in steps if np.isfinite(one[quantity].value)]
        merge = max if quantity == "memory" else sum
        whole = (np.max if quantity == "memory" else np.sum)([one.draws for one in known], axis=0) if known else 0.0
        found[quantity] = _Estimate(float(merge(one.value for one in known)), np.asarray(whole)) if known else _NOTHING
    return found


def _planned(step: Step, found: dict[str, _Estimate], scale: _Scale) -> PlannedStep:
    read, written = found["tokens_in"], found["tokens_out"]
    price = _NOTHING
    if scale.price is not None and np.isfinite(read.value):
        each = [one / 1e6 for one in scale.price]
        price = _Estimate(
            read.value * each[0] + written.value * each[1], read.draws * each[0] + written.draws * each[1]
        )
    seconds, processor, memory, disk, *_ = (found[quantity].amount for quantity in QUANTITIES)
    return PlannedStep(
        step.ranker, step.name, step.spreads, found["seconds"].grows, found["seconds"].factor,
        seconds, processor, memory, disk, read.amount, written.amount, price.amount,
    )  # fmt: skip


def _machine() -> dict[str, object]:
    return {"processor": platform.machine(), "cores": processors(), "memory": available_memory()}


def _notes(collection: Collection, scale: _Scale, model: LLM | None) -> Iterator[str]:
    """What the model leaves out, where it matters."""
    yield (
        "Not counted: starting Python, importing libraries, fetching models and collections. Disks and networks slower "
        "than this machine's, and a fuller memory, make it longer."
    )
    if scale.machines > 1:
        yield (
            f"{scale.machines} machines share what is marked; moving data between them, and what each holds in memory, "
            "is not counted. Loading a model is, on each."
        )
    if model is not None:
        yield f"Tokens of {model.name} are {counting(model).how}; its time is assumed, and retries are not counted."
    times = (scale.documents + scale.rewrites) / collection.docs.height
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
