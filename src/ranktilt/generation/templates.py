"""What a model is told: instructions that lie in files, with a place for the text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ranktilt.errors import UserError
from ranktilt.llm.prompts import Slots, fill, find_prompt, parse_slots

PROMPTS = ("paper", "paraphrase", "summarise", "polish", "shorten", "informal")
"""Names of the prompts that come with RankTilt; ``paper`` is the instruction of Dai et al. (KDD 2024, sec. 2)."""

TITLE = "title"
"""The prompt for a title that is to be rewritten."""

ANSWER_PROMPTS = ("passage", "question")
"""Names of the prompts for a document written from a query; ``question`` is the query alone, as it was asked for HC3
(Guo et al., 2023), whose answers Askari et al. (2023) train on."""

DOCUMENT_SLOTS = ("text", "title")
QUERY_SLOTS = ("query",)
_LIMITS: Mapping[str, Mapping[str, float]] = {
    "summarise": {"shortest": 0.1, "longest": 1.0},
    "polish": {"copied": 1.0},
    "shorten": {"shortest": 0.2, "longest": 0.9},
}


@dataclass(frozen=True)
class PromptTemplate:
    """An instruction with its first slot at least once and the others where they are wanted; ``{{`` is a brace.

    Nothing else can be filled in: a text that was made with a judgment in sight would be tuned to
    it. `place` is where it was read, `limits` are those of the checks that suit its answers better
    than the usual ones.
    """

    name: str
    text: str
    place: str = ""
    limits: Mapping[str, float] = field(default_factory=dict)
    slots: tuple[str, ...] = DOCUMENT_SLOTS
    _parts: Slots = field(default=(), init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        place, slot = self.place or f"prompt {self.name!r}", self.slots[0]
        object.__setattr__(self, "_parts", parse_slots(self.text, place, self.slots))
        if slot not in self.fields:
            whose = "query" if self.slots == QUERY_SLOTS else "document's text"
            raise UserError(f"{place}: expected {{{slot}}}, where the {whose} goes, and found none")

    @property
    def fields(self) -> tuple[str, ...]:
        """What is filled in, in the order of the slots."""
        return tuple(name for name in self.slots if any(name == part for _, part in self._parts))

    def render(self, text: str, title: str = "") -> str:
        """Return what the model is told of a document, or of a query; braces in it are left as they are."""
        return fill(self._parts, dict(zip(self.slots, (text, title), strict=False)))


def template(name: str | Path) -> PromptTemplate:
    """Find a prompt by its name, or read it from a UTF-8 file; one with the name of a prompt is written ``./paper``."""
    own = (*PROMPTS, TITLE) if name == TITLE else PROMPTS
    found = find_prompt(name, own, "ranktilt.generation", slot="text")
    if name in own:
        return PromptTemplate(found.name, found.text, limits=_LIMITS.get(found.name, {}))
    return PromptTemplate(found.name, found.text, found.location)


def answer_template(name: str | Path) -> PromptTemplate:
    """Find a prompt for documents written from queries, or read it from a file, as `template` does."""
    found = find_prompt(name, ANSWER_PROMPTS, "ranktilt.generation", slot="query")
    place = "" if name in ANSWER_PROMPTS else found.location
    return PromptTemplate(found.name, found.text, place, slots=QUERY_SLOTS)
