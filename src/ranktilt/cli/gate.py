"""``ranktilt gate``: pass or fail an audit, for continuous integration."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from ranktilt.cli import options
from ranktilt.cli.app import DECIDE, QUESTION, verb
from ranktilt.cli.gate_options import GateLimits, GateSelection, JudgeLimits
from ranktilt.cli.gate_output import GateFiles
from ranktilt.cli.output import PageOutput
from ranktilt.cli.rankers import require_answers
from ranktilt.cli.statistics_options import statistics_settings

if TYPE_CHECKING:
    from ranktilt.auditing.gate.result import Gate
    from ranktilt.auditing.groups import Pair
    from ranktilt.auditing.result import Audit
    from ranktilt.auditing.source_audits import SourceAudits
    from ranktilt.citing.experiment.result import ContextExperiment
    from ranktilt.citing.result import CitationAudit
    from ranktilt.judging.result import JudgeAudit
    from ranktilt.measures.margin import Margin

Inconclusive = Literal["fail", "pass"]
"""Whether an inconclusive check fails or passes."""


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
    from ranktilt.auditing.source_audits import SourceAudits
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


@dataclass(frozen=True, kw_only=True)
class GateRequest:
    """The limits of a gate, and the part of an audit that they apply to."""

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

        limits, statistics = self.limits, statistics_settings()
        limits_of_rankers = {
            "--max-tilt": limits.max_tilt,
            "--label-errors": limits.label_errors,
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
        typed = {**self.limits.typed(), **self.selection.typed(), **self.judge_limits.typed()}
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
