"""Perplexity: a completion with ``citations`` and ``search_results``, which its text numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ranktilt.data.formats.citations.base import (
    AnswerRecord,
    mapping_in,
    numbered_citations,
    pages_of,
    records_in,
)

NAME = "Perplexity"
"""Name of the layout, as messages have it."""


def fits(record: Mapping[str, Any]) -> bool:
    """Return whether a record is a completion with a list of what was searched."""
    return "choices" in record and ("citations" in record or "search_results" in record)


def read(record: Mapping[str, Any]) -> AnswerRecord:
    """Read the pages that the text cites by number; all listed pages were consulted.

    If the text has no numbers, ``citations`` are the cited pages.
    """
    results = pages_of(record.get("search_results") or [], "search_results")
    citations = pages_of(record.get("citations") or [], "citations")
    messages = [mapping_in(choice.get("message")) for choice in records_in(record["choices"])]
    text = "\n".join(str(message.get("content") or "") for message in messages)
    answer = numbered_citations(text, citations or results)
    if answer is None:
        return AnswerRecord(cited=citations, consulted=results or None, text=text)
    return replace(answer, consulted=results or citations)
