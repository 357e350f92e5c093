"""What an answer cites by number, strictly: a number that no document has is never a citation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from ranktilt.data.formats.citations.base import MARKERS, numbered_citations
from ranktilt.llm.cleaning import clean_answer

EMPTY, FILTERED = "empty", "filtered"
"""Flags of an answer without a word, and of one that a content filter kept back."""
QUOTED_WORDS = 6
"""Words in a row, a number in brackets among them, that an answer repeats from its prompt."""
_NUMBER = re.compile(r"\d+")
"""A number inside a marker."""
_WORD = re.compile(r"\S+")
"""A word, with the marks at its end, as passages are compared."""
_OTHER_FORM = re.compile(
    r"\[\s*(?:(?:doc|document|source|passage|ref|reference|no)s?\.?\s*)?[#^]?\d{1,3}"
    r"(?:\s*(?:[-\u2013,;&]|and)\s*#?\d{1,3})*\s*\]|\u3010\d{1,3}[^\u3011\n]{0,40}\u3011",
    re.IGNORECASE,
)
"""Numbers in brackets that are no strict marker, such as ``[1-3]`` or ``[document 2]``."""


@dataclass(frozen=True, kw_only=True)
class CitationsRead:
    """What one answer cites."""

    positions: tuple[int, ...]
    """Positions of the cited documents in the prompt, from 1, in the order of first citations."""
    cited_words: dict[int, float]
    """Words of the answer that each of them supports."""
    outside: int
    """Numbers that no document of the prompt has."""
    quoted: int
    """Numbers that stand in a passage repeated from the prompt."""
    other_form: int
    """Numbers in brackets in another form than ``[2]`` or ``[1, 3]``, which are not read."""


def read_citations(answer: str, prompt: str, count: int) -> CitationsRead:
    """Read the citations of an answer to a prompt that numbers `count` documents from 1.

    Only ``[2]``, ``[1][3]`` and ``[1, 3]`` are citations. A number is none where it and five
    words beside it, in a row, repeat the prompt: a model that copies its documents cites nothing.
    """
    markers = _Markers.from_answer(answer, prompt, count)
    positions = [str(number) for number in range(1, count + 1)]
    record = numbered_citations(markers.text, positions)
    cited = () if record is None else tuple(dict.fromkeys(map(int, record.cited)))
    words = {} if record is None else {int(page): n for page, n in record.cited_words.items()}
    return CitationsRead(
        positions=cited,
        cited_words=words,
        outside=markers.outside,
        quoted=markers.quoted,
        other_form=markers.other_form,
    )


@dataclass(frozen=True, kw_only=True)
class _Markers:
    """The numbers in brackets of an answer, sorted by what they are."""

    text: str
    """The answer with those numbers alone that documents have."""
    outside: int
    """Numbers that no document of the prompt has."""
    quoted: int
    """Numbers in passages that repeat the prompt."""
    other_form: int
    """Numbers in brackets in a form that is not read."""

    @classmethod
    def from_answer(cls, answer: str, prompt: str, count: int) -> _Markers:
        """Sort the numbers of an answer to a prompt with `count` documents."""
        quotes = _quoted_spans(answer, prompt)
        outside = quoted = end = 0
        parts = list[str]()
        for marker in MARKERS.finditer(answer):
            numbers = [int(number) for number in _NUMBER.findall(marker[0])]
            known = [number for number in numbers if 1 <= number <= count]
            parts.append(answer[end : marker.start()])
            end = marker.end()
            if _is_within(marker, quotes):
                quoted += len(numbers)
                continue
            outside += len(numbers) - len(known)
            parts.append(f"[{', '.join(map(str, known))}]" if known else "")
        others = [form for form in _OTHER_FORM.finditer(answer) if not MARKERS.fullmatch(form[0])]
        other_form = sum(not _is_within(form, quotes) for form in others)
        text = "".join([*parts, answer[end:]])
        return cls(text=text, outside=outside, quoted=quoted, other_form=other_form)


def _is_within(match: re.Match[str], spans: Sequence[tuple[int, int]]) -> bool:
    """Return whether a match begins in one of the spans."""
    return any(start <= match.start() < stop for start, stop in spans)


def _quoted_spans(answer: str, prompt: str) -> list[tuple[int, int]]:
    """Return where an answer repeats the prompt, wherever a number in brackets is part of it."""
    words = [(word[0], word.start(), word.end()) for word in _WORD.finditer(answer)]
    passages = _passages([word for word, _start, _end in words])
    common = set(passages).intersection(_passages(_WORD.findall(prompt)))
    repeated = {passage for passage in common if any(map(MARKERS.search, passage))}
    spans = []
    for index, passage in enumerate(passages):
        if passage in repeated:
            spans.append((words[index][1], words[index + len(passage) - 1][2]))
    return spans


def _passages(words: Sequence[str]) -> list[tuple[str, ...]]:
    """Return every run of `QUOTED_WORDS` words."""
    starts = range(len(words) - QUOTED_WORDS + 1)
    return [tuple(words[start : start + QUOTED_WORDS]) for start in starts]


def check_cited_answer(source: pl.Series, raw: pl.Series, finish: pl.Series) -> pl.DataFrame:
    """Check answers: ``text`` is the answer without reasoning; an empty one has a flag."""
    texts = [clean_answer(answer).plain for answer in raw]
    flags = []
    for text, end in zip(texts, finish, strict=True):
        reason = FILTERED if end == "content_filter" else EMPTY
        flags.append([] if text else [reason])
    nothing = [None] * len(texts)
    columns = {"text": texts, "opening": nothing, "closing": nothing, "flags": flags}
    types = {
        "text": pl.String(),
        "opening": pl.String(),
        "closing": pl.String(),
        "flags": pl.List(pl.String()),
    }
    return pl.DataFrame(columns, schema=types)
