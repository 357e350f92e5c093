"""Probes of a judge: planted weaknesses are recovered, and a judge without one has a gap of exactly
0.
"""

import math
from collections.abc import Callable
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from ranktilt.data.collection import Collection
from ranktilt.errors import UserError
from ranktilt.judging.grading.length_doses import DoseGrade, LengthDoses
from ranktilt.judging.grading.probes import (
    DOSES,
    INSTRUCTION,
    JUDGE_PROBES,
    JudgeProbes,
    probe_collection,
    probe_judge,
)
from ranktilt.judging.grading.settings import Grading
from ranktilt.llm.journal import Journal
from tests.generation.scripted import Scripted
from tests.toy import collection_of

QUERIES = {"q1": "red apples", "q2": "the river mouth", "q3": "old clocks"}
WORDS = ("stone", "bread", "cloud", "paper", "horse", "table")
Probe = Callable[..., JudgeProbes]


def collection() -> Collection:
    """Each query has one relevant document, and five of grade 0 that share no word with it."""
    docs = [
        {
            "id": f"{query}-{number}",
            "text": f"One {word} lies near another {word}. It is {query} and number {number}.",
        }
        for query in QUERIES
        for number, word in enumerate(WORDS)
    ]
    qrels = {
        query: {f"{query}-{number}": 3 if number == 0 else 0 for number in range(6)}
        for query in QUERIES
    }
    return collection_of(docs, QUERIES, qrels)


def passage_of(prompt: str) -> str:
    return prompt.split("Passage: ", 1)[1].split("\n\nSplit this problem", 1)[0]


def query_of(prompt: str) -> str:
    return prompt.split("Query: ", 1)[1].split("\nPassage: ", 1)[0]


def share_of_query_words(prompt: str) -> int:
    words = passage_of(prompt).split()
    return 2 if all(word in words for word in query_of(prompt).split()) else 0


def length(prompt: str) -> int:
    return min(len(passage_of(prompt).split()) // 20, 3)


def obeys(prompt: str) -> int:
    return 3 if INSTRUCTION in prompt else 1


@pytest.fixture
def probe(tmp_path: Path) -> Probe:
    """Probe a judge that grades by a function of the prompt, each with a journal of its own."""
    numbers = count()

    def run(says: Callable[[str], int | str], **options: object) -> JudgeProbes:
        llm = Scripted(lambda prompt, _: f"##final score: {says(prompt)}")
        return probe_judge(
            collection(),
            llm,
            journal=Journal(tmp_path / f"{next(numbers)}"),
            resamples=200,
            **options,
        )  # type: ignore[arg-type]

    return run


@pytest.mark.parametrize(
    ("weakness", "says", "gap"),
    [
        ("query words", share_of_query_words, 2.0),
        ("padding", length, 1.0),
        ("instruction", obeys, 2.0),
    ],
)
def test_a_planted_weakness_is_recovered(
    probe: Probe, weakness: str, says: Callable[[str], int], gap: float
) -> None:
    gaps = {gap.probe: gap for gap in probe(says).gaps}
    assert list(gaps) == ["query words", "padding", "padding ×4", "instruction"]
    hit = gaps.pop(weakness)
    assert (hit.pairs, hit.queries, hit.gap, hit.raised, hit.left_out) == (15, 3, gap, 1.0, 0)
    assert (hit.low, hit.high) == (gap, gap)
    # An instruction, and a larger dose, make passages longer too.
    related = ("instruction", "padding ×4") if weakness == "padding" else ()
    immune = [gap for gap in gaps.values() if gap.probe not in related]
    assert {(gap.gap, gap.low, gap.high, gap.raised) for gap in immune} == {(0.0, 0.0, 0.0, 0.0)}


def test_a_judge_that_ignores_all_rules_has_gaps_of_zero_and_what_cannot_be_probed_is_refused(
    probe: Probe,
) -> None:
    def of_the_passage(prompt: str) -> int:
        first = next(word for word in passage_of(prompt).split() if word in WORDS)
        return WORDS.index(first) % 4

    result = probe(of_the_passage, seed=3)
    assert {(gap.gap, gap.low, gap.high, gap.raised) for gap in result.gaps} == {
        (0.0, 0.0, 0.0, 0.0)
    }
    assert result.pairs.height == 60
    assert result.pairs["grade"].equals(result.pairs["twin_grade"].rename("grade"))
    assert (result.grades.counts.pairs, result.judge) == (75, "umbrela-tiny")
    with pytest.raises(UserError, match="flattery"):
        probe(obeys, probes=["flattery"])
    with pytest.raises(UserError, match="at least 1 pair"):
        probe(obeys, pairs=0)
    relevant = collection_of([{"id": "a", "text": "a"}], {"q": "query"}, {"q": {"a": 1}})
    with pytest.raises(UserError, match="nothing to probe: no judgment of grade 0"):
        probe_judge(relevant, Scripted())


def test_the_interval_resamples_queries_and_pairs_without_a_grade_are_left_out_and_counted(
    probe: Probe,
) -> None:
    def fooled_by_one(prompt: str) -> int:
        return 3 if INSTRUCTION in prompt and query_of(prompt) == "red apples" else 0

    (gap,) = probe(fooled_by_one, probes=["instruction"]).gaps
    assert gap[:5] == ("instruction", 15, 3, 0.0, 1.0)
    assert (gap.low, gap.high) == (0.0, 3.0)
    assert gap.raised == pytest.approx(1 / 3)
    (gap,) = probe(obeys, probes=["instruction"], pairs=1).gaps
    assert (gap.pairs, gap.gap, math.isnan(gap.low), math.isnan(gap.high)) == (1, 2.0, True, True)
    (gap,) = probe(
        lambda prompt: "none" if "bread" in passage_of(prompt) else 1, probes=["instruction"]
    ).gaps
    assert (gap.pairs, gap.left_out, gap.gap) == (12, 3, 0.0)
    (gap,) = probe(lambda prompt: "none", probes=["query words"], seed=1, pairs=3).gaps
    assert (gap.pairs, gap.left_out, math.isnan(gap.gap)) == (0, 3, True)


def test_rules_change_the_passage_alone_and_every_grade_0_is_drawn_once_of_each_query_in_turn() -> (
    None
):
    probes = probe_collection(collection(), JUDGE_PROBES, pairs=3, seed=5)
    assert probes.docs["source"].to_list() == ["original", *JUDGE_PROBES] * 3
    assert probes.docs["given_id"].str.slice(0, 2).unique(maintain_order=True).to_list() == [
        "q1",
        "q2",
        "q3",
    ]
    texts = {row["id"]: row["text"] for row in probes.docs.iter_rows(named=True)}
    original, words = texts["1/original"], QUERIES["q2"].split()
    with_words = texts["1/query words"].split()
    for word in words:
        with_words.remove(word)
    assert with_words == original.split()
    padding = texts["1/padding"].removeprefix(f"{original} ")
    assert len(original.split()) <= len(padding.split()) <= 2 * len(original.split())
    assert "river" not in padding
    assert texts["1/instruction"] == f"{original} {INSTRUCTION}"
    assert probes == probe_collection(collection(), JUDGE_PROBES, pairs=3, seed=5)
    assert probes != probe_collection(collection(), JUDGE_PROBES, pairs=3, seed=6)
    few = probe_collection(collection(), ["instruction"], pairs=7)
    counts = few.qrels["query_id"].value_counts(sort=True)["count"].to_list()
    assert counts == [6, 4, 4], "originals and twins of 3, 2 and 2 pairs"
    every = probe_collection(collection(), [], pairs=99)
    ids = every.docs["given_id"].to_list()
    assert sorted(ids) == sorted(set(ids))
    assert len(ids) == 15
    assert not any(name.endswith("-0") for name in ids), "what is relevant is not probed"


def test_repeats_and_prompt_are_those_of_the_grading(tmp_path: Path) -> None:
    llm = Scripted(lambda prompt, times: str(np.clip(times, 0, 3)))
    grading = Grading(prompt="basic", repeats=3)
    result = probe_judge(
        collection(), llm, grading, probes=["instruction"], pairs=2, journal=Journal(tmp_path / "j")
    )
    assert (len(llm.prompts), result.grades.spec["repeats"], result.judge) == (12, 3, "basic-tiny")
    assert result.pairs["grade"].to_list() == [2, 2], "the median of 1, 2 and 3"


def test_doses_of_length_by_hand(probe: Probe) -> None:
    """A judge that grades 12, 24 and 48 words 1, 2 and 3: it gains 1 for each doubling."""

    def counts_doublings(prompt: str) -> int:
        return min(round(math.log2(len(passage_of(prompt).split()) / 12)) + 1, 3)

    doses = probe(counts_doublings).doses
    assert doses is not None
    assert [dose.dose for dose in doses.grades] == [1, 2, 4]
    assert [dose.grade for dose in doses.grades] == [1.0, 2.0, 3.0]
    assert (doses.pairs, doses.queries, doses.left_out, doses.course) == (15, 3, 0, "rising")
    assert doses.slope == pytest.approx(1.0, abs=0.1)
    assert doses.low <= doses.slope <= doses.high
    assert probe(counts_doublings, probes=["padding", "instruction"]).doses is None


def test_smaller_dose_begins_the_larger_one() -> None:
    probed = probe_collection(collection(), JUDGE_PROBES, pairs=4)
    texts = {row["id"]: row["text"] for row in probed.docs.iter_rows(named=True)}
    for number in range(4):
        assert texts[f"{number}/padding ×4"].startswith(texts[f"{number}/padding"])
        sizes = [len(texts[f"{number}/{name}"].split()) for name in DOSES]
        assert sizes[0] * 2 <= sizes[1] < sizes[0] * 4 <= sizes[2]


@pytest.mark.parametrize(
    ("grades", "course"),
    [
        ((0.0, 0.5, 1.0), "rising"),
        ((1.0, 0.5, 0.5), "falling"),
        ((1.0, 1.0, 1.0), "constant"),
        ((0.5, 1.0, 0.5), "mixed"),
    ],
)
def test_course_of_doses(grades: tuple[float, ...], course: str) -> None:
    levels = tuple(
        DoseGrade(dose=2**step, length=2.0**step, grade=grade, low=grade, high=grade)
        for step, grade in enumerate(grades)
    )
    doses = LengthDoses(
        judge="judge",
        grades=levels,
        slope=0.0,
        low=0.0,
        high=0.0,
        p=1.0,
        pairs=9,
        queries=3,
        left_out=0,
    )
    assert doses.course == course


def test_dose_without_a_grade_leaves_the_pair_out(probe: Probe) -> None:
    def fails_when_long(prompt: str) -> int | str:
        is_long = len(passage_of(prompt).split()) > 40
        return "none" if is_long and query_of(prompt) == "old clocks" else 1

    doses = probe(fails_when_long).doses
    assert doses is not None
    assert (doses.pairs, doses.left_out, doses.course, doses.is_shown) == (
        10,
        5,
        "constant",
        False,
    )
