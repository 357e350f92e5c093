"""``ranktilt gate``: pass or fail an audit, for continuous integration."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from ranktilt.cli import options
from ranktilt.cli.app import DECIDE, INPUT, OUTPUT, QUESTION, SELDOM, points, verb
from ranktilt.cli.gate_output import GateFiles
from ranktilt.cli.output import FILE_OR_STDOUT, PageOutput
from ranktilt.cli.rankers import require_answers
from ranktilt.cli.statistics_options import read_optional_margin, statistics_settings


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
    max_tilt: Annotated[
        str | None,
        Parameter(
            help="Maximum tilt in either direction: points (5 or 5%), or '2 ranks' (default: 5; "
            "with --baseline, none).",
            metavar="X",
            group=QUESTION,
        ),
    ] = None,
    baseline: Annotated[
        Path | None,
        Parameter(
            help="An earlier audit, to check that the tilt has not grown since.",
            metavar="OLD.json",
            group=INPUT,
        ),
    ] = None,
    min_effect: Annotated[
        float,
        Parameter(
            help="Growth of the tilt to accept, in points.",
            metavar="X",
            group=QUESTION,
            validator=options.NOT_NEGATIVE,
            converter=points,
        ),
    ] = 0.0,
    max_loss: Annotated[
        float | None,
        Parameter(
            help="With --baseline: loss of effectiveness to accept, in points, such as 1 or 1%.",
            metavar="X",
            group=QUESTION,
            validator=options.NOT_NEGATIVE,
            converter=points,
        ),
    ] = None,
    max_left_out: Annotated[
        float | None,
        Parameter(
            help=f"{options.LEFT_OUT[:-1]} (default: 10).",
            metavar="X",
            group=SELDOM,
            validator=Number(gte=0, lte=100),
            converter=points,
        ),
    ] = None,
    measure: Annotated[
        list[str] | None,
        Parameter(
            alias="-m",
            help="Measure to gate on (default: the audit's primary one).",
            metavar="MEASURE",
            group=QUESTION,
        ),
    ] = None,
    run_name: Annotated[
        list[str] | None,
        Parameter(help="Run to gate on (default: all).", metavar="NAME", group=QUESTION),
    ] = None,
    pair: Annotated[
        list[str] | None,
        Parameter(
            help="Groups to gate on (default: all pairs).",
            metavar="A,B",
            group=QUESTION,
        ),
    ] = None,
    max_gap: Annotated[
        float | None,
        Parameter(
            help="For judges: maximum gap between the grades of twins, in either direction, in "
            "grades.",
            metavar="X",
            group=QUESTION,
            validator=options.NOT_NEGATIVE,
        ),
    ] = None,
    min_tau: Annotated[
        float | None,
        Parameter(
            help="For judges: minimum Kendall's τ-b between their order of systems and the "
            "human one.",
            metavar="X",
            group=QUESTION,
            validator=Number(gte=-1, lte=1),
        ),
    ] = None,
    inconclusive: Annotated[
        Literal["fail", "pass"],
        Parameter(help="Exit code when inconclusive: fail (3) or pass (0).", group=QUESTION),
    ] = "fail",
    max_failures: options.MaxFailures = None,
    junit: Annotated[
        Path | None,
        FILE_OR_STDOUT,
        Parameter(help="Save JUnit XML.", metavar="FILE.xml", group=OUTPUT),
    ] = None,
    markdown: Annotated[
        str | None,
        FILE_OR_STDOUT,
        Parameter(
            help="Save a summary for a pull request; - for stdout.",
            metavar="FILE.md",
            group=OUTPUT,
        ),
    ] = None,
    output: PageOutput = PageOutput(),
) -> int:
    """Pass or fail an audit, for continuous integration.

    Exit 0: level or within the limit; 1: tilted; 3: inconclusive; 2: an error.

    Level: the 95 % interval lies inside the limit, and no side is favoured. Within: it lies inside,
    but a side is favoured, however slightly. Tilted: a side is favoured, and the whole interval
    lies beyond the limit. Inconclusive: anything else.

    --baseline gates the growth of the tilt, on the queries in both audits: tilted if its interval
    lies above --min-effect, level if no part of it does. --max-loss also gates effectiveness:
    beyond if a greater loss is shown, within if it is ruled out. The worst comparison counts, 1
    before 3 before 0.
    """
    pairs = options.read_pairs(pair)
    from ranktilt.auditing.gate.gate import gate as gate_audit
    from ranktilt.auditing.result import Audit
    from ranktilt.auditing.source_audits import SourceAudits
    from ranktilt.citing.experiment.result import ContextExperiment
    from ranktilt.citing.result import CitationAudit
    from ranktilt.judging.result import JudgeAudit
    from ranktilt.reporting.report import read_result

    files = GateFiles(output=output, junit=junit, markdown=markdown)
    files.check([audit] if baseline is None else [audit, baseline])
    limit = read_optional_margin(max_tilt, "--max-tilt")
    result = read_result(audit, (Audit, SourceAudits, JudgeAudit, CitationAudit, ContextExperiment))
    of_judges = {"--max-gap": max_gap, "--min-tau": min_tau}
    of_rankers = {
        "--max-tilt": max_tilt,
        "--baseline": baseline,
        "--min-effect": min_effect,
        "--max-loss": max_loss is not None,
        "--max-left-out": max_left_out is not None,
        "-m": measure,
        "--run-name": run_name,
        "--pair": pair,
    }
    if isinstance(result, JudgeAudit):
        options.refuse_unread(of_rankers, "an audit of judges takes --max-gap and --min-tau")
        from ranktilt.judging.gate import gate_judges

        decision = gate_judges(result, max_gap=max_gap, min_tau=min_tau, inconclusive=inconclusive)
        return files.deliver(decision)
    if isinstance(result, CitationAudit | ContextExperiment):
        unread = {option: value for option, value in of_rankers.items() if option != "--max-tilt"}
        options.refuse_unread({**unread, **of_judges}, "an audit of citations takes --max-tilt")
        from ranktilt.citing.experiment.gate import gate_experiment
        from ranktilt.citing.gate import gate_citations

        if isinstance(result, ContextExperiment):
            return files.deliver(gate_experiment(result, max_tilt=limit, inconclusive=inconclusive))
        return files.deliver(gate_citations(result, max_tilt=limit, inconclusive=inconclusive))
    options.refuse_unread(of_judges, "it needs an audit of judges (ranktilt judge --json)")
    earlier: Any = None if baseline is None else type(result).load(baseline)
    for checked in (result, earlier):
        if checked is not None:
            require_answers(checked.spec.get("runs", ()), max_failures)
    statistics = statistics_settings()
    decision = gate_audit(
        result,
        max_tilt=limit,
        measures=measure or None,
        runs=run_name or None,
        pairs=pairs,
        baseline=earlier,
        min_effect=min_effect,
        max_loss=max_loss,
        max_left_out=max_left_out,
        inconclusive=inconclusive,
        resamples=statistics.resamples,
        seed=statistics.seed,
    )
    return files.deliver(decision)
