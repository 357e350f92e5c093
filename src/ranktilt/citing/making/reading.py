"""Read the citations of an answer: the numbers in brackets by which it names documents.

A *prompt* shows documents with numbers from 1, and asks for an answer that cites them as ``[2]``.
Reading is strict: a number that no document has is never a citation, nor is a number that the
answer only copies from its prompt.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from ranktilt.data.formats.citations.base import MARKERS, numbered_citations
from ranktilt.llm.cleaning import clean_answer

EMPTY, FILTERED = "empty", "filtered"
"""Flags of an answer without a word, and of one that a content filter held back."""
QUOTED_WORDS = 6
"""Number of words in a row that count as copied from the prompt if the prompt has them too."""
_NUMBER = re.compile(r"\d+")
"""A number within brackets."""
_WORD = re.compile(r"\S+")
"""A word, with its punctuation."""
_OTHER_FORM = re.compile(
    r"\[\s*(?:(?:doc|document|source|passage|ref|reference|no)s?\.?\s*)?[#^]?\d{1,3}"
    r"(?:\s*(?:[-\u2013,;&]|and)\s*#?\d{1,3})*\s*\]|\u3010\d{1,3}[^\u3011\n]{0,40}\u3011",
    re.IGNORECASE,
)
"""Numbers in brackets in other forms than ``[2]`` or ``[1, 3]``: ``[1-3]``, ``[document 2]``."""


@dataclass(frozen=True, kw_only=True)
class CitationsRead:
    """The citations of one answer, and the numbers in brackets that are none."""

    positions: tuple[int, ...]
    """Positions of the cited documents in the prompt, from 1, in the order of first citations."""
    cited_words: dict[int, float]
    """Number of words of the answer that each cited document supports, by its position."""
    outside: int
    """Count of numbers that no document of the prompt has."""
    quoted: int
    """Count of numbers in passages that are copied from the prompt."""
    other_form: int
    """Count of brackets in another form than ``[2]`` or ``[1, 3]``, which are not read."""


def read_citations(answer: str, prompt: str, count: int) -> CitationsRead:
    """Read the citations of an answer to a prompt that numbers `count` documents from 1.

    Only ``[2]``, ``[1][3]`` and ``[1, 3]`` are citations. A number is no citation if it is one of
    six words in a row that are also in the prompt: a model that copies its documents cites nothing.
    """
    markers = _Markers.from_answer(answer, prompt, count)
    positions = [str(number) for number in range(1, count + 1)]
    record = numbered_citations(markers.text, positions)  # None for an answer without citations
    cited = () if record is None else tuple(dict.fromkeys(map(int, record.cited)))
    cited_words = {} if record is None else record.cited_words
    return CitationsRead(
        positions=cited,
        cited_words={int(position): words for position, words in cited_words.items()},
        outside=markers.outside,
        quoted=markers.quoted,
        other_form=markers.other_form,
    )


@dataclass(frozen=True, kw_only=True)
class _Markers:
    """An answer without the numbers that are no citations, and how many these were."""

    text: str
    """The answer, in which only numbers of documents are left."""
    outside: int
    """Count of numbers that no document of the prompt has."""
    quoted: int
    """Count of numbers in passages that are copied from the prompt."""
    other_form: int
    """Count of brackets in a form that is not read."""

    @classmethod
    def from_answer(cls, answer: str, prompt: str, count: int) -> _Markers:
        """Examine the numbers of an answer to a prompt with `count` documents."""
        quotes = _quoted_spans(answer, prompt)
        outside = quoted = end = 0
        parts = list[str]()  # of the answer, as far as `end`, with changed brackets
        for marker in MARKERS.finditer(answer):
            numbers = [int(number) for number in _NUMBER.findall(marker[0])]
            of_documents = [number for number in numbers if 1 <= number <= count]
            parts.append(answer[end : marker.start()])
            end = marker.end()
            if _is_within(marker, quotes):
                quoted += len(numbers)
                continue
            outside += len(numbers) - len(of_documents)
            parts.append(f"[{', '.join(map(str, of_documents))}]" if of_documents else "")
        others = [form for form in _OTHER_FORM.finditer(answer) if not MARKERS.fullmatch(form[0])]
        other_form = sum(not _is_within(form, quotes) for form in others)
        text = "".join([*parts, answer[end:]])
        return cls(text=text, outside=outside, quoted=quoted, other_form=other_form)


def _is_within(match: re.Match[str], spans: Sequence[tuple[int, int]]) -> bool:
    """Return whether a match begins in one of the spans."""
    return any(start <= match.start() < stop for start, stop in spans)


def _quoted_spans(answer: str, prompt: str) -> list[tuple[int, int]]:
    """Return start and end of each passage with a number that an answer copies from its prompt."""
    words = [(word[0], word.start(), word.end()) for word in _WORD.finditer(answer)]
    passages = _passages([word for word, _start, _end in words])
    common_passages = set(passages).intersection(_passages(_WORD.findall(prompt)))
    copied = {passage for passage in common_passages if any(map(MARKERS.search, passage))}
    spans = []
    for index, passage in enumerate(passages):
        if passage in copied:
            _first_word, start, _end = words[index]
            _last_word, _start, end = words[index + len(passage) - 1]
            spans.append((start, end))
    return spans


def _passages(words: Sequence[str]) -> list[tuple[str, ...]]:
    """Return every `QUOTED_WORDS` words in a row."""
    starts = range(len(words) - QUOTED_WORDS + 1)
    return [tuple(words[start : start + QUOTED_WORDS]) for start in starts]


def check_cited_answer(source: pl.Series, raw: pl.Series, finish: pl.Series) -> pl.DataFrame:
    """Return each answer without its reasoning, and a flag if nothing is left.

    *Reasoning* is what some models write before their answer, such as in ``<think>``. All checks of
    answers have the same parameters and columns (those of
    `ranktilt.generation.batched_requests.Check`), so that some are of no use here.

    Parameters
    ----------
    source : polars.Series
        Documents of the prompts, on which the check does not depend.
    raw : polars.Series
        Answers of the model.
    finish : polars.Series
        The server's reason why each answer ended, such as ``length`` or ``content_filter``.

    Returns
    -------
    polars.DataFrame
        ``text``, the answer without reasoning, ``flags``, and ``opening`` and ``closing``, which
        are not used here.
    """
    texts = [clean_answer(answer).plain for answer in raw]
    flags = []
    for text, finish_reason in zip(texts, finish, strict=True):
        flag = FILTERED if finish_reason == "content_filter" else EMPTY
        flags.append([] if text else [flag])
    nulls = [None] * len(texts)
    columns = {"text": texts, "opening": nulls, "closing": nulls, "flags": flags}
    types = {
        "text": pl.String(),
        "opening": pl.String(),
        "closing": pl.String(),
        "flags": pl.List(pl.String()),
    }
    return pl.DataFrame(columns, schema=types)
