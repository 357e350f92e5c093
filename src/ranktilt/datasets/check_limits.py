"""From where on a fault of a collection voids a comparison; the command line reads its options here."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Annotated, get_type_hints

from ranktilt.errors import UserError
from ranktilt.option import Option


@dataclass(frozen=True)
class CheckLimits:
    """From where on a fault voids a comparison; shares in %. `UserError` for a limit outside its range."""

    missing: Annotated[
        float, Option("Maximum share of documents without a twin, in %.", flag="--max-missing")
    ] = 10.0
    identical: Annotated[
        float,
        Option("Maximum share of pairs with the same text twice, in %.", flag="--max-identical"),
    ] = 5.0
    boilerplate: Annotated[
        float, Option("Maximum share of boilerplate openings, in %.", flag="--max-boilerplate")
    ] = 10.0
    refusals: Annotated[
        float, Option("Maximum share of refusals, in %.", flag="--max-refusals")
    ] = 10.0
    cut_off: Annotated[
        float, Option("Maximum share of cut-off endings, in %.", flag="--max-cut-off")
    ] = 10.0
    one_sided: Annotated[
        float,
        Option(
            "Maximum share of relevant judgments whose twin has another grade or none, in %.",
            flag="--max-one-sided",
        ),
    ] = 5.0
    shortest: Annotated[
        float,
        Option("Minimum median length ratio, rewrite to reference.", flag="--min-length-ratio"),
    ] = 0.67
    longest: Annotated[
        float,
        Option("Maximum median length ratio, rewrite to reference.", flag="--max-length-ratio"),
    ] = 1.5
    near_identical: Annotated[
        float, Option("Jaccard similarity of terms from which twins are near-identical.")
    ] = 0.95
    notice: Annotated[
        float,
        Option(
            "Warn when another fault exceeds this share, in %; for title prefixes and cuts, this gap.",
            flag="--warn-above",
        ),
    ] = 1.0

    def __post_init__(self) -> None:
        tops = {"shortest": math.inf, "longest": math.inf, "near_identical": 1.0}
        for name, value in asdict(self).items():
            top = tops.get(name, 100.0)
            if not 0 <= value <= top:
                expected = {1.0: "0 to 1", 100.0: "0 to 100 %"}.get(top, "0 or more")
                raise UserError(f"{_flag(name)}: expected {expected}, got {value:g}")
        if not self.shortest < self.longest:
            raise UserError(
                f"expected {_flag('shortest')} below {_flag('longest')}, got {self.shortest:g} and "
                f"{self.longest:g}"
            )


def _flag(name: str) -> str:
    """Return a limit as it is typed on the command line and in Python."""
    (option,) = get_type_hints(CheckLimits, include_extras=True)[name].__metadata__
    return f"{option.names(name)[0]} ({name}=)"


LIMITS = CheckLimits()
