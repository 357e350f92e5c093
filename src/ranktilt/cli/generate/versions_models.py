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
    """Connections to the models; None for a model that is not named."""

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
        """The connection to the model that writes."""
        return None if self.writer is None else self.writer.client

    @property
    def judge_client(self) -> LLM | None:
        """The connection to the model that grades versions with changed facts."""
        return None if self.judge is None else self.judge.client

    def crossing(self, crossing: Crossing) -> Crossing:
        """Return the settings of a design with those of the writer, such as its temperature.

        A `Crossing` says which combinations of factors are written.
        """
        return crossing if self.writer is None else crossing.with_sampling(self.writer.sampling)

    def grading(self, prompt: str | None) -> Grading:
        """Return the settings of the judge; `prompt` is a name or a file, None for the default."""
        from ranktilt.judging.grading.settings import Grading

        grading = Grading(prompt=prompt or Grading.prompt)
        return grading if self.judge is None else grading.with_sampling(self.judge.sampling)
