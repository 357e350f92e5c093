"""Which properties of texts go with the gap between twins, ranker by ranker.

All of it is correlation, by regression.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.data.collection import Collection
from ranktilt.data.notes.base import Note, counts_of
from ranktilt.data.notes.probes import (
    DocumentsScored,
    GapsOfTwins,
    GapUnits,
    OneQuery,
    PairsWithoutValues,
    PropertiesConstant,
    PropertiesInflated,
    PropertyUnit,
    PropertyValue,
)
from ranktilt.data.run import Run, codes, collection_rows
from ranktilt.errors import UserError, counted, join_words, refuse_twice
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
from ranktilt.explaining.perplexity import PerplexityProbe
from ranktilt.explaining.text_probes import (
    QueryWordsProbe,
    ReadabilityProbe,
    SentenceLengthProbe,
    SpecificityProbe,
    TypeTokenProbe,
    WordsProbe,
)
from ranktilt.rankers.base import DEPTH, Ranker, score_documents, stages_of
from ranktilt.rankers.candidates import check_reranked
from ranktilt.rankers.self_exclusion import self_documents
from ranktilt.statistics.regression import MOST_REGRESSORS, Regression, regress

SCORE_GAP, RANK_GAP = "score gap", "rank gap"
QUESTION = (
    "Which properties of texts go with the gap between twins, and what remains? All of it is "
    "correlation: a ranker may go by something that comes with a property."
)
CITATION = (
    "shares of R²: Lindeman, Merenda & Gold 1980; clustered errors: Cameron, Gelbach & Miller 2011"
)
_FEWEST = 30
_FEWEST_ORIGINS = 30
"""Origins of a query that are scored, where there are so many, however shallow the ranker is."""
_SAME = 1e-9
"""Differences whose spread is less than this share of the largest are the same but for rounding."""
_COLLINEAR = 10
"""Variance inflation from which properties are said to follow from each other."""

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, eq=False)
class TextProperty:
    """A property of texts, measured for every document."""

    name: str
    probe: TextProbe
    values: Floats
    """What the probe measured, in the order of ``collection.docs``."""

    def differences(self, collection: Collection, pairs: TwinPairRows) -> Floats:
        """Return how much more of it the reference has than its twin, for each pair."""
        of_reference = self.probe.of_pairs(collection, self.values, pairs.query, pairs.reference)
        of_twin = self.probe.of_pairs(collection, self.values, pairs.query, pairs.twin)
        return of_reference - of_twin


@dataclass(frozen=True, kw_only=True, eq=False)
class TwinPairRows:
    """Pairs of twins under a query, by their rows in the collection."""

    query: Rows
    reference: Rows
    twin: Rows

    @classmethod
    def from_gaps(cls, gaps_of_pairs: pl.DataFrame) -> TwinPairRows:
        """Take the rows from a table of `gaps`."""
        return cls(
            query=gaps_of_pairs["query"].to_numpy(),
            reference=gaps_of_pairs["reference"].to_numpy(),
            twin=gaps_of_pairs["twin"].to_numpy(),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoredTwins:
    """A run whose gaps are attributed."""

    run: Run
    note: DocumentsScored | None
    """How many documents were drawn and scored; None where the run has what was retrieved."""


@dataclass(frozen=True, kw_only=True)
class GapAttribution:
    """The regressions of one run's gaps for one source, as rows."""

    rows: tuple[Row, ...]
    notes: tuple[Note, ...]
    unvarying: tuple[str, ...]
    """Properties in which all twins differ by the same."""

    @property
    def score_gap(self) -> ScoreGap:
        """The rows of the score gap."""
        rows = [row for row in self.rows if row["of"] == SCORE_GAP]
        return ScoreGap(rows=rows, unvarying=self.unvarying)


def default_properties() -> list[TextProbe]:
    """Return the properties that need no model."""
    return [
        PerplexityProbe(),
        WordsProbe(),
        SpecificityProbe(),
        ReadabilityProbe(),
        SentenceLengthProbe(),
        TypeTokenProbe(),
        QueryWordsProbe(),
    ]


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

    Each ranker and source has a regression of its own:

    y = b₀ + Σ b_j · z_j + e over the judged twins, query by query, or over all that are scored
    where fewer than 30 pairs are judged: y is the score gap in standard deviations of the query's
    scores, or the rank gap, positive where the reference is ahead, as in an audit; z_j is the
    difference in a property, reference less source, divided by its standard deviation, so that b₀
    is the gap of twins that do not differ. The mean gap is b₀ + Σ b_j · mean(z_j), which says how
    much of it goes with each property. Errors are clustered by query and by origin. That a gap goes
    with a property does not show that the ranker goes by it.

    A ranker scores twins whether it retrieves them or not: as many documents a query as it ranks
    (`k`), judged ones first, others drawn at random, with all their twins. Where it scores only
    what it retrieves, as a saved run does, they are those of which both are retrieved: chosen by
    their scores, so that no property is named.
    """
    first = reference_of(collection, reference, to="explain")
    probes = _checked_probes(default_properties() if properties is None else properties)
    sources = twin_sources(collection, first)
    if not sources:
        raise UserError(f"nothing to attribute: no source has twins of {first}")
    text_properties = [
        TextProperty(
            name=probe.label or probe.name,
            probe=probe,
            values=probe.measure(collection, first, ranker),
        )
        for probe in probes
    ]
    scored_runs = [_scored(collection, scorer, (first, *sources), seed) for scorer in rankers]
    notes: list[Note] = [scored.note for scored in scored_runs if scored.note is not None]
    rows = list[Row]()
    tables = list[ProbeTable]()
    figures = list[ProbeFigure]()
    for source in sources:
        attributions = [
            _attribution(collection, scored, (first, source), text_properties)
            for scored in scored_runs
        ]
        for attribution in attributions:
            notes += attribution.notes
            rows += attribution.rows
        score_gaps = [attribution.score_gap for attribution in attributions]
        for table, figure in tables_and_figures(score_gaps, first):
            tables.append(table)
            figures.append(figure)
    units = [
        PropertyUnit(name=measured.name, unit=measured.probe.unit) for measured in text_properties
    ]
    notes += [GapsOfTwins(), GapUnits(reference=first, properties=tuple(units))]
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
        notes=tuple(notes),
    )


def _checked_probes(probes: Sequence[TextProbe]) -> list[TextProbe]:
    """Refuse too few or too many properties, and any that occurs twice."""
    if not 1 <= len(probes) <= MOST_REGRESSORS:
        raise UserError(
            f"attribution: expected 1 to {MOST_REGRESSORS} properties, got {len(probes)}"
        )
    refuse_twice([probe.label or probe.name for probe in probes], "attribution: property")
    return list(probes)


def gaps(collection: Collection, run: Run, reference: str, source: str) -> pl.DataFrame:
    """Return a row for each pair of twins that a run holds both of, by query.

    Columns are the rows of `query`, `reference` and `twin` in the collection, and how far the
    reference is ahead: in standard deviations of the query's scores (`score`), and in ranks
    (`rank`). The signs are those of the card's score gap and rank gap.
    """
    docs = collection.docs.select("source", "origin", reference=pl.int_range(pl.len()))
    query_codes = codes(pl.Series(run.queries, dtype=pl.String), collection.queries["id"])
    entries = pl.DataFrame(
        {
            "query": query_codes[run.entry_queries],
            "reference": collection_rows(run, collection)[run.docs],
            "score": run.scores,
        }
    )
    scored = (
        entries.with_columns(
            spread=pl.col("score").std(ddof=0).over("query"),
            position=pl.col("score").rank("average", descending=True).over("query"),
        )
        .filter(pl.col("query") >= 0)
        .join(docs, on="reference", maintain_order="left")
    )
    of_reference = scored.filter(pl.col("source") == reference)
    of_source = scored.filter(pl.col("source") == source)
    twins = of_reference.join(
        of_source, on=["query", "origin"], suffix="_twin", maintain_order="left"
    )
    ahead = (pl.col("score") - pl.col("score_twin")) / pl.col("spread")
    return twins.select(
        "query",
        "reference",
        twin="reference_twin",
        rank=pl.col("position_twin") - pl.col("position"),
        score=pl.when(pl.col("spread") > 0).then(ahead).otherwise(0.0),
    )


def _attribution(
    collection: Collection,
    scored: ScoredTwins,
    sources: tuple[str, str],
    properties: Sequence[TextProperty],
) -> GapAttribution:
    """Regress one run's gaps for one source: rows of both gaps, and notes."""
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
    if len(known) < _FEWEST:
        raise _too_few_pairs(run, sources, len(unknown), lacking)
    differences, query = differences[known], pairs.query[known]
    origin = collection.origin_codes()[pairs.reference[known]]
    spread = differences.std(axis=0)
    varies = spread > _SAME * np.abs(differences).max(axis=0)
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
    """Return the gaps to regress, and which pairs they are: all, judged or retrieved ones."""
    pair_gaps = gaps(collection, scored.run, *sources)
    queries = int(np.isin(scored.run.queries, collection.queries["id"]).sum())
    holds_all_pairs = pair_gaps.height == queries * collection.pairs(*sources).height
    if scored.note is not None or holds_all_pairs:
        return _judged(collection, pair_gaps)
    return pair_gaps, "retrieved"


def _count_by_name(names: npt.NDArray[np.str_], is_unknown: Bools) -> dict[str, int]:
    """Count the pairs without a value of each property that has such pairs."""
    counts = zip(names.tolist(), is_unknown.sum(axis=0).tolist(), strict=True)
    return {name: count for name, count in counts if count}


def _too_few_pairs(
    run: Run, sources: tuple[str, str], pairs: int, lacking: Mapping[str, int]
) -> UserError:
    reference, source = sources
    properties = [f"{name} ({count:,})" for name, count in lacking.items()]
    fault = ": rank deeper, or more queries"
    if lacking:
        fault = f", less those without {join_words(properties)}"
    return UserError(
        f"attribution needs {_FEWEST} pairs of {reference} and {source} in the same rankings; "
        f"{run.name} holds {counted(pairs, 'pair', 'pairs')}{fault}"
    )


def _property_values(names: Sequence[str], values: Sequence[float]) -> tuple[PropertyValue, ...]:
    pairs = zip(names, values, strict=True)
    return tuple(PropertyValue(name=name, value=value) for name, value in pairs)


def _judged(collection: Collection, pair_gaps: pl.DataFrame) -> tuple[pl.DataFrame, str]:
    """Keep the judged pairs where they are enough, and say which pairs these are."""
    origin = collection.origin_codes()[pair_gaps["reference"].to_numpy()]
    pair = pair_gaps["query"].to_numpy() * collection.docs.height + origin
    is_judged = np.isin(pair, _judged_origins(collection))
    if is_judged.sum() < _FEWEST:
        return pair_gaps, "all"
    return pair_gaps.filter(is_judged), "judged"


def _cautions(
    subject: tuple[str, str], properties: Sequence[str], fit: Regression, query: Rows
) -> Iterator[Note]:
    """Note where intervals or parts of a run and source mean less than they seem to."""
    run, source = subject
    if len(np.unique(query)) == 1:
        yield OneQuery(run=run, source=source)
    inflated = [
        PropertyValue(name=name, value=float(by) if np.isfinite(by) else np.nan)
        for name, by in zip(properties, fit.inflation, strict=True)
        if by > _COLLINEAR
    ]
    if inflated:
        yield PropertiesInflated(run=run, source=source, properties=tuple(inflated))


def _numbers(fit: Regression) -> Iterator[Row]:
    """Give the numbers of the constant, which is what remains, then those of each property."""
    gap, gap_low, gap_high = fit.mean.tolist()
    coefficients = zip(fit.coefficients.tolist(), fit.parts.tolist(), strict=True)
    for number, (coefficient, part) in enumerate(coefficients):
        is_constant = number == 0  # the properties follow, and their numbers lack the constant
        yield {
            "mean gap": gap,
            "gap low": gap_low,
            "gap high": gap_high,
            **dict(zip(("coefficient", "low", "high"), coefficient, strict=True)),
            **dict(zip(("part", "part low", "part high"), part, strict=True)),
            "share of R²": None if is_constant else float(fit.shares[number - 1]),
            "R²": fit.r2,
            "R² without": None if is_constant else float(fit.without[number - 1]),
            "inflation": None if is_constant else float(fit.inflation[number - 1]),
        }


def _scored(
    collection: Collection, ranker: Ranker | Run, sources: Sequence[str], seed: int
) -> ScoredTwins:
    """Score twins by a ranker, and note how many.

    A ranker that scores only what it retrieves ranks instead.
    """
    if isinstance(ranker, Run):
        return ScoredTwins(run=ranker, note=None)
    run = score_documents(ranker, collection, _sample(collection, ranker, sources, seed))
    if run is None:
        return ScoredTwins(run=check_reranked(ranker.rank(collection), None, ranker), note=None)
    documents, queries = len(run.docs), len(run.queries)
    note = DocumentsScored(run=run.name, documents=documents, queries=queries, seed=seed)
    return ScoredTwins(run=run, note=note)


def _judged_origins(collection: Collection) -> Rows:
    """Return a number for each judged pair of query and origin.

    It is the query's row · documents + the origin's number.
    """
    query = codes(collection.qrels["query_id"], collection.queries["id"])
    row = codes(collection.qrels["doc_id"], collection.ids)
    known = (query >= 0) & (row >= 0)
    return np.unique(query[known] * collection.docs.height + collection.origin_codes()[row[known]])


def _sample(collection: Collection, ranker: Ranker, sources: Sequence[str], seed: int) -> Run:
    """Choose the documents of each query to score, without scores yet.

    `sources` begin with the reference. As many documents as the ranker ranks (``@k``; of a
    pipeline's last stage, as many as it re-ranks): judged ones first, others drawn at random, each
    with all its twins.
    """
    stages, size = stages_of(ranker), collection.docs.height
    twins = _twins(collection, sources)
    origins, rows = twins.group_by("origin").agg("row").sort("origin")
    origin_index = np.full(size, -1)
    origin_index[origins.to_numpy()] = np.arange(len(origins))
    affordable = _depth(stages) * len(origins) // max(twins.height, 1)
    count = min(max(affordable, _FEWEST_ORIGINS), len(origins))
    names = collection.queries_with_judgments["id"]
    generator = np.random.default_rng(seed)
    judged = _judged_origins(collection)
    excluded = self_documents(collection, getattr(stages[0], "exclude_self", None))
    none = np.empty(0, np.int64)
    parts = [none]
    for number, query in enumerate(codes(names, collection.queries["id"]).tolist()):
        low, high = np.searchsorted(judged, (query * size, (query + 1) * size))
        first = origin_index[judged[low:high] - query * size]
        first = generator.permutation(first[first >= 0])
        drawn = generator.choice(len(origins), count, replace=False)
        chosen = np.concatenate([first, drawn[~np.isin(drawn, first)]])[:count]
        documents = rows.gather(chosen).explode().to_numpy().astype(np.int64)
        parts.append(documents[~np.isin(documents, excluded.get(number, none))])
    entries = np.concatenate(parts).astype(np.int32)
    return Run(
        queries=tuple(names),
        offsets=np.cumsum([*map(len, parts)]),
        docs=entries,
        scores=np.zeros(len(entries)),
        ids=collection.ids,
    )


def _twins(collection: Collection, sources: Sequence[str]) -> pl.DataFrame:
    """Return the documents of the sources whose text has a version in the reference and another."""
    docs = collection.docs.select(
        "source", row=pl.int_range(pl.len()), origin=pl.Series(collection.origin_codes())
    )
    has_reference = (pl.col("source") == sources[0]).any().over("origin")
    has_twin = pl.col("source").n_unique().over("origin") > 1
    return docs.filter(pl.col("source").is_in(sources)).filter(has_reference & has_twin)


def _depth(stages: Sequence[Any]) -> int:
    """Return the depth of the last stage but one, or of the nearest before it that has one."""
    for stage in reversed(stages[:-1] or stages):
        depth = getattr(stage, "k", None)
        if depth:
            return int(depth)
    return DEPTH
