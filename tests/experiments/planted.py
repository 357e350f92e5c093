"""Interventions whose tilt and cost are planted, and rankers whose preference is, for a collection that grows."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar

import numpy as np

from ranktilt import Collection, Spiral, spiral
from ranktilt.experiments.tradeoff import Trial, bench, reference_alone
from ranktilt.experiments.tradeoff_result import Bench, Intervention
from ranktilt.mitigation.base import Correction, Lists
from ranktilt.rankers.base import FirstStage, Rows, Scores
from tests.toy import collection_of, run_of, versions

QUERIES = 60
DIAL: Mapping[float, tuple[int, int, int]] = {0: (60, 0, 0), 0.001: (30, 0, 0), 0.01: (0, 0, 1), 0.1: (0, 60, 24)}
"""By strength: queries in which the LLM's twin stands first, and the human one (elsewhere they tie), and those in which
an irrelevant human document stands above both."""


@cache
def collection(sources: tuple[str, ...] = ("llm",)) -> Collection:
    """One relevant document a query in every source, and one human document a query that is relevant to none."""
    docs = [
        {"id": f"{name}{n}", "text": f"note {n} of {name}", "source": name, "origin": f"human{n}"}
        for name in ("human", *sources)
        for n in range(QUERIES)
    ]
    docs += [
        {"id": f"other{n}", "text": f"aside {n}", "source": "human", "origin": f"other{n}"} for n in range(QUERIES)
    ]
    grades = {f"q{n}": {f"{name}{n}": 1 for name in ("human", *sources)} for n in range(QUERIES)}
    return collection_of(docs, dict.fromkeys(grades, "note"), grades)


def trial(strength: float, counts: tuple[int, int, int], *, method: str = "debias", **more: Any) -> Trial:
    """Rank as planted; `sources` of the collection, and `alone=False` for no run of human documents alone."""
    mixed, (llm, human, spoilt) = collection(more.get("sources", ("llm",))), counts
    own = reference_alone(mixed)

    def scores(found: Collection) -> dict[str, dict[str, float]]:
        names = [name for name in ("human", *mixed.sources) if name in found.sources and name != "human"]
        return {
            f"q{n}": {
                f"human{n}": 5.0 + (n >= QUERIES - human),
                **{f"{name}{n}": 5.0 + (n < llm) for name in names},
                f"other{n}": 9.0 if n < spoilt else 1.0,
            }
            for n in range(QUERIES)
        }  # fmt: skip

    name = more.get("name", f"α = {strength:g}")
    one = Intervention(
        name, method if strength or method != "debias" else "", float(strength), f"dense:alpha-{strength:g}", "α"
    )
    alone = run_of(own, scores(own), ranker=one.ranker) if more.get("alone", True) else None
    return Trial(one, run_of(mixed, scores(mixed), ranker=one.ranker), alone)


def swept(dial: Mapping[float, tuple[int, int, int]] = DIAL, *, alone: bool = True, **options: Any) -> Bench:
    """The bench of a dial."""
    trials = [trial(strength, counts, alone=alone) for strength, counts in dial.items()]
    return bench(collection(), trials, ("nDCG@1", "AP@3"), **{"resamples": 200, **options})


ORIGINS = 60


@cache
def growing(sources: tuple[str, ...] = ("llm",), *, origins: int = ORIGINS) -> Collection:
    """Documents and their rewrites; every query has two relevant documents in each version."""
    docs = versions({name: [f"text {n} of {name}" for n in range(origins)] for name in ("human", *sources)})
    grades = {
        f"q{q}": {f"{n % origins}-{name}": 1 for name in ("human", *sources) for n in (q, q + 7)}
        for q in range(40)
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
