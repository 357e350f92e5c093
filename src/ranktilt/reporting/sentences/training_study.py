"""A training study in words: what learning from another side changes, body by body.

A body is the language model that rankers are trained from. The study trains it on texts of each
side, such as human and rewritten ones, and compares the rankers: in effectiveness on the collection
that they learned from (``supervised``) and on others (``zero-shot``), and in whom they favour (the
tilt). A change is the difference of two rankers of one body.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ranktilt.auditing.effects import Change
from ranktilt.errors import counted, join_words
from ranktilt.measures.printing import signed
from ranktilt.reporting.sentences.findings import Finding
from ranktilt.training.study_result import TrainingStudy


def leading_finding(study: TrainingStudy) -> Finding:
    """Return the headline as the finding that leads."""
    return Finding(kind="described", sentence=f"{study_headline(study)}.")


def study_headline(study: TrainingStudy) -> str:
    """Say by how much rankers that learned from two sides differ, body by body."""
    trainings = counted(len(study.rankers), "training", "trainings")
    return "; ".join(study_sentences(study)) or f"{trainings}, but no two sides to compare"


def study_sentences(study: TrainingStudy) -> tuple[str, ...]:
    """Say for each body by how much its rankers differ that learned from two sides."""
    sentences = []
    for body, new, old in study.contrasts:
        differences = list(_differences(study, new, old))
        if differences:
            # Names of rankers are those of their body and side.
            sides = " minus ".join(name.removeprefix(f"{body} ") for name in (new, old))
            sentences.append(f"{body}, {sides}: {join_words(differences)}")
    return tuple(sentences)


def _differences(study: TrainingStudy, new: str, old: str) -> Iterator[str]:
    """Yield by how much one ranker differs from another of the same body."""
    for evaluation in study.of_kind("supervised"):
        change = evaluation.difference(new, old, study.primary)
        if change is not None:
            points = f"{signed(change.value)} points of {study.primary}"
            yield f"{points} on {evaluation.name}{_significance(change)}"
    zero_shot_changes = [
        evaluation.difference(new, old, study.primary) for evaluation in study.of_kind("zero-shot")
    ]
    if zero_shot_changes:
        significant = [
            change for change in zero_shot_changes if change is not None and change.is_shown
        ]
        better_count = sum(change.value > 0 for change in significant)
        worse_count = len(significant) - better_count
        collections = counted(len(zero_shot_changes), "other collection", "other collections")
        yield f"significantly better on {better_count} and worse on {worse_count} of {collections}"
    tilt_changes = study.moved(new)
    if len(tilt_changes) == 1:
        change = tilt_changes[0]
        yield f"Relative Δ {signed(change.value)} points{_significance(change)}"
    elif tilt_changes:
        values = [change.value for change in tilt_changes]
        low, high = signed(min(values)), signed(max(values))
        yield f"Relative Δ {low} to {high} points over {len(tilt_changes)} comparisons"


def _significance(change: Change) -> str:
    """Say that a change is not significant; empty where it is."""
    return "" if change.is_shown else ", not significant"


def study_meaning(study: TrainingStudy) -> str:
    """Say what learning from another side means: the first body with an effect that is shown."""
    for body, new, old in study.contrasts:
        effects = list(_shown_effects(study, new, old))
        if effects:
            subject = f"{body} {new.removeprefix(f'{body} ')}, rather than on {study.reference},"
            return f"{subject} {join_words(effects)}, by more than chance explains."
    if study.contrasts:
        return (
            "What rankers learn from is not shown to change them, but a small change is possible."
        )
    return "Nothing was trained on two sides, so there is nothing to compare."


def _shown_effects(study: TrainingStudy, new: str, old: str) -> Iterator[str]:
    """Yield what is shown to change from an old to a new ranker: effectiveness, and the tilt.

    There may be several collections, and trainings with several seeds: one shown change is enough.
    """
    for evaluation in study.of_kind("supervised"):
        change = evaluation.difference(new, old, study.primary)
        if change is not None and change.is_shown:
            yield f"is {'more' if change.value > 0 else 'less'} effective"
            break
    for change in study.moved(new):
        if change.is_shown:
            yield f"moves toward {change.a if change.value > 0 else change.b}"
            break


def derived_words(study: TrainingStudy) -> dict[str, Any]:
    """Return the headline and the sentences, which the saved file holds besides the fields."""
    return {"headline": study_headline(study), "sentences": study_sentences(study)}
