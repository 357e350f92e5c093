"""The question card: what is asked of each run besides Relative Δ (MEASURES, sec. 3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import NamedTuple

import numpy as np

from ranktilt.auditing.groups import ALL, Groups, Pair
from ranktilt.auditing.judged_run import JudgedRun
from ranktilt.auditing.null_distributions.base import Shuffles
from ranktilt.auditing.null_distributions.lists import (
    attention_answers,
    listed_labels,
    null_attention,
    shuffled_in_lists,
)
from ranktilt.auditing.null_distributions.pages import TopRanks, page_labels, share_bands
from ranktilt.auditing.null_distributions.properties import property_sample
from ranktilt.auditing.null_distributions.twins import (
    TwinPairs,
    all_paired,
    among_exchanged,
    share_difference,
    signs_of,
    turned_labels,
)
from ranktilt.auditing.significance import InferenceOptions, Sample
from ranktilt.measures.base import Estimand, GroupEstimand
from ranktilt.measures.exposure.base import AttentionEstimand
from ranktilt.measures.exposure.property_lift import PropertyEstimand
from ranktilt.measures.ndsr import NDSR
from ranktilt.measures.ranking import Floats, Ints
from ranktilt.measures.twins.base import TwinAnswers, TwinEstimand, TwinLists
from ranktilt.measures.twins.head_to_head import HeadToHead
from ranktilt.measures.twins.rank_gap import RankGap
from ranktilt.measures.twins.score_gap import ScoreGap
from ranktilt.progress import report

DEPTH = 20
"""Ranks over which ΔNDSR counts, by default."""
HEAD_TO_HEAD = (HeadToHead, replace(HeadToHead, over="pairs"))
"""Head-to-head of all twins: the mean over the queries, and all pairs together beside it."""


def card_estimands(depth: int, *, judged: bool) -> tuple[Estimand, ...]:
    """List what the card asks beside Relative Δ.

    Without judgments, twins are not told apart by relevance.
    """
    if not judged:
        return (NDSR @ depth, *HEAD_TO_HEAD, replace(RankGap, pairs="all"), ScoreGap)
    heads = (replace(HeadToHead, pairs="relevant"), replace(HeadToHead, pairs="other"))
    return (NDSR @ depth, *heads, RankGap, ScoreGap)


class CardKey(NamedTuple):
    """Where a sample stands on the card: numbers of its run, pair of groups, and question."""

    run: int
    pair: int
    question: int


@dataclass(frozen=True, kw_only=True)
class Card:
    """A card in the making: what all runs share."""

    groups: Groups
    twins: Mapping[Pair, TwinPairs]
    questions: Sequence[Estimand]
    inference: InferenceOptions
    shuffles: Shuffles
    """Labels of relevant documents; their seed and number are those of all random labels."""
    banded: bool
    """Whether what random labels give is shown for twins too: of sources 0 is neutral anyway."""
    origins: Ints
    """Number of each document's origin."""

    def of_twins(
        self, run: int, judged_run: JudgedRun, lists: Mapping[Pair, TwinLists]
    ) -> Iterator[tuple[CardKey, Sample]]:
        """Answer the questions about twins for one run."""
        for number, (pair, twins) in enumerate(self.twins.items()):
            for question, estimand in enumerate(self.questions):
                if isinstance(estimand, TwinEstimand) and pair in lists:
                    answers = estimand.answers(lists[pair])
                    sample = self._exchanged(judged_run, estimand, twins, answers)
                    yield CardKey(run, number, question), sample

    def of_groups(self, judged_runs: Sequence[JudgedRun]) -> Iterator[tuple[CardKey, Sample]]:
        """Answer the questions about groups, and about a property of documents, for all runs."""
        for question, estimand in enumerate(self.questions):
            if isinstance(estimand, PropertyEstimand):
                for run, judged_run in enumerate(judged_runs):
                    yield CardKey(run, 0, question), self._property(estimand, judged_run)
            if not isinstance(estimand, GroupEstimand):
                continue
            if isinstance(estimand, AttentionEstimand):
                samples = self._attention(estimand, judged_runs)
            elif type(estimand).weights is not GroupEstimand.weights:
                samples = self._sums(estimand, judged_runs)
            else:
                samples = self._lists(estimand, judged_runs)
            for run, number, sample in samples:
                yield CardKey(run, number, question), sample

    def _sums(
        self, estimand: GroupEstimand, judged_runs: Sequence[JudgedRun]
    ) -> Iterator[tuple[int, int, Sample]]:
        """Differences of two groups' sums: a document has one label in all lists.

        Where all are twins, they exchange theirs.
        """
        signs = {pair: signs_of(self.groups, pair) for pair in self.twins}
        paired = {pair: all_paired(signs[pair], twins.rows) for pair, twins in self.twins.items()}
        pages = [
            TopRanks.from_run(judged_run, estimand, len(self.groups.code))
            for judged_run in judged_runs
        ]
        bands: Iterator[Floats | None] = repeat(None)
        if not all(paired.values()):
            bands = share_bands(pages, self.groups, self.shuffles)
        for run, (judged_run, page, band) in enumerate(
            zip(judged_runs, pages, bands, strict=False)
        ):
            for number, (pair, twins) in enumerate(self.twins.items()):
                parts = {"shares": share_difference(signs[pair])}
                weight = page.known.astype(np.float64)
                answers = TwinAnswers(page.difference(signs[pair]), weight, parts)
                if paired[pair] or band is None:
                    answers = answers._replace(clusters=page.clusters(signs[pair]))
                    yield run, number, self._exchanged(judged_run, estimand, twins, answers)
                    continue
                a, b = (self.groups.names.index(name) for name in pair)
                labels = page_labels(
                    judged_run, page, signs[pair], self.groups, origins=self.origins
                )
                sample = self._sample(judged_run, estimand, twins, answers)
                yield run, number, sample.among(band[a] - band[b], labels)

    def _lists(
        self, estimand: GroupEstimand, judged_runs: Sequence[JudgedRun]
    ) -> Iterator[tuple[int, int, Sample]]:
        """Other questions about groups: each list is shuffled by itself.

        Where all are twins, they exchange labels.
        """
        for run, judged_run in enumerate(judged_runs):
            code = judged_run.group_codes(self.groups)
            nulls = self._null_lists(estimand, judged_run, code)
            for number, (pair, twins) in enumerate(self.twins.items()):
                a, b = (self.groups.names.index(name) for name in pair)
                sides = judged_run.ranking, code == a, code == b
                answers = TwinAnswers(*estimand.columns(*sides), estimand.composition(*sides))
                labels = listed_labels(
                    judged_run, estimand, code == a, code == b, origins=self.origins
                )
                sample = self._sample(judged_run, estimand, twins, answers)
                yield run, number, sample.among(nulls[number], labels)

    def _null_lists(self, estimand: GroupEstimand, judged_run: JudgedRun, code: Ints) -> Floats:
        """Draw answers under random labels: (pairs, shuffles)."""
        pairs = list(self.twins)
        paired = [
            all_paired(signs_of(self.groups, pair), twins.rows)
            for pair, twins in self.twins.items()
        ]
        seed, count = self.shuffles.seed, self.shuffles.count
        turned = [
            turned_labels(judged_run, self.groups, code, twins, seed=seed) if is_paired else None
            for is_paired, twins in zip(paired, self.twins.values(), strict=True)
        ]
        shuffled = repeat(code) if all(paired) else shuffled_in_lists(judged_run, code, seed)
        nulls = np.full((len(pairs), count), np.nan)
        for draw, labels in zip(range(count), shuffled, strict=False):
            for row, pair, exchanges in zip(nulls, pairs, turned, strict=True):
                a, b = (self.groups.names.index(name) for name in pair)
                drawn = labels if exchanges is None else next(exchanges)
                columns = estimand.columns(judged_run.ranking, drawn == a, drawn == b)
                row[draw] = estimand.value(*columns)
            report(f"random lists of {judged_run.run.name}", draw + 1, count)
        return nulls

    def _attention(
        self, estimand: AttentionEstimand, judged_runs: Sequence[JudgedRun]
    ) -> Iterator[tuple[int, int, Sample]]:
        """Questions about all groups at once, once a run: each list is shuffled as a whole."""
        estimand.check(self.groups.names)
        for run, judged_run in enumerate(judged_runs):
            lists = judged_run.group_lists(self.groups)
            answers = attention_answers(estimand, judged_run, lists)
            null = null_attention(
                estimand,
                judged_run,
                self.groups,
                seed=self.shuffles.seed,
                count=self.shuffles.count,
            )
            parts = {
                **judged_run.group_counts(self.groups),
                **estimand.details(lists, answers.weight > 0),
            }
            sample = Sample(
                run=judged_run.run.name,
                estimand=estimand,
                a=ALL,
                b=ALL,
                numerator=answers.total,
                denominator=answers.weight,
                parts=parts,
                distinct=judged_run.distinct,
            )
            yield run, 0, sample.among(null)

    def _property(self, estimand: PropertyEstimand, judged_run: JudgedRun) -> Sample:
        """Ask about a property of documents, whose values are shuffled within each list."""
        return property_sample(
            judged_run,
            estimand,
            self.groups,
            self.origins,
            seed=self.shuffles.seed,
            count=self.shuffles.count,
        )

    def _sample(
        self, judged_run: JudgedRun, estimand: Estimand, twins: TwinPairs, answers: TwinAnswers
    ) -> Sample:
        group_a, group_b = twins.pair
        return Sample(
            run=judged_run.run.name,
            estimand=estimand,
            a=group_a,
            b=group_b,
            numerator=answers.total,
            denominator=answers.weight,
            parts=answers.parts,
            clusters=twins.clusters(answers.clusters),
            distinct=judged_run.distinct,
        )

    def _exchanged(
        self, judged_run: JudgedRun, estimand: Estimand, twins: TwinPairs, answers: TwinAnswers
    ) -> Sample:
        """Make a sample of twins, with labels exchanged within origins, alike in all queries."""
        sample = self._sample(judged_run, estimand, twins, answers)
        return among_exchanged(sample, self.inference, banded=self.banded)


def group_samples(
    judged_runs: Sequence[JudgedRun],
    groups: Groups,
    pairs: Sequence[Pair],
    questions: Sequence[GroupEstimand],
) -> list[Sample]:
    """Return each run's answers to questions about groups, without what random labels give."""
    judgments = judged_runs[0].judgments
    no_rows = np.empty((0, 2), dtype=np.int64)
    card = Card(
        groups=groups,
        twins={pair: TwinPairs(pair, no_rows, None, judgments.documents) for pair in pairs},
        questions=questions,
        inference=InferenceOptions(
            resamples=0, seed=0, test="interval", correction="holm", rounding="none"
        ),
        shuffles=Shuffles(judgments, 0, count=0),
        banded=True,
        origins=np.arange(len(groups.code)),
    )
    return [sample for _, sample in card.of_groups(judged_runs)]
