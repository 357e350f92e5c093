"""How a result was made: a spec as names and values."""

import pytest

from ranktilt.reporting.document import Code, Lines, Pairs, Sentence, Table
from ranktilt.reporting.provenance import folder, provenance


def test_values_are_written_plainly() -> None:
    spec = {
        "path": "toy", "rankers": ["bm25", "tfidf"], "level": 5.0, "seed": 0, "map": True, "split": None,
        "score_order": "score", "versions": {"ranktilt": "0.1.0", "polars": "1.36", "torch": None},
    }  # fmt: skip
    section = provenance(spec)
    assert section.lead == ()
    assert section.blocks == (
        Pairs(
            (
                ("collection", "toy"), ("rankers", "bm25, tfidf"), ("level", "5"), ("seed", "0"), ("map", "yes"),
                ("score order", "score"), ("versions", "ranktilt 0.1.0, polars 1.36"),
            )
        ),
    )  # fmt: skip


def test_command_notes_and_files_stand_apart() -> None:
    command = "ranktilt check --full x"
    inputs = [{"path": "a", "sha256": "1"}, {"path": "b", "sha256": "2"}]
    section = provenance({"command": command, "seed": 1, "inputs": inputs}, ["two were left out"])
    *front, table = section.blocks
    assert "same numbers" in section.lead[0]
    assert front == [
        Lines((Sentence("two were left out"),), only="page"),
        Code("The command that made it", command),
        Pairs((("seed", "1"),)),
    ]
    assert isinstance(table, Table)
    assert [[cell.text for cell in row] for row in table.rows] == [["a", "1"], ["b", "2"]]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"path": "/data/nfcorpus"}, "nfcorpus"),
        ({"collection": {"path": "sets/scifact/"}}, "scifact"),
        ({"collection": {"labels": "runs/gender.tsv"}}, "gender.tsv"),
        ({"collection": {"path": "beds/scifact", "labels": "runs/gender.tsv"}}, "scifact"),
        ({"collection": "toy"}, ""),
        ({"path": None}, ""),
        ({}, ""),
    ],
)
def test_a_result_is_named_after_the_last_part_of_its_folder_or_labels(spec: dict[str, object], expected: str) -> None:
    assert folder(spec) == expected
