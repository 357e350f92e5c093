"""Documents with labels: TREC Fair's biographies as a CSV, and the track's collection through ir_datasets."""

import gzip
import re
from pathlib import Path
from typing import Any

import pytest

from ranktilt.datasets.trec_fair import read_labelled
from ranktilt.errors import DataError, UserError
from tests.datasets.test_irds import home  # noqa: F401 - a fixture
from tests.refusals import refused
from tests.toy import jsonl, write

HEAD = "q_id,q_text,doc_id,gender,doc_title,first sentence\n"
ROWS = (
    '84,Agriculture,1,male,John Doe,"A farmer, and a poet."\n'
    "84,Agriculture,2,female,Jane Roe,\n"
    '85,Film,1,male,John Doe,"A farmer, and a poet."\n'
    "85,Film,3,,Jo Poe,An actor.\n"
    "85,Film,4,female | other,Kim Loe,An actor too.\n"
)


def test_a_csv_gives_documents_once_with_their_labels(tmp_path: Path) -> None:
    file = write(tmp_path / "people.csv", HEAD + ROWS)
    found = read_labelled(file)
    assert found.by == "gender"
    labels = dict(zip(found.labels["id"], found.labels["labels"].to_list(), strict=True))
    assert labels == {"1": ["male"], "2": ["female"], "3": [], "4": ["female", "other"]}
    assert found.queries.rows() == [("84", "Agriculture"), ("85", "Film")]
    assert found.relevant.rows() == [("84", "1"), ("84", "2"), ("85", "1"), ("85", "3"), ("85", "4")]
    assert found.texts(["2", "1"]).rows() == [("2", "Jane Roe", ""), ("1", "John Doe", "A farmer, and a poet.")]
    assert found.spec == {"files": [str(file)], "by": "gender"}


def test_one_of_several_columns_is_named_whatever_it_is_called(tmp_path: Path) -> None:
    head = "query,labels,origin,q_id,q_text,doc_id,query_id,doc_title,first sentence,id\n"
    file = write(tmp_path / "people.csv", head + "x,male,y,84,Agriculture,1,female,John,A farmer.,7\n")
    assert read_labelled(file, "labels").labels.row(0) == ("1", ["male"])
    found = read_labelled(file, "query_id")
    assert (found.labels.row(0), found.queries.row(0)) == (("1", ["female"]), ("84", "Agriculture"))
    with refused(f"{file}: which column holds the groups? name one of query, labels, query_id (--by)"):
        read_labelled(file)
    with refused(f"{file}: unknown column of groups 'origin' (valid: query, labels, query_id)"):
        read_labelled(file, "origin")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q_id,doc_id,gender\n1,2,male\n", ": expected the columns q_id, q_text, doc_id, doc_title, first sentence; "),
        ("q_id,gender\n1,male\n", ":1: expected a column doc_id, got 'q_id, gender'"),
        ("q_id,q_text,doc_id,doc_title,first sentence\n", ": which column holds the groups? there is none, such as g"),
        (HEAD, ": expected documents, got column names only"),
        (HEAD + "84,Agriculture,1,male\n", ":2: expected 6 fields as in the first line, got 4: "),
        (HEAD + ",Agriculture,1,male,T,S\n", ":2: q_id is empty"),
        (HEAD + "84,Agriculture, ,male,T,S\n", ":2: doc_id is empty"),
        (HEAD + ROWS + "86,Art,2,male,Jane Roe,\n", ":7: document '2' has two values of 'gender': 'female' (line 3)"),
    ],
)
def test_what_is_wrong_with_a_csv_is_said_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    file = write(tmp_path / "people.csv", text)
    with pytest.raises(DataError, match="^" + re.escape(f"{file}{message}")):
        read_labelled(file)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with refused(f"{tmp_path / 'none.csv'}: cannot be read: No such file or directory", DataError):
        read_labelled(tmp_path / "none.csv")
    with refused("hub:a/b: expected a CSV file, or irds:ID, such as irds:trec-fair/2022/train"):
        read_labelled("hub:a/b")


@pytest.fixture
def track(home: Path) -> str:  # noqa: F811
    """TREC Fair 2022's training topics where ir_datasets keeps them, with three articles; one topic has no document."""
    pytest.importorskip("ir_datasets")
    articles = [{"id": n, "title": f"Title {n}", "plain": f"Page {n}", "url": ""} for n in (1, 2, 3, 4)]
    people: list[dict[str, Any]] = [
        {"page_id": 1, "gender": ["male"], "page_countries": ["Peru", "Chile"], "source_countries": {"Peru": 2}},
        {"page_id": 2, "gender": ["female", "transgender female"]},
        {"page_id": 4, "gender": []},
    ]
    topics = [
        {"id": 84, "title": "Agriculture", "url": "", "rel_docs": [1, 2]},
        {"id": 85, "title": "Film", "url": "", "rel_docs": [4, 9]},
        {"id": 86, "title": "Dams", "url": "", "rel_docs": []},
    ]
    for name, rows in (("trec_corpus_20220301_plain", articles), ("trec_2022_articles_discrete", people)):
        place = home / "trec-fair" / "2022" / f"{name}.json.gz"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(gzip.compress(jsonl(rows).encode()))
    write(home / "trec-fair" / "2022" / "trec_2022_train_reldocs.jsonl", jsonl(topics))
    return "irds:trec-fair/2022/train"


def test_the_tracks_labels_and_texts_are_read_by_name(track: str) -> None:
    found = read_labelled(track, "gender")
    labels = dict(zip(found.labels["id"], found.labels["labels"].to_list(), strict=True))
    assert labels == {"1": ["male"], "2": ["female", "transgender female"], "4": []}
    assert found.queries.rows() == [("84", "Agriculture"), ("85", "Film"), ("86", "Dams")]
    assert found.relevant.rows() == [("84", "1"), ("84", "2"), ("85", "4")]  # document 9 is not in the collection
    assert found.texts(["4", "1"]).rows() == [("4", "Title 4", "Page 4"), ("1", "Title 1", "Page 1")]
    assert found.spec["path"] == track
    countries = read_labelled(track, "page_countries").labels
    assert countries.rows() == [("1", ["Peru", "Chile"]), ("2", []), ("4", [])]


def test_a_field_that_is_not_there_or_holds_no_names(track: str) -> None:
    with pytest.raises(
        UserError, match=r"which column holds the groups\? name one of url, pred_qual, .*gender.* \(--by\)$"
    ):
        read_labelled(track)
    with pytest.raises(UserError, match=r"unknown column of groups 'gendre'; did you mean 'gender'\?"):
        read_labelled(track, "gendre")
    with refused(f"{track}: field 'source_countries' holds dict, expected a name or a list of names"):
        read_labelled(track, "source_countries")
