"""Sentences of the notes on runs that are ordered by their answer to a question.

A note is what a reader of the result should know besides its numbers. A question is a measure of
effectiveness, or of whom a run favours.

Each function says a note of one class, the one that its parameter is annotated with. The classes
are in the file of the same name in `ranktilt.data.notes`.
"""

from __future__ import annotations

from ranktilt.data.notes.run_ranks import (
    FewerQueriesRanked,
    QueriesNotInAllAudits,
    RankedQuestionsDiffer,
    RunsAnswerAlike,
    RunsNotRanked,
)
from ranktilt.errors import join_words
from ranktilt.reporting.sentences.grammar import share_of_all, singular_or_plural
from ranktilt.reporting.sentences.notes.base import few_names, first_names, note_words


@note_words.register
def _runs_not_ranked(note: RunsNotRanked) -> str:
    have = singular_or_plural(len(note.runs), "has", "have")
    return f"not ranked by {note.question}: {few_names(note.runs)} {have} no answer to it"


@note_words.register
def _fewer_queries_ranked(note: FewerQueriesRanked) -> str:
    queries = share_of_all(note.excluded, note.queries, "query", "queries")
    they_do = singular_or_plural(note.excluded, "it does", "they do")
    return (
        f"{note.question}: {queries} left out, because {they_do} not count for every run; "
        f"{note.fewest_run} has the fewest ({note.fewest}): without it the others are ranked on "
        "more"
    )


@note_words.register
def _runs_answer_alike(note: RunsAnswerAlike) -> str:
    return (
        f"{few_names(note.runs)} have the same {note.question} in each query, so they share their "
        "ranks"
    )


@note_words.register
def _queries_not_in_all_audits(note: QueriesNotInAllAudits) -> str:
    queries = share_of_all(note.left_out, note.queries, "query", "queries")
    that_are = singular_or_plural(note.left_out, ", which is", " that are")
    names = first_names(note.first, note.left_out)
    return f"left out: {queries}{that_are} not in all audits ({names})"


@note_words.register
def _ranked_questions_differ(note: RankedQuestionsDiffer) -> str:
    if len(note.questions) > 1:
        return (
            f"the audits' primary questions differ: {join_words(list(note.questions))}; runs are "
            f"ranked by {note.ranked}. Audit all with the same --primary to choose another"
        )
    return (
        f"the primary question of the audits, {join_words(list(note.questions))}, is not in all of "
        f"them query by query; runs are ranked by {note.ranked}"
    )
