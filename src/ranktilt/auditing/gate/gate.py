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
from ranktilt.auditing.result import Audit
from ranktilt.auditing.source_audits import SourceAudits
from ranktilt.data.artifact import names_files
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
) -> Gate:
    """Judge an audit by fixed limits, and by the rule of its own verdicts.

    The answer is checked against `max_tilt`. Where its 95 % interval lies within `max_tilt` of its
    neutral value, ends included, it is *level*, or *within* the limit if a side is shown to be
    favoured all the same. It is *tilted* if a side is shown to be favoured, and the interval lies
    wholly beyond either limit; else *inconclusive*.

    The growth ``|Δ new| − |Δ old|`` since `baseline` (distances from the neutral values) is checked
    against `min_effect`. It is resampled on the queries that both hold. It is *tilted* if the
    interval lies wholly above `min_effect`, so that a larger growth is shown; *level* if no part of
    it lies above, so that one is excluded; else *inconclusive*. At `min_effect` 0 only an unchanged
    ranking or a tilt that shrank for sure is level; to show "no worse than before", allow some
    points.

    The change of effectiveness over all documents since `baseline` is checked against `max_loss`.
    It is *level* if its interval lies wholly above ``−max_loss``, so that a greater loss is
    excluded; *tilted* if it lies wholly below, so that one is shown; else *inconclusive*.

    The worst outcome of all checks counts; an undefined tilt or growth is inconclusive.

    Parameters
    ----------
    audit : Audit or SourceAudits
        With groups; of several sources each is judged by itself.
    max_tilt : float, str or None, optional
        Limit in points of percent, at least 0 and below 200, or with the unit of another estimand
        (``"2 ranks"``). None: 5 points, or no limit where a baseline is given.
    measures, runs, pairs : iterable, optional
        What must pass: measures (by their Relative Δ) and other estimands of the audit; by default
        its primary question, every run and every pair of groups.
    baseline : Audit, SourceAudits or None, optional
        An earlier audit that holds the same runs (or one run, as this one does), measures and
        pairs.
    min_effect : float, optional
        Growth in points that is allowed, at least 0.
    max_loss : float or None, optional
        Loss of effectiveness in points that is allowed, at least 0, on the measures of `measures`,
        or else the one that the audit prints first. None: effectiveness is not asked about.
    max_left_out : float or None, optional
        Percent of all queries that only one of audit and baseline may hold: they are left out of
        the growth and noted; more are refused. None: 10.
    inconclusive : {"fail", "pass"}, optional
        Exit code of an inconclusive outcome: 3 or 0.
    resamples, seed : int, optional
        Of the growth's bootstrap; the tilt's interval is the audit's own.
    """
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
    if not isinstance(audit, Audit):
        rows.sort(key=lambda row: audit.runs.index(row.run))
    notes += growth_notes(rows)
    spec = {**options.spec, "audit": audit.spec.get("command")}
    if audit.loaded_from:
        spec["file"] = audit.loaded_from
    return Gate(spec=spec, rows=tuple(rows), notes=tuple(dict.fromkeys(notes)))
