"""Which query and which passages a stored prompt shows: its text is matched to the candidates', and never guessed."""

from __future__ import annotations

import html
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from ranktilt.errors import counted, shorten
from ranktilt.rankers.llm.log import LoggedCall

_START = 16
"""Letters by which passages are looked up."""
_NEAR, _SAME = 6, 12
"""Letters that may differ at one place, as of signs that were written otherwise; and those that must agree again."""
_STEPS = sorted(((a, b) for a in range(_NEAR + 1) for b in range(_NEAR + 1) if a + b), key=sum)
_ENOUGH = 40
"""Least letters of a text that was cut."""
_TEMPLATE = 80
"""Most letters of a prompt between two passages, such as "Received passage [1]"."""
_ANNOUNCED = re.compile(r"(?<![\w.])(\d{1,4}) passages", re.I)
_MARKS = (
    re.compile(r"(?:^[ \t]*|: ?)\[(\d{1,4})\]:?\s+(?!>)", re.M),
    re.compile(r"(?<!\S)(?<!> )\[(\d{1,4})\]:?\s+(?!>)"),
)
"""What stands before a passage: at the beginning of a line or turn, or, in prompts without these, anywhere."""
_ASCII = re.compile(r"[^0-9A-Za-z]+")
_CONFUSED = re.compile("[\x80-\u036f\u2000-\u2bff]+")
"""What broken encodings are made of: accented Latin letters, and signs such as ½ and ™, which NFKC spells out."""
_MISREAD = re.compile("[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
"""Signs of UTF-8, each of whose bytes was read as a letter of its own."""
_WINDOWS = {
    ord(bytes([byte]).decode("cp1252")): byte for byte in range(128, 160) if byte not in b"\x81\x8d\x8f\x90\x9d"
}
_LETTERS = re.compile(r"[^0-9A-Za-z\u0370-\u1dff\u2c00-\ud7ff\U00010000-\U0003ffff]+")


class ShownPassages(NamedTuple):
    """What a call showed: a query, and for each passage the candidates that it can be (several of equal text)."""

    query: int
    passages: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class CandidateTexts:
    """The first stage's lists: for each query its id, its text, and the ids and texts of its documents, best first.

    A document may have several texts, such as with and without its title; none where only ids are known.
    """

    queries: tuple[str, ...]
    texts: tuple[str, ...]
    docs: tuple[tuple[str, ...], ...]
    passages: tuple[tuple[tuple[str, ...], ...], ...]

    def shown(self, call: LoggedCall) -> ShownPassages | str:
        """Find out what a call showed; in words why not, where that cannot be told."""
        return self._by_ids(call) if call.ids else self._by_text(call)

    @cached_property
    def _number(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.queries)}

    @cached_property
    def _positions(self) -> list[dict[str, int]]:
        return [{name: place for place, name in enumerate(docs)} for docs in self.docs]

    @cached_property
    def _letters(self) -> list[list[Passage]]:
        return [
            [Passage.of(place, text) for place, texts in enumerate(passages) for text in texts]
            for passages in self.passages
        ]

    @cached_property
    def _query_letters(self) -> list[str]:
        return [Letters.of(text).every for text in self.texts]

    @cached_property
    def _starts(self) -> dict[str, set[int]]:
        found = defaultdict[str, set[int]](set)
        for query, passages in enumerate(self._letters):
            for one in passages:
                found[one.text[:_START]].add(query)
        return found

    @cached_property
    def _known(self) -> dict[tuple[int, Letters, bool], tuple[int, ...]]:
        """Passages that were matched before: windows overlap."""
        return {}

    def possible_queries(self, call: LoggedCall) -> set[int]:
        """Tell which queries a call can be about that does not match; of texts within each other the longest."""
        if call.query is not None:
            return {self._number[call.query]} if call.query in self._number else set()
        head, *_, last = parts_of(call.prompt) * 2
        for letters in (Letters.of(head).every, Letters.of(last).every):
            sizes = {query: len(text) for query, text in enumerate(self._query_letters) if text and text in letters}
            if sizes:
                return {query for query, size in sizes.items() if size == max(sizes.values())}
        return set()

    def _by_ids(self, call: LoggedCall) -> ShownPassages | str:
        query = self._number.get(call.query or "")
        if query is None:
            return f"query {shorten(call.query)} is none of the candidates'"
        strange = next((name for name in call.ids if name not in self._positions[query]), None)
        if strange is not None:
            return f"document {shorten(strange)} is no candidate of its query"
        if len(set(call.ids)) < max(len(call.ids), 2):
            return "shows one document twice" if len(call.ids) > 1 else "shows fewer than two passages"
        return ShownPassages(query, tuple((self._positions[query][name],) for name in call.ids))

    def _by_text(self, call: LoggedCall) -> ShownPassages | str:
        head, *parts = parts_of(call.prompt)
        if len(parts) < 2:
            return "shows fewer than two passages [1], [2], …"
        announced = _ANNOUNCED.search(call.prompt)
        if announced is not None and int(announced[1]) != len(parts):
            return f"announces {announced[1]} passages and shows {len(parts)}"
        keys = [Letters.of(part) for part in parts]
        around = (Letters.of(head).every, keys[-1].every)
        starts = ({key.ascii[:_START], key.every[:_START]} for key in keys)
        queries = {query for some in starts for one in some for query in self._starts.get(one, ())}
        told = [query for query in queries if call.query in (None, self.queries[query])]
        asked = [query for query in told if (text := self._query_letters[query]) and any(text in one for one in around)]
        if not asked:
            return "shows passages that are no candidates" if not queries else "asks another query than its passages'"
        found = [(query, self._passages(query, keys)) for query in asked]
        whole = [ShownPassages(query, tuple(passages)) for query, passages in found if all(passages)]
        if not whole:
            query, passages = max(found, key=lambda one: sum(map(bool, one[1])))
            missing = next(place for place, one in enumerate(passages, start=1) if not one)
            return f"passage [{missing}] is no candidate of query {self.queries[query]!r}"
        # The text of a query may hold that of another one; the longest was asked, if it holds all the others.
        whole.sort(key=lambda one: -len(self._query_letters[one.query]))
        first, *others = (self._query_letters[one.query] for one in whole)
        if any(text == first or text not in first for text in others):
            return f"fits {counted(len(whole), 'query', 'queries')} of equal passages"
        return whole[0]

    def _passages(self, query: int, keys: Sequence[Letters]) -> list[tuple[int, ...]]:
        found = []
        for place, key in enumerate(keys):
            last = place == len(keys) - 1
            if (query, key, last) not in self._known:
                self._known[query, key, last] = alike(key, self._letters[query], last=last)
            found.append(self._known[query, key, last])
        return found


class Letters(NamedTuple):
    """What of a text survives other quotes, brackets, blanks and encodings: letters and digits.

    Accents are what encodings confuse, so Latin letters beyond ASCII are left out.
    """

    ascii: str
    every: str
    """With letters of other scripts."""

    @classmethod
    def of(cls, text: str) -> Letters:
        """Find the letters of a text."""
        whole = undo_mojibake(html.unescape(text))
        plain = unicodedata.normalize("NFKC", _CONFUSED.sub("", whole))
        return cls(_ASCII.sub("", plain), _LETTERS.sub("", plain))


class Passage(NamedTuple):
    """A text of a candidate."""

    place: int
    """Of the candidate in its query's list."""
    text: str
    """Its letters."""
    foreign: bool
    """Whether most of them are of another script; a few such letters may be lost in an encoding."""

    @classmethod
    def of(cls, place: int, text: str) -> Passage:
        """Find the letters of a candidate's text."""
        letters = Letters.of(text)
        foreign = len(letters.every) > 2 * len(letters.ascii)
        return cls(place, letters.every if foreign else letters.ascii, foreign)


def undo_mojibake(text: str) -> str:
    """Read UTF-8 that was read as Latin-1 or Windows-1252, once or several times: ``ï¬`` and U+0081 are a ligature."""
    before = None
    while before != text:
        before = text
        text = _MISREAD.sub(lambda found: found[0].encode("latin-1").decode(errors="ignore"), text.translate(_WINDOWS))
    return text


def parts_of(prompt: str) -> list[str]:
    """Cut a prompt at its ``[1]``, ``[2]``, …: what comes first, and each passage; ``[2] > [1]`` is none of them."""
    starts = list[re.Match[str]]()
    for marks in _MARKS:
        for found in marks.finditer(prompt):
            if int(found[1]) == len(starts) + 1:
                starts.append(found)
            elif int(found[1]) == len(starts) == 1:  # the first one was in the instructions
                starts = [found]
        if len(starts) > 1:
            break
        starts = []
    bounds = [0, *(one.start() for one in starts), len(prompt)]
    begins = [0, *(one.end() for one in starts)]
    return [prompt[start:end] for start, end in zip(begins, bounds[1:], strict=True)]


def alike(shown: Letters, passages: Sequence[Passage], *, last: bool) -> tuple[int, ...]:
    """Return the candidates that a passage can be: those that agree with the most of it; none where little does.

    A text may have been cut, and differ by a few letters at a place; more than a template may not follow it, other than
    after the `last` passage. Only where no text begins as it does are small differences looked for in all.
    """
    starts = {text[: min(len(text), _START)] for text in shown}
    near = [one for one in passages if one.text[:_START] in starts or len(one.text) < _START]
    return _best(shown, near, last=last) or _best(shown, passages, last=last)


def _best(shown: Letters, passages: Iterable[Passage], *, last: bool) -> tuple[int, ...]:
    best, found = 0, list[int]()
    for one in passages:
        key = shown.every if one.foreign else shown.ascii
        read, end, differing = _agreeing(one.text, key)
        whole = read == len(one.text) > 0
        if not (whole or read >= _ENOUGH) or (not last and len(key) - end > _TEMPLATE):
            continue
        score = end - differing + (_SAME if whole else 0)  # a template may go on as a text does
        if score > best:
            best, found = score, []
        if score == best and one.place not in found:
            found.append(one.place)
    return tuple(found)


def _agreeing(text: str, key: str) -> tuple[int, int, int]:
    """How far a candidate's text and a prompt's agree: letters of either, and how many differ in between."""
    at, end, differing = 0, 0, 0
    while True:
        same = _same(text, key, at, end)
        at, end = at + same, end + same
        if at == len(text) or end == len(key):
            return at, end, differing
        again = next((s for s in _STEPS if _meets(text, key, at + s[0], end + s[1])), None)
        if again is None:
            return at, end, differing
        at, end, differing = at + again[0], end + again[1], differing + max(again)


def _meets(text: str, key: str, at: int, end: int) -> bool:
    part = text[at : at + _SAME]
    return len(part) == _SAME and key.startswith(part, end)


def _same(text: str, key: str, at: int, end: int) -> int:
    """Length of what two texts have in common from two places on."""
    low, high = 0, min(len(text) - at, len(key) - end)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if key.startswith(text[at : at + middle], end) else (low, middle - 1)
    return low
