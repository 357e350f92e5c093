"""The faults of a collection in words: why each matters, and its numbers.

A fault is a way in which texts, pairs or judgments make the comparison of two sides unfair. Twins
are versions of one text, one on each side; they share an origin.
"""

from __future__ import annotations

import math

from ranktilt.data.faults.faults import (
    CUT,
    DANGLING,
    LENGTH,
    MISSING,
    NEAR_IDENTICAL,
    ONE_SIDED,
    REPEATED,
    FaultDetails,
    FaultRow,
)
from ranktilt.errors import counted
from ranktilt.reporting.sentences.grammar import singular_or_plural

MEANINGS = {
    MISSING: "documents without a twin of the same origin, so the sides differ in content",
    "identical pairs": "both sides have the same text, so they can only tie",
    NEAR_IDENTICAL: "both sides have nearly the same text, so they hardly differ",
    "refusals": "the model declined to write, and a refusal cannot be relevant",
    "boilerplate openings": (
        "the text begins with words about the rewrite, which nobody searches for"
    ),
    "cut-off endings": "the text ends without a full stop; the rest may have held the answer",
    "empty texts": "there is nothing to rank",
    "duplicate texts": "the same text again in the source; copies rise and fall together",
    LENGTH: "rankers respond to length, so a tilt may be due to length alone",
    "script differs": "the twins use different scripts: a translation, not a rewrite",
    "title prefixes": (
        "the text begins with its title, which then counts twice: an advantage if one side "
        "dropped it"
    ),
    CUT: "all texts stop at the same length; only the other side still holds the rest",
    "shared titles": (
        "both twins have the same title; ranked with it, they differ less than their texts do"
    ),
    ONE_SIDED: (
        "relevant documents whose twin has another grade or none; the measure favours the judged "
        "side"
    ),
    DANGLING: "judgments for documents or queries outside the collection count in no group",
    REPEATED: (
        "queries with the same text as another add no evidence; an audit resamples them together"
    ),
}
"""Reason why a fault matters, by its name, in the order of the table."""


def fault_note(fault: FaultRow) -> str:
    """Say what the numbers of a fault are; empty for most faults."""
    details = fault.details
    if fault.name == MISSING:
        return _missing_twins(fault)
    if fault.name == NEAR_IDENTICAL:
        return (
            f"Jaccard similarity of terms is {details.least_similarity:g} or more; "
            "void if no pair differs more"
        )
    if fault.name == LENGTH and not math.isnan(details.lower_quartile):
        low, high = details.lower_quartile, details.upper_quartile
        return (
            "median of rewrite words per reference word; "
            f"half of the pairs lie between {low:.2f} and {high:.2f}"
        )
    if fault.name == CUT:
        lengths = [f"{cut.source} at {counted(cut.words, 'word', 'words')}" for cut in details.cuts]
        return "; ".join(lengths)
    return ""


def _missing_twins(fault: FaultRow) -> str:
    """Say why documents have no twins."""
    # The total also counts the pairs of twins, so it equals the count only if there are none.
    if fault.count == fault.total:
        return "no origin is shared; twins need the same origin, or the same _id in two files"
    return "; ".join(_outside_pool(fault.details))


def _outside_pool(details: FaultDetails) -> list[str]:
    """Say how many documents outside a pool have no twin, and how many of them should have one.

    A pool holds the documents to rewrite: those that are judged, or that a ranker returns among its
    first.
    """
    clauses = []
    if details.without_twin_by_design:
        number = details.without_twin_by_design
        documents = counted(number, "document", "documents")
        have = singular_or_plural(number, "has", "have")
        clauses.append(f"{documents} outside the pool {have} no twin, by design")
    if details.relevant_without_twin:
        number = details.relevant_without_twin
        are_relevant = singular_or_plural(number, "is relevant", "are relevant")
        count = singular_or_plural(number, "counts", "count")
        these = singular_or_plural(number, "its", "these")
        clauses.append(
            f"{number:,} outside the pool {are_relevant} to a query and {count} as missing; "
            f"include {these} queries when you pool"
        )
    return clauses


def derived_words(fault: FaultRow) -> dict[str, str]:
    """Return the meaning and the note of a fault, which a check's file holds besides its fields."""
    return {"meaning": MEANINGS[fault.name], "note": fault_note(fault)}
