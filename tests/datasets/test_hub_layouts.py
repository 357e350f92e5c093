"""Which file of a data set holds what, told by names alone."""

from pathlib import Path

import pytest

from ranktilt.datasets.hub import inventory
from ranktilt.errors import UserError
from tests.toy import write


def place(folder: Path, *names: str) -> Path:
    for name in names:
        write(folder / name, "x")
    return folder


def relative(folder: Path, *files: Path) -> list[str]:
    return [file.relative_to(folder).as_posix() for file in files]


@pytest.mark.parametrize(
    ("names", "layout", "sources"),
    [
        (["corpus.jsonl"], "beir", [None]),
        (["corpus.jsonl.gz"], "beir", [None]),
        (["corpus.parquet"], "beir", [None]),
        (["corpus/corpus.jsonl"], "beir", [None]),
        (["corpus/corpus-00000-of-00002.parquet", "corpus/corpus-00001-of-00002.parquet"], "beir", [None, None]),
        (["corpus/scifact-corpus.parquet"], "beir", [None]),
        (["corpus/train-00000-of-00001.parquet"], "beir", [None]),
        (["corpus/corpus/0000.parquet", "corpus/corpus/index.duckdb"], "beir", [None]),
        (["corpus/human.jsonl"], "cocktail", ["human"]),
        (["corpus/gpt.jsonl", "corpus/human.jsonl"], "cocktail", ["human", "gpt"]),
        (
            ["corpus/llama-2-7b-chat-tmp0.2.jsonl", "corpus/human.jsonl"],
            "cocktail",
            ["human", "llama-2-7b-chat-tmp0.2"],
        ),
        (["corpus/a.parquet", "corpus/b.parquet"], "cocktail", ["a", "b"]),
        (["corpus/human/0000.parquet", "corpus/llm/0000.parquet"], "cocktail", ["human", "llm"]),
    ],
)
def test_documents(tmp_path: Path, names: list[str], layout: str, sources: list[str | None]) -> None:
    found = inventory(place(tmp_path, *names))
    assert (found.layout, [source for source, _ in found.corpora]) == (layout, sources)


@pytest.mark.parametrize(
    "name",
    [
        "queries.jsonl",
        "queries.jsonl.gz",
        "queries.parquet",
        "queries/queries-00000-of-00001.parquet",
        "queries/test.jsonl",
    ],
)
def test_queries(tmp_path: Path, name: str) -> None:
    assert relative(tmp_path, *inventory(place(tmp_path, name)).queries) == [name]


@pytest.mark.parametrize(
    ("names", "splits"),
    [
        (["qrels/test.tsv", "qrels/train.tsv"], ["test", "train"]),
        (["qrels/test.jsonl"], ["test"]),
        (["qrels/dev.tsv.gz"], ["dev"]),
        (["qrels/test-00000-of-00002.parquet", "qrels/test-00001-of-00002.parquet"], ["test"]),
        (["data/test-00000-of-00001.parquet"], ["test"]),
        (["default/test/0000.parquet"], ["test"]),
        (["test.tsv", "validation.tsv"], ["test", "validation"]),
        (["other.tsv"], []),
        (["results/test.tsv"], []),
    ],
)
def test_judgments(tmp_path: Path, names: list[str], splits: list[str]) -> None:
    found = inventory(place(tmp_path, *names)).splits
    assert list(found) == splits
    assert sum(map(len, found.values())) == (len(names) if splits else 0)


def test_a_data_set_of_judgments_names_its_splits_freely(tmp_path: Path) -> None:
    assert list(inventory(place(tmp_path, "fold1.tsv"), judgments_only=True).splits) == ["fold1"]


def test_what_systems_leave_behind_is_nothing(tmp_path: Path) -> None:
    found = inventory(place(tmp_path, "__MACOSX/corpus.jsonl", ".cache/corpus.jsonl", "corpus/._human.jsonl"))
    assert (found.corpora, found.files) == ((), ())


def test_a_split_is_test_or_the_only_one(tmp_path: Path) -> None:
    both = inventory(place(tmp_path / "a", "qrels/test.tsv", "qrels/train.tsv"))
    one = inventory(place(tmp_path / "b", "qrels/dev.tsv"))
    assert (both.split(None, "x")[0], one.split(None, "x")[0], both.split("train", "x")[0]) == ("test", "dev", "train")


def test_no_judgments_are_said_with_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        inventory(place(tmp_path, "corpus.jsonl")).split(None, "hub:a/b")
    assert str(caught.value) == ("hub:a/b: expected judgments in qrels/<split> or <split>.tsv; its files: corpus.jsonl")
