"""Rank the runs of one audit or several: by the primary question, and by effectiveness."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from math import isnan

from ranktilt.auditing.comparison.comparability import comparability_notes
from ranktilt.auditing.comparison.match import MAX_LEFT_OUT, Question, refuse_other_settings
from ranktilt.auditing.comparison.options import ComparisonOptions
from ranktilt.auditing.comparison.primary import primary_notation
from ranktilt.auditing.comparison.provenance import audit_spec
from ranktilt.auditing.comparison.ranks.answers import (
    RankedAudits,
    RunAnswer,
    audit_name,
    ranked_audits,
)
from ranktilt.auditing.comparison.ranks.order import OrderedRuns, ordered_runs, ranked
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
"""Most audits that a message names."""
FEWEST_RUNS = 3
"""Fewest runs to rank; two are compared."""


@dataclass(frozen=True, kw_only=True)
class RankedQuestions:
    """The questions by which runs are ranked."""

    tilts: tuple[Question, ...]
    """Notation of the primary question, and each pair of groups; none without groups."""
    is_relative_delta: bool
    """Whether the primary question is Relative Δ of a measure."""
    measure: str | None
    """Measure of effectiveness; None without judgments."""

    @property
    def primary(self) -> str | None:
        """Notation of the question that comes first."""
        return self.tilts[0][0] if self.tilts else self.measure


def rank_runs(audits: Sequence[Audit], options: ComparisonOptions) -> RunRanks:
    """Return each run's interval of ranks, on the primary question and on effectiveness."""
    for index, audit in enumerate(audits[1:], start=1):
        names = audit_name(audits[0], 0), audit_name(audit, index)
        refuse_other_settings(audits[0], audit, names)
    sides = ranked_audits(audits, max_left_out=options.max_left_out)
    questions = _questions(sides)
    tilts = [_tilts(sides, questions, question) for question in questions.tilts]
    means = [] if questions.measure is None else [sides.means(questions.measure)]
    families = [_family(sides, answers, options) for answers in (tilts, means)]
    ranks = tuple(chain.from_iterable(family.ranks for family in families))
    if not ranks:
        raise UserError("no two runs answer the same question, so there is nothing to rank")
    notes = [
        *_inherited(audits),
        *_comparability(audits),
        *_left_out(sides),
        *_question_notes(audits, questions),
        *chain.from_iterable(family.notes for family in families),
        *_few_queries(ranks),
    ]
    return RunRanks(
        spec=_spec(sides, questions, options),
        runs=tuple(audit_run.name for audit_run in sides.runs),
        ranks=ranks,
        differences=tuple(chain.from_iterable(family.differences for family in families)),
        notes=tuple(dict.fromkeys(notes)),
    )


@dataclass(frozen=True, kw_only=True)
class _Family:
    """Ranks by one question about each pair of groups, corrected together."""

    ranks: tuple[RankedRun, ...]
    differences: tuple[RunDifference, ...]
    notes: tuple[Note, ...]


def _family(
    sides: RankedAudits, answers_of_pairs: Sequence[list[RunAnswer]], options: ComparisonOptions
) -> _Family:
    """Rank the runs by one question about each pair of groups."""
    orders, notes = list[OrderedRuns](), list[Note]()
    rate_error = relative_rate_error(sides.audits[0])
    for answers in answers_of_pairs:
        known = [answer for answer in answers if not isnan(answer.value)]
        notes += _without_answer(answers, known, sides)
        if len(known) > 1:
            order = ordered_runs(known, options, rate_error=rate_error)
            notes += _order_notes(order, options.max_left_out)
            orders.append(order)
    ranks, differences = ranked(orders, options.correction)
    return _Family(ranks=tuple(ranks), differences=tuple(differences), notes=tuple(notes))


def _few_queries(ranks: Sequence[RankedRun]) -> Iterator[Note]:
    """Note that few queries count."""
    fewest = min(rank.queries for rank in ranks)
    if fewest < FEW_QUERIES:
        yield FewQueriesCompared(queries=fewest)


def _questions(sides: RankedAudits) -> RankedQuestions:
    """Choose the questions: the first audit's primary one that all of them answer."""
    measures, pairs = sides.measures, sides.pairs
    usual = usual_primary([to_measure(measure) for measure in measures])
    effectiveness = None if usual is None else repr(usual)
    notations = list(dict.fromkeys(map(primary_notation, sides.audits)))
    # Where no primary question is in all audits, any question that is will do.
    others = [repr(answer.estimand) for answer in sides.audits[0].query_answers]
    usual_notations = [] if effectiveness is None else [effectiveness]
    effectiveness = next(filter(measures.__contains__, notations), effectiveness)
    for notation in (*notations, *usual_notations, *others):
        is_relative_delta = notation in measures and bool(pairs)
        tilts = sides.questions(notation)
        if is_relative_delta:
            tilts = [(notation, pair) for pair in pairs]
        if tilts:
            return RankedQuestions(
                tilts=tuple(tilts), is_relative_delta=is_relative_delta, measure=effectiveness
            )
    _refuse_other_groups(sides)
    if effectiveness is None:
        raise UserError(
            "the audits have no measure and no question in common; audit all runs with the same "
            "--primary"
        )
    return RankedQuestions(tilts=(), is_relative_delta=False, measure=effectiveness)


def _refuse_other_groups(sides: RankedAudits) -> None:
    """Refuse audits of which some compare groups, and no pair of groups is in all of them."""
    pairs = [set(map(frozenset, audit.pairs)) for audit in sides.audits]
    if not any(pairs) or pairs[0].intersection(*pairs):
        return
    texts = []
    for index, audit in enumerate(sides.audits[:_MOST_NAMED]):
        groups = ", ".join(map(" | ".join, audit.pairs)) or "none"
        texts.append(f"{audit_name(audit, index)} has {groups}")
    more = "; …" if len(sides.audits) > len(texts) else ""
    raise UserError(
        f"the audits have no pair of groups in common: {'; '.join(texts)}{more}; audit all runs "
        "with the same groups"
    )


def _tilts(sides: RankedAudits, questions: RankedQuestions, question: Question) -> list[RunAnswer]:
    """Return the answers of all runs to the primary question about one pair of groups."""
    if questions.is_relative_delta:
        return sides.tilts(*question)
    return sides.estimates(question)


def _inherited(audits: Sequence[Audit]) -> Iterator[Note]:
    """Yield the warnings of the audits, and how their labels were corrected."""
    for audit in audits:
        yield from warnings_of(audit.notes)
    yield from correction_notes(audits[0].notes)


def _comparability(audits: Sequence[Audit]) -> Iterator[Note]:
    """Note what else differs between the first audit and each other one."""
    for index, audit in enumerate(audits[1:], start=1):
        sides = audit_name(audits[0], 0), audit_name(audit, index)
        yield from comparability_notes(audits[0], audit, sides)


def _left_out(sides: RankedAudits) -> Iterator[Note]:
    """Note the queries that are not in all audits."""
    if sides.left_out:
        yield QueriesNotInAllAudits(
            left_out=len(sides.left_out),
            queries=len(sides.left_out) + len(sides.queries),
            first=sides.left_out[:3],
        )


def _question_notes(audits: Sequence[Audit], questions: RankedQuestions) -> Iterator[Note]:
    """Note primary questions that differ, or are not in all audits."""
    primary = questions.primary
    notations = tuple(dict.fromkeys(map(primary_notation, audits)))
    if primary is not None and notations != (primary,):
        yield RankedQuestionsDiffer(questions=notations, ranked=primary)


def _without_answer(
    answers: Sequence[RunAnswer], known: Sequence[RunAnswer], sides: RankedAudits
) -> Iterator[Note]:
    """Note the runs that have no answer to a question."""
    names = {answer.run for answer in known}
    missing = tuple(run.name for run in sides.runs if run.name not in names)
    if missing and answers:
        yield RunsNotRanked(runs=missing, question=answers[0].sample.estimand.title)


def _order_notes(order: OrderedRuns, max_left_out: float) -> Iterator[Note]:
    """Note queries that do not count for every run, and runs that answer alike."""
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
    sides: RankedAudits, questions: RankedQuestions, options: ComparisonOptions
) -> dict[str, object]:
    """Return the options, the questions, and the commands behind the audits."""
    spec: dict[str, object] = {
        **{name: getattr(options, name) for name in ("correction", "resamples", "seed")},
        "by": sides.audits[0].spec["by"],
        "primary": questions.primary,
        "measure": questions.measure,
        "queries_left_out": len(sides.left_out),
    }
    spec["audits"] = [audit_spec(audit) for audit in sides.audits]
    if options.max_left_out != MAX_LEFT_OUT:
        spec["max_left_out"] = options.max_left_out
    return spec
