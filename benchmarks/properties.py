"""Properties of documents: how often intervals of parts and of lifts hold what was planted.

Lists are drawn in which a side has more or less of four properties and each property has a known
effect, so that the parts of the gap are known (Gelbach's decomposition, docs/audit/properties.md).
An interval that claims 95 % should hold the truth in 95 ± 2 % of 2,000 draws, within 2.6 Monte
Carlo errors; of a part that is 0 the p should be below .05 in at most 6 % of draws.

A column of numbers by itself (`audit --by popularity`, docs/measures/property-lift.md): lists are
drawn from documents that differ in quality, and a ranker that does or does not go by the property.
The true lift is the mean of all draws; without a tilt it is 0.

    python benchmarks/properties.py
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
from common import arguments, machine, publish, say, table

from ranktilt.auditing.audit import audit
from ranktilt.data.collection import Collection
from ranktilt.data.runs.run import Run
from ranktilt.statistics.regression.gelbach import ListRows, decompose

PACKAGES = ("ranktilt", "numpy", "scipy")
DRAWS, QUICK_DRAWS, JOINT_DRAWS = 2_000, 10, 2_000
LIFT_DRAWS, QUICK_LIFT_DRAWS = 1_000, 3
GAMMAS = np.array([0.8, -0.5, 0.0, 0.3])
"""How much more of each property the first side has."""
BETAS = np.array([0.5, 0.4, 0.5, 0.0])
"""What a unit of each property is worth."""
REMAINING, CORRELATION = 0.2, 0.3
CLAIMED, ALLOWED, MONTE_CARLO_ERRORS = 95.0, 2.0, 2.6
MOST_FALSE = 6.0
NAMES = (
    "gap",
    "what remains",
    "all parts",
    "+.40",
    "−.20",
    "0 (no difference)",
    "0 (no effect)",
)


@dataclass(frozen=True, kw_only=True)
class Design:
    """How lists are drawn."""

    name: str
    queries: int
    size: int
    documents: int = 0
    """Documents that all lists share; 0 where each list has its own."""
    quality: float = 0.5
    """Standard deviation of what a document adds to its score in every list."""
    share: float = 0.5
    """Share of documents of the first side."""
    heavy_tails: bool = False
    """Whether errors follow t with 3 degrees of freedom."""


DESIGNS = (
    Design(name="60 queries, 20 documents each, none shared", queries=60, size=20),
    Design(name="60 queries, 20 of 300 documents", queries=60, size=20, documents=300),
    Design(name="30 queries, 10 of 300 documents", queries=30, size=10, documents=300),
    Design(
        name="100 queries, 30 of 200 documents, which matter more",
        queries=100,
        size=30,
        documents=200,
        quality=1.0,
    ),
    Design(
        name="300 queries, 10 of 3,000 documents, 20 % on the first side",
        queries=300,
        size=10,
        documents=3_000,
        share=0.2,
    ),
    Design(
        name="60 queries, 20 of 300 documents, heavy tails",
        queries=60,
        size=20,
        documents=300,
        heavy_tails=True,
    ),
    Design(name="50 queries, 50 of 60 documents", queries=50, size=50, documents=60),
)


def drawn(rng: np.random.Generator, design: Design) -> ListRows:
    """Draw the lists of one design."""
    count = design.documents or design.queries * design.size
    side = (rng.random(count) < design.share).astype(np.float64)
    text_noise = rng.standard_normal((count, len(GAMMAS)))
    common = rng.standard_normal((count, 1))
    properties = side[:, None] * GAMMAS
    properties += np.sqrt(1 - CORRELATION) * text_noise + np.sqrt(CORRELATION) * common
    if design.documents:
        lists = [rng.choice(count, design.size, replace=False) for _ in range(design.queries)]
        document = np.concatenate(lists).astype(np.int64)
    else:
        document = np.arange(count)
    query = np.repeat(np.arange(design.queries), design.size)
    errors = (
        rng.standard_t(3, len(query)) if design.heavy_tails else rng.standard_normal(len(query))
    )
    quality = design.quality * rng.standard_normal(count)
    level = rng.standard_normal(design.queries)
    outcome = level[query] + REMAINING * side[document] + properties[document] @ BETAS
    return ListRows(
        outcome=outcome + quality[document] + errors,
        side=side[document],
        properties=properties[document],
        query=query,
        document=document,
    )


def truth() -> np.ndarray:
    """Return what the columns of the table estimate."""
    parts = GAMMAS * BETAS
    return np.array([REMAINING + parts.sum(), REMAINING, parts.sum(), *parts])


def rows(draws: int) -> Iterator[tuple[list[str], list[str], int]]:
    """Yield a row of each design: coverage, shares of p < .05, and how many cells miss a target."""
    true_values = truth()
    for design in DESIGNS:
        say(design.name)
        covered, significant = np.zeros(len(true_values)), np.zeros(len(true_values))
        for number in range(draws):
            lists = drawn(np.random.default_rng([number, 17]), design)
            decomposition = decompose(lists, draws=JOINT_DRAWS)
            parts = [share.part for share in decomposition.shares]
            estimates = [
                decomposition.gap,
                decomposition.remaining,
                decomposition.explained,
                *parts,
            ]
            low = np.array([estimate.low for estimate in estimates])
            high = np.array([estimate.high for estimate in estimates])
            covered += (low <= true_values) & (true_values <= high)
            significant += np.array([estimate.p for estimate in estimates]) < 0.05
        coverage, significant_share = 100 * covered / draws, 100 * significant / draws
        short = coverage < CLAIMED - ALLOWED - allowance(CLAIMED - ALLOWED, draws)
        is_null = true_values == 0
        false = is_null & (significant_share > MOST_FALSE + allowance(MOST_FALSE, draws))
        yield (
            [design.name, *(f"{percent:.1f} %" for percent in coverage)],
            [design.name, *(f"{percent:.1f} %" for percent in significant_share)],
            int((short | false).sum()),
        )


def allowance(percent: float, draws: int) -> float:
    """Return the Monte Carlo errors within which a share counts as what was asked."""
    share = percent / 100
    return MONTE_CARLO_ERRORS * 100 * float(np.sqrt(share * (1 - share) / draws))


@dataclass(frozen=True, kw_only=True)
class LiftDesign:
    """How lists are drawn whose documents have more or less of a property."""

    name: str
    queries: int
    size: int
    documents: int
    tilt: float = 0.0
    """What a standard deviation of the property adds to the score."""
    quality: float = 0.7
    unknown: float = 0.0
    """Share of documents without a value."""


LIFT_DESIGNS = (
    LiftDesign(name="60 queries, 40 of 300 documents", queries=60, size=40, documents=300),
    LiftDesign(
        name="60 queries, 40 of 300 documents, alike in quality",
        queries=60,
        size=40,
        documents=300,
        quality=0.0,
    ),
    LiftDesign(
        name="30 queries, 20 of 600 documents, a fifth without a value",
        queries=30,
        size=20,
        documents=600,
        unknown=0.2,
    ),
    LiftDesign(
        name="60 queries, 40 of 300 documents, tilted", queries=60, size=40, documents=300, tilt=0.5
    ),
)


def drawn_lists(rng: np.random.Generator, design: LiftDesign) -> tuple[Collection, Run]:
    """Draw documents with a skewed property, and rank some of them for each query."""
    count, queries = design.documents, design.queries
    logarithm = rng.standard_normal(count)
    is_known = rng.random(count) >= design.unknown
    property_values = np.where(is_known, np.exp(0.5 * logarithm), np.nan)
    docs = pl.DataFrame(
        {
            "id": [f"d{number}" for number in range(count)],
            "text": "",
            "popularity": pl.Series(property_values).fill_nan(None),
        }
    )
    names = [f"q{number}" for number in range(queries)]
    qrels = pl.DataFrame(schema={"query_id": pl.String, "doc_id": pl.String, "grade": pl.Int32})
    collection = Collection(docs, pl.DataFrame({"id": names, "text": ""}), qrels, {})
    worth = design.tilt * logarithm + design.quality * rng.standard_normal(count)
    ranked_docs, ranked_scores = [], []
    for _ in range(queries):
        listed = rng.choice(count, design.size, replace=False)
        scores = worth[listed] + rng.standard_normal(design.size)
        order = np.argsort(-scores)
        ranked_docs.append(listed[order].astype(np.int32))
        ranked_scores.append(scores[order])
    run = Run(
        tuple(names),
        np.arange(queries + 1) * design.size,
        np.concatenate(ranked_docs),
        np.concatenate(ranked_scores),
        collection.ids,
        {"ranker": "drawn"},
    )
    return collection, run


def lift_rows(draws: int) -> Iterator[tuple[list[str], bool]]:
    """Yield a row of each design, and whether it misses a target."""
    for design in LIFT_DESIGNS:
        say(f"property lift: {design.name}")
        effects = []
        for number in range(draws):
            collection, run = drawn_lists(np.random.default_rng([number, 19]), design)
            result = audit(collection, run, by="popularity", resamples=1_000, seed=number)
            effects.append(result.card[0])
        values = np.array([effect.value for effect in effects])
        true_value = float(values.mean()) if design.tilt else 0.0
        low = np.array([effect.low for effect in effects])
        high = np.array([effect.high for effect in effects])
        coverage = 100 * float(((low <= true_value) & (true_value <= high)).mean())
        rejected = 100 * float(np.mean([effect.p < 0.05 for effect in effects]))
        least = CLAIMED - ALLOWED - allowance(CLAIMED - ALLOWED, draws)
        is_false = not design.tilt and rejected > MOST_FALSE + allowance(MOST_FALSE, draws)
        cells = [design.name, f"{true_value:+.3f}", f"{coverage:.1f} %", f"{rejected:.1f} %"]
        yield cells, coverage < least or is_false


def main() -> None:
    """Simulate and publish."""
    options = arguments(__doc__ or "").parse_args()
    draws = QUICK_DRAWS if options.quick else DRAWS
    table_rows = list(rows(draws))
    failed = sum(count for _, _, count in table_rows)
    lift_draws = QUICK_LIFT_DRAWS if options.quick else LIFT_DRAWS
    lifts = list(lift_rows(lift_draws))
    missed = sum(is_missed for _, is_missed in lifts)
    text = [
        "## Properties of documents",
        machine(PACKAGES),
        f"Which properties go with a gap, {draws:,} draws a row. How often the 95 % interval holds "
        "the planted value; above 97 %: "
        "conservative, as a product of two numbers is where both may be 0.",
        table(["lists", *NAMES], [coverage for coverage, _, _ in table_rows]),
        "How often p < .05:",
        table(["lists", *NAMES], [significant_share for _, significant_share, _ in table_rows]),
        f"- cells that cover less than {CLAIMED - ALLOWED:g} %, or find nothing too often: "
        f"**{failed}** (target 0: {'met' if not failed else 'MISSED'})",
        f"A column of numbers by itself, PropertyLift@10, {lift_draws:,} draws a row:",
        table(
            ["lists", "true lift, sd", "held by the interval", "p < .05"],
            [cells for cells, _ in lifts],
        ),
        f"- rows that miss: **{missed}** (target 0: {'met' if not missed else 'MISSED'})",
    ]
    publish("properties", "\n\n".join(text), options)


if __name__ == "__main__":
    main()
