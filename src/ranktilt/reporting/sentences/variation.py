"""Sentences about results that could not have come out otherwise.

A list cannot vary if the ranker had no choice, as where all documents have the same score. A result
that is made of such lists is near neutral whatever the ranker favours.
"""

from __future__ import annotations

from collections.abc import Mapping

from ranktilt.errors import join_words
from ranktilt.reporting.sentences.grammar import share_of_all
from ranktilt.statistics.variation import Reason, Variation

_REASON_WORDS: Mapping[Reason, str] = {
    "single": "there is only one document",
    "tied": "all documents have the same score",
    "whole": "all documents are within the first ranks",
    "repeated": "the documents are the same as for most other queries, in the same order",
    "unread": "the model's answer could not be read",
    "returned": "the model returned the order it was shown",
    "position": "the choice follows the order in which the documents were shown",
    "constant": "all documents get the same grade",
}
"""Words for a list, a pair or the grades of a query that cannot vary, by the reason."""
_UNITS: Mapping[Reason, tuple[str, str]] = {
    "position": ("pair", "pairs"),
    "constant": ("query", "queries"),
}
"""Singular and plural of what is counted, by the reason; lists for all others."""


def variation_words(variation: Variation) -> str:
    """Say what cannot vary, and how often.

    Such as ``all documents have the same score in 24 of 24 lists``.
    """
    if not variation.total:
        return "no list contains a document of these groups"
    parts = [
        f"{_REASON_WORDS[reason]} in "
        f"{share_of_all(number, variation.total, *_UNITS.get(reason, ('list', 'lists')))}"
        for reason, number in variation.fixed.items()
    ]
    return join_words(parts)
