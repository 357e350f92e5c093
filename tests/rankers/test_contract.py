"""Every ranker keeps the contract."""

import json
from pathlib import Path
from typing import Any

import pytest

from ranktilt import Collection, Ranker, ranker
from ranktilt.rankers.replay import Replay
from ranktilt.registry import RANKERS
from tests.rankers.contract import Make, RankerContract
from tests.rankers.tiny_rerankers import tiny_classifier, tiny_t5
from tests.toy import write


@pytest.fixture(scope="session")
def rerankers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders of tiny re-rankers: with one label, with two, and a T5."""
    one_label, two_labels, t5 = (tmp_path_factory.mktemp(name) for name in ("one", "two", "t5"))
    return {
        "one": tiny_classifier(one_label),
        "two": tiny_classifier(two_labels, labels=2),
        "t5": tiny_t5(t5),
    }


def typed(spec: str) -> Make:
    """Make the ranker of a text, cut at the depth that a test asks for."""

    def make(collection: Collection, **options: Any) -> Ranker:
        depth = f"@{options.pop('k')}" if "k" in options else ""
        assert not options
        return ranker(f"{spec}{depth}")

    return make


class TestLexical(RankerContract):
    """Each method of BM25 with another analyzer, and pipelines, the second stage of which needs no
    model.
    """

    @pytest.fixture(
        params=[
            "bm25",
            "bm25(method=robertson,analyzer=paper)",
            "bm25(method=atire,analyzer=whitespace)",
            "bm25(method=bm25l,analyzer=german)",
            "bm25(method=bm25+,analyzer=russian)",
            "tfidf",
            "tfidf:dai",
            "tfidf(analyzer=whitespace)@3>>counting",
            "bm25>>counting>>counting",
        ]
    )
    def make(self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Make:
        if "paper" in request.param or "dai" in request.param:
            pytest.importorskip("nltk")
        monkeypatch.setitem(RANKERS, "counting", "tests.rankers.contract:Counting")
        return typed(request.param)


class TestReplay(RankerContract):
    @pytest.fixture
    def make(self, tmp_path: Path) -> Make:
        def make(collection: Collection, **options: Any) -> Ranker:
            scores: dict[str, dict[str, float]] = {}
            for query, text in collection.queries_with_judgments.select("id", "text").iter_rows():
                words = set(text.split())
                shared = [
                    len(words & set(document_text.lower().split()))
                    for document_text in collection.texts()
                ]
                scores[query] = {
                    doc: float(n) for doc, n in zip(collection.ids, shared, strict=True) if n
                }
            return Replay(str(write(tmp_path / "shared words.json", json.dumps(scores))), **options)

        return make


@pytest.mark.neural
class TestNeural(RankerContract):
    @pytest.fixture(
        params=[
            "dense:{tiny}(max_tokens=5,text=text)",
            "dense:{tiny}(similarity=dot,precision=bfloat16)",
            "tfidf@2>>dense:{tiny}(similarity=dot)",
            "dense:{tiny}@3>>cross-encoder:{two}(limits=paper,precision=bfloat16)",
            "tfidf@4>>cross-encoder:{one}(max_document_tokens=3)",
            "dense:{tiny}@4>>monobert:{two}",
            "dense:{tiny}@4>>monot5:{t5}",
        ]
    )
    def make(self, request: pytest.FixtureRequest, tiny: Path, rerankers: dict[str, Path]) -> Make:
        return typed(request.param.format(tiny=tiny, **rerankers))
