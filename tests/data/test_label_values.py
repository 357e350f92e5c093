"""Which labels name no group, and which are one name in several spellings."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl
import pytest

from ranktilt.data.text.label_values import alike_labels, as_numbers, known_labels, null_words


@dataclass(frozen=True, kw_only=True)
class Case:
    name: str
    labels: list[str]
    difference: str
    options: str


CASES = [
    Case(
        name="case",
        labels=["Ai", "ai", "AI"],
        difference="case",
        options="--name AI=ai --name Ai=ai",
    ),
    Case(
        name="case without small",
        labels=["HUMAN", "Human"],
        difference="case",
        options="--name Human=HUMAN",
    ),
    Case(
        name="end", labels=["human ", "human"], difference="blanks", options="--name 'human =human'"
    ),
    Case(
        name="no break",
        labels=["a\u00a0b", "a b"],
        difference="blanks",
        options="--name 'a\u00a0b=a b'",
    ),
    Case(
        name="zero width",
        labels=["ai\u200b", "ai"],
        difference="blanks",
        options="--name 'ai\u200b=ai'",
    ),
    Case(
        name="composed",
        labels=["cafe\u0301", "caf\u00e9"],
        difference="Unicode form",
        options="--name 'cafe\u0301=caf\u00e9'",
    ),
    Case(
        name="full width",
        labels=["\uff21\uff29", "AI"],
        difference="Unicode form",
        options="--name '\uff21\uff29=AI'",
    ),
    Case(
        name="two kinds",
        labels=["AI ", "ai"],
        difference="case and blanks",
        options="--name 'AI =ai'",
    ),
    Case(
        name="numbers",
        labels=["1.0", "1", "01"],
        difference="how a number is written",
        options="--name 01=1 --name 1.0=1",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_spellings_of_one_name_are_found(case: Case) -> None:
    [alike] = alike_labels([*case.labels, "another"])
    assert (alike.difference, alike.options) == (case.difference, case.options)
    assert set(alike.labels) == set(case.labels)


def test_letters_that_print_alike_are_shown_by_code_point() -> None:
    [alike] = alike_labels(["cafe\u0301", "caf\u00e9"])
    assert alike.joined == r"'caf\xe9' and 'cafe\u0301'"


def test_other_names_are_not_alike() -> None:
    assert alike_labels(["human", "llm", "llm-a", "llm_a", "1", "2", "1a"]) == []


@pytest.mark.parametrize(
    ("values", "known"),
    [
        (["ai", "nan", "NaN", "<NA>", "NaT", " nan ", "", "\u00a0", None], ["ai"]),
        (["NA", "None", "null", "NAN", "nano"], ["NA", "None", "null", "NAN", "nano"]),
        ([1.5, float("nan"), None], [1.5]),
        ([1, 2], [1, 2]),
        ([True, None], [True]),
    ],
)
def test_missing_values_name_no_group(values: list[object], known: list[object]) -> None:
    assert known_labels(pl.Series(values)).drop_nulls().to_list() == known


def test_words_for_nothing_are_told_from_names() -> None:
    assert null_words(["NA", "None", "null", "N/A", "NAN", "Nadia", "nil"]) == [
        "NA",
        "None",
        "null",
        "N/A",
        "NAN",
        "nil",
    ]


def test_numbers_as_text_are_numbers_where_all_are() -> None:
    assert as_numbers(pl.Series([".5", None, "1"])).to_list() == [0.5, None, 1.0]
    assert as_numbers(pl.Series(["2", "3"])).to_list() == [2, 3]
    assert as_numbers(pl.Series(["2", "x"])).to_list() == ["2", "x"]
