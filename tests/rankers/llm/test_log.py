"""Stored calls are read in every form in which others keep them; what is none is named by its line."""

import gzip
import json
from pathlib import Path

import pytest

from ranktilt.errors import DataError
from ranktilt.rankers.llm.log import EXPECTED, LoggedCall, read_log
from tests.rankers.llm.logged import rank_llm_text

TWO = [{"prompt": "Which?\n[1] a", "response": "[1]"}, {"prompt": "Who?", "response": None}]
CALLS = (LoggedCall(1, None, (), "Which?\n[1] a", "[1]"), LoggedCall(2, None, (), "Who?", None))


@pytest.mark.parametrize(
    "text",
    [rank_llm_text(TWO), json.dumps(TWO), "\n".join(map(json.dumps, TWO)), "\ufeff" + rank_llm_text(TWO)],
    ids=["rank_llm", "list", "lines", "mark"],
)
def test_records_follow_each_other_in_any_form(tmp_path: Path, text: str) -> None:
    file = tmp_path / "log.json"
    file.write_text(text, encoding="utf-8")
    assert read_log(file) == CALLS
    file.write_bytes(gzip.compress(text.encode()))
    assert read_log(file) == CALLS


def test_ids_and_the_histories_of_later_versions_are_read(tmp_path: Path) -> None:
    messages = [{"role": "system", "content": "Rank."}, {"role": "user", "content": "[1] a"}]
    history = {"query": {"qid": 7, "text": "a?"}, "invocations_history": [{"prompt": messages, "response": "[1]"}] * 2}
    named = {"query": 7, "ids": ["d1", 2], "answer": "[2] > [1]"}
    (tmp_path / "log.json").write_text(json.dumps([history, named]))
    first = LoggedCall(1, "7", (), "Rank.\n[1] a", "[1]")
    expected = (first, first._replace(number=2), LoggedCall(3, "7", ("d1", "2"), "", "[2] > [1]"))
    assert read_log(tmp_path / "log.json") == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no calls"),
        ("q1 Q0 d1 1 2.5 bm25\n", f"1: {EXPECTED}, got 'q1 Q0 d1 1 2.5 bm25\\n'"),
        ('{"prompt": "a", "response": "b"}\n{"prompt": "a" "b"}\n{}', f"2: {EXPECTED}, got"),
        ('{"prompt": "a", "response": "b"}\n{"q": "a", "text": "b"}', f"2: {EXPECTED}, got 'q, text'"),
        ('{"prompt": "a", "response": "b"}, {"prompt": "a", "resp', f"1: {EXPECTED}, got"),
        ('{"prompt": "a", "response": 5}', f"1: {EXPECTED}, got 'prompt, response'"),
        ('{"query": "q", "ids": [[]], "answer": "[1]"}', f"1: {EXPECTED}, got 'query, ids, answer'"),
    ],
)
def test_what_is_no_log_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "log.json"
    file.write_text(text)
    with pytest.raises(DataError) as caught:
        read_log(file)
    assert str(caught.value).startswith(f"{file}:")
    assert str(caught.value).removeprefix(f"{file}:").strip().startswith(message)
