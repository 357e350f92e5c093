"""The explorer's table for readers without scripts."""

from typing import Any

import polars as pl

from ranktilt import Collection
from ranktilt.auditing.breakdown import contributions
from ranktilt.reporting.document import Table
from ranktilt.reporting.explorer.section import MOST
from tests.reporting.audits import twins
from tests.reporting.explored import explored, opened
from tests.toy import run_of, toy


def table(*args: Any, **options: Any) -> Table:
    return explored(opened(*args, **options)).block.rows


def row(found: Table, query: str) -> list[str]:
    """Texts, with signs, of a query's row after its first cell."""
    (cells,) = [r for r in found.rows if query in (r[0].text, r[0].note)]
    return [cell.text + cell.sign for cell in cells[1:]]


def test_queries_are_named_by_text_and_id() -> None:
    found = table()
    assert {(r[0].text, r[0].note) for r in found.rows} == {
        ("red apples", "q1"),
        ("river water", "q2"),
        ("old clock bell", "q3"),
    }


def test_each_ranker_shows_the_part_of_the_tilt_and_the_groups_values() -> None:
    # nDCG@1 of the first run: human 1, 0, 1 and LLM 0, 1, 0, so that each query brings 200 / 3 points.
    # The second has q1 at 0, q2 tied at 0.5 each, and LLM text first for q3: 200 · (−1) / 2 points.
    found = table()
    assert row(found, "q1") == ["2", "2", "+66.67▲", "100.0", "0.0", "0.00", "0.0", "0.0"]
    assert row(found, "q2") == ["1", "1", "−66.67▼", "0.0", "100.0", "0.00", "50.0", "50.0"]
    assert row(found, "q3") == ["1", "1", "+66.67▲", "100.0", "0.0", "−100.00▼", "0.0", "100.0"]


def test_cells_keep_the_numbers_unrounded() -> None:
    given = opened()
    found = explored(given).block.rows
    parts = contributions(given.audit, "first", "nDCG@1", "human", "llm")
    cells = {r[0].note: r[3] for r in found.rows}
    assert [cells[query].value for query in given.audit.queries] == parts.tolist()
    assert [cells[query].tone for query in given.audit.queries] == ["first", "second", "first"]


def test_columns_say_what_they_hold() -> None:
    found = table()
    assert [c.title for c in found.columns] == ["query", *["human", "llm"], *["part of Relative Δ", "human", "llm"] * 2]
    assert found.spans == (("", 1), ("relevant documents", 2), ("first", 3), ("second", 3))
    assert sum(width for _, width in found.spans) == len(found.columns)
    assert {len(r) for r in found.rows} == {len(found.columns)}
    assert found.columns[3].hint == "points of Relative Δ that the query brings; positive for human"
    assert found.columns[0].header


def test_caption_and_note_say_what_is_shown() -> None:
    found = table()
    assert found.caption == "All 3 queries, those first that contribute most to Relative Δ (nDCG@1, human − llm)"
    assert found.note.startswith(
        "Parts in points, positive for human: over all queries of the audit they add up to Relative Δ."
    )


def test_at_most_fifty_queries_are_shown() -> None:
    collection = twins(MOST + 7)
    lists = {f"q{n}": {f"{n}-human": 1.0, f"{n}-llm": 1.0} for n in range(MOST + 6)}
    lists[f"q{MOST + 6}"] = {f"{MOST + 6}-llm": 1.0}
    found = table(collection, [lists])
    assert len(found.rows) == MOST
    assert found.rows[0][0].note == f"q{MOST + 6}"
    assert found.caption.startswith("50 of 57 queries, ")


def test_undefined_parts_and_values_are_dashes() -> None:
    collection = toy()
    one_sided = collection.qrels.filter((pl.col("query_id") != "q1") | pl.col("doc_id").str.ends_with("-human"))
    found = table(Collection(collection.docs, collection.queries, one_sided))
    assert row(found, "q1")[:5] == ["2", "0", "–", "100.0", "–"]


def test_without_judgments_twins_stand_against_each_other() -> None:
    collection = toy()
    found = table(Collection(collection.docs, collection.queries, collection.qrels.clear()), measures=None, card=True)
    assert [c.title for c in found.columns] == ["query", *["human", "llm", "tied"] * 2]
    assert found.spans == (("", 1), ("first", 3), ("second", 3))
    assert row(found, "q1") == ["2", "0", "0", "–", "–", "–"]
    assert row(found, "q2") == ["0", "1", "0", "0", "0", "1"]
    assert found.caption.endswith("those first in which the twins of human and llm differ most")


def test_without_groups_all_documents_count() -> None:
    found = table(by=None)
    assert [c.title for c in found.columns] == ["query", "nDCG@1", "nDCG@1"]
    assert found.spans == (("", 1), ("first", 1), ("second", 1))
    assert found.caption == "All 3 queries"
    assert row(found, "q1") == ["100.0", "0.0"]


def test_of_more_than_three_groups_the_first_pair_is_shown() -> None:
    names = ("human", "a", "b", "c")
    collection = twins(2, names)
    lists = {f"q{n}": {f"{n}-{name}": 1.0 for name in names} for n in range(2)}
    found = table(collection, [lists])
    assert found.spans == (("", 1), ("relevant documents", 2), ("first", 3))
    assert [c.title for c in found.columns[1:]] == ["human", "a", "part of Relative Δ", "human", "a"]


def test_three_groups_have_a_column_each() -> None:
    collection = twins(2, ("human", "a", "b"))
    lists = {f"q{n}": {f"{n}-b": 2.0, f"{n}-human": 1.0} for n in range(2)}
    found = table(collection, [lists])
    assert row(found, "q1") == ["1", "1", "1", "–", "0.0", "0.0", "100.0"]


def test_of_many_rankers_each_has_its_part_alone() -> None:
    collection = twins(2)
    lists = {"q0": {"0-human": 2.0, "0-llm": 1.0}}
    runs = [run_of(collection, lists, ranker=name) for name in ("first", "second", "third", "fourth")]
    three, four = (table(collection, runs=runs[:n]) for n in (3, 4))
    assert [c.title for c in three.columns[3:]] == ["part of Relative Δ", "human", "llm"] * 3
    assert [c.title for c in four.columns[3:]] == ["part of Relative Δ"] * 4
    assert [width for _, width in four.spans] == [1, 2, 1, 1, 1, 1]
    assert row(four, "q0") == ["1", "1", *["+200.00▲"] * 4]
    assert three.note.endswith("add up to Relative Δ. Beside them nDCG@1 of each group in %.")
    assert four.note.endswith("add up to Relative Δ.")


def test_long_queries_are_cut_and_blank_ones_go_by_their_id() -> None:
    collection = toy()
    queries = collection.queries.with_columns(text=pl.Series(["x" * 121, "y" * 120, " "]))
    found = table(Collection(collection.docs, queries, collection.qrels))
    assert {(r[0].text, r[0].note) for r in found.rows} == {("x" * 119 + "…", "q1"), ("y" * 120, "q2"), ("q3", "")}


def test_one_query_is_called_the_query() -> None:
    collection = twins(1)
    found = explored(opened(collection, [{"q0": {"0-human": 1.0}}])).block
    assert found.rows.caption.startswith("The query, ")
    assert found.says.startswith("The audit's only query. Each list shows the first 10 results of 1 ranker, ")
