"""How a language model is asked for grades: what a user may choose."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from ranktilt.errors import UserError
from ranktilt.generation.settings import GenerationSettings
from ranktilt.option import Option


@dataclass(frozen=True, kw_only=True)
class Grading(GenerationSettings):
    """How pairs of query and document are graded; the defaults are those of UMBRELA (arXiv 2406.06519)."""

    prompt: Annotated[
        str | Path,
        Option("umbrela, basic, rubric, or a file with {query} and {passage}.", "NAME|FILE"),
    ] = "umbrela"
    pool: Annotated[
        int, Option("Grade the top K documents of each run.", "K", min=1, panel="Input")
    ] = 20
    repeats: Annotated[
        int, Option("Grade each pair this often; the median counts.", min=1, max=100)
    ] = 1
    temperatures: Annotated[
        tuple[float, ...], Option("Sampling temperature.", "T", flag="--temperature", min=0)
    ] = (0.0,)
    attempts: Annotated[
        int, Option("Maximum attempts until an answer has a grade.", min=1, max=1_000)
    ] = 1
    source: Annotated[
        str | None,
        Option("Name of the judge (default: prompt and model).", "NAME", flag="--judge-name"),
    ] = None
    text: Annotated[
        Literal["title+text", "text", "title"],
        Option("Part of a document to grade.", flag="--grade-text"),
    ] = "title+text"
    truncate: Annotated[
        bool,
        Option("Truncate texts that are too long, instead of leaving them out.", panel="Input"),
    ] = False
    first: Annotated[
        int | None,
        Option("Grade only the first N pairs, for a trial.", flag="--limit", min=1, panel="Input"),
    ] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.temperatures) > 1:
            raise UserError(f"a judge grades at one temperature, got {len(self.temperatures)}")
