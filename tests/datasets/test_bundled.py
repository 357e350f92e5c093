"""The bundled collection: complete on the installed versions, paired, judged, and nothing copied."""

import json
import re
import statistics
import subprocess
import sys
from importlib import resources
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest

from ranktilt.collection import Collection
from ranktilt.datasets.bundled import bundled, reader
from ranktilt.errors import DataWarning, UserError

FILES = ("rewrites.jsonl", "queries.jsonl", "qrels.tsv", "meta.json")
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def collection() -> Collection:
    return bundled()


@pytest.fixture(scope="module")
def texts(collection: Collection) -> list[tuple[str, str]]:
    """Return the two versions of each pair, human first."""
    text = dict(collection.docs.select("id", "text").iter_rows())
    return [(text[a], text[b]) for _, a, b in collection.pairs("human", "claude").iter_rows()]


def stored(name: str) -> str:
    return resources.files("ranktilt.datasets.bundled").joinpath(name).read_text(encoding="utf-8")


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def test_the_installed_versions_hold_the_paragraphs(collection: Collection) -> None:
    spec = collection.spec
    assert set(spec) == {"path", "pairs", "matched", "numpy", "scipy"}
    assert spec["path"] == "bundled"
    assert 200 <= spec["matched"] <= spec["pairs"] == len(reader.pairs())
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


def test_judgments_name_what_is_there_and_hold_for_both_versions(collection: Collection) -> None:
    qrels = collection.qrels
    assert set(qrels["grade"].to_list()) == {1, 2}
    assert set(qrels["doc_id"].to_list()) <= set(collection.docs["id"].to_list())
    assert set(qrels["query_id"].to_list()) <= set(collection.queries["id"].to_list())
    pair = pl.col("doc_id").str.replace("-(human|claude)$", "")
    sides = qrels.group_by("query_id", pair).agg(pl.len(), pl.col("grade").n_unique().alias("grades"))
    assert sides["len"].to_list() == [2] * sides.height
    assert sides["grades"].to_list() == [1] * sides.height


def test_neither_queries_nor_lengths_lean_to_a_side(collection: Collection, texts: list[tuple[str, str]]) -> None:
    text = dict(collection.docs.select("id", "text").iter_rows())
    queries = dict(collection.queries.iter_rows())
    shares: dict[str, list[float]] = {"human": [], "claude": []}
    for query, doc, _ in collection.qrels.filter(pl.col("grade") == 2).iter_rows():
        wanted = words(queries[query])
        shares[doc.rpartition("-")[2]].append(len(wanted & words(text[doc])) / len(wanted))
    assert abs(statistics.mean(shares["human"]) - statistics.mean(shares["claude"])) < 0.02
    ratios = [len(rewrite.split()) / len(human.split()) for human, rewrite in texts]
    assert 0.95 <= statistics.median(ratios) <= 1.05
    assert 0.35 <= statistics.mean(ratio < 1 for ratio in ratios) <= 0.65
    assert 0.75 <= min(ratios) <= max(ratios) <= 1.25


@pytest.mark.parametrize("name", FILES)
def test_no_human_paragraph_is_stored(name: str, texts: list[tuple[str, str]]) -> None:
    folded = " ".join(stored(name).replace('\\"', '"').split())
    assert not [human for human, _ in texts if human in folded]


def test_the_card_counts_what_the_files_hold() -> None:
    meta = json.loads(stored("meta.json"))
    numbers = meta["numbers"]
    assert numbers["pairs"] == len(reader.pairs())
    assert numbers["queries"] == len(stored("queries.jsonl").splitlines())
    assert numbers["judgments"] == len(stored("qrels.tsv").splitlines()) - 1
    for package in ("numpy", "scipy"):
        number = sum(pair.function.startswith(package) for pair in reader.pairs())
        assert re.search(rf"{package} \({number} pairs\)", meta["human"]["from"], re.IGNORECASE)
    assert meta["claude"]["model_family"] == "Claude (Anthropic)"
    assert meta["claude"]["prompt"] == "Please rewrite the following text: {text}"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", meta["date"])


@pytest.mark.parametrize(
    "before", ["", "Before.\n\n    ", "Before.\n    \n    Twice.\n\n    Heading\n    =======\n\n    "]
)
def test_a_paragraph_is_found_wherever_it_stands(before: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = reader.pairs()[0]
    text = reader.paragraph(pair.function, pair.sha256)
    assert text is not None
    head, _, tail = text.partition(" ")
    doc = f"Moved.\n\n    Notes\n    -----\n    {before}{head}\n    {tail}\n\n    After.\n    "
    module = SimpleNamespace(f=SimpleNamespace(__doc__=doc), g=SimpleNamespace(__doc__=None))
    monkeypatch.setattr(reader.importlib, "import_module", lambda _: module)
    assert reader.paragraph("anywhere.f", pair.sha256) == text
    assert reader.paragraph("anywhere.g", pair.sha256) is None
    assert reader.paragraph("anywhere.gone", pair.sha256) is None
    monkeypatch.undo()
    assert reader.paragraph("no_such_package.f", pair.sha256) is None


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


def test_fewer_matches_are_warned_of_and_fewer_than_40_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    find, matched = reader.paragraph, {pair.function for pair in reader.pairs()[:119]}
    monkeypatch.setattr(reader, "paragraph", lambda f, sha256: find(f, sha256) if f in matched else None)
    with pytest.warns(DataWarning, match=r"^bundled: 119 of \d+ paragraphs were found .* install numpy") as caught:
        fewer = bundled()
    assert (fewer.spec["matched"], fewer.docs.height, caught[0].filename) == (119, 2 * 119, __file__)
    matched.difference_update([pair.function for pair in reader.pairs()[39:119]])
    with pytest.raises(UserError, match=r"^bundled: 39 of \d+ paragraphs .* expected at least 40; install numpy"):
        bundled()


def test_the_script_that_checks_versions_names_what_a_query_loses(collection: Collection, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "without" / "scipy").mkdir(parents=True)
    (tmp_path / "without" / "scipy" / "__init__.py").touch()
    script = ROOT / "scripts" / "check_bundled.py"
    found = [
        subprocess.run([sys.executable, script, folder, "--at-least", "1"], capture_output=True, text=True, check=False)
        for folder in (tmp_path / "empty", tmp_path / "without")
    ]
    assert ([run.returncode for run in found], [run.stderr for run in found]) == ([0, 1], ["", ""])
    assert found[0].stdout.startswith(f"ok: numpy {collection.spec['numpy']} scipy {collection.spec['scipy']}: ")
    lost = [pair.id for pair in reader.pairs() if pair.function.startswith("scipy.")]
    pair = pl.col("doc_id").str.replace("-(human|claude)$", "")
    left = set(collection.qrels.filter(~pair.is_in(lost))["query_id"])
    alone = [text for query, text in collection.queries.iter_rows() if query not in left]
    first, *others = found[1].stdout.splitlines()
    assert f"{len(alone)} of {collection.queries.height} queries without a relevant document" in first
    names = [f"  paragraph not found: {name}" for name in lost]
    assert others == names + [f"  no relevant document: {text}" for text in alone]
