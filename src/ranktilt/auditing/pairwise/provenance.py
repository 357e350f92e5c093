"""Provenance of a pairwise audit: how it was made, so that it can be repeated."""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from typing import Any

import polars as pl

from ranktilt._version import __version__
from ranktilt.auditing.pairwise.decisions import Decisions
from ranktilt.auditing.pairwise.options import PairwiseOptions
from ranktilt.data.collection import Collection
from ranktilt.data.runs.run import Run


def pairwise_spec(
    decisions: Decisions,
    collection: Collection,
    options: PairwiseOptions,
    *,
    candidates: Run | None,
    query_count: int | None,
) -> dict[str, Any]:
    """Return the options and inputs behind a result.

    `candidates` is the run that pairs were drawn from, if any. `query_count` is the number of
    queries that were named; None if all count.
    """
    spec = {
        **{name: collection.spec[name] for name in ("path", "split") if name in collection.spec},
        "by": decisions.sides.by,
        "protected": decisions.sides.protected,
        **asdict(options),
        **decisions.spec,
    }
    if candidates is not None:
        spec["candidates"] = candidates.name
    if query_count is not None:
        spec["queries"] = query_count
    all_queries = set(decisions.frame["query"])
    training_count = len(all_queries & decisions.training_queries)
    if training_count:
        spec["trained_queries"] = f"{training_count:,} of {len(all_queries):,}"
    return spec | {"asked": _digest(decisions), "ranktilt": __version__}


def _digest(decisions: Decisions) -> str:
    """Return a hash of the pairs that the model was asked about, whatever their order."""
    pairs = (
        decisions.frame.select("query", "kind", "first", "second")
        .sort(pl.all())
        .write_csv(include_header=False)
    )
    return hashlib.blake2b(pairs.encode(errors="surrogatepass"), digest_size=16).hexdigest()
