"""Figures of an audit as plain JSON: marks, intervals and what they are read against stand where they belong."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktilt.reporting.figures.charts import curves
from ranktilt.reporting.figures.tilts import Mark, ScatterPoint, scatter, tilts
from ranktilt.reporting.tones import Tone

NAN = float("nan")
HOSTILE = '<b>&amp;</b><a href="javascript:x">\u202e%{x}'
NAMES: dict[Tone, str] = {"first": "favours a", "second": "favours b", "good": "level", "unsure": "inconclusive"}


def mark(value: float = 10.0, tone: Tone = "first", **more: Any) -> Mark:
    return Mark("nDCG@1", value, more.pop("low", value - 5), more.pop("high", value + 5), tone, **more)


def drawn(groups: dict[str, Sequence[Mark]], margin: float = 5.0) -> dict[str, Any]:
    return tilts(groups, x="Relative Δ, %", sides=("a", "b"), margin=margin, names=NAMES)


def traces(drawing: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {trace["name"]: trace for trace in drawing["data"]}


def texts(drawing: dict[str, Any]) -> list[str]:
    return [note["text"] for note in drawing["layout"]["annotations"]]


def point(x: float, value: float, label: str = "run", tone: Tone = "unsure") -> ScatterPoint:
    return ScatterPoint(Mark(label, value, value - 5, value + 5, tone, hover=(label,)), x, x - 2, x + 2)


def beside(*points: ScatterPoint) -> dict[str, Any]:
    return scatter(points, x="x", y="y", margin=5.0, names=NAMES)


FIGURES = [
    drawn({"run": [mark(NAN, "unsure", detectable=NAN)]}),
    drawn({"run": [mark()], "other": [mark(), mark(tone="good")]}),
    drawn({}),
    beside(point(NAN, 1), point(1, NAN)),
    beside(point(1, 1)),
    curves({"a": [1.0, NAN]}, x="x", y="y", levels=[NAN, 50.0]),
    curves({}, x="x", y="y"),
]


@pytest.mark.parametrize("drawing", FIGURES)
def test_every_figure_is_plain_json_with_a_height(drawing: dict[str, Any]) -> None:
    assert json.loads(json.dumps(drawing, allow_nan=False)) == drawing
    assert drawing["layout"]["height"] > 100


def test_no_name_is_read_as_markup() -> None:
    names = dict.fromkeys(NAMES, HOSTILE)
    one = Mark(HOSTILE, 1, 0, 2, "first", hover=(HOSTILE,))
    every = (
        tilts({HOSTILE: [one, one]}, x=HOSTILE, sides=(HOSTILE, HOSTILE), margin=1, names=names),
        scatter([ScatterPoint(one, 1, 0, 2)], x=HOSTILE, y=HOSTILE, margin=1, names=names),
        curves({HOSTILE: [1.0]}, x=HOSTILE, y=HOSTILE),
    )
    for drawing in every:
        text = json.dumps(drawing, ensure_ascii=False).replace("<b>&lt;", "&lt;")
        assert "<b>" not in text
        assert "<a " not in text
        assert "\u202e" not in text


def test_marks_stand_below_each_other_under_their_headings() -> None:
    drawing = drawn({"tfidf": [mark(1), mark(2)], "bm25": [mark(3)]})
    (dots,) = (trace for trace in drawing["data"] if trace["type"] == "scatter")
    assert dots["x"] == [1, 2, 3]
    first, second, third = dots["y"]
    headings = {note["text"]: note["y"] for note in drawing["layout"]["annotations"] if note["text"].startswith("<b>")}
    assert headings["<b>tfidf</b>"] > first > second > third
    low, high = drawing["layout"]["yaxis"]["range"]
    assert low < third
    assert high > headings["<b>tfidf</b>"]


def test_mark_alone_stands_below_its_heading() -> None:
    drawing = drawn({"tfidf": [mark(1), mark(2)], "bm25": [mark(3)], "dense": [mark(4)]})
    (dots,) = (trace for trace in drawing["data"] if trace["type"] == "scatter")
    headings = {note["text"]: note["y"] for note in drawing["layout"]["annotations"] if note["text"].startswith("<b>")}
    assert dots["y"][2] < headings["<b>bm25</b>"] - 0.9
    assert headings["<b>dense</b>"] < dots["y"][2]
    low, _ = drawing["layout"]["yaxis"]["range"]
    assert low < dots["y"][-1]


def test_mark_alone_under_its_heading_has_no_label() -> None:
    assert texts(drawn({"tfidf": [mark(1)]})) == ["<b>tfidf</b>", "◀ b", "a ▶"]
    assert texts(drawn({"tfidf": [mark(1), mark(2)]})).count("nDCG@1") == 2


def test_intervals_reach_from_end_to_end() -> None:
    (dots,) = drawn({"run": [mark(10, low=-2, high=30)]}, 0)["data"]
    assert (dots["error_x"]["array"], dots["error_x"]["arrayminus"]) == ([20], [12])


def test_sides_differ_in_colour_and_shape_and_are_named_in_the_legend() -> None:
    tones: list[Tone] = ["first", "second", "good", "unsure"]
    found = traces(drawn({"run": [mark(tone=tone) for tone in tones]}))
    assert list(found) == list(NAMES.values())
    assert len({trace["marker"]["color"] for trace in found.values()}) == 4
    assert len({trace["marker"]["symbol"] for trace in found.values()}) == 4


def test_detectable_effect_lies_behind_each_row_around_its_level() -> None:
    drawing = drawn({"run": [mark(detectable=20), mark(detectable=8, level=3), mark()]})
    span = traces(drawing)["too small to detect with so many queries"]
    assert (span["base"], span["x"]) == ([-20, -5], [40, 16])
    dots = traces(drawing)["favours a"]
    assert span["y"] == dots["y"][:2]
    assert drawing["data"].index(span) < drawing["data"].index(dots)


def test_level_is_a_band_around_zero_for_twins_only() -> None:
    (band,) = (s for s in drawn({"run": [mark()]})["layout"]["shapes"] if s["type"] == "rect")
    assert (band["x0"], band["x1"]) == (-5, 5)
    assert (band["showlegend"], band["name"]) == (True, "level: ±5")
    uneven = drawn({"run": [mark(band=(-8, 12), level=2)]})
    assert uneven["layout"]["shapes"] == []
    random = traces(uneven)["random labels"]
    assert (random["base"], random["x"]) == ([-8], [20])
    assert random["marker"]["pattern"]["shape"]


def test_figure_grows_with_its_rows() -> None:
    heights = [drawn({"run": [mark()] * n})["layout"]["height"] for n in (2, 3, 12)]
    assert heights[0] < heights[1] < heights[2]


def test_longest_label_has_room() -> None:
    rooms = [
        drawn({"run": [Mark(label, 1, 0, 2, "first")] * 2})["layout"]["margin"]["l"]
        for label in ("AP", "near-identical")
    ]
    assert rooms[0] < rooms[1] < 160
    note = drawn({"run": [mark(), mark()]})["layout"]["annotations"][0]
    assert note["xshift"] < 0


def test_long_names_of_files_keep_the_ends_in_which_they_differ() -> None:
    names = [f"replay:/a/long/folder/of/many/runs/that/all/begin/alike-{n}.trec" for n in range(9)]
    shown = [text for text in texts(drawn({name: [mark()] for name in names})) if text.startswith("<b>")]
    assert len(set(shown)) == 9
    assert all(text.endswith(f"alike-{n}.trec</b>") and len(text) <= 47 for n, text in enumerate(shown))


def test_long_names_are_cut() -> None:
    drawing = drawn({"r" * 90: [mark(), mark()]})
    assert all(len(text) < 60 for text in texts(drawing))


@settings(max_examples=40)
@given(st.lists(st.tuples(st.floats(-200, 200), st.floats(0, 300)), min_size=1, max_size=5), st.floats(0, 20))
def test_axis_is_symmetric_and_holds_every_interval(found: list[tuple[float, float]], margin: float) -> None:
    marks = [mark(value, low=max(value - 10, -200), high=min(value + 10, 200), detectable=d) for value, d in found]
    left, right = drawn({"run": marks}, margin)["layout"]["xaxis"]["range"]
    assert left == -right
    assert all(abs(end) <= right for one in marks for end in (one.low, one.high))
    assert right <= 212


def test_scatter_draws_points_with_both_intervals() -> None:
    drawing = beside(point(40, -12), point(43, 84, tone="first"))
    found = traces(drawing)
    assert (found["inconclusive"]["x"], found["inconclusive"]["y"]) == ([40], [-12])
    assert (found["favours a"]["x"], found["favours a"]["y"]) == ([43], [84])
    assert found["favours a"]["error_x"]["array"] == [2]
    assert found["favours a"]["error_y"]["arrayminus"] == [5]


def test_scatter_leaves_out_what_has_no_place() -> None:
    drawing = beside(point(NAN, 1), point(1, NAN), point(1, 2))
    assert [trace["x"] for trace in drawing["data"]] == [[1]]
    assert len(drawing["layout"]["annotations"]) == 1


def test_few_points_are_named_and_many_are_not() -> None:
    few = beside(*(point(n, n, f"run {n}") for n in range(12)))
    assert sorted(texts(few)) == sorted(f"run {n}" for n in range(12))
    assert beside(*(point(n, n) for n in range(13)))["layout"]["annotations"] == []


def test_stages_of_a_ranker_stand_on_lines_of_their_own() -> None:
    assert texts(beside(point(1, 1, "bm25@100>>monot5"))) == ["bm25@100<br>&gt;&gt;monot5"]


def test_names_of_near_points_go_to_different_corners() -> None:
    notes = beside(point(1, 1, "one"), point(1, 1, "two"), point(9, 9, "far"))["layout"]["annotations"]
    corners = [(note["xanchor"], note["yanchor"]) for note in notes if note["text"] != "far"]
    assert len(set(corners)) == 2


def test_names_keep_clear_of_intervals() -> None:
    """The interval of the second point lies where the name of the first, at 0, would stand above its mark."""
    notes = beside(point(0, 0, "a" * 20), replace(point(99, 0.8, "b"), low=-50.0, high=100))["layout"]["annotations"]
    assert next(note for note in notes if note["x"] == 0)["yanchor"] == "top"


@pytest.mark.parametrize(("x", "anchor"), [(0, "left"), (100, "right")])
def test_names_at_the_border_point_inward(x: float, anchor: str) -> None:
    notes = beside(point(0, 0, "a" * 20), point(100, 50, "b" * 20))["layout"]["annotations"]
    assert next(note for note in notes if note["x"] == x)["xanchor"] == anchor
