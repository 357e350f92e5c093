"""Correct a saved audit for label errors, without its documents.

If all documents have the same error rates, and there are two groups, each corrected answer is the
observed one divided by J and moved (`correct.LabelScale`). J is the determinant of the rates: 1 −
false positive rate − false negative rate. So the numbers in the audit's file are enough. Rates that
differ between parts of the documents, and rates of more than two groups, need the documents: audit
again for these.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ranktilt.auditing.effects import Effect, ObservedAnswer
from ranktilt.auditing.groups import Groups
from ranktilt.auditing.label_errors.checks import is_correctable
from ranktilt.auditing.label_errors.correct import LIST_SHARES, LabelScale, widened_effect
from ranktilt.auditing.label_errors.model import OPTION, LabelModel, label_model
from ranktilt.auditing.label_errors.notes import label_notes
from ranktilt.auditing.result import Audit, QueryAnswers
from ranktilt.auditing.significance import correct_p_values
from ranktilt.auditing.storage.contributions import Contributions
from ranktilt.data.labels.label_errors import LabelErrors
from ranktilt.data.notes.groups import (
    DocumentsOfSeveral,
    DocumentsOutsidePool,
    DocumentsUnlabelled,
)
from ranktilt.data.notes.runs import EntriesUnknown
from ranktilt.errors import UserError
from ranktilt.measures.base import Estimand, Measure
from ranktilt.measures.ndsr import PageShare
from ranktilt.measures.ranking import Floats

_AGAIN = f"audit again with {OPTION}"
"""End of messages about rates that need the documents."""
_WITHOUT_GROUP = (DocumentsOfSeveral, DocumentsOutsidePool, DocumentsUnlabelled, EntriesUnknown)
"""Notes on results of neither group; with them, both groups' shares of a page may not add up to 1.
"""


def corrected_audit(audit: Audit, label_errors: str | LabelErrors | None) -> Audit:
    """Return an audit whose answers are corrected for label errors.

    Answers that cannot be corrected are left out. If `label_errors` is None, the audit is returned
    as it is.

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
    _refuse_uncorrectable_audit(audit, errors)
    groups = Groups(by=audit.spec["by"], names=audit.groups[1:], code=np.empty(0, dtype=np.int64))
    model = label_model(errors, None, groups)
    primary = audit.primary
    effects = [
        _corrected_effect(effect, model)
        for effect in audit.card
        if _needs_no_documents(audit, effect.estimand)
    ]
    rows = correct_p_values(effects, str(audit.spec["correction"]), primary)
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


def _refuse_uncorrectable_audit(audit: Audit, errors: LabelErrors) -> None:
    """Refuse an audit that these rates cannot correct."""
    if "label_errors" in audit.spec:
        raise UserError(
            f"this audit is corrected for label errors already ({audit.spec['label_errors']}); "
            f"omit {OPTION}"
        )
    if errors.by:
        raise UserError(f"rates by {errors.by} need the documents; {_AGAIN} {errors.text}")
    group_count = len(audit.groups) - 1  # the first "group" is all documents
    if group_count != 2:
        raise UserError(f"rates of {group_count} groups need the documents; {_AGAIN}")
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
    if audit.pair_counts.height:
        raise UserError(
            "some documents are twins, whose labels cannot be wrong: rates of the others need the "
            f"documents; {_AGAIN}"
        )
    if not _needs_no_documents(audit, primary):
        raise UserError(f"{primary!r} with unlabelled documents needs the documents; {_AGAIN}")


def _needs_no_documents(audit: Audit, estimand: Estimand) -> bool:
    """Return whether answers to a question can be corrected without the documents."""
    if not (is_correctable(estimand) and estimand.sided):
        return False
    has_results_without_group = any(isinstance(note, _WITHOUT_GROUP) for note in audit.notes)
    return not (isinstance(estimand, PageShare) and has_results_without_group)


def _label_values(model: LabelModel, a: str) -> Floats:
    """Return what a document labelled `a` counts on average, and one with the other label.

    A document that is truly of group `a` counts 1, and one of the other group −1.
    """
    first = model.groups.names.index(a)
    weights = np.full(2, -1.0)
    weights[first] = 1.0
    values = model.cell_values(weights)
    return np.array([values[first], values[1 - first]])


def _label_scale(values: Floats, estimand: Estimand) -> LabelScale:
    """Return how the corrected answer follows from the observed one.

    `values` are those of `_label_values`.
    """
    value_a, value_b = values.tolist()
    # Both groups' shares of the first ranks add up to 1. What other answers sum for both groups
    # adds up to 0, since it is a share of the first ranks minus a share of the list.
    total = 1.0 if isinstance(estimand, PageShare) else 0.0
    return LabelScale(stretch=(value_a - value_b) / 2, move=(value_a + value_b) / 2 * total)


def _corrected_effect(effect: Effect, model: LabelModel) -> Effect:
    """Correct one answer, and widen its interval by the error of the rates."""
    values = _label_values(model, effect.a)
    scaled = replace(
        _label_scale(values, effect.estimand).corrected_effect(effect),
        details={**effect.details, **_corrected_shares(effect, *values.tolist())},
    )
    # What each group holds more than at the neutral value, or less: half of the answer's distance.
    half_distance = (effect.value - effect.neutral) / 2
    weights = np.array([1.0, -1.0])
    if model.groups.names.index(effect.a) != 0:
        weights = -weights
    parts = model.error_parts(weights, weights * half_distance)
    observed = ObservedAnswer(
        value=effect.value, low=effect.low, high=effect.high, neutral=effect.neutral
    )
    return widened_effect(scaled, observed, parts, model)


def _corrected_shares(effect: Effect, value_a: float, value_b: float) -> dict[str, float]:
    """Return the corrected details of an effect that are shares of both groups.

    These are the difference of both shares of the collection, or each share of the lists.
    """
    if "shares" in effect.details:
        # Both shares of the collection follow from their difference, since they add up to 1.
        difference = effect.details["shares"]
        share_a, share_b = (1 + difference) / 2, (1 - difference) / 2
        return {"shares": value_a * share_a + value_b * share_b}
    if not set(LIST_SHARES) <= set(effect.details):
        return {}
    name_a, name_b = LIST_SHARES
    difference = value_a * effect.details[name_a] + value_b * effect.details[name_b]
    return {name_a: (1 + difference) / 2, name_b: (1 - difference) / 2}


def _corrected_answers(audit: Audit, model: LabelModel) -> Iterator[QueryAnswers]:
    """Correct the values per query behind each answer; others are left out."""
    for answer in audit.query_answers:
        if not _needs_no_documents(audit, answer.estimand):
            continue
        scale = _label_scale(_label_values(model, answer.a), answer.estimand)
        numerator = scale.stretch * answer.numerator + scale.move * answer.denominator
        yield replace(answer, numerator=numerator)


def _corrected_contributions(audit: Audit, model: LabelModel) -> Contributions | None:
    """Divide by J what each document's label adds beyond a mean label.

    Nothing is added to it: what moves all labels moves their mean as well.
    """
    if audit.contributions is None:
        return None
    corrected = {
        repr(answer.estimand)
        for answer in audit.query_answers
        if _needs_no_documents(audit, answer.estimand)
    }
    answers = {}
    for key, clusters in audit.contributions.answers.items():
        _run, notation, a, _b = key
        if notation in corrected:
            value_a, value_b = _label_values(model, a)
            stretch = (value_a - value_b) / 2  # 1/J
            answers[key] = clusters._replace(total=stretch * clusters.total)
    return replace(audit.contributions, answers=answers)
