"""Options of generated texts: shared ones, those of rewrites, and those of answers to queries.

An option that is None is not set. Its value then comes from the model, the prompt or the checks. A
*source* is the author of a document, such as ``human`` or a model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import msgspec

from ranktilt.errors import UserError
from ranktilt.field_checks import check_fields

if TYPE_CHECKING:
    from ranktilt.llm.base import Sampling

ATTEMPTS_PER_ANSWER = 1_000
"""Request numbers that are reserved for the attempts at one answer.

Requests with the same prompt are told apart by number, so that no stored answer is used for two of
them. The attempts at a query's first document are numbered from 1, those at its second document
from 1,001, and so on.
"""


@dataclass(frozen=True, kw_only=True)
class GenerationSettings:
    """Options of all generated texts."""

    prompt: str | Path
    """Name of a prompt, or a file."""
    temperatures: tuple[Annotated[float, msgspec.Meta(ge=0)], ...] = (0.2,)
    """Sampling temperatures; the texts of each become a separate source."""
    top_p: float = 1.0
    """Nucleus sampling: probability mass to draw from, the likeliest tokens first."""
    max_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """Maximum tokens of an answer."""
    seed: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """Random seed, for models that honour one."""
    attempts: Annotated[int, msgspec.Meta(ge=1, le=ATTEMPTS_PER_ANSWER)] = 3
    """Maximum attempts until an answer passes the checks."""
    source: str | None = None
    """Name of the new source. By default the model's name; for a rewrite at temperature T it ends
    in ``-tmpT``."""
    first: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """For a trial: number of documents to rewrite, or of queries to answer, from the first on."""

    def __post_init__(self) -> None:
        check_fields(self, "generation")
        if not self.temperatures:
            raise UserError("expected a temperature, got none")
        for temperature in self.temperatures:
            if self.temperatures.count(temperature) > 1:
                raise UserError(
                    f"temperature {temperature:g} is given twice; each temperature makes one source"
                )
        if self.source is not None and len(self.temperatures) > 1:
            count = len(self.temperatures)
            raise UserError(
                f"{count} temperatures make {count} sources, and one name was given: "
                f"{self.source!r}"
            )
        if self.source is not None and not self.source.strip():
            raise UserError("expected a name for the source, got an empty one")

    def with_sampling(self, sampling: Mapping[str, Any]) -> Self:
        """Return the same settings with the sampling options that a model was named with.

        In ``openai:gpt-x(temperature=0)``, the temperature is such an option.

        Parameters
        ----------
        sampling : mapping of str to value
            Any of ``temperature``, ``top_p``, ``max_tokens`` and ``seed``.
        """
        values = dict(sampling)
        if "temperature" in values:
            values["temperatures"] = (values.pop("temperature"),)
        return replace(self, **values)

    def sampling(self, temperature: float) -> Sampling:
        """Return how a model draws its answers at one of the temperatures."""
        from ranktilt.llm.base import Sampling

        return Sampling(
            temperature=temperature, top_p=self.top_p, max_tokens=self.max_tokens, seed=self.seed
        )


@dataclass(frozen=True, kw_only=True)
class Rewriting(GenerationSettings):
    """Options of `rewrite`; the defaults follow Dai et al. (KDD 2024).

    Where `shortest`, `longest` or `copied` is None, the limit that suits the prompt is used
    (`ranktilt.generation.checks.RewriteLimits`).
    """

    prompt: str | Path = "paper"
    """``paper``, ``paraphrase``, ``summarise``, ``polish``, ``shorten``, ``informal``, or a file
    with ``{text}``."""
    titles: Literal["keep", "rewrite", "drop"] = "keep"
    """Keep titles, rewrite them or drop them."""
    of: str = "human"
    """Rewrite the documents of this source; if no document has a source, all get this one."""
    truncate: bool = False
    """Truncate texts that are too long, instead of leaving them out."""
    shortest: float | None = None
    """Flag answers that have fewer words than this share of the text's words."""
    longest: float | None = None
    """Flag answers that have more words than this multiple of the text's words."""
    copied: float | None = None
    """Flag as copies answers that hold this share of the words in the same order."""


@dataclass(frozen=True, kw_only=True)
class Answering(GenerationSettings):
    """Options of `answer`; several documents per query need a temperature above 0."""

    prompt: str | Path = "passage"
    """``passage``, ``question``, or a file with ``{query}``."""
    n: Annotated[int, msgspec.Meta(ge=1)] = 1
    """Documents per query."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n > 1 and 0 in self.temperatures:
            raise UserError(
                f"at temperature 0 a model repeats itself: {self.n} documents per query need a "
                "higher one"
            )
