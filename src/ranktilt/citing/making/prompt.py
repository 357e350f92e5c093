"""The prompt for an answer: numbered documents, written so that texts cannot fake the form."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ranktilt.errors import UserError
from ranktilt.generation.templates import PromptTemplate
from ranktilt.llm.prompts import find_prompt
from ranktilt.rankers.llm.passage_text import one_line

CITE_PROMPTS = ("numbered",)
"""Names of the prompts that come with RankTilt."""
_AUTHOR = re.compile(r"[(\uff08]\s*author\s*[:\uff1a]", re.IGNORECASE)
"""How a text could name an author as prompts do, also with full-width brackets and colons."""
_SLOTS = ("documents", "query")
"""Placeholders of a prompt, which are filled in this order."""


def cite_template(name: str | Path) -> PromptTemplate:
    """Find a prompt for answers by its name, or read it from a UTF-8 file.

    The file has ``{documents}`` and ``{query}``.
    """
    prompt = find_prompt(name, CITE_PROMPTS, "ranktilt.citing.making", slot="documents")
    path = "" if name in CITE_PROMPTS else prompt.location
    template = PromptTemplate(name=prompt.name, text=prompt.text, path=path, slots=_SLOTS)
    if "query" not in template.fields:
        raise UserError(f"{path}: expected {{query}}, where the question goes, and found none")
    return template


def document_lines(texts: Sequence[str], labels: Sequence[str | None] | None = None) -> str:
    """Write documents for a prompt, a line each: ``[1] text``, or ``[1] (author: human) text``.

    `labels` are the authors to show; None for none. A number in square brackets inside a text gets
    round brackets, so that no document passes for another. The special marks of chat models are
    broken, so that no text passes for an instruction. If authors are shown, a text cannot name one
    in the same form.
    """
    lines = []
    for number, text in enumerate(texts, start=1):
        label = None if labels is None else labels[number - 1]
        plain = one_line(text if labels is None else _AUTHOR.sub("(author", text))
        author = "" if label is None else f"(author: {one_line(label)}) "
        lines.append(f"[{number}] {author}{plain}")
    return "\n".join(lines)
