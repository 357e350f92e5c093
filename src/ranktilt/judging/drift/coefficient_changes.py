"""How two judges differ in coefficients: κ with humans, and τ-b of the order of systems.

The two judges, whoever gives grades of relevance, are an earlier and a later version of one: *old*
and *new*. Cohen's κ says how far a judge's grades agree with the human ones. A *system* is a ranker
whose run is evaluated; Kendall's τ-b says how alike a judge's grades and the human ones order the
systems.
"""

from __future__ import annotations

from dataclasses import replace

from ranktilt.auditing.comparison.options import ComparisonOptions
from ranktilt.judging.agreement import QueryDraws, query_tables
from ranktilt.judging.comparison import compare_kappas, compare_orders
from ranktilt.judging.drift.match import NEW, JudgeMatch
from ranktilt.judging.drift.result import JudgeChange, OrderLikeness
from ranktilt.judging.records import JudgeComparison
from ranktilt.judging.systems.systems import SystemValues, rank_agreement
from ranktilt.statistics.correction import interval_error
from ranktilt.statistics.judges.agreement import cohen_kappa
from ranktilt.statistics.judges.rank_correlation import kendall_tau
from ranktilt.statistics.two_way import effective_number


def kappa_change(match: JudgeMatch, top: int, draws: QueryDraws) -> JudgeChange | None:
    """Return the change of Cohen's κ; None where humans graded none of the common pairs.

    `top` is the highest grade. `draws` are the resamples of queries, the same for both judges.
    """
    pairs_of_judges = match.pairs_of_judges
    pair_count = pairs_of_judges[0].table.height
    if not pair_count:
        return None
    # With one comparison the correction changes nothing; all changes are corrected together later.
    (comparison,) = compare_kappas(pairs_of_judges, top=top, correction="holm", draws=draws)
    # Tables of counts, one for each query: human grade by grade of the judge.
    new_tables, old_tables = (
        query_tables(pairs_of_judge.table, top) for pairs_of_judge in pairs_of_judges
    )
    new, old = (float(cohen_kappa(tables.sum(0))) for tables in (new_tables, old_tables))
    change = JudgeChange.without_interval(
        match.judge, new, old, pairs=pair_count, queries=comparison.queries
    )
    pairs_per_query = new_tables.sum((1, 2))
    return _coefficient_change(change, comparison, effective_number(pairs_per_query))


def order_change(
    judge: str, new: SystemValues, old: SystemValues, options: ComparisonOptions
) -> JudgeChange:
    """Return the change of Kendall's τ-b with the human order of systems.

    `judge` is the name of the new judge. `new` and `old` are the values of the same systems and
    queries under both judges, by one measure.
    """
    (comparison,) = compare_orders([new, old], correction="holm", seed=options.seed)
    taus = [
        float(kendall_tau(values.human.mean(1), values.judged.mean(1))) for values in (new, old)
    ]
    change = JudgeChange.without_interval(
        judge, *taus, pairs=len(new.runs), queries=len(new.queries)
    )
    change = replace(change, question="order", subject=new.measure)
    return _coefficient_change(change, comparison, float(len(new.queries)))


def _coefficient_change(
    change: JudgeChange, comparison: JudgeComparison, effective_n: float
) -> JudgeChange:
    """Return the change with the interval and p of the comparison.

    A comparison subtracts the lower coefficient from the higher one; a change is new minus old.
    `effective_n` is the effective number of queries.
    """
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
    """Return τ-b of the two judges' orders of systems; `seed` is that of its interval."""
    # The old judge takes the place of humans.
    new_against_old = replace(new, human=old.judged)
    agreement = rank_agreement(new_against_old, seed=seed)
    return OrderLikeness(
        measure=new.measure,
        systems=len(new.runs),
        queries=len(new.queries),
        tau=agreement.tau,
    )
