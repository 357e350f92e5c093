"""The bundled collection: complete on the installed versions, paired, judged, and nothing copied."""

import json
import re
import statistics
from importlib import resources
from types import SimpleNamespace

import polars as pl
import pytest

from ranktilt.collection import Collection
from ranktilt.data.bundled import bundled, reader
from ranktilt.errors import UserError

FILES = ("rewrites.jsonl", "queries.jsonl", "qrels.tsv", "meta.json")


@pytest.fixture(scope="module")
def collection() -> Collection:
    return bundled()


@pytest.fixture(scope="module")
def texts(collection: Collection) -> list[tuple[str, str]]:
    """Return the two versions of each pair, human first."""
    text = dict(collection.docs.select("id", "text").iter_rows())
    return [(text[a], text[b]) for _, a, b in collection.pairs("human", "claude").iter_rows()]


def stored(name: str) -> str:
    return resources.files("ranktilt.data.bundled").joinpath(name).read_text(encoding="utf-8")


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def test_the_installed_versions_hold_the_paragraphs(collection: Collection) -> None:
    spec = collection.spec
    assert set(spec) == {"path", "pairs", "matched", "numpy", "scipy"}
    assert spec["path"] == "bundled"
    assert 80 <= spec["matched"] <= spec["pairs"] == len(reader.pairs())
    assert collection.docs.height == 2 * spec["matched"]


def test_every_document_has_its_twin(collection: Collection, texts: list[tuple[str, str]]) -> None:
    docs, matched = collection.docs, collection.spec["matched"]
    assert collection.sources == ("human", "claude")
    assert docs["source"].to_list() == ["human"] * matched + ["claude"] * matched
    assert docs["id"].is_unique().all()
    assert len(texts) == matched
    assert collection.unpaired("human", "claude").is_empty()
    assert collection.bare_ids().n_unique() == matched
    sides = docs.partition_by("source", maintain_order=True)
    assert sides[0]["title"].to_list() == sides[1]["title"].to_list()
    assert sides[0]["id"].to_list() == sides[0]["origin"].to_list() == sides[1]["origin"].to_list()


def test_pairs_are_named_and_hashed_once() -> None:
    pairs = reader.pairs()
    assert len({pair.id for pair in pairs}) == len(pairs)
    assert len({pair.sha256 for pair in pairs}) == len(pairs)
    assert {pair.function.partition(".")[0] for pair in pairs} == {"numpy", "scipy"}


def test_judgments_name_what_is_there_and_hold_for_both_versions(collection: Collection) -> None:
    qrels = collection.qrels
    assert set(qrels["grade"].to_list()) == {1, 2}
    assert set(qrels["doc_id"].to_list()) <= set(collection.docs["id"].to_list())
    assert set(qrels["query_id"].to_list()) <= set(collection.queries["id"].to_list())
    pair = pl.col("doc_id").str.replace("-(human|claude)$", "")
    sides = qrels.group_by("query_id", pair).agg(pl.len(), pl.col("grade").n_unique().alias("grades"))
    assert sides["len"].to_list() == [2] * sides.height
    assert sides["grades"].to_list() == [1] * sides.height


def test_queries_are_short_different_and_judged(collection: Collection) -> None:
    queries = collection.queries
    assert queries.height >= 60
    assert queries["text"].str.to_lowercase().is_unique().all()
    assert queries["text"].str.split(" ").list.len().is_between(2, 10).all()
    assert collection.judged.height == queries.height


def test_no_query_copies_a_sentence(collection: Collection, texts: list[tuple[str, str]]) -> None:
    sides = [side.lower() for pair in texts for side in pair]
    longer = [query for query in collection.queries["text"] if len(query.split()) >= 4]
    assert not [query for query in longer if any(query.lower() in side for side in sides)]


def test_rewrites_are_neither_longer_nor_shorter_as_a_rule(texts: list[tuple[str, str]]) -> None:
    ratios = [len(rewrite.split()) / len(human.split()) for human, rewrite in texts]
    assert 0.95 <= statistics.median(ratios) <= 1.05
    assert sum(ratio < 1 for ratio in ratios) >= 30
    assert sum(ratio > 1 for ratio in ratios) >= 30
    assert min(ratios) >= 0.75
    assert max(ratios) <= 1.25


def test_paragraphs_are_of_a_readable_length(texts: list[tuple[str, str]]) -> None:
    assert all(30 <= len(side.split()) <= 150 for pair in texts for side in pair)


def test_rewrites_are_no_copies(texts: list[tuple[str, str]]) -> None:
    shared = [len(words(a) & words(b)) / len(words(a) | words(b)) for a, b in texts]
    assert max(shared) < 0.95
    assert min(shared) > 0.2


@pytest.mark.parametrize("name", FILES)
def test_no_human_paragraph_is_stored(name: str, texts: list[tuple[str, str]]) -> None:
    folded = " ".join(stored(name).replace('\\"', '"').split())
    assert not [human for human, _ in texts if human in folded]


def test_the_card_counts_what_the_files_hold() -> None:
    numbers = json.loads(stored("meta.json"))["numbers"]
    assert numbers["pairs"] == len(reader.pairs())
    assert numbers["queries"] == len(stored("queries.jsonl").splitlines())
    assert numbers["judgments"] == len(stored("qrels.tsv").splitlines()) - 1


def test_the_file_of_judgments_has_its_header() -> None:
    assert stored("qrels.tsv").splitlines()[0] == "query-id\tcorpus-id\tscore"


def test_a_paragraph_is_found_wherever_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = reader.pairs()[0]
    text = reader.paragraph(pair.function, pair.sha256)
    assert text is not None
    head, _, tail = text.partition(" ")
    doc = f"Moved.\n\n    Notes\n    -----\n    Before.\n\n    {head}\n    {tail}\n\n    After.\n    "
    module = SimpleNamespace(f=SimpleNamespace(__doc__=doc), g=SimpleNamespace(__doc__=None))
    monkeypatch.setattr(reader.importlib, "import_module", lambda _: module)
    assert reader.paragraph("anywhere.f", pair.sha256) == text
    assert reader.paragraph("anywhere.g", pair.sha256) is None


@pytest.mark.parametrize("function", ["numpy.no_such_function", "no_such_package.f"])
def test_a_function_that_is_gone_is_no_error(function: str) -> None:
    assert reader.paragraph(function, "0" * 64) is None


def test_a_pair_that_does_not_match_is_left_out_with_its_judgments(
    collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = "numpy.loadtxt"
    find = reader.paragraph
    monkeypatch.setattr(reader, "paragraph", lambda f, sha256: None if f == lost else find(f, sha256))
    fewer = bundled()
    assert fewer.spec["matched"] == collection.spec["matched"] - 1
    assert fewer.spec["pairs"] == collection.spec["pairs"]
    gone = {f"{lost}-human", f"{lost}-claude"}
    assert set(collection.docs["id"]) - set(fewer.docs["id"]) == gone
    assert not gone & set(fewer.qrels["doc_id"])
    assert fewer.queries.equals(collection.queries)
    assert fewer.judged.height < collection.judged.height


def test_too_few_matches_name_the_versions(collection: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "paragraph", lambda function, sha256: None)
    with pytest.raises(UserError) as caught:
        bundled()
    message = str(caught.value)
    assert message.startswith(f"bundled: 0 of {collection.spec['pairs']} paragraphs were found")
    assert f"numpy {collection.spec['numpy']} and scipy {collection.spec['scipy']}" in message
    assert "install numpy 2.0-2.4 and scipy 1.14-1.17" in message


def test_a_package_that_is_not_installed_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> str:
        raise reader.importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(reader, "paragraph", lambda function, sha256: None)
    monkeypatch.setattr(reader.importlib.metadata, "version", absent)
    with pytest.raises(UserError, match=r"numpy \(not installed\) and scipy \(not installed\)"):
        bundled()
