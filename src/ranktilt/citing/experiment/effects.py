"""The effects of an experiment with contexts: of version, position and label."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
import polars as pl

from ranktilt.citing.experiment.comparisons import label_table, paired_citations, version_table
from ranktilt.citing.experiment.paired import paired_share
from ranktilt.citing.experiment.result import ContextEffect, LabelsOfAnswers, Question
from ranktilt.citing.making.session import AnswerSession
from ranktilt.citing.making.twins import Pair
from ranktilt.statistics.correction import correct

_VERSIONS = ("cited_a", "cited_b")
_POSITIONS = ("cited_first", "cited_second")
_FIRST, _SECOND = "first", "second"


@dataclass(frozen=True, kw_only=True)
class Estimator:
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


def version_effects(
    session: AnswerSession, pair: Pair, estimator: Estimator
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


def label_effects(
    session: AnswerSession, pair: Pair, estimator: Estimator
) -> Iterator[ContextEffect]:
    """Yield whether the same text is cited more often with one label than with the other."""
    if not session.making.compares_labels:
        return
    table = label_table(session.documents, pair)
    if table.height:
        yield estimator.effect(table, _VERSIONS, "label", pair, labels="both", is_primary=True)


def corrected(family: Sequence[ContextEffect], correction: str) -> list[ContextEffect]:
    """Correct the p-values of effects that are tested together."""
    ps = correct([effect.p for effect in family], correction)
    tests = max(int((~np.isnan(ps)).sum()), 1)
    return [
        replace(effect, p_corrected=p, family_size=tests)
        for effect, p in zip(family, ps.tolist(), strict=True)
    ]
