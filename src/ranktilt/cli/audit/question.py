"""What ``ranktilt audit`` asks of every run: measures, groups of queries, controls and tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

from ranktilt.cli.audit.inputs import InputOptions
from ranktilt.cli.check import CheckSection
from ranktilt.cli.rankers import read_rankers, require_answers
from ranktilt.cli.statistics_options import StatisticsOptions
from ranktilt.errors import UserError

if TYPE_CHECKING:
    from ranktilt.auditing.result import Audit
    from ranktilt.data.collection import Collection
    from ranktilt.data.runs.run import Run
    from ranktilt.measures.base import Estimand
    from ranktilt.rankers.base import Ranker


@dataclass(frozen=True, kw_only=True)
class AuditQuestion:
    """The options of an audit that apply to every run."""

    measure: Sequence[str] | None
    """Names of measures; None for the default measures."""
    preset: str | None
    """Name of a paper's settings."""
    card: bool
    """Whether the question card, a table of five questions, is added."""
    controls: bool
    """Whether controls, which rank changed texts, are added."""
    text: str | None
    """Part of a document that rankers read."""
    max_failures: float | None
    """Percentage of queries or of a language model's answers that may fail."""
    statistics: StatisticsOptions
    """How tilts are tested."""
    label_errors: str | None = None
    """Error rates of labels, or a file of them, as typed."""
    by_query: str | None = None
    """Column or file of groups of queries, as typed."""

    def check(self) -> None:
        """Refuse unknown measures, margins and error rates, before anything is read."""
        self.statistics.in_force(self.preset)
        self._measures()
        self._check_label_errors()

    def _check_label_errors(self) -> None:
        """Refuse bad error rates, and measures that cannot be corrected for them."""
        if self.label_errors is None:
            return
        from ranktilt.auditing.label_errors.checks import refuse_uncorrectable
        from ranktilt.data.labels.label_errors import LabelErrors

        if self.controls:
            raise UserError(
                "--controls change the texts of twins, whose labels cannot err; omit "
                "--label-errors or --controls"
            )
        LabelErrors.from_text(self.label_errors)
        refuse_uncorrectable(self._measures() or ())

    def check_query_groups(self, collection: Collection) -> None:
        """Refuse a column or file that gives no groups of queries, before anything is ranked."""
        if self.by_query is not None:
            from ranktilt.auditing.query_groups.grouping import collection_query_groups

            collection_query_groups(self.by_query, collection)

    def rankers(self, inputs: InputOptions) -> list[Ranker]:
        """Return the rankers of the inputs, with the options of the command line."""
        return read_rankers(
            inputs.specs,
            self.preset,
            text=self.text,
            max_failures=self.max_failures,
            score_order=inputs.score_order,
            queries=inputs.queries,
        )

    def audit(
        self,
        collection: Collection,
        runs: Sequence[Run],
        rankers: Sequence[Ranker],
        *,
        by: str | None,
        pairs: list[tuple[str, str]] | None,
    ) -> Audit:
        """Audit the runs of a collection.

        Parameters
        ----------
        collection : Collection
            Queries, documents, groups and judgments.
        runs : sequence of Run
            The runs.
        rankers : sequence of Ranker
            The rankers of the runs, for the controls, which rank changed texts.
        by : str or None
            The column of the groups; None for no groups.
        pairs : list of (str, str) or None
            Pairs of groups to compare; None for all.
        """
        from ranktilt.auditing.audit import audit as run_audit
        from ranktilt.auditing.controls import controls
        from ranktilt.auditing.failed_check import with_failed_check

        rankings = chain.from_iterable((run, *run.repeats) for run in runs)
        require_answers((ranking.spec for ranking in rankings), self.max_failures)
        statistics = self.statistics.in_force(self.preset)
        result = run_audit(
            collection,
            runs,
            self._measures(),
            # Without judgments only the card's questions can be answered.
            card=self.card or not collection.qrels.height,
            by=by,
            pairs=pairs,
            primary=statistics.primary,
            missing=statistics.missing,
            ties=statistics.ties,
            rounding=statistics.rounding,
            test=statistics.test,
            correction=statistics.correction,
            margin=statistics.margin,
            resamples=statistics.resamples,
            seed=statistics.seed,
            label_errors=self.label_errors,
            by_query=self.by_query,
        )
        result = with_failed_check(collection, result, CheckSection.in_force().limits)
        if self.preset is not None:
            preset = {"preset": self.preset, "preset_changes": self._preset_changes(self.preset)}
            result = replace(result, spec={**result.spec, **preset})
        if self.controls:
            near = CheckSection.in_force().near_identical
            result = controls(collection, rankers, runs, result, near=near)
        return result

    def _measures(self) -> list[Estimand] | None:
        """Return the measures of ``-m``, or those of the preset; None for the default measures."""
        from ranktilt.measures.base import estimand
        from ranktilt.presets import preset

        names = self.measure or (preset(self.preset).measures if self.preset else ())
        return [estimand(name) for name in names] or None

    def _preset_changes(self, preset: str) -> list[str]:
        """Return the settings that were typed differently from the preset's."""
        changes = self.statistics.preset_changes(preset)
        if self.measure:
            changes.append("measures")
        if self.text:
            changes.append(f"text = {self.text}")
        return changes
