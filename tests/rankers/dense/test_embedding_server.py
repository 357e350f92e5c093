"""Vectors of a server as `dense:openai:MODEL`, against a real server on loopback."""

from pathlib import Path

import numpy as np
import pytest

from ranktilt import Collection, UserError
from ranktilt.llm.prompts import cut_tokens
from ranktilt.rankers.dense.retriever import Dense
from tests.llm.server import Raw, Server, vector
from tests.toy import collection_of, toy

KEY = "sk-secret-0123456789"


@pytest.fixture(autouse=True)
def own(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of this test alone, and no key."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    return own_cache


def dense(server: Server, **options: object) -> Dense:
    return Dense("openai:tiny", base_url=server.url, **options)  # type: ignore[arg-type]


def asked(server: Server) -> list[str]:
    return [text for body in server.bodies for text in body["input"]]


def many(n: int) -> Collection:
    docs = [{"id": f"{i}-{source}", "text": f"text {i} {source}", "source": source, "origin": f"{i}"}
            for i in range(n) for source in ("human", "llm")]  # fmt: skip
    queries = {f"q{i}": f"question {i}" for i in range(5)}
    return collection_of(docs, queries, {q: {"0-human": 1, "0-llm": 1} for q in queries})


def test_documents_are_ranked_by_the_servers_vectors_each_distinct_text_being_asked_for_once() -> None:
    found = many(3)
    with Server() as server:
        run = dense(server).rank(found)
        count = len(server.requests)
        assert sorted(asked(server)) == sorted([*found.texts(), *found.judged["text"]])
        assert dense(server).rank(found) == run
        copies = collection_of([{"id": str(i), "text": "same"} for i in range(3)], {"q": "same"}, {"q": {"0": 1}})
        assert len(set(dense(server).rank(copies).scores)) == 1
        assert (len(server.requests), asked(server)[-2:]) == (count + 2, ["same", "same"]), "as document, as query"
    vectors = [np.array([vector(text) for text in texts]) for texts in (found.judged["text"], found.texts())]
    for number, products in enumerate(vectors[0] @ vectors[1].T):
        part = slice(run.offsets[number], run.offsets[number + 1])
        assert run.docs[part].tolist() == np.argsort(-products).tolist()
        assert run.scores[part] == pytest.approx(np.sort(products)[::-1], abs=1e-6)


def test_what_came_before_a_failure_is_kept() -> None:
    found = many(150)
    with Server(script=[None, "401"]) as server:
        with pytest.raises(UserError, match="OPENAI_API_KEY"):
            dense(server).rank(found)
        port = server.port
    with Server(port=port) as server:
        run = dense(server).rank(found)
        assert len(asked(server)) < 305
    with Server(port=port, script=["500"]) as server:
        assert dense(server).rank(found) == run
        assert server.requests == []


def test_prefixes_are_put_before_texts_and_make_another_entry() -> None:
    with Server() as server:
        prefixed = dense(server, query_prefix="query: ", document_prefix="passage: ")
        assert prefixed.encoder.fingerprint != dense(server).encoder.fingerprint
        prefixed.rank(many(1))
        assert {text.split(": ")[0] for text in asked(server)} == {"query", "passage"}


def test_the_run_says_who_was_asked_and_holds_no_key(monkeypatch: pytest.MonkeyPatch, own: Path) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with Server(key=KEY) as server:
        run = dense(server).rank(toy())
        assert run.spec["model"]["model"] == "tiny"
        assert run.spec["model"]["base_url"] == server.url
        assert "openai" in run.spec["packages"]
    assert KEY not in repr(run.spec)
    assert not [p for p in own.rglob("*") if p.is_file() and KEY.encode() in p.read_bytes()]


def test_long_texts_are_cut_at_four_bytes_a_token() -> None:
    assert cut_tokens("twenty bytes exactly", 5) == "twenty bytes exactly"
    assert cut_tokens("twenty bytes exactly, and more", 5) == "twenty bytes exactly", "no blank in the last tenth"
    assert cut_tokens("nineteen bytes here and more", 5) == "nineteen bytes here"
    assert cut_tokens("x" * 30, 5) == "x" * 20
    assert cut_tokens("xü" * 30, 5) == "xüxüxüxüxüxüx", "never half a letter"


def test_a_text_that_is_too_long_is_named_with_the_way_out() -> None:
    docs = [{"id": "a", "text": "short words"}, {"id": "b", "text": "word " * 400}]
    found = collection_of(docs, {"q": "words"}, {"q": {"a": 1}})
    with Server(context=100) as server:
        with pytest.raises(UserError, match=r"400 words.*max_tokens"):
            dense(server).rank(found)
        run = dense(server, max_tokens=50).rank(found)
        assert max(len(text.encode()) for text in asked(server)[-2:]) <= 200
    assert run.spec["truncated"] == {"limit": 50, "share": {"human": 0.5}}


def test_vectors_of_another_length_than_those_kept_are_refused_and_not_kept(own: Path) -> None:
    def rows(count: int, dimension: int) -> Raw:
        return Raw(200, {"data": [{"index": i, "embedding": [1.0] * dimension} for i in range(count)]})

    found, more = many(3), many(4)
    with Server(script=[rows(6, 4), rows(5, 4), rows(2, 8)]) as server:
        first = dense(server).rank(found)
        with pytest.raises(UserError, match=r"now gives vectors of 8 numbers, and .* holds those of 4"):
            dense(server).rank(more)
        assert dense(server).rank(found) == first
        assert len(server.requests) == 3
