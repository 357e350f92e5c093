"""Grades that are fractions: counted in their steps, where they have any."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest

from ranktilt.errors import UserError
from ranktilt.judging.grades import steps_per_grade
from ranktilt.judging.judge import judge
from ranktilt.reporting.sentences.notes import note_sentences
from tests.toy import collection_of, write


@dataclass(frozen=True, kw_only=True)
class Case:
    name: str
    grades: list[float]
    steps: int


CASES = [
    Case(name="whole", grades=[0, 1, 3], steps=1),
    Case(name="halves", grades=[0, 0.5, 1], steps=2),
    Case(name="thirds of two decimals", grades=[0, 0.33, 0.67, 1], steps=3),
    Case(name="quarters", grades=[0, 0.25, 0.5, 1], steps=4),
    Case(name="tenths", grades=[0.1, 0.7, 1], steps=10),
]


def grades_of(values: list[float]) -> pl.DataFrame:
    names = [f"d{number}" for number in range(len(values))]
    columns = {"query_id": ["q"] * len(values), "doc_id": names, "grade": values}
    return pl.DataFrame(columns, strict=False)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_steps_of_grades(case: Case) -> None:
    assert steps_per_grade([grades_of(case.grades), None]) == case.steps


def test_fractions_without_a_step_are_refused() -> None:
    with pytest.raises(
        UserError, match=r"^grades are fractions without a common step \(first: 0\.123\)"
    ):
        steps_per_grade([grades_of([0.123, 0.7071, 1.0])])


def test_a_stray_fraction_is_left_to_the_reader() -> None:
    assert steps_per_grade([grades_of([float(number % 4) for number in range(200)] + [0.5])]) == 1


def test_workbench_ratings_are_judged_as_whole_grades_are(tmp_path: Path) -> None:
    def ratings(values: list[float]) -> str:
        pairs = ", ".join(
            f'{{"docId": "d{number}", "rating": "{value}"}}' for number, value in enumerate(values)
        )
        return f'{{"judgmentRatings": [{{"query": "q", "ratings": [{pairs}]}}]}}'

    def lines(values: list[int]) -> str:
        return "".join(f"q 0 d{number} {value}\n" for number, value in enumerate(values))

    human, machine = [0, 1, 2, 2, 0, 1], [0, 2, 2, 1, 0, 1]
    fractions = judge(
        write(tmp_path / "judge.json", ratings([value / 2 for value in machine])),
        write(tmp_path / "human.json", ratings([value / 2 for value in human])),
    )
    result = judge(
        write(tmp_path / "judge.qrels", lines(machine)),
        write(tmp_path / "human.qrels", lines(human)),
    )
    assert fractions.agreements == result.agreements
    assert "grades are fractions in steps of 1/2, so 1 becomes grade 2 here" in note_sentences(
        fractions.notes
    )


def test_a_collections_grades_are_counted_in_the_steps_of_a_judge() -> None:
    documents = [{"id": f"d{number}", "text": f"text {number}"} for number in range(4)]
    collection = collection_of(documents, {"q": "x"}, {"q": {"d0": 0, "d1": 1, "d2": 2, "d3": 1}})
    judged = grades_of([0, 0.5, 2, 1.5])
    by_collection = judge({"j": judged}, collection=collection)
    by_table = judge({"j": judged}, collection.qrels)
    assert by_collection.spec["top_grade"] == 4
    assert by_collection.confusions == by_table.confusions
