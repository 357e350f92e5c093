"""Words of the notes on runs that are ranked."""

from __future__ import annotations

from ranktilt.data.notes.run_ranks import (
    FewerQueriesRanked,
    QueriesNotInAllAudits,
    RankedQuestionsDiffer,
    RunsAnswerAlike,
    RunsNotRanked,
)
from ranktilt.errors import counted, join_words
from ranktilt.reporting.sentences.notes.base import few_names, first_names, note_words


@note_words.register
def _runs_not_ranked(note: RunsNotRanked) -> str:
    verb = "has" if len(note.runs) == 1 else "have"
    return f"not ranked by {note.question}: {few_names(note.runs)} {verb} no answer to it"


@note_words.register
def _fewer_queries_ranked(note: FewerQueriesRanked) -> str:
    queries = counted(note.queries, "query", "queries")
    return (
        f"{note.question}: {note.excluded} of {queries} left out, because they do not count for "
        f"every run; {note.fewest_run} has the fewest ({note.fewest}): without it the others are "
        "ranked on more"
    )


@note_words.register
def _runs_answer_alike(note: RunsAnswerAlike) -> str:
    return (
        f"{few_names(note.runs)} have the same {note.question} in each query, so they share their "
        "ranks"
    )


@note_words.register
def _queries_not_in_all_audits(note: QueriesNotInAllAudits) -> str:
    queries = counted(note.queries, "query", "queries")
    names = first_names(note.first, note.left_out)
    return f"left out: {note.left_out} of {queries} that are not in all audits ({names})"


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
