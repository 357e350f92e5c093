"""Audits of several sources in words: their verdicts together, and the trend with temperature.

Each source, such as a language model, rewrote documents of the reference, such as human authors;
the rewrites of one source and the reference are the two groups of an audit. Relative Δ is how much
higher one group ranks; its verdict says whether a group is shown to be favoured. A trend is a
change of Relative Δ with the temperature at which a model wrote.
"""

from __future__ import annotations

import math
from typing import Any

from ranktilt.auditing.answer.verdict import effect_row
from ranktilt.auditing.sources.source_audits import SourceAudits
from ranktilt.auditing.sources.temperature_trend import Trend
from ranktilt.errors import counted, join_words
from ranktilt.measures.printing import signed
from ranktilt.reporting.sentences.effects import signed_interval
from ranktilt.reporting.sentences.findings import command_rows, next_commands
from ranktilt.reporting.sentences.meaning import NOT_RELEVANCE, unfavoured_meaning
from ranktilt.reporting.sentences.verdicts import agreement_words, verdict_row


def trend_sentences(audits: SourceAudits) -> tuple[str, ...]:
    """Say how Relative Δ on the primary measure changes with temperature, by run and series.

    A series is the sources of one model (and prompt) that differ in temperature.
    """
    sentences = []
    for trend in audits.trends:
        if trend.measure != audits.primary:
            continue
        # "rises", "falls" or "inconclusive" on each measure, the primary one included.
        directions = [
            related.kind
            for related in audits.trends
            if (related.run, related.series) == (trend.run, trend.series)
        ]
        agreeing_count = directions.count(trend.kind)
        sentences.append(trend_sentence(trend, agree=agreeing_count, measures=len(directions)))
    return tuple(sentences)


def trend_sentence(trend: Trend, *, agree: int = 1, measures: int = 1) -> str:
    """Say whether the tilt of one run changes with the temperature of a series of sources.

    `measures` is the number of measures with a trend of this run and series. `agree` is the number
    of these whose trend has the same direction as this one, itself included.
    """
    label = f"{trend.run}, {trend.series}"
    if trend.queries == 0:
        return (
            f"{label}: no trend to test, because no query has a relevant document on both sides "
            "at every temperature"
        )
    if math.isnan(trend.correlation):
        # A rank correlation is undefined if all values are equal ("the same Relative Δ"), or if
        # they are undefined themselves ("or none").
        return (
            f"{label}: no trend to test, because {trend.measure} has the same Relative Δ at every "
            "temperature, or none"
        )
    coldest, warmest = min(trend.temperatures), max(trend.temperatures)
    numbers = (
        f"rank correlation {signed(trend.correlation, 2)} [{signed(trend.low, 2)}, "
        f"{signed(trend.high, 2)}], {signed(trend.change)} points "
        f"{signed_interval(trend.change_low, trend.change_high)} from {coldest:g} to {warmest:g}"
    )
    if trend.kind == "inconclusive":
        return (
            f"{label}: inconclusive, no trend with temperature shown on {trend.measure}: {numbers}"
        )
    # `trend.a` is the reference: a rising Relative Δ moves toward it.
    direction = f"toward {trend.a}" if trend.kind == "rises" else f"away from {trend.a}"
    others = f"; {agreement_words(agree, measures, 'measures')}" if measures > 1 else ""
    return (
        f"{label}: Relative Δ on {trend.measure} moves {direction} as temperature rises: "
        f"{numbers}{others}"
    )


def source_audits_meaning(audits: SourceAudits) -> str:
    """Say what audits of several sources mean together."""
    verdicts = audits.verdicts()
    favoured = [verdict for verdict in verdicts if verdict.side is not None]
    if not favoured:
        return unfavoured_meaning(verdicts)
    # The side of a verdict is the reference or a source of rewrites.
    reference_count = sum(verdict.side == audits.reference for verdict in favoured)
    rewrite_count = len(favoured) - reference_count
    reference_part = f"{audits.reference} text ranks ahead in {reference_count}"
    if reference_count and rewrite_count:
        # "human text ranks ahead in 2 and rewrites in 3 of 8 comparisons"
        finding = join_words([reference_part, f"rewrites in {rewrite_count}"])
    elif reference_count:
        finding = reference_part
    else:
        finding = f"rewrites rank ahead in {rewrite_count}"
    total = counted(len(verdicts), "comparison", "comparisons")
    # NOT_RELEVANCE is an imperative without a full stop; the sentence goes on with a second one.
    return (
        f"{finding} of {total}, by more than chance explains. {NOT_RELEVANCE}, and do "
        "not carry a finding from one source to another."
    )


def derived_words(audits: SourceAudits) -> dict[str, Any]:
    """Return what the saved file holds besides the fields: verdicts, steps, effects, sentences."""
    return {
        "verdicts": [verdict_row(verdict) for verdict in audits.verdicts()],
        "next_steps": command_rows(next_commands(audits.next_steps)),
        "effects": [effect_row(tilt, audits.margin_points) for tilt in audits.tilts],
        "sentences": trend_sentences(audits),
    }
