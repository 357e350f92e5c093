"""The journal: what was answered before is never asked again, and no answer counts before it is written."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections import deque
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, fields, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from ranktilt.data.cache import ABOUT, cache_folder
from ranktilt.data.files import alone
from ranktilt.errors import UserError
from ranktilt.llm.base import LLM, Answer, Failure, Prompt, Reply, Sampling
from ranktilt.progress import report

JOURNAL = "journal.sqlite"
KEY_BYTES = 16
_VERSION = 3
_TABLE = (
    "CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, time TEXT, prompt TEXT, answer TEXT)"
)
_WITH_KEYS = "FROM answers WHERE key IN (SELECT value FROM json_each(?))"
_ANSWER_FIELDS = tuple(field.name for field in fields(Answer))
_LOOK = 256
"""Requests that are looked up in one go: one look-up each would take longer than the answers."""


class JournalRecord(NamedTuple):
    """One answer, to a prompt of this digest, at a time in UTC."""

    key: str
    time: str
    prompt: str
    answer: Answer


class Journal:
    """The answers of one model, by the keys of requests: a table of an SQLite file.

    Anyone may read, one process at a time writes. The folder is of one model only, and made when
    something is claimed or appended; `about` says for people what the model is (plain JSON, never a
    key).
    """

    def __init__(self, folder: Path, *, about: Mapping[str, Any] | None = None) -> None:
        self.folder, self.path, self._about = folder, folder / JOURNAL, about
        self._db: sqlite3.Connection | None = None
        self._claimed: ExitStack | None = None

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        """Answers so far."""
        return int(next(self._rows("SELECT count(*) FROM answers"), (0,))[0])

    def read(self, keys: Collection[str]) -> dict[str, JournalRecord]:
        """Look up records: those that are known so far, by key; one that cannot be read is not known."""
        records = dict[str, JournalRecord]()
        for key, time, prompt, stored in self._rows(
            f"SELECT * {_WITH_KEYS}", json.dumps(list(keys))
        ):
            answer = _stored_answer(stored)
            if answer is not None:
                records[key] = JournalRecord(key, str(time or ""), str(prompt or ""), answer)
        return records

    def claim(self) -> bool:
        """Keep other processes from writing, until `close`; True if nothing kept them before.

        `UserError` where another process writes, or nothing can be written.
        """
        if self._claimed is not None:
            return False
        with ExitStack() as stack, self._errors():
            try:
                stack.enter_context(alone(f"write {os.path.realpath(self.path)}"))
            except BlockingIOError:
                message = f"{self.path}: another process is writing answers of this model; run this again after it"
                raise UserError(message) from None
            self.folder.mkdir(parents=True, exist_ok=True)
            self._opened()
            if self._about is not None:
                (self.folder / ABOUT).write_bytes(
                    orjson.dumps({"kind": "llm", **self._about}) + b"\n"
                )
            self._claimed = stack.pop_all()
        return True

    def append(self, records: Sequence[JournalRecord]) -> None:
        """Write records down: all of them, or none and a `UserError`; the first record of a key counts.

        A stored one that cannot be read is replaced.
        """
        self.claim()
        known = self.read([record.key for record in records])
        new = dict[str, JournalRecord]()
        for record in records:
            if record.key not in known:
                new.setdefault(record.key, record)
        rows = [
            (record.key, record.time, record.prompt, json.dumps(asdict(record.answer)))
            for record in new.values()
        ]
        with self.writing() as db:
            db.executemany("INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?)", rows)

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Give the file to change it, in one transaction, as the only writer."""
        self.claim()
        with self._errors(), self._opened() as db:
            yield db

    def close(self) -> None:
        """Let others write; the journal can be used again."""
        for held in (self._db, self._claimed):
            if held is not None:
                held.close()
        self._db = self._claimed = None

    def _rows(self, query: str, *values: str) -> Iterator[tuple[Any, ...]]:
        """Rows of the file as it is; none where there is none, and nothing is made."""
        if self._db is not None or self.path.exists():
            with self._errors():
                yield from self._opened().execute(query, values)

    def _opened(self) -> sqlite3.Connection:
        if self._db is None:
            db = sqlite3.connect(self.path, check_same_thread=False)
            (version,) = db.execute("PRAGMA user_version").fetchone()
            if version not in (0, _VERSION):
                raise UserError(
                    f"{self.path}: is of another version of RankTilt; move it away, and its answers are asked again"
                )
            if not version:
                db.execute("PRAGMA journal_mode = WAL")
                db.execute(_TABLE)
                db.execute(f"PRAGMA user_version = {_VERSION}")
            db.text_factory = _decoded
            self._db = db
        return self._db

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (
            OSError,
            sqlite3.Error,
        ) as error:  # a full disk, a place without the right to write, a damaged file
            raise UserError(
                f"{self.path}: cannot be used: {error}; choose another place (RANKTILT_CACHE), or move a damaged file "
                "away, and its answers are asked again"
            ) from error


def _decoded(data: bytes) -> str:
    return data.decode(errors="replace")


def _stored_answer(text: object) -> Answer | None:
    """Read an answer as it was stored; None where it is none, as on a disk that lost a part of it.

    Only its text has to be there: everything else is cleaned by `Answer`, which a journal of an
    earlier version may need.
    """
    try:
        fields = json.loads(text)  # type: ignore[arg-type]
    except (ValueError, TypeError, RecursionError):
        return None
    if not isinstance(fields, dict) or not isinstance(fields.get("text"), str):
        return None
    return Answer(**{name: fields.get(name) for name in _ANSWER_FIELDS})  # type: ignore[arg-type]


def journal_of(llm: LLM) -> Journal:
    """Return the journal of a model, in a folder of the cache that is named after a hash of its identity."""
    name = hashlib.blake2b(llm.identity.encode(), digest_size=KEY_BYTES).hexdigest()
    return Journal(cache_folder() / "llm" / name, about=llm.spec)


class Request(NamedTuple):
    """One thing to ask: another attempt, from 1 on, is another request, with the next seed where there is one."""

    prompt: Prompt
    attempt: int = 1


def seed_of(prompt: Prompt, sampling: Sampling, attempt: int) -> int | None:
    """Return the seed of an attempt: the prompt's own or that of all, one more with each attempt; None stays None."""
    seed = sampling.seed if prompt.seed is None else prompt.seed
    return None if seed is None else seed + attempt - 1


def request_key(llm: LLM, prompt: Prompt, sampling: Sampling, attempt: int = 1) -> str:
    """Hash a request: equal for equal model, messages, parameters and attempt, and for no other; 32 hex digits."""
    numbers = {"temperature": float(sampling.temperature), "top_p": float(sampling.top_p)}
    drawn = {**vars(sampling), **numbers, "seed": seed_of(prompt, sampling, attempt)}
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

    Equal requests are asked once. Nothing is asked before the journal can be written, and answers
    are in the journal before they are yielded. `total` is the number of requests, for the progress
    that `label` names, those `before` these included.
    """
    count = len(requests) if total is None and isinstance(requests, Sized) else total
    for done, reply in enumerate(
        _OpenRequests(llm, requests, journal, sampling).replies(), start=before + 1
    ):
        if count:
            report(label, done, max(count, done))
        yield reply


class _OpenRequests:
    """The requests of one call: which are to be asked, which are under way, and which have an answer."""

    def __init__(
        self, llm: LLM, requests: Iterable[Request], journal: Journal, sampling: Sampling
    ) -> None:
        self._llm, self._journal, self._sampling = llm, journal, sampling
        self._source = enumerate(requests)
        self._numbers: dict[str, list[int]] = {}  # of every request that has no answer yet
        self._failed: dict[str, Failure] = {}
        self._waiting: deque[tuple[str, Request]] = deque()
        self._sent: dict[int, tuple[str, Request]] = {}
        self._ready: deque[Reply] = deque()

    def replies(self) -> Iterator[Reply]:
        while not self._waiting and self._look():
            yield from self._known()
        if self._waiting:
            with closing(
                self._llm.journal_arrivals(self._prompts(), self._sampling, self._journal)
            ) as arrivals:
                for replies in arrivals:
                    yield from self._settle(replies)
                    yield from self._known()
        yield from self._known()

    def _look(self) -> bool:
        """Look up the next requests; False where there are none."""
        batch = list(islice(self._source, _LOOK))
        new: dict[str, Request] = {}
        for number, request in batch:
            key = request_key(self._llm, request.prompt, self._sampling, request.attempt)
            if key in self._failed:
                self._ready.append(Reply(number, None, self._failed[key], fresh=False))
            elif key in self._numbers:
                self._numbers[key].append(number)
            else:
                self._numbers[key] = [number]
                new[key] = request
        found = self._journal.read(new) if new else {}
        if len(found) < len(new) and self._journal.claim():
            found = self._journal.read(new)  # another process may have written until then
        self._llm.has_answered = self._llm.has_answered or bool(found)
        for key, request in new.items():
            if key not in found:
                self._waiting.append((key, request))
                continue
            answer, time = found[key].answer, found[key].time
            numbers = self._numbers.pop(key)
            self._ready.extend(
                Reply(number, answer, None, fresh=False, time=time) for number in numbers
            )
        return bool(batch)

    def _prompts(self) -> Iterator[tuple[str, Prompt]]:
        number = 0
        while self._waiting or self._look():
            if self._waiting:
                self._sent[number] = key, request = self._waiting.popleft()
                yield (
                    key,
                    replace(
                        request.prompt,
                        seed=seed_of(request.prompt, self._sampling, request.attempt),
                    ),
                )
                number += 1

    def _settle(self, replies: Sequence[Reply]) -> Iterator[Reply]:
        """Write down what has arrived, and only then count it."""
        sent = [(*self._sent.pop(reply.number), reply) for reply in replies]
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        answered = [
            (key, request.prompt.digest, reply.answer)
            for key, request, reply in sent
            if reply.answer
        ]
        if answered:
            self._journal.append(
                [JournalRecord(key, now, prompt, answer) for key, prompt, answer in answered]
            )
        for key, _, reply in sent:
            if reply.failure is not None:
                self._failed[key] = reply.failure
            first, *others = self._numbers.pop(key)
            when = None if reply.answer is None else now
            yield replace(reply, number=first, fresh=True, time=when)
            yield from (replace(reply, number=number, fresh=False, time=when) for number in others)

    def _known(self) -> Iterator[Reply]:
        while self._ready:
            yield self._ready.popleft()
