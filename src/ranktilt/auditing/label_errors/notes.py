"""Notes of an audit on labels that err.

A label says which group a document belongs to, and may be wrong. Answers *as labelled*, or
*observed*, take labels as true; they can be corrected for known rates of errors.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from ranktilt.auditing.effects import Effect
from ranktilt.auditing.label_errors.model import LabelModel
from ranktilt.auditing.label_errors.sensitivity import LabelSensitivity, label_sensitivities
from ranktilt.data.labels.label_errors import LabelErrors
from ranktilt.data.notes.base import Note
from ranktilt.data.notes.label_errors import (
    AnswerAsLabelled,
    ErrorsThatExplain,
    LabelsCorrected,
    ObservedLevel,
    RatesOfPart,
)
from ranktilt.measures.margin import Margin, half_width, margin_words

PLAUSIBLE = 0.10
"""Largest difference of error rates that is worth a note: detectors differ by no more."""


def label_notes(
    errors: LabelErrors | None,
    margin: Margin,
    model: LabelModel | None,
    effects: Sequence[Effect],
) -> Iterator[Note]:
    """Yield the notes of an audit on label errors.

    They say by which rates answers are corrected, which answers are less certain for it, and how
    unevenly labels would have to err to explain a finding away. `errors` and `model` are None if
    labels are taken as true.
    """
    if model is not None and errors is not None:
        yield LabelsCorrected(label_errors=errors.text, rates=tuple(_rates(model)))
    for effect in effects:
        yield from _observed_level(effect, margin)
    for sensitivity in label_sensitivities(effects):
        if sensitivity.one_kind <= PLAUSIBLE:
            yield _explaining(sensitivity)


def correction_notes(notes: Iterable[Note]) -> tuple[Note, ...]:
    """Return the notes of an audit that say by which rates it is corrected."""
    return tuple(note for note in notes if isinstance(note, LabelsCorrected))


def observed_notes(effects: Iterable[Effect]) -> Iterator[Note]:
    """Yield each answer by the labels as they are, where it is corrected."""
    for effect in effects:
        if effect.observed is not None:
            yield AnswerAsLabelled(
                run=effect.run,
                measure=effect.measure,
                a=effect.a,
                b=effect.b,
                value=effect.observed.value,
            )


def _rates(model: LabelModel) -> Iterator[RatesOfPart]:
    """Yield how much labels say about groups in each part of the documents."""
    for part, confusion in zip(model.parts, model.confusions, strict=True):
        yield RatesOfPart(
            part=part,
            information=confusion.information,
            information_error=confusion.information_error,
            checked=int(confusion.checked[np.isfinite(confusion.checked)].sum()),
        )


def _observed_level(effect: Effect, margin: Margin) -> Iterator[ObservedLevel]:
    """Yield a note if an answer is level by the labels as they are, but not after the correction.

    An answer is level if its whole interval is within the margin around the neutral value.
    """
    observed = effect.observed
    half = half_width(effect.estimand, margin)
    if observed is None or not half > 0 or effect.extent(margin) != "across":
        return
    reach = max(observed.high - observed.neutral, observed.neutral - observed.low)
    if not reach <= half or not effect.testable or not effect.can_be_level:
        return
    wider = max(effect.high - effect.neutral, effect.neutral - effect.low)
    # Rounded up to a tenth, so that the interval lies within the printed margin.
    points = math.ceil(10 * wider / effect.estimand.point) / 10
    yield ObservedLevel(
        run=effect.run,
        a=effect.a,
        b=effect.b,
        measure=effect.measure,
        margin=margin_words(margin),
        wider_margin=margin_words(points),
    )


def _explaining(sensitivity: LabelSensitivity) -> ErrorsThatExplain:
    """Return the note that says which errors would explain a finding away."""
    return ErrorsThatExplain(
        run=sensitivity.run,
        a=sensitivity.a,
        b=sensitivity.b,
        cutoff=sensitivity.cutoff,
        one_kind=sensitivity.one_kind,
        both_kinds=sensitivity.both_kinds,
    )
