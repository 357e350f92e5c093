"""Options of ``ranktilt gate``: limits of rankers and judges, and the runs they apply to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from ranktilt.cli import options
from ranktilt.cli.app import INPUT, QUESTION, SELDOM, percentage, points
from ranktilt.cli.statistics_options import read_optional_margin

if TYPE_CHECKING:
    from ranktilt.auditing.groups import Pair
    from ranktilt.measures.margin import Margin


@Parameter(name="*", group=QUESTION)
@dataclass(frozen=True, kw_only=True)
class GateLimits:
    """Limits of a ranker's tilt and effectiveness, and the earlier audit to compare with."""

    max_tilt: Annotated[
        str | None,
        Parameter(
            help="Maximum tilt in either direction, in points, or such as '2 ranks' (default: 5; "
            "with --baseline, none).",
            metavar="X",
        ),
    ] = None
    baseline: Annotated[
        Path | None,
        Parameter(
            help="An earlier audit, to check that the tilt has not grown since, or that a judge "
            "has not changed.",
            metavar="OLD.json",
            group=INPUT,
        ),
    ] = None
    min_effect: Annotated[
        float,
        Parameter(
            help="Growth of the tilt to accept, in points; for judges, of the grade gap, in "
            "grades.",
            metavar="X",
            converter=points,
        ),
    ] = 0.0
    max_loss: Annotated[
        float | None,
        Parameter(
            help="With --baseline: loss of effectiveness to accept, in points; for judges, of κ "
            "(5 points are .05).",
            metavar="X",
            converter=points,
        ),
    ] = None
    max_left_out: Annotated[
        float | None,
        Parameter(
            help=f"{options.LEFT_OUT[:-1]} (default: 10).",
            metavar="X",
            group=SELDOM,
            converter=percentage,
        ),
    ] = None

    label_errors: options.LabelErrors = None

    def tilt_margin(self) -> Margin | None:
        """Read --max-tilt; None where it is not typed."""
        return read_optional_margin(self.max_tilt, "--max-tilt")

    def typed(self) -> dict[str, object]:
        """Return the options by their flags; those that are not typed have no value."""
        return {
            "--max-tilt": self.max_tilt,
            "--baseline": self.baseline,
            "--min-effect": self.min_effect or None,  # 0 is its default
            "--max-loss": self.max_loss,
            "--max-left-out": self.max_left_out,
            "--label-errors": self.label_errors,
        }


@Parameter(name="*", group=QUESTION)
@dataclass(frozen=True, kw_only=True)
class GateSelection:
    """The measures, runs and groups of an audit that the limits apply to."""

    measure: Annotated[
        list[str] | None,
        Parameter(
            alias="-m",
            help="Measure to gate on (default: the audit's primary one).",
            metavar="MEASURE",
        ),
    ] = None
    run_name: Annotated[
        list[str] | None,
        Parameter(help="Run to gate on (default: all).", metavar="NAME"),
    ] = None
    pair: Annotated[
        list[str] | None,
        Parameter(help="Groups to gate on (default: all pairs).", metavar="A,B"),
    ] = None

    def pairs(self) -> list[Pair] | None:
        """Read --pair; None for all pairs of the audit."""
        return options.read_pairs(self.pair)

    def typed(self) -> dict[str, object]:
        """Return the options by their flags; those that are not typed have no value."""
        return {"-m": self.measure, "--run-name": self.run_name, "--pair": self.pair}


@Parameter(name="*", group=QUESTION)
@dataclass(frozen=True, kw_only=True)
class JudgeLimits:
    """Limits of a judge's grades."""

    max_gap: Annotated[
        float | None,
        Parameter(
            help="For judges: maximum gap between the grades of twins, in either direction, in "
            "grades.",
            metavar="X",
            validator=options.NOT_NEGATIVE,
        ),
    ] = None
    min_tau: Annotated[
        float | None,
        Parameter(
            help="For judges: minimum Kendall's τ-b between their order of systems and the "
            "human one.",
            metavar="X",
            validator=Number(gte=-1, lte=1),
        ),
    ] = None

    max_shift: Annotated[
        float | None,
        Parameter(
            help="For judges, with --baseline: maximum change of the mean grade, in either "
            "direction, in grades.",
            metavar="X",
            validator=options.NOT_NEGATIVE,
        ),
    ] = None

    def typed(self) -> dict[str, object]:
        """Return the options by their flags; those that are not typed have no value."""
        return {
            "--max-gap": self.max_gap,
            "--min-tau": self.min_tau,
            "--max-shift": self.max_shift,
        }
