"""Comparisons of one check counted by estimand, and scores to which a known tilt is added."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from ranktilt.auditing.calibration.result import EXPECTED, VERDICT, Check, CheckOutcome, Verdict
from ranktilt.auditing.calibration.synthetic_twins import first_source
from ranktilt.collection import Collection
from ranktilt.rankers.base import cut
from ranktilt.run import Run, collection_rows

Floats = npt.NDArray[np.float64]
STEPS = (-100.0, -3.0, -1.0, -0.3, -0.1, 0.0, 0.1, 0.3, 1.0, 3.0, 100.0)
"""Known tilts, in standard deviations of a query's scores (median over queries)."""
_TOUCH = 1e-7


class Vectors:
    """A ranker's scores at full depth, to which a tilt can be added before they are cut."""

    def __init__(self, collection: Collection, run: Run, seed: int) -> None:
        self.collection, self.queries = collection, run.queries
        rows = collection_rows(run, collection)[run.docs]
        bounds = zip(run.offsets[:-1], run.offsets[1:], strict=True)
        self.scores = [(rows[low:high], run.scores[low:high]) for low, high in bounds]
        spreads = [s.std() for _, s in self.scores if len(s) > 1 and s.std() > 0]
        self.unit = float(np.median(spreads)) if spreads else 1.0
        self.first = (collection.docs["source"] == first_source(collection)).to_numpy()
        rng = np.random.default_rng([seed, 4])
        self.noise = [_TOUCH * self.unit * rng.permutation(len(s)) / max(len(s), 1) for _, s in self.scores]

    def tilted(self, step: float, depth: int | None) -> Run:
        """Return the run with `step` standard deviations of a query's scores (median over queries) on the first side.

        Scores that are cut at a `depth` are made distinct before, by less than any δ, because a cut through a tie at a
        measure's own cutoff keeps whichever its hash chooses.
        """
        found = (
            (rows, scores + step * self.unit * self.first[rows] + (noise if depth else 0.0))
            for (rows, scores), noise in zip(self.scores, self.noise, strict=True)
        )
        parts = cut(found, self.collection.tie_keys(), depth)
        return Run(self.queries, *parts, self.collection.ids, {"ranker": f"δ = {step:+g} sd"})


class ComparisonCounter:
    """Comparisons of one check and ranker, by estimand."""

    def __init__(self, check: Check, ranker: str) -> None:
        self.check, self.ranker = check, ranker
        self.tests: dict[str, list[bool]] = {}
        self.values: dict[str, list[float]] = {}
        self.first: dict[str, str] = {}

    def add(self, estimand: str, good: bool, value: float, where: str) -> None:
        """Count one comparison, unless the value is NaN; `where` is kept of the first that failed."""
        tests, values = self.tests.setdefault(estimand, []), self.values.setdefault(estimand, [])
        if not np.isnan(value):
            tests.append(good)
            values.append(value)
            if not good:
                self.first.setdefault(estimand, where)

    def add_rise(self, estimand: str, values: Floats, where: str) -> None:
        """Count the steps of an estimand along `STEPS`, over which it must rise.

        One that never moves shows nothing: where nothing is retrieved of one side it cannot, so it is untested.
        """
        known = ~np.isnan(values)
        found, tilts = values[known], np.array(STEPS)[known]
        self.add(estimand, True, np.nan, where)
        if not len(found) or found.min() == found.max():
            return
        for low, high, at in zip(found[:-1], found[1:], tilts[1:], strict=True):
            good = bool(high >= low - 1e-9 * max(1.0, abs(low)))
            self.add(
                estimand, good, low, f"{where}: falls from {_signed(low)} to {_signed(high)} at δ = {_signed(at)} sd"
            )
        self.values[estimand].append(found[-1])

    def rows(self) -> Iterator[CheckOutcome]:
        """Give a row an estimand, in the order in which they came."""
        for name, tests in self.tests.items():
            expected = "favours nobody" if name == VERDICT else EXPECTED[self.check]
            failed = tests.count(False)
            verdict: Verdict = "failed" if failed else "ok" if tests else "untested"
            measured, details = self._measured(name), self.first.get(name, "")
            yield CheckOutcome(self.check, self.ranker, name, expected, measured, verdict, len(tests), failed, details)

    def _measured(self, estimand: str) -> str:
        tests, values = self.tests[estimand], self.values[estimand]
        if not tests:
            return "never moved" if self.check == "known tilt" else "undefined"
        good = f"{tests.count(True)} of {len(tests)}"
        if self.check == "known tilt":
            low, high = (_signed(v, ".2f" if abs(v) < 1 else ".3g") for v in (min(values), max(values)))
            return f"rose {low} to {high}" if all(tests) else f"{good} steps, {low} to {high}"
        if self.check == "antisymmetry" or estimand == VERDICT:
            return good
        if all(tests):
            return f"0 in {good}"
        return f"≠ 0 in {tests.count(False)} of {len(tests)}, up to {_signed(max(values, key=abs))}"


def _signed(value: float, form: str = ".3g") -> str:
    return f"{value:+{form}}".replace("-", "−")
