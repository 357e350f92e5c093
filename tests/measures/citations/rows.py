"""Rows of citations for tests, from a table of text or from chance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ranktilt.measures.citations.base import CitationRows, Ints


def citation_rows(table: str) -> CitationRows:
    """Return the rows of a table: query, cluster, group, what happened, rank (0 for none).

    What happened is ``cited``, ``first`` (cited before all others) or ``-``.
    """
    lines = [line.split() for line in table.strip().splitlines()]
    query, cluster, group, event, rank = (list(column) for column in zip(*lines, strict=True))
    questions, clusters = _numbers(query), _numbers(cluster)
    return CitationRows(
        question=questions,
        cluster=clusters,
        weight=np.ones(len(lines)),
        is_a=np.array(group) == "a",
        is_cited=np.isin(event, ["cited", "first"]),
        is_first=np.array(event) == "first",
        is_consulted=np.ones(len(lines), dtype=bool),
        retrieval_rank=np.array(rank, dtype=np.int64),
        cited_words=np.full(len(lines), np.nan),
    )


def _numbers(names: list[str]) -> Ints:
    """Return the number of each name, from 0, in their sorted order."""
    return np.unique(names, return_inverse=True)[1].astype(np.int64)


def random_world(seed: int, **settings: float) -> CitationRows:
    """Return citations of a world whose tilts are known.

    Settings: ``questions``, ``domains``, ``pages`` a question, ``share`` of domains of group a,
    ``selection`` (log odds of a citation for group a), ``exposure`` (how far group a is ranked
    up), ``rank_effect`` (log odds lost by the log of the rank), ``spread`` (of domains) and
    ``engine`` (another engine's answers to the same questions, from the same pages).
    """
    chosen: Mapping[str, Any] = {
        "questions": 60,
        "domains": 200,
        "pages": 15,
        "share": 0.4,
        "selection": 0.0,
        "exposure": 0.0,
        "rank_effect": 0.0,
        "spread": 0.5,
        "engine": 0,
        **settings,
    }
    rng = np.random.default_rng(seed)
    is_a = rng.random(chosen["domains"]) < chosen["share"]
    quality = rng.normal(0, chosen["spread"], chosen["domains"])
    chances = np.random.default_rng([seed, int(chosen["engine"])]) if chosen["engine"] else rng
    questions, domains, ranks, cited = [], [], [], []
    for question in range(chosen["questions"]):
        listed = rng.integers(0, chosen["domains"], chosen["pages"])
        score = rng.normal(0, 1, chosen["pages"]) + chosen["exposure"] * is_a[listed]
        rank = np.argsort(np.argsort(-score)) + 1
        odds = -1.0 + quality[listed] + chosen["selection"] * is_a[listed]
        odds -= chosen["rank_effect"] * np.log(rank)
        questions.append(np.full(chosen["pages"], question))
        domains.append(listed)
        ranks.append(rank)
        cited.append(chances.random(chosen["pages"]) < 1 / (1 + np.exp(-odds)))
    cluster = np.concatenate(domains)
    count = len(cluster)
    return CitationRows(
        question=np.concatenate(questions).astype(np.int64),
        cluster=cluster.astype(np.int64),
        weight=np.ones(count),
        is_a=is_a[cluster],
        is_cited=np.concatenate(cited),
        is_first=np.zeros(count, dtype=bool),
        is_consulted=np.ones(count, dtype=bool),
        retrieval_rank=np.concatenate(ranks).astype(np.int64),
        cited_words=np.full(count, np.nan),
    )
