"""Coverage, power and level: intervals, detectable effects and tests where the right answer is known.

Coverage: simulated collections of 50 and of 300 queries, drawn with replacement from a population of rankings whose own
values are therefore exactly the true ones (`ranktilt.auditing.calibration.simulation`).
Values and intervals come from the functions
that an audit calls. An interval that claims 95 % should hold the true value in 93–97 % of 2,000 collections.

Power: a table of tests, one of which has a true Relative Δ of exactly the printed detectable effect, must find it in
80 % of draws, whatever the size of the table.

Level: with real rankings and sources that a coin exchanged for each origin, a side must be named in some 5 % of audits.

The script is not called coverage.py: beside the others it would stand in for the package of that name.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

from common import ABSENT, Watch, arguments, machine, nfcorpus, publish, say, table

PACKAGES = ("ranktilt", "numpy", "scipy")
SIZES = (50, 300)
LOW, HIGH = 93.0, 97.0


class Plan(NamedTuple):
    """How much is simulated."""

    population: int
    draws: int
    resamples: int
    labelings: int


FULL, QUICK = Plan(200_000, 2_000, 2_000, 200), Plan(2_000, 20, 200, 2)
TABLES = ((1, 300), (9, 300), (32, 300), (9, 50), (32, 50))
RANKERS = ("bm25", "tfidf", "dense:minilm")
LISTS = 100
SEQUENTIAL: dict[str, tuple[int, float, int, float | None]] = {
    "twins of 300 origins, 600 queries until 3": (600, 3, 600, None),
    "twins of 300 origins, 1,500 queries until 2": (1500, 2, 600, None),
    "labels, 300 queries over 400 documents until 3": (300, 3, 400, None),
    "labels, 300 queries over 10,000 until 3": (300, 3, 10_000, None),
    "labels, 1,500 queries over 400 until 3": (1500, 3, 400, None),
}
"""Queries, until, documents, and the tilt that is planted in lists of drawn documents, which hardly recur."""
PLANTED = ((0, 0.0), (5, 0.12), (10, 0.235), (20, 0.49))
for _kind, (_points, _tilt) in product(("labels", "twins"), PLANTED):
    SEQUENTIAL[f"{_kind}, planted {_points} points, until 10"] = (400, 10, 20_000, _tilt)
MEASURES = ("nDCG@1", "nDCG@3", "AP@5", "nDCG@10")


def section(plan: Plan, seed: int) -> str:
    """Simulate, count, and write the table."""
    from ranktilt.auditing.calibration.simulation import coverage, population

    watch = Watch()
    say(f"simulating {plan.population:,} queries")
    with watch("population"):
        whole = population(plan.population, seed=seed)
    found = []
    for size in SIZES:
        say(f"{plan.draws:,} collections of {size} queries")
        with watch("coverage"):
            found.append(coverage(whole, size, draws=plan.draws, resamples=plan.resamples, seed=seed))
    header = ["estimand", "true value"]
    for size in SIZES:
        header += [f"{size} queries", "too low", "too high", "bias (sd)"]
    rows = []
    for each in zip(*found, strict=True):
        row = [each[0].estimand, f"{each[0].truth:+.4g}"]
        for one in each:
            above = one.draws - one.held - one.below
            row += [f"{100 * one.share:.1f} %", f"{one.below}", f"{above}", f"{one.bias:+.2f}"]
        rows.append(row)
    lines = [
        f"{plan.draws:,} simulated collections of each size from {plan.population:,} queries; {plan.resamples:,} "
        "bootstrap resamples an interval (an audit makes 10,000). Too low, too high: intervals that lie wholly below "
        "or above the true value; bias: mean estimate less the true value, in standard deviations of the estimates.",
        table(header, [[cell.replace("-", "−") if n else cell for n, cell in enumerate(row)] for row in rows]),
        "\n".join(_target(size, [100 * one.share for one in each]) for size, each in zip(SIZES, found, strict=True)),
        f"Simulated in {watch.parts['population']:.0f} s, counted in {watch.parts['coverage']:.0f} s.",
    ]
    return "\n\n".join(lines)


def power_section(plan: Plan, seed: int) -> str:
    """Count how often a table finds a tilt of the size that it says it could detect."""
    import numpy as np

    from ranktilt.auditing.inference import InferenceOptions, Sample, effects
    from ranktilt.measures.contrast import RelativeDelta
    from ranktilt.measures.precision import P
    from ranktilt.statistics.correction import detectable_effect

    rng = np.random.default_rng([seed, 3])
    rows = []
    for tests, queries in TABLES:
        # Both sides have a mean of .5 and a standard deviation of .1: Relative Δ is 200 times their difference.
        error = 200 * 0.1 * np.sqrt(2 / queries)
        gap = detectable_effect(error, tests, queries) / 200
        found, printed = 0, []
        for draw in range(plan.draws):
            values = 0.5 + rng.normal(scale=0.1, size=(tests, 2, queries))
            values[0, 0] += gap / 2
            values[0, 1] -= gap / 2
            samples = [Sample("r", RelativeDelta(of=P @ (n + 1)), "a", "b", *pair) for n, pair in enumerate(values)]
            first = effects(samples, InferenceOptions(5 * plan.resamples, draw, "permutation", "holm", "none"))[0]
            found += first.verdict() == "a"
            printed.append(first.detectable)
        share = 100 * found / plan.draws
        met = "met" if abs(share - 80) <= 4 else "MISSED"
        rows.append(
            [f"{tests}", f"{queries}", f"{200 * gap:.1f} %", f"{np.mean(printed):.1f} %", f"{share:.1f} %", met]
        )
    header = ["tests in the table", "queries", "true tilt", "printed detectable effect", "found", "80 ± 4 %"]
    return f"{plan.draws:,} tables each, Holm.\n\n" + table(header, rows)


def level_section(plan: Plan) -> str:
    """Count how often a side is named where a coin decided for each origin which text is whose."""
    import ranktilt as rt
    from ranktilt.auditing.calibration.synthetic_twins import sampled

    folder = nfcorpus()
    if folder is None:
        return ABSENT
    # SciFact has one source; its made-up twins are the same texts without every third word.
    made = {"NFCorpus, Llama-2 rewrites": rt.load(folder)}
    if plan is FULL:
        scifact = rt.load(folder.parent / "scifact")
        made["SciFact, made-up twins"] = sampled(scifact, pairs=10**6, queries=10**6, seed=0)
    parts = []
    for name, collection in made.items():
        runs = [rt.ranker(text).rank(collection) for text in (RANKERS if plan is FULL else RANKERS[:1])]
        say(f"{name}: {plan.labelings} labelings of {len(runs)} runs")
        parts.append(f"{name}:\n\n{_named(collection, runs, plan.labelings)}")
    return "\n\n".join(parts)


def _named(collection: Any, runs: Sequence[Any], labelings: int) -> str:
    """How often each question names a side, run by run."""
    from ranktilt.auditing.audit import audit
    from ranktilt.auditing.calibration.synthetic_twins import with_random_sources

    named: dict[str, Counter[str]] = {}
    for number in range(labelings):
        labeled = with_random_sources(collection, [number, 8])
        found = audit(labeled, runs, MEASURES, card=True, confounds=False, resamples=1_000, seed=number)
        for tilt in found.tilts:
            side = tilt.p < 0.05 and (tilt.low > 0 or tilt.high < 0)
            named.setdefault(f"Relative Δ {tilt.measure}", Counter())[tilt.run] += side
        for one in found.estimates:
            if one.estimand.kind != "relevance":
                named.setdefault(one.name, Counter())[one.run] += bool(one.leans) and one.p < 0.05
    shares = {name: [100 * of[run.name] / labelings for run in runs] for name, of in named.items()}
    every = [share for row in shares.values() for share in row]
    mean = sum(every) / len(every)
    met = "met" if max(every) <= 8.5 and 2 <= mean <= 6 else "MISSED"
    rows = [[name, *(f"{share:.1f} %" for share in row)] for name, row in shares.items()]
    goal = f"- over all **{mean:.1f} %** (target 2–6 %), at most **{max(every):.1f} %** (target 8.5 %): {met}"
    return table(["a side named, p < .05", *(run.name for run in runs)], rows) + "\n\n" + goal


class _Simulated(NamedTuple):
    """Ranks by documents' quality and a query's noise; where a tilt is planted, lists of documents that it drew."""

    world: int
    tilt: float | None

    def rank(self, collection: Any) -> Any:
        import numpy as np

        import ranktilt as rt

        fixed = np.random.default_rng([self.world, 1]).normal(0, 0.5, collection.docs.height)
        if self.tilt is not None:
            fixed = np.where(collection.docs["source"] == "a", self.tilt / 2, -self.tilt / 2)
        lists = []
        for name in collection.queries["id"]:
            rng, drawn = np.random.default_rng([self.world, 2, int(name)]), np.arange(len(fixed))
            if self.tilt is not None:
                drawn = np.add.outer(2 * rng.choice(len(fixed) // 2, LISTS // 2, replace=False), (0, 1)).ravel()
            score = fixed[drawn] + rng.normal(0, 1, len(drawn))
            first = np.argsort(-score)[:LISTS]
            lists.append((drawn[first], score[first]))
        docs, scores = (np.concatenate(each) for each in zip(*lists, strict=True))
        return rt.Run(
            collection.queries["id"].to_list(), LISTS * np.arange(len(lists) + 1), docs, scores, collection.ids
        )


def sequential_section(plan: Plan) -> str:
    """Count what sequential audits decide where a coin tossed the labels, and where a tilt was planted."""
    import numpy as np
    import polars as pl

    import ranktilt as rt
    from ranktilt.auditing.sequential import decided

    rows = []
    for name, (queries, until, number, tilt) in SEQUENTIAL.items():
        say(f"sequential: {name}")
        asked = pl.DataFrame({"id": [str(n) for n in range(queries)], "text": "?"})
        none = pl.DataFrame(schema={"query_id": pl.String, "doc_id": pl.String, "grade": pl.Int64})
        ends: list[list[tuple[str, int]]] = [[], []]
        for world in range(plan.labelings):
            coin, ids = np.random.default_rng([world, 3]).integers(0, 2, number), np.arange(number)
            docs = pl.DataFrame({"id": ids.astype(str), "text": ""})
            if name.startswith("twins"):
                coin[1::2] = 1 - coin[::2]
                docs = docs.with_columns(origin=pl.Series((ids - ids % 2).astype(str)))
            labelled = docs.with_columns(source=pl.Series(np.where(coin, "a", "b")))
            found = rt.audit_until(rt.Collection(labelled, asked, none), _Simulated(world, tilt), until, seed=world)
            alone = [look._replace(low=look.query_low, high=look.query_high) for look in found.looks]
            for looks, end in zip((found.looks, alone), ends, strict=True):
                last = next((look for look in looks if decided(look, until / 100) != "inconclusive"), looks[-1])
                end.append((decided(last, until / 100), last.queries))
        cells = []
        for end in ends:
            decisions, lengths = zip(*end, strict=True)
            cells += [f"{100 * decisions.count(what) / plan.labelings:.1f} %" for what in ("tilted", "level")]
            cells.append(f"{np.median(lengths):.0f}")
        rows.append([name, *cells])
    header = ["", "tilted", "level", "queries (median)", "by queries alone: tilted", "level", "queries"]
    return f"{plan.labelings} worlds each, lists of {LISTS}, Share@10.\n\n" + table(header, rows)


def _target(size: int, shares: Sequence[float]) -> str:
    low, high = min(shares), max(shares)
    met = "met" if low >= LOW and high <= HIGH else "MISSED"
    return f"- coverage at {size} queries: **{low:.1f}–{high:.1f} %** (target {LOW:g}–{HIGH:g} %: {met})"


def main() -> None:
    """Measure everything and write the section."""
    parser: argparse.ArgumentParser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    plan = QUICK if given.quick else FULL
    parts = ["## Coverage, power and level", machine(PACKAGES), "### Coverage of intervals", section(plan, given.seed)]
    parts += ["### Power at the detectable effect", power_section(plan, given.seed)]
    parts += ["### Sides by chance", level_section(plan)]
    parts += ["### Sequential audits", sequential_section(plan)]
    publish("intervals", "\n\n".join(parts), given)


if __name__ == "__main__":
    main()
