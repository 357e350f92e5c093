"""``ranktilt gate``: pass or fail an audit, for continuous integration.

A *gate* compares an audit with limits: of the *tilt*, how far a ranker leans to one side, or of a
judge's grades. Each kind of audit takes limits of its own, and refuses those of the others. A limit
may also be on the change since an earlier audit, the *baseline*. A check is *inconclusive* if its
95 % interval lies across the limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from ranktilt.cli import options
from ranktilt.cli.app import DECIDE, INPUT, OUTPUT, QUESTION, SELDOM, percentage, points, verb
from ranktilt.cli.output import FILE_OR_STDOUT, PageOutput, check_paths, text_of, with_command
from ranktilt.cli.rankers import require_answers
from ranktilt.cli.statistics_options import read_optional_margin, statistics_settings

if TYPE_CHECKING:
    from ranktilt.auditing.gate.result import Gate
    from ranktilt.auditing.groups import Pair
    from ranktilt.auditing.result import Audit
    from ranktilt.auditing.sources.source_audits import SourceAudits
    from ranktilt.citing.experiment.result import ContextExperiment
    from ranktilt.citing.result import CitationAudit
    from ranktilt.judging.result import JudgeAudit
    from ranktilt.measures.margin import Margin

Inconclusive = Literal["fail", "pass"]
"""Whether an inconclusive check fails or passes."""

# ---- options ------------------------------------------------------------------------------------


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
        float | None,
        Parameter(
            help="Growth of the tilt to accept, in points; for judges, of the grade gap, in "
            "grades.",
            metavar="X",
            converter=points,
        ),
    ] = None
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
            "--min-effect": self.min_effect,
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


@Parameter(name="*", group=OUTPUT)
@dataclass(frozen=True, kw_only=True)
class GateFiles:
    """The files of a decision, besides those that every verb can write."""

    junit: Annotated[
        Path | None, FILE_OR_STDOUT, Parameter(help="Save JUnit XML.", metavar="FILE.xml")
    ] = None
    markdown: Annotated[
        str | None,
        FILE_OR_STDOUT,
        Parameter(help="Save a summary for a pull request; - for stdout.", metavar="FILE.md"),
    ] = None

    def check(self, inputs: Sequence[Path], output: PageOutput) -> None:
        """Refuse files that cannot be written, or that are among the `inputs`."""
        check_paths(
            {"--junit": self.junit, "--markdown": self.markdown, **output.paths},
            stdout=("--markdown", "--json"),
            inputs=inputs,
        )
        output.check_page()

    def deliver(self, decision: Gate, output: PageOutput) -> int:
        """Print the decision, write its files, and return its exit code."""
        from ranktilt.reporting.render.junit import junit

        result = with_command(decision)
        if self.markdown == "-":
            output = replace(output, format="markdown")
        output.deliver(
            result,
            {
                self.junit: lambda: junit(result),
                self.markdown: lambda: text_of(result, "markdown").encode(),
            },
        )
        return result.exit_code


# ---- the decision, for each kind of audit -------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class GateRequest:
    """The limits of a gate, and the part of an audit that they apply to.

    Limits and pairs are parsed before the audit is read, so that a typing error is reported first.
    """

    limits: GateLimits
    """Limits of tilt and effectiveness."""
    max_tilt: Margin | None
    """Largest tilt in either direction, in points or ranks: ``limits.max_tilt``, parsed."""
    selection: GateSelection
    """Measures, runs and groups that the limits apply to."""
    pairs: list[Pair] | None
    """Pairs of groups: ``selection.pair``, parsed; None for all pairs."""
    judge_limits: JudgeLimits
    """Limits of a judge's grades."""
    inconclusive: Inconclusive
    """Whether an inconclusive check fails or passes."""
    max_failures: float | None
    """Percentage of a language model's answers that may be unreadable."""

    def gate_judges(self, audit: JudgeAudit) -> Gate:
        """Gate an audit of judges; refuse the limits of rankers."""
        from ranktilt.judging.gate import DriftLimits, gate_judges

        limits = self.limits
        statistics = statistics_settings()
        limits_of_rankers = {
            "--max-tilt": limits.max_tilt,
            "--label-errors": limits.label_errors,
            "--max-failures": self.max_failures,
            **self.selection.typed(),
        }
        reason = (
            "an audit of judges takes --max-gap, --min-tau, and with --baseline --max-loss, "
            "--max-shift and --min-effect"
        )
        options.refuse_unread(limits_of_rankers, reason)
        drift = DriftLimits(
            baseline=None if limits.baseline is None else type(audit).load(limits.baseline),
            min_effect=limits.min_effect,
            max_loss=limits.max_loss,
            max_shift=self.judge_limits.max_shift,
            max_left_out=limits.max_left_out,
        )
        return gate_judges(
            audit,
            max_gap=self.judge_limits.max_gap,
            min_tau=self.judge_limits.min_tau,
            drift=drift,
            inconclusive=self.inconclusive,
            resamples=statistics.resamples,
            seed=statistics.seed,
        )

    def gate_citations(self, audit: CitationAudit) -> Gate:
        """Gate an audit of citations; refuse every limit but --max-tilt."""
        from ranktilt.citing.gate import gate_citations

        options.refuse_unread({"--label-errors": self.limits.label_errors}, options.CITE_CORRECTS)
        self._refuse_all_but_tilt("an audit of citations takes --max-tilt")
        return gate_citations(audit, max_tilt=self.max_tilt, inconclusive=self.inconclusive)

    def gate_experiment(self, experiment: ContextExperiment) -> Gate:
        """Gate an experiment with twins or labels in prompts; refuse every limit but --max-tilt."""
        from ranktilt.citing.experiment.gate import gate_experiment

        self._refuse_all_but_tilt("an experiment with contexts takes --max-tilt")
        return gate_experiment(experiment, max_tilt=self.max_tilt, inconclusive=self.inconclusive)

    def _refuse_all_but_tilt(self, reason: str) -> None:
        """Refuse every limit that was typed but --max-tilt."""
        typed = {
            **self.limits.typed(),
            **self.selection.typed(),
            **self.judge_limits.typed(),
            "--max-failures": self.max_failures,
        }
        del typed["--max-tilt"]
        options.refuse_unread(typed, reason)

    def gate_rankers(self, audit: Audit | SourceAudits) -> Gate:
        """Gate an audit of rankers, alone or against an earlier one; refuse limits of judges."""
        from ranktilt.auditing.gate.gate import gate as gate_audit

        reason = "it needs an audit of judges (ranktilt judge --json)"
        options.refuse_unread(self.judge_limits.typed(), reason)
        limits = self.limits
        # The earlier result is of the same kind: an audit, or audits of several sources.
        earlier: Any = None if limits.baseline is None else type(audit).load(limits.baseline)
        for result in (audit, earlier):
            if result is not None:
                require_answers(result.spec.get("runs", ()), self.max_failures)
        statistics = statistics_settings()
        return gate_audit(
            audit,
            max_tilt=self.max_tilt,
            measures=self.selection.measure or None,
            runs=self.selection.run_name or None,
            pairs=self.pairs,
            baseline=earlier,
            min_effect=limits.min_effect,
            max_loss=limits.max_loss,
            max_left_out=limits.max_left_out,
            inconclusive=self.inconclusive,
            resamples=statistics.resamples,
            seed=statistics.seed,
            label_errors=limits.label_errors,
        )


@verb(
    "gate",
    "gate audit.json --max-tilt 10",
    "gate new.json --baseline old.json --junit gate.xml",
    arguments="AUDIT.json",
    panel=DECIDE,
)
def gate(
    audit: Annotated[
        Path,
        Parameter(help="An audit (--json of ranktilt audit, judge or cite).", name="AUDIT"),
    ],
    /,
    *,
    limits: GateLimits = GateLimits(),
    selection: GateSelection = GateSelection(),
    judge_limits: JudgeLimits = JudgeLimits(),
    inconclusive: Annotated[
        Inconclusive,
        Parameter(help="Exit code when inconclusive: fail (3) or pass (0).", group=QUESTION),
    ] = "fail",
    max_failures: options.MaxFailures = None,
    files: GateFiles = GateFiles(),
    output: PageOutput = PageOutput(),
) -> int:
    """Pass or fail an audit, for continuous integration.

    Exit 0: level or within the limit; 1: tilted; 3: inconclusive; 2: an error.

    Level: the 95 % interval lies inside the limit, and no side is favoured. Within: it lies inside,
    but a side is favoured, however slightly. Tilted: a side is favoured, and the whole interval
    lies beyond the limit. Inconclusive: anything else.

    --baseline gates the growth of the tilt, on the queries in both audits: tilted if its interval
    lies above --min-effect, level if no part of it does. --max-loss also gates effectiveness:
    beyond if a greater loss is shown, within if it is ruled out. For judges, --max-loss gates the
    agreement with humans, and --max-shift the mean grade. The worst comparison counts, 1 before 3
    before 0.
    """
    pairs = selection.pairs()
    files.check([audit] if limits.baseline is None else [audit, limits.baseline], output)
    from ranktilt.auditing.result import Audit
    from ranktilt.auditing.sources.source_audits import SourceAudits
    from ranktilt.citing.experiment.result import ContextExperiment
    from ranktilt.citing.result import CitationAudit
    from ranktilt.judging.result import JudgeAudit
    from ranktilt.reporting.report import read_result

    request = GateRequest(
        limits=limits,
        max_tilt=limits.tilt_margin(),
        selection=selection,
        pairs=pairs,
        judge_limits=judge_limits,
        inconclusive=inconclusive,
        max_failures=max_failures,
    )
    result = read_result(audit, (Audit, SourceAudits, JudgeAudit, CitationAudit, ContextExperiment))
    if isinstance(result, JudgeAudit):
        decision = request.gate_judges(result)
    elif isinstance(result, CitationAudit):
        decision = request.gate_citations(result)
    elif isinstance(result, ContextExperiment):
        decision = request.gate_experiment(result)
    else:
        decision = request.gate_rankers(result)
    return files.deliver(decision, output)
