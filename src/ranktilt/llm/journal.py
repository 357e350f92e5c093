"""The journal keeps every answer, so that nothing is asked, and paid for, twice.

An answer is written to the journal before it is returned to the caller. So a process that is killed
loses only the answers that were under way.

A *request* is a prompt with the number of the attempt at it. Its *key* is a hash of all that
decides the answer: model, prompt, sampling and attempt. The *digest* of a prompt is a hash of it
alone. A *reply* is the outcome of a request: an answer, or a failure.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections import deque
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from ranktilt.data.cache import ABOUT, cache_folder
from ranktilt.data.files import task_lock
from ranktilt.errors import UserError
from ranktilt.llm.base import LLM, Answer, Failure, Prompt, Reply, Sampling
from ranktilt.progress import report

JOURNAL = "journal.sqlite"
"""Name of the file in a model's folder."""
KEY_BYTES = 16
"""Bytes of the hash of a request or a model."""
_VERSION = 3
"""Version of the table of answers; another one is refused."""
_TABLE = (
    "CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, time TEXT, prompt TEXT, answer TEXT)"
)
"""Statement that creates the table of answers."""
_WITH_KEYS = "FROM answers WHERE key IN (SELECT value FROM json_each(?))"
"""End of an SQL query for the rows of some keys, which are passed as a JSON list."""
_ANSWER_FIELDS = tuple(field.name for field in fields(Answer))
"""Names of an answer's fields."""
_REQUESTS_A_LOOKUP = 256
"""Number of requests that are looked up together, because single look-ups would be slow."""


@dataclass(frozen=True, kw_only=True)
class JournalRecord:
    """An answer in the journal."""

    key: str
    """Key of the request."""
    time: str
    """Time of the answer, in UTC."""
    prompt: str
    """Digest of the prompt."""
    answer: Answer
    """What the model wrote."""


class Journal:
    """The answers of a model by the keys of requests, in a table of an SQLite file.

    Any number of processes may read it, and one at a time may write: a process *claims* the journal
    before it writes. A folder belongs to one model. It is created when the journal is claimed.

    Parameters
    ----------
    folder : Path
        Folder of the model.
    about : mapping, optional
        Description of the model for people, of plain JSON values and without a server's key.
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
        """Return the number of answers."""
        return int(next(self._rows("SELECT count(*) FROM answers"), (0,))[0])

    def read(self, keys: Collection[str]) -> dict[str, JournalRecord]:
        """Return the journal's records by key; a record that cannot be read is missing."""
        records = dict[str, JournalRecord]()
        rows = self._rows(f"SELECT * {_WITH_KEYS}", json.dumps(list(keys)))
        for key, time, prompt, answer_json in rows:
            answer = _stored_answer(answer_json)
            if answer is not None:
                records[key] = JournalRecord(
                    key=key, time=str(time or ""), prompt=str(prompt or ""), answer=answer
                )
        return records

    def claim(self) -> bool:
        """Keep other processes from writing, until `close`.

        Returns False if this object had claimed the journal before. Raises a `UserError` if another
        process writes, or if nothing can be written.
        """
        if self._claimed is not None:
            return False
        with ExitStack() as stack, self._errors():
            try:
                stack.enter_context(task_lock(f"write {os.path.realpath(self.path)}"))
            except BlockingIOError:
                raise UserError(
                    f"{self.path}: another process is writing answers of this model; run this "
                    "again when it is done"
                ) from None
            self.folder.mkdir(parents=True, exist_ok=True)
            self._connection()
            if self._about is not None:
                description = orjson.dumps({"kind": "llm", **self._about})
                (self.folder / ABOUT).write_bytes(description + b"\n")
            self._claimed = stack.pop_all()
        return True

    def append(self, records: Sequence[JournalRecord]) -> None:
        """Write all records, or none with a `UserError`.

        If the journal has a record of a key already, it is kept, unless it cannot be read.
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
        """Yield the connection to the file for one transaction, as the only writer."""
        self.claim()
        with self._errors(), self._connection() as db:
            yield db

    def close(self) -> None:
        """Let other processes write; the journal can be used again."""
        for resource in (self._db, self._claimed):
            if resource is not None:
                resource.close()
        self._db = self._claimed = None

    def _rows(self, query: str, *values: str) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of an SQL query; none if there is no file, which is not created."""
        if self._db is not None or self.path.exists():
            with self._errors():
                yield from self._connection().execute(query, values)

    def _connection(self) -> sqlite3.Connection:
        """Return the connection to the file, which is opened and set up at the first call."""
        if self._db is None:
            db = sqlite3.connect(self.path, check_same_thread=False)
            (version,) = db.execute("PRAGMA user_version").fetchone()
            if version not in (0, _VERSION):
                raise UserError(
                    f"{self.path}: belongs to another version of RankTilt; move it away, and its "
                    "answers will be requested again"
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
        """Turn errors of the disk or of SQLite into a `UserError`."""
        # A full disk, a folder without the right to write, a damaged file.
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            raise UserError(
                f"{self.path}: cannot be used: {error}; choose another place (RANKTILT_CACHE), or "
                "move a damaged file away, and its answers will be requested again"
            ) from error


def _decoded(data: bytes) -> str:
    """Decode a text of the file; damaged bytes become a replacement character."""
    return data.decode(errors="replace")


def _stored_answer(text: object) -> Answer | None:
    """Read an answer from JSON; None if it cannot be read, because the file was damaged.

    Only its text is needed. `Answer` cleans everything else, also what earlier versions stored.
    """
    try:
        fields = json.loads(text)  # type: ignore[arg-type]
    except (ValueError, TypeError, RecursionError):
        return None
    if not isinstance(fields, dict) or not isinstance(fields.get("text"), str):
        return None
    return Answer(**{name: fields.get(name) for name in _ANSWER_FIELDS})  # type: ignore[arg-type]


def journal_of(llm: LLM) -> Journal:
    """Return the journal of a model, in a folder that is named by a hash of its identity."""
    name = hashlib.blake2b(llm.identity.encode(), digest_size=KEY_BYTES).hexdigest()
    return Journal(cache_folder() / "llm" / name, about=llm.spec)


@dataclass(frozen=True, kw_only=True)
class Request:
    """A prompt and the number of the attempt.

    Another attempt at the same prompt is another request, with the next seed if there is one.
    """

    prompt: Prompt
    """The prompt."""
    attempt: int = 1
    """Number of the attempt, from 1."""


@dataclass(frozen=True, kw_only=True)
class KeyedRequest:
    """A request with its key in the journal."""

    key: str
    """Key in the journal."""
    request: Request
    """The request."""


def seed_of(prompt: Prompt, sampling: Sampling, attempt: int) -> int | None:
    """Return the seed of an attempt: the prompt's or else the sampling's, plus `attempt` − 1.

    None if neither has a seed.
    """
    seed = sampling.seed if prompt.seed is None else prompt.seed
    return None if seed is None else seed + attempt - 1


def request_key(llm: LLM, prompt: Prompt, sampling: Sampling, attempt: int = 1) -> str:
    """Hash a request to 32 hexadecimal digits.

    Keys are equal for equal model, messages, sampling and attempt.
    """
    parameters = {
        **vars(sampling),
        "temperature": float(sampling.temperature),
        "top_p": float(sampling.top_p),
        "seed": seed_of(prompt, sampling, attempt),
    }
    content = orjson.dumps([llm.identity, prompt.digest, parameters, attempt])
    return hashlib.blake2b(content, digest_size=KEY_BYTES).hexdigest()


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
    """Answer requests from the journal, and ask the model for the rest.

    Yields a reply for each request, in any order. Equal requests are asked once. Nothing is asked
    before the journal can be written, and answers are in the journal before they are yielded.

    Parameters
    ----------
    llm : LLM
        The model.
    requests : iterable of Request
        What to ask. Requests are pulled when they are needed.
    journal : Journal
        The journal of the model.
    sampling : Sampling
        How answers are drawn.
    label : str, optional
        Name of the work in progress bars.
    total, before : int, optional
        Number of all requests of the work, and of those that earlier calls answered, for progress
        bars; by default those of this call.
    """
    count = len(requests) if total is None and isinstance(requests, Sized) else total
    replies = _OpenRequests(llm, requests, journal, sampling).replies()
    for done, reply in enumerate(replies, start=before + 1):
        if count:
            report(label, done, max(count, done))
        yield reply


class _OpenRequests:
    """The requests of one call, until each has a reply.

    A request is looked up in the journal. If the journal has no answer, the request waits until the
    model takes it, and is then under way.
    """

    def __init__(
        self, llm: LLM, requests: Iterable[Request], journal: Journal, sampling: Sampling
    ) -> None:
        self._llm, self._journal, self._sampling = llm, journal, sampling
        self._source = enumerate(requests)
        # By key, the numbers of all equal requests that have no reply yet.
        self._numbers: dict[str, list[int]] = {}
        # By key, why a request has no answer; equal requests that come later fail alike.
        self._failed: dict[str, Failure] = {}
        # Requests that the journal has no answer to, and that were not sent yet.
        self._waiting: deque[KeyedRequest] = deque()
        # Requests under way, by the number that the model gives their replies.
        self._sent: dict[int, KeyedRequest] = {}
        # Replies that need no model.
        self._ready: deque[Reply] = deque()

    def replies(self) -> Iterator[Reply]:
        """Yield all replies: first from the journal alone, then as the model answers."""
        while not self._waiting and self._look_up():
            yield from self._ready_replies()
        if self._waiting:
            arrivals = self._llm.journal_arrivals(self._prompts(), self._sampling, self._journal)
            with closing(arrivals):
                for replies in arrivals:
                    yield from self._settle(replies)
                    yield from self._ready_replies()
        yield from self._ready_replies()

    def _look_up(self) -> bool:
        """Look up the next requests in the journal; return False if there are no more."""
        batch = list(islice(self._source, _REQUESTS_A_LOOKUP))
        new: dict[str, Request] = {}
        for number, request in batch:
            key = request_key(self._llm, request.prompt, self._sampling, request.attempt)
            if key in self._failed:
                self._ready.append(Reply(number=number, failure=self._failed[key], fresh=False))
            elif key in self._numbers:
                self._numbers[key].append(number)
            else:
                self._numbers[key] = [number]
                new[key] = request
        records = self._journal.read(new) if new else {}
        if len(records) < len(new) and self._journal.claim():
            # Another process may have written before the journal was claimed.
            records = self._journal.read(new)
        self._llm.has_answered = self._llm.has_answered or bool(records)
        for key, request in new.items():
            record = records.get(key)
            if record is None:
                self._waiting.append(KeyedRequest(key=key, request=request))
                continue
            for number in self._numbers.pop(key):
                reply = Reply(number=number, answer=record.answer, fresh=False, time=record.time)
                self._ready.append(reply)
        return bool(batch)

    def _prompts(self) -> Iterator[tuple[str, Prompt]]:
        """Yield prompts that have no answer yet; `_sent` keeps the request of each of them."""
        number = 0
        while self._waiting or self._look_up():
            if self._waiting:
                keyed = self._sent[number] = self._waiting.popleft()
                prompt = keyed.request.prompt
                seed = seed_of(prompt, self._sampling, keyed.request.attempt)
                yield keyed.key, replace(prompt, seed=seed)
                number += 1

    def _settle(self, replies: Sequence[Reply]) -> Iterator[Reply]:
        """Write the answers of these replies to the journal, and then yield the replies."""
        sent = [self._sent.pop(reply.number) for reply in replies]
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        records = []
        for keyed, reply in zip(sent, replies, strict=True):
            if reply.answer:
                digest = keyed.request.prompt.digest
                record = JournalRecord(key=keyed.key, time=now, prompt=digest, answer=reply.answer)
                records.append(record)
        if records:
            self._journal.append(records)
        for keyed, reply in zip(sent, replies, strict=True):
            if reply.failure is not None:
                self._failed[keyed.key] = reply.failure
            first, *repeats = self._numbers.pop(keyed.key)
            time = None if reply.answer is None else now
            yield replace(reply, number=first, fresh=True, time=time)
            for number in repeats:
                yield replace(reply, number=number, fresh=False, time=time)

    def _ready_replies(self) -> Iterator[Reply]:
        """Yield and remove the replies that are ready."""
        while self._ready:
            yield self._ready.popleft()
