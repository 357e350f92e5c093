"""Corrections: re-rankers that know the group of each candidate.

`Correction.rescored` is all that a correction must do: it gives each entry of a list a new score.
"""

from __future__ import annotations

import hashlib
import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from ranktilt.auditing.grouping.labels import grouping
from ranktilt.auditing.groups import Groups
from ranktilt.data.artifact import Result
from ranktilt.data.collection import Collection
from ranktilt.data.group_names import REST
from ranktilt.data.run import Run, collection_rows
from ranktilt.errors import UserError
from ranktilt.mitigation.remedy import Rule
from ranktilt.rankers.base import Ranker, cut, entries, require_depth
from ranktilt.rankers.candidates import FITTED, reranked_spec
from ranktilt.rankers.fit_provenance import learned_queries
from ranktilt.spec import parse_stages

Ints = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
KEYS = "query_keys"
"""Key of a fit's spec with the `text_key` of each query; ids alone may mean other queries."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Fit(Result):
    """What a correction learned from queries that do not test it; each fit is one file."""

    spec: Mapping[str, Any]
    """How it was made: ranker, column and groups, seed, versions."""
    queries: tuple[str, ...]
    """Ids of these queries."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SeenQueries(
    Fit,
    format="ranktilt-seen-queries",
    version=1,
    noun="a list of queries that a ranker was chosen by",
    command="ranktilt mitigate",
):
    """Queries that a correction was fitted on or chosen by; immutable."""


@dataclass(frozen=True, kw_only=True)
class Lists:
    """A run's lists, and the group of each of their documents."""

    collection: Collection
    """Collection of the documents."""
    run: Run
    """The run."""
    by: str
    """Column of the groups."""
    rows: Ints
    """Row of each entry's document in the collection; −1 if it is not there."""

    @classmethod
    def from_run(cls, collection: Collection, run: Run, by: str) -> Self:
        """Join a run with a collection's documents."""
        rows = collection_rows(run, collection)[run.docs]
        return cls(collection=collection, run=run, by=by, rows=rows)

    @property
    def groups(self) -> Groups:
        """Groups of the collection's documents."""
        return grouping(self.collection, self.by)

    @cached_property
    def group(self) -> Ints:
        """Index of each entry's group; −1 for none."""
        return np.where(self.rows < 0, -1, self.groups.code[self.rows])

    def two_sided(self, group: str) -> Ints:
        """Return 1 for each entry of a group, 0 for any other, −1 for none.

        The group may be a union, such as ``Europe|Asia``.
        """
        groups = grouping(self.collection, self.by, (group, REST))
        code = np.where(self.rows < 0, -1, groups.code[self.rows])
        return np.where(code < 0, -1, code == groups.index(group))

    def tie_keys(self) -> npt.NDArray[np.uint64]:
        """Return each entry's `Collection.tie_keys`; 0 for a document that it does not hold."""
        return np.append(self.collection.tie_keys(), np.uint64(0))[self.rows]

    def parts(self) -> Iterator[tuple[str, slice]]:
        """Yield each query and the slice of its entries."""
        for query, (start, stop) in zip(
            self.run.queries, pairwise(self.run.offsets.tolist()), strict=True
        ):
            yield query, slice(start, stop)


@dataclass(frozen=True)
class Correction(Ranker):
    """Re-rank a run's candidates by their scores and their groups of the column `by`.

    Candidates whose order does not change keep their scores to the last bit. `k` candidates are
    kept, all by default.
    """

    scores_any_document: ClassVar[bool] = False

    by: str = field(default="source", kw_only=True)
    k: int | None = field(default=None, kw_only=True)
    chosen_by: str = field(default="", kw_only=True)
    """File of the queries that it was chosen by; an audit leaves them out."""

    def __post_init__(self) -> None:
        require_depth(self.name, self.k)

    @property
    def reads_scores(self) -> bool:
        """Whether it needs to know how far scores lie apart, and not only their order."""
        return False

    @abstractmethod
    def rescored(self, lists: Lists) -> Scores:
        """Return a new score for each entry; the old ones where nothing is to change."""

    @abstractmethod
    def rule(self) -> Rule:
        """Return what the correction does to a list, as data."""

    def check(self) -> None:
        if self.chosen_by:
            SeenQueries.load(Path(self.chosen_by))

    def fit_provenance(self, collection: Collection) -> dict[str, Any]:
        """Return which queries a corrected run was fitted on or chosen by, for its spec."""
        if not self.chosen_by:
            return {}
        return _provenance(SeenQueries.load(Path(self.chosen_by)), self.chosen_by, collection)

    def rank(self, collection: Collection, run: Run | None = None) -> Run:
        if run is None:
            raise UserError(
                f"{self!r} re-ranks candidates; put a ranker before it, such as bm25@100>>{self!r}"
            )
        if self.reads_scores and not run.scored:
            raise UserError(f"{self!r} reads scores, and {run.name} gives only an order")
        lists = Lists.from_run(collection, run, self.by)
        scores = self.rescored(lists)
        # Stable, so that tied documents keep their order.
        best = [part.start + np.argsort(-scores[part], kind="stable") for _, part in lists.parts()]
        order = np.concatenate([np.empty(0, np.int64), *best])
        ordered = {"score_order": run.spec["score_order"]} if "score_order" in run.spec else {}
        spec = {**reranked_spec(run, self), **ordered, **self.fit_provenance(collection)}
        reranked = replace(run, docs=run.docs[order], scores=scores[order], spec=spec)
        if self.k is None:
            return reranked
        return run_of_depth(reranked, collection, self.k)


@dataclass(frozen=True)
class FittedCorrection(Correction):
    """A correction that was fitted on other queries.

    At `strength` 0 it leaves a run as it is.
    """

    fit_kind: ClassVar[type[Fit]]
    largest_strength: ClassVar[float] = 1.0

    fit: str = field(default="", kw_only=True)
    """File of the fit."""
    strength: float = field(default=1.0, kw_only=True)
    """How much of the correction is applied."""
    learned: Fit | None = field(default=None, kw_only=True, repr=False, compare=False)
    """The fit itself, if it is in memory; then its file is not read."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.strength <= self.largest_strength:
            raise UserError(
                f"{self.name}: expected a strength from 0 to {self.largest_strength:g}, "
                f"got {self.strength}"
            )

    @property
    def reads_scores(self) -> bool:
        return True

    @cached_property
    def fitted(self) -> Fit:
        """The fit; its file is read once."""
        if self.learned is not None:
            return self.learned
        if not self.fit:
            raise UserError(
                f"{self.name} needs a fit: {self.name}(fit=FILE), a file that ranktilt mitigate "
                "writes"
            )
        return self.fit_kind.load(Path(self.fit))

    def check(self) -> None:
        super().check()
        _ = self.fitted

    def fit_provenance(self, collection: Collection) -> dict[str, Any]:
        if self.chosen_by:  # which names the queries of the fit, too
            return super().fit_provenance(collection)
        return _provenance(self.fitted, self.fit, collection)

    def require_scale(self, run: Run) -> None:
        """Refuse scores of another ranker than the fit's: the fit's numbers are in their unit."""
        fitted = self.fitted.spec["ranker"]
        names = [run.name, str(run.spec.get("made_by") or "")]
        if fitted not in [scale_of(name) for name in names]:
            raise UserError(
                f"{self.fit} was fitted on scores of {fitted}, but the candidates come from "
                f"{run.name}"
            )


def _provenance(fit: Fit, file: str, collection: Collection) -> dict[str, Any]:
    """Return which queries of a collection a fit has seen."""
    queries = learned_queries(fit.queries, fit.spec.get(KEYS, ()), collection)
    return {FITTED: {"file": file, "queries": queries}}


def run_of_depth(run: Run, collection: Collection, depth: int) -> Run:
    """Return the best documents of each list; the collection's tie keys decide among tied ones."""
    if np.diff(run.offsets).max(initial=0) <= depth:
        return run
    keys = np.append(collection.tie_keys(), np.uint64(0))[collection_rows(run, collection)]
    offsets, docs, scores = cut(entries(run, range(len(run.queries))), keys, depth)
    return replace(run, offsets=offsets, docs=docs, scores=scores)


def in_order(order: Ints, scores: Scores, side: Ints | None = None) -> Scores:
    """Return scores under which the entries are in `order`, from the best to the worst.

    The falling scores of the list are handed out again. Entries that were tied stay tied if they
    are neighbours, and on one `side` if sides are given. If entries of different sides would tie,
    the later one gets the next smaller number.
    """
    if side is None and (order == np.arange(len(order))).all():
        return scores
    before = np.append(order[:1], order[:-1])
    tied = scores[order] == scores[before]
    if side is not None:
        tied &= side[order] == side[before]
    new = np.empty_like(scores)
    last = np.inf
    for index, score, is_tied in zip(order.tolist(), scores.tolist(), tied.tolist(), strict=True):
        if not (is_tied and last < np.inf):
            last = min(score, math.nextafter(last, -math.inf))
        new[index] = last
    return new


def expected_counts(first: Bools, scores: Scores) -> Scores:
    """Return how many documents of the first side each prefix of a list holds.

    A tied document is at each rank of its block with the same probability.
    """
    n = len(first)
    ends = np.append(np.flatnonzero(np.diff(scores)) + 1, n)
    counts = np.append(0, np.cumsum(first)[ends - 1])
    prefix_counts: Scores = np.interp(np.arange(1, n + 1), np.append(0, ends), counts)
    return prefix_counts


def uniform(seed: int, *names: object) -> float:
    """Return a number drawn evenly from (0, 1), always the same for a seed and names."""
    text = "\0".join(map(str, (seed, *names)))
    digest = hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest()
    return (int.from_bytes(digest, "little") // 2**12 + 0.5) / 2**52


@cache
def scale_of(text: str) -> str:
    """Return the last stage of a ranker's text without its depth, which its scores depend on.

    A text that names no ranker is the name of a file, and is returned as it is.
    """
    try:
        return str(replace(parse_stages(text)[-1], k=None))
    except UserError:
        return text
