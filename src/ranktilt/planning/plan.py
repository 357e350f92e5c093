"""The one call: plan(collection, rankers, documents=…): what a larger collection would cost, before it is there."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ranktilt.auditing.audit import audit_provenance
from ranktilt.collection import Collection
from ranktilt.errors import UserError, refuse_twice
from ranktilt.executing.memory_limits import MemoryLimits, available_memory, limited, memory_limit, processors
from ranktilt.llm.base import LLM
from ranktilt.llm.base import llm as language_model
from ranktilt.llm.estimate import counting, price_of
from ranktilt.planning.experiments import (
    DOCUMENTS,
    LOAD,
    PLANNED,
    PRODUCT,
    QUERIES,
    RESULTS,
    VOCABULARY,
    RankerSteps,
    Rewrites,
    Step,
    load_experiments,
    text_bytes,
)
from ranktilt.planning.measuring import Experiment, Stopwatch, carry_out
from ranktilt.planning.result import QUANTITIES, Amount, CostPlan, Measurement, PlannedStep
from ranktilt.planning.sample import with_rewrites
from ranktilt.rankers.base import Ranker
from ranktilt.rankers.lexical.bm25 import BM25
from ranktilt.rankers.lexical.index import LARGE
from ranktilt.statistics.extrapolation import fit_costs

Floats = npt.NDArray[np.float64]

USUAL_LLM = "openai:gpt-4o-mini"
SECONDS = 60.0
_FEWEST, _CLOSE, _FAR = 20, 10, 1000
_HEAPS = 0.6
"""Exponent of the growth of a vocabulary with the texts (Heaps' law), between the usual .5 and .7."""
_QUICK_SHARE = 0.4


class _Size(NamedTuple):
    documents: float
    queries: float
    results: float
    times: int = 1

    def terms(self, names: Sequence[str]) -> list[float]:
        """What a cost at this size is made of, after the fixed part."""
        of = {DOCUMENTS: self.documents, QUERIES: self.queries, RESULTS: self.results}
        of[PRODUCT] = self.documents * self.queries
        of[VOCABULARY] = (self.documents / self.times) ** _HEAPS
        return [1.0, *(of[name] for name in names)]


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
            return _UNKNOWN
        low, high = np.quantile(self.draws, [0.025, 0.975]).tolist()
        return Amount(self.value, min(low, self.value), max(high, self.value))


_UNKNOWN = Amount(np.nan, np.nan, np.nan)
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
    rewrites = None if model is None else Rewrites(model, collection)
    ranked = collection
    if rewrites is not None and len(collection.sources) == 1:  # the audit will be one of two sources
        ranked = with_rewrites(collection, PLANNED)
    watch = Stopwatch(float(ranked.docs.estimated_size() + ranked.queries.estimated_size()))
    asked = documents or collection.docs.height, queries or collection.judged.height
    added = 0 if rewrites is None else round(asked[0] * rewrites.share)
    works = [RankerSteps(one, asked[0] + added) for one in rankers]
    large = text_bytes(collection) / collection.docs.height * (asked[0] + added) >= LARGE
    with limited(MemoryLimits(index_files_from=0 if large else None)):  # as it will be done
        experiments = [*load_experiments(ranked, asked[0] + added, large=large)]
        experiments += rewrites.experiments() if rewrites is not None else ()
        for one in works:
            experiments += one.experiments(ranked)
        _measure(ranked, experiments, watch, seconds, seed)
    scale = _Scale(*asked, added, machines, llm_price, seed)
    steps = list(_steps(scale, works, rewrites, watch.measurements))
    return CostPlan(
        {"rankers": [repr(one) for one in rankers], "llm": None if model is None else model.name, "price": llm_price,
         "seconds": seconds, "seed": seed, "machine": _machine(), **audit_provenance(collection, [])},
        *asked, added, machines,
        tuple(_planned(step, amounts, scale) for step, amounts in steps),
        _planned(Step("", "total", ()), _total([amounts for _, amounts in steps]), scale),
        tuple(watch.measurements),
        tuple(_notes(collection, scale, works, model)),
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


def _measure(
    collection: Collection, experiments: Sequence[Experiment], watch: Stopwatch, seconds: float, seed: int
) -> None:
    """Carry out all experiments; those that a model's speed decides have most of the time."""
    timed = [one.slow for one in experiments]
    share = _QUICK_SHARE if any(timed) else 1.0
    for one in experiments:
        part = (1 - share if one.slow else share) / max(timed.count(one.slow), 1)
        carry_out(one, collection, watch, seconds=seconds * part, seed=seed)


class _Scale(NamedTuple):
    """What is planned for."""

    documents: int
    queries: int
    rewrites: int
    machines: int
    price: tuple[float, float] | None
    seed: int


def _steps(
    scale: _Scale, works: Sequence[RankerSteps], rewrites: Rewrites | None, measured: Sequence[Measurement]
) -> Iterator[tuple[Step, dict[str, _Estimate]]]:
    """Each step once, with what is expected of it; the rewrites are loaded and ranked as the documents are."""
    ranked = scale.documents + scale.rewrites
    known = dict[str, tuple[Step, _Size]]()
    if rewrites is not None:
        known[rewrites.step.key] = rewrites.step, _Size(scale.documents, scale.queries, 0)
    known[LOAD.key] = LOAD, _Size(ranked, scale.queries, 0)
    for one in works:
        for step in one.steps():
            results = one.results(ranked, scale.queries, step.depth) if step.depth else 0
            known.setdefault(step.key, (step, _Size(ranked, scale.queries, results)))
    for step, size in known.values():
        yield step, _expected(step, size, [row for row in measured if row.step == step.key], scale)


def _expected(step: Step, size: _Size, rows: Sequence[Measurement], scale: _Scale) -> dict[str, _Estimate]:
    """What a step would cost, a quantity at a time."""
    found, pace = dict[str, _Estimate](), _pace(rows)
    many = [row for row in rows if row.times > 1]
    for number, quantity in enumerate(QUANTITIES):
        names = {"memory": step.memory_terms, "disk": step.disk_terms}.get(quantity, step.terms)
        paced = quantity == "seconds" and len(pace)
        # Of few documents, memory is that of parts of which many documents have no more at a time.
        some = many if many and quantity == "memory" else rows
        design, values = _points(some, "processor" if paced else quantity, names)
        if not len(values):
            found[quantity] = _NOTHING
            continue
        if quantity.startswith("tokens"):
            design[:, 0] = 0.0  # no text, no tokens
        # One seed for all steps: what disturbs one measurement disturbs others too, so their errors add up.
        fit = fit_costs(design, values, seed=scale.seed + number)
        whole = np.array(size.terms(names))
        shared = whole / (scale.machines if step.spreads and quantity == "seconds" else 1)
        shared[0] = 1.0
        factor = fit.value(whole) / max(float(np.max(design @ fit.coefficients)), 1e-12)
        grows = ("fixed", *names)[int(np.argmax(fit.coefficients * whole))]
        # What is done batch by batch grows as the batches do, however far.
        value, draws = fit.value(shared), fit.drawn(shared, 1.0 if step.batched else factor)
        if paced:
            value *= float(np.median(pace))
            draws *= np.random.default_rng(scale.seed).choice(pace, len(draws))
        if quantity == "memory" and step.limited:
            most = memory_limit() + float(fit.coefficients[0])
            value, draws = min(value, most), np.minimum(draws, most)
        found[quantity] = _Estimate(value, draws, factor, grows)
    return found


def _pace(rows: Sequence[Measurement]) -> Floats:
    """Seconds that passed for one of the processors, where a repeated sample occupied all threads."""
    return np.array([row.seconds / row.processor for row in rows if row.times > 1 and row.processor > 0])


def _points(rows: Sequence[Measurement], quantity: str, names: Sequence[str]) -> tuple[Floats, Floats]:
    """Terms and values of the sizes that were measured; of repeated times the median."""
    repeated = dict[tuple[float, ...], list[tuple[list[float], float]]]()
    for row in rows:
        value = getattr(row, quantity)
        if np.isfinite(value):
            size = _Size(row.documents, row.queries, row.results, row.times)
            of = size._replace(results=0).terms(names)
            if RESULTS in names:
                of += [row.documents, row.queries]
            repeated.setdefault(tuple(of), []).append((size.terms(names), value))
    merge = np.median if quantity in ("seconds", "processor") else np.mean
    values = [float(merge([value for _, value in some])) for some in repeated.values()]
    return np.array([np.mean([terms for terms, _ in some], axis=0) for some in repeated.values()]), np.array(values)


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
    time, processor, memory, disk, *_ = (found[quantity].amount for quantity in QUANTITIES)
    return PlannedStep(
        step.ranker, step.name, step.spreads, found["seconds"].grows, found["seconds"].factor,
        time, processor, memory, disk, read.amount, written.amount, price.amount,
    )  # fmt: skip


def _machine() -> dict[str, object]:
    return {"processor": platform.machine(), "cores": processors(), "memory": available_memory()}


def _notes(collection: Collection, scale: _Scale, works: Sequence[RankerSteps], model: LLM | None) -> Iterator[str]:
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
    shallow = [repr(one.first) for one in works if one.first.depth > collection.docs.height]
    if shallow and scale.documents > collection.docs.height:
        yield (
            f"The sample holds fewer documents than {shallow[0]} returns; what a search of more takes is known badly."
        )
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
