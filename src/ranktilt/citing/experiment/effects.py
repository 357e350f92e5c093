"""The effects of an experiment with contexts: of version, position and label.

A language model answers queries from *contexts*, the documents that it is shown, and cites some. In
the experiment contexts differ in one thing: which *version* of a document, by group a or b, is
shown at a position, or which *label* (author) a document is shown with. An *effect* says how often
one of two is cited, if only one of the two is.
"""

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
"""Names of the two positions, which an effect of position has in place of groups."""


@dataclass(frozen=True, kw_only=True)
class Estimator:
    """The bootstrap that gives effects their intervals."""

    resamples: int
    """Number of bootstrap resamples."""
    seed: int
    """Random seed."""

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
        """Return the effect that answers a question from a table; the caller corrects its p.

        Parameters
        ----------
        table : polars.DataFrame
            Comparisons: the result of `version_table` or `label_table`.
        columns : sequence of str
            The two columns to compare, which say whether a version is cited.
        question : str
            What differs between the two.
        sides : (str, str)
            Names of what is compared: two groups, or two positions.
        labels : str
            The labels that the documents of the compared answers were shown with.
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
    """Yield the effect of the version, for each label that was shown, and the effect of position.

    The first effect is the primary one, which decides the verdict: that of the answers which say
    most about the texts themselves (`_main_labels`). Nothing if versions were not compared.
    """
    if not session.making.has_twins:
        return
    table = version_table(session.documents, pair)
    if not table.height:
        return
    main = _main_labels(session)
    tables: dict[LabelsOfAnswers, pl.DataFrame] = {}
    if session.making.compares_labels:
        tables["both"] = table.filter(pl.col("shown_label") != "none")
    for label in session.making.shown_labels:
        tables[label] = table.filter(pl.col("shown_label") == label)
    main_first = sorted(tables, key=lambda labels: labels != main)
    for labels in main_first:
        if tables[labels].height:
            yield estimator.effect(
                tables[labels], _VERSIONS, "version", pair, labels=labels, is_primary=labels == main
            )
    sides = (_FIRST, _SECOND)
    yield estimator.effect(table, _POSITIONS, "position", sides, labels="all")


def _main_labels(session: AnswerSession) -> LabelsOfAnswers:
    """Return the labels of those answers that best say which text is preferred, without its label.

    These are answers without labels or, if there are none, answers with true and with swapped
    labels together, in which the effect of labels cancels. Otherwise only one label was shown.
    """
    shown_labels = session.making.shown_labels
    if "none" in shown_labels:
        return "none"
    return "both" if session.making.compares_labels else shown_labels[0]


def label_effects(
    session: AnswerSession, pair: Pair, estimator: Estimator
) -> Iterator[ContextEffect]:
    """Yield the effect of the label: whether a text is cited more often with one than the other.

    Nothing if only one label was shown.
    """
    if not session.making.compares_labels:
        return
    table = label_table(session.documents, pair)
    if table.height:
        yield estimator.effect(table, _VERSIONS, "label", pair, labels="both", is_primary=True)


def corrected_effects(family: Sequence[ContextEffect], correction: str) -> list[ContextEffect]:
    """Correct the p-values of effects that are tested together, by ``holm`` or ``bonferroni``."""
    ps = correct([effect.p for effect in family], correction)
    tests = max(int((~np.isnan(ps)).sum()), 1)
    return [
        replace(effect, p_corrected=p, family_size=tests)
        for effect, p in zip(family, ps.tolist(), strict=True)
    ]
