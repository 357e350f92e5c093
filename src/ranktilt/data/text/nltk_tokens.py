"""Split many texts as NLTK's two tokenizers do, reading each distinct word once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from ranktilt.optional import need

_MARK = "\ue000"
"""Placeholder for a neighbouring word: of no script, so that no rule of the tokenizer applies."""
_SPACE = "".join(filter(str.isspace, map(chr, range(0x3001))))
"""White space that Python's ``split`` knows."""
_CLOSING = "])}>\"'»”\u2019" + _SPACE
"""Signs that may follow the full stop at the end of a sentence."""
_WORDS_A_CALL = 2_000
"""Words that the tokenizer reads at a time."""
Tokenize = Callable[[str], list[str]]


@dataclass(frozen=True, kw_only=True)
class _Sentence:
    """The parts of a sentence to which different rules of the tokenizer apply.

    A sentence without two words is not divided; its tokens are read from `end`.
    """

    first: str
    """First word; empty if the sentence is not divided."""
    middle: list[str]
    """Words between the first and the end."""
    end: str
    """Last word, and the signs after it; the full text if the sentence is not divided."""


@dataclass(frozen=True, kw_only=True)
class _TokenTables:
    """The tokens of each distinct word in each position of a sentence."""

    first: Mapping[str, list[str]]
    """Tokens of each first word."""
    middle: Mapping[str, list[str]]
    """Tokens of each word in the middle."""
    end: Mapping[str, list[str]]
    """Tokens of each end."""


def require_nltk() -> None:
    """Refuse to begin where NLTK is not installed."""
    need("nltk.tokenize.punkt", extra="paper", for_="analyzer 'paper'")


def nltk_tokens(texts: Iterable[str]) -> pl.Series:
    """Split texts into sentences (untrained Punkt) and these into words (``NLTKWordTokenizer``).

    The tokenizer's rules look no further than the blank next to a word, except for the first word
    of a sentence and its end. All other words are therefore read once each, many at a time: the
    same tokens, twice as fast.
    """
    punkt_module = need("nltk.tokenize.punkt", extra="paper", for_="analyzer 'paper'")
    words_module = need("nltk.tokenize.destructive", extra="paper", for_="analyzer 'paper'")
    split_sentences: Tokenize = punkt_module.PunktSentenceTokenizer().tokenize
    tokenize: Tokenize = words_module.NLTKWordTokenizer().tokenize
    sentences_of_texts = list[list[_Sentence]]()
    for text in texts:
        sentences_of_texts.append([_sentence(sentence) for sentence in split_sentences(text)])
    tables = _token_tables(sentences_of_texts, tokenize)
    tokens_of_texts = list[list[str]]()
    for sentences in sentences_of_texts:
        tokens = list[str]()
        for sentence in sentences:
            if not sentence.first:
                tokens += tokenize(sentence.end)
                continue
            tokens += tables.first[sentence.first]
            for word in sentence.middle:
                tokens += tables.middle[word]
            tokens += tables.end[sentence.end]
        tokens_of_texts.append(tokens)
    return pl.Series(tokens_of_texts, dtype=pl.List(pl.String))


def _sentence(text: str) -> _Sentence:
    """Split a sentence at blanks into its first word, the words in the middle, and the end."""
    cut = text.rfind(" ", 0, len(text.rstrip(_CLOSING)))
    first, *middle = text[: max(cut, 0)].split(" ")
    if not first or _MARK in text:
        return _Sentence(first="", middle=[], end=text)
    return _Sentence(first=first, middle=[word for word in middle if word], end=text[cut + 1 :])


def _token_tables(
    sentences_of_texts: Iterable[Iterable[_Sentence]], tokenize: Tokenize
) -> _TokenTables:
    """Read each distinct word once for each position in a sentence."""
    first_words, middle_words, ends = set[str](), dict[str, None](), set[str]()
    for sentences in sentences_of_texts:
        for sentence in sentences:
            if sentence.first:
                first_words.add(sentence.first)
                middle_words.update(dict.fromkeys(sentence.middle))
                ends.add(sentence.end)
    return _TokenTables(
        first={word: tokenize(f"{word} {_MARK}")[:-1] for word in first_words},
        middle=_middle_tokens(list(middle_words), tokenize),
        end={end: tokenize(f"{_MARK} {end}")[1:] for end in ends},
    )


def _middle_tokens(words: Sequence[str], tokenize: Tokenize) -> dict[str, list[str]]:
    """Return the tokens of each word between two other words."""
    tokens_of_word = dict[str, list[str]]()
    for start in range(0, len(words), _WORDS_A_CALL):
        part = words[start : start + _WORDS_A_CALL]
        tokens = tokenize(f" {_MARK} ".join(["", *part, ""]))
        word_tokens = list[list[str]]()
        for token in tokens:
            if token == _MARK:
                word_tokens.append([])
            else:
                word_tokens[-1].append(token)
        # A mark after the last word begins one more list, which stays empty.
        tokens_of_word |= zip(part, word_tokens, strict=False)
    return tokens_of_word
