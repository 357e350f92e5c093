"""Figures 7 to 9 of the first paper out of explanations: drawn, and as tables; temperatures of one model in order."""

import csv
import io
import re

import pytest

from ranktilt.probes.explain import Explanation
from ranktilt.reporting.papers.figures import paper_figures
from ranktilt.reporting.papers.tables import paper_tables
from tests.reporting.papers.explanations import ENDS, explained
from tests.reporting.studies import toy_study

NUMBERS = ("documents", "mean", "25 %", "median", "75 %")


@pytest.fixture(scope="module")
def four() -> Explanation:
    return explained(*ENDS)


@pytest.fixture(scope="module")
def two() -> Explanation:
    return explained("human", "llama-t0.2")


def rows(found: Explanation, layout: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(paper_tables([found], layout, "csv"))))


def test_each_temperature_is_a_row_a_curve_and_a_box_in_order(four: Explanation) -> None:
    order = ["llama-t0.2", "llama-t0.7", "llama-t1.0"]
    assert list(four.sources) == order
    for result in four.results[:2]:
        assert [row["source"] for row in result.rows] == ["human", *order]
        assert list(result.figures[0].series) == ["human", *order]
    curves = four.results[2].figures[0].series
    assert list(curves) == order
    found = rows(four, "dai-fig8")
    assert [(row["target"], row["condition"]) for row in found] == [(s, str(n)) for s in order for n in range(1, 12)]
    assert [row["value"] for row in found[:11]] == [f"{value:.3f}" for value in curves["llama-t0.2"]]
    assert list(dict.fromkeys(row["target"] for row in rows(four, "dai-fig9"))) == ["human", *order]


def test_print_shows_some_places_of_a_curve_and_csv_all(two: Explanation) -> None:
    places = [line.split(" | ")[0] for line in paper_tables([two], "dai-fig7", "markdown").splitlines()[6:12]]
    assert places == ["| 1", "| 2", "| 5", "| 10", "| 11", ""]
    assert [row["condition"] for row in rows(two, "dai-fig7")] == [str(n) for n in range(1, 12)]
    assert r"\toprule" in paper_tables([two], "dai-fig7", "latex")
    human = two.results[1].rows[0]
    expected = [f"{human['values']}", *(f"{human[name]:.2f}" for name in NUMBERS[1:])]
    assert [(row["measure"], row["value"]) for row in rows(two, "dai-fig9")[:5]] == [
        *zip(NUMBERS, expected, strict=True)
    ]
    assert [row["table"] for row in rows(two, "paper")] == ["dai-fig7"] * 11 + ["dai-fig9"] * 10


def test_a_layout_draws_its_figure_alone(two: Explanation, four: Explanation) -> None:
    pytest.importorskip("vl_convert")
    for found, name in ((two, "dai-figure-7.svg"), (four, "dai-figure-8.svg")):
        assert list(paper_figures([found]))[-2:] == ["dai-figure-9.svg", name]
    assert list(paper_figures([toy_study(), four], layout="dai-fig7")) == ["dai-figure-7.svg"]
    for name in ("dai-fig8", "dai-fig9"):
        ((file, drawn),) = paper_figures([four], layout=name).items()
        assert file == f"{name.replace('fig', 'figure-')}.svg"
        shown = re.findall(r"<text[^>]*>(.*?)</text>", drawn.decode())
        places = [shown.index(source) for source in four.sources]
        assert places == sorted(places)
        assert ("human" in shown) == (name == "dai-fig9")
