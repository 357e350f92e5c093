"""Which documents are worth a rewrite: the judged ones, and what rankers find; and what a pooled collection is then."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import polars as pl
import pytest

from ranktilt.auditing.audit import audit
from ranktilt.collection import Collection
from ranktilt.datasets.check import check
from ranktilt.datasets.load import load
from ranktilt.datasets.save import save
from ranktilt.errors import UserError
from ranktilt.generation.pooling import Pool, Reason, pool, pooled
from ranktilt.rankers.base import Ranker
from ranktilt.registry import ranker
from ranktilt.run import Run
from tests.toy import collection_of, run_of

COUNT = 8


def made(grades: Mapping[str, Mapping[str, int]] | None = None, sources: tuple[str, ...] = ("human",)) -> Collection:
    """Documents d0 to d7 of each source; two queries, of which q0 judges d0 and d1, and q1 judges d1 not relevant."""
    docs = [
        {
            "id": f"d{n}" if source == "human" else f"d{n}-{source}", "source": source, "origin": f"d{n}",
            "text": " ".join(["word"] * (COUNT - n) + ["other"] * n) + f" by {source}",
        }
        for source in sources
        for n in range(COUNT)
    ]  # fmt: skip
    qrels = {"q0": {"d0": 1, "d1": 2}, "q1": {"d1": 0}} if grades is None else grades
    return collection_of(docs, {"q0": "word", "q1": "other", "q2": "by"}, qrels)


@dataclass(frozen=True)
class Listed(Ranker):
    """Gives each query the documents it is told, best first."""

    lists: str
    name: ClassVar[str] = "listed"
    argument: ClassVar[str | None] = "lists"
    asked: ClassVar[list[Collection]] = []

    def rank(self, collection: Collection, run: Run | None = None) -> Run:
        self.asked.append(collection)
        lists = dict(part.split("-") for part in self.lists.split("_"))
        scores = {
            query: {f"d{n}": float(-place) for place, n in enumerate(lists.get(query, ""))}
            for query in collection.judged["id"]
        }
        return run_of(collection, scores, ranker=repr(self))


@pytest.mark.parametrize(
    ("depth", "ids", "ranked", "alone"),
    [(1, ["d0", "d1", "d7"], 2, 1), (2, ["d0", "d1", "d6", "d7"], 4, 2), (9, ["d0", "d1", "d2", "d6", "d7"], 5, 3)],
)
def test_the_top_of_each_query_is_in_in_the_collections_order(
    depth: int, ids: list[str], ranked: int, alone: int
) -> None:
    found = pool(made(), [Listed("q0-012_q1-76")], depth=depth)
    assert found.ids.to_list() == ids
    assert found.reasons[1] == Reason("listed:q0-012_q1-76", ranked, alone)
    assert found.reasons[0].documents == 2


def test_unjudged_queries_choose_nothing_unless_nothing_is_judged() -> None:
    rankers = [Listed("q0-0_q1-1_q2-7")]
    assert "d7" not in pool(made(), rankers).ids
    found = pool(made({}), rankers)
    assert found.ids.to_list() == ["d0", "d1", "d7"]
    assert (found.queries, found.reasons[0]) == (3, Reason("judged", 0, 0))
    assert pool(made({"q1": {"d5": 0, "d6": -1}}), []).ids.to_list() == ["d5", "d6"]  # whatever the grade


def test_only_one_source_is_ranked_and_chosen() -> None:
    Listed.asked.clear()
    both = made({"q0": {"d0": 1, "d0-llm": 1}, "q1": {"d1-llm": 1}}, ("human", "llm"))
    found = pool(both, [Listed("q0-3")])
    assert [one.sources for one in Listed.asked] == [("human",)]
    assert found.ids.to_list() == ["d0", "d3"]
    assert pool(both, [], of="llm").ids.to_list() == ["d0-llm", "d1-llm"]
    assert found.documents == COUNT


def test_a_real_ranker_is_cut_at_the_pools_depth() -> None:
    found = pool(made(), [ranker("bm25")], depth=3)
    assert found.reasons[1].documents == len({"d0", "d1", "d2"} | {"d7", "d6", "d5"})
    assert found.spec["rankers"] == ["bm25"]
    own = pool(made(), [ranker("bm25@1")], depth=100)
    assert own.reasons[1] == Reason("bm25@1", 2, 1)
    docs = [{"id": f"d{n}", "text": "one word"} for n in range(3)]
    ties = pool(collection_of(docs, {"q": "word"}, {}), [ranker("bm25")], depth=1)
    assert ties.ids.to_list() == ["d0", "d1", "d2"]


@pytest.mark.parametrize(
    ("grades", "rankers", "options", "message"),
    [
        (None, [], {"of": "man"}, r"unknown source 'man'.* \(valid: human\)"),
        (None, ["bm25"], {"depth": 0}, "expected a pool of at least 1 document deep, got 0"),
        ({}, [], {}, "nothing to pool: there are no judgments, so a pool needs a ranker, such as bm25"),
        (None, ["bm25", "bm25"], {}, "ranker 'bm25' is given twice"),
    ],
)
def test_mistakes_are_named(grades: Any, rankers: list[str], options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        pool(made(grades), [ranker(text) for text in rankers], **options)
    chosen = Pool(pl.Series(["d0", "z9"]), (), 2, 1, {"of": "human"})
    with pytest.raises(UserError, match="the pool's document 'z9' is not in this collection; pool the same collection"):
        pooled(made(), chosen)


def test_a_ranker_that_cannot_rank_says_so_before_any_other_starts() -> None:
    @dataclass(frozen=True)
    class Unable(Listed):
        """Lacks something."""

        def check(self) -> None:
            raise UserError("no model here")

    Listed.asked.clear()
    with pytest.raises(UserError, match="no model here"):
        pool(made(), [Listed("q0-0"), Unable("q0-1")])
    assert Listed.asked == []


def test_the_pool_says_what_it_is() -> None:
    found = pool(made(), [Listed("q0-012_q1-76")], depth=2)
    assert found.sentences == (
        "pool: 4 of 8 documents chosen by 2 queries; 4 need no rewrite (50.0 %)",
        "judged, whatever the grade: 2, of these 0 by nothing else",
        "top 2 of listed:q0-012_q1-76: 4, of these 2 by nothing else",
    )
    assert found.spec == {"of": "human", "rankers": ["listed:q0-012_q1-76"], "depth": 2}


def test_a_pooled_collection_keeps_all_human_documents_and_the_twins_of_the_pool() -> None:
    both = made({"q0": {"d0": 1, "d0-llm": 1, "d1": 0, "d5-llm": 0}}, ("human", "llm"))
    found = pooled(both, pool(both, [Listed("q0-3")]))
    assert found.docs.filter(pl.col("source") == "human").height == COUNT
    assert found.docs.filter(pl.col("source") == "llm")["id"].to_list() == ["d0-llm", "d1-llm", "d3-llm"]
    assert found.docs.filter("pool")["origin"].unique().sort().to_list() == ["d0", "d1", "d3"]
    assert found.docs["pool"].null_count() == 0
    assert found.qrels.rows() == [("q0", "d0", 1), ("q0", "d0-llm", 1), ("q0", "d1", 0)]
    assert found.spec["pool"]["of"] == "human"


def test_a_pooled_collection_is_a_fair_comparison_also_from_its_file(tmp_path: Path) -> None:
    both = made({"q0": {"d0": 1, "d0-llm": 1}}, ("human", "llm"))
    save(pooled(both, pool(both, [])), tmp_path)
    row = next(r for r in check(load(tmp_path)).rows if r.name == "pairs missing a side")
    assert (row.found, row.total, row.verdict) == (0, 1, "ok")
    assert row.note == "7 documents outside the pool have no twin by design"


@pytest.mark.data
def test_relative_delta_from_a_pool_of_nfcorpus_is_within_the_full_interval(shared_data: Path) -> None:
    collection = load(shared_data / "cocktail-nfcorpus")
    rankers = [ranker(text) for text in ("bm25", "bm25(k1=0.9,b=0.4)", "tfidf")]
    chosen = pool(collection, rankers[:1], depth=10)
    judged = collection.qrels.filter(pl.col("doc_id").str.ends_with("-human"))["doc_id"].n_unique()
    assert chosen.reasons[0].documents == judged == 3128
    assert (len(chosen.ids), chosen.documents, chosen.queries) == (3324, 3633, 323)
    part = pooled(collection, chosen)
    measures = ["nDCG@1", "nDCG@3", "nDCG@5", "AP@1", "AP@3", "AP@5"]
    full, less = (
        audit(one, [r.rank(one) for r in rankers], measures, confounds=False, resamples=500)
        for one in (collection, part)
    )
    assert all(a.low <= b.value <= a.high for a, b in zip(full.tilts, less.tilts, strict=True))
    assert max(abs(a.value - b.value) for a, b in zip(full.tilts, less.tilts, strict=True)) < 2
    assert all(t.twins for t in less.tilts)
