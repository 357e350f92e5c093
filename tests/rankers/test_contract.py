"""Every ranker keeps the contract."""

import json
from pathlib import Path
from typing import Any

import pytest

from ranktilt import Collection, Ranker, ranker
from ranktilt.rankers.lexical.bm25 import BM25, TFIDF
from ranktilt.rankers.replay import Replay
from ranktilt.registry import RANKERS
from tests.rankers.contract import Make, RankerContract
from tests.rankers.tiny_rerankers import tiny_classifier, tiny_t5
from tests.toy import write


@pytest.fixture(scope="session")
def rerankers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders of tiny re-rankers: with one label, with two, and a T5."""
    one, two, t5 = (tmp_path_factory.mktemp(name) for name in ("one", "two", "t5"))
    return {"one": tiny_classifier(one), "two": tiny_classifier(two, labels=2), "t5": tiny_t5(t5)}


METHODS = ("lucene", "robertson", "atire", "bm25l", "bm25+")


class TestBM25(RankerContract):
    @pytest.fixture(params=METHODS)
    def make(self, request: pytest.FixtureRequest) -> Make:
        return lambda collection, **options: BM25(method=request.param, **options)


class TestAnalyzers(RankerContract):
    @pytest.fixture(params=["english", "paper", "whitespace", "german", "russian"])
    def make(self, request: pytest.FixtureRequest) -> Make:
        if request.param == "paper":
            pytest.importorskip("nltk")
        return lambda collection, **options: BM25(analyzer=request.param, **options)


class TestTFIDF(RankerContract):
    @pytest.fixture(params=["english", "whitespace"])
    def make(self, request: pytest.FixtureRequest) -> Make:
        return lambda collection, **options: TFIDF(analyzer=request.param, **options)


class TestReplay(RankerContract):
    @pytest.fixture
    def make(self, tmp_path: Path) -> Make:
        def make(collection: Collection, **options: Any) -> Ranker:
            file = write(tmp_path / "shared words.json", json.dumps(overlaps(collection)))
            return Replay(str(file), **options)

        return make


@pytest.mark.neural
class TestDense(RankerContract):
    @pytest.fixture(params=["", "(similarity=dot)", "(precision=bfloat16)", "(max_tokens=5)", "(text=text)"])
    def make(self, request: pytest.FixtureRequest, tiny: Path) -> Make:
        def make(collection: Collection, **options: Any) -> Ranker:
            depth = f"@{options.pop('k')}" if "k" in options else ""
            assert not options
            return ranker(f"dense:{tiny}{request.param}{depth}")

        return make


class TestPipeline(RankerContract):
    """Lexical ranking, and then a saved run's words: no model is needed for a pipeline."""

    @pytest.fixture(params=["bm25@4>>counting", "tfidf@3>>counting(tail=keep)", "bm25>>counting>>counting(tail=keep)"])
    def make(self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Make:
        monkeypatch.setitem(RANKERS, "counting", "tests.rankers.counting:Counting")

        def make(collection: Collection, **options: Any) -> Ranker:
            depth = f"@{options.pop('k')}" if "k" in options else ""
            assert not options
            return ranker(f"{request.param}{depth}")

        return make


@pytest.mark.neural
class TestDenseReRanks(RankerContract):
    @pytest.fixture(params=["bm25@4>>dense:{tiny}", "tfidf@2>>dense:{tiny}(similarity=dot,tail=keep)"])
    def make(self, request: pytest.FixtureRequest, tiny: Path) -> Make:
        def make(collection: Collection, **options: Any) -> Ranker:
            depth = f"@{options.pop('k')}" if "k" in options else ""
            assert not options
            return ranker(f"{request.param.format(tiny=tiny)}{depth}")

        return make


@pytest.mark.neural
class TestReRankers(RankerContract):
    @pytest.fixture(
        params=[
            "dense:{tiny}@4>>cross-encoder:{one}",
            "dense:{tiny}@3>>cross-encoder:{two}(limits=paper,precision=bfloat16)",
            "tfidf@4>>cross-encoder:{one}(max_document_tokens=3,tail=keep)",
            "dense:{tiny}@4>>monobert:{two}",
            "dense:{tiny}@4>>monot5:{t5}",
        ]
    )
    def make(self, request: pytest.FixtureRequest, tiny: Path, rerankers: dict[str, Path]) -> Make:
        def make(collection: Collection, **options: Any) -> Ranker:
            depth = f"@{options.pop('k')}" if "k" in options else ""
            assert not options
            return ranker(f"{request.param.format(tiny=tiny, **rerankers)}{depth}")

        return make


def overlaps(collection: Collection) -> dict[str, dict[str, float]]:
    """Score documents by the words they share with a query; those that share none are left out."""
    scores: dict[str, dict[str, float]] = {}
    for query, text in collection.judged.select("id", "text").iter_rows():
        words, found = set(text.split()), scores.setdefault(query, {})
        for doc, title, body in collection.docs.select("id", "title", "text").iter_rows():
            shared = len(words & set(f"{title} {body}".lower().split()))
            if shared:
                found[doc] = float(shared)
    return scores
