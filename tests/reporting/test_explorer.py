"""The explorer as a page carries it: its content for the toy, what it says of itself, and hostile material."""

import json
import re

import numpy as np
import polars as pl
import pytest

from ranktilt import Collection, Run
from ranktilt.auditing.breakdown import contributions
from ranktilt.reporting.explorer.section import explorer
from ranktilt.reporting.reload import LoadedAudit
from tests.reporting.audits import twins
from tests.reporting.explored import FIRST, SECOND, explored, opened
from tests.toy import QUERIES, TEXTS, toy


def test_names_and_sizes_are_told() -> None:
    told = explored().lists
    assert told["version"] == 1
    assert told["by"] == "source"
    assert told["groups"] == ["human", "llm"]
    assert told["pairs"] == [["human", "llm"]]
    assert told["measures"] == ["nDCG@1", "AP@3"]
    assert told["runs"] == ["first", "second"]
    assert (told["shown"], told["of"], told["depth"]) == (3, 3, 10)


def test_queries_carry_their_text_and_how_many_documents_are_relevant() -> None:
    told = {query["id"]: query for query in explored().lists["queries"]}
    assert {name: query["text"] for name, query in told.items()} == QUERIES
    assert {name: query["relevant"] for name, query in told.items()} == {"q1": 4, "q2": 2, "q3": 2}


def test_values_are_the_audits_for_all_documents_and_for_each_group() -> None:
    given = opened()
    told = explored(given).lists
    order = [given.audit.queries.index(query["id"]) for query in told["queries"]]
    carried = np.array(told["values"], dtype=float)
    np.testing.assert_allclose(carried, given.audit.values[..., order], rtol=1e-4)


def test_parts_of_the_tilt_are_the_contributions_and_add_up_to_it() -> None:
    given = opened()
    told = explored(given).lists
    order = [given.audit.queries.index(query["id"]) for query in told["queries"]]
    for tilt in given.audit.tilts:
        run, number = told["runs"].index(tilt.run), told["measures"].index(tilt.measure)
        carried = np.array(told["tilt"][run][0][number], dtype=float)
        expected = contributions(given.audit, tilt.run, tilt.measure, "human", "llm")
        np.testing.assert_allclose(carried, expected[order], rtol=1e-4)
        assert np.nansum(carried) == pytest.approx(tilt.value, rel=1e-4)


def test_what_is_undefined_is_null() -> None:
    collection = toy()
    one_sided = collection.qrels.filter((pl.col("query_id") != "q1") | pl.col("doc_id").str.ends_with("-human"))
    told = explored(opened(Collection(collection.docs, collection.queries, one_sided))).lists
    at = [query["id"] for query in told["queries"]].index("q1")
    assert told["tilt"][0][0][0][at] is None
    assert [side[at] for side in told["values"][0][0]] == [1.0, 1.0, None]
    assert told["queries"][at]["relevant"] == 2


def test_heads_count_relevant_twins_and_are_null_where_none_met() -> None:
    told = explored().lists
    heads = [dict(zip([q["id"] for q in told["queries"]], run[0], strict=True)) for run in told["heads"]]
    # q1 retrieves the human side of d3 alone, which is a win.
    assert heads[0] == {"q1": [2, 0, 0], "q2": [0, 1, 0], "q3": [1, 0, 0]}
    assert heads[1] == {"q1": None, "q2": [0, 0, 1], "q3": [0, 1, 0]}


def test_documents_name_their_twins_both_ways() -> None:
    docs = explored().lists["docs"]
    pairs = {docs["id"][i]: [docs["id"][j] for j in of] for i, of in enumerate(docs["twins"])}
    assert pairs == {
        f"{d}-{s}": [f"{d}-{t}"] for d in ("d1", "d2", "d3") for s, t in (("human", "llm"), ("llm", "human"))
    }
    assert docs["group"] == [0 if name.endswith("human") else 1 for name in docs["id"]]
    assert "source" not in docs


def test_texts_stand_beside_their_documents() -> None:
    found = explored()
    assert [found.text(f"{doc}-{side}") for side in TEXTS for doc in TEXTS[side]] == [
        text for texts in TEXTS.values() for text in texts.values()
    ]
    assert found.lists["docs"]["title"][found.lists["docs"]["id"].index("d2-llm")] == "Rivers"


def test_all_queries_of_a_small_audit_are_carried_and_it_says_so() -> None:
    assert explored().block.says == (
        "All 3 queries of the audit. Each list shows the first 10 results of 2 rankers, and where relevant documents "
        "and the twins of what is listed stand further down."
    )


def test_it_says_how_many_rankers_could_not_be_had() -> None:
    whole = opened()
    part = explored(LoadedAudit(whole.audit, whole.collection, whole.runs[1:]))
    assert "of 1 of 2 rankers," in part.block.says
    assert part.lists["runs"] == ["second"]
    assert (
        len(part.lists["values"])
        == len(part.lists["tilt"])
        == len(part.lists["heads"])
        == len(part.lists["lists"])
        == 1
    )
    assert part.lists["heads"][0][0].count(None) == 1


@pytest.mark.parametrize("gone", ["collection", "runs"])
def test_there_is_none_without_collection_or_runs(gone: str) -> None:
    whole = opened()
    assert explorer(LoadedAudit(whole.audit, None if gone == "collection" else whole.collection, ())) is None


def test_a_small_budget_carries_the_queries_that_bring_most() -> None:
    rng = np.random.default_rng(1)
    collection = twins(60)
    letters = [" ".join(map(str, rng.integers(0, 10**9, 200))) for _ in range(120)]
    collection = Collection(collection.docs.with_columns(text=pl.Series(letters)), collection.queries, collection.qrels)
    # Only in every sixth query is the human version above the other; elsewhere both are tied.
    lists = {f"q{n}": {f"{n}-human": 1.0 + (n % 6 == 0), f"{n}-llm": 1.0} for n in range(60)}
    budget = 3_600
    found = explored(opened(collection, [lists]), budget=budget)
    told = found.lists
    assert len(found.block.lists) + len(found.block.texts) <= budget
    assert (told["shown"], told["of"]) == (len(told["queries"]), 60)
    assert 10 < told["shown"] < 60
    assert {query["id"] for query in told["queries"][:10]} == {f"q{n}" for n in range(0, 60, 6)}
    assert found.block.says.startswith(
        f"{told['shown']} of 60 queries: those that contribute most to some ranker's Relative Δ (nDCG@1, human against "
        "llm). With all, the page would be too large."
    )
    assert len(found.texts or []) < 2 * told["shown"] == len(told["docs"]["id"])
    assert f"Texts are those of {len(found.texts or [])} of {2 * told['shown']} documents" in found.block.says


def test_one_query_is_carried_whatever_it_takes() -> None:
    told = explored(budget=1).lists
    assert told["shown"] == len(told["queries"]) == 1


def test_documents_without_text_are_no_texts() -> None:
    collection = toy()
    bare = Collection(collection.docs.with_columns(text=pl.lit("")), collection.queries, collection.qrels)
    found = explored(opened(bare))
    assert found.block.texts == ""
    assert found.block.says.endswith(" There are no texts to show: the documents have none.")


def test_labels_alone_have_no_texts(tmp_path) -> None:
    from ranktilt.datasets.labels import labelled

    labels = tmp_path / "labels.csv"
    labels.write_text("doc_id,gender,origin\nd1,m,d1\nd2,f,d1\nd3,f,d3\n")
    run = Run.from_frame(
        pl.DataFrame({"query_id": ["q"] * 3, "doc_id": ["d1", "d2", "d3"], "score": [3.0, 2.0, 1.0]}),
        spec={"ranker": "r"},
    )
    collection = labelled(labels, [run], by="gender")
    found = explored(opened(collection, runs=[run], measures=None, by="gender", card=True))
    assert found.docs(0, "q") == ["d1", "d2", "d3"]
    assert found.lists["groups"] == ["f", "m"]
    assert found.block.texts == ""
    assert found.block.says.endswith(" There are no texts to show: only the documents' labels are known.")


def test_without_judgments_heads_count_all_twins() -> None:
    collection = toy()
    bare = Collection(collection.docs, collection.queries, collection.qrels.clear())
    found = explored(opened(bare, measures=None, card=True))
    told = found.lists
    assert told["measures"] == []
    assert told["tilt"] == [[[]], [[]]]
    assert dict(zip([q["id"] for q in told["queries"]], told["heads"][0][0], strict=True))["q1"] == [2, 0, 0]
    assert "where the twins of what is listed stand further down" in found.block.says


def test_without_groups_there_are_values_and_lists() -> None:
    told = explored(opened(by=None)).lists
    assert (told["by"], told["groups"], told["pairs"]) == ("", [], [])
    assert [query["id"] for query in told["queries"]] == ["q1", "q2", "q3"]
    assert told["tilt"] == [[], []]
    assert [query["relevant"] for query in told["queries"]] == [4, 2, 2]
    assert set(told["docs"]["group"]) == {-1}
    assert told["docs"]["source"][0] == "human"


def test_groups_of_another_column_carry_the_source_too() -> None:
    collection = toy()
    side = pl.Series("side", ["x", "y", "x", "y", "x", "y"])
    judged = Collection(collection.docs.with_columns(side), collection.queries, collection.qrels)
    docs = explored(opened(judged, by="side")).lists["docs"]
    assert dict(zip(docs["id"], docs["source"], strict=True))["d2-llm"] == "llm"
    pairs = {docs["id"][i]: [docs["id"][j] for j in of] for i, of in enumerate(docs["twins"])}
    assert pairs["d1-human"] == ["d1-llm"]  # x and y
    assert docs["group"][docs["id"].index("d1-human")] == 0


def test_three_sources_make_three_pairs_with_two_twins_each() -> None:
    collection = twins(4, ("human", "llama", "gpt"))
    lists = {f"q{n}": {f"{n}-human": 3.0, f"{n}-gpt": 2.0, f"{n}-llama": 2.0} for n in range(4)}
    told = explored(opened(collection, [lists])).lists
    assert told["pairs"] == [["human", "gpt"], ["human", "llama"], ["gpt", "llama"]]
    assert np.array(told["tilt"]).shape == (1, 3, 2, 4)
    assert {len(of) for of in told["docs"]["twins"]} == {2}
    assert told["heads"][0][2] == [[0, 0, 1]] * 4


def test_a_query_that_the_run_lacks_has_an_empty_list_and_its_relevant_documents() -> None:
    found = explored()
    assert found.list(1, "q1")["found"] == 0
    assert found.docs(1, "q1", 1) == [None] * 4
    assert set(found.docs(1, "q1")) == {"d1-human", "d1-llm", "d3-human", "d3-llm"}


def test_documents_that_the_collection_lacks_have_neither_group_nor_text() -> None:
    frame = pl.DataFrame({"query_id": ["q1"] * 2, "doc_id": ["elsewhere", "d1-llm"], "score": [3.0, 2.0]})
    judged = toy()
    extra = pl.DataFrame({"query_id": ["q1"], "doc_id": ["nowhere"], "grade": [1]}, schema=judged.qrels.schema)
    collection = Collection(judged.docs, judged.queries, pl.concat([judged.qrels, extra]))
    found = explored(opened(collection, runs=[Run.from_frame(frame, spec={"ranker": "r"})]))
    docs = found.lists["docs"]
    assert found.docs(0, "q1")[:2] == ["elsewhere", "d1-llm"]
    for strange in ("elsewhere", "nowhere"):
        at = docs["id"].index(strange)
        assert (docs["group"][at], docs["title"][at], docs["twins"][at], found.texts[at]) == (-1, "", [], None)
    assert [query["relevant"] for query in found.lists["queries"] if query["id"] == "q1"] == [5]
    assert found.docs(0, "q1", 4)[found.docs(0, "q1").index("nowhere")] == 1


HOSTILE = [
    "</script><script>alert(1)</script>",
    "\x00\x01\x1b[31m\x7f",
    "‮desrever‬ ⁦x⁩",
    "{{ 7 * 7 }} {% raw %} <!-- ]]>",
    "\u2028\u2029 \ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"),
    "\\u0000 \\\" '",
]


def test_hostile_texts_come_through_as_they_are_and_never_bare() -> None:
    collection = toy()
    docs = collection.docs.with_columns(text=pl.Series(HOSTILE), title=pl.Series(HOSTILE[::-1]))
    queries = collection.queries.with_columns(text=pl.Series(HOSTILE[:3]))
    found = explored(opened(Collection(docs, queries, collection.qrels)))
    assert [found.text(name) for name in docs["id"]] == HOSTILE
    assert {query["text"] for query in found.lists["queries"]} == set(HOSTILE[:3])
    assert re.fullmatch(r"[A-Za-z0-9+/=]+", found.block.lists + found.block.texts)


def test_long_texts_are_cut_and_it_says_so() -> None:
    collection = toy()
    texts = ["é" * 2_000_000, "é" * 20_000, "x" * 20_001, "x", "x", "x"]
    queries = collection.queries.with_columns(text=pl.Series(["y" * 2_001, "y" * 2_000, "é" * 2_000]))
    docs = collection.docs.with_columns(text=pl.Series(texts), title=pl.lit("t" * 501))
    found = explored(opened(Collection(docs, queries, collection.qrels)))
    assert found.text("d1-human") == {"text": "é" * 20_000, "of": 2_000_000}
    assert found.text("d2-human") == "é" * 20_000
    assert found.text("d3-human") == {"text": "x" * 20_000, "of": 20_001}
    assert found.block.says.endswith(" 2 texts are cut after 20,000 characters.")
    assert {q["id"]: q["text"][1999:] for q in found.lists["queries"]} == {"q1": "y…", "q2": "y", "q3": "é"}
    assert set(found.lists["docs"]["title"]) == {"t" * 500 + "…"}


def test_the_same_audit_gives_the_same_bytes() -> None:
    one, two = (explorer(opened(scores=[FIRST, SECOND])) for _ in range(2))
    assert one == two


@pytest.mark.data
def test_all_queries_of_nfcorpus_with_two_rankers_fit(shared_data) -> None:
    from ranktilt import load, ranker

    collection = load(shared_data / "cocktail-nfcorpus")
    runs = [ranker(name).rank(collection) for name in ("tfidf", "bm25")]
    given = opened(collection, runs=runs, measures=["nDCG@1"])
    found = explored(given)
    assert found.lists["shown"] == found.lists["of"] == 323
    assert len(found.block.lists) + len(found.block.texts) <= 5_000_000
    sums = np.nansum(np.array(found.lists["tilt"], dtype=float), axis=-1)[:, 0, 0]
    np.testing.assert_allclose(sums, [tilt.value for tilt in given.audit.tilts], rtol=1e-3)
    assert json.dumps(found.lists["docs"]["twins"]).count("[]") == 0
