"""Every reader of JSON refuses two equal keys in one object, with file and line."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranktilt.data.artifact import read_json
from ranktilt.data.formats.json_values import key_count, require_single_keys
from ranktilt.data.formats.jsonl import read_jsonl
from ranktilt.data.formats.tables.parquet import read_judgments
from ranktilt.data.labels.label_table import read_labels
from ranktilt.data.runs.rank_llm import read_candidates
from ranktilt.data.runs.run import Run
from ranktilt.errors import DataError
from ranktilt.rankers.llm.stored_calls import read_log
from tests.toy import write


@dataclass(frozen=True, kw_only=True)
class Case:
    """A file in which a key comes twice."""

    name: str
    read: Callable[[Path], Any]
    text: str
    key: str
    line: int
    ending: str = ".json"


def load_run(path: Path) -> Run:
    return Run.load(path, queries=["q1"])


CASES = [
    Case(
        name="document",
        read=load_run,
        text='{"q1": {"d1": 2, "d2": 1,\n"d1": 3}}',
        key="d1",
        line=2,
    ),
    Case(
        name="query", read=load_run, text='{"q1": {"d1": 2},\n\n"q1": {"d2": 1}}', key="q1", line=3
    ),
    Case(name="escaped", read=load_run, text='{"q1": {"d1": 2, "d\\u0031" : 3}}', key="d1", line=1),
    Case(name="list", read=load_run, text='{"q1": ["d1"], "q1": ["d2"]}', key="q1", line=1),
    Case(
        name="hit",
        read=load_run,
        key="_id",
        line=1,
        text='{"hits": {"hits": [{"_id": "d1", "_score": 1, "_id": "d2"}]}}',
    ),
    Case(
        name="record",
        read=load_run,
        text='[{"qid": "q", "id": "d", "score": 1, "score": 9}]',
        key="score",
        line=1,
    ),
    Case(
        name="prediction",
        read=load_run,
        key="score",
        line=2,
        text='{"query_id": "q", "results": []}\n'
        '{"query_id": "r", "results": [{"corpus_id": "d", "score": 1, "score": 2}]}',
    ),
    Case(
        name="corpus",
        read=read_jsonl,
        key="source",
        line=2,
        ending=".jsonl",
        text=(
            '{"_id": "d1", "text": "a \\":\\" b"}\n'
            '{"_id": "d2", "text": "b", "source": "human", "source": "ai"}\n'
        ),
    ),
    Case(
        name="labels",
        read=read_labels,
        key="source",
        line=1,
        ending=".jsonl",
        text='{"doc_id": "d1", "source": "human", "source": "ai"}\n',
    ),
    Case(
        name="judgments",
        read=read_judgments,
        key="score",
        line=1,
        ending=".jsonl",
        text='{"query-id": "q", "corpus-id": "d", "score": 1, "score": 0}\n',
    ),
    Case(
        name="candidates",
        read=read_candidates,
        key="docid",
        line=3,
        text=(
            '\n\n{"query": "a", "hits": [{"qid": "q", "docid": "d", "docid": "e", "content": '
            '"c"}]}\n'
        ),
    ),
    Case(
        name="calls",
        read=read_log,
        key="answer",
        line=2,
        text='{"query": "q", "ids": ["d"], "answer": "[1]"}\n'
        '{"query": "r", "ids": ["d"], "answer": "[1]", "answer": "[2]"}\n',
    ),
    Case(
        name="result",
        read=lambda path: read_json(path, path.read_bytes(), "an audit"),
        key="spec",
        line=1,
        text='{"format": "x", "spec": {}, "spec": {}}',
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_repeated_key_is_refused(tmp_path: Path, case: Case) -> None:
    path = write(tmp_path / f"file{case.ending}", case.text)
    with pytest.raises(DataError) as caught:
        case.read(path)
    expected = (
        f"{path}:{case.line}: the key {case.key!r} occurs twice in one object; keep one of them"
    )
    assert str(caught.value) == expected


def test_repeated_key_of_sidecar_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "run.trec", "q Q0 d 1 2 t\n")
    write(tmp_path / "run.trec.json", '{"ranker": "bm25",\n"ranker": "tfidf"}')
    with pytest.raises(DataError, match=r"run\.trec\.json:2: the key 'ranker' occurs twice"):
        Run.load(path)


def test_equal_keys_of_different_objects_are_fine(tmp_path: Path) -> None:
    path = write(tmp_path / "run", '{"q1": {"d1": 2, "q1": 1}, "q2": {"d1": 2, "q2": 1}}')
    assert Run.load(path).frame().height == 4
    text = (
        '{"_id": "d1", "text": "he said \\"key\\": \\"key\\" : 1", '
        '"about": {"text": {"_id": 1}, "_id": [{"text": 2}]}}'
    )
    assert read_jsonl(write(tmp_path / "docs.jsonl", text))["text"].to_list() == [
        'he said "key": "key" : 1'
    ]


JSON = st.recursive(
    st.integers() | st.text('a":{}\\, ', max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text('a":{}\\ ', max_size=3), inner, max_size=3)
    ),
)


@given(JSON, st.booleans())
def test_any_json_without_repeated_keys_passes(content: Any, spaced: bool) -> None:
    text = json.dumps(
        content, separators=(" , ", " : ") if spaced else (",", ":"), indent=1 if spaced else None
    )
    require_single_keys("file", text, content)
    doubled = f'{{"k": {text}, "k": {text}}}'
    with pytest.raises(DataError, match=r"file:\d+: the key 'k' occurs twice"):
        require_single_keys("file", doubled, json.loads(doubled))


def test_keys_are_counted_at_any_depth() -> None:
    depth = sys.getrecursionlimit() + 10
    content: Any = {}
    for _ in range(depth):
        content = [{"a": content, "b": 1}]
    assert key_count(content) == 2 * depth
