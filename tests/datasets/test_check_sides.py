"""What favours a side without being a fault of its texts: titles in front of them, and a length they stop at."""

from typing import Any

import pytest

from ranktilt.datasets.check import CheckResult, CheckRow, check
from tests.toy import collection_of

PAIRS = 40
LONG = [f"word{n}" for n in range(60)]


def found(human: Any, llm: Any, **more: Any) -> CheckResult:
    """Check pairs whose texts two functions of the pair's number make."""
    docs = [
        {"id": f"{n}-{side}", "title": f"Page {n}", "text": make(n), "source": side, "origin": f"{n}-human", **more}
        for side, make in (("human", human), ("llm", llm))
        for n in range(PAIRS)
    ]
    return check(collection_of(docs, {"q": "x"}, {"q": {"0-human": 1, "0-llm": 1}}))


def row(result: CheckResult, name: str) -> CheckRow:
    (one,) = (r for r in result.rows if r.name == name)
    return one


def prefixed(n: int) -> str:
    return f"Page {n} is about {' '.join(LONG[n : n + 9])}."


def bare(n: int) -> str:
    return f"It is about {' '.join(LONG[n : n + 9])}."


def cut(n: int) -> str:
    return " ".join(LONG[:49]) + f" end{n}."


def free(n: int) -> str:
    return " ".join(LONG[: 20 + n]) + f" end{n}."


@pytest.mark.parametrize(
    ("human", "llm", "value", "reference", "verdict"),
    [
        (prefixed, bare, 0.0, 100.0, "warning"),
        (bare, prefixed, 100.0, 0.0, "warning"),
        (prefixed, prefixed, 100.0, 100.0, "ok"),
        (bare, bare, 0.0, 0.0, "ok"),
    ],
)
def test_titles_in_front_favour_the_side_that_has_more_of_them(
    human: Any, llm: Any, value: float, reference: float, verdict: str
) -> None:
    one = row(found(human, llm), "title prefixes")
    assert (one.value, one.reference, one.verdict, one.total) == (value, reference, verdict, PAIRS)


def test_a_title_kept_aside_counts_on_both_sides() -> None:
    one = row(found(prefixed, bare, title="", page_title="Page"), "title prefixes")
    assert (one.value, one.reference) == (0.0, 100.0)


@pytest.mark.parametrize(
    ("human", "llm", "value", "reference", "verdict", "note"),
    [
        (cut, free, 0.0, 100.0, "warning", "human at 50 words"),
        (free, cut, 100.0, 0.0, "warning", "llm at 50 words"),
        (cut, cut, 100.0, 100.0, "ok", "human at 50 words; llm at 50 words"),
        (free, free, 0.0, 0.0, "ok", ""),
    ],
)
def test_a_cut_favours_the_side_that_has_none(
    human: Any, llm: Any, value: float, reference: float, verdict: str, note: str
) -> None:
    one = row(found(human, llm), "texts cut short")
    assert (one.value, one.reference, one.verdict, one.note) == (value, reference, verdict, note)
