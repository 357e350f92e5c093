"""The first sentence of every result: its largest finding, in whatever order inputs came."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, product
from typing import TYPE_CHECKING, Any

from ranktilt.auditing.answer.group_standings import group_displays
from ranktilt.auditing.answer.verdict import FindingKind, margins
from ranktilt.auditing.effects import conflict_of
from ranktilt.errors import counted, join_words
from ranktilt.reporting.sentences.comparison.group_standings import display_headline
from ranktilt.reporting.sentences.derived import leading_finding
from ranktilt.reporting.sentences.explaining.attribution import attributed_gaps
from ranktilt.reporting.sentences.explaining.theorem import sources_sentence, theorem_findings
from ranktilt.reporting.sentences.findings import Finding, sort_findings
from ranktilt.reporting.sentences.notes import note_sentence
from ranktilt.reporting.sentences.verdicts import VERDICT_WORDS, conflict_sentence, verdict_sentence

if TYPE_CHECKING:
    from ranktilt.auditing.effects import Effect
    from ranktilt.auditing.groups import Pair
    from ranktilt.auditing.result import Audit
    from ranktilt.auditing.source_audits import SourceAudits
    from ranktilt.explaining.base import EffectSize, ProbeResult
    from ranktilt.explaining.explanation import Explanation

_MOST_NAMED = 2
"""Most rankers that a sentence names; of more it gives the number."""
_KIND_WORDS = {singular: words[0] for singular, words in VERDICT_WORDS.items()}
"""Word for a verdict of one ranker."""


def headline(result: Any) -> str:
    """Return what a result says in one sentence."""
    return leading(result).sentence


def leading(result: Any) -> Finding:
    """Return the headline of a result with the kind and size of what it begins with."""
    result = getattr(result, "audit", result)  # of an audit that was opened with its collection
    name = type(result).__name__
    if name in _SUMMARIES:
        return _SUMMARIES[name](result)
    return leading_finding(result)


def findings_of(audit: Audit) -> tuple[Finding, ...]:
    """Return the verdicts and conflicts of an audit in the order in which they are told."""
    comparisons = product(audit.runs, audit.judged_pairs)
    verdicts = [_finding(audit, run, pair) for run, pair in comparisons]
    return sort_findings([*verdicts, *conflict_findings(audit)])


def conflict_findings(audit: Audit) -> list[Finding]:
    """Return a finding for each run and pair whose answers have opposite signs."""
    if not audit.card:
        return []
    # By trec_eval's ties Relative Δ follows ids, the other rows do not: that they differ is no
    # conflict.
    left_out = () if audit.spec["ties"] == "expected" else ("relevance",)
    findings = []
    for run, pair in product(audit.runs, audit.pairs):
        conflict = conflict_of(
            effect for effect in audit.card_of(run, *pair) if effect.estimand.kind not in left_out
        )
        if conflict is not None:
            finding = Finding(kind="conflict", sentence=conflict_sentence(conflict), run=run)
            findings.append(finding)
    return findings


def _finding(audit: Audit, run: str, pair: Pair) -> Finding:
    """Return what an audit says of one ranker and pair."""
    verdict = audit.verdict(run, *pair)
    front = f"{pair[0]} | {pair[1]}: " if len(audit.judged_pairs) > 1 else ""
    return Finding(
        kind=verdict.kind,
        sentence=front + verdict_sentence(verdict),
        size=margins(_answer(audit, run, pair), audit.margin),
        run=run,
        verdict=verdict,
    )


def _answer(audit: Audit, run: str, pair: Pair) -> Effect:
    """One run's answer to the primary question about a pair of groups."""
    primary = repr(audit.primary)
    effects = (*audit.tilts, *audit.card)
    answers = [effect for effect in effects if effect.run == run and effect.measure == primary]
    for answer in answers:
        if {answer.a, answer.b} == set(pair):
            return answer
    return answers[0]


def _audit(audit: Audit) -> Finding:
    """Say how many rankers favour which side, are level, or are inconclusive; few are named."""
    pairs = audit.judged_pairs
    rankers = counted(len(audit.runs), "ranker", "rankers")
    if not pairs:
        return Finding(kind="described", sentence=f"{rankers}; no groups were compared.")
    findings = findings_of(audit)
    displays = group_displays(audit)
    if len(pairs) == 1:
        summary = "; ".join(_parts(audit, pairs[0], findings))
    elif displays and len(displays) <= _MOST_NAMED:
        summary = ". ".join(map(display_headline, displays))
    else:
        kinds = Counter[str](finding.kind for finding in findings)
        counts = [
            f"{kinds[kind]} {words[kinds[kind] > 1]}"
            for kind, words in VERDICT_WORDS.items()
            if kinds[kind]
        ]
        comparisons = len(audit.runs) * len(pairs)
        scope = f"{rankers}, {len(pairs)} pairs of groups"
        summary = f"{comparisons} comparisons ({scope}): {join_words(counts)}"
    question = "" if audit.primary is None else audit.primary.title
    return Finding(
        kind=findings[0].kind, size=findings[0].size, sentence=f"{summary} (by {question})."
    )


def _parts(audit: Audit, pair: Pair, findings: Sequence[Finding]) -> Iterable[str]:
    """Yield phrases about all rankers for one pair.

    Such as: a and b favour human text, 3 of 5 rankers are inconclusive.
    """
    words: dict[tuple[str, str | None], tuple[str, str]] = {}
    for kind, verbs in VERDICT_WORDS.items():
        words[kind, None] = verbs
    for side in pair:
        words["favours", side] = f"favours {side} {audit.noun}", f"favour {side} {audit.noun}"
    members = defaultdict[tuple[str, str | None], dict[str, None]](dict)
    for finding in findings:
        favoured = None if finding.verdict is None else finding.verdict.side
        members[finding.kind, favoured][finding.run] = None
    for key, runs in members.items():
        yield f"{_who(list(runs), audit.runs)} {words[key][len(runs) > 1]}"


def _who(members: Sequence[str], runs: Sequence[str]) -> str:
    """Name some rankers, or say how many they are."""
    if len(members) <= _MOST_NAMED:
        return join_words(list(members))
    if len(members) == len(runs):
        return f"all {len(runs)} rankers"
    return f"{len(members)} of {len(runs)} rankers"


def _source_audits(result: SourceAudits) -> Finding:
    """Say how each ranker treats the sources, beginning with the largest finding."""
    summaries = source_summaries(result)
    sentence = f"{'; '.join(finding.sentence for finding in summaries)}."
    return Finding(kind=summaries[0].kind, size=summaries[0].size, sentence=sentence)


def source_summaries(result: SourceAudits) -> tuple[Finding, ...]:
    """Return a finding on the primary question for each ranker, in one sentence."""
    return sort_findings(_source_summary(result, run) for run in result.runs)


def _source_summary(result: SourceAudits, run: str) -> Finding:
    """Return what an audit of several sources says of one ranker."""
    sizes = defaultdict[tuple[FindingKind, str], list[float]](list)
    for compared in result.sources:
        verdict = result.verdict(run, compared.source)
        kind: FindingKind = verdict.kind
        words = _source_words(result, verdict.side) if kind == "favours" else _KIND_WORDS[kind]
        answer = result.answer(run, compared.source)
        sizes[kind, words].append(margins(answer, result.margin))
    parts = sort_findings(
        Finding(kind=kind, sentence=words, size=max(members), run=words)
        for (kind, words), members in sizes.items()
    )
    counts = {words: len(members) for (_, words), members in sizes.items()}
    phrases = [
        f"{part.sentence}{_share(counts[part.sentence], result, first=not number)}"
        for number, part in enumerate(parts)
    ]
    sentence = f"{run} {join_words(phrases)}"
    return Finding(kind=parts[0].kind, size=parts[0].size, sentence=sentence, run=run)


def _source_words(result: SourceAudits, side: str | None) -> str:
    """Name the favoured side of an audit of several sources."""
    if side == result.reference:
        return f"favours {result.reference} text"
    return "favours the rewrites"


def _share(count: int, result: SourceAudits, *, first: bool) -> str:
    """Say on how many of the sources, or at how many of the temperatures."""
    total = len(result.sources)
    is_known = all(source.has_temperature for source in result.sources) and len(result.series) == 1
    where, noun = ("at", "temperature") if is_known else ("on", "source")
    if total == 1:
        return ""
    if count == total:
        return f" {where} all {total} {noun}s"
    return f" {where} {count} of {total} {noun}s" if first else f" {where} {count}"


def by_size(explanation: Explanation) -> list[EffectSize]:
    """Return all effect sizes of an explanation, the largest first and undefined ones last."""
    effects = list(chain.from_iterable(result.effects for result in explanation.results))
    return sorted(effects, key=lambda effect: 0.0 if math.isnan(effect.g) else -abs(effect.g))


def _explanation(explanation: Explanation) -> Finding:
    """Say what goes with the clearest gap, or else what differs most between texts.

    Without either, give the summary of the first probe.
    """
    gaps = attributed_gaps(explanation)
    if gaps:
        return Finding(kind="described", sentence=note_sentence(gaps[0]), run=gaps[0].run)
    effects, reference = by_size(explanation), explanation.reference
    largest = next((effect for effect in effects if effect.is_shown), None)
    if largest is not None:
        side = "higher" if largest.g > 0 else "lower"
        sentence = (
            f"Largest difference from {reference}: {largest.quantity}, {side} in {largest.source}, "
            f"by {_effect_size(largest)}."
        )
    elif effects:
        properties = counted(len(effects), "property", "properties")
        sentence = f"No difference from {reference} is shown in {properties}."
    else:
        summaries = [_summary(result) for result in explanation.results if result.summary]
        sentence = summaries[0] if summaries else "Nothing was measured."
    return Finding(kind="described", sentence=sentence)


def _summary(result: ProbeResult) -> str:
    """Return what a probe says; about the theorem on several sources, what sums them up."""
    checked = theorem_findings(result.findings)
    return sources_sentence(checked) if len(checked) > 1 else result.summary


def _effect_size(effect: EffectSize) -> str:
    """Write how large a difference is, whose direction the sentence says."""
    low, high = sorted((abs(effect.low), abs(effect.high)))
    return f"{abs(effect.g):.2f} sd [{low:.2f}, {high:.2f}]"


_SUMMARIES: dict[str, Callable[[Any], Finding]] = {
    "Audit": _audit,
    "Explanation": _explanation,
    "SourceAudits": _source_audits,
}
"""Function that sums a result up, by the name of its class."""
