"""Gaps and the properties that go with them, in words; never because of what.

A sentence names the group that stands higher, and gives sizes without signs: what goes the same way
as the gap, what goes against it, and what remains at equal properties.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from ranktilt.errors import counted, join_words
from ranktilt.explaining.properties.result import (
    FEWEST,
    ExplainedGap,
    ExplainedGaps,
    LeftOutProperty,
    ListCoverage,
    Outcome,
    Reason,
)
from ranktilt.measures.printing import rounded
from ranktilt.reporting.numbers import with_commas
from ranktilt.reporting.sentences.findings import Finding, first_of, ranked

UNITS: Mapping[Outcome, str] = {
    "score": "sd",
    "rank": "ranks",
    "first ranks": "points",
    "cited": "points",
}
"""Unit of a gap, by its outcome."""
DIGITS: Mapping[Outcome, int] = {"score": 3, "rank": 1, "first ranks": 1, "cited": 1}
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
_SHARE_WORDS = ((0.95, "nearly all"), (0.55, "most"), (0.45, "about half"), (0.0, "part"))
"""Words for a share of a gap, each from its number on."""


@dataclass(frozen=True, kw_only=True)
class _SizedPart:
    """A part of a gap, without its sign."""

    name: str
    """The property's."""
    size: float
    low: float
    high: float
    side: str
    """The group that stands higher by it."""
    more_in: str
    """The group that has more of the property."""


def gap_findings(gaps: ExplainedGaps) -> tuple[Finding, ...]:
    """Return what goes with each gap, the largest gap first."""
    findings = []
    for gap in gaps.primary:
        sentences = [gap_sentence(gaps, gap), *(_unexamined(gaps, gap) if gap.is_shown else ())]
        findings.append(_finding(gap, " ".join(sentences)))
    return ranked(findings)


def leading(gaps: ExplainedGaps) -> Finding:
    """Return the finding that leads, in fewer words."""
    return first_of(ranked(_finding(gap, _short_sentence(gaps, gap)) for gap in gaps.primary))


def _finding(gap: ExplainedGap, sentence: str) -> Finding:
    """Return what a gap says."""
    if not gap.is_shown:
        return Finding(kind="inconclusive", sentence=sentence, run=gap.run)
    return Finding(kind="favours", sentence=sentence, size=gap.clearness, run=gap.run)


def _short_sentence(gaps: ExplainedGaps, gap: ExplainedGap) -> str:
    """Say how large a gap is, and which properties go with it."""
    if not gap.is_shown:
        return gap_sentence(gaps, gap)
    lead = _lead(gaps, gap)
    if not gap.shown_parts:
        return f"{lead}. No property is shown to go with it."
    share = _joint_share(gap)
    only = ", the only property compared" if len(gap.parts) == 1 else ""
    if share is not None:
        return f"{lead}; {100 * share:.0f} % of this goes with {_names(_toward(gap))}{only}."
    clauses = []
    if toward := _toward(gap):
        clauses.append(f"{_names(toward)} {_go_or_goes(toward)} with it")
    if against := _against(gap):
        clauses.append(f"{_names(against)} {_go_or_goes(against)} against it")
    return f"{lead}; {', but '.join(clauses)}{only}."


def _names(parts: Sequence[_SizedPart]) -> str:
    """Name the properties that lead."""
    names = [part.name for part in parts[:_MOST_NAMED]]
    if len(parts) > _MOST_NAMED:
        names = [*names, f"{len(parts) - _MOST_NAMED} more"]
    return join_words(names)


def _go_or_goes(parts: Sequence[_SizedPart]) -> str:
    """Return the verb for one part or several."""
    return "goes" if len(parts) == 1 else "go"


def _unexamined(gaps: ExplainedGaps, gap: ExplainedGap) -> Iterator[str]:
    """Say which properties could not be examined, because they do not vary within lists."""
    names = _unvarying(gaps, gap)
    if not names:
        return
    verb = "does" if len(names) == 1 else "do"
    only = ""
    if len(gap.parts) == 1:
        only = f", so {gap.parts[0].property_name} is the only property compared"
    yield f"In these lists, {_few_names(names)} {verb} not vary and could not be examined{only}."


def _unvarying(gaps: ExplainedGaps, gap: ExplainedGap) -> list[str]:
    """Return the properties that do not vary within a run's lists."""
    return [
        single.name
        for single in gaps.left_out
        if single.reason == "one value" and single.run in ("", gap.run)
    ]


def _few_names(names: Sequence[str]) -> str:
    """Name a few properties, or count them."""
    if len(names) > _MOST_NAMED:
        return f"{len(names)} other properties"
    return join_words(names)


def gap_sentence(gaps: ExplainedGaps, gap: ExplainedGap) -> str:
    """Say how large a gap is, which properties go with it or against it, and what remains."""
    if not gap.has_enough:
        return (
            f"{gap.run}: inconclusive between {gap.group_a} and {gap.group_b}. The lists are worth "
            f"{gap.effective_n:.1f} independent queries or "
            f"{'domains or pages' if gap.outcome == 'cited' else 'documents'}, fewer than {FEWEST}."
        )
    if not gap.is_shown:
        return _no_gap_sentence(gap)
    sentences = [f"{_lead(gaps, gap)}.", *_toward_sentence(gap), *_against_sentence(gap)]
    if not gap.shown_parts:
        sentences.append("No part of it is shown to go with a property.")
    return " ".join([*sentences, _remaining_sentence(gap)])


def _no_gap_sentence(gap: ExplainedGap) -> str:
    """Say that no gap is shown, and which parts offset each other."""
    size = _toward_side(gap, gap.value, gap.low, gap.high)
    sentence = f"{gap.run} shows no gap between {gap.group_a} and {gap.group_b} ({size})"
    phrases = [
        f"{_part_size(gap, part)} toward {part.side} goes with {part.name}"
        for part in _sized_parts(gap)
    ]
    return f"{sentence}, but {join_words(phrases)}." if phrases else f"{sentence}."


def higher_group(gap: ExplainedGap) -> str:
    """Return the group that stands higher, whether or not that is shown."""
    return gap.group_b if gap.value < 0 else gap.group_a


def lower_group(gap: ExplainedGap) -> str:
    """Return the group that stands lower, whether or not that is shown."""
    return gap.group_a if gap.value < 0 else gap.group_b


def _sized_parts(gap: ExplainedGap) -> list[_SizedPart]:
    """Return the parts that are shown, the largest first."""
    parts = []
    for part in gap.shown_parts:
        size, low, high = _without_signs(part.value, part.low, part.high)
        side = gap.group_a if part.value > 0 else gap.group_b
        more_in = gap.group_a if part.difference > 0 else gap.group_b
        name = part.property_name
        parts.append(
            _SizedPart(name=name, size=size, low=low, high=high, side=side, more_in=more_in)
        )
    return parts


def _toward(gap: ExplainedGap) -> list[_SizedPart]:
    """Return the parts that go the way of the gap."""
    return [part for part in _sized_parts(gap) if part.side == higher_group(gap)]


def _against(gap: ExplainedGap) -> list[_SizedPart]:
    """Return the parts that go the other way."""
    return [part for part in _sized_parts(gap) if part.side != higher_group(gap)]


def _joint_share(gap: ExplainedGap) -> float | None:
    """Return the share of a gap that goes with all parts shown.

    None where it would mislead: where parts go against the gap, or add up to more than all of it.
    """
    toward = _toward(gap)
    if not gap.is_shown or not toward or _against(gap):
        return None
    share = sum(part.size for part in toward) / abs(gap.value)
    return share if share <= 1 else None


def _lead(gaps: ExplainedGaps, gap: ExplainedGap) -> str:
    """Say which group stands higher, and by how much."""
    size = _size(gap, *_without_signs(gap.value, gap.low, gap.high))
    if gap.outcome == "cited":
        sides = f"{higher_group(gap)} more often than {lower_group(gap)}"
        return f"Within a question, {gap.run} cites {sides}, by {size}"
    verb = "scores" if gap.outcome == "score" else "ranks"
    ranks = _ranks_apart(gaps, gap)
    in_ranks = f" ({ranks})" if ranks and gap.outcome == "score" else ""
    pair = f"{higher_group(gap)} higher than {lower_group(gap)}"
    return f"{gap.run} {verb} {pair}, by {size}{in_ranks}"


def _ranks_apart(gaps: ExplainedGaps, gap: ExplainedGap) -> str:
    """Return how many ranks the higher group is ahead; empty where that is not shown."""
    for rank_gap in gaps.of_outcome("rank"):
        names = (rank_gap.run, rank_gap.group_a, rank_gap.group_b)
        is_same = names == (gap.run, gap.group_a, gap.group_b)
        if is_same and rank_gap.is_shown and higher_group(rank_gap) == higher_group(gap):
            return f"{rounded(abs(rank_gap.value))} ranks"
    return ""


def _toward_sentence(gap: ExplainedGap) -> Iterator[str]:
    """Say what goes with the gap, and its share: ``Of this, 0.5 sd (72 %) goes with words``."""
    parts = _toward(gap)
    if not parts:
        return
    has_share = _joint_share(gap) is not None
    phrases = []
    for index, part in enumerate(parts):
        share = f" ({100 * part.size / abs(gap.value):.0f} %)" if has_share else ""
        goes = "" if index else " goes"
        name = f"{part.name} (higher in {part.more_in})"
        phrases.append(f"{_part_size(gap, part)}{share}{goes} with {name}")
    if has_share:
        yield f"Of this, {join_words(phrases)}."
        return
    is_more = sum(part.size for part in parts) > abs(gap.value)
    yield f"{join_words(phrases)}{', more than the gap itself' if is_more else ''}."


def _against_sentence(gap: ExplainedGap) -> Iterator[str]:
    """Say what goes against the gap, and how large it would be without that."""
    parts = _against(gap)
    if not parts:
        return
    phrases = [
        f"{_part_size(gap, part)}{'' if index else ' goes'} with {part.name} (higher in "
        f"{part.more_in})"
        for index, part in enumerate(parts)
    ]
    without = abs(gap.value) + sum(part.size for part in parts)
    pronoun = "that" if len(parts) == 1 else "these"
    yield (
        f"The other way, {join_words(phrases)}; without {pronoun}, the gap would be larger, "
        f"{_number(gap, without)}."
    )


def _remaining_sentence(gap: ExplainedGap) -> str:
    """Say what remains of a gap at equal properties, and for which group."""
    value, low, high = gap.remaining, gap.remaining_low, gap.remaining_high
    if not (low > 0 or high < 0):
        return f"At equal properties no gap is shown ({_toward_side(gap, value, low, high)})."
    size = _size(gap, *_without_signs(value, low, high))
    if (value < 0) != (gap.value < 0):
        return f"At equal properties, {lower_group(gap)} is higher, by {size}."
    if abs(value) >= abs(gap.value):
        return f"At equal properties the gap is no smaller: {size}."
    return f"At equal properties, {higher_group(gap)} is still higher, by {size}."


def _without_signs(value: float, low: float, high: float) -> tuple[float, float, float]:
    """Return the size of a number, and its interval, whose side a sentence names."""
    smaller, larger = sorted((abs(low), abs(high)))
    return abs(value), smaller, larger


def _size(gap: ExplainedGap, value: float, low: float, high: float) -> str:
    """Print a size with its interval: ``0.529 sd [0.435, 0.630]``."""
    ends = [rounded(end, DIGITS[gap.outcome]).replace("-", "−") for end in (low, high)]
    return f"{_number(gap, value)} [{', '.join(ends)}]"


def _part_size(gap: ExplainedGap, part: _SizedPart) -> str:
    """Print the size of a part with its interval, in the unit of its gap."""
    return _size(gap, part.size, part.low, part.high)


def _toward_side(gap: ExplainedGap, value: float, low: float, high: float) -> str:
    """Print a number whose interval may hold 0: ``0.020 sd [−0.066, 0.106] toward shop``."""
    side = gap.group_a
    if value < 0:
        value, low, high = -value, -high, -low
        side = gap.group_b
    is_zero = float(rounded(value, DIGITS[gap.outcome])) == 0
    size = _size(gap, value, low, high)
    return size if is_zero else f"{size} toward {side}"


def _number(gap: ExplainedGap, value: float) -> str:
    """Print a number in the unit of a gap."""
    return f"{rounded(value, DIGITS[gap.outcome])} {UNITS[gap.outcome]}"


def of_citations(gaps: ExplainedGaps) -> bool:
    """Return whether the gaps are those of an engine's citations, and not of a ranker."""
    return any(gap.outcome == "cited" for gap in gaps.gaps)


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
    if of_citations(gaps):
        return "A part goes with a property, which does not show that the engine uses it."
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
    return f"{mean:,.0f}", with_commas(coverage.documents)


def _dropped(gaps: ExplainedGaps) -> Iterator[str]:
    """Yield how many results are left out for want of a property."""
    for gap in gaps.primary:
        if gap.dropped:
            total = gap.entries + gap.dropped
            yield (
                f"{gap.run}, {gap.group_a} and {gap.group_b}: {with_commas(gap.dropped)} of "
                f"{with_commas(total)} results are left out, because one of their properties is "
                "unknown."
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
    if gap.outcome == "cited":
        questions = counted(gap.queries, "question", "questions")
        return (
            f"{with_commas(gap.entries)} pages that could be cited, of "
            f"{with_commas(gap.documents)} units at which labels are constant, in {questions} with "
            "both groups; effective n "
            f"{gap.effective_n:.0f}"
        )
    queries = counted(gap.queries, "list", "lists")
    return (
        f"{with_commas(gap.entries)} results, {with_commas(gap.documents)} documents, "
        f"{queries} with both groups; effective n {gap.effective_n:.0f}"
    )


def gaps_meaning(gaps: ExplainedGaps) -> str:
    """Say what the parts of a gap mean; never that they cause it."""
    shown_gaps = [gap for gap in gaps.primary if gap.is_shown]
    if not shown_gaps:
        return "No gap is shown, so there is nothing to explain yet."
    gap = max(shown_gaps, key=attrgetter("clearness"))
    return " ".join(_meaning_sentences(gaps, gap))


def _meaning_sentences(gaps: ExplainedGaps, gap: ExplainedGap) -> Iterator[str]:
    """Say what to look at first, what works the other way, and what is left."""
    side = higher_group(gap)
    toward, against = _toward(gap), _against(gap)
    if toward:
        share = _share_words(gap)
        lead = f"{share}the lead of {side} goes with {_pronoun(toward)}"
        yield f"Look at {_names(toward)} first: {lead}."
    elif against:
        yield f"{side} leads in spite of {_names(against)}, so look for the reason elsewhere."
    else:
        yield (
            f"No property examined is shown to go with the lead of {side}, so look for the reason "
            "elsewhere."
        )
    if toward and against:
        yield f"Going the other way: {_names(against)}."
    if toward and _is_still_ahead(gap):
        yield f"At equal properties {side} would still be ahead, so there is more to find."
    if names := _unvarying(gaps, gap):
        yield f"Not examined, for want of variation in these lists: {_few_names(names)}."
    if toward:
        pages = "pages that differ in it alone"
        comparison = pages if gap.outcome == "cited" else "twins, or texts edited on purpose,"
        yield f"Only {comparison} would show a cause."


def _share_words(gap: ExplainedGap) -> str:
    """Return ``most of`` and the like; nothing where a share would mislead."""
    share = _joint_share(gap)
    if share is None:
        return ""
    return next(f"{words} of " for least, words in _SHARE_WORDS if share >= least)


def _is_still_ahead(gap: ExplainedGap) -> bool:
    """Return whether the higher group is shown to be higher at equal properties too."""
    if gap.value < 0:
        return gap.remaining_high < 0
    return gap.remaining_low > 0


def _pronoun(parts: Sequence[_SizedPart]) -> str:
    """Return the pronoun for one part or several."""
    return "it" if len(parts) == 1 else "them"
