"""A document that names no source has none, whatever file it came from."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import ranktilt as rt
from ranktilt.auditing.grouping.labels import grouping
from ranktilt.data.labels.labels import from_labels, with_labels
from ranktilt.data.labels.stated_sources import columns_of_few_values, with_named_side, with_source
from ranktilt.explaining.explain import explain
from ranktilt.reporting.sentences.checking.check import check_sentence
from ranktilt.reporting.sentences.notes import note_sentences
from tests.refusals import refused
from tests.toy import collection_of, toy, write, write_beir, write_run

QUERIES = pl.DataFrame({"id": ["q"], "text": ["x"]})
QRELS = pl.DataFrame({"query_id": ["q"], "doc_id": ["a"], "grade": [1]})


def collection(sources: Sequence[Any], **columns: Sequence[Any]) -> rt.Collection:
    """One document a source, called a, b, c, …"""
    ids = [chr(ord("a") + number) for number in range(len(sources))]
    docs = pl.DataFrame({"id": ids, "text": ids, "source": sources, **columns}, strict=False)
    return rt.Collection(docs, QUERIES, QRELS)


def test_column_of_different_values_names_no_source() -> None:
    docs = pl.DataFrame(
        {"id": ["a", "b", "c"], "kind": ["x", "y", "x"], "url": ["1", "2", "3"], "lone": ["z"] * 3}
    )
    assert columns_of_few_values(docs) == ["kind"]


@pytest.mark.parametrize(
    ("sources", "stated"),
    [
        ([None, None], [None, None]),
        (["ai", None], ["ai", None]),
        (["", "  "], [None, None]),  # blank is no name
        (["nan", "NaN"], [None, None]),  # what astype(str) makes of a missing value
        ([float("nan"), None], [None, None]),  # a column of pandas without a value
        (["None", "NA"], ["None", "NA"]),  # words that somebody wrote
        ([0, 1], ["source 0", "source 1"]),  # a bare number says nothing
    ],
)
def test_source_is_what_is_stated(sources: list[Any], stated: list[str | None]) -> None:
    documents = collection(sources)
    assert documents.docs["source"].to_list() == stated
    assert documents.sourceless == stated.count(None)
    assert documents.sources == tuple(dict.fromkeys(name for name in stated if name is not None))
    assert "human" not in repr(documents)


def test_collection_without_column_has_no_source() -> None:
    documents = rt.Collection(pl.DataFrame({"id": ["a"], "text": ["x"]}), QUERIES, QRELS)
    assert documents.docs["source"].to_list() == [None]
    assert repr(documents) == "Collection(1 without a source; 1 queries, 1 judgments)"


@pytest.mark.parametrize("parquet", [False, True])
@pytest.mark.parametrize("field", [{}, {"source": None}])
def test_files_without_source(tmp_path: Path, field: dict[str, None], parquet: bool) -> None:
    rows = [
        {"_id": "d1", "text": "red apples", **field},
        {"_id": "d2", "text": "a river", "source": "ai"},
    ]
    folder = write_beir(tmp_path / "c", docs=rows, qrels=[("q1", "d1", 1)])
    if parquet:
        (folder / "corpus.jsonl").unlink()
        (folder / "corpus").mkdir()
        pl.DataFrame(rows).write_parquet(folder / "corpus" / "0.parquet")
    loaded = rt.load(folder)
    assert loaded.docs["source"].to_list() == [None, "ai"]
    again = rt.load(rt.save(loaded, tmp_path / "again"))
    assert again == loaded
    assert "human" not in (tmp_path / "again" / "corpus.jsonl").read_text()


def test_folder_of_parquet_parts_without_any_source(tmp_path: Path) -> None:
    rows = [{"_id": "d1", "text": "red apples", "source": None}]
    folder = write_beir(tmp_path / "c", docs=rows, qrels=[("q1", "d1", 1)])
    loaded = rt.load(rt.save(rt.load(folder), tmp_path / "parts", rows_per_file=1))
    assert loaded.docs["source"].to_list() == [None]


def test_names_of_files_are_stated_sources(tmp_path: Path) -> None:
    write_beir(tmp_path / "c", docs=[])
    (tmp_path / "c" / "corpus.jsonl").unlink()
    for source in ("gpt", "human"):
        write(
            tmp_path / "c" / "corpus" / f"{source}.jsonl",
            json.dumps({"_id": "d1", "text": source}) + "\n",
        )
    loaded = rt.load(tmp_path / "c", qrels="none")
    assert loaded.docs.select("id", "source", "origin").rows() == [
        ("d1-human", "human", "d1-human"),
        ("d1-gpt", "gpt", "d1-human"),
    ]


def test_mix_keeps_ids_without_source_as_origins() -> None:
    plain = collection_of([{"id": "d1", "text": "by somebody"}], {"q": "x"}, {"q": {"d1": 2}})
    written = collection_of([{"id": "d1", "text": "by gpt", "source": "gpt"}], {"q": "x"}, {})
    mixed = rt.mix(plain, written)
    assert mixed.docs.select("id", "source", "origin").rows() == [
        ("d1", None, "d1"),
        ("d1-gpt", "gpt", "d1"),
    ]
    assert sorted(mixed.qrels.rows()) == [("q", "d1", 2), ("q", "d1-gpt", 2)]
    llama = collection_of([{"id": "d1", "text": "by llama", "source": "llama"}], {"q": "x"}, {})
    assert rt.mix(mixed, llama).docs["id"].to_list() == ["d1", "d1-gpt", "d1-llama"]
    sourceless = collection_of([{"id": "d1", "text": "by somebody else"}], {"q": "x"}, {})
    with refused(
        "cannot mix: document 'd1' differs between the collections; each version of a "
        "document needs its own source, in the field source"
    ):
        rt.mix(plain, sourceless)


def test_labels_leave_the_others_in_no_group(tmp_path: Path) -> None:
    table = pl.DataFrame({"doc_id": ["a", "b", "c"], "source": ["ai", None, "human"]})
    labelled = from_labels(table, queries=["q"])
    assert labelled.docs["source"].to_list() == ["ai", None, "human"]
    assert grouping(labelled, "source").unlabelled == 1
    genders = from_labels(table.select("doc_id", gender="source"), queries=["q"], by="gender")
    assert genders.sources == ()
    file = write(tmp_path / "labels.tsv", "doc_id\tsource\na\tai\nb\thuman\n")
    joined = with_labels(collection([None, None, None]), file, by="source")
    assert joined.docs["source"].to_list() == ["ai", "human", None]


def test_sources_chosen_keep_the_documents_without_one() -> None:
    chosen = collection(["human", "gpt", "llama", None]).only_sources(["human", "gpt"])
    assert chosen.docs["source"].to_list() == ["human", "gpt", None]


def test_one_group_is_left() -> None:
    groups = grouping(collection(["ai", None, "ai"]), "source", fewest=1)
    assert (groups.names, groups.code.tolist(), groups.unlabelled) == (("ai",), [0, -1, 0], 1)
    with refused(
        "nothing to compare: only source 'ai'; expected two sources or more, such as human and "
        "llm; 1 document has none"
    ):
        grouping(collection(["ai", None, "ai"]), "source")


def test_columns_that_could_be_the_source() -> None:
    documents = collection(
        [None] * 14,
        url=[f"u{number}" for number in range(14)],
        year=[2000 + number % 13 for number in range(14)],  # 13 values: more than groups would have
        model=["gpt", "llama", None, "gpt", *["claude"] * 10],
        is_ai=[True, False] * 7,
        language=["en"] * 14,
    )
    assert columns_of_few_values(documents.docs) == ["is_ai", "model"]
    with refused(
        "nothing to compare: the 14 documents have no source; column 'is_ai' (false, true) or "
        "'model' (claude, gpt, "
        "llama) could name it: ranktilt audit DIR --by is_ai or --by model; or name the source of "
        "each document (field source, or --groups FILE), or measure all together (--by none)"
    ):
        grouping(documents, "source")
    checked = rt.check(collection([None]))
    assert note_sentences(checked.notes) == (
        "the 1 document has no source, and no column has few enough values to name it",
        "texts are not checked: no document names its source",
    )
    assert not checked.fair


def test_check_of_one_source_compares_nothing() -> None:
    checked = rt.check(collection(["ai", None, "ai"]))
    assert not checked.fair
    assert (checked.reference, checked.sources) == ("", ("ai",))
    rows = {row.name: (row.count, row.total, row.verdict) for row in checked.faults}
    assert rows["cut-off endings"] == (
        2,
        2,
        "warning",
    )  # no limit is applied, for nothing can be void
    assert "pairs missing a side" not in rows
    assert (
        check_sentence(checked)
        == "Nothing is compared: only source 'ai' is left; 1 warning: cut-off endings."
    )


def test_check_of_two_sources_counts_the_others() -> None:
    docs = toy().docs.vstack(
        toy().docs.head(1).with_columns(id=pl.lit("more"), source=pl.lit(None, pl.String))
    )
    checked = rt.check(rt.Collection(docs, toy().queries, toy().qrels))
    assert "1 document without source, so in no group" in note_sentences(checked.notes)
    assert [row.value for row in checked.faults] == pytest.approx(
        [row.value for row in rt.check(toy()).faults], nan_ok=True
    )


def test_contents_have_a_row_without_source() -> None:
    checked = rt.check(collection(["ai", None, None], origin=["a", "a", "b"]))
    rows = [(row.source, row.documents, row.twins) for row in checked.contents.sources]
    assert rows == [
        ("ai", 1, 0),
        (None, 2, 0),
    ]  # one of them has the origin of ai's, and is no source's twin
    assert note_sentences(checked.notes) == ("2 documents without source, so in no group",)
    plain = rt.check(collection([None, None, None], is_ai=[True, False, True]))
    assert note_sentences(plain.notes) == (
        (
            "the 3 documents have no source; column 'is_ai' (false, true) could name it: ranktilt "
            "audit DIR --by is_ai"
        ),
        "texts are not checked: no document names its source",
    )


def test_explain_leaves_the_others_out_and_says_so() -> None:
    docs = toy().docs.vstack(
        toy().docs.head(1).with_columns(id=pl.lit("more"), source=pl.lit(None, pl.String))
    )
    partial = rt.Collection(docs, toy().queries, toy().qrels)
    explained = explain(partial, probes=["words", "perplexity"])
    assert [result.rows for result in explained.results] == [
        result.rows for result in explain(toy(), probes=["words", "perplexity"]).results
    ]
    assert note_sentences(explained.notes)[-1] == "1 document without source, so in no group"


def test_named_side_is_that_of_all_documents_or_none() -> None:
    human = with_named_side(collection([None, None]), "human")
    assert human.docs["source"].to_list() == ["human", "human"]
    assert human.spec["named_source"] == {"source": "human", "documents": 2}
    stated = collection(["ai", None])
    assert with_named_side(stated, "human") is stated
    assert with_source(stated, "human").docs["source"].to_list() == ["ai", "human"]


def test_audit_of_documents_with_and_without_source(tmp_path: Path) -> None:
    """The version without a source is first, then ai's (1/log2 3 = .631), then human's (.5)."""
    docs, qrels, scores = (
        list[dict[str, Any]](),
        dict[str, dict[str, int]](),
        dict[str, dict[str, float]](),
    )
    for number in range(6):
        names = {f"{number}{source}": source for source in (None, "ai", "human")}
        docs += [
            {"id": name, "text": name, "source": source, "origin": str(number)}
            for name, source in names.items()
        ]
        qrels[f"q{number}"] = dict.fromkeys(names, 1)
        scores[f"q{number}"] = {name: 3.0 - rank for rank, name in enumerate(names)}
    partial = collection_of(docs, {query: f"x{query}" for query in qrels}, qrels)
    run = rt.Run.load(write_run(tmp_path / "run.trec", scores))
    audited = rt.audit(partial, run, "nDCG@10")
    assert audited.groups == ("all", "human", "ai")
    (tilt,) = audited.tilts
    assert tilt.value == pytest.approx(
        200 * (0.5 - 0.63093) / (0.5 + 0.63093), abs=1e-3
    )  # -23.2: favours ai
    assert "6 documents without source, so in no group" in note_sentences(audited.notes)
    sourceless = pl.col("source").replace({"human": None})
    one_left = rt.audit(
        rt.Collection(partial.docs.with_columns(sourceless), partial.queries, partial.qrels),
        run,
        "nDCG@10",
    )
    means = {row["group"]: row["mean"] for row in one_left.by_group().iter_rows(named=True)}
    assert means == {"all": pytest.approx(1.0), "ai": pytest.approx(0.63093, abs=1e-5)}
    assert one_left.tilts == ()
    assert note_sentences(one_left.notes) == (
        "12 documents without source, so in no group",
        "only source 'ai' is left, so there is nothing to compare",
    )
    unjudged = rt.audit(
        rt.Collection(one_left_docs(partial), partial.queries, partial.qrels.clear()), run
    )
    assert (
        note_sentences(unjudged.notes)[2]
        == "run: ai holds 33.3 % of the first 10 ranks (mean of 6 queries)"
    )


def one_left_docs(collection: rt.Collection) -> pl.DataFrame:
    """The documents with ai as their only source."""
    return collection.docs.with_columns(source=pl.when(pl.col("source") == "ai").then("source"))
