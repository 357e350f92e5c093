"""Worlds for simulations: small collections and runs, drawn fast, about which the truth is known.

Two kinds of documents: twins, of which two sides compete, and documents with labels, which a coin
tosses. Each query and each document adds something of its own, and how much is part of the design.
All worlds go into the public functions (`ranktilt.audit` and the like), and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
import polars as pl

import ranktilt as rt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

SIDES = ("a", "b")
LABEL, LABELS = "side", ("first", "second")
PART, PARTS = "part", ("long", "short")


@dataclass(frozen=True, kw_only=True)
class World:
    """A collection and the runs that rank it."""

    collection: rt.Collection
    runs: tuple[rt.Run, ...]


@dataclass(frozen=True, kw_only=True)
class TwinDesign:
    """Twins of which each query ranks some: how many there are, and what makes one side lead."""

    queries: int
    origins: int
    """Pairs of twins in the collection."""
    listed: int = 40
    """Pairs that a query ranks; all where there are fewer."""
    by_query: float = 0.0
    """Standard deviation of a query's lead: what all its pairs share."""
    by_origin: float = 0.0
    """Standard deviation of an origin's lead: what a pair has in all queries."""
    lead: float = 0.0
    """Mean lead of side a in the first run among relevant twins; a third of it among the others."""
    tied: float = 0.1
    """Share of pairs whose scores are equal."""
    depth: int = 60
    runs: int = 1
    shared: float = 0.5
    """Correlation between runs of what queries and origins add."""
    fresh: bool = False
    """Whether an origin's lead is drawn anew in each query: no document recurs, as it were."""


def twin_world(rng: np.random.Generator, design: TwinDesign) -> World:
    """Rank twins; one to five of a query's pairs are relevant, and score higher."""
    shape = (design.queries, min(design.listed, design.origins))
    pairs = sampled_rows(rng, design.origins, shape)
    relevant = rng.permuted(np.arange(shape[1]) < rng.integers(1, 6, (shape[0], 1)), axis=1)
    worth = rng.normal(size=shape) + 1.5 * relevant
    query_leads = _query_leads(rng, design)
    origin_leads = _origin_leads(rng, design, pairs)
    collection = _twin_collection(design.origins, pairs, relevant)
    runs = []
    for number in range(design.runs):
        run_lead = design.lead if number == 0 else 0.0
        mean_lead = np.where(relevant, run_lead, run_lead / 3)
        gap = mean_lead + query_leads[number] + origin_leads[number] + rng.normal(size=shape)
        gap[rng.random(shape) < design.tied] = 0.0
        own_worth = worth if design.runs == 1 else worth + rng.normal(scale=0.5, size=shape)
        scores = np.stack([own_worth + gap / 2, own_worth - gap / 2], axis=2).reshape(shape[0], -1)
        rows = np.stack([2 * pairs, 2 * pairs + 1], axis=2).reshape(shape[0], -1)
        runs.append(run_of(collection, rows, scores, name=f"r{number}", depth=design.depth))
    return World(collection=collection, runs=tuple(runs))


def _query_leads(rng: np.random.Generator, design: TwinDesign) -> list[Floats]:
    """What each query adds to the lead of its pairs, run by run."""
    leads = _correlated(rng, (design.queries, 1), design)
    return [design.by_query * lead for lead in leads]


def _origin_leads(rng: np.random.Generator, design: TwinDesign, pairs: Ints) -> list[Floats]:
    """What each listed pair's origin adds to its lead, run by run."""
    if design.fresh:
        leads = _correlated(rng, pairs.shape, design)
    else:
        leads = [lead[pairs] for lead in _correlated(rng, (design.origins,), design)]
    return [design.by_origin * lead for lead in leads]


def _correlated(
    rng: np.random.Generator,
    size: tuple[int, ...],
    design: TwinDesign,
) -> list[Floats]:
    """Draw standard normal numbers for each run, as like as the design says."""
    common = rng.normal(size=size)
    weight = 1.0 if design.runs == 1 else design.shared
    numbers = []
    for _ in range(design.runs):
        private = rng.normal(size=size)
        numbers.append(np.sqrt(weight) * common + np.sqrt(1 - weight) * private)
    return numbers


@cache
def _twin_docs(origins: int) -> pl.DataFrame:
    number = np.arange(2 * origins)
    side = np.array(SIDES)[number % 2]
    return pl.DataFrame(
        {
            "id": [f"{row // 2}-{SIDES[row % 2]}" for row in range(2 * origins)],
            "text": "",
            "source": side,
            "origin": (number // 2).astype(str),
        }
    )


def _twin_collection(origins: int, pairs: Ints, relevant: Bools) -> rt.Collection:
    docs = _twin_docs(origins)
    query, column = np.nonzero(relevant)
    first = 2 * pairs[query, column]
    rows = np.stack([first, first + 1], axis=1).ravel()
    return _collection(docs, len(pairs), np.repeat(query, 2), rows)


def wholly_one_sided_world(
    rng: np.random.Generator,
    queries: int,
    origins: int,
    chance: float,
) -> World:
    """Rank one relevant pair a query; the first side of a pair leads with this chance."""
    pairs = (np.arange(queries) % origins)[:, None]
    collection = _twin_collection(origins, pairs, np.ones_like(pairs, dtype=bool))
    leads = np.where(rng.random(origins) < chance, 1.0, -1.0)[pairs]
    rows = np.concatenate([2 * pairs, 2 * pairs + 1], axis=1)
    scores = np.concatenate([leads, -leads], axis=1) + rng.normal(scale=0.1, size=rows.shape)
    return World(collection=collection, runs=(run_of(collection, rows, scores, name="r0"),))


@dataclass(frozen=True, kw_only=True)
class LabelDesign:
    """Documents that are no twins, of which each query ranks some; a coin tosses their labels."""

    queries: int
    documents: int
    listed: int = 40
    relevant: int = 8
    skill: float = 0.7
    """What relevance adds to a document's score, in standard deviations of its worth."""
    share: float = 0.5
    """Chance of a document to be labelled first."""
    popularity: float = 0.0
    """Standard deviation of the logarithm of how often a document is listed."""
    tilt: float = 0.0
    """What the first label adds to a document's worth, in its standard deviations."""
    runs: int = 1
    shared: float = 0.8
    """Correlation between runs of what documents are worth."""
    disjoint: bool = False
    """Whether no document is listed twice."""
    long: float | None = None
    """What a long document's worth has more, in standard deviations; None where none is long.

    A coin decides which documents are long, in the column `PART`.
    """


@dataclass(frozen=True, kw_only=True)
class LabelErrors:
    """How often labels are wrong, and how many documents of either label were checked for it."""

    short: float
    long: float
    checked: int


def label_world(rng: np.random.Generator, design: LabelDesign) -> World:
    """Rank labelled documents by a worth that they keep in all lists, and by noise."""
    shape = (design.queries, min(design.listed, design.documents))
    first = rng.random(design.documents) < design.share
    if design.disjoint:
        drawn = rng.permutation(design.documents)[: shape[0] * shape[1]].reshape(shape)
    else:
        popularity = np.exp(rng.normal(scale=design.popularity, size=design.documents))
        drawn = sampled_rows(rng, design.documents, shape, popularity)
    relevant = rng.permuted(np.tile(np.arange(shape[1]) < design.relevant, (shape[0], 1)), axis=1)
    labels = pl.Series(LABEL, np.where(first, *LABELS), dtype=pl.String)
    docs = _label_docs(design.documents).with_columns(labels)
    is_long = None
    if design.long is not None:
        is_long = rng.random(design.documents) < 0.5
        docs = docs.with_columns(pl.Series(PART, np.where(is_long, *PARTS), dtype=pl.String))
    query, column = np.nonzero(relevant)
    collection = _collection(docs, shape[0], query, drawn[query, column])
    common = rng.normal(size=design.documents)
    noise = rng.normal(size=shape)
    runs = []
    for number in range(design.runs):
        weight = 1.0 if design.runs == 1 else design.shared
        worth = np.sqrt(weight) * common
        worth += np.sqrt(1 - weight) * rng.normal(size=design.documents) + design.tilt * first
        if is_long is not None:
            worth += design.long * is_long
        scores = worth[drawn] + design.skill * relevant + noise + 0.3 * rng.normal(size=shape)
        runs.append(run_of(collection, drawn, scores, name=f"r{number}"))
    return World(collection=collection, runs=tuple(runs))


def with_wrong_labels(
    world: World, rng: np.random.Generator, errors: LabelErrors
) -> tuple[World, str]:
    """Exchange labels by chance; return what a sample of checked documents says of their errors."""
    docs = world.collection.docs
    is_long = (docs[PART] == PARTS[0]).to_numpy()
    is_wrong = rng.random(docs.height) < np.where(is_long, errors.long, errors.short)
    exchanged = docs[LABEL].replace(dict(zip(LABELS, LABELS[::-1], strict=True)))
    labels = docs.select(pl.when(pl.Series(is_wrong)).then(exchanged).otherwise(LABEL).alias(LABEL))
    collection = rt.Collection(
        docs.with_columns(labels), world.collection.queries, world.collection.qrels
    )
    rates = {}
    for key in ("fpr", "fnr"):
        counts = [
            f"{rng.binomial(errors.checked, rate)}/{errors.checked}"
            for rate in (errors.long, errors.short)
        ]
        rates[key] = "|".join(counts)
    if errors.long == errors.short:
        rates = {key: counts.partition("|")[0] for key, counts in rates.items()}
        text = f"{LABELS[0]}:fpr={rates['fpr']},fnr={rates['fnr']}"
    else:
        text = f"{LABELS[0]}:by={PART},fpr={rates['fpr']},fnr={rates['fnr']}"
    return World(collection=collection, runs=world.runs), text


@cache
def _label_docs(documents: int) -> pl.DataFrame:
    ids = [f"d{number}" for number in range(documents)]
    return pl.DataFrame({"id": ids, "text": "", "source": "web"})


FACTORS = ("length", "words")
VERSIONS = 4


def factor_world(rng: np.random.Generator, queries: int, origins: int, spread: float) -> World:
    """Rank four versions of each document, by two factors that do nothing on the average.

    What a factor does differs between queries and between documents, by the same `spread`.
    """
    listed, relevant = min(12, origins), 4
    shape = (queries, listed)
    pairs = sampled_rows(rng, origins, shape)
    docs = _factor_docs(origins)
    rows = (VERSIONS * pairs[:, :, None] + np.arange(VERSIONS)).reshape(queries, -1)
    query = np.repeat(np.arange(queries), VERSIONS * relevant)
    collection = _collection(docs, queries, query, rows[:, : VERSIONS * relevant].ravel())
    scores = np.repeat(rng.normal(size=shape), VERSIONS, axis=1)
    scores += rng.normal(scale=0.5, size=scores.shape)
    for factor in range(len(FACTORS)):
        by_query = rng.normal(scale=spread, size=(queries, 1))
        by_origin = np.repeat(rng.normal(scale=spread, size=origins)[pairs], VERSIONS, axis=1)
        level = 2 * (rows % VERSIONS >> factor & 1) - 1
        scores += level * (by_query + by_origin) / 2
    return World(collection=collection, runs=(run_of(collection, rows, scores, name="r0"),))


@cache
def _factor_docs(origins: int) -> pl.DataFrame:
    number = np.arange(VERSIONS * origins)
    levels = {}
    for bit, name in enumerate(FACTORS):
        levels[f"factor:{name}"] = np.where(number >> bit & 1, "high", "low")
    origin = (number // VERSIONS).astype(str)
    ids = number.astype(str)
    return pl.DataFrame({"id": ids, "text": "x", "source": "web", "origin": origin, **levels})


def sampled_rows(
    rng: np.random.Generator, population: int, shape: tuple[int, int], weight: Floats | None = None
) -> Ints:
    """Draw rows of a population for each query, none twice, by weight: shape (queries, listed)."""
    queries, listed = shape
    if listed == population:
        return np.tile(np.arange(population), (queries, 1))
    keys = rng.random((queries, population))
    if weight is not None:
        keys = -np.log(keys) / weight  # the first to arrive in a race of exponential clocks
    return keys.argpartition(listed - 1, axis=1)[:, :listed].astype(np.int64)


def run_of(
    collection: rt.Collection,
    rows: Ints,
    scores: Floats,
    *,
    name: str,
    depth: int | None = None,
) -> rt.Run:
    """Sort each query's documents by score, and keep the best."""
    depth = rows.shape[1] if depth is None else min(depth, rows.shape[1])
    order = np.argsort(-scores, axis=1, kind="stable")[:, :depth]
    docs = np.take_along_axis(rows, order, axis=1)
    sorted_scores = np.take_along_axis(scores, order, axis=1)
    return rt.Run(
        queries=tuple(collection.queries["id"]),
        offsets=np.arange(len(rows) + 1) * depth,
        docs=docs.ravel(),
        scores=sorted_scores.ravel(),
        ids=collection.ids,
        spec={"ranker": name},
    )


@cache
def query_frame(queries: int) -> pl.DataFrame:
    """Return queries of different texts: equal ones would count as one."""
    ids = [f"q{number}" for number in range(queries)]
    return pl.DataFrame({"id": ids, "text": ids})


def _collection(docs: pl.DataFrame, queries: int, query: Ints, row: Ints) -> rt.Collection:
    """Judge these documents relevant to these queries."""
    frame = query_frame(queries)
    query_ids, doc_ids = frame["id"].gather(query), docs["id"].gather(row)
    qrels = pl.DataFrame({"query_id": query_ids, "doc_id": doc_ids, "grade": 1})
    return rt.Collection(docs, frame, qrels)


def with_random_labels(collection: rt.Collection, rng: np.random.Generator) -> rt.Collection:
    """Give every document one of two labels that mean nothing, in the column ``side``."""
    drawn = np.array(LABELS)[rng.integers(0, 2, collection.docs.height)]
    docs = collection.docs.with_columns(pl.Series(LABEL, drawn, dtype=pl.String))
    return rt.Collection(docs, collection.queries, collection.qrels)


def with_random_sources(collection: rt.Collection, rng: np.random.Generator) -> rt.Collection:
    """Let a fair coin decide for each origin whether its two documents exchange their sources."""
    docs = collection.docs
    first, second = collection.sources[:2]
    turned = rng.integers(0, 2, docs["origin"].n_unique()).astype(bool)
    is_turned = pl.Series(turned[collection.origin_codes()])
    exchanged = docs["source"].replace({first: second, second: first})
    source = docs.select(pl.when(is_turned).then(exchanged).otherwise("source").alias("source"))
    return rt.Collection(docs.with_columns(source), collection.queries, collection.qrels)
