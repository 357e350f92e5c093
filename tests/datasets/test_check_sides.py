"""What favours a side without being a fault of its texts: titles in front of them, and a length they stop at."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranktilt.datasets.check import CheckResult, CheckRow, check, cut_at, title_prefixed
from ranktilt.datasets.load import load
from ranktilt.text.quality import words
from tests.toy import collection_of, versions

PAIRS = 40
LONG = [f"word{n}" for n in range(60)]


def found(human: Any, llm: Any, **more: Any) -> CheckResult:
    """Check pairs whose texts two functions of the pair's number make."""
    docs = versions({"human": map(human, range(PAIRS)), "llm": map(llm, range(PAIRS))})
    docs = [{**row, "title": f"Page {n % PAIRS}", **more} for n, row in enumerate(docs)]
    return check(collection_of(docs, {"q": "x"}, {"q": {"0-human": 1, "0-llm": 1}}))


def row_of(result: CheckResult, name: str) -> CheckRow:
    (row,) = (row for row in result.rows if row.name == name)
    return row


def prefixed(n: int) -> str:
    return f"Page {n} is about {' '.join(LONG[n : n + 9])}."


def bare(n: int) -> str:
    return f"It is about {' '.join(LONG[n : n + 9])}."


def cut(n: int) -> str:
    return " ".join(LONG[:49]) + f" end{n}."


def free(n: int) -> str:
    return " ".join(LONG[: 20 + n]) + f" end{n}."


@pytest.mark.parametrize(
    ("name", "human", "llm", "value", "reference", "note"),
    [
        ("title prefixes", prefixed, bare, 0.0, 100.0, ""),
        ("title prefixes", bare, prefixed, 100.0, 0.0, ""),
        ("title prefixes", prefixed, prefixed, 100.0, 100.0, ""),
        ("title prefixes", bare, bare, 0.0, 0.0, ""),
        ("texts cut short", cut, free, 0.0, 100.0, "human at 50 words"),
        ("texts cut short", free, cut, 100.0, 0.0, "llm at 50 words"),
        ("texts cut short", cut, cut, 100.0, 100.0, "human at 50 words; llm at 50 words"),
        ("texts cut short", free, free, 0.0, 0.0, ""),
    ],
)
def test_titles_in_front_and_cuts_favour_the_side_that_has_more_of_them(
    name: str, human: Any, llm: Any, value: float, reference: float, note: str
) -> None:
    result = row_of(found(human, llm), name)
    assert (result.value, result.reference, result.note, result.total) == (value, reference, note, PAIRS)
    assert result.verdict == ("ok" if value == reference else "warning")


def test_a_title_that_is_set_aside_counts_on_both_sides() -> None:
    result = row_of(found(prefixed, bare, title="", page_title="Page"), "title prefixes")
    assert (result.value, result.reference) == (0.0, 100.0)


def docs(*rows: dict[str, str | None]) -> pl.DataFrame:
    filled = [{"title": "", "origin": row["id"], **row} for row in rows]
    return pl.DataFrame(filled, infer_schema_length=None)


@pytest.mark.parametrize(
    ("title", "text", "expected"),
    [
        ("Red apples", "Red apples grow", True),
        ("Red apples", "red APPLES", True),
        ("Red apples (fruit)", "Red apples ( fruit ) grow", True),
        ("Red apples", "Red applesauce", False),
        ("Red apples", "The red apples", False),
        ("Cafe\u0301", "Café noir", True),
        ("“Red”", "Red is a colour", True),
        ("  ", "Red apples grow", None),
        ("?!", "?! is no title", None),
    ],
)
def test_a_text_begins_with_its_title(title: str, text: str, expected: bool | None) -> None:
    assert title_prefixed(docs({"id": "a", "title": title, "text": text})).to_list() == [expected]


def test_a_rewrite_without_a_title_has_that_of_its_origin() -> None:
    table = docs(
        {"id": "a", "text": "Red apples grow", "title": "Red apples"},
        {"id": "a2", "text": "Apples that are red grow", "origin": "a"},
        {"id": "a3", "text": "Red apples are grown", "origin": "a"},
        {"id": "a4", "text": "Green apples are grown", "origin": "a", "title": "Green apples"},
        {"id": "b2", "text": "Red apples", "origin": "not there"},
    )
    assert title_prefixed(table).to_list() == [True, False, True, True, None]


def lengths(*parts: tuple[int, int]) -> pl.Series:
    return pl.Series("words", [n for n, times in parts for _ in range(times)], dtype=pl.Int64)


@pytest.mark.parametrize(
    ("found", "limit", "cut"),
    [
        (lengths((200, 95), (150, 3), (80, 2)), 200, 95),
        (lengths((200, 90), (205, 4), (80, 6)), 200, 90),  # few may be longer
        (lengths((200, 80), *[(250 + n, 1) for n in range(20)]), None, 0),  # a fifth is longer: no cut at 200
        (lengths((200, 4), (10, 3)), None, 0),  # four texts are no pile
        (lengths((19, 100)), None, 0),  # short texts, not cut ones
        (lengths((20, 100)), 20, 100),
        (lengths((200, 50), (199, 10), (40, 40)), 200, 50),
        (lengths((200, 49), (199, 10), (40, 40)), None, 0),  # a pile has five times as many
    ],
)
def test_a_cut_is_a_pile_at_the_top(found: pl.Series, limit: int | None, cut: int) -> None:
    came, mask = cut_at(found)
    assert (came, int(mask.sum()), len(mask)) == (limit, cut, len(found))
    assert set(found.filter(mask)) <= {limit}


@given(st.integers(40, 200), st.integers(0, 2**32 - 1))
def test_every_cut_of_long_texts_is_found(limit: int, seed: int) -> None:
    drawn = np.random.default_rng(seed).integers(20, 400, 500)
    came, mask = cut_at(pl.Series(np.minimum(drawn, limit)))
    assert came == limit
    assert mask.to_list() == (drawn >= limit).tolist()


@pytest.mark.data
@pytest.mark.parametrize("name", ["cocktail-nfcorpus", "scifact"])
def test_real_texts_are_found_cut_only_after_they_are(shared_data: Path, name: str) -> None:
    collection = load(shared_data / name, ignore_unknown=True)
    for source in collection.sources:
        count = words(collection.docs.filter(pl.col("source") == source)["text"])
        assert cut_at(count)[0] is None
        assert cut_at(count.clip(0, 150))[0] == 150
    assert title_prefixed(collection.docs).mean() < 0.01
