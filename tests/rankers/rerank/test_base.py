"""What every re-ranker does with a run: its candidates, all of them, in another order."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl
import pytest

from ranktilt import DataError, UserError
from ranktilt.models.scorer import PairScorer, TextPairs, TokenLimits
from ranktilt.models.token_counts import NO_LIMIT, Tokens
from ranktilt.rankers.replay import Replay
from ranktilt.rankers.rerank.base import ReRanker
from ranktilt.rankers.rerank.cross_encoder import Head, read_head
from tests.rankers.contract import scores
from tests.rankers.tiny_rerankers import word_tokenizer
from tests.refusals import refused
from tests.toy import QUERIES, collection_of, run_of, toy, write_run

SCORED: list[list[tuple[str, str]]] = []


@dataclass(frozen=True)
class Counter(PairScorer):
    """Counts the words that query and document share: no model at all."""

    def logits(self, pairs: TextPairs, label: str) -> Any:
        texts = [
            (pairs.queries[q], pairs.documents[d])
            for q, d in zip(pairs.query, pairs.document, strict=True)
        ]
        SCORED.append(texts)
        return np.array(
            [[len(set(q.split()) & set(d.lower().split()))] for q, d in texts], dtype=np.float32
        )

    def relevance(self, logits: Any) -> Any:
        return logits[:, 0].astype(np.float64) if len(logits) else np.empty(0)

    def special_token_count(self) -> int:
        return Tokens(folder=self.folder).special_tokens_of_pair

    @property
    def module(self) -> Any:
        raise NotImplementedError

    def read(self, queries: list[str], documents: list[str]) -> Any:
        raise NotImplementedError


@dataclass(frozen=True)
class Shared(ReRanker):
    name: ClassVar[str] = "shared"
    pair: int = NO_LIMIT

    def scorer_of(
        self, folder: Path, query: int | None, document: int | None, precision: str
    ) -> PairScorer:
        return Counter(
            folder=folder,
            ranker=self.name,
            limits=TokenLimits(query=query, document=document, pair=self.pair),
            precision=precision,
            device=self.device,
        )


@pytest.fixture
def shared(tmp_path: Path) -> Shared:
    return Shared(str(tmp_path))


def test_every_candidate_comes_back_once_with_its_score_and_the_run_says_how_it_was_made(
    shared: Shared, tmp_path: Path
) -> None:
    grades = {"q3": {"d1-llm": 1}, "q1": {"d1-llm": 1}, "gone": {"x": 1}}
    collection = collection_of(toy().docs.to_dicts(), {**QUERIES, "other": "red"}, grades)
    rows = {
        "q3": {"d3-llm": 5},
        "other": {"d1-llm": 1},
        "gone": {"d1-llm": 1},
        "never": {"d1-llm": 1},
    }
    candidates = run_of(collection, {**rows, "q1": {"d1-human": 1, "d2-llm": 3, "d3-human": 2}})
    run = shared.rank(collection, candidates)
    assert scores(run) == {
        "q3": {"d3-llm": 2.0},
        "q1": {"d1-human": 2.0, "d2-llm": 0.0, "d3-human": 0.0},
    }
    assert run.queries == ("q3", "q1"), "the run's order; those without judgment or text go"
    assert run.ids is collection.ids
    collection = toy()
    first = run_of(
        collection, {"q1": {"d1-llm": 1.0}}, ranker="mine", own_documents_dropped=2, seed=3
    )
    (tmp_path / "config.json").write_text("{}")
    spec = replace(shared, precision="bfloat16", k=5).rank(collection, first).spec
    assert spec["ranker"] == f"shared:{tmp_path}(precision=bfloat16)@5"
    assert spec["model"]["folder"] == str(tmp_path)
    assert spec["candidates"] == {"ranker": "mine", "own_documents_dropped": 2, "seed": 3}
    assert (spec["own_documents_dropped"], spec["precision"]) == (2, "bfloat16")
    (tmp_path / "config.json").write_text("{ }")
    assert (
        shared.rank(collection, first).spec["model"]["fingerprint"] != spec["model"]["fingerprint"]
    )


def test_each_pair_of_texts_is_scored_once_and_candidates_need_a_text(
    shared: Shared, tmp_path: Path
) -> None:
    docs = [{"id": f"d{n}", "text": text} for n, text in enumerate(["red", "red", "old", "red"])]
    judged = collection_of(
        docs, {"a": "red", "b": "old", "c": "cold"}, {query: {"d0": 1} for query in "abc"}
    )
    collection = replace(
        judged, queries=judged.queries.with_columns(text=pl.Series(["red", "old", "red"]))
    )
    SCORED.clear()
    shared.rank(
        collection,
        run_of(collection, {query: dict.fromkeys(collection.ids, 0.0) for query in "abc"}),
    )
    assert [sorted(pairs) for pairs in SCORED] == [
        [("old", "old"), ("old", "red"), ("red", "old"), ("red", "red")]
    ]
    collection = toy()
    file = write_run(
        tmp_path / "run.trec", {"q1": {"d1-llm": 3, "far": 2, "off": 1}, "q2": {"d1-llm": 1}}
    )
    with refused(
        f"{file}: 2 candidates of 4 not in the collection, so there is no text to re-rank (first: "
        "document 'far' of "
        "query 'q1')",
        DataError,
    ):
        shared.rank(collection, Replay(str(file)).rank(collection))
    with refused("other: no overlap: none of its 2 queries has a judgment (first: 'x')", DataError):
        shared.rank(
            collection, run_of(collection, {"x": {"d1-human": 1.0}, "y": {}}, ranker="other")
        )


@pytest.mark.parametrize(
    ("documents", "queries", "text", "message"),
    [
        ("", "red apples", "title+text", "reads texts; no document here has a text"),
        ("red apples", "", "title+text", "reads texts; no query here has one"),
        ("red apples", "red apples", "title", "reads texts; no document here has a title"),
    ],
)
def test_no_labels_stand_for_texts(
    shared: Shared, documents: str, queries: str, text: str, message: str
) -> None:
    collection = collection_of([{"id": "d", "text": documents}], {"q": queries}, {"q": {"d": 1}})
    chosen = replace(shared, text=text)
    with refused(f"{chosen!r} {message}"):
        chosen.rank(collection, run_of(collection, {"q": {"d": 1.0}}))


@pytest.mark.parametrize(
    ("options", "limits", "read", "limit", "cut"),
    [
        (
            {"pair": 9},
            (None, None),
            9,
            9,
            (0.5, 1.0),
        ),  # room for 6: q1 leaves 4 of 5 and 4 words, q2 leaves 3
        ({"max_document_tokens": 4}, (None, 4), 6, 4, (0.0, 1.0)),
        ({"max_document_tokens": 4, "pair": 8}, (None, 4), 6, 4, (1.0, 1.0)),
        ({"limits": "paper"}, (30, 200), 202, 200, (0.0, 0.0)),
        ({"limits": "paper", "max_document_tokens": 4}, (30, 4), 6, 4, (0.0, 1.0)),
        ({"limits": "paper", "max_query_tokens": 64}, (64, 200), 202, 200, (0.0, 0.0)),
        ({"max_query_tokens": 1, "pair": 9}, (1, None), 9, 9, (0.0, 0.0)),
    ],
)
def test_candidates_that_are_cut_are_counted_by_source_and_numbers_come_before_a_named_limit(
    shared: Shared,
    tmp_path: Path,
    options: dict[str, Any],
    limits: Any,
    *,
    read: int,
    limit: int,
    cut: Any,
) -> None:
    texts = {
        "h": ("one two three four", "human"),
        "l": ("one two three four five", "llm"),
        "x": ("word " * 900, "llm"),
    }
    docs = [{"id": name, "text": text, "source": source} for name, (text, source) in texts.items()]
    collection = collection_of(
        docs, {"q1": "two words", "q2": "three words here"}, {"q1": {"h": 1}, "q2": {"h": 1}}
    )
    candidates = run_of(collection, {q: {"h": 1.0, "l": 0.5} for q in ("q1", "q2")})
    ranker = replace(shared, **options)
    assert (ranker.scorer().limits.query, ranker.scorer().limits.document) == limits
    assert ranker.tokens() is None
    assert "truncated" not in ranker.rank(collection, candidates).spec, "without a tokenizer"
    word_tokenizer().save(str(tmp_path / "tokenizer.json"))
    tokens = ranker.tokens()
    assert tokens is not None
    assert tokens.limit == read
    share = dict(zip(("human", "llm"), cut, strict=True))
    assert ranker.rank(collection, candidates).spec["truncated"] == {"limit": limit, "share": share}
    assert "truncated" not in shared.rank(collection, candidates).spec


def test_labels_say_what_is_relevant(tmp_path: Path) -> None:
    for config, expected in (
        ({"id2label": {"0": "LABEL_0"}}, Head(labels=1)),
        ({"num_labels": 1}, Head(labels=1)),
        ({}, Head(labels=2, relevant=1)),
        ({"id2label": {"0": "LABEL_0", "1": "LABEL_1"}}, Head(labels=2, relevant=1)),
        ({"id2label": {"0": "not_relevant", "1": "relevant"}}, Head(labels=2, relevant=1)),
        ({"id2label": {"0": "Relevant", "1": "Irrelevant"}}, Head(labels=2, relevant=0)),
        ({"id2label": {"0": "yes", "1": "no"}}, Head(labels=2, relevant=0)),
    ):
        assert read_head(tmp_path, config, "cross-encoder") == expected


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            {"id2label": {"0": "a", "1": "b", "2": "c"}},
            "expected 1 or 2, relevant or not, got 3 .a, b, c.",
        ),
        ({"num_labels": 4}, "expected 1 or 2, relevant or not, got 4"),
        (
            {"id2label": {"0": "cat", "1": "dog"}},
            "cannot tell which of 'cat' and 'dog' means relevant",
        ),
        (
            {"num_labels": 1, "sbert_ce_default_activation_function": "mine.Squash"},
            "'mine.Squash' is not supported",
        ),
        ({"architectures": ["BertModel"]}, "a BertModel has no classification head, so"),
    ],
)
def test_labels_that_say_nothing_of_relevance_are_refused(
    tmp_path: Path, config: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        read_head(tmp_path, config, "cross-encoder")
