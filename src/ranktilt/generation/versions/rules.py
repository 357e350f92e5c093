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
"""Relevant queries whose words a document is given, or whose answer is looked for."""
SENTENCE = re.compile(r"\S.*?(?:[.!?\u2026]+[\"')\]\u2019\u201d]*(?=\s)|\Z)", re.DOTALL)
"""A sentence, to its full stop and the quotes after it."""

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


@dataclass(frozen=True, kw_only=True)
class Origin:
    """What a rule may know of a document, apart from its text."""

    id: str
    """Id of the document."""
    seed: int = 0
    """Seed of all that chance decides."""
    queries: tuple[str, ...] = ()
    """Texts of the queries to which it is relevant, the highest grade first."""
    sought: tuple[str, ...] = ()
    """Texts that say which sentences answer: see `answer_sentences.sought_texts`."""
    query_terms: frozenset[str] = frozenset()
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
    ends = [sentence.end() for sentence in SENTENCE.finditer(text)]
    return text[: ends[max(len(ends) // 2, 1) - 1]].rstrip() if ends else text


def other_words(text: str, origin: Origin) -> str:
    """Replace words by synonyms of a list, where no query holds any form of either."""
    synonym_of = synonyms()

    def replaced(match: re.Match[str]) -> str:
        article, blank, word = match.groups()
        synonym = synonym_of.get(word.lower())
        if synonym is None or origin.query_terms & _all_forms(word.lower(), synonym):
            return match[0]
        if article is None:
            return _cased(synonym, word)
        fitting = article[0]
        if synonym[0] in "aeiou":
            fitting = "an" if article[0] == "a" else "An"
        return f"{fitting}{blank}{_cased(synonym, word)}"

    return _WORD.sub(replaced, text)


def _all_forms(word: str, synonym: str) -> set[str]:
    """Return all forms of a word and its synonym."""
    return {word, *synonym.split(), *forms_of(word), *forms_of(synonym)}


def _cased(word: str, like: str) -> str:
    """Write a word with the capitals of another one."""
    if like.isupper() and len(like) > 1:
        return word.upper()
    return word[:1].upper() + word[1:] if like[:1].isupper() else word


@cache
def _pairs() -> list[tuple[str, str, str]]:
    """Read the kind of each pair of the list (noun, verb or other), the word and its synonym."""
    file = resources.files("ranktilt.generation.versions").joinpath("synonyms.txt")
    pairs = []
    for line in file.read_text("utf-8").splitlines():
        if not line.startswith("#"):
            kind, word, synonym = line.split(None, 2)
            pairs.append((kind, word, synonym))
    return pairs


@cache
def synonyms() -> Mapping[str, str]:
    """Return the synonym of each word, inflected alike; the first pair that has a word counts."""
    synonym_of: dict[str, str] = {}
    for kind, word, synonym in _pairs():
        forms = zip(_inflected(kind, word), _inflected(kind, synonym), strict=True)
        for word_form, synonym_form in forms:
            synonym_of.setdefault(word_form, synonym_form)
            if kind != "o" and " " not in synonym_form:
                synonym_of.setdefault(synonym_form, word_form)
    return synonym_of


@cache
def _forms() -> Mapping[str, frozenset[str]]:
    """Return the forms that belong together, by each of them."""
    forms_by_form: dict[str, frozenset[str]] = {}
    for kind, *pair in _pairs():
        for word in pair:
            forms = frozenset(_inflected(kind, word))
            for form in forms:
                forms_by_form[form] = forms_by_form.get(form, frozenset()) | forms
    return forms_by_form


def forms_of(word: str) -> frozenset[str]:
    """Return the inflected forms that the list knows of a word."""
    return _forms().get(word, frozenset({word}))


def _inflected(kind: str, word: str) -> list[str]:
    """Return a word, and its regular forms: of a noun the plural, of a verb -s, -ed and -ing."""
    if kind not in "nv":
        return [word]
    ends_in_soft_y = word.endswith("y") and word[-2:-1] not in "aeiou"
    plural, past = f"{word}s", f"{word}ed"
    if ends_in_soft_y:
        plural, past = f"{word[:-1]}ies", f"{word[:-1]}ied"
    elif word.endswith(("s", "x", "z", "ch", "sh")):
        plural = f"{word}es"
    elif word.endswith("e"):
        past = f"{word}d"
    if kind == "n":
        return [word, plural]
    stem = word[:-1] if word.endswith("e") and not word.endswith(("ee", "oe", "ye")) else word
    return [word, plural, past, f"{stem}ing"]


def swapped_words(text: str, origin: Origin) -> str:
    """Swap neighbouring words within sentences, at a seeded rate; the last word stays."""
    parts: list[str] = []
    end = 0
    for number, sentence in enumerate(SENTENCE.finditer(text)):
        # Words have even numbers, what is between them odd ones.
        tokens = re.split(r"(\s+)", sentence[0])
        index = 0
        while index + 4 < len(tokens):
            if origin.number("swap", number, index) % 1_000 < 1_000 * SWAP_RATE:
                tokens[index], tokens[index + 2] = tokens[index + 2], tokens[index]
                index += 2
            index += 2
        parts += [text[end : sentence.start()], "".join(tokens)]
        end = sentence.end()
    return "".join([*parts, text[end:]])


def other_facts(text: str, origin: Origin) -> str:
    """Change numbers, and replace names by those of other documents; what a query has stays."""
    parts: list[str] = []
    end = 0
    for start, stop in _names(text):
        name = text[start:stop]
        pool = [candidate for candidate in _near(origin, name) if candidate != name]
        may_change = pool and not origin.query_terms & {*terms(name)}
        parts += [text[end:start], pool[0] if may_change else name]
        end = stop

    def changed_number(match: re.Match[str]) -> str:
        return match[0] if match[0] in origin.query_terms else _other_number(match[0], origin)

    return _NUMBER.sub(changed_number, "".join([*parts, text[end:]]))


def _names(text: str) -> Iterator[tuple[int, int]]:
    """Find names: capitalised words that follow each other, without one that begins a sentence."""
    sentence_starts = {sentence.start() for sentence in SENTENCE.finditer(text)}
    for name in _NAME.finditer(text):
        start = name.start()
        if start in sentence_starts:
            first_word = re.match(r"\S+\s*", name[0])
            start += first_word.end() if first_word else 0
        if start < name.end():
            yield start, name.end()


def _near(origin: Origin, name: str) -> Iterable[str]:
    """Draw two names of as many words for this document and this name."""
    pool = origin.names.get(len(name.split()), ())
    start = origin.number("name", name) % len(pool) if pool else 0
    return [pool[(start + step) % len(pool)] for step in range(min(2, len(pool)))]


def _other_number(number: str, origin: Origin) -> str:
    """Change every digit, but not the century of a year; no number gets a 0 in front."""
    unchanged = 2 if re.fullmatch(r"(?:19|20)\d\d", number) else 0
    signs = []
    for index, sign in enumerate(number):
        if not sign.isdigit() or index < unchanged:
            signs.append(sign)
            continue
        is_first_of_several = index == 0 and len(number) > 1 and number[1].isdigit()
        digits = "123456789" if is_first_of_several else "0123456789"
        choice = [digit for digit in digits if digit != sign]
        signs.append(choice[origin.number("digit", number, index) % len(choice)])
    return "".join(signs)


def names_of(text: str) -> list[str]:
    """List the names of a text: capitalised words in a row that do not begin a sentence."""
    return [text[start:end] for start, end in _names(text)]


def facts_of(text: str) -> set[str]:
    """List the numbers of a text, and the words of its names."""
    facts = {*_NUMBER.findall(text)}
    for name in names_of(text):
        facts.update(name.split())
    return facts


def name_pool(texts: Iterable[str], query_terms: frozenset[str]) -> dict[int, tuple[str, ...]]:
    """List the names of texts that have no term of a query, by their number of words."""
    names_by_length: dict[int, set[str]] = {}
    for text in texts:
        for name in names_of(text):
            if not query_terms & {*terms(name)}:
                names_by_length.setdefault(len(name.split()), set()).add(name)
    return {length: tuple(sorted(names)) for length, names in names_by_length.items()}


def with_query_words(text: str, origin: Origin) -> str:
    """Add a last sentence: missing words of up to three queries that the text is relevant to."""
    known_terms = {*terms(text)}
    added: list[str] = []
    for query in origin.queries[:MOST_QUERIES]:
        for word in query.split():
            new_terms = {*terms(word)} - known_terms
            if new_terms:
                added.append(word.strip(".,;:!?\"'()"))
                known_terms |= new_terms
    return f"{text.rstrip()} {' '.join(added)}.".lstrip() if added else text


def feminine(text: str, origin: Origin) -> str:
    """Put feminine words in the place of masculine ones, by a list."""
    feminine_of = feminine_words()

    def replaced(match: re.Match[str]) -> str:
        word = match[0]
        feminine_word = feminine_of.get(word.lower())
        if word.lower() == "his" and not re.match(r"\s+\w", text[match.end() :]):
            feminine_word = "hers"
        return word if feminine_word is None else _cased(feminine_word, word)

    return re.sub(r"\b[A-Za-z]+\b", replaced, text)


@cache
def feminine_words() -> Mapping[str, str]:
    """Return the feminine word for each masculine one, plurals in -s too."""
    pronouns = {"he", "him", "his", "himself", "mr"}
    plurals = {
        f"{masculine}s": f"{word}s"
        for masculine, word in _FEMININE.items()
        if masculine not in pronouns and masculine[-1] != "s"
    }
    return {**plurals, **_FEMININE}
