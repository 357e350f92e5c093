"""Batched requests of a language model: ask for each text, check what comes, ask again what failed the checks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from typing import ClassVar, NamedTuple

import polars as pl

from ranktilt.generation.settings import DRAWS_APART, GenerationSettings
from ranktilt.generation.templates import PromptTemplate
from ranktilt.llm.base import LLM, Prompt, Reply, Sampling
from ranktilt.llm.journal import Journal, Request, journalled

TOO_LONG, REFUSED, UNANSWERED, FLAGGED, EMPTY = (
    "too long",
    "refused",
    "unanswered",
    "flagged",
    "empty",
)
"""Why a text has no good answer."""

FEWEST_WORDS = 10
"""A text is not cut below so many words."""

_SHORTER = 0.75
_ANSWERED = ("model", "revision", "prompt_tokens", "completion_tokens")
_CHECKED_AT_ONCE = 4_096
"""Few answers at a time cost several times as much each, and get in the way of those that are asked for."""
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
"""Columns of the answers: one row for each answer of a text, in order of attempts."""


class GenerationTask(NamedTuple):
    """A text that a prompt is made of: that of a document to be rewritten, or a query to be answered."""

    row: int
    """Of its document in the collection, or of the answer among all that are to be written."""
    text: str
    title: str
    draw: int = 0
    """Which of several answers to the same prompt, from 0."""

    def attempt(self, number: int) -> int:
        """The number of an attempt among all requests that this prompt is sent with."""
        return self.draw * DRAWS_APART + number


class Rejected(NamedTuple):
    """A text without a good answer."""

    row: int
    part: str
    reason: str
    flags: tuple[str, ...]
    """Of its last answer."""
    attempts: int
    """Answers that it got."""
    message: str
    """What the server said, where it did not answer."""


@dataclass(frozen=True, eq=False, kw_only=True)
class GenerationInputs:
    """What will be asked.

    `sources` names the sources to be made, each with how its answers are drawn; `tasks` are the
    texts, in order; `rejected` those that are not asked for; `chosen` counts both.
    """

    noun: ClassVar[str] = "document"
    """What is counted."""
    answer_noun: ClassVar[str] = "a document"
    """What has `answer_tokens`."""

    settings: GenerationSettings
    template: PromptTemplate
    sources: Mapping[str, Sampling]
    tasks: tuple[GenerationTask, ...]
    rejected: tuple[Rejected, ...] = ()
    chosen: int = 0
    answer_tokens: int | None = None
    """What an answer is taken to need before it is there; None for as much as its text."""

    def questions(self) -> Iterator[tuple[PromptTemplate, GenerationTask]]:
        """Give the first request of each text, before any of its answers is flagged."""
        for task in self.tasks:
            yield self.template, task


def model_name(llm: LLM) -> str:
    """Shorten a model's name to one for a source: the last part of its path, without blanks."""
    return "_".join(llm.name.rstrip("/").rpartition("/")[2].split())


Check = Callable[[pl.Series, pl.Series, pl.Series], pl.DataFrame]
"""From source texts, raw answers and finish reasons to columns ``text``, ``opening``, ``closing`` and ``flags``."""


@dataclass(frozen=True)
class RoundConfig:
    """How texts are asked for.

    `check` tells good answers from others, of which up to `attempts` are asked for; `truncate` cuts
    a text that is too long for the server until it takes it; `part` is ``text`` or ``title``,
    `label` that of the progress bar.
    """

    llm: LLM
    journal: Journal
    sampling: Sampling
    template: PromptTemplate
    check: Check
    attempts: int
    truncate: bool = False
    part: str = "text"
    label: str = "rewriting"


@dataclass
class RoundOutcome:
    """What became of all tasks: the good answer of each row, words of texts that were cut, and all answers."""

    accepted: dict[int, str] = field(default_factory=dict)
    rejected: list[Rejected] = field(default_factory=list)
    words: dict[int, int] = field(default_factory=dict)
    records: list[pl.DataFrame] = field(default_factory=list)
    titles: dict[int, str] = field(default_factory=dict)


def ask_until_accepted(config: RoundConfig, tasks: Sequence[GenerationTask]) -> RoundOutcome:
    """Ask for texts: one round for all, then one for those whose answer was flagged, up to the attempts.

    Each task is either kept or rejected. What was answered before an error is in the journal.
    """
    outcome = RoundOutcome()
    current = {task.row: task for task in tasks}
    waiting = list(current)
    for attempt in range(1, config.attempts + 1):
        records = _attempt(config, current, waiting, attempt, outcome)
        outcome.records.append(records)
        good = pl.col("flags").list.len() == 0
        outcome.accepted.update(records.filter(good).select("row", "text").iter_rows())
        flagged = records.filter(~good)
        waiting = flagged["row"].to_list()
        if attempt == config.attempts:
            failed = flagged.select("row", "flags").iter_rows()
            outcome.rejected += [
                Rejected(row, config.part, FLAGGED, tuple(flags), attempt, "")
                for row, flags in failed
            ]
    return outcome


def _attempt(
    config: RoundConfig,
    current: dict[int, GenerationTask],
    rows: Sequence[int],
    attempt: int,
    outcome: RoundOutcome,
) -> pl.DataFrame:
    """Ask once for each text, and again for a shorter one where the server finds it too long."""
    parts = [RECORD.to_frame()]
    while rows:
        records, failed = _ask(config, [current[row] for row in rows], attempt)
        parts.append(records)
        rows = []
        for row, reason, message in failed:
            shorter = _shorter(current[row]) if config.truncate and reason == TOO_LONG else None
            if shorter is None:
                outcome.rejected.append(
                    Rejected(row, config.part, reason, (), attempt - 1, message)
                )
            else:
                current[row], outcome.words[row] = shorter, len(shorter.text.split())
                rows.append(row)
    return pl.concat(parts).sort("row")


def _shorter(task: GenerationTask) -> GenerationTask | None:
    words = len(task.text.split())
    fewer = max(FEWEST_WORDS, int(words * _SHORTER))
    return task._replace(text=first_words(task.text, fewer)) if fewer < words else None


def first_words(text: str, count: int) -> str:
    """Cut a text after so many words, the white space between them as it is."""
    ends = (match.end() for match in re.finditer(r"\S+", text))
    return text[: next(islice(ends, count - 1, None), len(text))] if count > 0 else ""


_REASONS = {"too long": TOO_LONG, "refused": REFUSED, "unavailable": UNANSWERED}


def _ask(
    config: RoundConfig, tasks: Sequence[GenerationTask], attempt: int
) -> tuple[pl.DataFrame, list[tuple[int, str, str]]]:
    """Answers with what the checks say, and the rows, reasons and messages of what was not answered."""
    requests = (
        Request(Prompt(config.template.render(task.text, task.title)), task.attempt(attempt))
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
    failed = list[tuple[int, str, str]]()
    waiting = list[Reply]()
    checked = list[Future[pl.DataFrame]]()
    # The checks have a thread of their own: what is asked next must not wait for them.
    with ThreadPoolExecutor(1, "ranktilt-checks") as other, closing(answers):
        try:
            for one in answers:
                if one.failure is not None:
                    failed.append(
                        (tasks[one.number].row, _REASONS[one.failure.kind], one.failure.message)
                    )
                    continue
                waiting.append(one)
                if len(waiting) == _CHECKED_AT_ONCE:
                    checked.append(other.submit(_checked, config, tasks, waiting, attempt))
                    waiting = []
            checked.append(other.submit(_checked, config, tasks, waiting, attempt))
            return pl.concat(part.result() for part in checked), failed
        finally:
            other.shutdown(cancel_futures=True)


def _checked(
    config: RoundConfig, tasks: Sequence[GenerationTask], answered: Sequence[Reply], attempt: int
) -> pl.DataFrame:
    """Rows of the answers' table."""
    pairs = [(tasks[one.number], one.answer, one) for one in answered if one.answer is not None]
    prompts = [Prompt(config.template.render(task.text, task.title)) for task, _, _ in pairs]
    source = pl.Series([task.text for task, _, _ in pairs], dtype=pl.String)
    raw = pl.Series([answer.text for _, answer, _ in pairs], dtype=pl.String)
    finish = pl.Series([answer.finish for _, answer, _ in pairs], dtype=pl.String)
    found = config.check(source, raw, finish)
    said = {
        "row": [task.row for task, _, _ in pairs],
        "part": [config.part] * len(pairs),
        "attempt": [attempt] * len(pairs),
        "prompt": [prompt.digest for prompt in prompts],
        "answer": raw,
        **{name: found[name] for name in ("text", "opening", "closing", "flags")},
        "finish": finish,
        **{name: [getattr(answer, name) for _, answer, _ in pairs] for name in _ANSWERED},
        "time": [one.time for _, _, one in pairs],
        "fresh": [one.fresh for _, _, one in pairs],
    }
    return pl.DataFrame(said, schema=RECORD)
