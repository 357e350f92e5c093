"""The two models of ``ranktilt generate versions``: one writes, and one grades changed facts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from ranktilt.cli.language_models import ConnectedModel
from ranktilt.errors import UserError

if TYPE_CHECKING:
    from ranktilt.generation.versions.options import Crossing
    from ranktilt.judging.grading.settings import Grading
    from ranktilt.llm.base import LLM


@dataclass(frozen=True, kw_only=True)
class VersionsModels:
    """The models that are asked; None for one that is not named."""

    writer: ConnectedModel | None
    """Model that writes."""
    judge: ConnectedModel | None
    """Model that grades changed facts."""

    @classmethod
    def read(cls, llm: str | None, judge: str | None, *, batch: bool) -> Self:
        """Connect to the models that are named."""
        if batch and llm is None and judge is None:
            raise UserError("--batch needs a model: --llm openai:MODEL, or --judge openai:MODEL")
        return cls(
            writer=ConnectedModel.read_optional(llm, batch=batch),
            judge=ConnectedModel.read_optional(judge, batch=batch),
        )

    @property
    def writer_client(self) -> LLM | None:
        """What writes the versions."""
        return None if self.writer is None else self.writer.client

    @property
    def judge_client(self) -> LLM | None:
        """What grades versions whose facts are changed."""
        return None if self.judge is None else self.judge.client

    def crossing(self, crossing: Crossing) -> Crossing:
        """Return the options of the design, with what the writer's text says of its answers."""
        return crossing if self.writer is None else crossing.with_sampling(self.writer.sampling)

    def grading(self, prompt: str | None) -> Grading:
        """Return how the judge is asked."""
        from ranktilt.judging.grading.settings import Grading

        grading = Grading(prompt=prompt or Grading.prompt)
        return grading if self.judge is None else grading.with_sampling(self.judge.sampling)
