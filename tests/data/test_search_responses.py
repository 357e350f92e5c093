"""Errors and partial responses are failed queries: counted, named, refused beyond a share."""

import json
from pathlib import Path
from typing import Any

import pytest

from ranktilt.data.formats.responses.search_responses import response_fault, signs_of_fault
from ranktilt.data.runs.run import Run
from ranktilt.errors import DataError, DataWarning
from tests.refusals import refused
from tests.toy import write

HITS = {
    "hits": {
        "total": {"value": 9},
        "hits": [{"_id": "a", "_score": 2.0}, {"_id": "b", "_score": 1.0}],
    }
}
WHOLE = {
    "took": 2,
    "timed_out": False,
    "_shards": {"total": 5, "successful": 5, "skipped": 2, "failed": 0},
    **HITS,
}
FAULTS = [
    (WHOLE, ""),
    (HITS, ""),
    ({**WHOLE, "_clusters": {"total": 2, "successful": 2, "skipped": 0, "partial": 0}}, ""),
    ({**WHOLE, "timed_out": True}, "timed out"),
    ({**WHOLE, "terminated_early": True}, "terminated early"),
    ({**HITS, "_shards": {"total": 5, "successful": 4, "failed": 1}}, "1 of 5 shards failed"),
    ({**HITS, "_shards": {"total": 5, "successful": 3, "failed": 0}}, "2 of 5 shards failed"),
    (
        {
            **HITS,
            "_shards": {
                "total": 5,
                "successful": 4,
                "failed": 1,
                "failures": [
                    {
                        "shard": 0,
                        "reason": {"type": "circuit_breaking_exception", "reason": "too large"},
                    }
                ],
            },
        },
        "1 of 5 shards failed (circuit_breaking_exception: too large)",
    ),
    (
        {**WHOLE, "_clusters": {"total": 3, "successful": 2, "skipped": 1}},
        "of 3 clusters 1 skipped",
    ),
    (
        {
            **WHOLE,
            "_clusters": {"total": 3, "successful": 1, "skipped": 0, "partial": 1, "failed": 1},
        },
        "of 3 clusters 1 partial and 1 failed",
    ),
    (
        {**WHOLE, "_clusters": {"total": 3, "successful": 2, "skipped": 0}},
        "of 3 clusters 1 not successful",
    ),
    ({"is_partial": True, "is_running": True, "response": WHOLE}, "partial, running"),
    ({"is_partial": False, "response": {**WHOLE, "timed_out": True}}, "timed out"),
    ({**WHOLE, "timed_out": True, "terminated_early": True}, "timed out, terminated early"),
    (
        {"error": {"type": "x", "reason": "no such index [i]"}, "status": 404},
        "x: no such index [i] (status 404)",
    ),
    (
        {"error": {"type": "es_rejected_execution_exception", "reason": None}, "status": 429},
        "es_rejected_execution_exception (status 429)",
    ),
    ({"error": {"root_cause": [{"type": "y"}], "type": None}, "status": 500}, "y (status 500)"),
    ({"error": {}, "status": 500}, "status 500"),
    ({"error": "unavailable", "status": 503}, "unavailable (status 503)"),
    ({"error": "unavailable"}, "unavailable"),
    ({**HITS, "status": 503}, "status 503"),
    (
        {"responseHeader": {"status": 0, "partialResults": True}, "response": {"docs": []}},
        "partialResults",
    ),
    (
        {"responseHeader": {"status": 400}, "error": {"msg": "no", "code": 400}},
        "no (status 400), status 400",
    ),
    ({"responseHeader": {"status": 0}, "response": {"docs": [{"id": "a", "score": 1.0}]}}, ""),
    ({"root": {"coverage": {"coverage": 100, "full": True}, "children": []}}, ""),
    (
        {"root": {"coverage": {"coverage": 60, "full": False, "degraded": {"timeout": True}}}},
        "coverage 60 %",
    ),
    (
        {"root": {"errors": [{"code": 12, "message": "Timed out"}], "children": []}},
        "Timed out (status 12)",
    ),
    (None, "not a response to a search: None"),
    ({}, "not a response to a search: {}"),
]


@pytest.mark.parametrize(("response", "fault"), FAULTS, ids=range(len(FAULTS)))
def test_every_sign_of_a_partial_response_is_named(response: Any, fault: str) -> None:
    assert response_fault(response) == fault


def test_an_error_code_counts_unless_there_is_data() -> None:
    error = {"code": 1100, "message": "no collection"}
    assert signs_of_fault(error) == "code 1100: no collection"
    assert signs_of_fault({**error, "data": [{"id": "a", "distance": 0.5}]}) == ""


def test_responses_that_fail_are_left_out_and_said(tmp_path: Path) -> None:
    names = [f"q{number}" for number in range(20)]
    responses: list[Any] = [WHOLE] * 19 + [{**WHOLE, "timed_out": True}]
    for content in ({"responses": responses}, dict(zip(names, responses, strict=True)), responses):
        path = write(tmp_path / "run.json", json.dumps(content))
        message = (
            r"run\.json: 1 of 20 queries failed and are not in the run \(first: 'q19': timed out\)"
        )
        with pytest.warns(DataWarning, match=message):
            run = Run.load(path, queries=names)
        assert run.queries == tuple(names[:19])
        assert run.spec["failed"] == {"q19": "timed out"}
        message = (
            f"{path}: 1 of 20 queries failed, max_failures=4 % allows 0 of 20 "
            "(--max-failures): 'q19': timed out"
        )
        with refused(message, DataError):
            Run.load(path, queries=names, max_failures=4)


@pytest.mark.parametrize("is_retried_later", [True, False])
def test_a_query_that_was_answered_at_another_attempt_has_not_failed(
    tmp_path: Path, is_retried_later: bool
) -> None:
    lines = [json.dumps({"query_id": name, **WHOLE}) for name in ("q1", "q2")]
    lines.insert(0 if is_retried_later else 2, '{"query_id": "q1", "error": "no reply"}')
    path = write(tmp_path / "run.jsonl", "\n".join(lines))
    run = Run.load(path, max_failures=0)
    assert (run.queries, run.spec.get("failed")) == (("q1", "q2"), None)


def test_run_of_failures_alone_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "run.json", json.dumps({"q": {"error": {"type": "x"}, "status": 429}}))
    message = (
        f"{path}: 1 of 1 query failed, max_failures=100 % allows 1 of 1 (--max-failures): 'q': "
        "x "
        "(status 429)"
    )
    with refused(message, DataError):
        Run.load(path, max_failures=100)


def test_responses_of_other_engines_are_read(tmp_path: Path) -> None:
    solr = {
        "responseHeader": {"status": 0},
        "response": {"docs": [{"id": "a", "score": 2.0}, {"id": "b", "score": 1}]},
    }
    children = [
        {"id": "id:shop:item::a", "relevance": 2.0},
        {"id": "id:shop:item::b", "relevance": 1.0},
    ]
    vespa = {"root": {"coverage": {"full": True}, "children": children}}
    for response in (solr, vespa, {"is_partial": False, "response": WHOLE}):
        for content in ({"q": response}, response):
            run = Run.load(write(tmp_path / "run.json", json.dumps(content)), queries=["q"])
            assert run.frame().select("doc_id", "score").rows() == [("a", 2.0), ("b", 1.0)]
