"""What a replayed log says: kinds of answers, and the parts of the published run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ranktilt.auditing.comparison.match import RunPair
from ranktilt.auditing.effects import Change
from ranktilt.auditing.groups import Pair
from ranktilt.io.artifact import Result
from ranktilt.rankers.llm.answers import KINDS, READABLE
from ranktilt.rankers.llm.published_run import ReadAnswer, UnmatchedCall

INPUT, MODEL, PUBLISHED, STRICT = "input order", "model", "published", "strict"
PARTS = (RunPair(MODEL, INPUT), RunPair(PUBLISHED, MODEL), RunPair(PUBLISHED, INPUT), RunPair(STRICT, INPUT))
"""The model's part, the parser's, both together; and what the answers are worth without the input order."""


class AnswerExample(NamedTuple):
    kind: str
    answer: str
    times: int


@dataclass(frozen=True, eq=False)
class ReplayedLog(
    Result, format="ranktilt-replayed-log", version=1, noun="a replayed log", command="ranktilt tools replay-log"
):
    """What `replay_log` found; immutable."""

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
    """Each measure's part of the model (`model` − `input order`), of the parser (`published` − `model`), both
    together, and `strict` − `input order`."""
    notes: tuple[str, ...]
    """What a reader should know."""

    @property
    def kinds(self) -> dict[str, int]:
        """How many answers are of each kind, the best first."""
        found = Counter(one.kind for one in self.answers)
        return {kind: found[kind] for kind in KINDS if found[kind]}

    @property
    def unreadable(self) -> int:
        """Answers that hold no ranking."""
        return sum(one.kind not in READABLE for one in self.answers)

    @property
    def failures(self) -> int:
        """These, and calls that cannot be matched."""
        return self.unreadable + len(self.unmatched)

    @property
    def echoes(self) -> int:
        """Answers that repeat the order in which the passages were shown."""
        return sum(one.echo for one in self.answers)

    @property
    def passed(self) -> bool:
        """Whether no more calls fail than are allowed."""
        most = self.spec.get("max_failures")
        return most is None or self.failures <= most * (len(self.answers) + len(self.unmatched))

    def change(self, part: RunPair, measure: str, pair: Pair) -> Change | None:
        """Find the part of a run in a measure, of all documents where the pair is (`ALL`, `ALL`)."""
        found = (c for c in self.changes if (c.run, c.old_run) == part and (c.a, c.b) == pair)
        return next((c for c in found if c.measure == measure), None)

    def derived(self) -> dict[str, Any]:
        return {"kinds": self.kinds, "failures": self.failures, "echoes": self.echoes, "passed": self.passed}
