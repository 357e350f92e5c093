"""Compare the runs of two audits, or of one audit, on their common queries.

Three tables are compared: *tilts* (Relative Δ of a run, between two groups), effectiveness (the
mean of a measure over all documents), and *estimates* (all other questions about groups).
"""

from __future__ import annotations

from ranktilt.auditing.comparison.changes import contrast_changes, mean_changes
from ranktilt.auditing.comparison.common_queries import MAX_LEFT_OUT
from ranktilt.auditing.comparison.less_variation import with_less_variation
from ranktilt.auditing.comparison.match import match
from ranktilt.auditing.comparison.notes import change_notes, match_notes, warnings_of_both
from ranktilt.auditing.comparison.options import ComparisonOptions
from ranktilt.auditing.comparison.primary import primary_question
from ranktilt.auditing.comparison.provenance import comparison_spec
from ranktilt.auditing.comparison.result import Comparison
from ranktilt.auditing.comparison.tasks import change_tasks, estimand_tasks
from ranktilt.auditing.groups import ALL
from ranktilt.auditing.label_errors.changes import observed_differences, with_rate_errors
from ranktilt.auditing.label_errors.notes import correction_notes
from ranktilt.auditing.result import Audit
from ranktilt.auditing.significance import correct_p_values


def compare_audits(
    new: Audit, old: Audit, options: ComparisonOptions, *, baseline_run: str | None = None
) -> Comparison:
    """Return how tilts, effectiveness and other answers changed from `old` to `new`.

    A tilt is Relative Δ of one run. All p are corrected together. With a `baseline_run`, all other
    runs of `new` are compared with it.
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
    # All p are corrected in one list, which is then cut into the three tables again.
    corrected_changes = correct_p_values(changes, options.correction)
    tilts_end = len(tilts)
    effectiveness_end = tilts_end + len(effectiveness)
    corrected_tilts = corrected_changes[:tilts_end]
    corrected_effectiveness = corrected_changes[tilts_end:effectiveness_end]
    corrected_estimates = corrected_changes[effectiveness_end:]
    primary = primary_question(new, old, corrected_changes)
    spec = {
        **comparison_spec(new, old, corrected_changes, options),
        "by": new.spec["by"],
        "baseline_run": baseline_run,
        "primary": primary.compared,
        "queries_left_out": matched.queries_left_out,
    }
    if options.max_left_out != MAX_LEFT_OUT:
        spec["max_left_out"] = options.max_left_out
    notes = (
        *warnings_of_both(new.notes, old.notes),
        *correction_notes(new.notes),
        *observed_differences(matched, corrected_estimates),
        *matched.left_out,
        *match_notes(matched),
        *primary.notes,
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
