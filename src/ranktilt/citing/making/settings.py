"""Options for how a language model is asked for answers with citations.

A *context* is the documents that one request shows. *Twins* are two versions of a document, written
by two sources, such as a human and a language model. In a *designed collection* each document has
several versions, which differ in factors such as length. A *label* is the author that a document is
shown with. *Repeats* are several requests about one query.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, get_args

import msgspec

from ranktilt.errors import UserError, refuse_twice
from ranktilt.generation.settings import ATTEMPTS_PER_ANSWER, GenerationSettings

ShownLabel = Literal["none", "true", "swapped"]
"""The author that is printed with each document.

None, the true one, or the other of the two groups that are compared.
"""
SHOWN_LABELS: tuple[ShownLabel, ...] = get_args(ShownLabel)
"""All choices of `ShownLabel`."""
Order = Literal["shuffled", "ranked"]
"""Order of the documents in a prompt: at random, or as the run ranks them."""
_WITHOUT_LABEL: tuple[ShownLabel, ...] = ("none",)
"""The default: documents are shown without an author."""


@dataclass(frozen=True, kw_only=True)
class AnswerMaking(GenerationSettings):
    """Options of `make_answers`: which documents a model reads, in which order, how often."""

    prompt: str | Path = "numbered"
    """``numbered``, or a file with ``{documents}`` and ``{query}``."""
    context: Annotated[int, msgspec.Meta(ge=1, le=999)] = 10
    """Number of documents that a request shows, the first of the run."""
    order: Order = "shuffled"
    """Order of the documents: shuffled anew for each repeat, or as the run ranks them.

    Ranked documents of equal score are in random order.
    """
    repeats: Annotated[int, msgspec.Meta(ge=1, le=100)] = 1
    """How often each query is asked."""
    has_twins: bool = False
    """Whether both versions of each document are shown, in two orders with exchanged positions."""
    draws_versions: bool = False
    """Whether one version of each document of a designed collection is drawn for each repeat."""
    shown_labels: tuple[ShownLabel, ...] = _WITHOUT_LABEL
    """The author that is printed with each document; a query is asked once with each choice."""
    order_seed: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Random seed of the order."""
    temperatures: tuple[Annotated[float, msgspec.Meta(ge=0)], ...] = (0.0,)
    """Sampling temperature; only one."""
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
        """Whether each document is shown with its true and with the swapped label."""
        return {"true", "swapped"} <= set(self.shown_labels)

    @property
    def is_experiment(self) -> bool:
        """Whether some answers differ in one thing only, so that they can be compared."""
        return self.has_twins or self.compares_labels
