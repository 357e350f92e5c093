"""Compare the runs of two audits, or of one, on the queries that both hold."""

from __future__ import annotations

from collections.abc import Sequence

from ranktilt.auditing.comparison.less_variation import with_less_variation
from ranktilt.auditing.comparison.match import (
    MAX_LEFT_OUT,
    change_tasks,
    estimand_tasks,
    match,
)
from ranktilt.auditing.comparison.notes import change_notes, warnings_of_both
from ranktilt.auditing.comparison.options import ComparisonOptions
from ranktilt.auditing.comparison.provenance import comparison_spec
from ranktilt.auditing.comparison.result import Comparison
from ranktilt.auditing.groups import ALL
from ranktilt.auditing.options import usual_primary
from ranktilt.auditing.result import Audit
from ranktilt.auditing.significance import contrast_changes, corrected, mean_changes
from ranktilt.measures.base import estimand


def compare_audits(
    new: Audit, old: Audit, options: ComparisonOptions, *, baseline_run: str | None = None
) -> Comparison:
    """Compare tilts, effectiveness and other answers, and correct all p together."""
    matched = match(new, old, baseline_run=baseline_run, max_left_out=options.max_left_out)
    resamples, seed = options.resamples, options.seed
    tilts = contrast_changes(change_tasks(matched, matched.pairs), resamples=resamples, seed=seed)
    effectiveness = mean_changes(
        change_tasks(matched, [(ALL, ALL)]), resamples=resamples, seed=seed
    )
    estimates = contrast_changes(estimand_tasks(matched), resamples=resamples, seed=seed)
    changes = [*tilts, *effectiveness, *estimates]
    rows = corrected(
        [with_less_variation(change, new, old) for change in changes], options.correction
    )
    tilts_end, effectiveness_end = len(tilts), len(tilts) + len(effectiveness)
    tilt_rows, estimate_rows = rows[:tilts_end], rows[effectiveness_end:]
    effectiveness_rows = rows[tilts_end:effectiveness_end]
    spec = {
        **comparison_spec(new, old, rows, options),
        "by": new.spec["by"],
        "baseline_run": baseline_run,
        "primary": _primary(new, matched.measures),
        "queries_left_out": matched.queries_left_out,
    }
    if options.max_left_out != MAX_LEFT_OUT:
        spec["max_left_out"] = options.max_left_out
    notes = (
        *warnings_of_both(new.notes, old.notes),
        *matched.left_out,
        *matched.notes,
        *change_notes((*tilt_rows, *estimate_rows), effectiveness_rows, resamples),
    )
    return Comparison(
        spec=spec,
        runs=matched.runs,
        measures=matched.measures,
        pairs=matched.pairs,
        tilts=tilt_rows,
        effectiveness=effectiveness_rows,
        notes=notes,
        estimates=estimate_rows,
    )


def _primary(new: Audit, measures: Sequence[str]) -> str | None:
    """Return the measure that verdicts are on: the new audit's, where both hold it."""
    if new.measures and repr(new.primary_measure) in measures:
        return repr(new.primary_measure)
    usual = usual_primary([estimand(measure) for measure in measures])
    return None if usual is None else repr(usual)
