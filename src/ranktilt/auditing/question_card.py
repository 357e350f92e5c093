"""The question card: questions beside Relative Δ, put to each run (definitions: MEASURES, sec. 3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat

import numpy as np
import polars as pl

from ranktilt.auditing.groups import ALL, Groups, Pair
from ranktilt.auditing.judged_rankings import Aligned, Judgments
from ranktilt.auditing.label_clusters import listed_labels, page_labels
from ranktilt.auditing.random_band import Shuffles, TopRanks, all_paired, share_bands, share_difference, signs_of
from ranktilt.auditing.significance import Chance, InferenceOptions, Sample
from ranktilt.measures.base import Estimand, GroupEstimand
from ranktilt.measures.exposure.base import AttentionEstimand, GroupLists
from ranktilt.measures.ndsr import NDSR
from ranktilt.measures.ranking import Ints
from ranktilt.measures.twins.base import Answers, TwinEstimand, TwinLists
from ranktilt.measures.twins.head_to_head import HeadToHead
from ranktilt.measures.twins.rank_gap import RankGap
from ranktilt.measures.twins.score_gap import ScoreGap
from ranktilt.progress import report
from ranktilt.statistics.permutation import exchanged
from ranktilt.statistics.two_way import Clusters

DEPTH = 20
"""Ranks over which ΔNDSR counts, by default."""


def card_estimands(depth: int, *, judged: bool) -> tuple[Estimand, ...]:
    """List what the card asks beside Relative Δ; without judgments, twins are not told apart by relevance."""
    if not judged:
        return (NDSR @ depth, *HEAD_TO_HEAD, replace(RankGap, pairs="all"), ScoreGap)
    heads = (replace(HeadToHead, pairs="relevant"), replace(HeadToHead, pairs="other"))
    return (NDSR @ depth, *heads, RankGap, ScoreGap)


HEAD_TO_HEAD = (HeadToHead, replace(HeadToHead, over="pairs"))
"""Head-to-head of all twins: the mean over the queries, and all pairs together beside it."""


@dataclass(frozen=True)
class Twins:
    """Two groups to compare, and the rows of their twins."""

    pair: Pair
    rows: Ints
    """Shape (n_pairs, 2)."""
    wanted: tuple[Ints, Ints] | None
    """Query and pair of every relevant pair, retrieved or not; None where nothing is judged."""
    documents: int
    """Of the collection."""
    origins: Ints | None = None
    """Number of each document's origin, −1 for one without a pair; None where pairs do not exchange labels."""

    @classmethod
    def of(cls, pair: Pair, rows: Ints, judgments: Judgments, origins: Ints | None = None) -> Twins:
        """Find the relevant pairs: those of which either side is judged so; those of one origin exchange labels."""
        number = None
        if origins is not None and len(rows):
            number = np.where(np.isin(origins, origins[rows]), origins, -1)
        documents = judgments.documents
        if not len(judgments.grade):
            return cls(pair, rows, None, documents, number)
        judged = pl.DataFrame({"query": judgments.query, "row": judgments.row})
        judged = judged.filter(pl.Series(judgments.known_query[judgments.query]))
        table = pl.DataFrame({"a": rows[:, 0], "b": rows[:, 1], "pair": np.arange(len(rows))})
        sides = [judged.join(table, left_on="row", right_on=side).select("query", "pair") for side in ("a", "b")]
        found = pl.concat(sides).unique().sort("query", "pair")
        query, wanted = (found[column].to_numpy().astype(np.int64) for column in ("query", "pair"))
        return cls(pair, rows, (query, wanted), documents, number)

    def lists(self, aligned: Aligned, missing: str) -> TwinLists:
        """Look for the twins in a run; relevant pairs of queries that count nowhere are left out."""
        judgments, wanted = aligned.judgments, self.wanted
        if wanted is not None:
            keep = ~aligned.left_out(missing)[wanted[0]]
            wanted = wanted[0][keep], wanted[1][keep]
        counted = (aligned.row < self.documents) & judgments.known_query[aligned.ranking.query]
        return TwinLists(
            aligned.ranking, np.where(counted, aligned.row, -1), self.rows, (judgments.query, judgments.row), wanted,
            scored=aligned.run.spec.get("score_order") != "rank",
        )  # fmt: skip

    def clusters(self, found: Clusters | None) -> Clusters | None:
        """Put origins in place of documents; None where pairs do not exchange labels."""
        return None if found is None or self.origins is None else found.of(self.origins)


Place = tuple[int, int, int]
"""Where a sample stands on the card: number of its run, of its pair of groups, and of its question."""


@dataclass(frozen=True)
class Card:
    """A card in the making: what all runs share.

    `shuffles` are labels of relevant documents; their seed and number are those of all random labels. `banded`: whether
    what random labels give is shown for twins too; of sources 0 is level, and no band is needed.
    """

    groups: Groups
    twins: Mapping[Pair, Twins]
    asked: Sequence[Estimand]
    how: InferenceOptions
    shuffles: Shuffles
    banded: bool
    origins: Ints
    """Number of each document's origin."""

    def of_twins(self, run: int, aligned: Aligned, lists: Mapping[Pair, TwinLists]) -> Iterator[tuple[Place, Sample]]:
        for number, (pair, twins) in enumerate(self.twins.items()):
            for place, one in enumerate(self.asked):
                if isinstance(one, TwinEstimand) and pair in lists:
                    found = one.answers(lists[pair])
                    yield (run, number, place), self._exchanged(aligned, one, twins, found)

    def of_groups(self, aligned: Sequence[Aligned]) -> Iterator[tuple[Place, Sample]]:
        for place, one in enumerate(self.asked):
            if not isinstance(one, GroupEstimand):
                continue
            if isinstance(one, AttentionEstimand):
                found = self._attention(one, aligned)
            else:
                additive = type(one).weights is not GroupEstimand.weights  # a difference of two groups' sums
                found = self._sums(one, aligned) if additive else self._lists(one, aligned)
            for run, number, sample in found:
                yield (run, number, place), sample

    def _sums(self, of: GroupEstimand, aligned: Sequence[Aligned]) -> Iterator[tuple[int, int, Sample]]:
        """Differences of two groups' sums: a document has one label in all lists, and twins exchange theirs."""
        signs = {pair: signs_of(self.groups, pair) for pair in self.twins}
        paired = {pair: all_paired(signs[pair], twins.rows) for pair, twins in self.twins.items()}
        pages = [TopRanks.of(one, of, len(self.groups.code)) for one in aligned]
        bands = repeat(None) if all(paired.values()) else share_bands(pages, self.groups, self.shuffles)
        for run, (one, page, band) in enumerate(zip(aligned, pages, bands, strict=False)):
            for number, (pair, twins) in enumerate(self.twins.items()):
                parts = {"shares": share_difference(signs[pair])}
                answers = Answers(page.difference(signs[pair]), page.known.astype(np.float64), parts)
                if paired[pair] or band is None:
                    answers = answers._replace(clusters=page.clusters(signs[pair]))
                    yield run, number, self._exchanged(one, of, twins, answers)
                else:
                    a, b = (self.groups.names.index(name) for name in pair)
                    added = page_labels(one, page, signs[pair], self.groups, self.origins)
                    yield run, number, self._sample(one, of, twins, answers).among(band[a] - band[b], added)

    def _lists(self, of: GroupEstimand, aligned: Sequence[Aligned]) -> Iterator[tuple[int, int, Sample]]:
        """Other questions about groups: each list is shuffled by itself; where all are twins, they exchange labels."""
        numbers = [(self.groups.names.index(a), self.groups.names.index(b)) for a, b in self.twins]
        paired = [all_paired(signs_of(self.groups, pair), twins.rows) for pair, twins in self.twins.items()]
        for run, one in enumerate(aligned):
            code = one.group_codes(self.groups)
            null = np.full((len(numbers), self.shuffles.count), np.nan)
            draws = [
                self._turned(one, code, twins, sum(pair)) if alike else None
                for alike, twins, pair in zip(paired, self.twins.values(), numbers, strict=True)
            ]
            shuffled = repeat(code) if all(paired) else self._shuffled(one, code)
            for draw, labels in zip(range(self.shuffles.count), shuffled, strict=False):
                for row, (a, b), turned in zip(null, numbers, draws, strict=True):
                    found = labels if turned is None else next(turned)
                    row[draw] = of.value(*of.columns(one.ranking, found == a, found == b))
                report(f"random lists of {one.run.name}", draw + 1, self.shuffles.count)
            for number, (twins, (a, b)) in enumerate(zip(self.twins.values(), numbers, strict=True)):
                sides = one.ranking, code == a, code == b
                answers = Answers(*of.columns(*sides), of.composition(*sides))
                added = listed_labels(one, of, code == a, code == b, self.origins)
                yield run, number, self._sample(one, of, twins, answers).among(null[number], added)

    def _attention(self, of: AttentionEstimand, aligned: Sequence[Aligned]) -> Iterator[tuple[int, int, Sample]]:
        """Questions about all groups at once, asked once a run: each list is shuffled as a whole."""
        of.check(self.groups.names)
        for run, one in enumerate(aligned):
            lists = one.group_lists(self.groups)
            answers = self._spread(of, one, lists)
            rng, null = np.random.default_rng([self.shuffles.seed, 3]), np.full(self.shuffles.count, np.nan)
            for draw in range(self.shuffles.count):
                null[draw] = of.value(*self._spread(of, one, lists.shuffled(rng))[:2])
                report(f"random lists of {one.run.name}", draw + 1, self.shuffles.count)
            known = answers.weight > 0
            parts = {**one.group_counts(self.groups), **of.beside(lists, known)}
            sample = Sample(one.run.name, of, ALL, ALL, answers.total, answers.weight, parts, distinct=one.distinct)
            yield run, 0, sample.among(null)

    @staticmethod
    def _spread(of: AttentionEstimand, aligned: Aligned, lists: GroupLists) -> Answers:
        found = np.where(aligned.judgments.known_query, of.per_query(lists), np.nan)
        known = ~np.isnan(found)
        return Answers(np.where(known, found, 0.0), known.astype(np.float64))

    def _shuffled(self, aligned: Aligned, code: Ints) -> Iterator[Ints]:
        """Labels of a run's entries, shuffled within each list; documents without a label keep none."""
        rng, held, labels = np.random.default_rng([self.shuffles.seed, 2]), np.flatnonzero(code >= 0), code.copy()
        sizes = np.bincount(aligned.ranking.query[held])
        starts = np.cumsum(sizes) - sizes
        # Lists of one length are the rows of a matrix, shuffled at once: several times as fast as sorting random keys.
        lists = [held[starts[sizes == size][:, None] + np.arange(size)] for size in np.unique(sizes[sizes > 1])]
        shuffled = [code[places] for places in lists]
        while True:
            for places, some in zip(lists, shuffled, strict=True):
                labels[places] = rng.permuted(some, axis=1, out=some)
            yield labels

    def _turned(self, aligned: Aligned, code: Ints, twins: Twins, both: int) -> Iterator[Ints]:
        """Labels of a run's entries, twins exchanging theirs, alike in all lists; `both` is the sum of the two."""
        rng, held = np.random.default_rng([self.shuffles.seed, 4]), np.flatnonzero(code >= 0)
        labels, row = code.copy(), aligned.row[held]
        while True:
            exchanging = np.zeros(len(self.groups.code), dtype=bool)
            exchanging[twins.rows[rng.random(len(twins.rows)) < 0.5]] = True
            labels[held] = np.where(exchanging[row], both - code[held], code[held])
            yield labels

    def _sample(self, aligned: Aligned, of: Estimand, twins: Twins, found: Answers) -> Sample:
        clusters = twins.clusters(found.clusters)
        return Sample(
            aligned.run.name, of, *twins.pair, found.total, found.weight, found.parts,
            clusters=clusters, distinct=aligned.distinct,
        )  # fmt: skip

    def _exchanged(self, aligned: Aligned, of: Estimand, twins: Twins, found: Answers) -> Sample:
        """A sample of twins, judged by exchanging the labels of each origin, the same way in all queries."""
        sample = self._sample(aligned, of, twins, found)
        weight = float(sample.two.sum())
        if sample.clusters is None or not weight:
            return sample
        null = exchanged(sample.clusters.origin_totals, draws=self.how.resamples, seed=[self.how.seed, 5]) / weight
        chance = Chance.of(sample.value, null)
        return replace(sample, chance=chance if self.banded else Chance(0.0, 0.0, chance.p))


def group_samples(
    aligned: Sequence[Aligned], groups: Groups, pairs: Sequence[Pair], asked: Sequence[GroupEstimand]
) -> list[Sample]:
    """Each run's answers to questions about groups, query by query, without what random labels give."""
    how, judgments = InferenceOptions(0, 0, "interval", "holm", "none"), aligned[0].judgments
    twins = {pair: Twins(pair, np.empty((0, 2), dtype=np.int64), None, judgments.documents) for pair in pairs}
    origins = np.arange(len(groups.code))
    card = Card(groups, twins, asked, how, Shuffles(judgments, 0, count=0), banded=True, origins=origins)
    return [sample for _, sample in card.of_groups(aligned)]
