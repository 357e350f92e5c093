"""What a calibration found: a row a check, ranker and estimand, and the verdict on the whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ranktilt.errors import counted
from ranktilt.io.artifact import Result

Check = Literal["null", "antisymmetry", "known tilt"]
Verdict = Literal["ok", "failed", "untested"]

VERDICT = "the verdict"
MEANINGS: dict[Check, str] = {
    "null": "the second source is a byte-identical copy of the first; everything must be level, to the last bit",
    "antisymmetry": "the two sources swap their names; everything must turn its sign, to the last bit",
    "known tilt": "δ is added to the first side's scores before the cut",
}
EXPECTED: dict[Check, str] = {"null": "exactly 0", "antisymmetry": "negated", "known tilt": "rises with δ"}


@dataclass(frozen=True)
class CheckOutcome:
    """One check of one ranker and estimand."""

    check: Check
    ranker: str
    """Its text."""
    estimand: str
    expected: str
    measured: str
    verdict: Verdict
    """``untested`` where the estimand was never defined, or no tilt could move it."""
    tests: int
    """Single comparisons behind it."""
    failed: int
    """Of these, those that did not come out as they must."""
    details: str = ""
    """The first that failed."""


@dataclass(frozen=True, eq=False)
class Calibration(
    Result, format="ranktilt-calibration", version=1, noun="a calibration", command="ranktilt tools calibrate"
):
    """What `calibrate` found."""

    rows: tuple[CheckOutcome, ...]
    """Ranker by ranker."""
    spec: Mapping[str, Any] = field(default_factory=dict)
    """How it was made: collection, sample, id schemes, depths, tilts, seed, versions."""
    notes: tuple[str, ...] = ()
    """What a reader should know."""

    @property
    def failures(self) -> tuple[CheckOutcome, ...]:
        """The rows that failed."""
        return tuple(row for row in self.rows if row.verdict == "failed")

    @property
    def passed(self) -> bool:
        """Whether no row failed and at least one was tested."""
        return not self.failures and any(row.verdict == "ok" for row in self.rows)

    @property
    def rankers(self) -> tuple[str, ...]:
        """Texts of the rankers, in order."""
        return tuple(dict.fromkeys(row.ranker for row in self.rows))

    @property
    def sentence(self) -> str:
        """The verdict on the whole, in one sentence."""
        if not self.failures:
            tested = sum(row.verdict == "ok" for row in self.rows)
            left = len(self.rows) - tested
            rest = f"; {left} could not be tested" if left else ""
            if not tested:
                return "Nothing could be tested: no estimand was ever defined."
            return f"Calibrated: {counted(tested, 'check', 'checks')} came out as expected{rest}."
        parts: dict[str, list[Check]] = {}
        for row in self.failures:
            parts.setdefault(row.ranker, []).append(row.check)
        said = "; ".join(f"{ranker}: {', '.join(dict.fromkeys(checks))}" for ranker, checks in parts.items())
        return f"Not calibrated: {len(self.failures)} of {counted(len(self.rows), 'check', 'checks')} failed ({said})."

    def derived(self) -> dict[str, Any]:
        return {"passed": self.passed, "sentence": self.sentence}
