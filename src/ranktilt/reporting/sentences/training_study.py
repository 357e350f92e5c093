"""A training study in words: what learning from another side changes, body by body."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ranktilt.auditing.effects import Change
from ranktilt.errors import counted, join_words
from ranktilt.measures.printing import signed
from ranktilt.reporting.sentences.findings import Finding
from ranktilt.training.study_result import TrainingStudy


def leading_finding(study: TrainingStudy) -> Finding:
    """Return what leads."""
    return Finding(kind="described", sentence=f"{study_headline(study)}.")


def study_headline(study: TrainingStudy) -> str:
    """Say what learning from another side changes, body by body."""
    trainings = counted(len(study.rankers), "training", "trainings")
    return "; ".join(study_sentences(study)) or f"{trainings}, but no two sides to compare"


def study_sentences(study: TrainingStudy) -> tuple[str, ...]:
    """Say what each body's two sides differ by, in short."""
    sentences = []
    for body, new, old in study.contrasts:
        differences = list(_differences(study, new, old))
        if differences:
            learned = " minus ".join(name.removeprefix(f"{body} ") for name in (new, old))
            sentences.append(f"{body}, {learned}: {join_words(differences)}")
    return tuple(sentences)


def _differences(study: TrainingStudy, new: str, old: str) -> Iterator[str]:
    """Say by how much one ranker differs from another of the same body."""
    for evaluation in study.of_kind("supervised"):
        change = evaluation.difference(new, old, study.primary)
        if change is not None:
            points = f"{signed(change.value)} points of {study.primary}"
            yield f"{points} on {evaluation.name}{_significance(change)}"
    others = [
        evaluation.difference(new, old, study.primary) for evaluation in study.of_kind("zero-shot")
    ]
    significant = [change for change in others if change is not None and change.is_shown]
    if others:
        better = sum(change.value > 0 for change in significant)
        collections = counted(len(others), "other collection", "other collections")
        worse = len(significant) - better
        yield f"significantly better on {better} and worse on {worse} of {collections}"
    moved = study.moved(new)
    if len(moved) == 1:
        yield f"Relative Δ {signed(moved[0].value)} points{_significance(moved[0])}"
    elif moved:
        values = [change.value for change in moved]
        low, high = signed(min(values)), signed(max(values))
        yield f"Relative Δ {low} to {high} points over {len(moved)} comparisons"


def _significance(change: Change) -> str:
    """Say that a change is not significant, where it is not."""
    return "" if change.is_shown else ", not significant"


def study_meaning(study: TrainingStudy) -> str:
    """Say what learning from another side changes."""
    for body, new, _ in study.contrasts:
        effects = list(_meant_effects(study, body, new))
        if effects:
            front = f"{body} {new.removeprefix(f'{body} ')}, rather than on {study.reference},"
            return f"{front} {join_words(effects)}, by more than chance explains."
    if study.contrasts:
        return (
            "What rankers learn from is not shown to change them, but a small change is possible."
        )
    return "Nothing was trained on two sides, so there is nothing to compare."


def _meant_effects(study: TrainingStudy, body: str, new: str) -> Iterator[str]:
    """Say what training changes: effectiveness, and the tilt."""
    old = next(old for name, trained, old in study.contrasts if (name, trained) == (body, new))
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
