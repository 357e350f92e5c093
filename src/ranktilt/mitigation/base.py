"""Corrections: re-rankers that know the group of each document that they re-rank.

A run is one list of documents for each query. An *entry* is one document in one list, with its
score. A new correction only needs `Correction.rescore`, which gives each entry a new score, and
`Correction.rule`, which describes it. A *fit* is a set of numbers that a correction has learned
from queries; an audit of corrected lists leaves these queries out. The *spec* of a fit or a run is
a dictionary that records how it was made. *Tied* entries have the same score.
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
from ranktilt.data.labels.group_names import REST
from ranktilt.data.runs.run import Run, collection_rows
from ranktilt.errors import UserError
from ranktilt.mitigation.remedy import Rule
from ranktilt.rankers.base import Ranker, cut, entries, require_depth
from ranktilt.rankers.candidates import FITTED, reranked_spec
from ranktilt.rankers.fit_provenance import learned_queries
from ranktilt.spec import parse_stages

Ints = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
QUERY_KEYS = "query_keys"
"""Entry of a fit's spec with the `text_key`, a hash of the text, of each query that it has seen.

An audit leaves out these queries. It recognises them by their texts, because another collection may
use the same ids for other queries.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class Fit(Result):
    """What a correction learned from queries; each fit is saved as one file.

    The correction is then tested on other queries.
    """

    spec: Mapping[str, Any]
    """How the fit was made: ranker, column and groups, seed, versions."""
    queries: tuple[str, ...]
    """Ids of the queries that the fit was learned from."""


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
    """A run's lists, and the group of each of their documents.

    Arrays have one element for each entry, list after list, as `Run.docs` has.
    """

    collection: Collection
    """Collection of the documents."""
    run: Run
    """The run."""
    by: str
    """Column of the groups."""
    rows: Ints
    """Row of each entry's document in the collection; −1 if the collection lacks the document."""

    @classmethod
    def from_run(cls, collection: Collection, run: Run, by: str) -> Self:
        """Find the entries of a run among a collection's documents."""
        rows = collection_rows(run, collection)[run.docs]
        return cls(collection=collection, run=run, by=by, rows=rows)

    @property
    def groups(self) -> Groups:
        """Groups of the collection's documents."""
        return grouping(self.collection, self.by)

    @cached_property
    def group(self) -> Ints:
        """Index of each entry's group in `groups`; −1 for a document without a group."""
        return np.where(self.rows < 0, -1, self.groups.code[self.rows])

    def side_codes(self, group: str) -> Ints:
        """Return the side of each entry: 1 for `group`, 0 for any other group, −1 for no group.

        `group` may be a union, such as ``Europe|Asia``.
        """
        groups = grouping(self.collection, self.by, (group, REST))
        code = np.where(self.rows < 0, -1, groups.code[self.rows])
        return np.where(code < 0, -1, code == groups.index(group))

    def tie_keys(self) -> npt.NDArray[np.uint64]:
        """Return each entry's tie key: of tied documents, the one with the smaller key is first.

        Keys are hashes, so they favour no group. A document that the collection lacks has the key
        0.
        """
        # Such a document has the row −1, which reads the 0 at the end.
        return np.append(self.collection.tie_keys(), np.uint64(0))[self.rows]

    def slices(self) -> Iterator[tuple[str, slice]]:
        """Yield the id of each query, and the slice of its entries."""
        for query, (start, stop) in zip(
            self.run.queries, pairwise(self.run.offsets.tolist()), strict=True
        ):
            yield query, slice(start, stop)


@dataclass(frozen=True)
class Correction(Ranker):
    """Re-rank the documents of each list by their scores and by their groups.

    Documents whose order does not change keep their scores to the last bit.
    """

    scores_any_document: ClassVar[bool] = False

    by: str = field(default="source", kw_only=True)
    """Column of the groups."""
    k: int | None = field(default=None, kw_only=True)
    """Number of documents of each list that are kept; None keeps all."""
    chosen_by: str = field(default="", kw_only=True)
    """File with the queries by which this correction was chosen (`SeenQueries`); empty if unknown.

    An audit leaves out these queries.
    """

    def __post_init__(self) -> None:
        require_depth(self.name, self.k)

    @property
    def reads_scores(self) -> bool:
        """Whether the correction needs scores, and not only the order of documents."""
        return False

    @abstractmethod
    def rescore(self, lists: Lists) -> Scores:
        """Return a new score for each entry; the old score where nothing changes."""

    @abstractmethod
    def rule(self) -> Rule:
        """Return what the correction does to a list, as data."""

    def check(self) -> None:
        if self.chosen_by:
            SeenQueries.load(Path(self.chosen_by))

    def fit_provenance(self, collection: Collection) -> dict[str, Any]:
        """Return the entry of a run's spec that names the queries it was fitted on or chosen by.

        Empty if `chosen_by` names no file.
        """
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
        scores = self.rescore(lists)
        # A stable sort, so that tied documents keep their order.
        best = [
            span.start + np.argsort(-scores[span], kind="stable") for _query, span in lists.slices()
        ]
        # A run without queries has no list to concatenate, hence the empty array.
        order = np.concatenate([np.empty(0, np.int64), *best])
        spec = {**reranked_spec(run, self), **self.fit_provenance(collection)}
        if "score_order" in run.spec:  # whether the run's file ranks by falling or rising scores
            spec["score_order"] = run.spec["score_order"]
        reranked = replace(run, docs=run.docs[order], scores=scores[order], spec=spec)
        if self.k is None:
            return reranked
        return run_of_depth(reranked, collection, self.k)


@dataclass(frozen=True)
class FittedCorrection(Correction):
    """A correction with numbers that were learned from other queries."""

    fit_kind: ClassVar[type[Fit]]
    """Class of its fits, which reads their files."""
    largest_strength: ClassVar[float] = 1.0
    """Largest `strength` that makes sense for this correction."""

    fit: str = field(default="", kw_only=True)
    """File of the fit."""
    strength: float = field(default=1.0, kw_only=True)
    """How much of the correction is applied: 0 leaves a run as it is, 1 applies all of it."""
    learned: Fit | None = field(default=None, kw_only=True, repr=False, compare=False)
    """The fit, if it is in memory, so that its file need not be read."""

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
        _ = self.fitted  # reads the file now, so that a bad one is refused before any work

    def fit_provenance(self, collection: Collection) -> dict[str, Any]:
        if self.chosen_by:  # this file names the queries of the fit too
            return super().fit_provenance(collection)
        return _provenance(self.fitted, self.fit, collection)

    def require_scale(self, run: Run) -> None:
        """Refuse a run of another ranker than the one that was fitted.

        The numbers of a fit are in the unit of that ranker's scores, and scores of different
        rankers have different units.
        """
        fitted = self.fitted.spec["ranker"]
        # A saved run may be called by its file; then `made_by` names the ranker that made it.
        names = [run.name, str(run.spec.get("made_by") or "")]
        if fitted not in [scale_of(name) for name in names]:
            raise UserError(
                f"{self.fit} was fitted on scores of {fitted}, but the candidates come from "
                f"{run.name}"
            )


def _provenance(fit: Fit, file: str, collection: Collection) -> dict[str, Any]:
    """Return the entry of a run's spec that names the queries of a collection a fit has seen."""
    queries = learned_queries(fit.queries, fit.spec.get(QUERY_KEYS, ()), collection)
    return {FITTED: {"file": file, "queries": queries}}


def run_of_depth(run: Run, collection: Collection, depth: int) -> Run:
    """Return the run with at most `depth` documents in each list: the best ones.

    The collection's tie keys decide which of several tied documents stay.
    """
    if np.diff(run.offsets).max(initial=0) <= depth:  # every list is short enough
        return run
    # Documents that the collection lacks have row −1, which reads the 0 at the end.
    keys = np.append(collection.tie_keys(), np.uint64(0))[collection_rows(run, collection)]
    offsets, docs, scores = cut(entries(run, range(len(run.queries))), keys, depth)
    return replace(run, offsets=offsets, docs=docs, scores=scores)


def reassign_scores(order: Ints, scores: Scores, side: Ints | None = None) -> Scores:
    """Return new scores for a list, under which its entries are in another order.

    The scores of the list are given to the entries anew: the first entry of the new order gets the
    largest, and so on. Entries that were tied stay tied if they are neighbours in the new order
    and on the same `side` (if sides are given). Any other entry that would tie with the entry
    before it gets the next smaller number that a float can hold.

    Parameters
    ----------
    order : ndarray of int64, shape (n_entries,)
        Indices of the entries in the new order, from the best to the worst.
    scores : ndarray of float64, shape (n_entries,)
        Scores of the entries in the old order; they fall.
    side : ndarray of int64, shape (n_entries,), optional
        Side of each entry in the old order, as a number.
    """
    if side is None and (order == np.arange(len(order))).all():
        return scores
    previous = np.append(order[:1], order[:-1])  # for each entry of the new order, the one before
    stays_tied = scores[order] == scores[previous]
    if side is not None:
        stays_tied &= side[order] == side[previous]
    new_scores = np.empty_like(scores)
    last_score = np.inf
    for index, score, is_tied in zip(
        order.tolist(), scores.tolist(), stays_tied.tolist(), strict=True
    ):
        # The first entry seems tied with itself, but no score has been given yet.
        if not (is_tied and last_score < np.inf):
            last_score = min(score, math.nextafter(last_score, -math.inf))
        new_scores[index] = last_score
    return new_scores


def expected_counts(first: Bools, scores: Scores) -> Scores:
    """Return the expected number of documents of the first side among the first 1, 2, … n ranks.

    A *block* is a set of tied documents. Each order of a block is equally likely, so the expected
    number rises evenly from the start of a block to its end.

    Parameters
    ----------
    first : ndarray of bool, shape (n,)
        Whether each document of a list is on the first side.
    scores : ndarray of float64, shape (n,)
        Scores of the documents, which fall; documents with equal scores are tied.
    """
    n = len(first)
    ends = np.append(np.flatnonzero(np.diff(scores)) + 1, n)  # ranks at which a block ends
    counts = np.append(0, np.cumsum(first)[ends - 1])
    prefix_counts: Scores = np.interp(np.arange(1, n + 1), np.append(0, ends), counts)
    return prefix_counts


def random_share(seed: int, *names: object) -> float:
    """Return a random number between 0 and 1, always the same for a seed and names.

    It is made from a hash. So a query has the same number whichever other queries are in the run.
    """
    text = "\0".join(map(str, (seed, *names)))
    digest = hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest()
    # A float can tell 52 of the 64 bits apart. Adding a half excludes 0 and 1.
    return (int.from_bytes(digest, "little") // 2**12 + 0.5) / 2**52


@cache
def scale_of(text: str) -> str:
    """Return the part of a ranker's text that its scores depend on: the last stage without depth.

    Rankers with the same such part give scores in the same unit: ``bm25@100`` and ``bm25@1000`` do.
    A text that names no ranker is the name of a file, and is returned as it is.
    """
    try:
        return str(replace(parse_stages(text)[-1], k=None))
    except UserError:
        return text
