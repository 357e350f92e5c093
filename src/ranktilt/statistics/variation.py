"""Count the lists behind a result that could have come out differently.

A result is *level* if it favours neither of two groups. If hardly any list could have come out
differently, "level" says nothing about the ranker: it had no choice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Reason = Literal[
    "tied", "single", "whole", "repeated", "unread", "returned", "position", "constant"
]
"""Why a list, a pair of documents or the grades of a query could not come out differently.

- ``tied``: all documents of the list have one score
- ``single``: the list has one document
- ``whole``: the list is no longer than the first ranks that count, so their order does not matter
- ``repeated``: the list is the same for other queries, as if the query had not been read
- ``unread``: a language model's answer could not be read
- ``returned``: a language model returned the list as it was
- ``position``: a choice between two documents followed the order in which they were shown
- ``constant``: a judge gave all documents of the query one grade

`reporting/sentences/findings` says each reason in words.
"""
LEAST_VARYING = 0.5
"""Smallest share of lists that could vary for a result to count as level."""


@dataclass(frozen=True, kw_only=True)
class Variation:
    """How many of the lists behind an answer could have come out differently.

    A list whose documents all have the same score favours nobody, whatever the ranker is. A mean
    over such lists is "level" without meaning, and so it is for every other `Reason`. A list in
    which only identical copies of a document are tied could vary.
    """

    total: int
    """Number of lists; of pairs of documents for choices, and of queries for a judge's grades."""
    fixed: Mapping[Reason, int]
    """How many of them could not vary, for each reason."""

    @property
    def varying(self) -> int:
        """Number of lists that could vary."""
        return self.total - sum(self.fixed.values())

    @property
    def share(self) -> float:
        """Share of lists that could vary; 0 where there are no lists."""
        return self.varying / self.total if self.total else 0.0

    @property
    def enough(self) -> bool:
        """Whether enough lists could vary for a result to count as level."""
        return self.share >= LEAST_VARYING

    def __add__(self, more: Variation) -> Variation:
        """Add the lists of another result."""
        return Variation(
            total=self.total + more.total, fixed=dict(Counter(self.fixed) + Counter(more.fixed))
        )


def choice_variation(pairs: int, inconsistent: int) -> Variation:
    """Return the variation of choices between two documents.

    A pair whose answer follows the order in which the documents are shown could not vary.
    """
    return Variation(total=pairs, fixed={"position": inconsistent} if inconsistent else {})


def grade_variation(queries: int, constant: int) -> Variation:
    """Return the variation of a judge's grades.

    A query whose documents all have one grade could not vary.
    """
    return Variation(total=queries, fixed={"constant": constant} if constant else {})
