"""Batches: requests that a server takes as one file, and answers within a day at half the price.

A *look-up* asks the server for the state of a batch. A batch has *ended* if its state will not
change again; it is *under way* before. It is *silent* if look-ups fail, or if it has ended and its
files do not say what became of some requests.

The *journal* is the file that keeps all answers of a model, and here also the batches under way. A
request has a *key* in it. A *reply* is the outcome of a request: an answer, or a failure.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import partial
from itertools import accumulate
from typing import Any, TypeVar
from urllib.parse import quote

import orjson

from ranktilt.errors import UserError, counted, join_words
from ranktilt.llm.base import LLM, Answer, Failure, Prompt, Reply, Sampling
from ranktilt.llm.batch_files import (
    UNDER_WAY,
    BatchLines,
    BatchStatus,
    read_id,
    read_lines,
    read_page,
    read_status,
)
from ranktilt.llm.event_loop import flow
from ranktilt.llm.journal import Journal, JournalRecord
from ranktilt.llm.openai import FEWEST_FAILURES, OpenAI, ServerClient, chat_body
from ranktilt.llm.responses import FailedRequest, error_text, json_body
from ranktilt.llm.server import Server
from ranktilt.progress import report

Result = TypeVar("Result")
"""What is read from a response."""

INTERVAL = 30.0
"""Seconds between two look-ups of a batch."""
MOST_REQUESTS = 50_000
"""Most requests of a file, at OpenAI."""
MOST_BYTES = 200_000_000
"""Most bytes of a file, at OpenAI."""
_ENDPOINT = "/v1/chat/completions"
"""Address to which each request of a batch is sent."""
_STORE = "INSERT OR REPLACE INTO batches VALUES (?, ?, ?)"
"""SQL statement that writes a batch, or replaces its row."""
_TABLE = "CREATE TABLE IF NOT EXISTS batches (file TEXT PRIMARY KEY, batch TEXT, prompts TEXT)"
"""SQL statement that adds the table of batches to a journal."""
_FILE_TIMEOUT_FACTOR = 10
"""Time limit for sending or fetching a file, as a multiple of the time limit of a request."""
_MOST_PAGES = 1_000
"""Most pages of the list of batches that are read; a faulty server may have pages without end."""


def in_batches(llm: LLM, interval: float | None = None, *, give_up: Sequence[str] = ()) -> LLM:
    """Return a model that sends requests in batches, with the same journal.

    Its batches are looked up every `interval` seconds. `give_up` has the ids of batches to give up:
    their unanswered requests are submitted again.
    """
    if not isinstance(llm, OpenAI):
        raise UserError(
            f"{llm.name} takes no batches (--batch): only openai:MODEL does, "
            "where its server has them"
        )
    options = {option.name: getattr(llm, option.name) for option in fields(llm)}
    return BatchOpenAI(
        **options, interval=INTERVAL if interval is None else interval, give_up=tuple(give_up)
    )


@dataclass(eq=False)
class BatchOpenAI(OpenAI):
    """A model behind a server with OpenAI's files and batches.

    Requests for a journal go through batches, others directly.
    """

    batched = True
    """Its answers come within a day, at half the price."""
    interval: float = field(default=INTERVAL, kw_only=True)
    """Seconds between two look-ups of a batch."""
    give_up: tuple[str, ...] = field(default=(), kw_only=True)
    """Ids of batches whose unanswered requests are submitted again."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.interval < float("inf"):
            raise UserError(f"interval must be above 0 seconds, got {self.interval!r}")

    def journal_arrivals(
        self, requests: Iterable[tuple[str, Prompt]], sampling: Sampling, journal: Journal
    ) -> Generator[list[Reply], None, None]:
        """Submit all requests together, wait for them, and yield replies as batches end.

        A batch is written to the journal before it is submitted, and removed when its answers are
        written, so that a process that is killed submits nothing twice. Requests that expired, or
        failed by an error that may pass, are submitted again, up to ``retries`` times. A silent
        batch stays in the journal, and is an error once all other batches have ended.
        """
        self.check()
        yield from _Submission(self, self._current_server(), sampling, journal).replies(requests)


class BatchClient(ServerClient):
    """Makes calls of the openai client, one at a time.

    The client's models of responses are not used: they check nothing of what a server sends.
    """

    path = "/batches"

    async def serve(self, number: int, work: Callable[[Any], Awaitable[Any]]) -> bytes:
        """Return the content of the response to a piece of work."""
        return bytes((await self.response(work(self))).content)

    def status_error(self, status: int, body: object, wait: float | None) -> Exception:
        """Return the exception for an error; a missing address is no missing model here."""
        if status in (404, 405, 501):
            words, _ = error_text(body, self.server.clean)
            return FailedRequest("refused", f"error {status}: {words}".rstrip(": "))
        return super().status_error(status, body, wait)

    def get(self, *parts: str, **options: Any) -> Awaitable[Any]:
        """Request the content at a path of these parts."""
        path = "".join(f"/{quote(part, safe='')}" for part in parts)
        response: Awaitable[Any] = self._client.get(
            path, cast_to=self._http.Response, options=options
        )
        return response

    def list_batches(self, after: Mapping[str, str]) -> Awaitable[Any]:
        """Request a part of the list of batches."""
        return self.get("batches", params={"limit": 100, **after})

    def download(self, file: str) -> Awaitable[Any]:
        """Request the content of a file."""
        return self.get("files", file, "content", timeout=self.file_timeout)

    def create_batch(self, file: str) -> Awaitable[Any]:
        """Start the batch of a file; never repeat the call, which could start a second batch."""
        body = {"input_file_id": file, "endpoint": _ENDPOINT, "completion_window": "24h"}
        once = self._client.with_options(max_retries=0)
        response: Awaitable[Any] = once.post(self.path, cast_to=self._http.Response, body=body)
        return response

    async def upload(self, content: bytes) -> Any:
        """Send a file of requests."""
        file = ("requests.jsonl", content, "application/jsonl")
        files = self._client.files.with_raw_response
        created = await files.create(file=file, purpose="batch", timeout=self.file_timeout)
        return created.http_response

    @property
    def file_timeout(self) -> float:
        """Time limit for sending or fetching a file, in seconds."""
        return _FILE_TIMEOUT_FACTOR * self.server.timeout


@dataclass(frozen=True, kw_only=True)
class _BatchLine:
    """A request as a line of a batch's file."""

    number: int
    """Position of the request among those of the call."""
    digest: str
    """Digest of the prompt."""
    line: bytes
    """The line, with a line break at its end."""


@dataclass(frozen=True, kw_only=True)
class _Submitted:
    """A file at the server."""

    file: str
    """Id of the file."""
    batch: str | None
    """Id of its batch; None until it is known."""
    prompts: dict[str, str]
    """Digest of the prompt of each request, by the request's key."""

    @property
    def name(self) -> str:
        """Id of the batch in messages: its own, or that of its file."""
        return self.batch or self.file


class _Submission:
    """The batches of one call: new ones, and those of earlier calls with requests of this call.

    A request waits, is submitted in a batch, and has a reply once its batch has ended. Requests of
    a silent batch may have been paid for, so they are not submitted again.
    """

    def __init__(
        self, model: BatchOpenAI, server: Server, sampling: Sampling, journal: Journal
    ) -> None:
        self._model, self._server, self._sampling, self._journal = model, server, sampling, journal
        # Requests without a reply, by key.
        self._lines = dict[str, _BatchLine]()
        # Keys of requests that will be submitted.
        self._waiting = list[str]()
        # Batches that have not ended, by the id of their file.
        self._open: dict[str, _Submitted] = {}
        # Number of times that each request was submitted, by key.
        self._tries = Counter[str]()
        # Number of silent look-ups in a row, by the id of the file.
        self._silent_looks = Counter[str]()
        # Messages about silent batches, which are an error at the end.
        self._lost = list[str]()
        # Number of batches in a row that the server refused as a whole.
        self._refused = 0

    def replies(self, requests: Iterable[tuple[str, Prompt]]) -> Iterator[list[Reply]]:
        """Submit requests that no batch holds yet, and yield replies as batches end."""
        for number, (key, prompt) in enumerate(requests):
            body = chat_body(self._server, self._sampling, prompt)
            line = {"custom_id": key, "method": "POST", "url": _ENDPOINT, "body": body}
            self._lines[key] = _BatchLine(
                number=number, digest=prompt.digest, line=orjson.dumps(line) + b"\n"
            )
        self._give_up()
        self._resume()
        while self._open or self._waiting:
            # A server may refuse a batch because too many are under way, until one of them ends.
            while self._waiting and not (self._refused and self._open):
                self._submit()
            for submitted in list(self._open.values()):
                yield from self._results(submitted)
            if self._open or self._waiting:
                time.sleep(self._model.interval)
        if self._lost:
            raise UserError("; ".join(self._lost))

    def _resume(self) -> None:
        """Continue earlier batches that have requests of this call; all other requests wait."""
        earlier = [
            batch for batch in self._stored() if not self._lines.keys().isdisjoint(batch.prompts)
        ]
        self._open = {batch.file: batch for batch in earlier}
        under_way = set[str]().union(*(batch.prompts for batch in earlier))
        self._waiting = [key for key in self._lines if key not in under_way]
        for batch in earlier:
            if batch.batch is None:
                self._start(batch, sent_before=True)

    def _give_up(self) -> None:
        """Forget the batches that the user gives up; only the first call of a model does so."""
        names, self._model.give_up = self._model.give_up, ()
        stored = {batch.name: batch for batch in self._stored()} if names else {}
        for name in names:
            if name not in stored:
                known = join_words([repr(batch) for batch in stored]) if stored else "none"
                raise UserError(
                    f"not waiting for batch {name!r}, so it cannot be given up; waiting for: "
                    f"{known}"
                )
        for name in dict.fromkeys(names):
            self._forget(stored[name])

    def _submit(self) -> None:
        """Submit waiting requests, as many as the server takes in a file."""
        sizes = accumulate(len(self._lines[key].line) for key in self._waiting[:MOST_REQUESTS])
        # At least one request, even if it alone is too large: else it would wait forever.
        count = max(sum(size <= MOST_BYTES for size in sizes), 1)
        keys, self._waiting = self._waiting[:count], self._waiting[count:]
        content = b"".join(self._lines[key].line for key in keys)
        try:
            file = self._call(lambda client: client.upload(content), read_id)
        except FailedRequest as error:
            raise UserError(
                f"{self._server.where} rejects the batch file: {error.message}; omit --batch"
            ) from None
        prompts = {key: self._lines[key].digest for key in keys}
        submitted = _Submitted(file=file, batch=None, prompts=prompts)
        self._store(submitted)
        self._start(submitted)

    def _start(self, submitted: _Submitted, *, sent_before: bool = False) -> None:
        """Start a file's batch.

        If `sent_before`, the server may have started it already, without a response that arrived.
        Then it is looked for in the server's list of batches.
        """
        for left in reversed(range(self._model.retries + 1)):
            try:
                batch = self._find(submitted.file) if sent_before else None
                batch = batch or self._call(
                    lambda client: client.create_batch(submitted.file), read_id
                )
                return self._store(replace(submitted, batch=batch))
            except FailedRequest as error:
                if error.kind != "unavailable":
                    self._forget(submitted)
                if error.kind != "unavailable" or not left:
                    raise UserError(
                        f"{self._server.where} did not start the batch: {error.message}"
                    ) from None
                sent_before = True
                time.sleep(self._model.interval)

    def _find(self, file: str) -> str | None:
        """Find the batch of a file in the server's list; return None if there is none."""
        after, seen = dict[str, str](), set[str]()
        for _ in range(_MOST_PAGES):
            batches = self._call(partial(BatchClient.list_batches, after=after), read_page)
            for batch, input_file in batches:
                if input_file == file:
                    return batch
            new = {batch for batch, _ in batches} - seen
            if not new:  # after the last page, a server sends an empty page or repeats a page
                return None
            seen |= new
            after = {"after": batches[-1][0]}
        raise FailedRequest("unavailable", "the list of batches has no end")

    def _results(self, submitted: _Submitted) -> Iterator[list[Reply]]:
        """Look up a batch; if it has ended, yield its replies.

        A silent batch is looked up again later.
        """
        try:
            status = self._status(submitted)
            if status.status in UNDER_WAY:
                self._silent_looks.pop(submitted.file, None)
                if status.total:
                    # Below the total, which would end the progress bar: the batch has not ended.
                    done = min(status.completed + status.failed, status.total - 1)
                    report(f"batch {submitted.batch}", done, status.total)
                return
            lines = self._content(status)
        except FailedRequest as error:
            self._note_silence(submitted, error.message, is_over=error.kind != "unavailable")
            return
        if replies := self._settled(submitted, lines, tried=status.status != "failed"):
            yield replies
        missing = {
            key: digest for key, digest in submitted.prompts.items() if key not in lines.outcomes
        }
        if missing and _is_silent(status, lines):
            rest = replace(submitted, prompts=missing)
            self._store(rest)
            silent = counted(len(missing), "request", "requests")
            self._note_silence(
                rest, f"it is {status.status}, and its files do not say what became of {silent}"
            )
            return
        self._wait_again(missing, tried=status.status != "failed")
        self._forget(submitted)
        self._raise_common_error(submitted, status, lines)

    def _status(self, submitted: _Submitted) -> BatchStatus:
        """Ask for the state of a batch."""
        return self._call(
            lambda client: client.get("batches", submitted.name),
            partial(read_status, clean=self._server.clean),
        )

    def _content(self, status: BatchStatus) -> BatchLines:
        """Fetch and read the files of a batch."""
        contents = [self._fetch(partial(BatchClient.download, file=file)) for file in status.files]
        return read_lines(b"\n".join(contents), self._server)

    def _note_silence(self, submitted: _Submitted, message: str, *, is_over: bool = False) -> None:
        """Count a silent look-up; after some of them, give up and keep a message for the user.

        If `is_over`, further look-ups will not help, and one is enough.
        """
        self._silent_looks[submitted.file] += 1
        looks = self._silent_looks[submitted.file]
        if looks < FEWEST_FAILURES and not is_over:
            return
        del self._open[submitted.file]
        name, seconds = submitted.name, looks * self._model.interval
        period = "" if is_over else f", in {looks} looks over {seconds:.3g} s"
        self._lost.append(
            f"{self._server.where} says nothing about batch {name}: {message}{period}; its "
            "requests are not submitted again, because you may have paid for them: run this "
            "again later, with the key that submitted it, or give it up with "
            f'--llm "openai:{self._model.name}(give_up_batch={name})" to submit its requests anew'
        )

    def _settled(self, submitted: _Submitted, lines: BatchLines, *, tried: bool) -> list[Reply]:
        """Return the replies to this call's requests; requests that may succeed later wait again.

        Answers to requests of an earlier call are written to the journal, and are no replies.
        `tried` says whether the server took the batch, so that its requests count as tried.
        """
        replies, earlier_answers = list[Reply](), list[JournalRecord]()
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        for key, digest in submitted.prompts.items():
            outcome = lines.outcomes.get(key)
            if outcome is None:
                continue
            self._tries[key] += tried
            is_of_call = key in self._lines
            if isinstance(outcome, Answer):
                self._model.monitor.warn_of_other_model(outcome.model)
                if is_of_call:
                    replies.append(Reply(number=self._lines.pop(key).number, answer=outcome))
                else:
                    record = JournalRecord(key=key, time=now, prompt=digest, answer=outcome)
                    earlier_answers.append(record)
            elif is_of_call and isinstance(outcome, Failure) and self._is_final(key, outcome):
                replies.append(Reply(number=self._lines.pop(key).number, failure=outcome))
            elif is_of_call:
                self._waiting.append(key)
        self._journal.append(earlier_answers)
        return replies

    def _is_final(self, key: str, failure: Failure) -> bool:
        """Tell whether a request that failed should not be submitted again."""
        return failure.kind != "unavailable" or self._tries[key] > self._model.retries

    def _wait_again(self, keys: Iterable[str], *, tried: bool) -> None:
        """Let requests that an ended batch did not process wait again."""
        for key in keys:
            if key in self._lines:
                self._tries[key] += tried
                self._waiting.append(key)

    def _raise_common_error(
        self, submitted: _Submitted, status: BatchStatus, lines: BatchLines
    ) -> None:
        """Raise an error of an ended batch that concerns all requests; its answers are written."""
        for outcome in lines.outcomes.values():
            if isinstance(outcome, UserError):
                raise outcome
        name = submitted.name
        if status.status == "cancelled":
            raise UserError(
                f"batch {name} was cancelled; run the same command to submit what it did not answer"
            )
        # The server may have refused a batch because others were under way. So one refusal is no
        # error: the batch is submitted again. A second one, with no other batch, is an error.
        self._refused = self._refused + 1 if status.status == "failed" else 0
        if self._refused > 1 and not self._open:
            raise UserError(f"{self._server.where} rejects batch {name}: {status.errors}")

    def _fetch(self, work: Callable[[BatchClient], Awaitable[Any]]) -> bytes:
        """Wait for the response to one request of the client."""
        ((content,),) = flow(partial(BatchClient, self._server), [work], 1)
        return bytes(content)

    def _call(
        self,
        work: Callable[[BatchClient], Awaitable[Any]],
        read: Callable[[dict[str, Any]], Result],
    ) -> Result:
        """Wait for a response and read it; if it cannot be read, the request has failed."""
        try:
            return read(json_body(self._fetch(work), self._server.clean))
        except ValueError as error:
            raise FailedRequest("unavailable", str(error)) from None

    def _stored(self) -> list[_Submitted]:
        """Return the batches in the journal, in the order in which they were submitted."""
        with self._journal.writing() as db:
            db.execute(_TABLE)
            rows = db.execute("SELECT file, batch, prompts FROM batches ORDER BY rowid").fetchall()
        return [
            _Submitted(file=file, batch=batch, prompts=json.loads(prompts))
            for file, batch, prompts in rows
        ]

    def _store(self, submitted: _Submitted) -> None:
        """Write a batch to the journal, and keep it among those that have not ended."""
        self._open[submitted.file] = submitted
        with self._journal.writing() as db:
            db.execute(_STORE, (submitted.file, submitted.batch, json.dumps(submitted.prompts)))

    def _forget(self, submitted: _Submitted) -> None:
        """Remove a batch from the journal: nothing more is expected of it."""
        self._open.pop(submitted.file, None)
        with self._journal.writing() as db:
            db.execute("DELETE FROM batches WHERE file = ?", (submitted.file,))


def _is_silent(status: BatchStatus, lines: BatchLines) -> bool:
    """Tell whether requests without an outcome in the files of an ended batch may be paid for."""
    return (
        status.status == "completed"
        or bool(lines.unreadable)
        or lines.answer_count < status.completed
    )
