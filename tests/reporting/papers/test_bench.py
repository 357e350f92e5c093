"""Figures 10 and 11 of Dai et al. from a bench: tables of their numbers, and the figures."""

import re

from ranktilt.experiments.tradeoff import bench
from ranktilt.reporting.papers.figures import paper_figures
from ranktilt.reporting.papers.results import cells_of, tables_of
from ranktilt.reporting.papers.tables import paper_tables
from tests.experiments.planted import collection, swept, trial
from tests.refusals import refused

PAIR = ("human", "llm")


def test_cells_are_those_of_the_bench() -> None:
    found = swept()
    assert tables_of(found) == ["dai-fig10", "dai-fig11"]
    ten = {(cell.condition, cell.measure): cell for cell in cells_of(found, "dai-fig10")}
    assert {cell.generator for cell in ten.values()} == {"llm"}
    eleven = {(cell.condition, cell.measure): cell.value for cell in cells_of(found, "dai-fig11")}
    assert len(ten) == len(eleven) == 4 * 3
    for one in found.interventions:
        for measure in found.measures:
            place = (f"{one.strength:g}", measure)
            assert ten[place].value == found.tilt(one.name, PAIR, measure).value
            assert eleven[place] == 100 * found.mean(one.name, "human", measure).value


def test_a_table_has_a_row_a_strength_and_is_part_of_a_paper() -> None:
    text = paper_tables([swept()], "paper", "markdown")
    assert "| 0.001 | −100.0 | −33.3 | −22.6 |" in text
    assert "| 0.1 | 60.0 | 80.0 | 85.2 |" in text
    assert "$\\alpha$ & NDCG@1" in paper_tables([swept()], "dai-fig10", "latex")


def test_each_method_and_measure_has_a_figure_and_each_source_a_line() -> None:
    sources = ("one", "two")
    trials = [
        trial(0, (60, 0, 0), sources=sources), trial(1, (0, 0, 0), sources=sources),
        trial(1, (0, 60, 0), sources=sources, method="swap", name="swap"),
    ]  # fmt: skip
    found = bench(collection(sources), trials, ["nDCG@1"], resamples=200)
    text = paper_tables([found], "dai-fig10", "markdown")
    assert len(re.findall(r"^\| 0 \| −200\.0 ", text, re.MULTILINE)) == 4
    drawn = paper_figures([found], layout="dai-fig10")
    assert list(drawn) == [f"dai-figure-10{number}.svg" for number in ("", "-2", "-3", "-4")]
    texts = set(re.findall(r"<text[^>]*>(.*?)</text>", drawn["dai-figure-10-4.svg"].decode()))
    assert {"one", "two", "Relative Δ nDCG@10, %", "0", "1"} <= texts


def test_without_runs_of_human_documents_alone_there_is_no_figure_11() -> None:
    found = swept(alone=False)
    assert not any(name.startswith("dai-figure-11") for name in paper_figures([found]))
    said = "dai-fig11 shows interventions of rising strength, ranked on human documents alone too (a bench)"
    command = "ranktilt train retriever DIR --debias 0 --debias paper --json FILE"
    with refused(f"{said}; the results given hold none: {command} makes one"):
        paper_figures([found], layout="dai-fig11")
    assert next(iter(paper_figures([swept()], layout="dai-fig11"))) == "dai-figure-11.svg"
