"""A batch that does not say what became of its requests is kept, and never paid twice."""

import copy
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from ranktilt.errors import UserError
from ranktilt.llm.base import Reply, llm
from ranktilt.llm.batch_files import read_lines, read_status
from ranktilt.llm.batches import BatchOpenAI, in_batches
from ranktilt.llm.journal import Journal, journalled
from ranktilt.llm.server import Server as Asked
from ranktilt.llm.spec import read_model
from tests.llm.batch_server import BatchServer, Body
from tests.llm.echo import COLD, contents, requests
from tests.llm.server import Raw
from tests.llm.test_hostile_answers import DEEP, STRANGE, replaced, spots

TEXTS = [f"word{number} tells of rivers, and of the sea" for number in range(4)]
Twist = Callable[[Any], Any]


def unchanged(value: Any) -> Any:
    return value


class TwistedServer(BatchServer):
    """A server that says something else of its batches, of its list of them, or in its files."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.status: Twist = unchanged
        self.page: Twist = unchanged
        self.content: Twist = unchanged

    def _response(self, request: Any, fault: Any) -> tuple[int, Any, Mapping[str, str]]:
        code, body, headers = super()._response(request, fault)
        path = request.path.partition("?")[0].removeprefix("/v1/").split("/")
        if path[0] == "files" and path[-1] == "content":
            body = self.content([json.loads(line) for line in body.splitlines()])
            body = (
                body if isinstance(body, str) else "".join(json.dumps(line) + "\n" for line in body)
            )
        elif path[0] == "batches" and "input_file_id" not in request.body:
            body = (self.status if len(path) > 1 else self.page)(copy.deepcopy(body))
        if isinstance(body, Raw):
            return body.status, body.body, body.headers or {}
        return code, body if isinstance(body, dict | str) else json.dumps(body), headers


@pytest.fixture
def server() -> Iterator[TwistedServer]:
    with ExitStack() as stack:
        yield stack.enter_context(TwistedServer())


@pytest.fixture
def ask(tmp_path: Path, server: TwistedServer) -> Callable[..., list[Reply]]:
    """Ask texts in batches, with a journal of this test; replies by the order of the texts."""

    def run(texts: list[str] = TEXTS, **options: Any) -> list[Reply]:
        model = in_batches(llm("openai:tiny", base_url=server.url, retries=2), 0.001, **options)
        with Journal(tmp_path / "journal") as journal:
            replies = list(journalled(model, requests(*texts), journal, sampling=COLD))
        return sorted(replies, key=lambda reply: reply.number)

    return run


def first_line_less(lines: list[Body]) -> list[Body]:
    return lines[1:]


def first_line_unreadable(lines: list[Body]) -> str:
    return "<html>\n" + "".join(json.dumps(line) + "\n" for line in lines[1:])


def first_answer_empty(lines: list[Body]) -> list[Body]:
    lines[0]["response"]["body"] = {"choices": []}
    return lines


def no_output(batch: Body) -> Body:
    return {**batch, "output_file_id": None}


def no_files_yet(batch: Body) -> Body:
    return {key: value for key, value in batch.items() if not key.endswith("_file_id")}


def expired_with_more(batch: Body) -> Body:
    return {
        **batch,
        "status": "expired",
        "output_file_id": None,
        "request_counts": {"total": 4, "completed": 3},
    }


@pytest.mark.parametrize(
    ("twist", "field", "missing"),
    [
        (no_output, "status", 4),
        (no_files_yet, "status", 4),
        (expired_with_more, "status", 4),
        (first_line_less, "content", 1),
        (first_line_unreadable, "content", 1),
        (first_answer_empty, "content", 1),
        (lambda lines: "", "content", 4),
    ],
)
def test_a_silent_batch_is_kept_and_paid_once(
    ask: Callable[..., list[Reply]],
    server: TwistedServer,
    tmp_path: Path,
    twist: Twist,
    field: str,
    missing: int,
) -> None:
    setattr(server, field, twist)
    for _ in range(3):
        with pytest.raises(
            UserError, match=r"says nothing about batch batch-0: .*give_up_batch=batch-0"
        ) as caught:
            ask()
        assert "in 8 looks over 0.008 s" in str(caught.value)
        assert len(server.batches) == 1
        assert len(contents(tmp_path / "journal")) == 4 - missing, "what was answered is kept"
    setattr(server, field, unchanged)  # the server recovers
    assert all(reply.answer for reply in ask())
    assert (len(server.batches), len(server.paid)) == (1, 4)


def test_a_batch_is_given_up_by_name(
    ask: Callable[..., list[Reply]], server: TwistedServer, tmp_path: Path
) -> None:
    server.content = first_line_less
    with pytest.raises(UserError, match="what became of 1 request, in "):
        ask()
    with pytest.raises(
        UserError, match=r"^not waiting for batch 'batch-7'.*; waiting for: 'batch-0'$"
    ):
        ask(give_up=["batch-7"])
    server.content = unchanged
    assert all(reply.answer for reply in ask(give_up=["batch-0"]))
    assert [len(keys) for keys in server.submitted] == [4, 1], "only what it has not answered"


def test_a_batch_that_the_server_lost_is_named_at_once(
    ask: Callable[..., list[Reply]], server: TwistedServer, tmp_path: Path
) -> None:
    server.status = lambda batch: Raw(404, {"error": {"message": "No such batch."}})
    for _ in range(2):
        with pytest.raises(
            UserError,
            match=r"nothing about batch batch-0: error 404: No such batch; .*give_up_batch",
        ):
            ask()
    looks = [path for path, _, _ in server.requests if path == "/v1/batches/batch-0"]
    assert len(looks) == 2, "once a run"
    server.status = unchanged
    assert all(reply.answer for reply in ask(give_up=["batch-0"]))
    assert len(server.batches) == 2


@pytest.mark.parametrize(
    "status", ["paused", "", None, 3, [], {"a": 1}, "half \ud83d", DEEP, float("inf"), "x" * 999]
)
def test_an_unknown_status_ends_after_a_stated_time(
    ask: Callable[..., list[Reply]], server: TwistedServer, status: Any
) -> None:
    server.status = lambda batch: {**batch, "status": status}
    with pytest.raises(
        UserError, match=r"its status .* is unknown, in 8 looks over 0.008 s"
    ) as caught:
        ask()
    assert str(caught.value).isprintable()
    server.status = unchanged
    assert all(reply.answer for reply in ask())
    assert len(server.batches) == 1


NOTHING = [
    "<html><h1>Busy</h1></html>",
    "",
    "null",
    "[]",
    "5",
    "[" * 100_000,
    '{"status": 1e999}',
    "\x00",
    "{",
]


@pytest.mark.parametrize("body", NOTHING)
@pytest.mark.parametrize("field", ["status", "content"])
def test_what_says_nothing_is_looked_for_again(
    ask: Callable[..., list[Reply]], server: TwistedServer, body: str, field: str
) -> None:
    looks = [Raw(200, body, {"Content-Type": "text/html"})] * 5 if field == "status" else [body] * 5
    setattr(server, field, lambda value: looks.pop() if looks else value)
    assert all(reply.answer for reply in ask())
    assert (len(server.batches), looks) == (1, [])


def test_no_field_of_a_status_is_a_traceback(
    ask: Callable[..., list[Reply]], server: TwistedServer
) -> None:
    ask(TEXTS[:1])
    counts = {"total": 1, "completed": 1, "failed": 0}
    errors = {"object": "list", "data": [{"message": "Busy.", "code": "x"}]}
    batch = {**server.batches[0], "request_counts": counts, "errors": errors}
    clean = Asked(model="tiny", url=None).clean
    deciding = {(), ("status",), ("output_file_id",), ("error_file_id",)}
    for path in spots(batch):
        for value in STRANGE:
            changed = replaced(path, value, batch)
            if path not in deciding:
                assert read_status(changed, clean).errors.isprintable()
            elif isinstance(changed, dict):
                with suppress(ValueError):
                    read_status(changed, clean)


def test_no_field_of_a_batch_line_is_a_traceback(
    server: TwistedServer, ask: Callable[..., list[Reply]]
) -> None:
    ask(TEXTS[:1])
    (line,) = server.files["file-1"]
    key, tiny_server = line["custom_id"], Asked(model="tiny", url=None)
    for path in spots(line):
        for value in STRANGE:
            changed = json.dumps(replaced(path, value, line)).encode()
            lines = read_lines(
                changed + b"\n" + json.dumps({**line, "custom_id": "other"}).encode(), tiny_server
            )
            assert "other" in lines.outcomes
            assert lines.unreadable or key in lines.outcomes or path == ("custom_id",)


def test_an_answer_beats_an_error_for_the_same_request_and_the_first_answer_counts() -> None:
    body = {"choices": [{"message": {"content": "It is so."}}]}
    good = {"custom_id": "a", "response": {"status_code": 200, "body": body}}
    second = {
        "custom_id": "a",
        "response": {"status_code": 200, "body": {"choices": [{"message": {"content": "No."}}]}},
    }
    expired = {
        "custom_id": "a",
        "response": None,
        "error": {"code": "batch_expired", "message": "Too late."},
    }
    denied = {
        "custom_id": "a",
        "response": {"status_code": 401, "body": {"error": {"message": "No."}}},
    }
    for order in ([good, second, expired, denied], [denied, expired, good, second]):
        content = "\n".join(map(json.dumps, order)).encode()
        lines = read_lines(content, Asked(model="tiny", url=None))
        assert lines.outcomes["a"].text == "It is so."  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("error", "response", "kind"),
    [
        ({"code": "batch_expired", "message": "x"}, None, "unavailable"),
        ({"code": "request_timeout", "message": "x"}, None, "unavailable"),
        ({"code": "invalid_prompt", "message": "x"}, None, "refused"),
        (None, {"status_code": 503, "body": "<html>Busy</html>"}, "unavailable"),
        (None, {"status_code": 429, "body": {"error": {"message": "Slow down."}}}, "unavailable"),
        (None, {"status_code": 400, "body": {"error": {"message": "No."}}}, "refused"),
        (None, {"status_code": 413, "body": None}, "too long"),
    ],
)
def test_only_what_may_pass_is_submitted_again(
    ask: Callable[..., list[Reply]], server: TwistedServer, error: Any, response: Any, kind: str
) -> None:
    def first_failed(lines: list[Body]) -> list[Body]:
        key = lines[0]["custom_id"]
        return [{"custom_id": key, "response": response, "error": error}, *lines[1:]]

    server.content = first_failed
    replies = ask()
    failures = [reply.failure for reply in replies if reply.failure]
    assert [failure.kind for failure in failures] == [kind]
    assert [len(keys) for keys in server.submitted] == ([4, 1, 1] if kind == "unavailable" else [4])


def test_other_batches_are_fetched_before_a_silent_one_ends_the_run(
    ask: Callable[..., list[Reply]],
    server: TwistedServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ranktilt.llm.batches.MOST_REQUESTS", 2)
    server.status = lambda batch: no_output(batch) if batch["id"] == "batch-0" else batch
    server.looks = 12
    with pytest.raises(UserError, match="says nothing about batch batch-0: "):
        ask()
    assert len(contents(tmp_path / "journal")) == 2
    assert len(server.batches) == 2


@pytest.mark.parametrize(
    "page", ["<html>", "null", '{"data": [{"id": 5}]}', '{"data": null}', "[" * 100_000]
)
def test_a_list_that_cannot_be_read_starts_no_second_batch(
    ask: Callable[..., list[Reply]], server: TwistedServer, page: str
) -> None:
    server.script = [None, "drop"]  # the batch starts, and its response never arrives
    server.page = lambda value: page
    with pytest.raises(UserError, match="did not start the batch: "):
        ask()
    assert len(server.batches) == 1
    server.page = unchanged
    assert all(reply.answer for reply in ask())
    assert len(server.batches) == 1


def test_a_list_without_an_end_is_left(
    ask: Callable[..., list[Reply]], server: TwistedServer
) -> None:
    server.script = [None, "drop"]
    server.page = lambda page: {"data": [{"id": "x", "input_file_id": "y"}], "has_more": True}
    assert all(reply.answer for reply in ask())


def test_only_batches_are_given_up(server: TwistedServer) -> None:
    model_spec = read_model(f"openai:tiny(base_url={server.url},give_up_batch=batch-0)")
    with pytest.raises(UserError, match=r"^give_up_batch of openai:tiny needs --batch$"):
        model_spec.connect()
    model = model_spec.connect(batch=True)
    assert isinstance(model, BatchOpenAI)
    assert model.give_up == ("batch-0",)
