"""Gemini: ``groundingMetadata`` with chunks, and the parts of the text that they support."""

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
_REDIRECT = "/grounding-api-redirect/"


def fits(record: Mapping[str, Any]) -> bool:
    """Return whether a record is a response with candidates."""
    return bool(records_in(record.get("candidates")))


def read(record: Mapping[str, Any]) -> AnswerRecord:
    """Read the chunks that the text rests on, in its order; all chunks were consulted.

    Gemini links chunks through addresses of its own that expire; the title then names the domain,
    and counts as the page.
    """
    candidate = records_in(record["candidates"])[0]
    metadata = mapping_in(_first(candidate, "groundingMetadata", "grounding_metadata"))
    chunks = records_in(_first(metadata, "groundingChunks", "grounding_chunks"))
    pages = pages_of([_page(chunk) for chunk in chunks], "groundingChunks")
    sentences = []
    for support in records_in(_first(metadata, "groundingSupports", "grounding_supports")):
        indexes = _first(support, "groundingChunkIndices", "grounding_chunk_indices") or []
        segment = str(mapping_in(support.get("segment")).get("text", ""))
        sentences.append((segment, [_chunk_page(pages, index) for index in indexes]))
    parts = records_in(mapping_in(candidate.get("content")).get("parts"))
    return AnswerRecord(
        cited=flattened(cited for _segment, cited in sentences),
        consulted=pages,
        cited_words=divide_words(sentences),
        text="".join(str(part.get("text", "")) for part in parts),
    )


def _first(record: Mapping[str, Any], *names: str) -> Any:
    """Return a field that the libraries for Python and for the web spell differently."""
    for name in names:
        if record.get(name) is not None:
            return record[name]
    return None


def _page(chunk: Mapping[str, Any]) -> Any:
    source = mapping_in(_first(chunk, "web", "retrievedContext", "retrieved_context"))
    address = source.get("uri")
    if isinstance(address, str) and _REDIRECT in address and source.get("title"):
        return source["title"]
    return address or source.get("title")


def _chunk_page(pages: list[str], index: Any) -> str:
    if not isinstance(index, int) or not 0 <= index < len(pages):
        raise UserError(f"a support names chunk {index!r}, and there are {len(pages)} chunks")
    return pages[index]
