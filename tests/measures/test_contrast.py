"""Relative Δ: its formula, sign, range and the published cells."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranktilt.errors import UserError
from ranktilt.measures.contrast import relative_delta

MEANS = st.floats(0, 1)
CELL = ("table", "dataset", "generator", "temperature", "system", "measure")


@pytest.fixture(scope="module")
def published(shared_data: Path) -> pl.DataFrame:
    """Every printed Relative Δ beside the two means it was printed with, all in percent."""
    file = shared_data.parent / "design" / "golden" / "dai.csv"
    if not file.is_file():
        pytest.skip(f"needs the published cells: {file} is absent")
    cells = pl.read_csv(file, schema_overrides={"note": pl.String}).filter(pl.col("collection") == "mixed")
    sides = [
        cells.filter(pl.col("target") == target).select(*CELL, pl.col("value").alias(target), note=pl.col("note"))
        for target in ("relative_delta", "human", "llm")
    ]
    joined = sides[0].join(sides[1].drop("note"), on=CELL, how="left").join(sides[2].drop("note"), on=CELL, how="left")
    return joined.filter(~pl.col("note").fill_null("").str.contains("misprint"))


@pytest.mark.data
def test_every_published_cell_follows_from_its_printed_means(published: pl.DataFrame) -> None:
    assert published.height == 192
    assert published.select(pl.col("human", "llm").null_count()).row(0) == (0, 0)
    human, llm = (published[side].to_numpy() / 100 for side in ("human", "llm"))
    found = [f"{v:.1f}" for v in relative_delta(human, llm, rounding="paper")]
    assert found == [f"{v:.1f}" for v in published["relative_delta"]]


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (0.22, 0.17, 100 * 5 / 19.5),
        (0.2, 0.3, -40.0),
        (0.5, 0.5, 0.0),
        (0.3, 0.0, 200.0),
        (1 / 3, 0.0, 200.0),
        (0.0, 1e-300, -200.0),
        (1.0, 0.5, 100 * 0.5 / 0.75),
    ],
)
def test_by_hand(a: float, b: float, expected: float) -> None:
    assert float(relative_delta(a, b)) == pytest.approx(expected, rel=1e-14)


def test_undefined_where_both_are_0_or_round_to_it() -> None:
    assert np.isnan(relative_delta([0.0, 0.1], [0.0, 0.1])).tolist() == [True, False]
    assert np.isnan(relative_delta(np.nan, 0.5))
    assert np.isnan(relative_delta(0.0004, 0.0003, rounding="paper"))


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (0.22049, 0.16951, (22.0, 17.0)),
        (0.2206, 0.1694, (22.1, 16.9)),
        (0.0004, 0.3, (0.0, 30.0)),
    ],
)
def test_paper_rounds_both_means_to_a_tenth_of_a_percent(a: float, b: float, expected: tuple[float, float]) -> None:
    human, llm = expected
    assert float(relative_delta(a, b, rounding="paper")) == pytest.approx(200 * (human - llm) / (human + llm))
    assert float(relative_delta(a, b)) == pytest.approx(200 * (a - b) / (a + b))


@pytest.mark.parametrize("rounding", ["none", "paper"])
@given(a=MEANS, b=MEANS)
def test_swapping_the_sides_negates_exactly(rounding: str, a: float, b: float) -> None:
    one, two = relative_delta(a, b, rounding=rounding), relative_delta(b, a, rounding=rounding)
    assert (np.isnan(one) and np.isnan(two)) or one == -two


def test_unknown_rounding() -> None:
    with pytest.raises(UserError, match=r"unknown rounding 'papers'; did you mean 'paper'\? \(valid: none, paper\)"):
        relative_delta(0.1, 0.2, rounding="papers")
