"""A pairwise audit: shares chosen of each kind of pairs, and a verdict each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple
from functools import partial
from math import isnan

from ranktilt.auditing.pairwise.result import (
    EVEN,
    MOST_POSITION_BIAS,
    PairOutcome,
    PairwiseAudit,
)
from ranktilt.errors import counted, join_words
from ranktilt.reporting.document import (
    Cell,
    Column,
    ColumnOf,
    Document,
    Figure,
    Lines,
    PageBlocks,
    Section,
    Sentence,
    Table,
    named,
    tabulated,
)
from ranktilt.reporting.figures.charts import Mark, forest
from ranktilt.reporting.headline import headline
from ranktilt.reporting.interval_chart import IntervalChart
from ranktilt.reporting.numbers import count, decimal, estimate, number, percent
from ranktilt.reporting.provenance import provenance
from ranktilt.reporting.sentences.notes import note_sentences
from ranktilt.reporting.sentences.pairwise import pairwise_findings, pairwise_meaning
from ranktilt.reporting.sentences.verdicts import ONE_AT_A_TIME, verdict_tone
from ranktilt.reporting.views.readings import verdict_chart


def view(found: PairwiseAudit) -> Document:
    """Return what is said of a pairwise audit."""
    return Document(
        kind=f"Choices between {found.protected} and {found.unprotected} documents",
        headline=headline(found),
        sections=(
            Section(
                "choices",
                "What is chosen",
                (),
                (*_trained(found), _table(found), PageBlocks(make=partial(_paper_figure, found))),
            ),
            provenance(found.spec, note_sentences(found.notes)),
        ),
        sentences=tuple(_sentences(found)),
        meaning=pairwise_meaning(found),
        hero=PageBlocks(make=partial(_hero, found)),
        legend=tuple(legend(found)),
        notes=note_sentences(found.notes),
        sides=(found.protected, found.unprotected),
    )


def _trained(found: PairwiseAudit) -> Iterator[Lines]:
    """Say first of all where a model is asked about what it learned from."""
    if trained := found.spec.get("trained_queries"):
        text = (
            f"{found.model} was trained on {trained} queries asked about, so that its choices "
            "say little of others: "
            "--queries takes the adapter's held-out.txt."
        )
        yield Lines((Sentence(text, "warning", "strong"),))


def _table(found: PairwiseAudit) -> Table:
    shares: tuple[tuple[Column | str, str], ...] = (
        (found.unprotected, "unprotected"),
        (found.protected, "protected"),
        (Column("ratio", hint=f"{found.protected} over {found.unprotected}"), "ratio"),
        ("inconsistent", "inconsistent"),
        ("unparsed", "unparsed"),
        ("first named", "first"),
    )
    columns: list[ColumnOf] = [
        (named("pairs"), lambda one: one.kind),
        ("number", lambda one: number(one.pairs, count)),
    ]
    columns += [(title, partial(_share, name=name)) for title, name in shares]
    return tabulated("Choices, in %", found.outcomes, columns)


def _share(one: PairOutcome, name: str) -> Cell:
    return estimate(getattr(one, name), _ratio if name == "ratio" else percent)


def _ratio(value: float) -> str:
    return "∞" if value == float("inf") else decimal(value, 2)


def _hero(found: PairwiseAudit) -> Iterator[IntervalChart]:
    """Draw the preference on each kind of pairs as points from a half."""
    verdicts = [
        finding.verdict
        for finding in pairwise_findings(found)
        if finding.verdict is not None and not isnan(finding.verdict.effect.value)
    ]
    chart = verdict_chart(
        verdicts,
        lambda verdict: verdict.effect.name.removeprefix("preference on "),
        title=f"How much more often than half the time {found.protected} documents are chosen",
        sides=(found.unprotected, found.protected),
    )
    if chart is not None:
        yield chart


def _paper_figure(found: PairwiseAudit) -> Iterator[Figure]:
    """Draw the same for a paper."""
    decided = [one for one in found.outcomes if one.decided]
    if not decided:
        return
    rows = []
    for one in decided:
        value, low, high = (100 * (share - EVEN) for share in astuple(one.preference))
        rows.append(
            Mark(
                f"{one.kind} pairs",
                value,
                low,
                high,
                tone=verdict_tone(found.verdict(one), found.protected),
            )
        )
    drawing = forest(
        {"": rows},
        x=f"share of {found.protected} among what is decided, less 50 %, in points",
        margin=found.margin,
    )
    yield Figure(
        f"How often {found.protected} documents are chosen",
        "Right of 0: more often than not.",
        drawing,
        only="paper",
    )


def _sentences(found: PairwiseAudit) -> Iterator[Sentence]:
    for finding in pairwise_findings(found):
        tone = "" if finding.verdict is None else verdict_tone(finding.verdict, found.protected)
        yield Sentence(finding.sentence, tone, "strong")
    known = [outcome for outcome in found.outcomes if not isnan(outcome.first.value)]
    if known:
        yield _position_bias(known)


def _position_bias(outcomes: Sequence[PairOutcome]) -> Sentence:
    """Say how often the document shown first is named; a large bias is a warning."""
    shares = join_words([_first_named(outcome) for outcome in outcomes])
    is_large = any(outcome.has_large_position_bias for outcome in outcomes)
    front = "Position bias is not shown"
    if is_large or any(outcome.first.uneven for outcome in outcomes):
        front = "Position bias"
    end = "50 % is none"
    if is_large:
        most = f"{100 * MOST_POSITION_BIAS:g}"
        end += f". More than {most} points from it: place decides much of what is chosen"
    text = f"{front}: the document shown first is named in {shares}; {end}"
    return Sentence(text, "warning" if is_large else "")


def _first_named(outcome: PairOutcome) -> str:
    """Say how often the answers on one kind of pairs name the document shown first."""
    first = outcome.first
    interval = "" if isnan(first.low) else f" [{percent(first.low)}, {percent(first.high)}]"
    return f"{percent(first.value)} % of the answers on {outcome.kind} pairs{interval}"


def legend(found: PairwiseAudit) -> Iterator[str]:
    """Say what the numbers are, in a few lines."""
    spec = found.spec
    each = spec["count_rule"] == "each"
    yield (
        "Each pair is asked about in both orders. "
        + (
            "Shares are of all answers, inconsistent ones of the pairs."
            if each
            else "A side is chosen where both orders agree; shares are of the pairs."
        )
        + f" Ratio: {found.protected} over {found.unprotected}; 1 is level."
    )
    tests = counted(max((one.family_size for one in found.outcomes), default=1), "test", "tests")
    yield (
        f"Favours: corrected p < .05 ({str(spec['correction']).capitalize()} over {tests}; p is "
        "the inversion of "
        "the interval) and the interval excludes 50 %; level: within "
        f"{50 - found.margin:g} to {50 + found.margin:g} %. Intervals: bootstrap over queries, "
        f"{spec['resamples']:,} resamples, widened by what documents add. {ONE_AT_A_TIME}"
    )
