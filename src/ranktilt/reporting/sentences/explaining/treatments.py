"""Names of treatments, to begin a sentence with: ``halving a text``.

In an experiment, versions of a document differ in factors, each with a low and a high level. A
treatment is the change of a text from the low level of a factor to the high one.
"""

from __future__ import annotations

from collections.abc import Mapping

from ranktilt.explaining.factors.result import SOURCE, DesignedFactor
from ranktilt.generation.versions.factors import AS_IS

_TREATMENTS: Mapping[tuple[str, str], str] = {
    ("facts", "changed"): "changing the numbers and names in a text",
    ("fluency", "polished"): "polishing a text",
    ("fluency", "swapped"): "swapping neighbouring words of a text",
    ("gender", "feminine"): "making a text feminine",
    ("length", "halved"): "halving a text",
    ("length", "shorter"): "shortening a text",
    ("position", "beginning"): "moving the answer to the beginning of a text",
    ("position", "end"): "moving the answer to the end of a text",
    ("position", "middle"): "moving the answer to the middle of a text",
    ("query-words", "added"): "adding the words of its queries to a text",
    ("repetition", "twice"): "stating the answer of a text twice",
    ("repetition", "3 times"): "stating the answer of a text three times",
    ("repetition", "4 times"): "stating the answer of a text four times",
    ("repetition", "5 times"): "stating the answer of a text five times",
    (SOURCE, "paraphrased"): "letting a model paraphrase a text",
    (SOURCE, "rewritten"): "letting a model rewrite a text",
    ("style", "informal"): "making a text informal",
    ("words", "synonyms"): "replacing words of a text by synonyms",
}
"""Name of a treatment, by the factor and its high level."""


def treatment(factor: DesignedFactor) -> str:
    """Name a treatment: ``halving a text``, or ``tone=informal`` of a factor of the user's own."""
    if factor.low == AS_IS:
        if (factor.name, factor.high) in _TREATMENTS:
            return _TREATMENTS[factor.name, factor.high]
        if factor.name == SOURCE:
            return f"letting {factor.high} rewrite a text"
    return f"{factor.name}={factor.high}"


def is_named_by_level(factor: DesignedFactor) -> bool:
    """Return whether a treatment is called ``tone=informal``, which does not name the text.

    A sentence must then say ``a text`` and not ``it``.
    """
    return treatment(factor) == f"{factor.name}={factor.high}"
