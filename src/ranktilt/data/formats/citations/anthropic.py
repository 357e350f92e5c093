"""Anthropic: blocks of text with ``citations``, after the results of a web search.

A *block* is a part of a message: some text, or the results of a search.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ranktilt.data.formats.citations.base import (
    AnswerRecord,
    divide_words,
    flattened,
    pages_of,
    records_in,
    unrepeated,
)

NAME = "Anthropic citations"
"""Name of the layout, as messages have it."""
_RESULTS = "web_search_tool_result"
"""Type of a block with the results of a search."""


def fits(record: Mapping[str, Any]) -> bool:
    """Return whether a record is a message of blocks."""
    blocks = records_in(record.get("content"))
    return any("citations" in block or block.get("type") == _RESULTS for block in blocks)


def read(record: Mapping[str, Any]) -> AnswerRecord:
    """Read the citations of each block of text; the results of searches were consulted."""
    texts_with_pages, results = [], []
    for block in records_in(record["content"]):
        if block.get("type") == _RESULTS:
            results += pages_of(records_in(block.get("content")), _RESULTS)
        elif block.get("type") == "text":
            cited_pages = [_page(citation) for citation in records_in(block.get("citations"))]
            pages = pages_of(cited_pages, "citations")
            texts_with_pages.append((str(block.get("text", "")), pages))
    cited = flattened(pages for _text, pages in texts_with_pages)
    return AnswerRecord(
        cited=cited,
        consulted=unrepeated([*results, *cited]) if results else None,
        cited_words=divide_words(texts_with_pages),
        text="".join(text for text, _pages in texts_with_pages),
    )


def _page(citation: Mapping[str, Any]) -> Any:
    """Return the page that a citation names: an address, a source, or a document of the prompt.

    None if it names nothing.
    """
    for name in ("url", "source", "document_title"):
        if citation.get(name):
            return citation[name]
    index = citation.get("document_index")
    return None if index is None else f"document {index}"
