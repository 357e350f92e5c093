"""Lists of equal length for a fair-ranking audit: relevant and irrelevant items of two groups for each query."""

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
from ranktilt.data.group_names import read_side
from ranktilt.data.run import Run
from ranktilt.data.text.label_values import SEVERAL
from ranktilt.errors import UserError, counted, unknown
from ranktilt.papers.wang.trec_fair import LabelledDocuments

Rows = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

BLOCKS = (
    "relevant unprotected",
    "relevant protected",
    "irrelevant unprotected",
    "irrelevant protected",
)
"""In the order of the initial ranking: that of DELTR (Zehlike & Castillo, WWW 2020)."""
_DEPTH = 20
_SHOWN = 12


@dataclass(frozen=True, kw_only=True)
class ListRules:
    """How a query's items are drawn.

    `blocks` says how many of each of `BLOCKS`; None draws half of the items from the relevant
    documents and half from the others, whatever their group, so that groups keep their natural
    shares. A block with too few documents is filled from the other group's of the same relevance; a
    query that is short all the same is left out. So are queries with fewer than `min_judged`
    relevant documents (as many as `items` where None).
    """

    items: int = 200
    blocks: tuple[int, int, int, int] | None = None
    min_judged: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.items < 2:
            raise UserError(f"expected at least 2 items a query, got {self.items}")
        if self.blocks is None:
            return
        if min(self.blocks) < 0:
            raise UserError(f"expected blocks of at least 0 items, got {min(self.blocks)}")
        if sum(self.blocks) != self.items:
            shown = ",".join(map(str, self.blocks))
            raise UserError(
                f"blocks {shown} sum to {sum(self.blocks):,}, expected as many as items: {self.items:,}"
            )

    @property
    def fewest(self) -> int:
        """Relevant documents that a query needs."""
        return self.items if self.min_judged is None else self.min_judged


@dataclass(frozen=True)
class FairRanking:
    """Each query's items in one collection, in a shuffled order and in the initial one."""

    collection: Collection
    candidates: Run
    """Each query's items, shuffled: their order favours nobody."""
    initial: Run
    """Block after block, relevant and unprotected ones first, as in Wang et al. (NAACL 2024)."""
    counts: Mapping[str, Any]


def build_fair_ranking(source: LabelledDocuments, protected: str, lists: ListRules) -> FairRanking:
    """Draw each query's items, relevant and irrelevant ones of both groups, and make a collection of them.

    `protected` is a group, a union (``Europe|Asia``), or all documents that name none
    (``non-Europe``), as every verb reads it. A document with labels of both sides is on the one
    that is named; one without a label is left out.

    Irrelevant items are drawn from documents that are relevant to other queries only. Documents
    that are relevant to a query are judged so wherever they are in the collection, in its own list
    or not.

    Wang et al., NAACL 2024, sec. 3; the sizes of its blocks are not published. `UserError` if a
    group or a value is not there, or no query has enough documents.
    """
    members, told = _assign_groups(source, protected)
    ids, names = members["id"], members["labels"]
    relevant = _relevant_rows(source, ids)
    drawn, dropped, filled = _draw(relevant, members["protected"].to_numpy(), lists)
    if not drawn:
        most = counted(
            max(map(len, relevant.values()), default=0), "relevant document", "relevant documents"
        )
        hint = "ask for fewer --items, or name other --blocks"
        raise UserError(
            f"no query has enough documents of known groups (the most has {most}): {hint}"
        )
    items = [np.concatenate(blocks) for blocks in drawn.values()]
    rows = np.unique(np.concatenate(items))
    chosen = ids.gather(rows)
    docs = source.texts(chosen.to_list()).with_columns(names.gather(rows).alias(source.by))
    queries = source.queries.filter(pl.col("id").is_in(list(drawn)))
    judged = source.relevant.join(
        queries.select(query_id="id"), on="query_id", how="semi", maintain_order="left"
    )
    judged = judged.join(docs.select(doc_id="id"), on="doc_id", how="semi", maintain_order="left")
    counts = {
        **told,
        "queries": len(drawn),
        "queries_of": len(relevant),
        "left_out": dict(dropped),
        "filled": filled,
        **_shares(drawn, lists),
        "documents": docs.height,
    }
    spec = _spec(source, protected, lists, counts)
    collection = Collection(docs, queries, judged.with_columns(grade=pl.lit(1, pl.Int32)), spec)
    places = {name: np.searchsorted(rows, found) for name, found in zip(drawn, items, strict=True)}
    shuffled = {
        name: _random(lists.seed, name, "order").permutation(found)
        for name, found in places.items()
    }
    orders = (
        "each query's items shuffled: their order favours nobody",
        f"blocks one after the other: {', '.join(BLOCKS)}",
    )
    candidates, initial = (
        _run(collection, found, {**spec, "ranker": name, "order": order})
        for found, name, order in zip(
            (shuffled, places), ("shuffled items", "initial ranking"), orders, strict=True
        )
    )
    return FairRanking(collection, candidates, initial, counts)


def _assign_groups(
    source: LabelledDocuments, protected: str
) -> tuple[pl.DataFrame, dict[str, Any]]:
    """The documents of either side: ``id``, ``labels`` as a collection has them and whether they are ``protected``."""
    labels = source.labels["labels"]
    names = (
        labels.explode().drop_nulls().value_counts(sort=True).to_series(0).head(_SHOWN).to_list()
    )
    side = read_side(protected, labels.explode().drop_nulls().unique(), source.by)
    if side is None:
        raise unknown(f"protected {source.by}", protected, names)
    member = pl.element().is_in(list(side.members))
    inside, outside = (
        labels.list.eval(one).list.any().fill_null(False) for one in (member, ~member)
    )
    several, labelled = int((inside & outside).sum()), inside | outside
    found = source.labels.select(
        "id", labels=labels.list.join(SEVERAL), protected=~inside if side.is_complement else inside
    ).filter(labelled)
    if found["protected"].n_unique() < 2:
        only = (
            f"only {source.by} {names[0]!r}"
            if len(names) == 1
            else f"{side.union!r} is every {source.by}"
        )
        raise UserError(f"nothing to compare: {only}; expected two groups of {source.by} or more")
    unlabelled = len(labels) - found.height
    return found, {
        "unlabelled": unlabelled,
        "several": several,
        "several_are": side.union,
        "of": len(labels),
    }


def _relevant_rows(source: LabelledDocuments, ids: pl.Series) -> dict[str, Rows]:
    """Rows of the documents that are relevant to each query; only those of a group count."""
    table = pl.DataFrame({"doc_id": ids, "row": np.arange(len(ids))})
    rows = source.relevant.join(table, on="doc_id", how="inner", maintain_order="left")
    found = {
        str(name): part["row"].to_numpy()
        for (name,), part in rows.group_by("query_id", maintain_order=True)
    }
    return {name: found.get(name, np.empty(0, np.int64)) for name in source.queries["id"]}


def _draw(
    relevant: Mapping[str, Rows], protected: Bools, rules: ListRules
) -> tuple[dict[str, list[Rows]], Counter[str], dict[str, int]]:
    """Blocks of items by query, why others were left out, and how many items were filled up by query."""
    lists, dropped, fills = dict[str, list[Rows]](), Counter[str](), dict[str, int]()
    for name, rows in relevant.items():
        if len(rows) < rules.fewest:
            dropped[
                f"fewer than {counted(rules.fewest, 'relevant document', 'relevant documents')}"
            ] += 1
            continue
        random = _random(rules.seed, name, "items")
        others = np.setdiff1d(np.arange(len(protected)), rows)
        pools = [random.permutation(side) for side in (np.sort(rows), others)]
        if rules.blocks is None:
            half = rules.items // 2
            natural = [pools[0][:half], pools[1][: rules.items - half]]
            blocks, filled = (
                [block[protected[block] == side] for block in natural for side in (False, True)],
                0,
            )
        else:
            split = [pool[protected[pool] == side] for pool in pools for side in (False, True)]
            blocks, filled = _filled(split, rules.blocks)
        if sum(map(len, blocks)) < rules.items:
            dropped["too few documents for a block"] += 1
            continue
        lists[name] = blocks
        if filled:
            fills[name] = filled
    return lists, dropped, fills


def _filled(pools: Sequence[Rows], wanted: Sequence[int]) -> tuple[list[Rows], int]:
    """So many of each pool; what one lacks is taken from the other of the same relevance. Returns how many were."""
    sizes, filled = [min(len(pool), n) for pool, n in zip(pools, wanted, strict=True)], 0
    for one, other in ((0, 1), (1, 0), (2, 3), (3, 2)):
        more = min(
            wanted[one] - min(len(pools[one]), wanted[one]), len(pools[other]) - sizes[other]
        )
        sizes[other] += more
        filled += more
    return [pool[:size] for pool, size in zip(pools, sizes, strict=True)], filled


def _random(seed: int, query: str, purpose: str) -> np.random.Generator:
    """A generator of the query's own, so that other queries do not change what is drawn for it."""
    digest = hashlib.blake2b(f"{purpose} {query}".encode(), digest_size=8).digest()
    return np.random.default_rng([seed, int.from_bytes(digest)])


def _shares(lists: Mapping[str, list[Rows]], rules: ListRules) -> dict[str, Any]:
    sizes = np.array([[len(block) for block in blocks] for blocks in lists.values()])
    share = sizes[:, 1] + sizes[:, 3]
    lone = np.minimum(share, rules.items - share) < 2
    return {
        "items": rules.items,
        "blocks": dict(zip(BLOCKS, sizes.mean(axis=0).round(2).tolist(), strict=True)),
        "protected": [int(share.min()), float(np.median(share)), int(share.max())],
        "protected_share": float(share.mean() / rules.items),
        "queries_with_a_group_below_2": int(lone.sum()),
        "precision_by_chance": float(sizes[:, :2].sum(axis=1).mean() / rules.items)
        * min(1, rules.items / _DEPTH),
    }


def _spec(
    source: LabelledDocuments, protected: str, lists: ListRules, counts: Mapping[str, Any]
) -> dict[str, Any]:
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
    scores = np.concatenate([np.arange(n, 0, -1.0) for n in lengths])
    docs = np.concatenate(list(items.values())).astype(np.int32)
    told = {name: value for name, value in spec.items() if name not in ("counts", "split")}
    return Run(tuple(items), np.cumsum([0, *lengths]), docs, scores, collection.ids, told)


def summary(built: FairRanking, protected: str) -> Iterator[tuple[str, str]]:
    """Yield what was drawn: a name, and what is said of it."""
    counts = built.counts
    left = "".join(f"; {n} left out: {why}" for why, n in counts["left_out"].items())
    yield "queries", f"{counts['queries']:,} of {counts['queries_of']:,}{left}"
    yield "items", f"{counts['items']:,} per query, {counts['documents']:,} documents in all"
    yield from ((name, f"{mean:.1f} per query") for name, mean in counts["blocks"].items())
    low, middle, high = counts["protected"]
    share = f"{100 * counts['protected_share']:.1f} % of the items"
    yield protected, f"{share}, {low} to {high} per query (median {middle:g})"
    if counts["filled"]:
        queries = counted(len(counts["filled"]), "query", "queries")
        yield (
            "filled",
            f"{sum(counts['filled'].values()):,} items of {queries}, from the other group",
        )
    yield "no label", f"{counted(counts['unlabelled'], 'document', 'documents')}, left out"
    several = counted(counts["several"], "document", "documents")
    yield "labels of both sides", f"{several}, counted as {counts['several_are']}"
    yield f"P@{_DEPTH} by chance", f"{counts['precision_by_chance']:.3f}"
