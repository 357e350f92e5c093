"""Batched requests of a language model: ask for each text until its answer passes the checks.

Start in `ask_until_accepted`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, ClassVar

import polars as pl

from ranktilt.generation.settings import DRAWS_APART, GenerationSettings
from ranktilt.generation.templates import PromptTemplate
from ranktilt.llm.base import LLM, Prompt, Reply, Sampling
from ranktilt.llm.journal import Journal, Request, journalled

TOO_LONG, REFUSED, UNANSWERED = "too long", "refused", "unanswered"
"""Reasons why a text has no answer: it does not fit, the server refuses it, or does not answer."""
FLAGGED, EMPTY = "flagged", "empty"
"""Reasons why a text has no good answer: all had a fault, or the text has no words."""

FEWEST_WORDS = 10
"""Words that a cut text has at least."""

_SHORTER = 0.75
"""Share of its words that a text keeps in each cut."""
_CHECKED_COLUMNS = ("text", "opening", "closing", "flags")
"""Columns that checks return."""
_ANSWER_FIELDS = ("finish", "model", "revision", "prompt_tokens", "completion_tokens")
"""Columns that are fields of an answer."""
_CHECKED_AT_ONCE = 4_096
"""Answers that are checked together.

Few at a time take several times as long each, and slow down the requests.
"""
RECORD = pl.Schema(
    {
        "row": pl.Int64(),
        "part": pl.String(),
        "attempt": pl.Int64(),
        "prompt": pl.String(),
        "answer": pl.String(),
        "text": pl.String(),
        "opening": pl.String(),
        "closing": pl.String(),
        "flags": pl.List(pl.String()),
        "finish": pl.String(),
        "model": pl.String(),
        "revision": pl.String(),
        "prompt_tokens": pl.Int64(),
        "completion_tokens": pl.Int64(),
        "time": pl.String(),
        "fresh": pl.Boolean(),
    }
)
"""Columns of the answers, with a row for each answer of a text, in order of attempts."""


@dataclass(frozen=True, kw_only=True)
class GenerationTask:
    """A text to put into a prompt: of a document to rewrite, or a query to answer."""

    row: int
    """Row of its document in the collection, or of the answer among all answers to write."""
    text: str
    """The text."""
    title: str
    """Its title; empty where there is none."""
    draw: int = 0
    """Number of the answer among several to the same prompt, from 0."""

    def attempt(self, number: int) -> int:
        """Return the number of an attempt among all requests with this prompt."""
        return self.draw * DRAWS_APART + number


@dataclass(frozen=True, kw_only=True)
class Rejected:
    """A text without a good answer."""

    row: int
    """Row of the text."""
    part: str
    """Part that was asked for: the text, or its title."""
    reason: str
    """Why there is no good answer: a reason above, or the flags of the last one."""
    flags: tuple[str, ...]
    """Flags of its last answer."""
    attempts: int
    """Number of its answers."""
    message: str
    """Message of a server that did not answer."""


@dataclass(frozen=True, eq=False, kw_only=True)
class GenerationInputs:
    """The requests for texts, before any is sent."""

    noun: ClassVar[str] = "document"
    """Noun of the texts that are counted."""
    answer_noun: ClassVar[str] = "a document"
    """Noun of the text that has `answer_tokens`."""

    settings: GenerationSettings
    """How texts are asked for."""
    template: PromptTemplate
    """The instruction."""
    sources: Mapping[str, Sampling]
    """How answers are drawn, by the name of the new source."""
    tasks: tuple[GenerationTask, ...]
    """Texts to ask for, in order."""
    rejected: tuple[Rejected, ...] = ()
    """Texts that are not asked for."""
    chosen: int = 0
    """Number of texts, those that are not asked for among them."""
    answer_tokens: int | None = None
    """Tokens that an answer is expected to have; None for as many as its text."""

    def questions(self) -> Iterator[tuple[PromptTemplate, GenerationTask]]:
        """Yield the first request of each text, before any of its answers is flagged."""
        for task in self.tasks:
            yield self.template, task


def model_name(llm: LLM) -> str:
    """Shorten a model's name to the name of a source: the last part of its path, without blanks."""
    return "_".join(llm.name.rstrip("/").rpartition("/")[2].split())


Check = Callable[[pl.Series, pl.Series, pl.Series], pl.DataFrame]
"""A check of answers.

It takes source texts, raw answers and the reasons why each ended, and returns a row for each:
``text`` (the cleaned answer), ``opening`` and ``closing`` (what was removed before and after it)
and ``flags``.
"""


@dataclass(frozen=True, kw_only=True)
class RoundConfig:
    """How to ask for texts."""

    llm: LLM
    """The model."""
    journal: Journal
    """Where answers are kept."""
    sampling: Sampling
    """How answers are drawn."""
    template: PromptTemplate
    """The instruction."""
    check: Check
    """Flags the faults of answers."""
    attempts: int
    """Most answers to ask for until one has no flag."""
    truncate: bool = False
    """Whether to cut a text that is too long for the server until the server takes it."""
    shortened: Callable[[str], str] | None = None
    """How such a text is cut; by default at its end."""
    part: str = "text"
    """Part of the document: ``text`` or ``title``."""
    label: str = "rewriting"
    """Label of the progress bar."""


@dataclass(kw_only=True)
class RoundOutcome:
    """The answers to all tasks; dictionaries are by the row of a task."""

    accepted: dict[int, str] = field(default_factory=dict)
    """Good answers."""
    rejected: list[Rejected] = field(default_factory=list)
    """Texts without a good answer."""
    words: dict[int, int] = field(default_factory=dict)
    """Number of words of texts that were cut."""
    records: list[pl.DataFrame] = field(default_factory=list)
    """All answers, good or not; see `RECORD`."""
    titles: dict[int, str] = field(default_factory=dict)
    """Titles of good answers."""


def ask_until_accepted(config: RoundConfig, tasks: Sequence[GenerationTask]) -> RoundOutcome:
    """Ask for texts: in a round for all, then again for those with a flagged answer.

    There are up to `RoundConfig.attempts` rounds. In the end each task is either accepted or
    rejected. Answers that came before an error are in the journal.
    """
    outcome = RoundOutcome()
    # Tasks without a good answer so far.
    waiting = list(tasks)
    for attempt in range(1, config.attempts + 1):
        latest, records = _ask_round(config, waiting, attempt, outcome)
        outcome.records.append(records)
        is_good = pl.col("flags").list.len() == 0
        outcome.accepted.update(records.filter(is_good).select("row", "text").iter_rows())
        flagged = records.filter(~is_good)
        waiting = [latest[row] for row in flagged["row"]]
        if attempt == config.attempts:
            for row, flags in flagged.select("row", "flags").iter_rows():
                rejected = Rejected(
                    row=row,
                    part=config.part,
                    reason=FLAGGED,
                    flags=tuple(flags),
                    attempts=attempt,
                    message="",
                )
                outcome.rejected.append(rejected)
    return outcome


def _ask_round(
    config: RoundConfig, tasks: Sequence[GenerationTask], attempt: int, outcome: RoundOutcome
) -> tuple[dict[int, GenerationTask], pl.DataFrame]:
    """Ask once for each text, and again for a shorter one if the server finds it too long.

    Returns the tasks as they were asked at last, by row, and their checked answers. Texts without
    any answer are put among the rejected of `outcome`.
    """
    latest = {task.row: task for task in tasks}
    parts = [RECORD.to_frame()]
    waiting = list(tasks)
    while waiting:
        records, failures = _ask(config, waiting, attempt)
        parts.append(records)
        waiting = []
        for failure in failures:
            is_too_long = config.truncate and failure.reason == TOO_LONG
            shorter = _shorter(config, failure.task) if is_too_long else None
            if shorter is None:
                rejected = Rejected(
                    row=failure.task.row,
                    part=config.part,
                    reason=failure.reason,
                    flags=(),
                    attempts=attempt - 1,
                    message=failure.message,
                )
                outcome.rejected.append(rejected)
            else:
                latest[shorter.row] = shorter
                outcome.words[shorter.row] = len(shorter.text.split())
                waiting.append(shorter)
    return latest, pl.concat(parts).sort("row")


def _shorter(config: RoundConfig, task: GenerationTask) -> GenerationTask | None:
    """Cut a task's text; None if it is as short as it may be."""
    text = (config.shortened or shortened_text)(task.text)
    return replace(task, text=text) if len(text) < len(task.text) else None


def shortened_text(text: str) -> str:
    """Cut a text at its end, to three quarters of its words."""
    words = len(text.split())
    fewer = max(FEWEST_WORDS, int(words * _SHORTER))
    return first_words(text, fewer) if fewer < words else text


def shortened_lines(text: str) -> str:
    """Cut all lines to one length, three quarters of the longest one's words."""
    lines = text.split("\n")
    longest = max(len(line.split()) for line in lines)
    most = max(FEWEST_WORDS, int(longest * _SHORTER))
    return "\n".join(first_words(line, most) for line in lines)


def first_words(text: str, count: int) -> str:
    """Cut a text after so many words, without a change of the white space between them."""
    if count <= 0:
        return ""
    ends = (match.end() for match in re.finditer(r"\S+", text))
    return text[: next(islice(ends, count - 1, None), len(text))]


_REASONS = {"too long": TOO_LONG, "refused": REFUSED, "unavailable": UNANSWERED}
"""Reason by the kind of a failure."""


@dataclass(frozen=True, kw_only=True)
class _Unanswered:
    """A task that the server did not answer."""

    task: GenerationTask
    """The task."""
    reason: str
    """Why there is no answer."""
    message: str
    """The server's words."""


def _ask(
    config: RoundConfig, tasks: Sequence[GenerationTask], attempt: int
) -> tuple[pl.DataFrame, list[_Unanswered]]:
    """Ask for texts; return the checked answers, and the tasks without an answer."""
    requests = (
        Request(prompt=_prompt(config, task), attempt=task.attempt(attempt)) for task in tasks
    )
    label = config.label if attempt == 1 else f"{config.label}, attempt {attempt}"
    answers = journalled(
        config.llm,
        requests,
        config.journal,
        sampling=config.sampling,
        label=label,
        total=len(tasks),
    )
    unanswered = list[_Unanswered]()
    waiting = list[Reply]()
    parts = list[Future[pl.DataFrame]]()
    # The checks have a thread of their own: further requests must not wait for them.
    with ThreadPoolExecutor(1, "ranktilt-checks") as checks, closing(answers):
        try:
            for reply in answers:
                failure = reply.failure
                if failure is not None:
                    reason = _REASONS[failure.kind]
                    unanswered.append(
                        _Unanswered(
                            task=tasks[reply.number], reason=reason, message=failure.message
                        )
                    )
                    continue
                waiting.append(reply)
                if len(waiting) == _CHECKED_AT_ONCE:
                    parts.append(checks.submit(_checked, config, tasks, waiting, attempt=attempt))
                    waiting = []
            parts.append(checks.submit(_checked, config, tasks, waiting, attempt=attempt))
            return pl.concat(part.result() for part in parts), unanswered
        finally:
            checks.shutdown(cancel_futures=True)


def _prompt(config: RoundConfig, task: GenerationTask) -> Prompt:
    """Return the prompt of a task."""
    return Prompt(text=config.template.render(task.text, task.title))


def _checked(
    config: RoundConfig, tasks: Sequence[GenerationTask], replies: Sequence[Reply], *, attempt: int
) -> pl.DataFrame:
    """Check answers, and return their rows of the table `RECORD`."""
    answered = [reply for reply in replies if reply.answer is not None]
    their_tasks = [tasks[reply.number] for reply in answered]
    columns = _reply_columns(answered)
    source = pl.Series([task.text for task in their_tasks], dtype=pl.String)
    raw = pl.Series(columns["answer"], dtype=pl.String)
    finish = pl.Series(columns["finish"], dtype=pl.String)
    checked = config.check(source, raw, finish)
    for name in _CHECKED_COLUMNS:
        columns[name] = checked[name].to_list()
    columns["row"] = [task.row for task in their_tasks]
    columns["part"] = [config.part] * len(answered)
    columns["attempt"] = [attempt] * len(answered)
    columns["prompt"] = [_prompt(config, task).digest for task in their_tasks]
    return pl.DataFrame({name: columns[name] for name in RECORD}, schema=RECORD)


def _reply_columns(replies: Sequence[Reply]) -> dict[str, list[Any]]:
    """List the answers, and the fields of answers and replies, by the name of their column."""
    columns: dict[str, list[Any]] = {"answer": [], "time": [], "fresh": []}
    for name in _ANSWER_FIELDS:
        columns[name] = [getattr(reply.answer, name) for reply in replies]
    for reply in replies:
        if reply.answer is not None:
            columns["answer"].append(reply.answer.text)
            columns["time"].append(reply.time)
            columns["fresh"].append(reply.fresh)
    return columns
