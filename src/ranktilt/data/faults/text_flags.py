"""Examine each text of a collection once, for all checks and audits that need the same facts."""

from __future__ import annotations

import polars as pl

from ranktilt.data.collection import Collection
from ranktilt.data.text.quality import cut_off, opening, refusal, words
from ranktilt.data.text_facts import stored_facts
from ranktilt.data.texts import by_blocks


def text_flags(collection: Collection) -> pl.DataFrame:
    """Return what each text has that could void a comparison, a row for each document.

    White space around a text does not count.

    - ``opening``: whether it begins with words of a chat model before the text itself
    - ``refusal``: whether it begins with words by which a model declines a task
    - ``cut_off``: whether it ends in the middle of a sentence
    - ``words``: number of its words
    - ``empty``: whether it is empty
    """
    text = collection.docs["text"]

    def find() -> pl.DataFrame:
        return by_blocks(_flags, text, "examining texts")

    return collection.memo("text flags", lambda: stored_facts(collection, "flags", find))


def _flags(text: pl.Series) -> pl.DataFrame:
    """Return the columns of `text_flags` for some texts."""
    stripped = text.str.strip_chars()
    flags = {
        "opening": opening(stripped).is_not_null(),
        "refusal": refusal(stripped),
        "cut_off": cut_off(stripped),
        "words": words(stripped),
        "empty": stripped == "",
    }
    return pl.DataFrame(flags)
