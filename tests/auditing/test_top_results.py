"""The top results of runs: compact, bounded and exact."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import ranktilt as rt
from ranktilt import Audit, Run
from ranktilt.auditing import top_results
from ranktilt.auditing.top_results import TopResults
from tests.toy import run_of, toy

FOUND = {"q1": {"d1-human": 3.0, "d1-llm": 2.0, "d2-llm": 2.0, "d3-llm": 1.0}, "q2": {"d2-llm": 2.0}, "q3": {}}


def audited(**options: Any) -> Audit:
    collection = toy()
    return rt.audit(collection, [run_of(collection, FOUND, ranker="mine")], resamples=100, **options)


def test_they_come_back_from_a_file_to_the_last_bit(tmp_path: Path) -> None:
    audit = audited()
    assert audit.top_results is not None
    loaded = Audit.load(audit.save(tmp_path / "audit.json")).top_results
    assert loaded is not None
    (run,), (back,) = audit.top_results.runs, loaded.runs
    assert run.frame().equals(back.frame())
    assert back.queries == run.queries
    assert back.name == "mine"


def test_a_block_of_ties_is_kept_whole_and_empty_lists_stay() -> None:
    found = audited(keep_top=2).top_results
    assert found is not None
    assert (found.depth, found.whole) == (2, False)
    (run,) = found.runs
    assert np.diff(run.offsets).tolist() == [3, 1, 0]


def test_none_are_kept_where_none_are_asked_for(tmp_path: Path) -> None:
    audit = audited(keep_top=0)
    assert audit.top_results is None
    assert json.loads(audit.to_json()).get("top_results") is None
    assert Audit.load(audit.save(tmp_path / "audit.json")).top_results is None


def long_run(queries: int, depth: int) -> Run:
    ids = pl.Series([f"d{n}" for n in range(depth)])
    offsets = np.arange(queries + 1) * depth
    scores = np.tile(np.arange(depth, 0, -1.0), queries)
    return Run(tuple(map(str, range(queries))), offsets, np.tile(np.arange(depth), queries), scores, ids, {})


def test_their_size_is_bounded_over_all_runs() -> None:
    runs = [long_run(300, 1000), long_run(300, 1000)]
    found = TopResults.of(runs)
    assert not found.whole
    assert top_results.MOST / 2 < found.results <= top_results.MOST
    assert found.results == 2 * 300 * found.depth
    assert TopResults.of(runs[:1]).whole


def test_a_file_grows_by_a_few_bytes_a_result() -> None:
    run = long_run(300, 1000)
    rng = np.random.default_rng(0)
    scores = -np.sort(-rng.random((300, 1000)), axis=1).ravel()
    found = TopResults.of([Run(run.queries, run.offsets, run.docs, scores, run.ids, {})])
    assert len(json.dumps(found.row(), default=lambda array: array.tolist())) < 14 * found.results
