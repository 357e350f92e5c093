"""How a language model is asked for texts, and what it will be asked: settled before anything is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ranktilt.errors import UserError
from ranktilt.generation.batched_requests import GenerationTask, Rejected
from ranktilt.generation.templates import PromptTemplate
from ranktilt.llm.base import LLM, Sampling


@dataclass(frozen=True, kw_only=True)
class GenerationSettings:
    """How texts are drawn, whatever they are made of; see `ranktilt.Rewriting` and `ranktilt.Answering`."""

    prompt: str | Path
    temperatures: tuple[float, ...] = (0.2,)
    top_p: float = 1.0
    max_tokens: int | None = None
    seed: int | None = None
    attempts: int = 3
    source: str | None = None
    first: int | None = None

    def __post_init__(self) -> None:
        for name in ("attempts", "first"):
            self._require_one(name)
        if not self.temperatures:
            raise UserError("expected a temperature, got none")
        twice = [t for t in self.temperatures if self.temperatures.count(t) > 1]
        if twice:
            raise UserError(f"temperature {twice[0]:g} is given twice; each makes one source")
        if self.source is not None and len(self.temperatures) > 1:
            n = len(self.temperatures)
            raise UserError(f"{n} temperatures make {n} sources, and one name was given: {self.source!r}")
        if self.source is not None and not self.source.strip():
            raise UserError("expected a name for the source, got an empty one")

    def _require_one(self, name: str) -> None:
        value = getattr(self, name)
        if value is not None and value < 1:
            raise UserError(f"{name} must be 1 or more, got {value}")

    def sampling(self, temperature: float) -> Sampling:
        """Return how answers are drawn at a temperature."""
        return Sampling(temperature=temperature, top_p=self.top_p, max_tokens=self.max_tokens, seed=self.seed)


@dataclass(frozen=True, eq=False, kw_only=True)
class GenerationPlan:
    """What will be asked.

    `sources` names the sources to be made, each with how its answers are drawn; `tasks` are the texts, in order; `lost`
    those that are not asked for; `chosen` counts both.
    """

    settings: GenerationSettings
    template: PromptTemplate
    sources: Mapping[str, Sampling]
    tasks: tuple[GenerationTask, ...]
    lost: tuple[Rejected, ...] = ()
    chosen: int = 0
    answer_tokens: int | None = None
    """What an answer is taken to need before it is there; None for as much as its text."""

    def questions(self) -> Iterator[tuple[PromptTemplate, GenerationTask]]:
        """Give the first request of each text, before any of its answers is flagged."""
        for task in self.tasks:
            yield self.template, task


def model_name(llm: LLM) -> str:
    """Shorten a model's name to one for a source: the last part of its path, without blanks."""
    return "_".join(llm.name.rstrip("/").rpartition("/")[2].split())
