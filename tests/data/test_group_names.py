"""How groups are called: by their labels, and by column and label where a label says nothing."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import ranktilt as rt
from ranktilt.data.labels.group_names import bare_labels, group_name, label_text, name_among
from ranktilt.data.labels.labels import with_names
from tests.toy import collection_of


@pytest.mark.parametrize(
    ("column", "label", "name"),
    [
        ("source", "1", "source 1"),
        ("source", "human", "human"),
        ("is_ai", "true", "is_ai true"),
        ("grade", "-2.5", "grade -2.5"),
        ("grade", "1|2", "grade 1|2"),
        ("grade", "non-1", "non-grade 1"),
        ("grade", "1|none", "1|none"),
        ("kind", "gpt-4", "gpt-4"),
        ("kind", "4chan", "4chan"),
        ("source", "source 1", "source 1"),
    ],
)
def test_bare_labels_get_their_column(column: str, label: str, name: str) -> None:
    assert group_name(column, label) == name


@pytest.mark.parametrize(
    ("name", "text"),
    [("grade 1", "1"), ("1", "1"), ("grade 1|2", "1|2"), ("non-grade 1", "non-1"), ("b", "b")],
)
def test_names_are_read_back_as_labels(name: str, text: str) -> None:
    assert label_text(name, "grade", ["1", "2", "b"]) == text


@pytest.mark.parametrize(
    ("text", "side"),
    [
        ("0", "year 0"),
        ("year 0", "year 0"),
        ("2010 to 2014", "year 2010 to 2014"),
        ("b|a", "a|b"),
        ("1", None),
    ],
)
def test_sides_are_found_by_label_and_by_name(text: str, side: str | None) -> None:
    assert name_among(text, ["year 0", "year 2010 to 2014", "a|b"], "year") == side


def test_labels_are_numbers_again_for_bins() -> None:
    column = pl.Series("source", ["source 0.2", "source of all", None, "human"])
    assert bare_labels(column).to_list() == ["0.2", "source of all", None, "human"]


def test_sources_of_numbers_carry_their_column() -> None:
    docs = [{"id": f"d{n}", "text": "x", "source": source} for n, source in enumerate("0110")]
    collection = collection_of(docs, {"q": "x"}, {})
    assert collection.sources == ("source 0", "source 1")
    assert collection.only_sources(["1"]).sources == ("source 1",)
    renamed = with_names(collection, {"0": "human", "1": "ai"}, by="source")
    assert renamed.sources == ("human", "ai")


def test_label_file_of_numbers(tmp_path: Path) -> None:
    """Pairs and verdicts take the label alone or with its column."""
    labels = tmp_path / "labels.csv"
    labels.write_text("doc_id,is_ai\n" + "".join(f"d{n},{n % 2}\n" for n in range(20)))
    scores = {f"q{q}": {f"d{n}": float((n * 7 + q) % 20) for n in range(20)} for q in range(12)}
    run = rt.Run.from_dict(scores)
    collection = rt.labelled(labels, [run], by="is_ai")
    audit = rt.audit(collection, [run], by="is_ai", pairs=[("1", "is_ai 0")], resamples=100)
    assert audit.pairs == (("is_ai 1", "is_ai 0"),)
    assert audit.verdict(None, "1", "0").a == "is_ai 1"
