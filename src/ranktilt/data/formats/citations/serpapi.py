"""SerpAPI: the AI overview of a search with its ``organic_results``, and Google's AI mode.

An overview is a list of *blocks* (paragraphs and lists), which name the *references* that they cite
by their indexes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ranktilt.data.formats.citations.base import (
    AnswerRecord,
    divide_words,
    flattened,
    mapping_in,
    pages_of,
    records_in,
    unrepeated,
)
from ranktilt.errors import UserError

NAME = "SerpAPI"
"""Name of the layout, as messages have it."""


def fits(record: Mapping[str, Any]) -> bool:
    """Return whether a record is a response of SerpAPI to a search."""
    has_answer = "ai_overview" in record or {"text_blocks", "references"} <= record.keys()
    return has_answer or {"search_parameters", "organic_results"} <= record.keys()


def read(record: Mapping[str, Any]) -> AnswerRecord:
    """Read the overview's references in the order in which its text cites them.

    A search without an overview is an answer without citations. References that no block of the
    text names follow in their own order.
    """
    answer = mapping_in(record.get("ai_overview")) or record
    if "page_token" in answer and not answer.get("references"):
        message = "the overview was not fetched, only its page_token"
        raise UserError(f"{message}; ask for it with engine=google_ai_overview")
    references = pages_of(answer.get("references") or [], "references")
    snippets_with_pages = []
    for block in _blocks(answer.get("text_blocks")):
        snippet = str(block.get("snippet", ""))
        pages = [references[index] for index in _reference_indexes(block, len(references))]
        snippets_with_pages.append((snippet, pages))
    cited = flattened(pages for _snippet, pages in snippets_with_pages)
    organic = records_in(record.get("organic_results"))
    retrieved = pages_of([result for result in organic if result.get("link")], "organic_results")
    return AnswerRecord(
        cited=unrepeated([*cited, *references]),
        retrieved=retrieved if "organic_results" in record else None,
        cited_words=divide_words(snippets_with_pages),
        text="\n".join(snippet for snippet, _pages in snippets_with_pages if snippet),
    )


def _blocks(blocks: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the blocks of a text and the entries of its lists, at any depth."""
    for block in records_in(blocks):
        yield block
        for key in ("list", "text_blocks"):
            yield from _blocks(block.get(key))


def _reference_indexes(block: Mapping[str, Any], reference_count: int) -> Sequence[int]:
    """Return the references that a block cites, as indexes from 0; refuse an index beyond them."""
    indexes = block.get("reference_indexes") or []
    for index in indexes:
        if not isinstance(index, int) or not 0 <= index < reference_count:
            message = f"reference_indexes names {index!r}"
            raise UserError(f"{message}, and there are {reference_count} references")
    return indexes
