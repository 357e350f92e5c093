"""The sections of a validation: its tables and figures, from Table 1 to the check."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np

from ranktilt.auditing.effects import Equivalence
from ranktilt.datasets.check_result import CheckResult, percent
from ranktilt.errors import counted
from ranktilt.probes.distribution import ABOVE, Distribution
from ranktilt.probes.similarity import Similarity
from ranktilt.probes.text_probes import CollectionStatistics, QueryStatistics
from ranktilt.probes.validation import Validation
from ranktilt.reporting.document import (
    PAGE,
    TERMINAL,
    TEXT,
    Block,
    Cell,
    Column,
    Fact,
    Facts,
    Lines,
    Row,
    Section,
    Sentence,
    Table,
)
from ranktilt.reporting.figures.validation import OUTCOMES, alpha_of, distribution_figure, forest_figure, map_figure
from ranktilt.reporting.numbers import DASH, always_signed, count, decimal, fixed, interval, p_value, signed
from ranktilt.reporting.views.check import check_table, sentences
from ranktilt.reporting.views.check import legend as check_legend

_BARS = " ▁▂▃▄▅▆▇█"
_BINS = 20
_LONGEST, _LABEL = 12, 22


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
        Column("", number=False, header=True, width=_LABEL, page="source"),
        Column("documents"),
        Column("words", page="words a document"),
        Column("quartiles", spare=1),
        Column("queries", page="queries with an answer"),
        Column("relevant each", page="relevant a query"),
    )
    rows = tuple(
        Row(
            (
                Cell(one.source), _count(one.documents), _cell(one.words), _quartiles(one.quartiles),
                _count(one.queries), _cell(one.relevant),
            )
        )
        for one in found.sources
    )  # fmt: skip
    lengths = "; ".join(_queries(one, found.split) for one in found.queries)
    empty = [one for one in found.sources if one.empty]
    below = [lengths, *(f"{one.source}: {counted(one.empty, 'text', 'texts')} without a word" for one in empty)]
    without = ", ".join(f"{one.source} {one.empty:,}" for one in empty)
    note = f"Documents without a word: {without}; they count with 0." if empty else ""
    table = Table(
        "Collection", columns, rows, note, page="Table 1. Documents by source", titled=True,
        below=tuple(map(Sentence, below)), space=(0, 1),
    )  # fmt: skip
    titles = (Column("queries", number=False, header=True), Column("number"), Column("words a query"))
    queries = tuple(Row((Cell(one.which), _count(one.queries), _cell(one.words))) for one in found.queries)
    split = f" Judgments: {found.split}." if found.split else ""
    lead = (f"Both sides answer the same queries.{split}",) if len(found.sources) > 1 else ()
    return Section(
        "collection", "What the collection holds", lead, (table, Table("Queries", titles, queries, only=PAGE))
    )


def _queries(one: QueryStatistics, split: str | None) -> str:
    which = "judged" + (f" ({split})" if split else "") if one.which == "judged" else "in all"
    length = "" if np.isnan(one.words) else f", {one.words:.2f} words on average"
    return f"{counted(one.queries, 'query', 'queries')} {which}{length}"


def _quartiles(values: Sequence[float]) -> Cell:
    return Cell("  ".join(f"{value:.0f}" for value in values), page=", ".join(f"{value:g}" for value in values))


_SPREAD = (
    Column("pairs"),
    Column("mean"),
    Column("quartiles", spare=1, only=TEXT),
    *(Column(title, only=PAGE) for title in ("25 %", "median", "75 %")),
)
_HISTOGRAM = Column("0 … 1", number=False, only=TERMINAL, spare=2)


def _spread(found: Distribution) -> tuple[Cell, ...]:
    """The cells below `_SPREAD`: quartiles stand in one cell in text, in three on a page."""
    quartiles = [_cell(value, page=3) for value in found.quartiles]
    return _count(found.count), _cell(found.mean, page=3), Cell("  ".join(map(fixed, found.quartiles))), *quartiles


def bars(found: Distribution, bins: int = _BINS) -> str:
    """Draw a histogram from 0 to 1 in one line; the highest bar is full, and whatever is not nothing shows."""
    counts, _ = np.histogram(np.clip(found.defined, 0, 1), bins=bins, range=(0, 1))
    steps = len(_BARS) - 1
    heights = np.ceil(counts / max(int(counts.max(initial=0)), 1) * steps).astype(int)
    return "".join(_BARS[height] for height in heights.tolist())


def _terms(validation: Validation) -> Section:
    name = Column("", number=False, header=True, width=_LABEL, page="quantity")
    rows = tuple(
        Row((Cell(name), *_spread(found), _count(found.undefined), Cell(bars(found))), heading=(one.source,))
        for one in validation.overlaps
        for name, found in (("Jaccard", one.jaccard), ("overlap", one.overlap))
    )
    table = Table(
        f"Terms shared with {validation.reference}", (name, *_SPREAD, Column("undefined", only=PAGE), _HISTOGRAM), rows,
        page="Terms that twins share, 0 to 1", titled=True, space=(0, 1),
    )  # fmt: skip
    jaccard = {one.source: one.jaccard for one in validation.overlaps}
    overlap = {one.source: one.overlap for one in validation.overlaps}
    figures = (
        distribution_figure("Figure 3, left. Jaccard similarity of twins", jaccard, "Jaccard similarity"),
        distribution_figure("Figure 3, right. Overlap: the share of terms kept", overlap, "overlap"),
    )
    lead = "A rewrite should say the same in other words: many terms kept, but not all."
    return Section("words", "Words in common", (lead,), (table, *figures))


def _meanings(validation: Validation) -> Iterator[Section]:
    """One section a source; in text one table of all of them."""
    found = validation.similarities
    many = len(found) > 1
    for number, one in enumerate(found, start=1):
        title = f"Meaning of {one.source}" if many else "Meaning"
        lead = (
            f"{one.model} read what each document says ({one.text}) and made a vector of it. Twins should lie close "
            "together, unrelated texts should not."
        )
        blocks: list[Block] = [_vectors(found, many=len(validation.sources) > 1)] if number == 1 else []
        blocks += [_separation(one), _cosines(one, validation.reference)]
        blocks += [map_figure(one.map, one.source, validation.reference)] if one.map is not None else []
        yield Section(f"meaning-{number}" if many else "meaning", title, (lead,), tuple(blocks))


def _vectors(found: Sequence[Similarity], *, many: bool) -> Table:
    columns = (Column("", number=False, header=True, width=_LABEL), *_SPREAD, Column(f"above {ABOVE:g}"), _HISTOGRAM)
    rows = tuple(row for one in found for row in _cosine_rows(one))
    below = (Sentence(f"{one.source}: {line}" if many else line) for one in found for line in _apart(one))
    caption = f"Cosine of {found[0].model}, {found[0].text}"
    return Table(caption, columns, rows, titled=True, below=tuple(below), space=(0, 1), only=TEXT)


def _cosine_rows(one: Similarity) -> Iterator[Row]:
    for name, page, found in (("twins", "twins", one.cosine), ("other pairs", "unrelated pairs", one.baseline)):
        above = found.above(ABOVE)
        share = Cell(DASH if np.isnan(above) else percent(100 * above), above)
        yield Row((Cell(name, page=page), *_spread(found), share, Cell(bars(found))), heading=(one.source,))


def _apart(one: Similarity) -> Iterator[str]:
    found = one.separation
    if not np.isnan(found.auc):
        yield (
            f"telling the sources apart by their vectors: AUC {found.auc:.3f} (folds {found.auc_low:.3f} to "
            f"{found.auc_high:.3f}, {found.pairs:,} pairs; 0.5 is chance, 1 is always)"
        )


def _separation(one: Similarity) -> Facts:
    apart = one.separation
    twins, others, auc, low, high = (
        fixed(value, undefined="undefined")
        for value in (one.cosine.mean, one.baseline.mean, apart.auc, apart.auc_low, apart.auc_high)
    )
    folds = f"{low} to {high} over the folds, {counted(apart.pairs, 'pair', 'pairs')}"
    return Facts(
        (
            Fact(twins, one.cosine.mean, label="mean cosine similarity of twins"),
            Fact(others, one.baseline.mean, label="of unrelated pairs"),
            Fact(
                auc, apart.auc, label="how well a classifier tells the sides apart",
                note=f"AUC: .5 not at all, 1 always; {folds}",
            ),
        )
    )  # fmt: skip


def _cosines(one: Similarity, reference: str) -> Block:
    rows = tuple(replace(row, cells=row.cells[:-2], heading=()) for row in _cosine_rows(one))
    table = Table("Cosine similarity", (Column("", number=False, header=True), *_SPREAD), rows)
    title = (
        f"Figure 5. Cosine similarity of {reference} texts with their twins in {one.source}, and with other rewrites"
    )
    found = {"twins": one.cosine, "unrelated pairs": one.baseline}
    return distribution_figure(title, found, "cosine similarity", table)


def _effectiveness(validation: Validation) -> Section:
    rows, reference = validation.effectiveness, validation.reference
    columns = (
        Column("", number=False, header=True, width=_LABEL, page="ranker"),
        Column(reference if len(reference) <= _LONGEST else "reference", page=reference), Column("rewrite"),
        Column("difference"), Column("95 % interval", spare=5), Column("p different", spare=2),
        Column("p equivalent", spare=3), Column("shown from", spare=4, page="smallest margin"),
        Column("queries", spare=1), Column("outcome", number=False, width=0),
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
        tuple(_compared(row, many=many) for source in sources for row in rows if row.source == source),
        f"Difference: {reference} − rewrite. p different: paired t test, Holm over the table. p equivalent: TOST, not "
        f"corrected; below {level} it shows equivalence. Smallest margin: the one that these queries would have shown."
        f"{outside}",
        page="Table 2. Effectiveness on either side alone",
        titled=True,
        space=(0, 1),
    )
    lead = (
        "Each ranker searches each side alone. If one side were easier to search, a tilt in the mixed ranking could "
        f"come from that alone. The margin is ±{rows[0].margin:g}: a smaller difference would not matter."
    )
    grouped = groupby(rows, key=lambda row: (row.source, row.measure))
    figures = (forest_figure(list(group), validation) for _, group in grouped)
    return Section("effectiveness", "Is either side easier to search?", (lead,), (table, *figures))


def _compared(row: Equivalence, *, many: bool) -> Row:
    low, high = (always_signed(end, 3) for end in (row.low, row.high))
    cells = (
        Cell(row.run + (f" {row.measure}" if many else "")),
        Cell(decimal(row.mean_a, 3), row.mean_a),
        Cell(decimal(row.mean_b, 3), row.mean_b),
        Cell(
            always_signed(row.value, 3), row.value, page=signed(row.value, 3), signed=True,
            emphasis="strong" if row.statement.startswith("different") else "",
        ),
        Cell(f"{low} … {high}", page=interval(row.low, row.high, 3)),
        _p(row.p_corrected),
        _p(row.p_equivalent),
        Cell(DASH if np.isnan(row.smallest) else f"±{row.smallest:.3f}", row.smallest),
        _count(row.queries),
        Cell(row.statement, None, OUTCOMES[row.outcome], page=row.outcome),
    )  # fmt: skip
    return Row(cells, heading=(row.source,))


def _p(value: float) -> Cell:
    text = DASH if np.isnan(value) else "< .001" if value < 0.001 else f"{value:.3f}"
    return Cell(text, value, page=p_value(value))


def _check(check: CheckResult) -> Section:
    said = [f"{row.name}: {row.meaning}." for row in check.of("void") + check.of("warning")]
    said += [f"{row.name}: {row.note}." for row in check.rows if row.note]
    lead = (check.sentence, *(text[0].upper() + text[1:] for text in dict.fromkeys(said)))
    table = check_table(check)
    table = replace(
        table, caption="Check", page=table.caption, note=" ".join(check_legend(check)), titled=True, above=1
    )
    below = (*sentences(check), *(Sentence(text, emphasis="quiet") for text in check_legend(check)))
    return Section("check", "Is the comparison fair?", lead, (table, Lines(below)))


def _count(value: int) -> Cell:
    return Cell(count(value), value)


def _cell(value: float, *, page: int = 2) -> Cell:
    """A number with two decimals, on a page with so many."""
    return Cell(fixed(value), value, page=decimal(value, page))
