"""Over which domains citations are spread, and how alike repeats of a query are."""

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
"""In place of the group of a domain whose pages are of more than one."""
_MOST_DOMAINS = 200
"""Domains that a result lists."""


def domain_citations(inputs: CitationInputs) -> list[DomainCitations]:
    """Count what answers cite of each domain, the most cited first."""
    rows = inputs.rows
    domains = rows.group_by("domain").agg(
        # Of a domain with pages of both groups no label is the domain's.
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
    """Compare the citations of every two repeats of a query, and count their domains."""
    cited = answers.cited.sort("answer", "citation_rank")
    lists = dict(cited.group_by("answer", maintain_order=True).agg("page").iter_rows())
    similarities, overlaps = list[float](), list[float]()
    numbered = answers.answers.with_row_index("answer")
    for repeats in numbered.group_by("query", maintain_order=True).agg("answer")["answer"]:
        for first, second in combinations(repeats.to_list(), 2):
            pages_a, pages_b = lists.get(first, []), lists.get(second, [])
            similarities.append(jaccard(pages_a, pages_b))
            overlaps.append(citation_overlap(pages_a, pages_b))
    counts = inputs.rows.filter(pl.col("is_cited"))["domain"].value_counts()["count"]
    over_domains = concentration(counts.to_numpy())
    return Steadiness(
        repeats=len(similarities),
        jaccard=_mean(similarities),
        overlap=_mean(overlaps),
        effective_domains=over_domains.effective_number,
        largest_share=over_domains.largest_share,
    )


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if not np.isnan(value)]
    return float(np.mean(known)) if known else np.nan
