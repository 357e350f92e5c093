"""Audits of citations in words: who is cited more, at which stage, and how sure that is.

An engine answers a query: it retrieves pages, consults some of them, and cites some of these. Two
groups of pages are compared by the ratio of their citation rates, which is neutral at 1, or by the
share of citations that one of them gets. An effect is the answer to such a question, with its
interval; the verdict says which side (group) it is shown to favour. A finding is a sentence with
its kind, by which findings are sorted.

Pages of one domain are not independent, so errors are computed over units: domains, pages or the
values of a column. From few units nothing can be said of a whole kind of pages, but of these units.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from math import isnan
from typing import Any

from ranktilt.auditing.answer.command_words import json_file
from ranktilt.auditing.answer.verdict import FindingKind
from ranktilt.citing.effect import CitationEffect, FunnelPart, QuestionKey
from ranktilt.citing.inference.further_questions import FEWEST_CITATIONS
from ranktilt.citing.inference.infer import FEWEST_UNITS
from ranktilt.citing.result import CitationAudit
from ranktilt.errors import counted, join_words
from ranktilt.measures.printing import ends_apart, rounded, signed
from ranktilt.reporting.document import NextCommand
from ranktilt.reporting.numbers import probability
from ranktilt.reporting.sentences.findings import Finding, first_finding, sort_findings
from ranktilt.reporting.sentences.grammar import often_words, ratio_words

QUESTION_WORDS: dict[QuestionKey, str] = {
    "rate": "citation rate of consulted pages",
    "equal rank": "citation rate at equal rank",
    "retrieved rate": "citation rate of retrieved pages",
    "share": "share of citations",
    "first": "share of first citations",
    "words": "share of cited words",
}
"""Name of a question, by its key."""
POOL_WORDS: dict[QuestionKey, str] = {
    "rate": "consulted pages",
    "equal rank": "pages at the same rank",
    "retrieved rate": "retrieved pages",
}
"""Pages that could have been cited, by the key of a question about rates; shares have none."""
FUNNEL_WORDS = {
    "questions": "questions that bring more citations hold more or fewer of these pages",
    "exposure": "where the search ranked them",
    "selection": "picked beyond their rank",
    "unretrieved": "cited without being retrieved",
    "total": "in all",
}
"""Parts of the difference between the shares of cited and of retrieved pages, by name."""


def citation_findings(audit: CitationAudit) -> tuple[Finding, ...]:
    """Return the verdict on the primary question for every pair, those that name a side first."""
    return sort_findings(_finding(audit, effect) for effect in audit.primary)


def leading_finding(audit: CitationAudit) -> Finding:
    """Return the finding that leads."""
    return first_finding(citation_findings(audit), nothing="nothing was compared.")


def derived_words(audit: CitationAudit) -> dict[str, Any]:
    """Return the verdicts as sentences, which the saved file holds besides the fields."""
    findings = citation_findings(audit)
    return {"verdicts": [finding.sentence for finding in findings]}


def _finding(audit: CitationAudit, effect: CitationEffect) -> Finding:
    """Return the verdict on one effect as a finding.

    It has no size, as shares and ratios cannot be compared: equal kinds keep their order.
    """
    verdict = effect.verdict(audit.margin)
    kind: FindingKind = "favours" if verdict in ("a", "b") else verdict  # type: ignore[assignment]
    return Finding(kind=kind, sentence=verdict_sentence(audit, effect), size=0.0)


def verdict_sentence(audit: CitationAudit, effect: CitationEffect) -> str:
    """Say who is cited more on a question, or why that stays open."""
    verdict = effect.verdict(audit.margin)
    if verdict in ("a", "b"):
        return f"{_size_sentence(effect)} (corrected p {p_words(effect.p_corrected)})."
    if verdict == "level":
        return f"{_size_sentence(effect)}, within the margin of ±{audit.margin:g} %: level."
    return f"Inconclusive: {_open_reason(audit, effect)}"


def _size_sentence(effect: CitationEffect) -> str:
    """Say how often each side is cited, with the interval."""
    if effect.scale == "share":
        interval = _share_interval(effect)
        return (
            f"{effect.a} pages get {rounded(effect.value, 1)} % {interval} of "
            f"{_share_noun(effect)}{_as_labelled(effect)}; {rounded(effect.neutral, 1)} % would "
            "favour neither side"
        )
    pool = POOL_WORDS[effect.question]
    return (
        f"Of {pool}, {effect.a} ones are cited {often_words(effect.value)} {effect.b} ones: ratio "
        f"{ratio_words(effect.value)} {_ratio_interval(effect.low, effect.high)}"
        f"{_as_labelled(effect)}"
    )


def _as_labelled(effect: CitationEffect) -> str:
    """Give the answer by the labels as they are; empty where it is not corrected."""
    if effect.observed is None:
        return ""
    value = effect.observed.value
    is_share = effect.scale == "share"
    words = f"{rounded(value, 1)} %" if is_share else ratio_words(value)
    return f", {words} by the labels as they are"


def _share_noun(effect: CitationEffect) -> str:
    """Name what a share is of: citations, first citations or words."""
    return {"share": "citations", "first": "first citations"}.get(effect.question, "cited words")


def _open_reason(audit: CitationAudit, effect: CitationEffect) -> str:
    """Say why a question stays open: no neutral value, few units, or a wide interval."""
    if isnan(effect.neutral):
        # The neutral share is that of the pages that could have been cited, and these are unknown.
        citations = "citations"
        if effect.citations_a + effect.citations_b < audit.counts.citations:
            # A share is of both groups' citations. Pages without a label, or of others, have more.
            citations = f"the citations of {effect.a} and {effect.b} pages"
        return (
            f"{effect.a} pages get {rounded(effect.value, 1)} % of {citations}, and nothing tells "
            "how many could have been cited. Add what was retrieved (--run), or use answers that "
            "list what was consulted."
        )
    if effect.effective_units < FEWEST_UNITS:
        return _few_units(audit, effect)
    if effect.effective_questions < FEWEST_UNITS:
        queries = counted(effect.questions, "query is", "queries are")
        return f"{queries} too few to say whom answers cite; ask at least {FEWEST_UNITS}."
    if effect.value_a == effect.value_b == 1:  # both rates are 100 %
        return f"every one of the {POOL_WORDS[effect.question]} is cited, so nothing was selected."
    if isnan(effect.value):
        return f"fewer than {FEWEST_CITATIONS} citations of a side are too few to compare."
    detectable = effect.detectable
    size = f"{rounded(detectable, 1)} points"
    if effect.scale == "log ratio":
        # A ratio above 1 is as easy to detect as its inverse.
        size = f"a ratio of {rounded(detectable, 2)} or {rounded(1 / detectable, 2)}"
    return (
        f"these questions and {units_of(audit)} would find {size} four times in five, and a "
        f"smaller difference less often. {_size_sentence(effect)}."
    )


def _few_units(audit: CitationAudit, effect: CitationEffect) -> str:
    """Say that units are too few to speak of a kind of pages, and what holds for these units."""
    these = effect.these_units
    side = effect.a if these is None else these.thinner  # the group with fewer units
    number = rounded(effect.effective_units, 1)
    text = (
        f"{side} pages come from too few {units_of(audit)} ({number} effective) to speak of them "
        "as a kind."
    )
    if these is None or isnan(these.low) or effect.scale == "share":
        return text
    if these.low == these.high:
        return text  # a rate that is corrected for label errors to 0 has an interval of no width
    interval = _ratio_interval(these.low, these.high)
    return (
        f"{text} Of these {units_of(audit)}, in further questions like these, {effect.a} pages are "
        f"cited {often_words(effect.value)} {effect.b} ones: ratio {ratio_words(effect.value)} "
        f"{interval}."
    )


def these_units_sentences(audit: CitationAudit, effect: CitationEffect) -> tuple[str, ...]:
    """Say which few units most pages of a side are of, and what the ratio is without each of them.

    Empty where units are not too few, or for a share.
    """
    these = effect.these_units
    if these is None or effect.scale == "share":
        return ()
    units = [f"{unit.name} ({rounded(100 * unit.share, 0)} %)" for unit in these.largest]
    sentences = [f"Most {these.thinner} pages are of {join_words(units)}."]
    ratios_without = [
        f"{ratio_words(unit.value_without)} without {unit.name}"
        for unit in these.largest
        if not isnan(unit.value_without)
    ]
    if ratios_without:
        sentences.append(f"The ratio is {join_words(ratios_without)}.")
    if not isnan(these.exchange_p_within_sizes):
        sentences.append(
            f"Labels exchanged between all {units_of(audit)} give p {p_words(effect.exchange_p)}, "
            f"and between {units_of(audit)} of about the same size "
            f"{p_words(these.exchange_p_within_sizes)}."
        )
    if not isnan(these.score_low):
        citations = min(effect.citations_a, effect.citations_b)
        score_interval = _ratio_interval(these.score_low, these.score_high)
        sentences.append(
            f"It rests on {counted(citations, 'citation', 'citations')}; an interval made for so "
            f"few is {score_interval}."
        )
    return tuple(sentences)


def citing_meaning(audit: CitationAudit) -> str:
    """Say what the verdict means for somebody who reads nothing else."""
    effect = audit.primary[0]
    verdict = effect.verdict(audit.margin)
    if verdict in ("a", "b"):
        favoured = effect.side(verdict)
        unfavoured = effect.b if verdict == "a" else effect.a
        return (
            f"The answers pick {favoured} pages over {unfavoured} ones by more than chance "
            "explains: do not take citations for quality alone."
        )
    if verdict == "level":
        return "Both sides are cited about as often, given what the engine could have cited."
    if effect.these_units is not None:
        return (
            f"This is about a few {units_of(audit)}, not about all {effect.these_units.thinner} "
            "pages. To learn about the kind, ask questions that bring more of them."
        )
    return (
        "These answers cannot tell whether a side is favoured. That is neither a tilt nor its "
        "absence: ask more questions before you decide."
    )


def funnel_sentence(parts: Sequence[FunnelPart]) -> str:
    """Split the difference between a group's shares of cited and of retrieved pages into parts."""
    total = next(part for part in parts if part.name == "total")
    terms = [f"{signed(part.value)} {FUNNEL_WORDS[part.name]}" for part in parts if part != total]
    return (
        f"{total.a} pages: {signed(total.value)} points from retrieved to cited; of these "
        f"{join_words(terms)}"
    )


def steadiness_sentences(audit: CitationAudit) -> Iterator[str]:
    """Say how concentrated citations are, and how similar repeated answers to one query."""
    steadiness = audit.steadiness
    yield (
        f"Citations spread as over {rounded(steadiness.effective_domains, 1)} equally cited "
        f"{site_noun(audit)}s; the largest gets {rounded(100 * steadiness.largest_share, 1)} %."
    )
    if steadiness.repeats and not isnan(steadiness.jaccard):
        yield (
            f"Two answers to one query share {rounded(100 * steadiness.jaccard, 1)} % of the pages "
            f"that either cites (rank-biased overlap {rounded(steadiness.overlap, 2)}; "
            f"{counted(steadiness.repeats, 'pair', 'pairs')} of repeats)."
        )


def citing_steps(audit: CitationAudit) -> Iterator[NextCommand]:
    """Yield the command that gates the audit, if its verdict is decided."""
    command = str(audit.spec.get("command", ""))
    file = audit.loaded_from or json_file(command, "")
    verdict = audit.primary[0].verdict(audit.margin)
    if verdict == "inconclusive":
        return
    text = "Keep it this way in CI" if verdict == "level" else "Fail a build on this tilt in CI"
    gate = f"ranktilt gate {shlex.quote(file or 'citations.json')} --max-tilt 5"
    if not file and command:
        gate = f"{command} --json citations.json && {gate}"
    yield NextCommand(text=text, command=gate)


def _ratio_interval(low: float, high: float) -> str:
    """Print the interval of a ratio; empty where there is none."""
    if isnan(low):
        return ""
    return f"[{', '.join(ends_apart((low, high), 1.0, ratio_words))}]"


def _share_interval(effect: CitationEffect) -> str:
    """Print the interval of a share in percent; empty where there is none."""
    if isnan(effect.low):
        return ""
    return f"[{', '.join(ends_apart((effect.low, effect.high), effect.neutral, rounded))}]"


def units_of(audit: CitationAudit) -> str:
    """Name the units of an audit in the plural; pages of a collection are documents."""
    if audit.of_documents and audit.unit.name == "page":
        return "documents"
    return units_word(audit.unit.name)


def site_noun(audit: CitationAudit) -> str:
    """Name what citations may concentrate on: domains, or documents of a collection."""
    return "document" if audit.of_documents else "domain"


def units_word(unit: str) -> str:
    """Return the plural of a unit; a column of the labels stays as it is named."""
    return f"{unit}s" if unit in ("domain", "page") else unit


def p_words(p: float) -> str:
    """Print a p-value without the 0 before its point: ``.031``."""
    return probability(p).removeprefix("= ")
