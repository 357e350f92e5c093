"""Audit whom a language model's answers cite, among the documents that it was shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ranktilt.citing.cite import cite
from ranktilt.citing.making.notes import require_citations, session_notes
from ranktilt.citing.making.session import AnswerSession
from ranktilt.citing.result import CitationAudit
from ranktilt.data.labels.label_errors import LabelErrors
from ranktilt.measures.margin import DEFAULT_MARGIN
from ranktilt.statistics.bootstrap import RESAMPLES


def cite_session(
    session: AnswerSession,
    *,
    pairs: Sequence[tuple[str, str]] | None = None,
    reference: str | None = None,
    cluster: str | None = None,
    margin: float = DEFAULT_MARGIN,
    correction: str = "holm",
    resamples: int = RESAMPLES,
    seed: int = 0,
    label_errors: str | LabelErrors | None = None,
    by_query: str | None = None,
) -> CitationAudit:
    """Audit whom the answers of `make_answers` cite.

    Documents that the model was shown count as consulted, and those of the run as retrieved. Labels
    are those of the collection. All parameters but `session` are those of `cite`.

    Raises
    ------
    UserError
        If no answer cites a document, or a parameter is refused as by `cite`.
    """
    require_citations(session)
    # With twins or drawn versions, prompts also show versions that the run does not rank.
    is_ranked = not (session.making.has_twins or session.making.draws_versions)
    audit = cite(
        session.answers,
        session.collection,
        run=session.run if is_ranked else None,
        by=str(session.spec["by"]),
        pairs=pairs,
        reference=reference,
        cluster=cluster,
        margin=margin,
        correction=correction,
        resamples=resamples,
        seed=seed,
        label_errors=label_errors,
        by_query=by_query,
    )
    return replace(
        audit,
        notes=(*session_notes(session), *audit.notes),
        spec={**audit.spec, "answers": session.spec},
    )
