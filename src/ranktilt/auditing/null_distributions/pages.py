"""Shares of the first ranks under random labels; a document has the same label in all lists.

A *page* is the first ranks of every list of a run, down to the estimand's cutoff. NDSR is the share
of these ranks that a group's documents hold, with a higher weight for higher ranks; ΔNDSR is the
difference between two groups. The *label* of a document is its group.

Relevant documents rank higher than others, and one group may have more of them. So labels of
relevant documents are shuffled apart from all others: `share_bands` draws both. `page_labels` lists
what each label adds, by a formula instead of draws.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ranktilt.auditing.groups import Groups
from ranktilt.auditing.judged_run import JudgedRun
from ranktilt.auditing.judgments import Judgments
from ranktilt.auditing.null_distributions.base import MOST_LABELS, LabelEffects, Shuffles
from ranktilt.measures.base import GroupEstimand
from ranktilt.measures.ranking import Floats, Ints, Ranking
from ranktilt.progress import report
from ranktilt.statistics.bootstrap import blocks
from ranktilt.statistics.two_way import Clusters, sums

Signs = npt.NDArray[np.int8]
"""1 for documents of a pair's first group, −1 for its second group, 0 for all others."""
_PROGRESS_TITLE = "random band of the page"
"""Title of the progress bar."""


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
    """Share of its list's first ranks that each entry holds; the shares of a list add up to 1."""
    known: npt.NDArray[np.bool_]
    """Which queries count."""

    @classmethod
    def from_run(cls, judged_run: JudgedRun, estimand: GroupEstimand, documents: int) -> TopRanks:
        """Cut a run at the estimand's cutoff.

        `documents` is the number of documents of the collection. Raises `ValueError` if the
        estimand gives documents no weights, so that it is no difference of two groups' sums.
        """
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
        """Whether each entry is a document of the collection, in a query that counts."""
        return (self.row >= 0) & self.known[self.ranking.query]

    def difference(self, signs: Signs) -> Floats:
        """Return NDSR_a − NDSR_b of each query; 0 for a query that does not count.

        a is the group with sign 1, b the group with sign −1.
        """
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
        is_summed = self.is_counted & ((self.judgment >= 0) == relevant)
        number = (self.judgment if relevant else self.row)[is_summed]
        shares = sums(number, self.share[is_summed])
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
        _, index_in_rows, index_here = np.intersect1d(
            rows, self.document, assume_unique=True, return_indices=True
        )
        return DocumentShares(document=index_in_rows, share=self.share[index_here])


def share_bands(pages: Sequence[TopRanks], groups: Groups, shuffles: Shuffles) -> Iterator[Floats]:
    """Draw each group's mean NDSR in each run under random labels.

    A relevant document gets a label of the query's relevant documents. Any other document gets one
    label from a shuffle of the collection's labels, the same in all queries and runs. Documents
    that are relevant to some query are shuffled separately; documents without a label keep none.
    Yields an array of shape (n_groups, shuffles) for each run.
    """
    for batch in shuffles.batches(len(pages), len(groups.names)):
        # Relevant documents are the first half of a batch's work, all others the second.
        half_share = (batch.stop - batch.start) / len(pages) / 2
        yield from _bands_of_batch(
            pages[batch], groups, shuffles, done=batch.start / len(pages), half_share=half_share
        )


def _bands_of_batch(
    pages: Sequence[TopRanks],
    groups: Groups,
    shuffles: Shuffles,
    *,
    done: float,
    half_share: float,
) -> Iterator[Floats]:
    """Draw the bands of runs whose results fit into memory together.

    For the progress bar, a share `done` of the work is already done; each of the two kinds of
    documents is another `half_share`.
    """
    totals = [np.zeros((len(groups.names), shuffles.count)) for _ in pages]
    relevant = [page.shares(relevant=True) for page in pages]
    others = [page.shares(relevant=False) for page in pages]
    for block, labels in shuffles.blocks(_PROGRESS_TITLE, done, half_share):
        _add_shares_of_runs([total[:, block] for total in totals], labels, relevant)
    for shuffles_done in _add_unjudged_shares(totals, others, groups, shuffles):
        step = shuffles.count * (done + half_share + half_share * shuffles_done / shuffles.count)
        report(_PROGRESS_TITLE, round(step), shuffles.count)
    for total, page in zip(totals, pages, strict=True):
        yield total / max(int(page.known.sum()), 1)


def _add_unjudged_shares(
    totals: Sequence[Floats], shares: Sequence[DocumentShares], groups: Groups, shuffles: Shuffles
) -> Iterator[int]:
    """Add the shares of documents that are not relevant, under shuffles of the collection's labels.

    Yields how many shuffles are done.
    """
    code, row_sets = groups.code.astype(np.int8), strata(groups, shuffles.judgments)
    shares_by_stratum = []
    for stratum in row_sets:
        shares_by_stratum.append([shares_of_run.within(stratum) for shares_of_run in shares])
    rng = np.random.default_rng([shuffles.seed, 1])
    for start, stop in blocks(shuffles.count, len(code), MOST_LABELS):
        drawn_totals = [total[:, start:stop] for total in totals]
        for stratum, shares_of_stratum in zip(row_sets, shares_by_stratum, strict=True):
            labels = np.broadcast_to(code[stratum], (stop - start, len(stratum)))
            _add_shares_of_runs(drawn_totals, rng.permuted(labels, axis=1), shares_of_stratum)
        yield stop


def strata(groups: Groups, judgments: Judgments) -> tuple[Ints, Ints]:
    """Return the rows of labelled documents that are relevant to some query, and of all others.

    Labels are shuffled within each of these two sets.
    """
    is_relevant = np.zeros(len(groups.code), dtype=bool)
    is_relevant[judgments.row[judgments.row < len(is_relevant)]] = True
    has_label = groups.code >= 0
    return np.flatnonzero(is_relevant & has_label), np.flatnonzero(~is_relevant & has_label)


def _add_shares_of_runs(
    totals: Sequence[Floats], labels: npt.NDArray[np.int8], shares: Sequence[DocumentShares]
) -> None:
    """Add to the groups of each run the shares of its documents, all under the same labels.

    `totals` has an array of shape (n_groups, draws) for each run. `labels` has the shape (draws,
    n_documents), with a column for each `DocumentShares.document`.
    """
    for total, shares_of_run in zip(totals, shares, strict=True):
        _add_shares(total, labels[:, shares_of_run.document], shares_of_run.share)


def _add_shares(total: Floats, labels: npt.NDArray[np.int8], shares: Floats) -> None:
    """Add to each group the shares of the documents with its label, draw by draw."""
    # Every draw has a bin for each group, after a first bin for documents without a label (−1).
    draws, bins = len(labels), len(total) + 1
    bin_number = labels + (bins * np.arange(draws) + 1)[:, None]
    bin_totals = np.bincount(
        bin_number.ravel(), weights=np.tile(shares, draws), minlength=draws * bins
    )
    total += bin_totals.reshape(draws, bins)[:, 1:].T


def page_labels(
    judged_run: JudgedRun, page: TopRanks, signs: Signs | Floats, groups: Groups, *, origins: Ints
) -> LabelEffects:
    """List what labels add to a difference of shares, if they are drawn as in `share_bands`.

    The difference of shares is Σ sign · share over documents, with the sign of a document's group.
    If labels are shuffled among some documents, a label adds (sign − mean sign) · (share − mean
    share), with the means over these documents. For a relevant document, they are its query's
    relevant documents. For any other, they are its stratum of the collection (`strata`), and shares
    are those in all queries together. Documents that are on no page have a share of 0, which is
    below the mean; what they add belongs to no query.

    `signs` has a number for each document, by row, and `origins` the number of its origin, which is
    the document with all its versions.
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
    draw_number = np.concatenate([judged_draw, unjudged_draw])
    return LabelEffects(clusters=clusters, draw_number=draw_number)


def _counted_judgments(judgments: Judgments, page: TopRanks) -> Ints:
    """Return the labelled judgments of queries that count."""
    return np.flatnonzero((judgments.group >= 0) & page.known[judgments.query])


def _judged_labels(judged_run: JudgedRun, page: TopRanks, signs: Signs | Floats) -> Clusters:
    """List what labels of relevant documents add; `Clusters.origin` is the document's row."""
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
    """List what labels of all other documents add; `Clusters.origin` is the document's row.

    (sign − mean sign) · (share − mean share) is computed as two products. The first rows of the
    result are (sign − mean sign) · share of each document on the page of a query. The last rows
    belong to no query (−1): they take (sign − mean sign) · mean share off, once for every document
    of a stratum.
    """
    is_unjudged = (page.judgment < 0) & page.is_counted
    is_unjudged[is_unjudged] = groups.code[page.row[is_unjudged]] >= 0
    query, row = page.ranking.query[is_unjudged], page.row[is_unjudged]
    share = page.share[is_unjudged]
    deviation = signs.astype(np.float64)
    document_shares = sums(row, share, len(signs))
    rows, totals = [row], []
    for stratum in strata(groups, judged_run.judgments):
        size = max(len(stratum), 1)
        deviation[stratum] -= signs[stratum].sum(dtype=np.float64) / size
        rows.append(stratum)
        totals.append(-deviation[stratum] * document_shares[stratum].sum() / size)
    rows_without_query = sum(len(total) for total in totals)
    return Clusters(
        query=np.concatenate([query, np.full(rows_without_query, -1)]),
        origin=np.concatenate(rows),
        total=np.concatenate([deviation[row] * share, *totals]),
        weight=np.concatenate([share, np.zeros(rows_without_query)]),
    )
