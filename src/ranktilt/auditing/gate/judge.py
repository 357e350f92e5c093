"""Judge one audit by the limits of a gate.

A tilt is an answer of the audit; its growth is how much larger it is than in an earlier audit, the
baseline.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ranktilt.auditing.comparison.notes import repeat_count_notes
from ranktilt.auditing.effects import Effect
from ranktilt.auditing.gate.gated_audits import GatedAudit
from ranktilt.auditing.gate.limit_checks import check_tilt
from ranktilt.auditing.gate.notes import few_query_notes
from ranktilt.auditing.gate.options import GateOptions
from ranktilt.auditing.gate.result import GateRow, LimitCheck, effect_gate
from ranktilt.auditing.gate.since_baseline import SinceBaseline
from ranktilt.auditing.label_errors.notes import correction_notes, observed_notes
from ranktilt.data.notes.base import Note, notes_within, warnings_of
from ranktilt.measures.margin import Margin, require_unit


@dataclass(frozen=True, kw_only=True)
class JudgedAudit:
    """A gate's outcome for one audit."""

    rows: tuple[GateRow, ...]
    """A row for each answer that was checked."""
    notes: tuple[Note, ...]
    """Notes of the audit and of its checks."""


def judge(gated: GatedAudit, options: GateOptions) -> JudgedAudit:
    """Judge the tilts of an audit; with a baseline, also their growth and the effectiveness."""
    effects = gated.requirements.effects
    checks = _tilt_checks(effects, options.tilt_limit)
    corrections = (*correction_notes(gated.audit.notes), *observed_notes(effects))
    warnings = (*warnings_of(gated.audit.notes), *corrections)
    if gated.baseline is None:
        rows = [
            effect_gate(effect, *effect_checks)
            for effect, effect_checks in zip(effects, checks, strict=True)
        ]
        notes = (*warnings, *few_query_notes(effects, warnings))
        return JudgedAudit(rows=tuple(rows), notes=notes)

    since = SinceBaseline.from_audits(gated.audit, gated.baseline, options)
    changes = since.changes_of(effects)
    rows = [
        effect_gate(effect, *effect_checks, since.check_growth(change))
        for effect, effect_checks, change in zip(effects, checks, changes, strict=True)
    ]
    runs = {effect.run for effect in effects}
    if options.max_loss is not None:
        measures = gated.requirements.loss_measures
        rows += since.loss_rows(options.max_loss, runs=runs, measures=measures)
    baseline_notes = [note for note in gated.baseline.notes if note not in warnings]
    warnings = (*warnings, *notes_within(warnings_of(baseline_notes), "baseline", "baseline"))
    notes = (
        *warnings,
        *since.matched.notes,
        *(note for note in repeat_count_notes(since.matched) if note.run in runs),
        *few_query_notes([*effects, *changes], warnings),
    )
    return JudgedAudit(rows=tuple(rows), notes=notes)


def _tilt_checks(effects: Sequence[Effect], limit: Margin | None) -> list[list[LimitCheck]]:
    """Return a list with the check of each effect.

    The lists are empty if `limit` is None: then only growth or a loss is judged.
    """
    if limit is None:
        return [[] for _ in effects]
    for question in dict.fromkeys(effect.estimand for effect in effects):
        require_unit(question, limit, "--max-tilt")
    return [[check_tilt(effect, limit)] for effect in effects]
