"""Correct a saved audit for label errors: one J scales all of its answers alike.

Rates that differ between parts of the documents, and those of more than two groups, need the
documents; for these an audit is made with the rates.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ranktilt.auditing.contributions import Contributions
from ranktilt.auditing.effects import Effect, ObservedAnswer
from ranktilt.auditing.groups import Groups
from ranktilt.auditing.label_errors.checks import is_correctable
from ranktilt.auditing.label_errors.correct import EVEN, LabelScale, widened_effect
from ranktilt.auditing.label_errors.model import OPTION, LabelModel, label_model
from ranktilt.auditing.label_errors.notes import label_notes
from ranktilt.auditing.result import Audit, QueryAnswers
from ranktilt.auditing.significance import corrected
from ranktilt.data.labels.label_errors import LabelErrors
from ranktilt.data.notes.groups import DocumentsUnlabelled
from ranktilt.errors import UserError
from ranktilt.measures.base import Estimand, Measure
from ranktilt.measures.ndsr import PageShare
from ranktilt.measures.ranking import Floats

_AGAIN = f"audit again with {OPTION}"


def corrected_audit(audit: Audit, label_errors: str | LabelErrors | None) -> Audit:
    """Return an audit whose answers are corrected for label errors; itself where none are named.

    Answers that cannot be corrected are left out.

    Raises
    ------
    UserError
        If the primary question cannot be corrected, groups are twins, or the rates need documents.
    """
    if label_errors is None:
        return audit
    errors = label_errors
    if isinstance(errors, str):
        errors = LabelErrors.from_text(errors)
    _check(audit, errors)
    groups = Groups(by=audit.spec["by"], names=audit.groups[1:], code=np.empty(0, dtype=np.int64))
    model = label_model(errors, None, groups)
    primary = audit.primary
    effects = [
        _corrected_effect(effect, model)
        for effect in audit.card
        if is_correctable(effect.estimand) and effect.estimand.sided
    ]
    rows = corrected(effects, str(audit.spec["correction"]), primary)
    answers = [effect for effect in rows if effect.measure == repr(primary)]
    return replace(
        audit,
        spec={**audit.spec, "label_errors": errors.text},
        tilts=(),
        card=rows,
        query_answers=tuple(_corrected_answers(audit, model)),
        contributions=_corrected_contributions(audit, model),
        notes=(*audit.notes, *label_notes(errors, audit.margin, model, answers)),
    )


def _check(audit: Audit, errors: LabelErrors) -> None:
    """Refuse an audit that these rates cannot correct."""
    if "label_errors" in audit.spec:
        raise UserError(
            f"this audit is corrected for label errors already ({audit.spec['label_errors']}); "
            f"omit {OPTION}"
        )
    if errors.by:
        raise UserError(f"rates by {errors.by} need the documents; {_AGAIN} {errors.text}")
    if len(audit.groups) != 3:
        raise UserError(f"rates of {len(audit.groups) - 1} groups need the documents; {_AGAIN}")
    primary = audit.primary
    if primary is None or not is_correctable(primary):
        name = f"Relative Δ of {primary!r}" if isinstance(primary, Measure) else repr(primary)
        raise UserError(
            f"{name} cannot be corrected for label errors, because it is no sum of labels; audit "
            f"who has the first ranks instead: -m Share@10 {OPTION} {errors.text}"
        )
    if any(effect.twins for effect in audit.card if effect.measure == repr(primary)):
        a, b = audit.groups[1:]
        raise UserError(
            f"the documents of {a} and {b} are twins: each is known to be a version of another, so "
            f"no label can be wrong; omit {OPTION}"
        )
    is_page = isinstance(primary, PageShare)
    if is_page and any(isinstance(note, DocumentsUnlabelled) for note in audit.notes):
        raise UserError(f"{primary!r} with unlabelled documents needs the documents; {_AGAIN}")


def _values(model: LabelModel, a: str) -> Floats:
    """Return what a document labelled `a` counts, and one that is not: 1 and −1, corrected."""
    first = model.groups.names.index(a)
    weights = np.full(2, -1.0)
    weights[first] = 1.0
    values = model.cell_values(weights)
    return np.array([values[first], values[1 - first]])


def _scale(values: Floats, estimand: Estimand) -> LabelScale:
    value_a, value_b = values.tolist()
    # A page is held by one group or the other: its parts sum to 1, those of a difference to 0.
    total = 1.0 if isinstance(estimand, PageShare) else 0.0
    return LabelScale(stretch=(value_a - value_b) / 2, move=(value_a + value_b) / 2 * total)


def _corrected_effect(effect: Effect, model: LabelModel) -> Effect:
    values = _values(model, effect.a)
    scaled = replace(
        _scale(values, effect.estimand).effect(effect),
        details={**effect.details, **_shares(effect, *values.tolist())},
    )
    distance = (effect.value - effect.neutral) / 2
    weights = np.array([1.0, -1.0])
    if model.groups.names.index(effect.a):
        weights = -weights
    parts = model.error_parts(weights, weights * distance)
    observed = ObservedAnswer(
        value=effect.value, low=effect.low, high=effect.high, neutral=effect.neutral
    )
    return widened_effect(scaled, observed, parts, model)


def _shares(effect: Effect, value_a: float, value_b: float) -> dict[str, float]:
    """Return corrected shares of the lists, or of the collection, where the answer tells them."""
    if "shares" in effect.details:
        difference = effect.details["shares"]
        share_a, share_b = (1 + difference) / 2, (1 - difference) / 2
        return {"shares": value_a * share_a + value_b * share_b}
    if not set(EVEN) <= set(effect.details):
        return {}
    share_a, share_b = (effect.details[name] for name in EVEN)
    difference = value_a * share_a + value_b * share_b
    return {EVEN[0]: (1 + difference) / 2, EVEN[1]: (1 - difference) / 2}


def _corrected_answers(audit: Audit, model: LabelModel) -> Iterator[QueryAnswers]:
    for answer in audit.query_answers:
        if not is_correctable(answer.estimand) or not answer.estimand.sided:
            continue
        scale = _scale(_values(model, answer.a), answer.estimand)
        numerator = scale.stretch * answer.numerator + scale.move * answer.denominator
        yield replace(answer, numerator=numerator)


def _corrected_contributions(audit: Audit, model: LabelModel) -> Contributions | None:
    """Scale what documents add beyond a mean label, which no change of the mean moves."""
    if audit.contributions is None:
        return None
    answers = {}
    for key, clusters in audit.contributions.answers.items():
        _run, notation, a, _b = key
        if any(repr(answer.estimand) == notation for answer in audit.query_answers):
            value_a, value_b = _values(model, a)
            scaled = (value_a - value_b) / 2 * clusters.total
            answers[key] = clusters._replace(total=scaled)
    return replace(audit.contributions, answers=answers)
