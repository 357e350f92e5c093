"""Prompts: instructions in files, with slots for the text.

A *slot*, such as ``{text}``, is the place in an instruction where the document or query goes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ranktilt.errors import UserError
from ranktilt.llm.prompts import Slots, fill, find_prompt, parse_slots

PROMPTS = ("paper", "paraphrase", "summarise", "polish", "shorten", "informal")
"""Names of the prompts that come with RankTilt.

``paper`` is the instruction of Dai et al. (KDD 2024, sec. 2).
"""

TITLE = "title"
"""Prompt for the rewrite of a title."""

ANSWER_PROMPTS = ("passage", "question")
"""Names of the prompts for a document written from a query.

``question`` is the query alone, as for HC3 (Guo et al., 2023), whose answers Askari et al. (2023)
train on.
"""

DOCUMENT_SLOTS = ("text", "title")
"""Slots of a prompt about a document."""
QUERY_SLOTS = ("query",)
"""Slots of a prompt about a query."""
_LIMITS_BY_PROMPT: Mapping[str, Mapping[str, float]] = {
    "summarise": {"shortest": 0.1, "longest": 1.0},
    "polish": {"copied": 1.0},
    "shorten": {"shortest": 0.2, "longest": 0.9},
}
"""Limits for the answers to our own prompts that differ from the usual ones.

Each is a share of the words of the text to rewrite, as in
`ranktilt.generation.checks.RewriteLimits`. A summary may have as few as a tenth of these words. A
polished text is flagged only if it is a complete copy.
"""


@dataclass(frozen=True, kw_only=True)
class PromptTemplate:
    """An instruction that names its first slot at least once; ``{{`` stands for a brace.

    Only the document, or the query, can be filled in. A model that saw a judgment would write a
    text to please it, and the audit would then measure the prompt.
    """

    name: str
    """Name of the prompt."""
    text: str
    """The instruction, with its slots."""
    path: str = ""
    """Path of the prompt's file; empty for RankTilt's prompts."""
    limits: Mapping[str, float] = field(default_factory=dict)
    """Limits that replace the usual ones of `ranktilt.generation.checks.RewriteLimits`, by name."""
    slots: tuple[str, ...] = DOCUMENT_SLOTS
    """Slots that the instruction may have; it must have the first of them."""
    _parts: Slots = field(default=(), init=False, repr=False, compare=False)
    """The instruction, divided at its slots."""

    def __post_init__(self) -> None:
        subject = self.path or f"prompt {self.name!r}"
        object.__setattr__(self, "_parts", parse_slots(self.text, subject, self.slots))
        slot = self.slots[0]
        if slot not in self.fields:
            content = "query" if self.slots == QUERY_SLOTS else "document's text"
            raise UserError(
                f"{subject}: expected {{{slot}}}, where the {content} goes, and found none"
            )

    @property
    def fields(self) -> tuple[str, ...]:
        """Slots that the prompt has, in their order."""
        names = {name for _text, name in self._parts}
        return tuple(slot for slot in self.slots if slot in names)

    def render(self, text: str, title: str = "") -> str:
        """Fill in a document with its title, or a query as the text; their braces stay as they are.

        A prompt for queries has one slot, and the title is not used.
        """
        return fill(self._parts, dict(zip(self.slots, (text, title), strict=False)))


def template(name: str | Path) -> PromptTemplate:
    """Find a prompt by its name, or read it from a UTF-8 file.

    A file with the name of a prompt is written ``./paper``.
    """
    # An error for an unknown name lists `names`. The prompt for titles is not in that list: our
    # code asks for it, users do not.
    names = (*PROMPTS, TITLE) if name == TITLE else PROMPTS
    prompt = find_prompt(name, names, "ranktilt.generation", slot="text")
    if name in names:
        return PromptTemplate(
            name=prompt.name, text=prompt.text, limits=_LIMITS_BY_PROMPT.get(prompt.name, {})
        )
    return PromptTemplate(name=prompt.name, text=prompt.text, path=prompt.location)


def answer_template(name: str | Path) -> PromptTemplate:
    """Find a prompt for documents from queries, or read it from a file, as `template` does."""
    prompt = find_prompt(name, ANSWER_PROMPTS, "ranktilt.generation", slot="query")
    path = "" if name in ANSWER_PROMPTS else prompt.location
    return PromptTemplate(name=prompt.name, text=prompt.text, path=path, slots=QUERY_SLOTS)
