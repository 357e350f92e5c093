"""How two judges differ in coefficients: κ with humans, and τ-b of the order of systems."""

from __future__ import annotations

from dataclasses import replace

from ranktilt.auditing.comparison.options import ComparisonOptions
from ranktilt.judging.agreement import QueryDraws, query_tables
from ranktilt.judging.comparison import compare_kappas, compare_orders
from ranktilt.judging.drift.match import NEW, JudgeMatch
from ranktilt.judging.drift.result import JudgeChange, OrderLikeness
from ranktilt.judging.records import JudgeComparison
from ranktilt.judging.systems.systems import SystemValues, rank_agreement
from ranktilt.statistics.agreement import cohen_kappa
from ranktilt.statistics.correction import interval_error
from ranktilt.statistics.rank_correlation import kendall_tau
from ranktilt.statistics.two_way import effective_number


def kappa_change(match: JudgeMatch, top: int, draws: QueryDraws) -> JudgeChange | None:
    """Return the change of Cohen's κ; None where humans graded no common pair."""
    graded = match.graded
    pairs = graded[0].pairs
    if not pairs.height:
        return None
    (comparison,) = compare_kappas(graded, top=top, correction="holm", draws=draws)
    tables = [query_tables(side.pairs, top) for side in graded]
    new, old = (float(cohen_kappa(table.sum(0))) for table in tables)
    return _coefficient_change(
        JudgeChange.without_interval(
            match.judge, new, old, pairs=pairs.height, queries=comparison.queries
        ),
        comparison,
        effective_number(tables[0].sum((1, 2))),
    )


def order_change(
    judge: str, new: SystemValues, old: SystemValues, options: ComparisonOptions
) -> JudgeChange:
    """Return the change of Kendall's τ-b with the human order of systems."""
    (comparison,) = compare_orders([new, old], correction="holm", seed=options.seed)
    taus = [float(kendall_tau(side.human.mean(1), side.judged.mean(1))) for side in (new, old)]
    change = JudgeChange.without_interval(
        judge, *taus, pairs=len(new.runs), queries=len(new.queries)
    )
    change = replace(change, question="order", subject=new.measure)
    return _coefficient_change(change, comparison, float(len(new.queries)))


def _coefficient_change(
    change: JudgeChange, comparison: JudgeComparison, effective_n: float
) -> JudgeChange:
    """Take the interval and p of two coefficients, whichever of both was the higher one."""
    sign = 1.0 if comparison.judge_a == NEW else -1.0
    ends = sorted([sign * comparison.low, sign * comparison.high])
    low, high = (float(end) for end in ends)
    return replace(
        change,
        value=sign * comparison.difference,
        low=low,
        high=high,
        error=interval_error(low, high, effective_n),
        p=comparison.p,
        effective_n=effective_n,
    )


def order_likeness(new: SystemValues, old: SystemValues, seed: int) -> OrderLikeness:
    """Return τ-b of the two judges' orders of systems."""
    both = replace(new, human=old.judged)
    agreement = rank_agreement(both, seed=seed)
    return OrderLikeness(
        measure=new.measure,
        systems=len(new.runs),
        queries=len(new.queries),
        tau=agreement.tau,
    )
