"""A gate on a bench: 0 where an intervention reaches level within the budget, 1 where none does, 3 where it is open."""

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from ranktilt.auditing.answer.gate import Gate
from ranktilt.experiments.tradeoff import gate_bench
from ranktilt.reporting.output import table
from ranktilt.reporting.render.junit import junit
from tests.experiments.planted import swept
from tests.refusals import refused


@pytest.mark.parametrize(
    ("options", "outcome", "code", "runs"),
    [
        ({"budget": 0.05}, "level", 0, {"α = 0.01"}),
        ({}, "inconclusive", 3, {"α = 0.01"}),
        ({"inconclusive": "pass"}, "inconclusive", 0, {"α = 0.01"}),
        ({"budget": 0.05, "max_tilt": 150}, "within", 0, {"α = 0.001"}),
    ],
)
def test_the_choice_decides(options: dict[str, Any], outcome: str, code: int, runs: set[str]) -> None:
    found = gate_bench(swept(), **options)
    assert (found.outcome, found.exit_code, {row.run for row in found.rows}) == (outcome, code, runs)


def test_none_fails_with_all_rows() -> None:
    found = gate_bench(swept({0: (60, 0, 0), 1: (0, 0, 24)}))
    assert (found.outcome, found.exit_code) == ("tilted", 1)
    assert [(row.run, row.groups, row.word) for row in found.rows] == [
        ("α = 0", "human | llm", "tilted"),
        ("α = 1", "human | llm", "level"),
        ("α = 1", "all", "beyond"),
        ("α = 1", "human", "beyond"),
    ]


def test_a_policy_that_is_none_is_refused() -> None:
    with refused("unknown policy for inconclusive 'maybe' (valid: fail, pass)"):
        gate_bench(swept(), inconclusive="maybe")


def test_it_prints_what_was_asked_and_is_read_again(tmp_path: Path) -> None:
    found = gate_bench(swept(), budget=0.05)
    assert found.headline == (
        "level: 3 of 3 comparisons (asked: an intervention within ±5 points of level and a loss of at most 5 points of "
        "nDCG@10)"
    )
    assert "≥ −5.0" in table(found)
    assert table(Gate.load(found.save(tmp_path / "gate.json"))) == table(found)
    root = ElementTree.fromstring(junit(found))
    assert [case.get("name") for case in root.iter("testcase")] == [
        "nDCG@1: human | llm",
        "nDCG@10: all",
        "nDCG@10: human",
    ]
