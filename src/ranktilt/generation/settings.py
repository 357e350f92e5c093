"""How a language model is asked for texts: what a user may choose."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from ranktilt.errors import UserError
from ranktilt.option import Option, check_fields

if TYPE_CHECKING:
    from ranktilt.llm.base import Sampling

DRAWS_APART = 1_000
"""Attempts between two answers to one prompt: each is a request of its own, whatever the number of either."""


@dataclass(frozen=True, kw_only=True)
class GenerationSettings:
    """How texts are drawn, whatever they are made of."""

    prompt: str | Path
    temperatures: Annotated[
        tuple[float, ...],
        Option(
            "Sampling temperature; several make one source each.", "T", flag="--temperature", min=0
        ),
    ] = (0.2,)
    top_p: Annotated[float, Option("Nucleus sampling: probability mass to draw from.", "P")] = 1.0
    max_tokens: Annotated[int | None, Option("Maximum tokens of an answer.", min=1)] = None
    seed: Annotated[int | None, Option("Random seed, for models that honour one.", min=0)] = None
    attempts: Annotated[
        int, Option("Maximum attempts until an answer passes the checks.", min=1, max=DRAWS_APART)
    ] = 3
    source: Annotated[
        str | None,
        Option(
            "Name of the new source (default: the model's, and -tmpT).",
            "NAME",
            flag="--source-name",
        ),
    ] = None
    first: Annotated[
        int | None,
        Option("Take only the first N, for a trial.", flag="--limit", min=1, panel="Input"),
    ] = None

    def __post_init__(self) -> None:
        check_fields(self, "generation")
        if not self.temperatures:
            raise UserError("expected a temperature, got none")
        twice = [t for t in self.temperatures if self.temperatures.count(t) > 1]
        if twice:
            raise UserError(
                f"temperature {twice[0]:g} is given twice; each temperature makes one source"
            )
        if self.source is not None and len(self.temperatures) > 1:
            n = len(self.temperatures)
            raise UserError(
                f"{n} temperatures make {n} sources, and one name was given: {self.source!r}"
            )
        if self.source is not None and not self.source.strip():
            raise UserError("expected a name for the source, got an empty one")

    def sampling(self, temperature: float) -> Sampling:
        """Return how answers are drawn at a temperature."""
        from ranktilt.llm.base import Sampling

        return Sampling(
            temperature=temperature, top_p=self.top_p, max_tokens=self.max_tokens, seed=self.seed
        )


@dataclass(frozen=True, kw_only=True)
class Rewriting(GenerationSettings):
    """How documents are rewritten; the defaults are those of Dai et al. (KDD 2024).

    Limits that are not given are those that suit the prompt
    (`ranktilt.generation.checks.RewriteLimits`).
    """

    prompt: Annotated[
        str | Path,
        Option(
            "paper, paraphrase, summarise, polish, shorten, informal, or a file with {text}.",
            "NAME|FILE",
        ),
    ] = "paper"
    titles: Annotated[
        Literal["keep", "rewrite", "drop"], Option("Titles: keep, rewrite or drop them.")
    ] = "keep"
    of: Annotated[
        str,
        Option(
            "Rewrite the documents of this source; names it where no document has one.",
            "SOURCE",
            flag="--source-to-rewrite",
            panel="Input",
        ),
    ] = "human"
    truncate: Annotated[
        bool,
        Option("Truncate texts that are too long, instead of leaving them out.", panel="Input"),
    ] = False
    shortest: Annotated[
        float | None,
        Option(
            "Flag answers below this ratio of words, rewrite to text.", flag="--min-length-ratio"
        ),
    ] = None
    longest: Annotated[
        float | None,
        Option(
            "Flag answers above this ratio of words, rewrite to text.", flag="--max-length-ratio"
        ),
    ] = None
    copied: Annotated[
        float | None,
        Option(
            "Flag as copies answers that hold this share of the words in the same order.",
            flag="--max-copied",
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class Answering(GenerationSettings):
    """How documents are written from queries; several of one query need a temperature above 0."""

    prompt: Annotated[
        str | Path, Option("passage, question, or a file with {query}.", "NAME|FILE")
    ] = "passage"
    n: Annotated[
        int, Option("Documents per query.", short="-n", flag="--documents-per-query", min=1)
    ] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n > 1 and 0 in self.temperatures:
            raise UserError(
                f"at temperature 0 a model repeats itself: {self.n} documents of a query need a higher one"
            )
