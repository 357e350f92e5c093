"""The parts of input order, model and parser in the published run of a log."""

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
PUBLISHED = "published"
STRICT = "strict"
"""Names of the runs that are made of a log's answers; see the fields of `ReplayedRankings`."""
PARTS = (
    RunPair(new=MODEL, old=INPUT),
    RunPair(new=PUBLISHED, old=MODEL),
    RunPair(new=PUBLISHED, old=INPUT),
    RunPair(new=STRICT, old=INPUT),
)
"""The model's part, the parser's, both together; and what the answers are worth without the input
order.
"""


@dataclass(frozen=True, kw_only=True)
class AnswerExample:
    """An answer that came often."""

    kind: str
    answer: str
    times: int


@dataclass(frozen=True, eq=False, kw_only=True)
class ReplayedLog(
    Result,
    format="ranktilt-replayed-log",
    version=1,
    noun="a replayed log",
    command="ranktilt tools replay-log",
):
    """The parts of input order, model and parser in the published run of a log."""

    spec: Mapping[str, Any]
    """How it was made: log, candidates, options."""
    answers: tuple[ReadAnswer, ...]
    """Every answer that was read, in the log's order."""
    unmatched: tuple[UnmatchedCall, ...]
    """Calls that cannot be matched, and why."""
    examples: tuple[AnswerExample, ...]
    """The answers that came most often, of each kind."""
    queries: int
    """Queries with a call, without those that an unmatched call can be about."""
    measures: tuple[str, ...]
    """What was split; the first is the primary one."""
    pairs: tuple[Pair, ...]
    changes: tuple[Change, ...]
    """Each measure's part of the model (`model` − `input order`), of the parser (`published` −
    `model`), both together, and `strict` − `input order`.
    """
    notes: tuple[Coded[Note], ...]
    """What a reader should know."""

    @property
    def kinds(self) -> dict[str, int]:
        """How many answers are of each kind, the best first."""
        counts = Counter(answer.kind for answer in self.answers)
        return {kind: counts[kind] for kind in KINDS if counts[kind]}

    @property
    def unreadable(self) -> int:
        """Answers that hold no ranking."""
        return sum(answer.kind not in READABLE for answer in self.answers)

    @property
    def failures(self) -> int:
        """These, and calls that cannot be matched."""
        return self.unreadable + len(self.unmatched)

    @property
    def ambiguous(self) -> int:
        """Answers with more than one ranking, which are among the unreadable ones."""
        return self.kinds.get(AMBIGUOUS, 0)

    @property
    def echoes(self) -> int:
        """Answers that repeat the order in which the passages were shown."""
        return sum(answer.echo for answer in self.answers)

    @property
    def passed(self) -> bool:
        """Whether few enough calls fail."""
        max_failures = self.spec.get("max_failures")
        if max_failures is None:
            return True
        total = len(self.answers) + len(self.unmatched)
        return bool(self.failures <= max_failures / 100 * total + 1e-9)

    def change(self, part: RunPair, measure: str, pair: Pair) -> Change | None:
        """Return a part of the run in a measure; the pair (`ALL`, `ALL`) is all documents."""
        key = (part, pair, measure)
        for change in self.changes:
            run_pair = RunPair(new=change.run, old=change.old_run)
            if (run_pair, (change.a, change.b), change.measure) == key:
                return change
        return None

    def derived(self) -> dict[str, Any]:
        return {
            "kinds": self.kinds,
            "failures": self.failures,
            "echoes": self.echoes,
            "passed": self.passed,
        }
