"""Comparisons of two engines in words: whose tilt is larger, and how alike they cite.

Engines answer the same queries and cite pages of two groups. Groups are compared by the ratio of
their citation rates, or by the share of citations that one of them gets; the tilt is the distance
from a neutral value. A change is the new engine's answer to one question against the old engine's:
a ratio of two ratios, or a difference of two shares. Errors are computed over units: domains, pages
or the values of a column. A finding is a sentence with its kind, by which findings are sorted.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from math import isnan
from typing import Any

from ranktilt.auditing.answer.verdict import FindingKind
from ranktilt.citing.comparison.result import (
    CitationChange,
    CitationChangeKind,
    CitationComparison,
    CitationOverlap,
)
from ranktilt.citing.inference.infer import FEWEST_UNITS
from ranktilt.errors import counted
from ranktilt.measures.printing import ends_apart, rounded, signed
from ranktilt.reporting.document import NextCommand
from ranktilt.reporting.sentences.citing.cite import (
    POOL_WORDS,
    QUESTION_WORDS,
    p_words,
    units_word,
)
from ranktilt.reporting.sentences.findings import Finding, first_finding, sort_findings
from ranktilt.reporting.sentences.grammar import often_words, ratio_words

_FINDING_KINDS: dict[CitationChangeKind, FindingKind] = {
    "differs": "favours",
    "inconclusive": "inconclusive",
    "identical": "level",
}
"""Kind of finding, by which verdicts are sorted and coloured, by the kind of change."""


def leading_finding(comparison: CitationComparison) -> Finding:
    """Return the finding that leads."""
    return first_finding(comparison_findings(comparison))


def derived_words(comparison: CitationComparison) -> dict[str, Any]:
    """Return the verdicts as sentences, which the saved file holds besides the fields."""
    return {"verdicts": [finding.sentence for finding in comparison_findings(comparison)]}


def comparison_findings(comparison: CitationComparison) -> tuple[Finding, ...]:
    """Return the verdict on the primary question for every pair, differences first."""
    findings = []
    for change in comparison.primary:
        sentence = change_sentence(comparison, change)
        findings.append(Finding(kind=_FINDING_KINDS[change.kind], sentence=sentence))
    return sort_findings(findings)


def change_sentence(comparison: CitationComparison, change: CitationChange) -> str:
    """Say whether the new engine's tilt differs from the old one's, and how."""
    new, old = comparison.new, comparison.old
    if change.kind == "identical":
        return f"{new} and {old} cite alike."
    if isnan(change.value):
        return (
            f"{new} and {old} cannot be compared: the {QUESTION_WORDS[change.question]} is "
            "undefined for one of them."
        )
    if change.kind == "differs":
        difference = _difference_words(change, change.low, change.high)
        p = f"corrected p {p_words(change.p_corrected)}"
        return (
            f"{new} leans further toward {change.side} pages than {old}: {_value_words(change)} "
            f"({difference}, {p}){_growth_words(comparison, change)}."
        )
    return f"No difference between {new} and {old} is shown: {_open_reason(comparison, change)}"


def _value_words(change: CitationChange) -> str:
    """Give the ratio or the share of each engine, the new one first."""
    if change.scale == "log ratio":
        # "half as often as": the old engine's ratio ends the clause, so its last "as" goes.
        old = often_words(change.old).removesuffix(" as")
        return (
            f"of {POOL_WORDS[change.question]}, {change.a} ones are cited "
            f"{often_words(change.new)} {change.b} ones, against {old}"
        )
    return (
        f"{change.a} pages get {rounded(change.new, 1)} % against {rounded(change.old, 1)} %"
        f"{_neutral_words(change)}"
    )


def _neutral_words(change: CitationChange) -> str:
    """Say which values would favour neither side; empty where one is unknown."""
    if isnan(change.neutral_new) or isnan(change.neutral_old):
        return ""
    return (
        f", where {rounded(change.neutral_new, 1)} % and {rounded(change.neutral_old, 1)} % "
        "would favour neither side"
    )


def _difference_words(change: CitationChange, low: float, high: float) -> str:
    """Print a difference with an interval: the ratio of two ratios, or points of a share."""
    if change.scale == "log ratio":
        return _ratio_words_of_both(change, low, high)
    return f"{signed(change.value)} points{_point_interval(low, high)}"


def _ratio_words_of_both(change: CitationChange, low: float, high: float) -> str:
    """Print the ratio of each engine, and the ratio of the two with its interval."""
    return (
        f"{ratio_words(change.new)} against {ratio_words(change.old)}, a ratio of "
        f"{ratio_words(change.value)}{_ratio_interval(low, high)}"
    )


def _ratio_interval(low: float, high: float) -> str:
    """Print the interval of a ratio after its value; empty where there is none."""
    if isnan(low):
        return ""
    return f" [{', '.join(ends_apart((low, high), 1.0, ratio_words))}]"


def _point_interval(low: float, high: float) -> str:
    """Print the interval of points after their value; empty where there is none."""
    return "" if isnan(low) else f" [{', '.join(ends_apart((low, high), 0.0, signed))}]"


def _growth_words(comparison: CitationComparison, change: CitationChange) -> str:
    """Say which engine's tilt is larger, whichever group each of them leans to.

    The growth is how much further from neutral the new engine is than the old one.
    """
    if change.growth_low > change.neutral:
        return f"; the tilt of {comparison.new} is larger"
    if change.growth_high < change.neutral:
        return f"; the tilt of {comparison.old} is larger"
    return "; whose tilt is larger is not shown"


def _open_reason(comparison: CitationComparison, change: CitationChange) -> str:
    """Say why a verdict is inconclusive: few units, few questions, or a wide interval."""
    units = units_word(comparison.unit)
    # `change.thinner` is the group with fewer effective units.
    if change.effective_units < FEWEST_UNITS:
        number = rounded(change.effective_units, 1)
        text = (
            f"{change.thinner} pages come from too few {units} ({number} effective) to speak of "
            "them as a kind."
        )
        # Few units still allow an interval over further questions about the same units.
        if isnan(change.these_low):
            return text
        difference = _difference_words(change, change.these_low, change.these_high)
        return (
            f"{text} Of these {units}, in further questions like these: {_value_words(change)} "
            f"({difference})."
        )
    if change.effective_questions < FEWEST_UNITS:
        queries = counted(change.questions, "query is", "queries are")
        return f"{queries} too few to compare engines; ask at least {FEWEST_UNITS}."
    detectable = change.detectable
    size = f"one of {rounded(detectable, 1)} points"
    if change.scale == "log ratio":
        # A ratio above 1 is as easy to detect as its inverse.
        size = f"a ratio of {rounded(detectable, 2)} or {rounded(1 / detectable, 2)}"
    queries = counted(change.questions, "query", "queries")
    values = _sentence_case(_value_words(change))
    difference = _difference_words(change, change.low, change.high)
    return (
        f"{queries} and these {units} would find {size} four times in five. {values} "
        f"({difference})."
    )


def _sentence_case(text: str) -> str:
    """Write the first letter of a sentence as a capital."""
    # `capitalize` would write all other letters small, and so the names of groups.
    return text[:1].upper() + text[1:]


def comparison_meaning(comparison: CitationComparison) -> str:
    """Say what the comparison means for somebody who has to choose an engine."""
    differences = [change for change in comparison.primary if change.kind == "differs"]
    if differences:
        change = differences[0]
        return (
            f"The two engines do not treat {change.a} and {change.b} pages alike, by more than "
            "chance explains: which one you use decides whom your readers see."
        )
    if comparison.primary and all(change.kind == "identical" for change in comparison.primary):
        return "What you know about one engine also holds for the other."
    return (
        "These answers cannot tell the two engines apart. That does not mean that they are alike: "
        "ask more questions before you decide."
    )


def overlap_sentences(comparison: CitationComparison) -> Iterator[str]:
    """Yield how many of the cited pages, and of the domains, both engines have in common.

    Answers of one engine to the same query differ too; what two of them share is said with it.
    """
    for overlap in comparison.overlaps:
        if overlap.measure == "Jaccard" and not isnan(overlap.value):
            yield _overlap_sentence(comparison, overlap)


def _overlap_sentence(comparison: CitationComparison, overlap: CitationOverlap) -> str:
    """Say how many pages both engines share, or how many domains; `overlap.of` is the noun."""
    share = f"{rounded(100 * overlap.value, 1)} %"
    if not isnan(overlap.low):
        ends = (rounded(100 * end, 1) for end in (overlap.low, overlap.high))
        share = f"{share} [{', '.join(ends)}]"
    text = f"The two engines share {share} of the {overlap.of} that either cites for a query"
    names = (comparison.new, comparison.old)
    shares_within_engines = [
        f"{rounded(100 * within, 1)} % ({name})"
        for name, within in zip(names, (overlap.within_new, overlap.within_old), strict=True)
        if not isnan(within)
    ]
    if not shares_within_engines:
        return f"{text}."
    return f"{text}; two answers of one engine share {' and '.join(shares_within_engines)}."


def comparison_steps(comparison: CitationComparison) -> Iterator[NextCommand]:
    """Yield what to do next; nothing where the audits were not read from files."""
    files = [str(comparison.spec[side].get("file", "")) for side in ("new", "old")]
    if all(files):
        words = ["ranktilt", "report", *files, "-o", "both.html"]
        yield NextCommand(text="See both audits on one page", command=shlex.join(words))
