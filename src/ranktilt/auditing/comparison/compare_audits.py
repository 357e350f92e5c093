"""Compare the runs of two audits, or of one audit, on their common queries."""

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
from ranktilt.auditing.label_errors.changes import observed_differences, with_rate_errors
from ranktilt.auditing.label_errors.notes import correction_notes
from ranktilt.auditing.options import usual_primary
from ranktilt.auditing.result import Audit
from ranktilt.auditing.significance import contrast_changes, corrected, mean_changes
from ranktilt.measures.base import estimand


def compare_audits(
    new: Audit, old: Audit, options: ComparisonOptions, *, baseline_run: str | None = None
) -> Comparison:
    """Return how tilts, effectiveness and answers of the card changed from `old` to `new`.

    All p are corrected together.
    """
    matched = match(new, old, baseline_run=baseline_run, max_left_out=options.max_left_out)
    resamples, seed = options.resamples, options.seed
    tilts = contrast_changes(change_tasks(matched, matched.pairs), resamples=resamples, seed=seed)
    effectiveness = mean_changes(
        change_tasks(matched, [(ALL, ALL)]), resamples=resamples, seed=seed
    )
    estimates = contrast_changes(estimand_tasks(matched), resamples=resamples, seed=seed)
    estimates = with_rate_errors(matched, estimates)
    changes = [
        with_less_variation(change, new, old) for change in (*tilts, *effectiveness, *estimates)
    ]
    # One family of tests: corrected together, and divided again in the same order.
    corrected_changes = corrected(changes, options.correction)
    tilts_end = len(tilts)
    effectiveness_end = tilts_end + len(effectiveness)
    corrected_tilts = corrected_changes[:tilts_end]
    corrected_effectiveness = corrected_changes[tilts_end:effectiveness_end]
    corrected_estimates = corrected_changes[effectiveness_end:]
    spec = {
        **comparison_spec(new, old, corrected_changes, options),
        "by": new.spec["by"],
        "baseline_run": baseline_run,
        "primary": _primary(new, matched.measures),
        "queries_left_out": matched.queries_left_out,
    }
    if options.max_left_out != MAX_LEFT_OUT:
        spec["max_left_out"] = options.max_left_out
    notes = (
        *warnings_of_both(new.notes, old.notes),
        *correction_notes(new.notes),
        *observed_differences(matched, corrected_estimates),
        *matched.left_out,
        *matched.notes,
        *change_notes((*corrected_tilts, *corrected_estimates), corrected_effectiveness, resamples),
    )
    return Comparison(
        spec=spec,
        runs=matched.runs,
        measures=matched.measures,
        pairs=matched.pairs,
        tilts=corrected_tilts,
        effectiveness=corrected_effectiveness,
        notes=notes,
        estimates=corrected_estimates,
    )


def _primary(new: Audit, measures: Sequence[str]) -> str | None:
    """Return the measure that the verdict is about: the new audit's primary one if both have it."""
    if new.measures and repr(new.primary_measure) in measures:
        return repr(new.primary_measure)
    usual = usual_primary([estimand(measure) for measure in measures])
    return None if usual is None else repr(usual)
