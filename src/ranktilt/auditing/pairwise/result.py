"""What choices between two groups say: shares and a verdict for each kind of pairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ranktilt.auditing.answer.verdict import Verdict, effect_row, verdict_for
from ranktilt.auditing.effects import Effect
from ranktilt.auditing.pairwise.pairs import Kind
from ranktilt.data.artifact import Coded, Result
from ranktilt.data.notes.base import Note
from ranktilt.measures.preference import PreferenceOfPairs
from ranktilt.statistics.variation import Variation, choice_variation

EVEN = 0.5
"""The share that favours nobody, and that shows no position bias."""
MOST_POSITION_BIAS = 0.2
"""Position bias, as distance from a half, above which there is a warning."""
COUNTS = ("both-agree", "each")


@dataclass(frozen=True, kw_only=True)
class Share:
    """A share, 0 to 1, with its 95 % interval; NaN where nothing was counted."""

    value: float
    low: float
    high: float

    @property
    def odds(self) -> Share:
        """Ratio of the share to the rest, with its interval; infinite if there is no rest."""
        with np.errstate(divide="ignore"):
            low, value, high = (
                float(np.float64(share) / np.float64(1 - share))
                for share in (self.low, self.value, self.high)
            )
        return Share(value=value, low=low, high=high)

    @property
    def uneven(self) -> bool:
        """Whether the interval lies on one side of a half."""
        return self.low > EVEN or self.high < EVEN


@dataclass(frozen=True, kw_only=True)
class PairOutcome:
    """The choices in the pairs of one kind."""

    kind: Kind
    queries: int
    """Distinct queries."""
    pairs: int
    """Those that count; ``both-agree``: asked about in both orders."""
    decided: int
    """Pairs of which both orders agree, or for ``each`` answers that name a document."""
    protected: Share
    """Of the pairs (``each``: of the answers), those in which the protected document was chosen."""
    unprotected: Share
    inconsistent: Share
    """Of the pairs, those of which both orders could be read, and disagree."""
    unparsed: Share
    """Of the pairs (``each``: of the answers), those with an answer that could not be read."""
    preference: Share
    """Of what was decided, what the protected side got: .5 is level."""
    first: Share
    """Share of readable answers that name the first document: .5 is no position bias."""
    error: float
    """Standard error of the preference."""
    effective_n: float
    """Effective number of queries with a decision, or of documents on the side that has fewer."""
    p: float
    p_corrected: float = np.nan
    family_size: int = 1
    checks: Mapping[str, float] = field(default_factory=dict)
    """The p of other tests, printed as checks: ``sign flips``."""

    @property
    def ratio(self) -> Share:
        """Protected over unprotected share; 1 is level."""
        return self.preference.odds

    @property
    def has_large_position_bias(self) -> bool:
        """Whether positions decide so often that choices say little about the documents."""
        return abs(self.first.value - EVEN) > MOST_POSITION_BIAS

    def derived(self) -> dict[str, Any]:
        return {"ratio": self.ratio}


@dataclass(frozen=True, kw_only=True)
class PairVerdict(Verdict):
    """The verdict on one kind of pairs."""

    outcome: PairOutcome
    """What was chosen of them."""


@dataclass(frozen=True, kw_only=True)
class QueryChoices:
    """Choices from one query's pairs of one kind; queries of one text count as the first."""

    kind: Kind
    query: str
    pairs: int
    """Asked about in both orders."""
    units: int
    """What shares are of: these pairs, or for ``each`` all answers."""
    protected: int
    unprotected: int
    inconsistent: int
    unparsed: int
    readable: int
    """Answers that name a document."""
    first: int
    """Of these, those that name the one shown first."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PairTable:
    """The choices in each pair of one kind, for `compare`: one row per pair and query."""

    kind: Kind
    queries: tuple[str, ...]
    protected_origins: tuple[str, ...]
    unprotected_origins: tuple[str, ...]
    protected: npt.NDArray[np.float64]
    """Choices of the protected document: of ``both-agree`` 0 or 1."""
    unprotected: npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class PairwiseAudit(
    Result,
    format="ranktilt-pairwise",
    version=1,
    noun="a pairwise audit",
    command="ranktilt pairwise",
):
    """Choices of a language model between protected and unprotected documents; immutable."""

    spec: Mapping[str, Any]
    """How it was made."""
    model: str
    """Who chose."""
    protected: str
    unprotected: str
    outcomes: tuple[PairOutcome, ...]
    """One for each kind of pairs that there are: relevant, irrelevant."""
    notes: tuple[Coded[Note], ...] = ()
    """What a reader should know."""
    by_query: tuple[QueryChoices, ...] = ()
    """What was chosen in each query, for `compare`."""
    by_pair: tuple[PairTable, ...] = ()
    """What was chosen of each pair, for the documents' part of a comparison's error."""

    @property
    def margin(self) -> float:
        """Largest tilt that counts as level, in points."""
        return float(self.spec["margin"])

    def effect(self, outcome: PairOutcome) -> Effect:
        """Return the preference on a kind of pairs as an effect, whose neutral value is 0."""
        preference = outcome.preference
        low, high = preference.low - EVEN, preference.high - EVEN
        return Effect(
            run=self.model,
            estimand=PreferenceOfPairs(pairs=outcome.kind),
            a=self.protected,
            b=self.unprotected,
            value=preference.value - EVEN,
            low=low,
            high=high,
            error=outcome.error,
            p=outcome.p,
            p_corrected=outcome.p_corrected,
            queries=outcome.queries,
            family_size=outcome.family_size,
            effective_n=outcome.effective_n,
            checks=outcome.checks,
            variation=self.variation(outcome.kind),
        )

    def variation(self, kind: Kind) -> Variation | None:
        """Return of how many pairs the choice could depend on the documents.

        None where both orders must agree: pairs on which they do not are no part of the preference
        then.
        """
        if self.spec["count_rule"] != "each":
            return None
        queries = [row for row in self.by_query if row.kind == kind]
        both_orders = sum(row.readable for row in queries) // 2
        return choice_variation(both_orders, sum(row.inconsistent for row in queries))

    def verdict(self, outcome: PairOutcome) -> PairVerdict:
        """Return the verdict on a kind of pairs, by the rule of all verdicts."""
        effect = self.effect(outcome)
        verdict = verdict_for(effect.measure, [effect], self.margin, noun="documents")
        return PairVerdict(
            effect=effect,
            kind=verdict.kind,
            side=verdict.side,
            margin=verdict.margin,
            slight=verdict.slight,
            noun=verdict.noun,
            questions=verdict.questions,
            outcome=outcome,
        )

    def derived(self) -> dict[str, Any]:
        return {
            "effects": [effect_row(self.effect(outcome), self.margin) for outcome in self.outcomes],
        }
