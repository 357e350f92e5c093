"""Audits opened together with their collections and runs, what an explorer carries of them, and one
made by hand.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl

import ranktilt as rt
from ranktilt import Audit, Collection, Run, audit
from ranktilt.reporting.document import Cell, Column, Document, Explorer, Row, Section, Table
from ranktilt.reporting.explorer.section import explorer
from ranktilt.reporting.reload import LoadedAudit
from ranktilt.reporting.render.html import render as html_document
from tests.reporting.audits import FIRST, SECOND, ordered, twins
from tests.toy import run_of, toy

HUMAN, LLM = ("human", "llm"), ("llm", "human")
ORDERS = {"people": [HUMAN] * 40, "machines": [LLM] * 40, "nobody": [HUMAN, LLM] * 20}
"""Which twin stands first in each of 40 queries, by the ranker's name."""
QUERIES = 30
UNDEFINED = (3, 17)
"""Queries whose part of the tilt is undefined for the first ranker."""
TOY_RUN = {
    "q1": {"d1-human": 3.0, "d1-llm": 2.0},
    "q2": {"d2-llm": 2.0, "d2-human": 1.0},
    "q3": {"d3-human": 2.0, "d3-llm": 1.0},
}
"""A run of the toy."""
TEXTS = [
    "The old river carries cold water to the sea, slowly.",
    "The old stream carries cold water toward the ocean, slowly.",
    "A bell rings in the tower.",
    "In the tower a bell rings.",
    "Alone in its group.",
]


def of(
    collection: Collection, runs: list[Run], measures: Any = ("nDCG@1", "P@2"), **options: Any
) -> LoadedAudit:
    return LoadedAudit(
        audit(collection, runs, measures, **{"resamples": 1000, **options}), collection, tuple(runs)
    )


@cache
def opened(*, card: bool = True) -> LoadedAudit:
    """Three rankers of 40 queries: one has human text first, one LLM text, one each as often."""
    collection = twins(40)
    return of(
        collection, [ordered(collection, order, name) for name, order in ORDERS.items()], card=card
    )


@cache
def unjudged() -> LoadedAudit:
    """The same without judgments: only the card can answer."""
    judged = opened()
    assert judged.collection is not None
    plain = judged.collection
    collection = Collection(plain.docs, plain.queries, plain.qrels.clear())
    return of(collection, list(judged.runs), None, card=True)


@cache
def ungrouped() -> LoadedAudit:
    judged = opened()
    assert judged.collection is not None
    return of(judged.collection, list(judged.runs), by=None)


@cache
def many(rankers: int = 30) -> LoadedAudit:
    """As many rankers, each with human text first in other queries."""
    collection = twins(40)
    orders = [[HUMAN if (n * step) % 7 < 3 else LLM for n in range(40)] for step in range(rankers)]
    runs = [ordered(collection, order, f"ranker-{step}") for step, order in enumerate(orders)]
    return of(collection, runs, resamples=200)


@cache
def sources(*names: str) -> LoadedAudit:
    """One ranker of several sources, which always stand in this order; all pairs of them are
    compared.
    """
    collection = twins(40, names)
    return of(collection, [ordered(collection, [names] * 40, "run")], ["RR", "nDCG@1"], card=True)


@cache
def colours(count: int = 7) -> LoadedAudit:
    """Groups that are no twins: every query has six relevant documents, and rankings do not know
    their groups.
    """
    docs = twins(40, ("human",)).docs.with_columns(
        colour=pl.format("c{}", pl.int_range(pl.len()) % count)
    )
    plain = twins(40, ("human",))
    doc = pl.format("{}-human", (pl.int_range(pl.len()) + pl.col("step")) % 40)
    parts = [
        plain.qrels.with_columns(step=step).with_columns(doc_id=doc).drop("step")
        for step in range(6)
    ]
    collection = Collection(docs, plain.queries, pl.concat(parts))
    scores = {
        f"q{n}": {f"{m}-human": float((m * 7 + n * 11) % 40) for m in range(40)} for n in range(40)
    }
    return of(collection, [run_of(collection, scores, ranker="run")], ["nDCG@5"], by="colour")


def alone(audit: LoadedAudit, *notes: str) -> LoadedAudit:
    return LoadedAudit(audit.audit, notes=notes)


def toy_opened(
    collection: Collection | None = None,
    scores: Sequence[Mapping[str, Mapping[str, float]]] = (FIRST, SECOND),
    *,
    runs: Sequence[Run] | None = None,
    measures: Sequence[str] | None = ("nDCG@1", "AP@3"),
    **options: Any,
) -> LoadedAudit:
    """Audit some runs, named first, second, … where only scores are given; by default the toy's
    two.
    """
    collection = toy() if collection is None else collection
    if runs is None:
        names = ("first", "second", "third")
        runs = [
            run_of(collection, query_scores, ranker=name)
            for query_scores, name in zip(scores, names, strict=False)
        ]
    result = audit(
        collection, list(runs), measures, **{"resamples": 100, "confounds": False, **options}
    )
    return LoadedAudit(result, collection, tuple(runs))


@dataclass(frozen=True)
class Explored:
    """An explorer's block and its content."""

    block: Explorer
    lists: Any
    texts: Any

    def docs(self, run: int, query: str, column: int | None = None) -> list[Any]:
        """Ids of one list's documents in order, or one of the numbers beside them."""
        entries = self.list(run, query)["entries"]
        return [self.lists["docs"]["id"][e[0]] if column is None else e[column] for e in entries]

    def list(self, run: int, query: str) -> Any:
        return self.lists["lists"][run][[q["id"] for q in self.lists["queries"]].index(query)]

    def text(self, doc: str) -> Any:
        """What is carried of a document's text."""
        return self.texts[self.lists["docs"]["id"].index(doc)]


def unpacked(text: str) -> Any:
    """Read what a page carries: base64, gzip, JSON without NaN."""

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    data = gzip.decompress(base64.b64decode(text, validate=True))
    return json.loads(data.decode("utf-8"), parse_constant=refuse)


def explored(opened_audit: LoadedAudit | None = None, **options: Any) -> Explored:
    block = explorer(toy_opened() if opened_audit is None else opened_audit, **options)
    assert block is not None
    return Explored(block, unpacked(block.lists), unpacked(block.texts) if block.texts else None)


def packed(content: Any) -> str:
    return base64.b64encode(gzip.compress(json.dumps(content).encode(), mtime=0)).decode()


def part(query: int) -> float | None:
    """Points of the first ranker by the first measure: −10 to +19, no two of one size but those of
    ±1 to ±10.
    """
    return None if query in UNDEFINED else float(query - 10)


def lists(**changes: Any) -> dict[str, Any]:
    """Thirty queries, two rankers, measures and groups; a tie, a twin not retrieved, a document
    without a twin.
    """
    numbers = range(QUERIES)
    first = [part(query) for query in numbers]
    halves = [None if value is None else value / 2 for value in first]
    flat = [0.25] * QUERIES
    values = [[[0.5] * QUERIES, [query / 100 for query in numbers], flat], [flat, flat, flat]]
    empty: dict[str, Any] = {"found": 0, "more": 0, "entries": []}
    # document, first and last rank of its tie, score, grade, among the first results
    results = [
        [0, 1, 1, 9.5, 2, 1],
        [2, 2, 3, 7.25, 0, 1],
        [3, 2, 3, 7.25, 1, 1],
        [4, 4, 4, 1.0, 0, 1],
    ]
    below = [[1, 14, 14, 0.125, 1, 0]]
    gone = [[1, 1, 1, 3.0, 1, 1], [0, None, None, None, 2, 0]]
    content = {
        "version": 1,
        "by": "source",
        "groups": ["human", "llm"],
        "pairs": [["human", "llm"]],
        "measures": ["nDCG@3", "RR"],
        "primary": 0,
        "runs": ["bm25", "dense"],
        "shown": QUERIES,
        "of": QUERIES,
        "depth": 4,
        "queries": [
            {
                "id": f"q{n:02}",
                "text": f"the river number {n}" if n % 2 else f"bell {n}",
                "relevant": 3,
            }
            for n in numbers
        ],
        "values": [values, values],
        "tilt": [[[first, halves]], [[flat, flat]]],
        "heads": [[[[2, 1, query] for query in numbers]], [[None] * QUERIES]],
        "docs": {
            "id": ["d0-h", "d0-l", "d1-h", "d1-l", "d2-h"],
            "title": ["Rivers", "Rivers", "", "", "Alone"],
            "group": [0, 1, 0, 1, 0],
            "twins": [[1], [0], [3], [2], []],
        },
        "lists": [
            [{"found": 20, "more": 0, "entries": [*results, *below]}, *[empty] * (QUERIES - 1)],
            [{"found": 1, "more": 3, "entries": gone}, *[empty] * (QUERIES - 1)],
        ],
    }
    return {**content, **changes}


def block(content: dict[str, Any] | None = None, texts: Any = TEXTS) -> Explorer:
    """Make the explorer's block; no texts where they are None."""
    rows = Table(
        "Queries that contribute most",
        (Column("query", number=False, header=True), Column("points")),
        (Row((Cell("bell 29"), Cell("+19.0", 19.0))),),
    )
    content = lists() if content is None else content
    return Explorer(
        caption="Queries, lists and texts",
        description="All 30 queries are here.",
        lists=packed(content),
        texts="" if texts is None else packed(texts),
        rows=rows,
    )


def page(*blocks: Explorer) -> str:
    """Write a page of a section before, the explorers, and one after."""
    inner = [
        Section(f"queries{n or ''}", "Queries", lead=("Look through them.",), blocks=(block,))
        for n, block in enumerate(blocks)
    ]
    sections = (
        Section("before", "Before", lead=("Text. " * 2000,)),
        *inner,
        Section("after", "After", lead=("Text. " * 400,)),
    )
    return html_document(Document(kind="Test", headline="All is well.", sections=sections))


def audited(
    path: str | Path = "toy",
    rankers: Sequence[str] = ("bm25",),
    *,
    load: Any = None,
    **options: Any,
) -> tuple[Audit, Collection, list[Run]]:
    """Audit a folder by rankers; return the collection and the runs too."""
    collection = rt.load(path, **(load or {}))
    runs = [rt.ranker(text).rank(collection) for text in rankers]
    return rt.audit(collection, runs, **{"resamples": 100, **options}), collection, runs
