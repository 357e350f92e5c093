"""How a result was made: a spec as names and values."""

import pytest

from ranktilt.reporting.document import Code, Lines, Pairs, Sentence, Table
from ranktilt.reporting.views.provenance import folder, provenance


def test_values_are_written_plainly() -> None:
    spec = {"path": "toy", "rankers": ["bm25", "tfidf"], "level": 5.0, "seed": 0, "map": True, "split": None}
    (pairs,) = provenance(spec).blocks
    assert pairs == Pairs(
        (("collection", "toy"), ("rankers", "bm25, tfidf"), ("level", "5"), ("seed", "0"), ("map", "yes"))
    )


def test_mapping_is_one_line() -> None:
    (pairs,) = provenance({"versions": {"ranktilt": "0.1.0", "polars": "1.36", "torch": None}}).blocks
    assert pairs == Pairs((("versions", "ranktilt 0.1.0, polars 1.36"),))


def test_underscores_become_blanks() -> None:
    (pairs,) = provenance({"score_order": "score"}).blocks
    assert pairs == Pairs((("score order", "score"),))


def test_command_and_notes_stand_apart() -> None:
    notes, command, pairs = provenance({"command": "ranktilt check --full x", "seed": 1}, ["two were left out"]).blocks
    assert notes == Lines((Sentence("two were left out"),), only="page")
    assert command == Code("The command that made it", "ranktilt check --full x")
    assert pairs == Pairs((("seed", "1"),))


def test_files_with_hashes_are_a_table() -> None:
    pairs, table = provenance({"inputs": [{"path": "a", "sha256": "1"}, {"path": "b", "sha256": "2"}]}).blocks
    assert pairs == Pairs(())
    assert isinstance(table, Table)
    assert [column.title for column in table.columns] == ["file", "SHA-256"]
    assert [[cell.text for cell in row] for row in table.rows] == [["a", "1"], ["b", "2"]]


def test_run_begins_with_its_ranker_and_leaves_out_what_holds_for_all() -> None:
    runs = [
        {"ranker": "bm25", "ranktilt": "0.1.0", "collection": "sets/a"},
        {"ranker": "dense:x", "ranktilt": "0.0.9", "collection": "sets/a", "model": {"folder": "x", "size": 2}},
        "saved",
    ]
    (pairs,) = provenance({"ranktilt": "0.1.0", "collection": {"path": "sets/a"}, "runs": runs}).blocks
    assert isinstance(pairs, Pairs)
    assert dict(pairs.pairs)["runs"] == "bm25\ndense:x: ranktilt 0.0.9, model (folder x, size 2)\nsaved"


def test_only_what_has_a_command_says_that_it_can_be_made_again() -> None:
    assert provenance({"seed": 1}).lead == ()
    (lead,) = provenance({"command": "ranktilt audit x"}).lead
    assert "same numbers" in lead


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"path": "/data/nfcorpus"}, "nfcorpus"),
        ({"collection": {"path": "sets/scifact/"}}, "scifact"),
        ({"collection": "toy"}, ""),
        ({"path": None}, ""),
        ({}, ""),
    ],
)
def test_folder_is_named_without_what_is_above(spec: dict[str, object], expected: str) -> None:
    assert folder(spec) == expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"path": "/data/nfcorpus"}, "nfcorpus"),
        ({"collection": {"path": "beds/scifact/"}}, "scifact"),
        ({"collection": {"labels": "runs/gender.tsv"}}, "gender.tsv"),
        ({"collection": {"path": "beds/scifact", "labels": "runs/gender.tsv"}}, "scifact"),
        ({"collection": {}}, ""),
        ({}, ""),
    ],
)
def test_name_is_the_last_part_of_the_folder_or_of_the_labels(spec: dict[str, object], expected: str) -> None:
    assert folder(spec) == expected
