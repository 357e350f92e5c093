"""Options of the corrections that ``ranktilt mitigate`` tries, and of what they may cost.

A *correction* is a method, such as ``offset``, at a *strength* between 0 (nothing is changed) and 1
(the full correction). Its *cost* is the effectiveness that the ranker loses; without judgments, it
is how many of the first ten documents are replaced. The *budget* is the largest cost to accept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ranktilt.cli import completion, options
from ranktilt.cli.app import QUESTION, percentage
from ranktilt.cli.mitigate.inputs import MitigateInputs
from ranktilt.cli.settings import settings
from ranktilt.cli.statistics_options import AuditStatistics

if TYPE_CHECKING:
    from ranktilt.data.runs.run import Run
    from ranktilt.mitigation.bench_result import Bench
    from ranktilt.mitigation.options import MitigationOptions
    from ranktilt.mitigation.query_split import QuerySplit
    from ranktilt.rankers.base import Ranker


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

    def mitigation_options(self, inputs: MitigateInputs, *, seed: int) -> MitigationOptions:
        """Return the options of the library; those that were not typed keep its defaults."""
        from ranktilt.mitigation.methods import read_method
        from ranktilt.mitigation.options import MitigationOptions

        defaults = MitigationOptions()
        methods = [read_method(text) for text in self.method or ()]
        return MitigationOptions(
            methods=tuple(methods) or defaults.methods,
            strengths=tuple(self.strength or defaults.strengths),
            depth=self.rerank_depth,
            by=inputs.column or "",
            always=settings().configuration.mitigate.always,
            seed=seed,
            name=inputs.baseline_name,
        )

    def mitigate(
        self,
        split: QuerySplit,
        baseline: Ranker | Run,
        measures: Sequence[str] | None,
        *,
        options: MitigationOptions,
        statistics: AuditStatistics,
    ) -> Bench:
        """Test the baseline, and compare corrections of it where it is tilted.

        Parameters
        ----------
        split : QuerySplit
            Queries to fit corrections on, to choose their strength by, and to test on.
        baseline : Ranker or Run
            What is corrected.
        measures : sequence of str or None
            Measures to report; None for the usual ones.
        options : MitigationOptions
            Methods and strengths to try, and the groups.
        statistics : AuditStatistics
            How tilts are measured and tested.
        """
        from ranktilt.mitigation.mitigate import mitigate

        return mitigate(
            split,
            baseline,
            measures,
            options=options,
            effectiveness=self.effectiveness,
            budget=self.budget,
            primary=statistics.primary,
            ties=statistics.ties,
            test=statistics.test,
            correction=statistics.correction,
            # A margin in ranks is a text, which `mitigate` refuses (`check_limits`).
            margin=statistics.margin,  # type: ignore[arg-type]
            resamples=statistics.resamples,
        )
