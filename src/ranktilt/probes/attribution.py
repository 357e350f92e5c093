"""Which properties of texts go with the gap between twins, ranker by ranker: correlation, by regression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.collection import Collection
from ranktilt.errors import UserError, counted
from ranktilt.probes.base import ProbeFigure, ProbeResult, TextProbe, reference_of, twin_sources
from ranktilt.probes.perplexity import PerplexityProbe
from ranktilt.probes.readability import ReadabilityProbe, SentenceLengthProbe
from ranktilt.probes.statistics import StatisticsProbe
from ranktilt.probes.vocabulary import QueryWordsProbe, SpecificityProbe, TypeTokenProbe
from ranktilt.rankers.base import Ranker
from ranktilt.run import Run
from ranktilt.statistics.regression import MOST_REGRESSORS, Regression, regress

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

SCORE_GAP, RANK_GAP = "score gap", "rank gap"
CITATION = "shares of R²: Lindeman, Merenda & Gold 1980; clustered errors: Cameron, Gelbach & Miller 2011"
_FEWEST = 30


@dataclass(frozen=True, eq=False)
class Gaps:
    """Twins that a run holds both of: a row each, by query."""

    query: Ints
    reference: Ints
    """Row of the reference's document."""
    other: Ints
    """Row of its twin."""
    values: Floats
    """How far the twin is ahead of the reference's document."""


@dataclass(frozen=True, eq=False)
class Attribution:
    """What a ranker's gaps between twins go with."""

    ranker: str
    source: str
    of: str
    """``score gap``, in standard deviations of the query's scores, or ``rank gap``, in ranks."""
    properties: tuple[str, ...]
    means: Floats
    """Mean difference of each property, in its standard deviations."""
    left_out: tuple[str, ...]
    """Properties in which no twins differ."""
    twins: int
    gap: tuple[float, float, float]
    """Mean gap and its interval."""
    fit: Regression

    def coefficient(self, number: int) -> tuple[float, float, float]:
        """Return a coefficient and its interval; 0 is the intercept: the gap of twins that differ in no property."""
        return self.fit.interval(np.eye(len(self.fit.coefficients))[number])

    def part(self, number: int) -> tuple[float, float, float]:
        """Return how much of the mean gap goes with a property, and its interval; 0 is what remains."""
        weights = np.zeros(len(self.fit.coefficients))
        weights[number] = 1.0 if number == 0 else self.means[number - 1]
        return self.fit.interval(weights)


def default_properties() -> list[TextProbe]:
    """Return the properties that need no model."""
    return [
        PerplexityProbe(), StatisticsProbe(), SpecificityProbe(), ReadabilityProbe(), SentenceLengthProbe(),
        TypeTokenProbe(), QueryWordsProbe(),
    ]  # fmt: skip


def attribute(
    collection: Collection,
    runs: Sequence[Run],
    properties: Sequence[TextProbe] | None = None,
    *,
    ranker: Ranker | None = None,
    reference: str | None = None,
) -> ProbeResult:
    """Regress the gaps between twins on the differences between their texts, for each run and source.

    y = b₀ + Σ b_j · z_j + e over all twins that a run holds both of, query by query: y is the score gap in standard
    deviations of the query's scores, or the rank gap; z_j is the difference in a property divided by its standard
    deviation, so that b₀ is the gap of twins that do not differ. The mean gap is b₀ + Σ b_j · mean(z_j), which says
    how much of it goes with each property. Errors are clustered by query and by origin. That a gap goes with a
    property does not show that the ranker goes by it.

    Parameters
    ----------
    collection : Collection
        With twins.
    runs : sequence of Run
        Rankings of it; more retrieved twins say more.
    properties : sequence of TextProbe, optional
        At most 10; by default n-gram perplexity, words, specificity, readability, words a sentence, type/token ratio
        and query words.
    ranker : Ranker, optional
        Whose view a property needs.
    reference : str, optional
        The source that the others are held against: ``"human"`` where there is one, or else the first.

    Returns
    -------
    ProbeResult
        A row for each run, source, kind of gap and property, with the coefficient, its interval, its part of the mean
        gap and of R², its variance inflation, and R² without it; the first row of each is what remains.

    Raises
    ------
    UserError
        If the collection has no twins, there are more than 10 properties, or a run holds fewer than 30 twins.
    """
    first = reference_of(collection, reference, to="explain")
    chosen = list(default_properties() if properties is None else properties)
    if not 1 <= len(chosen) <= MOST_REGRESSORS:
        raise UserError(f"attribution: expected 1 to {MOST_REGRESSORS} properties, got {len(chosen)}")
    sources = twin_sources(collection, first)
    if not sources:
        raise UserError(f"nothing to attribute: no source has twins of {first}")
    values = [one.measure(collection, first, ranker) for one in chosen]
    found = [
        _attribution(collection, run, (first, source), of, list(zip(chosen, values, strict=True)))
        for run in runs
        for source in sources
        for of in (SCORE_GAP, RANK_GAP)
    ]
    rows = [row for one in found for row in _rows(one)]
    said = [_sentence(one, first) for one in found if one.of == SCORE_GAP]
    question = "Which properties of texts go with the gap between twins, and what remains?"
    return ProbeResult("attribution", question, CITATION, tuple(rows), (), tuple(map(_figure, found)), " ".join(said))


def gaps(collection: Collection, run: Run, reference: str, source: str, of: str) -> Gaps:
    """Return the gaps of all twins of which a run holds both."""
    docs = collection.docs.select("id", "source", "origin").with_row_index("row")
    spread = pl.col("score").std(ddof=0).over("query_id")
    scored = run.frame().with_columns(
        spread=spread, place=pl.col("score").rank("average", descending=True).over("query_id")
    ).join(docs, left_on="doc_id", right_on="id")  # fmt: skip
    sides = [scored.filter(pl.col("source") == name) for name in (reference, source)]
    twins = sides[0].join(sides[1], on=["query_id", "origin"], suffix="_other", maintain_order="left")
    value = (
        pl.when(pl.col("spread") > 0).then((pl.col("score_other") - pl.col("score")) / pl.col("spread")).otherwise(0.0)
        if of == SCORE_GAP
        else pl.col("place") - pl.col("place_other")
    )
    columns = twins.select(pl.col("query_id").rank("dense").cast(pl.Int64) - 1, "row", "row_other", value=value)
    query, row, other, gap = (columns[name].to_numpy() for name in columns.columns)
    return Gaps(query, row.astype(np.int64), other.astype(np.int64), gap.astype(np.float64))


def _attribution(
    collection: Collection, run: Run, sources: tuple[str, str], of: str, measured: Sequence[tuple[TextProbe, Floats]]
) -> Attribution:
    source = sources[1]
    found = gaps(collection, run, *sources, of)
    columns = np.stack([values[found.other] - values[found.reference] for _, values in measured], axis=1)
    known = ~np.isnan(columns).any(axis=1)
    if known.sum() < _FEWEST:
        twins = counted(int(known.sum()), "pair of twins", "pairs of twins")
        raise UserError(f"attribution needs {_FEWEST} twins with all properties, {run.name} and {source} have {twins}")
    columns, gap, query = columns[known], found.values[known], found.query[known]
    origin = collection.docs["origin"].rank("dense").to_numpy().astype(np.int64)[found.reference[known]] - 1
    spread = columns.std(axis=0)
    kept = np.flatnonzero(spread > 0)
    scaled = columns[:, kept] / spread[kept]
    alone = regress(gap, np.empty((len(gap), 0)), query, origin)
    return Attribution(
        run.name, source, of, tuple(measured[j][0].what for j in kept.tolist()), scaled.mean(axis=0),
        tuple(probe.what for j, (probe, _) in enumerate(measured) if j not in kept), len(gap),
        alone.interval(np.ones(1)), regress(gap, scaled, query, origin),
    )  # fmt: skip


def _rows(one: Attribution) -> list[dict[str, Any]]:
    rows = []
    for number, name in enumerate(["what remains", *one.properties]):
        value, low, high = one.coefficient(number)
        part, part_low, part_high = one.part(number)
        j = number - 1
        rows.append({
            "source": one.source, "ranker": one.ranker, "of": one.of, "property": name, "twins": one.twins,
            "coefficient": value, "low": low, "high": high, "part": part, "part low": part_low, "part high": part_high,
            "share of R²": one.fit.parts[j] if number else None, "R²": one.fit.r2,
            "R² without": one.fit.without[j] if number else None,
            "inflation": one.fit.inflation[j] if number else None,
        })  # fmt: skip
    return rows


def _figure(one: Attribution) -> ProbeFigure:
    unit = "standard deviations" if one.of == SCORE_GAP else "ranks"
    names = ["what remains", *one.properties]
    series = {name: one.part(number) for number, name in enumerate(names)}
    largest = max(names, key=lambda name: abs(series[name][0]))
    says = f"Of a mean {one.of} of {one.gap[0]:+.3f} the largest part goes with {largest}: {series[largest][0]:+.3f}."
    title = f"{one.ranker}: parts of the mean {one.of}, {one.source}"
    return ProbeFigure("forest", title, f"part of the {one.of}, in {unit}", (), series, says.replace("-", "−"))


def _sentence(one: Attribution, reference: str) -> str:
    """Say of a ranker how much of its gap goes with what, where there is a gap at all."""
    gap, low, high = one.gap
    numbers = f"{gap:+.3f} sd [{low:+.3f}, {high:+.3f}]".replace("-", "−")
    over = counted(one.twins, "pair", "pairs")
    if low <= 0 <= high:
        return f"{one.ranker} shows no gap between {one.source} and {reference}: {numbers} over {over}."
    parts = sorted(((one.part(j)[0] / gap, name) for j, name in enumerate(one.properties, 1)), key=lambda p: -abs(p[0]))
    named = [f"{_percent(share)} with {name}" for share, name in parts]
    remains = _percent(one.part(0)[0] / gap)
    favoured = one.source if gap > 0 else reference
    return (
        f"{one.ranker} scores {favoured} higher than its twins by {numbers} over {over}: of that gap, "
        f"{', '.join(named)} and {remains} with none of them (R² {one.fit.r2:.2f})."
    )


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %".replace("-", "−")
