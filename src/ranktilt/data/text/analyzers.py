"""Turn texts into terms: the analyzers, and the vocabulary that numbers the terms."""

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
from ranktilt.errors import unknown

# Word boundaries of Unicode (UAX 29) as Lucene's StandardTokenizer draws them: letters may be
# joined by an apostrophe, full stop, colon or middle dot, digits by what stands in numbers;
# ideographs stand alone.
_LETTER = r"[[\p{L}\p{Nl}\p{M}]--[\p{Han}\p{Hiragana}]]"
"""A letter or mark, but no Chinese or Japanese sign, which is a token of its own."""
_STANDARD = (
    r"[\p{Han}\p{Hiragana}]"
    rf"|(?:{_LETTER}(?:[.:'\u2019\u00b7\u2027]{_LETTER})*"
    r"|\p{Nd}(?:[.,;'\u2019]\p{Nd})*"
    r"|[\w--[\p{L}\p{M}\p{N}]])+"
)
"""Pattern of a token: Lucene's standard tokenizer, which follows Unicode's word boundaries."""
# Where Porter's program departs from his paper: see `porter`.
_DEPARTURE = re.compile("(?:log|bl)(?:[iy]s?|ies|ied)$")
"""Words in which Porter's program departs from his paper before step 2."""
_STEP_2 = re.compile(".*(?:[aeiou]|(?<=[^aeiou])y)[^aeiou].*(logi|bli)")
"""Words to which step 2 of the stemmer applies: a vowel and a consonant stand before the ending.

A y is a vowel after a consonant.
"""
Normalize = Callable[[list[str]], list[str | None]]
"""Function from tokens to terms; None for a token to drop."""


@dataclass(frozen=True, kw_only=True)
class Analyzer:
    """A way to turn texts into terms: split them, then map each distinct token to a term."""

    name: str
    """Name of the analyzer."""
    split: Callable[[pl.Series], pl.Series]
    """Function from texts to lists of tokens."""
    normalize: Normalize
    """Function from tokens to terms; None for a token to drop."""


@cache
def analyzer(name: str) -> Analyzer:
    """Return an analyzer by name, the same object at every call.

    ``english``: Lucene's English chain (standard tokenizer, possessive ``'s`` off, lower case,
    Lucene's 33 stop words, Porter). ``paper``: the papers' NLTK chain (untrained Punkt sentences,
    Treebank words, NLTK's 179 stop words; no lower-casing, no stemming). ``whitespace``: split on
    white space and nothing else. Or a Snowball language by its English name: standard tokenizer,
    lower case, that stemmer.
    """
    if name == "english":
        return Analyzer(name=name, split=_split_standard, normalize=_english)
    if name == "paper":
        return Analyzer(name=name, split=nltk_tokens, normalize=_drop(stop_words("nltk")))
    if name == "whitespace":
        return Analyzer(name=name, split=_split_at_blanks, normalize=list)
    if name not in analyzers():
        raise unknown("analyzer", name, analyzers())
    stem = Stemmer.Stemmer(name).stemWords
    return Analyzer(name=name, split=_split_standard, normalize=lambda tokens: list(stem(tokens)))


def analyzers() -> list[str]:
    """Return the names of all analyzers."""
    replaced = ("english", "porter", "lovins")
    languages = [name for name in Stemmer.algorithms() if name not in replaced]
    return ["english", "paper", "whitespace", *languages]


@cache
def stop_words(name: str) -> frozenset[str]:
    """Return English stop words: Lucene's 33, or NLTK's 179 of before 2024, as the papers used."""
    file = package_files("ranktilt.data.text").joinpath(f"stopwords-{name}-english.txt")
    return frozenset(file.read_text(encoding="utf-8").split())


def _split_standard(texts: pl.Series) -> pl.Series:
    """Split texts as Lucene's standard tokenizer does, in lower case."""
    return texts.str.to_lowercase().str.extract_all(_STANDARD)


def _split_at_blanks(texts: pl.Series) -> pl.Series:
    """Split texts at white space."""
    return texts.str.extract_all(r"\S+")


def _english(tokens: list[str]) -> list[str | None]:
    """Return the terms of Lucene's English chain."""
    words = [token[:-2] if token.endswith(("'s", "\u2019s")) else token for token in tokens]
    stop = stop_words("lucene")
    return [
        None if word in stop or not word else stem
        for word, stem in zip(words, porter(words), strict=True)
    ]


def porter(words: list[str]) -> list[str]:
    """Stem lower-case words as Porter's own program and Lucene do.

    The program departs from the paper (Porter 1980), which Snowball follows: words of two letters
    stay as they are, and in step 2 ``logi`` becomes ``log`` and ``bli`` becomes ``ble``.
    """
    stemmer = Stemmer.Stemmer("porter")
    stems = []
    for word, stem in zip(words, stemmer.stemWords(words), strict=True):
        if len(word) < 3:
            stem = word
        elif _DEPARTURE.search(word) and (ending := _STEP_2.fullmatch(stem)):
            stem = stem[:-1] if ending[1] == "logi" else stemmer.stemWord(stem[:-1] + "e")
        stems.append(stem)
    return stems


def _drop(stop: frozenset[str]) -> Normalize:
    """Return a function that drops stop words and keeps other tokens."""
    return lambda tokens: [None if token in stop else token for token in tokens]


@dataclass(frozen=True, kw_only=True)
class TokenCodes:
    """The tokens of some texts, one text after the other.

    Each token is stored as the number of its distinct token, so that an analyzer turns each
    distinct token into a term only once.
    """

    names: list[str]
    """Distinct tokens."""
    code: npt.NDArray[np.uint32]
    """Row of each token in `names`."""
    counts: npt.NDArray[np.uint32]
    """Number of tokens of each text."""

    @classmethod
    def from_texts(cls, analyzer: Analyzer, texts: pl.Series) -> TokenCodes:
        """Split texts as an analyzer does."""
        tokens = analyzer.split(texts)
        flat = tokens.explode(empty_as_null=False)
        # Polars numbers categories across all columns of the process, so that codes have gaps.
        code = flat.cast(pl.Categorical).to_physical().to_numpy()
        first = np.full(int(code.max(initial=0)) + 1, -1)
        first[code[::-1]] = np.arange(len(code))[::-1]
        is_used = first >= 0
        row = np.cumsum(is_used, dtype=np.uint32) - np.uint32(1)
        return cls(
            names=flat.gather(first[np.flatnonzero(is_used)]).to_list(),
            code=row[code],
            counts=tokens.list.len().to_numpy(),
        )


class Vocabulary:
    """Distinct terms and their numbers.

    Documents add terms to it. Queries do not: a word that no document has is no term of theirs.
    """

    def __init__(self, analyzer: Analyzer, names: Iterable[str] = ()) -> None:
        self.analyzer = analyzer
        self.terms: dict[str, int] = {name: number for number, name in enumerate(names)}
        self._of_token: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self.terms)

    def encode(
        self, tokens: TokenCodes, *, grow: bool
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return two arrays with an entry for every token that is a term.

        They are the number of its text and the number of its term. With `grow`, unknown terms are
        added to the vocabulary; otherwise they are left out.
        """
        # Sorted, because polars decides the order of the codes, while term numbers decide the
        # order in which scores add up.
        unknown_tokens = sorted(name for name in tokens.names if name not in self._of_token)
        self._learn(unknown_tokens, grow)
        terms = [self._of_token.get(name, -1) for name in tokens.names]
        term = np.array(terms, dtype=np.int64)[tokens.code]
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
            self._of_token[token] = number
