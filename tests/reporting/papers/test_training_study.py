"""Tables 1 to 5 of Askari et al. out of a training study."""

import csv
import io
from dataclasses import replace
from pathlib import Path

import pytest

from ranktilt.experiments.training_result import TrainingStudy
from ranktilt.reporting.papers.cells import read_cells
from ranktilt.reporting.papers.results import cells_of, tables_of
from ranktilt.reporting.papers.tables import paper_tables
from tests.reporting.results import result

MINI = ("mini trained on human", "mini trained on llm")


@pytest.fixture(scope="module")
def study() -> TrainingStudy:
    made: TrainingStudy = result("training study")
    return made


def test_tables_say_that_a_body_was_tuned_before(study: TrainingStudy) -> None:
    tuned = replace(study, rankers=tuple(replace(one, tuned="retrieval") for one in study.rankers))
    for number, there in ((1, False), (2, True), (3, True), (4, False), (5, True)):
        printed = paper_tables([tuned], f"askari-{number}", "markdown")
        assert ("Body already tuned for retrieval: mini." in printed) is there


def test_the_papers_tables(study: TrainingStudy) -> None:
    assert tables_of(study) == [f"askari-{n}" for n in range(1, 6)]
    one = {(cell.dataset, cell.measure): cell.value for cell in cells_of(study, "askari-1")}
    assert one == {
        (group, f"queries {split}"): value
        for split in ("train", "validation")
        for group, value in (("all", 40), ("art", 20), ("law", 20))
    }
    two = {(cell.dataset, cell.system, cell.measure): cell.value for cell in cells_of(study, "askari-2")}
    assert two["qa, test", MINI[1], "AP@1000"] == 0.5
    assert {name for name, _, _ in two} == {"qa, test", "nf"}
    three = {(cell.dataset, cell.system) for cell in cells_of(study, "askari-3")}
    assert three == {(group, system) for group in ("all", "art", "law") for system in MINI}
    four = {(cell.system, cell.measure) for cell in cells_of(study, "askari-4")}
    assert four == {("BM25", measure) for measure in ("AP@1000", "nDCG@10", "R@1000")}
    five = {(cell.dataset, cell.system) for cell in cells_of(study, "askari-5")}
    assert five == {("qa, train", MINI[1])}
    assert "| mini trained on llm | .500 | .631 | .500 |" in paper_tables([study], "askari-2", "markdown")
    assert cells_of(study, "dai-3") == []


def test_table_2_marks_what_is_better_than_all_others(study: TrainingStudy) -> None:
    text = paper_tables([study], "askari-2", "markdown")
    assert "| mini trained on human | 1.000† | 1.000† | 1.000† |" in text
    assert text.count("1.000†") == 8  # three measures on one collection, five on the other
    assert text.count("†") == 9
    assert "- † significantly better than every other ranker and BM25 on the collection: paired t test" in text
    assert r"1.000$^\dagger$ & 1.000$^\dagger$" in paper_tables([study], "askari-2", "latex")
    rows = list(csv.DictReader(io.StringIO(paper_tables([study], "askari-2", "csv"))))
    assert {(row["system"], row["value"]) for row in rows if row["mark"] == "†"} == {(MINI[0], "1.000")}
    assert all("†" not in paper_tables([study], f"askari-{number}", "markdown") for number in (1, 3, 4, 5))


def test_marks_of_a_file_are_printed(tmp_path: Path) -> None:
    cells = "table,dataset,system,measure,value,mark\naskari-2,d,BM25,AP@1000,.377,\naskari-2,d,s,AP@1000,.4,†\n"
    (tmp_path / "cells.csv").write_text(cells, encoding="utf-8")
    printed = paper_tables([read_cells(tmp_path / "cells.csv")], "askari-2", "markdown")
    assert "| BM25 | .377 |" in printed
    assert "| s | .400† |" in printed
