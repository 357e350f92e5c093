"""ranktilt study: several temperatures, each against the human side."""

import json
from pathlib import Path

import pytest

from ranktilt.cli.study import read_temperatures
from ranktilt.errors import UserError
from tests.cli.conftest import Cli, refused
from tests.toy import raw_docs, write_cocktail

QUICK = ("-r", "bm25", "--resamples", "200")
SOURCES = ("llm-tmp0.2", "llm-tmp0.7", "llm-tmp1.0")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The toy with rewrites at three temperatures, of which the last loses its words."""
    texts = {source: raw_docs("llm") for source in SOURCES}
    texts["llm-tmp1.0"] = [{**row, "text": "nothing of the kind"} for row in raw_docs("llm")]
    return write_cocktail(tmp_path / "hot", corpora={"human": raw_docs(), **texts})


def test_the_options_reach_the_study(cli: Cli, folder: Path) -> None:
    options = ("--ties", "trec_eval", "--test", "t", "--correction", "bonferroni", "--level-margin", "7", "--seed", "3")
    result = cli(
        "study",
        folder,
        *QUICK,
        "-m",
        "nDCG@3",
        "--source",
        "llm-tmp0.2",
        "--source-temperature",
        "llm-tmp0.2=0.5",
        *options,
        "--json",
        "-",
    )
    content = json.loads(result.out)
    assert content["arms"] == [{"source": "llm-tmp0.2", "series": "llm", "temperature": 0.5, "documents": 3}]
    expected = {"ties": "trec_eval", "test": "t", "correction": "bonferroni", "level": 7.0, "seed": 3, "resamples": 200}
    assert {key: content["spec"][key] for key in expected} == expected


def test_another_reference_takes_the_human_sides_place(cli: Cli, folder: Path) -> None:
    content = json.loads(
        cli(
            "study",
            folder,
            *QUICK,
            "--reference",
            "llm-tmp0.2",
            "--source-temperature",
            "human=0",
            "-m",
            "nDCG@1",
            "--json",
            "-",
        ).out
    )
    assert content["reference"] == "llm-tmp0.2"
    assert [arm["source"] for arm in content["arms"]] == ["human", "llm-tmp0.7", "llm-tmp1.0"]


def test_sources_that_cover_different_documents_are_told_of(cli: Cli, tmp_path: Path) -> None:
    corpora = {"human": raw_docs(), "llm-tmp0.2": raw_docs("llm"), "llm-tmp1.0": raw_docs("llm")[:2]}
    judged = [("q1", "d1", 1), ("q2", "d2", 1)]
    folder = write_cocktail(tmp_path / "less", corpora=corpora, qrels=judged)
    out = cli("study", folder, *QUICK, "-m", "nDCG@3").out
    assert "warning: the sources do not cover the same documents: 2 of 3 rewritten documents are common to all" in out
    assert "(llm-tmp1.0 lacks 1)" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "nothing to study: name a ranker, such as -r bm25"),
        (
            ("-r", "bm25", "--source-temperature", "llm"),
            "--source-temperature expects a source and its temperature, such as llama=0.2; got 'llm'",
        ),
        (
            ("-r", "bm25", "--source-temperature", "llm=hot"),
            "--source-temperature expects a source and its temperature, such as llama=0.2; got ",
        ),
        (("-r", "bm25", "--source-temperature", "gpt=1"), "unknown source 'gpt'"),
        (("-r", "bm25", "--source", "gpt"), "unknown source 'gpt'"),
        (("-r", "bm25", "--reference", "man"), "unknown source 'man'"),
    ],
)
def test_mistakes_end_in_one_line(cli: Cli, folder: Path, arguments: tuple[str, ...], message: str) -> None:
    assert message in refused(cli, "study", folder, *arguments)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [([], {}), (["a=0.2", "b=1"], {"a": 0.2, "b": 1.0}), (["x=y=0"], {"x=y": 0.0}), (["a=1e-1"], {"a": 0.1})],
)
def test_temperatures_are_read(texts: list[str], expected: dict[str, float]) -> None:
    assert read_temperatures(texts) == expected


@pytest.mark.parametrize("text", ["", "a", "=0.2", "a=", "a=-1", "a=nan", "a=inf", "a=0,2"])
def test_what_is_no_temperature_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="--source-temperature expects a source and its temperature"):
        read_temperatures([text])


def test_one_source_has_one_temperature() -> None:
    with pytest.raises(UserError, match="--source-temperature names source 'a' twice"):
        read_temperatures(["a=0.2", "a=0.7"])
