"""Grade gap: how much higher a judge grades one of two twins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from ranktilt.errors import counted
from ranktilt.measures.answered import Answered
from ranktilt.measures.base import Estimand


@dataclass(frozen=True, repr=False)
class GradeGapOfTwins(Estimand):
    """Mean of ``grade_a − grade_b`` over twins that a judge graded for one query: 0 is level, in grades.

    Its columns are the sum of the differences and the number of pairs.
    """

    grade: str = field(default="any", kw_only=True)
    """Of all twins, or of those to which humans gave this grade."""

    name = "GradeGap"
    kind = "grades"
    unit = "pair"
    free: ClassVar[tuple[str, ...]] = ("grade",)
    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    question = "which twin is graded higher?"
    digits = 3
    suffix = " grades"
    term = "grade gap"
    definition = (
        "How much higher a judge grades one of two twins than the other, in grades. 0 is level."
    )
    pattern = r"[Gg]rade gaps?"

    @property
    def title(self) -> str:
        return "grade gap" if self.grade == "any" else f"grade gap, human grade {self.grade}"

    def finding(self, effect: Answered, noun: str) -> str:
        if effect.value == 0:
            return "both twins get the same grade on average"
        return f"{effect.a if effect.value > 0 else effect.b} {noun} is graded {abs(effect.value):.3f} higher"

    def basis(self, effect: Answered) -> str:
        pairs = counted(int(effect.details.get("pairs", 0)), "pair", "pairs")
        return f"{pairs} of twins; {counted(effect.queries, 'query', 'queries')}"


GradeGap = GradeGapOfTwins()
