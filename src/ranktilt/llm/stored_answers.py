"""Read a model's answer as public tools store it: a text, parts of a message, or a response.

Tools wrap an answer in layers: a server's response has a list of choices, a choice a message, a
message its content, and the content may be a list of parts. The functions here go down through the
layers, whatever their names, until they reach a text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
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
"""Types of a message's parts that are no answer: reasoning, calls of tools, and images."""
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
"""Fields of a response that lead to its text, the outermost first.

OpenAI, vLLM, Gemini, Anthropic, Cohere, Ollama, Bedrock, text-generation-inference, LangChain and
transformers have them.
"""
_OUTPUTS = frozenset(("choices", "candidates", "generations", "outputs", "results", "responses"))
"""Fields whose lists have complete answers, and not parts of an answer."""
_SPEAKERS = frozenset(("assistant", "model", "ai", "gpt", "chatbot"))
"""Names of the model in a conversation, as the role of a message."""


def stored_answer(value: Any) -> str | None:
    """Return the text of a stored answer, unchanged; None if there is none.

    `value` is a text, a list of a message's parts (reasoning is left out), a message, a response of
    a server, or a list of these. Different answers to the same request are all returned, one on
    each line. An answer that was stored as parsed JSON is returned as JSON. Anything else, such as
    a number, raises a `ValueError`.
    """
    try:
        return _text_of(value)
    except RecursionError:
        raise ValueError(
            "expected a text, a message or a response, got one that is nested too deeply"
        ) from None


def _text_of(value: Any) -> str | None:
    """Return the text within a value of any layer; None if it has none."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return _from_fields(value)
    if isinstance(value, list):
        return _from_list(value)
    raise ValueError(f"expected a text, a message or a response, got {type(value).__name__}")


def _is_one_of(value: Any, names: frozenset[str]) -> bool:
    """Tell whether a value is one of some names."""
    # Any JSON value may be here, and a list cannot be looked up in a set.
    return isinstance(value, str) and value in names


def _from_fields(fields: Mapping[str, Any]) -> str | None:
    """Return the text within an object: a response, a choice, a message, or a part of one."""
    if _is_one_of(fields.get("type"), _REASONING_TYPES) or fields.get("thought") is True:
        return None
    present = [name for name in _ENVELOPES if name in fields]
    for name in present:
        if text := _from_field(name, fields[name]):
            return text
    if isinstance(fields.get("refusal"), str):
        return str(fields["refusal"])
    if present:
        # An empty text is an empty answer; null is no answer.
        return "" if any(fields[name] == "" for name in present) else None
    # This is either a message without a text, or an answer that a tool has parsed.
    is_message = {"role", "type", "reasoning_content"} & fields.keys()
    return None if is_message else json.dumps(fields, ensure_ascii=False)


def _from_field(name: str, content: Any) -> str | None:
    """Return the text within a field of an object; None for content such as a number."""
    if name in _OUTPUTS and isinstance(content, list):
        return _alternatives(content)
    return _text_of(content) if isinstance(content, str | Mapping | list) else None


def _from_list(values: list[Any]) -> str | None:
    """Return the text of a list: a conversation, the parts of a message, or several outputs."""
    objects = [value for value in values if isinstance(value, Mapping)]
    if _have_any_field(objects, "role", "from"):
        return _last_of_model(objects)
    if not objects or len(objects) < len(values):
        return _alternatives(values)
    if _have_any_field(objects, "type", "thought"):
        texts = _texts_of(objects)
        return "".join(texts) if texts else None
    if all(set(part) == {"text"} for part in objects):
        return "".join(str(part["text"]) for part in objects)
    return _alternatives(values)


def _have_any_field(objects: list[Mapping[str, Any]], *names: str) -> bool:
    """Tell whether any of some objects has any of these fields."""
    return any(not fields.keys().isdisjoint(names) for fields in objects)


def _last_of_model(messages: list[Mapping[str, Any]]) -> str | None:
    """Return the last message of the model in a conversation."""
    for message in reversed(messages):
        if _is_one_of(message.get("role", message.get("from")), _SPEAKERS):
            return _text_of(message.get("content", message.get("value")))
    return None


def _alternatives(values: list[Any]) -> str | None:
    """Return the texts of several outputs, one on each line, and equal texts only once."""
    if values and all(type(value) is int for value in values):
        return json.dumps(values)  # a ranking that a tool has parsed
    texts = _texts_of(values)
    return "\n".join(dict.fromkeys(texts)) if texts else None


def _texts_of(values: Sequence[Any]) -> list[str]:
    """Return the texts of the values that have one."""
    texts = map(_text_of, values)
    return [text for text in texts if text is not None]
