"""Which properties of texts go with the gap between twins, ranker by ranker: correlation, by regression."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from ranktilt.data.collection import Collection
from ranktilt.data.notes.base import Note, counts_of
from ranktilt.data.notes.probes import (
    DocumentsScored,
    GapAttributed,
    GapPartsShown,
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
REMAINS = "what remains"
QUESTION = (
    "Which properties of texts go with the gap between twins, and what remains? All of it is correlation: a ranker may "
    "go by something that comes with a property."
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
_PART, _COEFFICIENT = "part of the gap, sd", "coefficient"
_DECIMALS = {_PART: 3, _COEFFICIENT: 3, "% of R²": 1, "R² without": 4, "inflation": 2}

Measured = Mapping[str, tuple[TextProbe, Floats]]
Row = Mapping[str, Any]


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
    """Regress the gaps between twins on the differences between their texts, for each ranker and source.

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
    chosen = list(default_properties() if properties is None else properties)
    if not 1 <= len(chosen) <= MOST_REGRESSORS:
        raise UserError(
            f"attribution: expected 1 to {MOST_REGRESSORS} properties, got {len(chosen)}"
        )
    names = [one.label or one.name for one in chosen]
    refuse_twice(names, "attribution: property")
    sources = twin_sources(collection, first)
    if not sources:
        raise UserError(f"nothing to attribute: no source has twins of {first}")
    measured = {
        name: (one, one.measure(collection, first, ranker))
        for name, one in zip(names, chosen, strict=True)
    }
    runs = [_scored(collection, one, (first, *sources), seed) for one in rankers]
    notes: list[Note] = [note for _, note in runs if note is not None]
    rows, shown = list[Row](), list[tuple[ProbeTable, ProbeFigure]]()
    for source in sources:
        same = list[list[Row]]()
        for run, note in runs:
            found, cautions = _attribution(
                collection, run, note is not None, (first, source), measured
            )
            notes += cautions
            rows += found
            same.append([row for row in found if row["of"] == SCORE_GAP])
        shown += _shown(same, first)
    units = [PropertyUnit(name=name, unit=one.what) for name, (one, _) in measured.items()]
    notes += [GapsOfTwins(), GapUnits(reference=first, properties=tuple(units))]
    tables, figures = zip(*shown, strict=True)
    return ProbeResult(
        probe="attribution",
        question=QUESTION,
        citation=CITATION,
        rows=tuple(rows),
        effects=(),
        figures=figures,
        reference=first,
        findings=tuple(finding for table in tables for finding in table.findings),
        tables=tables,
        notes=tuple(notes),
    )


def gaps(collection: Collection, run: Run, reference: str, source: str) -> pl.DataFrame:
    """Return a row for each pair of twins that a run holds both of, by query.

    Columns are the rows of `query`, `reference` and `twin` in the collection, and how far the
    reference is ahead: in standard deviations of the query's scores (`score`), and in ranks
    (`rank`). The signs are those of the card's score gap and rank gap.
    """
    docs = collection.docs.select("source", "origin", reference=pl.int_range(pl.len()))
    scored = (
        pl.DataFrame(
            {
                "query": codes(pl.Series(run.queries, dtype=pl.String), collection.queries["id"])[
                    run.entry_queries
                ],
                "reference": collection_rows(run, collection)[run.docs],
                "score": run.scores,
            }
        )
        .with_columns(
            spread=pl.col("score").std(ddof=0).over("query"),
            place=pl.col("score").rank("average", descending=True).over("query"),
        )
        .filter(pl.col("query") >= 0)
        .join(docs, on="reference", maintain_order="left")
    )
    sides = [scored.filter(pl.col("source") == name) for name in (reference, source)]
    twins = sides[0].join(sides[1], on=["query", "origin"], suffix="_twin", maintain_order="left")
    ahead = (pl.col("score") - pl.col("score_twin")) / pl.col("spread")
    return twins.select(
        "query",
        "reference",
        twin="reference_twin",
        rank=pl.col("place_twin") - pl.col("place"),
        score=pl.when(pl.col("spread") > 0).then(ahead).otherwise(0.0),
    )


def _attribution(
    collection: Collection, run: Run, drawn: bool, sources: tuple[str, str], measured: Measured
) -> tuple[list[Row], list[Note]]:
    """Regress one run's gaps of one source: rows of both gaps, and notes."""
    found = gaps(collection, run, *sources)
    queries = int(np.isin(run.queries, collection.queries["id"]).sum())
    selection = "retrieved"
    if drawn or found.height == queries * collection.pairs(*sources).height:
        found, selection = _judged(collection, found)
    query, first, second = (found[name].to_numpy() for name in ("query", "reference", "twin"))
    names = np.array(list(measured))
    columns = np.stack(
        [
            one.of_pairs(collection, values, query, first)
            - one.of_pairs(collection, values, query, second)
            for one, values in measured.values()
        ],
        axis=1,
    )
    undefined = np.isnan(columns)
    known = np.flatnonzero(~undefined.any(axis=1))
    lacking = {str(name): int(n) for name, n in zip(names, undefined.sum(axis=0), strict=True) if n}
    if len(known) < _FEWEST:
        held = counted(len(undefined), "pair", "pairs")
        properties = [f"{name} ({number:,})" for name, number in lacking.items()]
        fault = (
            f", less those without {join_words(properties)}"
            if lacking
            else ": rank deeper, or more queries"
        )
        raise UserError(
            f"attribution needs {_FEWEST} pairs of {sources[0]} and {sources[1]} in the same rankings; {run.name} "
            f"holds {held}{fault}"
        )
    columns, query, origin = columns[known], query[known], collection.origin_codes()[first[known]]
    spread = columns.std(axis=0)
    varies = spread > _SAME * np.abs(columns).max(axis=0)
    scaled = columns[:, varies] / spread[varies]
    fits = [
        regress(found[gap].to_numpy()[known], scaled, query, origin) for gap in ("score", "rank")
    ]
    notes = list[Note]()
    if lacking:
        left_out = len(undefined) - len(known)
        notes.append(
            PairsWithoutValues(
                run=run.name, source=sources[1], pairs=left_out, properties=counts_of(lacking)
            )
        )
    if not varies.all():
        same = zip(names[~varies].tolist(), columns[0, ~varies].tolist(), strict=True)
        values = tuple(PropertyValue(name=name, value=gap) for name, gap in same)
        notes.append(PropertiesConstant(run=run.name, source=sources[1], properties=values))
    properties = names[varies].tolist()
    notes += _cautions((run.name, sources[1]), properties, fits[0], query)
    front = {"source": sources[1], "ranker": run.name}
    held_by = {"twins": len(query), "selection": selection}
    rows: list[Row] = [
        {**front, "of": of, "property": name, **held_by, **numbers}
        for of, fit in zip((SCORE_GAP, RANK_GAP), fits, strict=True)
        for name, numbers in zip((REMAINS, *properties), _numbers(fit), strict=True)
    ]
    return rows, notes


def _judged(collection: Collection, found: pl.DataFrame) -> tuple[pl.DataFrame, str]:
    """Keep the judged pairs where they are enough, and say which pairs these are."""
    pair = (
        found["query"].to_numpy() * collection.docs.height
        + collection.origin_codes()[found["reference"].to_numpy()]
    )
    judged = np.isin(pair, _judged_origins(collection))
    return (found, "all") if judged.sum() < _FEWEST else (found.filter(judged), "judged")


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
    """What a regression says of what remains, then of each property."""
    gap = dict(zip(("mean gap", "gap low", "gap high"), fit.mean.tolist(), strict=True))
    for number, (coefficient, part) in enumerate(
        zip(fit.coefficients.tolist(), fit.parts.tolist(), strict=True)
    ):
        of_property = (fit.shares, fit.without, fit.inflation)
        share, without, inflation = (
            float(one[number - 1]) if number else None for one in of_property
        )
        yield {
            **gap,
            **dict(zip(("coefficient", "low", "high"), coefficient, strict=True)),
            **dict(zip(("part", "part low", "part high"), part, strict=True)),
            "share of R²": share,
            "R²": fit.r2,
            "R² without": without,
            "inflation": inflation,
        }


def _shown(
    same: Sequence[Sequence[Row]], reference: str
) -> Iterator[tuple[ProbeTable, ProbeFigure]]:
    """Show the score gaps of one source, a ranker each: in one order, the largest parts first, and on one scale."""
    every = [row for rows in same for row in rows]
    largest = dict.fromkeys((row["property"] for row in every), 0.0)
    for row in every:
        largest[row["property"]] = max(abs(row["part"]), largest[row["property"]])
    largest[REMAINS] = np.inf
    ends = tuple(
        end(row[name] for row in every) for end in (min, max) for name in ("part low", "part high")
    )
    for rows in same:
        yield _table(sorted(rows, key=lambda row: -largest[row["property"]]), reference, ends)


def _table(
    rows: Sequence[Row], reference: str, ends: tuple[float, ...]
) -> tuple[ProbeTable, ProbeFigure]:
    one = rows[0]
    pairs = counted(one["twins"], "pair of twins", "pairs of twins")
    pairs = pairs if one["selection"] == "all" else pairs.replace(" ", f" {one['selection']} ", 1)
    gap = f"{_sd(one['mean gap'])} [{one['gap low']:+.3f}, {one['gap high']:+.3f}] over {pairs}".replace(
        "-", "−"
    )
    parts = {row["property"]: (row["part"], row["part low"], row["part high"]) for row in rows}
    table = [
        {
            "property": row["property"],
            _PART: parts[row["property"]],
            _COEFFICIENT: (row["coefficient"], row["low"], row["high"]) if row is not one else None,
            "% of R²": 100 * row["share of R²"] / row["R²"]
            if row is not one and row["R²"]
            else None,
            "R² without": row["R² without"],
            "inflation": "∞" if row["inflation"] == np.inf else row["inflation"],
        }
        for row in rows
    ]
    front = f"{one['ranker']}, {one['source']}"
    title = f"{front}: mean score gap {gap}, R² {one['R²']:.4f}"
    parts_shown = GapPartsShown(
        gap=one["mean gap"], is_of_retrieved=one["selection"] == "retrieved"
    )
    figure = ProbeFigure(
        kind="forest",
        title=f"{front}: what the mean score gap goes with",
        axis=_PART,
        edges=ends,
        series=parts,
        findings=(parts_shown,),
    )
    probe_table = ProbeTable(
        title=title,
        rows=tuple(table),
        decimals=_DECIMALS,
        findings=(_gap_attributed(rows, reference),),
    )
    return probe_table, figure


def _gap_attributed(rows: Sequence[Row], reference: str) -> GapAttributed:
    """Note which side a ranker scores higher, and which properties are shown to have a part in it."""
    remains, *properties = rows
    gap = remains["mean gap"]
    involved = [row for row in properties if not row["part low"] <= 0 <= row["part high"]]
    with_gap = tuple(row["property"] for row in involved if row["part"] * gap > 0)
    against_gap = tuple(row["property"] for row in involved if row["part"] * gap <= 0)
    return GapAttributed(
        run=remains["ranker"],
        source=remains["source"],
        reference=reference,
        gap=gap,
        low=remains["gap low"],
        high=remains["gap high"],
        is_of_retrieved=remains["selection"] == "retrieved",
        with_gap=with_gap,
        against_gap=against_gap,
    )


def _sd(value: float) -> str:
    return f"{value:+.3f} sd".replace("-", "−")


def _scored(
    collection: Collection, ranker: Ranker | Run, sources: Sequence[str], seed: int
) -> tuple[Run, DocumentsScored | None]:
    """Score twins by a ranker, and note how many; where it scores only what it retrieves, rank with it."""
    if isinstance(ranker, Run):
        return ranker, None
    run = score_documents(ranker, collection, _sample(collection, ranker, sources, seed))
    if run is None:
        return check_reranked(ranker.rank(collection), None, ranker), None
    documents, queries = len(run.docs), len(run.queries)
    note = DocumentsScored(run=run.name, documents=documents, queries=queries, seed=seed)
    return run, note


def _judged_origins(collection: Collection) -> Rows:
    """Return a number for each judged pair of query and origin: the query's row · documents + the origin's number."""
    query = codes(collection.qrels["query_id"], collection.queries["id"])
    row = codes(collection.qrels["doc_id"], collection.ids)
    known = (query >= 0) & (row >= 0)
    return np.unique(query[known] * collection.docs.height + collection.origin_codes()[row[known]])


def _sample(collection: Collection, ranker: Ranker, sources: Sequence[str], seed: int) -> Run:
    """Choose the documents of each query that are scored, without scores yet; `sources` begin with the reference.

    As many as the ranker ranks (``@k``; of a pipeline's last stage, as many as it re-ranks): judged
    ones first, others drawn at random, each with all its twins.
    """
    stages, size = stages_of(ranker), collection.docs.height
    docs = collection.docs.select(
        "source", row=pl.int_range(pl.len()), origin=pl.Series(collection.origin_codes())
    )
    reference = (pl.col("source") == sources[0]).any().over("origin")
    twins = docs.filter(pl.col("source").is_in(sources)).filter(
        reference & (pl.col("source").n_unique().over("origin") > 1)
    )
    origins, rows = twins.group_by("origin").agg("row").sort("origin")
    place = np.full(size, -1)
    place[origins.to_numpy()] = np.arange(len(origins))
    depth = next(
        (k for one in reversed(stages[:-1] or stages) if (k := getattr(one, "k", None))), DEPTH
    )
    count = min(max(depth * len(origins) // max(twins.height, 1), _FEWEST_ORIGINS), len(origins))
    names, generator, judged = (
        collection.queries_with_judgments["id"],
        np.random.default_rng(seed),
        _judged_origins(collection),
    )
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
    return Run(
        tuple(names), np.cumsum([*map(len, parts)]), entries, np.zeros(len(entries)), collection.ids
    )
