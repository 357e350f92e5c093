"""Curves over ranks, as data."""

import pytest

from ranktilt.reporting.figures.charts import GROUP_COLOURS, curves
from ranktilt.reporting.figures.drawing import COLOURS, DASHES


def test_curves_stand_over_ranks_from_one_on_a_logarithmic_axis() -> None:
    drawing = curves({"a": [30.0, 20.0, 10.0], "b": [70.0]}, x="rank", y="%")
    a, b = drawing["data"]
    assert (a["x"], a["y"]) == ([1, 2, 3], [30, 20, 10])
    assert (b["x"], b["y"]) == ([1], [70])
    axis = drawing["layout"]["xaxis"]
    assert axis["type"] == "log"
    assert axis["tickvals"] == [1, 2]


def test_curves_have_colours_dashes_and_levels() -> None:
    drawing = curves({str(n): [1.0] for n in range(9)}, x="x", y="y", levels=[50.0], colours=GROUP_COLOURS)
    lines = [trace["line"] for trace in drawing["data"]]
    assert [line["color"] for line in lines[:2]] == ["var(--first)", "var(--second)"]
    assert lines[8]["color"] == lines[0]["color"]
    assert [line["dash"] for line in lines[:8]] == list(DASHES)
    (level,) = drawing["layout"]["shapes"]
    assert (level["y0"], level["y1"]) == (50, 50)


def test_groups_have_eight_colours() -> None:
    assert len(set(GROUP_COLOURS)) == len(COLOURS) == 8


@pytest.mark.parametrize("zero", [True, False])
def test_zero_is_marked_for_differences(zero: bool) -> None:
    axis = curves({"a": [1.0, -1.0]}, x="x", y="y", zero=zero)["layout"]["yaxis"]
    assert axis["zeroline"] is zero
