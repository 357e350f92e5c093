"""The record between the readers of answers and their caller, and what several layouts share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from ranktilt.errors import UserError, shorten

MARKERS = re.compile(r"\[(\d{1,3}(?:\s*[,;]\s*\d{1,3})*)\]")
"""Numbers in brackets: ``[2]``, or ``[1, 3]``."""
_STOPS = r".!?\u3002\uff01\uff1f"
"""Ends of sentences; the last three are those of Chinese and Japanese."""
_SENTENCE = re.compile(rf"[^{_STOPS}\n]*(?:[{_STOPS}]+|\n|$)(?:\s*\[[\d,;\s]+\])*")
"""A sentence with the markers that follow its full stop."""
_WORD = re.compile(r"\S*\w\S*")
_ADDRESS_KEYS = ("url", "link", "uri", "href", "source_url")
_ID_KEYS = ("id", "_id", "docid", "doc_id", "docno", "document_id", "source", "file_name", "title")


@dataclass(frozen=True, kw_only=True)
class AnswerRecord:
    """One answer of an engine, with pages as the file writes them."""

    cited: Sequence[str]
    """Cited pages in the order of their citations; a page may come again."""
    consulted: Sequence[str] | None = None
    """Pages that the engine opened or was shown; None where the file does not tell."""
    retrieved: Sequence[str] | None = None
    """Results of the search that the file holds besides the answer, in their order."""
    cited_words: Mapping[str, float] = field(default_factory=dict)
    """Words of the answer that each cited page supports; a sentence with several citations is
    divided evenly among them. Empty where the file has no spans."""
    text: str = ""


def page_of(value: Any) -> str:
    """Return the address or the id of a page: a text, or a record that holds one."""
    if isinstance(value, str) and value.strip():
        return value
    page = _text_of(value)
    if not page and isinstance(value, Mapping):
        records = [value, mapping_in(value.get("metadata"))]
        page = first_text(records, _ADDRESS_KEYS) or first_text(records, _ID_KEYS)
    if page:
        return page
    raise UserError(
        f"expected a page as an address, an id or a record with url, got {shorten(value)}"
    )


def first_text(records: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> str:
    """Return the first text or number that a record has under one of the keys; empty for none."""
    for key in keys:
        for record in records:
            text = _text_of(record.get(key))
            if text:
                return text
    return ""


def _text_of(value: Any) -> str:
    """Return a text that is not blank, or a whole number as text; empty for anything else."""
    is_text = isinstance(value, str | int) and not isinstance(value, bool)
    return str(value) if is_text and str(value).strip() else ""


def pages_of(values: Any, name: str) -> list[str]:
    """Return the pages of a list; `UserError` with the field's name where it is no list."""
    if not isinstance(values, Sequence) or isinstance(values, str):
        raise UserError(f"expected a list of pages in {name!r}, got {shorten(values)}")
    try:
        return [page_of(value) for value in values]
    except UserError as error:
        raise UserError(f"{name}: {error}") from error


def records_in(values: Any) -> list[Mapping[str, Any]]:
    """Return the records of a list, leaving out all else; none for what is no list."""
    if not isinstance(values, Sequence) or isinstance(values, str):
        return []
    return [value for value in values if isinstance(value, Mapping)]


def mapping_in(values: Any) -> Mapping[str, Any]:
    """Return a record as it is, and an empty one for anything else."""
    return values if isinstance(values, Mapping) else {}


def unrepeated(pages: Iterable[str]) -> list[str]:
    """Return pages in their order, each once."""
    return list(dict.fromkeys(pages))


def flattened(lists: Iterable[Iterable[str]]) -> list[str]:
    """Return the pages of all lists, one list after the other."""
    return list(chain.from_iterable(lists))


def divide_words(sentences: Iterable[tuple[str, Sequence[str]]]) -> dict[str, float]:
    """Give the words of each sentence to the pages it cites, in even parts.

    Word counts follow Aggarwal et al. (GEO, KDD 2024, sec. 2.2.1) without their discount by
    position.
    """
    words = dict[str, float]()
    for sentence, pages in sentences:
        distinct_pages = unrepeated(pages)
        # The full stop behind a marker is no word.
        word_count = len(_WORD.findall(sentence))
        for page in distinct_pages:
            words[page] = words.get(page, 0.0) + word_count / len(distinct_pages)
    return words


def numbered_citations(text: str, pages: Sequence[str]) -> AnswerRecord | None:
    """Read an answer with numbers in brackets, which count `pages` from 1.

    None where the text has no such number, so that nothing tells which pages it cites.

    Raises
    ------
    UserError
        For a number that no page has: the list and the text do not belong together.
    """
    if not MARKERS.search(text):
        return None
    sentences = []
    for match in _SENTENCE.finditer(text):
        numbers = _numbers(match[0])
        for number in numbers:
            if not 1 <= number <= len(pages):
                message = f"the text cites [{number}], and the list has {len(pages)} pages"
                raise UserError(f"{message}; numbers count the list from 1")
        sentences.append((MARKERS.sub("", match[0]), [pages[number - 1] for number in numbers]))
    cited = flattened(sentence_pages for _sentence, sentence_pages in sentences)
    return AnswerRecord(cited=cited, cited_words=divide_words(sentences), text=text)


def _numbers(sentence: str) -> list[int]:
    numbers = list[int]()
    for marker in MARKERS.findall(sentence):
        numbers += map(int, re.findall(r"\d+", marker))
    return numbers
