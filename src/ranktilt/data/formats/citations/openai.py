"""OpenAI: ``url_citation`` annotations of the Responses and the Chat Completions interface."""

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
_CITATIONS = ("url_citation", "file_citation")


def fits(record: Mapping[str, Any]) -> bool:
    """Return whether a record is a response, or a completion with annotations."""
    if any("type" in output for output in records_in(record.get("output"))):
        return True
    return any("annotations" in message for message in _messages(record))


def read(record: Mapping[str, Any]) -> AnswerRecord:
    """Read annotations in their order; the sources of a search call are what was consulted.

    The Responses interface lists them where a request asks for
    ``include=["web_search_call.action.sources"]``.
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
    """Read a chat completion, whose annotations hold a record by the name of their type."""
    annotations, texts = [], []
    for message in _messages(record):
        texts.append(str(message.get("content") or ""))
        for annotation in _annotations(message):
            annotations.append(mapping_in(annotation.get(annotation["type"])))
    return AnswerRecord(cited=_pages(annotations), text="\n".join(texts))


def _messages(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [mapping_in(choice.get("message")) for choice in records_in(record.get("choices"))]


def _annotations(part: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    annotations = records_in(part.get("annotations"))
    return [annotation for annotation in annotations if annotation.get("type") in _CITATIONS]


def _pages(annotations: list[Mapping[str, Any]]) -> list[str]:
    pages = [
        annotation.get("url") or annotation.get("filename") or annotation.get("file_id")
        for annotation in annotations
    ]
    return pages_of(pages, "annotations")
