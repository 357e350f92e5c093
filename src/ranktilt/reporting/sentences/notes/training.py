"""Sentences of the notes on studies of rankers that were trained on texts of one source each.

A note is what a reader of the result should know besides its numbers. A body is the language model
that a ranker is trained from.

Each function says a note of one class, the one that its parameter is annotated with. The classes
are in the file of the same name in `ranktilt.data.notes`.
"""

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
        f"{note.body} is already tuned for {note.tuned}; the paper's bodies were not, so do not "
        "compare with its numbers"
    )


@note_words.register
def _mean_of_trainings(note: MeanOfTrainings) -> str:
    return f"each trained ranker is the mean of {note.trainings} trainings with different seeds"


@note_words.register
def _one_training(note: OneTraining) -> str:
    return (
        "one training per ranker shows little: another seed may give another order. Train several "
        "to see the spread (--seeds 3)"
    )


@note_words.register
def _few_queries_evaluated(note: FewQueriesEvaluated) -> str:
    queries = counted(note.queries, "query shows", "queries show")
    return f"{note.collection}: {queries} little"
