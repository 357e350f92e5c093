"""Train an n-gram language model, interpolated Kneser-Ney trigrams, on a collection's own texts.

The model predicts a word from the two before it, its context. It mixes what it counted after these
two words, after the last of them, and without a context, because most contexts are rare.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.errors import UserError

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

FOLDS = 5
"""Parts of the texts; each part is scored by a model of the others."""
MOST_WORDS = 20_000_000
"""Most words to train a model on; of more, texts are drawn."""
_START = 0
"""Number that stands for the two words before a text's first; it is never predicted."""
_TEXTS_AT_ONCE = 20_000
"""Texts to score at a time."""
_LEAST_DISCOUNT = 0.1
"""Least discount, whatever is estimated: few texts estimate it badly."""
_LARGEST_DISCOUNT = 0.95
"""Largest discount, for the same reason."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Words:
    """Texts as word numbers, one text after the other."""

    numbers: Ints
    """Number of each word; texts follow each other."""
    lengths: Ints
    """Number of words of each text."""
    vocabulary: int
    """Number of distinct words, numbered from 1; the unknown word comes after the last."""

    @classmethod
    def from_texts(cls, texts: pl.Series) -> Words:
        r"""Split texts into words, lower-cased runs of ``\w``, and number these."""
        split = texts.str.to_lowercase().str.extract_all(r"\w+")
        flat = split.explode(empty_as_null=False)
        # In alphabetical order, so that the order of the texts changes nothing.
        numbers = flat.rank("dense").to_numpy().astype(np.int64)
        return cls(
            numbers=numbers,
            lengths=split.list.len().to_numpy().astype(np.int64),
            vocabulary=int(numbers.max(initial=0)),
        )

    @cached_property
    def ends(self) -> Ints:
        """Position after the last word of each text."""
        return np.cumsum(self.lengths)

    def trigrams(self, texts: Ints) -> tuple[Ints, Ints]:
        """Return the trigrams of some texts, and the number of words of each text.

        A trigram is a row of three words, of which the last is predicted. Every word of a text is
        the last of one trigram. Those of the first two words begin with `_START`.
        """
        lengths = self.lengths[texts]
        within_text = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        position = within_text + np.repeat(self.ends[texts] - lengths, lengths)
        columns = [
            np.where(within_text >= back, self.numbers[np.maximum(position - back, 0)], _START)
            for back in (2, 1, 0)
        ]
        return np.stack(columns, axis=1), lengths


@dataclass(frozen=True, eq=False, kw_only=True)
class _Level:
    """Counts of words after contexts of one length: none, one word or two words.

    Context and word are numbers, and a pair of them is stored as one number, its key.
    """

    size: int
    """Number that is larger than every word's; see `keys`."""
    keys: Ints
    """Pairs of context and word that occur, sorted: context · size + word."""
    counts: Ints
    """Count of each pair, c(context word)."""
    totals: Ints
    """Count of each context with any word after it, c(context •)."""
    types: Ints
    """Number of distinct words after each context, N₁₊(context •)."""
    discount: float
    """Amount that is taken off each count, for words that did not occur after the context."""

    @classmethod
    def from_pairs(
        cls, context: Ints, word: Ints, *, size: int, contexts: int, discount: float | None
    ) -> _Level:
        """Count pairs of a context, below `contexts`, and a word, below `size`."""
        keys, counts = np.unique(context * size + word, return_counts=True)
        context_of_key = keys // size
        return cls(
            size=size,
            keys=keys,
            counts=counts,
            totals=np.bincount(context_of_key, counts, minlength=contexts).astype(np.int64),
            types=np.bincount(context_of_key, minlength=contexts),
            discount=_discount(counts) if discount is None else discount,
        )

    def probability(self, context: Ints, word: Ints, lower: Floats) -> Floats:
        """Return P(word | context), mixed with the probability `lower` after a shorter context.

        It is (max(c(context word) − D, 0) + D · N₁₊(context •) · lower) / c(context •) with the
        discount D. After a context that is unknown (−1) or was never followed by a word, it is
        `lower`.
        """
        if not len(self.keys):
            return lower.copy()
        key = context * self.size + word
        position = np.minimum(np.searchsorted(self.keys, key), len(self.keys) - 1)
        count = np.where(self.keys[position] == key, self.counts[position], 0)
        total = np.where(context >= 0, self.totals[context], 0)
        mixed = np.maximum(count - self.discount, 0.0) + self.discount * self.types[context] * lower
        return np.divide(mixed, total, out=lower.copy(), where=total > 0)


@dataclass(frozen=True, kw_only=True)
class Discounts:
    """Discounts of the three levels of a model; None to estimate one."""

    words: float | None = None
    """Discount of single words."""
    pairs: float | None = None
    """Discount of pairs."""
    trigrams: float | None = None
    """Discount of trigrams."""


@dataclass(frozen=True, eq=False, kw_only=True)
class NgramModel:
    """Trigrams with interpolated Kneser-Ney smoothing.

    Kneser & Ney 1995; Chen & Goodman 1999, sec. 2.7 and 3. For trigrams the model counts how often
    each occurs; for pairs and single words, how many different words come before. Single words are
    mixed with the uniform distribution over the vocabulary and the unknown word, so that every word
    has a probability, and these add up to 1. Each level has one discount, n₁ / (n₁ + 2 n₂) (Ney,
    Essen & Kneser 1994), but at least .1 and at most .95, because few texts estimate it badly.
    """

    vocabulary: int
    """Number of distinct words."""
    contexts: Ints
    """Pairs of words that occur before a word, sorted.

    Each is one number, first · (vocabulary + 2) + second: there are so many word numbers, with
    `_START` and the unknown word. The position of a pair is its context in `trigrams`.
    """
    words: _Level
    """Counts of single words."""
    pairs: _Level
    """Counts of pairs."""
    trigrams: _Level
    """Counts of trigrams."""

    @classmethod
    def fit(
        cls, trigrams: Ints, vocabulary: int, *, discounts: Discounts = Discounts()
    ) -> NgramModel:
        """Count trigrams, a row each."""
        size = vocabulary + 2
        first, second, word = trigrams.T
        contexts, context = np.unique(first * size + second, return_inverse=True)
        trigram_level = _Level.from_pairs(
            context, word, size=size, contexts=len(contexts), discount=discounts.trigrams
        )
        # Kneser and Ney count a pair by the different words that come before it. Every distinct
        # trigram is one such word and pair; and every distinct pair is one word before another.
        pair_context = contexts[trigram_level.keys // size] % size
        pair_level = _Level.from_pairs(
            pair_context,
            trigram_level.keys % size,
            size=size,
            contexts=size,
            discount=discounts.pairs,
        )
        no_context = np.zeros_like(pair_level.keys)
        word_level = _Level.from_pairs(
            no_context, pair_level.keys % size, size=size, contexts=1, discount=discounts.words
        )
        return cls(
            vocabulary=vocabulary,
            contexts=contexts,
            words=word_level,
            pairs=pair_level,
            trigrams=trigram_level,
        )

    def probability(self, trigrams: Ints) -> Floats:
        """Return the probability of the last word of each trigram after the two before it."""
        size = self.vocabulary + 2
        first, second, word = trigrams.T
        probability = np.full(len(word), 1.0 / (self.vocabulary + 1))
        probability = self.words.probability(np.zeros_like(word), word, probability)
        probability = self.pairs.probability(second, word, probability)
        if not len(self.contexts):
            return probability
        key = first * size + second
        position = np.minimum(np.searchsorted(self.contexts, key), len(self.contexts) - 1)
        context = np.where(self.contexts[position] == key, position, -1)
        return self.trigrams.probability(context, word, probability)


def _discount(counts: Ints) -> float:
    """Estimate a discount from how many counts are 1 and 2; see `NgramModel`."""
    once, twice = int(np.count_nonzero(counts == 1)), int(np.count_nonzero(counts == 2))
    discount = once / (once + 2 * twice) if once else 0.0
    return min(max(discount, _LEAST_DISCOUNT), _LARGEST_DISCOUNT)


def cross_fitted_perplexity(
    texts: pl.Series, origins: pl.Series, training: npt.NDArray[np.bool_]
) -> Floats:
    """Compute the log perplexity of each text under a model of texts of other origins.

    In nats per word; NaN for a text without words. Origins are put into five folds by a hash of
    their names. A model of the training texts in four folds scores the texts of the fifth, so that
    no model has seen a text that it scores, or a twin of it. If there are more than `MOST_WORDS`
    training words, texts are drawn by the same hash. `UserError` if fewer than two folds hold a
    training text.
    """
    words = Words.from_texts(texts)
    hashes = np.array([_hash(name) for name in origins], dtype=np.uint64)
    fold = (hashes % np.uint64(FOLDS)).astype(np.int64)
    is_learned = _drawn(training, hashes // np.uint64(FOLDS), words.lengths, MOST_WORDS)
    if len(np.unique(fold[is_learned & (words.lengths > 0)])) < 2:
        raise UserError("an n-gram model needs texts of several origins to learn from")
    perplexity = np.full(len(texts), np.nan)
    for number in range(FOLDS):
        trigrams, _ = words.trigrams(np.flatnonzero(is_learned & (fold != number)))
        model = NgramModel.fit(trigrams, words.vocabulary)
        for rows in _parts(np.flatnonzero((fold == number) & (words.lengths > 0))):
            trigrams, lengths = words.trigrams(rows)
            surprise = -np.log(model.probability(trigrams))
            perplexity[rows] = np.add.reduceat(surprise, np.cumsum(lengths) - lengths) / lengths
    return perplexity


def _hash(name: str) -> int:
    """Return a hash of a name, the same on every machine."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")


def _drawn(
    training: npt.NDArray[np.bool_], hashes: npt.NDArray[np.uint64], lengths: Ints, most: int
) -> npt.NDArray[np.bool_]:
    """Return which training texts to learn from: by their hashes, up to `most` words."""
    order = np.flatnonzero(training)
    order = order[np.argsort(hashes[order], kind="stable")]
    is_drawn = np.zeros(len(training), dtype=bool)
    is_drawn[order[np.cumsum(lengths[order]) <= most]] = True
    return is_drawn


def _parts(rows: Ints) -> Iterator[Ints]:
    """Yield the rows of texts in parts."""
    for start in range(0, len(rows), _TEXTS_AT_ONCE):
        yield rows[start : start + _TEXTS_AT_ONCE]
