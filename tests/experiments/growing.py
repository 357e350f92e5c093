"""A collection with rewrites, and rankers whose preference is known, for the tests of what grows."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import ClassVar

import numpy as np

from ranktilt.collection import Collection
from ranktilt.experiments.spiral import spiral
from ranktilt.experiments.spiral_result import Spiral
from ranktilt.mitigation.base import Correction, Lists
from ranktilt.rankers.base import FirstStage, Rows, Scores
from tests.toy import collection_of, versions

ORIGINS, QUERIES = 60, 40


@cache
def growing(sources: tuple[str, ...] = ("llm",), *, origins: int = ORIGINS) -> Collection:
    """Documents and their rewrites; every query has two relevant documents in each version."""
    docs = versions({name: [f"text {n} of {name}" for n in range(origins)] for name in ("human", *sources)})
    grades = {
        f"q{q}": {f"{n % origins}-{name}": 1 for name in ("human", *sources) for n in (q, q + 7)}
        for q in range(QUERIES)
    }  # fmt: skip
    return collection_of(docs, {name: f"query {name}" for name in grades}, grades)


def chance(*parts: object) -> float:
    """A number from 0 to 1 that depends on all parts and looks random."""
    digest = hashlib.blake2b("|".join(map(str, parts)).encode(), digest_size=6).digest()
    return int.from_bytes(digest) / 256**6


def score(query: str, doc: str, favour: float) -> float:
    """What `Planted` gives: the document's chance for this query, more for rewrites; every version has its own."""
    return 1 + chance(query, doc) + favour * (not doc.endswith("-human"))


@dataclass(frozen=True, kw_only=True)
class Planted(FirstStage):
    """Ranks by chance, with so much more for each rewrite."""

    name: ClassVar[str] = "planted"

    favour: float = 0.0

    def candidates(self, collection: Collection, slack: int) -> Iterator[tuple[Rows, Scores]]:
        """Score every document for every query."""
        rows, ids = np.arange(collection.docs.height), collection.ids.to_list()
        for query in collection.judged["id"]:
            yield rows, np.array([score(query, doc, self.favour) for doc in ids])


@dataclass(frozen=True, kw_only=True)
class Tied(FirstStage):
    """Gives every document the same score."""

    name: ClassVar[str] = "tied"

    def candidates(self, collection: Collection, slack: int) -> Iterator[tuple[Rows, Scores]]:
        """Score every document for every query."""
        for _ in collection.judged["id"]:
            yield np.arange(collection.docs.height), np.ones(collection.docs.height)


@dataclass(frozen=True)
class HumanFirst(Correction):
    """Puts the human documents first; `learned` names queries that it was fitted on."""

    name: ClassVar[str] = "human-first"

    learned: str = field(default="", kw_only=True)

    def rescored(self, lists: Lists) -> Scores:
        """Lift human documents above all others."""
        if self.learned:
            lists.notes["fitted_on"] = {"file": "fit.json", "queries": self.learned.split()}
        return lists.run.scores + 10.0 * (lists.group == lists.groups.number("human"))


@cache
def grown(*, alone: bool = False) -> Spiral:
    """A ranker that likes rewrites, and unless `alone` the same one corrected."""
    ranker = Planted(favour=0.05)
    rankers = [ranker] if alone else [ranker, ranker >> HumanFirst()]
    return spiral(growing(), rankers, rounds=3, entry_rule="random" if alone else "retrieved", resamples=200)
