"""What servers say: errors are told apart, answers are read strictly."""

import json
import re

import numpy as np
import pytest

from ranktilt.errors import UserError
from ranktilt.llm.base import Answer
from ranktilt.llm.responses import (
    FailedRequest,
    classify_error,
    error_text,
    json_body,
    read_answer,
    read_vectors,
    same_model,
)
from ranktilt.llm.server import Address, Server

KEY = "sk-secret-1234567890"


def verdict(status: int, body: object, **changed: object) -> FailedRequest | UserError:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    given = {"key": KEY, "sent": ["temperature", "top_p", "seed", "max_tokens", "logprobs"], **changed}
    server = Server(model="tiny", address=Address("http://h/v1", False), **given)  # type: ignore[arg-type]
    return classify_error(status, content, server)


def kind(status: int, body: object, **changed: object) -> str | None:
    """Of the failure of one request; None where everything ends."""
    found = verdict(status, body, **changed)
    return found.kind if isinstance(found, FailedRequest) else None


def error(message: str, **fields: object) -> dict[str, object]:
    return {"error": {"message": message, **fields}}


# Everything ends


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (
            401,
            error("Incorrect API key provided.", code="invalid_api_key"),
            "http://h/v1 does not accept the key in the environment variable OPENAI_API_KEY "
            "(401): Incorrect API key provided",
        ),
        (
            403,
            error("No access."),
            "http://h/v1 does not let the key in OPENAI_API_KEY use model 'tiny' (403): No access",
        ),
        (
            429,
            error("You exceeded your current quota.", code="insufficient_quota"),
            "the quota of the key in OPENAI_API_KEY is used up at http://h/v1 (429): You exceeded your current quota; "
            "raise it and run this again",
        ),
        (
            402,
            error("Insufficient Balance"),
            "the quota of the key in OPENAI_API_KEY is used up at http://h/v1 (402): Insufficient Balance; "
            "raise it and run this again",
        ),
        (
            404,
            error("The model `tiny` does not exist.", code="model_not_found"),
            "http://h/v1 has no model 'tiny' (404): The model `tiny` does not exist; name one that it serves",
        ),
        (
            404,
            {"detail": "Not Found"},
            "there is no such service at http://h/v1 (404): Not Found; a base URL usually ends in /v1",
        ),
    ],
)
def test_what_no_other_attempt_can_mend_ends_everything(status: int, body: object, message: str) -> None:
    found = verdict(status, body)
    assert isinstance(found, UserError)
    assert str(found) == message


def test_a_server_that_wants_a_key_names_the_variable() -> None:
    assert str(verdict(401, error("no key"), key=None)) == (
        "http://h/v1 asks for a key (401): no key; set the environment variable OPENAI_API_KEY"
    )


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, error("Model Not Exist")),
        (400, {"detail": "Server is pinned to 'a'; requested 'tiny'."}),
        (404, error('model "tiny" not found, try pulling it first', type="api_error")),
        (500, {"detail": "tiny is not a local folder and is not a valid model identifier listed on the hub"}),
        (500, error("unknown model tiny")),
    ],
)
def test_an_unknown_model_in_the_words_of_other_servers(status: int, body: object) -> None:
    assert str(verdict(status, body)).startswith(f"http://h/v1 has no model 'tiny' ({status})")


def test_once_it_answered_a_500_about_models_is_an_error_that_may_pass() -> None:
    assert kind(500, error("model tiny not found"), answered=True) == "unavailable"


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("temperature", error("Unsupported value.", param="temperature", code="unsupported_value")),
        ("top_p", error("Unsupported parameter: 'top_p' is not supported with this model.")),
        ("seed", {"detail": "Unexpected fields in the request: {'seed'}"}),
        ("logprobs", error("logprobs is not allowed for this model")),
        ("max_tokens", error("max_tokens must be less than 100")),
        ("temperature", {"detail": [{"loc": ["body", "temperature"], "msg": "Input should be at most 1"}]}),
    ],
)
@pytest.mark.parametrize("status", [400, 422])
def test_a_parameter_that_is_not_taken_is_named(status: int, name: str, body: object) -> None:
    found = verdict(status, body)
    assert isinstance(found, UserError)
    assert f"http://h/v1 does not take the parameter {name} with model 'tiny' ({status})" in str(found)
    assert str(found).endswith("; leave it out or give it a value that the model takes")


@pytest.mark.parametrize("changed", [{"sent": ["temperature"]}, {"answered": True}])
def test_a_parameter_that_was_not_sent_or_was_taken_before_is_not_blamed(changed: dict[str, object]) -> None:
    assert kind(400, error("Unsupported seed"), **changed) == "refused"


def test_a_redirect_is_not_followed() -> None:
    assert str(verdict(308, b"")) == (
        "http://h/v1 redirects elsewhere (308), where no text is sent; is the base URL right?"
    )


# Another attempt may help


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
def test_passing_errors_are_asked_again(status: int) -> None:
    found = verdict(status, error("busy"))
    assert isinstance(found, FailedRequest)
    assert (found.kind, found.message) == ("unavailable", f"error of the server ({status}): busy")


def test_too_many_requests_without_a_word_on_quota_pass() -> None:
    assert kind(429, error("You exceeded your current quota.", code=429)) == "unavailable"


# One prompt alone

TOO_LONG = [
    (400, error("This model's maximum context length is 8192 tokens.", code="context_length_exceeded")),
    (400, {"object": "error", "message": "This model's maximum context length is 6048 tokens. However, you requested "
           "6616 tokens (568 in the messages, 6048 in the completion).", "type": "BadRequestError", "code": 400}),
    (400, error("'max_tokens' or 'max_completion_tokens' is too large: 600. This model's maximum context length is "
                "512 tokens and your request has 100 input tokens.")),
    (400, error("request (4390 tokens) exceeds the available context size (4096 tokens), try increasing it",
                type="exceed_context_size_error", n_ctx=4096)),
    (500, error("Context size has been exceeded.", code=500, type="server_error")),
    (400, {"message": "max_tokens must be at least 1, got -186.", "type": "BadRequestError", "code": 400}),
    (413, {"error": "Payload Too Large"}),
    (400, error("prompt is too long: 210000 tokens > 200000 maximum")),
]  # fmt: skip


@pytest.mark.parametrize(("status", "body"), TOO_LONG)
def test_longer_than_the_context_in_the_words_of_many_servers(status: int, body: object) -> None:
    assert kind(status, body) == "too long"


def test_a_text_about_context_is_not_too_long_by_itself() -> None:
    found = verdict(400, error("Invalid role in messages: expected context"))
    assert isinstance(found, FailedRequest)
    said = "not taken by the server (400): Invalid role in messages: expected context"
    assert (found.kind, found.message) == ("refused", said)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, error("Filtered.", code="content_filter")),
        (400, error("The response was filtered due to the prompt triggering our content management policy.")),
        (400, error("Bad.", innererror={"code": "ResponsibleAIPolicyViolation"})),
        (400, error("Input may be inappropriate.", code="data_inspection_failed")),
        (403, error("Flagged: content policy.", code="content_policy_violation")),
    ],
)
def test_a_content_filter_is_an_answer_of_its_own(status: int, body: object) -> None:
    assert kind(status, body) == "filtered"


# The words


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"error": {"message": "a\\n  b"}}', "a b"),
        (b'{"error": "plain"}', "plain"),
        (b'{"detail": "FastAPI"}', "FastAPI"),
        (b'{"detail": [{"loc": ["body", "x"], "msg": "bad"}, {"loc": [], "msg": "worse"}]}', "body.x: bad; : worse"),
        (b"<html><h1>502 Bad Gateway</h1><hr>nginx</html>", "502 Bad Gateway nginx"),
        (b"Internal Server Error", "Internal Server Error"),
        (b"", ""),
        (b'{"error": {"message": null, "code": 7}}', "{'message': None, 'code': 7}"),
    ],
)
def test_the_words_of_an_error_in_the_shapes_there_are(content: bytes, words: str) -> None:
    assert error_text(content)[0] == words


def test_long_words_are_shortened() -> None:
    words = error_text(json.dumps(error("x" * 5000)).encode())[0]
    assert words == "x" * 199 + "…"


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422, 429, 500])
def test_the_key_is_in_no_message(status: int) -> None:
    found = verdict(status, error(f"key {KEY} in Bearer {KEY}, x={KEY}y"))
    assert KEY not in str(found)
    assert "[key]" in str(found)


# Answers


def completion(**choice: object) -> dict[str, object]:
    return {
        "model": "tiny-2024-07-18",
        "system_fingerprint": "fp",
        "choices": [{"message": {"content": "Hi."}, "finish_reason": "stop", **choice}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
    }


def rows(*given: tuple[int, list[float]]) -> dict[str, object]:
    return {"data": [{"index": index, "embedding": values} for index, values in given]}


def test_a_whole_answer() -> None:
    tokens = {"content": [{"token": "Hi", "logprob": -0.5}, {"token": ".", "logprob": -1}]}
    read = read_answer(completion(logprobs=tokens), "tiny")
    assert read == Answer("Hi.", "stop", 3, 2, "tiny-2024-07-18", "fp", (-0.5, -1.0))


def test_a_bare_answer() -> None:
    read = read_answer({"choices": [{"message": {"content": ""}}]}, "tiny")
    assert read == Answer("", "stop", None, None, "tiny", None, None)


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"content": None}, ""),
        ({"content": None, "refusal": "I cannot help with that."}, "I cannot help with that."),
        ({"content": [{"type": "text", "text": "a "}, {"type": "text", "text": "b"}]}, "a b"),
    ],
)
def test_where_the_text_may_stand(message: dict[str, object], text: str) -> None:
    assert read_answer(completion(message=message), "tiny").text == text


@pytest.mark.parametrize("finish", ["length", "content_filter", "tool_calls"])
def test_the_finish_is_the_server_s_word(finish: str) -> None:
    assert read_answer(completion(finish_reason=finish), "tiny").finish == finish


@pytest.mark.parametrize("given", [None, {}, {"content": None}, {"content": [{"token": "a"}]}, {"content": [3]}])
def test_logprobs_that_are_not_offered(given: object) -> None:
    assert read_answer(completion(logprobs=given), "tiny").logprobs is None


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({}, "no choice in the answer"),
        ({"choices": []}, "no choice in the answer"),
        ({"choices": {}}, "no choice in the answer"),
        ({"choices": ["x"]}, "no message in the answer"),
        ({"choices": [{"text": "old style"}]}, "no message in the answer"),
        ({"choices": [{"message": {"content": 3}}]}, "expected text as the message's content, got int"),
    ],
)
def test_what_is_no_answer_is_asked_again(data: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        read_answer(data, "tiny")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "an empty body"),
        (b'{"a": ', "malformed JSON: '{\"a\":'"),
        (b"<html>\n<p>login", "malformed JSON: '<html> <p>login'"),
        (b"[]", "expected a JSON object, got list"),
        (b"[" * 100_000, f"malformed JSON: '{'[' * 60}'"),
    ],
)
def test_what_is_no_json_object_is_asked_again(content: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        json_body(content)


@pytest.mark.parametrize(
    ("content", "value"),
    [(b'{"a": -Infinity}', -np.inf), (b'{"a": "half \\ud83d"}', "half \ud83d"), (b'\xef\xbb\xbf{"a": 1}', 1)],
)
def test_what_python_s_servers_write_beside_the_standard_is_read(content: bytes, value: object) -> None:
    assert json_body(content) == {"a": value}


def test_the_first_choice_is_told_by_its_index() -> None:
    second = {"index": 1, "message": {"content": "second"}}
    first = {"index": 0, "message": {"content": "first"}}
    assert read_answer({"choices": [second, first]}, "tiny").text == "first"


def test_a_fingerprint_is_text() -> None:
    assert read_answer({**completion(), "system_fingerprint": 5}, "tiny").revision == "5"


def test_what_must_not_be_kept_is_taken_out_of_every_field() -> None:
    data = {
        **completion(message={"content": "a key"}, finish_reason="key"),
        "model": "key",
        "system_fingerprint": "key",
    }
    read = read_answer(data, "tiny", lambda text: text.replace("key", "[key]"))
    assert (read.text, read.finish, read.model, read.revision) == ("a [key]", "[key]", "[key]", "[key]")


@pytest.mark.parametrize("count", [-1, "3", 2.5, True, None])
def test_odd_counts_of_tokens_are_none(count: object) -> None:
    data = {**completion(), "usage": {"prompt_tokens": count}}
    assert read_answer(data, "tiny").prompt_tokens is None


def test_vectors_come_in_the_order_of_their_index() -> None:
    made = read_vectors(rows((1, [3.0, 4.0]), (0, [1.0, 2.0])), 2)
    assert made.dtype == np.float32
    assert made.tolist() == [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({}, "expected 2 vectors, got none"),
        (rows((0, [1.0])), "expected 2 vectors, got 1"),
        (rows((0, [1.0]), (0, [1.0])), "expected the indices 0 to 1, each once"),
        (rows((0, [1.0]), (2, [1.0])), "expected the indices 0 to 1, each once"),
        (rows((0, [1.0]), (1, [1.0, 2.0])), "vectors without an index, not of numbers, or not of one dimension"),
        (rows((0, [1.0]), (None, [1.0])), "vectors without an index, not of numbers, or not of one dimension"),  # type: ignore[arg-type]
        (rows((0, [1.0]), (1, [1e300])), "vectors with values that are no finite numbers"),
        (rows((0, []), (1, [])), "vectors with values that are no finite numbers"),
    ],
)
def test_vectors_that_are_not_one_a_text_are_asked_again(data: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        read_vectors(data, 2)


@pytest.mark.parametrize(
    ("asked", "returned"),
    [
        ("gpt-4o-mini", "gpt-4o-mini"),
        ("gpt-4o-mini", "gpt-4o-mini-2024-07-18"),
        ("gpt-4", "gpt-4-0613"),
        ("mistral-large", "mistral-large-latest"),
        ("llama3", "llama3:latest"),
        ("openai/gpt-4o-mini", "gpt-4o-mini-2024-07-18"),
        ("/models/stories", "/models/stories@main"),
        ("Tiny", "tiny"),
    ],
)
def test_a_dated_version_is_the_same_model(asked: str, returned: str) -> None:
    assert same_model(asked, returned)


@pytest.mark.parametrize(
    ("asked", "returned"),
    [
        ("gpt-4o-mini", "gpt-4o"),
        ("gpt-4o", "gpt-4o-mini"),
        ("gpt-4o", "gpt-4o-mini-2024-07-18"),
        ("llama3", "llama3:70b"),
        ("tiny", "another-model"),
    ],
)
def test_another_model_is_not(asked: str, returned: str) -> None:
    assert not same_model(asked, returned)
