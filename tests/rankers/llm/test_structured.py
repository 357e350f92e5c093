"""Answers held to a JSON schema by a server that can do that."""

from pathlib import Path
from typing import Any

import pytest

from ranktilt import Run, ranker
from ranktilt.errors import UserError
from tests.llm.server import Raw, Server
from tests.rankers.llm.judge import Judge
from tests.rankers.llm.test_rankers import best, ids, worths


def rank(server: Server, monkeypatch: pytest.MonkeyPatch, text: str, candidates: Any) -> Run:
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    return ranker(text).rank(*candidates)


@pytest.mark.parametrize("text", ["listwise:openai:tiny(window=6,step=3,{})", "setwise:openai:tiny({})"])
def test_a_server_that_can_holds_every_answer_to_the_schema(
    text: str, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    candidates = worths(9)
    with Server(answer=Judge()) as server:
        run = rank(server, monkeypatch, text.format("structured=json"), candidates)
        count = len(server.requests)
        plain = rank(server, monkeypatch, text.format("structured=none"), candidates)
        assert len(server.requests) > count, "an answer in words is another one"
    assert ids(run)[:3] == ids(plain)[:3] == best(candidates[0])[:3]
    answers = run.spec["llm_answers"]
    assert answers["kinds"] == {"ok": answers["requests"]}
    assert all(body["response_format"]["json_schema"]["strict"] for body in server.bodies[:count])
    assert all("JSON" in body["messages"][0]["content"] for body in server.bodies[:count])
    assert (run.spec["llm"]["structured"], "structured" in plain.spec["llm"]) == ("json", False)
    refusal = {"message": "response_format: extra fields not permitted", "type": "invalid_request_error"}
    with (
        Server(script=[Raw(400, {"error": refusal})] * 9) as server,
        pytest.raises(UserError, match="does not take the parameter response_format"),
    ):
        rank(server, monkeypatch, text.format("structured=json"), worths(3))


def test_what_cannot_be_held_to_a_schema_is_refused(stories: Path, own_cache: Path) -> None:
    with pytest.raises(UserError, match="cannot be held to a JSON schema; leave structured=json out"):
        ranker(f"listwise:transformers:{stories}(structured=json)").check()
    with pytest.raises(UserError, match="cannot be held to a JSON schema; leave structured=json out"):
        ranker(f"listwise:transformers:{stories}(structured=json)").rank(*worths(3))
    with pytest.raises(UserError, match="answers are words or none at all, never JSON"):
        ranker("pointwise:openai:m(structured=json)")
