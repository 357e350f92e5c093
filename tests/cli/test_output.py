"""A command never writes over what it reads."""

from pathlib import Path

import pytest

from ranktilt.cli.output import check_paths, collection_files
from ranktilt.errors import UserError
from tests.cli.conftest import Cli

RUN = {"q1": {"d1-human": 2.0, "d1-llm": 1.0}}


@pytest.mark.parametrize(
    "arguments",
    [
        ["audit", "{}", "-r", "bm25", "--json", "{}/queries.jsonl"],
        ["audit", "{}", "-r", "bm25", "--per-query", "{}/corpus/human.jsonl"],
        ["audit", "{}", "-r", "bm25", "--per-query", "{}/qrels/test.tsv"],
        ["check", "{}", "--json", "{}/corpus/llm.jsonl"],
        ["tools", "calibrate", "{}", "-r", "bm25", "--json", "{}/queries.jsonl"],
    ],
    ids=lambda a: " ".join(a[:1] + a[-1:]) if isinstance(a, list) else str(a),
)
def test_a_file_of_the_collection_is_not_overwritten(cli: Cli, toy_folder: Path, arguments: list[str]) -> None:
    before = {file: file.read_bytes() for file in toy_folder.rglob("*") if file.is_file()}
    code, out, err = cli(*(a.format(toy_folder) for a in arguments))
    assert (code, out) == (2, "")
    place = arguments[-1].format(toy_folder)
    assert f"{arguments[-2]} {place}: this file is read too; choose another place" in err
    assert {file: file.read_bytes() for file in toy_folder.rglob("*") if file.is_file()} == before


def test_the_files_of_a_collection_are_listed(toy_folder: Path, tmp_path: Path) -> None:
    named = {str(file.relative_to(toy_folder)) for file in collection_files(toy_folder)}
    assert named == {"corpus/human.jsonl", "corpus/llm.jsonl", "queries.jsonl", "qrels/test.tsv"}
    assert collection_files(None) == []
    assert collection_files(tmp_path / "absent") == []


def test_two_options_cannot_name_one_file(tmp_path: Path) -> None:
    places = {"--json": tmp_path / "a", "--junit": tmp_path / "a"}
    with pytest.raises(UserError, match=r"--junit .*a: this file is written by --json too; choose another place"):
        check_paths(places, stdout=(), inputs=())
