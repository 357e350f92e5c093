"""The question card: the questions about each run besides Relative Δ.

`docs/measures` has a page on each question. `Card` answers them. An answer is a `Sample`: numbers
of each query, of which `significance` will make a value with interval and p.

The answer is also compared with the values that it would have under random labels; the *label* of
a document is its group. The middle 95 % of these values are the *random band*, and their median is
neutral for groups that are not twins. What is drawn at random depends on the question, so that
`Card` has a method for each kind of question; see `null_distributions`.

*Twins* are two versions of one document, a version of each of two groups; the document is their
*origin*. A *page* is the first ranks of all lists of a run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
    compare_with_exchanges,
    exchanged_labels,
    share_difference,
    signs_of,
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
"""Default cutoff of ΔNDSR, in ranks: how many first ranks of each list are its page."""
HEAD_TO_HEAD = (HeadToHead, replace(HeadToHead, over="pairs"))
"""Head-to-head of all twins, as the mean over the queries and as the mean over all pairs."""


def card_estimands(depth: int, *, judged: bool) -> tuple[Estimand, ...]:
    """Return the card's questions besides Relative Δ.

    With judgments, head-to-head is asked separately for relevant twins and for all others.
    """
    if not judged:
        return (NDSR @ depth, *HEAD_TO_HEAD, replace(RankGap, pairs="all"), ScoreGap)
    by_relevance = (replace(HeadToHead, pairs="relevant"), replace(HeadToHead, pairs="other"))
    return (NDSR @ depth, *by_relevance, RankGap, ScoreGap)


class CardKey(NamedTuple):
    """Position of an answer on the card.

    Answers are computed question by question, and sorted by this: by run, then pair, then question.
    """

    run_index: int
    """Index of the run."""
    pair_index: int
    """Index of the pair of groups; 0 for a question about all groups together."""
    question_index: int
    """Index of the question."""


@dataclass(frozen=True, kw_only=True)
class Card:
    """Answers the card's questions about runs, with what random labels would give."""

    groups: Groups
    """Groups of all documents."""
    twins: Mapping[Pair, TwinPairs]
    """Pairs of groups to compare, each with its twins, if it has any."""
    questions: Sequence[Estimand]
    """Questions to answer."""
    inference: InferenceOptions
    """Options of tests and intervals."""
    shuffles: Shuffles
    """Shuffled labels of relevant documents.

    Its seed and its number of shuffles are those of all other random labels, too.
    """
    shows_random_band: bool
    """Whether the random band is also shown for twins.

    It is not shown if groups are sources: their twins have a band around 0, because their labels
    are exchanged, and 0 is neutral anyway.
    """
    origins: Ints
    """Number of each document's origin, by row of the collection."""

    def answer_twins(
        self, run_index: int, judged_run: JudgedRun, lists: Mapping[Pair, TwinLists]
    ) -> Iterator[tuple[CardKey, Sample]]:
        """Answer the questions about twins for one run.

        `lists` says where in the run's lists the twins are, for each pair of groups that has twins.
        """
        for pair_index, (pair, twins) in enumerate(self.twins.items()):
            for question_index, estimand in enumerate(self.questions):
                if isinstance(estimand, TwinEstimand) and pair in lists:
                    answers = estimand.answers(lists[pair])
                    sample = self._twin_sample(judged_run, estimand, twins, answers)
                    yield CardKey(run_index, pair_index, question_index), sample

    def answer_groups(self, judged_runs: Sequence[JudgedRun]) -> Iterator[tuple[CardKey, Sample]]:
        """Answer the questions about groups, and about a property of documents, for all runs."""
        for question_index, estimand in enumerate(self.questions):
            for run_index, pair_index, sample in self._answer(estimand, judged_runs):
                yield CardKey(run_index, pair_index, question_index), sample

    def _answer(
        self, estimand: Estimand, judged_runs: Sequence[JudgedRun]
    ) -> Iterator[tuple[int, int, Sample]]:
        """Answer a question about groups or a property; nothing for other questions.

        Yields the index of the run, the index of the pair, and the sample.
        """
        if isinstance(estimand, PropertyEstimand):
            for run_index, judged_run in enumerate(judged_runs):
                yield run_index, 0, self._property(estimand, judged_run)
        elif isinstance(estimand, AttentionEstimand):
            yield from self._attention(estimand, judged_runs)
        elif isinstance(estimand, GroupEstimand):
            if estimand.is_difference_of_sums:
                yield from self._sum_differences(estimand, judged_runs)
            else:
                yield from self._list_answers(estimand, judged_runs)

    def _sum_differences(
        self, estimand: GroupEstimand, judged_runs: Sequence[JudgedRun]
    ) -> Iterator[tuple[int, int, Sample]]:
        """Answer a question that is a difference of two groups' sums, such as ΔNDSR.

        A document that is not relevant has the same random label in all lists. If all documents of
        both groups are twins, the twins exchange their labels instead.
        """
        exchanges = {
            pair: all_paired(signs_of(self.groups, pair), twins.rows)
            for pair, twins in self.twins.items()
        }
        pages = [
            TopRanks.from_run(judged_run, estimand, len(self.groups.code))
            for judged_run in judged_runs
        ]
        # For each run, every group's share of the page under random labels: (n_groups, shuffles).
        # Nothing is drawn if all pairs exchange their labels.
        shuffled_shares: Iterable[Floats | None] = [None] * len(pages)
        if not all(exchanges.values()):
            shuffled_shares = share_bands(pages, self.groups, self.shuffles)
        for run_index, (judged_run, page, shares) in enumerate(
            zip(judged_runs, pages, shuffled_shares, strict=True)
        ):
            for pair_index, (pair, twins) in enumerate(self.twins.items()):
                null = None
                if shares is not None and not exchanges[pair]:
                    a, b = (self.groups.names.index(name) for name in pair)
                    null = shares[a] - shares[b]
                sample = self._page_sample(judged_run, estimand, page, twins, null)
                yield run_index, pair_index, sample

    def _page_sample(
        self,
        judged_run: JudgedRun,
        estimand: GroupEstimand,
        page: TopRanks,
        twins: TwinPairs,
        null: Floats | None,
    ) -> Sample:
        """Return one run's difference of shares of the page between two groups.

        `null` has the differences under random labels; None if twins exchange their labels instead.
        """
        signs = signs_of(self.groups, twins.pair)
        answers = TwinAnswers(
            total=page.difference(signs),
            weight=page.known.astype(np.float64),
            details={"shares": share_difference(signs)},
        )
        if null is None:
            answers = answers._replace(clusters=page.clusters(signs))
            return self._twin_sample(judged_run, estimand, twins, answers)
        labels = page_labels(judged_run, page, signs, self.groups, origins=self.origins)
        sample = self._plain_sample(judged_run, estimand, twins, answers)
        return sample.with_random_labels(null, labels)

    def _list_answers(
        self, estimand: GroupEstimand, judged_runs: Sequence[JudgedRun]
    ) -> Iterator[tuple[int, int, Sample]]:
        """Answer a question about two groups that is no difference of sums, such as a ratio.

        Labels are shuffled in each list separately. If all documents of both groups are twins, the
        twins exchange their labels instead.
        """
        for run_index, judged_run in enumerate(judged_runs):
            entry_groups = judged_run.group_codes(self.groups)
            nulls = self._null_lists(estimand, judged_run, entry_groups)
            for pair_index, (pair, twins) in enumerate(self.twins.items()):
                a, b = (self.groups.names.index(name) for name in pair)
                is_first, is_second = entry_groups == a, entry_groups == b
                total, weight = estimand.columns(judged_run.ranking, is_first, is_second)
                composition = estimand.composition(judged_run.ranking, is_first, is_second)
                answers = TwinAnswers(total=total, weight=weight, details=composition)
                labels = listed_labels(
                    judged_run, estimand, is_first, is_second, origins=self.origins
                )
                sample = self._plain_sample(judged_run, estimand, twins, answers)
                sample = sample.with_random_labels(nulls[pair_index], labels)
                yield run_index, pair_index, sample

    def _null_lists(
        self, estimand: GroupEstimand, judged_run: JudgedRun, entry_groups: Ints
    ) -> Floats:
        """Compute the answers under random labels, of shape (n_pairs, shuffles).

        `entry_groups` has the index of the group of each entry of the run.
        """
        seed, count = self.shuffles.seed, self.shuffles.count
        pairs = list(self.twins)
        # A stream of random labels for each pair whose twins exchange their labels.
        exchanges: list[Iterator[Ints] | None] = []
        for pair, twins in self.twins.items():
            if all_paired(signs_of(self.groups, pair), twins.rows):
                stream = exchanged_labels(judged_run, self.groups, entry_groups, twins, seed=seed)
                exchanges.append(stream)
            else:
                exchanges.append(None)
        # If all pairs exchange labels, no pair reads the shuffled ones.
        shuffled: Iterator[Ints] = repeat(entry_groups)
        if None in exchanges:
            shuffled = shuffled_in_lists(judged_run, entry_groups, seed)
        nulls = np.full((len(pairs), count), np.nan)
        # `shuffled` yields without end; the range says how often.
        for draw, shuffled_groups in zip(range(count), shuffled, strict=False):
            for row, pair, stream_of_pair in zip(nulls, pairs, exchanges, strict=True):
                a, b = (self.groups.names.index(name) for name in pair)
                drawn = shuffled_groups if stream_of_pair is None else next(stream_of_pair)
                columns = estimand.columns(judged_run.ranking, drawn == a, drawn == b)
                row[draw] = estimand.value(*columns)
            report(f"random lists of {judged_run.run.name}", draw + 1, count)
        return nulls

    def _attention(
        self, estimand: AttentionEstimand, judged_runs: Sequence[JudgedRun]
    ) -> Iterator[tuple[int, int, Sample]]:
        """Answer a question about all groups together, once for each run.

        For the random band, the documents of each list change places instead of labels.
        """
        estimand.check(self.groups.names)
        for run_index, judged_run in enumerate(judged_runs):
            lists = judged_run.group_lists(self.groups)
            answers = attention_answers(estimand, judged_run, lists)
            null = null_attention(
                estimand,
                judged_run,
                self.groups,
                seed=self.shuffles.seed,
                count=self.shuffles.count,
            )
            details = {
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
                details=details,
                distinct=judged_run.distinct,
            )
            yield run_index, 0, sample.with_random_labels(null)

    def _property(self, estimand: PropertyEstimand, judged_run: JudgedRun) -> Sample:
        """Answer a question about a property of documents, such as their popularity.

        Its values are shuffled within each list.
        """
        return property_sample(
            judged_run,
            estimand,
            self.groups,
            self.origins,
            seed=self.shuffles.seed,
            count=self.shuffles.count,
        )

    def _plain_sample(
        self, judged_run: JudgedRun, estimand: Estimand, twins: TwinPairs, answers: TwinAnswers
    ) -> Sample:
        """Return an answer about the two groups of `twins` as a sample without random labels."""
        group_a, group_b = twins.pair
        return Sample(
            run=judged_run.run.name,
            estimand=estimand,
            a=group_a,
            b=group_b,
            numerator=answers.total,
            denominator=answers.weight,
            details=answers.details,
            clusters=twins.clusters(answers.clusters),
            distinct=judged_run.distinct,
        )

    def _twin_sample(
        self, judged_run: JudgedRun, estimand: Estimand, twins: TwinPairs, answers: TwinAnswers
    ) -> Sample:
        """Return an answer about twins as a sample with its p under exchanged labels.

        Twins exchange their labels in all queries alike.
        """
        sample = self._plain_sample(judged_run, estimand, twins, answers)
        return compare_with_exchanges(
            sample, self.inference, shows_random_band=self.shows_random_band
        )


def group_samples(
    judged_runs: Sequence[JudgedRun],
    groups: Groups,
    pairs: Sequence[Pair],
    questions: Sequence[GroupEstimand],
) -> list[Sample]:
    """Return each run's answers to questions about groups, without random labels."""
    judgments = judged_runs[0].judgments
    no_twins = np.empty((0, 2), dtype=np.int64)
    # With no resamples and no shuffles, the options of the tests have no effect.
    card = Card(
        groups=groups,
        twins={
            pair: TwinPairs(pair=pair, rows=no_twins, relevant=None, documents=judgments.documents)
            for pair in pairs
        },
        questions=questions,
        inference=InferenceOptions(
            resamples=0, seed=0, test="interval", correction="holm", rounding="none"
        ),
        shuffles=Shuffles(judgments=judgments, seed=0, count=0),
        shows_random_band=True,
        origins=np.arange(len(groups.code)),
    )
    return [sample for _, sample in card.answer_groups(judged_runs)]
