"""Interventions whose tilt and cost are planted: 60 queries with a pair of twins each, and a dial from LLM to human."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from ranktilt.collection import Collection
from ranktilt.experiments.tradeoff import Trial, bench, reference_alone
from ranktilt.experiments.tradeoff_result import Bench, Intervention
from tests.toy import collection_of, run_of

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
