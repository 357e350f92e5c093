"""Lists for a fair-ranking audit: for each query, relevant and irrelevant items of two groups.

An *item* is a document of a query's list. One group is *protected*, such as female authors. A
*block* is a part of the list with the same relevance and the same group; its *pool* is the
documents that it can be drawn from. A *label* is the group of a document in the data, such as
``Europe``. The spec of a collection or run says how it was made; the source is the data that items
are drawn from.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt._version import __version__
from ranktilt.data.collection import Collection
from ranktilt.data.labels.group_names import read_side
from ranktilt.data.runs.run import Run
from ranktilt.data.text.label_values import SEVERAL
from ranktilt.errors import UserError, counted, unknown_name
from ranktilt.papers.wang.trec_fair import LabelledDocuments

Rows = npt.NDArray[np.int64]
"""Rows of documents."""
Bools = npt.NDArray[np.bool_]
"""One truth value for each document."""

BLOCKS = (
    "relevant unprotected",
    "relevant protected",
    "irrelevant unprotected",
    "irrelevant protected",
)
"""Blocks in the order of the initial ranking of DELTR (Zehlike & Castillo, WWW 2020).

DELTR is a method of fair learning to rank.
"""
_DEPTH = 20
"""Cutoff of precision: the paper measures P@20."""
_NAMES_IN_MESSAGES = 12
"""Most labels that a message lists."""


@dataclass(frozen=True, kw_only=True)
class ListRules:
    """How a query's items are drawn.

    With `blocks`, each block has its own number of items. If there are too few documents for it, it
    is filled with documents of the other group and the same relevance; if these are too few as
    well, the query is left out. Without `blocks`, half of the items are drawn from the relevant
    documents and half from the others, whatever their group, so that groups keep their natural
    shares.

    Queries with fewer than `fewest` relevant documents are left out.
    """

    items: int = 200
    """Number of items of a query."""
    blocks: tuple[int, int, int, int] | None = None
    """Number of items of each of `BLOCKS`; None for natural shares."""
    min_judged: int | None = None
    """Fewest relevant documents of a query; None for as many as `items`."""
    seed: int = 0
    """Seed of the draws."""

    def __post_init__(self) -> None:
        if self.items < 2:
            raise UserError(f"expected at least 2 items per query, got {self.items}")
        if self.blocks is None:
            return
        if min(self.blocks) < 0:
            raise UserError(f"expected blocks of at least 0 items, got {min(self.blocks)}")
        if sum(self.blocks) != self.items:
            sizes = ",".join(map(str, self.blocks))
            raise UserError(
                f"blocks {sizes} sum to {sum(self.blocks):,}, "
                f"expected as many as items: {self.items:,}"
            )

    @property
    def fewest(self) -> int:
        """Number of relevant documents that a query needs."""
        return self.items if self.min_judged is None else self.min_judged


@dataclass(frozen=True, kw_only=True)
class FairRanking:
    """Each query's items in one collection, in a shuffled order and in the initial one."""

    collection: Collection
    """The items of all queries, with their judgments."""
    candidates: Run
    """Each query's items, shuffled, so that their order favours nobody."""
    initial: Run
    """Block after block, relevant and unprotected ones first, as in Wang et al. (NAACL 2024)."""
    counts: Mapping[str, Any]
    """Numbers of the lists and of what was left out, by name."""


def build_fair_ranking(source: LabelledDocuments, protected: str, lists: ListRules) -> FairRanking:
    """Draw each query's items, relevant and irrelevant ones of both groups, into a collection.

    Irrelevant items are drawn from documents that are relevant to other queries only. All documents
    of the collection that are relevant to a query are judged so, in its own list or not.

    The lists are those of Wang et al., NAACL 2024, sec. 3; the sizes of its blocks are not
    published.

    Parameters
    ----------
    source : LabelledDocuments
        Documents with labels, and their queries.
    protected : str
        The protected group: a label, a union (``Europe|Asia``), or all documents without a label
        (``non-Europe``). A document with labels of both groups belongs to the one that is named
        here; a document without any label is left out.
    lists : ListRules
        How items are drawn.

    Raises
    ------
    UserError
        If no document has the label, or no query has enough documents.
    """
    members = _group_members(source, protected)
    relevant = _relevant_rows(source, members.ids)
    drawing = _draw(relevant, members.is_protected, lists)
    if not drawing.lists:
        longest = max(map(len, relevant.values()), default=0)
        most = counted(longest, "relevant document", "relevant documents")
        hint = "ask for fewer --items, or name other --blocks"
        raise UserError(
            f"no query has enough documents of known groups (the most has {most}): {hint}"
        )
    items = {query: np.concatenate(drawn.blocks) for query, drawn in drawing.lists.items()}
    rows = np.unique(np.concatenate(list(items.values())))
    docs = source.texts(members.ids.gather(rows).to_list())
    docs = docs.with_columns(members.labels.gather(rows).alias(source.by))
    queries = source.queries.filter(pl.col("id").is_in(list(items)))
    counts = {
        **members.counts,
        "queries": len(items),
        "queries_of": len(relevant),
        "left_out": dict(drawing.left_out),
        "filled": drawing.filled,
        **_shares(drawing, lists),
        "documents": docs.height,
    }
    spec = _spec(source, protected, lists, counts)
    collection = Collection(docs, queries, _judgments(source, queries, docs), spec)
    # Rows of the collection's documents, which are sorted by their rows in the source.
    initial = {query: np.searchsorted(rows, drawn_rows) for query, drawn_rows in items.items()}
    shuffled = {
        query: _random(lists.seed, query, "order").permutation(drawn_rows)
        for query, drawn_rows in initial.items()
    }
    shuffled_spec = {
        **spec,
        "ranker": "shuffled items",
        "order": "each query's items shuffled: their order favours nobody",
    }
    initial_spec = {
        **spec,
        "ranker": "initial ranking",
        "order": f"blocks one after the other: {', '.join(BLOCKS)}",
    }
    return FairRanking(
        collection=collection,
        candidates=_run(collection, shuffled, shuffled_spec),
        initial=_run(collection, initial, initial_spec),
        counts=counts,
    )


def _judgments(
    source: LabelledDocuments, queries: pl.DataFrame, docs: pl.DataFrame
) -> pl.DataFrame:
    """Return judgments of the documents that are relevant to each query, in its list or not."""
    query_ids, doc_ids = queries.select(query_id="id"), docs.select(doc_id="id")
    pairs = source.relevant.join(query_ids, on="query_id", how="semi", maintain_order="left")
    pairs = pairs.join(doc_ids, on="doc_id", how="semi", maintain_order="left")
    return pairs.with_columns(grade=pl.lit(1, pl.Int32))


@dataclass(frozen=True, eq=False, kw_only=True)
class _GroupMembers:
    """The documents of both groups, in one list."""

    ids: pl.Series
    """Ids of the documents."""
    labels: pl.Series
    """Labels of each document in one text, as in the column of a collection."""
    is_protected: Bools
    """Whether each document is in the protected group."""
    counts: Mapping[str, Any]
    """Numbers of documents with and without labels, by name."""


def _group_members(source: LabelledDocuments, protected: str) -> _GroupMembers:
    """Tell which documents are in the protected group, and which in the other one.

    Documents without a label are in neither.
    """
    labels = source.labels["labels"]
    every_label = labels.explode().drop_nulls()
    names = every_label.value_counts(sort=True).to_series(0).head(_NAMES_IN_MESSAGES).to_list()
    side = read_side(protected, every_label.unique(), source.by)
    if side is None:
        raise unknown_name(f"protected {source.by}", protected, names)
    is_member = pl.element().is_in(list(side.members))
    is_inside = labels.list.eval(is_member).list.any().fill_null(False)
    is_outside = labels.list.eval(~is_member).list.any().fill_null(False)
    members = source.labels.select(
        "id",
        labels=labels.list.join(SEVERAL),
        is_protected=~is_inside if side.is_complement else is_inside,
    ).filter(is_inside | is_outside)
    if members["is_protected"].n_unique() < 2:
        reason = f"{side.union!r} is every {source.by}"
        if len(names) == 1:
            reason = f"only {source.by} {names[0]!r}"
        raise UserError(f"nothing to compare: {reason}; expected two groups of {source.by} or more")
    return _GroupMembers(
        ids=members["id"],
        labels=members["labels"],
        is_protected=members["is_protected"].to_numpy(),
        counts={
            "unlabelled": len(labels) - members.height,
            "several": int((is_inside & is_outside).sum()),
            "several_are": side.union,
            "of": len(labels),
        },
    )


def _relevant_rows(source: LabelledDocuments, ids: pl.Series) -> dict[str, Rows]:
    """Return the rows of the documents with these `ids` that are relevant to each query."""
    table = pl.DataFrame({"doc_id": ids, "row": np.arange(len(ids))})
    pairs = source.relevant.join(table, on="doc_id", how="inner", maintain_order="left")
    rows = {
        str(query): pairs_of_query["row"].to_numpy()
        for (query,), pairs_of_query in pairs.group_by("query_id", maintain_order=True)
    }
    return {query: rows.get(query, np.empty(0, np.int64)) for query in source.queries["id"]}


@dataclass(frozen=True, eq=False, kw_only=True)
class _DrawnItems:
    """Items of one query."""

    blocks: list[Rows]
    """Rows of documents, a list for each of `BLOCKS`."""
    filled: int = 0
    """Number of items of the other group with which blocks were filled."""


@dataclass(frozen=True, eq=False, kw_only=True)
class _Drawing:
    """Items of all queries."""

    lists: Mapping[str, _DrawnItems]
    """Items by query."""
    left_out: Mapping[str, int]
    """Number of queries that were left out, by the reason."""

    @property
    def filled(self) -> dict[str, int]:
        """Number of filled items of each query that has some."""
        return {query: drawn.filled for query, drawn in self.lists.items() if drawn.filled}


def _draw(relevant: Mapping[str, Rows], is_protected: Bools, rules: ListRules) -> _Drawing:
    """Draw the items of each query that has enough documents."""
    lists, left_out = dict[str, _DrawnItems](), Counter[str]()
    fewest = counted(rules.fewest, "relevant document", "relevant documents")
    for query, rows in relevant.items():
        if len(rows) < rules.fewest:
            left_out[f"fewer than {fewest}"] += 1
            continue
        drawn = _draw_items(query, rows, is_protected, rules)
        if sum(map(len, drawn.blocks)) < rules.items:
            left_out["too few documents for a block"] += 1
            continue
        lists[query] = drawn
    return _Drawing(lists=lists, left_out=left_out)


def _draw_items(query: str, relevant: Rows, is_protected: Bools, rules: ListRules) -> _DrawnItems:
    """Draw the items of one query from the relevant documents and from all others."""
    random = _random(rules.seed, query, "items")
    irrelevant = np.setdiff1d(np.arange(len(is_protected)), relevant)
    relevant_pool = random.permutation(np.sort(relevant))
    irrelevant_pool = random.permutation(irrelevant)
    if rules.blocks is not None:
        pools = _by_group(relevant_pool, is_protected) + _by_group(irrelevant_pool, is_protected)
        return _filled(pools, rules.blocks)
    half = rules.items // 2
    relevant_items = relevant_pool[:half]
    irrelevant_items = irrelevant_pool[: rules.items - half]
    blocks = _by_group(relevant_items, is_protected) + _by_group(irrelevant_items, is_protected)
    return _DrawnItems(blocks=blocks)


def _by_group(rows: Rows, is_protected: Bools) -> list[Rows]:
    """Split documents into unprotected and protected ones."""
    return [rows[~is_protected[rows]], rows[is_protected[rows]]]


def _filled(pools: Sequence[Rows], block_sizes: Sequence[int]) -> _DrawnItems:
    """Take the items of each block from its pool of documents, in the order of `BLOCKS`.

    If a pool has too few documents, the pool of the other group with the same relevance adds some.
    """
    sizes = [min(len(pool), size) for pool, size in zip(pools, block_sizes, strict=True)]
    lacking = [size - drawn for size, drawn in zip(block_sizes, sizes, strict=True)]
    filled = 0
    # Each block, and the block of the other group with the same relevance.
    for block, substitute in ((0, 1), (1, 0), (2, 3), (3, 2)):
        moved = min(lacking[block], len(pools[substitute]) - sizes[substitute])
        sizes[substitute] += moved
        filled += moved
    blocks = [pool[:size] for pool, size in zip(pools, sizes, strict=True)]
    return _DrawnItems(blocks=blocks, filled=filled)


def _random(seed: int, query: str, purpose: str) -> np.random.Generator:
    """Return a generator for one query, so that other queries do not change its draws."""
    digest = hashlib.blake2b(f"{purpose} {query}".encode(), digest_size=8).digest()
    return np.random.default_rng([seed, int.from_bytes(digest)])


def _shares(drawing: _Drawing, rules: ListRules) -> dict[str, Any]:
    """Return the sizes of blocks and groups, over all lists."""
    sizes = np.array([list(map(len, drawn.blocks)) for drawn in drawing.lists.values()])
    _, relevant_protected, _, irrelevant_protected = sizes.T
    protected = relevant_protected + irrelevant_protected
    smaller_group = np.minimum(protected, rules.items - protected)
    low, median, high = int(protected.min()), float(np.median(protected)), int(protected.max())
    relevant_share = float(sizes[:, :2].sum(axis=1).mean() / rules.items)
    block_means = sizes.mean(axis=0).round(2).tolist()
    protected_share = float(protected.mean() / rules.items)
    return {
        "items": rules.items,
        "blocks": dict(zip(BLOCKS, block_means, strict=True)),
        "protected": [low, median, high],
        "protected_share": protected_share,
        "queries_with_a_group_below_2": int((smaller_group < 2).sum()),
        "precision_by_chance": relevant_share * min(1, rules.items / _DEPTH),
    }


def _spec(
    source: LabelledDocuments, protected: str, lists: ListRules, counts: Mapping[str, Any]
) -> dict[str, Any]:
    """Return inputs, options and numbers, as JSON."""
    blocks = "natural" if lists.blocks is None else list(lists.blocks)
    return {
        "built": "fair-ranking",
        "ranktilt": __version__,
        **source.spec,
        "protected": protected,
        "items": lists.items,
        "seed": lists.seed,
        "blocks": blocks,
        "min_judged": lists.fewest,
        "split": "test",
        "counts": dict(counts),
    }


def _run(collection: Collection, items: Mapping[str, Rows], spec: Mapping[str, Any]) -> Run:
    """Make a run of items in this order; scores fall by 1 from rank to rank."""
    lengths = [len(rows) for rows in items.values()]
    docs = np.concatenate(list(items.values())).astype(np.int32)
    scores = np.concatenate([np.arange(length, 0, -1.0) for length in lengths])
    run_spec = {name: value for name, value in spec.items() if name not in ("counts", "split")}
    return Run(
        queries=tuple(items),
        offsets=np.cumsum([0, *lengths]),
        docs=docs,
        scores=scores,
        ids=collection.ids,
        spec=run_spec,
    )


def summary(built: FairRanking, protected: str) -> Iterator[tuple[str, str]]:
    """Yield the numbers of the lists, each as a name and a text, to print."""
    counts = built.counts
    left_out = "".join(
        f"; {number} left out: {reason}" for reason, number in counts["left_out"].items()
    )
    yield "queries", f"{counts['queries']:,} of {counts['queries_of']:,}{left_out}"
    yield "items", f"{counts['items']:,} per query, {counts['documents']:,} documents in all"
    for name, mean in counts["blocks"].items():
        yield name, f"{mean:.1f} per query"
    low, median, high = counts["protected"]
    share = f"{100 * counts['protected_share']:.1f} % of the items"
    yield protected, f"{share}, {low} to {high} per query (median {median:g})"
    if counts["filled"]:
        queries = counted(len(counts["filled"]), "query", "queries")
        filled = sum(counts["filled"].values())
        yield "filled", f"{filled:,} items of {queries}, from the other group"
    yield "no label", f"{counted(counts['unlabelled'], 'document', 'documents')}, left out"
    several = counted(counts["several"], "document", "documents")
    yield "labels of both sides", f"{several}, counted as {counts['several_are']}"
    yield f"P@{_DEPTH} by chance", f"{counts['precision_by_chance']:.3f}"
