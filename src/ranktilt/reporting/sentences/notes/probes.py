"""Sentences of the notes on what probes find in texts, and of the attribution of gaps.

A probe measures a property of texts, such as their length. Twins are versions of one text, by a
source and by the reference. A gap is the mean difference of the scores that a ranker gives twins;
an attribution says which properties of the texts go with it.

Each function says a note of one class, the one that its parameter is annotated with. The classes
are in the file of the same name in `ranktilt.data.notes`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial

from ranktilt.data.faults.faults import percent
from ranktilt.data.notes.probes import (
    AttributionNote,
    DirectionsConcentrated,
    DocumentsScored,
    GapAttributed,
    GapPartsShown,
    GapsOfTwins,
    GapUnits,
    NoTwinsToCompare,
    OneQuery,
    PairsWithoutValues,
    PropertiesConstant,
    PropertiesInflated,
    RatiosShown,
    SourceMean,
    TermsKept,
    TheoremChecked,
    TwinsNear,
    ValuesShown,
)
from ranktilt.errors import counted, join_words
from ranktilt.measures.printing import ends_apart
from ranktilt.reporting.numbers import always_signed, fixed
from ranktilt.reporting.sentences.grammar import singular_or_plural
from ranktilt.reporting.sentences.notes.base import note_words

_MOST_NAMED = 3
"""Most names that a note lists."""


@note_words.register
def _no_twins_to_compare(note: NoTwinsToCompare) -> str:
    return "no other source has twins: there is nothing to compare"


@note_words.register
def _source_mean(note: SourceMean) -> str:
    per = " per document" if note.is_per_document else ""
    return f"{note.source}: {note.mean:.2f} {note.unit}{per}"


@note_words.register
def _terms_kept(note: TermsKept) -> str:
    if not note.pairs:
        return (
            f"{note.source}: terms cannot be compared, as no {note.reference} text with a twin has "
            "any"
        )
    pairs = counted(note.pairs, "pair", "pairs")
    return (
        f"{note.source}: rewrites keep {percent(100 * note.overlap)} of the terms in "
        f"{note.reference} texts; Jaccard {note.jaccard:.2f} (means over {pairs})"
    )


@note_words.register
def _twins_near(note: TwinsNear) -> str:
    if not note.pairs:
        return (
            f"{note.source}: {note.model} vectors cannot be compared, as no pair has one on both "
            "sides"
        )
    words = (
        f"{note.source}: twins have a median cosine of {note.median:.2f}, "
        f"{percent(100 * note.above)} of them above {note.limit:g}"
    )
    if note.other_pairs:
        words += f"; for a text and another text's rewrite it is {note.other_median:.2f}"
    if not math.isnan(note.auc):
        words += f"; a classifier tells the sources apart with an AUC of {note.auc:.2f}"
    return f"{words} ({note.model})"


@note_words.register
def _directions_concentrated(note: DirectionsConcentrated) -> str:
    comparative = "not shown to be more or less"
    if note.low > 0:
        comparative = "more"
    elif note.high < 0:
        comparative = "less"
    shares = f"{100 * note.share:.1f} % against {100 * note.reference_share:.1f} %"
    difference = 100 * note.share - 100 * note.reference_share
    low, high = ends_apart((100 * note.low, 100 * note.high), 0.0, always_signed)
    interval = f"{always_signed(difference)} points [{low}, {high}]"
    return (
        f"{note.source}: embeddings are {comparative} concentrated than {note.reference} ones; the "
        f"largest tenth of the directions holds {shares}, {interval} over "
        f"{counted(note.pairs, 'pair', 'pairs')}"
    )


@note_words.register
def _ratios_shown(note: RatiosShown) -> str:
    if math.isnan(note.first):
        return f"{note.source}: no value is above rounding"
    return (
        f"{note.source}: {note.first:.3f} at the first value, {note.last:.3f} at the last one "
        "above rounding"
    )


@note_words.register
def _values_shown(note: ValuesShown) -> str:
    if not note.values:
        return f"{note.series}: nothing to measure"
    return (
        f"{note.series}: mean {note.mean:.2f}, half of the values from {note.quartile_1:.2f} to "
        f"{note.quartile_3:.2f}"
    )


@note_words.register
def _gap_parts_shown(note: GapPartsShown) -> str:
    gap = f"{note.gap:+.3f} sd".replace("-", "−")
    pairs = ", for retrieved pairs only" if note.is_of_retrieved else ""
    return f"Parts of a mean gap of {gap}{pairs}."


@note_words.register
def _gap_attributed(note: GapAttributed) -> str:
    if not note.is_shown:
        return (
            f"{note.run} shows no gap between {note.source} and {note.reference}, so nothing is "
            "attributed."
        )
    higher, lower = note.reference, note.source
    if note.gap < 0:
        higher, lower = lower, higher
    lead = f"{note.run} scores {higher} texts higher than their {lower} twins, by {_gap_size(note)}"
    if note.is_of_retrieved:
        return (
            f"{lead}, among the texts it retrieves. These are selected by score, so no property is "
            "named."
        )
    cause = "No property is shown to go with this"
    if note.with_gap:
        cause = f"This goes with {join_words(note.with_gap)}"
    despite = f", despite {join_words(note.against_gap)}" if note.against_gap else ""
    return " ".join([f"{lead}. {cause}{despite}.", *_unexamined(note.unvarying)])


def _gap_size(note: GapAttributed) -> str:
    """Write the size of a gap, whose direction the sentence says: ``0.273 sd [0.137, 0.409]``."""
    return f"{abs(note.gap):.3f} sd {_unsigned_interval(note.low, note.high)}"


def _unsigned_interval(low: float, high: float) -> str:
    """Print an interval that excludes 0 without signs: the sentence says the direction."""
    nearer, farther = sorted((abs(low), abs(high)))
    ends = ends_apart((nearer, farther), 0.0, partial(fixed, digits=3))
    return f"[{', '.join(ends)}]"


def _unexamined(properties: Sequence[str]) -> Iterator[str]:
    """Say which properties could not be examined, because all twins differ by the same."""
    if not properties:
        return
    names = join_words(list(properties))
    if len(properties) > _MOST_NAMED:
        names = f"{len(properties)} other properties"
    yield f"All twins differ by the same amount in {names}, which could not be examined."


@note_words.register
def _documents_scored(note: DocumentsScored) -> str:
    documents = counted(note.documents, "document", "documents")
    queries = counted(note.queries, "query", "queries")
    return (
        f"{note.run}: {documents} scored for {queries}, retrieved or not; judged "
        f"ones come first, others are drawn at random (seed {note.seed}), all with their twins"
    )


@note_words.register
def _pairs_without_values(note: PairsWithoutValues) -> str:
    pairs = counted(note.pairs, "pair is", "pairs are")
    properties = join_words([f"{count.name} ({count.number:,})" for count in note.properties])
    return f"{_subject(note)}: {pairs} left out, without a value for {properties}"


@note_words.register
def _properties_constant(note: PropertiesConstant) -> str:
    properties = [
        f"{constant.name} ({_difference(constant.value)})" for constant in note.properties
    ]
    return (
        f"{_subject(note)}: left out, as all twins differ by the same amount: "
        f"{join_words(properties)}"
    )


def _difference(value: float) -> str:
    """Print a difference with its sign, in four significant digits."""
    return f"{value:+.4g}" if value else "0"


@note_words.register
def _one_query(note: OneQuery) -> str:
    return (
        f"{_subject(note)}: there is only one query, so intervals cover other documents, but not "
        "other queries"
    )


@note_words.register
def _properties_inflated(note: PropertiesInflated) -> str:
    properties = [f"{inflated.name} ({_inflation(inflated.value)})" for inflated in note.properties]
    number = len(properties)
    go_together = singular_or_plural(number, "goes together with the others", "go together")
    effects_are = singular_or_plural(number, "its effect is", "their effects are")
    return (
        f"{_subject(note)}: {join_words(properties)} {go_together} (inflation), so {effects_are} "
        "hard to separate"
    )


def _inflation(value: float) -> str:
    """Print a variance inflation factor.

    It is infinite, and NaN in the note, for a property that others determine exactly.
    """
    return f"{value:.0f}" if math.isfinite(value) else "∞"


def _subject(note: AttributionNote) -> str:
    """Name the run and source that a note begins with."""
    return f"{note.run}, {note.source}"


@note_words.register
def _gaps_of_twins(note: GapsOfTwins) -> str:
    return (
        "the gap compares the scores of judged twins, wherever they rank; nDCG counts ranks near "
        "the top, so an audit with it may favour the other side"
    )


@note_words.register
def _gap_units(note: GapUnits) -> str:
    units = "; ".join(f"{about.name}: {about.unit}" for about in note.properties)
    return (
        "Gaps are in standard deviations (sd) of a query's scores, and + favours "
        f"{note.reference}, as in an audit. A coefficient is for one standard deviation more in "
        f"{note.reference} texts than in their twins. Properties: {units}."
    )


_CONDITIONS = {
    "divergence, share of positions": "divergence at every position",
    "divergence, mean margin": "divergence on average",
}
"""Words for conditions of the theorem, by the column of numbers that decides each.

A condition that is not here is called as its column is.
"""


@note_words.register
def _theorem_checked(note: TheoremChecked) -> str:
    pairs = counted(note.pairs, "pair of twins", "pairs of twins")
    return f"{_easier(note)} ({pairs}). {_whether_it_applies(note)}."


def _easier(note: TheoremChecked) -> str:
    """Say whose texts are easier to predict for the retriever's model: the theorem's conclusion.

    The retriever's model is the language model that the retriever was made from.
    """
    if note.conclusion == "undecided":
        ends = f"[{note.low:+.3f}, {note.high:+.3f}]".replace("-", "−")
        value = f"{note.value:+.3f}".replace("-", "−")
        return (
            f"The retriever's model is not shown to find {note.source} texts easier or harder to "
            f"predict than their originals: {value} nats per token {ends}"
        )
    easier = "easier" if note.conclusion == "yes" else "harder"
    return (
        f"The retriever's model finds {note.source} texts {easier} to predict than their "
        f"originals, by {abs(note.value):.3f} nats per token "
        f"{_unsigned_interval(note.low, note.high)}"
    )


def _conditions(names: Sequence[str]) -> str:
    """Name conditions of the theorem; empty for none."""
    conditions = [_CONDITIONS.get(name, name) for name in names]
    return join_words(conditions) if conditions else ""


def _whether_it_applies(note: TheoremChecked) -> str:
    """Say which conditions of the theorem fail, or are open."""
    failed, undecided = _conditions(note.failed), _conditions(note.undecided)
    if failed:
        are = singular_or_plural(len(note.failed), "is", "are")
        also = f", and {undecided} undecided" if undecided else ""
        return f"Theorem 4.1 does not apply: {failed} {are} not met{also}"
    if undecided:
        are = singular_or_plural(len(note.undecided), "is", "are")
        return f"Whether theorem 4.1 applies is open: undecided {are} {undecided}"
    if not note.is_complete:
        return "Without a reader, three of the four conditions of theorem 4.1 were not checked"
    return "All conditions of theorem 4.1 hold"
