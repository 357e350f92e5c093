"""Test the instrument: audit sources that mean nothing, and count how often a side is named.

The instrument is the audit itself. A *source* is whoever wrote a document. Here a coin decides
which source each document has, so that an audit that names a favoured source (a *side*) is wrong.
About 5 of 100 audits may do so by chance, since a verdict asks for p < .05.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from ranktilt.auditing.audit import audit
from ranktilt.data.collection import Collection
from ranktilt.errors import UserError
from ranktilt.measures.base import Estimand
from ranktilt.progress import report
from ranktilt.rankers.base import Ranker, stages_of
from ranktilt.rankers.engines.base import LiveEngine
from ranktilt.rankers.replay import Replay

TOSSES = 200
"""Default number of times that sources are drawn by coin, and audits."""
RESAMPLES = 1_000
"""Bootstrap resamples of each audit.

They are fewer than usual, because there are many audits, of which only the verdicts count.
"""
CHANCE = 0.05
"""Share of audits that may name a side although no side is favoured: the level of a verdict."""


@dataclass(frozen=True, kw_only=True)
class InstrumentRow:
    """How often an audit of one ranker names a side if a coin decided who wrote what."""

    ranker: str
    """Notation of the ranker."""
    question: str
    """Notation of the primary question."""
    sides_named: int
    """Number of audits that named a side."""
    tosses: int
    """Number of all audits."""
    low: float
    """Lower end of the 95 % interval of the share, from 0 to 1."""
    high: float
    """Upper end of the interval."""

    @property
    def is_calibrated(self) -> bool:
        """Whether the interval holds `CHANCE`, or lies below it."""
        return self.low <= CHANCE


def check_instrument(
    collection: Collection,
    rankers: Sequence[Ranker],
    measures: str | Estimand | Iterable[str | Estimand] | None = None,
    *,
    tosses: int = TOSSES,
    seed: int = 0,
) -> tuple[InstrumentRow, ...]:
    """Audit each ranker many times with sources that mean nothing; count how often a side is named.

    The versions of one document exchange their sources at random. Documents without another version
    exchange theirs among themselves. The rankings stay as they are: rankers do not read who wrote a
    document.

    Parameters
    ----------
    collection : Collection
        Documents of two sources or more. With more than two, an audit counts if it names a side of
        any pair of sources.
    rankers : sequence of Ranker
        Rankers to test; each ranks once.
    measures : str, Estimand or iterable of them, optional
        Questions, by default those of `audit`. The primary question decides.
    tosses : int, optional
        Number of audits, each with its own random sources.
    seed : int, optional
        Random seed.

    Returns
    -------
    tuple of InstrumentRow
        One for each ranker, with the exact 95 % interval of the share (Clopper and Pearson, 1934).

    Raises
    ------
    UserError
        If there are fewer than two sources, no toss, or a ranker with rankings from elsewhere.
    """
    if len(collection.sources) < 2:
        raise UserError("the instrument needs two sources to exchange, such as human and llm")
    if tosses < 1:
        raise UserError(f"expected at least 1 toss, got {tosses}")
    for ranker in rankers:
        if isinstance(stages_of(ranker)[0], LiveEngine | Replay):
            raise UserError(
                f"{ranker!r} cannot be tested: name a ranker that ranks the collection itself"
            )
    from scipy import stats  # imported on use: it takes half a second

    rows = []
    for ranker in rankers:
        run = ranker.rank(collection)
        sides_named, question = 0, ""
        for toss in range(tosses):
            drawn = with_drawn_sources(collection, np.random.default_rng([seed, toss]))
            result = audit(
                drawn, run, measures, confounds=False, keep_top=0, resamples=RESAMPLES, seed=seed
            )
            verdicts = result.verdicts()
            sides_named += any(verdict.side is not None for verdict in verdicts)
            question = verdicts[0].primary
            report(f"tossing coins for {ranker!r}", toss + 1, tosses)
        interval = stats.binomtest(sides_named, tosses).proportion_ci(method="exact")
        rows.append(
            InstrumentRow(
                ranker=repr(ranker),
                question=question,
                sides_named=sides_named,
                tosses=tosses,
                low=float(interval.low),
                high=float(interval.high),
            )
        )
    return tuple(rows)


def with_drawn_sources(collection: Collection, rng: np.random.Generator) -> Collection:
    """Return the collection with random sources: the versions of each origin exchange theirs.

    An origin is the document that others are versions of. Documents that are alone in their origin
    exchange their sources among themselves.
    """
    docs, origin = collection.docs, collection.origin_codes()
    sources = docs["source"].to_numpy().copy()
    # Both orders sort by origin: within an origin, the first at random and the second as the
    # documents come.
    random_order = np.lexsort((rng.random(len(sources)), origin))
    file_order = np.lexsort((np.arange(len(sources)), origin))
    exchanged = sources.copy()
    exchanged[file_order] = sources[random_order]
    origin_sizes = np.bincount(origin)
    is_alone = origin_sizes[origin] == 1
    exchanged[is_alone] = rng.permutation(sources[is_alone])
    column = pl.Series("source", exchanged.tolist(), dtype=pl.String)
    return Collection(docs.with_columns(column), collection.queries, collection.qrels)
