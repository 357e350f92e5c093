"""Agreement of a judge with human grades.

A pair is a query and a document that both humans and the judge graded. Agreement is computed over
all pairs, for each query, and in *strata*: groups of pairs by source, length and query words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from ranktilt.data.collection import Collection
from ranktilt.data.text.quality import query_word_shares, words
from ranktilt.judging.grades import GradedPairs
from ranktilt.judging.records import FEWEST_QUERIES, Agreement, Estimate, GradeCount, QueryAgreement
from ranktilt.measures.ranking import Bools, Floats
from ranktilt.statistics.bootstrap import interval
from ranktilt.statistics.judges.agreement import cohen_kappa, krippendorff_alpha

_LENGTHS = ("short documents", "documents of middle length", "long documents")
"""Names of the strata by length of the document, from the shortest third on."""
_SHARES = ("few query words", "some query words", "many query words")
"""Names of the strata by the share of the query's words that the document has."""
_SEED = 11
"""Number that is added to the user's seed, so that other statistics have independent draws."""


@dataclass(frozen=True, kw_only=True)
class GradeAgreement:
    """Agreement of each judge with humans, in three forms."""

    by_stratum: tuple[Agreement, ...]
    """Agreement over all pairs, and in each stratum."""
    by_query: tuple[QueryAgreement, ...]
    """Agreement for each query."""
    counts: tuple[GradeCount, ...]
    """Number of pairs with each human grade and each grade of the judge."""


def grade_agreement(
    pairs_of_judges: Sequence[GradedPairs],
    collection: Collection | None,
    *,
    top: int,
    relevant: int,
    draws: QueryDraws,
) -> GradeAgreement:
    """Compute each judge's agreement with humans: by stratum, by query, and grade by grade.

    Parameters
    ----------
    pairs_of_judges : sequence of GradedPairs
        For each judge, the pairs that it and humans graded.
    collection : Collection or None
        Documents and queries; without them there are no strata.
    top : int
        Highest grade of the scale, which begins at 0.
    relevant : int
        Smallest grade that counts as relevant, for binary κ.
    draws : QueryDraws
        Resamples of the queries.
    """
    by_stratum, by_query, counts = list[Agreement](), list[QueryAgreement](), list[GradeCount]()
    for pairs_of_judge in pairs_of_judges:
        strata = {} if collection is None else strata_of(pairs_of_judge, collection)
        by_stratum += agreements(pairs_of_judge, strata, top=top, relevant=relevant, draws=draws)
        by_query += query_agreements(pairs_of_judge, top)
        counts += grade_counts(pairs_of_judge, top)
    return GradeAgreement(
        by_stratum=tuple(by_stratum), by_query=tuple(by_query), counts=tuple(counts)
    )


def agreements(
    pairs_of_judge: GradedPairs,
    strata: Mapping[str, Bools],
    *,
    top: int,
    relevant: int,
    draws: QueryDraws,
) -> Iterator[Agreement]:
    """Compute the agreement over all pairs and in each stratum, with intervals over queries.

    `strata` holds a mask over the pairs for each stratum. `top` is the highest grade, `relevant`
    the smallest one that counts as relevant in binary κ, and `draws` are resamples of the queries.
    """
    masks = {"all": np.ones(pairs_of_judge.table.height, dtype=bool), **strata}
    for stratum, mask in masks.items():
        if mask.any():
            tables = query_tables(pairs_of_judge.table.filter(pl.Series(mask)), top)
            resampled = draws.resampled_sums(tables) if len(tables) >= FEWEST_QUERIES else None
            yield _agreement(pairs_of_judge.judge, stratum, tables, relevant, resampled=resampled)


@dataclass(frozen=True, kw_only=True, eq=False)
class QueryDraws:
    """How often each query is drawn in each resample, the same for all judges and pairs."""

    resamples: int
    """Number of resamples."""
    seed: int
    """Seed of the draws."""
    latest: dict[int, Floats] = field(default_factory=dict)
    """The last draws, by the number of queries; only one is kept, because it may be large."""

    def draws_of(self, queries: int) -> Floats:
        """Return how often each of a number of queries is drawn, of shape (resamples, queries)."""
        if queries not in self.latest:
            self.latest.clear()
            # Added to the seed, so that other statistics have independent draws.
            rng = np.random.default_rng([self.seed, _SEED])
            shares = np.full(queries, 1 / queries)
            draws = rng.multinomial(queries, shares, size=self.resamples)
            self.latest[queries] = draws.astype(np.float64)
        return self.latest[queries]

    def resampled_sums(self, tables: Floats) -> Floats:
        """Return the sum of the tables of the queries that each resample draws.

        `tables` has the shape (queries, grades, grades), and the result (resamples, grades,
        grades).
        """
        cells = tables.reshape(len(tables), -1)
        sums = self.draws_of(len(tables)) @ cells
        return sums.reshape(self.resamples, *tables.shape[1:])


def query_tables(pairs: pl.DataFrame, top: int) -> Floats:
    """Count, for each query, the pairs with each human grade and each grade of the judge.

    The result has the shape (queries, human grades, judge's grades); grades go from 0 to `top`.
    Queries are in the order of their ids. `pairs` has ``query_id``, ``human`` and ``judged``.
    """
    query = pairs["query_id"].rank("dense").to_numpy().astype(np.int64) - 1
    size = top + 1
    # Index of each pair's cell, if all tables are written row by row, one after the other.
    cell = (query * size + pairs["human"].to_numpy()) * size + pairs["judged"].to_numpy()
    shape = int(query.max(initial=-1)) + 1, size, size
    return np.bincount(cell, minlength=int(np.prod(shape))).reshape(shape).astype(np.float64)


def query_agreements(pairs_of_judge: GradedPairs, top: int) -> Iterator[QueryAgreement]:
    """Yield the agreement for each query; `top` is the highest grade."""
    query_ids = pairs_of_judge.table["query_id"].unique().sort()
    for query_id, table in zip(query_ids, query_tables(pairs_of_judge.table, top), strict=True):
        values = _coefficients(table, relevant=1)  # any number: binary κ is not used here
        yield QueryAgreement(
            judge=pairs_of_judge.judge,
            query=query_id,
            pairs=int(table.sum()),
            exact=float(values["exact"]),
            weighted_kappa=float(values["weighted_kappa"]),
            gap=float(values["gap"]),
        )


def grade_counts(pairs_of_judge: GradedPairs, top: int) -> Iterator[GradeCount]:
    """Yield the number of pairs with each human grade and each grade of the judge.

    `top` is the highest grade.
    """
    table = query_tables(pairs_of_judge.table, top).sum(0)
    for human, row in enumerate(table):
        for grade, pairs in enumerate(row):
            yield GradeCount(judge=pairs_of_judge.judge, human=human, grade=grade, pairs=int(pairs))


def strata_of(pairs_of_judge: GradedPairs, collection: Collection) -> dict[str, Bools]:
    """Divide pairs by their document's source, its length, and its share of the query's words.

    Lengths and shares are divided in thirds. The result has a mask over the pairs for each stratum,
    by its name.
    """
    docs = collection.docs.select(doc_id="id", source="source").with_columns(
        text=collection.texts()
    )
    queries = collection.queries.select(query_id="id", query="text")
    pairs = pairs_of_judge.table.join(docs, on="doc_id", how="left", maintain_order="left")
    pairs = pairs.join(queries, on="query_id", how="left", maintain_order="left")
    sources = pairs["source"].drop_nulls().unique(maintain_order=True)
    strata = {}
    sources_to_compare = sources if len(sources) > 1 else ()
    for source in sources_to_compare:
        strata[f"source {source}"] = (pairs["source"] == source).fill_null(value=False).to_numpy()
    if (pairs["text"].fill_null("") != "").any():
        strata |= _thirds(_LENGTHS, words(pairs["text"]).cast(pl.Float64))
        strata |= _thirds(_SHARES, _query_share(pairs))
    return strata


def _query_share(pairs: pl.DataFrame) -> pl.Series:
    """Return the share of the query's words that the document has; null if either has no word.

    `pairs` has the columns ``query`` and ``text``.
    """
    rows = np.arange(pairs.height)
    shares = query_word_shares(
        pairs["query"].fill_null(""), pairs["text"].fill_null(""), rows, rows
    )
    has_text = pairs["text"].is_not_null()
    return (
        pl.Series("share", shares)
        .fill_nan(None)
        .to_frame()
        .select(pl.when(has_text).then("share"))["share"]
    )


def _thirds(labels: tuple[str, str, str], values: pl.Series) -> dict[str, Bools]:
    """Cut pairs into thirds by a value, and return their masks by label.

    Pairs with equal values stay together, and those without a value are in no third. An empty third
    is left out.
    """
    known = values.drop_nulls()
    if known.n_unique() < len(labels):
        return {}
    low, high = (known.quantile(share, "nearest") for share in (1 / 3, 2 / 3))
    thirds = (values <= low, (values > low) & (values <= high), values > high)
    masks = [third.fill_null(value=False).to_numpy() for third in thirds]
    return {label: mask for label, mask in zip(labels, masks, strict=True) if mask.any()}


def _coefficients(tables: Floats, relevant: int) -> dict[str, Floats]:
    """Compute every coefficient of agreement, by name of its field in `Agreement`.

    `tables` counts pairs and has the shape (…, human grades, judge's grades). `relevant` is the
    smallest grade that counts as relevant in binary κ.
    """
    size = tables.shape[-1]
    total = tables.sum((-2, -1))
    # Human grade minus the judge's, for each cell.
    differences = np.subtract.outer(np.arange(size), np.arange(size))
    with np.errstate(invalid="ignore", divide="ignore"):
        exact = np.einsum("...ii->...", tables) / total
        gap = -(tables * differences).sum((-2, -1)) / total
        # α counts pairs of ratings in either order, so that its table is symmetric.
        coincidences = tables + np.swapaxes(tables, -1, -2)
        return {
            "exact": exact,
            "kappa": cohen_kappa(tables),
            "binary_kappa": cohen_kappa(_binary_tables(tables, relevant)),
            "weighted_kappa": cohen_kappa(tables, "quadratic"),
            "alpha": krippendorff_alpha(coincidences),
            "gap": gap,
        }


def _binary_tables(tables: Floats, relevant: int) -> Floats:
    """Merge the grades below `relevant`, and those from it on; shape (…, 2, 2)."""
    rows = [tables[..., :relevant, :].sum(-2), tables[..., relevant:, :].sum(-2)]
    return np.stack([_binary_row(row, relevant) for row in rows], axis=-2)


def _binary_row(row: Floats, relevant: int) -> Floats:
    """Merge the judge's grades, which are the last axis, in the same way."""
    return np.stack([row[..., :relevant].sum(-1), row[..., relevant:].sum(-1)], axis=-1)


def _agreement(
    judge: str, stratum: str, tables: Floats, relevant: int, resampled: Floats | None
) -> Agreement:
    """Return the agreement of one stratum; without resamples it has no intervals.

    `tables` has the counts of each query, and `resampled` their sums in each resample.
    """
    with_pairs = tables[tables.sum((-2, -1)) > 0]
    values = _coefficients(with_pairs.sum(0), relevant)
    samples = {} if resampled is None else _coefficients(resampled, relevant)
    estimates = {name: _estimate(float(value), samples.get(name)) for name, value in values.items()}
    return Agreement(
        judge=judge,
        stratum=stratum,
        pairs=int(with_pairs.sum()),
        queries=len(with_pairs),
        **estimates,
    )


def _estimate(value: float, samples: Floats | None) -> Estimate:
    """Return a coefficient with the interval of its resamples."""
    if samples is None or np.isnan(value):
        return Estimate(value)
    spread = interval(samples)
    return Estimate(value, spread.low, spread.high)
