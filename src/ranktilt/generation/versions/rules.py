"""Edits by rule: functions that change one property of a text, without any language model.

Each takes a text and what it may know of the document (`RuleContext`), and returns the changed
text. Chance depends on seed and document alone, so that the same call gives the same text. A *term*
is a word as it is compared between texts: in lower case, and without punctuation. The *facts* of a
text are its numbers and names.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources

SWAP_RATE = 0.3
"""Probability that a word of a sentence is swapped with the next one."""
MOST_QUERIES = 3
"""Maximum number of a document's relevant queries that rules use, the highest grades first."""
SENTENCE = re.compile(r"\S.*?(?:[.!?\u2026]+[\"')\]\u2019\u201d]*(?=\s)|\Z)", re.DOTALL)
"""A sentence, to its full stop and the quotes after it."""

_NUMBER = re.compile(r"(?<![\w.,])(?<![A-Za-z][-\u2013])\d+(?:[.,]\d+)*(?![\w])")
"""A number that is no part of a name such as ``COVID-19``."""
_NAME = re.compile(r"\b[A-Z][a-z]+(?:[ \t]+[A-Z][a-z]+)*\b")
"""Capitalised words in a row."""
_WORD = re.compile(r"(?:\b([Aa]n?)(\s+))?\b([A-Za-z]+(?:-[A-Za-z]+)*)\b")
"""A word; its indefinite article and the blank after it, if there are any, are the first groups."""
_TERM = re.compile(r"\w+")
"""A term, as it is compared between texts."""
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
"""Feminine words by the masculine ones that they replace; plurals in -s follow from these."""


@dataclass(frozen=True, kw_only=True)
class RuleContext:
    """What a rule may know of a document, apart from its text."""

    id: str
    """Id of the document."""
    seed: int = 0
    """Random seed."""
    queries: tuple[str, ...] = ()
    """Texts of the queries to which the document is relevant, the highest grade first."""
    sought: tuple[str, ...] = ()
    """Texts with which sentences are compared to find the answers: the sentences of the answer
    that the document states, or its first queries."""
    query_terms: frozenset[str] = frozenset()
    """Terms of all queries of the collection."""
    names: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """Names in the collection's texts, by their number of words."""

    def random_number(self, *parts: object) -> int:
        """Draw a whole number of 64 bits that depends on seed, document and `parts` alone."""
        key = "\0".join(map(str, (self.seed, self.id, *parts)))
        return int.from_bytes(
            hashlib.blake2b(key.encode(errors="surrogatepass"), digest_size=8).digest(), "little"
        )


def terms(text: str) -> list[str]:
    """List the terms of a text: lower-cased runs of letters, digits and underscores."""
    return _TERM.findall(text.lower())


def halve(text: str, context: RuleContext) -> str:
    """Keep the first half of the sentences, at least one."""
    ends = [sentence.end() for sentence in SENTENCE.finditer(text)]
    if not ends:
        return text
    kept_count = max(len(ends) // 2, 1)
    return text[: ends[kept_count - 1]].rstrip()


def use_synonyms(text: str, context: RuleContext) -> str:
    """Replace words by synonyms from a list.

    A word stays if a query of the collection has any form of it or of its synonym.
    """
    synonym_of = synonyms()

    def replace_word(match: re.Match[str]) -> str:
        article, blank, word = match.groups()
        synonym = synonym_of.get(word.lower())
        if synonym is None or context.query_terms & _all_forms(word.lower(), synonym):
            return match[0]
        if article is None:
            return _with_capitals_of(word, synonym)
        new_article = article[0]  # a or A
        if synonym[0] in "aeiou":
            new_article += "n"
        return f"{new_article}{blank}{_with_capitals_of(word, synonym)}"

    return _WORD.sub(replace_word, text)


def _all_forms(word: str, synonym: str) -> set[str]:
    """Return all forms of a word and its synonym."""
    return {word, *synonym.split(), *forms_of(word), *forms_of(synonym)}


def _with_capitals_of(replaced: str, word: str) -> str:
    """Write a word in capitals, or with a capital, if the replaced word was written so."""
    if replaced.isupper() and len(replaced) > 1:
        return word.upper()
    return word[:1].upper() + word[1:] if replaced[:1].isupper() else word


@cache
def _synonym_pairs() -> list[tuple[str, str, str]]:
    """Read the list of synonyms: kind, word and synonym of each line.

    The kind is ``n`` for nouns, ``v`` for verbs and ``o`` for other words, which are not inflected.
    """
    file = resources.files("ranktilt.generation.versions").joinpath("synonyms.txt")
    pairs = []
    for line in file.read_text("utf-8").splitlines():
        if not line.startswith("#"):
            kind, word, synonym = line.split(None, 2)
            pairs.append((kind, word, synonym))
    return pairs


@cache
def synonyms() -> Mapping[str, str]:
    """Return the synonym of each form of a word, in the same form.

    If a word is in several pairs, the first pair counts. Pairs of nouns and of verbs are used in
    both directions.
    """
    synonym_of: dict[str, str] = {}
    for kind, word, synonym in _synonym_pairs():
        forms = zip(_inflect(kind, word), _inflect(kind, synonym), strict=True)
        for word_form, synonym_form in forms:
            synonym_of.setdefault(word_form, synonym_form)
            if kind != "o" and " " not in synonym_form:
                synonym_of.setdefault(synonym_form, word_form)
    return synonym_of


@cache
def _forms() -> Mapping[str, frozenset[str]]:
    """Return all forms of a word, by each of its forms."""
    forms_by_form: dict[str, frozenset[str]] = {}
    for kind, *pair in _synonym_pairs():
        for word in pair:
            forms = frozenset(_inflect(kind, word))
            for form in forms:
                forms_by_form[form] = forms_by_form.get(form, frozenset()) | forms
    return forms_by_form


def forms_of(word: str) -> frozenset[str]:
    """Return all forms of a word in the list of synonyms, or the word alone if it is not there."""
    return _forms().get(word, frozenset({word}))


def _inflect(kind: str, word: str) -> list[str]:
    """Return a word and its regular forms: the plural of a noun (``n``), -s, -ed, -ing of a verb.

    Words of another kind than ``n`` and ``v`` have no further forms.
    """
    if kind not in "nv":
        return [word]
    ends_in_consonant_y = word.endswith("y") and word[-2:-1] not in "aeiou"
    with_s, past = f"{word}s", f"{word}ed"
    if ends_in_consonant_y:
        with_s, past = f"{word[:-1]}ies", f"{word[:-1]}ied"
    elif word.endswith(("s", "x", "z", "ch", "sh")):
        with_s = f"{word}es"
    elif word.endswith("e"):
        past = f"{word}d"
    if kind == "n":
        return [word, with_s]
    stem = word[:-1] if word.endswith("e") and not word.endswith(("ee", "oe", "ye")) else word
    return [word, with_s, past, f"{stem}ing"]


def swap_words(text: str, context: RuleContext) -> str:
    """Swap neighbouring words at random, within sentences; the last word of each stays."""
    parts: list[str] = []
    end = 0
    for number, sentence in enumerate(SENTENCE.finditer(text)):
        # Words have even indices; the blanks between them have odd ones.
        tokens = re.split(r"(\s+)", sentence[0])
        index = 0
        # The word after the next, which may not exist, is at index + 4: the last word stays.
        while index + 4 < len(tokens):
            if context.random_number("swap", number, index) % 1_000 < 1_000 * SWAP_RATE:
                tokens[index], tokens[index + 2] = tokens[index + 2], tokens[index]
                index += 2  # no word is swapped twice
            index += 2
        parts += [text[end : sentence.start()], "".join(tokens)]
        end = sentence.end()
    return "".join([*parts, text[end:]])


def change_facts(text: str, context: RuleContext) -> str:
    """Change numbers, and replace names by other names of the collection's texts.

    Names with a term of a query stay, and so do numbers all of whose terms are in queries.
    """
    parts: list[str] = []
    end = 0
    for start, stop in _name_spans(text):
        name = text[start:stop]
        new_names = [candidate for candidate in _draw_names(context, name) if candidate != name]
        may_change = new_names and not context.query_terms & {*terms(name)}
        parts += [text[end:start], new_names[0] if may_change else name]
        end = stop

    def replace_number(match: re.Match[str]) -> str:
        number = match[0]
        return number if context.query_terms >= {*terms(number)} else _other_number(number, context)

    return _NUMBER.sub(replace_number, "".join([*parts, text[end:]]))


def _name_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each name.

    A name is capitalised words in a row, without a word that begins a sentence.
    """
    sentence_starts = {sentence.start() for sentence in SENTENCE.finditer(text)}
    for name in _NAME.finditer(text):
        start = name.start()
        if start in sentence_starts:
            first_word = re.match(r"\S+\s*", name[0])
            start += first_word.end() if first_word else 0
        if start < name.end():
            yield start, name.end()


def _draw_names(context: RuleContext, name: str) -> Iterable[str]:
    """Draw two different names with as many words as `name`.

    One of them may be `name` itself, and the other is then left to replace it.
    """
    names = context.names.get(len(name.split()), ())
    start = context.random_number("name", name) % len(names) if names else 0
    return [names[(start + step) % len(names)] for step in range(min(2, len(names)))]


def _other_number(number: str, context: RuleContext) -> str:
    """Change every digit of a number, except the century of a year.

    A number of several digits does not begin with 0.
    """
    unchanged = 2 if re.fullmatch(r"(?:19|20)\d\d", number) else 0
    characters = []
    for index, character in enumerate(number):
        if not character.isdigit() or index < unchanged:
            characters.append(character)
            continue
        is_first_of_several = index == 0 and len(number) > 1 and number[1].isdigit()
        digits = "123456789" if is_first_of_several else "0123456789"
        candidates = [digit for digit in digits if digit != character]
        characters.append(
            candidates[context.random_number("digit", number, index) % len(candidates)]
        )
    return "".join(characters)


def names_of(text: str) -> list[str]:
    """List the names of a text: capitalised words in a row that do not begin a sentence."""
    return [text[start:end] for start, end in _name_spans(text)]


def facts_of(text: str) -> set[str]:
    """List the numbers of a text, and the words of its names."""
    facts = {*_NUMBER.findall(text)}
    for name in names_of(text):
        facts.update(name.split())
    return facts


def name_pool(texts: Iterable[str], query_terms: frozenset[str]) -> dict[int, tuple[str, ...]]:
    """List the names in texts by their number of words, without names that have a query's term."""
    names_by_length: dict[int, set[str]] = {}
    for text in texts:
        for name in names_of(text):
            if not query_terms & {*terms(name)}:
                names_by_length.setdefault(len(name.split()), set()).add(name)
    return {length: tuple(sorted(names)) for length, names in names_by_length.items()}


def add_query_words(text: str, context: RuleContext) -> str:
    """Add a last sentence of the words of relevant queries, up to three, that the text lacks."""
    known_terms = {*terms(text)}
    added: list[str] = []
    for query in context.queries[:MOST_QUERIES]:
        for word in query.split():
            new_terms = {*terms(word)} - known_terms
            if new_terms:
                added.append(word.strip(".,;:!?\"'()"))
                known_terms |= new_terms
    return f"{text.rstrip()} {' '.join(added)}.".lstrip() if added else text


def feminize(text: str, context: RuleContext) -> str:
    """Replace masculine words by feminine ones from a list."""
    feminine_of = feminine_words()

    def replace_word(match: re.Match[str]) -> str:
        word = match[0]
        feminine_word = feminine_of.get(word.lower())
        # Without a noun after it, "his" is a pronoun by itself: "the book is his".
        if word.lower() == "his" and not re.match(r"\s+\w", text[match.end() :]):
            feminine_word = "hers"
        return word if feminine_word is None else _with_capitals_of(word, feminine_word)

    return re.sub(r"\b[A-Za-z]+\b", replace_word, text)


@cache
def feminine_words() -> Mapping[str, str]:
    """Return the feminine word for each masculine one, plurals in -s too."""
    without_plural = {"he", "him", "his", "himself", "mr"}
    plurals = {
        f"{masculine}s": f"{feminine}s"
        for masculine, feminine in _FEMININE.items()
        if masculine not in without_plural and masculine[-1] != "s"
    }
    return {**plurals, **_FEMININE}
