"""What many draws of a scenario come to: a row for each estimand, which may fail.

- type I: share of p < .05 where nobody is favoured (where there is a true tilt, the power);
- coverage: share of 95 % intervals that hold the true value, or the neutral one;
- p, interval apart: p < .05 although the interval holds the neutral value, or the reverse.
"""

from __future__ import annotations

import itertools
import os
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from multiprocessing import get_context

import numpy as np
from common import say
from questions import Answer
from scenarios import Scenario, scenarios

CHUNK = 20
"""Draws that a process makes at a time."""
THREADS = ("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
MOST_ERRORS, LEAST_COVERAGE, CONSERVATIVE = 6.0, 93.0, 97.0
MOST_APART, FINDINGS_LOST = 3.0, 2.0
MONTE_CARLO_ERRORS = 2.6


@dataclass(frozen=True, kw_only=True)
class Row:
    """What many draws of one scenario say about one estimand; shares are in percent."""

    scenario: str
    estimand: str
    draws: int
    truth: float | None
    significant: float
    """Of all draws, those with p < .05: the type I error, or the power where there is a truth."""
    coverage: float
    """Of the draws with an interval."""
    apart: float
    """Draws in which p and interval disagree."""
    undefined: float
    """Draws without an interval or without a p."""
    one_sided: float
    """Draws with a verdict for a side."""
    effective_n: float
    """Median."""
    twins: bool

    @property
    def faults(self) -> list[str]:
        """What makes the row fail."""
        faults = []
        if self.truth is None and self.significant > MOST_ERRORS + self.allowance(MOST_ERRORS):
            faults.append("type I")
        if self.coverage < LEAST_COVERAGE - self.allowance(LEAST_COVERAGE):
            faults.append("coverage")
        if self.apart > MOST_APART:
            faults.append("p and interval")
        return faults

    @property
    def remarks(self) -> list[str]:
        """What is no fault, but worth knowing."""
        remarks = ["conservative"] if self.coverage > CONSERVATIVE else []
        if self.truth is None and not self.twins and self.significant < FINDINGS_LOST:
            remarks.append("findings are lost")
        if self.undefined:
            remarks.append(f"{self.undefined:.1f} % undefined")
        return remarks

    def allowance(self, percent: float) -> float:
        """Return the Monte Carlo errors within which a share counts as what was asked."""
        share = percent / 100
        return MONTE_CARLO_ERRORS * 100 * float(np.sqrt(share * (1 - share) / self.draws))

    @property
    def outcome(self) -> str:
        """The last cell of the row."""
        faults = [f"FAILS: {', '.join(self.faults)}"] if self.faults else []
        return "; ".join([*faults, *self.remarks]) or "ok"

    @property
    def cells(self) -> list[str]:
        """The row as it is printed."""
        neutral = self.truth is None
        return [
            f"{self.scenario}: {self.estimand}",
            f"{self.draws:,}",
            "–" if neutral else f"{self.truth:+.4g}",
            f"{self.significant:.1f} %" if neutral else f"({self.significant:.1f} %)",
            f"{self.coverage:.1f} %",
            f"{self.apart:.1f} %",
            f"{self.effective_n:.0f}",
            f"{self.one_sided:.1f} %",
            self.outcome,
        ]


HEADER = (
    "scenario, queries: estimand",
    "draws",
    "true tilt",
    "type I (power)",
    "coverage",
    "p, interval apart",
    "effective n",
    "verdict for a side",
    "",
)


def counted(
    scenario: Scenario,
    draws: Sequence[Sequence[Answer]],
    truth: Mapping[str, float] | None,
) -> list[Row]:
    """Make a row of each estimand that any draw answers."""
    answers: dict[str, list[Answer]] = {}
    for answer in itertools.chain.from_iterable(draws):
        answers.setdefault(answer.estimand, []).append(answer)
    return [
        _row(scenario, estimand, members, None if truth is None else truth[estimand])
        for estimand, members in answers.items()
    ]


def _row(scenario: Scenario, estimand: str, answers: Sequence[Answer], truth: float | None) -> Row:
    defined = [a for a in answers if not np.isnan([a.low, a.high, a.p, a.neutral]).any()]
    tilt = 0.0 if truth is None else truth
    covered = [not a.excludes(a.neutral + tilt) for a in defined]
    apart = [a.is_significant != a.excludes(a.neutral) for a in defined]
    sided = [a.verdict not in ("level", "inconclusive", "") for a in answers]
    return Row(
        scenario=scenario.name,
        estimand=estimand,
        draws=len(answers),
        truth=truth,
        significant=_percent([a.is_significant for a in answers]),
        coverage=_percent(covered),
        apart=_percent(apart),
        undefined=100 * (1 - len(defined) / len(answers)),
        one_sided=_percent(sided),
        effective_n=float(np.median([a.effective_n for a in answers])),
        twins=scenario.twins,
    )


def _percent(flags: Sequence[bool]) -> float:
    return 100 * float(np.mean(flags)) if len(flags) else float("nan")


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How much is simulated."""

    draws: int
    resamples: int
    jobs: int
    rough_truth: bool
    seed: int


def simulated_rows(chosen: Sequence[Scenario], effort: Effort) -> Iterator[list[Row]]:
    """Draw each scenario, in several processes where asked; the same rows whatever their number."""
    for variable in THREADS:  # several processes share the cores
        os.environ.setdefault(variable, "1")
    with ProcessPoolExecutor(effort.jobs, mp_context=get_context("spawn")) as pool:
        for scenario in chosen:
            begin = time.perf_counter()
            count = max(effort.draws // scenario.thrift, 1)
            size = max(CHUNK // scenario.thrift, 1)
            spans = [(start, min(start + size, count)) for start in range(0, count, size)]
            truth = None if scenario.truth is None else scenario.truth(effort.rough_truth)
            middle = time.perf_counter()
            chunk = partial(drawn_answers, scenario.name, effort)
            chunks = pool.map(chunk, spans) if effort.jobs > 1 else map(chunk, spans)
            draws = list(itertools.chain.from_iterable(chunks))
            milliseconds = 1000 * (time.perf_counter() - middle) * effort.jobs / count
            known = "" if truth is None else f", {middle - begin:.0f} s for the truth"
            say(f"{scenario.name}: {milliseconds:.0f} ms a draw{known}")
            yield counted(scenario, draws, truth)


def drawn_answers(name: str, effort: Effort, span: tuple[int, int]) -> list[list[Answer]]:
    """Make some draws of the scenario of this name; each has random numbers of its own."""
    scenario = _by_name()[name]
    answers = []
    for number in range(*span):
        rng = np.random.default_rng([effort.seed, zlib.crc32(name.encode()), number])
        answers.append(list(scenario.draw(rng, number, effort.resamples)))
    return answers


@cache
def _by_name() -> dict[str, Scenario]:
    return {scenario.name: scenario for scenario in scenarios()}
