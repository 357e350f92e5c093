"""Shares of the first ranks under random labels; a document has the same label in all lists."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

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
"""1 for documents of a pair's first group, −1 for its second group, 0 for all others."""
_CELLS = 1 << 20
"""Most labels to draw at a time, so that memory does not grow with the number of draws."""
_BAND = "random band of the page"
"""Name of the work in progress bars."""


@dataclass(frozen=True, kw_only=True)
class TopRanks:
    """The first ranks of one run, and the share of them that each document holds."""

    ranking: Ranking
    """The first ranks of every list."""
    row: Ints
    """Row of each entry's document in the collection; −1 for a document that is not in it."""
    judgment: Ints
    """Position of each entry among the relevant judgments; −1 if it is not relevant."""
    share: Floats
    """Share of its list's first ranks that each entry holds; see `page_shares`."""
    known: npt.NDArray[np.bool_]
    """Which queries count."""

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
        """List what each document adds to `difference`.

        `Clusters.origin` is the row of the document.
        """
        counted = self.is_counted
        row, share = self.row[counted], self.share[counted]
        return Clusters(
            query=self.ranking.query[counted], origin=row, total=signs[row] * share, weight=share
        )

    def _sum(self, is_member: npt.NDArray[np.bool_]) -> Floats:
        """Return the share that members of a group hold in each query."""
        count = len(self.ranking.offsets) - 1
        return sums(self.ranking.query, np.where(is_member, self.share, 0.0), count)

    def shares(self, *, relevant: bool) -> DocumentShares:
        """Sum each document's share over all lists: of relevant documents, or of the others."""
        is_chosen = self.is_counted & ((self.judgment >= 0) == relevant)
        number = (self.judgment if relevant else self.row)[is_chosen]
        shares = sums(number, self.share[is_chosen])
        documents = np.flatnonzero(shares)
        return DocumentShares(document=documents, share=shares[documents])


class DocumentShares(NamedTuple):
    """Documents on the first ranks, and the share that each of them holds in all lists together."""

    document: Ints
    """Position of the document among the judgments if it is relevant, else its row.

    After `within`, its index among the rows there.
    """
    share: Floats
    """Sum of the document's shares."""

    def within(self, rows: Ints) -> DocumentShares:
        """Keep the documents that are among `rows`, numbered by their index there."""
        _, index, chosen = np.intersect1d(
            rows, self.document, assume_unique=True, return_indices=True
        )
        return DocumentShares(document=index, share=self.share[chosen])


def share_bands(pages: Sequence[TopRanks], groups: Groups, shuffles: Shuffles) -> Iterator[Floats]:
    """Draw each group's mean NDSR in each run under random labels.

    A relevant document gets a label of the query's relevant documents. Any other document gets one
    label from a shuffle of the collection's labels, the same in all queries and runs. Documents
    that are relevant to some query are shuffled separately; documents without a label keep none.
    Yields an array of shape (n_groups, shuffles) for each run.
    """
    for part in shuffles.batches(len(pages), len(groups.names)):
        share = (part.stop - part.start) / len(pages) / 2
        yield from _bands(pages[part], groups, shuffles, (part.start / len(pages), share))


def _bands(
    pages: Sequence[TopRanks], groups: Groups, shuffles: Shuffles, progress: tuple[float, float]
) -> Iterator[Floats]:
    """Draw the bands of runs whose results fit into memory together."""
    totals = [np.zeros((len(groups.names), shuffles.count)) for _ in pages]
    done, share = progress
    relevant = [page.shares(relevant=True) for page in pages]
    others = [page.shares(relevant=False) for page in pages]
    for rows, labels in shuffles.blocks(_BAND, done, share):
        _count_all([total[:, rows] for total in totals], labels, relevant)
    for stop in _count_shuffled(totals, others, groups, shuffles):
        step = shuffles.count * (done + share + share * stop / shuffles.count)
        report(_BAND, round(step), shuffles.count)
    for total, page in zip(totals, pages, strict=True):
        yield total / max(int(page.known.sum()), 1)


def _count_shuffled(
    totals: Sequence[Floats], shares: Sequence[DocumentShares], groups: Groups, shuffles: Shuffles
) -> Iterator[int]:
    """Add up shares under shuffles of the collection's labels; yield how many shuffles are done."""
    code, row_sets = groups.code.astype(np.int8), strata(groups, shuffles.judgments)
    shares_of = []
    for stratum in row_sets:
        shares_of.append([shares_of_run.within(stratum) for shares_of_run in shares])
    rng = np.random.default_rng([shuffles.seed, 1])
    for start, stop in blocks(shuffles.count, len(code), _CELLS):
        drawn_totals = [total[:, start:stop] for total in totals]
        for stratum, shares_of_stratum in zip(row_sets, shares_of, strict=True):
            labels = np.broadcast_to(code[stratum], (stop - start, len(stratum)))
            _count_all(drawn_totals, rng.permuted(labels, axis=1), shares_of_stratum)
        yield stop


def strata(groups: Groups, judgments: Judgments) -> tuple[Ints, Ints]:
    """Return the rows of labelled documents that are relevant to some query, and of all others."""
    ever = np.zeros(len(groups.code), dtype=bool)
    ever[judgments.row[judgments.row < len(ever)]] = True
    labelled = groups.code >= 0
    return np.flatnonzero(ever & labelled), np.flatnonzero(~ever & labelled)


def _count_all(
    totals: Sequence[Floats], labels: npt.NDArray[np.int8], shares: Sequence[DocumentShares]
) -> None:
    """Add to the groups of each run the shares of its documents, all under the same labels."""
    for total, shares_of_run in zip(totals, shares, strict=True):
        _count(total, labels[:, shares_of_run.document], shares_of_run.share)


def _count(total: Floats, labels: npt.NDArray[np.int8], shares: Floats) -> None:
    """Add to each group the shares of the documents with its label, draw by draw."""
    draws, bins = len(labels), len(total) + 1
    bin_number = labels + (bins * np.arange(draws) + 1)[:, None]
    counts = np.bincount(bin_number.ravel(), weights=np.tile(shares, draws), minlength=draws * bins)
    total += counts.reshape(draws, bins)[:, 1:].T  # the first bin is of documents without a label


def page_labels(
    judged_run: JudgedRun, page: TopRanks, signs: Signs | Floats, groups: Groups, *, origins: Ints
) -> LabelEffects:
    """List what labels add to a difference of shares, if they are drawn as in `share_bands`.

    Labels and shares are both measured from their means: for a relevant document, over its query's
    relevant documents; for any other, over its stratum of the collection in all queries. Documents
    that are on no page hold less than the mean share; this difference belongs to no query.
    """
    judged = _judged_labels(judged_run, page, signs)
    unjudged = _unjudged_labels(judged_run, page, signs, groups)
    rows = np.concatenate([judged.origin, unjudged.origin])
    clusters = Clusters(
        query=np.concatenate([judged.query, unjudged.query]),
        origin=origins[rows],
        total=np.concatenate([judged.total, unjudged.total]),
        weight=np.concatenate([judged.weight, unjudged.weight]),
    )
    judgments = judged_run.judgments
    counted = _counted_judgments(judgments, page)
    # A shuffle gives a relevant document one label a query, any other one label in all queries.
    judged_draw = judgments.first_of_equal[counted]
    unjudged_draw = len(judgments.query) + unjudged.origin
    draw = np.concatenate([judged_draw, unjudged_draw])
    return LabelEffects(clusters=clusters, draw=draw)


def _counted_judgments(judgments: Judgments, page: TopRanks) -> Ints:
    """Return the labelled judgments of queries that count."""
    return np.flatnonzero((judgments.group >= 0) & page.known[judgments.query])


def _judged_labels(judged_run: JudgedRun, page: TopRanks, signs: Signs | Floats) -> Clusters:
    """List what labels of relevant documents add, by row."""
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
    total = (sign - mean_sign) * (shares - mean_share)
    return Clusters(query=query, origin=row, total=total, weight=shares)


def _unjudged_labels(
    judged_run: JudgedRun, page: TopRanks, signs: Signs | Floats, groups: Groups
) -> Clusters:
    """List what labels of all other documents add, by row.

    The first rows are documents on the first ranks of a query. The last rows have −1 for their
    query: they are what each document adds to the mean label that these are compared with.
    """
    is_unjudged = (page.judgment < 0) & page.is_counted
    is_unjudged[is_unjudged] = groups.code[page.row[is_unjudged]] >= 0
    query, row = page.ranking.query[is_unjudged], page.row[is_unjudged]
    share = page.share[is_unjudged]
    sign = signs.astype(np.float64)
    by_document = sums(row, share, len(signs))
    rows, totals = [row], []
    for stratum in strata(groups, judged_run.judgments):
        size = max(len(stratum), 1)
        sign[stratum] -= signs[stratum].sum(dtype=np.float64) / size
        rows.append(stratum)
        totals.append(-sign[stratum] * by_document[stratum].sum() / size)
    absent = sum(len(total) for total in totals)
    return Clusters(
        query=np.concatenate([query, np.full(absent, -1)]),
        origin=np.concatenate(rows),
        total=np.concatenate([sign[row] * share, *totals]),
        weight=np.concatenate([share, np.zeros(absent)]),
    )
