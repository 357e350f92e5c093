"""Options of versions by design.

A *factor* is a property of a text with two levels, a *run* a combination of one level per factor,
and a *design* the set of runs in which documents are written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, Self

import msgspec

from ranktilt.field_checks import check_fields
from ranktilt.generation.settings import Rewriting


@dataclass(frozen=True, kw_only=True)
class Crossing:
    """Options of a design: which combinations of factors, and which documents to write in them."""

    design: Literal["8", "16", "32", "full"] = "full"
    """Number of runs of the design, or all combinations.

    A design with fewer runs has resolution IV or more: no factor's effect is mixed with the
    interaction of two others.
    """
    cells: Annotated[int, msgspec.Meta(ge=2)] | None = None
    """Number of runs to draw for each document, so that each run is used equally often; all runs by
    default."""
    seed: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Random seed of rules and drawn runs."""
    of: str | None = None
    """Source (author) of the documents to write versions of; ``human`` by default."""
    first: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """For a trial: number of documents to take, from the first on."""
    temperature: Annotated[float, msgspec.Meta(ge=0)] = 0.2
    """Sampling temperature of a model."""
    top_p: float = 1.0
    """Nucleus sampling of a model: probability mass to draw from."""
    max_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """Maximum tokens of an answer."""
    model_seed: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """Random seed, for models that honour one."""
    attempts: Annotated[int, msgspec.Meta(ge=1)] = 3
    """Maximum attempts until an answer passes the checks."""

    def __post_init__(self) -> None:
        check_fields(self, "versions")

    def rewriting(self, *, prompt: str, source: str) -> Rewriting:
        """Return the options for rewrites with `prompt`, as documents of the source `source`."""
        return Rewriting(
            prompt=prompt,
            temperatures=(self.temperature,),
            top_p=self.top_p,
            max_tokens=self.max_tokens,
            seed=self.model_seed,
            attempts=self.attempts,
            source=source,
        )

    def with_sampling(self, sampling: Mapping[str, Any]) -> Self:
        """Return the same options with the sampling options that a model was named with.

        In ``openai:gpt-x(temperature=0)``, the temperature is such an option.

        Parameters
        ----------
        sampling : mapping of str to value
            Any of ``temperature``, ``top_p``, ``max_tokens`` and ``seed`` (the model's, not that
            of rules).
        """
        values = dict(sampling)
        if "seed" in values:
            values["model_seed"] = values.pop("seed")
        return replace(self, **values)
