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
"""Columns that compare the version, or the label, of group a with that of group b."""
_POSITIONS = ("cited_first", "cited_second")
"""Columns that compare the version shown first with the one after it."""
_FIRST, _SECOND = "first", "second"
"""Names of the two positions, where an effect has the names of its groups."""


@dataclass(frozen=True, kw_only=True)
class Estimator:
    """How shares get their intervals."""

    resamples: int
    """Number of bootstrap resamples."""
    seed: int
    """Where they start."""

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
        """Return the effect of a question on the comparisons of a table; its p is not corrected yet.

        Parameters
        ----------
        table : polars.DataFrame
            A table of comparisons (`version_table`, `label_table`).
        columns : sequence of str
            The two columns that are compared.
        question : str
            What differs between the two.
        sides : (str, str)
            Names of what is compared: two groups, or two positions.
        labels : str
            The labels that the compared answers were shown.
        is_primary : bool, optional
            Whether the effect decides the verdict.
        """
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
    """Yield which of two versions is cited, for each label that is shown, and the effect of position.

    The effect of the labels that say most about the texts comes first; it is the primary one.
    """
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
    """Return the labels of the answers that say which text is preferred, whatever its label.

    Answers without labels say it best; then the true and the swapped ones together, in which labels
    cancel; otherwise those with the only label that was shown.
    """
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
