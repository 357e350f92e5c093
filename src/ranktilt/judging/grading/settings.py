"""Options for grades by a language model, which is called the judge.

A grade is a whole number that says how relevant a document is to a query.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from ranktilt.errors import UserError
from ranktilt.generation.settings import ATTEMPTS_PER_ANSWER, GenerationSettings


@dataclass(frozen=True, kw_only=True)
class Grading(GenerationSettings):
    """Options of `grade`: how to grade pairs of query and document.

    The defaults are those of UMBRELA (arXiv 2406.06519).
    """

    prompt: str | Path = "umbrela"
    """``umbrela``, ``basic``, ``rubric``, or a file with ``{query}`` and ``{passage}``."""
    pool: Annotated[int, msgspec.Meta(ge=1)] = 20
    """Number of top documents of each run to grade."""
    repeats: Annotated[int, msgspec.Meta(ge=1, le=100)] = 1
    """Number of times to grade each pair; the median counts."""
    temperatures: tuple[Annotated[float, msgspec.Meta(ge=0)], ...] = (0.0,)
    """Sampling temperature; only one."""
    attempts: Annotated[int, msgspec.Meta(ge=1, le=ATTEMPTS_PER_ANSWER)] = 1
    """Most times to ask for one grade, until an answer has one."""
    source: str | None = None
    """Name of the judge; by default the name of the prompt and of the model."""
    text: Literal["title+text", "text", "title"] = "title+text"
    """Part of a document that the judge reads."""
    truncate: bool = False
    """Truncate texts that are too long, instead of leaving them out."""
    first: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """Grade only the first pairs, for a trial."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.temperatures) > 1:
            raise UserError(f"a judge grades at one temperature, got {len(self.temperatures)}")
