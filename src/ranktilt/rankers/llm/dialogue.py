"""Asking a language model in rounds: each holds the prompts that all queries want answered next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from typing import Any, Generic, NamedTuple, TypeVar

import orjson

from ranktilt.llm.base import LLM, Prompt, Reply, Sampling
from ranktilt.llm.estimate import Rehearsal
from ranktilt.llm.journal import Journal, Request, journalled
from ranktilt.rankers.llm.answers import KINDS, READABLE, UNANSWERED, Reading

Shown = tuple[int, ...]
"""Candidates of a query, by their place in the first stage's ranking, in the order in which a prompt lists them."""
Found = TypeVar("Found")
Asker = Callable[..., Generator[Reply, None, None]]
"""Answers requests: `journalled`, or a `Rehearsal`."""


class AnswerCounts(NamedTuple):
    """What was asked and answered over all queries: kinds of answers, tokens, and the first unreadable answer."""

    kinds: Mapping[str, int] = {}
    requests: int = 0
    fresh: int = 0
    read: int = 0
    written: int = 0
    example: str = ""

    @property
    def spec(self) -> dict[str, Any]:
        """What a run's spec says of them."""
        counts = {kind: self.kinds[kind] for kind in KINDS if self.kinds.get(kind)}
        example = {"unreadable": self.example} if self.example else {}
        asked = {"requests": self.requests, "fresh": self.fresh, "tokens_read": self.read}
        return {"llm_answers": {"kinds": counts, **asked, "tokens_written": self.written, **example}}

    def with_round(self, replies: Iterable[Reply | None], readings: Sequence[Reading]) -> AnswerCounts:
        """Return them with those of one more round."""
        kinds, example = Counter(self.kinds) + Counter(reading.kind for reading in readings), self.example
        asked = fresh = read = written = 0
        for reply, reading in zip(replies, readings, strict=True):
            if reply is None:
                continue
            asked, fresh, answer = asked + 1, fresh + reply.fresh, reply.answer
            if answer is not None:
                read, written = read + (answer.prompt_tokens or 0), written + (answer.completion_tokens or 0)
            if not example and reading.kind not in READABLE:
                example = answer.text if answer is not None else reply.failure.message if reply.failure else ""
        return AnswerCounts(
            kinds, self.requests + asked, self.fresh + fresh, self.read + read, self.written + written, example[:2_000]
        )


class Rounds(Generic[Found]):
    """The tasks that a model is asked about, each a generator: it yields what to show next, and is sent the readings.

    `waiting` holds what each unfinished task wants to show, `found` what the others have ended with, by their number.
    """

    def __init__(self, tasks: Sequence[Generator[list[Shown], list[Reading], Found]]) -> None:
        self._tasks = tasks
        self.waiting: dict[int, list[Shown]] = {}
        self.found: dict[int, Found] = {}
        for number in range(len(tasks)):
            self._advance(number, None)

    def ask(
        self,
        model: LLM,
        journal: Journal,
        asker: Asker = journalled,
        *,
        sampling: Sampling,
        write: Callable[[int, Shown], str],
        read: Callable[[Reply, int], Reading],
        pretend: Callable[[Shown], str],
        label: str,
        planned: int = 0,
    ) -> AnswerCounts:
        """Ask round after round until all tasks have ended.

        `write` makes the prompt that shows a task's candidates, `read` reads a reply about so many of them, `pretend`
        answers where nothing is asked (`Rehearsal`); `planned` prompts are announced.
        """
        counts, done = AnswerCounts(), 0
        while self.waiting:
            asked = [(number, shown) for number, wanted in self.waiting.items() for shown in wanted]
            requests = [request(write(number, shown)) for number, shown in asked]
            total = max(planned, done + len(asked))
            replies: list[Reply | None] = [None] * len(asked)
            readings = [Reading(UNANSWERED, ())] * len(asked)
            if isinstance(asker, Rehearsal):
                asker.answers = [pretend(shown) for _, shown in asked]
            with closing(
                asker(model, requests, journal, sampling=sampling, label=label, total=total, before=done)
            ) as arriving:
                for reply in arriving:
                    replies[reply.number] = reply
                    readings[reply.number] = read(reply, len(asked[reply.number][1]))
            counts, done = counts.with_round(replies, readings), done + len(asked)
            answered: dict[int, list[Reading]] = {}
            for (number, _), reading in zip(asked, readings, strict=True):
                answered.setdefault(number, []).append(reading)
            self.waiting = {}
            for number, of_task in answered.items():
                self._advance(number, of_task)
        return counts

    def _advance(self, number: int, readings: list[Reading] | None) -> None:
        """Tell a task what was answered, and note what it asks next, or what it ends with."""
        task = self._tasks[number]
        try:
            while not (wanted := next(task) if readings is None else task.send(readings)):
                readings = []
            self.waiting[number] = wanted
        except StopIteration as end:
            self.found[number] = end.value


def request(text: str) -> Request:
    """Make the request of a prompt, by which the journal knows it."""
    prompt = Prompt(text)
    return Request(prompt, prompt.digest[:32])


def answer_schema(*, chooses: bool) -> str:
    """Return the JSON schema of an answer: an object with one value, which is read as words are."""
    kind: dict[str, Any] = {"type": "integer"}
    name, value = ("choice", kind) if chooses else ("ranking", {"type": "array", "items": kind})
    shape = {"type": "object", "properties": {name: value}, "required": [name], "additionalProperties": False}
    return orjson.dumps(shape).decode()
