"""Mapped texts are the same strings, and their files go with the last table that has them."""

import gc
import sys
import threading
from functools import partial
from pathlib import Path

import polars as pl
import pytest

from ranktilt.data import texts as texts_module
from ranktilt.data.loading.assemble import unjudged_collection
from ranktilt.data.texts import (
    TEXTS_A_BLOCK,
    by_blocks,
    digest_of,
    map_in_threads,
    mapped_texts,
    release_texts,
)

TEXTS = ["one", "", "drei Wörter hier", "日本語", "x" * 100_000]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKTILT_CACHE", str(tmp_path / "cache"))


def mapped(folder: Path) -> int:
    """Count the mapped files of a folder that this process holds."""
    lines = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    return sum(str(folder) in line for line in lines)


def test_columns_come_back_as_they_were_from_parts_of_any_size() -> None:
    titles = [text.upper() for text in TEXTS]
    frame = pl.DataFrame({"text": TEXTS, "title": titles})
    for rows in (1, 2, 10):
        parts = [part.to_dict() for part in frame.iter_slices(rows)]
        columns = mapped_texts(partial(iter, parts))
        assert {name: column.to_list() for name, column in columns.items()} == {
            "text": TEXTS,
            "title": titles,
        }
        assert columns["text"].dtype == pl.String
        assert columns["text"].filter([True, False, False, True, False]).to_list() == [
            "one",
            "日本語",
        ]


def test_texts_without_a_byte() -> None:
    column = mapped_texts(lambda: [{"text": pl.Series(["", ""])}])["text"]
    assert column.to_list() == ["", ""]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_files_are_given_back_with_the_last_table_that_holds_them(tmp_path: Path) -> None:
    frame = pl.DataFrame({"text": TEXTS})
    column = mapped_texts(lambda: [frame.to_dict()])["text"]
    part = column.to_frame().filter(pl.col("text").str.len_bytes() > 5)
    del column
    gc.collect()
    assert mapped(tmp_path) > 0, "a part of it is still held"
    assert part["text"].to_list() == [text for text in TEXTS if len(text.encode()) > 5]
    del part
    gc.collect()
    assert mapped(tmp_path) == 0


@pytest.mark.parametrize("count", [0, 1, TEXTS_A_BLOCK, TEXTS_A_BLOCK + 1])
def test_blocks_of_texts_give_what_all_texts_give(count: int) -> None:
    texts = pl.Series("text", [f"text {'x' * (number % 7)}" for number in range(count)], pl.String)
    lengths = by_blocks(lambda block: block.str.len_bytes(), texts)
    assert lengths.to_list() == texts.str.len_bytes().to_list()


@pytest.mark.parametrize(("count", "is_alone"), [(1, True), (5, False)])
def test_a_single_part_is_left_to_the_calling_thread(count: int, is_alone: bool) -> None:
    threads_of_parts = list(
        map_in_threads(lambda part: (part, threading.get_ident()), range(count))
    )
    assert [part for part, _ in threads_of_parts] == list(range(count))
    assert (threading.get_ident() in {thread for _, thread in threads_of_parts}) is is_alone


def test_released_texts_are_read_again() -> None:
    texts = mapped_texts(lambda: [{"text": pl.Series(["first", "ü" * 5_000])}])["text"]
    release_texts()
    assert texts.to_list() == ["first", "ü" * 5_000]


@pytest.mark.parametrize(
    ("title", "text", "ranked"),
    [("", "plain", "plain"), ("", " wide ", "wide"), ("Title", "plain", "Title plain")],
)
def test_ranked_text_is_title_and_text(title: str, text: str, ranked: str) -> None:
    docs = pl.DataFrame({"id": ["a", "b"], "title": ["", title], "text": ["other", text]})
    collection = unjudged_collection(docs, pl.DataFrame({"id": ["q"], "text": ["word"]}), {})
    assert collection.texts().to_list() == ["other", ranked]


def test_digest_is_of_all_texts_however_they_lie_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts_module, "_TEXTS_A_HASH", 7)
    texts = pl.Series([f"text {number} é" for number in range(20)])
    parts = pl.concat([texts.slice(0, 9), texts.slice(9)], rechunk=False)
    slice_of_more = pl.concat([pl.Series(["before"]), texts]).slice(1)
    assert digest_of(texts) == digest_of(parts) == digest_of(slice_of_more)
    changed = [
        pl.concat([texts.slice(0, row), pl.Series(["x"]), texts.slice(row + 1)])
        for row in range(20)
    ]
    assert len({digest_of(column) for column in (texts, *changed)}) == 21
    assert digest_of(pl.Series(["ab", "c"])) != digest_of(pl.Series(["a", "bc"]))
