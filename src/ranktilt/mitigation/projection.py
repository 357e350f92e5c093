"""The direction in which a source's vectors differ from their twins', learned where nothing is tested."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import polars as pl

from ranktilt._version import __version__
from ranktilt.data.collection import Collection
from ranktilt.data.run import codes
from ranktilt.errors import UserError, counted
from ranktilt.explaining.vectors import DocumentVectors
from ranktilt.rankers.dense.direction import Direction
from ranktilt.rankers.dense.retriever import Dense
from ranktilt.rankers.dense.search import unit
from ranktilt.rankers.fit_provenance import text_key
from ranktilt.statistics.permutation import sign_flip_length_p

MOST_TWINS = 10_000
_RESAMPLES = 1_000
_ZERO = 1e-6


def fit_direction(
    collection: Collection,
    dense: Dense,
    *,
    source: str,
    reference: str = "human",
    leave_out: Iterable[str] = (),
    seed: int = 0,
) -> Direction:
    """Learn the direction from a source's twins: the mean of their vectors less those of the reference, of length 1.

    Vectors are of unit length where `dense` compares them by cosine. `leave_out` names origins not
    to learn from (`relevant_origins` of the test). Its spec holds the test of its length, by
    exchanging twins at random.
    """
    plain = replace(dense, project=None, project_strength=1.0)
    twins, left_out = _twins(collection, (reference, source), set(leave_out), seed)
    vectors = DocumentVectors.from_ranker(collection, plain, "a projection")
    sides = [vectors.stored.take(vectors.row[codes(twins[side], collection.ids)]) for side in "ba"]
    theirs, own = (unit(side) if plain.cosine else side for side in sides)
    differences = theirs.astype(np.float64) - own
    mean = differences.mean(axis=0)
    length = float(np.linalg.norm(mean))
    if length <= _ZERO * float(np.linalg.norm(own, axis=1).mean()):
        raise UserError(
            f"a projection needs a direction, and the vectors of {counted(twins.height, 'twin', 'twins')} of "
            f"{reference} and {source} do not differ on average"
        )
    spec = {
        "model": repr(plain),
        "fingerprint": plain.encoder.fingerprint,
        "cosine": plain.cosine,
        "reference": reference,
        "source": source,
        "twins": twins.height,
        "left_out": left_out,
        "length": length,
        "random_length": float(np.sqrt(np.square(differences).sum())) / twins.height,
        "p": sign_flip_length_p(differences, resamples=_RESAMPLES, seed=seed),
        "seed": seed,
        "ranktilt": __version__,
        "collection": collection.spec.get("path"),
    }
    texts = collection.docs["text"].gather(codes(twins["a"], collection.ids))
    return Direction(mean / length, spec, tuple(twins["origin"]), tuple(map(text_key, texts)))


def _twins(
    collection: Collection, sources: tuple[str, str], leave_out: set[str], seed: int
) -> tuple[pl.DataFrame, int]:
    """One pair of twins an origin, drawn where there are many; and how many origins were left out."""
    reference, source = sources
    twins = (
        collection.pairs(reference, source)
        .unique("origin", keep="first", maintain_order=True)
        .sort("origin")
    )
    if not twins.height:
        raise UserError(
            f"a projection needs twins: no document of {source!r} shares its origin with one of {reference!r}"
        )
    some = twins.filter(
        ~pl.col("origin").is_in(pl.Series(sorted(leave_out), dtype=pl.String).implode())
    )
    if not some.height:
        raise UserError(
            f"a projection needs twins to learn from, and all {twins.height:,} are left out"
        )
    left_out = twins.height - some.height
    if some.height > MOST_TWINS:
        some = some[
            np.sort(np.random.default_rng(seed).choice(some.height, MOST_TWINS, replace=False))
        ]
    return some, left_out
