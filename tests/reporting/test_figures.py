"""Figures as plain JSON: the numbers are where plotly.js looks for them, and no text is read as markup."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranktilt.auditing.groups import ALL
from ranktilt.auditing.llm_log.result import PARTS
from ranktilt.reporting.document import Figure
from ranktilt.reporting.figures.charts import PATTERNS, ForestRow, Point, clouds, forest, histogram, lines
from ranktilt.reporting.views import replay_log
from tests.reporting.results import replayed

NAN = float("nan")
HOSTILE = '<b>&amp;</b><a href="javascript:x">\u202e'


def bands(drawing: dict) -> list[dict]:  # type: ignore[type-arg]
    return [shape for shape in drawing["layout"]["shapes"] if shape["type"] == "rect"]


@pytest.mark.parametrize(
    "drawing",
    [
        histogram({"a": [1.0, NAN]}, [0, 0.5, 1], x="x"),
        clouds({"a": ([[0.0, NAN]], ["d1"])}),
        forest([ForestRow("a", 0.1, NAN, NAN)], x="x", margin=0.02),
        lines({"a": [Point(0.2, NAN, NAN, NAN)]}, x="x", y="y"),
    ],
)
def test_every_figure_is_plain_json_with_a_height(drawing: dict) -> None:  # type: ignore[type-arg]
    assert json.loads(json.dumps(drawing, allow_nan=False)) == drawing
    assert drawing["layout"]["height"] > 100
    assert drawing["layout"]["autosize"] is True


@pytest.mark.parametrize(
    "drawing",
    [
        histogram({HOSTILE: [1.0]}, [0, 1], x="x"),
        clouds({HOSTILE: ([[0, 0]], [HOSTILE])}),
        forest([ForestRow(HOSTILE, 0.1, 0, 1)], x="x", margin=0.02),
        lines({HOSTILE: [Point(0.2, 1, 0, 2, HOSTILE)]}, x="x", y="y"),
    ],
)
def test_no_name_is_read_as_markup(drawing: dict) -> None:  # type: ignore[type-arg]
    text = json.dumps(drawing, ensure_ascii=False)
    assert "<b>" not in text
    assert "<a " not in text
    assert "\u202e" not in text
    assert "&lt;b&gt;&amp;amp;" in text


def test_histogram_stands_bars_on_their_bins() -> None:
    (bars,) = histogram({"a": [25.0, 75.0]}, [0, 0.5, 1], x="x")["data"]
    assert (bars["x"], bars["width"], bars["y"]) == ([0.25, 0.75], [0.5, 0.5], [25.0, 75.0])
    assert bars["customdata"] == [["0", "0.5"], ["0.5", "1"]]


def test_histogram_draws_nothing_where_nothing_is() -> None:
    (bars,) = histogram({"a": [0.0, 100.0]}, [0, 0.5, 1], x="x")["data"]
    assert bars["y"] == [None, 100.0]


def test_several_distributions_differ_in_colour_and_pattern_and_have_a_legend() -> None:
    drawing = histogram({"a": [1.0], "b": [1.0]}, [0, 1], x="x")
    first, second = (bars["marker"] for bars in drawing["data"])
    assert first["color"] != second["color"]
    assert first["pattern"]["shape"] != second["pattern"]["shape"]
    assert drawing["layout"]["showlegend"] is True
    assert histogram({"a": [1.0]}, [0, 1], x="x")["layout"]["showlegend"] is False


def test_clouds_keep_places_and_labels_and_differ_in_shape() -> None:
    first, second = clouds({"human": ([[1, 2], [3, 4]], ["d1", "d2"]), "llm": ([[5, 6]], ["d1-llm"])})["data"]
    assert (first["x"], first["y"], first["text"]) == ([1, 3], [2, 4], ["d1", "d2"])
    assert (second["x"], second["y"], second["text"]) == ([5], [6], ["d1-llm"])
    assert first["marker"]["symbol"] != second["marker"]["symbol"]


def test_clouds_are_no_webgl() -> None:
    assert clouds({"a": ([[0, 0]], ["d"])})["data"][0]["type"] == "scatter"


def test_what_lies_on_the_first_cloud_is_seen() -> None:
    first, second = clouds({"human": ([[0, 0]], ["a"]), "llm": ([[0, 0]], ["b"])})["data"]
    assert first["marker"]["symbol"].endswith("-open")
    assert first["marker"]["size"] > second["marker"]["size"]


def test_joined_clouds_have_a_broken_line_through_each_pair() -> None:
    drawing = clouds({"human": ([[0, 1], [2, 3]], ["a", "b"]), "llm": ([[4, 5], [6, 7]], ["c", "d"])}, joined=True)
    links = drawing["data"][0]
    assert links["x"] == [0, 4, None, 2, 6, None]
    assert links["y"] == [1, 5, None, 3, 7, None]
    assert links["showlegend"] is False
    assert len(drawing["data"]) == 3


def test_empty_cloud_is_allowed() -> None:
    assert clouds({"a": (np.empty((0, 2)), [])})["data"][0]["x"] == []


def test_forest_draws_a_row_below_the_other_with_both_intervals() -> None:
    rows = [ForestRow("a", 1.0, 0.5, 2.0, inner=0.25, tone="good"), ForestRow("b", -1.0, -2.0, 0.5, tone="bad")]
    outer, inner, below, _ = forest(rows, x="x", margin=0.1)["data"]
    assert (outer["x"], outer["error_x"]["array"], outer["error_x"]["arrayminus"]) == ([1.0], [1.0], [0.5])
    assert (inner["error_x"]["array"], inner["error_x"]["arrayminus"]) == ([0.25], [0.25])
    assert inner["error_x"]["thickness"] > outer["error_x"]["thickness"]
    assert below["y"][0] < outer["y"][0]
    assert below["marker"]["symbol"] != outer["marker"]["symbol"]


def test_forest_names_each_row() -> None:
    drawing = forest([ForestRow("a", 1, 0, 2), ForestRow("b", NAN, NAN, NAN)], x="x", margin=0)
    assert [note["text"] for note in drawing["layout"]["annotations"]] == ["a", "b"]
    assert drawing["data"][2]["x"] == [None]


def test_forest_shades_the_margin_around_zero() -> None:
    drawing = forest([ForestRow("a", 0, -1, 1)], x="x", margin=0.5)
    (band,) = bands(drawing)
    assert (band["x0"], band["x1"]) == (-0.5, 0.5)
    assert drawing["layout"]["xaxis"]["zeroline"] is True
    assert bands(forest([ForestRow("a", 0, -1, 1)], x="x", margin=0)) == []


def test_forest_grows_with_its_rows() -> None:
    heights = [forest([ForestRow("a", 0, -1, 1)] * n, x="x", margin=0)["layout"]["height"] for n in (1, 2, 10)]
    assert heights[1] > heights[0]
    assert heights[2] - heights[1] == 8 * (heights[1] - heights[0])


@given(st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=3), st.floats(0, 10))
def test_forest_shows_everything_symmetrically(values: list[float], margin: float) -> None:
    low, value, high = sorted(values)
    left, right = forest([ForestRow("a", value, low, high)], x="x", margin=margin)["layout"]["xaxis"]["range"]
    assert left == -right
    assert right > max(abs(low), abs(high))
    assert right > margin


def test_lines_keep_points_and_intervals() -> None:
    points = [Point(0.2, 5.0, 3.0, 8.0, "one"), Point(1.0, -5.0, -6.0, -1.0, "two")]
    drawing = lines({"bm25": points}, x="x", y="y", band=5.0)
    (line,) = drawing["data"]
    assert (line["x"], line["y"], line["text"]) == ([0.2, 1.0], [5.0, -5.0], ["one", "two"])
    assert (line["error_y"]["array"], line["error_y"]["arrayminus"]) == ([3.0, 4.0], [2.0, 1.0])
    assert drawing["layout"]["xaxis"]["tickvals"] == [0.2, 1.0]
    assert [(band["y0"], band["y1"]) for band in bands(drawing)] == [(-5.0, 5.0)]
    assert drawing["layout"]["yaxis"]["zeroline"] is True


def test_lines_of_one_place_are_drawn_beside_each_other() -> None:
    point = [Point(1.0, 0, 0, 0)]
    drawn = lines({"a": point, "b": point, "c": point}, x="x", y="y", dodge=0.1)["data"]
    assert [line["x"] for line in drawn] == [[0.9], [1.0], [1.1]]


@pytest.mark.parametrize("spots", [[0.2], [0.2, 1.0]])
def test_lines_leave_room_beside_the_points(spots: list[float]) -> None:
    drawing = lines({name: [Point(x, 0, 0, 0) for x in spots] for name in "ab"}, x="x", y="y", dodge=0.01)
    left, right = drawing["layout"]["xaxis"]["range"]
    assert left < spots[0] - 0.01
    assert right > spots[-1] + 0.01
    assert (left + right) / 2 == pytest.approx(np.mean(spots))


def test_lines_differ_in_colour_dash_and_mark() -> None:
    drawn = lines({str(n): [Point(1.0, 0, 0, 0)] for n in range(6)}, x="x", y="y")["data"]
    for look in (
        [line["line"]["color"] for line in drawn],
        [line["line"]["dash"] for line in drawn],
        [line["marker"]["symbol"] for line in drawn],
    ):
        assert len(set(look)) == 6


def test_patterns_are_enough_for_eight() -> None:
    assert len(set(PATTERNS)) == 8


def test_the_parts_of_a_replayed_log_are_drawn_as_its_table_says() -> None:
    split = replayed()
    (section,) = replay_log.view(split).sections
    (figure,) = (block for block in section.blocks if isinstance(block, Figure))
    marks = [mark for mark in figure.drawing["data"] if mark["error_x"]["thickness"] == 2]
    assert [mark["name"] for mark in marks] == [
        "the model's part", "the parser's part", "both: the published run", "strict reading",
    ]  # fmt: skip
    parts = [change for part in PARTS if (change := split.change(part, "nDCG@10", (ALL, ALL))) is not None]
    np.testing.assert_allclose([mark["x"][0] for mark in marks], [one.value for one in parts], atol=0.01)
    assert figure.title.startswith("Who changes the input order's nDCG@10, ")
    assert "the parser's part −12.5 [−30.0, 0.0]" in figure.says
    unjudged = replace(split, changes=(), measures=())
    assert not any(isinstance(block, Figure) for block in replay_log.view(unjudged).sections[0].blocks)
