"""Compare answers whose contexts differ in one thing: the version, the label or the position."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
import polars as pl

from ranktilt.auditing.options import check_resamples
from ranktilt.citing.experiment.comparisons import label_table, paired_citations, version_table
from ranktilt.citing.experiment.paired import paired_share
from ranktilt.citing.experiment.result import (
    ContextEffect,
    ContextExperiment,
    LabelsOfAnswers,
    PositionRate,
    Question,
)
from ranktilt.citing.making.notes import require_citations, session_notes
from ranktilt.citing.making.session import AnswerSession
from ranktilt.citing.making.twins import Pair
from ranktilt.errors import UserError
from ranktilt.measures.margin import DEFAULT_MARGIN
from ranktilt.statistics.bootstrap import RESAMPLES, interval, resampled_means
from ranktilt.statistics.correction import correct

_VERSIONS = ("cited_a", "cited_b")
_POSITIONS = ("cited_first", "cited_second")
_FIRST, _SECOND = "first", "second"


def context_experiment(
    session: AnswerSession,
    *,
    margin: float = DEFAULT_MARGIN,
    correction: str = "holm",
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> ContextExperiment:
    """Compare answers whose contexts differ in one thing only.

    Of twins, both versions stand in one context, and again with their positions exchanged: which
    is cited, and does the position decide? Of labels, each text is shown as of either group: does
    its label decide?

    Parameters
    ----------
    session : AnswerSession
        Answers of `make_answers` with ``has_twins``, or with true and swapped labels.
    margin : float, optional
        Points around 50 % that count as level.
    correction : {"holm", "bonferroni"}, optional
        How p-values are corrected: those of version and label together, then all others.
    resamples, seed : int, optional
        Bootstrap resamples, and where they start.

    Returns
    -------
    ContextExperiment
        Of comparisons in which one of two is cited, the share of each, with a verdict.

    Raises
    ------
    UserError
        If the answers vary neither versions nor labels, cite nothing, or no query has answers to
        compare.
    """
    check_resamples(resamples)
    if not margin >= 0:
        raise UserError(f"expected a margin of at least 0, got {margin}")
    making, pair = session.making, session.pair
    if not making.is_experiment or pair is None:
        raise UserError(
            "these answers vary nothing: make them with both versions of each document "
            "(has_twins), or with true and swapped labels (shown_labels)"
        )
    require_citations(session)
    estimator = _Estimator(resamples=resamples, seed=seed)
    effects = [
        *_version_effects(session, pair, estimator),
        *_label_effects(session, pair, estimator),
    ]
    if not effects:
        raise UserError(
            f"nothing to compare: no query has its {_answers_needed(session)}; run the command "
            "again to ask only for those that are missing"
        )
    primary = [effect for effect in effects if effect.is_primary]
    others = [effect for effect in effects if not effect.is_primary]
    positions = _position_rates(session.documents, resamples=resamples, seed=seed)
    effects = [*_corrected(primary, correction), *_corrected(others, correction)]
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
        notes=tuple(session_notes(session)),
        spec={**session.spec, "resamples": resamples, "seed": seed},
    )


def _answers_needed(session: AnswerSession) -> str:
    if session.making.has_twins:
        return "answers in both orders"
    return "answers with the true and the swapped labels"


@dataclass(frozen=True, kw_only=True)
class _Estimator:
    """How shares get their intervals."""

    resamples: int
    seed: int

    def effect(
        self,
        table: pl.DataFrame,
        columns: Sequence[str],
        question: Question,
        sides: Pair,
        *,
        labels: LabelsOfAnswers,
        is_primary: bool = False,
    ) -> ContextEffect:
        """Return the effect of a question on the comparisons of a table."""
        citations = paired_citations(table, columns)
        share = paired_share(citations, resamples=self.resamples, seed=self.seed)
        return ContextEffect(
            question=question,
            labels=labels,
            is_primary=is_primary,
            a=sides[0],
            b=sides[1],
            p_corrected=np.nan,
            family_size=1,
            **asdict(share),
        )


def _version_effects(
    session: AnswerSession, pair: Pair, estimator: _Estimator
) -> Iterator[ContextEffect]:
    """Yield who is cited of two versions, with each label, and how much position decides."""
    if not session.making.has_twins:
        return
    table = version_table(session.documents, pair)
    if not table.height:
        return
    main = _main_labels(session)
    parts: dict[LabelsOfAnswers, pl.DataFrame] = {}
    if session.making.compares_labels:
        parts["both"] = table.filter(pl.col("shown_label") != "none")
    for label in session.making.shown_labels:
        parts[label] = table.filter(pl.col("shown_label") == label)
    for labels, part in sorted(parts.items(), key=lambda labelled: labelled[0] != main):
        if part.height:
            yield estimator.effect(
                part, _VERSIONS, "version", pair, labels=labels, is_primary=labels == main
            )
    sides = (_FIRST, _SECOND)
    yield estimator.effect(table, _POSITIONS, "position", sides, labels="all")


def _main_labels(session: AnswerSession) -> LabelsOfAnswers:
    """Return the labels of the answers that say which text is preferred, apart from its label."""
    shown_labels = session.making.shown_labels
    if "none" in shown_labels:
        return "none"
    return "both" if session.making.compares_labels else shown_labels[0]


def _label_effects(
    session: AnswerSession, pair: Pair, estimator: _Estimator
) -> Iterator[ContextEffect]:
    """Yield whether the same text is cited more often with one label than with the other."""
    if not session.making.compares_labels:
        return
    table = label_table(session.documents, pair)
    if table.height:
        yield estimator.effect(table, _VERSIONS, "label", pair, labels="both", is_primary=True)


def _corrected(family: Sequence[ContextEffect], correction: str) -> list[ContextEffect]:
    """Correct the p-values of effects that are tested together."""
    ps = correct([effect.p for effect in family], correction)
    tests = max(int((~np.isnan(ps)).sum()), 1)
    return [
        replace(effect, p_corrected=p, family_size=tests)
        for effect, p in zip(family, ps.tolist(), strict=True)
    ]


def _position_rates(
    documents: pl.DataFrame, *, resamples: int, seed: int
) -> Iterator[PositionRate]:
    """Yield how often the document at each position is cited, with an interval over queries."""
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
