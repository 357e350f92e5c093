"""Whether a ranking could have favoured anybody: where nothing can vary, nothing proves level."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ranktilt.errors import join_words

Reason = Literal[
    "tied", "single", "whole", "repeated", "unread", "returned", "position", "constant"
]
WORDS: Mapping[Reason, str] = {
    "single": "there is only one document",
    "tied": "all documents have the same score",
    "whole": "all documents are within the first ranks",
    "repeated": "the documents are those of most other queries, in the same order",
    "unread": "the model's answer could not be read",
    "returned": "the model gave back the order it was shown",
    "position": "the choice follows the order in which the documents were shown",
    "constant": "all documents get the same grade",
}
"""Why a list, a pair or the grades of a query cannot vary, in words."""
_UNITS: Mapping[Reason, str] = {"position": "pairs", "constant": "queries"}
LEAST_VARYING = 0.5
"""Share of the lists that must be able to vary before a result counts as level."""


@dataclass(frozen=True, kw_only=True)
class Variation:
    """How many of the lists behind an answer could have come out differently.

    A list whose documents all have one score adds an exact "level" to a mean, whatever the ranker
    is, and so do the other kinds in `fixed`. Byte-identical copies do not: they tie with each
    other, and not with other documents.
    """

    total: int
    """Lists behind the answer; pairs of documents where choices are counted, queries of a judge."""
    fixed: Mapping[Reason, int]
    """How many of them could not vary, by the reason."""

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
        """Whether a result can count as level."""
        return self.share >= LEAST_VARYING

    def __add__(self, more: Variation) -> Variation:
        """Count further lists."""
        return Variation(
            total=self.total + more.total, fixed=dict(Counter(self.fixed) + Counter(more.fixed))
        )

    @property
    def words(self) -> str:
        """Reasons and counts: ``all documents have the same score in 24 of 24 lists``."""
        if not self.total:
            return "no list holds a document of these groups"
        parts = [
            f"{WORDS[reason]} in {number:,} of {self.total:,} {_UNITS.get(reason, 'lists')}"
            for reason, number in self.fixed.items()
        ]
        return join_words(parts)


def choice_variation(pairs: int, inconsistent: int) -> Variation:
    """Return the variation of choices.

    An answer that follows the order in which documents are shown favours both sides.
    """
    return Variation(total=pairs, fixed={"position": inconsistent} if inconsistent else {})


def grade_variation(queries: int, constant: int) -> Variation:
    """Return the variation of a judge's grades.

    A judge may give one grade to all documents of a query.
    """
    return Variation(total=queries, fixed={"constant": constant} if constant else {})
