"""The record that readers of answers return, and functions that several layouts use.

A *page* is what an answer cites: its address, or its id. A *marker* is a number in brackets in the
text of an answer, such as ``[2]``, which stands for a page of a list.
"""

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
"""Characters at the end of a sentence; the last three are those of Chinese and Japanese."""
_SENTENCE = re.compile(rf"[^{_STOPS}\n]*(?:[{_STOPS}]+|\n|$)(?:\s*\[[\d,;\s]+\])*")
"""A sentence with the markers that follow its full stop."""
_WORD = re.compile(r"\S*\w\S*")
"""A word: characters without white space, at least one of them a letter or digit."""
_ADDRESS_KEYS = ("url", "link", "uri", "href", "source_url")
"""Names of the field with a page's address, in the order of preference."""
_ID_KEYS = ("id", "_id", "docid", "doc_id", "docno", "document_id", "source", "file_name", "title")
"""Names of the field with a page's id, in the order of preference."""


@dataclass(frozen=True, kw_only=True)
class AnswerRecord:
    """One answer of an engine, with pages as the file writes them."""

    cited: Sequence[str]
    """Cited pages in the order of their citations; a page may come again."""
    consulted: Sequence[str] | None = None
    """Pages that the engine opened or was shown; None if the file does not say which."""
    retrieved: Sequence[str] | None = None
    """Results of the search in their order; None if the file does not hold them."""
    cited_words: Mapping[str, float] = field(default_factory=dict)
    """Number of words of the answer that each cited page supports.

    The words of a sentence with several citations are divided evenly among them. Empty if the file
    does not say which words a page supports.
    """
    text: str = ""
    """Text of the answer."""


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
    """Return the first text or number that a record has under one of the keys; empty for none.

    A key that comes first counts more than a record that does.
    """
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
    """Return the pages of the list in the field `name`; `UserError` if it is no list of pages."""
    if not isinstance(values, Sequence) or isinstance(values, str):
        raise UserError(f"expected a list of pages in {name!r}, got {shorten(values)}")
    try:
        return [page_of(value) for value in values]
    except UserError as error:
        raise UserError(f"{name}: {error}") from error


def records_in(values: Any) -> list[Mapping[str, Any]]:
    """Return the objects in a list; empty if there are none, or the value is no list."""
    if not isinstance(values, Sequence) or isinstance(values, str):
        return []
    return [value for value in values if isinstance(value, Mapping)]


def mapping_in(values: Any) -> Mapping[str, Any]:
    """Return an object as it is, and an empty object for any other value."""
    return values if isinstance(values, Mapping) else {}


def unrepeated(pages: Iterable[str]) -> list[str]:
    """Return pages in their order, each once."""
    return list(dict.fromkeys(pages))


def flattened(lists: Iterable[Iterable[str]]) -> list[str]:
    """Return the pages of all lists, one list after the other."""
    return list(chain.from_iterable(lists))


def divide_words(sentences: Iterable[tuple[str, Sequence[str]]]) -> dict[str, float]:
    """Return how many words each page supports, from sentences with the pages that they cite.

    The words of a sentence are divided evenly among its pages.

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
    """Read the citations of a text with markers, whose numbers count `pages` from 1.

    None if the text has no marker, so that nothing says which pages it cites.

    Raises
    ------
    UserError
        For a number beyond the pages: the list and the text do not belong together.
    """
    if not MARKERS.search(text):
        return None
    sentences_with_pages = []
    for match in _SENTENCE.finditer(text):
        numbers = _marker_numbers(match[0])
        for number in numbers:
            if not 1 <= number <= len(pages):
                message = f"the text cites [{number}], and the list has {len(pages)} pages"
                raise UserError(f"{message}; numbers count the list from 1")
        sentence = MARKERS.sub("", match[0])
        sentences_with_pages.append((sentence, [pages[number - 1] for number in numbers]))
    cited = flattened(cited_pages for _sentence, cited_pages in sentences_with_pages)
    return AnswerRecord(cited=cited, cited_words=divide_words(sentences_with_pages), text=text)


def _marker_numbers(sentence: str) -> list[int]:
    """Return the numbers in the markers of a sentence, in their order."""
    numbers = list[int]()
    for marker in MARKERS.findall(sentence):
        numbers += map(int, re.findall(r"\d+", marker))
    return numbers
