"""Options of the corrections that ``ranktilt mitigate`` tries, and of what they may cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ranktilt.cli import completion, options
from ranktilt.cli.app import QUESTION, percentage
from ranktilt.cli.settings import settings

if TYPE_CHECKING:
    from ranktilt.mitigation.options import MitigationOptions


@Parameter(name="*", group=QUESTION)
@dataclass(frozen=True, kw_only=True)
class Corrections:
    """Which corrections are tried, and what they may cost."""

    method: Annotated[
        list[str] | None,
        Parameter(
            help="causal, projection, fair-rerank[:METHOD], interleave or offset, with options "
            "as in fair-rerank(target=5), causal(lm=FOLDER,instrument=FACTOR); repeat for "
            "several.",
            metavar="NAME",
            completer=completion.methods,
        ),
    ] = None
    strength: Annotated[
        list[float] | None,
        Parameter(
            help="Correction strength to try; 1 applies the full correction "
            "(default: 0.2, 0.4, 0.6, 0.8, 1).",
            metavar="S",
        ),
    ] = None
    rerank_depth: Annotated[
        int,
        Parameter(
            help="Number of top results to correct (default: 100).",
            metavar="K",
            validator=options.AT_LEAST_ONE,
            converter=options.whole_number,
        ),
    ] = 100
    effectiveness: Annotated[
        str,
        Parameter(help="Measure of what a correction costs (default: nDCG@10).", metavar="MEASURE"),
    ] = "nDCG@10"
    budget: Annotated[
        float | None,
        Parameter(
            help="Loss of --effectiveness to accept, in points (default: 1). Without judgments: "
            "part of the top ten documents to replace, in percent (default: 20).",
            metavar="X",
            converter=percentage,
        ),
    ] = None

    def mitigation_options(
        self, *, by: str, pair: tuple[str, str] | None, seed: int
    ) -> MitigationOptions:
        """Return the options of the library; those that were not typed keep its defaults."""
        from ranktilt.mitigation.methods import read_method
        from ranktilt.mitigation.options import MitigationOptions

        usual = MitigationOptions()
        methods = [read_method(text) for text in self.method or ()]
        return MitigationOptions(
            methods=tuple(methods) or usual.methods,
            strengths=tuple(self.strength or usual.strengths),
            depth=self.rerank_depth,
            by=by,
            pair=pair,
            always=settings().configuration.mitigate.always,
            seed=seed,
        )
