"""Which properties of texts go with the gap between twins, ranker by ranker: correlation, by regression."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import polars as pl

from ranktilt.collection import Collection
from ranktilt.errors import UserError, counted, join_words, refuse_twice
from ranktilt.probes.base import (
    Floats,
    ProbeFigure,
    ProbeResult,
    ProbeTable,
    Rows,
    TextProbe,
    reference_of,
    twin_sources,
)
from ranktilt.probes.perplexity import PerplexityProbe
from ranktilt.probes.statistics import StatisticsProbe
from ranktilt.probes.text_probes import (
    QueryWordsProbe,
    ReadabilityProbe,
    SentenceLengthProbe,
    SpecificityProbe,
    TypeTokenProbe,
)
from ranktilt.rankers.base import DEPTH, Ranker, score_documents, stages_of
from ranktilt.rankers.candidates import check_reranked
from ranktilt.rankers.self_exclusion import self_documents
from ranktilt.run import Run, codes, collection_rows
from ranktilt.statistics.regression import MOST_REGRESSORS, Regression, regress

SCORE_GAP, RANK_GAP = "score gap", "rank gap"
REMAINS = "what remains"
QUESTION = (
    "Which properties of texts go with the gap between twins, and what remains? All of it is correlation: a ranker may "
    "go by something that comes with a property."
)
CITATION = "shares of R²: Lindeman, Merenda & Gold 1980; clustered errors: Cameron, Gelbach & Miller 2011"
_FEWEST = 30
_FEWEST_ORIGINS = 30
"""Origins of a query that are scored, where there are so many, however shallow the ranker is."""
_SAME = 1e-9
"""Differences whose spread is less than this share of the largest are the same but for rounding."""
_COLLINEAR = 10
"""Variance inflation from which properties are said to follow from each other."""
_PART, _COEFFICIENT = "part of the gap, sd", "coefficient"
_DECIMALS = {_PART: 3, _COEFFICIENT: 3, "% of R²": 1, "R² without": 4, "inflation": 2}

Measured = Sequence[tuple[TextProbe, Floats]]


@dataclass(frozen=True, eq=False)
class Gaps:
    """Twins that a run holds both of, a row each, by query; documents and queries by their row in the collection."""

    query: Rows
    reference: Rows
    other: Rows
    """The twin of the reference's document."""
    score: Floats
    """How far the twin is ahead, in standard deviations of the query's scores."""
    rank: Floats
    """How far it is ahead, in ranks."""


@dataclass(frozen=True, eq=False)
class Attribution:
    """What a ranker's gaps between twins go with."""

    ranker: str
    source: str
    reference: str
    properties: tuple[str, ...]
    """Those in which twins differ, and not all by the same."""
    twins: int
    selection: str
    """Which pairs of twins these are: ``judged``, ``all`` that were drawn or are there, or ``retrieved`` with both."""
    score: Regression
    """Of the score gap, in standard deviations of the query's scores."""
    rank: Regression
    """Of the rank gap."""
    notes: tuple[str, ...]


def default_properties() -> list[TextProbe]:
    """Return the properties that need no model."""
    return [
        PerplexityProbe(), StatisticsProbe(), SpecificityProbe(), ReadabilityProbe(), SentenceLengthProbe(),
        TypeTokenProbe(), QueryWordsProbe(),
    ]  # fmt: skip


def attribute(
    collection: Collection,
    rankers: Sequence[Ranker | Run],
    properties: Sequence[TextProbe] | None = None,
    *,
    ranker: Ranker | None = None,
    reference: str | None = None,
    seed: int = 0,
) -> ProbeResult:
    """Regress the gaps between twins on the differences between their texts, for each ranker and source.

    y = b₀ + Σ b_j · z_j + e over the judged twins, query by query, or over all that are scored where fewer than 30
    pairs are judged: y is the score gap in standard deviations of the query's scores, or the rank gap; z_j is the
    difference in a property divided by its standard deviation, so that b₀ is the gap of twins that do not differ. The
    mean gap is b₀ + Σ b_j · mean(z_j), which says how much of it goes with each property. Errors are clustered by query
    and by origin. That a gap goes with a property does not show that the ranker goes by it.

    A ranker scores twins whether it retrieves them or not: as many documents a query as it ranks (`k`), judged ones
    first, others drawn at random, with all their twins. Where it scores only what it retrieves, as a saved run does,
    they are those of which both are retrieved: chosen by their scores, so that no part of their gap is named.
    """
    first = reference_of(collection, reference, to="explain")
    chosen = list(default_properties() if properties is None else properties)
    if not 1 <= len(chosen) <= MOST_REGRESSORS:
        raise UserError(f"attribution: expected 1 to {MOST_REGRESSORS} properties, got {len(chosen)}")
    names = [_named(one) for one in chosen]
    refuse_twice(names, "attribution: property")
    sources = twin_sources(collection, first)
    if not sources:
        raise UserError(f"nothing to attribute: no source has twins of {first}")
    measured = [(one, one.measure(collection, first, ranker)) for one in chosen]
    runs = [_scored(collection, one, (first, *sources), seed) for one in rankers]
    found = [
        [_attribution(collection, run, bool(note), (first, source), measured) for run, note in runs]
        for source in sources
    ]
    every = [one for same in found for one in same]
    tables, figures = zip(*(shown for same in found for shown in _shown(same)), strict=True)
    units = "; ".join(f"{_named(one)}: {one.what}" for one in chosen)
    notes = [note for _, note in runs if note]
    notes += [note for one in every for note in one.notes]
    notes.append(
        f"Gaps are in standard deviations (sd) of a query's scores, positive where a source is ahead of {first}. A "
        f"coefficient is for one standard deviation of what twins differ by. Properties: {units}."
    )
    rows = tuple(row for one in every for row in _rows(one))
    said = " ".join(table.says for table in tables)
    return ProbeResult("attribution", QUESTION, CITATION, rows, (), figures, said, tables, tuple(notes))


def _scored(collection: Collection, one: Ranker | Run, sources: Sequence[str], seed: int) -> tuple[Run, str]:
    """Score twins by a ranker, and say which and how many; rank with it where it scores only what it retrieves."""
    if isinstance(one, Run):
        return one, ""
    run = score_twins(collection, one, sources, seed)
    if run is None:
        return check_reranked(one.rank(collection), None, one), ""
    scored = f"{len(run.docs):,} documents scored for {counted(len(run.queries), 'query', 'queries')}"
    how = f"retrieved or not: judged ones first, others drawn at random (seed {seed}), with their twins"
    return run, f"{run.name}: {scored}, {how}"


def gaps(collection: Collection, run: Run, reference: str, source: str) -> Gaps:
    """Return the gaps of all twins of which a run holds both."""
    docs = collection.docs.select("source", "origin", row=pl.int_range(pl.len()))
    scored = pl.DataFrame({
        "query": codes(pl.Series(run.queries, dtype=pl.String), collection.queries["id"])[run.entry_queries],
        "row": collection_rows(run, collection)[run.docs], "score": run.scores,
    }).with_columns(
        spread=pl.col("score").std(ddof=0).over("query"),
        place=pl.col("score").rank("average", descending=True).over("query"),
    ).filter(pl.col("query") >= 0).join(docs, on="row", maintain_order="left")  # fmt: skip
    sides = [scored.filter(pl.col("source") == name) for name in (reference, source)]
    twins = sides[0].join(sides[1], on=["query", "origin"], suffix="_other", maintain_order="left")
    ahead = (pl.col("score_other") - pl.col("score")) / pl.col("spread")
    columns = twins.select(
        "query", "row", "row_other", score=pl.when(pl.col("spread") > 0).then(ahead).otherwise(0.0),
        rank=pl.col("place") - pl.col("place_other"),
    )  # fmt: skip
    return Gaps(*(column.to_numpy() for column in columns.iter_columns()))


def _named(one: TextProbe) -> str:
    return one.label or one.name


def _attribution(
    collection: Collection, run: Run, drawn: bool, sources: tuple[str, str], measured: Measured
) -> Attribution:
    found = gaps(collection, run, *sources)
    queries = int(np.isin(run.queries, collection.queries["id"]).sum())
    selection = "retrieved"
    if drawn or len(found.query) == queries * collection.pairs(*sources).height:
        found, selection = _judged(collection, found)
    names = np.array([_named(one) for one, _ in measured])
    columns = np.stack([
        one.of_pairs(collection, values, found.query, found.other)
        - one.of_pairs(collection, values, found.query, found.reference)
        for one, values in measured
    ], axis=1)  # fmt: skip
    undefined = np.isnan(columns)
    known = np.flatnonzero(~undefined.any(axis=1))
    lacking = [f"{name} ({n:,})" for name, n in zip(names, undefined.sum(axis=0), strict=True) if n]
    if len(known) < _FEWEST:
        held = counted(len(undefined), "pair", "pairs")
        fault = f", less those without {join_words(lacking)}" if lacking else ": rank deeper, or more queries"
        raise UserError(
            f"attribution needs {_FEWEST} pairs of {sources[0]} and {sources[1]} in the same rankings; {run.name} "
            f"holds {held}{fault}"
        )
    columns, query = columns[known], found.query[known]
    origin = collection.origin_codes()[found.reference[known]]
    spread = columns.std(axis=0)
    varies = spread > _SAME * np.abs(columns).max(axis=0)
    scaled = columns[:, varies] / spread[varies]
    fits = [regress(gap[known], scaled, query, origin) for gap in (found.score, found.rank)]
    properties = tuple(names[varies].tolist())
    notes = []
    if lacking:
        out = counted(len(undefined) - len(known), "pair is", "pairs are")
        notes.append(f"{out} left out: no value of {join_words(lacking)}")
    if not varies.all():
        same = [f"{name} ({gap:+.4g})" for name, gap in zip(names[~varies], columns[0, ~varies], strict=True)]
        notes.append(f"left out, because all twins differ by the same: {join_words(same)}".replace("(+0)", "(0)"))
    notes += _cautions(properties, fits[0], query)
    said = tuple(f"{run.name}, {sources[1]}: {note}" for note in notes)
    return Attribution(run.name, sources[1], sources[0], properties, len(query), selection, fits[0], fits[1], said)


def _judged(collection: Collection, found: Gaps) -> tuple[Gaps, str]:
    """Keep the judged pairs where they are enough, and say which pairs these are."""
    pair = found.query * collection.docs.height + collection.origin_codes()[found.reference]
    judged = np.isin(pair, judged_origins(collection))
    if judged.sum() < _FEWEST:
        return found, "all"
    return Gaps(*(getattr(found, item.name)[judged] for item in fields(Gaps))), "judged"


def _cautions(properties: tuple[str, ...], fit: Regression, query: Rows) -> Iterator[str]:
    """Say where intervals or parts mean less than they seem to."""
    if len(np.unique(query)) == 1:
        yield "there is one query, so that intervals speak of other documents, and not of other queries"
    inflated = [
        f"{name} ({'∞' if np.isinf(by) else f'{by:.0f}'})"
        for name, by in zip(properties, fit.inflation, strict=True)
        if by > _COLLINEAR
    ]
    if inflated:
        yield f"what goes with which of {join_words(inflated)} is uncertain: they follow from each other (inflation)"


def _rows(one: Attribution) -> Iterator[dict[str, Any]]:
    for of, fit in ((SCORE_GAP, one.score), (RANK_GAP, one.rank)):
        gap = dict(zip(("mean gap", "gap low", "gap high"), fit.mean.tolist(), strict=True))
        for number, name in enumerate((REMAINS, *one.properties)):
            value, low, high = fit.coefficients[number].tolist()
            part, part_low, part_high = fit.parts[number].tolist()
            j = number - 1
            yield {
                "source": one.source, "ranker": one.ranker, "of": of, "property": name, "twins": one.twins,
                "selection": one.selection, **gap,
                "coefficient": value, "low": low, "high": high,
                "part": part, "part low": part_low, "part high": part_high,
                "share of R²": float(fit.shares[j]) if number else None, "R²": fit.r2,
                "R² without": float(fit.without[j]) if number else None,
                "inflation": float(fit.inflation[j]) if number else None,
            }  # fmt: skip


def _shown(same: Sequence[Attribution]) -> Iterator[tuple[ProbeTable, ProbeFigure]]:
    """Show the score gaps of one source, a ranker each: in one order, the largest parts first, and on one scale."""
    largest: dict[str, float] = {}
    for one in same:
        for name, part in zip(one.properties, np.abs(one.score.parts[1:, 0]).tolist(), strict=True):
            largest[name] = max(part, largest.get(name, 0.0))
    order = sorted(largest, key=lambda name: -largest[name])
    ends = tuple(float(end(one.score.parts)) for one in same for end in (np.min, np.max))
    for one in same:
        names = (REMAINS, *(name for name in order if name in one.properties))
        yield _table(one, names), _figure(one, names, ends)


def _table(one: Attribution, names: Sequence[str]) -> ProbeTable:
    fit, rows = one.score, list[dict[str, Any]]()
    for name in names:
        row: dict[str, Any] = dict.fromkeys(("property", *_DECIMALS))
        row["property"] = name
        j = -1 if name == REMAINS else one.properties.index(name)
        row[_PART] = tuple(fit.parts[j + 1].tolist())
        if j >= 0:
            row[_COEFFICIENT] = tuple(fit.coefficients[j + 1].tolist())
            row["% of R²"] = 100 * float(fit.shares[j]) / fit.r2 if fit.r2 else None
            row["R² without"] = float(fit.without[j])
            row["inflation"] = "∞" if np.isinf(fit.inflation[j]) else float(fit.inflation[j])
        rows.append(row)
    pairs = _pairs(one, "pair of twins", "pairs of twins")
    title = f"{one.ranker}, {one.source}: mean score gap {_interval(fit.mean)} over {pairs}, R² {fit.r2:.4f}"
    return ProbeTable(title, tuple(rows), _DECIMALS, _sentence(one))


def _figure(one: Attribution, names: Sequence[str], ends: tuple[float, ...]) -> ProbeFigure:
    fit = one.score
    parts = dict(zip((REMAINS, *one.properties), fit.parts.tolist(), strict=True))
    series = {name: tuple(parts[name]) for name in names}
    largest = max(names, key=lambda name: abs(parts[name][0]))
    says = f"Of a mean gap of {_sd(fit.mean[0])}, the largest part: {largest}, {_sd(parts[largest][0])}."
    if one.selection == "retrieved":
        says = f"Parts of a mean gap of {_sd(fit.mean[0])}, of retrieved pairs only."
    title = f"{one.ranker}, {one.source}: what the mean score gap goes with"
    return ProbeFigure("forest", title, _PART, ends, series, says)


def _sentence(one: Attribution) -> str:
    """Say of a ranker how much of its gap goes with what, where there is a gap at all."""
    fit = one.score
    gap, low, high = fit.mean.tolist()
    over = _pairs(one, "pair", "pairs")
    if low == gap == high == 0:
        return (
            f"{one.ranker} gives {one.source} and {one.reference} the same score in all {over}: nothing to attribute."
        )
    if low <= 0 <= high:
        between = f"between {one.source} and {one.reference}"
        return f"{one.ranker} shows no gap {between}: {_interval(fit.mean)} over {over}, so nothing is attributed."
    if one.selection == "retrieved":
        return (
            f"{one.ranker} scores only what it retrieves: a mean gap of {_interval(fit.mean)} over {over}. Which these "
            "are depends on their scores, so that shares are of retrieved pairs only, and none is named."
        )
    favoured = one.source if gap > 0 else one.reference
    lead = f"{one.ranker} scores {favoured} higher than its twins: of a mean gap of {_interval(fit.mean)} over {over},"

    remains, *parts = fit.parts.tolist()
    ordered = sorted(zip(parts, one.properties, strict=True), key=lambda part: -abs(part[0][0]))
    clear = [(part, name) for (part, low, high), name in ordered if not low <= 0 <= high]
    rest = [(part, name) for (part, low, high), name in ordered if low <= 0 <= high]
    # Parts are shares of a whole only where none points the other way and none is more than all of it.
    shares = [part / gap for part in (*(part for part, _ in clear), sum(part for part, _ in rest), remains[0])]
    steady = min(abs(low), abs(high)) >= abs(gap) / 2 and all(-0.005 <= share <= 1.005 for share in shares)

    def amount(part: float) -> str:
        return f"{abs(100 * part / gap):.0f} %" if steady else _sd(part)

    said = [f"{amount(part)} goes with {name}" for part, name in clear]
    if rest:
        others = f"the {'other ' if said else ''}{len(rest)} properties, none of which is shown to have a part"
        said.append(f"{amount(sum(part for part, _ in rest))} goes with {others if len(rest) > 1 else rest[0][1]}")
    maybe = ", which may be nothing" if remains[1] <= 0 <= remains[2] else ""
    return f"{lead} {'; '.join(filter(None, [', '.join(said), f'{amount(remains[0])} remains{maybe}']))}."


def _pairs(one: Attribution, singular: str, plural: str) -> str:
    pairs = counted(one.twins, singular, plural)
    return pairs if one.selection == "all" else pairs.replace(" ", f" {one.selection} ", 1)


def _sd(value: float) -> str:
    return f"{value:+.3f} sd".replace("-", "−")


def _interval(bounds: Floats) -> str:
    return f"{_sd(bounds[0])} [{bounds[1]:+.3f}, {bounds[2]:+.3f}]".replace("-", "−")


def score_twins(collection: Collection, ranker: Ranker, sources: Sequence[str], seed: int) -> Run | None:
    """Score twins of these sources, the reference's first; None where the ranker scores only what it retrieves.

    As many documents a query as the ranker ranks (``@k``; of a pipeline's last stage, as many as it re-ranks): judged
    ones first, others drawn at random, each with all its twins.
    """
    return score_documents(ranker, collection, _sample(collection, ranker, sources, seed))


def judged_origins(collection: Collection) -> Rows:
    """Return a number for each judged pair of query and origin: the query's row · documents + the origin's number."""
    query = codes(collection.qrels["query_id"], collection.queries["id"])
    row = codes(collection.qrels["doc_id"], collection.ids)
    known = (query >= 0) & (row >= 0)
    return np.unique(query[known] * collection.docs.height + collection.origin_codes()[row[known]])


def _sample(collection: Collection, ranker: Ranker, sources: Sequence[str], seed: int) -> Run:
    """Choose documents of each query, without scores yet."""
    stages, size = stages_of(ranker), collection.docs.height
    docs = collection.docs.select("source", row=pl.int_range(pl.len()), origin=pl.Series(collection.origin_codes()))
    reference = (pl.col("source") == sources[0]).any().over("origin")
    twins = docs.filter(pl.col("source").is_in(sources)).filter(
        reference & (pl.col("source").n_unique().over("origin") > 1)
    )
    origins, rows = twins.group_by("origin").agg("row").sort("origin")
    place = np.full(size, -1)
    place[origins.to_numpy()] = np.arange(len(origins))
    depth = next((k for one in reversed(stages[:-1] or stages) if (k := getattr(one, "k", None))), DEPTH)
    count = min(max(depth * len(origins) // max(twins.height, 1), _FEWEST_ORIGINS), len(origins))
    names, generator, judged = collection.judged["id"], np.random.default_rng(seed), judged_origins(collection)
    excluded = self_documents(collection, getattr(stages[0], "exclude_self", None))
    parts, none = [np.empty(0, np.int64)], np.empty(0, np.int64)
    for number, query in enumerate(codes(names, collection.queries["id"]).tolist()):
        low, high = np.searchsorted(judged, (query * size, (query + 1) * size))
        first = place[judged[low:high] - query * size]
        first = generator.permutation(first[first >= 0])
        drawn = generator.choice(len(origins), count, replace=False)
        chosen = np.concatenate([first, drawn[~np.isin(drawn, first)]])[:count]
        found = rows.gather(chosen).explode().to_numpy().astype(np.int64)
        parts.append(found[~np.isin(found, excluded.get(number, none))])
    entries = np.concatenate(parts).astype(np.int32)
    return Run(tuple(names), np.cumsum([*map(len, parts)]), entries, np.zeros(len(entries)), collection.ids)
