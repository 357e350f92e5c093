"""What ``ranktilt pairwise`` asks of the choices: which groups to compare, and how to count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from ranktilt.cli import options
from ranktilt.cli.app import QUESTION, SELDOM, STATISTICS, points
from ranktilt.cli.statistics_options import margin_of_shares, statistics_settings

if TYPE_CHECKING:
    from ranktilt.auditing.pairwise.decisions import Decisions
    from ranktilt.auditing.pairwise.result import PairwiseAudit
    from ranktilt.data.collection import Collection


@Parameter(name="*", group=QUESTION)
@dataclass(frozen=True, kw_only=True)
class PairwiseQuestion:
    """The two groups of documents, and how choices between them are counted."""

    by: Annotated[
        str,
        Parameter(
            help="Column to group documents by (default: source).",
            metavar="COLUMN",
        ),
    ] = "source"
    protected: options.Protected = None
    count_rule: Annotated[
        Literal["both-agree", "each"],
        Parameter(
            help="Count pairs on which both orders agree (default), or each answer.", group=SELDOM
        ),
    ] = "both-agree"
    margin: Annotated[
        float | None,
        Parameter(
            help="Shares within this many points of 50 % count as level (default: 5).",
            metavar="X",
            group=STATISTICS,
            validator=Number(lte=50),
            converter=points,
        ),
    ] = None

    def audit(
        self, collection: Collection, decisions: Decisions, query_ids: Sequence[str] | None
    ) -> PairwiseAudit:
        """Compute which group is chosen more often.

        Parameters
        ----------
        collection : Collection
            Queries and documents.
        decisions : Decisions
            The choice for each pair, in both orders.
        query_ids : sequence of str or None
            Queries to count; None for all.
        """
        from ranktilt.auditing.pairwise.audit import pairwise

        statistics = statistics_settings()
        return pairwise(
            collection,
            decisions,
            queries=query_ids,
            count_rule=self.count_rule,
            margin=margin_of_shares(self.margin),
            resamples=statistics.resamples,
            seed=statistics.seed,
            correction=statistics.correction,
        )
