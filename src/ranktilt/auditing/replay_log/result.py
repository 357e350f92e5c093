"""The result of replaying a log: the parts of input order, model and parser in its measures.

A log holds the calls of an LLM ranker: prompts that show numbered passages, and the model's
answers. The *published* run is the ranking that published code made from the answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ranktilt.auditing.comparison.match import RunPair
from ranktilt.auditing.effects import Change
from ranktilt.auditing.groups import Pair
from ranktilt.auditing.replay_log.rankings import ReadAnswer, UnmatchedCall
from ranktilt.data.artifact import Coded, Result
from ranktilt.data.notes.base import Note
from ranktilt.rankers.llm.answers import AMBIGUOUS, KINDS, READABLE

INPUT = "input order"
"""Name of the run in the order that the model was given."""
MODEL = "model"
"""Name of the run by answers that are exactly one ranking; all others leave the input order."""
PUBLISHED = "published"
"""Name of the run that published code makes from the answers."""
STRICT = "strict"
"""Name of the run in which passages that no answer ranks are shuffled."""
_ROUNDING = 1e-9
"""Largest rounding error of a limit, in calls: a limit that is reached exactly passes."""
PARTS = (
    RunPair(new=MODEL, old=INPUT),
    RunPair(new=PUBLISHED, old=MODEL),
    RunPair(new=PUBLISHED, old=INPUT),
    RunPair(new=STRICT, old=INPUT),
)
"""Comparisons that show the parts.

These are the model's part, the parser's part, both together, and how much the answers achieve
without the input order.
"""


@dataclass(frozen=True, kw_only=True)
class AnswerExample:
    """An answer that occurs often in a log."""

    kind: str
    """Kind of answer."""
    answer: str
    """Text of the answer."""
    times: int
    """Number of times that it occurs."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ReplayedLog(
    Result,
    format="ranktilt-replayed-log",
    version=1,
    noun="a replayed log",
    command="ranktilt tools replay-log",
):
    """The result of `replay_log`: the parts of input order, model and parser in a published run."""

    spec: Mapping[str, Any]
    """How it was made: log, candidates, options."""
    answers: tuple[ReadAnswer, ...]
    """Every answer that was read, in the log's order."""
    unmatched: tuple[UnmatchedCall, ...]
    """Calls whose query or passages are not among the candidates, and why."""
    examples: tuple[AnswerExample, ...]
    """The most frequent answers of each kind."""
    queries: int
    """Number of queries that have a call and were not left out."""
    measures: tuple[str, ...]
    """Notations of the questions that were split; the first one is the primary question."""
    pairs: tuple[Pair, ...]
    """Pairs of groups that were compared."""
    changes: tuple[Change, ...]
    """The parts of each question, as differences of two runs.

    The model's part is ``model`` − ``input order``, and the parser's part is ``published`` −
    ``model``; then come both together, and ``strict`` − ``input order``.
    """
    notes: tuple[Coded[Note], ...]
    """Notes for the reader."""

    @property
    def kinds(self) -> dict[str, int]:
        """Number of answers of each kind, the best kind first."""
        counts = Counter(answer.kind for answer in self.answers)
        return {kind: counts[kind] for kind in KINDS if counts[kind]}

    @property
    def unreadable(self) -> int:
        """Number of answers that hold no ranking."""
        return sum(answer.kind not in READABLE for answer in self.answers)

    @property
    def failures(self) -> int:
        """Number of unreadable answers and unmatched calls."""
        return self.unreadable + len(self.unmatched)

    @property
    def ambiguous(self) -> int:
        """Number of answers with more than one ranking; they are among the unreadable ones."""
        return self.kinds.get(AMBIGUOUS, 0)

    @property
    def echoes(self) -> int:
        """Number of answers that repeat the order in which the passages were shown."""
        return sum(answer.echo for answer in self.answers)

    @property
    def passed(self) -> bool:
        """Whether the percentage of failures is at most ``max_failures``, or that is not set."""
        max_failures = self.spec.get("max_failures")
        if max_failures is None:
            return True
        total = len(self.answers) + len(self.unmatched)
        return bool(self.failures <= max_failures / 100 * total + _ROUNDING)

    def change(self, part: RunPair, measure: str, pair: Pair) -> Change | None:
        """Return a part of a measure for a pair of groups; None if it was not split.

        `part` is one of `PARTS`. The pair (`ALL`, `ALL`) is for effectiveness over all documents.
        """
        key = (part, pair, measure)
        for change in self.changes:
            run_pair = RunPair(new=change.run, old=change.old_run)
            if (run_pair, (change.a, change.b), change.measure) == key:
                return change
        return None

    def derived(self) -> dict[str, Any]:
        """Return numbers that follow from the fields, for the file."""
        return {
            "kinds": self.kinds,
            "failures": self.failures,
            "echoes": self.echoes,
            "passed": self.passed,
        }
