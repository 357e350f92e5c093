"""NDKL: how far the top of a list, at every depth, is from the groups' target shares.

Documents with the same membership of groups have the same *kind* (see `GroupLists`): a document in
two groups is another kind than documents in either one. A *tie block* is a set of documents of one
list with the same score, of which every order is equally likely.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from ranktilt.measures.exposure.base import GroupLists, TargetedEstimand
from ranktilt.measures.ranking import (
    Bools,
    Floats,
    Ints,
    Ranking,
    block_positions,
    running_row_sums,
)


@dataclass(frozen=True, repr=False)
class NormalizedDiscountedDivergence(TargetedEstimand):
    """Divergence of the first 1, 2, 3, … documents from the target shares; the top counts most.

    ``Σ_i KL(D_i ‖ target)/log2(i + 1) ÷ Σ_i 1/log2(i + 1)``, with D_i the groups' shares of the
    first i documents, and KL the Kullback–Leibler divergence (Geyik, Ambler & Kenthapadi, KDD 2019,
    eq. 4). If documents are tied, both sums are expected values over all their orders. The sums
    begin at the first document with a label.
    """

    target: str = "candidates"

    name = "NDKL"
    targets: ClassVar[tuple[str, ...]] = ("candidates", "population", "mixed", "relevant")
    question = "is the top of the list mixed as it should be, at every depth?"
    outside = (
        "nearer to the target than random rankings",
        "farther from the target than random rankings",
    )
    bounds = (0.0, np.inf)
    term = "NDKL"
    definition = (
        "How far the top of a list, at every depth, is from the mix of groups that it should "
        "have: 0 is exact, larger is farther. It covers all groups together and favours none."
    )
    pattern = r"NDKL(?:\([^()]*\))?(?:@\d+)?"

    @np.errstate(divide="ignore", invalid="ignore")
    def per_query(self, lists: GroupLists) -> Floats:
        """Return NDKL of each query; NaN for a list with fewer than two groups.

        The terms and weights of both sums are computed for each tie block: directly for single
        documents, and by `_over_orders` for tied ones.
        """
        # parts[kind, group]: how much of a document of this kind is in the group.
        ranking, parts = lists.ranking, self.columns_of(lists.parts)
        target = self.shares(lists)[ranking.block_query]
        lengths = np.diff(ranking.offsets)
        depth = np.minimum(lengths, self.cutoff or len(lists.kind))[ranking.block_query]
        counts = _kind_counts(ranking, lists.kind, len(parts))
        running = running_row_sums(counts.astype(np.float64), ranking.block_query)
        labelled = running @ parts.any(axis=1)
        is_counted = (ranking.before < depth) & (labelled > 0)
        weights = np.where(is_counted, 1 / np.log2(2.0 + ranking.before), 0.0)
        shares = running @ parts / labelled[:, None]
        divergence = (_times_log(shares, shares) - _times_log(shares, target)).sum(axis=1)
        terms = np.where(weights > 0, weights * divergence, 0.0)
        is_tied = (ranking.sizes > 1) & (ranking.before < depth)
        # All tie blocks with the same number of documents of each kind are computed together.
        for indexes in _alike_blocks(counts, is_tied):
            kind_counts = counts[indexes[0]]
            blocks = _TieBlocks(
                kind_counts=kind_counts,
                parts=parts,
                above=running[indexes] - kind_counts,
                target=target[indexes],
                before=ranking.before[indexes],
                depth=depth[indexes],
            )
            terms[indexes], weights[indexes] = _over_orders(blocks)
        query, query_count = ranking.block_query, lists.queries
        total = np.bincount(query, weights=terms, minlength=query_count)
        weight = np.bincount(query, weights=weights, minlength=query_count)
        group_sizes = self.columns_of(lists.sums(np.ones(len(lists.kind))))
        group_count = (group_sizes > 0).sum(axis=1)
        is_defined = (weight > 0) & (group_count > 1) & np.isfinite(total)
        undefined = np.full(query_count, np.nan)
        divergences: Floats = np.divide(total, weight, out=undefined, where=is_defined)
        return divergences


def _kind_counts(ranking: Ranking, kind: Ints, kind_count: int) -> Ints:
    """Count the documents of each kind in each tie block, shape (n_blocks, n_kinds)."""
    block, _position = block_positions(ranking)
    cell_count = len(ranking.starts) * kind_count
    counts = np.bincount(block * kind_count + kind, minlength=cell_count)
    return counts.reshape(len(ranking.starts), kind_count)


def _alike_blocks(counts: Ints, is_tied: Bools) -> Sequence[Ints]:
    """Return the indexes of the tied blocks, in sets with the same counts of each kind."""
    tied = np.flatnonzero(is_tied)
    if not len(tied):
        return ()
    tied = tied[np.lexsort(counts[tied].T)]
    differs_from_last = np.diff(counts[tied], axis=0).any(axis=1)
    return np.split(tied, np.flatnonzero(differs_from_last) + 1)


@dataclass(frozen=True, kw_only=True, eq=False)
class _TieBlocks:
    """Tie blocks with the same number of documents of each kind."""

    kind_counts: Ints
    """Number of documents of each kind, the same in all blocks; shape (n_kinds,)."""
    parts: Floats
    """How much of a document of each kind is in each group, shape (n_kinds, n_groups)."""
    above: Floats
    """Number of documents of each kind above each block, shape (n_blocks, n_kinds)."""
    target: Floats
    """Target shares of each block's query, shape (n_blocks, n_groups)."""
    before: Ints
    """Number of documents above each block."""
    depth: Ints
    """Last rank that counts in each block's list."""


def _over_orders(blocks: _TieBlocks) -> tuple[Floats, Floats]:
    """Return the expected sums of weighted divergences and of weights over each block's ranks.

    The expectation is over all orders of the tied documents. Let X_g of the M labelled documents
    down to a rank be in group g. Then the divergence at this rank is

        KL = Σ_g (X_g·ln X_g − X_g·ln target_g) / M − ln M

    Each term has one group only. So the expectation of each group is enough, and no joint
    distribution of several groups is needed. Arrays below have a row for each number of labelled
    documents drawn from the block, and a column for each block.
    """
    kind_counts, parts, before = blocks.kind_counts, blocks.parts, blocks.before
    # Sum of each group's parts in the block, and in the documents above it.
    group_sums, group_sums_above = kind_counts @ parts, blocks.above @ parts
    is_labelled = parts.any(axis=1)
    size, labelled = int(kind_counts.sum()), int(kind_counts @ is_labelled)
    labelled_above = blocks.above @ is_labelled
    ranks = min(size, int((blocks.depth - before).max()))
    draws = min(labelled, ranks)
    drawn = np.arange(draws + 1.0)[:, None]
    # The terms −X_g·ln target_g are linear in X_g: their expectation grows evenly with each draw.
    target_terms = _times_log(group_sums, blocks.target).sum(axis=1)
    target_terms_above = _times_log(group_sums_above, blocks.target).sum(axis=1)
    sums = -target_terms_above - drawn / max(labelled, 1) * target_terms
    for group, column in enumerate(parts.T):
        classes = []
        for part in np.unique(column[column * kind_counts > 0]):
            classes.append((float(part), int(kind_counts[column == part].sum())))
        sums += _expected_x_log_x(labelled, draws, classes, group_sums_above[:, group])
    labelled_so_far = np.maximum(labelled_above + drawn, 1.0)
    divergence = np.maximum(sums / labelled_so_far - np.log(labelled_so_far), 0.0)
    rank = before + np.arange(1, ranks + 1)[:, None]
    weight = np.where(rank <= blocks.depth, 1 / np.log2(1.0 + rank), 0.0)
    # Probability of each number of labelled documents, down to each rank of the block.
    chance = _chances(size, labelled, ranks)[1:]
    terms = (weight * (chance @ divergence)).sum(axis=0)
    # Exactly 1 if the block has no labelled document, where the computed chance may be rounded.
    chance_of_none = chance[:, :1] if labelled else 1.0
    # Ranks count from the first labelled document on; before it, there are no shares to compare.
    has_none_above = labelled_above == 0
    weights = (weight * (1 - chance_of_none * has_none_above)).sum(axis=0)
    return terms, weights


def _times_log(factor: Floats, argument: Floats) -> Floats:
    """Return ``factor · ln argument``, 0 where the factor is 0."""
    return np.where(factor > 0, factor * np.log(argument), 0.0)


def _expected_x_log_x(
    size: int, draws: int, classes: Sequence[tuple[float, int]], start: Floats
) -> Floats:
    """Return E[X·ln X] after 0, 1, … `draws` documents are drawn, shape (draws + 1, len(start)).

    X is `start` plus the parts of one group that the drawn documents have. Documents are drawn from
    `size` of them without replacement. `classes` has each part above 0, with the number of
    documents that have it; all other documents have no part.

    The first class is handled here, for each number of its documents among the drawn ones. Given
    that number, the other classes are drawn from the rest, by recursion.
    """
    if not classes:
        return _times_log(start, start)[None]
    (part, count), *later_classes = classes
    chance = _chances(size, count, draws)
    sums = start + part * np.arange(chance.shape[1])[:, None]
    if not later_classes:
        expected: Floats = chance @ _times_log(sums, sums)
        return expected
    rest = size - count
    # inner[r, hits, block]: E[X·ln X] if `hits` of the first class and r of the rest are drawn.
    inner = _expected_x_log_x(rest, min(rest, draws), later_classes, sums.ravel())
    inner = inner.reshape(-1, *sums.shape)
    expected = np.zeros((draws + 1, len(start)))
    for hits in range(len(sums)):
        rows = slice(hits, min(hits + len(inner), draws + 1))
        expected[rows] += chance[rows, hits, None] * inner[: rows.stop - hits, hits]
    return expected


def _chances(size: int, count: int, draws: int) -> Floats:
    """Return the probability of each number of hits among the first 0, 1, … `draws` documents.

    They are the first documents of a block of `size` documents in random order, of which `count`
    are hits. The result has the shape (draws + 1, n_hits).
    """
    # Tables of many draws are large, so only a few of them are remembered.
    table = _remembered_small_table if draws <= 128 else _remembered_large_table
    return table(size, count, draws)


def _hypergeometric(size: int, count: int, draws: int) -> Floats:
    """Compute the table of `_chances`, of hypergeometric probabilities."""
    drawn = np.arange(draws + 1)[:, None]
    hits = np.arange(min(count, draws) + 1)
    miss_count = size - count
    log_factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1.0, size + 1)))])
    misses = np.clip(drawn - hits, 0, miss_count)
    # The logarithm of C(count, hits) · C(miss_count, misses) / C(size, drawn).
    logs = log_factorials[count] - log_factorials[hits] - log_factorials[count - hits]
    logs = logs + log_factorials[miss_count]
    logs = logs - log_factorials[misses] - log_factorials[miss_count - misses]
    logs += log_factorials[drawn] + log_factorials[size - drawn] - log_factorials[size]
    # Clipped misses are those of an impossible number of hits.
    chance: Floats = np.exp(np.where(misses == drawn - hits, logs, -np.inf))
    return chance


_remembered_small_table = lru_cache(1024)(_hypergeometric)
_remembered_large_table = lru_cache(8)(_hypergeometric)


NDKL = NormalizedDiscountedDivergence()
