"""ranktilt demo: the bundled collection, named for what it is."""

from pathlib import Path

import pytest

import ranktilt as rt
from ranktilt.auditing.controls import CONTROLS
from tests.cli.conftest import Cli, refused


def test_demo_names_what_its_texts_are(cli: Cli) -> None:
    code, out, err = cli("demo", "-r", "bm25", "-r", "tfidf")
    assert code == 0
    assert "claude" in out
    assert "paragraphs of the NumPy" in err
    assert "each with a rewrite by a language model (Claude)" in err
    assert "queries judged by the same model" in err
    assert err.count("\n") == 1


def test_demo_is_an_audit_of_the_bundled_collection(cli: Cli, tmp_path: Path) -> None:
    arguments = ("-r", "bm25", "-m", "P@1", "--json", tmp_path / "a.json", "--format", "csv", "--quiet")
    code, out, err = cli("demo", *arguments)
    found = rt.Audit.load(tmp_path / "a.json")
    collection = rt.bundled()
    assert (code, err) == (0, "")
    assert out == rt.table(found, "csv")
    expected = rt.audit(collection, rt.ranker("bm25").rank(collection), ["P@1"])
    assert found.values.tolist() == expected.values.tolist()


def test_demo_without_the_neural_extra_says_how_to_get_it(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ranktilt.cli.audit.find_spec", lambda name: None)
    code, out, err = cli("demo", "-m", "P@1", "--format", "csv")
    assert code == 0
    assert {line.split(",")[1] for line in out.splitlines() if line.startswith("means,")} == {"tfidf", "bm25"}
    assert err.endswith('For a neural retriever too: pip install "ranktilt[neural,demo]"\n')


def test_demo_takes_the_neural_retriever_where_it_is(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def stop(specs: list[str], **options: object) -> None:
        asked.extend(specs)
        raise rt.UserError("stop")

    monkeypatch.setattr("ranktilt.cli.audit.find_spec", lambda name: name)
    monkeypatch.setattr("ranktilt.cli.options.read_rankers", stop)
    assert refused(cli, "demo") == "stop"
    assert asked == ["tfidf", "bm25", "dense:minilm"]


def test_the_card_and_the_controls_of_the_bundled_collection(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "audit.json"
    code, out, _ = cli("demo", "-r", "bm25", "-m", "nDCG@3", "--card", "--controls", "--json", file)
    assert code == 0
    assert "The question card, every number" in out
    assert "Relative Δ in %, raw and controlled" in out
    found = rt.Audit.load(file)
    assert {e.estimand.key for e in found.estimates} >= {"page", "relevant twins", "rank gap"}
    assert {c.control for c in found.controls} == {"raw", *CONTROLS}
