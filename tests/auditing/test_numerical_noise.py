"""How far Relative Δ moves within the resolution of scores."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from ranktilt.auditing.audit import audit
from ranktilt.auditing.numerical_noise import NumericalNoise, hanging, precision
from ranktilt.auditing.result import Audit
from ranktilt.rankers.rerank.cross_encoder import sigmoid
from ranktilt.reporting.output import table
from ranktilt.run import Run
from tests.reporting.audits import twins

UNIT = 2.0**-24
"""Largest relative error of rounding to float32."""


def ranked(human: float, llm: float, *others: float, **spec: str) -> Run:
    """One query, for which the twins and some documents without judgments got these scores."""
    ids = ["0-human", "0-llm", *(f"x{number}" for number in range(len(others)))]
    frame = pl.DataFrame({"query_id": "q0", "doc_id": ids, "score": [human, llm, *others]})
    return Run.from_frame(frame, spec={"ranker": "mine", **spec})


def noise_of(run: Run, measures: str | Sequence[str] = "nDCG@1") -> list[tuple[str, float]]:
    """Resolution and points."""
    found: Audit = audit(twins(1), run, measures, resamples=100)
    return [(one.resolution, one.points) for one in found.noise]


@pytest.mark.parametrize(
    ("precision", "gap", "points"),
    [
        ("float32", 0.5 * UNIT, 400),  # from +200 to −200, in more than 5 % of the draws
        ("float32", 2 * UNIT, 0),
        ("float32", 0, 0),  # equal scores stay equal
        ("bfloat16", 0.5 * 2**-8, 400),
        ("bfloat16", 2 * 2**-8, 0),
        ("float16", 2 * 2**-11, 0),
    ],
)
def test_scores_move_within_the_rounding_of_what_computed_them(precision: str, gap: float, points: float) -> None:
    run = ranked(1.0, 1 - gap, -0.5, precision=precision)
    assert noise_of(run) == [(precision, pytest.approx(points))]


def test_the_largest_score_of_a_list_sets_the_scale() -> None:
    near = (0.25, 0.25 - 0.5 * UNIT)
    assert noise_of(ranked(*near, precision="float32"), "nDCG@3") == [("float32", 0)]
    delta = 200 * (1 - 1 / 1.5849625007211562) / (1 + 1 / 1.5849625007211562)  # ranks 1 and 2, then 2 and 3
    below = 200 * (1 / 1.5849625007211562 - 0.5) / (1 / 1.5849625007211562 + 0.5)
    assert delta > below
    assert noise_of(ranked(*near, -1.0, precision="float32"), "nDCG@3") == [("float32", pytest.approx(2 * delta))]


def test_whole_numbers_and_exact_scores_have_no_noise() -> None:
    assert noise_of(ranked(2, 1, precision="float32")) == []
    assert noise_of(ranked(0.5, 0.5 - UNIT / 4, precision="exact")) == []
    assert noise_of(ranked(1 / 3, 1 / 3 - 1e-17)) == []  # float64
    assert noise_of(ranked(1.0, 1 - UNIT)) == [("float32", pytest.approx(400))]  # all fit into that


def test_a_language_model_on_this_machine_says_what_it_computed_in() -> None:
    assert precision({"ranker": "listwise", "llm": {"model": "m", "precision": "bfloat16"}}) == "bfloat16"
    assert [precision(spec) for spec in ({}, {"llm": "gpt"}, {"llm": {"model": "gpt"}})] == [None] * 3
    found = audit(twins(1), ranked(2, 1, precision="float16"), "nDCG@1", resamples=100)
    assert "Computed: mine in float16." in table(found)


def test_printed_digits_hide_the_order_of_equal_scores_alone() -> None:
    assert noise_of(ranked(0.31, 0.30)) == [("2 decimals", 0)]
    assert noise_of(ranked(0.3, 0.3)) == [("1 decimal", pytest.approx(200))]  # level, or one side alone at rank 1


def test_probabilities_move_as_far_as_the_logits_behind_them() -> None:
    human, llm = sigmoid(np.array([10.001, 10.0]))
    assert human - llm < UNIT
    assert noise_of(ranked(human, llm, precision="float32", activation="Sigmoid")) == [("float32", 0)]
    assert noise_of(ranked(human, llm, precision="float32")) == [("float32", pytest.approx(400))]


def test_documents_below_the_cutoff_may_come_above_it() -> None:
    between = [1 - 2.0**-30 * number for number in range(1, 4)]
    assert noise_of(ranked(1.0, 1 - 2.0**-28, *between, precision="float32")) == [("float32", pytest.approx(400))]
    assert noise_of(ranked(1.0, 0.5, *between, precision="float32")) == [("float32", 0)]


def test_a_verdict_that_hangs_on_it_is_named() -> None:
    tilt = audit(twins(40), _alternating(), "nDCG@1", resamples=200).tilts[0]
    tilt = replace(tilt, value=6.0, low=1.0, high=11.0, p_corrected=0.01, queries=40, votes=40)
    noise = NumericalNoise("mine", "human", "llm", "bfloat16", 1.5)
    assert list(hanging([noise], [tilt], 5.0)) == [
        "warning: mine: the verdict on human and llm hangs on numerical noise: scores known to bfloat16 leave "
        "Relative Δ on nDCG@1 open by ±1.5 points"
    ]
    assert list(hanging([replace(noise, points=0.5)], [tilt], 5.0)) == []
    level = replace(tilt, value=0.0, low=-4.0, high=4.0, p_corrected=0.9)
    assert list(hanging([replace(noise, points=0.5)], [level], 5.0)) == []
    assert len(list(hanging([noise], [level], 5.0))) == 1


def _alternating() -> Run:
    rows = [
        {"query_id": f"q{q}", "doc_id": f"{q}-{s}", "score": 1.0 + (q % 2) * (s == "human")}
        for q in range(40)
        for s in ("human", "llm")
    ]
    return Run.from_frame(pl.DataFrame(rows), spec={"ranker": "mine"})
