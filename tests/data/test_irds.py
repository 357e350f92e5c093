"""Collections of ir_datasets, from a home folder of that library, and TREC Fair's labels."""

import io
import re
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from ranktilt.data.loading.load import load
from ranktilt.errors import DataError, DataWarning, UserError
from ranktilt.optional import forbid_fetching
from ranktilt.papers.wang.trec_fair import read_labelled
from tests.data.hub_cache import refusal, zipped
from tests.refusals import refused
from tests.toy import TEXTS, TITLES, jsonl, raw_docs, raw_qrels, raw_queries, tsv, write

pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning"
)  # the library leaves files to the collector

PASSAGES = {
    str(n): text for n, text in enumerate([*TEXTS["human"].values(), *TEXTS["llm"].values()])
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Let ir_datasets start anew in this folder: it reads the place as it is imported."""
    pytest.importorskip("ir_datasets")
    ours = [name for name in sys.modules if name.partition(".")[0] == "ir_datasets"]
    loaded = {name: sys.modules.pop(name) for name in ours}
    monkeypatch.setenv("IR_DATASETS_HOME", str(tmp_path / "irds"))
    monkeypatch.setenv("IR_DATASETS_TMP", str(tmp_path / "tmp"))
    monkeypatch.setenv("IR_DATASETS_DL_TRIES", "1")
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    yield tmp_path / "irds"
    for name in [name for name in sys.modules if name.partition(".")[0] == "ir_datasets"]:
        del sys.modules[name]
    sys.modules.update(loaded)


def beir(home: Path, qrels: str | None = None) -> None:
    """Put beir/scifact where ir_datasets keeps it: its zip file, not yet unpacked."""
    inside = {
        "scifact/corpus.jsonl": jsonl({**row, "metadata": {}} for row in raw_docs()),
        "scifact/queries.jsonl": jsonl({**row, "metadata": {}} for row in raw_queries()),
        "scifact/qrels/test.tsv": tsv(raw_qrels()) if qrels is None else qrels,
        "scifact/qrels/train.tsv": tsv([("q1", "d1", 1)]),
    }
    write(home / "beir" / "scifact" / "source.zip", zipped(inside))
    write(home / "beir" / "scifact" / "irds_version.txt", "v2")


def msmarco(home: Path, qrels: str) -> None:
    """Put msmarco-passage and TREC DL 2019 there: a tar file, queries as gzip, judgments
    as text.
    """
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as packed:
        content = "".join(f"{name}\t{text}\n" for name, text in PASSAGES.items()).encode()
        member = tarfile.TarInfo("collection.tsv")
        member.size = len(content)
        packed.addfile(member, io.BytesIO(content))
    folder = home / "msmarco-passage"
    write(folder / "irds_version.txt", "v2")
    (folder / "collectionandqueries.tar.gz").write_bytes(buffer.getvalue())
    queries = "".join(f"{row['_id']}\t{row['text']}\n" for row in raw_queries())
    write(folder / "trec-dl-2019" / "queries.tsv", queries)
    write(folder / "trec-dl-2019" / "qrels", qrels)


def test_title_text_and_judgments_of_beir_and_nothing_is_fetched(home: Path) -> None:
    beir(home)
    collection = load("irds:beir/scifact/test")
    expected = [(name, TITLES[name], text, None, name) for name, text in TEXTS["human"].items()]
    assert collection.docs.rows() == expected
    assert collection.queries.rows() == [
        ("q1", "red apples"),
        ("q2", "river water"),
        ("q3", "old clock bell"),
    ]
    assert set(collection.qrels.rows()) == set(raw_qrels())
    names = ("path", "split", "layout")
    assert [collection.spec[name] for name in names] == ["irds:beir/scifact/test", "test", "irds"]
    file = write(home / "own.csv", "q,url,stars\nq3,d1,1\n")
    judged_by_user = load("irds:beir/scifact/test", qrels=f"{file}:query=q,id=url,grade=stars")
    assert judged_by_user.qrels.rows() == [("q3", "d1", 1)]
    names = ("split", "files", "qrels_read")
    expected_spec = [str(file), [str(file)], "query=q,id=url,grade=stars"]
    assert [judged_by_user.spec[name] for name in names] == expected_spec
    with forbid_fetching():
        assert load("irds:beir/scifact/test").docs.height == 3
        assert "a report downloads nothing" in refusal("irds:beir/nfcorpus/test")
    assert "downloads nothing" not in refusal("irds:beir/nfcorpus/test")


def test_what_is_to_be_agreed_to_before_a_download_is_shown_and_msmarco_read(home: Path) -> None:
    name = "irds:msmarco-passage/trec-dl-2019"
    with pytest.warns(
        DataWarning, match=rf"^{name}: Please confirm you agree to the MSMARCO data usage agreement"
    ):
        assert refusal(name).startswith(f"{name}: cannot be read")
    msmarco(home, "q1 Q0 0 3\nq1 Q0 4 0\nq3 Q0 2 1\n")
    collection = load("irds:msmarco-passage/trec-dl-2019/judged")
    assert collection.docs.select("id", "title", "text").rows() == [
        (name, "", text) for name, text in PASSAGES.items()
    ]
    assert (collection.queries["id"].to_list(), collection.spec["split"]) == (
        ["q1", "q3"],
        "judged",
    )
    assert collection.qrels.rows() == [("q1", "0", 3), ("q1", "4", 0), ("q3", "2", 1)]
    judged = load("irds:msmarco-passage/trec-dl-2019/judged", docs="judged")
    assert judged.ids.to_list() == ["0", "2", "4"]
    assert (judged.spec["docs"], judged.spec["docs_of"]) == ("judged", 6)


def test_a_judgment_made_again_counts_once_and_the_last_one(home: Path) -> None:
    msmarco(home, "q1 1 0 3\nq1 2 0 3\nq2 1 1 2\nq2 2 1 0\n")
    with pytest.warns(
        DataWarning, match="1 pair has several grades; the last one counts, as in ir_datasets"
    ):
        collection = load("irds:msmarco-passage/trec-dl-2019")
    assert collection.qrels.rows() == [("q1", "0", 3), ("q2", "1", 0)]
    import ir_datasets

    library_qrels = ir_datasets.load("msmarco-passage/trec-dl-2019").qrels_dict()
    assert library_qrels == {"q1": {"0": 3}, "q2": {"1": 0}}


@pytest.mark.parametrize(
    ("name", "start"),
    [
        (
            "beir/scifact/tset",
            "unknown collection 'beir/scifact/tset'; did you mean 'beir/scifact/test'? (valid: ",
        ),
        ("msmarco-passage", "has no queries; these have them: "),
        (
            "beir/scifact",
            ("has no judgments; these have them: beir/scifact/test, beir/scifact/train; or go"),
        ),
        ("beir/scifact/test", "1 judgment of 1 unknown document (first: 'd9'); --ignore-unknown"),
        (
            "beir/nfcorpus/test",
            "cannot be read: File is not a zip file; ir_datasets keeps its files in {home} (to",
        ),
        (
            "nyt/wksup",
            (
                "cannot be read: The New York Times Annotated Corpus. It is available from the LDC "
                "via: <http"
            ),
        ),
    ],
)
def test_what_cannot_be_loaded_is_refused_in_one_line(home: Path, name: str, start: str) -> None:
    beir(home, tsv([("q1", "d9", 1)]))
    write(home / "beir" / "nfcorpus" / "source.zip", "<html>not found</html>")
    assert refusal(f"irds:{name}").startswith(f"irds:{name}: {start.format(home=home)}")
    assert load("irds:beir/scifact/test", ignore_unknown=True).qrels.rows() == [("q1", "d9", 1)]


def test_documents_and_queries_without_a_text(home: Path) -> None:
    """Vaswani's documents have a text; TREC's topics have a title, which is their default text."""
    from ranktilt.data.loading.irds import _read_docs, dataset_queries

    class Topic(NamedTuple):
        doc_id: str = "d"
        query_id: str = "q"
        title: str = "red apples"

        def default_text(self) -> str:
            return f"{self.title} by default"

    topics = SimpleNamespace(
        docs_cls=lambda: Topic,
        docs_iter=lambda: iter([Topic()]),
        docs_count=lambda: None,
        queries_cls=lambda: Topic,
        queries_iter=lambda: iter([Topic()]),
    )
    docs, total = _read_docs(topics, None)
    assert (docs.rows(), total) == ([("d", "", "red apples by default")], 1)
    assert dataset_queries(topics).rows() == [("q", "red apples by default")]


@pytest.mark.parametrize("grade", [float("inf"), 2.0**40, None])
def test_a_grade_that_is_no_number_is_refused(grade: float | None) -> None:
    from ranktilt.data.loading.collection_name import CollectionName
    from ranktilt.data.loading.irds import dataset_qrels

    class Judgment(NamedTuple):
        query_id: str
        doc_id: str
        relevance: float | None

    judged = SimpleNamespace(
        qrels_cls=lambda: Judgment,
        qrels_iter=lambda: iter([Judgment("q", "d", 1), Judgment("q", "e", grade)]),
    )
    with refused(
        f"irds:some/set: expected numbers as grades, got {grade} for query 'q' and document 'e'"
    ):
        dataset_qrels(judged, CollectionName(kind="irds", id="some/set"))


HEAD = "q_id,q_text,doc_id,gender,doc_title,first sentence\n"
ROWS = (
    '84,Agriculture,1,male,John Doe,"A farmer, and a poet."\n'
    "84,Agriculture,2,female,Jane Roe,\n"
    '85,Film,1,male,John Doe,"A farmer, and a poet."\n'
    "85,Film,3,,Jo Poe,An actor.\n"
    "85,Film,4,female | other,Kim Loe,An actor too.\n"
)


def test_a_csv_gives_documents_once_with_their_labels_of_whichever_column_is_named(
    tmp_path: Path,
) -> None:
    file = write(tmp_path / "people.csv", HEAD + ROWS)
    people = read_labelled(file)
    assert people.by == "gender"
    assert people.labels.rows() == [
        ("1", ["male"]),
        ("2", ["female"]),
        ("3", []),
        ("4", ["female", "other"]),
    ]
    assert people.queries.rows() == [("84", "Agriculture"), ("85", "Film")]
    assert people.relevant.rows() == [
        ("84", "1"),
        ("84", "2"),
        ("85", "1"),
        ("85", "3"),
        ("85", "4"),
    ]
    assert people.texts(["2", "1"]).rows() == [
        ("2", "Jane Roe", ""),
        ("1", "John Doe", "A farmer, and a poet."),
    ]
    assert people.spec == {"files": [str(file)], "by": "gender"}
    head = "query,labels,origin,q_id,q_text,doc_id,query_id,doc_title,first sentence,id\n"
    file = write(
        tmp_path / "people.csv", head + "x,male,y,84,Agriculture,1,female,John,A farmer.,7\n"
    )
    assert read_labelled(file, "labels").labels.row(0) == ("1", ["male"])
    people = read_labelled(file, "query_id")
    assert (people.labels.row(0), people.queries.row(0)) == (
        ("1", ["female"]),
        ("84", "Agriculture"),
    )
    with refused(
        f"{file}: which column holds the groups? name one of query, labels, query_id (--by)"
    ):
        read_labelled(file)
    with refused(f"{file}: unknown column of groups 'origin' (valid: query, labels, query_id)"):
        read_labelled(file, "origin")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "q_id,doc_id,gender\n1,2,male\n",
            ": expected the columns q_id, q_text, doc_id, doc_title, first sentence; ",
        ),
        ("q_id,gender\n1,male\n", ":1: expected a column doc_id, got 'q_id, gender'"),
        (
            "q_id,q_text,doc_id,doc_title,first sentence\n",
            ": which column holds the groups? there is none, such as g",
        ),
        (HEAD, ": expected documents, got column names only"),
        (HEAD + "84,Agriculture,1,male\n", ":2: expected 6 fields as in the first line, got 4: "),
        (HEAD + ",Agriculture,1,male,T,S\n", ":2: q_id is empty"),
        (HEAD + "84,Agriculture, ,male,T,S\n", ":2: doc_id is empty"),
        (
            HEAD + ROWS + "86,Art,2,male,Jane Roe,\n",
            ":7: document '2' has two values of 'gender': 'female' (line 3)",
        ),
    ],
)
def test_what_is_wrong_with_a_csv_is_said_with_its_line(
    tmp_path: Path, text: str, message: str
) -> None:
    file = write(tmp_path / "people.csv", text)
    with pytest.raises(DataError, match="^" + re.escape(f"{file}{message}")):
        read_labelled(file)
    with refused(f"{tmp_path / 'none.csv'}: cannot be read: No such file or directory", DataError):
        read_labelled(tmp_path / "none.csv")
    with refused("hub:a/b: expected a CSV file, or irds:ID, such as irds:trec-fair/2022/train"):
        read_labelled("hub:a/b")


def test_the_tracks_labels_and_texts_are_read_by_name_unless_a_field_is_not_there_or_holds_none(
    home: Path,
) -> None:
    """TREC Fair 2022's training topics, with three articles; one topic has no document."""
    track = "irds:trec-fair/2022/train"
    articles = [
        {"id": n, "title": f"Title {n}", "plain": f"Page {n}", "url": ""} for n in (1, 2, 3, 4)
    ]
    people: list[dict[str, Any]] = [
        {
            "page_id": 1,
            "gender": ["male"],
            "page_countries": ["Peru", "Chile"],
            "source_countries": {"Peru": 2},
        },
        {"page_id": 2, "gender": ["female", "transgender female"]},
        {"page_id": 4, "gender": []},
    ]
    topics = [
        {"id": 84, "title": "Agriculture", "url": "", "rel_docs": [1, 2]},
        {"id": 85, "title": "Film", "url": "", "rel_docs": [4, 9]},
        {"id": 86, "title": "Dams", "url": "", "rel_docs": []},
    ]
    folder = home / "trec-fair" / "2022"
    write(folder / "trec_corpus_20220301_plain.json.gz", jsonl(articles))
    write(folder / "trec_2022_articles_discrete.json.gz", jsonl(people))
    write(folder / "trec_2022_train_reldocs.jsonl", jsonl(topics))
    people = read_labelled(track, "gender")
    assert people.labels.rows() == [
        ("1", ["male"]),
        ("2", ["female", "transgender female"]),
        ("4", []),
    ]
    assert people.queries.rows() == [("84", "Agriculture"), ("85", "Film"), ("86", "Dams")]
    assert people.relevant.rows() == [
        ("84", "1"),
        ("84", "2"),
        ("85", "4"),
    ]  # document 9 is not in the collection
    assert people.texts(["4", "1"]).rows() == [
        ("4", "Title 4", "Page 4"),
        ("1", "Title 1", "Page 1"),
    ]
    assert people.spec["path"] == track
    countries = read_labelled(track, "page_countries").labels
    assert countries.rows() == [("1", ["Peru", "Chile"]), ("2", []), ("4", [])]
    with pytest.raises(
        UserError, match=r"holds the groups\? name one of url, pred_qual, .*gender.* \(--by\)$"
    ):
        read_labelled(track)
    with pytest.raises(
        UserError, match=r"unknown column of groups 'gendre'; did you mean 'gender'\?"
    ):
        read_labelled(track, "gendre")
    with refused(
        f"{track}: field 'source_countries' holds dict, expected a name or a list of names"
    ):
        read_labelled(track, "source_countries")
