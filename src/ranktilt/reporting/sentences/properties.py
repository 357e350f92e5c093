"""Gaps and the properties that go with them, in words; never because of what."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter

from ranktilt.errors import counted, join_words
from ranktilt.explaining.properties.result import (
    FEWEST,
    ExplainedGap,
    ExplainedGaps,
    GapPart,
    LeftOutProperty,
    ListCoverage,
    Outcome,
    Reason,
)
from ranktilt.reporting.numbers import always_signed, count
from ranktilt.reporting.sentences.findings import Finding, first_of, ranked

UNITS: Mapping[Outcome, str] = {"score": "sd", "rank": "ranks", "first ranks": "points"}
"""Unit of a gap, by its outcome."""
DIGITS: Mapping[Outcome, int] = {"score": 3, "rank": 1, "first ranks": 1}
"""Decimals of a gap, by its outcome."""
COLLINEAR = 10
"""Variance inflation from which on parts of two properties cannot be distinguished."""
_MOST_NAMED = 3
"""Most properties that a sentence names."""
_REASONS: Mapping[Reason, str] = {
    "no number": "no numbers",
    "mostly unknown": "more than half of the documents have no value",
    "one value": "only one value in each list",
    "follows": "determined by the groups and other properties",
}
"""Words for why a property is left out."""


def gap_findings(gaps: ExplainedGaps) -> tuple[Finding, ...]:
    """Return what goes with each gap, the largest gap first."""
    return ranked(_finding(gaps, gap, gap_sentence(gap)) for gap in gaps.primary)


def leading(gaps: ExplainedGaps) -> Finding:
    """Return the finding that leads, in fewer words."""
    return first_of(ranked(_finding(gaps, gap, _short_sentence(gap)) for gap in gaps.primary))


def _finding(gaps: ExplainedGaps, gap: ExplainedGap, sentence: str) -> Finding:
    """Return what a gap says."""
    if not gap.is_shown:
        return Finding(kind="inconclusive", sentence=sentence, run=gap.run)
    return Finding(
        kind="favours",
        sentence=" ".join([sentence, *_unexamined(gaps, gap.run)]),
        size=gap.clearness,
        run=gap.run,
    )


def _short_sentence(gap: ExplainedGap) -> str:
    """Say how large a gap is, and how much of it goes with the properties that lead."""
    if not gap.is_shown:
        return gap_sentence(gap)
    parts = [
        f"{_toward_higher(gap, part.value)} {'of this goes ' if not index else ''}"
        f"with {part.property_name}"
        for index, part in enumerate(gap.shown_parts[:_MOST_NAMED])
    ]
    if not parts:
        return f"{_lead(gap)}. No property is shown to go with it."
    return f"{_lead(gap)}; {join_words(parts)}."


def _unexamined(gaps: ExplainedGaps, run: str) -> Iterator[str]:
    """Say which properties could not be examined, because they do not vary within lists."""
    names = [
        single.name
        for single in gaps.left_out
        if single.reason == "one value" and single.run in ("", run)
    ]
    if not names:
        return
    subject = join_words(names)
    if len(names) > _MOST_NAMED:
        subject = f"{len(names)} other properties"
    verb = "does" if len(names) == 1 else "do"
    yield f"Within these lists, {subject} {verb} not vary and could not be examined."


def gap_sentence(gap: ExplainedGap) -> str:
    """Say how large a gap is, which properties go with it, and what remains."""
    if not gap.has_enough:
        return (
            f"{gap.run}: inconclusive between {gap.group_a} and {gap.group_b}. The lists are worth "
            f"{gap.effective_n:.1f} independent queries or documents, fewer than {FEWEST}."
        )
    parts = _parts_phrase(gap)
    if not gap.is_shown:
        numbers = f"{_number(gap, gap.value)} {_ends(gap, gap.low, gap.high)}"
        sentence = f"{gap.run} shows no gap between {gap.group_a} and {gap.group_b} ({numbers})"
        return f"{sentence}, but {parts}." if gap.shown_parts else f"{sentence}."
    remaining = _toward_higher(gap, gap.remaining, gap.remaining_low, gap.remaining_high)
    return f"{_lead(gap)}. Of this gap, {parts}; {remaining} remains at equal properties."


def _lead(gap: ExplainedGap) -> str:
    """Say which group stands higher, and by how much."""
    higher, lower = gap.group_a, gap.group_b
    if gap.value < 0:
        higher, lower = lower, higher
    verb = "scores" if gap.outcome == "score" else "ranks"
    low, high = sorted((abs(gap.low), abs(gap.high)))
    digits = DIGITS[gap.outcome]
    size = f"{abs(gap.value):.{digits}f} {UNITS[gap.outcome]} [{low:.{digits}f}, {high:.{digits}f}]"
    return f"{gap.run} {verb} {higher} higher than {lower}, by {size}"


def _toward_higher(
    gap: ExplainedGap, value: float, low: float = math.nan, high: float = math.nan
) -> str:
    """Print a part of a gap, which is above 0 where it goes the way of the gap."""
    if gap.is_shown and gap.value < 0:
        value, low, high = -value, -high, -low
    number = _number(gap, value)
    return number if math.isnan(low) else f"{number} {_ends(gap, low, high)}"


def _parts_phrase(gap: ExplainedGap) -> str:
    """Say which parts are shown: ``+0.120 [..] goes with words and −0.050 [..] with age``."""
    parts = gap.shown_parts
    if not parts:
        return "no part is shown to go with a property"
    phrases = [f"{_part_number(gap, part)} with {part.property_name}" for part in parts]
    first = f"{_part_number(gap, parts[0])} goes with {parts[0].property_name}"
    return join_words([first, *phrases[1:]])


def _part_number(gap: ExplainedGap, part: GapPart) -> str:
    """Write a part of a gap, toward the side that stands higher."""
    return _toward_higher(gap, part.value, part.low, part.high)


def _number(gap: ExplainedGap, value: float) -> str:
    """Write a number in the unit of a gap."""
    return f"{always_signed(value, DIGITS[gap.outcome])} {UNITS[gap.outcome]}"


def _ends(gap: ExplainedGap, low: float, high: float) -> str:
    """Write an interval in the digits of a gap."""
    digits = DIGITS[gap.outcome]
    return f"[{always_signed(low, digits)}, {always_signed(high, digits)}]"


def gap_cautions(gaps: ExplainedGaps) -> Iterator[str]:
    """Say what these numbers do not show, and which properties are left out."""
    yield stronger_way(gaps)
    partial = [coverage for coverage in gaps.coverage if not coverage.is_complete]
    for size in dict.fromkeys(_list_size(coverage) for coverage in partial):
        yield coverage_sentence([single for single in partial if _list_size(single) == size])
    yield from _dropped(gaps)
    if gaps.left_out:
        yield f"Left out: {'; '.join(_left_out_phrases(gaps.left_out))}."
    yield from _inflated(gaps)


def stronger_way(gaps: ExplainedGaps) -> str:
    """Say that a part goes with a property, and name the comparison that says more."""
    front = "A part goes with a property, which does not show that the ranker uses it."
    if gaps.has_twins:
        return (
            f"{front} Some of these documents are twins. With their texts, "
            "`explain DIR --attribution` compares each with its twin."
        )
    return (
        f"{front} Twins (generate rewrite, then explain --attribution) keep the content equal, and "
        "designed versions (generate versions, then explain --by-factor) show causes."
    )


def coverage_sentence(coverages: Sequence[ListCoverage]) -> str:
    """Say that the lists of some runs, which are of one size, hold only what scored well."""
    list_size, documents = _list_size(coverages[0])
    return (
        f"{join_words([coverage.run for coverage in coverages])}: a list holds {list_size} of "
        f"{documents} documents on average, the best-scoring ones; gaps and parts cover only these."
    )


def _list_size(coverage: ListCoverage) -> tuple[str, str]:
    """Return how many documents a list holds on average, and could hold, as they are printed."""
    mean = coverage.listed / max(coverage.queries, 1)
    return f"{mean:,.0f}", count(coverage.documents)


def _dropped(gaps: ExplainedGaps) -> Iterator[str]:
    """Yield how many results are left out for want of a property."""
    for gap in gaps.primary:
        if gap.dropped:
            total = gap.entries + gap.dropped
            yield (
                f"{gap.run}, {gap.group_a} and {gap.group_b}: {count(gap.dropped)} of "
                f"{count(total)} results are left out, because one of their properties is unknown."
            )


def _left_out_phrases(left_out: tuple[LeftOutProperty, ...]) -> Iterator[str]:
    """Name the properties left out, by reason: ``url and title: no numbers``."""
    names: dict[tuple[str, Reason], list[str]] = {}
    for single in left_out:
        names.setdefault((single.run, single.reason), []).append(single.name)
    for (run, reason), members in names.items():
        where = f" ({run})" if run else ""
        yield f"{join_words(members)}{where}: {_REASONS[reason]}"


def _inflated(gaps: ExplainedGaps) -> Iterator[str]:
    """Name properties whose parts cannot be distinguished."""
    for gap in gaps.primary:
        names = [
            f"{part.property_name} ({part.inflation:.0f})"
            for part in gap.parts
            if part.inflation > COLLINEAR
        ]
        if names:
            pair = f"{gap.group_a} and {gap.group_b}"
            yield (
                f"{gap.run}, {pair}: {join_words(names)} go together (variance inflation), so "
                "their parts are hard to separate."
            )


def basis_sentence(gap: ExplainedGap) -> str:
    """Say how much a gap rests on."""
    queries = counted(gap.queries, "list", "lists")
    return (
        f"{count(gap.entries)} results, {count(gap.documents)} documents, "
        f"{queries} with both groups; effective n {gap.effective_n:.0f}"
    )


def gaps_meaning(gaps: ExplainedGaps) -> str:
    """Say what the parts of a gap mean; never that they cause it."""
    shown_gaps = [gap for gap in gaps.primary if gap.is_shown]
    if not shown_gaps:
        return "No gap is shown, so there is nothing to explain yet."
    gap = max(shown_gaps, key=attrgetter("clearness"))
    parts = gap.shown_parts
    if not parts:
        return (
            "None of these properties is shown to go with the gap, so look for the reason "
            "elsewhere."
        )
    names = join_words([part.property_name for part in parts[:_MOST_NAMED]])
    return (
        f"The gap goes with {names}, so start there. Only twins, or texts edited on purpose, would "
        "show whether that is the cause."
    )
