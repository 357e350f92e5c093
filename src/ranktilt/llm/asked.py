"""Asking with a journal: what was answered before is never asked again, and nothing counts before it is written."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sized
from contextlib import closing
from dataclasses import dataclass, replace

from ranktilt.errors import UserError
from ranktilt.llm.base import LLM, Answer, Failure, Prompt, Reply, Sampling
from ranktilt.llm.entry import Entry, key, parameters, seed_of
from ranktilt.llm.journal import Journal
from ranktilt.progress import report

_LOOK = 1_000
"""Requests that are looked up in one go: what is answered already waits no longer for its turn."""
_CLAIM = 32
_PAUSES = (0.05, 0.5)
_WAITED = 20


@dataclass(frozen=True)
class Request:
    """One thing to ask.

    Parameters
    ----------
    prompt : Prompt
        What the model is told.
    document : str
        Hash of the content that it was made of, for the journal.
    attempt : int, optional
        From 1 on: a second attempt at the same prompt is another request, with the next seed where there is one.
    """

    prompt: Prompt
    document: str
    attempt: int = 1


@dataclass(frozen=True)
class Asked:
    """What came of one request: an answer or a failure, never both.

    Parameters
    ----------
    number : int
        Position of the request among those given, from 0 on.
    answer : Answer or None
        The answer; it lies in the journal.
    failure : Failure or None
        Why there is none; it is asked again by the next run.
    fresh : bool
        Whether it was asked for this request. False where the answer was in the journal, came from another process,
        or was asked for an equal request of this call.
    calls : int, optional
        Requests to the model that it took, the repeated ones included; 0 where it is not fresh.
    """

    number: int
    answer: Answer | None
    failure: Failure | None
    fresh: bool
    calls: int = 0


def journalled(
    llm: LLM,
    requests: Iterable[Request],
    journal: Journal,
    *,
    sampling: Sampling,
    label: str = "answers",
    total: int | None = None,
) -> Generator[Asked, None, None]:
    """Answer requests from the journal, and ask the model for the rest.

    Equal requests are asked once. Requests that another live process is asking are left for last, and its answers
    are taken from the journal; should it die or give up, they are asked here. Nothing is asked before the journal
    can be written. Answers are in the journal before they are yielded.

    Parameters
    ----------
    llm : LLM
        Who is asked.
    requests : iterable of Request
        Pulled as they are needed: at most a thousand beyond those that are under way.
    journal : Journal
        Of this model.
    sampling : Sampling
        How answers are drawn.
    label : str, optional
        Names the progress, which counts requests.
    total : int, optional
        Number of requests, for the progress; known without it where `requests` has a length.

    Yields
    ------
    Asked
        Exactly one a request, in any order. Closing the iterator gives up what is under way.

    Raises
    ------
    UserError
        As `LLM.arrivals`, or if the journal cannot be written: nothing more is asked then, and what is under way is
        written into the room that was kept for it.
    """
    count = len(requests) if total is None and isinstance(requests, Sized) else total
    work = _Work(llm, requests, journal, sampling)
    try:
        for done, asked in enumerate(work.results(label), start=1):
            if count:
                report(label, done, max(count, done))
            yield asked
    finally:
        journal.release(work.open)


class _Work:
    """The requests of one call: which are to be asked here, which are asked elsewhere, and which have an answer."""

    def __init__(self, llm: LLM, requests: Iterable[Request], journal: Journal, sampling: Sampling) -> None:
        self._llm, self._journal, self._sampling = llm, journal, sampling
        self._source = enumerate(requests)
        self._numbers: dict[str, list[int]] = {}  # of every request that has no answer yet
        self._failed: dict[str, Failure] = {}
        self._answered: deque[tuple[int, str]] = deque()
        self._mine: deque[tuple[str, Request]] = deque()
        self._sent: dict[int, tuple[str, Request]] = {}
        self._waiting: dict[str, Request] = {}
        self._repeated: deque[Asked] = deque()
        self._full: UserError | None = None

    @property
    def open(self) -> list[str]:
        """Keys that were claimed here and have neither answer nor failure."""
        return [name for name, _ in (*self._mine, *self._sent.values())]

    def results(self, label: str) -> Iterator[Asked]:
        while not self._mine and self._look():
            yield from self._known()
        while True:
            if self._mine:
                yield from self._ask()
            yield from self._known()
            if not self._waiting:
                return
            self._wait(label)

    def _look(self) -> bool:
        """Look up the next requests and claim what is to be asked; False where there are none."""
        new: dict[str, Request] = {}
        for count, (number, request) in enumerate(self._source, start=1):
            name = key(self._llm, request.prompt, self._sampling, request.attempt)
            if name in self._numbers:
                self._numbers[name].append(number)
            elif name in self._failed:
                self._repeated.append(Asked(number, None, self._failed[name], fresh=False))
            elif name in self._journal:
                self._answered.append((number, name))
            else:
                self._numbers[name] = [number]
                new[name] = request
            if len(new) >= min(self._llm.concurrency, _CLAIM) or count >= _LOOK:
                break
        else:
            if not new:
                return False
        self._claim(new)
        return True

    def _claim(self, new: dict[str, Request], *, most: int | None = None) -> None:
        """Sort requests into those to be asked here, those that have an answer by now, and those asked elsewhere."""
        if not new:
            return
        self._journal.keep_room(self._llm.room)
        taken = self._journal.claim(new, most=most)
        for name, request in new.items():
            self._waiting.pop(name, None)
            if name in taken:
                self._mine.append((name, request))
            elif name in self._journal:
                self._answered.extend((number, name) for number in self._numbers.pop(name))
            else:
                self._waiting[name] = request

    def _ask(self) -> Iterator[Asked]:
        with closing(self._llm.arrivals(self._prompts(), self._sampling)) as arrivals:
            for replies in arrivals:
                yield from self._settle(replies)
                yield from self._known()
        if self._full is not None:
            raise self._full

    def _prompts(self) -> Iterator[Prompt]:
        number = 0
        while self._full is None:  # once the disk is full, what is under way still comes, and is written
            try:
                if not self._mine and not self._look():
                    return
            except UserError as error:
                self._full = error
                return
            if not self._mine:
                continue
            name, request = self._mine.popleft()
            self._sent[number] = name, request
            yield replace(request.prompt, seed=seed_of(request.prompt, self._sampling, request.attempt))
            number += 1

    def _settle(self, replies: list[Reply]) -> Iterator[Asked]:
        """Write down what has arrived, and only then count it."""
        sent = [(self._sent.pop(reply.number), reply, _whole(reply.answer)) for reply in replies]
        entries = [self._entry(name, request, answer) for (name, request), _, answer in sent if answer is not None]
        if entries:
            self._keep(entries)
        failed = {name: reply.failure for (name, _), reply, _ in sent if reply.failure is not None}
        self._failed.update(failed)
        self._journal.release(failed)
        for (name, _), reply, answer in sent:
            first, *others = self._numbers.pop(name)
            yield Asked(first, answer, reply.failure, fresh=True, calls=reply.calls)
            for number in others:
                yield Asked(number, answer, reply.failure, fresh=False)

    def _keep(self, entries: list[Entry]) -> None:
        try:
            self._journal.append(*entries)
        except UserError as error:
            self._full = self._full or error
            if any(entry.key not in self._journal for entry in entries):
                raise

    def _entry(self, name: str, request: Request, answer: Answer) -> Entry:
        seed = seed_of(request.prompt, self._sampling, request.attempt)
        return Entry(
            key=name,
            prompt=request.prompt.digest,
            document=request.document,
            attempt=request.attempt,
            parameters=parameters(self._sampling, seed=seed),
            asked=self._llm.name,
            answer=answer,
        )

    def _known(self) -> Iterator[Asked]:
        while self._repeated:
            yield self._repeated.popleft()
        while self._answered:
            number, name = self._answered.popleft()
            yield Asked(number, self._journal.found(name), None, fresh=False)

    def _wait(self, label: str) -> None:
        """Wait until others have answered something, or leave something to us."""
        pause, tries = _PAUSES[0], 0
        while True:
            self._claim(dict(self._waiting), most=_CLAIM)
            if self._mine or self._answered:
                return
            tries += 1
            if tries == _WAITED:
                holders = ", ".join(map(str, self._journal.holders(self._waiting)))
                report(f"{label} that process {holders} asks for", 0, len(self._waiting))
            time.sleep(pause)
            pause = min(2 * pause, _PAUSES[1])


def _whole(answer: Answer | None) -> Answer | None:
    """The answer with a mark in place of halves of characters, which no file can hold."""
    if answer is None:
        return None
    text = answer.text.encode(errors="replace").decode()
    return answer if text == answer.text else replace(answer, text=text)
