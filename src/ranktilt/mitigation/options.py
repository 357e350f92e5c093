"""How a ranker is levelled at inference: what a user may choose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import msgspec

from ranktilt.errors import UserError, unknown
from ranktilt.field_checks import check_fields
from ranktilt.spec import parse_stages, read_value

METHOD_OPTIONS: dict[str, dict[str, type]] = {
    "causal": {"lm": str, "instrument": str, "force": bool},
    "fair-rerank": {"target": float},
}
"""Options of a method's text, with their types."""


def read_method(text: str) -> tuple[str, dict[str, Any]]:
    """Read ``fair-rerank:exposure(target=1)``: the method's name, and its options by name."""
    stages = parse_stages(text)
    stage = stages[0]
    if len(stages) > 1 or stage.k is not None:
        raise UserError(f"expected one method, such as offset; got {text!r}")
    types = METHOD_OPTIONS.get(stage.name, {})
    values = {}
    for name, value in stage.options.items():
        if name not in types:
            raise unknown(f"option of {stage.name}", name, types)
        values[name] = read_value(value, types[name], f"option {name!r} of {stage.name}")
    return stage.name if stage.argument is None else f"{stage.name}:{stage.argument}", values


@dataclass(frozen=True, kw_only=True)
class Levelling:
    """How a ranker is levelled; the methods that are tried by default need nothing but a run with scores."""

    methods: tuple[str, ...] = ("offset", "interleave", "fair-rerank")
    """``causal``, ``projection``, ``fair-rerank[:METHOD]``, ``interleave`` and ``offset``."""
    strengths: tuple[float, ...] = (0.2, 0.4, 0.6, 0.8, 1.0)
    """Strengths to try; 1 applies the full correction."""
    by: str = "source"
    """Column that groups documents."""
    pair: tuple[str, str] | None = None
    """The reference and the other group; needed where there are more than two."""
    depth: Annotated[int, msgspec.Meta(ge=1)] = 100
    """Top results to correct of a run, or of a ranker that names no depth or 1,000, which is the default."""
    target: float | None = None
    """Tilt that fair-rerank aims at with strength 1, in the unit of its estimand: points of the share of the first
    ranks above that of the candidates (0 by default), or the ratio of exposures (1)."""
    lm: str = "ngram"
    """Language model for the causal correction's perplexity."""
    instrument: str | None = None
    """Factor of a designed collection for the causal correction, not the source: pairs of versions, of what is fitted
    on, that differ in it alone say what perplexity does to scores."""
    force: bool = False
    """Continue with a weak instrument (first-stage F below 10), or a factor that failed its check."""
    seed: int = 0
    """Of everything that is drawn."""

    def __post_init__(self) -> None:
        from ranktilt.mitigation.fair_rerank import FairReRank
        from ranktilt.mitigation.methods import (
            method_named,
        )  # late: --help needs the fields alone

        check_fields(self, "levelling")
        for name in self.methods:
            method_named(name)
        if not self.by:
            raise UserError("levelling needs a column of groups (by)")
        if not self.methods or len(set(self.methods)) < len(self.methods):
            raise UserError(f"expected distinct methods; got {', '.join(self.methods) or 'none'}")
        if not self.strengths or not all(0 < one <= 2 for one in self.strengths):
            shown = ", ".join(f"{one:g}" for one in self.strengths)
            raise UserError(f"expected strengths above 0 and at most 2, got {shown or 'none'}")
        if max(self.strengths) > 1 and (
            over := [name for name in self.methods if name != "offset"]
        ):
            raise UserError(
                f"{over[0]} has strengths up to 1, got {max(self.strengths):g}; offset alone goes further"
            )
        twins = next((name for name in self.methods if name in ("causal", "projection")), None)
        if twins and self.by != "source":
            raise UserError(
                f"{twins} learns from twins, which differ in source; omit it, or by={self.by}"
            )
        if self.instrument is not None and "causal" not in self.methods:
            raise UserError(
                "an instrument is for the causal correction: name the method causal, or omit instrument"
            )
        if self.target is None:
            return
        units = {
            name == "fair-rerank:exposure"
            for name in self.methods
            if name.startswith("fair-rerank")
        }
        if len(units) != 1:
            raise UserError(
                "a target is where fair-rerank ends (points of a share), or fair-rerank:exposure (a ratio); name one "
                "of them, and the other apart"
            )
        FairReRank(
            method="exposure" if True in units else "fa-ir", target=self.target
        )  # refuses what is out of range
