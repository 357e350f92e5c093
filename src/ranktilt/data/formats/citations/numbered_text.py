"""A text with numbers in brackets, and the list of pages that they count, as applications log it.

LangChain's ``source_documents`` and ``context`` and LlamaIndex's ``source_nodes`` are such lists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ranktilt.data.formats.citations.base import (
    AnswerRecord,
    mapping_in,
    numbered_citations,
    pages_of,
)
from ranktilt.errors import UserError

NAME = "text with numbered sources"
"""Name of the layout, as messages have it."""
_TEXT_KEYS = ("text", "answer", "response", "result", "output", "content", "output_text")
"""Names of the field with the text, in the order of preference."""
_LIST_KEYS = (
    "sources",
    "references",
    "source_documents",
    "source_nodes",
    "context",
    "contexts",
    "documents",
    "citations",
    "search_results",
)
"""Names of the field with the list of pages, in the order of preference."""


def fits(record: Mapping[str, Any]) -> bool:
    """Return whether a record has a text and a list of pages."""
    has_text = _key(record, _TEXT_KEYS, str) is not None
    return has_text and _key(record, _LIST_KEYS, list) is not None


def read(record: Mapping[str, Any]) -> AnswerRecord:
    """Read the pages that the text cites by number, in its order; all listed were consulted.

    A text without numbers cites no page, unless the list is called ``citations``.
    """
    text_key, list_key = _key(record, _TEXT_KEYS, str), _key(record, _LIST_KEYS, list)
    if text_key is None or list_key is None:
        raise UserError("expected a text and a list of its sources")
    pages = pages_of([_page(value) for value in record[list_key]], list_key)
    text = record[text_key]
    answer = numbered_citations(text, pages)
    if answer is None and list_key == "citations":
        return AnswerRecord(cited=pages, text=text)
    if answer is None:
        # An answer that says nothing of its sources cites none of them.
        return AnswerRecord(cited=(), consulted=pages, text=text)
    return replace(answer, consulted=pages)


def _key(record: Mapping[str, Any], names: Sequence[str], kind: type) -> str | None:
    """Return the first of these names whose field is of a type; None if there is no such field."""
    for name in names:
        if isinstance(record.get(name), kind):
            return name
    return None


def _page(value: Any) -> Any:
    """Return a page as it is listed, or the document in a node of LlamaIndex."""
    record = mapping_in(value)
    node = mapping_in(record.get("node"))
    metadata = mapping_in(node.get("metadata"))
    for name in ("url", "source", "file_name"):
        if metadata.get(name):
            return metadata[name]
    if node:
        return node.get("id_") or node.get("id")
    return value
