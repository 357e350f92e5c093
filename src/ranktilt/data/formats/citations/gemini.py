"""Gemini: ``groundingMetadata`` with chunks, and the parts of the text that they support.

A *chunk* is a page, or a piece of one, that Gemini read for the answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ranktilt.data.formats.citations.base import (
    AnswerRecord,
    divide_words,
    flattened,
    mapping_in,
    pages_of,
    records_in,
)
from ranktilt.errors import UserError

NAME = "Gemini grounding"
"""Name of the layout, as messages have it."""
_REDIRECT = "/grounding-api-redirect/"
"""Part of the addresses through which Gemini links pages."""


def fits(record: Mapping[str, Any]) -> bool:
    """Return whether a record is a response with candidates."""
    return bool(records_in(record.get("candidates")))


def read(record: Mapping[str, Any]) -> AnswerRecord:
    """Read the chunks that support the text, in the order of the text; all chunks were consulted.

    Gemini may link a page through an address of its own that expires. Its title, which names the
    domain, is then the page.
    """
    candidate = records_in(record["candidates"])[0]
    metadata = mapping_in(_first_field(candidate, "groundingMetadata", "grounding_metadata"))
    chunks = records_in(_first_field(metadata, "groundingChunks", "grounding_chunks"))
    pages = pages_of([_page(chunk) for chunk in chunks], "groundingChunks")
    segments_with_pages = []
    for support in records_in(_first_field(metadata, "groundingSupports", "grounding_supports")):
        indexes = _first_field(support, "groundingChunkIndices", "grounding_chunk_indices") or []
        segment = str(mapping_in(support.get("segment")).get("text", ""))
        segments_with_pages.append((segment, [_chunk_page(pages, index) for index in indexes]))
    parts = records_in(mapping_in(candidate.get("content")).get("parts"))
    return AnswerRecord(
        cited=flattened(cited for _segment, cited in segments_with_pages),
        consulted=pages,
        cited_words=divide_words(segments_with_pages),
        text="".join(str(part.get("text", "")) for part in parts),
    )


def _first_field(record: Mapping[str, Any], *names: str) -> Any:
    """Return the first field of these names, which libraries spell differently; None for none."""
    for name in names:
        if record.get(name) is not None:
            return record[name]
    return None


def _page(chunk: Mapping[str, Any]) -> Any:
    """Return the address of a chunk's page, or the title in place of an expiring address."""
    source = mapping_in(_first_field(chunk, "web", "retrievedContext", "retrieved_context"))
    address = source.get("uri")
    if isinstance(address, str) and _REDIRECT in address and source.get("title"):
        return source["title"]
    return address or source.get("title")


def _chunk_page(pages: list[str], index: Any) -> str:
    """Return the page of the chunk with this index; `UserError` if there is no such chunk."""
    if not isinstance(index, int) or not 0 <= index < len(pages):
        raise UserError(f"a support names chunk {index!r}, and there are {len(pages)} chunks")
    return pages[index]
