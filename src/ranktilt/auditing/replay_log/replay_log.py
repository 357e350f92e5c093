"""Split the measures of a published run into the parts of input order, model and parser.

A log holds the calls of an LLM ranker. The published run is what published code made from its
answers; the *parser* is the part of that code that reads an answer.
"""

from __future__ import annotations

from collections.abc import Iterable

from ranktilt._version import __version__
from ranktilt.auditing.groups import ALL, Pair
from ranktilt.auditing.options import check_resamples
from ranktilt.auditing.replay_log.notes import answer_examples, log_notes
from ranktilt.auditing.replay_log.result import INPUT, ReplayedLog
from ranktilt.auditing.replay_log.runs import LogRuns
from ranktilt.auditing.replay_log.tasks import LogQuestions, part_tasks
from ranktilt.auditing.significance import contrast_changes, correct_p_values, mean_changes
from ranktilt.data.collection import Collection
from ranktilt.errors import UserError
from ranktilt.measures.base import Estimand, GroupEstimand, Measure, estimand
from ranktilt.statistics.bootstrap import RESAMPLES


def replay_log(
    replayed: LogRuns,
    collection: Collection,
    measures: Iterable[str | Estimand] | None = None,
    *,
    by: str | None = None,
    pairs: Iterable[Pair] | None = None,
    max_failures: float | None = None,
    correction: str = "holm",
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> ReplayedLog:
    """Split a published run's measures into the parts of input order, model and parser.

    The published run is the ranking that the code of RankGPT and rank_llm makes from the answers:
    any number anywhere in an answer counts, and passages that it does not name keep their place. In
    the strict run, an answer that is not exactly one ranking has no effect.

    Parameters
    ----------
    replayed : LogRuns
        The result of `log_runs`.
    collection : Collection
        Documents and judgments, with a column of groups if you compare any. Without judgments, only
        answers are counted.
    measures : iterable of str or Estimand, optional
        Measures and group estimands; by default nDCG@10, and with groups ExposureRatio.
    by : str, optional
        Document column to group by; no groups by default.
    pairs : iterable of (str, str), optional
        Pairs of groups to compare; all pairs by default.
    max_failures : float, optional
        Largest percentage of calls without a ranking or without a match that still passes;
        `ReplayedLog.passed` tells you the outcome.
    correction : {"holm", "bonferroni"}, optional
        Correction of all p for several tests.
    resamples, seed : int, optional
        Number of bootstrap resamples; their random seed.
    """
    if max_failures is not None and not 0 <= max_failures <= 100:
        raise UserError(
            f"expected a percentage from 0 to 100 as max_failures, got {max_failures:g}"
        )
    check_resamples(resamples)
    questions = LogQuestions(
        collection=collection,
        runs=list(replayed.runs.values()),
        estimands=_estimands(measures, collection, by),
        by=by,
        pairs=None if pairs is None else list(pairs),
    )
    tasks = part_tasks(questions, resamples=resamples, seed=seed)
    changes = [
        *mean_changes(tasks.means, resamples=resamples, seed=seed),
        *contrast_changes(tasks.contrasts, resamples=resamples, seed=seed),
    ]
    compared_pairs = dict.fromkeys((change.a, change.b) for change in changes)
    compared_pairs.pop((ALL, ALL), None)  # effectiveness, which compares no groups
    spec = {
        "log": replayed.spec,
        "candidates": replayed.runs[INPUT].spec.get("candidates"),
        "by": by,
        "max_failures": max_failures,
        "correction": correction,
        "resamples": resamples,
        "seed": seed,
        "ranktilt": __version__,
    }
    rankings = replayed.rankings
    return ReplayedLog(
        spec=spec,
        answers=tuple(rankings.answers),
        unmatched=tuple(rankings.unmatched),
        examples=tuple(answer_examples(replayed)),
        queries=len(rankings.called),
        measures=tuple(map(repr, questions.estimands)),
        pairs=tuple(compared_pairs),
        changes=correct_p_values(changes, correction),
        notes=tuple(log_notes(replayed)),
    )


def _estimands(
    measures: Iterable[str | Estimand] | None, collection: Collection, by: str | None
) -> list[Estimand]:
    """Read the questions; refuse those that cannot be split into parts."""
    if measures is None:
        default_measures = ["nDCG@10"] if collection.has_judgments else []
        default_estimands = [] if by is None else ["ExposureRatio"]
        measures = [*default_measures, *default_estimands]
    estimands = [estimand(measure) for measure in measures]
    for question in estimands:
        _check_question(question, has_judgments=collection.has_judgments, has_groups=by is not None)
    return estimands


def _check_question(question: Estimand, *, has_judgments: bool, has_groups: bool) -> None:
    """Refuse a question that cannot be split into parts, or that lacks judgments or groups."""
    if not isinstance(question, Measure | GroupEstimand) or question.reads_scores:
        raise UserError(
            f"{question!r} cannot be split; name a measure such as nDCG@10, or ExposureRatio "
            "with groups"
        )
    if isinstance(question, GroupEstimand) and not has_groups:
        raise UserError(f"{question!r} needs a column to group by (--by)")
    if isinstance(question, Measure) and not has_judgments:
        raise UserError(
            f"{question!r} needs judgments, and there are none: name them (--qrels FILE)"
        )
