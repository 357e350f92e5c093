"""Before anything is asked: which documents are worth a rewrite, and what the answers will cost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import polars as pl
import pytest

from ranktilt.auditing.audit import audit
from ranktilt.data.collection import Collection
from ranktilt.data.loading.load import load
from ranktilt.data.runs.run import Run
from ranktilt.data.save import save
from ranktilt.errors import UserError
from ranktilt.explaining.check import check
from ranktilt.generation.estimate import CostEstimate, estimate
from ranktilt.generation.pooling import Pool, Reason, pool, restrict_to_pool
from ranktilt.generation.rewrite.prepare import prepare_rewrites
from ranktilt.generation.settings import Rewriting
from ranktilt.llm.journal import Journal
from ranktilt.rankers.base import Ranker
from ranktilt.registry import ranker
from ranktilt.reporting.sentences.checking.faults import fault_note
from tests.generation.scripted import TEXTS, Scripted, humans
from tests.toy import collection_of, run_of

COUNT = 8


def collection_of_humans(
    grades: Mapping[str, Mapping[str, int]] | None = None, sources: tuple[str, ...] = ("human",)
) -> Collection:
    """Documents d0 to d7 of each source; two queries, of which q0 judges d0 and d1, and q1 judges
    d1 not relevant.
    """
    docs = [
        {
            "id": f"d{n}" if source == "human" else f"d{n}-{source}",
            "source": source,
            "origin": f"d{n}",
            "text": " ".join(["word"] * (COUNT - n) + ["other"] * n) + f" by {source}",
        }
        for source in sources
        for n in range(COUNT)
    ]
    qrels = {"q0": {"d0": 1, "d1": 2}, "q1": {"d1": 0}} if grades is None else grades
    return collection_of(docs, {"q0": "word", "q1": "other", "q2": "by"}, qrels)


@dataclass(frozen=True)
class Listed(Ranker):
    """Gives each query the documents it is told, best first."""

    lists: str
    name: ClassVar[str] = "listed"
    argument: ClassVar[str | None] = "lists"
    ranked: ClassVar[list[Collection]] = []

    def rank(self, collection: Collection, run: Run | None = None) -> Run:
        self.ranked.append(collection)
        lists = dict(part.split("-") for part in self.lists.split("_"))
        scores = {
            query: {f"d{n}": float(-rank) for rank, n in enumerate(lists.get(query, ""))}
            for query in collection.queries_with_judgments["id"]
        }
        return run_of(collection, scores, ranker=repr(self))


def test_each_querys_top_is_in_in_the_collections_order() -> None:
    for depth, ids, ranked, alone in (
        (1, ["d0", "d1", "d7"], 2, 1),
        (2, ["d0", "d1", "d6", "d7"], 4, 2),
        (9, ["d0", "d1", "d2", "d6", "d7"], 5, 3),
    ):
        chosen = pool(collection_of_humans(), [Listed("q0-012_q1-76")], depth=depth)
        assert chosen.ids.to_list() == ids
        assert chosen.reasons[1] == Reason(
            name="listed:q0-012_q1-76", documents=ranked, alone=alone
        )
        assert chosen.reasons[0].documents == 2
        assert chosen.spec == {"of": "human", "rankers": ["listed:q0-012_q1-76"], "depth": depth}
        if depth == 2:
            assert chosen.sentences == (
                "pool: 4 of 8 documents chosen by 2 queries; 4 need no rewrite (50.0 %)",
                "judged, whatever the grade: 2, 0 of them by nothing else",
                "top 2 of listed:q0-012_q1-76: 4, 2 of them by nothing else",
            )


def test_one_document_that_needs_no_rewrite_is_one() -> None:
    chosen = pool(collection_of_humans(), [Listed("q0-012345_q1-67")], depth=7)
    assert chosen.saved == 0
    chosen = pool(collection_of_humans(), [Listed("q0-012345_q1-7")], depth=7)
    assert chosen.sentences[0] == (
        "pool: 7 of 8 documents chosen by 2 queries; 1 needs no rewrite (12.5 %)"
    )


def test_judged_queries_choose_and_a_ranker_that_cannot_says_so() -> None:
    rankers = [Listed("q0-0_q1-1_q2-7")]
    assert "d7" not in pool(collection_of_humans(), rankers).ids
    chosen = pool(collection_of_humans({}), rankers)
    assert chosen.ids.to_list() == ["d0", "d1", "d7"]
    assert (chosen.queries, chosen.reasons[0]) == (3, Reason(name="judged", documents=0, alone=0))
    assert pool(collection_of_humans({"q1": {"d5": 0, "d6": -1}}), []).ids.to_list() == [
        "d5",
        "d6",
    ]  # whatever the grade
    Listed.ranked.clear()
    both = collection_of_humans(
        {"q0": {"d0": 1, "d0-llm": 1}, "q1": {"d1-llm": 1}}, ("human", "llm")
    )
    chosen = pool(both, [Listed("q0-3")])
    assert [collection.sources for collection in Listed.ranked] == [("human",)]
    assert chosen.ids.to_list() == ["d0", "d3"]
    assert pool(both, [], of="llm").ids.to_list() == ["d0-llm", "d1-llm"]
    assert chosen.documents == COUNT
    chosen = pool(collection_of_humans(), [ranker("bm25")], depth=3)
    assert chosen.reasons[1].documents == len({"d0", "d1", "d2"} | {"d7", "d6", "d5"})
    assert chosen.spec["rankers"] == ["bm25"]
    shallow = pool(collection_of_humans(), [ranker("bm25@1")], depth=100)
    assert shallow.reasons[1] == Reason(name="bm25@1", documents=2, alone=1)
    docs = [{"id": f"d{n}", "text": "one word"} for n in range(3)]
    ties = pool(collection_of(docs, {"q": "word"}, {}), [ranker("bm25")], depth=1)
    assert ties.ids.to_list() == ["d0", "d1", "d2"]

    @dataclass(frozen=True)
    class Unable(Listed):
        def check(self) -> None:
            raise UserError("no model here")

    Listed.ranked.clear()
    with pytest.raises(UserError, match="no model here"):
        pool(collection_of_humans(), [Listed("q0-0"), Unable("q0-1")])
    assert Listed.ranked == []


@pytest.mark.parametrize(
    ("grades", "rankers", "options", "message"),
    [
        (None, [], {"of": "man"}, r"unknown source 'man'.* \(valid: human\)"),
        (None, ["bm25"], {"depth": 0}, "expected a pool of at least 1 document deep, got 0"),
        (
            {},
            [],
            {},
            "nothing to pool: there are no judgments, so a pool needs a ranker, such as bm25",
        ),
        (None, ["bm25", "bm25"], {}, "ranker 'bm25' is given twice"),
    ],
)
def test_mistakes_are_named(
    grades: Any, rankers: list[str], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        pool(collection_of_humans(grades), [ranker(text) for text in rankers], **options)
    chosen = Pool(
        ids=pl.Series(["d0", "z9"]), reasons=(), documents=2, queries=1, spec={"of": "human"}
    )
    with pytest.raises(
        UserError,
        match="the pool's document 'z9' is not in this collection; pool the same collection",
    ):
        restrict_to_pool(collection_of_humans(), chosen)


def test_pooled_collection_keeps_human_documents_and_is_fair(
    tmp_path: Path,
) -> None:
    both = collection_of_humans(
        {"q0": {"d0": 1, "d0-llm": 1, "d1": 0, "d5-llm": 0}}, ("human", "llm")
    )
    part = restrict_to_pool(both, pool(both, [Listed("q0-3")]))
    assert part.docs.filter(pl.col("source") == "human").height == COUNT
    assert part.docs.filter(pl.col("source") == "llm")["id"].to_list() == [
        "d0-llm",
        "d1-llm",
        "d3-llm",
    ]
    assert part.docs.filter("pool")["origin"].unique().sort().to_list() == ["d0", "d1", "d3"]
    assert part.docs["pool"].null_count() == 0
    assert part.qrels.rows() == [("q0", "d0", 1), ("q0", "d0-llm", 1), ("q0", "d1", 0)]
    assert part.spec["pool"]["of"] == "human"
    both = collection_of_humans({"q0": {"d0": 1, "d0-llm": 1}}, ("human", "llm"))
    save(restrict_to_pool(both, pool(both, [])), tmp_path)
    row = next(r for r in check(load(tmp_path)).faults if r.name == "pairs missing a side")
    assert (row.count, row.total, row.verdict) == (0, 1, "ok")
    assert fault_note(row) == "7 documents outside the pool have no twin, by design"


@pytest.mark.data
def test_relative_delta_of_nfcorpus_pool_is_within_full_interval(
    shared_data: Path,
) -> None:
    collection = load(shared_data / "cocktail-nfcorpus")
    rankers = [ranker(text) for text in ("bm25", "bm25(k1=0.9,b=0.4)", "tfidf")]
    chosen = pool(collection, rankers[:1], depth=10)
    judged = collection.qrels.filter(pl.col("doc_id").str.ends_with("-human"))["doc_id"].n_unique()
    assert chosen.reasons[0].documents == judged == 3128
    assert (len(chosen.ids), chosen.documents, chosen.queries) == (3324, 3633, 323)
    part = restrict_to_pool(collection, chosen)
    measures = ["nDCG@1", "nDCG@3", "nDCG@5", "AP@1", "AP@3", "AP@5"]
    full, less = (
        audit(docs, [r.rank(docs) for r in rankers], measures, confounds=False, resamples=500).tilts
        for docs in (collection, part)
    )
    for of_all, pooled_only in zip(full, less, strict=True):
        assert of_all.low <= pooled_only.value <= of_all.high
        assert abs(of_all.value - pooled_only.value) < 2
        assert pooled_only.twins


WORDS = {"d1": "abcd " * 19 + "abcd.", "d2": "abcd " * 39 + "abcd."}
"""25 and 50 tokens of four bytes."""


@pytest.fixture
def guess(own_cache: Path) -> Any:
    """CostEstimate with a journal of this test."""

    def run(
        llm: Scripted | None = None, texts: dict[str, str] | None = None, **options: Any
    ) -> CostEstimate:
        rates = {
            name: options.pop(name) for name in ("price", "requests_per_minute") if name in options
        }
        model = llm or Scripted()
        return estimate(
            prepare_rewrites(humans(texts), model, Rewriting(**options)),
            model,
            journal=Journal(own_cache),
            **rates,
        )

    return run


def test_tokens_price_and_requests_by_hand(guess: Any) -> None:
    llm = Scripted()
    cost = guess(llm, WORDS, price=(2.0, 10.0))
    assert (llm.prompts, llm.checked) == ([], 0)  # nothing is asked, and no key is needed
    # "Please rewrite the following text: " has 35 bytes: 135/4 and 235/4 rounded up, and 12 of the
    # chat template each
    assert cost.tokens_in == 34 + 59 + 24
    assert cost.tokens_out == 25 + 50
    assert cost.price == pytest.approx((117 * 2 + 75 * 10) / 1e6)
    assert cost.counted == "estimated, one token per 4 bytes of UTF-8"
    assert guess(texts=WORDS, max_tokens=30).tokens_out == 25 + 30
    with pytest.raises(UserError, match=r"^a price must be 0 or more, got -1,2$"):
        guess(price=(-1.0, 2.0))
    cost = guess(texts={**TEXTS, "empty": " "})
    assert (cost.documents, cost.empty, cost.requests) == (4, 1, 3)
    assert cost.lines[0] == ("documents", "4 documents (not requested: 1 empty)")
    assert guess(titles="rewrite").requests == 6
    more = "; up to 2 more for each text whose answers are flagged"
    for attempts, end in ((3, more), (1, "")):
        assert (
            dict(guess(attempts=attempts).lines)["requests"]
            == f"3 (0 of 3 are answered already){end}"
        )


class Local(Scripted):
    """Counts a token a word, as a model on this machine does with its own tokenizer."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]


def test_time_follows_the_narrowest_limit_and_is_unknown_locally(guess: Any) -> None:
    cost = guess(texts=WORDS)
    seconds = 0.5 + 75 / 2 / 50
    assert cost.seconds == pytest.approx(seconds)  # both at once
    assert guess(texts=WORDS, llm=Scripted(concurrency=1)).seconds == pytest.approx(seconds * 2)
    for rates, seconds, text in (
        ({"requests_per_minute": 6}, 20.0, "20 s, at 6 requests per minute"),
        ({"requests_per_minute": 60_000}, 1.25, "1 s, 4 at a time, if an answer takes 1.2 s"),
    ):
        cost = guess(texts=WORDS, **rates)
        assert cost.seconds == pytest.approx(seconds)
        assert cost.lines[-1] == ("time", text)
    cost = guess(Local(), WORDS)
    assert (cost.tokens_in, cost.tokens_out) == (25 + 45 + 24, 60)
    assert cost.counted == "counted by the model's own tokenizer"
    assert cost.seconds is None
    assert cost.lines[-1] == (
        "time",
        "unknown for a model on this machine; try some documents with --limit",
    )
