"""The bundled collection: complete on the installed versions, paired, judged, and nothing copied."""

import itertools
import json
import re
import statistics
import subprocess
import sys
from collections.abc import Callable
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


def of_these_only(number: int) -> Callable[[str, str], str | None]:
    """Return a stand-in for `paragraph` that finds the first so many paragraphs it is asked for, and no other."""
    asked = itertools.count()
    find = reader.paragraph
    return lambda function, sha256: find(function, sha256) if next(asked) < number else None


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


def test_the_wording_of_the_queries_leans_to_neither_side(collection: Collection) -> None:
    text = dict(collection.docs.select("id", "text").iter_rows())
    asked = dict(collection.queries.iter_rows())
    shares: dict[str, list[float]] = {"human": [], "claude": []}
    for query, doc, _ in collection.qrels.filter(pl.col("grade") == 2).iter_rows():
        wanted = words(asked[query])
        shares[doc.rpartition("-")[2]].append(len(wanted & words(text[doc])) / len(wanted))
    assert abs(statistics.mean(shares["human"]) - statistics.mean(shares["claude"])) < 0.02


def test_rewrites_are_neither_longer_nor_shorter_as_a_rule(texts: list[tuple[str, str]]) -> None:
    ratios = [len(rewrite.split()) / len(human.split()) for human, rewrite in texts]
    assert 0.95 <= statistics.median(ratios) <= 1.05
    assert sum(ratio < 1 for ratio in ratios) >= 0.35 * len(ratios)
    assert sum(ratio > 1 for ratio in ratios) >= 0.35 * len(ratios)
    assert min(ratios) >= 0.75
    assert max(ratios) <= 1.25


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


def test_the_data_card_reports_the_lengths_there_are(collection: Collection, texts: list[tuple[str, str]]) -> None:
    if collection.spec["matched"] < collection.spec["pairs"]:
        pytest.skip("the card is about the complete collection")
    card = (ROOT / "docs" / "bundled.md").read_text(encoding="utf-8")
    human, claude = ([len(side[at].split()) for side in texts] for at in (0, 1))
    ratios = [b / a for a, b in zip(human, claude, strict=True)]
    for name, values in (("human paragraph", human), ("rewrite", claude), ("rewrite / human", ratios)):
        row = next(line for line in card.splitlines() if line.startswith(f"| {name} |"))
        cells = [float(cell) for cell in row.split("|")[2:-1]]
        expected = [min(values), statistics.median(values), max(values)]
        assert [cells[0], cells[3], cells[6]] == pytest.approx(expected, abs=0.005)
    longer, shorter = sum(ratio > 1 for ratio in ratios), sum(ratio < 1 for ratio in ratios)
    assert f"has {sum(human):,} words, the rewrites {sum(claude):,}; {longer} rewrites are longer" in card
    assert f"{shorter} shorter\nand {len(ratios) - longer - shorter} equally long" in card


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


@pytest.mark.parametrize("number", [40, 119])
def test_fewer_matches_warn_and_work(number: int, collection: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "paragraph", of_these_only(number))
    with pytest.warns(DataWarning) as caught:
        fewer = bundled()
    assert fewer.spec["matched"] == number
    assert fewer.docs.height == 2 * number
    message = str(caught[0].message)
    assert message.startswith(f"bundled: {number} of {collection.spec['pairs']} paragraphs were found")
    assert "the other pairs are left out" in message
    assert "install numpy 2.0-2.4 and scipy 1.14-1.17" in message
    assert "\n" not in message
    assert caught[0].filename == __file__


def test_thirty_nine_matches_are_too_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "paragraph", of_these_only(39))
    with pytest.raises(UserError, match=r"^bundled: 39 of \d+ paragraphs .* expected at least 40; install numpy"):
        bundled()


def check(*arguments: str | Path) -> tuple[int, list[str]]:
    """Run the script that checks other versions; return its exit status and what it printed."""
    command = [sys.executable, ROOT / "scripts" / "check_bundled.py", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


def test_the_check_passes_where_the_pairs_match(collection: Collection, tmp_path: Path) -> None:
    code, lines = check(tmp_path, tmp_path)
    spec = collection.spec
    start = f"ok: numpy {spec['numpy']} scipy {spec['scipy']}: {spec['matched']} of {spec['pairs']} pairs"
    assert code == 0
    assert [line for line in lines if line.startswith(start)] == [lines[0]] * 2


def test_the_check_fails_where_a_query_loses_its_documents(collection: Collection, tmp_path: Path) -> None:
    (tmp_path / "scipy").mkdir()
    (tmp_path / "scipy" / "__init__.py").touch()
    code, lines = check(tmp_path, "--at-least", "1")
    lost = [pair.id for pair in reader.pairs() if pair.function.startswith("scipy.")]
    pair = pl.col("doc_id").str.replace("-(human|claude)$", "")
    kept = set(collection.qrels.filter(~pair.is_in(lost))["query_id"])
    alone = [text for query, text in collection.queries.iter_rows() if query not in kept]
    assert code == 1
    assert lines[0].startswith("FAILED: ")
    assert f"{len(alone)} of {collection.queries.height} queries without a relevant document" in lines[0]
    assert lines[1:] == [f"  paragraph not found: {name}" for name in lost] + [
        f"  no relevant document: {text}" for text in alone
    ]
