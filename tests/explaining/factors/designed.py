"""Designed collections as ``generate versions`` writes them, and runs whose scores have planted
effects.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import polars as pl

from ranktilt.data.collection import Collection
from ranktilt.data.runs.run import Run
from ranktilt.explaining.factors.effects import factor_effects
from ranktilt.explaining.factors.result import CITED, CITED_FIRST, FactorEffects

Cells = Sequence[Sequence[int]]
"""Levels of the factors, −1 and 1, a row a version."""


def full(factors: int) -> list[list[int]]:
    """All cells of a two-level design, the original first."""
    return [list(cell[::-1]) for cell in product((-1, 1), repeat=factors)]


def half(factors: int) -> list[list[int]]:
    """The half in which the last factor is the product of the others, or, so that the original is
    in it, its negative.

    With five factors main effects and two-factor interactions are free of each other (Box, Hunter &
    Hunter 2005).
    """
    sign = 1 if factors % 2 else -1
    return [[*cell, sign * int(np.prod(cell))] for cell in full(factors - 1)]


@cache
def docs_of(
    names: tuple[str, ...], cells: tuple[tuple[int, ...], ...], origins: int
) -> pl.DataFrame:
    """Every origin in every cell, origin by origin; the version of each cell has its number in its
    id.
    """
    rows = [
        (f"d{n}" if cell == min(cells) else f"d{n}-{number}", f"d{n}", cell)
        for n in range(origins)
        for number, cell in enumerate(cells)
    ]
    levels = {
        f"factor:{name}": ["high" if cell[at] > 0 else "low" for *_, cell in rows]
        for at, name in enumerate(names)
    }
    return pl.DataFrame(
        {
            "id": [name for name, *_ in rows],
            "text": "",
            "source": "human",
            "origin": [origin for _, origin, _ in rows],
            **levels,
        }
    )


def designed(
    names: Sequence[str], cells: Cells, *, queries: int = 20, origins: int = 40, relevant: int = 4
) -> Collection:
    """A collection in which query n judges its next `relevant` origins, in all their versions."""
    docs = docs_of(tuple(names), tuple(map(tuple, cells)), origins)
    queried = np.repeat(np.arange(queries), relevant)
    judged = (queried * relevant // 2 + np.tile(np.arange(relevant), queries)) % origins
    pairs = pl.DataFrame(
        {"query_id": [f"q{n}" for n in queried], "origin": [f"d{n}" for n in judged]}
    )
    qrels = pairs.join(docs.select("origin", doc_id="id"), on="origin", maintain_order="left")
    return Collection(
        docs,
        pl.DataFrame({"id": [f"q{n}" for n in range(queries)], "text": ""}),
        qrels.select("query_id", "doc_id", grade=1),
        {"design": {"factors": list(names), "kind": "factorial"}},
    )


def scored(
    collection: Collection,
    planted: Mapping[tuple[str, ...], float],
    *,
    seed: int = 0,
    noise: float = 0.5,
    depth: int | None = None,
) -> Run:
    """Rank by what a document is worth to a query, raised by half of each planted effect times the
    levels.

    Each document has effects of its own about these, and so has each query.
    """
    rng, docs = np.random.default_rng(seed), collection.docs
    queries, rows = collection.queries.height, docs.height
    origin = collection.origin_codes()
    count = origin.max() + 1
    scores = (rng.normal(size=(queries, count)) + rng.normal(size=count))[:, origin]
    scores += noise * rng.normal(size=(queries, rows))
    names = [column for column in docs.columns if column.startswith("factor:")]
    levels = {
        name.removeprefix("factor:"): np.where(docs[name] == "high", 1.0, -1.0) for name in names
    }
    for name, level in levels.items():
        text_noise = rng.normal(0, 0.2, count)[origin] + rng.normal(0, 0.1, (queries, 1))
        scores += (planted.get((name,), 0.0) + text_noise) / 2 * level
    for (a, b), effect in ((key, value) for key, value in planted.items() if len(key) == 2):
        scores += effect / 2 * levels[a] * levels[b]
    order = np.argsort(-scores, axis=1)[:, : depth or rows]
    offsets = np.arange(queries + 1) * order.shape[1]
    sorted_scores = np.take_along_axis(scores, order, 1)
    names_of = tuple(collection.queries["id"])
    return Run(
        names_of,
        offsets,
        order.ravel(),
        sorted_scores.ravel(),
        collection.ids,
        {"ranker": "planted"},
    )


def caused(names: Sequence[str] = ("source", "length", "facts")) -> FactorEffects:
    """Two rankers of a full design: one goes by length, the more so of a model's texts; the other
    by nothing.
    """
    collection = designed(names, full(len(names)))
    planted: dict[tuple[str, ...], float] = {("length",): 0.8, ("source", "length"): 0.4}
    if "source" not in names:
        planted = {("length",): 0.8}
    runs = [scored(collection, planted), scored(collection, {}, seed=3, noise=0.3)]
    runs = [
        replace(run, spec={"ranker": name})
        for run, name in zip(runs, ("bm25", "dense:x"), strict=True)
    ]
    return factor_effects(collection, runs, adopters=[0, 50, 100] if "source" not in names else ())


def cited() -> FactorEffects:
    """The effects of `caused`, as if they were on what answers cite."""
    effects = caused(("facts", "length"))
    names = {"rank gap": CITED, "score gap": CITED_FIRST}
    rows = [
        replace(row, ranker="tiny", estimand=names[row.estimand])
        for row in effects.rows
        if row.estimand in names and row.ranker == "bm25"
    ]
    return replace(effects, rows=tuple(rows), adoptions=(), variations={})
