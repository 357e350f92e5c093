"""An n-gram language model without any download: interpolated Kneser-Ney trigrams of a collection's own texts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.errors import UserError

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

FOLDS = 5
MOST_WORDS = 20_000_000
"""Words that a model is trained on; of more texts some are drawn."""
_START = 0  # stands before a text, twice, and is never predicted
_TEXTS_AT_ONCE = 20_000
_LEAST_DISCOUNT, _LARGEST_DISCOUNT = 0.1, 0.95


@dataclass(frozen=True, eq=False)
class Words:
    """Texts as word numbers, one after the other, and how many words each has."""

    numbers: Ints
    lengths: Ints
    vocabulary: int
    """Distinct words; they have the numbers from 1 on, and the unknown word comes after the last."""

    @classmethod
    def from_texts(cls, texts: pl.Series) -> Words:
        r"""Split texts into lower-cased runs of letters, digits and underscores (``\w+``), and number the words."""
        split = texts.str.to_lowercase().str.extract_all(r"\w+")
        flat = split.explode(empty_as_null=False)
        numbers = (
            flat.rank("dense").to_numpy().astype(np.int64)
        )  # in the order of the alphabet: no row decides
        return cls(
            numbers, split.list.len().to_numpy().astype(np.int64), int(numbers.max(initial=0))
        )

    @cached_property
    def ends(self) -> Ints:
        """Where each text ends among the numbers."""
        return np.cumsum(self.lengths)

    def trigrams(self, texts: Ints) -> tuple[Ints, Ints]:
        """Return the trigrams of some texts, a row each, and the words each text has; two starts stand before it."""
        lengths = self.lengths[texts]
        within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        place = within + np.repeat(self.ends[texts] - lengths, lengths)
        columns = [
            np.where(within >= back, self.numbers[np.maximum(place - back, 0)], _START)
            for back in (2, 1, 0)
        ]
        return np.stack(columns, axis=1), lengths


@dataclass(frozen=True, eq=False)
class _Level:
    """Counts of a word after a context, as sorted keys of both, and what all words after a context add up to."""

    size: int
    keys: Ints
    counts: Ints
    totals: Ints
    types: Ints
    discount: float

    @classmethod
    def from_counts(
        cls, context: Ints, word: Ints, size: int, contexts: int, discount: float | None
    ) -> _Level:
        """Count pairs of a context, below `contexts`, and a word, below `size`."""
        keys, counts = np.unique(context * size + word, return_counts=True)
        of_key = keys // size
        totals = np.bincount(of_key, counts, minlength=contexts).astype(np.int64)
        types = np.bincount(of_key, minlength=contexts)
        return cls(
            size, keys, counts, totals, types, _discount(counts) if discount is None else discount
        )

    def probability(self, context: Ints, word: Ints, lower: Floats) -> Floats:
        """Return P(word | context), mixed with that of the shorter context; a context of −1 or without words has that.

        (max(c(context word) − D, 0) + D · N₁₊(context •) · P(word | shorter context)) / c(context
        •)
        """
        key = context * self.size + word
        place = np.minimum(np.searchsorted(self.keys, key), max(len(self.keys) - 1, 0))
        count = (
            np.where(self.keys[place] == key, self.counts[place], 0)
            if len(self.keys)
            else np.zeros(len(key))
        )
        total = np.where(context >= 0, self.totals[context], 0)
        mixed = np.maximum(count - self.discount, 0.0) + self.discount * self.types[context] * lower
        return np.divide(mixed, total, out=lower.copy(), where=total > 0)


@dataclass(frozen=True, eq=False)
class NgramModel:
    """Trigrams with interpolated Kneser-Ney smoothing (Kneser & Ney 1995; Chen & Goodman 1999, sec. 2.7 and 3).

    The trigrams are counted; below them counts how many different words come before. The single
    words are mixed with the uniform distribution over all words of the vocabulary and the unknown
    word, so that every word has a probability, and they add up to 1. One discount a level, n₁ / (n₁
    + 2 n₂) (Ney, Essen & Kneser 1994), from .1 to .95: what few texts give is not trusted further.
    """

    vocabulary: int
    contexts: Ints
    levels: tuple[_Level, _Level, _Level]
    """Of single words, of pairs and of trigrams."""

    @classmethod
    def fit(
        cls,
        trigrams: Ints,
        vocabulary: int,
        *,
        discounts: Sequence[float | None] = (None, None, None),
    ) -> NgramModel:
        """Count trigrams, a row each; `discounts` of single words, pairs and trigrams replace the estimated ones."""
        size = vocabulary + 2
        first, second, word = trigrams.T
        contexts, context = np.unique(first * size + second, return_inverse=True)
        third = _Level.from_counts(context, word, size, len(contexts), discounts[2])
        pairs = contexts[third.keys // size] % size
        two = _Level.from_counts(pairs, third.keys % size, size, size, discounts[1])
        one = _Level.from_counts(np.zeros_like(two.keys), two.keys % size, size, 1, discounts[0])
        return cls(vocabulary, contexts, (one, two, third))

    def probability(self, trigrams: Ints) -> Floats:
        """Return the probability of the last word of each trigram after the two before it."""
        size = self.vocabulary + 2
        first, second, word = trigrams.T
        key = first * size + second
        place = np.searchsorted(self.contexts, key)
        place = np.minimum(place, max(len(self.contexts) - 1, 0))
        known = (
            self.contexts[place] == key if len(self.contexts) else np.zeros(len(key), dtype=bool)
        )
        one, two, three = self.levels
        found = np.full(len(word), 1.0 / (self.vocabulary + 1))
        found = one.probability(np.zeros_like(word), word, found)
        found = two.probability(second, word, found)
        return (
            three.probability(np.where(known, place, -1), word, found)
            if len(self.contexts)
            else found
        )


def _discount(counts: Ints) -> float:
    once, twice = int(np.count_nonzero(counts == 1)), int(np.count_nonzero(counts == 2))
    found = once / (once + 2 * twice) if once else 0.0
    return min(max(found, _LEAST_DISCOUNT), _LARGEST_DISCOUNT)


def cross_fitted_perplexity(
    texts: pl.Series, origins: pl.Series, training: npt.NDArray[np.bool_]
) -> Floats:
    """Log perplexity of each text, nats per word, under trigrams of the training texts of other origins.

    Origins are put into five folds by a hash of their names; the texts of a fold are scored by a
    model of the training texts in the other four, so that no text is scored by a model that saw it,
    or a twin of it. Of more than `MOST_WORDS` training words, texts are drawn by the same hash.
    `UserError` if fewer than two folds hold a training text.
    """
    words = Words.from_texts(texts)
    hashes = np.array([_hash(name) for name in origins], dtype=np.uint64)
    fold = (hashes % np.uint64(FOLDS)).astype(np.int64)
    learned = _drawn(training, hashes // np.uint64(FOLDS), words.lengths, MOST_WORDS)
    if len(np.unique(fold[learned & (words.lengths > 0)])) < 2:
        raise UserError("an n-gram model needs texts of several origins to learn from")
    found = np.full(len(texts), np.nan)
    for number in range(FOLDS):
        trigrams, _ = words.trigrams(np.flatnonzero(learned & (fold != number)))
        model = NgramModel.fit(trigrams, words.vocabulary)
        for part in _parts(np.flatnonzero((fold == number) & (words.lengths > 0))):
            trigrams, lengths = words.trigrams(part)
            surprise = -np.log(model.probability(trigrams))
            found[part] = np.add.reduceat(surprise, np.cumsum(lengths) - lengths) / lengths
    return found


def _hash(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")


def _drawn(
    training: npt.NDArray[np.bool_], hashes: npt.NDArray[np.uint64], lengths: Ints, most: int
) -> npt.NDArray[np.bool_]:
    """Training texts, in the order of their hashes, as many as hold at most so many words."""
    order = np.flatnonzero(training)
    order = order[np.argsort(hashes[order], kind="stable")]
    learned = np.zeros(len(training), dtype=bool)
    learned[order[np.cumsum(lengths[order]) <= most]] = True
    return learned


def _parts(rows: Ints) -> Iterator[Ints]:
    for start in range(0, len(rows), _TEXTS_AT_ONCE):
        yield rows[start : start + _TEXTS_AT_ONCE]
