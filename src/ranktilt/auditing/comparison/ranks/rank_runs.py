"""Rank the runs of one audit or several: by the primary question, and by effectiveness."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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
from ranktilt.auditing.comparison.ranks.order import TestedOrder, ranked, tested_order
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
    ranks, differences = list[RankedRun](), list[RunDifference]()
    notes = [*_inherited(audits), *_left_out(sides), *_question_notes(audits, questions)]
    rate_error = relative_rate_error(audits[0])
    families = [
        [_tilts(sides, questions, question) for question in questions.tilts],
        [] if questions.measure is None else [sides.means(questions.measure)],
    ]
    for family in families:
        orders = list[TestedOrder]()
        for answers in family:
            known = [answer for answer in answers if answer.value == answer.value]
            notes += _without_answer(answers, known, sides)
            if len(known) < 2:
                continue
            order = tested_order(known, options, rate_error=rate_error)
            notes += _order_notes(order)
            orders.append(order)
        more_ranks, more_differences = ranked(orders, options.correction)
        ranks += more_ranks
        differences += more_differences
    if not ranks:
        raise UserError("no two runs answer the same question, so there is nothing to rank")
    fewest = min(rank.queries for rank in ranks)
    if fewest < FEW_QUERIES:
        notes.append(FewQueriesCompared(queries=fewest))
    return RunRanks(
        spec=_spec(sides, questions, options),
        runs=tuple(audit_run.name for audit_run in sides.runs),
        ranks=tuple(ranks),
        differences=tuple(differences),
        notes=tuple(dict.fromkeys(notes)),
    )


def _questions(sides: RankedAudits) -> RankedQuestions:
    """Choose the questions: the first audit's primary one that all of them answer."""
    measures, pairs = sides.measures, sides.pairs
    usual = usual_primary([to_measure(measure) for measure in measures])
    effectiveness = None if usual is None else repr(usual)
    notations = list(dict.fromkeys(map(primary_notation, sides.audits)))
    # Where no primary question is in all audits, any question that is will do.
    others = [repr(answer.estimand) for answer in sides.audits[0].query_answers]
    for notation in dict.fromkeys([*notations, *([effectiveness] if effectiveness else []), *others]):
        if notation in measures:
            effectiveness = notation if notation in notations else effectiveness
            if pairs:
                return RankedQuestions(
                    tilts=tuple((notation, pair) for pair in pairs),
                    is_relative_delta=True,
                    measure=effectiveness,
                )
        elif questions := sides.questions(notation):
            return RankedQuestions(
                tilts=tuple(questions), is_relative_delta=False, measure=effectiveness
            )
    if effectiveness is None:
        raise UserError(
            "the audits have no measure and no question in common; audit all runs with the same "
            "--primary"
        )
    return RankedQuestions(tilts=(), is_relative_delta=False, measure=effectiveness)


def _tilts(
    sides: RankedAudits, questions: RankedQuestions, question: Question
) -> list[RunAnswer]:
    """Return the answers of all runs to the primary question about one pair of groups."""
    if questions.is_relative_delta:
        return sides.tilts(*question)
    return sides.estimates(question)


def _inherited(audits: Sequence[Audit]) -> Iterator[Note]:
    """Yield the warnings of the audits, and how their labels were corrected."""
    for audit in audits:
        yield from warnings_of(audit.notes)
    yield from correction_notes(audits[0].notes)


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


def _order_notes(order: TestedOrder) -> Iterator[Note]:
    """Note queries that do not count for every run, and runs that answer alike."""
    sample = order.runs[0].sample
    if order.excluded:
        yield FewerQueriesRanked(
            question=sample.estimand.title,
            excluded=order.excluded,
            queries=order.excluded + int(sample.mask.sum()),
        )
    for names in order.identical:
        yield RunsAnswerAlike(runs=names, question=sample.estimand.title)


def _spec(
    sides: RankedAudits, questions: RankedQuestions, options: ComparisonOptions
) -> dict[str, object]:
    """Return the options, the questions, and the commands behind the audits."""
    spec: dict[str, object] = {
        "correction": options.correction,
        "resamples": options.resamples,
        "seed": options.seed,
        "by": sides.audits[0].spec["by"],
        "primary": questions.primary,
        "measure": questions.measure,
        "queries_left_out": len(sides.left_out),
        "audits": [audit_spec(audit) for audit in sides.audits],
    }
    if options.max_left_out != MAX_LEFT_OUT:
        spec["max_left_out"] = options.max_left_out
    return spec
