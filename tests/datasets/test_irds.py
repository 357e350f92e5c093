"""Collections of ir_datasets, from a home folder laid out as that library leaves it; nothing reaches the network."""

import io
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import pytest

from ranktilt.datasets.load import load
from ranktilt.errors import DataWarning, MissingExtra, UserError
from ranktilt.optional import nothing_fetched
from tests.datasets.hub_cache import zipped
from tests.refusals import refused
from tests.toy import TEXTS, TITLES, jsonl, raw_docs, raw_qrels, raw_queries, tsv, write

pytest.importorskip("ir_datasets")
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")  # the library leaves files to the collector

PASSAGES = {str(n): text for n, text in enumerate([*TEXTS["human"].values(), *TEXTS["llm"].values()])}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Let ir_datasets start anew in this folder: it reads the place as it is imported."""
    ours = [name for name in sys.modules if name.partition(".")[0] == "ir_datasets"]
    kept = {name: sys.modules.pop(name) for name in ours}
    monkeypatch.setenv("IR_DATASETS_HOME", str(tmp_path / "irds"))
    monkeypatch.setenv("IR_DATASETS_TMP", str(tmp_path / "tmp"))
    monkeypatch.setenv("IR_DATASETS_DL_TRIES", "1")
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    yield tmp_path / "irds"
    for name in [name for name in sys.modules if name.partition(".")[0] == "ir_datasets"]:
        del sys.modules[name]
    sys.modules.update(kept)


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
    """Put msmarco-passage and TREC DL 2019 there: the collection as a tar file, queries as gzip, judgments as text."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as packed:
        content = "".join(f"{name}\t{text}\n" for name, text in PASSAGES.items()).encode()
        entry = tarfile.TarInfo("collection.tsv")
        entry.size = len(content)
        packed.addfile(entry, io.BytesIO(content))
    folder = home / "msmarco-passage"
    (folder / "trec-dl-2019").mkdir(parents=True)
    (folder / "irds_version.txt").write_text("v2")
    (folder / "collectionandqueries.tar.gz").write_bytes(buffer.getvalue())
    queries = folder / "trec-dl-2019" / "queries.tsv"
    queries.write_text("".join(f"{row['_id']}\t{row['text']}\n" for row in raw_queries()))
    (folder / "trec-dl-2019" / "qrels").write_text(qrels)


def message(name: str, **options: object) -> str:
    with pytest.raises(UserError) as caught:
        load(name, **options)  # type: ignore[arg-type]
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_title_text_and_judgments_of_beir(home: Path) -> None:
    beir(home)
    collection = load("irds:beir/scifact/test")
    expected = [(name, TITLES[name], text, "human", name) for name, text in TEXTS["human"].items()]
    assert collection.docs.rows() == expected
    assert collection.queries.rows() == [("q1", "red apples"), ("q2", "river water"), ("q3", "old clock bell")]
    assert set(collection.qrels.rows()) == set(raw_qrels())
    names = ("path", "split", "layout")
    assert [collection.spec[name] for name in names] == ["irds:beir/scifact/test", "test", "irds"]


def test_msmarco_and_its_judged_queries(home: Path) -> None:
    msmarco(home, "q1 Q0 0 3\nq1 Q0 4 0\nq3 Q0 2 1\n")
    collection = load("irds:msmarco-passage/trec-dl-2019/judged")
    assert dict(collection.docs.select("id", "text").rows()) == PASSAGES
    assert set(collection.docs["title"]) == {""}
    assert collection.queries["id"].to_list() == ["q1", "q3"]
    assert collection.qrels.rows() == [("q1", "0", 3), ("q1", "4", 0), ("q3", "2", 1)]
    assert collection.spec["split"] == "judged"
    judged = load("irds:msmarco-passage/trec-dl-2019/judged", docs="judged")
    assert judged.ids.to_list() == ["0", "2", "4"]
    assert (judged.spec["docs"], judged.spec["docs_of"]) == ("judged", 6)


def test_what_is_to_be_agreed_to_before_a_download_is_shown(home: Path) -> None:
    name = "irds:msmarco-passage/trec-dl-2019"
    with (
        pytest.warns(DataWarning, match=rf"^{name}: Please confirm you agree to the MSMARCO data usage agreement"),
        pytest.raises(UserError, match="cannot be read"),
    ):
        load(name)


def test_a_judgment_made_again_counts_once_and_the_last_one(home: Path) -> None:
    msmarco(home, "q1 1 0 3\nq1 2 0 3\nq2 1 1 2\nq2 2 1 0\n")
    with pytest.warns(DataWarning, match="1 pair has several grades; the last one counts, as in ir_datasets"):
        collection = load("irds:msmarco-passage/trec-dl-2019")
    assert collection.qrels.rows() == [("q1", "0", 3), ("q2", "1", 0)]
    import ir_datasets

    own = ir_datasets.load("msmarco-passage/trec-dl-2019").qrels_dict()
    assert own == {"q1": {"0": 3}, "q2": {"1": 0}}


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("beir/scifact/tset", "unknown collection 'beir/scifact/tset'; did you mean 'beir/scifact/test'? (valid: "),
        ("msmarco-passage", "has no queries of its own; these have them: "),
        ("beir/scifact", "has no judgments of its own; these have them: beir/scifact/test, beir/scifact/train; or --q"),
        ("beir/scifact/test", "1 judgment of 1 unknown document (first: 'd9'); --ignore-unknown"),
        ("beir/nfcorpus/test", "cannot be read: File is not a zip file; ir_datasets keeps its files in {home} (IR_"),
        ("nyt/wksup", "cannot be read: The New York Times Annotated Corpus. It is available from the LDC via: <http"),
    ],
)
def test_what_cannot_be_loaded_is_refused_in_one_line(home: Path, name: str, start: str) -> None:
    beir(home, tsv([("q1", "d9", 1)]))
    write(home / "beir" / "nfcorpus" / "source.zip", "<html>not found</html>")
    assert message(f"irds:{name}").startswith(f"irds:{name}: {start.format(home=home)}")
    assert load("irds:beir/scifact/test", ignore_unknown=True).qrels.rows() == [("q1", "d9", 1)]


def test_the_package_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ir_datasets", None)
    with pytest.raises(MissingExtra) as caught:
        load("irds:beir/scifact/test")
    assert 'needs ir_datasets. Install it with: pip install "ranktilt[datasets]"' in str(caught.value)


def test_documents_and_queries_without_a_text(home: Path) -> None:
    """Vaswani's documents have a text; TREC's topics have a title instead, which is their default text."""
    from ranktilt.datasets.irds import _docs, dataset_queries

    class Doc(NamedTuple):
        doc_id: str = "d"
        title: str = "T"
        abstract: str = "A"

        def default_text(self) -> str:
            return f"{self.title} {self.abstract}"

    class Query(NamedTuple):
        query_id: str = "q"
        title: str = "red apples"

        def default_text(self) -> str:
            return self.title

    given = SimpleNamespace(
        docs_cls=lambda: Doc, docs_iter=lambda: iter([Doc()]), docs_count=lambda: None,
        queries_cls=lambda: Query, queries_iter=lambda: iter([Query()]),
    )  # fmt: skip
    docs, total = _docs(given, None)
    assert (docs.rows(), total) == ([("d", "", "T A")], 1)
    assert dataset_queries(given).rows() == [("q", "red apples")]


@pytest.mark.parametrize("grade", [float("inf"), 2.0**40, None])
def test_a_grade_that_is_no_number_is_refused(grade: float | None) -> None:
    from ranktilt.datasets.irds import dataset_qrels
    from ranktilt.datasets.named import Named

    class Judgment(NamedTuple):
        query_id: str
        doc_id: str
        relevance: float | None

    judged = SimpleNamespace(
        qrels_cls=lambda: Judgment, qrels_iter=lambda: iter([Judgment("q", "d", 1), Judgment("q", "e", grade)])
    )
    with refused(f"irds:some/set: expected numbers as grades, got {grade} for query 'q' and document 'e'"):
        dataset_qrels(judged, Named("irds", "some/set"))


def test_what_is_there_is_read_and_nothing_else_fetched(home: Path) -> None:
    beir(home)
    with nothing_fetched():
        assert load("irds:beir/scifact/test").docs.height == 3
        said = message("irds:beir/nfcorpus/test")
    assert "nothing is fetched for a report" in said
    assert "nothing is fetched" not in message("irds:beir/nfcorpus/test")
