"""Compare answers whose contexts differ in one thing: the version, the label or the position.

A language model answers queries from *contexts*, the documents that it is shown, and cites some.
*Twins* are two versions of a document, by group a and group b. A *label* is the group that a
document is said to come from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from ranktilt.auditing.effects import FEW_QUERIES
from ranktilt.auditing.options import check_resamples
from ranktilt.citing.experiment.effects import (
    Estimator,
    corrected_effects,
    label_effects,
    version_effects,
)
from ranktilt.citing.experiment.result import ContextEffect, ContextExperiment, PositionRate
from ranktilt.citing.making.notes import require_citations, session_notes
from ranktilt.citing.making.session import AnswerSession
from ranktilt.data.notes.base import Note
from ranktilt.data.notes.citations import FewQuestions
from ranktilt.errors import UserError
from ranktilt.field_checks import require_seed
from ranktilt.measures.margin import DEFAULT_MARGIN, check_margin
from ranktilt.statistics.bootstrap import RESAMPLES, interval, resampled_means


def context_experiment(
    session: AnswerSession,
    *,
    margin: float = DEFAULT_MARGIN,
    correction: str = "holm",
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> ContextExperiment:
    """Compare answers whose contexts differ in one thing only.

    With twins, both versions of a document are shown in one context, and again with their positions
    exchanged. This shows which version is cited, and whether the position decides. With labels,
    each text is shown as written by group a, and as written by group b. This shows whether the
    label decides.

    Parameters
    ----------
    session : AnswerSession
        Answers of `make_answers` with ``has_twins``, or with true and swapped labels.
    margin : float, optional
        Largest distance from 50 %, in points, that counts as level.
    correction : {"holm", "bonferroni"}, optional
        Correction of p: over the primary effects, of version and label, and over all others.
    resamples, seed : int, optional
        Bootstrap resamples; random seed.

    Returns
    -------
    ContextExperiment
        How often each of two is cited in comparisons in which only one is, with a verdict.

    Raises
    ------
    UserError
        If neither versions nor labels differ between answers, no answer cites anything, or no query
        has answers to compare.
    """
    check_resamples(resamples)
    require_seed(seed)
    check_margin(margin)
    making, pair = session.making, session.pair
    if not making.is_experiment or pair is None:
        raise UserError(
            "these answers vary nothing: make them with both versions of each document "
            "(has_twins), or with true and swapped labels (shown_labels)"
        )
    require_citations(session)
    estimator = Estimator(resamples=resamples, seed=seed)
    effects = [
        *version_effects(session, pair, estimator),
        *label_effects(session, pair, estimator),
    ]
    if not effects:
        raise UserError(
            f"nothing to compare: no query has its {_answers_needed(session)}; run the command "
            "again to ask only for those that are missing"
        )
    primary = [effect for effect in effects if effect.is_primary]
    others = [effect for effect in effects if not effect.is_primary]
    positions = _position_rates(session.documents, resamples=resamples, seed=seed)
    effects = [
        *corrected_effects(primary, correction),
        *corrected_effects(others, correction),
    ]
    return ContextExperiment(
        model=session.model,
        effects=tuple(effects),
        positions=tuple(positions),
        counts=session.counts,
        groups=pair,
        shown_labels=making.shown_labels,
        has_twins=making.has_twins,
        margin=margin,
        correction=correction,
        notes=tuple(_notes(session, effects)),
        spec={**session.spec, "resamples": resamples, "seed": seed},
    )


def _notes(session: AnswerSession, effects: Sequence[ContextEffect]) -> Iterator[Note]:
    """Yield the notes on how answers were made, and a note if there are few queries."""
    queries = max(effect.queries for effect in effects)
    if queries < FEW_QUERIES:
        yield FewQuestions(queries=queries)
    yield from session_notes(session)


def _answers_needed(session: AnswerSession) -> str:
    """Name the answers to a query that a comparison needs, for an error message."""
    if session.making.has_twins:
        return "answers in both orders"
    return "answers with the true and the swapped labels"


def _position_rates(
    documents: pl.DataFrame, *, resamples: int, seed: int
) -> Iterator[PositionRate]:
    """Yield how often the document at each position of the prompt is cited.

    The interval is over `resamples` of the queries, drawn with `seed`.
    """
    is_cited = pl.col("citation_rank").is_not_null().cast(pl.Float64)
    by_query = documents.group_by("position", "query").agg(
        cited=is_cited.sum(), answers=pl.len().cast(pl.Float64)
    )
    for (position,), part in by_query.sort("position", "query").group_by(
        "position", maintain_order=True
    ):
        cited, answers = part["cited"].to_numpy(), part["answers"].to_numpy()
        means = resampled_means([cited, answers], resamples=resamples, seed=seed)
        ends = interval(means[0] / means[1])
        yield PositionRate(
            position=int(str(position)),
            value=float(cited.sum() / answers.sum()),
            low=ends.low,
            high=ends.high,
            answers=int(answers.sum()),
        )
