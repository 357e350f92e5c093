"""What a model is told: instructions that lie in files, with a place for the text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ranktilt.errors import UserError
from ranktilt.llm.prompts import Slots, fill, find_prompt, parse_slots

PROMPTS = ("paper", "paraphrase", "summarise", "polish")
"""Names of the prompts that come with RankTilt; ``paper`` is the instruction of Dai et al. (KDD 2024, sec. 2)."""

TITLE = "title"
"""The prompt for a title that is to be rewritten."""

_FIELDS = ("text", "title")
_LIMITS: Mapping[str, Mapping[str, float]] = {
    "summarise": {"shortest": 0.1, "longest": 1.0},
    "polish": {"copied": 1.0},
}


@dataclass(frozen=True)
class PromptTemplate:
    """An instruction with ``{text}`` at least once, ``{title}`` where it is wanted; ``{{`` and ``}}`` are braces.

    Nothing else can be filled in: a rewrite that knew a query would be tuned to it. `place` is where it was read,
    `limits` are those of the checks that suit its answers better than the usual ones.
    """

    name: str
    text: str
    place: str = ""
    limits: Mapping[str, float] = field(default_factory=dict)
    _parts: Slots = field(default=(), init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        place = self.place or f"prompt {self.name!r}"
        object.__setattr__(self, "_parts", parse_slots(self.text, place, _FIELDS, why=_why))
        if "text" not in self.fields:
            raise UserError(f"{place}: expected {{text}}, the place of the document's text, and found none")

    @property
    def fields(self) -> tuple[str, ...]:
        """What is filled in: ``text``, and ``title`` where it is used."""
        return tuple(name for name in _FIELDS if any(name == part for _, part in self._parts))

    def render(self, text: str, title: str = "") -> str:
        """Return what the model is told of a document; braces in it are left as they are."""
        return fill(self._parts, {"text": text, "title": title})


def template(name: str | Path) -> PromptTemplate:
    """Find a prompt by its name, or read it from a UTF-8 file; one with the name of a prompt is written ``./paper``."""
    own = (*PROMPTS, TITLE) if name == TITLE else PROMPTS
    found = find_prompt(name, own, "ranktilt.generation", slot="text")
    if name in own:
        return PromptTemplate(found.name, found.text, limits=_LIMITS.get(found.name, {}))
    return PromptTemplate(*found)


def _why(name: str) -> str:
    if re.match(r"quer|question|judg|qrel|relevan|grade", name, re.IGNORECASE):
        return "a rewrite that knew a query or a judgment would be tuned to it, and the audit would measure that"
    return ""
