"""Rank the runs of one audit or several: by the primary question, and by effectiveness.

Every two runs are tested. A run's interval of ranks follows from the tests: it ranks below each run
that is shown to be higher, and above each run that is shown to be lower. A *tilt* is a run's answer
to the primary question about two groups; effectiveness is the mean of a measure over queries.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from math import isnan

from ranktilt.auditing.comparison.common_queries import MAX_LEFT_OUT
from ranktilt.auditing.comparison.comparability import comparability_notes
from ranktilt.auditing.comparison.match import Question, refuse_other_settings
from ranktilt.auditing.comparison.options import ComparisonOptions
from ranktilt.auditing.comparison.primary import primary_notation
from ranktilt.auditing.comparison.provenance import audit_spec
from ranktilt.auditing.comparison.ranks.answers import (
    MatchedAudits,
    RunAnswer,
    audit_name,
    match_audits,
)
from ranktilt.auditing.comparison.ranks.order import OrderedRuns, order_runs, ranks_of_orders
from ranktilt.auditing.comparison.ranks.result import RankedRun, RunDifference, RunRanks
from ranktilt.auditing.effects import FEW_QUERIES
from ranktilt.auditing.label_errors.changes import relative_rate_error
from ranktilt.auditing.label_errors.notes import correction_notes
from ranktilt.auditing.options import usual_primary
from ranktilt.auditing.result import Audit
from ranktilt.data.notes.base import Note, warnings_of
from ranktilt.data.notes.comparisons import FewQueriesCompared
from ranktilt.data.notes.run_ranks import (
    FewerQueriesRanked,
    QueriesNotInAllAudits,
    RankedQuestionsDiffer,
    RunsAnswerAlike,
    RunsNotRanked,
)
from ranktilt.errors import UserError
from ranktilt.measures.base import measure as to_measure

_MOST_NAMED = 3
"""Most audits or queries that a message or note names."""
FEWEST_RUNS = 3
"""Fewest runs to rank; two are compared."""


@dataclass(frozen=True, kw_only=True)
class RankedQuestions:
    """The questions by which runs are ranked."""

    tilts: tuple[Question, ...]
    """The primary question for each pair of groups; empty without groups.

    Each is the notation of the question, and the pair.
    """
    is_relative_delta: bool
    """Whether the primary question is Relative Δ of a measure."""
    measure: str | None
    """Measure of effectiveness; None without judgments."""

    @property
    def primary(self) -> str | None:
        """Notation of the question that comes first."""
        if not self.tilts:
            return self.measure
        notation, _pair = self.tilts[0]
        return notation


def rank_runs(audits: Sequence[Audit], options: ComparisonOptions) -> RunRanks:
    """Return each run's interval of ranks, on the primary question and on effectiveness."""
    for index, audit in enumerate(audits[1:], start=1):
        names = audit_name(audits[0], 0), audit_name(audit, index)
        refuse_other_settings(audits[0], audit, names)
    matched = match_audits(audits, max_left_out=options.max_left_out)
    questions = _questions(matched)
    tilts = [_tilts(matched, questions, question) for question in questions.tilts]
    means = [] if questions.measure is None else [matched.means(questions.measure)]
    families = [_rank_family(matched, answers, options) for answers in (tilts, means)]
    ranks = tuple(chain.from_iterable(family.ranks for family in families))
    if not ranks:
        raise UserError("no two runs answer the same question, so there is nothing to rank")
    notes = [
        *_audit_notes(audits),
        *_comparability_notes(audits),
        *_left_out_notes(matched),
        *_question_notes(audits, questions),
        *chain.from_iterable(family.notes for family in families),
        *_few_query_notes(ranks),
    ]
    return RunRanks(
        spec=_spec(matched, questions, options),
        runs=tuple(audit_run.name for audit_run in matched.runs),
        ranks=ranks,
        differences=tuple(chain.from_iterable(family.differences for family in families)),
        notes=tuple(dict.fromkeys(notes)),
    )


@dataclass(frozen=True, kw_only=True)
class _RankFamily:
    """Ranks by one question, for each pair of groups; all their p are corrected together."""

    ranks: tuple[RankedRun, ...]
    """Answer and interval of ranks of every run."""
    differences: tuple[RunDifference, ...]
    """Differences between every two runs."""
    notes: tuple[Note, ...]
    """What was left out."""


def _rank_family(
    matched: MatchedAudits, answers_of_pairs: Sequence[list[RunAnswer]], options: ComparisonOptions
) -> _RankFamily:
    """Rank the runs by one question.

    `answers_of_pairs` has the answers of all runs, for each pair of groups.
    """
    orders: list[OrderedRuns] = []
    notes: list[Note] = []
    rate_error = relative_rate_error(matched.audits[0])
    for answers in answers_of_pairs:
        defined = [answer for answer in answers if not isnan(answer.value)]
        notes += _undefined_notes(answers, defined, matched)
        if len(defined) > 1:
            order = order_runs(defined, options, rate_error=rate_error)
            notes += _order_notes(order, options.max_left_out)
            orders.append(order)
    ranks, differences = ranks_of_orders(orders, options.correction)
    return _RankFamily(ranks=tuple(ranks), differences=tuple(differences), notes=tuple(notes))


def _few_query_notes(ranks: Sequence[RankedRun]) -> Iterator[Note]:
    """Note that few queries count."""
    fewest = min(rank.queries for rank in ranks)
    if fewest < FEW_QUERIES:
        yield FewQueriesCompared(queries=fewest)


def _questions(matched: MatchedAudits) -> RankedQuestions:
    """Choose the questions by which runs are ranked.

    The tilt is the primary question of the first audit whose primary question all audits answer. If
    there is none, it is the usual measure, or else the first question that all audits answer.
    """
    measures, pairs = matched.measures, matched.pairs
    primaries = list(dict.fromkeys(map(primary_notation, matched.audits)))
    usual = usual_primary([to_measure(measure) for measure in measures])
    usual_measures = [] if usual is None else [repr(usual)]
    others = [repr(answer.estimand) for answer in matched.audits[0].query_answers]
    common_primaries = [notation for notation in primaries if notation in measures]
    effectiveness = next(iter([*common_primaries, *usual_measures]), None)
    for notation in (*primaries, *usual_measures, *others):
        is_relative_delta = notation in measures and bool(pairs)
        tilts = matched.questions(notation)
        if is_relative_delta:
            tilts = [(notation, pair) for pair in pairs]
        if tilts:
            return RankedQuestions(
                tilts=tuple(tilts), is_relative_delta=is_relative_delta, measure=effectiveness
            )
    _refuse_other_groups(matched)
    if effectiveness is None:
        raise UserError(
            "the audits have no measure and no question in common; audit all runs with the same "
            "--primary"
        )
    return RankedQuestions(tilts=(), is_relative_delta=False, measure=effectiveness)


def _refuse_other_groups(matched: MatchedAudits) -> None:
    """Refuse audits that compare groups, but have no pair of groups in common."""
    pairs = [set(map(frozenset, audit.pairs)) for audit in matched.audits]
    if not any(pairs) or pairs[0].intersection(*pairs):
        return
    texts = []
    for index, audit in enumerate(matched.audits[:_MOST_NAMED]):
        groups = ", ".join(map(" | ".join, audit.pairs)) or "none"
        texts.append(f"{audit_name(audit, index)} has {groups}")
    more = "; …" if len(matched.audits) > len(texts) else ""
    raise UserError(
        f"the audits have no pair of groups in common: {'; '.join(texts)}{more}; audit all runs "
        "with the same groups"
    )


def _tilts(
    matched: MatchedAudits, questions: RankedQuestions, question: Question
) -> list[RunAnswer]:
    """Return the answers of all runs to the primary question about one pair of groups."""
    if questions.is_relative_delta:
        notation, pair = question
        return matched.tilts(notation, pair)
    return matched.estimates(question)


def _audit_notes(audits: Sequence[Audit]) -> Iterator[Note]:
    """Yield the warnings of the audits, and how they were corrected for label errors."""
    for audit in audits:
        yield from warnings_of(audit.notes)
    yield from correction_notes(audits[0].notes)


def _comparability_notes(audits: Sequence[Audit]) -> Iterator[Note]:
    """Note differences between the first audit and each other audit, besides their runs."""
    for index, audit in enumerate(audits[1:], start=1):
        names = audit_name(audits[0], 0), audit_name(audit, index)
        yield from comparability_notes(audits[0], audit, names)


def _left_out_notes(matched: MatchedAudits) -> Iterator[Note]:
    """Note the queries that are not in all audits."""
    if matched.left_out:
        yield QueriesNotInAllAudits(
            left_out=len(matched.left_out),
            queries=len(matched.left_out) + len(matched.queries),
            first=matched.left_out[:_MOST_NAMED],
        )


def _question_notes(audits: Sequence[Audit], questions: RankedQuestions) -> Iterator[Note]:
    """Note primary questions that differ, or are not in all audits."""
    primary = questions.primary
    notations = tuple(dict.fromkeys(map(primary_notation, audits)))
    if primary is not None and notations != (primary,):
        yield RankedQuestionsDiffer(questions=notations, ranked=primary)


def _undefined_notes(
    answers: Sequence[RunAnswer], defined: Sequence[RunAnswer], matched: MatchedAudits
) -> Iterator[Note]:
    """Note the runs that have no defined answer to a question."""
    names = {answer.run for answer in defined}
    missing = tuple(run.name for run in matched.runs if run.name not in names)
    if missing and answers:
        yield RunsNotRanked(runs=missing, question=answers[0].sample.estimand.title)


def _order_notes(order: OrderedRuns, max_left_out: float) -> Iterator[Note]:
    """Note queries that do not count for every run, and runs with the same answer in each query.

    The first is a warning if it is more than `max_left_out` percent of the queries.
    """
    sample = order.runs[0].sample
    if order.excluded:
        queries = order.excluded + int(sample.mask.sum())
        fewest_run = min(order.query_counts, key=order.query_counts.__getitem__)
        are_many = 100 * order.excluded > max_left_out * queries
        yield FewerQueriesRanked(
            severity="warning" if are_many else "note",
            question=sample.estimand.title,
            excluded=order.excluded,
            queries=queries,
            fewest_run=fewest_run,
            fewest=order.query_counts[fewest_run],
        )
    for names in order.identical:
        yield RunsAnswerAlike(runs=names, question=sample.estimand.title)


def _spec(
    matched: MatchedAudits, questions: RankedQuestions, options: ComparisonOptions
) -> dict[str, object]:
    """Return the options, the questions, and the commands behind the audits."""
    audits = [audit_spec(audit) for audit in matched.audits]
    spec: dict[str, object] = {
        "correction": options.correction,
        "resamples": options.resamples,
        "seed": options.seed,
        "by": matched.audits[0].spec["by"],
        "primary": questions.primary,
        "measure": questions.measure,
        "queries_left_out": len(matched.left_out),
        "audits": audits,
    }
    if options.max_left_out != MAX_LEFT_OUT:
        spec["max_left_out"] = options.max_left_out
    return spec
