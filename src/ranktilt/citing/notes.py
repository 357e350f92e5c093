"""What a reader of an audit of citations should know."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ranktilt.auditing.effects import FEW_QUERIES
from ranktilt.citing.result import CitationAudit
from ranktilt.data.notes.base import Note
from ranktilt.data.notes.citations import (
    AnswersReadAs,
    AnswersWithoutCitations,
    AnswersWithoutConsulted,
    CitedWithoutConsulting,
    FewQuestions,
    NoPool,
    QueriesWithoutList,
    UnitFound,
    UnlabelledCitations,
)


def citation_notes(audit: CitationAudit) -> Iterator[Note]:
    """Yield the notes of an audit, what endangers its verdict first."""
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
