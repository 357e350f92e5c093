"""What ``ranktilt explain`` asks: about texts, a ranker's gap, or the factors of a design."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ranktilt.cli import completion
from ranktilt.cli.app import QUESTION
from ranktilt.cli.explain.inputs import ExplainInputs
from ranktilt.cli.statistics_options import statistics_settings
from ranktilt.errors import UserError
from ranktilt.sizes import read_points

if TYPE_CHECKING:
    from ranktilt.data.collection import Collection
    from ranktilt.data.runs.run import Run
    from ranktilt.explaining.explanation import Explanation
    from ranktilt.explaining.factors.result import FactorEffects
    from ranktilt.explaining.properties.result import ExplainedGaps
    from ranktilt.rankers.base import Ranker


@Parameter(name="*", group=QUESTION)
@dataclass(frozen=True, kw_only=True)
class ExplainQuestion:
    """Which differences of texts are measured, and whether a gap or factors are explained."""

    probe: Annotated[
        list[str] | None,
        Parameter(
            help='A probe, such as overlap, perplexity:MODEL or "perplexity:MODEL(every=0)", or '
            "a column of numbers (default: all that can run).",
            metavar="NAME",
            completer=completion.probes,
        ),
    ] = None
    attribution: Annotated[
        bool,
        Parameter(help="Show which properties of the texts go with the gap of each ranker or run."),
    ] = False
    by_factor: Annotated[
        bool,
        Parameter(
            help="Show how each factor of a designed collection (generate versions) changes "
            "ranks, for each -r.",
        ),
    ] = False
    adopters: Annotated[
        str | None,
        Parameter(
            help="With --by-factor: percentages of other documents that make an edit too, such as "
            "0,10,50,100.",
            metavar="X,Y",
        ),
    ] = None
    by: Annotated[
        str,
        Parameter(
            help="Column whose groups to compare (default: source).",
            metavar="COLUMN",
        ),
    ] = "source"

    @property
    def is_about_factors(self) -> bool:
        """Whether the factors of a designed collection are asked about."""
        return self.by_factor or self.adopters is not None

    def check_factors(self, inputs: ExplainInputs) -> None:
        """Refuse what ``--by-factor`` needs and lacks, and options that it would not read."""
        if not self.by_factor:
            raise UserError("--adopters needs --by-factor")
        if not inputs.ranker:
            raise UserError("--by-factor needs rankers: name one or more with -r")
        if self.probe or self.attribution or inputs.encoder or inputs.run or inputs.groups:
            raise UserError(
                "--by-factor examines no texts: omit --probe, --encoder, --attribution, --run and "
                "--groups"
            )

    def check_gaps(self, inputs: ExplainInputs) -> None:
        """Refuse a question about a gap without a ranker or run, and rankers without a question."""
        if inputs.folder is None and inputs.ranker:
            raise UserError(f"ranker {inputs.ranker[0]!r} needs texts: name a collection DIR")
        if not (inputs.groups and inputs.run):
            inputs.require_folder()
        if self.attribution and not (inputs.ranker or inputs.run):
            raise UserError(
                "--attribution needs rankers or runs: name one or more with -r or --run"
            )
        if inputs.ranker and not self.attribution and not inputs.run:
            raise UserError(
                "-r needs a question: --attribution (which properties of the texts go with the "
                "ranker's gap) or --by-factor; to examine an encoder's vectors: --encoder SPEC"
            )
        if not inputs.run and (inputs.score_order or inputs.queries):
            option = "--score-order" if inputs.score_order else "--queries"
            raise UserError(f"{option} needs a run: --run FILE")

    def explain_factors(self, inputs: ExplainInputs) -> FactorEffects:
        """Measure what each factor of a designed collection causes, for each ranker."""
        from ranktilt.explaining.factors.effects import factor_effects

        percentages = self._adopter_percentages()
        designed = inputs.load_texts()
        return factor_effects(designed, inputs.read_rankers(), adopters=percentages)

    def explain_twins(
        self,
        collection: Collection,
        rankings: Sequence[Ranker | Run],
        *,
        encoder: Ranker | None,
        reference: str | None,
    ) -> Explanation:
        """Measure how the texts of twins differ.

        Parameters
        ----------
        collection : Collection
            Documents with twins.
        rankings : sequence of Ranker or Run
            Those whose gaps between twins are attributed to properties of the texts.
        encoder : Ranker or None
            The encoder whose vectors of the texts are compared.
        reference : str or None
            The group that the others are compared with.
        """
        from ranktilt.explaining.explain import explain

        return explain(
            collection,
            self.probe,
            encoder,
            reference=reference,
            by=self.by,
            attribute=rankings,
        )

    def explain_groups(
        self, collection: Collection, runs: list[Run], inputs: ExplainInputs
    ) -> ExplainedGaps:
        """Show which properties of the texts go with each run's gap between groups."""
        from ranktilt.explaining.properties.gaps import explain_gaps

        statistics = statistics_settings()
        return explain_gaps(
            collection,
            runs,
            self.probe,
            by=self.by,
            pairs=inputs.reference_first(collection, self.by, None),
            seed=statistics.seed,
            correction=statistics.correction,
        )

    def _adopter_percentages(self) -> list[float]:
        """Read ``0,10,50,100``: percentages of other documents that make an edit too."""
        if self.adopters is None:
            return []
        texts = self.adopters.split(",")
        return [read_points(text, "--adopters", most=100, example=10) for text in texts]
