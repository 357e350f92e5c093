"""Audit whom a model's answers cite, of the documents that it was shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ranktilt.citing.cite import cite
from ranktilt.citing.making.made import MadeAnswers
from ranktilt.citing.making.notes import making_notes, require_citations
from ranktilt.citing.result import CitationAudit
from ranktilt.measures.margin import DEFAULT_MARGIN
from ranktilt.statistics.bootstrap import RESAMPLES


def cite_made(
    made: MadeAnswers,
    *,
    pairs: Sequence[tuple[str, str]] | None = None,
    reference: str | None = None,
    cluster: str | None = None,
    margin: float = DEFAULT_MARGIN,
    correction: str = "holm",
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> CitationAudit:
    """Audit whom the answers of `make_answers` cite: retrieved, shown to the model, cited.

    Consulted is what the context showed; retrieved is the run's list. The labels are those of the
    collection. The parameters are those of `cite`.

    Raises
    ------
    UserError
        If no answer cites a document, or as `cite` does.
    """
    require_citations(made)
    audit = cite(
        made.answers,
        made.collection,
        run=None if made.making.has_twins else made.run,
        by=str(made.spec["by"]),
        pairs=pairs,
        reference=reference,
        cluster=cluster,
        margin=margin,
        correction=correction,
        resamples=resamples,
        seed=seed,
    )
    return replace(
        audit,
        notes=(*making_notes(made), *audit.notes),
        spec={**audit.spec, "answers": made.spec},
    )
