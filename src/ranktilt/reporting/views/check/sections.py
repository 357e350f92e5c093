"""The sections of a check: whether a comparison of two sides' texts is fair.

The sides are a *reference*, such as human text, and one or several other *sources* of documents.
*Twins* are a document of the reference and its version (rewrite) in another source. *Features* are
measurable properties of texts, such as their length. The *test of equivalence* asks whether either
side, searched alone, is easier to search: rankers must be equally effective on both, up to a
*margin*. A *fault*, such as empty texts on one side, has the *verdict* ``ok``, ``warning``, or
``void`` if the comparison would say nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from operator import attrgetter

import numpy as np

from ranktilt.auditing.checks.equivalence import Equivalence, Outcome
from ranktilt.data.faults.contents import Contents, SourceContents
from ranktilt.data.faults.faults import LENGTH, LENGTH_NOTICE, FaultRow, Verdict, percent
from ranktilt.explaining.base import HIGH_COSINE, Distribution
from ranktilt.explaining.check_result import CheckResult
from ranktilt.explaining.equivalence import ALPHA
from ranktilt.explaining.similarity import Map, Similarity
from ranktilt.measures.margin import margin_words
from ranktilt.reporting.document import (
    Block,
    Cell,
    Column,
    ColumnSpec,
    Emphasis,
    Figure,
    PageBlocks,
    Row,
    Section,
    Table,
    make_table,
    name_column,
    text_column,
)
from ranktilt.reporting.figures.charts import Mark, clouds, forest, histogram
from ranktilt.reporting.figures.drawing import Drawing
from ranktilt.reporting.numbers import (
    DASH,
    always_signed,
    decimal,
    estimate_cell,
    fixed,
    number_cell,
    number_cells,
    p_value,
    with_commas,
)
from ranktilt.reporting.sentences.checking.check import equivalence_words
from ranktilt.reporting.tones import Tone
from ranktilt.reporting.views.check.text_features import effect_chart, effect_figure, effect_table

_BINS_PER_UNIT = 40
"""Bins of a histogram for each unit of its axis: 40 from 0 to 1."""
EQUIVALENCE_TONES: dict[Outcome, Tone] = {
    "equivalent": "good",
    "different within the margin": "good",
    "different": "bad",
    "inconclusive": "unsure",
    "not tested": "unsure",
}
"""Tone of each outcome of the test of equivalence, in the order in which sentences name them."""


def check_sections(check: CheckResult) -> Iterator[Section]:
    """Yield the sections of a check, without those of parts that were not asked for.

    Faults come next to the verdict, which a page prints first and text last.
    """
    title, faults = "Is the comparison fair?", fault_table(check)
    yield Section("faults", title, blocks=(replace(faults, audience="page", collapsed=True),))
    yield _contents(check.contents)
    if check.features:
        yield _features(check)
    if check.terms:
        yield _terms(check)
    yield from _meanings(check)
    if check.effectiveness:
        yield _effectiveness(check)
    yield Section("faults-as-text", title, blocks=(replace(faults, audience="text"),))


def _contents(contents: Contents) -> Section:
    """Return the section on documents, queries and judgments."""
    split = f" Judgments: {contents.split}." if contents.split else ""
    lead = (f"All sides answer the same queries.{split}",) if len(contents.sources) > 1 else ()
    tables = (
        make_table("Documents by source", contents.sources, _SOURCE_COLUMNS, collapsed=True),
        make_table("Queries", contents.queries, _QUERY_COLUMNS, collapsed=True),
    )
    return Section("contents", "What the collection holds", lead=lead, blocks=tables)


NO_SOURCE = "(no source)"
"""Printed in place of a source, for documents without one."""


def _source_name(row: SourceContents) -> str:
    """Return the source of a row's documents."""
    return NO_SOURCE if row.source is None else row.source


def _length_quartiles(row: SourceContents) -> str:
    """Print the quartiles of the documents' lengths in words."""
    return "  ".join(f"{value:.0f}" for value in row.quartiles)


_SOURCE_COLUMNS = (
    (name_column("source"), _source_name),
    ("documents", number_cells("documents", with_commas)),
    ("words", number_cells("words", fixed)),
    (Column("quartiles", drop_order=1), _length_quartiles),
    (
        Column("queries", hint="with a relevant document of the source"),
        number_cells("queries", with_commas),
    ),
    (
        Column("relevant each", hint="relevant documents a query"),
        number_cells("relevant", fixed),
    ),
    ("judged", number_cells("judged", with_commas)),
    ("twins", number_cells("twins", with_commas)),
    ("empty", number_cells("empty", with_commas)),
    ("duplicates", number_cells("duplicates", with_commas)),
)
"""Columns of the table of sources."""
_QUERY_COLUMNS = (
    (name_column("queries"), attrgetter("which")),
    ("number", number_cells("queries", with_commas)),
    ("words a query", number_cells("words", fixed)),
)
"""Columns of the table of queries."""


def _features(check: CheckResult) -> Section:
    """Return the section on properties of texts."""
    lead = (
        "Measurable properties of texts should be alike on both sides. A ranker that responds to "
        "one of them favours the side that has more of it."
    )
    table = effect_table(
        f"How texts differ from their twins in {check.reference}", check.features, check.reference
    )
    figures = PageBlocks(make=partial(_features_figures, check))
    return Section("features", "What differs", lead=(lead,), blocks=(figures, table))


def _features_figures(check: CheckResult) -> Iterator[Block]:
    """Draw the largest differences and, collapsed, all of them where there are more."""
    yield from effect_chart(check.features, check.reference)
    figure = effect_figure(check.features, check.reference)
    if figure is not None:
        yield replace(figure, collapsed=True)


_DISTRIBUTION_COLUMNS = (Column("pairs"), Column("mean"), Column("quartiles", drop_order=1))
"""Columns that describe the distribution of a quantity over pairs of texts."""


def _distribution_cells(distribution: Distribution) -> tuple[Cell, ...]:
    """Return a cell for each of the `_DISTRIBUTION_COLUMNS`."""
    quartiles = "  ".join(f"{value:.2f}" for value in distribution.quartiles)
    return (
        number_cell(distribution.count, with_commas),
        number_cell(distribution.mean, fixed),
        Cell(quartiles),
    )


def _terms(check: CheckResult) -> Section:
    """Return the section on words that twins share."""
    rows = []
    for terms in check.terms:
        for name, distribution in (("Jaccard", terms.jaccard), ("overlap", terms.overlap)):
            undefined = number_cell(distribution.undefined, with_commas)
            cells = (Cell(name), *_distribution_cells(distribution), undefined)
            rows.append(Row(cells, group=(terms.source,)))
    columns = (name_column("quantity"), *_DISTRIBUTION_COLUMNS, Column("undefined"))
    caption = f"Terms shared with {check.reference}, 0 to 1"
    table = Table(caption, columns, tuple(rows), group_titles=("source",), collapsed=True)
    figures = PageBlocks(make=partial(_terms_figures, check))
    lead = "A rewrite should say the same in other words: many terms kept, but not all."
    return Section("words", "Words in common", lead=(lead,), blocks=(table, figures))


def _terms_figures(check: CheckResult) -> Iterator[Figure]:
    """Yield the two figures of shared words in Dai et al., with their numbers in that paper."""
    jaccard = {terms.source: terms.jaccard for terms in check.terms}
    overlap = {terms.source: terms.overlap for terms in check.terms}
    yield distribution_figure(
        "Figure 3, left. Jaccard similarity of twins", jaccard, "Jaccard similarity"
    )
    yield distribution_figure(
        "Figure 3, right. Overlap: the share of terms kept", overlap, "overlap"
    )


def _meanings(check: CheckResult) -> Iterator[Section]:
    """Yield a section for each source on whether twins mean the same, by a model's vectors."""
    has_several_sources = len(check.similarity) > 1
    for index, similarity in enumerate(check.similarity, start=1):
        title = f"Meaning of {similarity.source}" if has_several_sources else "Meaning"
        name = f"meaning-{index}" if has_several_sources else "meaning"
        lead = (
            f"{similarity.model} read what each document says ({similarity.text}) and made a "
            "vector of it. "
            "Twins should lie close together, unrelated texts should not."
        )
        figures = PageBlocks(make=partial(_meaning_figures, similarity, check.reference))
        blocks = (_cosine_table(similarity), _separation_table(similarity), figures)
        yield Section(name, title, lead=(lead,), blocks=blocks)


def _meaning_figures(similarity: Similarity, reference: str) -> Iterator[Figure]:
    """Yield the figures of cosines and of the map of texts, with their numbers in Dai et al."""
    title = (
        f"Figure 5. Cosine similarity of {reference} texts with their twins in "
        f"{similarity.source}, and with other rewrites"
    )
    sides = {"twins": similarity.twins, "unrelated pairs": similarity.other_pairs}
    yield distribution_figure(title, sides, "cosine similarity")
    if similarity.map is not None:
        yield map_figure(similarity.map, similarity.source, reference)


def _cosine_table(similarity: Similarity) -> Table:
    """Return the table of cosine similarities, of twins and of unrelated pairs."""
    pairs = {"twins": similarity.twins, "unrelated pairs": similarity.other_pairs}
    rows = []
    for name, distribution in pairs.items():
        above = distribution.above(HIGH_COSINE)
        share = Cell(DASH if np.isnan(above) else percent(100 * above), above)
        rows.append(Row((Cell(name), *_distribution_cells(distribution), share)))
    columns = (
        name_column("pairs of texts"),
        *_DISTRIBUTION_COLUMNS,
        Column(f"above {HIGH_COSINE:g}"),
    )
    caption = f"Cosine similarity of {similarity.source}, {similarity.model}, {similarity.text}"
    return Table(caption, columns, tuple(rows), collapsed=True)


def _separation_table(similarity: Similarity) -> Table:
    """Return the table of how well a classifier of vectors distinguishes the sides (AUC)."""
    separation = similarity.separation
    low, high = fixed(separation.auc_low), fixed(separation.auc_high)
    name = Cell(
        "AUC of telling sides apart", note=f"folds {low} to {high}; .5 is chance, 1 is always"
    )
    row = Row(
        (name, number_cell(separation.auc, fixed), number_cell(separation.pairs, with_commas))
    )
    columns = (name_column("by their vectors"), Column("value"), Column("pairs"))
    return Table(
        f"How far apart the sides are, {similarity.source}", columns, (row,), collapsed=True
    )


def _effectiveness(check: CheckResult) -> Section:
    """Return the section on the effectiveness of rankers that search either side alone."""
    rows = check.effectiveness
    figures = PageBlocks(make=partial(_effectiveness_figures, rows, check))
    lead = (
        "Each ranker searches each side alone. If one side were easier to search, a tilt in the "
        f"mixed ranking could come from that alone. The margin is "
        f"{margin_words(100 * rows[0].margin)}; a smaller difference would not matter."
    )
    title = "Is either side easier to search?"
    return Section(
        "effectiveness", title, lead=(lead,), blocks=(_effectiveness_table(check), figures)
    )


def _effectiveness_table(check: CheckResult) -> Table:
    """Return the table of effectiveness on either side, with the tests of equivalence."""
    rows = check.effectiveness
    has_several_measures = len({row.measure for row in rows}) > 1

    def ranker_name(row: Equivalence) -> str:
        return f"{row.run} {row.measure}" if has_several_measures else row.run

    columns = (
        (name_column("ranker"), ranker_name),
        (check.reference, number_cells("mean_a", decimal, scale=100)),
        ("rewrite", number_cells("mean_b", decimal, scale=100)),
        ("difference", _difference_cell),
        (Column("p different", drop_order=2), number_cells("p_corrected", p_value)),
        (Column("p equivalent", drop_order=3), number_cells("p_equivalent", p_value)),
        (Column("smallest margin", drop_order=4), _smallest_margin_cell),
        (Column("queries", drop_order=1), number_cells("queries", with_commas)),
        (text_column("outcome"), _equivalence_cell),
    )
    sources = list(dict.fromkeys(row.source for row in rows))
    has_several_sources = len(sources) > 1
    measure = "" if has_several_measures else f", {rows[0].measure}"
    return make_table(
        f"Effectiveness on each side alone{measure}, in %",
        sorted(rows, key=lambda row: sources.index(row.source)),
        columns,
        note=_excluded_queries(check),
        group_of=lambda row: (row.source,) if has_several_sources else (),
        group_titles=("source",) if has_several_sources else (),
        collapsed=True,
    )


def _smallest_margin_cell(row: Equivalence) -> Cell:
    """Return the cell of the smallest margin at which the sides would count as equivalent."""
    if math.isnan(row.smallest):
        return Cell(DASH, row.smallest)
    return Cell(f"±{100 * row.smallest:.1f}", row.smallest)


def _equivalence_cell(row: Equivalence) -> Cell:
    """Return the cell of the outcome: whether the sides are shown to be equivalent."""
    return Cell(equivalence_words(row), tone=EQUIVALENCE_TONES[row.outcome])


def _excluded_queries(check: CheckResult) -> str:
    """Say how many judged queries of each source were left out; empty where none was."""
    counts = {row.source: f"{row.excluded:,}" for row in check.effectiveness if row.excluded}
    if not counts:
        return ""
    phrases = list(counts.values())
    if len(check.sources) > 1:
        phrases = [f"{query_count} of {source}" for source, query_count in counts.items()]
    return (
        f"Judged queries without a relevant document on both sides, left out: {', '.join(phrases)}."
    )


def _effectiveness_figures(rows: Sequence[Equivalence], check: CheckResult) -> Iterator[Figure]:
    """Yield a figure for each source and measure."""
    for _, group in groupby(rows, key=lambda row: (row.source, row.measure)):
        yield forest_figure(list(group), check)


def _difference_cell(row: Equivalence) -> Cell:
    """Return the cell of the difference in effectiveness, strong where it is shown."""
    emphasis: Emphasis = "strong" if row.outcome.startswith("different") else ""
    return estimate_cell(row, _points, emphasis=emphasis)


def _points(share: float) -> str:
    """Print a difference of shares from 0 to 1 in points, with its sign."""
    return always_signed(100 * share, 1)


def distribution_figure(title: str, distributions: Mapping[str, Distribution], axis: str) -> Figure:
    """Draw the histograms of distributions over the same bins; `axis` is the title of the axis."""
    return Figure(
        title,
        "Shares of pairs; the table holds means and quartiles.",
        _histogram(distributions, axis),
        half=True,
    )


def _histogram(distributions: Mapping[str, Distribution], axis: str) -> Drawing:
    """Draw the share of pairs in each bin; empty bins at both ends are cut off.

    A range that begins with 0, as that of overlaps, is drawn as a whole.
    """
    low = min(distribution.range[0] for distribution in distributions.values())
    high = max(distribution.range[1] for distribution in distributions.values())
    edges = np.linspace(low, high, round(_BINS_PER_UNIT * (high - low)) + 1)
    counts = {
        name: np.histogram(distribution.defined, edges)[0]
        for name, distribution in distributions.items()
    }
    filled_bins = np.flatnonzero(sum(counts.values()))
    first, last = 0, len(edges) - 1
    if len(filled_bins) and low != 0:
        first, last = int(filled_bins[0]), int(filled_bins[-1]) + 1
    shares = {}
    for name, distribution in distributions.items():
        shares[name] = 100 * counts[name][first:last] / max(distribution.count, 1)
    return histogram(shares, edges[first : last + 1], x=axis)


def map_figure(text_map: Map, source: str, reference: str) -> Figure:
    """Draw the texts of both sides as points of a map, with a line between twins."""
    points = np.column_stack([text_map.x, text_map.y])
    groups = {}
    for side in (reference, source):
        indices = [
            index for index, text_source in enumerate(text_map.sources) if text_source == side
        ]
        groups[side] = (points[indices], [text_map.ids[index] for index in indices])
    sample = "all pairs"
    if text_map.pairs != text_map.of:
        sample = f"{text_map.pairs:,} of {text_map.of:,} pairs, drawn at random"
    return Figure(
        f"Figure 4. A map of the texts: {reference} and {source}",
        f"By t-SNE; {sample}. Points close together are texts with similar meanings; long "
        "distances and the axes mean nothing. Sides that mix cover the same topics in similar "
        "ways. A thin line joins twins. Point at a text to see its id; drag to move, hold Shift "
        "and scroll to zoom.",
        clouds(groups, has_links=True),
    )


def forest_figure(rows: Sequence[Equivalence], check: CheckResult) -> Figure:
    """Draw the difference in effectiveness of each ranker, on one source and measure.

    The margin of equivalence is shaded around 0.
    """
    intervals = [
        Mark(
            label=f"{row.run}: {row.outcome}",
            value=100 * row.value,
            low=100 * row.low,
            high=100 * row.high,
            # The interval of the test of equivalence reaches to the smallest margin.
            inner=100 * (row.smallest - abs(row.value)),
            tone=EQUIVALENCE_TONES[row.outcome],
        )
        for row in rows
    ]
    reference, first = check.reference, rows[0]
    # Two one-sided tests at level alpha correspond to an interval of level 1 − 2 alpha.
    level = f"{100 * (1 - 2 * alpha_of(check)):g} %"
    return Figure(
        f"Difference in {first.measure}, {reference} − {first.source}",
        f"Shaded: the margin of {margin_words(100 * first.margin)}. Thin: 95 % interval; thick: "
        f"{level} interval, which must lie in the shade for equivalence. Right of 0: {reference} "
        f"is searched better; left: {first.source}.",
        forest(
            {"": intervals},
            x=f"difference in {first.measure}, points",
            margin=100 * first.margin,
        ),
    )


def alpha_of(check: CheckResult) -> float:
    """Return the significance level (alpha) of the tests of equivalence."""
    return float(check.spec.get("alpha", ALPHA))


_LONGEST_NAME = 12
"""Most characters of a reference's name in the title of a column; longer names widen the table."""
_VERDICT_TONES: dict[Verdict, Tone] = {"ok": "good", "warning": "warning", "void": "bad"}
"""Tone of each verdict on a fault; ``void`` voids the comparison."""


def fault_table(check: CheckResult) -> Table:
    """Lay out how often each fault occurs, with a row for each fault and source."""
    columns: list[ColumnSpec] = [
        (name_column("check"), _fault_name_cell),
        ("found", lambda row: Cell(f"{row.count:,} of {row.total:,}", row.count)),
        ("share", lambda row: Cell(_share_text(row), row.value)),
    ]
    if check.is_compared:
        name = check.reference if len(check.reference) <= _LONGEST_NAME else "reference"
        columns += [
            (Column(name, drop_order=3), number_cells("reference", percent)),
            (Column("limit", drop_order=2), attrgetter("limit")),
        ]
    columns += [
        (text_column("verdict"), _fault_verdict_cell),
        (text_column("examples", drop_order=1), lambda row: ", ".join(row.examples)),
    ]
    has_several_sources = len({row.source for row in check.faults if row.source}) > 1
    if not has_several_sources:
        return make_table(_fault_caption(check), check.faults, columns)
    return make_table(
        _fault_caption(check),
        check.faults,
        columns,
        group_of=lambda row: (row.source or "judgments and queries",),
        group_titles=("source",),
    )


def _fault_caption(check: CheckResult) -> str:
    """Return the caption of the table of faults."""
    if check.is_compared:
        return f"Faults of a comparison with {check.reference} (those with a limit can void it)"
    if check.sources:
        return f"What stands out in the texts of {' and '.join(check.sources)}"
    return "What stands out in judgments and queries"


def _fault_name_cell(row: FaultRow) -> Cell:
    """Return the cell of a fault's name, strong where the verdict is not ``ok``."""
    return Cell(row.name, emphasis="" if row.verdict == "ok" else "strong")


def _share_text(row: FaultRow) -> str:
    """Print the share of faulty texts; for length, the ratio of lengths."""
    return f"× {row.shown_value}" if row.name == LENGTH else row.shown_value


def _fault_verdict_cell(row: FaultRow) -> Cell:
    """Return the cell of the verdict on a fault.

    A warning about the ratio of lengths has a note with the range that counts as usual.
    """
    is_outside = row.name == LENGTH and row.verdict == "warning" and not math.isnan(row.value)
    low, high = LENGTH_NOTICE
    note = f"outside {low:g}–{high:g}" if is_outside else ""
    return Cell(row.verdict, tone=_VERDICT_TONES[row.verdict], note=note)
