"""Which properties of texts go with the gap between twins, ranker by ranker.

All of it is correlation, by regression.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.data.collection import Collection
from ranktilt.data.notes.base import Note, counts_of
from ranktilt.data.notes.probes import (
    GapsOfTwins,
    GapUnits,
    OneQuery,
    PairsWithoutValues,
    PropertiesConstant,
    PropertiesInflated,
    PropertyUnit,
    PropertyValue,
)
from ranktilt.data.runs.run import Run
from ranktilt.errors import UserError, counted, join_words
from ranktilt.explaining.attribution_tables import REMAINS, Row, ScoreGap, tables_and_figures
from ranktilt.explaining.base import (
    Floats,
    ProbeFigure,
    ProbeResult,
    ProbeTable,
    Rows,
    TextProbe,
    reference_of,
    twin_sources,
)
from ranktilt.explaining.scored_twins import ScoredTwins, score_twins
from ranktilt.explaining.text_properties import (
    TextProperty,
    default_properties,
    require_properties,
)
from ranktilt.explaining.twin_gaps import FEWEST_PAIRS, TwinPairRows, gaps, judged_gaps
from ranktilt.rankers.base import Ranker
from ranktilt.statistics.regression import Regression, regress

SCORE_GAP, RANK_GAP = "score gap", "rank gap"
"""Names of the two gaps, in the column ``of`` of the rows."""
QUESTION = (
    "Which properties of texts go with the gap between twins, and what remains? All of it is "
    "correlation: a ranker may use something else that comes with a property."
)
"""The question that the result answers."""
CITATION = (
    "shares of R²: Lindeman, Merenda & Gold 1980; clustered errors: Cameron, Gelbach & Miller 2011"
)
"""Sources of the methods."""
_ROUNDING_SPREAD = 1e-9
"""Share of the largest difference below which the spread of differences is only rounding.

A property in which all twins differ by the same cannot explain why some gaps are larger.
"""
_COLLINEAR_INFLATION = 10
"""Variance inflation above which a note says that properties go together.

Their coefficients are then uncertain: the data hardly tell which of them matters.
"""

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class GapAttribution:
    """The regressions of one run's gaps for one source, as rows."""

    rows: tuple[Row, ...]
    """For each of the two gaps: the numbers of what remains, then of each property."""
    notes: tuple[Note, ...]
    """What a reader of the numbers should know."""
    unvarying: tuple[str, ...]
    """Names of the properties in which all twins differ by the same; they have no rows."""

    @property
    def score_gap(self) -> ScoreGap:
        """The rows of the score gap."""
        rows = [row for row in self.rows if row["of"] == SCORE_GAP]
        return ScoreGap(rows=rows, unvarying=self.unvarying)


def attribute(
    collection: Collection,
    rankers: Sequence[Ranker | Run],
    properties: Sequence[TextProbe] | None = None,
    *,
    ranker: Ranker | None = None,
    reference: str | None = None,
    seed: int = 0,
) -> ProbeResult:
    """Regress the gaps between twins on the differences between their texts.

    Each ranker and each source have a regression of their own:

        y = b₀ + Σ b_j·z_j + e

    A row is a pair of twins under a query. y is the gap between the twins: the score gap, in
    standard deviations of the query's scores, or the rank gap. It is above 0 if the reference is
    ahead, as in an audit. z_j is how much more of property j the reference has than its twin,
    divided by the standard deviation of these differences. So b₀ is the gap between twins that do
    not differ in any property: what remains. The mean gap is b₀ + Σ b_j·mean(z_j), and each term is
    the part of it that goes with a property. Errors are clustered by query and by origin
    (`regress`). A part does not show that the ranker uses the property.

    The pairs are those of judged documents, or all pairs that are scored if fewer than 30 are
    judged. A ranker scores twins even if it would not retrieve them: as many documents for each
    query as it ranks (`k`), judged ones first, others drawn at random, each with all its twins. If
    a ranker can score only what it retrieves, as a saved run, the pairs are those of which both
    documents were retrieved. These were chosen by their scores, so that no property is named.

    Parameters
    ----------
    collection : Collection
        Documents with twins, and queries.
    rankers : sequence of Ranker or Run
        The rankers whose gaps are explained.
    properties : sequence of TextProbe, optional
        What is measured of texts; by default `default_properties`.
    ranker : Ranker, optional
        A ranker for probes that need an encoder.
    reference : str, optional
        The source that others are compared with; by default as in `reference_of`.
    seed : int, optional
        Seed of the draws of documents to score.
    """
    first = reference_of(collection, reference, to="explain")
    probes = default_properties() if properties is None else properties
    require_properties(probes)
    sources = twin_sources(collection, first)
    if not sources:
        raise UserError(f"nothing to attribute: no source has twins of {first}")
    text_properties = [
        TextProperty.from_probe(probe, collection, first, ranker) for probe in probes
    ]
    scored_runs = [score_twins(collection, scorer, (first, *sources), seed) for scorer in rankers]
    attributions = list[GapAttribution]()
    tables = list[ProbeTable]()
    figures = list[ProbeFigure]()
    for source in sources:
        of_source = [
            _attribution(collection, scored, (first, source), text_properties)
            for scored in scored_runs
        ]
        attributions += of_source
        score_gaps = [attribution.score_gap for attribution in of_source]
        for table, figure in tables_and_figures(score_gaps, first):
            tables.append(table)
            figures.append(figure)
    rows = chain.from_iterable(attribution.rows for attribution in attributions)
    return ProbeResult(
        probe="attribution",
        question=QUESTION,
        citation=CITATION,
        rows=tuple(rows),
        effects=(),
        figures=tuple(figures),
        reference=first,
        findings=tuple(chain.from_iterable(table.findings for table in tables)),
        tables=tuple(tables),
        notes=tuple(_notes(first, scored_runs, attributions, text_properties)),
    )


def _notes(
    reference: str,
    scored_runs: Sequence[ScoredTwins],
    attributions: Sequence[GapAttribution],
    properties: Sequence[TextProperty],
) -> Iterator[Note]:
    """Yield notes on what was scored, on the limits of each regression, and on units."""
    for scored in scored_runs:
        if scored.note is not None:
            yield scored.note
    for attribution in attributions:
        yield from attribution.notes
    yield GapsOfTwins()
    units = [PropertyUnit(name=measured.name, unit=measured.probe.unit) for measured in properties]
    yield GapUnits(reference=reference, properties=tuple(units))


def _attribution(
    collection: Collection,
    scored: ScoredTwins,
    sources: tuple[str, str],
    properties: Sequence[TextProperty],
) -> GapAttribution:
    """Regress both gaps of one run on the properties, for the reference and one source.

    `sources` are the reference and the source.
    """
    run = scored.run
    _reference, source = sources
    pair_gaps, selection = _selected_gaps(collection, scored, sources)
    pairs = TwinPairRows.from_gaps(pair_gaps)
    names = np.array([measured.name for measured in properties])
    differences = np.stack(
        [measured.differences(collection, pairs) for measured in properties], axis=1
    )
    unknown = np.isnan(differences)
    known = np.flatnonzero(~unknown.any(axis=1))
    lacking = _count_by_name(names, unknown)
    if len(known) < FEWEST_PAIRS:
        raise _too_few_pairs(run, sources, len(unknown), lacking)
    differences, query = differences[known], pairs.query[known]
    origin = collection.origin_codes()[pairs.reference[known]]
    spread = differences.std(axis=0)
    varies = spread > _ROUNDING_SPREAD * np.abs(differences).max(axis=0)
    scaled = differences[:, varies] / spread[varies]
    score_fit, rank_fit = (
        regress(pair_gaps[gap].to_numpy()[known], scaled, query, origin)
        for gap in ("score", "rank")
    )
    notes = list[Note]()
    if lacking:
        notes.append(
            PairsWithoutValues(
                run=run.name,
                source=source,
                pairs=len(unknown) - len(known),
                properties=counts_of(lacking),
            )
        )
    unvarying = names[~varies].tolist()
    if unvarying:
        constant = _property_values(unvarying, differences[0, ~varies].tolist())
        notes.append(PropertiesConstant(run=run.name, source=source, properties=constant))
    varying = names[varies].tolist()
    notes += _cautions((run.name, source), varying, score_fit, query)
    rows = list[Row]()
    for gap, fit in ((SCORE_GAP, score_fit), (RANK_GAP, rank_fit)):
        for name, numbers in zip((REMAINS, *varying), _numbers(fit), strict=True):
            subject = {"source": source, "ranker": run.name, "of": gap, "property": name}
            rows.append({**subject, "twins": len(query), "selection": selection, **numbers})
    return GapAttribution(rows=tuple(rows), notes=tuple(notes), unvarying=tuple(unvarying))


def _selected_gaps(
    collection: Collection, scored: ScoredTwins, sources: tuple[str, str]
) -> tuple[pl.DataFrame, str]:
    """Return the gaps to regress, and which pairs they are: ``all``, ``judged`` or ``retrieved``.

    Pairs may be chosen by judgments only if the run has scores of all of them.
    """
    pair_gaps = gaps(collection, scored.run, *sources)
    queries = int(np.isin(scored.run.queries, collection.queries["id"]).sum())
    holds_all_pairs = pair_gaps.height == queries * collection.pairs(*sources).height
    if scored.note is not None or holds_all_pairs:
        return judged_gaps(collection, pair_gaps)
    return pair_gaps, "retrieved"


def _count_by_name(names: npt.NDArray[np.str_], is_unknown: Bools) -> dict[str, int]:
    """Count the pairs without a value of each property that has such pairs."""
    counts = zip(names.tolist(), is_unknown.sum(axis=0).tolist(), strict=True)
    return {name: count for name, count in counts if count}


def _too_few_pairs(
    run: Run, sources: tuple[str, str], pairs: int, lacking: Mapping[str, int]
) -> UserError:
    """Return the error for a run with too few pairs of twins."""
    reference, source = sources
    properties = [f"{name} ({count:,})" for name, count in lacking.items()]
    fault = ": rank deeper, or more queries"
    if lacking:
        fault = f", not counting those without {join_words(properties)}"
    return UserError(
        f"attribution needs {FEWEST_PAIRS} pairs of {reference} and {source} in the same rankings; "
        f"{run.name} has {counted(pairs, 'pair', 'pairs')}{fault}"
    )


def _property_values(names: Sequence[str], values: Sequence[float]) -> tuple[PropertyValue, ...]:
    """Make a record of each name with its value."""
    pairs = zip(names, values, strict=True)
    return tuple(PropertyValue(name=name, value=value) for name, value in pairs)


def _cautions(
    subject: tuple[str, str], properties: Sequence[str], fit: Regression, query: Rows
) -> Iterator[Note]:
    """Yield notes on why intervals or parts of a run and source mean less than they seem to."""
    run, source = subject
    if len(np.unique(query)) == 1:
        yield OneQuery(run=run, source=source)
    inflated = [
        PropertyValue(name=name, value=float(by) if np.isfinite(by) else np.nan)
        for name, by in zip(properties, fit.inflation, strict=True)
        if by > _COLLINEAR_INFLATION
    ]
    if inflated:
        yield PropertiesInflated(run=run, source=source, properties=tuple(inflated))


def _numbers(fit: Regression) -> Iterator[Row]:
    """Yield a row of numbers for b₀, which is what remains, then one for each property."""
    # The intercept comes first in coefficients and parts, and has no share of R².
    shares = [None, *fit.shares.tolist()]
    without = [None, *fit.without.tolist()]
    inflation = [None, *fit.inflation.tolist()]
    mean_gap = _with_interval(fit.mean, "mean gap", "gap low", "gap high")
    for number, (coefficient, part) in enumerate(zip(fit.coefficients, fit.parts, strict=True)):
        yield {
            **mean_gap,
            **_with_interval(coefficient, "coefficient", "low", "high"),
            **_with_interval(part, "contribution", "contribution low", "contribution high"),
            "share of R²": shares[number],
            "R²": fit.r2,
            "R² without": without[number],
            "inflation": inflation[number],
        }


def _with_interval(estimate: Floats, *columns: str) -> dict[str, float]:
    """Return a number and both ends of its interval under the names of their columns."""
    return dict(zip(columns, estimate.tolist(), strict=True))
