"""A validation as tables of words, before any format: a table each for Table 1, Figure 3, Figure 5 and Table 2."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ranktilt.auditing.equivalence import Equivalence
from ranktilt.datasets.check_result import percent
from ranktilt.errors import counted
from ranktilt.probes.distribution import Distribution
from ranktilt.probes.separation import Separation
from ranktilt.probes.similarity import ABOVE, Similarity
from ranktilt.probes.statistics import CollectionStatistics, QueryStatistics, SourceStatistics
from ranktilt.probes.validation import Validation

_BARS = " ▁▂▃▄▅▆▇█"
_BINS = 20
_LONGEST = 12
DIFFERENCE, OUTCOME, PICTURE = "difference", "outcome", "0 … 1"
_LEFT = ("", OUTCOME, PICTURE)


@dataclass(frozen=True)
class Grid:
    """One table: titles, rows, and what stands below it."""

    title: str
    titles: tuple[str, ...]
    """Of the columns; the first one holds a row's name and has none."""
    rows: tuple[tuple[str, ...], ...]
    """A row of one cell is a heading."""
    below: tuple[str, ...] = ()
    spare: tuple[str, ...] = ()
    """Columns that a narrow terminal goes without, the first one first."""

    def left(self, title: str) -> bool:
        """Whether a column's cells stand to the left: names and pictures; numbers stand to the right."""
        return title in _LEFT

    def without(self, title: str) -> Grid:
        """Return the table without one column."""
        place = self.titles.index(title)
        rows = tuple(row if len(row) == 1 else row[:place] + row[place + 1 :] for row in self.rows)
        spare = tuple(name for name in self.spare if name != title)
        return Grid(self.title, self.titles[:place] + self.titles[place + 1 :], rows, self.below, spare)


def grids(validation: Validation) -> list[Grid]:
    """Lay a validation out: collection, terms, vectors, effectiveness; parts that it lacks are left out.

    Parameters
    ----------
    validation : Validation
        What to print; its check has a layout of its own.

    Returns
    -------
    list of Grid
        In the order of the paper's tables and figures.
    """
    made = [_collection(validation.statistics)]
    made += [_terms(validation)] if validation.overlaps else []
    made += [_vectors(validation)] if validation.similarities else []
    made += [_effectiveness(validation)] if validation.effectiveness else []
    return made


def _collection(found: CollectionStatistics) -> Grid:
    titles = ("", "documents", "words", "quartiles", "queries", "relevant each")
    rows = [_source(one) for one in found.sources]
    lengths = "; ".join(_queries(one, found.split) for one in found.queries)
    empty = [
        f"{one.source}: {counted(one.empty, 'text', 'texts')} without a word" for one in found.sources if one.empty
    ]
    return Grid("Collection", titles, tuple(rows), (lengths, *empty), ("quartiles",))


def _source(one: SourceStatistics) -> tuple[str, ...]:
    quartiles = "  ".join(f"{value:.0f}" for value in one.quartiles)
    return (
        one.source, f"{one.documents:,}", _or_dash(one.words, ".2f"), quartiles, f"{one.queries:,}",
        _or_dash(one.relevant, ".2f"),
    )  # fmt: skip


def _queries(one: QueryStatistics, split: str | None) -> str:
    which = "judged" + (f" ({split})" if split else "") if one.which == "judged" else "in all"
    length = "" if np.isnan(one.words) else f", {one.words:.2f} words on average"
    return f"{counted(one.queries, 'query', 'queries')} {which}{length}"


def _terms(validation: Validation) -> Grid:
    titles = ("", "pairs", "mean", "quartiles", PICTURE)
    rows: list[tuple[str, ...]] = []
    for one in validation.overlaps:
        rows += [(one.source,), _spread("Jaccard", one.jaccard), _spread("overlap", one.overlap)]
    return Grid(f"Terms shared with {validation.reference}", titles, tuple(rows), (), ("quartiles", PICTURE))


def _vectors(validation: Validation) -> Grid:
    titles = ("", "pairs", "mean", "quartiles", f"above {ABOVE:g}", PICTURE)
    rows: list[tuple[str, ...]] = []
    below = []
    first = validation.similarities[0]
    for one in validation.similarities:
        rows.append((one.source,))
        rows += [_near(name, d) for name, d in (("twins", one.cosine), ("other pairs", one.baseline))]
        front = f"{one.source}: " if len(validation.sources) > 1 else ""
        below += [front + line for line in _apart(one)]
    title = f"Cosine of {first.model}, {first.text}"
    return Grid(title, titles, tuple(rows), tuple(below), ("quartiles", PICTURE))


def _near(name: str, found: Distribution) -> tuple[str, ...]:
    first, pairs, mean, quartiles, bars = _spread(name, found)
    above = found.above(ABOVE)
    return first, pairs, mean, quartiles, "–" if np.isnan(above) else percent(100 * above), bars


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


def _spread(name: str, found: Distribution) -> tuple[str, ...]:
    quartiles = "  ".join(_or_dash(value, ".2f") for value in found.quartiles)
    return f"  {name}", f"{found.count:,}", _or_dash(found.mean, ".2f"), quartiles, bars(found)


def bars(found: Distribution, bins: int = _BINS) -> str:
    """Draw a histogram from 0 to 1 in one line; what lies below 0 is in the first bar.

    Parameters
    ----------
    found : Distribution
        What to draw.
    bins : int, optional
        Characters.

    Returns
    -------
    str
        The highest bar is full; whatever is not nothing shows.
    """
    counts, _ = np.histogram(np.clip(found.defined, 0, 1), bins=bins, range=(0, 1))
    steps = len(_BARS) - 1
    heights = np.ceil(counts / max(int(counts.max(initial=0)), 1) * steps).astype(int)
    return "".join(_BARS[height] for height in heights.tolist())


def _effectiveness(validation: Validation) -> Grid:
    reference = validation.reference if len(validation.reference) <= _LONGEST else "reference"
    titles = (
        "", reference, "rewrite", DIFFERENCE, "95 % interval", "p different", "p equivalent", "shown from", "queries",
        OUTCOME,
    )  # fmt: skip
    rows: list[tuple[str, ...]] = []
    many = len({row.measure for row in validation.effectiveness}) > 1
    for source in dict.fromkeys(row.source for row in validation.effectiveness):
        rows.append((source,))
        rows += [_compared(row, many=many) for row in validation.effectiveness if row.source == source]
    measure = "" if many else f", {validation.effectiveness[0].measure}"
    spare = ("queries", "p different", "p equivalent", "shown from", "95 % interval")
    return Grid(f"Effectiveness on each side alone{measure}", titles, tuple(rows), (), spare)


def _compared(row: Equivalence, *, many: bool) -> tuple[str, ...]:
    return (
        f"  {row.run}" + (f" {row.measure}" if many else ""),
        _or_dash(row.on_reference, ".3f"),
        _or_dash(row.on_source, ".3f"),
        _signed(row.difference),
        f"{_signed(row.low)} … {_signed(row.high)}",
        _p(row.p_corrected),
        _p(row.p_equivalent),
        "–" if np.isnan(row.smallest) else f"±{row.smallest:.3f}",
        f"{row.queries:,}",
        row.verdict,
    )


def _or_dash(value: float, spec: str) -> str:
    return "–" if np.isnan(value) else format(value, spec).replace("-", "−")


def _signed(value: float) -> str:
    return _or_dash(value, "+.3f")


def _p(value: float) -> str:
    return "–" if np.isnan(value) else "< .001" if value < 0.001 else f"{value:.3f}"


def legend(validation: Validation) -> list[str]:
    """Say how the tables are read, in a few lines.

    Parameters
    ----------
    validation : Validation
        What is printed.

    Returns
    -------
    list of str
        Sentences.
    """
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
    tests = counted(sum(not np.isnan(row.p_different) for row in rows), "test", "tests")
    return [
        f"Difference: {validation.reference} − rewrite, over queries with a relevant document on both sides; 95 % "
        f"interval of Student's t. p different: paired t test (Holm over {tests}).",
        f"p equivalent: two one-sided paired t tests against ±{rows[0].margin:g}, uncorrected: below {alpha:g} the "
        "difference is smaller than that. Shown from: the smallest margin that would have been shown.",
        "Inconclusive is not equivalent: there, these queries show neither a difference nor that there is none.",
    ]
