"""Judge an audit by fixed limits: within them, tilted or inconclusive."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from ranktilt.auditing.gate.gated_audits import gated_audits
from ranktilt.auditing.gate.judge import judge
from ranktilt.auditing.gate.notes import growth_notes
from ranktilt.auditing.gate.options import GateOptions
from ranktilt.auditing.gate.result import Gate
from ranktilt.auditing.groups import Pair
from ranktilt.auditing.label_errors.saved import corrected_audit
from ranktilt.auditing.result import Audit
from ranktilt.auditing.source_audits import SourceAudits
from ranktilt.data.artifact import names_files
from ranktilt.data.labels.label_errors import LabelErrors
from ranktilt.errors import UserError
from ranktilt.measures.base import Estimand
from ranktilt.measures.margin import Margin, read_margin
from ranktilt.statistics.bootstrap import RESAMPLES


@names_files
def gate(
    audit: Audit | SourceAudits,
    *,
    max_tilt: Margin | None = None,
    measures: Iterable[str | Estimand] | None = None,
    runs: Iterable[str] | None = None,
    pairs: Iterable[Pair] | None = None,
    baseline: Audit | SourceAudits | None = None,
    min_effect: float = 0.0,
    max_loss: float | None = None,
    max_left_out: float | None = None,
    inconclusive: str = "fail",
    resamples: int = RESAMPLES,
    seed: int = 0,
    label_errors: str | LabelErrors | None = None,
) -> Gate:
    """Check an audit against limits, by the same rule as its verdicts.

    There are up to three checks for each answer:

    1. The tilt, which is the answer itself, is checked against `max_tilt`. If its whole 95 %
       interval, ends included, lies within `max_tilt` of its neutral value, it is *level*, or
       *within* the limit if it still shows a favoured group. It is *tilted* if it shows a favoured
       group and the whole interval lies beyond a limit; else *inconclusive*.
    2. The growth of the tilt since `baseline` is checked against `min_effect`. It is ``|Δ new| −
       |Δ old|``, the difference of both distances from the neutral value, bootstrapped over the
       queries of both audits. It is *tilted* if the whole interval lies above `min_effect`, which
       shows a larger growth; *level* if no part of it lies above, which excludes a larger growth;
       else *inconclusive*. At `min_effect` 0, only an unchanged ranking or a tilt that certainly
       shrank is level; to show "no worse than before", allow some points.
    3. The change of effectiveness over all documents since `baseline` is checked against
       `max_loss`. It is *level* if its whole interval lies above ``−max_loss``, which excludes a
       greater loss; *tilted* if it lies below, which shows a greater loss; else *inconclusive*.

    The worst outcome of all checks counts; an undefined tilt or growth is inconclusive.

    Parameters
    ----------
    audit : Audit or SourceAudits
        An audit with groups. With several sources, each is checked separately.
    max_tilt : float, str or None, optional
        Limit in percentage points, at least 0 and below 200, or with the unit of another estimand
        (``"2 ranks"``). None: 5 points, or no limit if you give a baseline.
    measures, runs, pairs : iterable, optional
        What must pass: measures (by their Relative Δ) and other estimands of the audit, names of
        runs, and pairs of groups. By default the primary question, every run and every pair.
    baseline : Audit, SourceAudits or None, optional
        An earlier audit with the same measures, pairs and runs. If each audit has one run, the runs
        may have different names.
    min_effect : float, optional
        Allowed growth in points, at least 0.
    max_loss : float or None, optional
        Allowed loss of effectiveness in points, at least 0, on the measures among `measures`. If
        there are none, it is judged on the measure that the audit prints first. None: effectiveness
        is not checked.
    max_left_out : float or None, optional
        Largest percentage of all queries that may be in only one of audit and baseline. They are
        left out of growth and loss with a note; more are refused. None: 10.
    inconclusive : {"fail", "pass"}, optional
        Exit code of an inconclusive outcome: 3 or 0.
    resamples, seed : int, optional
        Bootstrap resamples of growth and loss; their random seed. The tilt's interval comes from
        the audit.
    label_errors : str, LabelErrors or None, optional
        How often labels are wrong (``"ai:fpr=.02,fnr=.05"``). Audit and baseline are corrected for
        it first; an audit may be corrected already.
    """
    if label_errors is not None:
        audit = _correct(audit, label_errors)
        baseline = None if baseline is None else _correct(baseline, label_errors)
    options = GateOptions(
        max_tilt=None if max_tilt is None else read_margin(max_tilt, "--max-tilt"),
        min_effect=min_effect,
        max_loss=max_loss,
        max_left_out=max_left_out,
        inconclusive=inconclusive,
        resamples=resamples,
        seed=seed,
        has_baseline=baseline is not None,
    )
    options.check()
    gated = gated_audits(
        audit,
        baseline,
        measures=measures,
        runs=runs,
        pairs=pairs,
        needs_judgments=max_loss is not None,
    )
    judged = [judge(gated_audit, options) for gated_audit in gated]
    rows = list(chain.from_iterable(judged_audit.rows for judged_audit in judged))
    notes = list(chain.from_iterable(judged_audit.notes for judged_audit in judged))
    if isinstance(audit, SourceAudits):  # run by run, and not source by source
        rows.sort(key=lambda row: audit.runs.index(row.run))
    notes += growth_notes(rows)
    spec = {**options.spec, "audit": audit.spec.get("command")}
    if audit.loaded_from:
        spec["file"] = audit.loaded_from
    return Gate(spec=spec, rows=tuple(rows), notes=tuple(dict.fromkeys(notes)))


def _correct(audit: Audit | SourceAudits, label_errors: str | LabelErrors) -> Audit:
    """Correct an audit for label errors; refuse audits of several sources."""
    if not isinstance(audit, Audit):
        raise UserError(
            "this audit ranks each source with the reference alone, and no label errors can be "
            "corrected; omit --label-errors"
        )
    return corrected_audit(audit, label_errors)
