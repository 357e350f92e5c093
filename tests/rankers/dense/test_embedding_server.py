"""Vectors of a server as `dense:openai:MODEL`, against a real server on loopback."""

from pathlib import Path

import numpy as np
import pytest

from ranktilt import Collection, UserError, audit
from ranktilt.io.cache import cache_folder
from ranktilt.rankers.dense.embedding_server import EmbeddingServer
from ranktilt.rankers.dense.retriever import Dense
from tests.llm.server import Raw, Server, vector
from tests.toy import collection_of, toy

KEY = "sk-secret-0123456789"


@pytest.fixture(autouse=True)
def own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A cache of this test alone, and no key."""
    monkeypatch.setenv("RANKTILT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    return tmp_path / "cache"


def dense(server: Server, **options: object) -> Dense:
    return Dense("openai:tiny", base_url=server.url, **options)  # type: ignore[arg-type]


def asked(server: Server) -> list[str]:
    return [text for body in server.bodies for text in body["input"]]


def many(n: int) -> Collection:
    docs = [{"id": f"{i}-{source}", "text": f"text {i} {source}", "source": source, "origin": f"{i}"}
            for i in range(n) for source in ("human", "llm")]  # fmt: skip
    queries = {f"q{i}": f"question {i}" for i in range(5)}
    return collection_of(docs, queries, {q: {"0-human": 1, "0-llm": 1} for q in queries})


def test_documents_are_ranked_by_the_servers_vectors() -> None:
    found = many(3)
    with Server() as server:
        run = dense(server).rank(found)
    texts, queries = found.texts().to_list(), found.judged["text"].to_list()
    products = np.array([vector(q) for q in queries]) @ np.array([vector(t) for t in texts]).T
    for number in range(len(queries)):
        some = slice(run.offsets[number], run.offsets[number + 1])
        assert run.docs[some].tolist() == np.argsort(-products[number]).tolist()
        assert run.scores[some] == pytest.approx(np.sort(products[number])[::-1], abs=1e-6)


def test_the_second_ranking_asks_nothing() -> None:
    with Server() as server:
        first = dense(server).rank(many(4))
        before = len(server.requests)
        assert dense(server).rank(many(4)) == first
        assert len(server.requests) == before


def test_each_distinct_text_is_asked_for_once() -> None:
    texts = ["same", "same", "other"]
    docs = [{"id": str(i), "text": text} for i, text in enumerate(texts)]
    with Server() as server:
        dense(server).rank(collection_of(docs, {"q": "same"}, {"q": {"0": 1}}))
        assert sorted(asked(server)) == ["other", "same", "same"]  # once as a document, once as a query


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


def test_texts_without_words_are_asked_for_as_a_blank() -> None:
    docs = [{"id": "a", "text": ""}, {"id": "b", "text": "words"}]
    with Server() as server:
        dense(server).rank(collection_of(docs, {"q": "words"}, {"q": {"b": 1}}))
        assert " " in asked(server)
        assert "" not in asked(server)


def test_prefixes_are_put_before_texts_and_make_another_entry() -> None:
    with Server() as server:
        plain = dense(server).encoder
        prefixed = dense(server, query_prefix="query: ", document_prefix="passage: ")
        assert prefixed.encoder.fingerprint != plain.fingerprint
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


def test_a_key_that_is_missing_is_said_before_anything_is_ranked() -> None:
    with pytest.raises(UserError, match="OPENAI_API_KEY"):
        Dense("openai:text-embedding-ada-002").check()


@pytest.mark.parametrize("option", [{"precision": "bfloat16"}, {"pooling": "cls"}])
def test_options_of_local_models_are_refused(option: dict[str, object]) -> None:
    with pytest.raises(UserError, match=f"dense:openai:tiny: {next(iter(option))} is for a model on this machine"):
        _ = Dense("openai:tiny", **option).encoder  # type: ignore[arg-type]


@pytest.mark.parametrize("option", [{"base_url": "http://127.0.0.1/v1"}, {"requests_per_minute": 5}])
def test_options_of_servers_are_refused_for_local_models(option: dict[str, object]) -> None:
    with pytest.raises(UserError, match=f"dense: {next(iter(option))} is for a server's model"):
        Dense("minilm", **option)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("four and four", "four and four"),  # 13 bytes of 20
        ("twenty bytes exactly", "twenty bytes exactly"),
        ("twenty bytes exactly, and more", "twenty bytes exactly"),  # the last blank is not in the last tenth
        ("nineteen bytes here and more", "nineteen bytes here"),
        ("x" * 30, "x" * 20),
        ("ü" * 30, "ü" * 10),
        ("xü" * 30, "xüxüxüxüxüxüx"),  # never half a letter
    ],
)
def test_long_texts_are_cut_at_four_bytes_a_token(text: str, expected: str) -> None:
    made = Dense("openai:tiny", base_url="http://127.0.0.1:9/v1", max_tokens=5).encoder
    assert isinstance(made, EmbeddingServer)
    assert made.cut(text) == expected


def test_a_text_that_is_too_long_is_named_with_the_way_out() -> None:
    docs = [{"id": "a", "text": "short words"}, {"id": "b", "text": "word " * 400}]
    found = collection_of(docs, {"q": "words"}, {"q": {"a": 1}})
    with Server(context=100) as server:
        with pytest.raises(UserError, match=r"400 words.*max_tokens"):
            dense(server).rank(found)
        run = dense(server, max_tokens=50).rank(found)
        assert max(len(text.encode()) for text in asked(server)[-2:]) <= 200
    assert run.spec["truncated"] == {"limit": 50, "share": {"human": 0.5}}


def test_an_audit_with_a_servers_vectors_is_level_for_copies() -> None:
    docs = [{"id": f"{i}-{s}", "text": f"text number {i}", "source": s, "origin": str(i)}
            for i in range(6) for s in ("human", "llm")]  # fmt: skip
    queries = {f"q{i}": f"question {i}" for i in range(6)}
    relevant = {q: {f"{i}-human": 1, f"{i}-llm": 1} for i, q in enumerate(queries)}
    found = collection_of(docs, queries, relevant)
    with Server() as server:
        result = audit(found, dense(server).rank(found), ["nDCG@3"], resamples=100)
    assert result.tilts[0].value == 0


def test_vectors_are_kept_in_the_cache_under_the_models_name(own: Path) -> None:
    assert cache_folder() == own
    with Server() as server:
        dense(server).rank(toy())
    abouts = [p.read_text() for p in own.rglob("about.json")]
    assert any('"openai:tiny"' in text for text in abouts)


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


def test_a_cache_that_cannot_be_written_is_said_before_anything_is_asked(own: Path) -> None:
    own.write_text("a file")
    with Server() as server, pytest.raises(UserError, match="cannot be written"):
        dense(server).rank(many(2))
    assert server.requests == []
