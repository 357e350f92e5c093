"""What the command line says of documents that name no source."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.cli.conftest import refused as line
from tests.llm.server import Server
from tests.toy import raw_docs, write_beir


def docs(**more: Any) -> list[dict[str, Any]]:
    """The toy's human and LLM texts, without a source; `more` has a value for the former and one
    for the latter.
    """
    return [
        {
            **doc,
            "_id": f"{doc['_id']}-{side}",
            **{name: values[number] for name, values in more.items()},
        }
        for number, side in enumerate(("human", "llm"))
        for doc in raw_docs(side)
    ]


QRELS = [("q1", "d1-human", 1), ("q1", "d1-llm", 1), ("q2", "d2-human", 1), ("q2", "d2-llm", 1)]
"""By ids in which a word of the author stands, which says nothing."""
NO_SOURCE = "nothing to compare: the 6 documents have no source"


@pytest.fixture
def folder_with_one_group(tmp_path: Path) -> Path:
    return write_beir(tmp_path / "one", docs=docs(source=(None, "ai")), qrels=QRELS)


@pytest.fixture
def folder_with_flags(tmp_path: Path) -> Path:
    return write_beir(tmp_path / "flagged", docs=docs(is_ai=(False, True)), qrels=QRELS)


def test_single_group_is_measured_without_pairs(
    cli: Cli, folder_with_one_group: Path, tmp_path: Path
) -> None:
    assert cli("rank", folder_with_one_group, "-r", "bm25", "-o", tmp_path / "run.trec").code == 0
    for ranked in (("-r", "bm25"), ("--run", tmp_path / "run.trec")):
        code, out, err = cli(
            "audit", folder_with_one_group, *ranked, "-m", "nDCG@10", "--json", tmp_path / "a.json"
        )
        assert code == 0
        assert [row.split()[0] for row in out.splitlines() if row.startswith("   ")] == [
            "all",
            "ai",
        ]
        assert "3 documents without source, so in no group" in out + err
        assert "only source 'ai' is left, so there is nothing to compare" in out + err
        assert "human" not in out + err
        assert "Next" not in out + err
    assert cli("report", tmp_path / "a.json", "-o", tmp_path / "a.html").code == 0
    assert line(cli, "gate", tmp_path / "a.json").endswith(
        "this audit compares no groups; audit with --by COLUMN"
    )


def test_check_of_one_group_left(cli: Cli, folder_with_one_group: Path) -> None:
    code, out, err = cli("check", folder_with_one_group)
    assert code == 3
    assert "Nothing is compared: only source 'ai' is left" in out
    assert "3 documents without source, so in no group" in out + err
    assert "(no source)" in out


def test_column_that_could_name_the_source_is_named(cli: Cli, folder_with_flags: Path) -> None:
    advice = (
        f"{NO_SOURCE}; column 'is_ai' (false, true) could name it: ranktilt audit "
        f"{folder_with_flags} --by is_ai"
    )
    assert advice in line(cli, "audit", folder_with_flags, "-r", "bm25")
    code, out, err = cli("check", folder_with_flags)
    assert code == 3
    assert "Nothing is compared: no document names its source." in out
    assert f"ranktilt audit {folder_with_flags} --by is_ai" in out + err
    assert cli("audit", folder_with_flags, "--by", "is_ai", "-r", "bm25", "-m", "nDCG@10").code == 0


def test_plain_folder_ranks_and_is_measured_as_a_whole(cli: Cli, tmp_path: Path) -> None:
    plain = write_beir(tmp_path / "plain", docs=docs(), qrels=QRELS)
    assert cli("rank", plain, "-r", "bm25", "-o", tmp_path / "run.trec").code == 0
    code, out, _ = cli(
        "audit", plain, "--run", tmp_path / "run.trec", "--by", "none", "-m", "nDCG@10"
    )
    assert code == 0
    assert "human" not in out
    assert f"{NO_SOURCE}, and no column has few enough values to name it: name the source" in line(
        cli, "audit", plain, "-r", "bm25"
    )


def test_rewrite_names_the_side_that_it_was_told(
    cli: Cli, tmp_path: Path, server: Server, no_key: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    plain = write_beir(tmp_path / "plain")
    model = ("--llm", f"openai:echo(base_url={server.url})")
    for option, name in (((), "human"), (("--source-to-rewrite", "people"), "people")):
        code, _, err = cli("generate", "rewrite", plain, *model, *option, "--dry-run")
        assert code == 0
        assert (
            f"no document has a source, so 3 documents are called '{name}' (--source-to-rewrite)"
            in err
        )
    mixed = write_beir(tmp_path / "mixed", docs=docs(source=(None, "ai")), qrels=QRELS)
    assert line(cli, "generate", "rewrite", mixed, *model, "--dry-run").endswith(
        "unknown source 'human' (valid: ai); 3 documents have no source; name it: ranktilt data "
        "load "
        f"{mixed} --source human -o NEW"
    )


def test_load_names_the_source_of_documents_without_one(
    cli: Cli, folder_with_one_group: Path, tmp_path: Path
) -> None:
    assert (
        cli(
            "data", "load", folder_with_one_group, "--source", "human", "-o", tmp_path / "named"
        ).code
        == 0
    )
    rows = [
        json.loads(row) for row in (tmp_path / "named" / "corpus.jsonl").read_text().splitlines()
    ]
    assert [row["source"] for row in rows] == ["human"] * 3 + ["ai"] * 3
    again = ("data", "load", tmp_path / "named", "--source", "human", "-o", tmp_path / "again")
    assert line(cli, *again) == "--source human: every document has a source already; omit it"
    assert line(
        cli, "data", "load", folder_with_one_group, "--source", " ", "-o", tmp_path / "x"
    ).startswith("--source expects a name")
