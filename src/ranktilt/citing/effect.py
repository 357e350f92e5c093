"""The questions of an audit of citations, and the records of its answers.

Answers of an engine cite pages; each page belongs to a group. A page is first *retrieved* for the
query, then *consulted* (read) by the engine, then cited in the answer. A question compares two
groups, *a* and *b*, such as by their citation rates; an effect is its value. *Neutral* is the value
that favours neither. A *unit* is pages that are labelled together, such as those of a domain; the
*effective* number of units is smaller than their number if some hold more pages than others. A
verdict is about all pages of a group's *kind*, such as AI pages, and needs ten effective units.

`StageShare`, `FunnelPart` and `RankRate` say which share each group has of a stage, what made the
share change on the way, and how often pages are cited by the rank at which they were retrieved;
`funnel` computes them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ranktilt.auditing.effects import ALPHA
from ranktilt.citing.inference.infer import FEWEST_UNITS, Over
from ranktilt.measures.citations import cited_words, equal_rank, first_citation, rate, share
from ranktilt.measures.citations.base import CitationEstimate, CitationRows, Scale
from ranktilt.measures.citations.funnel import Term
from ranktilt.statistics.correction import detectable_effect

QuestionKey = Literal["rate", "retrieved rate", "equal rank", "share", "first", "words"]
"""Short name of a question, in code and in files; `ranktilt.measures.citations` defines each."""
Stage = Literal["retrieved", "consulted", "cited", "cited without being retrieved"]
"""Name of a stage, in code and in files; the last is a part of the cited pages."""


# ---- questions ----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question about citations, and what must be known to answer it."""

    key: QuestionKey
    """Short name of the question."""
    estimate: Callable[[CitationRows], CitationEstimate]
    """Function that answers the question from the pages of two groups."""
    needs: Literal["", "consulted", "retrieved", "words"] = ""
    """What must be known: consulted pages, retrieved pages, or the words that a page supports.

    Empty if the citations are enough.
    """


def _retrieved_rate(rows: CitationRows) -> CitationEstimate:
    """Return the ratio of citation rates of retrieved pages."""
    return rate.rate_ratio(rows, rows.is_retrieved)


_ORDERED_QUESTIONS = (
    Question(key="rate", estimate=rate.estimate, needs="consulted"),
    Question(key="equal rank", estimate=equal_rank.estimate, needs="retrieved"),
    Question(key="retrieved rate", estimate=_retrieved_rate, needs="retrieved"),
    Question(key="share", estimate=share.estimate),
    Question(key="first", estimate=first_citation.estimate),
    Question(key="words", estimate=cited_words.estimate, needs="words"),
)
"""All questions. The first that can be answered is the primary one, which decides the verdict."""
QUESTIONS: dict[QuestionKey, Question] = {question.key: question for question in _ORDERED_QUESTIONS}
"""All questions by their key, in the same order.

So the primary question is the citation rate of consulted pages. If these are unknown, it is the
rate of retrieved pages at equal rank, and if neither are known, the share of citations.
"""


def answerable_questions(rows: CitationRows, *, has_words: bool) -> list[Question]:
    """Return the questions that these rows can answer; the first is the primary question.

    `has_words` says whether it is known which words of an answer a page supports.
    """
    is_known = {
        "": True,
        "consulted": bool(rows.is_consulted.any()),
        "retrieved": bool(rows.is_retrieved.any()),
        "words": has_words,
    }
    return [question for question in QUESTIONS.values() if is_known[question.needs]]


# ---- effects ------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class CitationEffect:
    """One question about two groups of pages: how much more a is cited than b."""

    question: QuestionKey
    """Key of the question in `ranktilt.citing.effect.QUESTIONS`."""
    a: str
    """Group that a value above neutral favours."""
    b: str
    """Group that a is compared with."""
    value: float
    """A ratio a / b, or group a's part in percent; NaN where undefined."""
    value_a: float
    """Group a's rate from 0 to 1, or its part in percent."""
    value_b: float
    """Group b's rate from 0 to 1, or its part in percent."""
    scale: Scale
    """``log ratio`` where the value is a ratio, ``share`` where it is in percent."""
    neutral: float
    """Value that favours neither group; NaN where that is unknown, so that nothing is tested."""
    low: float
    """Lower end of the 95 % interval over other questions and units; NaN where undefined."""
    high: float
    """Upper end of the 95 % interval."""
    error: float
    """Standard error on `scale`: of the logarithm of a ratio, or in points of a share."""
    p: float
    """The larger of `exchange_p` and `two_way_p`; NaN where nothing is tested."""
    p_corrected: float
    """`p` corrected for the number of tests in `family_size`."""
    exchange_p: float
    """p of a permutation test that exchanges labels between units."""
    two_way_p: float
    """p of the t test with the error over questions and units."""
    effective_units: float
    """Effective number of units of the group that has fewer."""
    effective_questions: float
    """Effective number of queries."""
    questions: int
    """Number of queries with pages of either group."""
    citations_a: int
    """Number of citations of group a."""
    citations_b: int
    """Number of citations of group b."""
    family_size: int
    """Number of tests that are corrected together."""
    these_units: TheseUnits | None = None
    """The effect for further questions about the same units.

    Only for the primary question, and only if units are too few for a verdict about their kind.
    """
    observed: ObservedCitations | None = None
    """The values by the labels as they are, if this effect is corrected for wrong labels."""

    @property
    def is_testable(self) -> bool:
        """Whether units and questions suffice for a verdict about the kind of pages."""
        return (
            self.effective_units >= FEWEST_UNITS
            and self.effective_questions >= FEWEST_UNITS
            and not np.isnan(self.neutral)
        )

    @property
    def leans(self) -> Literal["a", "b", ""]:
        """The group that the whole interval favours; empty where it holds neutral."""
        if self.low > self.neutral:
            return "a"
        return "b" if self.high < self.neutral else ""

    def level_range(self, margin: float) -> tuple[float, float]:
        """Return the lowest and the highest value that count as level.

        For a share these are neutral ± `margin` points. For a ratio, with `margin` in percent, they
        are neutral divided by, and multiplied by, 1 + margin / 100.
        """
        if self.scale == "share":
            return self.neutral - margin, self.neutral + margin
        factor = 1 + margin / 100
        return self.neutral / factor, self.neutral * factor

    def verdict(self, margin: float) -> Literal["a", "b", "level", "inconclusive"]:
        """Return which group is favoured, by the rule that all commands share.

        A group is favoured if the interval and the corrected p both say so. An effect is level if
        its whole interval lies within the margin, in percent of a ratio or points of a share. All
        else is inconclusive.
        """
        if not self.is_testable or np.isnan(self.low):
            return "inconclusive"
        if self.leans and self.p_corrected < ALPHA:
            return self.leans
        low, high = self.level_range(margin)
        is_within = low <= self.low and self.high <= high
        return "level" if is_within else "inconclusive"

    @property
    def detectable(self) -> float:
        """Smallest true effect that these answers would show four times in five.

        It is in points of a share, or a ratio above 1; NaN where nothing is tested.
        """
        if not self.is_testable:
            return np.nan
        freedom = min(self.effective_units, self.effective_questions)
        size = detectable_effect(self.error, self.family_size, freedom)
        return float(np.exp(size)) if self.scale == "log ratio" else size

    def side(self, which: str) -> str:
        """Name the group of a verdict, ``a`` or ``b``; empty for any other verdict."""
        return {"a": self.a, "b": self.b}.get(which, "")

    def derived(self) -> dict[str, Any]:
        """Return numbers that follow from the fields, for the result's file."""
        return {"detectable": self.detectable}


@dataclass(frozen=True, kw_only=True)
class ObservedCitations:
    """The values of an effect by the labels as they are, without a correction for wrong labels."""

    value: float
    """A ratio a / b, or group a's part in percent; NaN where undefined."""
    value_a: float
    """Group a's rate from 0 to 1, or its part in percent."""
    value_b: float
    """Group b's rate from 0 to 1, or its part in percent."""
    neutral: float
    """Value that favours neither group; NaN where that is unknown."""
    low: float
    """Lower end of the 95 % interval."""
    high: float
    """Upper end of the 95 % interval."""


@dataclass(frozen=True, kw_only=True)
class TheseUnits:
    """The same effect for further questions about the same units.

    With fewer than ten units in a group, such as three domains of AI pages, an audit cannot say
    whether *AI pages* are favoured. It can say whether *these three domains* are.
    """

    low: float
    """Lower end of the 95 % interval over questions, in the unit of the effect's value."""
    high: float
    """Upper end of the 95 % interval over questions."""
    score_low: float
    """Lower end by a score test, if a group has fewer than ten citations; else NaN."""
    score_high: float
    """Upper end by a score test, if a group has fewer than ten citations; else NaN."""
    thinner: str
    """The group with fewer effective units."""
    largest: tuple[UnitShare, ...]
    """The two largest units of that group."""
    exchange_p_within_sizes: float
    """p of a test that exchanges labels only between units of about the same size."""


@dataclass(frozen=True, kw_only=True)
class UnitShare:
    """A unit of a group, such as a domain, and the effect without it."""

    name: str
    """Name of the unit."""
    share: float
    """Its part of the group's pages, 0 to 1."""
    value_without: float
    """The effect's value where the unit's pages are left out."""


# ---- from retrieved to cited --------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class StageShare:
    """A group's part of the pages of one stage, in percent."""

    stage: Stage
    """The stage whose pages are counted."""
    group: str
    """Name of the group."""
    value: float
    """Percent of the pages of this stage, among those of the two groups that are compared."""
    low: float
    """Lower end of the 95 % interval; NaN with too few questions."""
    high: float
    """Upper end of the 95 % interval."""
    over: Over
    """What the interval is over: other questions, or also other units (such as domains)."""
    pages: int
    """Number of pages of the group in this stage, once for each answer."""


@dataclass(frozen=True, kw_only=True)
class FunnelPart:
    """A part of the difference between group a's share of citations and of what was retrieved."""

    name: Term
    """Name of the part; `ranktilt.measures.citations.funnel` defines each."""
    a: str
    """Group a, whose share is explained."""
    b: str
    """Group that a is compared with."""
    value: float
    """Size of the part in percentage points."""
    low: float
    """Lower end of the 95 % interval; NaN with too few questions."""
    high: float
    """Upper end of the 95 % interval."""
    over: Over
    """What the interval is over: other questions, or also other units (such as domains)."""
    p: float
    """p of the t test that the part is 0."""


@dataclass(frozen=True, kw_only=True)
class RankRate:
    """How often the pages of a group in a band of ranks are cited."""

    first: int
    """First rank of the band; 0 for pages that were consulted and not retrieved."""
    last: int
    """Last rank of the band that holds a page; 0 for pages that were not retrieved."""
    group: str
    """The group whose pages are counted."""
    value: float
    """Citation rate, 0 to 1."""
    low: float
    """Lower end of the 95 % interval; NaN with too few questions."""
    high: float
    """Upper end of the 95 % interval."""
    over: Over
    """What the interval is over: other questions, or also other units (such as domains)."""
    pages: int
    """Number of pages of the group in this band, once for each answer."""
