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
    """Give the answers of each kind that came most often."""
    answers = {call.number: call.answer or "" for call in replayed.calls}
    for kind in KINDS:
        of_kind = Counter(
            answers[read.call] for read in replayed.rankings.answers if read.kind == kind
        )
        for answer, times in of_kind.most_common(_MOST_EXAMPLES):
            if len(answer) > _LONGEST_EXAMPLE:
                answer = f"{answer[: _LONGEST_EXAMPLE - 1]}…"
            yield AnswerExample(kind=kind, answer=answer, times=times)


def log_notes(replayed: LogRuns) -> Iterator[Note]:
    """Note calls that were left out, and passages that came in another order."""
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
