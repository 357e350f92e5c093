"""Limits of the faults of a collection: the keys of ``[check]`` in ranktilt.toml."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import msgspec

from ranktilt.errors import UserError
from ranktilt.field_checks import check_fields
from ranktilt.sizes import POINTS

Percent = Annotated[float, msgspec.Meta(ge=0, le=100, extra={"unit": POINTS})]
"""A number of percent."""
Ratio = Annotated[float, msgspec.Meta(ge=0)]
"""A number of 0 or more."""


@dataclass(frozen=True, kw_only=True)
class CheckLimits:
    """Limits beyond which a fault voids a comparison; shares in percent.

    `UserError` for a limit outside its range.
    """

    max_missing: Percent = 10.0
    """Maximum share of documents without a twin."""
    max_identical: Percent = 5.0
    """Maximum share of pairs with the same text twice."""
    max_boilerplate: Percent = 10.0
    """Maximum share of boilerplate openings."""
    max_refusals: Percent = 10.0
    """Maximum share of refusals."""
    max_cut_off: Percent = 10.0
    """Maximum share of cut-off endings."""
    max_one_sided: Percent = 5.0
    """Maximum share of relevant judgments whose twin has another grade or none."""
    min_length_ratio: Ratio = 0.67
    """Minimum median length ratio, rewrite to reference."""
    max_length_ratio: Ratio = 1.5
    """Maximum median length ratio, rewrite to reference."""
    near_identical: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.95
    """Jaccard similarity of terms from which twins are near-identical."""
    warn_above: Percent = 1.0
    """Warn when another fault exceeds this share; for title prefixes and cuts, this gap."""

    def __post_init__(self) -> None:
        """Refuse limits outside their ranges."""
        check_fields(self, "limits of a check")
        if not self.min_length_ratio < self.max_length_ratio:
            raise UserError(
                "expected min_length_ratio below max_length_ratio, got "
                f"{self.min_length_ratio:g} and {self.max_length_ratio:g}"
            )


LIMITS = CheckLimits()
"""Limits in force unless the user sets others."""
EQUIVALENCE = 2.0
"""Difference in effectiveness between two sides that does not matter, in points."""
