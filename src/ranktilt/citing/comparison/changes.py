"""Every question that two engines' answers allow, with the difference, its interval and p.

The answers cite pages of several groups. A *pair* is two groups to compare, a and b; a *question*
is a way to compare them, such as by their citation rates. The *primary* question is the first that
the answers of both engines allow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from ranktilt.auditing.comparison.options import ComparisonOptions
from ranktilt.citing.arrays import citation_rows, pair_frame
from ranktilt.citing.comparison.audited_engine import Pair
from ranktilt.citing.comparison.difference import EngineTilt, difference_spread, engine_tilts
from ranktilt.citing.comparison.result import CitationChange
from ranktilt.citing.effect import Question, answerable_questions
from ranktilt.citing.inference.infer import effective_units_by_group
from ranktilt.citing.pages.kept_pages import KeptPages
from ranktilt.measures.citations.base import CitationRows
from ranktilt.statistics.correction import correct


@dataclass(frozen=True, kw_only=True, eq=False)
class _PairRows:
    """The pages of one pair of groups, as both engines have them."""

    pair: Pair
    """Group a, and the group b that it is compared with."""
    new: CitationRows
    """Rows of the new engine."""
    old: CitationRows
    """Rows of the old engine; queries and units have the numbers that they have in `new`."""
    has_words: bool
    """Whether the answers of both engines say which words a page supports."""

    def questions(self) -> list[Question]:
        """Return the questions that both engines can answer, the primary one first."""
        old_keys = {
            question.key for question in answerable_questions(self.old, has_words=self.has_words)
        }
        new_questions = answerable_questions(self.new, has_words=self.has_words)
        return [question for question in new_questions if question.key in old_keys]


def citation_changes(
    new: KeptPages, old: KeptPages, pairs: Sequence[Pair], options: ComparisonOptions
) -> list[CitationChange]:
    """Return the change of every pair and question; those of the primary question come first.

    The primary question's p-values are corrected together, and those of all others together.
    """
    changes = list[CitationChange]()
    for pair in pairs:
        rows = _pair_rows(new, old, pair)
        changes += [_change(question, rows, options) for question in rows.questions()]
    primary_key = changes[0].question
    primary = [change for change in changes if change.question == primary_key]
    others = [change for change in changes if change.question != primary_key]
    return [
        *_with_corrected_p(primary, options.correction),
        *_with_corrected_p(others, options.correction),
    ]


def _pair_rows(new: KeptPages, old: KeptPages, pair: Pair) -> _PairRows:
    """Return both engines' rows with the same numbers of queries and units."""
    new_frame, old_frame = pair_frame(new.rows(), *pair), pair_frame(old.rows(), *pair)
    all_rows = pl.concat([new_frame.select("query", "unit"), old_frame.select("query", "unit")])
    queries, units = all_rows["query"].unique().sort(), all_rows["unit"].unique().sort()
    return _PairRows(
        pair=pair,
        new=citation_rows(new_frame, pair[0], queries=queries, units=units),
        old=citation_rows(old_frame, pair[0], queries=queries, units=units),
        has_words=new.has_words and old.has_words,
    )


def _change(question: Question, rows: _PairRows, options: ComparisonOptions) -> CitationChange:
    """Return how two engines differ in one question; the caller corrects p."""
    new, old = engine_tilts(question, rows.new, rows.old)
    spread = difference_spread(new, old, resamples=options.resamples, seed=options.seed)
    is_ratio = new.estimate.scale == "log ratio"
    if is_ratio:
        spread = spread.as_ratios()
    group_a, group_b = rows.pair
    thinner = _thinner_group(new, old, rows.pair)
    neutral = 1.0 if is_ratio else 0.0
    return CitationChange(
        question=question.key,
        a=group_a,
        b=group_b,
        new=new.estimate.value,
        old=old.estimate.value,
        neutral_new=new.estimate.neutral,
        neutral_old=old.estimate.neutral,
        value=spread.value,
        neutral=neutral,
        scale=new.estimate.scale,
        low=spread.low,
        high=spread.high,
        error=spread.error,
        p=spread.p,
        p_corrected=np.nan,
        exchange_p=spread.exchange_p,
        two_way_p=spread.two_way_p,
        growth=spread.growth,
        growth_low=spread.growth_low,
        growth_high=spread.growth_high,
        these_low=spread.these_low,
        these_high=spread.these_high,
        thinner=thinner,
        effective_units=spread.effective_units,
        effective_questions=spread.effective_questions,
        questions=spread.questions,
        family_size=1,
    )


def _thinner_group(new: EngineTilt, old: EngineTilt, pair: Pair) -> str:
    """Return the group that has fewer effective units than the other, in the engine with fewest."""
    units_new = effective_units_by_group(new.rows, new.estimate)
    units_old = effective_units_by_group(old.rows, old.estimate)
    # `min` takes the first of equals: the new engine.
    units_a, units_b = min((units_new, units_old), key=min)
    return pair[0] if units_a <= units_b else pair[1]


def _with_corrected_p(
    family: Sequence[CitationChange], correction: str
) -> Iterator[CitationChange]:
    """Yield changes that are tested together, with p corrected by ``holm`` or ``bonferroni``."""
    ps = correct([change.p for change in family], correction).tolist()
    for change, p in zip(family, ps, strict=True):
        yield replace(change, p_corrected=p, family_size=len(family))
