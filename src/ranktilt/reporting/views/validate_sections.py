"""The sections of a validation: its tables and figures, from Table 1 to the check."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np

from ranktilt.auditing.effects import Equivalence
from ranktilt.datasets.check_result import CheckResult, percent
from ranktilt.probes.distribution import ABOVE, Distribution
from ranktilt.probes.similarity import Similarity
from ranktilt.probes.text_probes import CollectionStatistics
from ranktilt.probes.validation import Validation
from ranktilt.reporting.document import Block, Cell, Column, Lines, Row, Section, Table
from ranktilt.reporting.figures.validation import OUTCOMES, alpha_of, distribution_figure, forest_figure, map_figure
from ranktilt.reporting.numbers import DASH, always_signed, count, decimal, fixed, p_value
from ranktilt.reporting.verdicts import named
from ranktilt.reporting.views.check import check_table, sentences
from ranktilt.reporting.views.check import legend as check_legend


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
    columns = (
        named("source"), Column("documents"), Column("words"), Column("quartiles", spare=1),
        Column("queries", hint="with a relevant document of the source"),
        Column("relevant each", hint="relevant documents a query"),
    )  # fmt: skip
    rows = tuple(
        Row(
            (
                Cell(one.source), _count(one.documents), _cell(one.words), _quartiles(one.quartiles),
                _count(one.queries), _cell(one.relevant),
            )
        )
        for one in found.sources
    )  # fmt: skip
    without = ", ".join(f"{one.source} {one.empty:,}" for one in found.sources if one.empty)
    note = f"Documents without a word: {without}; they count with 0." if without else ""
    table = Table("Documents by source", columns, rows, note)
    titles = (Column("queries", number=False, header=True), Column("number"), Column("words a query"))
    queries = tuple(Row((Cell(one.which), _count(one.queries), _cell(one.words))) for one in found.queries)
    split = f" Judgments: {found.split}." if found.split else ""
    lead = (f"Both sides answer the same queries.{split}",) if len(found.sources) > 1 else ()
    return Section("collection", "What the collection holds", lead, (table, Table("Queries", titles, queries)))


_SPREAD = (Column("pairs"), Column("mean"), Column("quartiles", spare=1))


def _quartiles(values: Sequence[float], digits: int = 0) -> Cell:
    return Cell("  ".join(f"{value:.{digits}f}" for value in values))


def _spread(found: Distribution) -> tuple[Cell, ...]:
    """The cells below `_SPREAD`."""
    return _count(found.count), _cell(found.mean), _quartiles(found.quartiles, 2)


def _terms(validation: Validation) -> Section:
    rows = tuple(
        Row((Cell(name), *_spread(found), _count(found.undefined)), (one.source,))
        for one in validation.overlaps
        for name, found in (("Jaccard", one.jaccard), ("overlap", one.overlap))
    )
    columns = (named("quantity"), *_SPREAD, Column("undefined"))
    table = Table(f"Terms shared with {validation.reference}, 0 to 1", columns, rows, groups=("source",))
    jaccard = {one.source: one.jaccard for one in validation.overlaps}
    overlap = {one.source: one.overlap for one in validation.overlaps}
    figures = (
        distribution_figure("Figure 3, left. Jaccard similarity of twins", jaccard, "Jaccard similarity"),
        distribution_figure("Figure 3, right. Overlap: the share of terms kept", overlap, "overlap"),
    )
    lead = "A rewrite should say the same in other words: many terms kept, but not all."
    return Section("words", "Words in common", (lead,), (table, *figures))


def _meanings(validation: Validation) -> Iterator[Section]:
    """One section a source."""
    found = validation.similarities
    many = len(found) > 1
    for number, one in enumerate(found, start=1):
        title = f"Meaning of {one.source}" if many else "Meaning"
        lead = (
            f"{one.model} read what each document says ({one.text}) and made a vector of it. Twins should lie close "
            "together, unrelated texts should not."
        )
        blocks: list[Block] = [_cosines(one), _separation(one), _cosine_figure(one, validation.reference)]
        blocks += [map_figure(one.map, one.source, validation.reference)] if one.map is not None else []
        yield Section(f"meaning-{number}" if many else "meaning", title, (lead,), tuple(blocks))


def _cosines(one: Similarity) -> Table:
    rows = []
    for name, found in (("twins", one.cosine), ("unrelated pairs", one.baseline)):
        above = found.above(ABOVE)
        share = Cell(DASH if np.isnan(above) else percent(100 * above), above)
        rows.append(Row((Cell(name), *_spread(found), share)))
    columns = (named("pairs of texts"), *_SPREAD, Column(f"above {ABOVE:g}"))
    return Table(f"Cosine similarity of {one.source}, {one.model}, {one.text}", columns, tuple(rows))


def _separation(one: Similarity) -> Table:
    apart = one.separation
    folds = f"folds {fixed(apart.auc_low)} to {fixed(apart.auc_high)}; .5 is chance, 1 is always"
    rows = (
        Row((Cell("AUC of telling sides apart", note=folds), Cell(fixed(apart.auc), apart.auc), _count(apart.pairs))),
    )  # fmt: skip
    columns = (named("by their vectors"), Column("value"), Column("pairs"))
    return Table(f"How far apart the sides are, {one.source}", columns, rows)


def _cosine_figure(one: Similarity, reference: str) -> Block:
    title = (
        f"Figure 5. Cosine similarity of {reference} texts with their twins in {one.source}, and with other rewrites"
    )
    return distribution_figure(title, {"twins": one.cosine, "unrelated pairs": one.baseline}, "cosine similarity")


def _effectiveness(validation: Validation) -> Section:
    rows, reference = validation.effectiveness, validation.reference
    columns = (
        named("ranker"), Column(reference), Column("rewrite"), Column("difference"), Column("p different", spare=2),
        Column("p equivalent", spare=3), Column("smallest margin", spare=4), Column("queries", spare=1),
        Column("outcome", number=False),
    )  # fmt: skip
    many = len({row.measure for row in rows}) > 1
    sources = dict.fromkeys(row.source for row in rows)
    left_out = {row.source: f"{row.excluded:,}" for row in rows if row.excluded}
    counts = ", ".join(f"{n} of {source}" if len(validation.sources) > 1 else n for source, n in left_out.items())
    outside = f" Judged queries without a relevant document on both sides, left out: {counts}." if counts else ""
    level = f"{alpha_of(validation):g}".removeprefix("0")
    table = Table(
        f"Effectiveness on each side alone{'' if many else f', {rows[0].measure}'}",
        columns,
        tuple(
            _compared(row, many=many, grouped=len(sources) > 1)
            for source in sources
            for row in rows
            if row.source == source
        ),
        f"Difference: {reference} − rewrite. p different: paired t test, Holm over the table. p equivalent: TOST, not "
        f"corrected; below {level} it shows equivalence. Smallest margin: the one that these queries would have shown."
        f"{outside}",
        groups=("source",) if len(sources) > 1 else (),
    )
    lead = (
        "Each ranker searches each side alone. If one side were easier to search, a tilt in the mixed ranking could "
        f"come from that alone. The margin is ±{rows[0].margin:g}: a smaller difference would not matter."
    )
    grouped = groupby(rows, key=lambda row: (row.source, row.measure))
    figures = (forest_figure(list(group), validation) for _, group in grouped)
    return Section("effectiveness", "Is either side easier to search?", (lead,), (table, *figures))


def _compared(row: Equivalence, *, many: bool, grouped: bool) -> Row:
    cells = (
        Cell(row.run + (f" {row.measure}" if many else "")),
        Cell(decimal(row.mean_a, 3), row.mean_a),
        Cell(decimal(row.mean_b, 3), row.mean_b),
        Cell(
            always_signed(row.value, 3), row.value, ends=(always_signed(row.low, 3), always_signed(row.high, 3)),
            emphasis="strong" if row.statement.startswith("different") else "",
        ),
        _p(row.p_corrected),
        _p(row.p_equivalent),
        Cell(DASH if np.isnan(row.smallest) else f"±{row.smallest:.3f}", row.smallest),
        _count(row.queries),
        Cell(row.statement, None, OUTCOMES[row.outcome]),
    )  # fmt: skip
    return Row(cells, (row.source,) if grouped else ())


def _check(check: CheckResult) -> Section:
    table = replace(check_table(check), note=" ".join(check_legend(check)))
    return Section("check", "Is the comparison fair?", (), (table, Lines(sentences(check)[1:])))


def _count(value: int) -> Cell:
    return Cell(count(value), value)


def _cell(value: float) -> Cell:
    return Cell(fixed(value), value)


def _p(value: float) -> Cell:
    return Cell(p_value(value), value)
