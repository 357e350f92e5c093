"""Changes since a baseline, an earlier audit: the growth of each tilt, and a loss of effectiveness.

The growth of a tilt is how much farther from its neutral value it is than in the baseline.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ranktilt.auditing.comparison.less_variation import with_less_variation
from ranktilt.auditing.comparison.match import Match, match
from ranktilt.auditing.comparison.tasks import change_tasks, estimand_tasks
from ranktilt.auditing.effects import Change, Effect
from ranktilt.auditing.gate.limit_checks import check_growth, check_loss
from ranktilt.auditing.gate.options import GateOptions
from ranktilt.auditing.gate.requirements import EffectKey, effect_key
from ranktilt.auditing.gate.result import GateRow, LimitCheck, effect_gate
from ranktilt.auditing.groups import ALL
from ranktilt.auditing.label_errors.changes import with_rate_errors
from ranktilt.auditing.result import Audit
from ranktilt.auditing.significance import contrast_changes, mean_changes
from ranktilt.errors import UserError


@dataclass(frozen=True, kw_only=True, eq=False)
class SinceBaseline:
    """An audit and its baseline, over the queries that both have."""

    matched: Match
    """The two audits, matched."""
    options: GateOptions
    """Limits of the gate."""

    @classmethod
    def from_audits(cls, audit: Audit, baseline: Audit, options: GateOptions) -> SinceBaseline:
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
            self.options.min_effect,
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
            raise UserError(
                f"the growth of {effect.run} {effect.measure} {effect.a},{effect.b} is unknown: "
                "the baseline lacks it, or the audits do not hold it per query; known: "
                f"{', '.join(dict.fromkeys(known))}"
            )
