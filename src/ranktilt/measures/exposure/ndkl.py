"""NDKL: how far every prefix of a list lies from the groups' target shares, the top most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from ranktilt.measures.exposure.base import GroupLists, TargetedEstimand
from ranktilt.measures.ranking import Floats, Ints, in_block, running_rows


@dataclass(frozen=True, repr=False)
class NormalizedDiscountedDivergence(TargetedEstimand):
    """``Σ_i KL(D_i ‖ target)/log2(i + 1) ÷ Σ_i 1/log2(i + 1)``, D_i the groups' shares of the first i documents.

    Ties give the expected value over all orders of tied documents; of both sums, where documents
    without a label are tied with the first that has one. Geyik, Ambler & Kenthapadi, KDD 2019, eq.
    4.
    """

    target: str = "candidates"

    name = "NDKL"
    targets: ClassVar[tuple[str, ...]] = ("candidates", "population", "mixed", "relevant")
    question = "is every beginning of the list mixed as it should be?"
    outside = (
        "nearer to the target than random rankings",
        "farther from the target than random rankings",
    )
    bounds = (0.0, np.inf)
    term = "NDKL"
    definition = (
        "How far the beginnings of a list, from the first result on, are from the mix of groups that they should have: "
        "0 is exactly so; larger is farther. It speaks of all groups at once and favours none."
    )
    pattern = r"NDKL(?:\([^()]*\))?(?:@\d+)?"

    @np.errstate(divide="ignore", invalid="ignore")
    def per_query(self, lists: GroupLists) -> Floats:
        ranking, n, parts = lists.ranking, lists.queries, self.columns_of(lists.parts)
        query, before, shape = (
            ranking.block_query,
            ranking.before,
            (len(ranking.starts), len(parts)),
        )
        kinds = in_block(ranking)[0] * shape[1] + lists.kind
        counts = np.bincount(kinds, minlength=shape[0] * shape[1]).reshape(shape)
        running = running_rows(counts.astype(np.float64), query)
        target = self.shares(lists)[query]
        depth = np.minimum(np.diff(ranking.offsets), self.cutoff or len(lists.kind))[query]
        known = running @ parts.any(axis=1)
        weights = np.where((before < depth) & (known > 0), 1 / np.log2(2.0 + before), 0.0)
        shares = running @ parts / known[:, None]
        distance = (_times_log(shares, shares) - _times_log(shares, target)).sum(axis=1)
        terms = np.where(weights > 0, weights * distance, 0.0)
        tied = np.flatnonzero((ranking.sizes > 1) & (before < depth))
        tied = tied[np.lexsort(counts[tied].T)]
        # All blocks that hold the same documents are answered at once.
        for same in (
            np.split(tied, np.flatnonzero(np.diff(counts[tied], axis=0).any(axis=1)) + 1)
            if len(tied)
            else ()
        ):
            block = counts[same[0]]
            above = running[same] - block
            terms[same], weights[same] = _over_orders(
                block, parts, above, target[same], (before[same], depth[same])
            )
        total, whole = (
            np.bincount(query, weights=column, minlength=n) for column in (terms, weights)
        )
        listed = (self.columns_of(lists.sums(np.ones(len(lists.kind)))) > 0).sum(axis=1)
        defined = (whole > 0) & (listed > 1) & np.isfinite(total)
        found: Floats = np.divide(total, whole, out=np.full(n, np.nan), where=defined)
        return found


def _over_orders(
    block: Ints, parts: Floats, above: Floats, target: Floats, ranks: tuple[Ints, Ints]
) -> tuple[Floats, Floats]:
    """Sum weighted divergences, and weights, over the ranks of tie blocks that hold the same documents.

    `block` counts them by kind; `above` (blocks, kinds) and the first of `ranks` what stands above
    each block; the second is where its list ends. ``KL = Σ_g (X_g ln X_g − X_g ln target_g) / M −
    ln M`` for X_g of M documents: a sum of expectations of one group each, so that several groups
    need no joint distribution.
    """
    before, depth = ranks
    labelled, inside, start = parts.any(axis=1), block @ parts, above @ parts
    size, known, alone = int(block.sum()), int(block @ labelled), above @ labelled == 0
    seen = min(size, int((depth - before).max()))
    most = min(known, seen)
    drawn = np.arange(most + 1.0)[:, None]
    found = -_times_log(start, target).sum(axis=1) - drawn / max(known, 1) * _times_log(
        inside, target
    ).sum(axis=1)
    for group, column in enumerate(parts.T):
        classes = [
            (float(part), int(block[column == part].sum()))
            for part in np.unique(column[column * block > 0])
        ]
        found += _expected((known, most), classes, start[:, group])
    number = np.maximum(above @ labelled + drawn, 1.0)
    divergence = np.maximum(
        found / number - np.log(number), 0.0
    )  # by the number of labelled documents
    rank, chance = before + np.arange(1, seen + 1)[:, None], _chances(size, known, seen)[1:]
    weight = np.where(rank <= depth, 1 / np.log2(1.0 + rank), 0.0)
    terms = (weight * (chance @ divergence)).sum(axis=0)
    silent = (
        chance[:, :1] if known else 1.0
    )  # without a labelled document for sure, and not by rounding
    weights = (weight * (1 - silent * alone)).sum(axis=0)
    return terms, weights


def _times_log(one: Floats, two: Floats) -> Floats:
    """``one · ln two``, 0 where `one` is."""
    return np.where(one > 0, one * np.log(two), 0.0)


def _expected(
    sizes: tuple[int, int], classes: Sequence[tuple[float, int]], start: Floats
) -> Floats:
    """E[X ln X] once 0, 1, … so many of some documents are drawn; X is `start` plus their parts of a group.

    `classes` holds parts above 0 and how many documents have them; all others have none.
    """
    if not classes:
        return _times_log(start, start)[None]
    (size, draws), (part, count), others = sizes, classes[0], classes[1:]
    chance = _chances(size, count, draws)
    sums = start + part * np.arange(chance.shape[1])[:, None]
    if not others:
        found: Floats = chance @ _times_log(sums, sums)
        return found
    rest = size - count
    inner = _expected((rest, min(rest, draws)), others, sums.ravel()).reshape(-1, *sums.shape)
    found = np.zeros((draws + 1, len(start)))
    for hits in range(len(sums)):
        rows = slice(hits, min(hits + len(inner), draws + 1))
        found[rows] += chance[rows, hits, None] * inner[: rows.stop - hits, hits]
    return found


def _chances(size: int, count: int, draws: int) -> Floats:
    """Probability of each number of hits among the first 0, 1, … documents of a block, of which `count` are hits."""
    return (_SMALL if draws <= 128 else _LARGE)(size, count, draws)


def _hypergeometric(size: int, count: int, draws: int) -> Floats:
    drawn, hits, most = (
        np.arange(draws + 1)[:, None],
        np.arange(min(count, draws) + 1),
        size - count,
    )
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1.0, size + 1)))])
    misses = np.clip(drawn - hits, 0, most)
    ways = (
        logs[count]
        - logs[hits]
        - logs[count - hits]
        + logs[most]
        - logs[misses]
        - logs[most - misses]
    )
    ways += logs[drawn] + logs[size - drawn] - logs[size]
    chance: Floats = np.exp(np.where(misses == drawn - hits, ways, -np.inf))
    return chance


_SMALL, _LARGE = lru_cache(1024)(_hypergeometric), lru_cache(8)(_hypergeometric)


NDKL = NormalizedDiscountedDivergence()
