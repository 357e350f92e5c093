"""Edits by rule: a text with one property changed, without any language model."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources

SWAP_RATE = 0.3
"""Share of neighbouring words, in a sentence, at which a swap begins."""
MOST_QUERIES = 3
"""Relevant queries whose words a document is given."""

_SENTENCE = re.compile(r"\S.*?(?:[.!?\u2026]+[\"')\]\u2019\u201d]*(?=\s)|\Z)", re.DOTALL)
_NUMBER = re.compile(r"(?<![\w.,])(?<![A-Za-z][-\u2013])\d+(?:[.,]\d+)*(?![\w])")
_NAME = re.compile(r"\b[A-Z][a-z]+(?:[ \t]+[A-Z][a-z]+)*\b")
_WORD = re.compile(r"(?:\b([Aa]n?)(\s+))?\b([A-Za-z]+(?:-[A-Za-z]+)*)\b")
_TERM = re.compile(r"\w+")
_FEMININE: Mapping[str, str] = {
    "he": "she",
    "him": "her",
    "his": "her",
    "himself": "herself",
    "man": "woman",
    "men": "women",
    "male": "female",
    "boy": "girl",
    "father": "mother",
    "dad": "mom",
    "daddy": "mommy",
    "papa": "mama",
    "son": "daughter",
    "brother": "sister",
    "husband": "wife",
    "husbands": "wives",
    "uncle": "aunt",
    "nephew": "niece",
    "king": "queen",
    "grandfather": "grandmother",
    "grandpa": "grandma",
    "grandson": "granddaughter",
    "prince": "princess",
    "gentleman": "lady",
    "gentlemen": "ladies",
    "mr": "ms",
    "sir": "madam",
    "groom": "bride",
    "actor": "actress",
    "princes": "princesses",
    "actors": "actresses",
    "waiter": "waitress",
    "waiters": "waitresses",
    "guy": "gal",
    "businessman": "businesswoman",
    "businessmen": "businesswomen",
    "policeman": "policewoman",
    "policemen": "policewomen",
    "chairman": "chairwoman",
    "chairmen": "chairwomen",
    "salesman": "saleswoman",
    "salesmen": "saleswomen",
    "spokesman": "spokeswoman",
    "spokesmen": "spokeswomen",
    "boyfriend": "girlfriend",
    "masculine": "feminine",
    "paternal": "maternal",
    "paternity": "maternity",
    "fatherhood": "motherhood",
    "manhood": "womanhood",
    "boyhood": "girlhood",
    "stepfather": "stepmother",
    "stepson": "stepdaughter",
    "widower": "widow",
    "godfather": "godmother",
    "monk": "nun",
    "wizard": "witch",
    "wizards": "witches",
    "lad": "lass",
    "lads": "lasses",
    "hero": "heroine",
    "heroes": "heroines",
}
"""Masculine words and what stands for them; a plural in -s is made of both."""


@dataclass(frozen=True)
class Origin:
    """What a rule may know of a document beside its text."""

    id: str
    seed: int = 0
    queries: tuple[str, ...] = ()
    """Texts of the queries to which it is relevant, the highest grade first."""
    held: frozenset[str] = frozenset()
    """Terms of all queries of the collection."""
    names: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """Names in the collection's texts, by their number of words."""

    def number(self, *parts: object) -> int:
        """Draw a whole number that depends on seed, document and `parts` alone."""
        key = "\0".join(map(str, (self.seed, self.id, *parts)))
        return int.from_bytes(
            hashlib.blake2b(key.encode(errors="surrogatepass"), digest_size=8).digest(), "little"
        )


def terms(text: str) -> list[str]:
    r"""List the lower-cased runs of letters, digits and underscores."""
    return _TERM.findall(text.lower())


def shorter(text: str, origin: Origin) -> str:
    """Keep the first half of the sentences, at least one."""
    ends = [found.end() for found in _SENTENCE.finditer(text)]
    return text[: ends[max(len(ends) // 2, 1) - 1]].rstrip() if ends else text


def other_words(text: str, origin: Origin) -> str:
    """Replace words by synonyms of a list, where no query holds any form of either."""
    known = synonyms()

    def replaced(found: re.Match[str]) -> str:
        article, blank, word = found.groups()
        other = known.get(word.lower())
        if other is None or origin.held & {
            word.lower(),
            *other.split(),
            *forms_of(word.lower()),
            *forms_of(other),
        }:
            return found[0]
        if article is None:
            return _cased(other, word)
        fitting = {"a": "an", "A": "An"}[article[0]] if other[0] in "aeiou" else article[0]
        return f"{fitting}{blank}{_cased(other, word)}"

    return _WORD.sub(replaced, text)


def _cased(word: str, like: str) -> str:
    if like.isupper() and len(like) > 1:
        return word.upper()
    return word[:1].upper() + word[1:] if like[:1].isupper() else word


@cache
def _pairs() -> list[tuple[str, str, str]]:
    file = resources.files("ranktilt.experiments.twins").joinpath("synonyms.txt")
    rows = (
        line.split(None, 2)
        for line in file.read_text("utf-8").splitlines()
        if not line.startswith("#")
    )
    return [(kind, one, two) for kind, one, two in rows]


@cache
def synonyms() -> Mapping[str, str]:
    """Return what stands for each word of the list, inflected alike; the first pair that has a word counts."""
    found: dict[str, str] = {}
    for kind, one, two in _pairs():
        for a, b in zip(_inflected(kind, one), _inflected(kind, two), strict=True):
            found.setdefault(a, b)
            if kind != "o" and " " not in b:
                found.setdefault(b, a)
    return found


@cache
def _forms() -> Mapping[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for kind, *pair in _pairs():
        for word in pair:
            forms = frozenset(_inflected(kind, word))
            for form in forms:
                found[form] = found.get(form, frozenset()) | forms
    return found


def forms_of(word: str) -> frozenset[str]:
    """Return the inflected forms that the list knows of a word."""
    return _forms().get(word, frozenset({word}))


def _inflected(kind: str, word: str) -> list[str]:
    """Return a word, and its regular forms: of a noun the plural, of a verb -s, -ed and -ing."""
    if kind not in "nv":
        return [word]
    soft = word.endswith("y") and word[-2:-1] not in "aeiou"
    hissing = word.endswith(("s", "x", "z", "ch", "sh"))
    plural = f"{word[:-1]}ies" if soft else f"{word}es" if hissing else f"{word}s"
    if kind == "n":
        return [word, plural]
    past = f"{word[:-1]}ied" if soft else f"{word}d" if word.endswith("e") else f"{word}ed"
    stem = word[:-1] if word.endswith("e") and not word.endswith(("ee", "oe", "ye")) else word
    return [word, plural, past, f"{stem}ing"]


def swapped_words(text: str, origin: Origin) -> str:
    """Swap neighbouring words within sentences, at a seeded rate; the last word of a sentence stays where it is."""
    parts, end = list[str](), 0
    for number, found in enumerate(_SENTENCE.finditer(text)):
        tokens = re.split(
            r"(\s+)", found[0]
        )  # words at even places, what is between them at odd ones
        place = 0
        while place + 4 < len(tokens):
            if origin.number("swap", number, place) % 1_000 < 1_000 * SWAP_RATE:
                tokens[place], tokens[place + 2] = tokens[place + 2], tokens[place]
                place += 2
            place += 2
        parts += [text[end : found.start()], "".join(tokens)]
        end = found.end()
    return "".join([*parts, text[end:]])


def other_facts(text: str, origin: Origin) -> str:
    """Change numbers, and put names of other documents in the place of names; those that a query holds stay."""
    parts, end = list[str](), 0
    for start, stop in _names(text):
        name = text[start:stop]
        pool = [one for one in _near(origin, name) if one != name]
        other = pool[0] if pool and not origin.held & {*terms(name)} else name
        parts += [text[end:start], other]
        end = stop
    changed = "".join([*parts, text[end:]])
    return _NUMBER.sub(
        lambda found: found[0] if found[0] in origin.held else _other_number(found[0], origin),
        changed,
    )


def _names(text: str) -> Iterator[tuple[int, int]]:
    """Where names are: capitalised words that follow each other, without one that begins a sentence."""
    starts = {found.start() for found in _SENTENCE.finditer(text)}
    for found in _NAME.finditer(text):
        first = re.match(r"\S+\s*", found[0]) if found.start() in starts else None
        start = found.start() + (first.end() if first else 0)
        if start < found.end():
            yield start, found.end()


def _near(origin: Origin, name: str) -> Iterable[str]:
    """Two names of as many words, drawn for this document and this name."""
    pool = origin.names.get(len(name.split()), ())
    start = origin.number("name", name) % len(pool) if pool else 0
    return [pool[(start + step) % len(pool)] for step in range(min(2, len(pool)))]


def _other_number(number: str, origin: Origin) -> str:
    """Change every digit but the first two of what may be a year; the first of a number is never 0 unless it was."""
    kept = 2 if re.fullmatch(r"(?:19|20)\d\d", number) else 0
    digits = []
    for place, sign in enumerate(number):
        if not sign.isdigit() or place < kept:
            digits.append(sign)
            continue
        least = 1 if place == 0 and len(number) > 1 and number[1].isdigit() else 0
        choice = [one for one in "0123456789"[least:] if one != sign]
        digits.append(choice[origin.number("digit", number, place) % len(choice)])
    return "".join(digits)


def names_of(text: str) -> list[str]:
    """List the names of a text: capitalised words that follow each other and do not begin a sentence."""
    return [text[start:end] for start, end in _names(text)]


def facts_of(text: str) -> set[str]:
    """List the numbers of a text, and the words of its names."""
    return {*_NUMBER.findall(text), *(word for name in names_of(text) for word in name.split())}


def name_pool(texts: Iterable[str], held: frozenset[str]) -> dict[int, tuple[str, ...]]:
    """List the names of texts that hold no term of a query, by their number of words."""
    found: dict[int, set[str]] = {}
    for text in texts:
        for name in names_of(text):
            if not held & {*terms(name)}:
                found.setdefault(len(name.split()), set()).add(name)
    return {size: tuple(sorted(names)) for size, names in found.items()}


def with_query_words(text: str, origin: Origin) -> str:
    """Add a last sentence: the words of up to three queries to which the document is relevant, as far as it has not."""
    have, added = {*terms(text)}, list[str]()
    for query in origin.queries[:MOST_QUERIES]:
        for word in query.split():
            new = {*terms(word)} - have
            if new:
                added.append(word.strip(".,;:!?\"'()"))
                have |= new
    return f"{text.rstrip()} {' '.join(added)}.".lstrip() if added else text


def feminine(text: str, origin: Origin) -> str:
    """Put feminine words in the place of masculine ones, by a list."""
    known = feminine_words()

    def replaced(found: re.Match[str]) -> str:
        word = found[0]
        other = known.get(word.lower())
        if word.lower() == "his" and not re.match(r"\s+\w", text[found.end() :]):
            other = "hers"
        return word if other is None else _cased(other, word)

    return re.sub(r"\b[A-Za-z]+\b", replaced, text)


@cache
def feminine_words() -> Mapping[str, str]:
    """Return the feminine word for each masculine one, plurals in -s too."""
    pronouns = {"he", "him", "his", "himself", "mr"}
    plurals = {
        f"{one}s": f"{two}s"
        for one, two in _FEMININE.items()
        if one not in pronouns and one[-1] != "s"
    }
    return {**plurals, **_FEMININE}
