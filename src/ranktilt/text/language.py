"""Whether a text is in another language than its source, told by the small words of each language."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from importlib.resources import files as package_files

_SHARE = 0.10
_LEAD = 3
_SOURCE_HITS, _HITS = 2, 3
_PLENTY, _TRACE = 0.20, 0.03
_ENOUGH = 40


@cache
def profiles() -> dict[str, frozenset[str]]:
    """Load the 25 to 80 commonest words of each language, folded in case: articles, conjunctions, auxiliaries."""
    lines = package_files("ranktilt.text").joinpath("small-words.txt").read_text(encoding="utf-8").splitlines()
    named = (line.split(": ") for line in lines)
    return {name: frozenset(words.split()) for name, words in named}


@cache
def _languages() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for name, words in profiles().items():
        for word in words:
            found[word] = (*found.get(word, ()), name)
    return found


def language(words: Sequence[str]) -> str | None:
    """Name the language whose small words are the most among words folded in case.

    None where no language has at least 10 % of the words and three of them. Of near languages (Danish and Norwegian) it
    may be the other.
    """
    name, hits = _commonest(_small(words))
    return name if hits >= max(_HITS, _SHARE * len(words)) else None


def other_language(source: Sequence[str], text: Sequence[str]) -> bool:
    """Tell whether a text is in another language than its source, where both are in one writing script.

    True where both languages are plain to see and differ: each has at least 10 % small words (two in the source, three
    in the text), and of the words that are small in one of the two languages only, each has two or more of its own and
    at least three times as many as of the other. True, too, where a text of at least 40 words is in none of the
    languages and has lost the small words of its source's, from at least 20 % of the words to less than 3 %.
    """
    here, there = _small(source), _small(text)
    own, hits = _commonest(here)
    if own is None or hits < max(_SOURCE_HITS, _SHARE * len(source)):
        return False
    other, others = _commonest(there)
    if other is None or others < max(_HITS, _SHARE * len(text)):
        kept = sum(count for word, count in there.items() if word in profiles()[own])
        return len(text) >= _ENOUGH and hits >= _PLENTY * len(source) and kept < _TRACE * len(text)
    return other != own and _leads(here, own, other) and _leads(there, other, own)


def _small(words: Sequence[str]) -> Counter[str]:
    return Counter(filter(_languages().__contains__, words))


def _commonest(small: Counter[str]) -> tuple[str | None, int]:
    hits: dict[str, int] = {}
    for word, count in small.items():
        for name in _languages()[word]:
            hits[name] = hits.get(name, 0) + count
    best = max(hits, key=lambda name: hits[name], default=None)
    return best, hits[best] if best else 0


def _leads(small: Counter[str], one: str, other: str) -> bool:
    """Whether the words that are small in one of two languages only speak for the first."""
    ours, theirs = profiles()[one], profiles()[other]
    for_one = sum(count for word, count in small.items() if word in ours and word not in theirs)
    for_other = sum(count for word, count in small.items() if word in theirs and word not in ours)
    return for_one >= _SOURCE_HITS and for_one >= _LEAD * for_other
