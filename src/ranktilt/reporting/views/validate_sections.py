"""The sections of a validation's page: its tables and figures, from Table 1 to the check."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

import numpy as np

from ranktilt.auditing.effects import Equivalence, Outcome
from ranktilt.auditing.equivalence import ALPHA
from ranktilt.datasets.check_result import CheckResult, CheckRow, percent, shown
from ranktilt.errors import counted
from ranktilt.probes.distribution import Distribution
from ranktilt.probes.similarity import Map, Similarity
from ranktilt.probes.statistics import CollectionStatistics
from ranktilt.probes.validation import Validation
from ranktilt.reporting.document import PAGE, Block, Cell, Column, Fact, Facts, Figure, Row, Section, Table, Tone
from ranktilt.reporting.figures.charts import Interval, clouds, forest, histogram
from ranktilt.reporting.figures.drawing import Drawing
from ranktilt.reporting.numbers import count, decimal, interval, p_value, signed
from ranktilt.reporting.views.check import TONES, legend

_BINS = 40
OUTCOMES: dict[Outcome, Tone] = {
    "equivalent": "good",
    "different within the margin": "good",
    "different": "bad",
    "inconclusive": "unsure",
    "not tested": "unsure",
}
"""How each outcome of the test of equivalence is to be taken."""


def validation_sections(validation: Validation) -> list[Section]:
    """Lay a validation out as the sections of a page; what was not asked for is left out."""
    found = [
        _collection(validation.statistics),
        _words(validation),
        *_meanings(validation),
        _effectiveness(validation),
        _fairness(validation.check),
    ]
    return [section for section in found if section is not None]


def _collection(statistics: CollectionStatistics) -> Section:
    columns = ("documents", "words a document", "quartiles", "queries with an answer", "relevant a query")
    rows = tuple(
        _row(
            Cell(row.source),
            _count(row.documents),
            _cell(row.words, 2),
            Cell(", ".join(f"{value:g}" for value in row.quartiles)),
            _count(row.queries),
            _cell(row.relevant, 2),
        )
        for row in statistics.sources
    )
    empty = [f"{row.source} {row.empty:,}" for row in statistics.sources if row.empty]
    note = f"Documents without a word: {', '.join(empty)}; they count with 0." if empty else ""
    queries = tuple(_row(Cell(row.which), _count(row.queries), _cell(row.words, 2)) for row in statistics.queries)
    split = f" Judgments: {statistics.split}." if statistics.split else ""
    return Section(
        "collection",
        "What the collection holds",
        (f"Both sides answer the same queries.{split}",) if len(statistics.sources) > 1 else (),
        (
            Table("Table 1. Documents by source", (_named("source"), *map(Column, columns)), rows, note, only=PAGE),
            Table("Queries", (_named("queries"), Column("number"), Column("words a query")), queries, only=PAGE),
        ),
    )


def _words(validation: Validation) -> Section | None:
    if not validation.overlaps:
        return None
    columns = (
        _named("source"),
        _left("quantity"),
        *map(Column, ("pairs", "mean", "25 %", "median", "75 %", "undefined")),
    )
    rows = [
        Row((Cell(one.source), Cell(found.name), *_summary(found), _count(found.undefined)), rule=place == 0)
        for one in validation.overlaps
        for place, found in enumerate((one.jaccard, one.overlap))
    ]
    table = Table("Terms that twins share, 0 to 1", columns, tuple(rows), only=PAGE)
    figures = [
        _distributions(title, {one.source: getattr(one, name) for one in validation.overlaps}, axis)
        for name, title, axis in (
            ("jaccard", "Figure 3, left. Jaccard similarity of twins", "Jaccard similarity"),
            ("overlap", "Figure 3, right. Overlap: the share of terms kept", "overlap"),
        )
    ]
    lead = "A rewrite should say the same in other words: many terms kept, but not all."
    return Section("words", "Words in common", (lead,), (table, *figures))


def _distributions(title: str, found: dict[str, Distribution], axis: str, table: Table | None = None) -> Figure:
    said = " ".join(_spread(name, one) for name, one in found.items())
    return Figure(title, said, _histogram(found, axis), table, half=table is None)


def _histogram(found: dict[str, Distribution], axis: str) -> Drawing:
    """Bars over the range that holds anything."""
    low, high = min(one.range[0] for one in found.values()), max(one.range[1] for one in found.values())
    edges = np.linspace(low, high, round(_BINS * (high - low)) + 1)
    counts = {name: np.histogram(one.defined, edges)[0] for name, one in found.items()}
    held = np.flatnonzero(sum(counts.values()))
    first, last = (int(held[0]), int(held[-1]) + 1) if len(held) else (0, len(edges) - 1)
    if low == 0:
        first, last = 0, len(edges) - 1
    shares = {name: 100 * count[first:last] / max(found[name].count, 1) for name, count in counts.items()}
    return histogram(shares, edges[first : last + 1], x=axis)


def _spread(name: str, found: Distribution) -> str:
    low, median, high = found.quartiles
    if not found.count:
        return f"{name}: nothing to measure."
    return (
        f"{name}: half of {counted(found.count, 'pair', 'pairs')} between {_plain(low)} and {_plain(high)}, median "
        f"{_plain(median)}, mean {_plain(found.mean)}."
    )


def _meanings(validation: Validation) -> list[Section]:
    """One section a source."""
    many = len(validation.similarities) > 1
    sections = []
    for number, one in enumerate(validation.similarities, start=1):
        name = f"meaning-{number}" if many else "meaning"
        title = f"Meaning of {one.source}" if many else "Meaning"
        lead = (
            f"{one.model} read what each document says ({one.text}) and made a vector of it. Twins should lie close "
            "together, unrelated texts should not."
        )
        sections.append(Section(name, title, (lead,), tuple(_meaning(one, validation.reference))))
    return sections


def _meaning(one: Similarity, reference: str) -> Iterable[Block]:
    apart = one.separation
    auc = f"{_plain(apart.auc_low)} to {_plain(apart.auc_high)} over the folds, {counted(apart.pairs, 'pair', 'pairs')}"
    yield Facts(
        (
            Fact(_plain(one.cosine.mean), one.cosine.mean, label="mean cosine similarity of twins"),
            Fact(_plain(one.baseline.mean), one.baseline.mean, label="of unrelated pairs"),
            Fact(
                _share(apart.nearest), apart.nearest, label="nearest text is the twin",
                note=f"of {apart.asked:,} asked, among {apart.among:,}",
            ),
            Fact(
                _plain(apart.auc), apart.auc, label="how well a classifier tells the sides apart",
                note=f"AUC: .5 not at all, 1 always; {auc}",
            ),
        )
    )  # fmt: skip
    found: dict[str, Distribution] = {"twins": one.cosine, "unrelated pairs": one.baseline}
    columns = (_named(""), *map(Column, ("pairs", "mean", "25 %", "median", "75 %")))
    table = Table("Cosine similarity", columns, tuple(_row(Cell(name), *_summary(d)) for name, d in found.items()))
    title = (
        f"Figure 5. Cosine similarity of {reference} texts with their twins in {one.source}, and with other rewrites"
    )
    yield _distributions(title, found, "cosine similarity", table)
    if one.map is not None:
        yield _map(one.map, one.source, reference)


def _map(drawn: Map, source: str, reference: str) -> Figure:
    points = np.column_stack([drawn.x, drawn.y])
    groups = {}
    for name in (reference, source):
        mine = [place for place, of in enumerate(drawn.sources) if of == name]
        groups[name] = (points[mine], [drawn.ids[place] for place in mine])
    sample = "all pairs" if drawn.pairs == drawn.of else f"{drawn.pairs:,} of {drawn.of:,} pairs, drawn by chance"
    return Figure(
        f"Figure 4. A map of the texts: {reference} and {source}",
        f"By t-SNE; {sample}. Near points are texts of like meaning; far distances and the axes mean nothing. Sides "
        "that mingle speak of the same things in a like way. A thin line joins twins. Point at a text to see its id; "
        "drag to move, use the buttons to zoom.",
        clouds(groups, joined=True),
    )


def _effectiveness(validation: Validation) -> Section | None:
    rows = validation.effectiveness
    if not rows:
        return None
    first = rows[0]
    columns = (
        _named("ranker"), *([_left("measure")] if _many_measures(rows) else []), _left("outcome"),
        Column(validation.reference), Column("rewrite"), Column("difference"), Column("95 % interval"),
        Column("p different"), Column("p equivalent"), Column("smallest margin"), Column("queries"),
    )  # fmt: skip
    before = None
    table = []
    for row in rows:
        table.append(_tested(row, validation, rule=row.source != before))
        before = row.source
    lead = (
        "Each ranker searches each side alone. If one side were easier to search, a tilt in the mixed ranking could "
        f"come from that alone. The margin is ±{first.margin:g}: a smaller difference would not matter.",
    )
    left_out = {row.source: f"{row.excluded:,}" for row in rows if row.excluded}
    counts = ", ".join(f"{n} of {source}" if len(validation.sources) > 1 else n for source, n in left_out.items())
    outside = f"Judged queries without a relevant document on both sides, left out: {counts}. " if counts else ""
    note = (
        f"Difference: {validation.reference} − rewrite. p different: paired t test, Holm over the table. p "
        f"equivalent: TOST, not corrected; below {_point(_alpha(validation))} it shows equivalence. Smallest margin: "
        f"the one that these queries would have shown. {outside}"
    ).strip()
    blocks: list[Block] = [Table("Table 2. Effectiveness on either side alone", columns, tuple(table), note, only=PAGE)]
    for (source, measure), group in groupby(rows, key=lambda row: (row.source, row.measure)):
        blocks.append(_forest(list(group), source, measure, validation))
    return Section("effectiveness", "Is either side easier to search?", lead, tuple(blocks))


def _alpha(validation: Validation) -> float:
    return float(validation.spec.get("alpha", ALPHA))


def _point(level: float) -> str:
    return f"{level:g}".removeprefix("0")


def _many_measures(rows: Sequence[Equivalence]) -> bool:
    return len({row.measure for row in rows}) > 1


def _tested(row: Equivalence, validation: Validation, *, rule: bool) -> Row:
    name = f"{row.run}, {row.source}" if len(validation.sources) > 1 else row.run
    measure = (Cell(row.measure),) if _many_measures(validation.effectiveness) else ()
    cells = (
        Cell(name),
        *measure,
        Cell(row.outcome, tone=OUTCOMES[row.outcome]),
        _cell(row.mean_a, 3),
        _cell(row.mean_b, 3),
        Cell(signed(row.value, 3), row.value),
        Cell(interval(row.low, row.high, 3)),
        Cell(p_value(row.p_corrected), row.p_corrected),
        Cell(p_value(row.p_equivalent), row.p_equivalent),
        Cell(f"±{row.smallest:.3f}" if row.smallest == row.smallest else "–", row.smallest),
        _count(row.queries),
    )
    return Row(cells, rule=rule and len(validation.sources) > 1)


def _forest(rows: Sequence[Equivalence], source: str, measure: str, validation: Validation) -> Figure:
    intervals = [
        Interval(
            f"{row.run}: {row.outcome}", row.value, row.low, row.high,
            inner=row.smallest - abs(row.value), tone=OUTCOMES[row.outcome],
        )
        for row in rows
    ]  # fmt: skip
    reference, margin = validation.reference, rows[0].margin
    level = f"{100 * (1 - 2 * _alpha(validation)):g} %"
    counts = [f"{len(list(group))} {outcome}" for outcome, group in groupby(sorted(row.outcome for row in rows))]
    return Figure(
        f"Difference in {measure}, {reference} − {source}",
        f"{', '.join(counts)}. Shaded: the margin of ±{margin:g}. Thin: 95 % interval; thick: {level} interval, "
        f"which must lie in the shade for equivalence. Right of 0: {reference} is searched better; left: {source}.",
        forest(intervals, x=f"difference in {measure}", margin=margin),
    )


def _fairness(check: CheckResult | None) -> Section | None:
    if check is None:
        return None
    many = len(check.sources) > 1
    columns = (
        _named("check"), _left("verdict"), Column("found"), Column("share or median"),
        Column(f"in {check.reference}"), Column("limit"), Column("such as", number=False, room=18),
    )  # fmt: skip
    rows = tuple(_checked(row, many=many) for row in check.rows)
    said = [f"{row.name}: {row.meaning}." for row in check.of("void") + check.of("warning")]
    said += [f"{row.name}: {row.note}." for row in check.rows if row.note]
    lead = (check.sentence, *(text[0].upper() + text[1:] for text in dict.fromkeys(said)))
    table = Table(
        f"Faults that would void a comparison with {check.reference}", columns, rows, " ".join(legend(check)), only=PAGE
    )
    return Section("check", "Is the comparison fair?", lead, (table,))


def _checked(row: CheckRow, *, many: bool) -> Row:
    name = f"{row.name}, {row.source}" if many and row.source else row.name
    return _row(
        Cell(name),
        Cell(row.verdict, tone=TONES[row.verdict]),
        Cell(f"{row.found:,} of {row.total:,}", row.found),
        Cell(shown(row), row.value),
        Cell(percent(row.reference)),
        Cell(row.limit),
        Cell(", ".join(row.examples)),
    )


def _row(*cells: Cell) -> Row:
    return Row(cells)


def _summary(found: Distribution) -> tuple[Cell, ...]:
    return (_count(found.count), *(_cell(value, 3) for value in (found.mean, *found.quartiles)))


def _named(title: str) -> Column:
    return Column(title, number=False, header=True)


def _left(title: str) -> Column:
    return Column(title, number=False)


def _count(value: int) -> Cell:
    return Cell(count(value), value)


def _cell(value: float, digits: int) -> Cell:
    return Cell(decimal(value, digits), value)


def _plain(value: float) -> str:
    return f"{value:.2f}".replace("-", "−") if value == value else "undefined"


def _share(value: float) -> str:
    return percent(100 * value).replace(".0 %", " %") or "an undefined share"
