"""The document of a check: whether a comparison of two sides' texts is fair.

The sides are a *reference*, such as human text, and one or several other *sources* of documents (a
source is who wrote them). A *fault* is something that makes the comparison unfair, such as empty
texts on one side. The *instrument* is the audit itself: its test audits the collection with sources
drawn by coin, and counts how often a side is favoured all the same. The *look* of a sentence is its
colour and emphasis.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

import numpy as np

from ranktilt.data.faults.faults import LENGTH_NOTICE, FaultRow
from ranktilt.errors import counted
from ranktilt.explaining.check_result import CheckResult
from ranktilt.measures.margin import margin_words, points_words
from ranktilt.reporting.document import Document, Emphasis, PageBlocks, Sentence
from ranktilt.reporting.provenance import provenance, titled
from ranktilt.reporting.sentences.checking.check import (
    check_meaning,
    check_next_commands,
    check_sentence,
    equivalence_words,
    instrument_sentence,
)
from ranktilt.reporting.sentences.checking.faults import MEANINGS, fault_note
from ranktilt.reporting.sentences.notes import note_sentences
from ranktilt.reporting.tones import Tone
from ranktilt.reporting.views.check.fault_chart import fault_chart
from ranktilt.reporting.views.check.sections import EQUIVALENCE_TONES, alpha_of, check_sections

_INSTRUMENT_LOOKS: dict[bool, tuple[Tone, Emphasis]] = {True: ("good", ""), False: ("bad", "alarm")}
"""Tone and emphasis, by whether the instrument is calibrated: it favours a side rarely enough."""


def view(check: CheckResult) -> Document:
    """Return the document of a check."""
    notes = note_sentences(check.notes)
    sections = (*check_sections(check), provenance(check.spec, notes))
    names = (check.reference, *check.sources)
    return Document(
        kind=titled("Check of", check.spec),
        headline=check_sentence(check),
        sections=sections,
        sentences=tuple(sentences(check)),
        meaning=check_meaning(check),
        first_figure=PageBlocks(make=partial(fault_chart, check)),
        next_steps=check_next_commands(check),
        names=names,
        legend=tuple(legend(check)),
        notes=notes,
    )


def sentences(check: CheckResult) -> Iterator[Sentence]:
    """Yield the verdict, then the tests of instrument and effectiveness, then the faults."""
    yield Sentence(check_sentence(check), *_verdict_look(check))
    for row in check.instrument:
        tone, emphasis = _INSTRUMENT_LOOKS[row.is_calibrated]
        yield Sentence(instrument_sentence(row), tone, emphasis)
    has_several_sources = len(check.sources) > 1
    for comparison in check.effectiveness:
        source = f" ({comparison.source})" if has_several_sources else ""
        name = f"{comparison.run}{source}, {comparison.measure}"
        tone = EQUIVALENCE_TONES[comparison.outcome]
        yield Sentence(f"{name}: {equivalence_words(comparison)}.", tone, "strong")
    for fault in check.faults:
        name = fault.name
        if has_several_sources and fault.source:
            name = f"{fault.source}, {fault.name}"
        for text in _fault_texts(fault):
            yield Sentence(f"{name}: {text}", emphasis="quiet")


def _fault_texts(fault: FaultRow) -> list[str]:
    """Say why a fault matters, and its numbers; nothing about a fault that does not occur."""
    if math.isnan(fault.value):
        return ["there is nothing to count"]
    note = fault_note(fault)
    if fault.verdict != "ok":
        return [text for text in (MEANINGS[fault.name], note) if text]
    return [note] if note and fault.count else []


def _verdict_look(check: CheckResult) -> tuple[Tone, Emphasis]:
    """Return tone and emphasis of the sentence with the verdict."""
    if check.is_void:
        return "bad", "alarm"
    if not check.is_compared or check.of("warning"):
        return "warning", "strong"
    return "good", "strong"


def legend(check: CheckResult) -> Iterator[str]:
    """Say how the tables are read, in a few lines."""
    reference = check.reference
    yield (
        "Words: mean and quartiles of whitespace words per text, without its title; an empty text "
        "counts as 0. Queries: with a relevant document in the source; relevant each: their mean "
        "number. Judged: named by a judgment of any grade. Twins: of the same origin as a "
        "document of another source. Duplicates: with the text of an earlier document of the "
        "source."
    )
    if check.features:
        yield (
            "g: Hedges' g over twins, with its 95 % interval: by how many standard deviations "
            f"the source has more than {reference}."
        )
    if check.terms:
        yield (
            "Terms: distinct lower-cased words. Jaccard: terms in both texts over terms in "
            f"either; overlap: the share of {reference} terms that the rewrite kept."
        )
    if check.similarity:
        yield (
            f"Twins: a {reference} text and its rewrite; unrelated pairs: a {reference} text and "
            "the rewrite of a random other one."
        )
    if check.effectiveness:
        yield from _effectiveness_legend(check)
    yield from fault_legend(check)


def _effectiveness_legend(check: CheckResult) -> Iterator[str]:
    """Yield sentences on how differences of effectiveness were tested."""
    rows = check.effectiveness
    tests = counted(sum(not np.isnan(row.p) for row in rows), "test", "tests")
    yield (
        f"Difference: {check.reference} − rewrite, over queries with a relevant document on "
        "both sides; 95 % interval of Student's t, uncorrected. p different: paired t test "
        f"(Holm over {tests})."
    )
    yield (
        f"p equivalent: two one-sided paired t tests against {margin_words(100 * rows[0].margin)}, "
        f"uncorrected: below {alpha_of(check):g}, the difference is smaller than that. Smallest "
        "margin: the smallest that these queries would show."
    )
    yield (
        "Inconclusive does not mean equivalent: these queries show neither a difference nor that "
        "there is none."
    )


def fault_legend(check: CheckResult) -> Iterator[str]:
    """Say how the table of faults is read."""
    low, high = LENGTH_NOTICE
    notice = check.limits.warn_above
    if not check.is_compared:
        yield f"Warning: a share over {notice:g} %, or any dangling judgment or repeated query."
        return
    yield (
        "Found: documents, pairs, judgments or queries with the fault, and their share, followed "
        f"by the share in {check.reference} itself. Length ratio: pairs outside the limits, and "
        "the median."
    )
    yield (
        f"Void: beyond the limit, on either side. Warning: a share over {notice:g} % (for title "
        f"prefixes and texts cut short, a gap of more than {points_words(notice)} between the "
        f"sides), a median length ratio outside {low:g}–{high:g}, any dangling judgment or "
        "repeated query, or nothing to count."
    )
