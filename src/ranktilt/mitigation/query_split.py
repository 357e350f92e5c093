"""Split queries into those to fit a correction on, to choose its strength by, and to test it on.

Each of these three sets of queries, with its judgments, is a *side*. Sides must not share relevant
documents: a correction could remember them. An *origin* is a document together with all versions of
it by other sources, so sides must not share relevant origins either.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from ranktilt.data.collection import Collection
from ranktilt.errors import UserError
from ranktilt.field_checks import require_seed
from ranktilt.rankers.fit_provenance import same_names

Ints = npt.NDArray[np.int64]
SHARES = (0.4, 0.2, 0.4)
"""Default share of the queries on each side, in the order of `SIDES`."""
SIDES = ("fit", "select", "test")
"""Names of the sides: to fit methods, to select a strength, and to test the result."""
_LARGEST_LINKED_SHARE = 0.5
"""Maximum share of all queries that is kept together because the queries are linked.

Queries are linked if they share a relevant origin, and linked queries go to the same side. A larger
set would give one side nearly all queries, so it is separated.
"""


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """Counts of what was left out of the side to fit on, because other sides have it too.

    The last two counts are 0 unless methods are fitted on another collection.
    """

    judgments: int = 0
    """Number of judgments left out: their documents are relevant to queries of other sides."""
    judgments_before: int = 0
    """Number of judgments before any were left out."""
    documents: int = 0
    """Number of the other collection's documents that are relevant to queries of other sides."""
    queries: int = 0
    """Number of the other collection's queries that are also on other sides."""


@dataclass(frozen=True, kw_only=True)
class QuerySplit:
    """Three sides: collections of the same documents, each with other queries and judgments."""

    fit: Collection
    """Queries to fit on."""
    select: Collection
    """Queries to choose a strength by."""
    test: Collection
    """Queries to test on."""
    left_out: LeftOut = LeftOut()
    """What was left out of the queries to fit on."""
    drawn_from: Collection | None = None
    """The collection from whose queries the sides were drawn; None if the sides were given."""
    fitted_on: str = ""
    """Name of another collection to fit on; empty if it is the same collection."""

    @cached_property
    def held_out(self) -> set[str]:
        """Origins of the collection to fit on that nothing may be learned from.

        They are relevant to queries of other sides.
        """
        if self.fitted_on:
            return _same_origins(self.fit, (self.select, self.test))
        return relevant_origins(self.select) | relevant_origins(self.test)

    @classmethod
    def from_sides(
        cls,
        fit: Collection,
        select: Collection,
        test: Collection,
        *,
        most: int | None = None,
        seed: int = 0,
    ) -> Self:
        """Make the sides of one collection share nothing.

        The queries to fit on lose all judgments of documents that are relevant, in any version, to
        a query of the other sides. Queries that are on a later side too, or that have no relevant
        document left, are left out.

        Parameters
        ----------
        fit, select, test : Collection
            The collection with the queries of each side: its own splits, or drawn ones.
        most : int, optional
            Maximum number of queries to fit on, and to select by. If there are more, a sample is
            drawn. By default there is no limit.
        seed : int, optional
            Random seed of the sample.
        """
        judgments_before = fit.qrels.height
        other_queries = [_judged_only(side).queries.select("id") for side in (select, test)]
        rest = _without_origins(fit, relevant_origins(select) | relevant_origins(test))
        if rest.has_judgments:
            own_queries = rest.queries_with_judgments.join(
                pl.concat(other_queries), on="id", how="anti"
            )
            rest = rest.only_queries(own_queries["id"])
        if not rest.has_judgments:
            raise UserError(
                "no query is left to fit on: every document relevant to one is also relevant to a "
                "query of the other sides"
            )
        lost = judgments_before - rest.qrels.height
        return cls(
            fit=limit_queries(rest, most, seed=seed),
            select=limit_queries(_without_tested(select, test), most, seed=seed),
            test=test,
            left_out=LeftOut(judgments=lost, judgments_before=judgments_before),
        )

    @classmethod
    def across(
        cls,
        fit: Collection,
        select: Collection,
        test: Collection,
        *,
        most: int | None = None,
        seed: int = 0,
    ) -> Self:
        """Fit on another collection, and leave out what it shares with the sides of this one.

        Left out are the queries to select by and to test on, and documents that are relevant to
        them. Two collections may use the same ids for different things, so documents and queries
        are compared by their texts. A document is shared if any of its versions is.

        Parameters
        ----------
        fit : Collection
            The other collection.
        select, test : Collection
            The collection with the queries to select by, and to test on.
        most : int, optional
            Maximum number of queries to fit on, and to select by. If there are more, a sample is
            drawn. By default there is no limit.
        seed : int, optional
            Random seed of the sample.
        """
        name = str(fit.spec.get("path") or "another collection")
        sides = (select, test)
        origins = _same_origins(fit, sides)
        rest = _without_origins(fit, origins) if origins and fit.has_judgments else fit
        side_queries = [_judged_only(side).queries.select(name="id", key="text") for side in sides]
        shared = same_names(pl.concat(side_queries), fit.queries.select(name="id", key="text"))
        judged = rest.queries_with_judgments["id"]
        kept_queries = [query for query in judged if query not in shared]
        if not kept_queries or (fit.has_judgments and not rest.has_judgments):
            raise UserError(
                f"no query of {name} is left to fit on: each is used to select or to test, or its "
                "relevant documents are relevant to one that is"
            )
        left_out = LeftOut(
            judgments=fit.qrels.height - rest.qrels.height,
            judgments_before=fit.qrels.height,
            documents=len(origins),
            queries=len(judged) - len(kept_queries),
        )
        return cls(
            fit=limit_queries(rest.only_queries(kept_queries), most, seed=seed),
            select=limit_queries(_without_tested(select, test), most, seed=seed),
            test=test,
            left_out=left_out,
            fitted_on=name,
        )


def split_across(
    collection: Collection, fit: Collection, *, most: int | None = None, seed: int = 0
) -> QuerySplit:
    """Draw the queries to select by and to test on, and fit on another collection.

    Queries and documents that the other collection shares with these sides are left out. There are
    at most `most` queries to fit on, and to select by.
    """
    select, test = _draw_sides(collection, SHARES[1:], seed)
    return replace(
        QuerySplit.across(fit, select, test, most=most, seed=seed), drawn_from=collection
    )


def split_queries(
    collection: Collection, shares: Sequence[float] = SHARES, *, seed: int = 0
) -> QuerySplit:
    """Draw the queries to fit on, to select by and to test on.

    Queries that share a relevant document, in any version, stay on one side. With hundreds of
    relevant documents per query, this may link so many queries that a side would get nearly all or
    none. Linked queries are then split anyway, and the queries to fit on lose the judgments that
    they share with others.

    Parameters
    ----------
    collection : Collection
        With at least three queries.
    shares : sequence of float, optional
        Shares of the queries that go to each side.
    seed : int, optional
        Seed of the draw.

    Returns
    -------
    QuerySplit
        Its sides, in the order of the collection's queries.

    Raises
    ------
    UserError
        If there are fewer than three queries, shares are out of range, or no query to fit on is
        left.
    """
    require_seed(seed)
    if len(shares) != len(SIDES) or not all(0 < share < 1 for share in shares):
        raise UserError(
            f"expected three shares between 0 and 1, got {', '.join(map(str, shares)) or 'none'}"
        )
    fit, select, test = _draw_sides(collection, shares, seed)
    if collection.has_judgments:
        split = QuerySplit.from_sides(fit, select, test)
    else:
        split = QuerySplit(fit=fit, select=select, test=test)
    return replace(split, drawn_from=collection)


def _draw_sides(collection: Collection, shares: Sequence[float], seed: int) -> Iterator[Collection]:
    """Draw a side for each share, and yield them; linked queries stay on one side.

    With three shares these are all of `SIDES`, with two the last two: to select and to test.
    """
    names, sides = collection.queries_with_judgments["id"], SIDES[-len(shares) :]
    if len(names) < len(sides):
        purposes = f"{', '.join(sides[:-1])} and {sides[-1]}"
        raise UserError(
            f"a bench needs queries to {purposes} on; the collection has {len(names)} to rank"
        )
    set_numbers = _linked_sets(collection, names)
    sizes = np.bincount(set_numbers)
    # Each query of a set that is too large becomes a set by itself.
    is_separated = sizes[set_numbers] > _LARGEST_LINKED_SHARE * len(names)
    new_numbers = sizes.size + np.arange(len(names))
    set_numbers = np.where(is_separated, new_numbers, set_numbers)
    set_numbers = np.unique(set_numbers, return_inverse=True)[1]
    side = _assign_sides(np.bincount(set_numbers), np.asarray(shares), seed)[set_numbers]
    if len(set(side.tolist())) < len(sides):
        # Large sets left a side without queries, so single queries are drawn.
        side = _assign_sides(np.ones(len(names), dtype=np.int64), np.asarray(shares), seed)
    for number in range(len(sides)):
        yield collection.only_queries(names.filter(pl.Series(side == number)))


def _without_tested(select: Collection, test: Collection) -> Collection:
    """Leave out the queries to select by that are tested on too."""
    return select.only_queries(
        select.queries_with_judgments.join(_judged_only(test).queries, on="id", how="anti")["id"]
    )


def _judged_only(collection: Collection) -> Collection:
    """Return the collection with its judged queries only."""
    return collection.only_queries(collection.queries_with_judgments["id"])


def _linked_sets(collection: Collection, names: pl.Series) -> Ints:
    """Return the number of each query's set of linked queries; `names` are the queries' ids.

    Queries that share a relevant origin are linked, directly or through other queries. So a set is
    a connected component of the graph of queries and their relevant origins.
    """
    number = pl.DataFrame({"query_id": names, "query": np.arange(len(names))})
    relevant = _relevant(collection).join(number, on="query_id", how="inner")
    origins = np.empty(0, np.int64)
    if relevant.height:
        origins = relevant["origin"].rank("dense").to_numpy().astype(np.int64) - 1
    size = len(names) + int(origins.max(initial=-1)) + 1
    graph = coo_matrix(
        (np.ones(relevant.height), (relevant["query"].to_numpy(), len(names) + origins)),
        shape=(size, size),
    )
    labels: Ints = connected_components(graph, directed=False)[1][: len(names)].astype(np.int64)
    return np.unique(labels, return_inverse=True)[1]


def _assign_sides(sizes: Ints, shares: npt.NDArray[np.float64], seed: int) -> Ints:
    """Return the side of each set of linked queries, as an index in `shares`.

    `sizes` are the numbers of queries in the sets. The largest sets are assigned first, and sets of
    the same size in random order. Each goes to the side that lacks the most queries.
    """
    side = np.empty(len(sizes), dtype=np.int64)
    missing_counts = shares / shares.sum() * sizes.sum()  # of queries, by side
    order = np.random.default_rng(seed).permutation(len(sizes))
    # The sort is stable, so sets of the same size stay in random order.
    for number in order[np.argsort(-sizes[order], kind="stable")].tolist():
        side[number] = int(np.argmax(missing_counts))
        missing_counts[side[number]] -= sizes[number]
    return side


def _relevant(collection: Collection) -> pl.DataFrame:
    """Return the query and the origin of each relevant document of the collection."""
    origins = collection.docs.select(doc_id="id", origin="origin")
    return collection.qrels.filter(pl.col("grade") > 0).join(origins, on="doc_id", how="inner")


def relevant_origins(collection: Collection) -> set[str]:
    """Return the origins of all documents that are relevant to a query."""
    return set(_relevant(collection)["origin"])


def _same_origins(collection: Collection, sides: Iterable[Collection]) -> set[str]:
    """Return the origins of another collection that are relevant to a query of these sides.

    Documents are compared by their texts.
    """
    versions = [
        side.docs.join(_relevant(side).select("origin").unique(), on="origin", how="semi")
        for side in sides
    ]
    *ours, theirs = (
        docs.select(name="origin", key=pl.col("text").str.strip_chars())
        for docs in (*versions, collection.docs)
    )
    return same_names(pl.concat(ours), theirs)


def _without_origins(collection: Collection, origins: set[str]) -> Collection:
    """Leave out the judgments of documents of these origins.

    Queries without a relevant document lose their other judgments too.
    """
    docs = collection.docs.filter(pl.col("origin").is_in(list(origins))).select(doc_id="id")
    rest = collection.qrels.join(docs, on="doc_id", how="anti", maintain_order="left")
    relevant = rest.filter(pl.col("grade") > 0).select("query_id").unique()
    rest = rest.join(relevant, on="query_id", how="semi", maintain_order="left")
    return collection.with_judgments(collection.queries, rest, collection.spec)


def limit_queries(collection: Collection, most: int | None, *, seed: int = 0) -> Collection:
    """Return the collection with at most `most` queries, drawn at random; None keeps all."""
    names = collection.queries_with_judgments["id"]
    if most is None or len(names) <= most:
        return collection
    return collection.only_queries(names.sample(most, seed=seed))
