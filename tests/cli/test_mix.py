"""ranktilt data mix: collections united, or written in another layout."""

from pathlib import Path

import pytest

import ranktilt as rt
from tests.cli.conftest import Cli, refused
from tests.toy import raw_docs, raw_qrels, toy, write_cocktail


def test_mix_unites_folders(cli: Cli, tmp_path: Path) -> None:
    one = write_cocktail(tmp_path / "one", corpora={"human": raw_docs("human")})
    two = write_cocktail(tmp_path / "two", corpora={"llm": raw_docs("llm")})
    code, out, err = cli("data", "mix", one, two, "-o", tmp_path / "mixed")
    mixed = rt.load(tmp_path / "mixed")
    assert (code, out) == (0, "")
    assert err == f"{tmp_path / 'mixed'}: {mixed!r}\n"
    assert mixed == toy()
    assert (tmp_path / "mixed" / "corpus.jsonl").is_file()


@pytest.mark.parametrize("layout", ["beir", "cocktail"])
def test_mix_writes_one_folder_in_another_layout(cli: Cli, toy_folder: Path, tmp_path: Path, layout: str) -> None:
    assert cli("data", "mix", toy_folder, "--output", tmp_path / "new", "--layout", layout, "--quiet") == (0, "", "")
    assert rt.load(tmp_path / "new") == toy()
    names = {"beir": ["corpus.jsonl"], "cocktail": ["corpus/human.jsonl", "corpus/llm.jsonl"]}[layout]
    assert sorted(str(f.relative_to(tmp_path / "new")) for f in (tmp_path / "new").rglob("*.jsonl")) == [
        *names,
        "queries.jsonl",
    ]


def test_mix_and_load_write_parts_and_read_them(cli: Cli, toy_folder: Path, tmp_path: Path) -> None:
    assert cli("data", "load", toy_folder, "-o", tmp_path / "one", "--parts", 4, "--quiet") == (0, "", "")
    assert cli("data", "mix", tmp_path / "one", tmp_path / "one", "-o", tmp_path / "two", "--parts", 3) == (
        0, "", f"{tmp_path / 'two'}: {toy()!r}\n",
    )  # fmt: skip
    for name, number in (("one", 2), ("two", 2)):
        assert rt.load(tmp_path / name) == toy()
        assert len(list((tmp_path / name / "corpus").iterdir())) == number
        assert not (tmp_path / name / "corpus.jsonl").exists()
    assert (
        refused(cli, "data", "mix", toy_folder, "-o", tmp_path / "three", "--layout", "cocktail", "--parts", "3")
        == "expected at least 1 document a part, in layout 'beir'; layout 'cocktail' has a file a source"
    )


def test_mix_counts_missing_twins(cli: Cli, tmp_path: Path) -> None:
    one = write_cocktail(tmp_path / "one", corpora={"human": raw_docs("human")})
    lone = write_cocktail(tmp_path / "two", corpora={"llm": raw_docs("llm")[:2]}, qrels=raw_qrels()[2:3])
    code, _, err = cli("data", "mix", one, lone, "-o", tmp_path / "mixed")
    assert code == 0
    assert err.startswith("warning: 1 'human' documents have no 'llm' version: d3-human\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["{toy}", "-o", "{tmp}/new", "--layout", "bier"],
            "Invalid value for '--layout': 'bier' is not one of 'beir', 'cocktail'.",
        ),
        (["{toy}", "{tmp}/none", "-o", "{tmp}/new"], "{tmp}/none: no such folder"),
        (["{toy}", "-o", "{toy}/queries.jsonl"], "{toy}/queries.jsonl/"),
        (
            ["{toy}", "-o", "{toy}"],
            "{toy}: holds another collection ({toy}/corpus/human.jsonl); choose an empty folder",
        ),
        (["{toy}", "-o", "{tmp}/new", "--split", "dev"], "{toy}/qrels: unknown split 'dev' (valid: test); choose one "),
    ],
)
def test_mix_refuses_in_one_line(
    cli: Cli, toy_folder: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    places = {"toy": toy_folder, "tmp": tmp_path}
    got = refused(cli, "data", "mix", *(argument.format(**places) for argument in arguments))
    assert got.startswith(message.format(**places))
    assert not (tmp_path / "new").exists()
