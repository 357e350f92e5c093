"""Limits of the faults of a collection: the keys of ``[check]`` in ranktilt.toml."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import msgspec

from ranktilt.errors import UserError
from ranktilt.field_checks import check_fields
from ranktilt.sizes import POINTS

Percent = Annotated[float, msgspec.Meta(ge=0, le=100, extra={"unit": POINTS})]
"""A percentage."""
Ratio = Annotated[float, msgspec.Meta(ge=0)]
"""A number of 0 or more."""


@dataclass(frozen=True, kw_only=True)
class CheckLimits:
    """Limits beyond which a fault voids a comparison: its results would say nothing.

    Shares are in percent. A limit outside its range raises a `UserError`.
    """

    max_missing: Percent = 10.0
    """Maximum share of documents without a twin."""
    max_identical: Percent = 5.0
    """Maximum share of pairs whose two texts are the same."""
    max_boilerplate: Percent = 10.0
    """Maximum share of texts that open with boilerplate, such as "Sure, here is"."""
    max_refusals: Percent = 10.0
    """Maximum share of texts in which a language model refuses."""
    max_cut_off: Percent = 10.0
    """Maximum share of texts that end in the middle of a sentence."""
    max_one_sided: Percent = 5.0
    """Maximum share of relevant documents whose twin has another grade or no judgment."""
    min_length_ratio: Ratio = 0.67
    """Minimum of the median length ratio: words of a text over words of its reference."""
    max_length_ratio: Ratio = 1.5
    """Maximum of the median length ratio."""
    near_identical: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.95
    """Smallest Jaccard similarity of two texts' terms that counts as near-identical."""
    warn_above: Percent = 1.0
    """Share above which any fault is a warning.

    For title prefixes and cut texts, it is the gap between both sources' shares.
    """

    def __post_init__(self) -> None:
        """Refuse limits outside their ranges."""
        check_fields(self, "limits of a check")
        if not self.min_length_ratio < self.max_length_ratio:
            raise UserError(
                "expected min_length_ratio below max_length_ratio, got "
                f"{self.min_length_ratio:g} and {self.max_length_ratio:g}"
            )


LIMITS = CheckLimits()
"""Limits that apply unless the user sets others."""
EQUIVALENCE = 2.0
"""Largest difference in effectiveness between two sources that does not matter, in points."""
