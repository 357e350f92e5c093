"""Train an n-gram language model, interpolated Kneser-Ney trigrams, on a collection's own texts.

The model predicts a word from the two words before it, its *context*. Most contexts are rare, so
the model mixes three predictions: by both words of the context, by the last of them, and without a
context.
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
"""Number of folds of the texts; each fold is scored by a model of the other folds."""
MOST_WORDS = 20_000_000
"""Most words to train models on; if there are more, a random part of the texts is used."""
_START = 0
"""Word number that stands for the two words before the first of a text; never predicted."""
_TEXTS_AT_ONCE = 20_000
"""Number of texts to score at a time."""
_SMALLEST_DISCOUNT = 0.1
"""Smallest discount, whatever the estimate: from few texts, the estimate is bad."""
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
    """Number of distinct words, which are numbered from 1.

    The next number stands for any unknown word.
    """

    @classmethod
    def from_texts(cls, texts: pl.Series) -> Words:
        r"""Split texts into words, lower-cased runs of ``\w``, and number these."""
        word_lists = texts.str.to_lowercase().str.extract_all(r"\w+")
        words = word_lists.explode(empty_as_null=False)
        # Numbers follow the alphabet, so that the order of the texts changes nothing.
        numbers = words.rank("dense").to_numpy().astype(np.int64)
        return cls(
            numbers=numbers,
            lengths=word_lists.list.len().to_numpy().astype(np.int64),
            vocabulary=int(numbers.max(initial=0)),
        )

    @cached_property
    def ends(self) -> Ints:
        """Position after the last word of each text."""
        return np.cumsum(self.lengths)

    def trigrams(self, texts: Ints) -> tuple[Ints, Ints]:
        """Return the trigrams of some texts, and the number of words of each text.

        A trigram is a row of three word numbers, of which the last is predicted. Every word of a
        text is the last of one trigram; before the first word of the text, the words are `_START`.

        Parameters
        ----------
        texts : array of int
            Indexes of the texts.
        """
        lengths = self.lengths[texts]
        # Position of each word within its text, and within all words.
        within_text = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        position = within_text + np.repeat(self.ends[texts] - lengths, lengths)
        columns = []
        for words_back in (2, 1, 0):
            number = self.numbers[np.maximum(position - words_back, 0)]
            columns.append(np.where(within_text >= words_back, number, _START))
        return np.stack(columns, axis=1), lengths


@dataclass(frozen=True, eq=False, kw_only=True)
class _Level:
    """Counts of words after contexts of one length: no word, one word or two words.

    In formulas, c(context word) is how often a word follows a context, and • stands for any word.
    Contexts and words are numbers. A pair of context and word is stored as one number, its *key*:
    context · size + word.
    """

    size: int
    """Number that is larger than every word number."""
    keys: Ints
    """Keys of the pairs that occur, sorted."""
    counts: Ints
    """Count of each pair, c(context word)."""
    totals: Ints
    """Count of each context with any word after it, c(context •)."""
    types: Ints
    """Number of distinct words after each context, N₁₊(context •)."""
    discount: float
    """Amount that is taken off each count, and given to words that did not follow the context."""

    @classmethod
    def from_pairs(
        cls, context: Ints, word: Ints, *, size: int, contexts: int, discount: float | None
    ) -> _Level:
        """Count pairs of a context and a word.

        Parameters
        ----------
        context, word : array of int
            Numbers of the context and the word of each pair.
        size : int
            Number that is larger than every word number.
        contexts : int
            Number of contexts.
        discount : float or None
            Discount of the level; None to estimate it.
        """
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
        """Return P(word | context) for pairs of context and word.

        It is (max(c(context word) − D, 0) + D · N₁₊(context •) · lower) / c(context •), where D is
        the discount and `lower` the probability of the word after a shorter context. After a
        context that is unknown (−1) or was never followed by a word, it is `lower`.
        """
        if not len(self.keys):
            return lower.copy()
        key = context * self.size + word
        position = np.minimum(np.searchsorted(self.keys, key), len(self.keys) - 1)
        count = np.where(self.keys[position] == key, self.counts[position], 0)
        total = np.where(context >= 0, self.totals[context], 0)
        discounted_count = np.maximum(count - self.discount, 0.0)
        share_of_lower = self.discount * self.types[context] * lower
        return np.divide(
            discounted_count + share_of_lower, total, out=lower.copy(), where=total > 0
        )


@dataclass(frozen=True, kw_only=True)
class Discounts:
    """Discounts of the three levels of a model; None for a discount to estimate."""

    words: float | None = None
    """Discount of single words."""
    pairs: float | None = None
    """Discount of pairs."""
    trigrams: float | None = None
    """Discount of trigrams."""


@dataclass(frozen=True, eq=False, kw_only=True)
class NgramModel:
    """Trigrams with interpolated Kneser-Ney smoothing.

    The model is that of Kneser & Ney 1995; Chen & Goodman 1999, sec. 2.7 and 3. It has three
    levels, for trigrams, pairs and single words. A trigram counts as often as it occurs; a pair or
    a single word counts as often as different words come before it. The probability of a single
    word is mixed with a uniform distribution over the vocabulary and the unknown word, so that
    every word has a probability, and these add up to 1. The discount of a level is n₁ / (n₁ + 2 n₂)
    (Ney, Essen & Kneser 1994), where n₁ and n₂ are the numbers of counts that are 1 and 2, but at
    least .1 and at most .95.
    """

    vocabulary: int
    """Number of distinct words."""
    contexts: Ints
    """Pairs of words that occur before a word, sorted.

    Each pair is one number, first · (vocabulary + 2) + second, because there are vocabulary + 2
    word numbers, with `_START` and the unknown word. The index of a pair is the number of its
    context in `trigrams`.
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
        """Train a model.

        Parameters
        ----------
        trigrams : array of int, shape (n, 3)
            Trigrams of the training texts.
        vocabulary : int
            Number of distinct words.
        discounts : Discounts, optional
            Discounts of the levels; by default they are estimated.
        """
        size = vocabulary + 2
        first, second, word = trigrams.T
        contexts, context = np.unique(first * size + second, return_inverse=True)
        trigram_level = _Level.from_pairs(
            context, word, size=size, contexts=len(contexts), discount=discounts.trigrams
        )
        # A pair counts as often as different words come before it, that is, once for each distinct
        # trigram that ends with it. In the same way a word counts once for each distinct pair.
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
    """Estimate the discount of a level: n₁ / (n₁ + 2 n₂), from how many counts are 1 and 2."""
    ones, twos = int(np.count_nonzero(counts == 1)), int(np.count_nonzero(counts == 2))
    discount = ones / (ones + 2 * twos) if ones else 0.0
    return min(max(discount, _SMALLEST_DISCOUNT), _LARGEST_DISCOUNT)


def cross_fitted_perplexity(
    texts: pl.Series, origins: pl.Series, training: npt.NDArray[np.bool_]
) -> Floats:
    """Compute the log perplexity of each text under a model of texts of other origins.

    Origins are put into five folds by a hash of their names. A model of the training texts in four
    folds scores the texts of the fifth, so that no model has seen a text that it scores, or a twin
    of it.

    Parameters
    ----------
    texts, origins : polars.Series, shape (n_texts,)
        The texts, and the ids of their origins. Twins have the same origin.
    training : array of bool, shape (n_texts,)
        Which texts to train on. If they have more than `MOST_WORDS` words, some are chosen by the
        same hash.

    Returns
    -------
    array of float, shape (n_texts,)
        Log perplexity in nats per word; NaN for a text without words.

    Raises
    ------
    UserError
        If fewer than two folds have a training text.
    """
    words = Words.from_texts(texts)
    hashes = np.array([_hash(origin) for origin in origins], dtype=np.uint64)
    fold_of_text = (hashes % np.uint64(FOLDS)).astype(np.int64)
    # The quotient is a random order that does not depend on the fold, which is the remainder.
    random_order = hashes // np.uint64(FOLDS)
    is_learned = _limited_training(training, random_order, words.lengths, MOST_WORDS)
    if len(np.unique(fold_of_text[is_learned & (words.lengths > 0)])) < 2:
        raise UserError("an n-gram model needs texts of several origins to learn from")
    perplexity = np.full(len(texts), np.nan)
    for fold in range(FOLDS):
        trigrams, _lengths = words.trigrams(np.flatnonzero(is_learned & (fold_of_text != fold)))
        model = NgramModel.fit(trigrams, words.vocabulary)
        for rows in _row_blocks(np.flatnonzero((fold_of_text == fold) & (words.lengths > 0))):
            trigrams, lengths = words.trigrams(rows)
            surprise = -np.log(model.probability(trigrams))
            starts = np.cumsum(lengths) - lengths
            perplexity[rows] = np.add.reduceat(surprise, starts) / lengths
    return perplexity


def _hash(name: str) -> int:
    """Return a hash of a name, the same on every machine."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")


def _limited_training(
    training: npt.NDArray[np.bool_],
    random_order: npt.NDArray[np.uint64],
    lengths: Ints,
    most_words: int,
) -> npt.NDArray[np.bool_]:
    """Return which training texts to learn from: the first in a random order, up to `most_words`.

    `lengths` has the number of words of each text.
    """
    rows = np.flatnonzero(training)
    rows = rows[np.argsort(random_order[rows], kind="stable")]
    is_kept = np.zeros(len(training), dtype=bool)
    is_kept[rows[np.cumsum(lengths[rows]) <= most_words]] = True
    return is_kept


def _row_blocks(rows: Ints) -> Iterator[Ints]:
    """Yield the rows of texts, `_TEXTS_AT_ONCE` at a time."""
    for start in range(0, len(rows), _TEXTS_AT_ONCE):
        yield rows[start : start + _TEXTS_AT_ONCE]
