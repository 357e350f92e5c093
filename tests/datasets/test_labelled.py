"""Labels in place of texts, and labels beside them: what the collection then holds, and what is refused."""

from pathlib import Path

import polars as pl
import pytest

from ranktilt.auditing.audit import audit
from ranktilt.collection import Collection
from ranktilt.datasets.labels import labelled, with_labels
from ranktilt.datasets.load import load
from ranktilt.errors import DataError, UserError
from ranktilt.run import Run
from tests.refusals import refused
from tests.toy import QRELS, TEXTS, Table, toy, tsv, write, write_cocktail, write_run

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


class TestInPlaceOfTexts:
    def test_a_run_and_labels_give_what_the_texts_give(self, tmp_path: Path) -> None:
        mine = run(tmp_path)
        bare = labelled(labels(tmp_path), [mine], qrels=judgments(tmp_path))
        whole = toy()
        one, two = (audit(c, mine, ["nDCG@3", "AP"], card=True, resamples=200) for c in (bare, whole))
        assert one.tilts == two.tilts
        assert one.estimates == two.estimates
        assert one.pair_counts.equals(two.pair_counts)
        assert (one.confounds, bool(two.confounds)) == ((), True)

    def test_without_origins_nobody_has_a_twin(self, tmp_path: Path) -> None:
        mine = run(tmp_path)
        found = audit(labelled(labels(tmp_path, origin=False), [mine]), mine, card=True, resamples=200)
        assert [e.estimand.key for e in found.estimates] == ["page", "Share"]
        assert found.pair_counts.height == 0

    def test_an_id_says_nothing_about_its_source(self, tmp_path: Path) -> None:
        turned = labels(tmp_path).read_text().replace("\thuman\t", "\t?\t").replace("\tllm\t", "\thuman\t")
        file = write(tmp_path / "turned.tsv", turned.replace("\t?\t", "\tllm\t"))
        mine = run(tmp_path)
        one = audit(labelled(labels(tmp_path), [mine]), mine, card=True, resamples=200).estimates
        two = audit(labelled(file, [mine]), mine, card=True, resamples=200).estimates
        assert [e.value for e in two] == [-e.value for e in one]

    def test_queries_of_all_runs_and_of_the_judgments_are_known(self, tmp_path: Path) -> None:
        runs = [run(tmp_path, {q: SCORES[q]}, f"{q}.trec") for q in ("q1", "q3")]
        found = labelled(labels(tmp_path), runs, qrels=judgments(tmp_path))
        assert found.queries["id"].to_list() == ["q1", "q3", "q2"]
        audited = audit(found, runs[0], "nDCG@3", resamples=200)
        assert "2 judged queries not in the run, counted as 0" in audited.notes[0]

    def test_an_unlabelled_document_is_counted_and_named_and_keeps_its_rank(self, tmp_path: Path) -> None:
        mine = run(tmp_path, {"q1": {"web-7": 9.0, **SCORES["q1"]}, "q2": SCORES["q2"]})
        found = audit(labelled(labels(tmp_path), [mine]), mine, card=True, depth=1, resamples=200)
        assert (
            f"{mine.name}: 1 entry of 1 document without a label (first: 'web-7'); "
            "these keep their ranks and belong to no group"
        ) in found.notes
        assert found.estimates[0].value == pytest.approx((0 - 1) / 2)

    def test_a_judged_document_outside_run_and_labels_counts_in_the_row_all(self, tmp_path: Path) -> None:
        mine = run(tmp_path)
        found = labelled(labels(tmp_path), [mine], qrels=judgments(tmp_path, ("q2", "web-7", 1)))
        values = audit(found, mine, "R@5", resamples=200).by_group()
        assert values["mean"].to_list() == pytest.approx([(1 + 2 / 3 + 1) / 3, 1, 1])


class TestRefusedInPlaceOfTexts:
    def test_a_run_none_of_whose_queries_is_judged(self, tmp_path: Path) -> None:
        runs = [run(tmp_path), run(tmp_path, {"7": SCORES["q1"], "8": SCORES["q2"]}, "other.trec")]
        with refused(
            f"{tmp_path / 'other.trec'}: no overlap: none of its 2 queries has a judgment (first: '7')", DataError
        ):
            labelled(labels(tmp_path), runs, qrels=judgments(tmp_path))


class TestBesideTexts:
    def test_a_column_is_added(self, tmp_path: Path) -> None:
        file = write(tmp_path / "side.csv", "doc_id,side\nd1-human,east\nd1-llm,west\nd2-llm,east\nzz,west\n")
        found = with_labels(toy(), file, by="side")
        assert found.docs.select("id", "side").rows() == [
            ("d1-human", "east"), ("d2-human", None), ("d3-human", None),
            ("d1-llm", "west"), ("d2-llm", "east"), ("d3-llm", None),
        ]  # fmt: skip
        assert found.docs.drop("side").equals(toy().docs)
        assert found.qrels.equals(toy().qrels)

    def test_sources_and_origins_come_from_the_file(self, tmp_path: Path) -> None:
        plain = toy()
        docs = plain.docs.with_columns(source=pl.lit("human"), origin=pl.col("id"))
        found = with_labels(Collection(docs, plain.queries, plain.qrels), labels(tmp_path), by="source")
        assert found == plain
        assert with_labels(plain, labels(tmp_path, origin=False), by="source") == plain

    def test_an_origin_that_is_not_given_stays(self, tmp_path: Path) -> None:
        file = write(tmp_path / "side.tsv", "doc_id\tside\torigin\nd1-human\tx\tX\nd2-human\ty\t\n")
        found = with_labels(toy(), file, by="side").docs
        assert found["origin"].to_list() == ["X", "d2-human", "d3-human", "d1-human", "d2-human", "d3-human"]

    def test_the_file_is_named_among_those_read(self, tmp_path: Path) -> None:
        collection = load(write_cocktail(tmp_path / "toy"))
        spec = with_labels(collection, labels(tmp_path), by="source").spec
        assert spec["files"] == [*collection.spec["files"], str(tmp_path / "labels.tsv")]
        assert spec["labels"] == str(tmp_path / "labels.tsv")


class TestRefusedBesideTexts:
    @pytest.mark.parametrize("column", ["origin", "title", "id", "text"])
    def test_a_column_that_every_collection_has(self, tmp_path: Path, column: str) -> None:
        file = write(tmp_path / "x.tsv", f"doc_id\t{column}\nd1-human\tx\n")
        with pytest.raises(UserError, match=f"^--groups cannot replace the column '{column}' of a collection; call it"):
            with_labels(toy(), file, by=column)

    def test_labels_of_other_documents(self, tmp_path: Path) -> None:
        file = write(tmp_path / "x.tsv", "doc_id\tside\nzz\tx\n")
        with refused(f"{file}: names none of the collection's 6 documents", DataError):
            with_labels(toy(), file, by="side")

    def test_a_document_without_a_source(self, tmp_path: Path) -> None:
        file = write(tmp_path / "x.tsv", "doc_id\tsource\nd1-human\tme\nd1-llm\tit\n")
        with refused(
            f"{file}: no source for 4 documents of the collection (first: 'd2-human'); label all of them, or name "
            "another column with --by",
            DataError,
        ):
            with_labels(toy(), file, by="source")
