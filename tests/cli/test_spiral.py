"""ranktilt tools spiral: rewrites enter round by round."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli, refused
from tests.toy import raw_docs, write_cocktail

QUICK = ("-r", "bm25", "--resamples", "200")


def test_the_options_reach_the_spiral(cli: Cli, toy_folder: Path, tmp_path: Path) -> None:
    page = tmp_path / "spiral.html"
    options = (
        "--rounds",
        "3",
        "--page",
        "2",
        "--entry-rule",
        "random",
        "--round-share",
        "0.5",
        "--seed",
        "3",
        "--reference",
        "llm",
    )
    code, out, _ = cli("tools", "spiral", toy_folder, *QUICK, *options, "-o", page, "--json", "-")
    content, expected = json.loads(out), {"rounds": 3, "page": 2, "entry_rule": "random", "share": 0.5, "seed": 3}
    assert code == 0
    assert {key: content["spec"][key] for key in expected} == expected
    assert (content["reference"], content["spec"]["source"]) == ("llm", "human")
    assert [one["rewrites"] for one in content["rounds"]] == [0, 2, 3, 3]
    assert "After 3 rounds the first 2 are" in page.read_text("utf-8")


def test_a_spiral_becomes_a_page_again(cli: Cli, toy_folder: Path, tmp_path: Path) -> None:
    code, out, _ = cli("tools", "spiral", toy_folder, *QUICK, "-r", "tfidf", "--json", tmp_path / "s.json")
    assert code == 0
    assert "bm25 (its collection: " in out or "where the collection is " in out
    assert cli("report", tmp_path / "s.json", "-o", tmp_path / "s.html").code == 0
    assert "Round by round" in (tmp_path / "s.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "nothing to rank with: name a ranker, such as -r bm25"),
        (("-r", "bm25", "--round-share", "2"), "expected a share of the origins a round above 0 and at most 1, got 2"),
        (("-r", "bm25", "--source", "gpt"), "unknown source 'gpt' (valid: llm)"),
        (
            ("-r", "replay:x.trec"),
            "replay:x.trec: a saved run or an engine cannot rank a collection that grows; name a ranker such as bm25",
        ),
    ],
)
def test_mistakes_end_in_one_line(cli: Cli, toy_folder: Path, arguments: tuple[str, ...], message: str) -> None:
    assert message in refused(cli, "tools", "spiral", toy_folder, *arguments)


def test_one_source_only_is_refused(cli: Cli, tmp_path: Path) -> None:
    folder = write_cocktail(tmp_path / "alone", corpora={"human": raw_docs()})
    message = "nothing can enter: only source 'human'; expected rewrites of its documents"
    assert refused(cli, "tools", "spiral", folder, *QUICK) == message
