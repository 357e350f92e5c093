"""Charts are specifications that Vega-Lite takes, with the numbers where it looks for them."""

import json
from dataclasses import replace
from typing import Any

import pytest

from ranktilt.reporting.document import Figure
from ranktilt.reporting.figures import charts
from ranktilt.reporting.figures.charts import Mark, Point, ScatterPoint
from ranktilt.reporting.layouts.figures import for_paper
from ranktilt.reporting.views import view
from tests.reporting.readers import by_name, domain, points, rows
from tests.reporting.results import RESULTS, result

NAN = float("nan")
HOSTILE = '<b>"\\\u202e\n'
NAMES = {"first": "favours a", "second": "favours b", "good": "level", "unsure": "inconclusive"}
MARKS = (
    Mark(
        label="nDCG@1",
        value=20.0,
        low=10.0,
        high=30.0,
        tone="first",
        detectable=15.0,
        hover=("one", "two"),
    ),
    Mark(label="AP@5", value=NAN, low=NAN, high=NAN, tone="unsure"),
)


def drawings(name: str) -> dict[str, Any]:
    mark = Mark(label=name, value=1.0, low=0.0, high=2.0, tone="first", hover=(name,))
    pair_of_groups = {name: ([[0, NAN], [1, 1]], [name, "d2"]), "b": ([[1, 0], [0, 1]], ["a", "b"])}
    points = [ScatterPoint(mark=point, x=1, low=0, high=2) for point in (mark, MARKS[1])]
    return {
        "histogram": charts.histogram({name: [1.0, NAN]}, [0, 0.5, 1], x=name),
        "clouds": charts.clouds(pair_of_groups, has_links=True),
        "forest": charts.forest(
            {
                "": [
                    Mark(label=name, value=0.1, low=NAN, high=NAN),
                    Mark(label=name, value=1, low=0, high=2, inner=0.5),
                ]
            },
            x=name,
            margin=0.02,
        ),
        "lines": charts.lines(
            {
                name: [
                    Point(x=0.2, value=NAN, low=NAN, high=NAN),
                    Point(x=1, value=2, low=1, high=3, label=name),
                ]
            },
            x=name,
            y=name,
            band=1.0,
        ),
        "curves": charts.curves(
            {name: [1.0, NAN, 2.0]}, x=name, y=name, levels=[1.0], has_zero_line=True
        ),
        "grouped forest": charts.forest(
            {name: [mark], "b": MARKS}, x=name, sides=(name, "b"), margin=5.0, tone_names=NAMES
        ),
        "scatter": charts.scatter(points, x=name, y=name, margin=5.0, tone_names=NAMES, front=[0]),
    }


@pytest.mark.parametrize("name", ["plain", HOSTILE])
def test_vega_lite_takes_every_chart(name: str) -> None:
    convert = pytest.importorskip("vl_convert")
    for drawing in drawings(name).values():
        assert json.loads(json.dumps(drawing, allow_nan=False)) == drawing
        assert "\u202e" not in json.dumps(drawing, ensure_ascii=False)
        assert convert.vegalite_to_vega(for_paper(drawing))["marks"]


@pytest.mark.parametrize(
    "name", [name for name in RESULTS if not name.startswith(("check", "gate", "models"))]
)
def test_vega_lite_takes_every_figure_of_every_result(name: str) -> None:
    convert = pytest.importorskip("vl_convert")
    for block in view(result(name)).blocks("page"):
        if isinstance(block, Figure):
            assert convert.vegalite_to_vega(for_paper(block.drawing))["marks"]
            assert block.height > 40


def test_lines_share_rows_and_grouped_marks_follow_heading() -> None:
    series = {
        "a": [
            Point(x=0, value=1, low=0, high=2, label="first"),
            Point(x=1, value=NAN, low=NAN, high=NAN),
        ],
        "b": [Point(x=0, value=3, low=2, high=4), Point(x=1, value=5, low=4, high=6)],
    }
    drawing = charts.lines(series, x="x", y="y", dodge=0.1, tick_names={0: "none", 1: "all"})
    assert by_name(drawing) == {"a": [1], "b": [3, 5]}
    assert [row["x"] for row in points(drawing)] == [-0.05, 0.05, 1.05]
    axis = drawing["layer"][1]["encoding"]["x"]["axis"]
    assert axis["values"] == [0, 1]
    assert axis["labelExpr"] == "datum.value === 0 ? 'none' : datum.value === 1 ? 'all' : ''"
    drawing = charts.forest(
        {"bm25": MARKS, "tfidf": MARKS[:1]}, x="x", sides=("a", "b"), margin=5.0, tone_names=NAMES
    )
    first, alone = points(drawing)
    assert (first["x"], first["low"], first["high"], first["tone"]) == (20, 10, 30, "favours a")
    assert first["tip"] == "one\ntwo"
    labels = drawing["layer"][-1]["encoding"]["y"]["scale"]["domain"]
    assert labels == ["bm25", "  nDCG@1", "  AP@5", "tfidf"]
    assert alone["row"] == "tfidf"
    grey = [row for row in rows(drawing, "rule", 1) if "row" in row]
    assert grey == []  # under a tilt that was detected
    assert domain(drawing, "x") == pytest.approx([-9.375, 31.875])  # −7.5 to 30, and some room


def test_grey_stands_under_what_was_not_detected() -> None:
    open_mark = Mark(
        label="nDCG@1", value=3.0, low=-20.0, high=26.0, tone="unsure", detectable=15.0
    )
    drawing = charts.forest({"bm25": [open_mark]}, x="x", tone_names=NAMES)
    grey = [row for row in rows(drawing, "rule", 0) if "row" in row]
    assert grey == [{"row": "bm25", "low": -15, "high": 15}]
    visible_mark = replace(open_mark, low=1.0, tone="first")
    drawing = charts.forest({"bm25": [visible_mark]}, x="x", tone_names=NAMES)
    assert [row for row in rows(drawing, "rule", 0) if "row" in row] == []


def test_an_axis_is_as_long_as_its_intervals_need() -> None:
    marks = [Mark(label="nDCG@1", value=40.0, low=30.0, high=50.0, tone="first", detectable=100.0)]
    drawing = charts.forest({"bm25": marks}, x="x", tone_names=NAMES)
    assert domain(drawing, "x") == pytest.approx([-2.5, 52.5])  # 0 to 50, and some room
    drawing = charts.lines(
        {"a": [Point(x=0, value=3, low=2, high=4), Point(x=1, value=5, low=4, high=6)]},
        x="x",
        y="y",
    )
    assert domain(drawing, "y") == pytest.approx([-0.36, 6.36])


def test_front_is_joined_in_its_own_order() -> None:
    candidates = [
        ScatterPoint(mark=Mark(label=name, value=x, low=x, high=x, tone="good"), x=x)
        for name, x in (("a", 2.0), ("b", 3.0), ("c", 1.0))
    ]
    drawing = charts.scatter(
        candidates, x="x", y="y", margin=0.0, tone_names=NAMES, front=[1, 0, 2]
    )
    joined = sorted(rows(drawing, "line"), key=lambda row: row["order"])
    assert [row["x"] for row in joined] == [3.0, 2.0, 1.0]


def test_scatter_names_few_points_and_leaves_out_what_has_no_place() -> None:
    nowhere = ScatterPoint(
        mark=Mark(label="a", value=NAN, low=NAN, high=NAN, tone="unsure"), x=1, low=0, high=2
    )
    assert points(charts.scatter([nowhere], x="x", y="y", margin=5, tone_names=NAMES)) == []
    near = [
        ScatterPoint(
            mark=Mark(label=name, value=5.0, low=4.0, high=6.0, tone="good"),
            x=50 + n,
            low=49,
            high=51,
        )
        for n, name in enumerate("abc")
    ]
    drawing = charts.scatter(near, x="x", y="y", margin=0.0, tone_names=NAMES)
    assert [note["text"] for note in rows(drawing, "text")] == ["a", "b", "c"]
    assert rows(charts.scatter(near * 5, x="x", y="y", margin=0.0, tone_names=NAMES), "text") == []
