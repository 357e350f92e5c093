"""Notes of a replayed log, and its most frequent answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ranktilt.auditing.replay_log.result import AnswerExample
from ranktilt.auditing.replay_log.runs import LogRuns
from ranktilt.data.notes.base import Note
from ranktilt.data.notes.comparisons import CallsUnmatched, PassagesReordered
from ranktilt.rankers.llm.answer_kinds import KINDS

_MOST_EXAMPLES = 2
"""Most examples of answers of each kind."""
_LONGEST_EXAMPLE = 200
"""Most characters of an example; a longer answer is cut."""


def answer_examples(replayed: LogRuns) -> Iterator[AnswerExample]:
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


def log_notes(replayed: LogRuns) -> Iterator[Note]:
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
