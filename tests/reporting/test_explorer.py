"""The explorer as a page carries it: its content for the toy, what it says of itself, hostile
material, its rows.
"""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from ranktilt import Collection, Run, load, ranker
from ranktilt.auditing.breakdown import contributions
from ranktilt.data.labels.labels import labelled
from ranktilt.reporting.document import Table
from ranktilt.reporting.explorer.section import MOST, explorer
from ranktilt.reporting.reload import LoadedAudit
from ranktilt.reporting.tones import LOOKS
from tests.reporting.audits import twins
from tests.reporting.openings import explored, toy_opened
from tests.toy import QUERIES, TEXTS, toy


def test_names_sizes_values_and_tilt_parts_are_the_audits() -> None:
    judged = toy_opened()
    content = explored(judged).lists
    assert (content["version"], content["by"], content["groups"], content["pairs"]) == (
        1,
        "source",
        ["human", "llm"],
        [["human", "llm"]],
    )
    assert (content["measures"], content["runs"]) == (["nDCG@1", "AP@3"], ["first", "second"])
    assert (content["shown"], content["of"], content["depth"]) == (3, 3, 10)
    queries = {query["id"]: query for query in content["queries"]}
    assert {name: query["text"] for name, query in queries.items()} == QUERIES
    assert {name: query["relevant"] for name, query in queries.items()} == {
        "q1": 4,
        "q2": 2,
        "q3": 2,
    }
    order = [judged.audit.queries.index(query["id"]) for query in content["queries"]]
    np.testing.assert_allclose(
        np.array(content["values"], dtype=float), judged.audit.values[..., order], rtol=1e-4
    )
    for tilt in judged.audit.tilts:
        run, number = content["runs"].index(tilt.run), content["measures"].index(tilt.measure)
        carried = np.array(content["tilt"][run][0][number], dtype=float)
        expected = contributions(judged.audit, tilt.run, tilt.measure, "human", "llm")
        np.testing.assert_allclose(carried, expected[order], rtol=1e-4)
        assert np.nansum(carried) == pytest.approx(tilt.value, rel=1e-4)


def test_what_is_undefined_is_null() -> None:
    collection = toy()
    one_sided = collection.qrels.filter(
        (pl.col("query_id") != "q1") | pl.col("doc_id").str.ends_with("-human")
    )
    one_sided_view = explored(
        toy_opened(Collection(collection.docs, collection.queries, one_sided))
    )
    content = one_sided_view.lists
    at = [query["id"] for query in content["queries"]].index("q1")
    assert rows(one_sided_view.block.rows)["q1"][0] == "–"
    assert content["tilt"][0][0][0][at] is None
    assert [side[at] for side in content["values"][0][0]] == [1.0, 1.0, None]
    assert content["queries"][at]["relevant"] == 2


def test_heads_count_relevant_twins_and_are_null_where_none_met() -> None:
    view = explored()
    content = view.lists
    heads = [
        dict(zip([q["id"] for q in content["queries"]], run[0], strict=True))
        for run in content["heads"]
    ]
    # q1 retrieves the human side of d3 alone, which is a win.
    assert heads[0] == {"q1": [2, 0, 0], "q2": [0, 1, 0], "q3": [1, 0, 0]}
    assert heads[1] == {"q1": None, "q2": [0, 0, 1], "q3": [0, 1, 0]}
    # The second run lacks q1: an empty list, and its relevant documents.
    assert view.list(1, "q1")["found"] == 0
    assert view.docs(1, "q1", 1) == [None] * 4
    assert set(view.docs(1, "q1")) == {"d1-human", "d1-llm", "d3-human", "d3-llm"}


def test_documents_name_their_twins_both_ways_and_have_their_texts() -> None:
    view = explored()
    docs = view.lists["docs"]
    pairs = {docs["id"][i]: [docs["id"][j] for j in of] for i, of in enumerate(docs["twins"])}
    both = (("human", "llm"), ("llm", "human"))
    assert pairs == {f"{d}-{s}": [f"{d}-{t}"] for d in ("d1", "d2", "d3") for s, t in both}
    assert docs["group"] == [0 if name.endswith("human") else 1 for name in docs["id"]]
    assert "source" not in docs
    texts = [text for texts in TEXTS.values() for text in texts.values()]
    assert [view.text(f"{doc}-{side}") for side in TEXTS for doc in TEXTS[side]] == texts
    assert docs["title"][docs["id"].index("d2-llm")] == "Rivers"
    assert view.block.description == (
        "All 3 queries of the audit. Each list shows the first 10 results of 2 rankers, and "
        "relevant documents and the twins of listed documents further down."
    )


def test_missing_rankers_are_counted_and_none_is_no_explorer() -> None:
    opened_audit = toy_opened()
    part = explored(LoadedAudit(opened_audit.audit, opened_audit.collection, opened_audit.runs[1:]))
    assert "of 1 of 2 rankers," in part.block.description
    assert part.lists["runs"] == ["second"]
    sizes = {len(part.lists[name]) for name in ("values", "tilt", "heads", "lists")}
    assert sizes == {1}
    assert part.lists["heads"][0][0].count(None) == 1
    assert explorer(LoadedAudit(opened_audit.audit, None, ())) is None
    assert explorer(LoadedAudit(opened_audit.audit, opened_audit.collection, ())) is None


def test_a_small_budget_carries_the_queries_that_bring_most() -> None:
    rng = np.random.default_rng(1)
    collection = twins(60)
    letters = [" ".join(map(str, rng.integers(0, 10**9, 200))) for _ in range(120)]
    collection = Collection(
        collection.docs.with_columns(text=pl.Series(letters)), collection.queries, collection.qrels
    )
    # Only in every sixth query is the human version above the other; elsewhere both are tied.
    lists = {f"q{n}": {f"{n}-human": 1.0 + (n % 6 == 0), f"{n}-llm": 1.0} for n in range(60)}
    budget = 3_600
    view = explored(toy_opened(collection, [lists]), budget=budget)
    content = view.lists
    assert len(view.block.lists) + len(view.block.texts) <= budget
    assert (content["shown"], content["of"]) == (len(content["queries"]), 60)
    assert 10 < content["shown"] < 60
    assert {query["id"] for query in content["queries"][:10]} == {f"q{n}" for n in range(0, 60, 6)}
    assert view.block.description.startswith(
        f"{content['shown']} of 60 queries: those that contribute most to some ranker's Relative Δ "
        "(nDCG@1, human against "
        "llm). All of them would make the page too large."
    )
    assert len(view.texts or []) < 2 * content["shown"] == len(content["docs"]["id"])
    assert (
        f"The page includes the texts of {len(view.texts or [])} of {2 * content['shown']} "
        "documents" in view.block.description
    )
    known = dict(zip(collection.ids, letters, strict=True))
    assert view.texts == [known[doc] for doc in content["docs"]["id"]][: len(view.texts)]
    least = explored(budget=1).lists
    assert least["shown"] == len(least["queries"]) == 1, "one query is carried whatever it takes"


def test_documents_without_text_and_labels_alone_have_no_texts(tmp_path: Path) -> None:
    collection = toy()
    bare = Collection(
        collection.docs.with_columns(text=pl.lit("")), collection.queries, collection.qrels
    )
    view = explored(toy_opened(bare))
    assert view.block.texts == ""
    assert view.block.description.endswith(" The documents have no texts to show.")
    labels = tmp_path / "labels.csv"
    labels.write_text("doc_id,gender,origin\nd1,m,d1\nd2,f,d1\nd3,f,d3\n")
    frame = pl.DataFrame(
        {"query_id": ["q"] * 3, "doc_id": ["d1", "d2", "d3"], "score": [3.0, 2.0, 1.0]}
    )
    run = Run.from_frame(frame, spec={"ranker": "r"})
    collection = labelled(labels, [run], by="gender")
    view = explored(toy_opened(collection, runs=[run], measures=None, by="gender", card=True))
    assert view.docs(0, "q") == ["d1", "d2", "d3"]
    assert view.lists["groups"] == ["f", "m"]
    assert view.block.texts == ""
    assert "text" not in view.block.description
    assert view.block.caption == "Queries and ranked lists"


def test_heads_without_judgments_count_twins_and_without_groups_values() -> None:
    collection = toy()
    bare = Collection(collection.docs, collection.queries, collection.qrels.clear())
    view = explored(toy_opened(bare, measures=None, card=True))
    content = view.lists
    assert content["measures"] == []
    assert content["tilt"] == [[[]], [[]]]
    assert dict(zip([q["id"] for q in content["queries"]], content["heads"][0][0], strict=True))[
        "q1"
    ] == [2, 0, 0]
    assert "and the twins of listed documents further down" in view.block.description
    assert [c.title for c in view.block.rows.columns] == ["query", "human : llm", "human : llm"]
    assert rows(view.block.rows) == {
        "q1": ["2 : 0", "–"],
        "q2": ["0 : 1", "0 : 0"],
        "q3": ["1 : 0", "0 : 1"],
    }
    assert view.block.rows.caption.endswith(
        "first those in which the twins of human and llm differ most"
    )
    view = explored(toy_opened(by=None))
    content = view.lists
    assert (content["by"], content["groups"], content["pairs"]) == ("", [], [])
    assert [query["id"] for query in content["queries"]] == ["q1", "q2", "q3"]
    assert content["tilt"] == [[], []]
    assert [query["relevant"] for query in content["queries"]] == [4, 2, 2]
    assert set(content["docs"]["group"]) == {-1}
    assert content["docs"]["source"][0] == "human"
    assert [c.title for c in view.block.rows.columns] == ["query", "nDCG@1", "nDCG@1"]
    assert view.block.rows.caption == "All 3 queries"
    assert rows(view.block.rows)["q1"] == ["100.0", "0.0"]


def test_other_groups_carry_source_and_three_sources_make_pairs() -> None:
    collection = toy()
    side = pl.Series("side", ["x", "y", "x", "y", "x", "y"])
    judged = Collection(collection.docs.with_columns(side), collection.queries, collection.qrels)
    docs = explored(toy_opened(judged, by="side")).lists["docs"]
    assert dict(zip(docs["id"], docs["source"], strict=True))["d2-llm"] == "llm"
    pairs = {docs["id"][i]: [docs["id"][j] for j in of] for i, of in enumerate(docs["twins"])}
    assert pairs["d1-human"] == ["d1-llm"]  # x and y
    assert docs["group"][docs["id"].index("d1-human")] == 0
    collection = twins(4, ("human", "llama", "gpt"))
    lists = {f"q{n}": {f"{n}-human": 3.0, f"{n}-gpt": 2.0, f"{n}-llama": 2.0} for n in range(4)}
    content = explored(toy_opened(collection, [lists])).lists
    assert content["pairs"] == [["human", "gpt"], ["human", "llama"], ["gpt", "llama"]]
    assert np.array(content["tilt"]).shape == (1, 3, 2, 4)
    assert {len(of) for of in content["docs"]["twins"]} == {2}
    assert content["heads"][0][2] == [[0, 0, 1]] * 4


def test_documents_that_the_collection_lacks_have_neither_group_nor_text() -> None:
    frame = pl.DataFrame(
        {"query_id": ["q1"] * 2, "doc_id": ["elsewhere", "d1-llm"], "score": [3.0, 2.0]}
    )
    judged = toy()
    extra = pl.DataFrame(
        {"query_id": ["q1"], "doc_id": ["nowhere"], "grade": [1]}, schema=judged.qrels.schema
    )
    collection = Collection(judged.docs, judged.queries, pl.concat([judged.qrels, extra]))
    view = explored(toy_opened(collection, runs=[Run.from_frame(frame, spec={"ranker": "r"})]))
    docs = view.lists["docs"]
    assert view.docs(0, "q1")[:2] == ["elsewhere", "d1-llm"]
    for strange in ("elsewhere", "nowhere"):
        at = docs["id"].index(strange)
        assert (docs["group"][at], docs["title"][at], docs["twins"][at], view.texts[at]) == (
            -1,
            "",
            [],
            None,
        )
    assert [query["relevant"] for query in view.lists["queries"] if query["id"] == "q1"] == [5]
    assert view.docs(0, "q1", 4)[view.docs(0, "q1").index("nowhere")] == 1


HOSTILE = [
    "</script><script>alert(1)</script>",
    "\x00\x01\x1b[31m\x7f",
    "‮desrever‬ ⁦x⁩",
    "{{ 7 * 7 }} {% raw %} <!-- ]]>",
    "\u2028\u2029 \ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"),
    "\\u0000 \\\" '",
]


def test_hostile_texts_stay_as_they_are_and_long_ones_are_cut() -> None:
    collection = toy()
    docs = collection.docs.with_columns(text=pl.Series(HOSTILE), title=pl.Series(HOSTILE[::-1]))
    queries = collection.queries.with_columns(text=pl.Series(HOSTILE[:3]))
    view = explored(toy_opened(Collection(docs, queries, collection.qrels)))
    assert [view.text(name) for name in docs["id"]] == HOSTILE
    assert {query["text"] for query in view.lists["queries"]} == set(HOSTILE[:3])
    assert re.fullmatch(r"[A-Za-z0-9+/=]+", view.block.lists + view.block.texts)
    collection = toy()
    texts = ["é" * 2_000_000, "é" * 20_000, "x" * 20_001, "x", "x", "x"]
    queries = collection.queries.with_columns(
        text=pl.Series(["y" * 2_001, "y" * 2_000, "é" * 2_000])
    )
    docs = collection.docs.with_columns(text=pl.Series(texts), title=pl.lit("t" * 501))
    view = explored(toy_opened(Collection(docs, queries, collection.qrels)))
    assert view.text("d1-human") == {"text": "é" * 20_000, "of": 2_000_000}
    assert view.text("d2-human") == "é" * 20_000
    assert view.text("d3-human") == {"text": "x" * 20_000, "of": 20_001}
    assert view.block.description.endswith(" 2 texts are cut after 20,000 characters.")
    assert {q["id"]: q["text"][1999:] for q in view.lists["queries"]} == {
        "q1": "y…",
        "q2": "y",
        "q3": "é",
    }
    assert set(view.lists["docs"]["title"]) == {"t" * 500 + "…"}


@pytest.mark.data
def test_all_queries_of_nfcorpus_with_two_rankers_fit(shared_data: Path) -> None:
    collection = load(shared_data / "cocktail-nfcorpus")
    runs = [ranker(name).rank(collection) for name in ("tfidf", "bm25")]
    opened_audit = toy_opened(collection, runs=runs, measures=["nDCG@1"])
    view = explored(opened_audit)
    assert view.lists["shown"] == view.lists["of"] == 323
    assert len(view.block.lists) + len(view.block.texts) <= 5_000_000
    sums = np.nansum(np.array(view.lists["tilt"], dtype=float), axis=-1)[:, 0, 0]
    np.testing.assert_allclose(sums, [tilt.value for tilt in opened_audit.audit.tilts], rtol=1e-3)
    assert json.dumps(view.lists["docs"]["twins"]).count("[]") == 0


def rows_of(*args: Any, **options: Any) -> Table:
    return explored(toy_opened(*args, **options)).block.rows


def rows(table: Table) -> dict[str, list[str]]:
    """Texts, with signs, of each query's row after its first cell."""
    return {
        r.cells[0].note or r.cells[0].text: [
            cell.text + LOOKS[cell.tone].sign for cell in r.cells[1:]
        ]
        for r in table.rows
    }


def test_rankers_show_unrounded_tilt_part_in_their_tone() -> None:
    # nDCG@1 of the first run: human 1, 0, 1 and LLM 0, 1, 0, so that each query brings 200 / 3
    # points. The second has q1 at 0, q2 tied at 0.5 each, and LLM text first for q3: 200 · (−1) / 2
    # points.
    table_rows = rows_of()
    assert rows(table_rows) == {
        "q1": ["+66.67▲", "0.00"],
        "q2": ["−66.67▼", "0.00"],
        "q3": ["+66.67▲", "−100.00▼"],
    }
    assert [r.cells[0].text for r in table_rows.rows] == [
        "old clock bell",
        "red apples",
        "river water",
    ]
    assert [c.title for c in table_rows.columns] == [
        "query",
        "part of Relative Δ",
        "part of Relative Δ",
    ]
    assert table_rows.spans == (("", 1), ("first", 1), ("second", 1))
    assert table_rows.columns[1].hint == "points of Relative Δ from this query; positive for human"
    why = "first those that contribute most to some ranker's Relative Δ (nDCG@1, human against llm)"
    assert table_rows.caption == f"All 3 queries, {why}"
    audit = toy_opened().audit
    cells = {r.cells[0].note: r.cells[1] for r in table_rows.rows}
    parts = contributions(audit, "first", "nDCG@1", "human", "llm").tolist()
    assert [cells[query].value for query in audit.queries] == parts
    assert [cells[query].tone for query in audit.queries] == ["first", "second", "first"]


def test_at_most_fifty_queries_are_shown_and_blank_by_id() -> None:
    collection = twins(MOST + 7)
    lists = {f"q{n}": {f"{n}-human": 1.0, f"{n}-llm": 1.0} for n in range(MOST + 6)}
    lists[f"q{MOST + 6}"] = {f"{MOST + 6}-llm": 1.0}
    table_rows = rows_of(collection, [lists])
    assert len(table_rows.rows) == MOST
    assert table_rows.rows[0].cells[0].note == f"q{MOST + 6}"
    assert table_rows.caption.startswith("50 of 57 queries, ")
    collection = toy()
    queries = collection.queries.with_columns(text=pl.Series(["x" * 121, "y" * 120, " "]))
    table_rows = rows_of(Collection(collection.docs, queries, collection.qrels))
    heads = {(r.cells[0].text, r.cells[0].note) for r in table_rows.rows}
    assert heads == {("x" * 119 + "…", "q1"), ("y" * 120, "q2"), ("q3", "")}
