"""A pairwise audit: how often each side is chosen in each kind of pairs, with a verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import isnan
from operator import attrgetter

from ranktilt.auditing.pairwise.result import (
    EVEN,
    MOST_POSITION_BIAS,
    PairOutcome,
    PairwiseAudit,
)
from ranktilt.errors import counted, join_words
from ranktilt.reporting.document import (
    Block,
    Cell,
    Column,
    ColumnOf,
    Document,
    Figure,
    PageBlocks,
    Section,
    Sentence,
    Table,
    name_column,
    tabulated,
)
from ranktilt.reporting.figures.charts import Mark, forest
from ranktilt.reporting.headline import headline
from ranktilt.reporting.interval_chart import IntervalChart
from ranktilt.reporting.numbers import count, decimal, estimate, number_of, percent
from ranktilt.reporting.provenance import provenance
from ranktilt.reporting.sentences.notes import note_sentences
from ranktilt.reporting.sentences.pairwise import (
    pairwise_findings,
    pairwise_meaning,
    pairwise_next_commands,
)
from ranktilt.reporting.sentences.verdicts import INTERVAL_CAUTION, verdict_tone
from ranktilt.reporting.views.readings import verdict_chart


def view(audit: PairwiseAudit) -> Document:
    """Return the document of a pairwise audit."""
    figure = PageBlocks(make=partial(_paper_figure, audit))
    blocks: tuple[Block, ...] = (_table(audit), figure)
    section = Section("choices", "Every number", blocks=blocks, short_title="Numbers")
    notes = note_sentences(audit.notes)
    sections = (section, provenance(audit.spec, notes))
    sides = (audit.protected, audit.unprotected)
    return Document(
        kind=f"Choices of {audit.model}: {' or '.join(sides)}",
        headline=headline(audit),
        sections=sections,
        sentences=tuple(_sentences(audit)),
        meaning=pairwise_meaning(audit),
        first_figure=PageBlocks(make=partial(_first_figure, audit)),
        next_steps=pairwise_next_commands(audit),
        legend=tuple(legend(audit)),
        notes=notes,
        sides=sides,
    )


def _trained(audit: PairwiseAudit) -> Iterator[Sentence]:
    """Warn first of all where a model is asked about what it learned from."""
    if trained := audit.spec.get("trained_queries"):
        text = (
            f"{audit.model} was trained on {trained} of these queries, so its choices say little "
            "about others. Pass the adapter's held-out.txt to --queries."
        )
        yield Sentence(text, "warning", "strong")


def _table(audit: PairwiseAudit) -> Table:
    """Return the table of choices."""
    shares: tuple[tuple[Column | str, str], ...] = (
        (audit.unprotected, "unprotected"),
        (audit.protected, "protected"),
        (Column("ratio", hint=f"{audit.protected} over {audit.unprotected}"), "ratio"),
        ("inconsistent", "inconsistent"),
        ("unparsed", "unparsed"),
        ("first named", "first"),
    )
    columns: list[ColumnOf] = [
        (name_column("pairs"), attrgetter("kind")),
        ("number", number_of("pairs", count)),
    ]
    columns += [(title, partial(_share, name=name)) for title, name in shares]
    return tabulated("Choices, in %", audit.outcomes, columns, collapsed=True)


def _share(outcome: PairOutcome, name: str) -> Cell:
    """Print a share, or the ratio, with its interval."""
    return estimate(getattr(outcome, name), _ratio if name == "ratio" else percent)


def _ratio(value: float) -> str:
    """Write a ratio."""
    return "∞" if value == float("inf") else decimal(value, 2)


def _first_figure(audit: PairwiseAudit) -> Iterator[IntervalChart]:
    """Draw the preference on each kind of pairs as points from a half."""
    verdicts = [
        finding.verdict
        for finding in pairwise_findings(audit)
        if finding.verdict is not None and not isnan(finding.verdict.effect.value)
    ]
    chart = verdict_chart(
        verdicts,
        lambda verdict: verdict.effect.name.removeprefix("preference on "),
        title=f"How much more often than half the time {audit.protected} documents are chosen",
        sides=(audit.unprotected, audit.protected),
    )
    if chart is not None:
        yield chart


def _paper_figure(audit: PairwiseAudit) -> Iterator[Figure]:
    """Draw the preference on each kind of pairs for a paper."""
    decided = [outcome for outcome in audit.outcomes if outcome.decided]
    if not decided:
        return
    drawing = forest(
        {"": [_mark(audit, outcome) for outcome in decided]},
        x=f"share of {audit.protected} of decided pairs, minus 50 %, in points",
        margin=audit.margin,
    )
    yield Figure(
        f"How often {audit.protected} documents are chosen",
        "Right of 0: more often than not.",
        drawing,
        audience="paper",
    )


def _mark(audit: PairwiseAudit, outcome: PairOutcome) -> Mark:
    """Return the preference on one kind of pairs, in points from a half."""
    preference = outcome.preference
    return Mark(
        label=f"{outcome.kind} pairs",
        value=100 * (preference.value - EVEN),
        low=100 * (preference.low - EVEN),
        high=100 * (preference.high - EVEN),
        tone=verdict_tone(audit.verdict(outcome), audit.protected),
    )


def _sentences(audit: PairwiseAudit) -> Iterator[Sentence]:
    """Yield the answers."""
    yield from _trained(audit)
    for finding in pairwise_findings(audit):
        tone = "" if finding.verdict is None else verdict_tone(finding.verdict, audit.protected)
        yield Sentence(finding.sentence, tone, "strong")
    known = [outcome for outcome in audit.outcomes if not isnan(outcome.first.value)]
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
        end += f". This is more than {most} points away, so position decides many choices"
    text = f"{front}: the document shown first is named in {shares}; {end}"
    return Sentence(text, "warning" if is_large else "")


def _first_named(outcome: PairOutcome) -> str:
    """Say how often the answers on one kind of pairs name the document shown first."""
    first = outcome.first
    interval = "" if isnan(first.low) else f" [{percent(first.low)}, {percent(first.high)}]"
    return f"{percent(first.value)} % of the answers on {outcome.kind} pairs{interval}"


def legend(audit: PairwiseAudit) -> Iterator[str]:
    """Say what the numbers are, in a few lines."""
    spec = audit.spec
    shares = "A side is chosen where both orders agree; shares are of the pairs."
    if spec["count_rule"] == "each":
        shares = "Shares are of all answers, for inconsistent ones of the pairs."
    yield (
        f"Each pair is asked about in both orders. {shares} Ratio: {audit.protected} over "
        f"{audit.unprotected}; 1 is level."
    )
    test_count = max((outcome.family_size for outcome in audit.outcomes), default=1)
    tests = counted(test_count, "test", "tests")
    yield (
        f"Favours: corrected p < .05 ({str(spec['correction']).capitalize()} over {tests}; p by "
        "inverting the interval) and the interval excludes 50 %; level: within "
        f"{50 - audit.margin:g} to {50 + audit.margin:g} %. Intervals: bootstrap over queries, "
        f"{spec['resamples']:,} resamples, widened for the choice of documents. {INTERVAL_CAUTION}"
    )
