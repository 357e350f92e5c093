"""PropertyLift: whether the first ranks hold more of a property than the whole list.

A *property* is a number that each document has, such as its popularity, age or price.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ranktilt.measures.base import Estimand
from ranktilt.measures.ranking import Bools, Floats, Ranking, discount_spans


@dataclass(frozen=True, repr=False)
class PropertyEstimand(Estimand):
    """A question about where documents with more or less of a property rank.

    Its answer for a list is a weighted mean of the property minus the plain mean, over the
    documents whose value is known. In every method, `values` has the property of each entry; NaN if
    it is unknown. The answer is NaN for a list in which no two values differ, or no document
    counts.
    """

    unit = "list"
    kind = "property"

    def weights(self, ranking: Ranking, is_known: Bools) -> Floats:
        """Return the weight of each entry in its list's weighted mean; 0 if its value is unknown.

        `is_known` says which entries have a value.
        """
        raise NotImplementedError

    def of_values(self, ranking: Ranking, values: Floats) -> Floats:
        """Answer the question for each query, shape (n_queries,)."""
        lift = _list_sums(ranking, self.factors(ranking, values) * np.nan_to_num(values))
        lift[~self._counts(ranking, values)] = np.nan
        return lift

    def factors(self, ranking: Ranking, values: Floats) -> Floats:
        """Return the factor of each entry's value in the answer.

        The factors of a list add up to 0.
        """
        is_known = ~np.isnan(values)
        weighted = _shares_of_list(ranking, self.weights(ranking, is_known))
        factors = weighted - _shares_of_list(ranking, is_known.astype(np.float64))
        return np.where(self._counts(ranking, values)[ranking.query], factors, 0.0)

    def value_effects(self, ranking: Ranking, values: Floats) -> tuple[Floats, Floats]:
        """Return what each entry's value adds to the answer, and the entry's share of the weight.

        A value counts as its distance from the mean of the list. The standard error over documents
        is computed from this.
        """
        is_known = ~np.isnan(values)
        plain = _shares_of_list(ranking, is_known.astype(np.float64))
        mean = _list_sums(ranking, plain * np.nan_to_num(values))[ranking.query]
        effects = self.factors(ranking, values) * np.where(is_known, values - mean, 0.0)
        counts = self._counts(ranking, values)[ranking.query]
        weighted = _shares_of_list(ranking, self.weights(ranking, is_known))
        return effects, np.where(counts, weighted, 0.0)

    def means_of(self, ranking: Ranking, values: Floats) -> tuple[float, float]:
        """Return the weighted mean of the property, and its plain mean, over lists with an answer.

        Both are NaN if no list has an answer.
        """
        counts = self._counts(ranking, values)
        if not counts.any():
            return np.nan, np.nan
        is_known = ~np.isnan(values)
        weighted = _shares_of_list(ranking, self.weights(ranking, is_known))
        plain = _shares_of_list(ranking, is_known.astype(np.float64))
        known_values = np.nan_to_num(values)
        first = _list_sums(ranking, weighted * known_values)[counts]
        mean = _list_sums(ranking, plain * known_values)[counts]
        return float(first.mean()), float(mean.mean())

    def _counts(self, ranking: Ranking, values: Floats) -> Bools:
        """Tell which lists have an answer.

        Two values of the list must differ, and a document with a known value must have a weight.
        """
        count = len(ranking.offsets) - 1
        is_known = ~np.isnan(values)
        lowest, highest = np.full(count, np.inf), np.full(count, -np.inf)
        np.minimum.at(lowest, ranking.query[is_known], values[is_known])
        np.maximum.at(highest, ranking.query[is_known], values[is_known])
        weight = _list_sums(ranking, self.weights(ranking, is_known))
        counts: Bools = (highest > lowest) & (weight > 0)
        return counts


@dataclass(frozen=True, repr=False)
class PropertyLiftOfFirstRanks(PropertyEstimand):
    """Exposure-weighted mean of a property in the first k ranks, minus its mean in the list.

    ``Σ_{rank ≤ k} v·z ÷ Σ_{rank ≤ k} v − mean z``, with ``v = 1/log2(1 + rank)`` and z the property
    in standard deviations of the collection's documents. Documents without a value are left out.
    Tied documents have the mean exposure of their ranks. A list whose documents all have the same
    value has no answer. In a random order the expected value is 0.
    """

    name = "PropertyLift"
    question = "do the top ranks have more of a property than the whole list?"
    digits = 3
    suffix = " sd"
    term = "property lift"
    definition = (
        "Whether the top results have more of a property, such as popularity or age, than the "
        "whole list: the difference, in standard deviations of the collection's documents. Top "
        "ranks count most; a random order gives 0."
    )
    pattern = r"[Pp]roperty lifts?|PropertyLift(?:@(?:\d+|k))?"
    needs_cutoff = True

    def weights(self, ranking: Ranking, is_known: Bools) -> Floats:
        spans = discount_spans(ranking.before, ranking.sizes, self.cutoff)
        return np.repeat(spans / ranking.sizes, ranking.sizes) * is_known


def _list_sums(ranking: Ranking, values: Floats) -> Floats:
    """Return the sum of the entries of each list."""
    count = len(ranking.offsets) - 1
    return np.bincount(ranking.query, weights=values, minlength=count).astype(np.float64)


def _shares_of_list(ranking: Ranking, weights: Floats) -> Floats:
    """Return each entry's share of its list's sum; 0 where the sum is 0."""
    total = _list_sums(ranking, weights)[ranking.query]
    shares: Floats = np.divide(weights, total, out=np.zeros(len(weights)), where=total > 0)
    return shares


PropertyLift = PropertyLiftOfFirstRanks()
