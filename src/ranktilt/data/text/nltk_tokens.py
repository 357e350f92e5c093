"""NLTK's tokens of many texts: those of its two tokenizers, each distinct word read once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

import polars as pl

from ranktilt.optional import need

_MARK = "\ue000"
"""Stands for a neighbour: of no script, so that no rule of the tokenizer looks at it."""
_SPACE = "".join(filter(str.isspace, map(chr, range(0x3001))))
_CLOSING = "])}>\"'»”\u2019" + _SPACE
"""What may follow the full stop that ends a sentence."""
_WORDS_A_CALL = 2_000
Words = Callable[[str], list[str]]
_Parts = tuple[str, list[str], str]


def require_nltk() -> None:
    """Refuse to begin where NLTK is not installed."""
    need("nltk.tokenize.punkt", extra="paper", for_="analyzer 'paper'")


def nltk_tokens(texts: Iterable[str]) -> pl.Series:
    """Split texts into sentences (untrained Punkt) and these into words (``NLTKWordTokenizer``).

    The tokenizer's rules look no further than the blank beside a word, but for a sentence's first
    word and its end. Words between these are therefore read once each, many at a time: the same
    tokens, twice as fast.
    """
    punkt = need(
        "nltk.tokenize.punkt", extra="paper", for_="analyzer 'paper'"
    ).PunktSentenceTokenizer()
    words: Words = (
        need("nltk.tokenize.destructive", extra="paper", for_="analyzer 'paper'")
        .NLTKWordTokenizer()
        .tokenize
    )
    sentences = [[_parts(sentence) for sentence in punkt.tokenize(text)] for text in texts]
    every = list(chain.from_iterable(sentences))
    first = {word: words(f"{word} {_MARK}")[:-1] for word in {word for word, _, _ in every if word}}
    inner = dict(
        _inner(list(dict.fromkeys(word for _, middle, _ in every for word in middle)), words)
    )
    last = {end: words(f"{_MARK} {end}")[1:] for end in {end for word, _, end in every if word}}

    def tokens(sentence: _Parts) -> Iterator[str]:
        word, middle, end = sentence
        if not word:
            return iter(words(end))
        return chain(first[word], chain.from_iterable(inner[one] for one in middle), last[end])

    found = [[token for sentence in text for token in tokens(sentence)] for text in sentences]
    return pl.Series(found, dtype=pl.List(pl.String))


def _parts(sentence: str) -> _Parts:
    """First word, the words between, and the end; all is end where there are not two words."""
    cut = sentence.rfind(" ", 0, len(sentence.rstrip(_CLOSING)))
    first, *middle = sentence[: max(cut, 0)].split(" ")
    if not first or _MARK in sentence:
        return "", [], sentence
    return first, [word for word in middle if word], sentence[cut + 1 :]


def _inner(distinct: Sequence[str], words: Words) -> Iterator[tuple[str, list[str]]]:
    """Tokens of each word as between two others."""
    for start in range(0, len(distinct), _WORDS_A_CALL):
        some = distinct[start : start + _WORDS_A_CALL]
        found: list[list[str]] = []
        for token in words(f" {_MARK} ".join(["", *some, ""])):
            if token == _MARK:
                found.append([])
            else:
                found[-1].append(token)
        yield from zip(some, found, strict=False)  # behind the last word stands a mark, too
