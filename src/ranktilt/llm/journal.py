"""Asking with a journal: what was answered before is never asked again, and nothing counts before it is written."""

from __future__ import annotations

import hashlib
import math
import time
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping, Sized
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from ranktilt.errors import UserError
from ranktilt.io.cache import cache_folder
from ranktilt.io.journal import Journal
from ranktilt.io.records import sealed
from ranktilt.llm.base import LLM, Answer, Failure, Prompt, Reply, Sampling, room_of, spread
from ranktilt.progress import report

KEY_BYTES = 16
_LOOK = 1_000
"""Requests that are looked up in one go: what is answered already waits no longer for its turn."""
_LEASES = 32
_PAUSES = (0.05, 0.5)
_WAITED = 20


def journal_folder(llm: LLM) -> Path:
    """Return where a model's answers are kept: a folder of the cache named after a hash of its identity."""
    name = hashlib.blake2b(llm.identity.encode(), digest_size=KEY_BYTES).hexdigest()
    return cache_folder() / "llm" / name


def journal_of(llm: LLM) -> Journal:
    """Return the journal of a model, in its folder of the cache."""
    return Journal(journal_folder(llm), about=llm.spec)


@dataclass(frozen=True)
class Request:
    """One thing to ask: `document` is the hash of the content that the prompt was made of, for the journal.

    Another attempt, from 1 on, is another request, with the next seed where there is one.
    """

    prompt: Prompt
    document: str
    attempt: int = 1


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True, kw_only=True)
class JournalRecord:
    """One answer and what was asked for it.

    `prompt` is the digest of the messages, `document` the hash of the content that the prompt was made of, `asked` the
    name of the model that was asked for (that of the model that answered is the answer's), `time` in UTC.
    """

    key: str
    prompt: str
    document: str
    attempt: int
    parameters: Mapping[str, Any]
    asked: str
    answer: Answer
    time: str = field(default_factory=_now)

    def sealed(self) -> bytes:
        """Return the record as the journal keeps it."""
        answer = self.answer
        content = {
            "key": self.key,
            "time": self.time,
            "document": self.document,
            "prompt": self.prompt,
            "attempt": self.attempt,
            "parameters": dict(self.parameters),
            "asked": self.asked,
            "answered": answer.model,
            "revision": answer.revision,
            "finish": answer.finish,
            "prompt_tokens": answer.prompt_tokens,
            "completion_tokens": answer.completion_tokens,
            "text": answer.text,
        }
        logprobs = {} if answer.logprobs is None else {"logprobs": list(answer.logprobs)}
        return sealed(content | logprobs)

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> JournalRecord:
        """Read a record as the journal gives it; a log-probability that JSON could not hold is NaN."""
        logprobs = content.get("logprobs")
        answer = Answer(
            text=content["text"],
            finish=content["finish"],
            prompt_tokens=content["prompt_tokens"],
            completion_tokens=content["completion_tokens"],
            model=content["answered"],
            revision=content["revision"],
            logprobs=None if logprobs is None else tuple(math.nan if p is None else p for p in logprobs),
        )
        names = ("key", "prompt", "document", "attempt", "parameters", "asked", "time")
        return cls(answer=answer, **{name: content[name] for name in names})


def parameters(sampling: Sampling, *, seed: int | None) -> dict[str, Any]:
    """Return how an answer is drawn, as it stands in the journal; `seed` is that of the prompt."""
    schema = {} if sampling.schema is None else {"schema": sampling.schema}
    return {
        "temperature": float(sampling.temperature),
        "top_p": float(sampling.top_p),
        "max_tokens": sampling.max_tokens,
        "seed": seed,
        "logprobs": sampling.logprobs,
        **schema,
    }


def seed_of(prompt: Prompt, sampling: Sampling, attempt: int) -> int | None:
    """Return the seed of an attempt: the prompt's own or that of all, one more with each attempt; None stays None."""
    seed = sampling.seed if prompt.seed is None else prompt.seed
    return None if seed is None else seed + attempt - 1


def request_key(llm: LLM, prompt: Prompt, sampling: Sampling, attempt: int = 1) -> str:
    """Hash a request: equal for equal model, messages, parameters and attempt, and for no other; 32 hex digits."""
    drawn = parameters(sampling, seed=seed_of(prompt, sampling, attempt))
    whole = orjson.dumps([llm.identity, prompt.digest, drawn, attempt])
    return hashlib.blake2b(whole, digest_size=KEY_BYTES).hexdigest()


def journalled(
    llm: LLM,
    requests: Iterable[Request],
    journal: Journal,
    *,
    sampling: Sampling,
    label: str = "answers",
    total: int | None = None,
    before: int = 0,
) -> Generator[Reply, None, None]:
    """Answer requests from the journal, and ask the model for the rest; yields one reply a request, in any order.

    Requests are pulled as they are needed: at most a thousand beyond those that are under way. Equal requests are asked
    once. Requests that another live process is asking are left for last, and its answers are taken from the journal;
    should it die or give up, they are asked here. Nothing is asked before the journal can be written, and answers are
    in the journal before they are yielded: where it cannot be written any more, nothing more is asked, and what is
    under way goes into the room that was kept for it. A failure is asked again by the next run. `total` is the number
    of requests, for the progress that `label` names, those `before` these included. Closing the iterator gives up what
    is under way.
    """
    count = len(requests) if total is None and isinstance(requests, Sized) else total
    work = _OpenRequests(llm, requests, journal, sampling)
    try:
        for done, reply in enumerate(work.replies(label), start=before + 1):
            if count:
                report(label, done, max(count, done))
            yield reply
    finally:
        journal.release(work.open)


class _OpenRequests:
    """The requests of one call: which are to be asked here, which are asked elsewhere, and which have an answer."""

    def __init__(self, llm: LLM, requests: Iterable[Request], journal: Journal, sampling: Sampling) -> None:
        self._llm, self._journal, self._sampling = llm, journal, sampling
        self._source = enumerate(requests)
        self._at_once = self._fewest = min(llm.concurrency, _LEASES)
        self._numbers: dict[str, list[int]] = {}  # of every request that has no answer yet
        self._failed: dict[str, Failure] = {}
        self._mine: deque[tuple[str, Request]] = deque()
        self._sent: dict[int, tuple[str, Request]] = {}
        self._waiting: dict[str, Request] = {}
        self._ready: deque[Reply] = deque()
        self._full: UserError | None = None

    @property
    def open(self) -> list[str]:
        """Keys that were leased here and have neither answer nor failure."""
        return [name for name, _ in (*self._mine, *self._sent.values())]

    def replies(self, label: str) -> Iterator[Reply]:
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
        """Look up the next requests and lease what is to be asked; False where there are none."""
        batch = list(islice(self._source, self._at_once))
        new: dict[str, Request] = {}
        for number, request in batch:
            name = request_key(self._llm, request.prompt, self._sampling, request.attempt)
            if name in self._failed:
                self._ready.append(Reply(number, None, self._failed[name], 0, fresh=False))
            elif name in self._numbers:
                self._numbers[name].append(number)
            else:
                self._numbers[name] = [number]
                new[name] = request
        self._found(new)
        self._lease(new)
        # More at a time while all is known: one look-up each would take longer than the answers.
        self._at_once = self._fewest if new else min(2 * self._at_once, _LOOK)
        return bool(batch)

    def _found(self, among: dict[str, Request]) -> None:
        """Take out of `among` what is in the journal."""
        found = self._journal.read(among) if among else {}
        for name in [name for name in among if name in found]:
            record = JournalRecord.of(found[name])
            del among[name]
            for number in self._numbers.pop(name):
                self._ready.append(Reply(number, record.answer, None, 0, fresh=False, time=record.time))

    def _lease(self, new: dict[str, Request], *, most: int | None = None) -> None:
        """Sort requests into those to be asked here, those that have an answer by now, and those asked elsewhere."""
        if not new:
            return
        self._journal.keep_room(room_of(self._llm))
        taken = self._journal.lease(new, most=most)
        self._mine.extend((name, request) for name, request in new.items() if name in taken)
        rest = {name: request for name, request in new.items() if name not in taken}
        self._found(rest)
        self._waiting = {name: request for name, request in self._waiting.items() if name not in new} | rest

    def _ask(self) -> Iterator[Reply]:
        with closing(spread(self._llm, self._prompts(), self._sampling)) as arrivals:
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

    def _settle(self, replies: list[Reply]) -> Iterator[Reply]:
        """Write down what has arrived, and only then count it."""
        sent = [(*self._sent.pop(reply.number), reply, _whole(reply.answer)) for reply in replies]
        records = {name: self._record(name, request, answer) for name, request, _, answer in sent if answer is not None}
        if records:
            self._keep(records)
        failed = {name: reply.failure for name, _, reply, _ in sent if reply.failure is not None}
        self._failed.update(failed)
        self._journal.release(failed)
        for name, _, reply, answer in sent:
            first, *others = self._numbers.pop(name)
            when = records[name].time if name in records else None
            yield Reply(first, answer, reply.failure, reply.calls, time=when)
            for number in others:
                yield Reply(number, answer, reply.failure, 0, fresh=False, time=when)

    def _keep(self, records: Mapping[str, JournalRecord]) -> None:
        try:
            self._journal.append({name: record.sealed() for name, record in records.items()})
        except UserError as error:
            self._full = self._full or error
            if len(self._journal.read(records)) < len(records):
                raise

    def _record(self, name: str, request: Request, answer: Answer) -> JournalRecord:
        seed = seed_of(request.prompt, self._sampling, request.attempt)
        return JournalRecord(
            key=name,
            prompt=request.prompt.digest,
            document=request.document,
            attempt=request.attempt,
            parameters=parameters(self._sampling, seed=seed),
            asked=self._llm.name,
            answer=answer,
        )

    def _known(self) -> Iterator[Reply]:
        while self._ready:
            yield self._ready.popleft()

    def _wait(self, label: str) -> None:
        """Wait until others have answered something, or leave something to us."""
        pause, tries = _PAUSES[0], 0
        while True:
            self._lease(dict(self._waiting), most=_LEASES)
            if self._mine or self._ready:
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
