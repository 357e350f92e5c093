"""What ``ranktilt tools replay-log`` asks: which groups and measures, and what may fail."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ranktilt.cli import options
from ranktilt.cli.app import QUESTION
from ranktilt.cli.label_options import LabelOptions
from ranktilt.cli.statistics_options import statistics_settings

if TYPE_CHECKING:
    from ranktilt.auditing.replay_log.result import ReplayedLog
    from ranktilt.auditing.replay_log.runs import LogRuns
    from ranktilt.data.collection import Collection


@Parameter(name="*", group=QUESTION)
@dataclass(frozen=True, kw_only=True)
class ReplayQuestion:
    """Groups to compare, measures, and the share of answers that may fail."""

    by: Annotated[
        str | None,
        Parameter(
            help="Column whose groups to compare (default: several sources); none for no groups.",
            metavar="COLUMN",
        ),
    ] = None
    pair: Annotated[
        list[str] | None,
        Parameter(help="Groups to compare (default: all pairs).", metavar="A,B"),
    ] = None
    measure: options.Measures = None
    max_failures: options.MaxFailures = None

    def check(self) -> None:
        """Refuse pairs that cannot be read, before any file is."""
        options.read_pairs(self.pair)

    def pairs_to_compare(
        self, collection: Collection, labels: LabelOptions
    ) -> options.Pairs | None:
        """Return the pairs of groups to compare, the reference first; None for all pairs."""
        pairs = options.read_pairs(self.pair)
        if labels.reference:
            return labels.reference_first(collection, self._column(collection), pairs)
        return pairs

    def split_effects(
        self, replayed: LogRuns, collection: Collection, pairs: options.Pairs | None
    ) -> ReplayedLog:
        """Split measures of the published run into the parts of input order, model and parser.

        Parameters
        ----------
        replayed : LogRuns
            The rankings that the log gives: the published one, and others to compare it with.
        collection : Collection
            The texts, judgments and groups of the candidates.
        pairs : list of (str, str) or None
            Pairs of groups to compare; None for all pairs.
        """
        from ranktilt.auditing.replay_log.replay_log import replay_log

        statistics = statistics_settings()
        return replay_log(
            replayed,
            collection,
            self.measure or None,
            by=self._column(collection),
            pairs=pairs,
            max_failures=self.max_failures,
            resamples=statistics.resamples,
            seed=statistics.seed,
            correction=statistics.correction,
        )

    def _column(self, collection: Collection) -> str | None:
        """Return the column of the groups; None for no groups.

        Unless ``--by`` names a column or none, sources are compared where there are several.
        """
        if self.by is None:
            return "source" if len(collection.sources) > 1 else None
        return None if self.by == "none" else self.by
