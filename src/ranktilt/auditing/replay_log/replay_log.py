"""Split the measures of a published run into the parts of input order, model and parser.

A log holds the calls of an LLM ranker: prompts that show passages, and the model's answers. The
*published* run is what published code made from the answers; the *parser* is what in that code
reads an answer. Passages that an answer does not rank keep the order in which they were shown, so a
published run owes its measures to that order, to the model and to the parser. A *part*, such as
that of the model, is the difference between two of the log's runs; `PARTS` names them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ranktilt._version import __version__
from ranktilt.auditing.audit import audit
from ranktilt.auditing.card import group_samples
from ranktilt.auditing.comparison.changes import (
    ChangeTask,
    contrast_changes,
    contrast_task,
    mean_changes,
)
from ranktilt.auditing.comparison.match import match
from ranktilt.auditing.comparison.tasks import change_tasks
from ranktilt.auditing.grouping.pairs import grouped_pairs
from ranktilt.auditing.groups import ALL, Pair
from ranktilt.auditing.judged_run import JudgedRun
from ranktilt.auditing.judgments import Judgments
from ranktilt.auditing.options import check_resamples
from ranktilt.auditing.replay_log.result import INPUT, PARTS, AnswerExample, ReplayedLog
from ranktilt.auditing.replay_log.runs import LogRuns
from ranktilt.auditing.significance import Sample, correct_p_values
from ranktilt.data.collection import Collection
from ranktilt.data.notes.base import Note
from ranktilt.data.notes.comparisons import CallsUnmatched, PassagesReordered
from ranktilt.data.runs.run import Run
from ranktilt.errors import UserError
from ranktilt.field_checks import is_number, printed, require_seed
from ranktilt.measures.base import Estimand, GroupEstimand, Measure, estimand
from ranktilt.rankers.llm.answers import KINDS
from ranktilt.statistics.bootstrap import RESAMPLES

_MOST_EXAMPLES = 2
"""Most examples of answers of each kind."""
_LONGEST_EXAMPLE = 200
"""Most characters of an example; a longer answer is cut."""


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
    if max_failures is not None and (not is_number(max_failures) or not 0 <= max_failures <= 100):
        raise UserError(
            f"expected a percentage from 0 to 100 as max_failures, got {printed(max_failures)}"
        )
    check_resamples(resamples)
    require_seed(seed)
    questions = _LogQuestions(
        collection=collection,
        runs=list(replayed.runs.values()),
        estimands=_estimands(measures, collection, by),
        by=by,
        pairs=None if pairs is None else list(pairs),
    )
    tasks = _part_tasks(questions, resamples=resamples, seed=seed)
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
        examples=tuple(_answer_examples(replayed)),
        queries=len(rankings.called),
        measures=tuple(map(repr, questions.estimands)),
        pairs=tuple(compared_pairs),
        changes=correct_p_values(changes, correction),
        notes=tuple(_log_notes(replayed)),
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


# ---- parts --------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class _LogQuestions:
    """The questions about the runs of a log."""

    collection: Collection
    """Documents and judgments."""
    runs: Sequence[Run]
    """Runs of the log."""
    estimands: Sequence[Estimand]
    """Measures and group estimands to split."""
    by: str | None
    """Column of the groups; None without groups."""
    pairs: Sequence[Pair] | None
    """Pairs of groups to compare; None for all."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _PartTasks:
    """Values per query of two runs each, for every part of a log."""

    means: tuple[ChangeTask, ...] = ()
    """Comparisons of effectiveness."""
    contrasts: tuple[ChangeTask, ...] = ()
    """Comparisons of tilts, and of answers about groups."""


def _part_tasks(questions: _LogQuestions, *, resamples: int, seed: int) -> _PartTasks:
    """Return the comparisons of each part's two runs, on measures and on group estimands."""
    tasks = _PartTasks()
    measures = [question for question in questions.estimands if isinstance(question, Measure)]
    if measures:
        tasks = _measure_tasks(questions, measures, resamples=resamples, seed=seed)
    contrasts = [*tasks.contrasts]
    group_estimands = [
        question for question in questions.estimands if isinstance(question, GroupEstimand)
    ]
    if group_estimands:
        contrasts += _group_tasks(questions, group_estimands)
    return _PartTasks(means=tasks.means, contrasts=tuple(contrasts))


def _measure_tasks(
    questions: _LogQuestions, measures: Sequence[Measure], *, resamples: int, seed: int
) -> _PartTasks:
    """Return the comparisons on measures of relevance, and on their Relative Δ with groups."""
    audited = audit(
        questions.collection,
        questions.runs,
        measures,
        by=questions.by,
        pairs=questions.pairs,
        missing="exclude",
        confounds=False,
        keep_top=0,
        resamples=resamples,
        seed=seed,
    )
    # The match compares all runs with the baseline; here the pairs of runs are those of the parts.
    matched = replace(match(audited, audited, baseline_run=INPUT), runs=PARTS)
    return _PartTasks(
        means=tuple(change_tasks(matched, [(ALL, ALL)])),
        contrasts=tuple(change_tasks(matched, matched.pairs)),
    )


def _group_tasks(
    questions: _LogQuestions, estimands: Sequence[GroupEstimand]
) -> Iterator[ChangeTask]:
    """Return the comparisons on group estimands."""
    collection = questions.collection
    groups, pairs = grouped_pairs(collection, questions.by, questions.pairs)
    judgments = Judgments.from_collection(collection, groups)
    judged_runs = [JudgedRun.from_run(run, collection, judgments) for run in questions.runs]
    return _group_contrasts(group_samples(judged_runs, groups, pairs, estimands))


def _group_contrasts(samples: Sequence[Sample]) -> Iterator[ChangeTask]:
    """Compare the runs of each part on each group estimand and pair of groups."""
    samples_by_run = {
        (sample.run, sample.estimand, sample.a, sample.b): sample for sample in samples
    }
    questions = dict.fromkeys((sample.estimand, sample.a, sample.b) for sample in samples)
    for question in questions:
        for part in PARTS:
            new, old = samples_by_run[part.new, *question], samples_by_run[part.old, *question]
            yield contrast_task(new, old)


# ---- answers and notes --------------------------------------------------------------------------


def _answer_examples(replayed: LogRuns) -> Iterator[AnswerExample]:
    """Yield the most frequent answers of each kind."""
    text_of_call = {call.number: call.answer or "" for call in replayed.calls}
    for kind in KINDS:
        counts = Counter(
            text_of_call[answer.call] for answer in replayed.rankings.answers if answer.kind == kind
        )
        for text, times in counts.most_common(_MOST_EXAMPLES):
            if len(text) > _LONGEST_EXAMPLE:
                text = f"{text[: _LONGEST_EXAMPLE - 1]}…"
            yield AnswerExample(kind=kind, answer=text, times=times)


def _log_notes(replayed: LogRuns) -> Iterator[Note]:
    """Note calls that were left out, and passages that were shown in an unexpected order."""
    rankings = replayed.rankings
    if rankings.unmatched:
        first = rankings.unmatched[0]
        yield CallsUnmatched(
            unmatched=len(rankings.unmatched),
            calls=len(replayed.calls),
            first=first.call,
            mismatch=first.mismatch,
            queries_left_out=tuple(rankings.left_out.values()),
        )
    if rankings.other_order:
        yield PassagesReordered(calls=rankings.other_order)
