"""ranktilt tools calibrate: exit 0 where all is as expected, 1 where it is not, 2 for what cannot be calibrated."""

import json
import shlex
from pathlib import Path

import pytest

from ranktilt import Calibration
from ranktilt import registry as specs
from ranktilt.reporting.output import table
from tests.auditing.calibration.test_calibrate import Unfair, pairs
from tests.cli.conftest import Cli, refused
from tests.toy import jsonl, tsv, write

QUICK = ("-m", "nDCG@3", "--depth", "1", "--depth", "3")
UNFAIR = ("-r", "unfair(fault=id)")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Thirty pairs as a BEIR folder with sources."""
    made, there = pairs(), tmp_path / "pairs"
    docs = made.docs.rename({"id": "_id"}).to_dicts()
    write(there / "corpus.jsonl", jsonl(docs))
    write(there / "queries.jsonl", jsonl(made.queries.rename({"id": "_id"}).to_dicts()))
    write(there / "qrels" / "test.tsv", tsv(made.qrels.iter_rows()))
    return there


@pytest.fixture
def unfair(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ranker of somebody else's."""
    monkeypatch.setitem(specs.RANKERS, Unfair.name, "tests.auditing.calibration.test_calibrate:Unfair")


def test_bundled_collection_and_lexical_rankers_are_the_default(cli: Cli) -> None:
    code, out, err = cli("tools", "calibrate", "--quiet", "--sample", "20", *QUICK)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert [line for line in lines if line and not line.startswith(" ")][:2] == ["tfidf", "bm25"]
    assert "Calibrated: 36 checks came out as expected." in out
    assert sum("12 of 12" in line for line in lines) == 2 * 7
    assert sum("2 of 2" in line for line in lines) == 2 * 6


def test_a_ranker_that_breaks_ties_by_id_ends_with_1(cli: Cli, folder: Path, unfair: None, tmp_path: Path) -> None:
    file = tmp_path / "new" / "c.json"
    arguments = [
        "tools",
        "calibrate",
        str(folder),
        *UNFAIR,
        *QUICK,
        "--seed",
        "7",
        "--sample",
        "20",
        "--json",
        str(file),
    ]
    code, out, _ = cli(*arguments)
    found = Calibration.load(file)
    assert code == 1
    assert out == table(found)
    assert "FAILED: " in out
    assert "unfair(fault=id): null)." in out
    assert "A ranker that tells copies apart breaks ties by id or order" in out
    assert "Sampled: 20 of 30 documents of human and 10 of 20 queries" in out
    assert (found.passed, found.spec["seed"], found.spec["documents"]) == (False, 7, 40)
    assert found.spec["command"] == shlex.join(["ranktilt", *arguments])
    assert found.spec["collection"]["path"] == str(folder)
    assert {row.verdict for row in found.rows if row.check != "null"} == {"ok"}


def test_text_and_split_are_passed_on(cli: Cli, folder: Path) -> None:
    (folder / "qrels" / "test.tsv").rename(folder / "qrels" / "dev.tsv")
    write(folder / "qrels" / "test.tsv", tsv([("q0", "0-human", 0)]))
    found = cli("tools", "calibrate", folder, "-r", "bm25", "--text", "text", "--split", "dev", *QUICK, "--json", "-")
    assert found.code == 0
    content = json.loads(found.out)
    assert content["sentence"] == "Calibrated: 18 checks came out as expected."
    assert content["spec"]["rankers"] == ["bm25(text=text)"]
    assert content["spec"]["collection"]["split"] == "dev"


REFUSED: list[tuple[list[str], str]] = [
    (
        ["--format", "latx"],
        "Invalid value for '--format': 'latx' is not one of 'table', 'markdown', 'csv', 'latex', 'html', 'json'.",
    ),
    (["-r", "bm26"], "unknown ranker 'bm26'; did you mean 'bm25'?"),
    (["-r", "bm25", "-r", "bm25"], "ranker 'bm25' is given twice"),
    (["-r", "replay:a.trec"], "replay:a.trec cannot be calibrated"),
    (["-m", "nDCK@3"], "unknown measure 'nDCK'"),
    (["--depth", "0"], "expected depths of at least 1, got 0"),
    (["--sample", "1"], "expected a sample of at least 2 pairs, got 1"),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSED)
def test_what_cannot_be_done_is_one_line_and_2(cli: Cli, folder: Path, arguments: list[str], message: str) -> None:
    assert message in refused(cli, "tools", "calibrate", folder, *arguments)


@pytest.mark.data
def test_a_large_collection_is_sampled(cli: Cli, shared_data: Path) -> None:
    code, out, _ = cli("tools", "calibrate", shared_data / "cocktail-nfcorpus", "-r", "tfidf", "--sample", "60", *QUICK)
    assert code == 0
    assert "Sampled: 60 of 3,633 documents of human and " in out
