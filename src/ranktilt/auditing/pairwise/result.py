"""The options and the result of a pairwise audit: shares and a verdict for each kind of pairs.

A pair is a protected and an unprotected document, shown to a model in both orders. Its *kind* says
whether both documents are relevant to the query, or neither. The *preference* is the share of the
model's decisions for the protected document, and the *position bias* that for the document shown
first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ranktilt.auditing.answer.verdict import Verdict, effect_row, verdict_for
from ranktilt.auditing.effects import Effect
from ranktilt.auditing.options import check_choices, check_resamples
from ranktilt.auditing.pairwise.pairs import Kind
from ranktilt.data.artifact import Coded, Result
from ranktilt.data.notes.base import Note
from ranktilt.errors import UserError, unknown_name
from ranktilt.field_checks import is_number, printed, require_seed
from ranktilt.measures.preference import PreferenceOfPairs
from ranktilt.statistics.variation import Variation, choice_variation

EVEN = 0.5
"""Share that favours nobody, and that shows no position bias."""
MOST_POSITION_BIAS = 0.2
"""Distance of the position bias from one half above which there is a warning.

So there is one if more than 70 % of the answers choose the document shown first, or less than 30 %.
"""
COUNT_RULES = ("both-agree", "each")
"""Rules of counting: a pair if the answers in both orders agree, or each answer separately."""


@dataclass(frozen=True, kw_only=True)
class PairwiseOptions:
    """Options for counting and testing choices; those of `ranktilt.pairwise`."""

    count_rule: str
    """How choices are counted, one of `COUNT_RULES`."""
    margin: float
    """Largest distance from 50 % that counts as level, in points."""
    correction: str
    """Correction for several tests: ``holm`` or ``bonferroni``."""
    resamples: int
    """Number of bootstrap resamples."""
    seed: int
    """Random seed."""

    def check(self) -> None:
        """Refuse values that no pairwise audit takes, before a model is asked."""
        check_resamples(self.resamples)
        require_seed(self.seed)
        # A share lies at most 50 points from one half.
        if not is_number(self.margin) or not 0 <= self.margin <= 100 * EVEN:
            raise UserError(
                f"expected a margin from 0 to {100 * EVEN:g} points, got {printed(self.margin)}"
            )
        check_choices(correction=self.correction)
        if self.count_rule not in COUNT_RULES:
            raise unknown_name("rule for counting", self.count_rule, COUNT_RULES)


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
        """Whether the whole interval lies above one half, or below."""
        return self.low > EVEN or self.high < EVEN


@dataclass(frozen=True, kw_only=True)
class PairOutcome:
    """Choices in the pairs of one kind.

    Choices are counted by pair with the rule ``both-agree``, and by answer with the rule ``each``.
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
    """Share of pairs or answers in which the protected document was chosen."""
    unprotected: Share
    """Share of pairs or answers in which the other document was chosen."""
    inconsistent: Share
    """Share of pairs whose two answers could be read, and disagree."""
    unparsed: Share
    """Share of pairs with an answer that could not be read; or of such answers."""
    preference: Share
    """Share of decisions that chose the protected document; .5 is level."""
    first: Share
    """Share of readable answers that choose the document shown first: .5 is no position bias."""
    error: float
    """Standard error of the preference."""
    effective_n: float
    """Effective number of queries with a decision, or of documents on the side that has fewer."""
    p: float
    """p of no preference, by this test alone."""
    p_corrected: float = np.nan
    """The p, corrected for the number of kinds of pairs."""
    family_size: int = 1
    """Number of tests that are corrected together."""
    checks: Mapping[str, float] = field(default_factory=dict)
    """p of further tests by name: ``sign flips``."""

    @property
    def ratio(self) -> Share:
        """Choices of the protected document over choices of the other document; 1 is level."""
        return self.preference.odds

    @property
    def has_large_position_bias(self) -> bool:
        """Whether so many choices go by position that they say little about the documents."""
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
    """Id of the query."""
    pairs: int
    """Number of pairs that were asked about in both orders."""
    units: int
    """Number that shares are computed of: of these pairs; with the rule ``each``, of answers."""
    protected: int
    """Number of choices of the protected document."""
    unprotected: int
    """Number of choices of the other document."""
    inconsistent: int
    """Number of pairs whose two orders disagree."""
    unparsed: int
    """Number of pairs with an unreadable answer; with the rule ``each``, of such answers."""
    readable: int
    """Number of answers that choose a document."""
    first: int
    """Number of answers that choose the document shown first."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PairTable:
    """Choices in each pair of one kind, a row for each pair and query; `compare` reads it."""

    kind: Kind
    """Kind of pairs."""
    queries: tuple[str, ...]
    """Id of each pair's query."""
    protected_origins: tuple[str, ...]
    """Origin of each pair's protected document: the document that it is a version of."""
    unprotected_origins: tuple[str, ...]
    """Origin of each pair's other document."""
    protected: npt.NDArray[np.float64]
    """Number of choices of the protected document; 0 or 1 with the rule ``both-agree``."""
    unprotected: npt.NDArray[np.float64]
    """Number of choices of the other document."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PairwiseAudit(
    Result,
    format="ranktilt-pairwise",
    version=1,
    noun="a pairwise audit",
    command="ranktilt pairwise",
):
    """The result of `pairwise`: a model's choices between protected and unprotected documents."""

    spec: Mapping[str, Any]
    """How it was made: options, inputs, versions."""
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
        """Return the preference minus one half as an effect, whose neutral value is 0."""
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

        It does not if the model's choices in both orders disagree. None with the rule
        ``both-agree``, for which such pairs are no part of the preference.
        """
        if self.spec["count_rule"] != "each":
            return None
        queries = [row for row in self.by_query if row.kind == kind]
        pairs_with_choices = sum(row.readable for row in queries) // 2
        return choice_variation(pairs_with_choices, sum(row.inconsistent for row in queries))

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
        """Return the effects as rows of the file, with their verdicts."""
        return {
            "effects": [effect_row(self.effect(outcome), self.margin) for outcome in self.outcomes],
        }
