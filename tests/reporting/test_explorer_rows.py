"""The explorer's table for readers without scripts."""

from typing import Any

import polars as pl

from ranktilt import Collection
from ranktilt.auditing.breakdown import contributions
from ranktilt.reporting.document import Table
from ranktilt.reporting.explorer.section import MOST
from tests.reporting.audits import twins
from tests.reporting.explored import explored, opened
from tests.toy import toy


def table(*args: Any, **options: Any) -> Table:
    return explored(opened(*args, **options)).block.rows


def rows(found: Table) -> dict[str, list[str]]:
    """Texts, with signs, of each query's row after its first cell."""
    return {r[0].note or r[0].text: [cell.text + cell.sign for cell in r[1:]] for r in found.rows}


def test_each_ranker_shows_the_part_of_the_tilt() -> None:
    # nDCG@1 of the first run: human 1, 0, 1 and LLM 0, 1, 0, so that each query brings 200 / 3 points.
    # The second has q1 at 0, q2 tied at 0.5 each, and LLM text first for q3: 200 · (−1) / 2 points.
    found = table()
    assert rows(found) == {
        "q1": ["+66.67▲", "0.00"], "q2": ["−66.67▼", "0.00"], "q3": ["+66.67▲", "−100.00▼"],
    }  # fmt: skip
    assert [r[0].text for r in found.rows] == ["old clock bell", "red apples", "river water"]
    assert [c.title for c in found.columns] == ["query", "part of Relative Δ", "part of Relative Δ"]
    assert found.spans == (("", 1), ("first", 1), ("second", 1))
    assert found.columns[1].hint == "points of Relative Δ that the query brings; positive for human"
    why = "first those that contribute most to some ranker's Relative Δ (nDCG@1, human against llm)"
    assert found.caption == f"All 3 queries, {why}"


def test_cells_keep_the_numbers_unrounded() -> None:
    given = opened()
    found = explored(given).block.rows
    parts = contributions(given.audit, "first", "nDCG@1", "human", "llm")
    cells = {r[0].note: r[1] for r in found.rows}
    assert [cells[query].value for query in given.audit.queries] == parts.tolist()
    assert [cells[query].tone for query in given.audit.queries] == ["first", "second", "first"]


def test_at_most_fifty_queries_are_shown() -> None:
    collection = twins(MOST + 7)
    lists = {f"q{n}": {f"{n}-human": 1.0, f"{n}-llm": 1.0} for n in range(MOST + 6)}
    lists[f"q{MOST + 6}"] = {f"{MOST + 6}-llm": 1.0}
    found = table(collection, [lists])
    assert len(found.rows) == MOST
    assert found.rows[0][0].note == f"q{MOST + 6}"
    assert found.caption.startswith("50 of 57 queries, ")


def test_undefined_parts_are_dashes() -> None:
    collection = toy()
    one_sided = collection.qrels.filter((pl.col("query_id") != "q1") | pl.col("doc_id").str.ends_with("-human"))
    assert rows(table(Collection(collection.docs, collection.queries, one_sided)))["q1"][0] == "–"


def test_without_judgments_twins_stand_against_each_other() -> None:
    collection = toy()
    found = table(Collection(collection.docs, collection.queries, collection.qrels.clear()), measures=None, card=True)
    assert [c.title for c in found.columns] == ["query", "human : llm", "human : llm"]
    assert rows(found) == {"q1": ["2 : 0", "–"], "q2": ["0 : 1", "0 : 0"], "q3": ["1 : 0", "0 : 1"]}
    assert found.caption.endswith("first those in which the twins of human and llm differ most")


def test_without_groups_all_documents_count() -> None:
    found = table(by=None)
    assert [c.title for c in found.columns] == ["query", "nDCG@1", "nDCG@1"]
    assert found.caption == "All 3 queries"
    assert rows(found)["q1"] == ["100.0", "0.0"]


def test_long_queries_are_cut_and_blank_ones_go_by_their_id() -> None:
    collection = toy()
    queries = collection.queries.with_columns(text=pl.Series(["x" * 121, "y" * 120, " "]))
    found = table(Collection(collection.docs, queries, collection.qrels))
    assert {(r[0].text, r[0].note) for r in found.rows} == {("x" * 119 + "…", "q1"), ("y" * 120, "q2"), ("q3", "")}
