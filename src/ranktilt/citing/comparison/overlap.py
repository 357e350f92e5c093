"""How alike two engines cite: pages and domains that both cite for a query.

Even two answers of one engine to the same query differ. So the similarity of two engines is shown
next to the similarity of answers of each engine, which two equal engines would reach.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations, product, starmap
from typing import Literal

import numpy as np
from scipy import special

from ranktilt.citing.comparison.result import CitationOverlap
from ranktilt.citing.pages.kept_pages import KeptPages
from ranktilt.measures.citations.base import Floats
from ranktilt.measures.citations.stability import citation_overlap, jaccard
from ranktilt.statistics.bootstrap import FEWEST_ROWS

Similarity = Callable[[Sequence[str], Sequence[str]], float]
"""Function that returns the similarity of two lists of citations, 0 to 1; NaN if both are empty."""
CitationLists = dict[str, list[list[str]]]
"""For each query, the list of citations of each of its answers."""
_MEASURES: dict[Literal["Jaccard", "rank-biased overlap"], Similarity] = {
    "Jaccard": jaccard,
    "rank-biased overlap": citation_overlap,
}
"""Measures of similarity by their names in a result."""
_COLUMNS: dict[Literal["pages", "domains"], str] = {"pages": "page", "domains": "domain"}
"""What is compared, with the column of `KeptPages` that holds it."""


def citation_overlaps(new: KeptPages, old: KeptPages) -> Iterator[CitationOverlap]:
    """Yield how alike two engines cite pages, and domains if there are any, by each measure."""
    has_domains = any((pages.pages["domain"] != pages.pages["page"]).any() for pages in (new, old))
    for noun, column in _COLUMNS.items():
        if noun == "domains" and not has_domains:
            continue
        new_lists, old_lists = _lists_by_query(new, column), _lists_by_query(old, column)
        for name, similarity in _MEASURES.items():
            by_query = _similarity_between(new_lists, old_lists, similarity)
            low, high = _mean_interval(by_query)
            yield CitationOverlap(
                of=noun,
                measure=name,
                value=_mean(by_query),
                low=low,
                high=high,
                within_new=_similarity_within(new_lists, similarity),
                within_old=_similarity_within(old_lists, similarity),
                queries=len(by_query),
            )


def _lists_by_query(pages: KeptPages, column: str) -> CitationLists:
    """Return the pages, or domains, that each answer cites, by query; `column` says which."""
    lists = pages.citation_lists(column).group_by("query", maintain_order=True).agg("cited")
    return dict(lists.iter_rows())


def _similarity_between(new: CitationLists, old: CitationLists, similarity: Similarity) -> Floats:
    """Return, for each query, the mean similarity of an answer of one engine and one of the other.

    Queries to which neither engine cites a page are left out.
    """
    means = []
    for query, answers in new.items():
        means.append(_mean(starmap(similarity, product(answers, old[query]))))
    return _known_values(means)


def _similarity_within(lists: CitationLists, similarity: Similarity) -> float:
    """Return how alike two answers of one engine to one query are, on average over queries.

    NaN if it answered each query once.
    """
    means = []
    for answers in lists.values():
        means.append(_mean(starmap(similarity, combinations(answers, 2))))
    return _mean(means)


def _known_values(values: Iterable[float]) -> Floats:
    """Return the values that are not NaN."""
    array = np.fromiter(values, dtype=np.float64)
    known: Floats = array[~np.isnan(array)]
    return known


def _mean(values: Iterable[float]) -> float:
    """Return the mean of the values that are not NaN; NaN where there are none."""
    known = _known_values(values)
    return float(known.mean()) if len(known) else np.nan


def _mean_interval(values: Floats) -> tuple[float, float]:
    """Return both ends of the 95 % t interval of a mean over queries, within 0 and 1.

    NaN with too few queries.
    """
    if len(values) < FEWEST_ROWS:
        return np.nan, np.nan
    error = float(values.std(ddof=1)) / np.sqrt(len(values))
    half_width = error * float(special.stdtrit(len(values) - 1, 0.975))
    mean = float(values.mean())
    return max(mean - half_width, 0.0), min(mean + half_width, 1.0)
