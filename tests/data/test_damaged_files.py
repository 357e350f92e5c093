"""Damaged files of every format give one line with their name, or their content; no traceback."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ranktilt.data.formats.judgments.qrels import read_qrels
from ranktilt.data.labels.label_table import read_labels
from ranktilt.data.queries import read_queries
from ranktilt.data.runs.run import Run
from ranktilt.errors import DataError, DataWarning
from tests.data import test_qrels_formats, test_queries, test_run_formats

Rows = list[tuple[Any, ...]]


@dataclass(frozen=True, kw_only=True)
class Damage:
    """What is done to a file."""

    name: str
    harm: Callable[[bytes], bytes]
    is_harmless: bool = False
    """Whether the file holds the same afterwards."""
    is_of_json: bool = False
    """Whether it makes sense in JSON alone: elsewhere the words are ids."""


def replaced(pattern: bytes, by: bytes, *, count: int = 1) -> Callable[[bytes], bytes]:
    return lambda data: re.sub(pattern, by, data, count=count)


def last_line_repeated(data: bytes) -> bytes:
    lines = data.rstrip(b"\n").split(b"\n")
    return b"\n".join([*lines, lines[-1]])


DAMAGES = [
    Damage(name="empty", harm=lambda data: b""),
    Damage(name="blank", harm=lambda data: b" \n\t\n"),
    Damage(name="a byte", harm=lambda data: b"{"),
    Damage(name="first half", harm=lambda data: data[: len(data) // 2]),
    Damage(name="second half", harm=lambda data: data[len(data) // 2 :]),
    Damage(name="no last bytes", harm=lambda data: data[:-3]),
    Damage(name="binary", harm=lambda data: bytes(range(256)) * 8),
    Damage(name="a zero byte", harm=lambda data: data[:10] + b"\0" + data[10:]),
    Damage(name="no UTF-8", harm=lambda data: data[:-5] + b"\xff\xfe" + data[-5:]),
    Damage(name="UTF-16", harm=lambda data: data.decode("utf-8-sig").encode("utf-16")),
    Damage(
        name="a mark",
        harm=lambda data: b"\xef\xbb\xbf" + data.removeprefix(b"\xef\xbb\xbf"),
        is_harmless=True,
    ),
    Damage(
        name="CRLF",
        harm=lambda data: data.replace(b"\r", b"").replace(b"\n", b"\r\n"),
        is_harmless=True,
    ),
    Damage(
        name="blank lines",
        harm=lambda data: b"\n\n" + data.replace(b"\xef\xbb\xbf", b"") + b"\n\n",
        is_harmless=True,
    ),
    Damage(name="the last line twice", harm=last_line_repeated),
    Damage(name="twice", harm=lambda data: data + b"\n" + data),
    Damage(name="NaN", harm=replaced(rb"2\.5|\b2\b", b"NaN")),
    Damage(name="infinity", harm=replaced(rb"2\.5|\b2\b", b"Infinity")),
    Damage(name="a word for a number", harm=replaced(rb"2\.5|\b2\b", b'"high"')),
    Damage(name="null for an id", is_of_json=True, harm=replaced(rb'"a"', b"null")),
    Damage(name="a list for an id", is_of_json=True, harm=replaced(rb'"a"', b'["a"]')),
    Damage(
        name="an object for an id", is_of_json=True, harm=replaced(rb'"a"', b'{"x": {"y": "a"}}')
    ),
    Damage(name="a truth value for an id", is_of_json=True, harm=replaced(rb'"a"', b"true")),
    Damage(
        name="nested deeply", is_of_json=True, harm=replaced(rb'"a"', b"[" * 3000 + b"]" * 3000)
    ),
    Damage(
        name="a key twice",
        is_of_json=True,
        harm=replaced(rb'"(score|docid|id|_id|rating)":', rb'"\1": "z", "\1":'),
    ),
    Damage(name="half of a character", is_of_json=True, harm=replaced(rb'"a"', b'"\\\\ud800"')),
    Damage(
        name="a web page", harm=lambda data: b"<!DOCTYPE html><html><body>Not found</body></html>"
    ),
    Damage(name="one line", harm=lambda data: data.replace(b"\n", b" ")),
]


@dataclass(frozen=True, kw_only=True)
class Door:
    """A file of one format, and what reads it."""

    name: str
    content: str
    read: Callable[[Path], Rows]


def run_rows(path: Path) -> Rows:
    return Run.load(path, queries=["q1", "q2"]).frame().rows()


def qrels_rows(path: Path) -> Rows:
    return read_qrels(path).select("query_id", "doc_id", "grade").rows()


def query_rows(path: Path) -> Rows:
    return read_queries(path).queries.select("id", "text").rows()


def label_rows(path: Path) -> Rows:
    return read_labels(path).rows()


LABELS = {
    "csv": 'doc_id,source\n"a",human\nb,llm\n',
    "tsv": "docno\tsource\na\thuman\nb\tllm\n",
    "lines": '{"doc_id": "a", "source": "human"}\n{"doc_id": "b", "source": "llm"}\n',
    "object": '{"a": "human", "b": "llm"}',
}


def doors() -> Iterator[Door]:
    yield Door(name="run: TREC", content=test_run_formats.TREC, read=run_rows)
    for run in test_run_formats.CASES:
        yield Door(name=f"run: {run.name}", content=run.content, read=run_rows)
    for case in test_run_formats.RESPONSES:
        content = test_run_formats.in_lists(case.responses)["by query"]
        yield Door(name=f"run: {case.name}", content=content, read=run_rows)
    for qrels in test_qrels_formats.CASES:
        yield Door(name=f"qrels: {qrels.name}", content=qrels.content, read=qrels_rows)
    for queries in test_queries.CASES:
        yield Door(name=f"queries: {queries.name}", content=queries.content, read=query_rows)
    for name, content in LABELS.items():
        yield Door(name=f"labels: {name}", content=content, read=label_rows)


def outcome(door: Door, path: Path) -> tuple[Rows, str, bool]:
    """Return what is read of a file, or what is said of it, and whether it is warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            rows = door.read(path)
        except DataError as error:
            return [], str(error), bool(caught)
    return rows, "", bool(caught)


@pytest.mark.parametrize("door", list(doors()), ids=lambda door: door.name)
def test_a_damaged_file_is_one_line(door: Door, tmp_path: Path) -> None:
    path = tmp_path / "file"
    data = door.content.encode()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        path.write_bytes(data)
        undamaged = door.read(path)
    is_json = data.startswith((b"{", b"["))
    for damage in DAMAGES:
        if damage.is_of_json and not is_json:
            continue
        path.write_bytes(damage.harm(data))
        rows, message, is_warned = outcome(door, path)
        if message:
            assert message.startswith(str(path)), damage.name
            assert "\n" not in message, damage.name
            assert not damage.is_harmless, f"{damage.name}: {message}"
            continue
        is_same = rows == undamaged
        if damage.is_harmless:
            assert is_same, damage.name
        elif damage.name not in CUTS:
            assert is_same or is_warned, f"{damage.name}: {rows}"


CUTS = ("first half", "second half", "no last bytes", "no UTF-8", "one line", "a zero byte")
"""Damages after which a file of lines may be a whole file of other lines."""
