"""OpenAI: annotations of the Responses and the Chat Completions interface that cite pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ranktilt.data.formats.citations.base import (
    AnswerRecord,
    mapping_in,
    pages_of,
    records_in,
    unrepeated,
)

NAME = "OpenAI annotations"
"""Name of the layout, as messages have it."""
_CITATION_TYPES = ("url_citation", "file_citation")
"""Types of annotations that cite a page."""


def fits(record: Mapping[str, Any]) -> bool:
    """Return whether a record is a response, or a completion with annotations."""
    if any("type" in output for output in records_in(record.get("output"))):
        return True
    return any("annotations" in message for message in _messages(record))


def read(record: Mapping[str, Any]) -> AnswerRecord:
    """Read the pages that annotations cite, in their order.

    The sources of a search call were consulted. The Responses interface lists them if the request
    asks for ``include=["web_search_call.action.sources"]``.
    """
    if "output" not in record:
        return _read_completion(record)
    contents, sources, annotations = [], [], []
    for output in records_in(record["output"]):
        contents += records_in(output.get("content"))
        sources += records_in(mapping_in(output.get("action")).get("sources"))
    for content in contents:
        annotations += _annotations(content)
    cited = _pages(annotations)
    return AnswerRecord(
        cited=cited,
        consulted=unrepeated([*pages_of(sources, "sources"), *cited]) if sources else None,
        text="\n".join(str(content.get("text", "")) for content in contents),
    )


def _read_completion(record: Mapping[str, Any]) -> AnswerRecord:
    """Read a chat completion, in which each annotation has an object named after its type."""
    annotations, texts = [], []
    for message in _messages(record):
        texts.append(str(message.get("content") or ""))
        for annotation in _annotations(message):
            annotations.append(mapping_in(annotation.get(annotation["type"])))
    return AnswerRecord(cited=_pages(annotations), text="\n".join(texts))


def _messages(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the message of each choice of a chat completion."""
    return [mapping_in(choice.get("message")) for choice in records_in(record.get("choices"))]


def _annotations(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the annotations of a message, or a piece of content, that cite a page."""
    annotations = records_in(message.get("annotations"))
    return [annotation for annotation in annotations if annotation.get("type") in _CITATION_TYPES]


def _pages(annotations: list[Mapping[str, Any]]) -> list[str]:
    """Return the page of each annotation: its address, or the name or id of its file."""
    pages = [
        annotation.get("url") or annotation.get("filename") or annotation.get("file_id")
        for annotation in annotations
    ]
    return pages_of(pages, "annotations")
