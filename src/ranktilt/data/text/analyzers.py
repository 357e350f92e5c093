"""Turn texts into terms: the analyzers, and the vocabulary that numbers the terms.

An *analyzer* splits a text into *tokens*, and maps each token to a *term*, or drops it: a stop
word is dropped, and other tokens may be reduced to their stem.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files as package_files

import numpy as np
import numpy.typing as npt
import polars as pl
import Stemmer

from ranktilt.data.text.nltk_tokens import nltk_tokens
from ranktilt.errors import unknown_name

# Word boundaries of Unicode (UAX 29) as Lucene's StandardTokenizer draws them. Letters may be
# joined by an apostrophe, full stop, colon or middle dot, and digits by the punctuation of numbers.
# Each ideograph is a token.
_LETTER = r"[[\p{L}\p{Nl}\p{M}]--[\p{Han}\p{Hiragana}]]"
"""A letter or mark, but no Chinese or Japanese character, which is a token of its own."""
_STANDARD_TOKEN = (
    r"[\p{Han}\p{Hiragana}]"
    rf"|(?:{_LETTER}(?:[.:'\u2019\u00b7\u2027]{_LETTER})*"
    r"|\p{Nd}(?:[.,;'\u2019]\p{Nd})*"
    r"|[\w--[\p{L}\p{M}\p{N}]])+"
)
"""Pattern of a token: Lucene's standard tokenizer, which follows Unicode's word boundaries."""
# Porter's program and his paper stem some words differently.
_DIFFERENT_WORD = re.compile("(?:log|bl)(?:[iy]s?|ies|ied)$")
"""Words that the program may stem differently from the paper."""
_DIFFERENT_STEM = re.compile(".*(?:[aeiou]|(?<=[^aeiou])y)[^aeiou].*(logi|bli)")
"""Stems by the paper to which only the program's step 2 applies.

They end in ``logi`` or ``bli``, and have a vowel and a consonant before it. A y is a vowel after a
consonant.
"""
Normalize = Callable[[list[str]], list[str | None]]
"""Function from tokens to terms; None for a token to drop."""


@dataclass(frozen=True, kw_only=True)
class Analyzer:
    """A way to turn texts into terms: split texts into tokens, and map each token to a term."""

    name: str
    """Name of the analyzer."""
    split: Callable[[pl.Series], pl.Series]
    """Function from texts to lists of tokens."""
    normalize: Normalize
    """Function from tokens to terms; None for a token to drop."""


@cache
def analyzer(name: str) -> Analyzer:
    """Return an analyzer by name, the same object at every call.

    - ``english``: Lucene's English analyzer (standard tokenizer, without possessive ``'s``, lower
      case, without Lucene's 33 stop words, stemmed by Porter's program)
    - ``paper``: what the papers did with NLTK (sentences by untrained Punkt, words by the Treebank
      tokenizer, without NLTK's 179 stop words; no lower-casing, no stemming)
    - ``whitespace``: split at white space and nothing else
    - the English name of a language of Snowball: standard tokenizer, lower case, stemmed by
      Snowball's stemmer of this language
    """
    if name == "english":
        return Analyzer(name=name, split=_split_standard, normalize=_english)
    if name == "paper":
        without_stop_words = _stop_word_filter(stop_words("nltk"))
        return Analyzer(name=name, split=nltk_tokens, normalize=without_stop_words)
    if name == "whitespace":
        return Analyzer(name=name, split=_split_at_blanks, normalize=list)
    if name not in analyzers():
        raise unknown_name("analyzer", name, analyzers())
    stem = Stemmer.Stemmer(name).stemWords
    return Analyzer(name=name, split=_split_standard, normalize=lambda tokens: list(stem(tokens)))


def analyzers() -> list[str]:
    """Return the names of all analyzers."""
    # Snowball's three stemmers of English are left out: ``english`` is Lucene's analyzer here.
    english_stemmers = ("english", "porter", "lovins")
    languages = [name for name in Stemmer.algorithms() if name not in english_stemmers]
    return ["english", "paper", "whitespace", *languages]


@cache
def stop_words(name: str) -> frozenset[str]:
    """Return English stop words: ``lucene``'s 33, or ``nltk``'s 179 of before 2024."""
    file = package_files("ranktilt.data.text").joinpath(f"stopwords-{name}-english.txt")
    return frozenset(file.read_text(encoding="utf-8").split())


def _split_standard(texts: pl.Series) -> pl.Series:
    """Split texts as Lucene's standard tokenizer does, in lower case."""
    return texts.str.to_lowercase().str.extract_all(_STANDARD_TOKEN)


def _split_at_blanks(texts: pl.Series) -> pl.Series:
    """Split texts at white space."""
    return texts.str.extract_all(r"\S+")


def _english(tokens: list[str]) -> list[str | None]:
    """Return the terms of Lucene's English analyzer; None for a token to drop."""
    words = [token[:-2] if token.endswith(("'s", "\u2019s")) else token for token in tokens]
    dropped_words = {*stop_words("lucene"), ""}
    return [
        None if word in dropped_words else stem
        for word, stem in zip(words, porter(words), strict=True)
    ]


def porter(words: list[str]) -> list[str]:
    """Stem lower-case words as Porter's own program and Lucene do.

    The program differs from the paper (Porter 1980), which Snowball follows: words of two letters
    stay as they are, and in step 2 ``logi`` becomes ``log`` and ``bli`` becomes ``ble``.
    """
    stemmer = Stemmer.Stemmer("porter")
    stems = []
    for word, stem in zip(words, stemmer.stemWords(words), strict=True):
        if len(word) < 3:
            stem = word
        elif _DIFFERENT_WORD.search(word) and (match := _DIFFERENT_STEM.fullmatch(stem)):
            ending = match[1]
            # A stem in ``ble`` goes through the steps after step 2.
            stem = stem[:-1] if ending == "logi" else stemmer.stemWord(stem[:-1] + "e")
        stems.append(stem)
    return stems


def _stop_word_filter(dropped_words: frozenset[str]) -> Normalize:
    """Return a function that drops stop words and keeps other tokens as they are."""
    return lambda tokens: [None if token in dropped_words else token for token in tokens]


@dataclass(frozen=True, kw_only=True)
class TokenCodes:
    """The tokens of some texts, one text after the other.

    Each token is stored as the number of its distinct token, so that an analyzer turns each
    distinct token into a term only once.
    """

    names: list[str]
    """Distinct tokens."""
    code: npt.NDArray[np.uint32]
    """Index in `names` of each token of the texts."""
    counts: npt.NDArray[np.uint32]
    """Number of tokens of each text."""

    @classmethod
    def from_texts(cls, analyzer: Analyzer, texts: pl.Series) -> TokenCodes:
        """Split texts as an analyzer does."""
        token_lists = analyzer.split(texts)
        tokens = token_lists.explode(empty_as_null=False)
        # Polars numbers the categories of all columns in the process together, so that the numbers
        # of these tokens have gaps. They are replaced by numbers without gaps.
        category = tokens.cast(pl.Categorical).to_physical().to_numpy()
        first_position = np.full(int(category.max(initial=0)) + 1, -1)
        # In reverse, so that the first position of a category is the one that stays.
        first_position[category[::-1]] = np.arange(len(category))[::-1]
        is_used = first_position >= 0
        code_of_category = np.cumsum(is_used, dtype=np.uint32) - np.uint32(1)
        return cls(
            names=tokens.gather(first_position[np.flatnonzero(is_used)]).to_list(),
            code=code_of_category[category],
            counts=token_lists.list.len().to_numpy(),
        )


class Vocabulary:
    """Distinct terms and their numbers.

    Documents add terms to it. Queries do not: a word that no document has matches nothing.

    Parameters
    ----------
    analyzer : Analyzer
        Turns tokens into terms.
    names : iterable of str, optional
        Terms to begin with, in the order of their numbers.
    """

    def __init__(self, analyzer: Analyzer, names: Iterable[str] = ()) -> None:
        self.analyzer = analyzer
        self.terms: dict[str, int] = {name: number for number, name in enumerate(names)}
        self._term_of_token: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self.terms)

    def encode(
        self, tokens: TokenCodes, *, grow: bool
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the number of the text, and of the term, of every token that is a term.

        With `grow`, unknown terms are added to the vocabulary; otherwise they are left out.
        """
        # Term numbers decide the order in which scores add up, and so their last digits. Sorting
        # makes them independent of polars, which decides the order of distinct tokens.
        new_tokens = sorted(name for name in tokens.names if name not in self._term_of_token)
        self._learn(new_tokens, grow)
        term_of_code = [self._term_of_token.get(name, -1) for name in tokens.names]
        term = np.array(term_of_code, dtype=np.int64)[tokens.code]
        text = np.repeat(np.arange(len(tokens.counts)), tokens.counts)
        is_term = term >= 0
        return text[is_term], term[is_term]

    def _learn(self, tokens: list[str], grow: bool) -> None:
        """Give each new token the number of its term; −1 if it is no term."""
        for token, term in zip(tokens, self.analyzer.normalize(tokens), strict=True):
            if term is None:
                number = -1
            elif grow:
                number = self.terms.setdefault(term, len(self.terms))
            else:
                number = self.terms.get(term, -1)
            self._term_of_token[token] = number
