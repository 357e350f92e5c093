"""Grade gap: how much higher a judge grades one of two twins.

*Twins* are two versions of one document, one in each group. A *judge* is a person or a language
model that grades how relevant documents are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from ranktilt.measures.base import Estimand


@dataclass(frozen=True, repr=False)
class GradeGapOfTwins(Estimand):
    """Mean of ``grade_a − grade_b`` over twins that a judge graded for one query, in grades.

    0 is level. Its columns are the sum of the differences and the number of pairs.
    """

    grade: str = field(default="any", kw_only=True)
    """Human grade of the twins that count; ``any`` for all."""

    name = "GradeGap"
    kind = "grades"
    unit = "pair"
    free: ClassVar[tuple[str, ...]] = ("grade",)
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


GradeGap = GradeGapOfTwins()
