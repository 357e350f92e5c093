"""What every correction is: a re-ranker that knows each candidate's group, and reads no text."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from ranktilt.auditing.groups import Groups, grouping
from ranktilt.data.artifact import Result
from ranktilt.data.collection import Collection
from ranktilt.data.group_names import REST
from ranktilt.data.run import Run, collection_rows
from ranktilt.errors import UserError
from ranktilt.rankers.base import Ranker, cut, entries, require_depth
from ranktilt.rankers.candidates import FITTED, reranked_spec
from ranktilt.rankers.fit_provenance import learned_queries
from ranktilt.spec import parse_stages

Ints = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
F_ = TypeVar("F_", bound="Fit")
KEYS = "query_keys"
"""Where a fit's spec tells its queries from others of the same ids: a `text_key` each."""


@dataclass(frozen=True, eq=False)
class Fit(Result):
    """What a correction learned from queries that it is not tested on; one file each."""

    spec: Mapping[str, Any]
    """How it was made: ranker, column and groups, seed, versions."""
    queries: tuple[str, ...]
    """Ids of the queries that it learned from."""


@dataclass(frozen=True)
class Lists:
    """A run's lists, and the group of each of their documents."""

    collection: Collection
    run: Run
    by: str
    rows: Ints
    """Row in the collection of each entry, −1 of a document that it does not hold."""
    notes: dict[str, Any] = field(default_factory=dict, compare=False)
    """What a correction finds out while it works, and the run's spec should say."""

    @classmethod
    def of(cls, collection: Collection, run: Run, by: str) -> Lists:
        """Join a run with a collection's documents."""
        return cls(collection, run, by, collection_rows(run, collection)[run.docs])

    @cached_property
    def groups(self) -> Groups:
        return grouping(self.collection, self.by)

    @cached_property
    def group(self) -> Ints:
        """Number of each entry's group, −1 for none."""
        return np.where(self.rows < 0, -1, self.groups.code[self.rows])

    def two_sided(self, group: str) -> Ints:
        """Return 1 for each entry of a group, or of a union such as ``Europe|Asia``, 0 of any other, −1 of none."""
        groups = grouping(self.collection, self.by, [group, REST])
        code = np.where(self.rows < 0, -1, groups.code[self.rows])
        return np.where(code < 0, -1, code == groups.number(group))

    def tie_keys(self) -> npt.NDArray[np.uint64]:
        """Return each entry's `Collection.tie_keys`; 0 of a document that the collection does not hold."""
        return np.append(self.collection.tie_keys(), np.uint64(0))[self.rows]

    def parts(self) -> Iterator[tuple[str, slice]]:
        """Yield each query and where its entries are."""
        for query, (start, stop) in zip(
            self.run.queries, pairwise(self.run.offsets.tolist()), strict=True
        ):
            yield query, slice(start, stop)


@dataclass(frozen=True)
class Correction(Ranker):
    """Re-ranks a run's candidates by what is known of them: scores, and groups of the column `by`.

    Candidates whose order does not change keep their scores to the last bit. `k` candidates are
    kept, all by default.
    """

    scores_given: ClassVar[bool] = False

    by: str = field(default="source", kw_only=True)
    k: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        require_depth(self.name, self.k)

    @property
    def reads_scores(self) -> bool:
        """Whether it needs to know how far scores lie apart, and not only their order."""
        return False

    @abstractmethod
    def rescored(self, lists: Lists) -> Scores:
        """Return a new score for each entry; the old ones where nothing is to change."""

    def rank(self, collection: Collection, run: Run | None = None) -> Run:
        if run is None:
            raise UserError(
                f"{self!r} re-ranks candidates; put a ranker before it, such as bm25@100>>{self!r}"
            )
        if self.reads_scores and not run.scored:
            raise UserError(f"{self!r} reads scores, and {run.name} gives only an order")
        lists = Lists.of(collection, run, self.by)
        scores = self.rescored(lists)
        # Stable, so that what is tied stays as it came.
        best = [part.start + np.argsort(-scores[part], kind="stable") for _, part in lists.parts()]
        order = np.concatenate([np.empty(0, np.int64), *best])
        ordered = {"score_order": run.spec["score_order"]} if "score_order" in run.spec else {}
        spec = {**reranked_spec(run, self), **ordered, **lists.notes}
        found = Run(run.queries, run.offsets, run.docs[order], scores[order], run.ids, spec)
        if self.k is None or np.diff(run.offsets).max(initial=0) <= self.k:
            return found
        keys = np.append(collection.tie_keys(), np.uint64(0))[collection_rows(found, collection)]
        parts = cut(entries(found, range(len(found.queries))), keys, self.k)
        return Run(found.queries, *parts, found.ids, spec)


def in_order(order: Ints, scores: Scores, side: Ints | None = None) -> Scores:
    """Hand a list's falling scores out again, so that `order` gives the entries from the best to the worst.

    Returns one score an entry. Entries tied before stay tied where they stand side by side, and are
    of one `side` where that is given; of others the later one gets the next smaller number where it
    would tie.
    """
    if side is None and (order == np.arange(len(order))).all():
        return scores
    before = np.append(order[:1], order[:-1])
    tied = scores[order] == scores[before]
    if side is not None:
        tied &= side[order] == side[before]
    new = np.empty_like(scores)
    last = np.inf
    for entry, score, same in zip(order.tolist(), scores.tolist(), tied.tolist(), strict=True):
        last = last if same and last < np.inf else min(score, float(np.nextafter(last, -np.inf)))
        new[entry] = last
    return new


def expected_counts(first: Bools, scores: Scores) -> Scores:
    """Number of documents of the first side on each prefix of a list; tied documents share the ranks of their block."""
    n = len(first)
    ends = np.append(np.flatnonzero(np.diff(scores)) + 1, n)
    counts = np.cumsum(first)
    found: Scores = np.interp(
        np.arange(1, n + 1), np.append(0, ends), np.append(0, counts[ends - 1])
    )
    return found


def uniform(seed: int, *names: object) -> float:
    """Return a number drawn evenly from (0, 1), always the same for one seed and one query's id."""
    text = "\0".join(map(str, (seed, *names)))
    digest = hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest()
    return (int.from_bytes(digest, "little") // 2**12 + 0.5) / 2**52


def read_fit(kind: type[F_], file: str, ranker: str) -> F_:
    """Read what a correction was fitted to; refuses an empty name."""
    if not file:
        raise UserError(
            f"{ranker} needs a fit: {ranker}(fit=FILE), a file that ranktilt mitigate writes"
        )
    return kind.load(Path(file))


def require_scale(run: Run, file: str, fit: Fit) -> None:
    """Refuse scores of another ranker than that of a fit, whose numbers are in their unit."""
    fitted = fit.spec["ranker"]
    came = [run.name, str(run.spec.get("made_by") or "")]
    if fitted not in map(scale_of, came):
        raise UserError(
            f"{file} was fitted on scores of {fitted}, and the candidates are those of {run.name}"
        )


def scale_of(text: str) -> str:
    """The last stage of a ranker's text without its depth: what the scale of its scores depends on."""
    try:
        return str(replace(parse_stages(text)[-1], k=None))
    except UserError:  # the name of a file
        return text


def fitted_on(file: str, fit: Fit, collection: Collection) -> dict[str, Any]:
    """Return what the spec of a run of this collection says of a fit behind it."""
    return {
        FITTED: {
            "file": file,
            "queries": learned_queries(fit.queries, fit.spec.get(KEYS, ()), collection),
        }
    }
