"""The document of a pairwise audit: how often a model that compares two documents chooses a side.

The model sees a document of either side, *protected* (such as human text) and *unprotected* (such
as LLM text), and names the better one, once in each order. A *kind* of pairs is a set of pairs of
documents that is counted apart, such as those that are both relevant. The *outcome* on a kind is
how often each side is chosen, and the *verdict* says which side that favours. *Position bias* is
naming the document shown first more, or less, often than half the time.
"""

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
from ranktilt.measures.printing import digits_apart, ends_apart
from ranktilt.reporting.document import (
    Block,
    Cell,
    Column,
    ColumnSpec,
    Document,
    Figure,
    PageBlocks,
    Section,
    Sentence,
    Table,
    make_table,
    name_column,
)
from ranktilt.reporting.figures.charts import Mark, forest
from ranktilt.reporting.headline import headline
from ranktilt.reporting.interval_chart import IntervalChart
from ranktilt.reporting.numbers import decimal, estimate_cell, number_cells, percent, with_commas
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
    blocks: tuple[Block, ...] = (_choices_table(audit), figure)
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


def _training_overlap(audit: PairwiseAudit) -> Iterator[Sentence]:
    """Warn where the model was trained on queries of the audit."""
    if trained := audit.spec.get("trained_queries"):
        # Whoever trains an adapter here gets a file of the queries that were held out.
        text = (
            f"{audit.model} was trained on {trained} of these queries, so its choices say little "
            "about others. Pass the adapter's held-out.txt to --queries."
        )
        yield Sentence(text, "warning", "strong")


def _choices_table(audit: PairwiseAudit) -> Table:
    """Return the table of choices, with a row for each kind of pairs."""
    shares: tuple[tuple[Column | str, str], ...] = (
        (audit.unprotected, "unprotected"),
        (audit.protected, "protected"),
        (Column("ratio", hint=f"{audit.protected} over {audit.unprotected}"), "ratio"),
        ("inconsistent", "inconsistent"),
        ("unparsed", "unparsed"),
        ("first named", "first"),
    )
    columns: list[ColumnSpec] = [
        (name_column("pairs"), attrgetter("kind")),
        ("number", number_cells("pairs", with_commas)),
    ]
    columns += [(title, partial(_outcome_cell, field=field)) for title, field in shares]
    # The first figure shows the same preference, so a page collapses the table.
    return make_table("Choices, in %", audit.outcomes, columns, collapsed=True)


def _outcome_cell(outcome: PairOutcome, field: str) -> Cell:
    """Return the cell of a share, or of the ratio of two shares, with its interval."""
    return estimate_cell(getattr(outcome, field), _ratio_text if field == "ratio" else percent)


def _ratio_text(value: float) -> str:
    """Print a ratio with two decimals; ∞ where the side below the line is never chosen."""
    return "∞" if value == float("inf") else decimal(value, 2)


def _first_figure(audit: PairwiseAudit) -> Iterator[IntervalChart]:
    """Draw the preference on each kind of pairs: the share of one side minus 50 %, in points."""
    verdicts = [
        finding.verdict
        for finding in pairwise_findings(audit)
        if finding.verdict is not None and not isnan(finding.verdict.effect.value)
    ]
    chart = verdict_chart(
        verdicts,
        # The effect is called "preference on relevant pairs": the title says preference already.
        lambda verdict: verdict.effect.name.removeprefix("preference on "),
        title=f"How much more often than half the time {audit.protected} documents are chosen",
        sides=(audit.unprotected, audit.protected),
    )
    if chart is not None:
        yield chart


def _paper_figure(audit: PairwiseAudit) -> Iterator[Figure]:
    """Draw the preference on each kind of pairs as a figure of a paper."""
    decided_outcomes = [outcome for outcome in audit.outcomes if outcome.decided > 0]
    if not decided_outcomes:
        return
    no_heading = ""
    drawing = forest(
        {no_heading: [_preference_mark(audit, outcome) for outcome in decided_outcomes]},
        x=f"share of {audit.protected} of decided pairs, minus 50 %, in points",
        margin=audit.margin,
    )
    yield Figure(
        f"How often {audit.protected} documents are chosen",
        "Right of 0: more often than not.",
        drawing,
        audience="paper",
    )


def _preference_mark(audit: PairwiseAudit, outcome: PairOutcome) -> Mark:
    """Return the mark of the preference on one kind of pairs, in points above or below 50 %."""
    preference = outcome.preference
    return Mark(
        label=f"{outcome.kind} pairs",
        value=100 * (preference.value - EVEN),
        low=100 * (preference.low - EVEN),
        high=100 * (preference.high - EVEN),
        tone=verdict_tone(audit.verdict(outcome), audit.protected),
    )


def _sentences(audit: PairwiseAudit) -> Iterator[Sentence]:
    """Yield the findings, the largest first, and how often the document shown first is named."""
    yield from _training_overlap(audit)
    for finding in pairwise_findings(audit):
        tone = "" if finding.verdict is None else verdict_tone(finding.verdict, audit.protected)
        yield Sentence(finding.sentence, tone, "strong")
    outcomes = [outcome for outcome in audit.outcomes if not isnan(outcome.first.value)]
    if outcomes:
        yield _position_bias(outcomes)


def _position_bias(outcomes: Sequence[PairOutcome]) -> Sentence:
    """Say how often the document shown first is named; a large bias is a warning."""
    is_large = any(outcome.has_large_position_bias for outcome in outcomes)
    # `uneven`: the interval of the share excludes 50 %.
    is_shown = is_large or any(outcome.first.uneven for outcome in outcomes)
    subject = "Position bias" if is_shown else "Position bias is not shown"
    shares = join_words([_first_named(outcome) for outcome in outcomes])
    text = f"{subject}: the document shown first is named in {shares}; 50 % is none"
    if not is_large:
        return Sentence(text)
    limit = f"{100 * MOST_POSITION_BIAS:g}"
    text += f". This is more than {limit} points away, so position decides many choices"
    return Sentence(text, "warning")


def _first_named(outcome: PairOutcome) -> str:
    """Say how often the answers on one kind of pairs name the document shown first."""
    first = outcome.first
    ends = [100 * first.low, 100 * first.high]
    limits = [100 * (EVEN - MOST_POSITION_BIAS), 100 * (EVEN + MOST_POSITION_BIAS)]
    # The interval is told from one half, and the share from what counts as a large bias.
    low, high = ends_apart((ends[0], ends[1]), 100 * EVEN, decimal)
    interval = "" if isnan(first.low) else f" [{low}, {high}]"
    share = decimal(100 * first.value, digits_apart([100 * first.value], limits))
    return f"{share} % of the answers on {outcome.kind} pairs{interval}"


def legend(audit: PairwiseAudit) -> Iterator[str]:
    """Say how choices are counted, and how verdicts, p-values and intervals are computed."""
    spec = audit.spec
    shares = "A side is chosen where both orders agree; shares are of the pairs."
    if spec["count_rule"] == "each":  # each answer counts, also where the two orders disagree
        shares = "Shares are of all answers, for inconsistent ones of the pairs."
    yield (
        f"Each pair is asked about in both orders. {shares} Ratio: {audit.protected} over "
        f"{audit.unprotected}; 1 is level."
    )
    # A family is the set of tests over which p-values are corrected.
    test_count = max((outcome.family_size for outcome in audit.outcomes), default=1)
    tests = counted(test_count, "test", "tests")
    yield (
        f"Favours: corrected p < .05 ({str(spec['correction']).capitalize()} over {tests}; p by "
        "inverting the interval) and the interval excludes 50 %; level: within "
        f"{50 - audit.margin:g} to {50 + audit.margin:g} %. Intervals: bootstrap over queries, "
        f"{spec['resamples']:,} resamples, widened for the choice of documents. {INTERVAL_CAUTION}"
    )
