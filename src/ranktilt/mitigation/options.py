"""Options of a mitigation: methods and strengths to try.

A *tilt* is how far a ranker favours one group over another; it is *level* if it is within a margin.
A *candidate* is a method at one strength, and the *baseline* the ranker without any correction.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

from ranktilt.auditing.groups import Pair
from ranktilt.errors import UserError
from ranktilt.field_checks import is_number, printed, require_seed, require_whole_number
from ranktilt.mitigation.fair_rerank import FairReRankMethod
from ranktilt.mitigation.interleave import InterleaveMethod
from ranktilt.mitigation.method import Method
from ranktilt.mitigation.methods import read_method
from ranktilt.mitigation.offset import OffsetMethod


def _is_strength(value: float) -> bool:
    """Tell whether a value is a strength of a correction."""
    return is_number(value) and 0 < value <= 2


@dataclass(frozen=True, kw_only=True)
class MitigationOptions:
    """Methods and strengths to try; the default methods only need a run with scores."""

    methods: tuple[Method, ...] = (OffsetMethod(), InterleaveMethod(), FairReRankMethod())
    """Methods to try, each once."""
    strengths: tuple[float, ...] = (0.2, 0.4, 0.6, 0.8, 1.0)
    """Strengths to try: 0 would apply nothing of a correction, 1 applies all of it."""
    by: str = "source"
    """Column that groups documents."""
    pair: Pair | None = None
    """The reference and the other group; needed if there are more than two groups."""
    depth: int = 100
    """Number of top results of each list to correct.

    A ranker whose text has a depth, such as ``bm25@50``, keeps that.
    """
    always: bool = False
    """Correct in any case.

    Without it, nothing is fitted if the baseline is not shown to be tilted. With it, methods are
    fitted all the same, and if no candidate is chosen, the one nearest to level is applied
    (`Choice.applied`).
    """
    seed: int = 0
    """Random seed of all draws."""
    name: str | None = None
    """Name of the ranker or run in results; None for its own name."""

    def __post_init__(self) -> None:
        labels = [method.label for method in self.methods]
        if not self.by:
            raise UserError("mitigation needs a column of groups (by)")
        if not labels or len(set(labels)) < len(labels):
            raise UserError(f"expected distinct methods; got {', '.join(labels) or 'none'}")
        if not self.strengths or not all(map(_is_strength, self.strengths)):
            strengths = ", ".join(map(printed, self.strengths))
            raise UserError(f"expected strengths above 0 and at most 2, got {strengths or 'none'}")
        require_whole_number(self.depth, "a depth of at least 1", least=1)
        require_seed(self.seed)
        for method in self.methods:
            if max(self.strengths) > method.largest_strength:
                raise UserError(
                    f"{method.label} has strengths up to {method.largest_strength:g}, got "
                    f"{max(self.strengths):g}; only offset goes further"
                )
            if method.learns_from_twins and self.by != "source":
                raise UserError(
                    f"{method.label} learns from twins, which differ in source; omit it, or "
                    f"by={self.by}"
                )

    @classmethod
    def from_texts(cls, methods: Iterable[str], **options: Any) -> Self:
        """Make options from the texts of methods, such as ``fair-rerank:exposure(target=1)``.

        `options` are the other fields by name.
        """
        return cls(methods=tuple(read_method(text) for text in methods), **options)

    def spec(self) -> dict[str, Any]:
        """Return the options as plain JSON values, for the spec of a bench."""
        spec = {
            "methods": [str(method) for method in self.methods],
            "strengths": list(self.strengths),
            "by": self.by,
            "pair": self.pair,
            "depth": self.depth,
            "always": self.always,
            "seed": self.seed,
        }
        return spec if self.name is None else {**spec, "name": self.name}
