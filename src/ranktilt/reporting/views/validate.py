"""A validation: what the two sides share, whether either is easier to search, and whether the comparison is fair."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby

import numpy as np

from ranktilt.auditing.effects import Equivalence, Outcome
from ranktilt.datasets.check import CheckResult, percent
from ranktilt.errors import counted, join_words
from ranktilt.probes.base import ABOVE, Distribution
from ranktilt.probes.similarity import Similarity
from ranktilt.probes.text_probes import CollectionStatistics
from ranktilt.probes.validation import Validation
from ranktilt.reporting.document import (
    Block,
    Cell,
    Column,
    Document,
    Emphasis,
    Lines,
    Row,
    Section,
    Sentence,
    Table,
    named,
    tabulated,
    worded,
)
from ranktilt.reporting.figures.validation import OUTCOMES, alpha_of, distribution_figure, forest_figure, map_figure
from ranktilt.reporting.numbers import DASH, always_signed, count, decimal, estimate, fixed, number, p_value
from ranktilt.reporting.tones import Tone
from ranktilt.reporting.views.check import check_table, sentences
from ranktilt.reporting.views.check import legend as check_legend
from ranktilt.reporting.views.describe import LEGEND, statistics_tables
from ranktilt.reporting.views.provenance import provenance, titled

_UNRELATED = 0.95
_NEAR = 0.95
_MOST_NAMED = 4
_WORDS: dict[Outcome, tuple[str, str]] = {
    "equivalent": ("is equivalent on both sides", "are equivalent on both sides"),
    "different within the margin": ("differs within the margin", "differ within the margin"),
    "different": ("differs", "differ"),
    "inconclusive": ("is inconclusive", "are inconclusive"),
    "not tested": ("is not tested", "are not tested"),
}
"""Of one ranker, and of several."""


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
        documents = sum(row.documents for row in validation.statistics.sources)
        return f"One source, {validation.reference}, with {counted(documents, 'document', 'documents')}: no twins."
    if validation.check is not None and not validation.check.fair:
        return validation.check.sentence
    parts = [_texts(validation)]
    for outcome, words in _WORDS.items():
        found = [row for row in validation.effectiveness if row.outcome == outcome and _primary(row, validation)]
        names = [f"{row.run} ({row.source})" if len(validation.sources) > 1 else row.run for row in found]
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
        parts.append("stay close in meaning" if min(near) >= _NEAR else "do not all stay close in meaning")
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
            f"Student's t. p different: paired t test (Holm over {tests}).",
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
    for place, one in enumerate(found, start=1):
        title = f"Meaning of {one.source}" if many else "Meaning"
        lead = (
            f"{one.model} read what each document says ({one.text}) and made a vector of it. Twins should lie close "
            "together, unrelated texts should not."
        )
        drawn = f"Figure 5. Cosine similarity of {validation.reference} texts with their twins in {one.source}"
        sides = {"twins": one.cosine, "unrelated pairs": one.baseline}
        figure = distribution_figure(f"{drawn}, and with other rewrites", sides, "cosine similarity")
        blocks: list[Block] = [_cosines(one), _separation(one), figure]
        blocks += [map_figure(one.map, one.source, validation.reference)] if one.map is not None else []
        yield Section(f"meaning-{place}" if many else "meaning", title, (lead,), tuple(blocks))


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
    row = Row((Cell("AUC of telling sides apart", note=folds), number(apart.auc, fixed), number(apart.pairs, count)))
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
    counts = ", ".join(f"{n} of {source}" if len(validation.sources) > 1 else n for source, n in left_out.items())
    outside = f" Judged queries without a relevant document on both sides, left out: {counts}." if counts else ""
    table = tabulated(
        f"Effectiveness on each side alone{'' if many else f', {rows[0].measure}'}",
        [row for source in sources for row in rows if row.source == source], columns, note=outside.strip(),
        group=lambda row: (row.source,) if len(sources) > 1 else (), groups=("source",) if len(sources) > 1 else (),
    )  # fmt: skip
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
