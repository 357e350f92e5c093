"""The result of a pairwise audit: shares and a verdict for each kind of pairs."""

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
"""Share that favours nobody, and that shows no position bias."""
MOST_POSITION_BIAS = 0.2
"""Distance of the position bias from a half above which there is a warning."""
COUNTS = ("both-agree", "each")
"""Rules of counting: a pair whose both orders agree, or each answer."""


@dataclass(frozen=True, kw_only=True)
class Share:
    """A share from 0 to 1 with its 95 % interval; NaN if nothing was counted."""

    value: float
    """The share."""
    low: float
    """Lower end of the interval."""
    high: float
    """Upper end of the interval."""

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
    """Choices in the pairs of one kind.

    Shares are shares of pairs; with the rule ``each``, of answers.
    """

    kind: Kind
    """Kind of pairs."""
    queries: int
    """Number of distinct queries."""
    pairs: int
    """Number of pairs that count; with the rule ``both-agree``, those asked about in both orders.
    """
    decided: int
    """Number of pairs whose two orders agree; with the rule ``each``, of answers with a choice."""
    protected: Share
    """Share in which the protected document was chosen."""
    unprotected: Share
    """Share in which the other document was chosen."""
    inconsistent: Share
    """Share of pairs whose two orders could be read, and disagree."""
    unparsed: Share
    """Share with an answer that could not be read."""
    preference: Share
    """Share of decisions that chose the protected document; .5 is level."""
    first: Share
    """Share of readable answers that name the first document: .5 is no position bias."""
    error: float
    """Standard error of the preference."""
    effective_n: float
    """Effective number of queries with a decision, or of documents on the side that has fewer."""
    p: float
    """p of no preference, by this test alone."""
    p_corrected: float = np.nan
    """The same, corrected for the number of kinds of pairs."""
    family_size: int = 1
    """Number of tests that are corrected together."""
    checks: Mapping[str, float] = field(default_factory=dict)
    """p of further tests by name: ``sign flips``."""

    @property
    def ratio(self) -> Share:
        """Protected over unprotected share; 1 is level."""
        return self.preference.odds

    @property
    def has_large_position_bias(self) -> bool:
        """Whether positions decide so often that choices say little about the documents."""
        return abs(self.first.value - EVEN) > MOST_POSITION_BIAS

    def derived(self) -> dict[str, Any]:
        """Return numbers that follow from the fields, for the file."""
        return {"ratio": self.ratio}


@dataclass(frozen=True, kw_only=True)
class PairVerdict(Verdict):
    """The verdict on one kind of pairs."""

    outcome: PairOutcome
    """Choices that the verdict is about."""


@dataclass(frozen=True, kw_only=True)
class QueryChoices:
    """Choices in one query's pairs of one kind.

    Queries with the same text count as the first of them.
    """

    kind: Kind
    """Kind of pairs."""
    query: str
    pairs: int
    """Pairs that were asked about in both orders."""
    units: int
    """What shares are shares of: these pairs; with the rule ``each``, all answers."""
    protected: int
    """Choices of the protected document."""
    unprotected: int
    """Choices of the other document."""
    inconsistent: int
    """Pairs whose two orders disagree."""
    unparsed: int
    """Pairs or answers that could not be read."""
    readable: int
    """Answers that choose a document."""
    first: int
    """Answers that choose the document shown first."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PairTable:
    """Choices in each pair of one kind, a row for each pair and query; `compare` reads it."""

    kind: Kind
    """Kind of pairs."""
    queries: tuple[str, ...]
    protected_origins: tuple[str, ...]
    """Origin of each pair's protected document."""
    unprotected_origins: tuple[str, ...]
    """Origin of each pair's other document."""
    protected: npt.NDArray[np.float64]
    """Choices of the protected document; 0 or 1 with the rule ``both-agree``."""
    unprotected: npt.NDArray[np.float64]
    """Choices of the other document."""


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
    """Name of the model, or of the file of choices."""
    protected: str
    """Name of the protected group."""
    unprotected: str
    """Name of the other group."""
    outcomes: tuple[PairOutcome, ...]
    """Outcome of each kind of pairs that there is: relevant, irrelevant."""
    notes: tuple[Coded[Note], ...] = ()
    """Notes for the reader."""
    by_query: tuple[QueryChoices, ...] = ()
    """Choices in each query, for `compare`."""
    by_pair: tuple[PairTable, ...] = ()
    """Choices in each pair, for the error over documents in `compare`."""

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
        """Return in how many pairs the choice could depend on the documents.

        None if both orders must agree: pairs whose orders disagree are then no part of the
        preference.
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
        """Return verdicts as they are listed in files."""
        return {
            "effects": [effect_row(self.effect(outcome), self.margin) for outcome in self.outcomes],
        }
