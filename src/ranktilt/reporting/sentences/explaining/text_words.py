"""Quantities of texts in everyday words, for readers who do not know how they are measured.

A quantity is what a probe measures of each text, such as its median idf.
"""

from __future__ import annotations

_CLAUSES = {
    "words": "how long they are",
    "words per sentence": "how long their sentences are",
    "distinct terms": "how many different words they use",
    "distinct terms per term": "how varied their words are",
    "Coleman-Liau grade": "how hard they are to read",
    "median idf": "how rare their words are",
    "share of query words": "how many words of the queries they hold",
    "% of tokens unread": "how much of them an encoder leaves unread",
}
"""Clause about texts, by the quantity, as in "the texts differ in how long they are"."""
_PREDICTABLE = "how hard they are to predict for a language model"
"""Clause for nats per word and nats per token, whichever language model measures them."""


def plain_words(quantity: str) -> str:
    """Return a quantity of texts in everyday words, or as it is if it has none here."""
    if quantity.startswith("nats per "):
        return _PREDICTABLE
    return _CLAUSES.get(quantity, quantity)
