"""Audits whose every number is known, for the tests of what is printed."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import polars as pl

from ranktilt import Audit, Collection, audit
from tests.toy import collection_of, run_of, toy

RERANKED = ("bm25", "tfidf", "bm25@100>>cross-encoder:minilm")
MEASURES = ["nDCG@1", "nDCG@3", "AP@3"]
FIRST = {
    "q1": {"d1-human": 3.0, "d1-llm": 2.0, "d3-human": 1.0},
    "q2": {"d2-llm": 2.0, "d2-human": 1.0},
    "q3": {"d3-human": 2.0, "d3-llm": 1.0},
}
SECOND = {"q2": {"d2-llm": 1.0, "d2-human": 1.0}, "q3": {"d3-llm": 1.0}}


def small(**options: Any) -> Audit:
    """Audit the toy: human text is first for q1 and q3, LLM text for q2; the second run finds nothing for q1."""
    collection = toy()
    runs = [run_of(collection, FIRST, ranker="first"), run_of(collection, SECOND, ranker="second@5")]
    return audit(collection, runs, MEASURES, **{"resamples": 200, **options})


def twins(queries: int, sources: Sequence[str] = ("human", "llm")) -> Collection:
    """One relevant document a query, in every source."""
    docs = [
        {"id": f"{n}-{s}", "text": f"text {n}", "source": s, "origin": f"{n}-human", "side": "ab"[n % 2]}
        for s in sources
        for n in range(queries)
    ]
    grades = {f"q{n}": {f"{n}-{s}": 1 for s in sources} for n in range(queries)}
    return collection_of(docs, dict.fromkeys(grades, "x"), grades)


def ordered(collection: Collection, orders: Sequence[Sequence[str]], name: str) -> Any:
    """Make a run in which query n finds the versions of its document in an order of sources."""
    found = {
        f"q{n}": {f"{n}-{source}": -float(place) for place, source in enumerate(order)}
        for n, order in enumerate(orders)
    }
    return run_of(collection, found, ranker=name)


def clear(names: Sequence[str] = ("people", "machines", "nobody")) -> Audit:
    """Audit 40 queries: one run has human text first, one LLM text, one each as often."""
    collection = twins(40)
    human, llm = ("human", "llm"), ("llm", "human")
    orders = ([human] * 40, [llm] * 40, [human, llm] * 20)
    runs = [ordered(collection, order, name) for order, name in zip(orders, names, strict=True)]
    return audit(collection, runs, ["nDCG@1", "P@2"], resamples=200)


def three() -> Audit:
    """Audit three sources: every pair of them is compared."""
    collection = twins(40, ("human", "llama", "gpt"))
    return audit(collection, ordered(collection, [("human", "gpt", "llama")] * 40, "run"), ["RR"], resamples=200)


def uneven() -> Audit:
    """Group by a column whose groups are no twins: a query has two relevant documents on one side, one on the other."""
    collection = twins(40, ("human",))
    doc = pl.format("{}-human", (pl.int_range(pl.len()) + pl.col("step")) % 40)
    qrels = [collection.qrels.with_columns(step=step).with_columns(doc_id=doc).drop("step") for step in range(3)]
    collection = Collection(collection.docs, collection.queries, pl.concat(qrels))
    scores = {f"q{n}": {f"{m}-human": 1.5 * (m % 2) - (m - n) % 40 for m in range(40)} for n in range(40)}
    return audit(collection, run_of(collection, scores, ranker="run"), ["nDCG@5", "AP"], by="side", resamples=200)


def named(found: Audit, runs: Sequence[str], **spec: Any) -> Audit:
    """The same audit with its runs under other names, and made from another folder."""
    names = dict(zip(found.runs, runs, strict=True))
    tilts = tuple(replace(tilt, run=names[tilt.run]) for tilt in found.tilts)
    return replace(found, runs=tuple(runs), tilts=tilts, spec={**found.spec, **spec})


@cache
def sourced(*sources: str, runs: tuple[str, ...] = ("bm25",)) -> Audit:
    """Audit twins of human text and these sources; human text is always first."""
    collection = twins(40, ("human", *sources))
    found = [ordered(collection, [("human", *sources)] * 40, name) for name in runs]
    return audit(collection, found, ["nDCG@1", "RR"], resamples=100)
