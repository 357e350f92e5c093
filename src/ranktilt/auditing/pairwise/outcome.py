"""The outcome of one kind of pairs: shares with intervals over queries and documents, and tests.

A pair is a protected and an unprotected document. Its *half lead* is half the choices of the
protected document minus half the choices of the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ranktilt.auditing.pairwise.counts import Counts
from ranktilt.auditing.pairwise.pairs import Kind
from ranktilt.auditing.pairwise.result import EVEN, PairOutcome, Share
from ranktilt.measures.ranking import Floats
from ranktilt.statistics.bootstrap import resampled_means
from ranktilt.statistics.inversion import Inference, infer
from ranktilt.statistics.permutation import sign_flip_p
from ranktilt.statistics.two_way import Dyads, sums


def outcome(kind: Kind, counts: Counts, pairs: Dyads, *, resamples: int, seed: int) -> PairOutcome:
    """Return counts as shares, with intervals over queries and documents, and test the preference.

    `pairs` has the query and both documents of each pair.
    """
    decided = counts.protected + counts.unprotected
    half_lead = (counts.protected - counts.unprotected) / 2
    columns = {**counts.by_name, "decided": decided, "half_lead": half_lead}
    by_query = {name: sums(pairs.query, column) for name, column in columns.items()}
    resampled = resampled_means(list(by_query.values()), resamples=resamples, seed=seed)
    shares = _Shares(columns=columns, means=dict(zip(columns, resampled, strict=True)), pairs=pairs)
    # The preference, protected / decided, equals one half plus Σ half lead / Σ decided. It is
    # computed from the half lead, because exchanged groups then give the exact negative. Shares of
    # the two groups would add up to 1 only up to rounding.
    lead = shares.estimate("half_lead", "decided", neutral=0.0)
    preference = Share(
        value=EVEN + lead.share.value, low=EVEN + lead.share.low, high=EVEN + lead.share.high
    )
    flip_p = np.nan
    if decided.any():
        flip_p = sign_flip_p(by_query["half_lead"], resamples=resamples, seed=seed)
    protected = shares.estimate("protected", "units").share
    unprotected = shares.estimate("unprotected", "units").share
    inconsistent = shares.estimate("inconsistent", "pairs").share
    unparsed = shares.estimate("unparsed", "units").share
    first = shares.estimate("first", "readable").share
    return PairOutcome(
        kind=kind,
        queries=len(by_query["pairs"]),
        pairs=int(counts.pairs.sum()),
        decided=int(decided.sum()),
        protected=protected,
        unprotected=unprotected,
        inconsistent=inconsistent,
        unparsed=unparsed,
        preference=preference,
        first=first,
        error=lead.inference.error,
        effective_n=lead.effective_n,
        p=lead.inference.p,
        checks={"sign flips": flip_p},
    )


@dataclass(frozen=True, kw_only=True)
class _EstimatedShare:
    """One count as a share of another count."""

    share: Share
    """The share with its interval."""
    inference: Inference
    """Interval, standard error and p."""
    effective_n: float
    """Effective number of queries or documents."""


@dataclass(frozen=True, kw_only=True)
class _Shares:
    """Counts of each pair, and their means over resampled queries."""

    columns: Mapping[str, Floats]
    """Counts of each pair, by name."""
    means: Mapping[str, Floats]
    """Means over resampled queries, by name."""
    pairs: Dyads
    """Queries and documents of the pairs."""

    def estimate(self, part: str, total: str, *, neutral: float = EVEN) -> _EstimatedShare:
        """Return the count `part` as a share of the count `total`; NaN if that is 0.

        Both are names of `columns`, and `neutral` is the share that the p is computed for.
        """
        weight = self.columns[total]
        if not weight.any():
            return _EstimatedShare(
                share=Share(value=np.nan, low=np.nan, high=np.nan),
                inference=Inference(low=np.nan, high=np.nan, error=np.nan, p=np.nan),
                effective_n=0.0,
            )
        value = float(self.columns[part].sum() / weight.sum())
        residual = (self.columns[part] - value * weight) / weight.sum()
        variance = self.pairs.variance(residual, weight / weight.sum())
        with np.errstate(invalid="ignore"):
            ratio = self.means[part] / self.means[total]
        # A share is between 0 and 1 with a neutral value of ½; a half lead is between −½ and ½ with
        # a neutral value of 0.
        bounds = (neutral - EVEN, neutral + EVEN)
        inference = infer(ratio, value, variance=variance, neutral=neutral, bounds=bounds)
        return _EstimatedShare(
            share=Share(value=value, low=inference.low, high=inference.high),
            inference=inference,
            effective_n=variance.effective_n,
        )
