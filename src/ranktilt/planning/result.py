"""What a larger collection would cost: a row a step, with intervals, and the measurements behind them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ranktilt.errors import counted
from ranktilt.io.artifact import Result
from ranktilt.llm.estimate import duration

QUANTITIES = ("seconds", "processor", "memory", "disk", "tokens_in", "tokens_out")
"""What is measured of a step: seconds that pass, seconds of processors, bytes held and written, tokens of LLMs."""


class Measurement(NamedTuple):
    """One step on one sample; NaN for what does not apply or could not be measured."""

    step: str
    """Ranker and name."""
    documents: int
    queries: int
    results: int
    """Results of the run that was made, or pairs that were scored."""
    seconds: float
    processor: float
    memory: float
    disk: float
    tokens_in: float = 0.0
    tokens_out: float = 0.0
    times: int = 1
    """How many times the sample's documents they are."""


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
        time, price = self.total.seconds, self.total.price
        said = f"{duration(time.value)} ({duration(time.low)} to {duration(time.high)}) for {size}{where}"
        if price.known and price.value:
            said += f", and tokens for {price.value:,.2f} ({price.low:,.2f} to {price.high:,.2f})"
        return said

    def derived(self) -> dict[str, Any]:
        """The headline, for those who read the file."""
        return {"headline": self.headline}
