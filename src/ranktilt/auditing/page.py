"""What each document of a run's lists adds to its group, such as its share of the page, under random labels too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ranktilt.auditing.band import Shuffles
from ranktilt.auditing.evaluate import Aligned
from ranktilt.auditing.groups import Groups, Pair
from ranktilt.measures.base import GroupEstimand
from ranktilt.measures.ranking import Ranking
from ranktilt.progress import report
from ranktilt.statistics.two_way import Cells

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
_CELLS = 1 << 20
_BAND = "random band of the page"


@dataclass(frozen=True)
class Page:
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
    def of(cls, aligned: Aligned, asked: GroupEstimand, documents: int) -> Page:
        """Cut a run at the estimand's cutoff for a collection of so many documents."""
        ranking, keep = aligned.ranking.head(asked.cutoff)
        weights = asked.weights(ranking)
        if weights is None:
            raise ValueError(f"{asked!r} is no difference of two groups' sums")
        row = aligned.row[keep]
        held = (np.diff(ranking.offsets) > 0) & aligned.judgments.known_query
        row = np.where(row < documents, row, -1)
        return cls(ranking, row, aligned.judgment[keep], weights, held)

    def difference(self, signs: npt.NDArray[np.int8]) -> Floats:
        """NDSR_a − NDSR_b of each query; `signs` holds 1, −1 or 0 for each document of the collection."""
        sign = np.where(self.row >= 0, signs[self.row], 0)
        return np.where(self.known, self._sum(sign == 1) - self._sum(sign == -1), 0.0)

    def cells(self, signs: npt.NDArray[np.int8]) -> Cells:
        """List what each document on a page adds to `difference`; in place of an origin its row."""
        held = (self.row >= 0) & self.known[self.ranking.query]
        row, share = self.row[held], self.share[held]
        return Cells(self.ranking.query[held], row, signs[row] * share, share)

    def _sum(self, mine: npt.NDArray[np.bool_]) -> Floats:
        n = len(self.ranking.offsets) - 1
        return np.bincount(self.ranking.query, weights=np.where(mine, self.share, 0.0), minlength=n).astype(np.float64)

    def held(self, relevant: bool) -> tuple[Ints, Floats]:
        """List what relevant documents, by judgment, or the others, by row, hold of all pages together."""
        here = (self.row >= 0) & self.known[self.ranking.query] & ((self.judgment >= 0) == relevant)
        number = (self.judgment if relevant else self.row)[here]
        found = np.bincount(number, weights=self.share[here])
        held = np.flatnonzero(found)
        return held, found[held].astype(np.float64)


def page_bands(pages: Sequence[Page], groups: Groups, shuffles: Shuffles) -> Iterator[Floats]:
    """Compute each group's mean NDSR on the pages of each run under random labels.

    Parameters
    ----------
    pages : sequence of Page
        One a run.
    groups : Groups
        The grouping of the collection's documents.
    shuffles : Shuffles
        Labels of the relevant documents, shuffled within each query; their seed and number are those of all labels.

    Yields
    ------
    ndarray of float64, shape (n_groups, shuffles)
        Per run. Where a document is relevant it has a label of the query's relevant ones. Elsewhere it has the one
        that a shuffle of the collection's labels gives it, the same in all queries and runs, because one document on
        many pages is one label and not many; labels of documents that are relevant to some query are shuffled apart
        from the others. Documents without a label keep none: how many of them a page holds says nothing of two
        groups. What differs between two groups differs by their labels only.
    """
    for part in shuffles.batches(len(pages), len(groups.names)):
        share = (part.stop - part.start) / len(pages) / 2
        yield from _bands(pages[part], groups, shuffles, (part.start / len(pages), share))


def _bands(
    pages: Sequence[Page], groups: Groups, shuffles: Shuffles, progress: tuple[float, float]
) -> Iterator[Floats]:
    totals = [np.zeros((len(groups.names), shuffles.count)) for _ in pages]
    done, share = progress
    relevant, others = ([page.held(which) for page in pages] for which in (True, False))
    for rows, labels in shuffles.blocks(_BAND, done, share):
        for total, (place, weights) in zip(totals, relevant, strict=True):
            _count(total[:, rows], labels[:, place], weights)
    code, judged = groups.code.astype(np.int8), shuffles.judgments.row
    ever = np.zeros(len(code), dtype=bool)
    ever[judged[judged < len(code)]] = True
    strata = [np.flatnonzero(some & (code >= 0)) for some in (ever, ~ever)]
    parts = [[_within(stratum, *held) for held in others] for stratum in strata]
    rng = np.random.default_rng([shuffles.seed, 1])
    for start, stop in _blocks(shuffles.count, len(code)):
        for stratum, held in zip(strata, parts, strict=True):
            drawn = rng.permuted(np.broadcast_to(code[stratum], (stop - start, len(stratum))), axis=1)
            for total, (place, weights) in zip(totals, held, strict=True):
                _count(total[:, start:stop], drawn[:, place], weights)
        report(_BAND, round(shuffles.count * (done + share + share * stop / shuffles.count)), shuffles.count)
    return (total / max(int(page.known.sum()), 1) for total, page in zip(totals, pages, strict=True))


def _within(rows: Ints, held: Ints, weights: Floats) -> tuple[Ints, Floats]:
    """Places in `rows` of the documents that are held and among them, and what they hold."""
    _, place, mine = np.intersect1d(rows, held, assume_unique=True, return_indices=True)
    return place, weights[mine]


def _count(total: Floats, labels: npt.NDArray[np.int8], weights: Floats) -> None:
    """Add to each group what the documents with its label hold, draw by draw."""
    draws, bins = len(labels), len(total) + 1
    place = labels + (bins * np.arange(draws) + 1)[:, None]
    sums = np.bincount(place.ravel(), weights=np.tile(weights, draws), minlength=draws * bins)
    total += sums.reshape(draws, bins)[:, 1:].T


def signs_of(groups: Groups, pair: Pair) -> npt.NDArray[np.int8]:
    """1 for documents of the first group of a pair, −1 for those of the second, 0 for all others."""
    a, b = (groups.names.index(name) for name in pair)
    signs: npt.NDArray[np.int8] = (groups.code == a).astype(np.int8) - (groups.code == b).astype(np.int8)
    return signs


def share_difference(signs: npt.NDArray[np.int8]) -> float:
    """Difference of the two groups' shares of the collection."""
    return float(signs.sum(dtype=np.int64)) / max(len(signs), 1)


def all_paired(signs: npt.NDArray[np.int8], rows: Ints) -> bool:
    """Whether each document of either group has exactly one twin in the other."""
    sides = [
        np.unique(rows[:, side]).size == len(rows) == int((signs == sign).sum()) for side, sign in ((0, 1), (1, -1))
    ]
    return all(sides)


def _blocks(rows: int, width: int) -> list[tuple[int, int]]:
    step = max(_CELLS // max(width, 1), 1)
    return [(start, min(start + step, rows)) for start in range(0, rows, step)]
