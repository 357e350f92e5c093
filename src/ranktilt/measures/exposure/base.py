"""Attention over all groups together: what a list gives each group, and what it should give.

`GroupLists` is the input. `AttentionEstimand` and `TargetedEstimand` are the base classes of the
estimands of this folder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ranktilt.errors import UserError, unknown_name
from ranktilt.measures.base import GroupEstimand
from ranktilt.measures.ranking import Bools, Floats, Ints, Ranking, rank_weights

UNLABELLED = "unlabelled"
"""Name of the class of unlabelled documents in a table of shares."""


@dataclass(frozen=True, kw_only=True, eq=False)
class GroupLists:
    """Each query's list, with the groups of its documents and with what targets need.

    A document may be in several groups. So every document has a *kind*: there is one kind for each
    group, one for each set of groups that some document has together, and the last kind is for
    documents without a label.
    """

    ranking: Ranking
    """The lists of all queries."""
    kind: Ints
    """Kind of each entry's document."""
    relevant: Bools
    """Whether each entry's document is relevant."""
    names: tuple[str, ...]
    """Names of the groups."""
    parts: Floats
    """How much of a document of each kind is in each group, shape (n_kinds, n_groups + 1).

    A document in two groups is one half in each. The last column is for documents without a label.
    Rows sum to 1.
    """
    judged: Floats
    """Number of relevant documents of each query and kind, retrieved or not; (n_queries, n_kinds).
    """
    population: Floats
    """Number of the collection's documents of each kind, shape (n_kinds,)."""
    repeats: Ints
    """Number of the first query with the text of each query; in most cases the query itself."""

    @property
    def queries(self) -> int:
        """Number of queries."""
        return len(self.ranking.offsets) - 1

    def shuffled(self, rng: np.random.Generator) -> GroupLists:
        """Return the same lists in random order."""
        keys = self.ranking.query + rng.random(len(self.kind))
        return self._in_order(np.argsort(keys, kind="stable"))

    def relabelled(self, rng: np.random.Generator, document: Ints) -> GroupLists:
        """Return the lists with random labels; a document has much the same label in all lists.

        Each list keeps the number of its documents of each kind. Every document draws a random key,
        and in each list the documents with the lowest keys get one kind, the next ones another. So
        a document with a low key has the first kind in most lists. `document` has the number of
        each entry's document.
        """
        document_keys = rng.random(int(document.max(initial=-1)) + 1)
        by_key = np.lexsort((document_keys[document], self.ranking.query))
        # Kinds are numbered in the order in which they appear, so that names of groups, which
        # decide the original numbers, do not change the draws.
        kinds, first, number = np.unique(self.kind, return_index=True, return_inverse=True)
        appearance = np.argsort(np.argsort(first))
        kind_order = rng.permutation(len(kinds))[appearance[number]]
        by_kind = np.lexsort((rng.random(len(self.kind)), kind_order, self.ranking.query))
        order = np.empty(len(self.kind), dtype=np.int64)
        order[by_key] = by_kind
        return self._in_order(order)

    def _in_order(self, order: Ints) -> GroupLists:
        """Return the lists with their documents in another order."""
        return replace(self, kind=self.kind[order], relevant=self.relevant[order])

    def sums(self, weight: Floats) -> Floats:
        """Sum the entries' weights by query and group, shape (n_queries, n_groups + 1)."""
        kinds = len(self.parts)
        cell = self.ranking.query * kinds + self.kind
        by_kind = np.bincount(cell, weights=weight, minlength=self.queries * kinds)
        by_group: Floats = by_kind.reshape(self.queries, kinds) @ self.parts
        return by_group


@dataclass(frozen=True, repr=False)
class AttentionEstimand(GroupEstimand):
    """A question about how attention is spread over all groups; it favours none of them."""

    unlabelled: str = "out"
    """Documents without a label: ``out`` leaves them out (they keep their ranks), ``class`` makes
    them a group."""

    sided = False
    directed = True
    digits = 3
    signed = False
    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {"unlabelled": ("out", "class")}

    def needs_judgments(self) -> bool:
        """Whether it asks which documents are relevant."""
        return False

    def check(self, names: tuple[str, ...]) -> None:
        """Refuse names of groups for which the estimand cannot be computed; by default none."""

    def per_query(self, lists: GroupLists) -> Floats:
        """Compute the value of each query; NaN for a query that has none."""
        raise NotImplementedError

    def details(self, lists: GroupLists, known: Bools) -> dict[str, float]:
        """Return means that are printed with the answer, by name.

        `known` says which queries have an answer; the means are over these.
        """
        return {}

    def columns_of(self, table: Floats) -> Floats:
        """Return the columns of the groups.

        The last column of the table, of documents without a label, is left out, unless these
        documents count as a group.
        """
        return table if self.unlabelled == "class" else table[..., :-1]


@dataclass(frozen=True, repr=False)
class TargetedEstimand(AttentionEstimand):
    """A question that compares attention with target shares of the groups."""

    target: str = "mixed"
    """The groups' shares of the query's ``relevant`` documents, of the ``population``, of the
    query's list (``candidates``), TREC's blend of the first two (``mixed``), or a table:
    ``female:0.5;male:0.5``."""

    free: ClassVar[tuple[str, ...]] = ("target",)
    targets: ClassVar[tuple[str, ...]] = ("mixed", "relevant", "population", "candidates")

    def __post_init__(self) -> None:
        super().__post_init__()
        if ":" not in self.target and self.target not in self.targets:
            raise unknown_name(
                f"target of measure {self.name}",
                self.target,
                [*self.targets, "GROUP:SHARE;GROUP:SHARE"],
            )
        self.table()  # refuses a table that cannot be read

    def table(self) -> dict[str, float]:
        """Read the shares by group of a target that is a table; empty for any other target."""
        shares = dict[str, float]()
        if ":" not in self.target:
            return shares
        for piece in self.target.split(";"):
            name, _, number = (part.strip() for part in piece.rpartition(":"))
            try:
                share = float(number)
            except ValueError:
                share = -1.0  # refused below, as any share outside its range
            if not name or not 0 <= share < np.inf or name in shares:
                raise UserError(
                    f"target of measure {self.name}: expected GROUP:SHARE, each once, "
                    f"got {piece.strip()!r}"
                )
            shares[name] = share
        if not sum(shares.values()) > 0:
            raise UserError(
                f"target of measure {self.name}: expected a share above 0, got {self.target!r}"
            )
        return shares

    def needs_judgments(self) -> bool:
        return self.target in ("mixed", "relevant")

    def check(self, names: tuple[str, ...]) -> None:
        table = _by_full_name(self.table(), names)
        if not table:
            return
        valid = [*names, UNLABELLED] if self.unlabelled == "class" else names
        for name in table:
            if name not in valid:
                raise unknown_name(f"group in the target of {self!r}", name, valid)
        for name in names:
            if name not in table:
                raise UserError(f"the target of {self!r} has no share for group {name!r}")

    def shares(self, lists: GroupLists) -> Floats:
        """Return the target shares of each query and group, which sum to 1.

        NaN where a query has no documents to take them from.
        """
        table = _by_full_name(self.table(), lists.names)
        if table:
            row = np.array([table.get(name, 0.0) for name in (*lists.names, UNLABELLED)])
            return np.tile(shares_of_rows(self.columns_of(row)), (lists.queries, 1))
        if self.target == "candidates":
            return shares_of_rows(self.columns_of(lists.sums(np.ones(len(lists.kind)))))
        population = np.tile(lists.population @ lists.parts, (lists.queries, 1))
        if self.target == "population":
            return shares_of_rows(self.columns_of(population))
        relevant = shares_of_rows(self.columns_of(lists.judged @ lists.parts))
        if self.target == "relevant":
            return relevant
        groups = len(lists.names)
        # TREC's blend: documents without a label keep their share of the relevant ones. The groups
        # get the mean of their share of the relevant documents and of the population.
        labelled = relevant[:, :groups].sum(axis=1, keepdims=True)
        mixed = (relevant[:, :groups] + labelled * shares_of_rows(population[:, :groups])) / 2
        return np.concatenate([mixed, relevant[:, groups:]], axis=1)


def _by_full_name(shares: Mapping[str, float], names: Sequence[str]) -> dict[str, float]:
    """Return shares by the full names of groups.

    A label such as ``1`` stands for the group ``source 1`` if there is only one such group.
    """
    full_names = dict[str, float]()
    for name, share in shares.items():
        longer = [full for full in names if full.endswith(f" {name}")]
        is_label = name not in names and len(longer) == 1
        full_names[longer[0] if is_label else name] = share
    return full_names


def attention(lists: GroupLists, cutoff: int) -> Floats:
    """Return the attention of each entry as TREC's fair-ranking track counts it.

    It is ``1/log2(max(rank, 2))``, and 0 below the cutoff. Documents that are tied get the mean of
    their ranks.
    """
    ranking = lists.ranking
    means = rank_weights(ranking.before, ranking.sizes, cutoff) / ranking.sizes
    return np.repeat(means, ranking.sizes)


def shares_of_rows(table: Floats) -> Floats:
    """Divide rows by their sums; NaN where a sum is 0."""
    total = table.sum(axis=-1, keepdims=True)
    shares: Floats = np.divide(table, total, out=np.full(table.shape, np.nan), where=total > 0)
    return shares
