"""Queries that an engine failed to answer count nowhere; queries that a run merely lacks count as 0."""

import numpy as np
import pytest

from ranktilt import Collection, Run, audit, controls, ranker, table
from tests.toy import collection_of, run_of

QUERIES = {"q1": "red", "q2": "blue", "q3": "green", "q4": "grey"}


def four() -> Collection:
    docs = [
        {"id": f"{colour}-{side}", "text": f"{colour} {side}", "source": side, "origin": colour}
        for colour in QUERIES.values()
        for side in ("human", "llm")
    ]
    grades = {query: {f"{colour}-human": 1, f"{colour}-llm": 1} for query, colour in QUERIES.items()}
    return collection_of(docs, QUERIES, grades)


def answered(collection: Collection, *queries: str, **spec: object) -> Run:
    """The human side first in each query that is answered."""
    scores = {q: {f"{QUERIES[q]}-human": 2.0, f"{QUERIES[q]}-llm": 1.0} for q in queries}
    return run_of(collection, scores, ranker="engine:m:f", **spec)


def mean(run: Run, collection: Collection, group: str, **options: str) -> float:
    found = audit(collection, run, "RR@10", resamples=100, **options)
    numbers = found.table.filter(group=group)["value"].fill_nan(None).drop_nulls()
    [told] = [float(line.split()[-2]) for line in table(found).splitlines() if line.split()[:1] == [group]]
    assert told == pytest.approx(100 * float(numbers.mean()), abs=0.05)
    return float(numbers.mean())


def test_a_failed_query_is_not_counted_as_zero() -> None:
    collection = four()
    lacking = answered(collection, "q1", "q2", "q3")
    failed = answered(collection, "q1", "q2", "q3", failed={"q4": "timed out"})
    assert [mean(lacking, collection, group) for group in ("all", "human", "llm")] == [0.75, 0.75, 0.375]
    assert [mean(failed, collection, group) for group in ("all", "human", "llm")] == [1.0, 1.0, 0.5]


def test_what_failed_and_what_is_lacking_are_told_apart() -> None:
    collection = four()
    run = answered(collection, "q1", "q2", failed={"q4": "timed out"})
    assert mean(run, collection, "human") == pytest.approx(2 / 3)
    notes = audit(collection, run, "RR@10", resamples=100).notes
    assert "engine:m:f: 1 judged query not in the run, counted as 0" in notes
    assert "engine:m:f: 1 judged query failed by the engine, not counted" in notes
    assert mean(run, collection, "human", missing="exclude") == 1.0


def test_a_failed_query_has_no_values_for_each_query() -> None:
    collection = four()
    result = audit(collection, answered(collection, "q1", "q2", "q3", failed={"q4": "x"}), "RR@10", resamples=100)
    values = result.values[0, 0, 0]
    assert np.isnan(values[result.queries.index("q4")])
    assert not np.isnan(values[:3]).any()
    [tilt] = result.tilts
    assert (tilt.queries, tilt.excluded) == (3, 1)


def test_the_card_leaves_failed_queries_out() -> None:
    collection = four()
    pairs = []
    for spec in ({}, {"failed": {"q4": "x"}}):
        card = audit(collection, answered(collection, "q1", "q2", "q3", **spec), "RR@10", resamples=100, card=True)
        [found] = [one for one in card.estimates if one.name == "pair rank gap"]
        pairs.append(found.parts["pairs"])
    assert pairs == [4, 3]


def test_a_reranked_run_still_knows_what_failed() -> None:
    from tests.rankers.counting import Counting

    collection = four()
    run = answered(collection, "q1", "q2", "q3", failed={"q4": "x"})
    assert Counting().rank(collection, run).spec == {"ranker": "counting"}
    from ranktilt.rankers.candidates import reranked_spec

    assert reranked_spec(run, "any")["failed"] == {"q4": "x"}


def test_the_controls_cannot_change_an_engines_documents() -> None:
    collection = four()
    run = answered(collection, *QUERIES)
    raw = audit(collection, run, "RR@10", resamples=100)
    found = controls(collection, [ranker("engine:m:f")], [run], raw, which=["length", "titles"])
    assert [one.changed for one in found.controls[1:]] == ["the engine's documents cannot be changed"] * 2


@pytest.mark.parametrize("failed", [3, True, None, [["q4"]], {"q9": "unknown"}])
def test_what_a_spec_wrongly_says_has_failed_is_passed_over(failed: object) -> None:
    collection = four()
    assert mean(answered(collection, "q1", "q2", "q3", failed=failed), collection, "human") == 0.75
