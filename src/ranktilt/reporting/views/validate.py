"""A validation: what the two sides share, whether either is easier to search, and whether the comparison is fair."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby

import numpy as np

from ranktilt.auditing.effects import Equivalence, Outcome
from ranktilt.datasets.check import CheckResult, percent
from ranktilt.errors import counted, join_words
from ranktilt.probes.base import ABOVE, Distribution
from ranktilt.probes.similarity import Map, Similarity
from ranktilt.probes.text_probes import CollectionStatistics
from ranktilt.probes.validation import ALPHA, Validation
from ranktilt.reporting.document import (
    Block,
    Cell,
    Column,
    Document,
    Emphasis,
    Figure,
    Lines,
    Row,
    Section,
    Sentence,
    Table,
    named,
    tabulated,
    worded,
)
from ranktilt.reporting.figures.charts import Mark, clouds, forest, histogram
from ranktilt.reporting.figures.drawing import Drawing
from ranktilt.reporting.numbers import (
    DASH,
    always_signed,
    count,
    decimal,
    estimate,
    fixed,
    number,
    p_value,
)
from ranktilt.reporting.provenance import provenance, titled
from ranktilt.reporting.tones import Tone
from ranktilt.reporting.views.check import check_table, sentences
from ranktilt.reporting.views.check import legend as check_legend
from ranktilt.reporting.views.describe import LEGEND, statistics_tables

_UNRELATED = 0.95
_NEAR = 0.95
_MOST_NAMED = 4
_BINS = 40
OUTCOMES: dict[Outcome, Tone] = {
    "equivalent": "good",
    "different within the margin": "good",
    "different": "bad",
    "inconclusive": "unsure",
    "not tested": "unsure",
}
"""How each outcome of the test of equivalence is to be taken, in the order in which they are named."""
_WORDS: dict[Outcome, tuple[str, str]] = {
    "different": ("differs", "differ"),
    "different within the margin": ("differs within the margin", "differ within the margin"),
    "inconclusive": ("is inconclusive", "are inconclusive"),
    "not tested": ("is not tested", "are not tested"),
    "equivalent": ("is equivalent on both sides", "are equivalent on both sides"),
}
"""Of one ranker, and of several; what differs is told first."""


def view(validation: Validation) -> Document:
    """Return what is said of a validation."""
    return Document(
        kind=titled("Validation of", validation.spec),
        headline=headline(validation),
        sections=(*validation_sections(validation), provenance(validation.spec, validation.notes)),
        sentences=tuple(_sentences(validation)),
        legend=tuple(legend(validation)),
        notes=validation.notes,
    )


def headline(validation: Validation) -> str:
    """Say in one sentence what a validation found: words kept, closeness in meaning, the outcome of each ranker."""
    if not validation.sources:
        documents = sum(
            row.documents for row in validation.statistics.sources if row.source is not None
        )
        return f"One source, {validation.reference}, with {counted(documents, 'document', 'documents')}: no twins."
    if validation.check is not None and not validation.check.fair:
        return validation.check.sentence
    parts = [_texts(validation)]
    for outcome, words in _WORDS.items():
        found = [
            row
            for row in validation.effectiveness
            if row.outcome == outcome and _primary(row, validation)
        ]
        names = [
            f"{row.run} ({row.source})" if len(validation.sources) > 1 else row.run for row in found
        ]
        if names:
            parts.append(f"{_first(names)} {words[len(names) > 1]}")
    said = "; ".join(filter(None, parts))
    return f"{said or f'No pair of {_first(validation.sources)} and {validation.reference} could be compared'}."


def _texts(validation: Validation) -> str:
    kept = [one.overlap.mean for one in validation.overlaps if one.overlap.count]
    near = [share for share in map(_near, validation.similarities) if share == share]
    parts = []
    if kept:
        low, high = (f"{100 * value:.0f}" for value in (min(kept), max(kept)))
        parts.append(f"keep {low if low == high else f'{low} to {high}'} % of the words")
    if near:
        parts.append(
            "stay close in meaning" if min(near) >= _NEAR else "do not all stay close in meaning"
        )
    return f"The rewrites {' and '.join(parts)}" if parts else ""


def _near(similarity: Similarity) -> float:
    """Share of the twins that are more alike than nearly all unrelated pairs."""
    if not similarity.baseline.count or not similarity.cosine.count:
        return float("nan")
    return similarity.cosine.above(float(np.quantile(similarity.baseline.defined, _UNRELATED)))


def _primary(row: Equivalence, validation: Validation) -> bool:
    return row.measure == validation.effectiveness[0].measure


def _first(names: Sequence[str]) -> str:
    if len(names) > _MOST_NAMED:
        return f"{', '.join(names[:_MOST_NAMED])} and {len(names) - _MOST_NAMED} more"
    return join_words(names)


def _sentences(validation: Validation) -> Iterator[Sentence]:
    """The check first; then what the primary measure shows of each ranker."""
    check = validation.check
    if check is not None:
        tone: Tone = "bad" if not check.fair else "warning" if check.of("warning") else "good"
        yield Sentence(check.sentence, tone, "strong")
    for row in validation.effectiveness:
        if _primary(row, validation):
            name = f"{row.run} ({row.source})" if len(validation.sources) > 1 else row.run
            yield Sentence(f"{name}: {row.statement}.", OUTCOMES[row.outcome], "strong")


def legend(validation: Validation) -> list[str]:
    """Say how the tables are read, in a few lines."""
    first = validation.reference
    lines = [LEGEND]
    if validation.overlaps:
        lines.append(
            f"Terms: distinct lower-cased words. Jaccard: those of both texts over those of either; overlap: the share "
            f"of {first}'s that the rewrite kept."
        )
    if validation.similarities:
        lines.append(
            f"Twins: a text of {first} and its rewrite; other pairs: a text of {first} and the rewrite of another one, "
            "at random."
        )
    if rows := validation.effectiveness:
        tests = counted(sum(not np.isnan(row.p) for row in rows), "test", "tests")
        lines += [
            f"Difference: {first} − rewrite, over queries with a relevant document on both sides; 95 % interval of "
            f"Student's t, uncorrected. p different: paired t test (Holm over {tests}).",
            f"p equivalent: two one-sided paired t tests against ±{rows[0].margin:g}, uncorrected: below "
            f"{alpha_of(validation):g} the difference is smaller than that. Shown from: the smallest margin that would "
            "have been shown.",
            "Inconclusive is not equivalent: there, these queries show neither a difference nor that there is none.",
        ]
    return lines


def validation_sections(validation: Validation) -> list[Section]:
    """Lay a validation out in the order of the paper's tables and figures; what was not asked for is left out."""
    return [
        _collection(validation.statistics),
        *([_terms(validation)] if validation.overlaps else []),
        *_meanings(validation),
        *([_effectiveness(validation)] if validation.effectiveness else []),
        *([_check(validation.check)] if validation.check else []),
    ]


def _collection(found: CollectionStatistics) -> Section:
    split = f" Judgments: {found.split}." if found.split else ""
    lead = (f"Both sides answer the same queries.{split}",) if len(found.sources) > 1 else ()
    return Section("collection", "What the collection holds", lead, statistics_tables(found))


_SPREAD = (Column("pairs"), Column("mean"), Column("quartiles", spare=1))


def _spread(found: Distribution) -> tuple[Cell, ...]:
    """The cells below `_SPREAD`."""
    quartiles = "  ".join(f"{value:.2f}" for value in found.quartiles)
    return number(found.count, count), number(found.mean, fixed), Cell(quartiles)


def _terms(validation: Validation) -> Section:
    rows = tuple(
        Row((Cell(name), *_spread(found), number(found.undefined, count)), (one.source,))
        for one in validation.overlaps
        for name, found in (("Jaccard", one.jaccard), ("overlap", one.overlap))
    )
    columns = (named("quantity"), *_SPREAD, Column("undefined"))
    table = Table(
        f"Terms shared with {validation.reference}, 0 to 1", columns, rows, groups=("source",)
    )
    jaccard = {one.source: one.jaccard for one in validation.overlaps}
    overlap = {one.source: one.overlap for one in validation.overlaps}
    figures = (
        distribution_figure(
            "Figure 3, left. Jaccard similarity of twins", jaccard, "Jaccard similarity"
        ),
        distribution_figure(
            "Figure 3, right. Overlap: the share of terms kept", overlap, "overlap"
        ),
    )
    lead = "A rewrite should say the same in other words: many terms kept, but not all."
    return Section("words", "Words in common", (lead,), (table, *figures))


def _meanings(validation: Validation) -> Iterator[Section]:
    """One section a source."""
    found = validation.similarities
    many = len(found) > 1
    for place, one in enumerate(found, start=1):
        title = f"Meaning of {one.source}" if many else "Meaning"
        lead = (
            f"{one.model} read what each document says ({one.text}) and made a vector of it. Twins should lie close "
            "together, unrelated texts should not."
        )
        drawn = f"Figure 5. Cosine similarity of {validation.reference} texts with their twins in {one.source}"
        sides = {"twins": one.cosine, "unrelated pairs": one.baseline}
        figure = distribution_figure(
            f"{drawn}, and with other rewrites", sides, "cosine similarity"
        )
        blocks: list[Block] = [_cosines(one), _separation(one), figure]
        blocks += (
            [map_figure(one.map, one.source, validation.reference)] if one.map is not None else []
        )
        yield Section(f"meaning-{place}" if many else "meaning", title, (lead,), tuple(blocks))


def _cosines(one: Similarity) -> Table:
    rows = []
    for name, found in (("twins", one.cosine), ("unrelated pairs", one.baseline)):
        above = found.above(ABOVE)
        share = Cell(DASH if np.isnan(above) else percent(100 * above), above)
        rows.append(Row((Cell(name), *_spread(found), share)))
    columns = (named("pairs of texts"), *_SPREAD, Column(f"above {ABOVE:g}"))
    return Table(
        f"Cosine similarity of {one.source}, {one.model}, {one.text}", columns, tuple(rows)
    )


def _separation(one: Similarity) -> Table:
    apart = one.separation
    folds = f"folds {fixed(apart.auc_low)} to {fixed(apart.auc_high)}; .5 is chance, 1 is always"
    row = Row(
        (
            Cell("AUC of telling sides apart", note=folds),
            number(apart.auc, fixed),
            number(apart.pairs, count),
        )
    )
    columns = (named("by their vectors"), Column("value"), Column("pairs"))
    return Table(f"How far apart the sides are, {one.source}", columns, (row,))


def _effectiveness(validation: Validation) -> Section:
    rows, reference = validation.effectiveness, validation.reference
    many = len({row.measure for row in rows}) > 1
    columns = (
        (named("ranker"), lambda row: row.run + (f" {row.measure}" if many else "")),
        (reference, lambda row: number(row.mean_a, partial(decimal, digits=3))),
        ("rewrite", lambda row: number(row.mean_b, partial(decimal, digits=3))),
        ("difference", _difference),
        (Column("p different", spare=2), lambda row: number(row.p_corrected, p_value)),
        (Column("p equivalent", spare=3), lambda row: number(row.p_equivalent, p_value)),
        (
            Column("smallest margin", spare=4),
            lambda row: Cell(f"±{row.smallest:.3f}".replace("±nan", DASH), row.smallest),
        ),
        (Column("queries", spare=1), lambda row: number(row.queries, count)),
        (worded("outcome"), lambda row: Cell(row.statement, tone=OUTCOMES[row.outcome])),
    )
    sources = dict.fromkeys(row.source for row in rows)
    left_out = {row.source: f"{row.excluded:,}" for row in rows if row.excluded}
    counts = ", ".join(
        f"{n} of {source}" if len(validation.sources) > 1 else n for source, n in left_out.items()
    )
    outside = (
        f" Judged queries without a relevant document on both sides, left out: {counts}."
        if counts
        else ""
    )
    table = tabulated(
        f"Effectiveness on each side alone{'' if many else f', {rows[0].measure}'}",
        [row for source in sources for row in rows if row.source == source],
        columns,
        note=outside.strip(),
        group=lambda row: (row.source,) if len(sources) > 1 else (),
        groups=("source",) if len(sources) > 1 else (),
    )
    lead = (
        "Each ranker searches each side alone. If one side were easier to search, a tilt in the mixed ranking could "
        f"come from that alone. The margin is ±{rows[0].margin:g}: a smaller difference would not matter."
    )
    grouped = groupby(rows, key=lambda row: (row.source, row.measure))
    figures = (forest_figure(list(group), validation) for _, group in grouped)
    return Section("effectiveness", "Is either side easier to search?", (lead,), (table, *figures))


def _difference(row: Equivalence) -> Cell:
    strong: Emphasis = "strong" if row.statement.startswith("different") else ""
    return estimate(row, partial(always_signed, digits=3), emphasis=strong)


def _check(check: CheckResult) -> Section:
    table = replace(check_table(check), note=" ".join(check_legend(check)))
    return Section("check", "Is the comparison fair?", (), (table, Lines(sentences(check)[1:])))


def distribution_figure(title: str, found: Mapping[str, Distribution], axis: str) -> Figure:
    """Draw distributions over the same bins."""
    return Figure(
        title,
        "Shares of pairs; the table holds means and quartiles.",
        _histogram(found, axis),
        half=True,
    )


def _histogram(found: Mapping[str, Distribution], axis: str) -> Drawing:
    """Bars over the range that holds anything."""
    low, high = (
        min(one.range[0] for one in found.values()),
        max(one.range[1] for one in found.values()),
    )
    edges = np.linspace(low, high, round(_BINS * (high - low)) + 1)
    counts = {name: np.histogram(one.defined, edges)[0] for name, one in found.items()}
    held = np.flatnonzero(sum(counts.values()))
    first, last = (
        (int(held[0]), int(held[-1]) + 1) if len(held) and low != 0 else (0, len(edges) - 1)
    )
    shares = {
        name: 100 * count[first:last] / max(found[name].count, 1) for name, count in counts.items()
    }
    return histogram(shares, edges[first : last + 1], x=axis)


def map_figure(drawn: Map, source: str, reference: str) -> Figure:
    """Draw the texts of both sides in the plane, with twins joined."""
    points = np.column_stack([drawn.x, drawn.y])
    groups = {}
    for name in (reference, source):
        mine = [place for place, of in enumerate(drawn.sources) if of == name]
        groups[name] = (points[mine], [drawn.ids[place] for place in mine])
    sample = (
        "all pairs"
        if drawn.pairs == drawn.of
        else f"{drawn.pairs:,} of {drawn.of:,} pairs, drawn by chance"
    )
    return Figure(
        f"Figure 4. A map of the texts: {reference} and {source}",
        f"By t-SNE; {sample}. Near points are texts of like meaning; far distances and the axes mean nothing. Sides "
        "that mingle speak of the same things in a like way. A thin line joins twins. Point at a text to see its id; "
        "drag to move, hold Shift and scroll to zoom.",
        clouds(groups, joined=True),
    )


def forest_figure(rows: Sequence[Equivalence], validation: Validation) -> Figure:
    """Draw the differences of one source and measure, with the margin around 0."""
    intervals = [
        Mark(
            f"{row.run}: {row.outcome}",
            row.value,
            row.low,
            row.high,
            inner=row.smallest - abs(row.value),
            tone=OUTCOMES[row.outcome],
        )
        for row in rows
    ]
    reference, first = validation.reference, rows[0]
    level = f"{100 * (1 - 2 * alpha_of(validation)):g} %"
    return Figure(
        f"Difference in {first.measure}, {reference} − {first.source}",
        f"Shaded: the margin of ±{first.margin:g}. Thin: 95 % interval; thick: {level} interval, "
        f"which must lie in the shade for equivalence. Right of 0: {reference} is searched better; left: "
        f"{first.source}.",
        forest({"": intervals}, x=f"difference in {first.measure}", margin=first.margin),
    )


def alpha_of(validation: Validation) -> float:
    """Return the level of the tests of equivalence."""
    return float(validation.spec.get("alpha", ALPHA))
