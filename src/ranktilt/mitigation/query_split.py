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
from ranktilt.rankers.fit_provenance import same_names

Ints = npt.NDArray[np.int64]
SHARES = (0.4, 0.2, 0.4)
"""Default share of the queries on each side, in the order of `SIDES`."""
SIDES = ("fit", "select", "test")
"""Names of the sides: to fit methods, to select a strength, and to test the result."""
_LARGEST_LINKED_SHARE = 0.5
"""Share of all queries above which linked queries are separated after all.

Queries are linked if they share a relevant origin, and linked queries go to one side. If they were
more than this, one side would get nearly all queries.
"""


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """How much was left out of the side to fit on, because it also belongs to other sides.

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
    """The collection with all queries, if sides were drawn from it; None if they were given."""
    fitted_on: str = ""
    """Name of the collection to fit on, if it is another one; empty if it is the same."""

    @cached_property
    def held_out(self) -> set[str]:
        """Origins, in the collection to fit on, that are relevant to queries of other sides."""
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
            Most queries to fit on, and to select by. If there are more, a sample is drawn. By
            default there is no limit.
        seed : int, optional
            Seed of the sample.
        """
        judgments_before = fit.qrels.height
        later = [_judged_only(side).queries.select("id") for side in (select, test)]
        rest = _without_origins(fit, relevant_origins(select) | relevant_origins(test))
        if rest.has_judgments:
            rest = rest.only_queries(
                rest.queries_with_judgments.join(pl.concat(later), on="id", how="anti")["id"]
            )
        if not rest.has_judgments:
            raise UserError(
                "no query is left to fit on: every document relevant to one is also relevant to a "
                "query of the other sides"
            )
        lost = judgments_before - rest.qrels.height
        return cls(
            fit=at_most(rest, most, seed=seed),
            select=at_most(_apart(select, test), most, seed=seed),
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

        Left out are documents that are relevant to a query to select by or to test on, and these
        queries. Two collections may use the same ids for different things. So documents and queries
        are compared by their texts (`same_names`). A document is shared if any of its versions is.
        The parameters are those of `from_sides`.
        """
        name = str(fit.spec.get("path") or "another collection")
        sides = (select, test)
        origins = _same_origins(fit, sides)
        rest = _without_origins(fit, origins) if origins and fit.has_judgments else fit
        known = [_judged_only(side).queries.select(name="id", key="text") for side in sides]
        repeated = same_names(pl.concat(known), fit.queries.select(name="id", key="text"))
        judged = rest.queries_with_judgments["id"]
        left = [query for query in judged if query not in repeated]
        if not left or (fit.has_judgments and not rest.has_judgments):
            raise UserError(
                f"no query of {name} is left to fit on: each is used to select or to test, or its "
                "relevant documents are relevant to one that is"
            )
        left_out = LeftOut(
            judgments=fit.qrels.height - rest.qrels.height,
            judgments_before=fit.qrels.height,
            documents=len(origins),
            queries=len(judged) - len(left),
        )
        return cls(
            fit=at_most(rest.only_queries(left), most, seed=seed),
            select=at_most(_apart(select, test), most, seed=seed),
            test=test,
            left_out=left_out,
            fitted_on=name,
        )


def split_across(
    collection: Collection, fit: Collection, *, most: int | None = None, seed: int = 0
) -> QuerySplit:
    """Draw the queries to select by and to test on, and fit on another collection.

    See `QuerySplit.across`.
    """
    select, test = _drawn_parts(collection, SHARES[1:], seed)
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
    if len(shares) != len(SIDES) or not all(0 < share < 1 for share in shares):
        raise UserError(
            f"expected three shares between 0 and 1, got {', '.join(map(str, shares)) or 'none'}"
        )
    fit, select, test = _drawn_parts(collection, shares, seed)
    if collection.has_judgments:
        split = QuerySplit.from_sides(fit, select, test)
    else:
        split = QuerySplit(fit=fit, select=select, test=test)
    return replace(split, drawn_from=collection)


def _drawn_parts(
    collection: Collection, shares: Sequence[float], seed: int
) -> Iterator[Collection]:
    """Draw a side for each share, and yield them; linked queries stay on one side.

    With three shares these are all of `SIDES`, with two the last two: to select and to test.
    """
    names, sides = collection.queries_with_judgments["id"], SIDES[-len(shares) :]
    if len(names) < len(sides):
        purposes = f"{', '.join(sides[:-1])} and {sides[-1]}"
        raise UserError(
            f"a bench needs queries to {purposes} on; the collection has {len(names)} to rank"
        )
    linked = _linked(collection, names)
    sizes = np.bincount(linked)
    # Queries of a set that is too large get a number of their own, so that each is drawn by itself.
    is_separated = sizes[linked] > _LARGEST_LINKED_SHARE * len(names)
    own_numbers = sizes.size + np.arange(len(names))
    linked = np.unique(np.where(is_separated, own_numbers, linked), return_inverse=True)[1]
    side = _drawn(np.bincount(linked), np.asarray(shares), seed)[linked]
    if len(set(side.tolist())) < len(sides):
        # There are two large sets, so that a side got nothing: draw single queries.
        side = _drawn(np.ones(len(names), dtype=np.int64), np.asarray(shares), seed)
    for number in range(len(sides)):
        yield collection.only_queries(names.filter(pl.Series(side == number)))


def _apart(select: Collection, test: Collection) -> Collection:
    """Leave out the queries to select by that are tested on too."""
    return select.only_queries(
        select.queries_with_judgments.join(_judged_only(test).queries, on="id", how="anti")["id"]
    )


def _judged_only(collection: Collection) -> Collection:
    """Return the collection with its judged queries only."""
    return collection.only_queries(collection.queries_with_judgments["id"])


def _linked(collection: Collection, names: pl.Series) -> Ints:
    """Return the number of each query's set of linked queries.

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


def _drawn(sizes: Ints, shares: npt.NDArray[np.float64], seed: int) -> Ints:
    """Return the side of each set of linked queries.

    The largest sets are placed first, and sets of one size in random order. Each goes to the side
    that still lacks most queries.
    """
    side = np.empty(len(sizes), dtype=np.int64)
    lacking = shares / shares.sum() * sizes.sum()
    order = np.random.default_rng(seed).permutation(len(sizes))
    for number in order[np.argsort(-sizes[order], kind="stable")].tolist():
        side[number] = int(np.argmax(lacking))
        lacking[side[number]] -= sizes[number]
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


def at_most(collection: Collection, most: int | None, *, seed: int = 0) -> Collection:
    """Return the collection with at most `most` queries, drawn at random; None keeps all."""
    names = collection.queries_with_judgments["id"]
    if most is None or len(names) <= most:
        return collection
    return collection.only_queries(names.sample(most, seed=seed))
