"""What an explorer reads, made by hand: queries, lists and texts of which every number on the page is known."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

from ranktilt.reporting.document import Cell, Column, Document, Explorer, Row, Section, Table
from ranktilt.reporting.render.html import render as html_document

QUERIES = 30
UNDEFINED = (3, 17)
"""Queries whose part of the tilt is undefined for the first ranker."""
TEXTS = [
    "The old river carries cold water to the sea, slowly.",
    "The old stream carries cold water toward the ocean, slowly.",
    "A bell rings in the tower.",
    "In the tower a bell rings.",
    "Alone in its group.",
]


def packed(content: Any) -> str:
    """Pack as a page carries it."""
    return base64.b64encode(gzip.compress(json.dumps(content).encode(), mtime=0)).decode()


def part(query: int) -> float | None:
    """Points of the first ranker by the first measure: −10 to +19, no two of one size but those of ±1 to ±10."""
    return None if query in UNDEFINED else float(query - 10)


def lists(**other: Any) -> dict[str, Any]:
    """Thirty queries, two rankers, measures and groups; a tie, a twin not retrieved, a document without a twin."""
    numbers = range(QUERIES)
    first = [part(query) for query in numbers]
    halves = [None if value is None else value / 2 for value in first]
    flat = [0.25] * QUERIES
    values = [[[0.5] * QUERIES, [query / 100 for query in numbers], flat], [flat, flat, flat]]
    empty: dict[str, Any] = {"found": 0, "more": 0, "entries": []}
    # document, first and last rank of its tie, score, grade, among the first results
    shown = [[0, 1, 1, 9.5, 2, 1], [2, 2, 3, 7.25, 0, 1], [3, 2, 3, 7.25, 1, 1], [4, 4, 4, 1.0, 0, 1]]
    below = [[1, 14, 14, 0.125, 1, 0]]
    gone = [[1, 1, 1, 3.0, 1, 1], [0, None, None, None, 2, 0]]
    content = {
        "version": 1, "by": "source", "groups": ["human", "llm"], "pairs": [["human", "llm"]],
        "measures": ["nDCG@3", "RR"], "primary": 0, "runs": ["bm25", "dense"],
        "shown": QUERIES, "of": QUERIES, "depth": 4,
        "queries": [
            {"id": f"q{n:02}", "text": f"the river number {n}" if n % 2 else f"bell {n}", "relevant": 3}
            for n in numbers
        ],
        "values": [values, values],
        "tilt": [[[first, halves]], [[flat, flat]]],
        "heads": [[[[2, 1, query] for query in numbers]], [[None] * QUERIES]],
        "docs": {
            "id": ["d0-h", "d0-l", "d1-h", "d1-l", "d2-h"], "title": ["Rivers", "Rivers", "", "", "Alone"],
            "group": [0, 1, 0, 1, 0], "twins": [[1], [0], [3], [2], []],
        },
        "lists": [
            [{"found": 20, "more": 0, "entries": [*shown, *below]}, *[empty] * (QUERIES - 1)],
            [{"found": 1, "more": 3, "entries": gone}, *[empty] * (QUERIES - 1)],
        ],
    }  # fmt: skip
    return {**content, **other}


def block(content: dict[str, Any] | None = None, texts: Any = TEXTS) -> Explorer:
    """Make the explorer's block; no texts where they are None."""
    rows = Table("Queries that contribute most", (Column("query", number=False, header=True), Column("points")),
                 (Row((Cell("bell 29"), Cell("+19.0", 19.0))),))  # fmt: skip
    content = lists() if content is None else content
    return Explorer("Queries, lists and texts", "All 30 queries are here.", packed(content),
                    "" if texts is None else packed(texts), rows)  # fmt: skip


def page(*blocks: Explorer) -> str:
    """Write a page of a section before, the explorers, and one after."""
    inner = [Section(f"queries{n or ''}", "Queries", ("Look through them.",), (one,)) for n, one in enumerate(blocks)]
    sections = (Section("before", "Before", ("Text. " * 2000,)), *inner, Section("after", "After", ("Text. " * 400,)))
    return html_document(Document("Test", "All is well.", sections))
