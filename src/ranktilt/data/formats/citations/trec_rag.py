"""TREC RAG: an ``answer`` of sentences with ``citations``, which count ``references`` from 0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ranktilt.data.formats.citations.base import (
    AnswerRecord,
    divide_words,
    flattened,
    pages_of,
    records_in,
)
from ranktilt.errors import UserError

NAME = "TREC RAG"
"""Name of the layout, as messages have it."""


def fits(record: Mapping[str, Any]) -> bool:
    """Return whether a record is an answer in the format of TREC's RAG track."""
    sentences = records_in(record.get("answer")) or records_in(record.get("responses"))
    return any("citations" in sentence for sentence in sentences)


def read(record: Mapping[str, Any]) -> AnswerRecord:
    """Read the citations of each sentence; the references were consulted.

    Citations are indexes of the references (2024), or ids of documents (2025), with or without a
    confidence for each.
    """
    references = pages_of(record.get("references") or [], "references")
    sentences_with_pages = []
    for sentence in records_in(record.get("answer")) or records_in(record.get("responses")):
        pages = _cited_pages(sentence.get("citations") or [], references)
        sentences_with_pages.append((str(sentence.get("text", "")), pages))
    cited = flattened(pages for _text, pages in sentences_with_pages)
    return AnswerRecord(
        cited=cited,
        consulted=references or None,
        cited_words=divide_words(sentences_with_pages),
        text=" ".join(text for text, _pages in sentences_with_pages),
    )


def _cited_pages(citations: Any, references: Sequence[str]) -> list[str]:
    """Return the pages that a sentence cites; refuse a citation that is no reference."""
    if isinstance(citations, Mapping):  # confidences by the ids of documents
        return pages_of(list(citations), "citations")
    if not isinstance(citations, Sequence) or isinstance(citations, str):
        raise UserError(f"expected a list of citations, got {citations!r}")
    pages = []
    for citation in citations:
        if not isinstance(citation, int):
            if references and citation not in references:
                raise UserError(f"a sentence cites {citation!r}, which is no reference")
            pages.append(citation)
        elif 0 <= citation < len(references):
            pages.append(references[citation])
        else:
            message = f"a sentence cites reference {citation}"
            raise UserError(f"{message}, and there are {len(references)}, counted from 0")
    return pages_of(pages, "citations")
