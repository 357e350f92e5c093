"""Stored logs of evaluation tools that hold graded pairs, read as judgments."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest

from ranktilt.data.formats.judgments.qrels import read_qrels
from ranktilt.errors import DataError
from tests.refusals import refused
from tests.toy import write


@dataclass(frozen=True, kw_only=True)
class Case:
    name: str
    content: str


INSPECT = """{"version": 2, "status": "success",
 "eval": {"task": "relevance", "model": "openai/gpt-x", "dataset": {"samples": 3}},
 "results": {"total_samples": 3},
 "samples": [
  {"id": 1, "epoch": 1, "input": "Query: cold tea. Passage: …", "target": "2",
   "metadata": {"query_id": "q1", "doc_id": "a"},
   "scores": {"grader": {"value": 2, "answer": "2"}}},
  {"id": 2, "epoch": 1, "input": "…", "target": "0",
   "metadata": {"query_id": "q1", "doc_id": "b"},
   "scores": {"grader": {"value": 0, "answer": "0"}}},
  {"id": 3, "epoch": 1, "input": "…", "target": "3",
   "metadata": {"query_id": "q2", "doc_id": "c"}, "scores": {"grader": {"value": "3"}}}]}"""
PROMPTFOO = """{"evalId": "eval-1", "results": {
 "version": 3, "timestamp": "2026-01-01T00:00:00Z", "results": [
  {"id": "r1", "success": true, "score": 2, "latencyMs": 9, "namedScores": {},
   "provider": {"id": "openai:gpt-x"},
   "prompt": {"raw": "…", "label": "umbrela"}, "vars": {"qid": "q1", "docid": "a", "passage": "…"},
   "gradingResult": {"pass": true, "score": 2, "componentResults": []}},
  {"id": "r2", "success": false, "score": 0, "namedScores": {}, "provider": {"id": "openai:gpt-x"},
   "vars": {"qid": "q1", "docid": "b", "passage": "…"}},
  {"id": "r3", "success": true, "score": 3, "namedScores": {}, "provider": {"id": "openai:gpt-x"},
   "vars": {"qid": "q2", "docid": "c", "passage": "…"}}], "stats": {"successes": 2}}}"""
DEEPEVAL = """{"testCases": [
  {"name": "test_case_0", "input": "cold tea", "actualOutput": "…", "success": true,
   "additionalMetadata": {"query_id": "q1", "document_id": "a"},
   "metricsData": [{"name": "Relevance", "threshold": 0.5, "success": true, "score": 2.0,
                    "reason": "…"}]},
  {"name": "test_case_1", "input": "cold tea", "actualOutput": "…",
   "additionalMetadata": {"query_id": "q1", "document_id": "b"},
   "metricsData": [{"name": "Relevance", "score": 0.0}]},
  {"name": "test_case_2", "input": "warm milk", "actualOutput": "…",
   "additionalMetadata": {"query_id": "q2", "document_id": "c"},
   "metricsData": [{"name": "Relevance", "score": 3.0}]}], "metricsScores": []}"""
CASES = [
    Case(name="Inspect", content=INSPECT),
    Case(name="promptfoo", content=PROMPTFOO),
    Case(
        name="promptfoo lines",
        content='{"id": "r1", "score": 2, "vars": {"qid": "q1", "docid": "a"}}\n'
        '{"id": "r2", "score": 0, "vars": {"qid": "q1", "docid": "b"}}\n'
        '{"id": "r3", "score": 3, "vars": {"qid": "q2", "docid": "c"}}\n',
    ),
    Case(name="DeepEval", content=DEEPEVAL),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_log_holds_graded_pairs(case: Case, tmp_path: Path) -> None:
    judgments = read_qrels(write(tmp_path / "log.json", case.content))
    rows = [("q1", "a", 2), ("q1", "b", 0), ("q2", "c", 3)]
    assert judgments.select("query_id", "doc_id", "grade").rows() == rows
    assert judgments["grade"].dtype == pl.Int32


def test_letters_of_inspect_are_its_values(tmp_path: Path) -> None:
    content = INSPECT.replace('"value": 2', '"value": "C"').replace('"value": 0', '"value": "I"')
    content = content.replace('"value": "3"', '"value": "P"')
    assert read_qrels(write(tmp_path / "log.json", content))["grade"].to_list() == [1.0, 0.0, 0.5]


def test_several_scorers_are_no_choice_until_one_is_named(tmp_path: Path) -> None:
    content = INSPECT.replace('"scores": {', '"scores": {"length": {"value": 9}, ')
    path = write(tmp_path / "log.json", content)
    with refused(
        f"{path}: log of Inspect: scores from 'length' and 'grader'; choose one: FILE:grade=length",
        DataError,
    ):
        read_qrels(path)
    assert read_qrels(f"{path}:grade=grader")["grade"].to_list() == [2, 0, 3]


def test_logs_without_pairs_and_of_several_models_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "log.json", INSPECT.replace("doc_id", "note"))
    with refused(
        f"{path}: log of Inspect: no document id in 'metadata' of its samples, …", DataError
    ):
        read_qrels(path)
    write(path, PROMPTFOO.replace("openai:gpt-x", "openai:gpt-y", 1))
    with refused(
        f"{path}: log of promptfoo: grades from 'openai:gpt-y' and 'openai:gpt-x'; …", DataError
    ):
        read_qrels(path)
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", "{}")
        archive.writestr("samples/1_epoch_1.json", "{}")
    with refused(
        f"{path}: is a packed Inspect log; write it as JSON: inspect log convert …", DataError
    ):
        read_qrels(path)
