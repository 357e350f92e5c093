"""Notes for the reader of an audit of citations: what was left out, and what casts doubt on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ranktilt.auditing.effects import FEW_QUERIES
from ranktilt.auditing.label_errors.model import LabelModel
from ranktilt.auditing.label_errors.notes import label_notes
from ranktilt.citing.effect import CitationEffect
from ranktilt.citing.result import CitationAudit
from ranktilt.data.labels.label_errors import LabelErrors
from ranktilt.data.notes.base import Note
from ranktilt.data.notes.citations import (
    AnswersReadAs,
    AnswersWithoutCitations,
    AnswersWithoutConsulted,
    CitedWithoutConsulting,
    FewerThanErrors,
    FewQuestions,
    NoPool,
    QueriesWithoutList,
    RanksAsLabelled,
    UnitFound,
    UnlabelledCitations,
)


def citation_notes(audit: CitationAudit) -> Iterator[Note]:
    """Yield the notes of an audit; those that cast doubt on its verdict come first.

    Notes on the correction for wrong labels come from `label_error_notes`.
    """
    counts = audit.counts
    if np.isnan(audit.primary[0].neutral):
        yield NoPool()
    if counts.unlabelled:
        yield UnlabelledCitations(citations=counts.unlabelled, of_all=counts.citations)
    if counts.without_consulted:
        yield AnswersWithoutConsulted(answers=counts.without_consulted, of_all=counts.answers)
    if counts.not_consulted:
        yield CitedWithoutConsulting(citations=counts.not_consulted, of_all=counts.citations)
    if counts.without_list:
        yield QueriesWithoutList(queries=counts.without_list, of_all=counts.queries)
    if counts.queries < FEW_QUERIES:
        yield FewQuestions(queries=counts.queries)
    if counts.without_citations:
        yield AnswersWithoutCitations(answers=counts.without_citations, of_all=counts.answers)
    unit = audit.unit
    yield UnitFound(
        unit=unit.name,
        units=unit.units,
        mixed=unit.mixed,
        of_several=unit.of_several,
        is_chosen=unit.is_chosen,
        of_documents=audit.of_documents,
    )
    layout, is_exact = audit.spec.get("read_as"), bool(audit.spec.get("exact_urls"))
    if layout:
        yield AnswersReadAs(layout=layout, exact_urls=is_exact)


def label_error_notes(
    audit: CitationAudit, errors: LabelErrors | None, model: LabelModel | None
) -> Iterator[Note]:
    """Yield notes on the correction for wrong labels.

    `errors` are the error rates that the user states, and `model` the same by group; both are None
    if labels are taken as they are.
    """
    # `label_notes` also notes effects of rankers, of which an audit of citations has none.
    yield from label_notes(errors, audit.margin, model, ())
    for group in _groups_below_errors(audit.effects):
        yield FewerThanErrors(group=group)
    if model is not None and audit.rank_rates:
        yield RanksAsLabelled()


def _groups_below_errors(effects: Sequence[CitationEffect]) -> list[str]:
    """Return the groups with no more citations than wrong labels alone would give them.

    Their corrected value would be negative, and is set to 0.
    """
    groups = list[str]()
    for effect in effects:
        if effect.observed is None:
            continue
        if effect.value_a == 0:
            groups.append(effect.a)
        if effect.value_b == 0:
            groups.append(effect.b)
    return list(dict.fromkeys(groups))
