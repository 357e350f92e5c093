"""Split many texts as NLTK's two tokenizers do, reading each distinct word once.

The first tokenizer splits a text into sentences, and the second a sentence into words, its tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from ranktilt.optional import need

_PLACEHOLDER = "\ue000"
"""Placeholder for a neighbouring word: of no script, so that no rule of the tokenizer applies."""
_WHITE_SPACE = "".join(filter(str.isspace, map(chr, range(0x3001))))
"""White space that Python's ``split`` knows."""
_CLOSING_CHARACTERS = "])}>\"'»”\u2019" + _WHITE_SPACE
"""Characters that may follow the full stop at the end of a sentence."""
_WORDS_PER_CALL = 2_000
"""Number of words that the tokenizer reads at a time."""
Tokenize = Callable[[str], list[str]]
"""Function from a text to its tokens."""


@dataclass(frozen=True, kw_only=True)
class _Sentence:
    """The parts of a sentence to which different rules of the tokenizer apply.

    A sentence of fewer than two words is not divided: all of it is the `end`.
    """

    first: str
    """First word; empty if the sentence is not divided."""
    middle: list[str]
    """Words between the first word and the end."""
    end: str
    """Last word, and the characters after it."""


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
    """Raise `MissingExtra` if NLTK is not installed."""
    need("nltk.tokenize.punkt", extra="paper", for_="analyzer 'paper'")


def nltk_tokens(texts: Iterable[str]) -> pl.Series:
    """Split texts into sentences (untrained Punkt) and these into words (``NLTKWordTokenizer``).

    Returns a list of tokens for each text. The rules of the word tokenizer look no further than the
    blank next to a word, except for the first word of a sentence and its end. So each distinct word
    in the middle of sentences is read only once, which gives the same tokens twice as fast.
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
    last_blank = text.rfind(" ", 0, len(text.rstrip(_CLOSING_CHARACTERS)))
    first, *middle = text[: max(last_blank, 0)].split(" ")
    if not first or _PLACEHOLDER in text:
        return _Sentence(first="", middle=[], end=text)
    middle = [word for word in middle if word]
    return _Sentence(first=first, middle=middle, end=text[last_blank + 1 :])


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
        first={word: tokenize(f"{word} {_PLACEHOLDER}")[:-1] for word in first_words},
        middle=_middle_tokens(list(middle_words), tokenize),
        end={end: tokenize(f"{_PLACEHOLDER} {end}")[1:] for end in ends},
    )


def _middle_tokens(words: Sequence[str], tokenize: Tokenize) -> dict[str, list[str]]:
    """Return the tokens of each word between two other words."""
    tokens_of_word = dict[str, list[str]]()
    for start in range(0, len(words), _WORDS_PER_CALL):
        block = words[start : start + _WORDS_PER_CALL]
        # There is a placeholder before the first word, between words, and after the last one.
        tokens = tokenize(f" {_PLACEHOLDER} ".join(["", *block, ""]))
        token_lists = list[list[str]]()
        for token in tokens:
            if token == _PLACEHOLDER:
                token_lists.append([])
            else:
                token_lists[-1].append(token)
        # The placeholder after the last word began one more list, which is empty.
        tokens_of_word |= zip(block, token_lists, strict=False)
    return tokens_of_word
