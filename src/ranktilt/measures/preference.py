"""Preference: how much more often than half the time one group's document of a pair is chosen.

A model is shown pairs of documents, one of each group, and says which is more relevant to a query.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ranktilt.measures.base import Estimand


@dataclass(frozen=True, repr=False)
class PreferenceOfPairs(Estimand):
    """Share of the choices between two groups that went to the first, minus a half.

    From −.5 to .5; 0 is level. A query's total is ``(choices of the first − choices of the
    second)/2``, and its weight is the number of choices. Wang et al. (NAACL 2024) print the ratio
    of the two groups' shares instead, which is ``(.5 + value)/(.5 − value)``.
    """

    pairs: str = field(default="relevant", kw_only=True)
    """Which pairs count: ``relevant``, both documents are relevant to the query; ``irrelevant``,
    neither."""

    name = "Preference"
    kind = "choices"
    unit = "pair"
    choices = {"pairs": ("relevant", "irrelevant")}  # noqa: RUF012
    question = "which of two documents is chosen?"
    bounds = (-0.5, 0.5)
    scale = 100.0
    suffix = " points"

    @property
    def title(self) -> str:
        return f"preference on {self.pairs} pairs"


Preference = PreferenceOfPairs()
