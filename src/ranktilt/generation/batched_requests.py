"""Batched requests of a language model: ask for each text until its answer passes the checks.

A *task* is a text to put into a prompt. A check cleans an answer and lists its faults, the *flags*;
an answer without flags is good, and *accepted*. A *round* is one request for each task that has no
good answer yet. A task without a good answer after the last round is *rejected*. The *journal* is
the file that keeps all answers of a model, so that none is asked for twice.

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

from ranktilt.generation.settings import ATTEMPTS_PER_ANSWER, GenerationSettings
from ranktilt.generation.templates import PromptTemplate
from ranktilt.llm.base import LLM, Prompt, Reply, Sampling
from ranktilt.llm.journal import Journal, Request, journalled

TOO_LONG, REFUSED, UNANSWERED = "too long", "refused", "unanswered"
"""Reasons why a text has no answer.

It does not fit into the model's context, the server refuses it, or the server does not answer.
"""
FLAGGED, EMPTY = "flagged", "empty"
"""Reasons why a text has no good answer: all answers had a fault, or the text has no words."""

FEWEST_WORDS = 10
"""A text, or a line of it, is never cut to fewer words than these."""

_SHARE_KEPT = 0.75
"""Share of its words that a text keeps in each cut."""
_CHECKED_COLUMNS = ("text", "opening", "closing", "flags")
"""Columns that a check returns."""
_ANSWER_FIELDS = ("finish", "model", "revision", "prompt_tokens", "completion_tokens")
"""Columns with the fields of an answer."""
_CHECKED_TOGETHER = 4_096
"""Number of answers that are checked in one call.

With fewer, a check takes several times as long per answer, and slows down the requests.
"""
ANSWER_COLUMNS = pl.Schema(
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
"""Columns of a table of answers, with a row for each answer to a task, in order of attempts.

``row`` is that of the task. ``part`` is what the answer is asked for, such as ``text`` or
``title``. ``prompt`` is the prompt's digest. ``answer`` is the answer as it came, ``text`` the
cleaned one, ``opening`` and ``closing`` what cleaning removed before and after it. ``fresh`` is
true where the answer was requested by this call, and not taken from the journal.
"""


@dataclass(frozen=True, kw_only=True)
class GenerationTask:
    """A text to put into a prompt: of a document to rewrite, or a query to answer."""

    row: int
    """Row of its document in the collection, or of the answer among all answers to write."""
    text: str
    """The text."""
    title: str
    """Its title; empty where there is none."""
    answer_index: int = 0
    """Index of the answer among several to the same prompt, from 0."""

    def request_number(self, attempt: int) -> int:
        """Return the number, among all requests with this prompt, of an attempt counted from 1.

        Under each number the journal keeps an answer of its own. So neither another attempt nor
        the next of several answers to the same prompt gets an answer that was used before.
        """
        return self.answer_index * ATTEMPTS_PER_ANSWER + attempt


@dataclass(frozen=True, kw_only=True)
class Rejected:
    """A text without a good answer."""

    row: int
    """Row of the text."""
    part: str
    """Part that was asked for: the text, or its title."""
    reason: str
    """Why there is no good answer: ``too long``, ``refused``, ``unanswered``, ``flagged`` or
    ``empty``."""
    flags: tuple[str, ...]
    """Flags of its last answer if the reason is ``flagged``; else empty."""
    attempts: int
    """Number of its answers."""
    message: str
    """Message of a server that refused or did not answer; else empty."""


@dataclass(frozen=True, eq=False, kw_only=True)
class GenerationInputs:
    """The requests for texts, before any is sent."""

    noun: ClassVar[str] = "document"
    """Noun of the texts to write, for an estimate in words."""
    answer_noun: ClassVar[str] = "a document"
    """Noun of one answer, with its article, for an estimate in words."""

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
    text_count: int = 0
    """Number of texts to write, including those that are not asked for."""
    answer_tokens: int | None = None
    """Tokens that an answer is expected to have; None for as many as its text."""

    def first_requests(self) -> Iterator[tuple[PromptTemplate, GenerationTask]]:
        """Yield the first request for each task, as its template and the task."""
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
    """How to ask for texts, in all rounds."""

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
    shorten: Callable[[str], str] | None = None
    """Function that cuts such a text; `shortened_text` by default."""
    part: str = "text"
    """What the answers are asked for: ``text``, ``title`` or ``grade``."""
    label: str = "rewriting"
    """Label of the progress bar."""


@dataclass(kw_only=True)
class RoundOutcome:
    """The answers to all tasks, of all rounds; keys of dictionaries are the rows of tasks."""

    accepted: dict[int, str] = field(default_factory=dict)
    """Good answers, cleaned."""
    rejected: list[Rejected] = field(default_factory=list)
    """Texts without a good answer."""
    cut_lengths: dict[int, int] = field(default_factory=dict)
    """Number of words that each cut text was cut to."""
    records: list[pl.DataFrame] = field(default_factory=list)
    """All answers, good or not, as tables with the columns `ANSWER_COLUMNS`."""
    titles: dict[int, str] = field(default_factory=dict)
    """New titles of accepted texts, where titles were asked for too."""


def ask_until_accepted(config: RoundConfig, tasks: Sequence[GenerationTask]) -> RoundOutcome:
    """Ask for all texts in a first round, then again for those with a flagged answer.

    There are up to `RoundConfig.attempts` rounds. In the end each task is either accepted or
    rejected. Answers that came before an error are in the journal.
    """
    outcome = RoundOutcome()
    # Tasks without a good answer so far.
    waiting = list(tasks)
    for attempt in range(1, config.attempts + 1):
        asked_tasks, records = _ask_round(config, waiting, attempt, outcome)
        outcome.records.append(records)
        is_good = pl.col("flags").list.len() == 0
        outcome.accepted.update(records.filter(is_good).select("row", "text").iter_rows())
        flagged = records.filter(~is_good)
        waiting = [asked_tasks[row] for row in flagged["row"]]
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

    Returns the tasks by row, with the texts that were asked for last, and the checked answers.
    Tasks without any answer are added to the rejected ones of `outcome`.
    """
    asked_tasks = {task.row: task for task in tasks}
    tables = [ANSWER_COLUMNS.to_frame()]
    waiting = list(tasks)
    while waiting:
        records, failures = _ask_and_check(config, waiting, attempt)
        tables.append(records)
        waiting = []
        for failure in failures:
            may_be_cut = config.truncate and failure.reason == TOO_LONG
            shorter = _shorter(config, failure.task) if may_be_cut else None
            if shorter is None:
                rejected = Rejected(
                    row=failure.task.row,
                    part=config.part,
                    reason=failure.reason,
                    flags=(),
                    attempts=attempt - 1,  # this round brought no answer
                    message=failure.message,
                )
                outcome.rejected.append(rejected)
            else:
                asked_tasks[shorter.row] = shorter
                outcome.cut_lengths[shorter.row] = len(shorter.text.split())
                waiting.append(shorter)
    return asked_tasks, pl.concat(tables).sort("row")


def _shorter(config: RoundConfig, task: GenerationTask) -> GenerationTask | None:
    """Cut a task's text; None if it may not become shorter."""
    shorten = config.shorten or shortened_text
    text = shorten(task.text)
    return replace(task, text=text) if len(text) < len(task.text) else None


def shortened_text(text: str) -> str:
    """Cut a text at its end, to three quarters of its words but no fewer than `FEWEST_WORDS`."""
    word_count = len(text.split())
    word_limit = max(FEWEST_WORDS, int(word_count * _SHARE_KEPT))
    return first_words(text, word_limit) if word_limit < word_count else text


def shortened_lines(text: str) -> str:
    """Cut all lines to the same number of words, three quarters of those of the longest line.

    Shorter lines, such as single documents among several, stay as they are.
    """
    lines = text.split("\n")
    longest = max(len(line.split()) for line in lines)
    word_limit = max(FEWEST_WORDS, int(longest * _SHARE_KEPT))
    return "\n".join(first_words(line, word_limit) for line in lines)


def first_words(text: str, count: int) -> str:
    """Return the first `count` words of a text, with the white space between them."""
    if count <= 0:
        return ""
    ends = (match.end() for match in re.finditer(r"\S+", text))
    return text[: next(islice(ends, count - 1, None), len(text))]


_REASONS = {"too long": TOO_LONG, "refused": REFUSED, "unavailable": UNANSWERED}
"""Reason why a text has no answer, by `ranktilt.llm.base.Failure.kind`."""


@dataclass(frozen=True, kw_only=True)
class _Unanswered:
    """A task that the server did not answer."""

    task: GenerationTask
    """The task."""
    reason: str
    """Why there is no answer."""
    message: str
    """The server's words."""


def _ask_and_check(
    config: RoundConfig, tasks: Sequence[GenerationTask], attempt: int
) -> tuple[pl.DataFrame, list[_Unanswered]]:
    """Ask for texts; return the checked answers, and the tasks without an answer."""
    requests = (
        Request(prompt=_prompt(config, task), attempt=task.request_number(attempt))
        for task in tasks
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
    unchecked = list[Reply]()
    checked_tables = list[Future[pl.DataFrame]]()
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
                unchecked.append(reply)
                if len(unchecked) == _CHECKED_TOGETHER:
                    checked_tables.append(
                        checks.submit(_check_replies, config, tasks, unchecked, attempt=attempt)
                    )
                    unchecked = []
            checked_tables.append(
                checks.submit(_check_replies, config, tasks, unchecked, attempt=attempt)
            )
            return pl.concat(table.result() for table in checked_tables), unanswered
        finally:
            checks.shutdown(cancel_futures=True)


def _prompt(config: RoundConfig, task: GenerationTask) -> Prompt:
    """Return the prompt of a task."""
    return Prompt(text=config.template.render(task.text, task.title))


def _check_replies(
    config: RoundConfig, tasks: Sequence[GenerationTask], replies: Sequence[Reply], *, attempt: int
) -> pl.DataFrame:
    """Check answers, and return a table of them with the columns `ANSWER_COLUMNS`."""
    answered = [reply for reply in replies if reply.answer is not None]
    answered_tasks = [tasks[reply.number] for reply in answered]
    columns = _reply_columns(answered)
    source = pl.Series([task.text for task in answered_tasks], dtype=pl.String)
    raw = pl.Series(columns["answer"], dtype=pl.String)
    finish = pl.Series(columns["finish"], dtype=pl.String)
    checked = config.check(source, raw, finish)
    for name in _CHECKED_COLUMNS:
        columns[name] = checked[name].to_list()
    columns["row"] = [task.row for task in answered_tasks]
    columns["part"] = [config.part] * len(answered)
    columns["attempt"] = [attempt] * len(answered)
    columns["prompt"] = [_prompt(config, task).digest for task in answered_tasks]
    return pl.DataFrame({name: columns[name] for name in ANSWER_COLUMNS}, schema=ANSWER_COLUMNS)


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
