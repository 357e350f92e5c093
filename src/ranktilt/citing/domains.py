"""Over which domains citations are spread, and how alike several answers to one query are.

Both describe the answers of an engine without regard to groups of pages, so that they do not enter
a verdict.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import polars as pl

from ranktilt.citing.prepare import CitationInputs
from ranktilt.citing.result import DomainCitations, Steadiness
from ranktilt.data.answers import Answers
from ranktilt.measures.citations.concentration import concentration
from ranktilt.measures.citations.stability import citation_overlap, jaccard

SEVERAL_GROUPS = "several"
"""Word in place of the group of a domain whose pages are of more than one group."""
_MOST_DOMAINS = 200
"""Most domains that a result lists."""


def domain_citations(inputs: CitationInputs) -> list[DomainCitations]:
    """Count what answers cite of each domain: the 200 most cited ones, the most cited first."""
    rows = inputs.rows
    domains = rows.group_by("domain").agg(
        # A domain with pages of several groups has no label of its own.
        pl.when(pl.col("label").drop_nulls().n_unique() > 1)
        .then(pl.lit(SEVERAL_GROUPS))
        .otherwise(pl.col("label").drop_nulls().first())
        .alias("label"),
        pl.col("is_cited").sum().alias("citations"),
        pl.col("is_consulted").sum().alias("consulted"),
        (pl.col("retrieval_rank") > 0).sum().alias("retrieved"),
    )
    order = domains.sort(
        ["citations", "consulted", "retrieved", "domain"], descending=[True, True, True, False]
    )
    return [
        DomainCitations(
            domain=domain,
            group=label,
            citations=citations,
            consulted=consulted,
            retrieved=retrieved,
        )
        for domain, label, citations, consulted, retrieved in order.head(_MOST_DOMAINS).iter_rows()
    ]


def steadiness(answers: Answers, inputs: CitationInputs) -> Steadiness:
    """Return how alike answers to one query are, and how concentrated citations are on domains.

    Every two answers to one query are compared, and all such pairs count equally.
    """
    cited = answers.cited.sort("answer", "citation_rank")
    # The cited pages of each answer in the order of their citations, by the answer's number.
    lists = dict(cited.group_by("answer", maintain_order=True).agg("page").iter_rows())
    similarities, overlaps = list[float](), list[float]()
    numbered = answers.answers.with_row_index("answer")
    for repeats in numbered.group_by("query", maintain_order=True).agg("answer")["answer"]:
        for first, second in combinations(repeats.to_list(), 2):
            first_pages, second_pages = lists.get(first, []), lists.get(second, [])
            similarities.append(jaccard(first_pages, second_pages))
            overlaps.append(citation_overlap(first_pages, second_pages))
    # Sorted, because `value_counts` has no fixed order, and the rounding of a sum depends on it.
    counts = inputs.rows.filter(pl.col("is_cited"))["domain"].value_counts()["count"].sort()
    domains = concentration(counts.to_numpy())
    return Steadiness(
        repeats=len(similarities),
        jaccard=_mean(similarities),
        overlap=_mean(overlaps),
        effective_domains=domains.effective_number,
        largest_share=domains.largest_share,
    )


def _mean(values: Sequence[float]) -> float:
    """Return the mean of the values that are not NaN; NaN where there are none."""
    known = [value for value in values if not np.isnan(value)]
    return float(np.mean(known)) if known else np.nan
