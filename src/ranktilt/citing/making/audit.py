"""Audit whom a language model's answers cite, among the documents that it was shown.

A *session* holds the answers of one call of `make_answers`, and what became of the requests.
"""

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

    Documents that the model was shown count as consulted, and those of the run as retrieved. The
    groups are those of the column that `make_answers` was given.

    Parameters
    ----------
    session : AnswerSession
        Answers of `make_answers`.
    pairs : sequence of (str, str), optional
        Groups to compare, such as ``[("ai", "human")]``.
    reference : str, optional
        Group to compare each other group with, in place of `pairs`; ``human`` by default.
    cluster : str, optional
        Unit at which labels are constant: ``page`` or a column of the documents.
    margin : float, optional
        Largest difference, in percent of a ratio or points of a share, that counts as level.
    correction : {"holm", "bonferroni"}, optional
        How p-values are corrected for many tests.
    resamples, seed : int, optional
        Number of exchanges of labels; random seed.
    label_errors : str or LabelErrors, optional
        How often labels of two groups are wrong, such as ``"ai:fpr=.02,fnr=.05"``.
    by_query : str, optional
        Column of the queries by whose values results are given too.

    Returns
    -------
    CitationAudit
        The audit that `cite` makes, with notes on how the answers were made.

    Raises
    ------
    UserError
        If no answer cites a document, all have one group, or a pair names no group.
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
