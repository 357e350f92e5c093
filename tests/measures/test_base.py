"""Measures as values: what is typed is what is seen, and what cannot be is refused with a reason."""

import pickle
from dataclasses import replace
from typing import Any

import ir_measures
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktilt.errors import UserError
from ranktilt.measures.average_precision import AP
from ranktilt.measures.base import Measure, canonical, estimand, measure
from ranktilt.measures.ndcg import nDCG
from ranktilt.measures.precision import P
from ranktilt.measures.printing import rounded, signed
from ranktilt.measures.recall import R
from ranktilt.measures.reciprocal_rank import RR

MADE: dict[str, Measure] = {m.name: m for m in (nDCG, AP, P, R, RR)}
VALID = "(valid: nDCG@k, AP@k, P@k, R@k, RR@k, "
GRAMMAR = "expected name[(rel=grade)][@cutoff]"


@st.composite
def measures(draw: st.DrawFn) -> Measure:
    name = draw(st.sampled_from(list(MADE)))
    cutoff = draw(st.integers(1, 10**6))
    if name not in ("P", "R"):
        cutoff = draw(st.none() | st.just(cutoff))
    rel = 1 if name == "nDCG" else draw(st.integers(1, 9))
    return replace(MADE[name], cutoff=cutoff, rel=rel)


@given(measures())
@settings(max_examples=200)
def test_text_reads_back_as_the_same_measure(given: Measure) -> None:
    assert measure(repr(given)) == given


@given(measures(), st.lists(st.sampled_from(["", " ", "  "]), min_size=7, max_size=7))
@settings(max_examples=100)
def test_blanks_around_the_parts_do_not_matter(given: Measure, blanks: list[str]) -> None:
    a, b, c, d, e, f, g = blanks
    rel = f"{b}({c}rel{d}={d}{given.rel}{c})" if given.name != "nDCG" else ""
    cutoff = "" if given.cutoff is None else f"{e}@{f}{given.cutoff}"
    assert measure(f"{a}{given.name}{rel}{cutoff}{g}") == given


@pytest.mark.parametrize(
    ("made", "text", "parts"),
    [
        (nDCG @ 3, "nDCG@3", ("nDCG", 3, 1)),
        (nDCG, "nDCG", ("nDCG", None, 1)),
        (AP(rel=2) @ 1000, "AP(rel=2)@1000", ("AP", 1000, 2)),
        (R(rel=3) @ 100, "R(rel=3)@100", ("R", 100, 3)),
        (RR @ 10 @ 5, "RR@5", ("RR", 5, 1)),
        (AP(rel=2)(rel=1), "AP", ("AP", None, 1)),
    ],
)
def test_python_and_text_make_the_same(made: Measure, text: str, parts: tuple[str, int | None, int]) -> None:
    assert repr(made) == text
    assert (made.name, made.cutoff, made.rel) == parts
    assert measure(text) == made
    assert hash(measure(text)) == hash(made)
    assert measure(made) is made
    assert pickle.loads(pickle.dumps(made)) == made
    assert made.binary is (made.name != "nDCG")  # which alone reads the grades themselves


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("NDCG_cut_5", "nDCG@5"), ("p.5", "P@5"), ("Map(rel=2)@5", "AP(rel=2)@5"), ("Precision@3", "P@3"),
        ("MRR@10", "RR@10"), ("recip_rank", "RR"), ("recall_10", "R@10"), ("exposureratio@5", "ExposureRatio@5"),
        ("AP(rel=1)@5", "AP@5"),
    ],
)  # fmt: skip
def test_names_from_elsewhere_mean_the_same_measure(text: str, name: str) -> None:
    assert repr(estimand(text)) == name


def test_objects_of_ir_measures_are_read_as_they_print() -> None:
    named = [ir_measures.nDCG @ 5, ir_measures.AP(rel=2) @ 5, ir_measures.RR, ir_measures.P(rel=2) @ 3]
    assert [estimand(one) for one in named] == [nDCG @ 5, AP(rel=2) @ 5, RR, P(rel=2) @ 3]


def test_an_exact_name_comes_before_one_from_elsewhere() -> None:
    assert canonical("map", "5", {"map": "", "AP": ""}) == ("map", "5")
    assert canonical("MAP", None, {"map": "", "AP": ""}) == ("map", None)
    assert canonical("recall_10", None, {"recall_10": "", "R": ""}) == ("recall_10", None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nDGC@3", f"unknown measure 'nDGC'; did you mean 'nDCG@k'? {VALID}"),
        ("ndcg_cut_5@3", "measure ndcg_cut_5@3 has two cutoffs; give only one"),
        ("nDCG(dcg='exp-log2')@5", "unknown option of measure \"nDCG(dcg='exp-log2')@5\" 'dcg'"),
        ("nDCG@0", "measure nDCG: expected a cutoff of at least 1, got @0"),
        ("AP(rel=0)@3", "measure AP: expected rel of at least 1, got rel=0"),
        ("AP(rel=1,rel=2)@3", "option 'rel' of measure 'AP(rel=1,rel=2)@3' is given twice"),
        ("AP(real=2)@3", "unknown option of measure 'AP(real=2)@3' 'real'; did you mean 'rel'? (valid: rel)"),
        ("nDCG@3.5", f"cannot read measure 'nDCG@3.5': {GRAMMAR}"),
    ],
)
def test_what_cannot_be_is_refused_with_a_reason(text: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        measure(text)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: measure(P), "measure P needs a cutoff, such as P@10"),
        (lambda: nDCG @ 0, "measure nDCG: expected a cutoff of at least 1"),
        (lambda: AP(rel=0), "measure AP: expected rel of at least 1"),
        (lambda: nDCG(rel=2), "measure nDCG"),
        *[(lambda k=k: nDCG @ k, "measure nDCG: expected a whole number as cutoff") for k in (3.5, True, "3")],
    ],
)
def test_python_refuses_the_same(wrong: Any, message: str) -> None:
    with pytest.raises(UserError, match=f"^{message}"):
        wrong()


def test_last_bits_decide_no_printed_digit() -> None:
    near = [40.75 - 1e-14, 40.75, 40.75 + 1e-14]
    assert {rounded(value) for value in near} == {"40.8"}
    assert {signed(-value) for value in near} == {"−40.8"}
