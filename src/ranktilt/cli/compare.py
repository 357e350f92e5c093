"""``ranktilt compare``: whether the tilts of two audits, or of two runs of one, differ.

An *audit* is a saved result (``--json``) of ``audit``, ``pairwise``, ``judge`` or ``cite``. Its
*tilt* is how far a ranker, a judge or an engine leans to one group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from ranktilt.cli import options
from ranktilt.cli.app import DECIDE, INPUT, SELDOM, percentage, verb
from ranktilt.cli.output import PageOutput
from ranktilt.cli.rankers import require_answers
from ranktilt.cli.statistics_options import statistics_settings


@verb(
    "compare",
    "compare new.json old.json",
    "compare audit.json --baseline-run bm25",
    "compare audit.json",
    arguments="NEW.json [OLD.json] [MORE.json…]",
    panel=DECIDE,
)
def compare(
    new: Annotated[
        Path,
        Parameter(
            help="The new audit (--json of ranktilt audit, pairwise, judge or cite).", name="NEW"
        ),
    ],
    old: Annotated[Path | None, Parameter(help="The old audit.", name="OLD")] = None,
    /,
    *more: Annotated[
        Path, Parameter(help="More audits: their runs are ranked together.", name="MORE")
    ],
    baseline_run: Annotated[
        str | None,
        Parameter(
            help="Compare the audit's other runs with this one, instead of OLD.json.",
            metavar="RUN",
            group=INPUT,
        ),
    ] = None,
    max_left_out: Annotated[
        float | None,
        Parameter(
            help=f"{options.LEFT_OUT[:-1]} (default: 10).",  # without the full stop in between
            metavar="X",
            group=SELDOM,
            converter=percentage,
        ),
    ] = None,
    label_errors: options.LabelErrors = None,
    max_failures: options.MaxFailures = None,
    output: PageOutput = PageOutput(),
) -> None:
    """Compare the tilts of two audits, or of the runs in one; rank three runs or more.

    Does the new ranker tilt more than the old one? For two pairwise audits (ranktilt pairwise
    --json): does the new model prefer a group more? For two audits of citations (ranktilt cite
    --json): does the new engine favour a group more, and do both cite the same pages? For two
    audits of judges (ranktilt judge --json): does the new judge agree with humans, grade and order
    systems as the old one did?

    Differences are new - old, in points or in a measure's own unit, with paired intervals and
    tests. If each audit has one run, the two are compared whatever their names; otherwise runs with
    the same name are. Queries in only one audit are left out and counted. More than --max-left-out
    percent of them is an error.

    With one audit of three runs or more, or with three audits or more, all runs are ranked: which
    may be the best, and which cannot be distinguished, by the primary question and by
    effectiveness.
    """
    from ranktilt.auditing.comparison.common_queries import MAX_LEFT_OUT
    from ranktilt.auditing.comparison.compare import compare as compare_audits

    if old is None:
        reason = "the runs of one audit have the same queries; name an old audit, or omit it"
        options.refuse_unread({"--max-left-out": max_left_out}, reason)
    paths = [path for path in (new, old, *more) if path is not None]
    output.check(*paths)
    audits = _read_audits(paths)
    _refuse_unread(
        audits[0],
        options_of_rankers={"--baseline-run": baseline_run, "--max-failures": max_failures},
        label_errors=label_errors,
    )
    for audit in audits:
        _require_answers(audit, max_failures)
    statistics = statistics_settings()
    compare_results: Any = compare_audits  # whose overloads tell kinds of results apart
    output.deliver(
        compare_results(
            *audits,
            baseline_run=baseline_run,
            max_left_out=MAX_LEFT_OUT if max_left_out is None else max_left_out,
            resamples=statistics.resamples,
            seed=statistics.seed,
            correction=statistics.correction,
            label_errors=label_errors,
        )
    )


def _read_audits(paths: Sequence[Path]) -> list[Any]:
    """Read audits of any kind that can be compared."""
    from ranktilt.auditing.pairwise.result import PairwiseAudit
    from ranktilt.auditing.result import Audit
    from ranktilt.citing.result import CitationAudit
    from ranktilt.judging.result import JudgeAudit
    from ranktilt.reporting.report import read_result

    kinds = (Audit, PairwiseAudit, CitationAudit, JudgeAudit)
    return [read_result(path, kinds) for path in paths]


def _refuse_unread(
    audit: Any, *, options_of_rankers: Mapping[str, object], label_errors: str | None
) -> None:
    """Refuse options that only a comparison of rankers reads, for audits of another kind."""
    from ranktilt.citing.result import CitationAudit
    from ranktilt.judging.result import JudgeAudit

    if isinstance(audit, CitationAudit):
        options.refuse_unread({"--label-errors": label_errors}, options.CITE_CORRECTS)
    elif isinstance(audit, JudgeAudit):
        reason = "audits of judges take the labels of grades as they are"
        options.refuse_unread({"--label-errors": label_errors}, reason)
    else:
        return
    reason = "audits of citations, and of judges, are compared two at a time"
    options.refuse_unread(options_of_rankers, reason)


def _require_answers(audit: Any, max_failures: float | None) -> None:
    """Refuse an audit whose language models gave too many unreadable answers.

    `max_failures` is their largest share, in percent; None allows all.
    """
    from ranktilt.auditing.pairwise.result import PairwiseAudit
    from ranktilt.auditing.result import Audit

    if isinstance(audit, PairwiseAudit):
        require_answers([{**audit.spec, "ranker": audit.model}], max_failures)
    elif isinstance(audit, Audit):
        require_answers(audit.spec.get("runs", ()), max_failures)
