"""Level a ranker at inference: fit corrections, choose each one's strength, and test them.

A *tilt* is how far a ranker favours one group over another; it is *level* if it is within a margin.
A *candidate* is a correction at one strength, and the *baseline* is the ranker without any
correction. A *question* is an *estimand*, a number that says which of two groups is favoured, such
as Relative Δ (the difference of both groups' quality, in percent of its mean). A *bench* is the
result: what each candidate does to tilt and quality. There are four steps, with at most three full
audits:

    test the baseline (one audit)  →  fit methods  →  choose strengths  →  compare (two audits)

If the baseline is not shown to be tilted, the other steps are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ranktilt.auditing.grouping.labels import grouping
from ranktilt.auditing.grouping.pairs import grouped_pairs, twin_rows
from ranktilt.auditing.groups import Pair
from ranktilt.auditing.options import check_resamples, usual_primary
from ranktilt.auditing.prepare import DEFAULT_MEASURES, SHARE
from ranktilt.data.collection import Collection
from ranktilt.data.runs.run import Run
from ranktilt.errors import UserError, list_names
from ranktilt.measures.base import Estimand, Measure, estimand, measure
from ranktilt.measures.margin import DEFAULT_MARGIN
from ranktilt.mitigation.audited_candidates import BenchOptions
from ranktilt.mitigation.baseline import Baseline
from ranktilt.mitigation.bench import EFFECTIVENESS, order_questions
from ranktilt.mitigation.bench_result import Bench, check_limits, default_budget
from ranktilt.mitigation.levelling import Levelling
from ranktilt.mitigation.options import MitigationOptions
from ranktilt.mitigation.query_split import QuerySplit, split_across, split_queries
from ranktilt.rankers.base import Ranker
from ranktilt.statistics.bootstrap import RESAMPLES


def mitigate(
    collection: QuerySplit | Collection,
    ranker: Ranker | Run,
    measures: Sequence[str | Estimand] | None = None,
    *,
    fit: Collection | None = None,
    folder: str | Path | None = None,
    options: MitigationOptions | None = None,
    primary: str | Estimand | None = None,
    effectiveness: str | Measure = EFFECTIVENESS,
    budget: float | None = None,
    ties: str = "expected",
    test: str = "interval",
    correction: str = "holm",
    margin: float = DEFAULT_MARGIN,
    resamples: int = RESAMPLES,
) -> Bench:
    """Compare corrections of a ranker by tilt and effectiveness, on queries that none has learned.

    First the ranker is tested over all queries. If it is not shown to be tilted, nothing is fitted,
    and the bench has no candidates (unless you set `MitigationOptions.always`). Otherwise each
    method learns from a first set of queries. On a second set, its smallest strength is chosen with
    a tilt within half of `margin` and a loss within the budget, or else the strength nearest to
    level. A third set tests the chosen candidates, and shows all strengths. A method that cannot be
    tried is listed with the reason (`Bench.refused`).

    Parameters
    ----------
    collection : Collection or QuerySplit
        A collection, whose queries are drawn into three sets (`split_queries`), or those sets.
    ranker : Ranker or Run
        The ranker to level, or the run of an engine that cannot be changed.
    measures : sequence of str or Estimand, optional
        Measures to take Relative Δ of, and questions about two groups, such as ``Share@10``.
    fit : Collection, optional
        Another collection for the methods to learn from. Queries and documents that it shares with
        `collection` are left out. If `collection` has no sets of queries, strengths are chosen on a
        third of its queries, and the others are the test.
    folder : str or Path, optional
        Folder in which to save fits, which you need to rank with a correction. By default they are
        not saved, and the result only names their files.
    options : MitigationOptions, optional
        Methods, strengths, groups.
    primary : str or Estimand, optional
        The question that decides what is level, in percent. By default it is that of an audit with
        these measures. If nothing is judged, it is HeadToHead for twins (documents of the same
        origin in both groups) and Share@10 for other documents.
    effectiveness, budget, ties, test, correction, margin, resamples
        How candidates are compared; parameters of `ranktilt.bench`.

    Returns
    -------
    Bench
        Results on the test queries, with the candidates that other queries chose
        (`Bench.selected`); or those of the ranker alone.

    Raises
    ------
    UserError
        If there is nothing to fit on, no method suits the ranker, the groups and the run, or an
        option is out of range.
    """
    options = options or MitigationOptions()
    split = _split(collection, fit, options.seed)
    budget = default_budget(is_judged=split.test.has_judgments) if budget is None else budget
    check_limits(margin, budget)
    check_resamples(resamples)
    pair = _pair(split.test, options)
    bench_options = BenchOptions(
        effectiveness=measure(effectiveness),
        budget=budget,
        reference=pair[0],
        by=options.by,
        pairs=(pair,),
        ties=ties,
        test=test,
        correction=correction,
        margin=margin,
        resamples=resamples,
        seed=options.seed,
    )
    questions = _questions(split.test, measures, primary, by=options.by, pair=pair)
    if isinstance(ranker, Run):
        baseline = Baseline.from_run(ranker, options.depth, name=options.name)
    else:
        baseline = Baseline.from_ranker(ranker, options.depth, name=options.name)
    if split.fitted_on:
        baseline.require_other_collection(split.fitted_on)
    levelling = Levelling(
        split=split,
        baseline=baseline,
        questions=questions,
        options=options,
        bench_options=bench_options,
        folder=None if folder is None else Path(folder),
        baseline_run=baseline.rank(split.drawn_from or split.test),
    )
    tested = levelling.test_baseline()
    if not (options.always or tested.choose().is_tilted):
        return tested
    return levelling.compare(tested)


def _split(collection: QuerySplit | Collection, fit: Collection | None, seed: int) -> QuerySplit:
    """Return the three sets of queries, drawn unless `collection` has them already.

    With `fit`, methods are fitted on the queries of that collection.
    """
    if isinstance(collection, QuerySplit):
        if fit is None:
            return collection
        return QuerySplit.across(fit, collection.select, collection.test)
    if fit is None:
        return split_queries(collection, seed=seed)
    return split_across(collection, fit, seed=seed)


def _pair(collection: Collection, options: MitigationOptions) -> Pair:
    """Return the reference and the other group; refuse to guess among more than two."""
    chosen_pairs = None if options.pair is None else [options.pair]
    groups, pairs = grouped_pairs(collection, options.by, chosen_pairs)
    if len(pairs) > 1:
        raise UserError(
            f"{options.by} makes {len(groups.names)} groups ({list_names(groups.names)}); name "
            "the two to level: --pair A,B"
        )
    known = grouping(collection, options.by).names
    unions = [name for name in pairs[0] if name not in known]  # such as Europe|Asia
    if unions:
        raise UserError(
            f"a correction works on single groups, and {unions[0]!r} is not one; name two to "
            "level: "
            "--pair A,B"
        )
    return pairs[0]


def _questions(
    collection: Collection,
    measures: Sequence[str | Estimand] | None,
    primary: str | Estimand | None,
    *,
    by: str,
    pair: Pair,
) -> list[Estimand]:
    """Return the questions to ask, the primary one first.

    By default they are those of an audit. Without judgments, they are which group wins among twins
    (if there are any), and which group has the first ranks.
    """
    defaults: Sequence[str | Estimand] = DEFAULT_MEASURES
    if not collection.has_judgments:
        has_twins = len(twin_rows(collection, grouping(collection, by), pair)) > 0
        defaults = (*(["HeadToHead"] if has_twins else []), SHARE, "ExposureRatio")
    questions = [estimand(question) for question in measures or defaults]
    if primary is None:
        # Without judgments the first default above is primary; `usual_primary` would take another.
        has_own_defaults = not (measures or collection.has_judgments)
        primary = questions[0] if has_own_defaults else usual_primary(questions, by)
    return order_questions(questions, primary, by)
