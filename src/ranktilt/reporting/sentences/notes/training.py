"""Words of the notes on studies of trained rankers."""

from __future__ import annotations

from ranktilt.data.notes.training import (
    BodyTuned,
    FewQueriesEvaluated,
    MeanOfTrainings,
    OneTraining,
)
from ranktilt.errors import counted
from ranktilt.reporting.sentences.notes.base import note_words


@note_words.register
def _body_tuned(note: BodyTuned) -> str:
    return (
        f"body already tuned for {note.tuned}: {note.body}; the paper's were not, and its numbers "
        "are no match"
    )


@note_words.register
def _mean_of_trainings(note: MeanOfTrainings) -> str:
    return f"each trained ranker is the mean of {note.trainings} trainings with other seeds"


@note_words.register
def _one_training(note: OneTraining) -> str:
    return (
        "one training of each ranker is no finding: another seed may give another order; several "
        "tell the spread (--seeds 3)"
    )


@note_words.register
def _few_queries_evaluated(note: FewQueriesEvaluated) -> str:
    return f"{note.collection}: {counted(note.queries, 'query', 'queries')} show little"
