"""How a language model is asked for answers with citations: what a user may choose."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, get_args

import msgspec

from ranktilt.errors import UserError, refuse_twice
from ranktilt.generation.settings import ATTEMPTS_PER_ANSWER, GenerationSettings

ShownLabel = Literal["none", "true", "swapped"]
"""Which author a document is shown with: none, its own, or that of the other group."""
SHOWN_LABELS: tuple[ShownLabel, ...] = get_args(ShownLabel)
"""All choices of `ShownLabel`."""
Order = Literal["shuffled", "ranked"]
"""Order of the documents in a prompt: by chance, or as the run ranks them."""
_WITHOUT_LABEL: tuple[ShownLabel, ...] = ("none",)
"""The default: documents are shown without an author."""


@dataclass(frozen=True, kw_only=True)
class AnswerMaking(GenerationSettings):
    """Options of `make_answers`: which documents a model reads, in which order, how often."""

    prompt: str | Path = "numbered"
    """``numbered``, or a file with ``{documents}`` and ``{query}``."""
    context: Annotated[int, msgspec.Meta(ge=1, le=999)] = 10
    """Documents that a request shows: the first of the run."""
    order: Order = "shuffled"
    """Order of the documents: shuffled anew for each repeat, or as the run ranks them, where
    chance orders those of equal score."""
    repeats: Annotated[int, msgspec.Meta(ge=1, le=100)] = 1
    """Ask for each query this often."""
    has_twins: bool = False
    """Show both versions of each document, and ask again with their positions exchanged."""
    draws_versions: bool = False
    """Show one version of each document of a designed collection, drawn anew for each repeat."""
    shown_labels: tuple[ShownLabel, ...] = _WITHOUT_LABEL
    """Which author each document is shown with; several ask again with each."""
    order_seed: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Seed of the order."""
    temperatures: tuple[Annotated[float, msgspec.Meta(ge=0)], ...] = (0.0,)
    """Sampling temperature: one alone."""
    attempts: Annotated[int, msgspec.Meta(ge=1, le=ATTEMPTS_PER_ANSWER)] = 1
    """Maximum attempts until an answer is not empty."""
    text: Literal["title+text", "text", "title"] = "title+text"
    """Part of a document to show."""
    first: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """Ask only the first queries, for a trial."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.temperatures) > 1:
            raise UserError(f"answers are asked at one temperature, got {len(self.temperatures)}")
        if not self.shown_labels:
            raise UserError(f"expected labels to show ({', '.join(SHOWN_LABELS)}), got none")
        refuse_twice(self.shown_labels, "label to show")
        if self.draws_versions and (self.has_twins or self.shown_labels != _WITHOUT_LABEL):
            raise UserError(
                "the effects of factors (--by-factor) go with neither twins nor shown labels"
            )
        if self.has_twins and self.context % 2:
            raise UserError(
                f"a context of {self.context} documents cannot hold both versions of each; choose "
                "an even number"
            )

    @property
    def compares_labels(self) -> bool:
        """Whether each document is shown with either label, so that their effect can be told."""
        return {"true", "swapped"} <= set(self.shown_labels)

    @property
    def is_experiment(self) -> bool:
        """Whether answers differ in one thing only, which is to be compared."""
        return self.has_twins or self.compares_labels
