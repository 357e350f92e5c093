"""What every figure is made of."""

from collections import namedtuple

import numpy as np
import pytest

from ranktilt.reporting.figures.drawing import (
    COLOURS,
    DASHES,
    SYMBOLS,
    frame,
    mark_zero,
    numbers,
    plain,
    reach,
    strip,
    whiskers,
)

NAN = float("nan")
Row = namedtuple("Row", "value low high")


def test_looks_are_enough_for_eight() -> None:
    assert len(set(COLOURS)) == len(set(SYMBOLS)) == len(DASHES) == 8


def test_plain_shows_markup_as_it_is() -> None:
    assert plain("a<b>&lt;\nc") == "a&lt;b&gt;&amp;lt; c"


def test_numbers_are_rounded_and_gaps_are_none() -> None:
    assert numbers([1 / 3, NAN, np.inf, 123456789.0]) == [0.333333, None, None, 123457000.0]
    assert numbers([1.23456], 3) == [1.23]


def test_titles_of_axes_are_not_read_as_markup() -> None:
    drawn = frame(100, x="<b>", y="&")
    assert drawn["xaxis"]["title"]["text"] == "&lt;b&gt;"
    assert drawn["yaxis"]["title"]["text"] == "&amp;"


@pytest.mark.parametrize("legend", [True, False])
def test_legend_has_room_above(legend: bool) -> None:
    drawn = frame(100, legend=legend)
    assert drawn["showlegend"] is legend
    assert (drawn["margin"]["t"] > 20) is legend


def test_axes_of_one_frame_are_not_shared() -> None:
    drawn = frame(100)
    mark_zero(drawn["xaxis"])
    assert drawn["xaxis"]["zeroline"] is True
    assert drawn["yaxis"]["zeroline"] is False


def test_whiskers_measure_from_the_value() -> None:
    made = whiskers([Row(5.0, 3.0, 9.0), Row(NAN, NAN, NAN)], "red", horizontal=True)
    assert (made["array"], made["arrayminus"]) == ([4.0, None], [2.0, None])
    assert made["width"] == 0
    assert whiskers([], "red", horizontal=False)["width"] > 0


def test_strip_runs_along_the_other_axis() -> None:
    band, low, high = strip(5, "y", "x")
    assert (band["y0"], band["y1"], band["xref"]) == (-5, 5, "paper")
    assert (low["y0"], low["y1"], high["y0"]) == (-5, -5, 5)
    assert strip(0, "x", "y") == []


def test_reach_is_symmetric_and_wider_than_all() -> None:
    low, high = reach([3.0, -7.0, NAN], 1.0)
    assert low == -high
    assert high == pytest.approx(7.84)
    assert reach([], 10.0)[1] == pytest.approx(16.8)
    assert reach([], 0.0)[1] > 0
