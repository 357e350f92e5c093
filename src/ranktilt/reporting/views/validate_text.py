"""A validation in text: tables of the collection, terms, vectors and effectiveness; and every number for CSV."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from ranktilt.auditing.effects import Equivalence
from ranktilt.datasets.check_result import percent
from ranktilt.errors import counted
from ranktilt.probes.distribution import Distribution
from ranktilt.probes.similarity import ABOVE, Separation, Similarity
from ranktilt.probes.statistics import CollectionStatistics, QueryStatistics
from ranktilt.probes.validation import Validation
from ranktilt.reporting.document import TERMINAL, TEXT, Cell, Column, Row, Sentence, Table
from ranktilt.reporting.numbers import DASH, count, decimal
from ranktilt.reporting.views.validate_sections import OUTCOMES

_BARS = " ▁▂▃▄▅▆▇█"
_BINS = 20
_LONGEST, _LABEL = 12, 22
_NAME = Column("", number=False, header=True, width=_LABEL)
_PICTURE = Column("0 … 1", number=False, only=TERMINAL, spare=2)
EFFECTIVENESS = (
    "on_reference", "on_source", "difference", "low", "high", "p_different", "p_corrected", "margin", "p_equivalent",
    "smallest", "outcome", "queries", "excluded", "pairs", "left_out",
)  # fmt: skip
"""What the data of a validation tells of each ranker on each side alone."""


def text_tables(validation: Validation) -> Iterator[Table]:
    """Lay a validation out in the order of the paper's tables and figures; parts that it lacks are left out."""
    yield _collection(validation.statistics)
    if validation.overlaps:
        yield _terms(validation)
    if validation.similarities:
        yield _vectors(validation)
    if validation.effectiveness:
        yield _effectiveness(validation)


def _table(caption: str, columns: Sequence[Column], rows: Sequence[Row], below: Sequence[str] = ()) -> Table:
    lines = tuple(map(Sentence, below))
    return Table(
        caption, (_NAME, *columns), tuple(rows), titled=True, below=lines, space=(0, 1), only=TEXT
    )  # fmt: skip


def _collection(found: CollectionStatistics) -> Table:
    quartiles = Column("quartiles", spare=1)
    columns = (Column("documents"), Column("words"), quartiles, Column("queries"), Column("relevant each"))
    rows = [
        Row(
            (
                Cell(one.source), Cell(count(one.documents)), Cell(_plain(one.words)),
                Cell("  ".join(f"{value:.0f}" for value in one.quartiles)), Cell(count(one.queries)),
                Cell(_plain(one.relevant)),
            )
        )
        for one in found.sources
    ]  # fmt: skip
    lengths = "; ".join(_queries(one, found.split) for one in found.queries)
    empty = [
        f"{one.source}: {counted(one.empty, 'text', 'texts')} without a word" for one in found.sources if one.empty
    ]
    return _table("Collection", columns, rows, (lengths, *empty))


def _queries(one: QueryStatistics, split: str | None) -> str:
    which = "judged" + (f" ({split})" if split else "") if one.which == "judged" else "in all"
    length = "" if np.isnan(one.words) else f", {one.words:.2f} words on average"
    return f"{counted(one.queries, 'query', 'queries')} {which}{length}"


def _terms(validation: Validation) -> Table:
    columns = (Column("pairs"), Column("mean"), Column("quartiles", spare=1), _PICTURE)
    rows = [
        Row(_spread(name, found), heading=(one.source,))
        for one in validation.overlaps
        for name, found in (("Jaccard", one.jaccard), ("overlap", one.overlap))
    ]
    return _table(f"Terms shared with {validation.reference}", columns, rows)


def _vectors(validation: Validation) -> Table:
    columns = (Column("pairs"), Column("mean"), Column("quartiles", spare=1), Column(f"above {ABOVE:g}"), _PICTURE)
    rows, below = [], []
    for one in validation.similarities:
        for name, found in (("twins", one.cosine), ("other pairs", one.baseline)):
            *first, picture = _spread(name, found)
            above = found.above(ABOVE)
            share = Cell(DASH if np.isnan(above) else percent(100 * above), above)
            rows.append(Row((*first, share, picture), heading=(one.source,)))
        front = f"{one.source}: " if len(validation.sources) > 1 else ""
        below += [front + line for line in _apart(one)]
    first_one = validation.similarities[0]
    return _table(f"Cosine of {first_one.model}, {first_one.text}", columns, rows, below)


def _apart(one: Similarity) -> Iterator[str]:
    found: Separation = one.separation
    if not np.isnan(found.nearest):
        yield (
            f"own twin is the nearest of all documents: {percent(100 * found.nearest)} of {found.asked:,} documents, "
            f"among {found.among:,}"
        )
    if not np.isnan(found.auc):
        yield (
            f"telling the sources apart by their vectors: AUC {found.auc:.3f} (folds {found.auc_low:.3f} to "
            f"{found.auc_high:.3f}, {found.pairs:,} pairs; 0.5 is chance, 1 is always)"
        )


def _spread(name: str, found: Distribution) -> tuple[Cell, ...]:
    quartiles = "  ".join(map(_plain, found.quartiles))
    return Cell(name), Cell(count(found.count)), Cell(_plain(found.mean)), Cell(quartiles), Cell(bars(found))


def bars(found: Distribution, bins: int = _BINS) -> str:
    """Draw a histogram from 0 to 1 in one line; the highest bar is full, and whatever is not nothing shows."""
    counts, _ = np.histogram(np.clip(found.defined, 0, 1), bins=bins, range=(0, 1))
    steps = len(_BARS) - 1
    heights = np.ceil(counts / max(int(counts.max(initial=0)), 1) * steps).astype(int)
    return "".join(_BARS[height] for height in heights.tolist())


def _effectiveness(validation: Validation) -> Table:
    reference = validation.reference if len(validation.reference) <= _LONGEST else "reference"
    columns = (
        Column(reference), Column("rewrite"), Column("difference"), Column("95 % interval", spare=5),
        Column("p different", spare=2), Column("p equivalent", spare=3), Column("shown from", spare=4),
        Column("queries", spare=1), Column("outcome", number=False, width=0),
    )  # fmt: skip
    many = len({row.measure for row in validation.effectiveness}) > 1
    sources = dict.fromkeys(row.source for row in validation.effectiveness)
    rows = [_compared(row, many=many) for source in sources for row in validation.effectiveness if row.source == source]
    measure = "" if many else f", {validation.effectiveness[0].measure}"
    return _table(f"Effectiveness on each side alone{measure}", columns, rows)


def _compared(row: Equivalence, *, many: bool) -> Row:
    cells = (
        Cell(row.run + (f" {row.measure}" if many else "")),
        Cell(decimal(row.mean_a, 3)),
        Cell(decimal(row.mean_b, 3)),
        Cell(_signed(row.value), signed=True, emphasis="strong" if row.statement.startswith("different") else ""),
        Cell(f"{_signed(row.low)} … {_signed(row.high)}"),
        Cell(_p(row.p_corrected)),
        Cell(_p(row.p_equivalent)),
        Cell(DASH if np.isnan(row.smallest) else f"±{row.smallest:.3f}"),
        Cell(count(row.queries)),
        Cell(row.statement, None, OUTCOMES[row.outcome]),
    )
    return Row(cells, heading=(row.source,))


def _plain(value: float) -> str:
    return DASH if np.isnan(value) else f"{value:.2f}".replace("-", "−")


def _signed(value: float) -> str:
    return DASH if np.isnan(value) else f"{value:+.3f}".replace("-", "−")


def _p(value: float) -> str:
    return DASH if np.isnan(value) else "< .001" if value < 0.001 else f"{value:.3f}"


def legend(validation: Validation) -> list[str]:
    """Say how the tables are read, in a few lines."""
    first = validation.reference
    lines = [
        "Words: whitespace words of a text without its title, the mean. Queries: with a relevant document of the "
        "source; relevant each: their mean number."
    ]
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
    if validation.effectiveness:
        lines += _tests(validation.effectiveness, validation)
    return lines


def _tests(rows: Sequence[Equivalence], validation: Validation) -> list[str]:
    alpha = float(validation.spec.get("alpha", 0.05))
    tests = counted(sum(not np.isnan(row.p) for row in rows), "test", "tests")
    return [
        f"Difference: {validation.reference} − rewrite, over queries with a relevant document on both sides; 95 % "
        f"interval of Student's t. p different: paired t test (Holm over {tests}).",
        f"p equivalent: two one-sided paired t tests against ±{rows[0].margin:g}, uncorrected: below {alpha:g} the "
        "difference is smaller than that. Shown from: the smallest margin that would have been shown.",
        "Inconclusive is not equivalent: there, these queries show neither a difference nor that there is none.",
    ]


_Record = tuple[str, str, str, str, object]
_COLUMNS = ("part", "source", "name", "quantity", "value")


def numbers_table(validation: Validation) -> pl.DataFrame:
    """Return every number, a row each."""
    rows = [(*row[:4], _exact(row[4])) for row in _numbers(validation)]
    return pl.DataFrame(rows, schema=dict.fromkeys(_COLUMNS, pl.String), orient="row")


def _exact(value: object) -> str | None:
    if isinstance(value, float):
        return None if math.isnan(value) else repr(value)
    return str(value)


def _numbers(validation: Validation) -> Iterator[_Record]:
    """Every number by part, source, name and quantity."""
    for source in validation.statistics.sources:
        low, median, high = source.quartiles
        yield from _named("statistics", source.source, "", documents=source.documents, empty=source.empty)
        yield from _named("statistics", source.source, "", words=source.words, quarter=low, median=median)
        yield from _named("statistics", source.source, "", three_quarters=high, queries=source.queries)
        yield from _named("statistics", source.source, "", relevant=source.relevant)
    for one in validation.statistics.queries:
        yield from _named("queries", "", one.which, queries=one.queries, words=one.words)
    for terms in validation.overlaps:
        for found in (terms.jaccard, terms.overlap):
            yield from _distribution("terms", terms.source, found)
    for near in validation.similarities:
        for found in (near.cosine, near.baseline):
            yield from _distribution("similarity", near.source, found)
            yield from _named("similarity", near.source, found.name, **{f"above_{ABOVE:g}": found.above(ABOVE)})
        yield from _named("similarity", near.source, near.model, **vars(near.separation))
    for row in validation.effectiveness:
        yield from _named("effectiveness", row.source, f"{row.run} {row.measure}", **_effect(row))
    for check in validation.check.rows if validation.check else ():
        yield from _named("check", check.source, check.name, found=check.found, total=check.total, value=check.value)
        yield from _named("check", check.source, check.name, reference=check.reference, verdict=check.verdict)


def _named(part: str, source: str, name: str, **numbers: object) -> Iterator[_Record]:
    for quantity, value in numbers.items():
        yield part, source, name, quantity, value


def _distribution(part: str, source: str, found: Distribution) -> Iterator[_Record]:
    low, median, high = found.quartiles
    numbers = {"pairs": found.count, "undefined": found.undefined, "mean": found.mean}
    yield from _named(part, source, found.name, **numbers, quarter=low, median=median, three_quarters=high)


def _effect(row: Equivalence) -> dict[str, object]:
    found = row.row()
    return {name: found[name] for name in EFFECTIVENESS}
