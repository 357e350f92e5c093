"""What choices between two groups say: shares and a verdict for each kind of pairs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ranktilt.auditing.answer.verdict import Verdict, across, effect_row, probability
from ranktilt.auditing.effects import Effect
from ranktilt.auditing.pairwise.pairs import Kind
from ranktilt.errors import counted, join_words
from ranktilt.io.artifact import Result
from ranktilt.measures.margin import margin_words
from ranktilt.measures.preference import PreferenceOfPairs
from ranktilt.statistics.correction import detectable_effect

EVEN = 0.5
"""The share of what was decided that favours nobody; and of answers naming the first document without position bias."""
COUNTS = ("both-agree", "each")
Outcome = Literal["favours", "level", "inconclusive"]
"""Kinds of verdicts that say something of two groups."""


@dataclass(frozen=True)
class Share:
    """A share, 0 to 1, with its 95 % interval; NaN where nothing was counted."""

    value: float
    low: float
    high: float

    @property
    def odds(self) -> Share:
        """The share over what it leaves, with its interval: the ratio of two sides; infinite where it is all."""
        with np.errstate(divide="ignore"):
            low, value, high = (
                float(np.float64(one) / np.float64(1 - one)) for one in (self.low, self.value, self.high)
            )
        return Share(value, low, high)

    @property
    def uneven(self) -> bool:
        """Whether the interval lies on one side of a half."""
        return self.low > EVEN or self.high < EVEN


@dataclass(frozen=True)
class PairOutcome:
    """What was chosen of the pairs of one kind."""

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
    """Of the answers that could be read, those that name the document shown first: .5 is no position bias."""
    error: float
    """Standard error of the preference."""
    votes: int
    """Distinct queries in which anything was decided."""
    documents: int
    """Distinct documents, or origins of twins, of which anything was decided, on the side that has fewer."""
    p: float
    p_corrected: float = np.nan
    tests: int = 1

    @property
    def ratio(self) -> Share:
        """Protected over unprotected share; 1 is level."""
        return self.preference.odds

    @property
    def detectable(self) -> float:
        """The smallest distance of the preference from .5 that such queries and documents detect with 80 % power."""
        return detectable_effect(self.error, self.tests, min(self.votes, self.documents))

    def derived(self) -> dict[str, Any]:
        return {"ratio": self.ratio}


@dataclass(frozen=True)
class QueryChoices:
    """What was chosen of one query's pairs of one kind; queries of one text are one, called by the first id."""

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


@dataclass(frozen=True, eq=False)
class PairwiseAudit(
    Result, format="ranktilt-pairwise", version=1, noun="a pairwise audit", command="ranktilt pairwise"
):
    """What a language model chose of pairs of a protected and an unprotected document; immutable."""

    spec: Mapping[str, Any]
    """How it was made."""
    model: str
    """Who chose."""
    protected: str
    unprotected: str
    outcomes: tuple[PairOutcome, ...]
    """One for each kind of pairs that there are: relevant, irrelevant."""
    notes: tuple[str, ...] = ()
    """What a reader should know."""
    by_query: tuple[QueryChoices, ...] = ()
    """What was chosen in each query, for `compare`."""

    @property
    def level(self) -> float:
        """Half-width of what counts as level, in points."""
        return float(self.spec["level"])

    def favours(self, one: PairOutcome) -> str | None:
        """Return the side that is favoured on a kind of pairs; None where none is."""
        effect = self.effect(one)
        return effect.side(effect.verdict(self.level)) or None

    def effect(self, one: PairOutcome) -> Effect:
        """Return the preference on a kind of pairs as an effect, whose level is 0."""
        low, value, high = (share - EVEN for share in (one.preference.low, one.preference.value, one.preference.high))
        return Effect(
            self.model, PreferenceOfPairs(pairs=one.kind), self.protected, self.unprotected, value, low, high,
            one.error, one.p, one.p_corrected, one.queries, tests=one.tests, votes=min(one.votes, one.documents),
        )  # fmt: skip

    def kind(self, one: PairOutcome) -> Outcome:
        """Say whether a side is favoured on a kind of pairs, by the rule of all verdicts."""
        found = self.effect(one).verdict(self.level)
        return found if found in ("level", "inconclusive") else "favours"

    def verdict(self, one: PairOutcome) -> Verdict:
        """Return the verdict on a kind of pairs."""
        effect = self.effect(one)
        slight = effect.favours != "" and effect.extent(self.level) == "within"
        sides = self.protected, self.unprotected
        return Verdict(
            self.model, self.kind(one), self.favours(one), self.sentence(one), effect.measure, self.level, slight, 1, 1,
            *sides,
        )  # fmt: skip

    def summary(self, outcomes: Iterable[PairOutcome]) -> str:
        """Say the verdicts in short: ``favours male documents on relevant and irrelevant pairs``."""
        words = {"level": "is level", "inconclusive": "is inconclusive"}
        kinds: dict[str, list[str]] = {}
        for one in outcomes:
            said = words.get(self.kind(one), f"favours {self.favours(one)} documents")
            kinds.setdefault(said, []).append(one.kind)
        return join_words([f"{said} on {join_words(on)} pairs" for said, on in kinds.items()])

    def sentence(self, one: PairOutcome) -> str:
        """Say the verdict on a kind of pairs."""
        of = (
            "pairs on which both orders agree"
            if self.spec["count_rule"] == "both-agree"
            else "answers that could be read"
        )
        share, ratio = one.preference, one.ratio
        low, value, high = (f"{100 * one:.1f} %" for one in (share.low, share.value, share.high))
        numbers = (
            f"{self.protected} is chosen in {value} of the {one.decided:,} {of}, 95 % interval [{low}, {high}] "
            f"(ratio {ratio.value:.2f}), corrected p {probability(one.p_corrected)}"
        )
        outcome, where, effect = self.kind(one), f"{one.kind} pairs", self.effect(one)
        if outcome == "favours":
            slightly = f" slightly, within {margin_words(self.level)}" * (effect.extent(self.level) == "within")
            return f"{self.model} favours {self.favours(one)} documents on {where}{slightly}: {numbers}"
        if outcome == "level":
            margin = f"within {50 - self.level:g} to {50 + self.level:g} %"
            return (
                f"{self.model} is level between {self.protected} and {self.unprotected} on {where}: {numbers}, {margin}"
            )
        if not one.decided:
            none = "both orders agree on" if self.spec["count_rule"] == "both-agree" else "a document is named for"
            return f"{self.model}: inconclusive on {where}: of {counted(one.pairs, 'pair', 'pairs')} {none} none"
        could = f"these pairs could only detect a share that is {100 * one.detectable:.0f} points or more from 50 %"
        if one.detectable > EVEN:
            could = "these pairs could not detect any preference"
        could = across(one.p_corrected, "50 %") or could
        if not effect.testable:
            could = f"{counted(one.votes, 'query with a decision is', 'queries with a decision are')} too few to test"
            if one.documents < one.votes:
                told = counted(one.documents, "document", "documents")
                could = f"choices between {told} of one side and the other's are too few to test"
        return f"{self.model}: inconclusive on {where}: {could}; {numbers}"

    def derived(self) -> dict[str, Any]:
        return {
            "verdicts": [self.verdict(one) for one in self.outcomes],
            "next_steps": (),
            "effects": [effect_row(self.effect(one), self.level) for one in self.outcomes],
        }  # fmt: skip
