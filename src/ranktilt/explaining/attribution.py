"""Which properties of texts go with the gap between twins, ranker by ranker, by regression.

A *source* is the author of documents, and the *reference* the source that others are compared with.
*Twins* are two documents of the same origin by different sources. A *gap* is how much higher a
ranker scores or ranks the reference's document than its twin. A *property* is a number about a
text, such as its length. A *regression* divides the mean gap into a *part* for each property, and
*what remains* between twins that do not differ in any. It shows correlation, not causes.
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
from ranktilt.statistics.regression.least_squares import Regression, regress

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
"""Standard deviation of differences, as a share of the largest, that rounding may cause.

Below it, all twins differ by the same amount. Such a property cannot explain why some gaps are
larger.
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
    """For the score gap and the rank gap: a row for what remains, and one for each property."""
    notes: tuple[Note, ...]
    """What a reader of the numbers should know."""
    unvarying: tuple[str, ...]
    """Names of the properties in which all twins differ by the same amount; they have no rows."""

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
    not differ in any property, and is called what remains. The mean gap is b₀ + Σ b_j·mean(z_j),
    and each term of the sum is the part of it that goes with a property. Standard errors are
    clustered by query and by origin (`regress`). A part does not show that the ranker uses the
    property.

    The regression uses the pairs of judged documents, or all scored pairs if fewer than 30 are
    judged. A ranker scores twins even if it would not retrieve them: for each query as many
    documents as it ranks (`k`), with all their twins, first judged ones and then others drawn at
    random. A saved run, or a ranker that can score only what it retrieves, has only pairs of which
    both documents were retrieved. Retrieval chose these by their scores, so the result then names
    no property.

    Parameters
    ----------
    collection : Collection
        Documents with twins, and queries.
    rankers : sequence of Ranker or Run
        The rankers whose gaps are explained.
    properties : sequence of TextProbe, optional
        Probes that measure the properties; by default those that need no model.
    ranker : Ranker, optional
        A ranker for probes that need an encoder.
    reference : str, optional
        The source that others are compared with: ``human`` by default, or else the first.
    seed : int, optional
        Seed of the draws of documents to score.
    """
    reference = reference_of(collection, reference, to="explain")
    probes = default_properties() if properties is None else properties
    require_properties(probes)
    sources = twin_sources(collection, reference)
    if not sources:
        raise UserError(f"nothing to attribute: no source has twins of {reference}")
    text_properties = [
        TextProperty.from_probe(probe, collection, reference, ranker) for probe in probes
    ]
    all_sources = (reference, *sources)
    scored_runs = [score_twins(collection, scorer, all_sources, seed) for scorer in rankers]
    attributions = list[GapAttribution]()
    tables = list[ProbeTable]()
    figures = list[ProbeFigure]()
    for source in sources:
        source_attributions = [
            _attribution(collection, scored, (reference, source), text_properties)
            for scored in scored_runs
        ]
        attributions += source_attributions
        score_gaps = [attribution.score_gap for attribution in source_attributions]
        for table, figure in tables_and_figures(score_gaps, reference):
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
        reference=reference,
        findings=tuple(chain.from_iterable(table.findings for table in tables)),
        tables=tuple(tables),
        notes=tuple(_notes(reference, scored_runs, attributions, text_properties)),
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
    is_unknown = np.isnan(differences)
    # The pairs with a value of every property.
    known = np.flatnonzero(~is_unknown.any(axis=1))
    unknown_counts = _count_by_name(names, is_unknown)
    if len(known) < FEWEST_PAIRS:
        raise _too_few_pairs(run, sources, len(is_unknown), unknown_counts)
    differences, query = differences[known], pairs.query[known]
    origin = collection.origin_codes()[pairs.reference[known]]
    deviation = differences.std(axis=0)
    varies = deviation > _ROUNDING_SPREAD * np.abs(differences).max(axis=0)
    scaled = differences[:, varies] / deviation[varies]
    score_fit, rank_fit = (
        regress(pair_gaps[gap].to_numpy()[known], scaled, query, origin)
        for gap in ("score", "rank")
    )
    notes = list[Note]()
    if unknown_counts:
        notes.append(
            PairsWithoutValues(
                run=run.name,
                source=source,
                pairs=len(is_unknown) - len(known),
                properties=counts_of(unknown_counts),
            )
        )
    unvarying = names[~varies].tolist()
    if unvarying:
        constant = _property_values(unvarying, differences[0, ~varies].tolist())
        notes.append(PropertiesConstant(run=run.name, source=source, properties=constant))
    varying = names[varies].tolist()
    notes += _cautions(run.name, source, varying, score_fit, query)
    rows = list[Row]()
    for gap, fit in ((SCORE_GAP, score_fit), (RANK_GAP, rank_fit)):
        for name, numbers in zip((REMAINS, *varying), _regression_rows(fit), strict=True):
            subject = {"source": source, "ranker": run.name, "of": gap, "property": name}
            rows.append({**subject, "twins": len(query), "selection": selection, **numbers})
    return GapAttribution(rows=tuple(rows), notes=tuple(notes), unvarying=tuple(unvarying))


def _selected_gaps(
    collection: Collection, scored: ScoredTwins, sources: tuple[str, str]
) -> tuple[pl.DataFrame, str]:
    """Return the gaps to regress, and which pairs they are of: ``all``, ``judged``, ``retrieved``.

    Judged pairs are chosen only if the run has scores of twins that it would not retrieve, or of
    all twins. `sources` are the reference and another source.
    """
    pair_gaps = gaps(collection, scored.run, *sources)
    query_count = int(np.isin(scored.run.queries, collection.queries["id"]).sum())
    holds_all_pairs = pair_gaps.height == query_count * collection.pairs(*sources).height
    if scored.note is not None or holds_all_pairs:
        return judged_gaps(collection, pair_gaps)
    return pair_gaps, "retrieved"


def _count_by_name(names: npt.NDArray[np.str_], is_unknown: Bools) -> dict[str, int]:
    """Count the pairs without a value of each property, for properties that have such pairs.

    `is_unknown` has a row for each pair and a column for each property.
    """
    counts = zip(names.tolist(), is_unknown.sum(axis=0).tolist(), strict=True)
    return {name: count for name, count in counts if count}


def _too_few_pairs(
    run: Run, sources: tuple[str, str], pair_count: int, unknown_counts: Mapping[str, int]
) -> UserError:
    """Return the error for a run with too few pairs of twins.

    `unknown_counts` has the number of pairs without a value, by property.
    """
    reference, source = sources
    properties = [f"{name} ({count:,})" for name, count in unknown_counts.items()]
    ending = ": rank deeper, or more queries"
    if unknown_counts:
        ending = f", not counting those without {join_words(properties)}"
    return UserError(
        f"attribution needs {FEWEST_PAIRS} pairs of {reference} and {source} in the same rankings; "
        f"{run.name} has {counted(pair_count, 'pair', 'pairs')}{ending}"
    )


def _property_values(names: Sequence[str], values: Sequence[float]) -> tuple[PropertyValue, ...]:
    """Make a record of each name with its value."""
    return tuple(
        PropertyValue(name=name, value=value) for name, value in zip(names, values, strict=True)
    )


def _cautions(
    run: str, source: str, properties: Sequence[str], fit: Regression, query: Rows
) -> Iterator[Note]:
    """Yield notes on a regression whose intervals or parts mean less than they seem to.

    `query` is the query of each pair that was regressed.
    """
    if len(np.unique(query)) == 1:
        yield OneQuery(run=run, source=source)
    inflated = [
        PropertyValue(name=name, value=float(inflation) if np.isfinite(inflation) else np.nan)
        for name, inflation in zip(properties, fit.inflation, strict=True)
        if inflation > _COLLINEAR_INFLATION
    ]
    if inflated:
        yield PropertiesInflated(run=run, source=source, properties=tuple(inflated))


def _regression_rows(fit: Regression) -> Iterator[Row]:
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
