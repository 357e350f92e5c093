"""Labels in place of texts, and labels beside them: what the collection then holds, and what is refused."""

import re
from pathlib import Path

import polars as pl
import pytest

from ranktilt.auditing.audit import audit
from ranktilt.collection import Collection
from ranktilt.datasets.labels import labelled, with_labels
from ranktilt.errors import DataError, UserError
from ranktilt.run import Run
from tests.toy import QRELS, TEXTS, Table, toy, tsv, write, write_run

SCORES = {
    "q1": {"d1-human": 3.0, "d1-llm": 2.0, "d3-llm": 2.0, "d2-human": 1.0, "d3-human": 1.0},
    "q2": {"d1-llm": 5.0, "d2-llm": 4.0, "d2-human": 3.0},
    "q3": {"d3-human": 2.0, "d3-llm": 2.0, "d1-human": 1.0},
}


def labels(folder: Path, *, origin: bool = True, name: str = "labels.tsv", column: str = "source") -> Path:
    """The toy's documents with their sources, as a table."""
    rows = [("doc_id", column, "origin")]
    rows += [(f"{d}-{s}", s, f"{d}-human") for s, texts in TEXTS.items() for d in texts]
    return write(folder / name, "".join("\t".join(row[: 3 if origin else 2]) + "\n" for row in rows))


def run(folder: Path, scores: Table = SCORES, name: str = "my.trec") -> Run:
    return Run.load(write_run(folder / name, scores))


def judgments(folder: Path, *more: tuple[str, str, int]) -> Path:
    rows = [(q, f"{d}-{s}", g) for q, grades in QRELS.items() for d, g in grades.items() for s in TEXTS]
    return write(folder / "qrels.tsv", tsv([*rows, *more]))


def test_a_run_and_labels_give_what_the_texts_give(tmp_path: Path) -> None:
    mine = run(tmp_path)
    bare = labelled(labels(tmp_path), [mine], qrels=judgments(tmp_path))
    whole = toy()
    one, two = (audit(c, mine, ["nDCG@3", "AP"], card=True, resamples=200) for c in (bare, whole))
    assert one.tilts == two.tilts
    assert one.estimates == two.estimates
    assert one.pair_counts.equals(two.pair_counts)
    assert (one.confounds, bool(two.confounds)) == ((), True)


def test_without_origins_nobody_has_a_twin(tmp_path: Path) -> None:
    mine = run(tmp_path)
    found = audit(labelled(labels(tmp_path, origin=False), [mine]), mine, card=True, resamples=200)
    assert [e.estimand.key for e in found.estimates] == ["page", "Share"]
    assert found.pair_counts.height == 0


def test_an_id_says_nothing_about_its_source(tmp_path: Path) -> None:
    turned = labels(tmp_path).read_text().replace("\thuman\t", "\t?\t").replace("\tllm\t", "\thuman\t")
    file = write(tmp_path / "turned.tsv", turned.replace("\t?\t", "\tllm\t"))
    mine = run(tmp_path)
    one = audit(labelled(labels(tmp_path), [mine]), mine, card=True, resamples=200).estimates
    two = audit(labelled(file, [mine]), mine, card=True, resamples=200).estimates
    assert [e.value for e in two] == [-e.value for e in one]


def test_queries_of_all_runs_and_of_the_judgments_are_known(tmp_path: Path) -> None:
    runs = [run(tmp_path, {q: SCORES[q]}, f"{q}.trec") for q in ("q1", "q3")]
    found = labelled(labels(tmp_path), runs, qrels=judgments(tmp_path))
    assert found.queries["id"].to_list() == ["q1", "q3", "q2"]
    audited = audit(found, runs[0], "nDCG@3", resamples=200)
    assert "2 judged queries not in the run, counted as 0" in audited.notes[0]


def test_an_unlabelled_document_is_counted_and_named_and_keeps_its_rank(tmp_path: Path) -> None:
    mine = run(tmp_path, {"q1": {"web-7": 9.0, **SCORES["q1"]}, "q2": SCORES["q2"]})
    found = audit(labelled(labels(tmp_path), [mine]), mine, card=True, depth=1, resamples=200)
    assert (
        f"{mine.name}: 1 entry of 1 document without a label (first: 'web-7'); "
        "these keep their ranks and belong to no group"
    ) in found.notes
    assert found.estimates[0].value == pytest.approx((0 - 1) / 2)


def test_a_judged_document_outside_run_and_labels_counts_in_the_row_all(tmp_path: Path) -> None:
    mine = run(tmp_path)
    found = labelled(labels(tmp_path), [mine], qrels=judgments(tmp_path, ("q2", "web-7", 1)))
    values = audit(found, mine, "R@5", resamples=200).by_group()
    assert values["mean"].to_list() == pytest.approx([(1 + 2 / 3 + 1) / 3, 1, 1])


def test_a_column_is_added(tmp_path: Path) -> None:
    file = write(tmp_path / "side.csv", "doc_id,side\nd1-human,east\nd1-llm,west\nd2-llm,east\nzz,west\n")
    found = with_labels(toy(), file, by="side")
    assert found.docs.select("id", "side").rows() == [
        ("d1-human", "east"), ("d2-human", None), ("d3-human", None),
        ("d1-llm", "west"), ("d2-llm", "east"), ("d3-llm", None),
    ]  # fmt: skip
    assert found.docs.drop("side").equals(toy().docs)
    assert found.qrels.equals(toy().qrels)


def test_sources_and_origins_come_from_the_file(tmp_path: Path) -> None:
    plain = toy()
    docs = plain.docs.with_columns(source=pl.lit("human"), origin=pl.col("id"))
    found = with_labels(Collection(docs, plain.queries, plain.qrels, {"files": ["x"]}), labels(tmp_path), by="source")
    assert found == plain
    assert (found.spec["files"], found.spec["labels"]) == (["x", str(tmp_path / "labels.tsv")], found.spec["files"][1])
    assert with_labels(plain, labels(tmp_path, origin=False), by="source") == plain
    file = write(tmp_path / "side.tsv", "doc_id\tside\torigin\nd1-human\tx\tX\nd2-human\ty\t\n")
    origins = with_labels(toy(), file, by="side").docs["origin"].to_list()
    assert origins == ["X", "d2-human", "d3-human", "d1-human", "d2-human", "d3-human"]


@pytest.mark.parametrize(
    ("column", "rows", "message"),
    [
        ("title", "d1-human\tx\n", "--groups cannot replace the column 'title' of a collection; call it"),
        ("id", "d1-human\tx\n", "--groups cannot replace the column 'id' of a collection; call it"),
        ("side", "zz\tx\n", "{file}: names none of the collection's 6 documents"),
        (
            "source",
            "d1-human\tme\nd1-llm\tit\n",
            "{file}: no source for 4 documents of the collection (first: 'd2-human')",
        ),
    ],
)
def test_labels_that_do_not_fit_the_texts_are_refused(tmp_path: Path, column: str, rows: str, message: str) -> None:
    file = write(tmp_path / "x.tsv", f"doc_id\t{column}\n{rows}")
    with pytest.raises(UserError, match="^" + re.escape(message.format(file=file))):
        with_labels(toy(), file, by=column)


def test_a_run_none_of_whose_queries_is_judged_is_refused(tmp_path: Path) -> None:
    runs = [run(tmp_path), run(tmp_path, {"7": SCORES["q1"], "8": SCORES["q2"]}, "other.trec")]
    with pytest.raises(DataError, match=r"other\.trec: no overlap: none of its 2 queries has a judgment \(first: '"):
        labelled(labels(tmp_path), runs, qrels=judgments(tmp_path))
