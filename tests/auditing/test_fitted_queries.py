"""Queries that a correction learned from are left out of every audit of it."""

from dataclasses import replace
from typing import Any

from ranktilt.auditing.audit import audit
from ranktilt.run import Run
from tests.refusals import refused
from tests.toy import run_of, toy

SCORES = {q: {f"{d}-{s}": 3.0 - n for n, d in enumerate(("d1", "d2", "d3")) for s in ("human", "llm")}
          for q in ("q1", "q2", "q3")}  # fmt: skip


def ranked(name: str, *, fitted: dict[str, Any] | None = None, candidates: dict[str, Any] | None = None) -> Run:
    run = run_of(toy(), SCORES, ranker=name)
    more = {"fitted_on": fitted} if fitted else {}
    return replace(run, spec={**run.spec, **more, **({"candidates": candidates} if candidates else {})})


def test_they_are_left_out_for_all_runs() -> None:
    fitted = {"file": "offset.json", "queries": ["q1", "q9"]}
    found = audit(toy(), [ranked("plain"), ranked("corrected", fitted=fitted)], ["nDCG@3"], resamples=100)
    assert found.queries == ("q2", "q3")
    assert "1 query left out for all runs: offset.json learned from them" in found.notes
    alone = audit(toy().only_queries(["q2", "q3"]), ranked("plain"), ["nDCG@3"], resamples=100)
    assert (found.values[0] == alone.values[0]).all()


def test_a_stage_before_the_last_counts_too() -> None:
    inner = {"ranker": "inner", "fitted_on": {"file": "causal.json", "queries": ["q3"]}}
    found = audit(toy(), ranked("outer", candidates=inner), ["nDCG@3"], resamples=100)
    assert found.queries == ("q1", "q2")


def test_other_queries_change_nothing() -> None:
    found = audit(toy(), ranked("plain", fitted={"file": "f.json", "queries": ["q9"]}), ["nDCG@3"], resamples=100)
    assert found.queries == ("q1", "q2", "q3")
    assert not any("left out" in note for note in found.notes)


def test_a_fit_on_all_of_them_is_refused() -> None:
    fitted = {"file": "f.json", "queries": ["q1", "q2", "q3"]}
    with refused("nothing to test on: f.json learned from all 3 queries; audit others, such as a test split"):
        audit(toy(), ranked("plain", fitted=fitted), ["nDCG@3"], resamples=100)
