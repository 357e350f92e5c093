"""Options of versions by design."""

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
    """Runs of the design: a fraction of resolution IV or more, or all combinations."""
    cells: Annotated[int, msgspec.Meta(ge=2)] | None = None
    """Draw so many runs per document, each as often as the others; all by default."""
    seed: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Random seed of rules and drawn runs."""
    of: str | None = None
    """Source of the documents to write versions of; ``human`` by default."""
    first: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """Take only the first documents, for a trial."""
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
        """Return the options of rewrites with a prompt, under the name of a source."""
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
        """Return the same options with the sampling options of a model's text."""
        values = dict(sampling)
        if "seed" in values:
            values["model_seed"] = values.pop("seed")
        return replace(self, **values)
