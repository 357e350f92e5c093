"""Share@k: a group's share of the first k ranks, compared with its share of the whole list.

In this file, the *lead* of the first group is its share minus the share of the second group, and a
*label* says which of the two groups a document is of.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ranktilt.measures.base import GroupEstimand
from ranktilt.measures.ranking import (
    Bools,
    Floats,
    Ints,
    Ranking,
    probability_within,
    share_of_query,
)


@dataclass(frozen=True, repr=False)
class ShareOfFirstRanks(GroupEstimand):
    """A group's share of the first k documents, minus its share of the whole list, in points.

    Of the documents of both groups: ``a_k/(a_k + b_k) − a/(a + b)``, where a and b count the
    documents in the query's whole list, and a_k and b_k those in the first k ranks. A query whose
    list has documents of one group only says nothing.
    """

    name = "Share"
    question = "does a group get more of the top ranks than of the whole list?"
    bounds = (-1.0, 1.0)
    scale = 100.0
    suffix = " points"
    term = "share@k"
    definition = (
        "The first group's share of the top ranks minus its share of the whole list, in points. "
        "Above 0, it gets more of the top than of the list."
    )
    pattern = r"[Ss]hare@(?:\d+|k)"
    needs_cutoff = True

    def contrast(self, ranking: Ranking, first: Bools, second: Bools) -> Floats:
        """Return the difference of the two shares for each query.

        NaN if a list has one group only.
        """
        count_a, count_b = ranking.count(first), ranking.count(second)
        # The lead of the first group is its share minus the second group's share.
        list_lead = _quotient(count_a - count_b, count_a + count_b)
        # Entries below the cutoff would only add zeros, so they are left out.
        head, is_kept = ranking.head(self.cutoff)
        within = probability_within(head, self.cutoff)
        sign = first[is_kept].astype(np.float64) - second[is_kept]
        either = first[is_kept].astype(np.float64) + second[is_kept]
        top_lead = _lead_of_first_group(head, sign * within, either * within)
        has_both = np.abs(list_lead) < 1
        # A share is (1 + lead) / 2, so half the difference of two leads is the difference of the
        # shares. Computed so, it changes only its sign if the groups are swapped.
        contrasts: Floats = np.where(has_both, (top_lead - list_lead) / 2, np.nan)
        return contrasts

    def depends_on_order(self, lengths: Ints) -> Bools:
        # A list that ends within the first ranks has the same documents in them as in the whole.
        return np.ones(len(lengths), dtype=bool) if self.cutoff is None else lengths > self.cutoff

    def label_effects(self, ranking: Ranking, first: Bools, second: Bools) -> tuple[Floats, Floats]:
        """Return the effect of each label on the total of its query, and on its weight.

        A document has a share of the first k ranks, and a share of the list, which is the same for
        all its documents. The effect on the total is (label − mean label of the list) · (share of
        the first ranks − share of the list), where a label is 1 in the first group and 0 in the
        second. The effect on the weight is the share of the first ranks.
        """
        either = (first | second).astype(np.float64)
        top_share = share_of_query(ranking, probability_within(ranking, self.cutoff) * either)
        list_share = share_of_query(ranking, either)
        is_known = ~np.isnan(self.contrast(ranking, first, second))[ranking.query]
        query_count = len(ranking.offsets) - 1
        # Computed from labels 1 and −1 instead of 1 and 0, the effect changes only its sign if the
        # groups are swapped.
        sign = first.astype(np.float64) - second
        lead = np.bincount(ranking.query, weights=sign, minlength=query_count)
        count = np.maximum(np.bincount(ranking.query, weights=either, minlength=query_count), 1.0)
        label = (sign - (lead / count)[ranking.query]) / 2
        effect = np.where(is_known, label * (top_share - list_share), 0.0)
        return effect, np.where(is_known, top_share, 0.0)

    def label_coefficients(self, ranking: Ranking, labelled: Bools) -> Floats:
        # Every label is that of one of the two groups. With a third group, the two groups' counts
        # would be in the denominators, and the answer not linear.
        is_labelled = labelled.astype(np.float64)
        top_share = share_of_query(ranking, probability_within(ranking, self.cutoff) * is_labelled)
        list_share = share_of_query(ranking, is_labelled)
        return np.nan_to_num(top_share - list_share) / 2

    def composition(self, ranking: Ranking, first: Bools, second: Bools) -> dict[str, float]:
        """Return the mean share of each group in the whole lists, as ``even_a`` and ``even_b``.

        These are shares of both groups' documents. ``neither`` is the mean share of the lists that
        other documents hold, of a third group or without a label.
        """
        is_known = ~np.isnan(self.contrast(ranking, first, second))
        if not is_known.any():
            return {"even_a": np.nan, "even_b": np.nan, "neither": np.nan}
        query_count = len(is_known)
        size = np.bincount(ranking.query, minlength=query_count)[is_known]
        size_a = np.bincount(ranking.query, weights=first, minlength=query_count)[is_known]
        size_b = np.bincount(ranking.query, weights=second, minlength=query_count)[is_known]
        return {
            "even_a": float(np.mean(size_a / (size_a + size_b))),
            "even_b": float(np.mean(size_b / (size_a + size_b))),
            "neither": float(np.mean((size - size_a - size_b) / size)),
        }


def _lead_of_first_group(ranking: Ranking, signed: Floats, unsigned: Floats) -> Floats:
    """Return the share of the first group minus the share of the second, for each query.

    NaN for a query without documents of either group. `unsigned` has the weight of each entry;
    `signed` has the same, but negative for entries of the second group.
    """
    query_count = len(ranking.offsets) - 1
    total = np.bincount(ranking.query, weights=unsigned, minlength=query_count)
    ahead = np.bincount(ranking.query, weights=signed, minlength=query_count)
    return _quotient(ahead, total)


def _quotient(ahead: npt.NDArray[Any], total: npt.NDArray[Any]) -> Floats:
    """Divide two columns; NaN where the total is 0."""
    undefined = np.full(len(total), np.nan)
    lead: Floats = np.divide(ahead, total, out=undefined, where=total > 0)
    return lead


Share = ShareOfFirstRanks()
