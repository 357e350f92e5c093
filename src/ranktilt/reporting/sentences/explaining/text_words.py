"""What is measured of texts, in everyday words, for readers who know no measure of it."""

from __future__ import annotations

_WORDS = {
    "words": "how long they are",
    "words per sentence": "how long their sentences are",
    "distinct terms": "how many different words they use",
    "distinct terms per term": "how varied their words are",
    "Coleman-Liau grade": "how hard they are to read",
    "median idf": "how rare their words are",
    "share of query words": "how many words of the queries they hold",
    "% of tokens unread": "how much of them an encoder leaves unread",
}
_PREDICTABLE = "how hard they are to predict for a language model"
"""What nats per word and nats per token say, whichever model reads."""


def plain_words(quantity: str) -> str:
    """Return what a quantity says of texts; the quantity itself where it is nobody's."""
    return _PREDICTABLE if quantity.startswith("nats per ") else _WORDS.get(quantity, quantity)
