"""``ranktilt compare`` and ``gate``: what two audits, or one and a limit, decide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from ranktilt.cli import options
from ranktilt.cli.app import DECIDE, INPUT, OUTPUT, QUESTION, SELDOM, verb
from ranktilt.cli.output import FILE_OR_STDOUT, Output, check_paths, text_of, with_command
from ranktilt.errors import UserError

if TYPE_CHECKING:
    from ranktilt.auditing.answer.gate import Gate

LEFT_OUT = "Percent of all queries that only one audit may hold."


@verb(
    "compare",
    "compare new.json old.json",
    "compare audit.json --baseline-run bm25",
    arguments="NEW.json [OLD.json]",
    panel=DECIDE,
)
def compare(
    new: Annotated[Path, Parameter(help="The new audit, or pairwise audit (--json).", name="NEW")],
    old: Annotated[Path | None, Parameter(help="The old audit.", name="OLD")] = None,
    /,
    *,
    baseline_run: Annotated[
        str | None,
        Parameter(
            help="Compare the audit's other runs with this one, instead of OLD.json.",
            metavar="RUN",
            group=INPUT,
        ),
    ] = None,
    max_left_out: Annotated[
        float,
        Parameter(help=LEFT_OUT, metavar="X", group=SELDOM, validator=Number(gte=0, lte=100)),
    ] = 10.0,
    max_failures: options.MaxFailures = None,
    output: Output = Output(),
) -> None:
    """Compare the tilts of two audits, or of the runs of one.

    Does the new ranker tilt more than the old one? Of two pairwise audits (ranktilt pairwise
    --json): does the new model prefer a group more?

    Differences are new - old, in points or in an estimand's own unit, with paired intervals and
    tests. One run on each side are compared whatever they are called, otherwise runs of one name.
    Queries that only one audit holds are left out and counted; more than --max-left-out percent of
    them are refused.
    """
    from ranktilt.auditing.comparison.compare import compare as compare_audits
    from ranktilt.auditing.pairwise.result import PairwiseAudit
    from ranktilt.auditing.result import Audit
    from ranktilt.reporting.report import read_result

    paths = [new] if old is None else [new, old]
    output.check(*paths)
    audits: list[Any] = [read_result(path, (Audit, PairwiseAudit)) for path in paths]
    for audit in audits:
        if isinstance(audit, PairwiseAudit):
            specs = [{**audit.spec, "ranker": audit.model}]
        else:
            specs = audit.spec.get("runs", ())
        options.require_answers(specs, max_failures)
    output.deliver(
        compare_audits(
            *audits,
            baseline_run=baseline_run,
            max_left_out=max_left_out,
            **options.sampling_of_tests(),
        )
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
        Parameter(help="An audit (ranktilt audit --json; judge, cite).", name="AUDIT"),
    ],
    /,
    *,
    max_tilt: Annotated[
        str | None,
        Parameter(
            help="Maximum tilt, either way: points, or '2 ranks' (default: 5; with --baseline "
            "none).",
            metavar="X",
            group=QUESTION,
        ),
    ] = None,
    baseline: Annotated[
        Path | None,
        Parameter(
            help="An earlier audit; the tilt may not have grown since.",
            metavar="OLD.json",
            group=INPUT,
        ),
    ] = None,
    min_effect: Annotated[
        float,
        Parameter(
            help="Growth of the tilt to tolerate, in points.",
            metavar="X",
            group=QUESTION,
            validator=options.NOT_NEGATIVE,
        ),
    ] = 0.0,
    max_loss: Annotated[
        float | None,
        Parameter(
            help="With --baseline: points of effectiveness that may be lost.",
            metavar="X",
            group=QUESTION,
            validator=options.NOT_NEGATIVE,
        ),
    ] = None,
    max_left_out: Annotated[
        float | None,
        Parameter(
            help=f"{LEFT_OUT[:-1]} (default: 10).",
            metavar="X",
            group=SELDOM,
            validator=Number(gte=0, lte=100),
        ),
    ] = None,
    measure: Annotated[
        list[str] | None,
        Parameter(
            alias="-m",
            help="Question of the audit to gate on (default: its primary one).",
            metavar="MEASURE",
            group=QUESTION,
        ),
    ] = None,
    run_name: Annotated[
        list[str] | None,
        Parameter(
            help="Run of the audit to gate on (default: all).", metavar="NAME", group=QUESTION
        ),
    ] = None,
    pair: Annotated[
        list[str] | None,
        Parameter(
            help="Groups of the audit to gate on (default: all pairs).",
            metavar="A,B",
            group=QUESTION,
        ),
    ] = None,
    max_gap: Annotated[
        float | None,
        Parameter(
            help="Of judges: maximum grade gap between twins, either way, in grades.",
            metavar="X",
            group=QUESTION,
            validator=options.NOT_NEGATIVE,
        ),
    ] = None,
    min_tau: Annotated[
        float | None,
        Parameter(
            help="Of judges: minimum Kendall's τ-b of systems with the human order.",
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
    output: Output = Output(),
) -> int:
    """Pass or fail an audit, for continuous integration.

    Exit 0: level or within the limit; 1: tilted; 3: inconclusive; 2: an error.

    Level: the 95 % interval lies inside the limit, and no side is favoured; within: one is, however
    slightly. Tilted: one is favoured, and the interval lies wholly beyond. Inconclusive: anything
    else. With --baseline, of the growth of the tilt on the queries that both audits hold: tilted if
    its interval lies above --min-effect, level if no part of it does. --max-loss asks about
    effectiveness too: beyond if a greater loss is shown, within if it is excluded. The worst of all
    comparisons counts, 1 before 3 before 0.
    """
    pairs = options.read_pairs(pair)
    from ranktilt.auditing.answer.gate import gate as gate_audit
    from ranktilt.auditing.result import Audit
    from ranktilt.auditing.source_audits import SourceAudits
    from ranktilt.citing.gate import gate_citations
    from ranktilt.citing.result import CitationAudit
    from ranktilt.judging.gate import gate_judges
    from ranktilt.judging.result import JudgeAudit
    from ranktilt.measures.margin import read_margin
    from ranktilt.reporting.report import read_result

    paths = {"--junit": junit, "--markdown": markdown, "--json": output.json}
    check_paths(
        paths,
        stdout=("--markdown", "--json"),
        inputs=[audit] if baseline is None else [audit, baseline],
    )
    limit = None if max_tilt is None else read_margin(max_tilt, "--max-tilt")
    result = read_result(audit, (Audit, SourceAudits, JudgeAudit, CitationAudit))
    if isinstance(result, CitationAudit):
        unread: dict[str, object] = {
            "--baseline": baseline,
            "--min-effect": min_effect,
            "--max-loss": max_loss is not None,
            "--max-left-out": max_left_out is not None,
            "-m": measure,
            "--run-name": run_name,
            "--pair": pair,
            "--max-gap": max_gap,
            "--min-tau": min_tau,
        }
        _refuse_unread(unread, "an audit of citations takes --max-tilt")
        if isinstance(limit, str):
            raise UserError(f"--max-tilt {limit}: expected percent of a rate, or points of a share")
        citations = gate_citations(result, max_tilt=limit, inconclusive=inconclusive)
        return _deliver_gate(with_command(citations), output, junit, markdown)
    if isinstance(result, JudgeAudit):
        unread = {
            "--max-tilt": max_tilt,
            "--baseline": baseline,
            "--min-effect": min_effect,
            "--max-loss": max_loss is not None,
            "--max-left-out": max_left_out is not None,
            "-m": measure,
            "--run-name": run_name,
            "--pair": pair,
        }
        _refuse_unread(unread, "an audit of judges takes --max-gap and --min-tau")
        decision = gate_judges(result, max_gap=max_gap, min_tau=min_tau, inconclusive=inconclusive)
        return _deliver_gate(with_command(decision), output, junit, markdown)
    _refuse_unread(
        {"--max-gap": max_gap, "--min-tau": min_tau},
        "it needs an audit of judges (ranktilt judge --json)",
    )
    earlier: Any = None if baseline is None else type(result).load(baseline)
    options.require_answers(result.spec.get("runs", ()), max_failures)
    if earlier is not None:
        options.require_answers(earlier.spec.get("runs", ()), max_failures)
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
        **options.resampling(),
    )
    return _deliver_gate(with_command(decision), output, junit, markdown)


def _refuse_unread(typed: Mapping[str, object], reason: str) -> None:
    """Refuse options that the kind of audit does not read."""
    for option, value in typed.items():
        if value:
            raise UserError(f"{option}: {reason}")


def _deliver_gate(result: Gate, output: Output, junit: Path | None, markdown: str | None) -> int:
    from ranktilt.reporting.render.junit import junit as junit_xml

    output = replace(output, format="markdown") if markdown == "-" else output
    output.deliver(
        result,
        {junit: lambda: junit_xml(result), markdown: lambda: text_of(result, "markdown").encode()},
    )
    return result.exit_code
