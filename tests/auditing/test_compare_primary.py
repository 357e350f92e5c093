"""Which question a comparison answers first: the primary one of its audits."""

from __future__ import annotations

from typing import Any

import numpy as np

from ranktilt import Audit, compare
from ranktilt.auditing.audit import audit
from ranktilt.auditing.comparison.result import Comparison
from ranktilt.reporting.headline import headline
from ranktilt.reporting.sentences.comparison.meaning import comparison_meaning
from ranktilt.reporting.views import view
from tests.toy import collection_of, run_of

QUERIES = 40
QUESTIONS = ("Share@1", "Share@4")


def people_audit(name: str, first_wins: int, *, primary: str, **options: Any) -> Audit:
    """Audit lists of two women and two men; in so many a woman is first.

    All four are on the page, so Share@4 is exactly 0 however they are ordered.
    """
    docs = [
        {"id": f"{q}-{n}", "text": "", "source": "s", "origin": f"{q}-{n}", "gender": letter}
        for q in range(QUERIES)
        for n, letter in enumerate("ffmm")
    ]
    people = collection_of(docs, {f"q{q}": "who" for q in range(QUERIES)}, {})
    orders = [(0, 2, 1, 3) if q < first_wins else (2, 0, 3, 1) for q in range(QUERIES)]
    scores = {
        f"q{q}": {f"{q}-{n}": -float(rank) for rank, n in enumerate(order)}
        for q, order in enumerate(orders)
    }
    return audit(
        people,
        run_of(people, scores, ranker=name),
        options.get("questions", QUESTIONS),
        by="gender",
        pairs=[("f", "m")],
        primary=primary,
        resamples=300,
    )


def compared(new_primary: str, old_primary: str, **options: Any) -> Comparison:
    return compare(
        people_audit("new", 36, primary=new_primary, **options),
        people_audit("old", 4, primary=old_primary),
        resamples=300,
    )


def test_headline_is_primary_question() -> None:
    comparison = compared("Share@4", "Share@4")
    assert comparison.spec["primary"] == "Share@4"
    first, second = comparison.verdicts()
    assert (first.primary, first.is_primary, first.kind) == ("Share@4", True, "inconclusive")
    assert (second.primary, second.is_primary, second.kind) == ("Share@1", False, "differs")
    assert "no difference from old in Share@4 is shown" in headline(comparison)
    assert comparison_meaning(comparison).startswith(
        "On the primary question no change in what is favoured is shown; on others it is."
    )
    assert not [note for note in comparison.notes if "primary" in note.sentence]


def test_figure_draws_the_primary_question_and_names_both_groups() -> None:
    comparison = compared("Share@1", "Share@1")
    assert "new leans further toward f than old in Share@1" in headline(comparison)
    (chart,) = view(comparison).first_figure.blocks
    (scale,) = chart.scales
    assert (scale.left, scale.right) == ("◀ toward m", "toward f ▶")
    assert chart.title == "How new differs from old in Share@1"
    assert [row.label for row in chart.rows] == ["new"]


def test_different_primary_questions_are_said() -> None:
    comparison = compared("Share@1", "Share@4")
    assert comparison.spec["primary"] == "Share@1"
    sentences = [sentence.text for sentence in view(comparison).sentences]
    assert (
        "the audits' primary questions differ: Share@1 (new) and Share@4 (old); the headline is "
        "about Share@1. Audit both with the same --primary to compare what each of them says first"
    ) in sentences


def test_missing_primary_question_is_said_and_the_old_one_leads() -> None:
    comparison = compared("Share@2", "Share@1", questions=("Share@2", "Share@1"))
    assert comparison.spec["primary"] == "Share@1"
    (note,) = [note for note in comparison.notes if "primary" in note.sentence]
    assert note.sentence.startswith("warning: the audits' primary questions differ: Share@2 (new)")


def test_no_common_primary_question_leads_with_a_common_one() -> None:
    new = people_audit("new", 36, primary="Share@2", questions=("Share@2", "Share@1"))
    old = people_audit("old", 4, primary="Share@3", questions=("Share@3", "Share@1"))
    comparison = compare(new, old, resamples=300)
    assert comparison.spec["primary"] == "Share@1"
    (note,) = [note for note in comparison.notes if "primary" in note.sentence]
    assert (
        "the primary questions of the audits, Share@2 and Share@3, are not in both of them"
        in note.sentence
    )
    assert np.isfinite(comparison.verdicts()[0].changes[0].value)
