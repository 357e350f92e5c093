"""Measures as values: what is typed is what is seen, what cannot be is refused; and Relative Δ of
two means.
"""

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktilt import AP, RR, P, R, UserError, nDCG, relative_delta
from ranktilt.measures.base import Measure, estimand, measure
from ranktilt.measures.notation import canonical
from ranktilt.measures.printing import rounded, signed
from tests.refusals import refused

BY_NAME: dict[str, Measure] = {m.name: m for m in (nDCG, AP, P, R, RR)}
VALID = "(valid: nDCG@k, AP@k, P@k, R@k, RR@k, "
GRAMMAR = "expected name[(rel=grade)][@cutoff]"


@st.composite
def measures(draw: st.DrawFn) -> Measure:
    name = draw(st.sampled_from(list(BY_NAME)))
    cutoff = draw(st.integers(1, 10**6))
    if name not in ("P", "R"):
        cutoff = draw(st.none() | st.just(cutoff))
    rel = 1 if name == "nDCG" else draw(st.integers(1, 9))
    return replace(BY_NAME[name], cutoff=cutoff, rel=rel)


@given(measures(), st.lists(st.sampled_from(["", " ", "  "]), min_size=7, max_size=7))
@settings(max_examples=200)
def test_text_reads_back_as_measure_with_blanks_around_parts(
    original: Measure, blanks: list[str]
) -> None:
    assert measure(repr(original)) == original
    a, b, c, d, e, f, g = blanks
    rel = f"{b}({c}rel{d}={d}{original.rel}{c})" if original.name != "nDCG" else ""
    cutoff = "" if original.cutoff is None else f"{e}@{f}{original.cutoff}"
    assert measure(f"{a}{original.name}{rel}{cutoff}{g}") == original


@pytest.mark.parametrize(
    ("built", "text", "parts"),
    [
        (nDCG @ 3, "nDCG@3", ("nDCG", 3, 1)),
        (nDCG, "nDCG", ("nDCG", None, 1)),
        (AP(rel=2) @ 1000, "AP(rel=2)@1000", ("AP", 1000, 2)),
        (R(rel=3) @ 100, "R(rel=3)@100", ("R", 100, 3)),
        (RR @ 10 @ 5, "RR@5", ("RR", 5, 1)),
        (AP(rel=2)(rel=1), "AP", ("AP", None, 1)),
    ],
)
def test_python_and_text_make_the_same(
    built: Measure, text: str, parts: tuple[str, int | None, int]
) -> None:
    assert repr(built) == text
    assert (built.name, built.cutoff, built.rel) == parts
    assert measure(text) == built
    assert hash(measure(text)) == hash(built)
    assert measure(built) is built
    assert pickle.loads(pickle.dumps(built)) == built
    assert built.binary is (built.name != "nDCG")  # which alone reads the grades themselves


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("NDCG_cut_5", "nDCG@5"),
        ("ndcg_cut.10", "nDCG@10"),
        ("ndcg_at_10", "nDCG@10"),
        ("map_at_100", "AP@100"),
        ("mrr_at_10", "RR@10"),
        ("recall_at_100", "R@100"),
        ("precision_at_5", "P@5"),
        ("recall.100", "R@100"),
        ("P_20", "P@20"),
        ("map", "AP"),
        ("ndcg", "nDCG"),
        ("p.5", "P@5"),
        ("Map(rel=2)@5", "AP(rel=2)@5"),
        ("Precision@3", "P@3"),
        ("MRR@10", "RR@10"),
        ("recip_rank", "RR"),
        ("recall_10", "R@10"),
        ("exposureratio@5", "ExposureRatio@5"),
        ("AP(rel=1)@5", "AP@5"),
    ],
)
def test_names_from_elsewhere_mean_the_same_measure(text: str, name: str) -> None:
    assert repr(estimand(text)) == name


def test_objects_of_ir_measures_and_exact_names_mean_what_they_print() -> None:
    theirs = [
        ir_measures.nDCG @ 5,
        ir_measures.AP(rel=2) @ 5,
        ir_measures.RR,
        ir_measures.P(rel=2) @ 3,
    ]
    assert [estimand(their_measure) for their_measure in theirs] == [
        nDCG @ 5,
        AP(rel=2) @ 5,
        RR,
        P(rel=2) @ 3,
    ]
    assert canonical("map", "5", {"map": "", "AP": ""}) == ("map", "5")
    assert canonical("MAP", None, {"map": "", "AP": ""}) == ("map", None)
    assert canonical("recall_10", None, {"recall_10": "", "R": ""}) == ("recall_10", None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nDGC@3", f"unknown measure 'nDGC'; did you mean 'nDCG@k'? {VALID}"),
        ("ndcg_cut_5@3", "measure ndcg_cut_5@3 has two cutoffs; give only one"),
        ("ndcg_at_5@3", "measure ndcg_at_5@3 has two cutoffs; give only one"),
        ("hit_rate_at_5", "unknown measure 'hit_rate_at_5' (valid: nDCG@k, "),
        ("nDCG(dcg='exp-log2')@5", "unknown option of measure \"nDCG(dcg='exp-log2')@5\" 'dcg'"),
        ("nDCG@0", "measure nDCG: expected a cutoff of at least 1, got @0"),
        (
            "nDCG@2147483648",
            "measure nDCG: expected a cutoff of at most 2,147,483,647, got @2147483648",
        ),
        ("AP(rel=0)@3", "measure AP: expected rel of at least 1, got rel=0"),
        ("NDSR@20", "expected a measure of relevance, such as nDCG@3, got NDSR@20"),
        ("P", "measure P needs a cutoff, such as P@10"),
        ("HeadToHead@3", "measure HeadToHead takes no cutoff: it looks for twins in the whole"),
        ("ScoreGap@3", "measure ScoreGap takes no cutoff: it looks for twins in the whole list"),
        ("AP(rel=1,rel=2)@3", "option 'rel' of measure 'AP(rel=1,rel=2)@3' is given twice"),
        (
            "AP(real=2)@3",
            "unknown option of measure 'AP(real=2)@3' 'real'; did you mean 'rel'? (valid: rel)",
        ),
        ("nDCG@3.5", f"cannot read measure 'nDCG@3.5': {GRAMMAR}"),
    ],
)
def test_what_cannot_be_is_refused_with_a_reason(text: str, message: str) -> None:
    with refused(f"{message}…"):
        measure(text)


@pytest.mark.parametrize("cutoff", [3.5, True, "3"])
def test_python_refuses_what_text_cannot_say(cutoff: Any) -> None:
    with pytest.raises(UserError, match=r"^measure nDCG: expected a whole number as cutoff"):
        nDCG @ cutoff
    with pytest.raises(UserError, match=r"^measure nDCG"):
        nDCG(rel=2)


def test_last_bits_decide_no_printed_digit() -> None:
    near = [40.75 - 1e-14, 40.75, 40.75 + 1e-14]
    assert {rounded(value) for value in near} == {"40.8"}
    assert {signed(-value) for value in near} == {"−40.8"}


CELL = ("table", "dataset", "generator", "temperature", "system", "measure")


@pytest.fixture(scope="module")
def published(shared_data: Path) -> pl.DataFrame:
    """Every printed Relative Δ beside the two means it was printed with, all in percent."""
    file = shared_data.parent / "design" / "golden" / "dai.csv"
    if not file.is_file():
        pytest.skip(f"needs the published cells: {file} is absent")
    cells = pl.read_csv(file, schema_overrides={"note": pl.String}).filter(
        pl.col("collection") == "mixed"
    )
    sides = [
        cells.filter(pl.col("target") == target).select(
            *CELL, pl.col("value").alias(target), note=pl.col("note")
        )
        for target in ("relative_delta", "human", "llm")
    ]
    joined = (
        sides[0]
        .join(sides[1].drop("note"), on=CELL, how="left")
        .join(sides[2].drop("note"), on=CELL, how="left")
    )
    return joined.filter(~pl.col("note").fill_null("").str.contains("misprint"))


@pytest.mark.data
def test_every_published_cell_follows_from_its_printed_means(published: pl.DataFrame) -> None:
    assert published.height == 192
    assert published.select(pl.col("human", "llm").null_count()).row(0) == (0, 0)
    human, llm = (published[side].to_numpy() / 100 for side in ("human", "llm"))
    printed = [f"{v:.1f}" for v in relative_delta(human, llm, rounding="paper")]
    assert printed == [f"{v:.1f}" for v in published["relative_delta"]]


def test_delta_by_hand_and_of_means_rounded_as_on_paper() -> None:
    for a, b, expected in (
        (0.22, 0.17, 100 * 5 / 19.5),
        (0.2, 0.3, -40.0),
        (0.5, 0.5, 0.0),
        (0.3, 0.0, 200.0),
        (1 / 3, 0.0, 200.0),
        (0.0, 1e-300, -200.0),
        (1.0, 0.5, 100 * 0.5 / 0.75),
    ):
        assert float(relative_delta(a, b)) == pytest.approx(expected, rel=1e-14)
    for a, b, human, llm in (
        (0.22049, 0.16951, 22.0, 17.0),
        (0.2206, 0.1694, 22.1, 16.9),
        (0.0004, 0.3, 0.0, 30.0),
    ):
        assert float(relative_delta(a, b, rounding="paper")) == pytest.approx(
            200 * (human - llm) / (human + llm)
        )
        assert float(relative_delta(a, b)) == pytest.approx(200 * (a - b) / (a + b))


def test_undefined_where_both_are_0_or_round_to_it() -> None:
    assert np.isnan(relative_delta([0.0, 0.1], [0.0, 0.1])).tolist() == [True, False]
    assert np.isnan(relative_delta(np.nan, 0.5))
    assert np.isnan(relative_delta(0.0004, 0.0003, rounding="paper"))
    with pytest.raises(
        UserError, match=r"unknown rounding 'papers'; did you mean 'paper'\? \(valid: none, paper\)"
    ):
        relative_delta(0.1, 0.2, rounding="papers")


@pytest.mark.parametrize("rounding", ["none", "paper"])
@given(a=st.floats(0, 1), b=st.floats(0, 1))
def test_swapping_the_sides_negates_exactly(rounding: str, a: float, b: float) -> None:
    there, back = relative_delta(a, b, rounding=rounding), relative_delta(b, a, rounding=rounding)
    assert (np.isnan(there) and np.isnan(back)) or there == -back


def test_largest_cutoff_is_the_largest_number_of_32_bits() -> None:
    assert (nDCG @ (2**31 - 1)).cutoff == 2**31 - 1
