"""Options of Python refuse what is no number, or out of range, as those of the command line do."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ranktilt as rt
from ranktilt.auditing.pairwise.result import PairwiseOptions
from ranktilt.citing.gate import gate_citations
from ranktilt.errors import UserError
from ranktilt.field_checks import is_number, is_whole_number, printed
from ranktilt.judging.gate import DriftLimits
from ranktilt.mitigation.bench_result import check_limits
from ranktilt.rankers.lexical.bm25 import BM25
from tests.auditing.test_gate import LEVEL
from tests.toy import toy, write

NO_NUMBERS: list[Any] = [math.nan, math.inf, -1, True, "x", [1], 10**400]
NO_WHOLE_NUMBERS = [*NO_NUMBERS, 1.5, 2.0]

COLLECTION = toy()
RUN = rt.ranker("bm25").rank(COLLECTION)


def audit(**options: Any) -> object:
    return rt.audit(COLLECTION, RUN, "nDCG@1", **{"resamples": 100, **options})


def gate(**options: Any) -> object:
    return rt.gate(LEVEL, baseline=LEVEL, **{"resamples": 100, **options})


def compare(**options: Any) -> object:
    return rt.compare(LEVEL, LEVEL, **{"resamples": 100, **options})


def explain_gaps(**options: Any) -> object:
    return rt.explain_gaps(COLLECTION, RUN, ["words"], **{"draws": 10, **options})


def sequential_audit(**options: Any) -> object:
    options = {"stop_at_tilt": 20, **options}
    return rt.sequential_audit(COLLECTION, rt.ranker("bm25"), **options)


def check(**options: Any) -> object:
    return rt.check(COLLECTION, **options)


def mitigate(**options: Any) -> None:
    check_limits(**{"margin": 5.0, "budget": 1.0, **options})


def mitigation_options(**options: Any) -> object:
    return rt.MitigationOptions(**options)


def drift_limits(**options: Any) -> None:
    DriftLimits(baseline=object(), **options).check()  # type: ignore[arg-type]


def pairwise(**options: Any) -> None:
    usual = {"count_rule": "each", "margin": 5, "correction": "holm", "resamples": 100, "seed": 0}
    PairwiseOptions(**usual | options).check()  # type: ignore[arg-type]


def bm25(**options: Any) -> object:
    return BM25(**options)


NUMBERS: list[tuple[Callable[..., object], str]] = [
    (audit, "margin"),
    (gate, "max_tilt"),
    (gate, "min_effect"),
    (gate, "max_loss"),
    (gate, "max_left_out"),
    (compare, "max_left_out"),
    (sequential_audit, "stop_at_tilt"),
    (check, "equivalence"),
    (check, "alpha"),
    (mitigate, "margin"),
    (mitigate, "budget"),
    (drift_limits, "min_effect"),
    (drift_limits, "max_loss"),
    (drift_limits, "max_shift"),
    (pairwise, "margin"),
]
WHOLE_NUMBERS: list[tuple[Callable[..., object], str]] = [
    (audit, "depth"),
    (audit, "keep_top"),
    (audit, "resamples"),
    (audit, "seed"),
    (gate, "resamples"),
    (gate, "seed"),
    (compare, "resamples"),
    (compare, "seed"),
    (explain_gaps, "cutoff"),
    (explain_gaps, "draws"),
    (explain_gaps, "seed"),
    (sequential_audit, "max_queries"),
    (sequential_audit, "seed"),
    (check, "map_pairs"),
    (check, "examples"),
    (check, "seed"),
    (mitigation_options, "depth"),
    (mitigation_options, "seed"),
    (pairwise, "resamples"),
    (pairwise, "seed"),
    (bm25, "k"),
]
CASES = [
    *((function, name, value) for function, name in NUMBERS for value in NO_NUMBERS),
    *((function, name, value) for function, name in WHOLE_NUMBERS for value in NO_WHOLE_NUMBERS),
]


@pytest.mark.parametrize(("function", "name", "value"), CASES)
def test_refused(function: Callable[..., object], name: str, value: Any) -> None:
    with pytest.raises(UserError):
        function(**{name: value})


@pytest.mark.parametrize("value", NO_NUMBERS)
def test_limits_of_citations_are_refused(tmp_path: Path, value: Any) -> None:
    labels = write(tmp_path / "labels.csv", "id,source\nd1,ai\nd2,human\n")
    answer = {"query_id": "q1", "cited": ["d1"], "consulted": ["d1", "d2"]}
    answers = write(tmp_path / "answers.jsonl", json.dumps(answer))
    for name in ("margin", "resamples", "seed"):
        with pytest.raises(UserError):
            rt.cite(answers, str(labels), **{name: value})
    audited = rt.cite(answers, str(labels), resamples=100)
    with pytest.raises(UserError):
        gate_citations(audited, max_tilt=value)


def test_numbers_are_shown_as_they_were_given() -> None:
    values = [0.5, 3, -1.0, math.nan, math.inf, True, "x", 10**400]
    texts = ["0.5", "3", "-1", "nan", "inf", "True", "'x'", "a number that is too large"]
    assert [printed(value) for value in values] == texts
    assert [value for value in values if is_number(value)] == [0.5, 3, -1.0]
    assert [value for value in values if is_whole_number(value)] == [3]
