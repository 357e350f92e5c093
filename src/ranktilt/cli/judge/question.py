"""What ``ranktilt judge`` asks: how grades are compared, and on which scale.

The *gap* of twins, two versions of one text, is the difference of the grades that a judge gives
them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ranktilt.cli import options
from ranktilt.cli.app import QUESTION
from ranktilt.cli.judge.inputs import JudgedSystems
from ranktilt.cli.statistics_options import statistics_settings

if TYPE_CHECKING:
    from ranktilt.judging.grading.probes import JudgeProbes
    from ranktilt.judging.judge_grades import GradeSource
    from ranktilt.judging.result import JudgeAudit


@Parameter(name="*", group=QUESTION)
@dataclass(frozen=True, kw_only=True)
class JudgeQuestion:
    """How grades of a judge and of humans are compared."""

    measure: options.Measures = None
    pair: Annotated[
        str | None,
        Parameter(
            help="Sources of twins; positive gaps favour the first.",
            metavar="A,B",
        ),
    ] = None
    relevant_from: Annotated[
        int | None,
        Parameter(
            help="Smallest grade that counts as relevant, for binary κ (default: 1).",
            metavar="N",
            validator=options.AT_LEAST_ONE,
            converter=options.whole_number,
        ),
    ] = None
    top_grade: Annotated[
        int | None,
        Parameter(
            help="Highest grade of the scale from 0 (default: the highest human grade; 3 with "
            "--llm).",
            metavar="N",
            validator=options.AT_LEAST_ONE,
            converter=options.whole_number,
        ),
    ] = None
    human_sample: Annotated[
        int | None,
        Parameter(
            help="Show how much of the judge's error N human labels would repair.",
            metavar="N",
            validator=options.AT_LEAST_ONE,
            converter=options.whole_number,
        ),
    ] = None

    def read_sources(self) -> tuple[str, str] | None:
        """Read the two sources of ``--pair``; None for the collection's first two."""
        pairs = options.read_pairs(None if self.pair is None else [self.pair])
        return None if pairs is None else pairs[0]

    def audit(
        self,
        judges: Mapping[str, GradeSource],
        human: Path | None,
        systems: JudgedSystems,
        *,
        sources: tuple[str, str] | None,
        probes: Sequence[JudgeProbes],
    ) -> JudgeAudit:
        """Compare each judge's grades with human ones.

        Parameters
        ----------
        judges : mapping of str to grades
            Grades by the name of the judge, or the file that holds them.
        human : Path or None
            File of human grades; None for the judgments of the collection.
        systems : JudgedSystems
            The systems that humans and judges evaluate, and their documents.
        sources : (str, str) or None
            Two sources of twins; positive gaps favour the first.
        probes : sequence of JudgeProbes
            Grades of passages that were edited to sway a judge.
        """
        from ranktilt.judging.judge import MEASURES, judge

        statistics = statistics_settings()
        return judge(
            judges,
            human,
            collection=systems.collection,
            runs=systems.runs,
            families=systems.groups.families,
            clusters=systems.groups.clusters,
            measures=self.measure or MEASURES,
            pair=sources,
            relevant=self.relevant_from or 1,
            top_grade=self.top_grade,
            human_sample=self.human_sample,
            probed=probes,
            resamples=statistics.resamples,
            seed=statistics.seed,
            correction=statistics.correction,
        )
