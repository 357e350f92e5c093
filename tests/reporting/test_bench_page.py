"""What a bench shows: the Pareto front, strengths in equal steps, and a section a method."""

from dataclasses import replace

import pytest

from ranktilt.experiments.tradeoff import bench
from ranktilt.experiments.tradeoff_result import Bench
from ranktilt.reporting.document import Figure, Table
from ranktilt.reporting.output import table
from ranktilt.reporting.report import report_page
from ranktilt.reporting.views import view
from ranktilt.reporting.views.bench import pareto
from tests.experiments.planted import collection, swept, trial
from tests.reporting.charts import by_name, points, rows

NAN = float("nan")


def figures(found: Bench) -> dict[str, list[Figure]]:
    return {one.name: [block for block in one.blocks if isinstance(block, Figure)] for one in view(found).sections}


@pytest.mark.parametrize(
    ("points", "front"),
    [
        ([(1, 1)], [0]),
        ([(3, 9), (2, 5), (1, 7), (0, 0)], [0, 1, 3]),
        ([(1, 2), (2, 1)], [1]),
        ([(2, 1), (2, 1), (2, 0)], [2]),
        ([(1, 1), (1, 1)], [0]),
        ([(NAN, 0), (5, NAN), (1, 3)], [2]),
        ([], []),
    ],
)
def test_the_pareto_front_is_what_no_other_point_beats(points: list[tuple[float, float]], front: list[int]) -> None:
    assert pareto(points) == front


def test_strengths_stand_in_equal_steps() -> None:
    tilt, *_, cost = figures(swept())["strength-1"]
    for drawing in (tilt.drawing, cost.drawing):
        axis = drawing["layer"][-1]["encoding"]["x"]["axis"]
        assert axis["values"] == [0, 1, 2, 3]
        assert all(f"datum.value === {n} ? {name!r}" in axis["labelExpr"] for n, name in ((0, "0"), (3, "0.1")))
    assert by_name(tilt.drawing) == {"llm": [-200, -100, 0, 200]}
    everything, alone = by_name(cost.drawing)["all documents"], by_name(cost.drawing)["human documents alone"]
    assert everything[:2] == alone[:2] == [0, 0]
    assert alone[3] < everything[3] < -10


def test_the_front_is_drawn_beside_the_interventions() -> None:
    (plane,) = figures(swept())["plane"]
    assert [row["y"] for row in rows(plane.drawing, "line")] == [-100, 0]
    assert {row["tone"] for row in points(plane.drawing)} == {"toward human", "toward llm", "level"}
    assert plane.says.startswith("Pareto front: α = 0.001 and α = 0.01; ")


def test_every_method_has_its_figures_and_rows() -> None:
    trials = [trial(0, (60, 0, 0)), trial(1, (0, 0, 0)), trial(0.5, (0, 60, 0), method="swap", name="swap(0.5)")]
    found = bench(collection(), trials, ["nDCG@1"], resamples=200)
    names = [one.name for one in view(found).sections]
    assert names == ["choice", "plane", "strength-1", "strength-2", "made"]
    text = table(found, "markdown")
    assert "| swap | swap(0.5) | +200.0" in text
    assert "What swap costs: change of nDCG@10" in report_page([found])


def test_the_page_says_the_choice_first() -> None:
    page = report_page([swept(budget=0.05)])
    assert "α = 0.01 is the smallest intervention that is level within ±5 points" in page
    assert page.count('<figure id="') == 7  # the plane, and tilt and cost of three measures


def test_groups_that_are_no_twins_have_no_band_around_zero() -> None:
    found = swept()
    band = {"band_low": -250.0, "band_high": -150.0, "band_level": -200.0}
    uneven = replace(found, tilts=tuple(replace(t, twins=False, **band) for t in found.tilts))
    tilt, plane = figures(uneven)["strength-1"][0], figures(uneven)["plane"][0]
    assert tilt.says.endswith("Groups are not twins: level is the median of what random labels give, not 0.")
    assert rows(tilt.drawing, "rect") == rows(plane.drawing, "rect") == []
    assert plane.says.startswith("Pareto front: α = 0; ")  # whose tilt is that median


def test_what_is_undefined_everywhere_is_shown_all_the_same() -> None:
    found = swept()
    nothing = replace(found, tilts=tuple(replace(t, value=NAN, low=NAN, high=NAN) for t in found.tilts))
    assert figures(nothing)["plane"][0].says.startswith("Pareto front: none; ")
    assert "Relative Δ is undefined" in table(nothing)


def test_where_some_were_selected_the_first_table_shows_them_alone() -> None:
    document = view(swept(selected=("α = 0.01",)))
    shown = {one.name: [block for block in one.blocks if isinstance(block, Table)] for one in document.sections}
    (judged,) = shown["choice"]
    assert [row.cells[0].text for row in judged.rows] == ["α = 0", "α = 0.01", "less α = 0"]
