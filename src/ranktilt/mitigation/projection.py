"""Projection: remove from vectors the direction in which the vectors of twins differ.

A dense ranker compares vectors of texts. *Twins* are versions of one document by two sources; they
say the same, so what separates their vectors on average is the source. The direction is learned
from documents that are not relevant to the queries of the test. The *origin* of a document is the
document from which all its versions were made.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import polars as pl

from ranktilt._version import __version__
from ranktilt.data.collection import Collection
from ranktilt.data.runs.run import codes
from ranktilt.errors import UserError, counted
from ranktilt.explaining.vectors import DocumentVectors
from ranktilt.mitigation.method import FittedMethod, FittingQueries, Method
from ranktilt.rankers.base import Ranker
from ranktilt.rankers.dense.direction import Direction
from ranktilt.rankers.dense.retriever import Dense
from ranktilt.rankers.dense.search import unit
from ranktilt.rankers.fit_provenance import text_key
from ranktilt.statistics.permutation import sign_flip_length_p

MOST_TWINS = 10_000
"""Maximum number of pairs of twins to fit on; if there are more, a sample is drawn."""
_RESAMPLES = 1_000
"""Number of random exchanges of twins, for the test of a direction's length."""
_ROUNDING = 1e-6
"""Length of a mean difference that rounding may cause, as a share of the vectors' mean length."""


def fit_direction(
    collection: Collection,
    dense: Dense,
    *,
    source: str,
    reference: str = "human",
    leave_out: Iterable[str] = (),
    seed: int = 0,
) -> Direction:
    """Learn the direction from the reference to a source, from their twins.

    It is the mean vector of the source minus the mean vector of the reference, scaled to length 1.
    If the ranker compares by cosine, vectors are scaled to length 1 first.

    The spec of the direction has a test of its length before scaling: ``p`` is the probability of a
    length at least as large if the twins of random pairs are exchanged, so that the source means
    nothing. ``random_length`` is the expected length in this case.

    Parameters
    ----------
    collection : Collection
        Documents with sources and origins.
    dense : Dense
        The ranker whose vectors are taken.
    source, reference : str
        The two sources.
    leave_out : iterable of str, optional
        Origins not to learn from: those that are relevant in the test (`relevant_origins`).
    seed : int, optional
        Seed of all draws.

    Raises
    ------
    UserError
        If there are no twins to learn from, or if their vectors do not differ on average.
    """
    plain = replace(dense, project=None, project_strength=1.0)
    twins, left_out = _twins(collection, (reference, source), set(leave_out), seed)
    vectors = DocumentVectors.from_ranker(collection, plain, "a projection")
    sides = [vectors.stored.take(vectors.row[codes(twins[side], collection.ids)]) for side in "ba"]
    source_vectors, reference_vectors = (unit(side) if plain.cosine else side for side in sides)
    differences = source_vectors.astype(np.float64) - reference_vectors
    mean = differences.mean(axis=0)
    length = float(np.linalg.norm(mean))
    if length <= _ROUNDING * float(np.linalg.norm(reference_vectors, axis=1).mean()):
        twin_count = counted(twins.height, "twin", "twins")
        raise UserError(
            f"a projection needs a direction, and the vectors of {twin_count} of {reference} and "
            f"{source} do not differ on average"
        )
    # With random signs the differences are uncorrelated, so that their squared lengths add up.
    random_length = float(np.sqrt(np.square(differences).sum())) / twins.height
    spec = {
        "model": repr(plain),
        "fingerprint": plain.encoder.fingerprint,
        "cosine": plain.cosine,
        "reference": reference,
        "source": source,
        "twins": twins.height,
        "left_out": left_out,
        "length": length,
        "random_length": random_length,
        "p": sign_flip_length_p(differences, resamples=_RESAMPLES, seed=seed),
        "seed": seed,
        "ranktilt": __version__,
        "collection": collection.spec.get("path"),
    }
    texts = collection.docs["text"].gather(codes(twins["a"], collection.ids))
    return Direction(
        vector=mean / length,
        spec=spec,
        origins=tuple(twins["origin"]),
        keys=tuple(map(text_key, texts)),
    )


def _twins(
    collection: Collection, sources: tuple[str, str], leave_out: set[str], seed: int
) -> tuple[pl.DataFrame, int]:
    """Return one pair of twins for each origin, and the number of origins that were left out.

    An origin is a document together with its versions. `sources` are the reference and the other
    source. If there are more than `MOST_TWINS` pairs, a sample is drawn.
    """
    reference, source = sources
    twins = (
        collection.pairs(reference, source)
        .unique("origin", keep="first", maintain_order=True)
        .sort("origin")
    )
    if not twins.height:
        raise UserError(
            f"a projection needs twins: no document of {source!r} shares its origin with one of "
            f"{reference!r}"
        )
    usable = twins.filter(
        ~pl.col("origin").is_in(pl.Series(sorted(leave_out), dtype=pl.String).implode())
    )
    if not usable.height:
        raise UserError(
            f"a projection needs twins to learn from, and all {twins.height:,} are left out"
        )
    left_out = twins.height - usable.height
    if usable.height > MOST_TWINS:
        rng = np.random.default_rng(seed)
        usable = usable[np.sort(rng.choice(usable.height, MOST_TWINS, replace=False))]
    return usable, left_out


@dataclass(frozen=True, kw_only=True)
class FittedProjection(FittedMethod):
    """A dense ranker with a direction removed from its vectors.

    At strength s, s times the part of a vector along the direction is removed.
    """

    def at_strength(self, strength: float) -> Ranker:
        """Return the ranker at a strength."""
        # The field has another name than that of corrections.
        ranker: Ranker = replace(self.full, project_strength=strength)
        return ranker


@dataclass(frozen=True, kw_only=True)
class ProjectionMethod(Method):
    """Remove from vectors the direction that separates the twins."""

    name: ClassVar[str] = "projection"
    learns_from_twins: ClassVar[bool] = True

    def fit(self, queries: FittingQueries) -> FittedMethod:
        dense = queries.need_ranker(self.name)
        if not isinstance(dense, Dense):
            raise UserError(
                f"projection removes a direction from vectors, and {dense!r} has none; use it "
                "with dense rankers"
            )
        queries.need_groups(queries.pair)
        reference, source = queries.pair
        direction = fit_direction(
            queries.collection,
            dense,
            reference=reference,
            source=source,
            leave_out=queries.held_out,
            seed=queries.seed,
        )
        file = queries.file("direction.json")
        full = replace(dense, project=file, learned=direction)
        return FittedProjection(full=full, fit=direction, file=file)
