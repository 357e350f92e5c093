"""A temperature study as a page: every tilt stands in it, one line a ranker."""

import json
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ranktilt.auditing.study import Study
from ranktilt.measures.base import estimand
from ranktilt.reporting.views import view
from tests.reporting.charts import by_name, points
from tests.reporting.markup import Markup
from tests.reporting.screen import html
from tests.reporting.studies import HALF, TEMPERATURES, VALUES, timeless_study, toy_study

STUDY = toy_study()


@pytest.fixture(scope="module")
def text() -> str:
    return html(STUDY)


@pytest.fixture(scope="module")
def shown(text: str) -> Markup:
    return Markup(text)


def drawings(text: str) -> list[Any]:
    found = re.findall(r'<script type="application/json" id="[\w-]+-data">(.*?)</script>', text, re.DOTALL)
    return [json.loads(block) for block in found]


def measured(*names: str) -> Study:
    """The toy study on several measures."""
    tilts = tuple(replace(tilt, estimand=estimand(f"RelativeDelta({name})")) for tilt in STUDY.tilts for name in names)
    return replace(STUDY, measures=names, tilts=tilts, trends=())


def test_headline_counts_sides_by_ranker() -> None:
    assert view(STUDY).headline == (
        "bm25 favours human text at 2 of 3 temperatures and is inconclusive at 1; "
        "dense:minilm favours the rewrites at all 3 temperatures."
    )


def test_headline_counts_sources_where_temperatures_do_not_tell_them_apart() -> None:
    arms = tuple(replace(arm, series=f"model {n}") for n, arm in enumerate(STUDY.sources))
    found = view(replace(STUDY, sources=arms, trends=()))
    assert found.headline.startswith("bm25 favours human text on 2 of 3 sources and")


def test_table_holds_every_tilt(shown: Markup) -> None:
    grid = shown.grid("human against each source")
    assert grid.column("source")[:3] == ["llama-tmp0.2", "llama-tmp0.6", "llama-tmp1"]
    for title, name in (("Relative Δ", "value"), ("human", "mean_a"), ("rewrite", "mean_b"),
                        ("corrected p", "p_corrected"), ("queries", "queries")):  # fmt: skip
        assert grid.numbers(title) == [getattr(tilt, name) for tilt in STUDY.tilts], title
    assert grid.numbers("temperature") == [*TEMPERATURES, *TEMPERATURES]
    assert grid.column("Relative Δ")[0] == "+12.4* [+7.4, +17.4]"


def test_figure_has_a_line_a_ranker_with_intervals(text: str) -> None:
    (drawing,) = drawings(text)
    assert by_name(drawing) == {name: list(values) for name, values in VALUES.items()}
    for row in points(drawing):
        assert row["high"] - row["y"] == pytest.approx(HALF[row["name"]])
    assert drawing["layer"][-1]["encoding"]["x"]["axis"]["values"] == list(TEMPERATURES)


def test_each_measure_and_series_has_its_figure() -> None:
    text = html(measured("nDCG@3", "AP@5"))
    assert len(drawings(text)) == 2
    assert len(Markup(text).grid("human against").rows) == 2 * 6


def test_many_measures_are_drawn_for_the_first_only() -> None:
    text = html(measured(*(f"nDCG@{k}" for k in range(1, 9))))
    assert len(drawings(text)) == 1
    assert "Drawn for" in text


def test_sources_without_a_temperature_are_in_the_table_only() -> None:
    text = html(timeless_study())
    assert drawings(text) == []
    grid = Markup(text).grid("human against")
    assert grid.column("temperature") == ["–"]
    assert np.isnan(grid.numbers("Relative Δ")[0])
