"""Text to terms: the analyzers, and the vocabulary that numbers the terms."""

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
_STANDARD = (
    r"[\p{Han}\p{Hiragana}]"
    rf"|(?:{_LETTER}(?:[.:'\u2019\u00b7\u2027]{_LETTER})*|\p{{Nd}}(?:[.,;'\u2019]\p{{Nd}})*|[\w--[\p{{L}}\p{{M}}\p{{N}}]])+"
)
# Where Porter's program departs from his paper: see `porter`. A vowel and then a consonant stand
# before the ending.
_DEPARTURE = re.compile("(?:log|bl)(?:[iy]s?|ies|ied)$")
_STEP_2 = re.compile(".*(?:[aeiou]|(?<=[^aeiou])y)[^aeiou].*(logi|bli)")
Normalize = Callable[[list[str]], list[str | None]]


@dataclass(frozen=True)
class Analyzer:
    """How text becomes terms: a way to split it, then a map from distinct tokens to terms (None drops one)."""

    name: str
    split: Callable[[pl.Series], pl.Series]
    normalize: Normalize


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
        return Analyzer(name, _split_standard, _english)
    if name == "paper":
        return Analyzer(name, nltk_tokens, _drop(stop_words("nltk")))
    if name == "whitespace":
        return Analyzer(name, lambda texts: texts.str.extract_all(r"\S+"), list)
    if name not in analyzers():
        raise unknown("analyzer", name, analyzers())
    stem = Stemmer.Stemmer(name).stemWords
    return Analyzer(name, _split_standard, lambda tokens: list(stem(tokens)))


def analyzers() -> list[str]:
    """Return the names of all analyzers."""
    languages = [n for n in Stemmer.algorithms() if n not in ("english", "porter", "lovins")]
    return ["english", "paper", "whitespace", *languages]


@cache
def stop_words(name: str) -> frozenset[str]:
    """Return English stop words: Lucene's 33, or NLTK's 179 as they were before 2024, when the papers used them."""
    text = (
        package_files("ranktilt.data.text")
        .joinpath(f"stopwords-{name}-english.txt")
        .read_text(encoding="utf-8")
    )
    return frozenset(text.split())


def _split_standard(texts: pl.Series) -> pl.Series:
    return texts.str.to_lowercase().str.extract_all(_STANDARD)


def _english(tokens: list[str]) -> list[str | None]:
    bare = [t[:-2] if t.endswith(("'s", "\u2019s")) else t for t in tokens]
    stop = stop_words("lucene")
    return [None if t in stop or not t else s for t, s in zip(bare, porter(bare), strict=True)]


def porter(words: list[str]) -> list[str]:
    """Stem lower-case words as Porter's own program and Lucene do.

    The program departs from the paper (Porter 1980), which Snowball follows: words of two letters
    stay as they are, and in step 2 ``logi`` becomes ``log`` and ``bli`` becomes ``ble``.
    """
    stem = Stemmer.Stemmer("porter")
    stems = []
    for word, found in zip(words, stem.stemWords(words), strict=True):
        if len(word) < 3:
            found = word
        elif _DEPARTURE.search(word) and (step2 := _STEP_2.fullmatch(found)):
            found = found[:-1] if step2[1] == "logi" else stem.stemWord(found[:-1] + "e")
        stems.append(found)
    return stems


def _drop(stop: frozenset[str]) -> Normalize:
    return lambda tokens: [None if t in stop else t for t in tokens]


@dataclass(frozen=True)
class TokenCodes:
    """The tokens of some texts, one after the other, by their places among the distinct ones."""

    names: list[str]
    code: npt.NDArray[np.uint32]
    counts: npt.NDArray[np.uint32]
    """Tokens of each text."""

    @classmethod
    def from_texts(cls, how: Analyzer, texts: pl.Series) -> TokenCodes:
        """Split texts as an analyzer does."""
        tokens = how.split(texts)
        flat = tokens.explode(empty_as_null=False)
        code = flat.cast(pl.Categorical).to_physical().to_numpy()
        first = np.full(int(code.max(initial=0)) + 1, -1)
        first[code[::-1]] = np.arange(len(code))[::-1]
        held = np.flatnonzero(first >= 0)
        place = np.cumsum(first >= 0, dtype=np.uint32) - np.uint32(1)
        return cls(flat.gather(first[held]).to_list(), place[code], tokens.list.len().to_numpy())


class Vocabulary:
    """Distinct tokens to term numbers, growing with the documents and fixed for the queries."""

    def __init__(self, how: Analyzer, names: Iterable[str] = ()) -> None:
        self.how = how
        self.terms: dict[str, int] = {name: number for number, name in enumerate(names)}
        self._of_token: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self.terms)

    def encode(
        self, tokens: TokenCodes, *, grow: bool
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return text number and term number of every token that is a term."""
        # Sorted, because the codes' order is not ours and term numbers decide the order in which
        # scores add up.
        self._learn(sorted(name for name in tokens.names if name not in self._of_token), grow)
        term = np.array([self._of_token.get(name, -1) for name in tokens.names], dtype=np.int64)[
            tokens.code
        ]
        owner = np.repeat(np.arange(len(tokens.counts)), tokens.counts)
        keep = term >= 0
        return owner[keep], term[keep]

    def _learn(self, tokens: list[str], grow: bool) -> None:
        for token, term in zip(tokens, self.how.normalize(tokens), strict=True):
            if term is None:
                number = -1
            elif grow:
                number = self.terms.setdefault(term, len(self.terms))
            else:
                number = self.terms.get(term, -1)
            self._of_token[token] = number
