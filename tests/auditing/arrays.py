"""Audits from arrays, effects made by hand; collections with rewrites at several temperatures, and
their ranker.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations, product
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt import Collection, Ranker, Run
from ranktilt.auditing.effects import Effect
from ranktilt.auditing.result import PAIR_COUNTS, Audit
from ranktilt.auditing.significance import InferenceOptions, Sample, effects
from ranktilt.measures.base import estimand, measure
from ranktilt.measures.contrast import RelativeDelta
from tests.reporting.audits import small
from tests.toy import collection_of, run_of

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
    """Make an audit from values of shape (runs, measures, 1 + groups, queries), the first group
    being ``all``.

    `null` holds Relative Δ under random labels; with it the groups are no twins. The first measure
    is the primary one.
    """
    table = np.asarray(values, dtype=np.float64)
    names = tuple(queries or (f"q{i}" for i in range(table.shape[3])))
    every = list(
        product(enumerate(runs), combinations(enumerate(groups, start=1), 2), enumerate(measures))
    )
    sides = [
        Sample(
            run=run,
            estimand=RelativeDelta(of=measure(m)),
            a=a,
            b=b,
            numerator=table[r, k, i],
            denominator=table[r, k, j],
        )
        for (r, run), ((i, a), (j, b)), (k, m) in every
    ]
    sides = (
        sides
        if null is None
        else [side.with_random_labels(np.asarray(null, dtype=np.float64)) for side in sides]
    )
    options = InferenceOptions(
        resamples=resamples,
        seed=0,
        test="permutation",
        correction="holm",
        rounding=str(spec.get("rounding", "none")),
    )
    primary = {"primary": measures[0]} if measures else {}
    tilts = effects(sides, options, primary=measure(measures[0]) if measures else None)
    base = _base()
    plain = {"by": "source", "ties": "expected", "rounding": "none", "inputs": []}
    settings = {**plain, "resamples": resamples, **primary, **spec}
    return replace(
        base,
        spec={**base.spec, **settings},
        runs=tuple(runs),
        measures=tuple(map(measure, measures)),
        groups=("all", *groups),
        queries=names,
        values=table,
        tilts=tilts,
        notes=(),
        pair_counts=pl.DataFrame(schema=PAIR_COUNTS),
        confounds=(),
        top_results=None,
    )


@cache
def _base() -> Audit:
    """Any audit: what an audit holds beyond these arrays is as `audit` makes it."""
    return small(resamples=100)


def two_group_audit(
    a: npt.ArrayLike, b: npt.ArrayLike, *, overall: npt.ArrayLike | None = None, **options: Any
) -> Audit:
    """Make an audit of one run and measure from the values of two groups; `overall` is the row
    without grouping.
    """
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    everything = (first + second) / 2 if overall is None else np.asarray(overall, dtype=np.float64)
    return audit_of([[[everything, first, second]]], **options)


def noisy(rng: np.random.Generator, queries: int = 100, lift: float = 0.0) -> Audit:
    """Draw per-query values around difficulties that are the same each time; `lift` raises the
    second group's.
    """
    hard = np.random.default_rng(0).uniform(0.1, 0.6, queries)
    sides = [np.clip(hard + rng.normal(0, 0.15, queries) + more, 0, 1) for more in (0.0, lift)]
    return two_group_audit(*sides, resamples=400)


QUERIES = 40
TEMPERATURES = {"llm-tmp1.0": 1.0, "llm-tmp0.2": 0.2, "llm-tmp0.7": 0.7}
"""In the order in which the collection holds them, which is not that of temperature."""
WINS = {"llm-tmp0.2": 10, "llm-tmp0.7": 20, "llm-tmp1.0": 30}
"""Queries of which the human document stands first: Relative Δ(nDCG@1) is −100, 0 and +100 %."""


def studied(
    sources: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    count: int = QUERIES,
    without: Mapping[str, int] | None = None,
) -> Collection:
    """One query a document h0, h1, …, of which all versions are relevant; `without` drops a
    source's last rewrites.

    `sources` gives further columns of each source.
    """
    every = {"human": {}, **({name: {} for name in TEMPERATURES} if sources is None else sources)}
    rows = [
        {
            "id": f"{name}:{n}" if name != "human" else f"h{n}",
            "text": f"note {n} from {name}",
            "source": name,
            "origin": f"h{n}",
            **more,
        }
        for name, more in every.items()
        for n in range(count - (without or {}).get(name, 0))
    ]
    qrels: dict[str, dict[str, int]] = {f"q{n}": {} for n in range(count)}
    for row in rows:
        qrels[f"q{row['origin'][1:]}"][row["id"]] = 1
    return collection_of(rows, dict.fromkeys(qrels, "note"), qrels)


@dataclass(frozen=True)
class Decided(Ranker):
    """Puts the human version first for so many queries, the rewrite for the others."""

    wins: str = ""
    """Sources and numbers, as `decided` writes them."""
    name: ClassVar[str] = "decided"
    seen: ClassVar[list[tuple[str, ...]]] = []
    """Sources of every collection that was ranked."""

    def rank(self, collection: Collection, run: Run | None = None) -> Run:
        self.seen.append(collection.sources)
        wins = dict(part.split("=") for part in self.wins.split())
        (rival,) = (name for name in collection.sources if name != "human")
        scores: dict[str, dict[str, float]] = {
            query: {} for query in collection.queries_with_judgments["id"]
        }
        for name, source, origin in collection.docs.select("id", "source", "origin").iter_rows():
            if f"q{origin[1:]}" in scores:
                human_score = 3.0 if int(origin[1:]) < int(wins[rival]) else 1.0
                scores[f"q{origin[1:]}"][name] = human_score if source == "human" else 2.0
        return run_of(collection, scores, ranker=repr(self))


def decided(wins: Mapping[str, int] | None = None) -> Decided:
    """Make the ranker from numbers of queries that human text wins."""
    return Decided(" ".join(f"{name}={number}" for name, number in (wins or WINS).items()))


ASKED = {
    "page": "NDSR@20",
    "twins": "HeadToHead",
    "relevant twins": "HeadToHead(pairs=relevant)",
    "other twins": "HeadToHead(pairs=other)",
    "rank gap": "RankGap",
    "score gap": "ScoreGap",
    "relative delta": "RelativeDelta(nDCG@3)",
}
"""The card's questions, by what stands for them in files."""


def tilt(low: float = 10.0, high: float = 30.0, p: float = 0.001, **fields: Any) -> Effect:
    """A Relative Δ with this interval and corrected p; of twins unless a band is given."""
    fields_of_change: dict[str, Any] = {
        "run": "bm25",
        "estimand": RelativeDelta(of=measure(fields.pop("measure", "nDCG@3"))),
        "a": "human",
        "b": "llm",
        "value": (low + high) / 2,
        "low": low,
        "high": high,
        "error": 5.0,
        "p": p,
        "p_corrected": p,
        "queries": 50,
        "twins": "null_low" not in fields,
        "details": {"mean_a": fields.pop("mean_a", 0.3), "mean_b": fields.pop("mean_b", 0.25)},
    }
    return Effect(**{**fields_of_change, **_level(fields), **fields})


def answer(low: float, high: float, kind: str = "page", **fields: Any) -> Effect:
    """An answer of the card with its value in the middle of its interval; of twins unless a band is
    given.
    """
    fields_of_effect: dict[str, Any] = {
        "run": "r",
        "estimand": estimand(ASKED[kind]),
        "a": "human",
        "b": "llm",
        "value": (low + high) / 2,
        "low": low,
        "high": high,
        "error": (high - low) / 4,
        "p": 0.001,
        "p_corrected": 0.01,
        "queries": 40,
        "twins": "null_low" not in fields,
        **_level(fields),
        **fields,
    }
    return Effect(**fields_of_effect)


def _level(fields: dict[str, Any]) -> dict[str, Any]:
    """The median of random labels that lie evenly in their band."""
    return (
        {"null_median": (fields["null_low"] + fields["null_high"]) / 2}
        if "null_low" in fields
        else {}
    )
