"""Audits made from arrays of per-query values, without documents or rankings."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations, product
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.auditing.result import PAIR_COUNTS, Audit
from ranktilt.auditing.significance import InferenceOptions, Sample, effects
from ranktilt.measures.base import measure
from ranktilt.measures.contrast import RelativeDelta
from tests.reporting.audits import small

GROUPS = ("human", "llm")


def audit_of(
    values: npt.ArrayLike,
    *,
    runs: Sequence[str] = ("run",),
    measures: Sequence[str] = ("nDCG@5",),
    groups: Sequence[str] = GROUPS,
    queries: Sequence[str] | None = None,
    null: npt.ArrayLike | None = None,
    resamples: int = 1000,
    **spec: Any,
) -> Audit:
    """Make an audit from values of shape (runs, measures, 1 + groups, queries), the first group being ``all``.

    `null` holds Relative Δ under random labels; with it the groups are no twins. The first measure is the primary one.
    """
    table = np.asarray(values, dtype=np.float64)
    names = tuple(queries or (f"q{i}" for i in range(table.shape[3])))
    every = list(product(enumerate(runs), combinations(enumerate(groups, start=1), 2), enumerate(measures)))
    sides = [
        Sample(run, RelativeDelta(of=measure(m)), a, b, table[r, k, i], table[r, k, j])
        for (r, run), ((i, a), (j, b)), (k, m) in every
    ]
    sides = sides if null is None else [side.among(np.asarray(null, dtype=np.float64)) for side in sides]
    how = InferenceOptions(resamples, 0, "permutation", "holm", str(spec.get("rounding", "none")))
    primary = {"primary": measures[0]} if measures else {}
    found = effects(sides, how, primary=measure(measures[0]) if measures else None)
    base = _base()
    settings = {
        "by": "source",
        "ties": "expected",
        "rounding": "none",
        "inputs": [],
        "resamples": resamples,
        **primary,
        **spec,
    }
    return replace(
        base, spec={**base.spec, **settings}, runs=tuple(runs), measures=tuple(map(measure, measures)),
        groups=("all", *groups), queries=names, values=table, tilts=found, notes=(),
        pair_counts=pl.DataFrame(schema=PAIR_COUNTS), confounds=(), top_results=None,
    )  # fmt: skip


@cache
def _base() -> Audit:
    """Any audit: what an audit holds beyond these arrays is as `audit` makes it."""
    return small(resamples=100)


def one(a: npt.ArrayLike, b: npt.ArrayLike, *, overall: npt.ArrayLike | None = None, **options: Any) -> Audit:
    """Make an audit of one run and measure from the values of two groups; `overall` is the row without grouping."""
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    everything = (first + second) / 2 if overall is None else np.asarray(overall, dtype=np.float64)
    return audit_of([[[everything, first, second]]], **options)


def noisy(rng: np.random.Generator, queries: int = 100, lift: float = 0.0) -> Audit:
    """Draw per-query values around difficulties that are the same each time; `lift` raises the second group's."""
    hard = np.random.default_rng(0).uniform(0.1, 0.6, queries)
    sides = [np.clip(hard + rng.normal(0, 0.15, queries) + more, 0, 1) for more in (0.0, lift)]
    return one(*sides, resamples=400)
