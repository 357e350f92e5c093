"""Judged documents only, and what loading shares between folders and libraries."""

from pathlib import Path

import polars as pl
import pytest

from ranktilt.datasets.assemble import judged, only_judged, read_rows, unjudged
from ranktilt.datasets.load import load
from ranktilt.errors import DataError, UserError
from tests.datasets.hub_cache import rows
from tests.refusals import refused
from tests.toy import collection_of, raw_docs, write, write_beir, write_cocktail


def test_a_judged_document_stays_with_its_versions(tmp_path: Path) -> None:
    docs = [
        {"id": "a", "text": "x", "source": "human"},
        {"id": "a2", "text": "y", "source": "llm", "origin": "a"},
        {"id": "b", "text": "z", "source": "human"},
        {"id": "b2", "text": "w", "source": "llm", "origin": "b"},
    ]
    kept = only_judged(collection_of(docs, {"q": "x"}, {"q": {"a2": 0}}))
    assert kept.ids.to_list() == ["a", "a2"]
    assert (kept.spec["docs"], kept.spec["docs_of"]) == ("judged", 4)
    assert kept.qrels.rows() == [("q", "a2", 0)]


def test_only_judged_of_a_folder(tmp_path: Path) -> None:
    collection = load(write_cocktail(tmp_path, qrels=[("q1", "d2", 1)]), docs="judged")
    assert collection.ids.to_list() == ["d2-human", "d2-llm"]


def test_only_judged_needs_judgments(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^docs 'judged' needs judgments, and there are none$"):
        load(write_beir(tmp_path), qrels="none", docs="judged")


def test_another_choice_of_documents_is_refused(tmp_path: Path) -> None:
    with refused("unknown choice of documents 'juged'; did you mean 'judged'? (valid: all, judged)"):
        load(write_beir(tmp_path), docs="juged")


def test_rows_of_either_kind_are_one(tmp_path: Path) -> None:
    write_beir(tmp_path)
    write(tmp_path / "corpus.parquet", rows(raw_docs()))
    assert read_rows(tmp_path / "corpus.parquet").equals(read_rows(tmp_path / "corpus.jsonl"))


def test_judgments_without_lines_are_counted_as_pairs() -> None:
    docs = pl.DataFrame({"id": ["a"], "text": ["x"], "source": ["human"], "origin": ["a"]})
    queries = pl.DataFrame({"id": ["q"], "text": ["x"]})
    qrels = pl.DataFrame({"query_id": ["q", "q", "r"], "doc_id": ["b", "c", "b"], "grade": [1, 1, 1]})
    with refused(
        "irds:x: 3 judgments of 2 unknown documents (first: 'b'); 1 judgment of 1 unknown query (first: 'r'); "
        "--ignore-unknown (ignore_unknown=True) keeps them out of group measures",
        DataError,
    ):
        judged((docs, docs["id"]), queries, qrels, "irds:x", spec={})
    kept = judged((docs, docs["id"]), queries, qrels, "irds:x", spec={}, ignore_unknown=True)
    assert (kept.qrels.height, kept.spec["ignore_unknown"]) == (3, True)


def test_without_judgments() -> None:
    docs = pl.DataFrame({"id": ["a"], "text": ["x"]})
    assert unjudged(docs, docs, {"path": "p"}).qrels.height == 0
