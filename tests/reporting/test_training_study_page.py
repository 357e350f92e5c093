"""What a training study shows: a table a collection, its page, and Tables 1 to 5 of Askari et al."""

import csv
import io
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from ranktilt.experiments.training_result import BASELINE, TrainingStudy
from ranktilt.reporting.document import Figure, Table
from ranktilt.reporting.output import table
from ranktilt.reporting.papers.cells import read_cells
from ranktilt.reporting.papers.figures import paper_figures
from ranktilt.reporting.papers.results import cells_of, tables_of
from ranktilt.reporting.papers.tables import paper_tables
from ranktilt.reporting.views import view
from tests.experiments.trained import HUMAN, mixture, ranked, studied, whole
from tests.reporting.charts import by_name, points

MINI = ("mini trained on human", "mini trained on llm")


@pytest.fixture(scope="module", name="study")
def made() -> TrainingStudy:
    return whole_once()


@cache
def whole_once() -> TrainingStudy:
    return whole()


def test_each_collection_has_a_table_with_marks(study: TrainingStudy) -> None:
    text = table(study, "markdown")
    assert "**qa, test: supervised, 40 queries, 40 documents, depth 1,000**" in text
    plain = re.sub(r" \[[^]]*\]", "", text)
    assert "| mini trained on human | 100.0†‡ | 100.0†‡ | 100.0†‡ | 100.0 | +45.3\\* |" in plain
    assert "| mini trained on llm | 50.0 | 63.1 | 50.0 | 100.0 | −45.3\\* |" in plain
    assert "**nf: zero-shot, 40 queries, 40 documents, depth 100**" in text
    assert "| less trained on human | −90.5\\* |" in plain
    assert plain.count("|  | mini trained on human | 100.0†‡ | 100.0†‡ | 100.0†‡ | 100.0 |") == 3  # all and two domains


def test_the_terminal_holds_all_five_tables(study: TrainingStudy) -> None:
    text = table(study)
    for said in ("qa, test, by domain", "What BM25 finds, by split and side", "Relative Δ on the answers of both sides",
                 "Queries of the training, whose labels it did not learn from", "Words of a query"):  # fmt: skip
        assert said in text
    assert "warning: one training of each ranker is no finding" in text


def test_tables_say_that_a_body_was_tuned_before() -> None:
    tuned = replace(whole_once(), rankers=tuple(replace(one, tuned="retrieval") for one in whole_once().rankers))
    said = "; body already tuned for retrieval: mini"
    assert f"qa, test: supervised, 40 queries, 40 documents, depth 1,000{said}\n" in table(tuned)
    tables = [block for one in view(tuned).sections for block in one.blocks if isinstance(block, Table)]
    trained = [one for one in tables if any("mini" in cell.text for row in one.rows for cell in row.cells)]
    assert len(trained) == 6  # two collections, tilts, domains, seen queries, curve
    assert all(one.caption.endswith(said) for one in trained)
    assert "body already tuned" not in table(whole_once())
    for number, there in ((1, False), (2, True), (3, True), (4, False), (5, True)):
        printed = paper_tables([tuned], f"askari-{number}", "markdown")
        assert ("Body already tuned for retrieval: mini." in printed) is there


def test_the_figure_is_the_curve(study: TrainingStudy) -> None:
    found = {one.name: [b for b in one.blocks if isinstance(b, Figure)] for one in view(study).sections}
    (curve,) = found["curve"]
    assert [(row["name"], row["x"]) for row in points(curve.drawing)] == [
        ("mini, 10 human", 20),
        ("mini, 10 human", 40),
    ]
    assert by_name(curve.drawing)["mini, 10 human"] == pytest.approx([50.0, 63.093], rel=1e-4)
    assert "over queries (bootstrap)" in curve.says


def test_seeds_give_the_curve_its_interval() -> None:
    few = replace(whole().rankers[2])
    again = replace(few, seed=1)
    curve = ranked({few.run: 1, again.run: 2}, "curve", "augmented")
    found = studied((few, again), sets=[curve])
    (figure,) = (b for one in view(found).sections for b in one.blocks if isinstance(b, Figure))
    assert "over seeds (Student's t)" in figure.says
    assert "Spread over seeds" in table(found, "html")


def test_several_seeds_give_a_range_of_tilts() -> None:
    again = replace(HUMAN, seed=1)
    found = studied(
        (HUMAN, again), sets=[ranked({BASELINE: 10, HUMAN.run: 1, again.run: 2})],
        mixed=mixture({BASELINE: "llm", HUMAN.run: "human", again.run: "llm"}),
    )  # fmt: skip
    text = table(found, "markdown")
    assert "−45.3 to +45.3 over seeds" in text
    assert "mini trained on human, seed 1" in text


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


def test_figures_for_papers_are_those_of_the_page(study: TrainingStudy) -> None:
    assert list(paper_figures([study])) == ["augmentation-ndcg-10-by-documents-learned-from.svg"]
