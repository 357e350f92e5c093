"""Count and test the choices of all kinds of pairs together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ranktilt.auditing.effects import FEWEST
from ranktilt.auditing.pairwise.counts import (
    count_arrays,
    count_choices,
    pair_table,
    query_choices,
)
from ranktilt.auditing.pairwise.decisions import Decisions
from ranktilt.auditing.pairwise.options import PairwiseOptions
from ranktilt.auditing.pairwise.outcome import outcome
from ranktilt.auditing.pairwise.pairs import KINDS
from ranktilt.auditing.pairwise.result import PairOutcome, PairTable, QueryChoices
from ranktilt.data.collection import Collection
from ranktilt.statistics.correction import correct


@dataclass(frozen=True, kw_only=True)
class ChoiceTotals:
    """Choices in pairs of all kinds.

    The kind of a pair says whether both documents are relevant, or neither.
    """

    outcomes: tuple[PairOutcome, ...]
    """Outcome of each kind of pairs."""
    by_query: tuple[QueryChoices, ...]
    """Choices in each query, kind by kind."""
    by_pair: tuple[PairTable, ...]
    """Choices in each pair, for each kind."""


def total_choices(
    decisions: Decisions, collection: Collection, options: PairwiseOptions
) -> ChoiceTotals:
    """Count and test the choices of each kind of pairs; correct the p of all kinds together."""
    by_query: list[QueryChoices] = []
    by_pair: list[PairTable] = []
    outcomes: list[PairOutcome] = []
    for kind in KINDS:
        pairs = count_choices(decisions, collection, kind, options.count_rule)
        by_query += query_choices(kind, pairs)
        if len(pairs):
            by_pair.append(pair_table(kind, pairs))
            # The dyads are the query and both documents of each pair: pairs that share one of these
            # are not independent.
            counts, dyads = count_arrays(pairs)
            outcomes.append(
                outcome(kind, counts, dyads, resamples=options.resamples, seed=options.seed)
            )
    return ChoiceTotals(
        outcomes=_correct(outcomes, options.correction),
        by_query=tuple(by_query),
        by_pair=tuple(by_pair),
    )


def _correct(outcomes: Sequence[PairOutcome], correction: str) -> tuple[PairOutcome, ...]:
    """Correct the p of all kinds of pairs together.

    A corrected p is NaN if the effective number of queries or documents is below `FEWEST`.
    """
    ps = correct([pair_outcome.p for pair_outcome in outcomes], correction)
    tests = max(int((~np.isnan(ps)).sum()), 1)
    rows = []
    for pair_outcome, p in zip(outcomes, ps, strict=True):
        is_testable = pair_outcome.effective_n >= FEWEST
        p_corrected = float(p) if is_testable else np.nan
        rows.append(replace(pair_outcome, p_corrected=p_corrected, family_size=tests))
    return tuple(rows)
