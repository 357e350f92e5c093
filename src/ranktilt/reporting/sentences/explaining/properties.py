"""Gaps between groups of documents and the properties that go with them, in words.

A gap is how much higher one of two groups ranks, is scored or is cited in the same lists. A
regression splits it into parts, one for each property of documents, such as length, and what
remains at equal properties. A part goes toward the gap or against it. The groups are the two sides.
The outcome of a gap is what was compared: scores, ranks, being among the first ranks, or being
cited. A finding is a sentence with its kind and size.

A sentence names the group that is higher and gives sizes without signs. It never says that a
property causes the gap, only that a part of it goes with the property.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
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
from ranktilt.measures.printing import ends_apart, rounded
from ranktilt.reporting.numbers import decimal, with_commas
from ranktilt.reporting.sentences.findings import Finding, first_finding, sort_findings
from ranktilt.reporting.sentences.grammar import share_of_all, singular_or_plural

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
"""Variance inflation factor above which a property's part is hard to separate from others."""
_MOST_NAMED = 3
"""Most properties that a sentence names; it counts the others."""
_REASONS: Mapping[Reason, str] = {
    "no number": "no numbers",
    "mostly unknown": "more than half of the documents have no value",
    "one value": "only one value in each list",
    "follows": "determined by the groups and other properties",
}
"""Words for why a property is left out."""
_SHARE_WORDS = ((0.95, "nearly all"), (0.55, "most"), (0.45, "about half"), (0.0, "part"))
"""Words for a share of a gap, each for shares of at least this number, the largest first."""


@dataclass(frozen=True, kw_only=True)
class _SizedPart:
    """The part of a gap that goes with a property, as a size without a sign and a side."""

    name: str
    """Name of the property."""
    size: float
    """Size of the part, in the unit of the gap."""
    low: float
    """Lower end of the 95 % interval of the size."""
    high: float
    """Upper end of the same interval."""
    side: str
    """Group that is higher by this part."""
    more_in: str
    """Group whose documents have more of the property."""


def gap_findings(gaps: ExplainedGaps) -> tuple[Finding, ...]:
    """Return what goes with each gap, the largest gap first."""
    findings = []
    for gap in gaps.primary:
        sentences = [gap_sentence(gaps, gap)]
        if gap.is_shown:
            sentences += _unexamined_sentence(gaps, gap)
        findings.append(_finding(gap, " ".join(sentences)))
    return sort_findings(findings)


def leading_finding(gaps: ExplainedGaps) -> Finding:
    """Return the finding that leads, in fewer words."""
    return first_finding(
        sort_findings(_finding(gap, _short_sentence(gaps, gap)) for gap in gaps.primary)
    )


def _finding(gap: ExplainedGap, sentence: str) -> Finding:
    """Return a sentence about a gap as a finding; its size is in standard errors."""
    if not gap.is_shown:
        return Finding(kind="inconclusive", sentence=sentence, run=gap.run)
    return Finding(kind="favours", sentence=sentence, size=gap.clearness, run=gap.run)


def _short_sentence(gaps: ExplainedGaps, gap: ExplainedGap) -> str:
    """Say how large a gap is, and which properties go with it."""
    if not gap.is_shown:
        return gap_sentence(gaps, gap)
    lead = _lead_clause(gaps, gap)
    if not gap.shown_parts:
        return f"{lead}. No property is shown to go with it."
    share = _joint_share(gap)
    only = ", the only property compared" if len(gap.parts) == 1 else ""
    if share is not None:
        return f"{lead}; {100 * share:.0f} % of this goes with {_names(_parts_toward(gap))}{only}."
    clauses = []
    if toward := _parts_toward(gap):
        go = singular_or_plural(len(toward), "goes", "go")
        clauses.append(f"{_names(toward)} {go} with it")
    if against := _parts_against(gap):
        go = singular_or_plural(len(against), "goes", "go")
        clauses.append(f"{_names(against)} {go} against it")
    return f"{lead}; {', but '.join(clauses)}{only}."


def _names(parts: Sequence[_SizedPart]) -> str:
    """Name the first few properties, and count the others."""
    names = [part.name for part in parts[:_MOST_NAMED]]
    if len(parts) > _MOST_NAMED:
        names = [*names, f"{len(parts) - _MOST_NAMED} more"]
    return join_words(names)


def _unexamined_sentence(gaps: ExplainedGaps, gap: ExplainedGap) -> Iterator[str]:
    """Say which properties could not be examined, because they do not vary within lists.

    Nothing if all could.
    """
    names = _unvarying(gaps, gap)
    if not names:
        return
    do = singular_or_plural(len(names), "does", "do")
    only = ""
    if len(gap.parts) == 1:
        only = f", so {gap.parts[0].property_name} is the only property compared"
    yield f"In these lists, {_few_names(names)} {do} not vary and could not be examined{only}."


def _unvarying(gaps: ExplainedGaps, gap: ExplainedGap) -> list[str]:
    """Return the properties that do not vary within a run's lists, or within those of any run."""
    return [
        left_out.name
        for left_out in gaps.left_out
        if left_out.reason == "one value" and left_out.run in ("", gap.run)
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
    sentences = [f"{_lead_clause(gaps, gap)}.", *_toward_sentence(gap), *_against_sentence(gap)]
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
    """Return the group with the higher value, whether or not that is shown."""
    return gap.group_b if gap.value < 0 else gap.group_a


def lower_group(gap: ExplainedGap) -> str:
    """Return the group with the lower value, whether or not that is shown."""
    return gap.group_a if gap.value < 0 else gap.group_b


def _sized_parts(gap: ExplainedGap) -> list[_SizedPart]:
    """Return the parts that are shown, the largest first."""
    parts = []
    for part in gap.shown_parts:
        size, low, high = _sizes(part.value, part.low, part.high)
        side = gap.group_a if part.value > 0 else gap.group_b
        more_in = gap.group_a if part.difference > 0 else gap.group_b
        name = part.property_name
        parts.append(
            _SizedPart(name=name, size=size, low=low, high=high, side=side, more_in=more_in)
        )
    return parts


def _parts_toward(gap: ExplainedGap) -> list[_SizedPart]:
    """Return the parts by which the higher group is higher."""
    return [part for part in _sized_parts(gap) if part.side == higher_group(gap)]


def _parts_against(gap: ExplainedGap) -> list[_SizedPart]:
    """Return the parts by which the lower group is higher, against the gap."""
    return [part for part in _sized_parts(gap) if part.side != higher_group(gap)]


def _joint_share(gap: ExplainedGap) -> float | None:
    """Return the share of a gap that goes with all parts shown.

    None where it would mislead: where parts go against the gap, or add up to more than all of it.
    """
    toward = _parts_toward(gap)
    if not gap.is_shown or not toward or _parts_against(gap):
        return None
    share = sum(part.size for part in toward) / abs(gap.value)
    return share if share <= 1 else None


def _lead_clause(gaps: ExplainedGaps, gap: ExplainedGap) -> str:
    """Say which group is higher, and by how much, without a full stop."""
    size = _size_words(gap, *_sizes(gap.value, gap.low, gap.high))
    if gap.outcome == "cited":
        sides = f"{higher_group(gap)} more often than {lower_group(gap)}"
        return f"Within a question, {gap.run} cites {sides}, by {size}"
    verb = "scores" if gap.outcome == "score" else "ranks"
    ranks = _ranks_apart(gaps, gap)
    in_ranks = f" ({ranks})" if ranks and gap.outcome == "score" else ""
    pair = f"{higher_group(gap)} higher than {lower_group(gap)}"
    return f"{gap.run} {verb} {pair}, by {size}{in_ranks}"


def _ranks_apart(gaps: ExplainedGaps, gap: ExplainedGap) -> str:
    """Say how many ranks the higher group of a score gap is ahead; empty where it is not shown."""
    for rank_gap in gaps.of_outcome("rank"):
        names = (rank_gap.run, rank_gap.group_a, rank_gap.group_b)
        is_same = names == (gap.run, gap.group_a, gap.group_b)
        if is_same and rank_gap.is_shown and higher_group(rank_gap) == higher_group(gap):
            return f"{rounded(abs(rank_gap.value))} ranks"
    return ""


def _toward_sentence(gap: ExplainedGap) -> Iterator[str]:
    """Say what goes with the gap, and its share: ``Of this, 0.5 sd (72 %) goes with words``.

    Nothing if no part goes toward the gap.
    """
    parts = _parts_toward(gap)
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
    """Say what goes against the gap, and how large it would be without that.

    Nothing if no part goes against it.
    """
    parts = _parts_against(gap)
    if not parts:
        return
    phrases = [
        f"{_part_size(gap, part)}{'' if index else ' goes'} with {part.name} (higher in "
        f"{part.more_in})"
        for index, part in enumerate(parts)
    ]
    gap_without_parts = abs(gap.value) + sum(part.size for part in parts)
    these = singular_or_plural(len(parts), "that", "these")
    yield (
        f"The other way, {join_words(phrases)}; without {these}, the gap would be larger, "
        f"{_number(gap, gap_without_parts)}."
    )


def _remaining_sentence(gap: ExplainedGap) -> str:
    """Say what remains of a gap at equal properties, and for which group."""
    value, low, high = gap.remaining, gap.remaining_low, gap.remaining_high
    if not (low > 0 or high < 0):
        return f"At equal properties no gap is shown ({_toward_side(gap, value, low, high)})."
    size = _size_words(gap, *_sizes(value, low, high))
    is_turned = (value < 0) != (gap.value < 0)  # the other group is higher at equal properties
    if is_turned:
        return f"At equal properties, {lower_group(gap)} is higher, by {size}."
    if abs(value) >= abs(gap.value):
        return f"At equal properties the gap is no smaller: {size}."
    return f"At equal properties, {higher_group(gap)} is still higher, by {size}."


def _sizes(value: float, low: float, high: float) -> tuple[float, float, float]:
    """Return a number and its interval without signs; the interval must not include 0."""
    smaller, larger = sorted((abs(low), abs(high)))
    return abs(value), smaller, larger


def _size_words(gap: ExplainedGap, value: float, low: float, high: float) -> str:
    """Print a number with its interval: ``0.529 sd [0.435, 0.630]``."""
    ends = ends_apart((low, high), 0.0, partial(decimal, digits=DIGITS[gap.outcome]))
    return f"{_number(gap, value)} [{', '.join(ends)}]"


def _part_size(gap: ExplainedGap, part: _SizedPart) -> str:
    """Print the size of a part with its interval, in the unit of its gap."""
    return _size_words(gap, part.size, part.low, part.high)


def _toward_side(gap: ExplainedGap, value: float, low: float, high: float) -> str:
    """Print a number whose interval may hold 0: ``0.020 sd [−0.066, 0.106] toward shop``."""
    side = gap.group_a
    if value < 0:
        value, low, high = -value, -high, -low
        side = gap.group_b
    is_zero = float(rounded(value, DIGITS[gap.outcome])) == 0
    size = _size_words(gap, value, low, high)
    return size if is_zero else f"{size} toward {side}"


def _number(gap: ExplainedGap, value: float) -> str:
    """Print a number in the unit of a gap."""
    return f"{rounded(value, DIGITS[gap.outcome])} {UNITS[gap.outcome]}"


def is_of_citations(gaps: ExplainedGaps) -> bool:
    """Return whether the gaps are those of an engine's citations, and not of a ranker."""
    return any(gap.outcome == "cited" for gap in gaps.gaps)


def gap_cautions(gaps: ExplainedGaps) -> Iterator[str]:
    """Say what these numbers do not show, and which properties are left out."""
    yield caution_sentence(gaps)
    partial = [coverage for coverage in gaps.coverage if not coverage.is_complete]
    # Runs whose lists are printed with the same size share a sentence.
    for size in dict.fromkeys(_list_size(coverage) for coverage in partial):
        yield coverage_sentence([coverage for coverage in partial if _list_size(coverage) == size])
    yield from _dropped_sentences(gaps)
    if gaps.left_out:
        yield f"Left out: {'; '.join(_left_out_phrases(gaps.left_out))}."
    yield from _inflation_sentences(gaps)


def caution_sentence(gaps: ExplainedGaps) -> str:
    """Say that a part shows no cause, and name the comparison that shows more."""
    if is_of_citations(gaps):
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
    """Say that the lists of some runs, all of one size, hold only the documents that score best."""
    list_size, documents = _list_size(coverages[0])
    runs = join_words([coverage.run for coverage in coverages])
    is_single = list_size == "1"
    ones, these = ("one", "this") if is_single else ("ones", "these")
    return (
        f"{runs}: a list holds {list_size} of {documents} documents on average, the best-scoring "
        f"{ones}; gaps and parts cover only {these}."
    )


def _list_size(coverage: ListCoverage) -> tuple[str, str]:
    """Print how many documents a list holds on average, and how many it could hold."""
    mean = coverage.listed / max(coverage.queries, 1)
    return f"{mean:,.0f}", with_commas(coverage.documents)


def _dropped_sentences(gaps: ExplainedGaps) -> Iterator[str]:
    """Say for each gap how many results are left out, because a property is unknown."""
    for gap in gaps.primary:
        if gap.dropped:
            results = share_of_all(gap.dropped, gap.entries + gap.dropped, "result", "results")
            are = singular_or_plural(gap.dropped, "is", "are")
            their = singular_or_plural(gap.dropped, "its", "their")
            yield (
                f"{gap.run}, {gap.group_a} and {gap.group_b}: {results} {are} left out, because "
                f"one of {their} properties is unknown."
            )


def _left_out_phrases(left_out: tuple[LeftOutProperty, ...]) -> Iterator[str]:
    """Name the properties left out, by reason: ``url and title: no numbers``."""
    names: dict[tuple[str, Reason], list[str]] = {}
    for excluded_property in left_out:
        run_and_reason = excluded_property.run, excluded_property.reason
        names.setdefault(run_and_reason, []).append(excluded_property.name)
    for (run, reason), properties in names.items():
        in_run = f" ({run})" if run else ""
        yield f"{join_words(properties)}{in_run}: {_REASONS[reason]}"


def _inflation_sentences(gaps: ExplainedGaps) -> Iterator[str]:
    """Name for each gap the properties that go together, so that parts are hard to separate."""
    for gap in gaps.primary:
        names = [
            f"{part.property_name} ({part.inflation:.0f})"
            for part in gap.parts
            if part.inflation > COLLINEAR
        ]
        if names:
            pair = f"{gap.group_a} and {gap.group_b}"
            number = len(names)
            go_together = singular_or_plural(number, "goes together with the others", "go together")
            parts_are = singular_or_plural(number, "its part is", "their parts are")
            yield (
                f"{gap.run}, {pair}: {join_words(names)} {go_together} (variance inflation), so "
                f"{parts_are} hard to separate."
            )


def basis_sentence(gap: ExplainedGap) -> str:
    """Say how much data a gap rests on."""
    if gap.outcome == "cited":
        pages = counted(gap.entries, "page", "pages")
        units = counted(gap.documents, "unit", "units")
        questions = counted(gap.queries, "question", "questions")
        return (
            f"{pages} that could be cited, of {units} at which labels are constant, in {questions} "
            f"with both groups; effective n {gap.effective_n:.0f}"
        )
    results = counted(gap.entries, "result", "results")
    documents = counted(gap.documents, "document", "documents")
    lists = counted(gap.queries, "list", "lists")
    return f"{results}, {documents}, {lists} with both groups; effective n {gap.effective_n:.0f}"


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
    toward, against = _parts_toward(gap), _parts_against(gap)
    if toward:
        them = singular_or_plural(len(toward), "it", "them")
        lead = f"{_share_words(gap)}the lead of {side} goes with {them}"
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
    """Return words for the share of a gap that goes with properties: ``most of``.

    Empty where a share would mislead.
    """
    share = _joint_share(gap)
    if share is None:
        return ""
    words = [words for least, words in _SHARE_WORDS if share >= least]
    return f"{words[0]} of "


def _is_still_ahead(gap: ExplainedGap) -> bool:
    """Return whether the higher group is shown to be higher at equal properties too."""
    if gap.value < 0:
        return gap.remaining_high < 0
    return gap.remaining_low > 0
