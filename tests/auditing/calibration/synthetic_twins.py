"""Collections made for calibration: a source beside its byte-identical copy, under neutral ids."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.data.collection import Collection
from ranktilt.errors import UserError

COPY = "copy"
THINNED = "every third word left out"
_HUMAN = "human"
_MOST_RELEVANT = 0.75


class Scheme(NamedTuple):
    """How originals and copies are called, and in which order they stand."""

    name: str
    ids: Callable[[str, int, tuple[str, str]], tuple[str, str]]
    """Of a document's id, its number and the names of both sources; gives the original's id and the
    copy's.
    """
    order: str
    """``originals`` or ``copies`` come first, ``turns`` (pair by pair), or ``shuffled``."""


def _hashed(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


SCHEMES = (
    Scheme("suffixes", lambda name, n, of: (f"{name}-{of[0]}", f"{name}-{of[1]}"), "originals"),
    Scheme(
        "misleading suffixes",
        lambda name, n, of: (f"{name}-{of[1]}", f"{name}-{of[0]}"),
        "originals",
    ),
    Scheme("originals first", lambda name, n, of: (f"a-{name}", f"z-{name}"), "turns"),
    Scheme("copies first", lambda name, n, of: (f"z-{name}", f"a-{name}"), "copies"),
    Scheme("numbers", lambda name, n, of: (str(2 * n), str(2 * n + 1)), "turns"),
    Scheme(
        "hashed", lambda name, n, of: (_hashed(f"one {name}"), _hashed(f"two {name}")), "shuffled"
    ),
)


def sampled(collection: Collection, *, pairs: int, queries: int, seed: int) -> Collection:
    """Keep two sources under neutral ids, and of a large collection some of the queries and
    documents.

    Of so many `pairs` three quarters at most are relevant to a query that is kept. Where there is
    one source only, a second one holds the same texts without every third word.
    """
    sources = _sources(collection)
    docs = collection.docs.filter(pl.col("source").is_in(sources))
    rng = np.random.default_rng([seed, 2])
    queries_used = collection.queries_with_judgments
    if queries_used.height > queries:
        queries_used = queries_used[
            np.sort(rng.choice(queries_used.height, queries, replace=False))
        ]
    qrels = collection.qrels.filter(
        pl.col("query_id").is_in(queries_used["id"].implode())
        & pl.col("doc_id").is_in(docs["id"].implode())
    )
    relevant = qrels.filter(pl.col("grade") > 0)["doc_id"]
    chosen = _origins(docs, relevant, pairs, rng)
    part = _renamed(docs.filter(pl.col("origin").is_in(chosen.implode())), queries_used, qrels)
    return part if len(sources) > 1 else _with_thinned(part, f"{sources[0]}, {THINNED}")


def with_synthetic_twins(collection: Collection, scheme: Scheme, *, seed: int) -> Collection:
    """Put a byte-identical copy beside every document of the first source, judgments and all;
    others are left out.
    """
    source = first_source(collection)
    docs = collection.docs.filter(pl.col("source") == source)
    copy = f"{COPY} of {source}" if source == COPY else COPY
    names = [scheme.ids(name, n, (source, copy)) for n, name in enumerate(docs["id"])]
    first, second = (
        pl.Series("id", [pair[side] for pair in names], dtype=pl.String) for side in (0, 1)
    )
    originals = docs.with_columns(first, origin=first)
    copies = docs.with_columns(second, origin=first, source=pl.lit(copy))
    old = pl.DataFrame({"doc_id": docs["id"], "one": first, "two": second})
    judged = collection.qrels.join(old, on="doc_id", how="inner", maintain_order="left")
    qrels = pl.concat(
        [judged.select("query_id", doc_id=side, grade="grade") for side in ("one", "two")]
    )
    return Collection(_ordered(originals, copies, scheme.order, seed), collection.queries, qrels)


def first_source(collection: Collection) -> str:
    """Name the source that positive values favour: human text, else the source that comes first by
    name.
    """
    return min(collection.sources, key=lambda name: (name != _HUMAN, name))


def swapped(collection: Collection) -> Collection:
    """Give each of two sources the other's name."""
    source, twin = collection.sources
    names = pl.col("source").replace_strict({source: twin, twin: source})
    return Collection(collection.docs.with_columns(names), collection.queries, collection.qrels)


def _ordered(originals: pl.DataFrame, copies: pl.DataFrame, order: str, seed: int) -> pl.DataFrame:
    n = originals.height
    both = pl.concat([originals, copies])
    if order == "copies":
        return pl.concat([copies, originals])
    if order == "turns":
        return both[np.arange(2 * n).reshape(2, n).T.ravel()]
    return (
        both[np.random.default_rng([seed, 3]).permutation(2 * n)] if order == "shuffled" else both
    )


def _sources(collection: Collection) -> list[str]:
    """Two sources to compare, or the only one that can be; human first."""
    sources = set(collection.sources)
    if collection.qrels.height:
        relevant = collection.qrels.filter(pl.col("grade") > 0)["doc_id"]
        sources = set(collection.docs.filter(pl.col("id").is_in(relevant.implode()))["source"])
        if not sources:
            raise UserError("no document is judged relevant to any query")
    return sorted((s for s in collection.sources if s in sources), key=lambda name: name != _HUMAN)[
        :2
    ]


def _with_thinned(collection: Collection, name: str) -> Collection:
    """Add the same documents without every third word, under a second source, with the same
    judgments.
    """
    docs = collection.docs
    text = [" ".join(word for n, word in enumerate(t.split()) if n % 3 != 2) for t in docs["text"]]
    more = docs.with_columns(
        pl.format("t{}", "id").alias("id"), source=pl.lit(name), text=pl.Series(text)
    )
    judged = collection.qrels.with_columns(pl.format("t{}", "doc_id").alias("doc_id"))
    return Collection(
        pl.concat([docs, more]), collection.queries, pl.concat([collection.qrels, judged])
    )


def _origins(
    docs: pl.DataFrame, relevant: pl.Series, most: int, rng: np.random.Generator
) -> pl.Series:
    every = docs["origin"].unique(maintain_order=True)
    if len(every) <= most:
        return every
    mine = docs.filter(pl.col("id").is_in(relevant.implode()))["origin"].unique(maintain_order=True)
    rest = every.filter(~every.is_in(mine.implode()))
    count = max(int(_MOST_RELEVANT * most), most - len(rest))
    chosen = mine.gather(_sample(rng, len(mine), count))
    return pl.concat([chosen, rest.gather(_sample(rng, len(rest), most - len(chosen)))])


def _sample(rng: np.random.Generator, n: int, most: int) -> npt.NDArray[np.int64]:
    return np.sort(rng.permutation(n)[:most])


def _renamed(docs: pl.DataFrame, queries: pl.DataFrame, qrels: pl.DataFrame) -> Collection:
    ids = pl.Series("id", [f"d{n}" for n in range(docs.height)], dtype=pl.String)
    table = pl.DataFrame({"doc_id": docs["id"], "new": ids})
    first = docs["origin"].unique(maintain_order=True)
    origins = dict(zip(first, (f"o{n}" for n in range(len(first))), strict=True))
    docs = docs.with_columns(ids, pl.col("origin").replace_strict(origins, return_dtype=pl.String))
    judged = qrels.join(table, on="doc_id", how="inner", maintain_order="left")
    return Collection(docs, queries, judged.select("query_id", doc_id="new", grade="grade"))
