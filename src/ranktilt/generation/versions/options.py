"""Options of versions by design."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from ranktilt.option import Option, check_fields


@dataclass(frozen=True, kw_only=True)
class Crossing:
    """Which combinations of factors documents are written in, and of which documents."""

    design: Annotated[
        Literal["8", "16", "32", "full"],
        Option("Runs of the design: a fraction of resolution IV or more, or all combinations."),
    ] = "full"
    cells: Annotated[
        int | None,
        Option("Draw K runs per document, each as often as the others (default: all).", "K", min=2),
    ] = None
    seed: Annotated[int, Option("Random seed of rules and drawn runs.", min=0)] = 0
    of: Annotated[
        str | None,
        Option(
            "Documents to write versions of, by source (default: human).",
            "SOURCE",
            flag="--source-to-rewrite",
            panel="Input",
        ),
    ] = None
    first: Annotated[
        int | None,
        Option(
            "Take only the first N documents, for a trial.", flag="--limit", min=1, panel="Input"
        ),
    ] = None
    temperature: Annotated[
        float, Option("Sampling temperature of a model.", "T", min=0, panel="Model")
    ] = 0.2
    attempts: Annotated[
        int, Option("Maximum attempts until an answer passes the checks.", min=1, panel="Model")
    ] = 3

    def __post_init__(self) -> None:
        check_fields(self, "versions")
