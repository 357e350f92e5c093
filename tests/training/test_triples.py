"""Training triples out of files: what they name is learned from, and what is none of the collection's is refused."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from ranktilt.errors import DataError
from ranktilt.generation.triples import triples
from ranktilt.training.options import RerankerTraining
from ranktilt.training.training_set import of_sources, reranker_set
from tests.toy import collection_of, write
from tests.training.material import WORDS, marked

FRUIT = collection_of(
    [
        {"id": name, "title": "T", "text": text}
        for name, text in (("a", "red\tapples"), ("b", "old clock"), ("c", "sea"))
    ],
    {"q1": "fruit", "q2": "time"},
    {"q1": {"a": 1, "c": 0}, "q2": {"b": 2, "a": 1}},
)


def learned(path: Path, **options: object) -> dict[str, list[tuple[str, list[str]]]]:
    """Positives of each query, each with what it is learned against."""
    found = reranker_set(FRUIT, RerankerTraining(triples=str(path), text="text", **options))  # type: ignore[arg-type]
    return {
        query: [
            (found.texts[good], [found.texts[row] for row in pool])
            for good, pool in zip(positives, negatives, strict=True)
        ]
        for query, positives, negatives in zip(found.queries, found.positives, found.negatives, strict=True)
    }


def test_lines_are_gathered_by_their_positive(tmp_path: Path) -> None:
    lines = ["q1\ta\tb", "q1\ta\tc", "", "q2\tb\tc"]
    write(tmp_path / "t.tsv", "\n".join(lines))
    expected = {"fruit": [("red\tapples", ["old clock", "sea"])], "time": [("old clock", ["sea"])]}
    assert learned(tmp_path / "t.tsv") == expected
    (tmp_path / "t.tsv.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    assert learned(tmp_path / "t.tsv.gz") == expected


def test_what_no_triple_names_is_counted(tmp_path: Path) -> None:
    write(tmp_path / "t.tsv", "q2\tb\tc\n")
    found = reranker_set(FRUIT, RerankerTraining(triples=str(tmp_path / "t.tsv")))
    assert (found.skipped, found.skipped_positives) == (1, 2)


def test_what_is_written_is_what_is_read(tmp_path: Path) -> None:
    human = of_sources(marked(), ["human"])
    (tmp_path / "t.tsv").write_bytes(b"".join(triples(human, 7)))
    found = reranker_set(marked(), RerankerTraining(triples=str(tmp_path / "t.tsv"), sources=("human",)))
    assert (len(found.queries), found.skipped_positives) == (len(WORDS), 0)
    assert {len(pool) for pools in found.negatives for pool in pools} == {7}
    rows = {text: row for row, text in enumerate(found.texts)}
    written = [line.split("\t") for line in (tmp_path / "t.tsv").read_text().splitlines()]
    texts = dict(marked().docs.select("id", "text").iter_rows())
    negatives = [rows[texts[line[2]]] for line in written]
    assert np.concatenate([pool for pools in found.negatives for pool in pools]).tolist() == negatives


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q1\ta\n", ":1: expected query, positive and negative (3 tab-separated fields), got 'q1\\ta'"),
        ("q1\ta\tb\nq9\ta\tb\n", ":2: the collection has no query 'q9'; are these the triples of another collection?"),
        ("q1\ta\tb\nq1\ta\tz\n", ":2: the collection has no document to learn from 'z'; are these the triples of"),
        ("q1\tx\tb\n", ":1: the collection has no document to learn from 'x'; are these the triples of another"),
        ("q1\ta\tb\n\nq1\tc\tb\n", ":3: document 'c' is not judged relevant to query 'q1' in the collection"),
        ("where\tis\tit\n", ":1: the collection has no query 'where'; are these the triples of another collection?"),
        ("", ": the file is empty"),
        ("\n\n", ": the file is empty"),
    ],
)
def test_what_is_no_triple_of_the_collection_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path / "t.tsv", text)
    with pytest.raises(DataError) as found:
        learned(path)
    assert str(found.value).startswith(f"{path}{message}")
