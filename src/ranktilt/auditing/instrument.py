"""Test the instrument: audit sources that a coin decided, and count how often a side is named."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy import stats

from ranktilt.auditing.audit import audit
from ranktilt.data.collection import Collection
from ranktilt.errors import UserError
from ranktilt.measures.base import Estimand
from ranktilt.progress import report
from ranktilt.rankers.base import Ranker, stages_of
from ranktilt.rankers.engines.base import LiveEngine
from ranktilt.rankers.replay import Replay

TOSSES = 200
"""Default number of times that sources are drawn by coin."""
RESAMPLES = 1_000
"""Resamples of each audit: fewer than usual, because there are many and only verdicts count."""

CHANCE = 0.05
"""Share of audits that may name a side although nobody is favoured."""


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
    """Upper end of the same interval."""

    @property
    def is_calibrated(self) -> bool:
        """Whether the share is compatible with chance, or below it."""
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

    A coin decides for each origin whether its documents exchange their sources; a document without
    a twin gets one of the collection's sources, as often as they are there. The rankings stay: they
    do not read who wrote a document.

    Parameters
    ----------
    collection : Collection
        With two sources or more; of several, an audit counts where it names a side of any pair.
    rankers : sequence of Ranker
        Each ranks once.
    measures : str, Estimand or iterable of them, optional
        As for `audit`, by default its own; the primary question decides.
    tosses : int, optional
        How often labels are drawn.
    seed : int, optional
        Of the coin.

    Returns
    -------
    tuple of InstrumentRow
        One for each ranker, with the exact 95 % interval of the share (Clopper and Pearson, 1934).
    """
    if len(collection.sources) < 2:
        raise UserError("the instrument needs two sources to exchange, such as human and llm")
    for ranker in rankers:
        if isinstance(stages_of(ranker)[0], LiveEngine | Replay):
            raise UserError(
                f"{ranker!r} cannot be tested: name a ranker that ranks the collection itself"
            )
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
    """Let a coin decide for each origin whether its documents exchange their sources.

    A document that is alone in its origin draws the source of another such document.
    """
    docs = collection.docs
    sources = docs["source"].to_numpy().copy()
    # Both orders sort by origin: within an origin, one at random and one as the documents come.
    order = np.lexsort((rng.random(len(sources)), collection.origin_codes()))
    in_order = np.lexsort((np.arange(len(sources)), collection.origin_codes()))
    exchanged = sources.copy()
    exchanged[in_order] = sources[order]
    sizes = np.bincount(collection.origin_codes())
    is_alone = sizes[collection.origin_codes()] == 1
    exchanged[is_alone] = rng.permutation(sources[is_alone])
    column = pl.Series("source", exchanged.tolist(), dtype=pl.String)
    return Collection(docs.with_columns(column), collection.queries, collection.qrels)
