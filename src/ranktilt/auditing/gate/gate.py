"""Check an audit against limits: it is within them, tilted or inconclusive.

A *tilt* is the answer to a question about two groups; its *neutral value* favours neither. With an
earlier audit, the *baseline*, a gate also checks the *growth* of each tilt, which is how much
farther from its neutral value it is than in the baseline, and the *loss* of effectiveness.

Start with `gate`: `_gated_audits` finds what has to pass, and `_check_audit` makes the rows. The
reference of an audit of several sources is the source that all others are compared with.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from ranktilt.auditing.comparison.changes import contrast_changes, mean_changes
from ranktilt.auditing.comparison.less_variation import with_less_variation
from ranktilt.auditing.comparison.match import Match, match
from ranktilt.auditing.comparison.notes import repeat_count_notes
from ranktilt.auditing.comparison.tasks import change_tasks, estimand_tasks
from ranktilt.auditing.effects import FEW_QUERIES, Change, Effect
from ranktilt.auditing.gate.options import EffectKey, GateOptions, Requirements, effect_key
from ranktilt.auditing.gate.result import (
    Gate,
    GateRow,
    LimitCheck,
    check_growth,
    check_loss,
    check_tilt,
    effect_gate,
)
from ranktilt.auditing.groups import ALL, Pair
from ranktilt.auditing.label_errors.changes import with_rate_errors
from ranktilt.auditing.label_errors.notes import correction_notes, observed_notes
from ranktilt.auditing.label_errors.saved import corrected_audit
from ranktilt.auditing.result import Audit
from ranktilt.auditing.sources.source_audits import SourceAudits
from ranktilt.data.artifact import names_files
from ranktilt.data.labels.label_errors import LabelErrors
from ranktilt.data.notes.base import Note, notes_within, warnings_of
from ranktilt.data.notes.comparisons import GrowthIsNoDifference, GrowthsJudgedAlone
from ranktilt.data.notes.groups import FewQueries, FewQueriesOfGroups
from ranktilt.errors import UserError, unknown_name
from ranktilt.measures.base import Estimand
from ranktilt.measures.margin import Margin, read_margin, require_unit
from ranktilt.statistics.bootstrap import FEWEST_ROWS, RESAMPLES


@names_files
def gate(
    audit: Audit | SourceAudits,
    *,
    max_tilt: Margin | None = None,
    measures: Iterable[str | Estimand] | None = None,
    runs: Iterable[str] | None = None,
    pairs: Iterable[Pair] | None = None,
    baseline: Audit | SourceAudits | None = None,
    min_effect: float | None = None,
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
    min_effect : float or None, optional
        Allowed growth in points, at least 0, which needs a `baseline`. None: 0.
    max_loss : float or None, optional
        Allowed loss of effectiveness in points, at least 0, on the measures among `measures`. If
        there are none, it is checked on the measure that the audit prints first. None:
        effectiveness is not checked.
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
    gated = _gated_audits(
        audit,
        baseline,
        measures=measures,
        runs=runs,
        pairs=pairs,
        needs_judgments=max_loss is not None,
    )
    checked = [_check_audit(gated_audit, options) for gated_audit in gated]
    rows = list(chain.from_iterable(audit_checks.rows for audit_checks in checked))
    notes = list(chain.from_iterable(audit_checks.notes for audit_checks in checked))
    if isinstance(audit, SourceAudits):
        # The audits were checked source by source; tables go run by run.
        rows.sort(key=lambda row: audit.runs.index(row.run))
    notes += _growth_notes(rows)
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


# ---- audits -------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class _GatedAudit:
    """An audit, the answers that must pass, and the baseline."""

    audit: Audit
    """The audit to gate."""
    requirements: Requirements
    """Answers that must pass."""
    baseline: Audit | None
    """An earlier audit to compare with; None if there is none."""


def _gated_audits(
    audit: Audit | SourceAudits,
    baseline: Audit | SourceAudits | None,
    *,
    measures: Iterable[str | Estimand] | None,
    runs: Iterable[str] | None,
    pairs: Iterable[Pair] | None,
    needs_judgments: bool,
) -> list[_GatedAudit]:
    """Return the audits to gate; several sources are gated separately.

    Parameters
    ----------
    audit : Audit or SourceAudits
        The audit to gate.
    baseline : Audit, SourceAudits or None
        An earlier audit of the same kind.
    measures, runs, pairs : iterable or None
        What must pass; None for the primary question, all runs and all pairs of groups.
    needs_judgments : bool
        Whether effectiveness is checked too.

    Raises
    ------
    UserError
        If something is named that the audit lacks, the baseline is of another kind, or judgments
        are needed and there are none.
    """
    if baseline is not None and type(baseline) is not type(audit):
        raise UserError(
            "audit and baseline differ in kind: one covers several sources, the other "
            "is a single audit"
        )
    if isinstance(audit, Audit):
        audits = {"": audit}  # a single audit has no source
    else:
        audits = _audits_by_source(audit, pairs)
        pairs = None
    # Every source takes the same names, which an iterator would yield only to the first.
    measures = None if measures is None else list(measures)
    runs = None if runs is None else list(runs)
    gated = []
    for source, audited in audits.items():
        earlier = baseline.audit_of(source) if isinstance(baseline, SourceAudits) else baseline
        if needs_judgments and not audited.measures:
            raise UserError("--max-loss needs effectiveness, and this audit has no judgments")
        requirements = Requirements.from_names(audited, measures=measures, runs=runs, pairs=pairs)
        gated.append(_GatedAudit(audit=audited, requirements=requirements, baseline=earlier))
    return gated


def _audits_by_source(audits: SourceAudits, pairs: Iterable[Pair] | None) -> dict[str, Audit]:
    """Return the audits of all sources, or of those that `pairs` compare with the reference."""
    source_of_pair: dict[frozenset[str], str] = {}
    for compared in audits.sources:
        source_of_pair[frozenset((audits.reference, compared.source))] = compared.source
    if pairs is None:
        return {source: audits.audit_of(source) for source in source_of_pair.values()}
    by_source = {}
    for pair in pairs:
        source = source_of_pair.get(frozenset(pair))
        if source is None:
            names = [f"{audits.reference},{known}" for known in source_of_pair.values()]
            raise unknown_name("pair of groups", ",".join(pair), names)
        by_source[source] = audits.audit_of(source)
    if not by_source:
        raise UserError("nothing to gate: expected pairs of groups, got none")
    return by_source


# ---- checks of an audit -------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class _AuditChecks:
    """The checks of one audit, and the notes on them."""

    rows: tuple[GateRow, ...]
    """A row for each answer that was checked."""
    notes: tuple[Note, ...]
    """Notes of the audit and of its checks."""


def _check_audit(gated: _GatedAudit, options: GateOptions) -> _AuditChecks:
    """Check the tilts of an audit; with a baseline, also their growth and the effectiveness."""
    effects = gated.requirements.effects
    checks = _tilt_checks(effects, options.tilt_limit)
    corrections = (*correction_notes(gated.audit.notes), *observed_notes(effects))
    warnings = (*warnings_of(gated.audit.notes), *corrections)
    if gated.baseline is None:
        rows = [
            effect_gate(effect, *effect_checks)
            for effect, effect_checks in zip(effects, checks, strict=True)
        ]
        notes = (*warnings, *_few_query_notes(effects, warnings))
        return _AuditChecks(rows=tuple(rows), notes=notes)

    since = _SinceBaseline.from_audits(gated.audit, gated.baseline, options)
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
        *_few_query_notes([*effects, *changes], warnings),
    )
    return _AuditChecks(rows=tuple(rows), notes=notes)


def _tilt_checks(effects: Sequence[Effect], limit: Margin | None) -> list[list[LimitCheck]]:
    """Return a list with the check of each effect.

    The lists are empty if `limit` is None: then only growth or a loss is checked.
    """
    if limit is None:
        return [[] for _ in effects]
    for question in dict.fromkeys(effect.estimand for effect in effects):
        require_unit(question, limit, "--max-tilt")
    return [[check_tilt(effect, limit)] for effect in effects]


# ---- changes since a baseline -------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class _SinceBaseline:
    """An audit and its baseline, over the queries that both have."""

    matched: Match
    """The two audits, matched."""
    options: GateOptions
    """Limits of the gate."""

    @classmethod
    def from_audits(cls, audit: Audit, baseline: Audit, options: GateOptions) -> _SinceBaseline:
        """Match the audits; refuse too many queries that only one of them holds."""
        matched = match(audit, baseline, max_left_out=options.most_left_out)
        return cls(matched=matched, options=options)

    @property
    def is_on_common_queries(self) -> bool:
        """Whether queries that only one of the audits holds are left out."""
        return self.matched.queries_left_out > 0

    @cached_property
    def changes(self) -> dict[EffectKey, Change]:
        """Changes of all answers, each with its groups in both orders."""
        matched, options = self.matched, self.options
        resamples, seed = options.resamples, options.seed
        tilt_tasks = change_tasks(matched, matched.pairs)
        tilts = contrast_changes(tilt_tasks, resamples=resamples, seed=seed)
        estimates = contrast_changes(estimand_tasks(matched), resamples=resamples, seed=seed)
        changes: dict[EffectKey, Change] = {}
        for change in (*tilts, *with_rate_errors(matched, estimates)):
            swapped = change.swapped()
            changes[effect_key(swapped)] = swapped
            changes[effect_key(change)] = change
        return changes

    def changes_of(self, effects: Sequence[Effect]) -> list[Change]:
        """Return how these answers changed; refuse answers that the baseline lacks."""
        _require_changes(effects, self.changes)
        return [self.changes[effect_key(effect)] for effect in effects]

    def check_growth(self, change: Change) -> LimitCheck:
        """Check whether a tilt has grown more than is allowed."""
        return check_growth(
            with_less_variation(change, self.matched.new, self.matched.old),
            self.options.growth_limit,
            is_on_common_queries=self.is_on_common_queries,
        )

    def loss_rows(
        self, max_loss: float, *, runs: set[str], measures: frozenset[str]
    ) -> Iterator[GateRow]:
        """Yield a row for the effectiveness of each of these runs on each of these measures."""
        tasks = change_tasks(self.matched, [(ALL, ALL)])
        options = self.options
        for change in mean_changes(tasks, resamples=options.resamples, seed=options.seed):
            if change.run in runs and change.measure in measures:
                loss = check_loss(change, max_loss, is_on_common_queries=self.is_on_common_queries)
                yield effect_gate(change, loss)


def _require_changes(effects: Sequence[Effect], changes: Mapping[EffectKey, Change]) -> None:
    """Refuse answers that must pass, but of which no change is known.

    The baseline lacks them, or they are not stored query by query.
    """
    for effect in effects:
        if effect_key(effect) not in changes:
            known = [f"{run} {measure} {a},{b}" for run, measure, a, b in changes]
            known_words = f"; known: {', '.join(dict.fromkeys(known))}" if known else ""
            raise UserError(
                f"the growth of {effect.run} {effect.measure} {effect.a},{effect.b} is unknown: "
                "the baseline lacks it, or the audits do not hold values per query; audit both "
                f"again{known_words}"
            )


# ---- notes --------------------------------------------------------------------------------------


def _growth_notes(rows: Sequence[GateRow]) -> list[Note]:
    """Note that growths are no differences of tilts, and that several are not corrected together.

    The growth of a tilt is the difference of both distances from the neutral value.
    """
    checks = list(chain.from_iterable(row.checks for row in rows))
    growths = [check.checked_change for check in checks if check.name == "growth"]
    notes: list[Note] = []
    if any(growth is not None and growth.has_growth_apart for growth in growths):
        notes.append(GrowthIsNoDifference())
    loss_count = sum(check.name == "loss" for check in checks)
    if max(len(growths), loss_count) > 1:
        notes.append(GrowthsJudgedAlone(comparisons=len(growths), losses=loss_count))
    return notes


def _few_query_notes(effects: Sequence[Effect], warnings: Sequence[Note]) -> list[Note]:
    """Note that answers and changes rest on few queries, unless `warnings` say so already."""
    fewest = min(effect.queries for effect in effects)
    # Audits by relevance warn for each pair of groups. With fewer than `FEWEST_ROWS` queries there
    # is no interval, and the warning says something else.
    has_warned = any(
        isinstance(note, FewQueries) and (note.queries < FEWEST_ROWS) == (fewest < FEWEST_ROWS)
        for note in warnings
    )
    if fewest < FEW_QUERIES and not has_warned:
        return [FewQueriesOfGroups(queries=fewest)]
    return []
