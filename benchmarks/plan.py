"""What `ranktilt tools plan` predicts from a part of a collection, beside what is measured of the whole.

- Three parts are drawn of each: a third of NFCorpus with its rewrites for BM25, a tenth of generated twins for BM25, a
  third of 1,500 documents of NFCorpus for ``dense:minilm``; `plan` sees that part of the documents and queries.
- Then each step runs once on the whole, with an empty cache, as the plan's own samples do. Only steps of at least a
  second are held against the target; small ones are the noise of the clock.
- Wall and processor time: others who use the machine disturb the first more than the second.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import replace

import generate
from common import arguments, machine, nfcorpus, publish, say, seconds, table, target

import ranktilt as rt
from ranktilt.planning.plan import Amount, CostPlan
from ranktilt.planning.step_costs import Measurement, RankerSteps, Stopwatch, loading, sample
from ranktilt.rankers.lexical.index import LARGE

PACKAGES = ("ranktilt", "numpy", "scipy", "polars", "torch", "sentence-transformers")
FOLDS, LEAST, MOST_OFF = 3, 1.0, 25.0
BUDGET = 60.0
QUANTITIES = {"seconds": "wall time", "processor": "processor time"}


def cases(given: argparse.Namespace) -> Iterator[tuple[str, str, rt.Collection, int]]:
    """A title, a ranker, a collection of the full size, and how many times a part of it fits into it."""
    folder = None if given.quick else nfcorpus()
    if folder is None:
        yield "generated twins", "bm25", generate.collection(generate.QUICK), 10
        return
    whole = rt.load(folder, split="train")
    yield "NFCorpus", "bm25", whole, 3
    yield "generated twins", "bm25", generate.collection(generate.Size(pairs=50_000, queries=3_000)), 10
    yield "NFCorpus", "dense:minilm(max_tokens=64)", sample(whole, 1_500, 1_200, seed=0), 3


def measured(collection: rt.Collection, ranker: str, seed: int) -> dict[str, Measurement]:
    """Each step on the whole collection."""
    documents, watch = collection.docs.height, Stopwatch()
    large = int(collection.texts().str.len_bytes().sum()) >= LARGE
    work = RankerSteps(rt.ranker(ranker))
    for one in (loading(collection, documents, large=large), *work.experiments(collection, documents)):
        replace(one, queries=collection.judged.height).once(1.0, 1, watch, seed=seed)
    return {row.step: row for row in watch.measurements}


def folds(
    collection: rt.Collection, ranker: str, times: int, given: argparse.Namespace
) -> list[tuple[CostPlan, dict[str, Measurement]]]:
    """Plans from samples, and what the whole took, a fold after the other."""
    documents, queries = collection.docs.height, collection.judged.height
    found = []
    for fold in range(1 if given.quick else FOLDS):
        say(f"{ranker}: fold {fold + 1}")
        small = sample(collection, documents // times, max(queries // times, 1), seed=1000 + fold)
        planned = rt.plan(
            small, [rt.ranker(ranker)], documents=documents, queries=queries, seconds=2 if given.quick else BUDGET,
            seed=fold,
        )  # fmt: skip
        found.append((planned, measured(collection, ranker, fold)))
    return found


def rows(
    found: Sequence[tuple[CostPlan, dict[str, Measurement]]], quantity: str
) -> Iterator[tuple[str, float, list[float], int]]:
    """Of each step and of all: its name, its median time, how far each fold's prediction is off in %, and hits."""
    names = [f"{one.ranker}: {one.name}" if one.ranker else one.name for one in found[0][0].steps]
    for number, name in enumerate([*names, "total"]):
        pairs = list[tuple[Amount, float]]()
        for planned, took in found:
            expected = getattr(planned.total if name == "total" else planned.steps[number], quantity)
            came = sum(getattr(took[one], quantity) for one in (names if name == "total" else [name]))
            pairs.append((expected, came))
        off = [100 * (expected.value / came - 1) for expected, came in pairs]
        inside = sum(expected.low <= came <= expected.high for expected, came in pairs)
        yield name, statistics.median(came for _, came in pairs), off, inside


def part(case: tuple[str, str, rt.Collection, int], given: argparse.Namespace) -> Iterator[str]:
    """A table for each clock, and the target."""
    title, ranker, collection, times = case
    found = folds(collection, ranker, times, given)
    documents, queries = collection.docs.height, collection.judged.height
    yield f"### {ranker}: {title}, {documents:,} documents and {queries:,} queries from {documents // times:,}\n"
    for quantity, clock in QUANTITIES.items():
        lines, worst, total = [], 0.0, 0.0
        for name, took, off, inside in rows(found, quantity):
            typical = statistics.median(off)
            if name == "total":
                total = abs(typical)
            elif took >= LEAST:
                worst = max(worst, abs(typical))
            shown = ", ".join(f"{one:+.0f}" for one in off).replace("-", "−")
            lines.append((name, seconds(took), f"{typical:+.0f} %".replace("-", "−"), shown, f"{inside} of {len(off)}"))
        yield table((clock, "measured (s)", "predicted is off by", "each fold (%)", "in the interval"), lines)
        yield "\n" + target(f"{clock}, total: median error", total, at_most=MOST_OFF, unit=" %")
        yield target(f"{clock}, steps over a second: largest median error", worst, at_most=MOST_OFF, unit=" %")
        yield ""


def main() -> None:
    """Measure both collections, and publish."""
    given = arguments(str(__doc__).splitlines()[0]).parse_args()
    text = ["## Plans: predicted from a part, and measured", "", machine(PACKAGES), ""]
    for case in cases(given):
        text += part(case, given)
    publish("plan", "\n".join(text), given)


if __name__ == "__main__":
    main()
