"""How hard texts are to read, and how long their sentences are."""

from __future__ import annotations

import numpy as np
import polars as pl

from ranktilt.collection import Collection
from ranktilt.probes.base import Floats, TextProbe
from ranktilt.rankers.base import Ranker
from ranktilt.text.quality import words

_SENTENCE_END = r"\p{Sentence_Terminal}+[\p{Pe}\p{Pf}\"']*(?:\s|\z)"


def sentences(texts: pl.Series) -> pl.Series:
    """Count sentences: runs of closing punctuation before white space or the end, at least one a text."""
    return texts.str.count_matches(_SENTENCE_END).cast(pl.Int64).clip(1)


def _counts(collection: Collection) -> tuple[Floats, Floats]:
    """Count the words of every document, NaN for none, and its sentences."""
    texts = collection.docs["text"]
    count = words(texts).to_numpy().astype(np.float64)
    return np.where(count > 0, count, np.nan), sentences(texts).to_numpy().astype(np.float64)


class SentenceLengthProbe(TextProbe):
    """How many words a sentence has; NaN for a text without words."""

    name = "sentences"
    question = "Are the sentences of one source longer than those of the other?"
    what = "words per sentence"
    label = "sentence length"

    def measure(self, collection: Collection, reference: str, ranker: Ranker | None) -> Floats:
        """Divide the words of every document by its sentences."""
        count, ends = _counts(collection)
        return np.asarray(count / ends)


class ReadabilityProbe(TextProbe):
    """The school grade that a text asks for: 5.88 · letters a word − 29.6 · sentences a word − 15.8.

    Letters and digits are counted, and no syllables, so that it can be computed without a dictionary. It was fitted on
    English; in other languages differences mean something and grades do not. NaN for a text without words.
    """

    name = "readability"
    question = "Are the texts of one source harder to read than those of the other?"
    citation = "Coleman & Liau, Journal of Applied Psychology 60, 1975"
    what = "Coleman-Liau grade"

    def measure(self, collection: Collection, reference: str, ranker: Ranker | None) -> Floats:
        """Compute the grade of every document."""
        count, ends = _counts(collection)
        letters = collection.docs["text"].str.count_matches(r"[\p{L}\p{N}]").to_numpy()
        return np.asarray(5.88 * letters / count - 29.6 * ends / count - 15.8)
