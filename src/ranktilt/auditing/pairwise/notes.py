"""Notes of a pairwise audit: what its reader should know.

A function here decides which notes apply; `reporting/sentences/notes` has their words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from ranktilt.auditing.effects import FEW_QUERIES
from ranktilt.auditing.notes import variation_notes
from ranktilt.auditing.pairwise.decisions import Decisions
from ranktilt.auditing.pairwise.result import PairOutcome, PairwiseAudit
from ranktilt.data.notes.base import Note, counts_of
from ranktilt.data.notes.pairwise import (
    ChoicesUnreadable,
    FewQueriesWithPairs,
    NothingDecided,
    PairsInOneOrder,
)
from ranktilt.data.notes.runs import AnswersRead


def choice_notes(result: PairwiseAudit, decisions: Decisions) -> Iterator[Note]:
    """Yield all notes: on fixed choices, on how answers were read, and on few queries."""
    effects = [result.effect(outcome) for outcome in result.outcomes if outcome.decided]
    yield from variation_notes(effects)
    yield from decisions.notes
    yield from _answer_notes(decisions)
    yield from _few_query_notes(result.outcomes)


def _answer_notes(decisions: Decisions) -> Iterator[Note]:
    """Note the kinds of answers, and how many pairs have an answer in one order only."""
    numbers = decisions.frame["reading"].value_counts(sort=True)
    kinds = counts_of(dict(numbers.iter_rows()))
    unreadable = decisions.frame["choice"].null_count()
    answers = decisions.spec.get("llm_answers", {})
    yield AnswersRead(
        stage=decisions.model,
        kinds=kinds,
        tokens_read=answers.get("tokens_read"),
        tokens_written=answers.get("tokens_written"),
    )
    if unreadable:
        yield ChoicesUnreadable(
            answers=decisions.frame.height,
            unreadable=unreadable,
            kinds=kinds,
            first=answers.get("unreadable") or "",
        )
    # The two ids in one order, whichever document was shown first.
    pair = pl.concat_list(
        pl.min_horizontal("first", "second"), pl.max_horizontal("first", "second")
    )
    answer_counts = decisions.frame.group_by("query", pair.alias("pair")).len()
    in_one_order = answer_counts.filter(pl.col("len") == 1).height
    if in_one_order:
        yield PairsInOneOrder(pairs=in_one_order)


def _few_query_notes(outcomes: Sequence[PairOutcome]) -> Iterator[Note]:
    """Note kinds of pairs with few queries, or without a decision."""
    for outcome in outcomes:
        kind = outcome.kind
        if outcome.queries < FEW_QUERIES:
            yield FewQueriesWithPairs(queries=outcome.queries, pairs=kind)
        if not outcome.decided:
            yield NothingDecided(pairs=kind)
