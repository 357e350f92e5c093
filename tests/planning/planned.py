"""Plans whose numbers are known, and a ranker whose costs are."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ranktilt.collection import Collection
from ranktilt.planning.plan import Amount, CostPlan, PlannedStep
from ranktilt.planning.step_costs import Measurement
from ranktilt.rankers.base import FirstStage, Rows, Scores

UNKNOWN = Amount(math.nan, math.nan, math.nan)
NOTHING = Amount(0, 0, 0)
PER_DOCUMENT, PER_QUERY, PER_PAIR = 2e-4, 2e-4, 4e-6


class Clock:
    """A clock that only moves when it is told to."""

    now = 0.0

    @classmethod
    def perf_counter(cls) -> float:
        """Return its time."""
        return cls.now

    @classmethod
    def process_time(cls) -> float:
        """Return half of it: others use the machine, too."""
        return cls.now / 2


@dataclass(frozen=True, kw_only=True)
class Clocked(FirstStage):
    """Moves the clock for each document before its first query, and for each query and each document of each query."""

    name: ClassVar[str] = "clocked"

    def candidates(self, collection: Collection, slack: int) -> Iterator[tuple[Rows, Scores]]:
        count = collection.docs.height
        left = collection.memo(("terms", "clocked"), lambda: [PER_DOCUMENT * count])
        Clock.now += left.pop() if left else 0
        for _ in range(collection.judged.height):
            Clock.now += PER_QUERY + PER_PAIR * count
            yield np.arange(count), np.linspace(2, 1, count)


def step(ranker: str, name: str, seconds: float, **others: Amount | str | float) -> PlannedStep:
    """A step, half of whose time at least and twice it at most may pass."""
    time = Amount(seconds, seconds / 2, 2 * seconds) if seconds == seconds else UNKNOWN
    known = {"memory": Amount(2e9, 1e9, 3e9), "disk": NOTHING}
    rest = {"grows": "documents", "factor": 40.0, **known, **others}
    return PlannedStep(ranker=ranker, name=name, seconds=time, processor=time, **rest)  # type: ignore[arg-type]


def whole() -> CostPlan:
    """A plan of two rankers."""
    steps = (
        step("", "load", 90, disk=Amount(9e9, 9e9, 9e9)),
        step("", "index documents (english)", 600, disk=Amount(7e9, 6e9, 8e9)),
        step("bm25", "search", 0.25, grows="documents × queries"),
        step("bm25", "audit, run saved", 40, grows="results"),
        step("bm25@100>>cross-encoder:m", "re-rank: cross-encoder:m", math.nan, grows="results"),
    )
    seconds = sum(one.seconds.value for one in steps if one.seconds.known)
    total = step("", "total", seconds, grows="", factor=1.0, memory=Amount(2e9, 1e9, 3e9))
    total = total._replace(disk=Amount(16e9, 15e9, 17e9))
    measured = Measurement("load", 5_000, 300, 0, 0.1, 0.1, 1e8, 5e6)
    return CostPlan(
        {"collection": {"path": "docs"}, "rankers": ["bm25"], "seed": 0},
        8_800_000, 7_000, steps, total, (measured,), ("A note.",),
    )  # fmt: skip
