"""ranktilt data mix: collections united."""

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


def test_mix_and_load_write_parts_and_read_them(cli: Cli, toy_folder: Path, tmp_path: Path) -> None:
    assert cli("data", "load", toy_folder, "-o", tmp_path / "one", "--rows-per-file", 4, "--quiet") == (0, "", "")
    assert cli("data", "mix", tmp_path / "one", tmp_path / "one", "-o", tmp_path / "two", "--rows-per-file", 3) == (
        0, "", f"{tmp_path / 'two'}: {toy()!r}\n",
    )  # fmt: skip
    for name, number in (("one", 2), ("two", 2)):
        assert rt.load(tmp_path / name) == toy()
        assert len(list((tmp_path / name / "corpus").iterdir())) == number
        assert not (tmp_path / name / "corpus.jsonl").exists()


def test_mix_counts_missing_twins(cli: Cli, tmp_path: Path) -> None:
    one = write_cocktail(tmp_path / "one", corpora={"human": raw_docs("human")})
    lone = write_cocktail(tmp_path / "two", corpora={"llm": raw_docs("llm")[:2]}, qrels=raw_qrels()[2:3])
    code, _, err = cli("data", "mix", one, lone, "-o", tmp_path / "mixed")
    assert code == 0
    assert err.startswith("warning: 1 'human' documents have no 'llm' version: d3-human\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
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
