"""The forms in which public tools store a model's answer: a text, parts of a message, or a server's whole response."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_REASONING_TYPES = frozenset(
    [
        "thinking",
        "redacted_thinking",
        "reasoning",
        "reasoning_content",
        "reasoning_text",
        "thought",
        "tool_use",
        "tool_call",
        "function_call",
        "image",
        "image_url",
    ]
)
_ENVELOPES = (
    "choices",
    "candidates",
    "generations",
    "outputs",
    "output",
    "results",
    "responses",
    "body",
    "response",
    "message",
    "content",
    "parts",
    "output_text",
    "outputText",
    "generated_text",
    "generation",
    "completion",
    "text",
)
"""Where a response holds its text, the outermost first: OpenAI, vLLM, Gemini, Anthropic, Cohere, Ollama, Bedrock,
text-generation-inference, LangChain, transformers."""
_OUTPUTS = frozenset(("choices", "candidates", "generations", "outputs", "results", "responses"))
"""Of those the ones whose lists hold whole answers and not parts of one."""
_SPEAKERS = frozenset(("assistant", "model", "ai", "gpt", "chatbot"))


def stored_answer(value: Any) -> str | None:
    """Return the text of a stored answer, as it came; None where there is none.

    A text, a list of a message's parts (reasoning is left out), a message, a response of a server,
    or a list of these. Of several answers to one request that differ, all are returned, one a line.
    An answer that was stored as parsed JSON is its JSON text. `ValueError` for anything else, such
    as a number.
    """
    try:
        return _text_of(value)
    except RecursionError:
        raise ValueError(
            "expected a text, a message or a response, got one that is nested too deeply"
        ) from None


def _text_of(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return _from_fields(value)
    if isinstance(value, list):
        return _from_list(value)
    raise ValueError(f"expected a text, a message or a response, got {type(value).__name__}")


def _is_one_of(value: Any, names: frozenset[str]) -> bool:
    return isinstance(value, str) and value in names  # a list could not even be looked up


def _from_fields(fields: Mapping[str, Any]) -> str | None:
    if _is_one_of(fields.get("type"), _REASONING_TYPES) or fields.get("thought") is True:
        return None
    present = [name for name in _ENVELOPES if name in fields]
    for name in present:
        if text := _from_field(name, fields[name]):
            return text
    if isinstance(fields.get("refusal"), str):
        return str(fields["refusal"])
    if present:
        return "" if any(fields[name] == "" for name in present) else None
    # what remains is either a message without a text, or an answer that somebody parsed
    is_message = {"role", "type", "reasoning_content"} & fields.keys()
    return None if is_message else json.dumps(fields, ensure_ascii=False)


def _from_field(name: str, content: Any) -> str | None:
    if name in _OUTPUTS and isinstance(content, list):
        return _alternatives(content)
    return _text_of(content) if isinstance(content, str | Mapping | list) else None


def _from_list(values: list[Any]) -> str | None:
    fields = [value for value in values if isinstance(value, Mapping)]
    if any("role" in value or "from" in value for value in fields):
        spoken = [
            value for value in fields if _is_one_of(value.get("role", value.get("from")), _SPEAKERS)
        ]
        return _text_of(spoken[-1].get("content", spoken[-1].get("value"))) if spoken else None
    if len(fields) == len(values) and any(
        "type" in value or "thought" in value for value in fields
    ):
        texts = [text for value in fields if (text := _text_of(value)) is not None]
        return "".join(texts) if texts else None
    if fields and len(fields) == len(values) and all(set(value) == {"text"} for value in fields):
        return "".join(str(value["text"]) for value in fields)
    return _alternatives(values)


def _alternatives(values: list[Any]) -> str | None:
    """Return the one text of several outputs, or each that differs on a line of its own."""
    if values and all(type(value) is int for value in values):
        return json.dumps(values)  # a ranking that somebody parsed
    texts = [text for value in values if (text := _text_of(value)) is not None]
    return "\n".join(dict.fromkeys(texts)) if texts else None
