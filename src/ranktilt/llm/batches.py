"""Batches: requests that a server takes as one file, and answers within a day at half the price."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple

import orjson

from ranktilt.errors import UserError
from ranktilt.llm.base import LLM, Answer, Failure, Prompt, Reply, Sampling
from ranktilt.llm.journal import Journal, JournalRecord
from ranktilt.llm.openai import FEWEST, OpenAI, ServerClient, chat_body, flow, key_of_environment
from ranktilt.llm.responses import FailedRequest, error_text, read_batch
from ranktilt.llm.server import Server
from ranktilt.progress import report

INTERVAL = 30.0
MOST_REQUESTS, MOST_BYTES = 50_000, 200_000_000
"""Of one file, at OpenAI."""
_ENDPOINT = "/v1/chat/completions"
_STORE = "INSERT OR REPLACE INTO batches VALUES (?, ?, ?)"
_TABLE = "CREATE TABLE IF NOT EXISTS batches (file TEXT PRIMARY KEY, batch TEXT, prompts TEXT)"
_ENDED = {"completed", "expired", "failed", "cancelled"}


def in_batches(llm: LLM, interval: float | None = None) -> LLM:
    """Return a model that is asked in batches, and looked after every `interval` seconds; it has the same journal."""
    if not isinstance(llm, OpenAI):
        raise UserError(f"{llm.name} takes no batches (--batch): only openai:MODEL does, where its server has them")
    given = {one.name: getattr(llm, one.name) for one in fields(llm)}
    return BatchOpenAI(**given, interval=INTERVAL if interval is None else interval)


@dataclass(eq=False)
class BatchOpenAI(OpenAI):
    """A model behind a server with OpenAI's files and batches, which is asked through them where a journal is kept."""

    batched = True
    interval: float = field(default=INTERVAL, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.interval < float("inf"):
            raise UserError(f"interval must be above 0 seconds, got {self.interval!r}")

    def journal_arrivals(
        self, requests: Iterable[tuple[str, Prompt]], sampling: Sampling, journal: Journal
    ) -> Generator[list[Reply], None, None]:
        """Submit all requests at once and wait for them; see `LLM.journal_arrivals`.

        The journal knows every batch from before it is submitted until its answers are written, so that a process that
        is killed submits nothing twice. What expired or failed is submitted again, up to ``retries`` times.
        """
        self.check()
        server = replace(self._server, key=key_of_environment())
        yield from _Submission(self, server, sampling, journal).replies(requests)


class BatchClient(ServerClient):
    """Calls of the openai client, one at a time."""

    path = "/batches"

    async def serve(self, number: int, item: Callable[[Any], Awaitable[Any]]) -> Any:
        return await self.response(item(self._client))

    def status_error(self, status: int, body: object) -> Exception:
        """Return the exception for an error; an address that the server does not have says nothing about models."""
        if status in (404, 405, 501):
            return FailedRequest("refused", f"error {status}: {error_text(body, self.server.clean)[0]}".rstrip(": "))
        return super().status_error(status, body)


class _BatchLine(NamedTuple):
    number: int
    digest: str
    line: bytes


class _Submitted(NamedTuple):
    """A file at the server, its batch (None until one is known), and the prompts' hashes by key of request."""

    file: str
    batch: str | None
    prompts: dict[str, str]


class _Submission:
    """The batches of one call: those of earlier calls that hold its requests, and its own."""

    def __init__(self, model: BatchOpenAI, server: Server, sampling: Sampling, journal: Journal) -> None:
        self._model, self._server, self._sampling, self._journal = model, server, sampling, journal
        self._lines, self._waiting = dict[str, _BatchLine](), list[str]()  # of requests without a reply, by key
        self._open: dict[str, _Submitted] = {}
        self._tries = Counter[str]()
        self._silent = self._refused = 0  # looks without an answer, and batches refused, in a row

    def replies(self, requests: Iterable[tuple[str, Prompt]]) -> Iterator[list[Reply]]:
        for number, (key, prompt) in enumerate(requests):
            body = chat_body(self._server, self._sampling, prompt)
            whole = {"custom_id": key, "method": "POST", "url": _ENDPOINT, "body": body}
            self._lines[key] = _BatchLine(number, prompt.digest, orjson.dumps(whole) + b"\n")
        earlier = [one for one in self._stored() if not self._lines.keys().isdisjoint(one.prompts)]
        self._open = {one.file: one for one in earlier}
        under_way = {key for one in earlier for key in one.prompts}
        self._waiting = [key for key in self._lines if key not in under_way]
        for one in earlier:
            if one.batch is None:
                self._start(one, sent_before=True)
        while self._open or self._waiting:
            while self._waiting and not (self._refused and self._open):  # more is taken when another batch has ended
                self._submit()
            for submitted in list(self._open.values()):
                yield from self._results(submitted)
            if self._open or self._waiting:
                time.sleep(self._model.interval)

    def _submit(self) -> None:
        """Submit what waits, as much as the server takes in one file."""
        sizes = accumulate(len(self._lines[key].line) for key in self._waiting[:MOST_REQUESTS])
        count = max(sum(size <= MOST_BYTES for size in sizes), 1)
        keys, self._waiting = self._waiting[:count], self._waiting[count:]
        content = b"".join(self._lines[key].line for key in keys)
        upload = {"file": ("requests.jsonl", content, "application/jsonl"), "purpose": "batch"}
        try:
            file = self._call(lambda client: client.files.create(**upload))
        except FailedRequest as error:
            raise UserError(f"{self._server.where} takes no batch file: {error.message}; omit --batch") from None
        submitted = _Submitted(file.id, None, {key: self._lines[key].digest for key in keys})
        self._store(submitted)
        self._start(submitted)

    def _start(self, submitted: _Submitted, *, sent_before: bool = False) -> None:
        """Start a file's batch, unless it was started by a call whose response never arrived."""
        find, create = (partial(work, file=submitted.file) for work in (_find, _create))
        for left in reversed(range(self._model.retries + 1)):
            try:
                batch = (self._call(find) if sent_before else None) or self._call(create)
                return self._store(submitted._replace(batch=batch.id))
            except FailedRequest as error:
                if error.kind != "unavailable":
                    self._forget(submitted)
                if error.kind != "unavailable" or not left:
                    raise UserError(f"{self._server.where} starts no batch: {error.message}") from None
                sent_before = True
                time.sleep(self._model.interval)

    def _results(self, submitted: _Submitted) -> Iterator[list[Reply]]:
        """Replies of a batch, once it has ended; what has none waits to be submitted again."""
        try:
            batch = self._call(lambda client: client.batches.retrieve(submitted.batch))
            counts = batch.request_counts
            if batch.status not in _ENDED:
                if counts is not None and counts.total:
                    report(f"batch {batch.id}", min(counts.completed + counts.failed, counts.total - 1), counts.total)
                return
            files = [one for one in (batch.output_file_id, batch.error_file_id) if one]
            contents = [self._call(partial(_content, file=one)) for one in files]
        except FailedRequest as error:
            self._silent += 1
            if error.kind == "unavailable" and self._silent < FEWEST:
                return
            raise UserError(
                f"{self._server.where} says nothing of batch {submitted.batch}: {error.message}; run this again later, "
                "with the key that submitted it, or omit --batch to ask for its answers anew"
            ) from None
        self._silent = 0
        outcomes = dict(read_batch(b"\n".join(contents), self._server))
        if replies := self._settled(submitted, outcomes, tried=batch.status != "failed"):
            yield replies
        self._forget(submitted)
        self._check(batch, outcomes)

    def _settled(self, submitted: _Submitted, outcomes: dict[str, Any], *, tried: bool) -> list[Reply]:
        """Replies to the caller's requests; answers to others, of an earlier call, go into the journal."""
        replies, others = list[Reply](), list[JournalRecord]()
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        for key, digest in submitted.prompts.items():
            outcome = outcomes.get(key, Failure("unavailable", "no answer in the batch"))
            answer = outcome if isinstance(outcome, Answer) else None
            failure = outcome if isinstance(outcome, Failure) else None
            if answer is not None:
                self._model.monitor.model(answer.model)
            self._tries[key] += tried
            if key not in self._lines:
                others += [JournalRecord(key, now, digest, answer)] if answer else []
            elif answer or (failure and (failure.kind != "unavailable" or self._tries[key] > self._model.retries)):
                replies.append(Reply(self._lines.pop(key).number, answer, failure))
            else:
                self._waiting.append(key)
        self._journal.append(others)
        return replies

    def _check(self, batch: Any, outcomes: dict[str, Any]) -> None:
        """Raise what ends everything, now that all answers are written."""
        if fatal := next((one for one in outcomes.values() if isinstance(one, UserError)), None):
            raise fatal
        if batch.status == "cancelled":
            raise UserError(f"batch {batch.id} was cancelled; the same command submits what it did not answer")
        self._refused = self._refused + 1 if batch.status == "failed" else 0
        if self._refused > 1 and not self._open:
            faults = getattr(batch.errors, "data", None) or []
            words = self._server.clean("; ".join(str(one.message) for one in faults)) or "no reason is given"
            raise UserError(f"{self._server.where} does not take batch {batch.id}: {words}")

    def _call(self, work: Callable[[Any], Awaitable[Any]]) -> Any:
        """Wait for one call of the client."""
        ((result,),) = flow(partial(BatchClient, self._server), [work], 1)
        return result

    def _stored(self) -> list[_Submitted]:
        with self._journal.writing() as db:
            db.execute(_TABLE)
            rows = db.execute("SELECT file, batch, prompts FROM batches ORDER BY rowid").fetchall()
        return [_Submitted(file, batch, json.loads(prompts)) for file, batch, prompts in rows]

    def _store(self, submitted: _Submitted) -> None:
        self._open[submitted.file] = submitted
        with self._journal.writing() as db:
            db.execute(_STORE, (submitted.file, submitted.batch, json.dumps(submitted.prompts)))

    def _forget(self, submitted: _Submitted) -> None:
        del self._open[submitted.file]
        with self._journal.writing() as db:
            db.execute("DELETE FROM batches WHERE file = ?", (submitted.file,))


async def _create(client: Any, file: str) -> Any:
    once = client.with_options(max_retries=0)  # a second try could be a second batch
    return await once.batches.create(input_file_id=file, endpoint=_ENDPOINT, completion_window="24h")


async def _find(client: Any, file: str) -> Any:
    """The batch of a file; None where there is none."""
    async for batch in client.batches.list(limit=100):
        if batch.input_file_id == file:
            return batch
    return None


async def _content(client: Any, file: str) -> bytes:
    return bytes((await client.files.content(file)).content)
