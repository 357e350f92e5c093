"""Which query and which passages a stored prompt shows: its text is matched to the candidates', and never guessed."""

from __future__ import annotations

import html
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from ranktilt.errors import counted, shorten
from ranktilt.rankers.llm.log import LoggedCall

_START = 16
"""Signs by which passages are looked up."""
_TEMPLATE = 80
"""Most signs of a prompt between two passages, such as "Received passage [1]"."""
_ANNOUNCED = re.compile(r"(?<![\w.])(\d{1,4}) passages", re.I)
_MARKS = (
    re.compile(r"(?:^[ \t]*|: ?)\[(\d{1,4})\]:?\s+(?!>)", re.M),
    re.compile(r"(?<!\S)(?<!> )\[(\d{1,4})\]:?\s+(?!>)"),
)
"""What stands before a passage: at the beginning of a line or turn, or, in prompts without these, anywhere."""
_NO_LETTER = re.compile(r"[^0-9A-Za-z]+")
_MISREAD = re.compile("[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
"""Signs of UTF-8, each of whose bytes was read as a letter of its own."""
_WINDOWS = {
    ord(bytes([byte]).decode("cp1252")): byte
    for byte in range(128, 160)
    if byte not in b"\x81\x8d\x8f\x90\x9d"
}


Passages = tuple[tuple[tuple[str, ...], ...], ...]
"""Of each query the texts of its documents."""


class MatchedCall(NamedTuple):
    """What a call showed: a query, and for each passage the candidates that it can be (several of equal text)."""

    query: int
    passages: tuple[tuple[int, ...], ...]


class TextTable:
    """Queries and passages in one form, and what was matched before: windows overlap."""

    def __init__(
        self, form: Callable[[str], str], queries: Sequence[str], passages: Passages
    ) -> None:
        self.form, self.queries = form, [form(text) for text in queries]
        self.passages = [
            [(place, form(text)) for place, texts in enumerate(one) for text in texts]
            for one in passages
        ]
        self.known: dict[tuple[int, str, bool], tuple[int, ...]] = {}
        self.starts = defaultdict[str, set[int]](set)
        """The queries that have a passage with this beginning."""
        for query, texts in enumerate(self.passages):
            for _, text in texts:
                self.starts[text[:_START]].add(query)

    def matches(self, query: int, shown: Sequence[str]) -> list[tuple[int, ...]]:
        """Return the candidates of a query that each passage can be."""
        found = []
        for place, text in enumerate(shown):
            key = query, text, place == len(shown) - 1
            if key not in self.known:
                self.known[key] = longest_prefixes(text, self.passages[query], last=key[-1])
            found.append(self.known[key])
        return found


@dataclass(frozen=True)
class CandidateTexts:
    """The first stage's lists: for each query its id, its text, and the ids and texts of its documents, best first.

    A document may have several texts, such as with and without its title; none where only ids are
    known.
    """

    queries: tuple[str, ...]
    texts: tuple[str, ...]
    docs: tuple[tuple[str, ...], ...]
    passages: Passages

    def match(self, call: LoggedCall) -> MatchedCall | str:
        """Find out what a call showed, by ids, by texts to the sign, or by their letters; else in words why not."""
        if call.ids:
            return self._by_ids(call)
        found = self._by_text(call, self._exact)
        return self._by_text(call, self._letters) if isinstance(found, str) else found

    @cached_property
    def _number(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.queries)}

    @cached_property
    def _positions(self) -> list[dict[str, int]]:
        return [{name: place for place, name in enumerate(docs)} for docs in self.docs]

    @cached_property
    def _exact(self) -> TextTable:
        return TextTable(lambda text: "".join(text.split()), self.texts, self.passages)

    @cached_property
    def _letters(self) -> TextTable:
        return TextTable(letters_of, self.texts, self.passages)

    def possible_queries(self, call: LoggedCall) -> set[int]:
        """Tell which queries a call can be about that does not match; of texts within each other the longest."""
        if call.query is not None:
            return {self._number[call.query]} if call.query in self._number else set()
        head, *_, last = parts_of(call.prompt) * 2
        for table, part in (
            (table, part) for part in (head, last) for table in (self._exact, self._letters)
        ):
            around = table.form(part)
            sizes = {
                n: len(text) for n, text in enumerate(table.queries) if text and text in around
            }
            if sizes:
                return {query for query, size in sizes.items() if size == max(sizes.values())}
        return set()

    def _by_ids(self, call: LoggedCall) -> MatchedCall | str:
        query = self._number.get(call.query or "")
        if query is None:
            return f"query {shorten(call.query)} is none of the candidates'"
        strange = next((name for name in call.ids if name not in self._positions[query]), None)
        if strange is not None:
            return f"document {shorten(strange)} is no candidate of its query"
        if len(set(call.ids)) < max(len(call.ids), 2):
            return (
                "shows one document twice" if len(call.ids) > 1 else "shows fewer than two passages"
            )
        return MatchedCall(query, tuple((self._positions[query][name],) for name in call.ids))

    def _by_text(self, call: LoggedCall, table: TextTable) -> MatchedCall | str:
        head, *parts = parts_of(call.prompt)
        if len(parts) < 2:
            return "shows fewer than two passages [1], [2], …"
        announced = _ANNOUNCED.search(call.prompt)
        if announced is not None and int(announced[1]) != len(parts):
            return f"announces {announced[1]} passages and shows {len(parts)}"
        shown, texts = [table.form(part) for part in parts], table.queries
        queries = {query for text in shown for query in table.starts.get(text[:_START], ())}
        told = [query for query in queries if call.query in (None, self.queries[query])]
        around = (table.form(head), shown[-1])
        asked = [
            query for query in told if texts[query] and any(texts[query] in one for one in around)
        ]
        if not asked:
            return (
                "shows passages that are no candidates"
                if not queries
                else "asks another query than its passages'"
            )
        found = [(query, table.matches(query, shown)) for query in asked]
        whole = [MatchedCall(query, tuple(passages)) for query, passages in found if all(passages)]
        if not whole:
            query, passages = max(found, key=lambda one: sum(map(bool, one[1])))
            missing = next(place for place, one in enumerate(passages, start=1) if not one)
            return f"passage [{missing}] is no candidate of query {self.queries[query]!r}"
        # The text of a query may hold that of another one; the longest was asked, if it holds all
        # the others.
        whole.sort(key=lambda one: -len(texts[one.query]))
        first, *others = (texts[one.query] for one in whole)
        if any(text == first or text not in first for text in others):
            return f"fits {counted(len(whole), 'query', 'queries')} of equal passages"
        return whole[0]


def letters_of(text: str) -> str:
    """The letters a to z and digits, once broken encodings and entities are undone: what quotes and accents leave."""
    return _NO_LETTER.sub("", unicodedata.normalize("NFKC", undo_mojibake(html.unescape(text))))


def undo_mojibake(text: str) -> str:
    """Read UTF-8 that was read as Latin-1 or Windows-1252, once or several times: ``ï¬`` and U+0081 are a ligature."""
    before = None
    while before != text:
        before = text
        text = _MISREAD.sub(
            lambda found: found[0].encode("latin-1").decode(errors="ignore"),
            text.translate(_WINDOWS),
        )
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


def longest_prefixes(
    shown: str, passages: Sequence[tuple[int, str]], *, last: bool
) -> tuple[int, ...]:
    """Return the candidates whose whole text stands at the beginning of a passage; of several texts the longest.

    A template may follow, after the `last` passage any text.
    """
    least, sizes = 1 if last else max(len(shown) - _TEMPLATE, 1), dict[int, int]()
    for place, letters in passages:
        if len(letters) >= least and shown.startswith(letters):
            sizes[place] = max(sizes.get(place, 0), len(letters))
    return tuple(place for place, size in sizes.items() if size == max(sizes.values()))
