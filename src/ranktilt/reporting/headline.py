"""The headline of every result: its largest finding, whatever the order of inputs.

An audit compares pairs of groups of documents, such as human and LLM texts. An *answer* is the
value of one measure for one ranker and pair. The *primary question* is the measure on which the
*verdict* rests: whether the ranker favours a *side* (one of the two groups), is level or
inconclusive. The *card* has further questions about the same rankings. Answers that favour
different sides are a *conflict*.

A *finding* is a sentence, such as a verdict or a conflict, with its kind and size. Findings are
listed by kind, and by size within a kind.
"""

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
from ranktilt.measures.printing import ends_apart
from ranktilt.reporting.numbers import fixed
from ranktilt.reporting.sentences.comparison.group_standings import display_headline
from ranktilt.reporting.sentences.derived import leading_finding
from ranktilt.reporting.sentences.explaining.probes import (
    attributed_gaps,
    sources_sentence,
    theorem_findings,
)
from ranktilt.reporting.sentences.findings import Finding, sort_findings
from ranktilt.reporting.sentences.notes import note_sentence
from ranktilt.reporting.sentences.verdicts import VERDICT_WORDS, conflict_sentence, verdict_sentence

if TYPE_CHECKING:
    from ranktilt.auditing.effects import Effect
    from ranktilt.auditing.groups import Pair
    from ranktilt.auditing.result import Audit
    from ranktilt.auditing.sources.source_audits import SourceAudits
    from ranktilt.explaining.base import EffectSize, ProbeResult
    from ranktilt.explaining.explanation import Explanation

_MOST_NAMED = 2
"""Most rankers that a sentence names; of more it gives the number."""
_SINGULAR_WORDS = {kind: singular for kind, (singular, _) in VERDICT_WORDS.items()}
"""Words for each kind of verdict on a single ranker, such as ``is level``."""


def headline(result: Any) -> str:
    """Return the leading finding of a result, in one sentence."""
    return leading(result).sentence


def leading(result: Any) -> Finding:
    """Return the headline of a result as a finding.

    A headline may sum up several findings; its kind and size are those of the largest.
    """
    result = getattr(result, "audit", result)  # of an audit that was opened with its collection
    name = type(result).__name__
    if name in _SUMMARIES:
        return _SUMMARIES[name](result)
    # All other results have a function for their headline in the module with their sentences.
    return leading_finding(result)


def findings_of(audit: Audit) -> tuple[Finding, ...]:
    """Return the verdicts and conflicts of an audit, the largest finding first."""
    # The judged pairs are those with a verdict: all pairs, or one for a question that compares all
    # groups together.
    comparisons = product(audit.runs, audit.judged_pairs)
    verdicts = [_verdict_finding(audit, run, pair) for run, pair in comparisons]
    return sort_findings([*verdicts, *conflict_findings(audit)])


def conflict_findings(audit: Audit) -> list[Finding]:
    """Return a finding for each run and pair whose answers have opposite signs."""
    if not audit.card:
        return []
    # With ``ties="trec_eval"``, Relative Δ ranks tied documents by their ids as trec_eval does,
    # while the card's other answers average over the orders of tied documents. Opposite signs may
    # then come from the ties alone, so Relative Δ is left out.
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


def _verdict_finding(audit: Audit, run: str, pair: Pair) -> Finding:
    """Return the verdict on one ranker and pair as a finding.

    Its sentence begins with the pair where there are several.
    """
    verdict = audit.verdict(run, *pair)
    pair_words = f"{pair[0]} | {pair[1]}: " if len(audit.judged_pairs) > 1 else ""
    return Finding(
        kind=verdict.kind,
        sentence=pair_words + verdict_sentence(verdict),
        size=margins(_answer(audit, run, pair), audit.margin),
        run=run,
        verdict=verdict,
    )


def _answer(audit: Audit, run: str, pair: Pair) -> Effect:
    """Return one run's answer to the primary question about a pair of groups.

    A question about all groups together has the same answer for every pair.
    """
    primary = repr(audit.primary)
    effects = (*audit.tilts, *audit.card)
    answers = [effect for effect in effects if effect.run == run and effect.measure == primary]
    for answer in answers:
        if {answer.a, answer.b} == set(pair):
            return answer
    return answers[0]


def _audit_summary(audit: Audit) -> Finding:
    """Sum up the verdicts of an audit: which rankers favour which side, are level, and so on.

    With one pair of groups, the rankers with each verdict are named or counted. With three groups
    or more and few rankers, each ranker's leading groups are named; with many rankers, verdicts are
    counted over all rankers and pairs.
    """
    pairs = audit.judged_pairs
    rankers = counted(len(audit.runs), "ranker", "rankers")
    if not pairs:
        return Finding(kind="described", sentence=f"{rankers}; no groups were compared.")
    findings = findings_of(audit)
    displays = group_displays(audit)
    if len(pairs) == 1:
        summary = "; ".join(_ranker_phrases(audit, pairs[0], findings))
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


def _ranker_phrases(audit: Audit, pair: Pair, findings: Sequence[Finding]) -> Iterable[str]:
    """Yield a phrase for each verdict on a pair, with the rankers that have it.

    Such as "a and b favour human text" and "3 of 5 rankers are inconclusive".
    """
    # The verb of each kind of finding and favoured side, in the singular and the plural.
    verbs: dict[tuple[str, str | None], tuple[str, str]] = {}
    for kind, words in VERDICT_WORDS.items():
        verbs[kind, None] = words
    for side in pair:
        verbs["favours", side] = f"favours {side} {audit.noun}", f"favour {side} {audit.noun}"
    runs_of = defaultdict[tuple[str, str | None], dict[str, None]](dict)
    for finding in findings:
        favoured = None if finding.verdict is None else finding.verdict.side
        runs_of[finding.kind, favoured][finding.run] = None
    for key, runs in runs_of.items():
        singular, plural = verbs[key]
        yield f"{_ranker_words(list(runs), audit.runs)} {plural if len(runs) > 1 else singular}"


def _ranker_words(runs: Sequence[str], all_runs: Sequence[str]) -> str:
    """Name some rankers, or say how many of all they are."""
    if len(runs) <= _MOST_NAMED:
        return join_words(list(runs))
    if len(runs) == len(all_runs):
        return f"all {len(all_runs)} rankers"
    return f"{len(runs)} of {len(all_runs)} rankers"


def _source_audits_summary(result: SourceAudits) -> Finding:
    """Sum up how each ranker treats the sources, beginning with the largest finding."""
    summaries = source_summaries(result)
    sentence = f"{'; '.join(finding.sentence for finding in summaries)}."
    return Finding(kind=summaries[0].kind, size=summaries[0].size, sentence=sentence)


def source_summaries(result: SourceAudits) -> tuple[Finding, ...]:
    """Return a finding on the primary question for each ranker, in one sentence."""
    return sort_findings(_source_summary(result, run) for run in result.runs)


def _source_summary(result: SourceAudits, run: str) -> Finding:
    """Return one ranker's verdicts on all sources in one sentence, the largest first.

    Such as "bm25 favours human text on 3 of 5 sources and is level on 2".
    """
    # Sources with the same verdict share a phrase. It is as large as the largest of them, so that
    # the phrases can be sorted as findings are.
    sizes = defaultdict[tuple[FindingKind, str], list[float]](list)
    for compared in result.sources:
        verdict = result.verdict(run, compared.source)
        kind: FindingKind = verdict.kind
        words = _side_words(result, verdict.side) if kind == "favours" else _SINGULAR_WORDS[kind]
        answer = result.answer(run, compared.source)
        sizes[kind, words].append(margins(answer, result.margin))
    findings = sort_findings(
        Finding(kind=kind, sentence=words, size=max(source_sizes))
        for (kind, words), source_sizes in sizes.items()
    )
    source_counts = {words: len(source_sizes) for (_, words), source_sizes in sizes.items()}
    phrases = [
        f"{finding.sentence}"
        f"{_source_count_words(source_counts[finding.sentence], result, is_first=index == 0)}"
        for index, finding in enumerate(findings)
    ]
    sentence = f"{run} {join_words(phrases)}"
    return Finding(kind=findings[0].kind, size=findings[0].size, sentence=sentence, run=run)


def _side_words(result: SourceAudits, side: str | None) -> str:
    """Say which side is favoured: the reference, or the rewrites of it."""
    if side == result.reference:
        return f"favours {result.reference} text"
    return "favours the rewrites"


def _source_count_words(count: int, result: SourceAudits, *, is_first: bool) -> str:
    """Say on how many of the sources, or at how many of the temperatures; empty for one source.

    Only the first phrase of a sentence gives the number of all. Temperatures are counted where all
    sources are of one model.
    """
    total = len(result.sources)
    has_temperatures = all(source.has_temperature for source in result.sources)
    preposition, noun = "on", "sources"
    if has_temperatures and len(result.series) == 1:
        preposition, noun = "at", "temperatures"
    if total == 1:
        return ""
    if count == total:
        return f" {preposition} all {total} {noun}"
    return f" {preposition} {count} of {total} {noun}" if is_first else f" {preposition} {count}"


def by_size(explanation: Explanation) -> list[EffectSize]:
    """Return all effect sizes of an explanation, the largest first and undefined ones last.

    An effect size is the difference of a property between two sources' texts in standard deviations
    (Hedges' g), so that different properties can be compared.
    """
    effects = list(chain.from_iterable(result.effects for result in explanation.results))
    return sorted(effects, key=lambda effect: 0.0 if math.isnan(effect.g) else -abs(effect.g))


def _explanation_summary(explanation: Explanation) -> Finding:
    """Say what goes with the clearest gap, or else what differs most between texts.

    A gap is how much higher a ranker scores one side; a probe measures one property of texts.
    Without gaps and differences, return the summary of the first probe.
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
        # Each source has an effect for each property.
        property_count = len({effect.quantity for effect in effects})
        properties = counted(property_count, "property", "properties")
        sentence = f"No difference from {reference} is shown in {properties}."
    else:
        summaries = [_probe_summary(result) for result in explanation.results if result.summary]
        sentence = summaries[0] if summaries else "Nothing was measured."
    return Finding(kind="described", sentence=sentence)


def _probe_summary(result: ProbeResult) -> str:
    """Return the summary of a probe; a sentence on all sources where several were checked."""
    findings = theorem_findings(result.findings)
    return sources_sentence(findings) if len(findings) > 1 else result.summary


def _effect_size(effect: EffectSize) -> str:
    """Print the size of a difference without its sign, which the sentence gives in words."""
    nearer, farther = sorted((abs(effect.low), abs(effect.high)))
    low, high = ends_apart((nearer, farther), 0.0, fixed)
    return f"{abs(effect.g):.2f} sd [{low}, {high}]"


_SUMMARIES: dict[str, Callable[[Any], Finding]] = {
    "Audit": _audit_summary,
    "Explanation": _explanation_summary,
    "SourceAudits": _source_audits_summary,
}
"""Function that sums a result up, by the name of its class."""
