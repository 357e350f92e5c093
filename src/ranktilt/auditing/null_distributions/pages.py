"""Shares of the first ranks under random labels: a document has one label in all lists."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ranktilt.auditing.groups import Groups
from ranktilt.auditing.judged_run import JudgedRun
from ranktilt.auditing.judgments import Judgments
from ranktilt.auditing.null_distributions.base import LabelEffects, Shuffles
from ranktilt.measures.base import GroupEstimand
from ranktilt.measures.ranking import Floats, Ints, Ranking
from ranktilt.progress import report
from ranktilt.statistics.bootstrap import blocks
from ranktilt.statistics.two_way import Clusters, sums

Signs = npt.NDArray[np.int8]
"""1 for documents of the first group of a pair, −1 for those of the second, 0 for all others."""
_CELLS = 1 << 20
_BAND = "random band of the page"


@dataclass(frozen=True)
class TopRanks:
    """The first ranks of one run, and what of them each document holds."""

    ranking: Ranking
    row: Ints
    """Row in the collection of each document on it; -1 for one that it does not hold."""
    judgment: Ints
    """Position among the relevant judgments; -1 where it is not relevant."""
    share: Floats
    known: npt.NDArray[np.bool_]
    """Queries that count."""

    @classmethod
    def from_run(cls, judged_run: JudgedRun, estimand: GroupEstimand, documents: int) -> TopRanks:
        """Cut a run at the estimand's cutoff for a collection of so many documents."""
        ranking, keep = judged_run.ranking.head(estimand.cutoff)
        weights = estimand.weights(ranking)
        if weights is None:
            raise ValueError(f"{estimand!r} is no difference of two groups' sums")
        row = judged_run.row[keep]
        known = (np.diff(ranking.offsets) > 0) & judged_run.judgments.known_query
        return cls(
            ranking=ranking,
            row=np.where(row < documents, row, -1),
            judgment=judged_run.judgment[keep],
            share=weights,
            known=known,
        )

    @property
    def is_counted(self) -> npt.NDArray[np.bool_]:
        """Whether each document is of the collection, in a query that counts."""
        return (self.row >= 0) & self.known[self.ranking.query]

    def difference(self, signs: Signs) -> Floats:
        """Return NDSR_a − NDSR_b of each query."""
        sign = np.where(self.row >= 0, signs[self.row], 0)
        return np.where(self.known, self._sum(sign == 1) - self._sum(sign == -1), 0.0)

    def clusters(self, signs: Signs) -> Clusters:
        """List what each document on a page adds to `difference`; in place of an origin its row."""
        held = self.is_counted
        row, share = self.row[held], self.share[held]
        return Clusters(self.ranking.query[held], row, signs[row] * share, share)

    def _sum(self, mine: npt.NDArray[np.bool_]) -> Floats:
        count = len(self.ranking.offsets) - 1
        return sums(self.ranking.query, np.where(mine, self.share, 0.0), count)

    def held(self, relevant: bool) -> tuple[Ints, Floats]:
        """List what documents hold of all pages together: relevant ones, or the others, by row."""
        here = self.is_counted & ((self.judgment >= 0) == relevant)
        number = (self.judgment if relevant else self.row)[here]
        shares = sums(number, self.share[here])
        documents = np.flatnonzero(shares)
        return documents, shares[documents]


def share_bands(pages: Sequence[TopRanks], groups: Groups, shuffles: Shuffles) -> Iterator[Floats]:
    """Draw each group's mean NDSR on the first ranks of each run under random labels.

    A relevant document has a label of the query's relevant ones; any other the one that a shuffle
    of the collection's labels gives it, the same in all queries and runs, because one document in
    many lists is one label. Labels of documents that are relevant to some query are shuffled apart;
    documents without a label keep none. Yields an array of the shape (n_groups, shuffles) for each
    run.
    """
    for part in shuffles.batches(len(pages), len(groups.names)):
        share = (part.stop - part.start) / len(pages) / 2
        yield from _bands(pages[part], groups, shuffles, (part.start / len(pages), share))


def _bands(
    pages: Sequence[TopRanks], groups: Groups, shuffles: Shuffles, progress: tuple[float, float]
) -> Iterator[Floats]:
    totals = [np.zeros((len(groups.names), shuffles.count)) for _ in pages]
    done, share = progress
    relevant = [page.held(relevant=True) for page in pages]
    others = [page.held(relevant=False) for page in pages]
    for rows, labels in shuffles.blocks(_BAND, done, share):
        for total, (place, weights) in zip(totals, relevant, strict=True):
            _count(total[:, rows], labels[:, place], weights)
    code, apart = groups.code.astype(np.int8), strata(groups, shuffles.judgments)
    parts = [[_within(stratum, *held) for held in others] for stratum in apart]
    rng = np.random.default_rng([shuffles.seed, 1])
    for start, stop in blocks(shuffles.count, len(code), _CELLS):
        for stratum, held in zip(apart, parts, strict=True):
            labels_of_stratum = np.broadcast_to(code[stratum], (stop - start, len(stratum)))
            drawn = rng.permuted(labels_of_stratum, axis=1)
            for total, (place, weights) in zip(totals, held, strict=True):
                _count(total[:, start:stop], drawn[:, place], weights)
        step = shuffles.count * (done + share + share * stop / shuffles.count)
        report(_BAND, round(step), shuffles.count)
    for total, page in zip(totals, pages, strict=True):
        yield total / max(int(page.known.sum()), 1)


def strata(groups: Groups, judgments: Judgments) -> tuple[Ints, Ints]:
    """Return rows of the labelled documents that are relevant to some query, and of the others."""
    ever = np.zeros(len(groups.code), dtype=bool)
    ever[judgments.row[judgments.row < len(ever)]] = True
    labelled = groups.code >= 0
    return np.flatnonzero(ever & labelled), np.flatnonzero(~ever & labelled)


def _within(rows: Ints, held: Ints, weights: Floats) -> tuple[Ints, Floats]:
    """Places in `rows` of the documents that are held and among them, and what they hold."""
    _, place, mine = np.intersect1d(rows, held, assume_unique=True, return_indices=True)
    return place, weights[mine]


def _count(total: Floats, labels: npt.NDArray[np.int8], weights: Floats) -> None:
    """Add to each group what the documents with its label hold, draw by draw."""
    draws, bins = len(labels), len(total) + 1
    place = labels + (bins * np.arange(draws) + 1)[:, None]
    held = np.bincount(place.ravel(), weights=np.tile(weights, draws), minlength=draws * bins)
    total += held.reshape(draws, bins)[:, 1:].T


def page_labels(
    judged_run: JudgedRun, page: TopRanks, signs: Signs, groups: Groups, origins: Ints
) -> LabelEffects:
    """List what labels add to a difference of shares of the page, as `share_bands` draws them.

    Labels and shares are both taken beside their means: of a relevant document, those of its
    query's relevant ones; of any other, those of its stratum of the collection over all queries.
    What the documents of a stratum have less than their mean share by not being on a page is no
    query's.
    """
    judged = _judged_labels(judged_run, page, signs)
    other = _other_labels(judged_run, page, signs, groups)
    rows = np.concatenate([judged.origin, other.origin])
    clusters = Clusters(
        np.concatenate([judged.query, other.query]),
        origins[rows],
        np.concatenate([judged.total, other.total]),
        np.concatenate([judged.weight, other.weight]),
    )
    judgments = judged_run.judgments
    counted = _counted_judgments(judgments, page)
    # A shuffle gives a relevant document one label a query, any other one label in all queries.
    draw = np.concatenate([judgments.first_of_equal[counted], len(judgments.query) + other.origin])
    return LabelEffects(clusters, draw)


def _counted_judgments(judgments: Judgments, page: TopRanks) -> Ints:
    return np.flatnonzero((judgments.group >= 0) & page.known[judgments.query])


def _judged_labels(judged_run: JudgedRun, page: TopRanks, signs: Signs) -> Clusters:
    """What labels of relevant documents add, by row."""
    judgments = judged_run.judgments
    counted = _counted_judgments(judgments, page)
    query, row = judgments.query[counted], judgments.row[counted]
    count = len(judgments.queries)
    sizes = np.maximum(np.bincount(query, minlength=count), 1)
    is_relevant = page.judgment >= 0
    shares = sums(page.judgment[is_relevant], page.share[is_relevant], len(judgments.query))
    shares = shares[counted]
    sign = signs[row].astype(np.float64)
    mean_share = (sums(query, shares, count) / sizes)[query]
    mean_sign = (sums(query, sign, count) / sizes)[query]
    return Clusters(query, row, (sign - mean_sign) * (shares - mean_share), shares)


def _other_labels(judged_run: JudgedRun, page: TopRanks, signs: Signs, groups: Groups) -> Clusters:
    """What labels of all other documents add, by row; last of those on no page, of query −1."""
    is_other = (page.judgment < 0) & page.is_counted
    is_other[is_other] = groups.code[page.row[is_other]] >= 0
    query, row, share = page.ranking.query[is_other], page.row[is_other], page.share[is_other]
    sign = signs.astype(np.float64)
    by_document = sums(row, share, len(signs))
    rows, totals = [row], []
    for stratum in strata(groups, judged_run.judgments):
        size = max(len(stratum), 1)
        sign[stratum] -= signs[stratum].sum(dtype=np.int64) / size
        rows.append(stratum)
        totals.append(-sign[stratum] * by_document[stratum].sum() / size)
    absent = sum(len(total) for total in totals)
    return Clusters(
        np.concatenate([query, np.full(absent, -1)]),
        np.concatenate(rows),
        np.concatenate([sign[row] * share, *totals]),
        np.concatenate([share, np.zeros(absent)]),
    )
