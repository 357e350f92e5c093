"""How often the bench's sentence is true: simulated rankers that favour one side by a known amount,
levelled afresh.

Each simulation draws a tilt, queries to fit on, to select by and to test on, and asks the bench for
the smallest correction that is level within ±20 points at a loss of at most three points of
nDCG@10. What it says is held against the same corrected ranker on 4,000 further queries. Where no
tilt is drawn, it should recommend nothing.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
from common import arguments, machine, publish, say, table, target
from simulated import Simulated

from ranktilt.auditing.audit import audit
from ranktilt.mitigation.bench_result import Bench
from ranktilt.mitigation.mitigate import mitigate
from ranktilt.mitigation.options import MitigationOptions
from ranktilt.mitigation.query_split import QuerySplit
from ranktilt.registry import ranker

PACKAGES = ("ranktilt", "numpy", "scipy", "polars")
SIMULATIONS, QUERIES, TRUE = 200, 150, 93.0
RECOMMENDED = 2.0
"""Most percent of rankers without a tilt for which a correction may be recommended."""
TRUTH = 4_000
METHODS = ("offset", "interleave", "fair-rerank", "fair-rerank:exposure")
MEASURE = "nDCG@10"
COVERED = "interval of "
LEVEL, BUDGET, RESAMPLES = 20.0, 3.0, 2_000


def levelled(seed: int, folder: Path, *, tilted: bool = True) -> tuple[float, Bench]:
    """One simulation: the tilt it drew, and the bench on its test queries."""
    rng = np.random.default_rng(seed)
    tilt = float(rng.choice([-1, 1]) * rng.uniform(0.1, 0.5)) if tilted else 0.0
    queries, fit, select = QUERIES, 2 * QUERIES // 3, QUERIES // 2
    population = Simulated.drawn(rng, fit + select + queries, tilt)
    names = population.run.queries
    sides = (names[:fit], names[fit : fit + select], names[fit + select :])
    to_fit, to_select, to_test = (population.collection.only_queries(side) for side in sides)
    split = QuerySplit(fit=to_fit, select=to_select, test=to_test, drawn_from=population.collection)
    options = MitigationOptions.from_texts(
        METHODS, strengths=(0.25, 0.5, 0.75, 1.0), seed=seed % 1000, always=True
    )
    bench = mitigate(
        split,
        population.run,
        [MEASURE],
        folder=folder,
        options=options,
        resamples=RESAMPLES,
        margin=LEVEL,
        budget=BUDGET,
    )
    return tilt, bench


def truth(name: str, bench: Bench, population: Simulated) -> tuple[float, float]:
    """Relative Δ of a candidate on many queries, in percent, and its loss of effectiveness, in
    points.
    """
    candidate = next(eligible for eligible in bench.candidates if eligible.name == name)
    run = population.run
    if candidate.method:
        run = ranker(candidate.ranker.removeprefix("simulated>>")).rank(population.collection, run)
    runs = [population.run, replace(run, spec={"ranker": "corrected"})]
    seen = audit(population.collection, runs, [MEASURE], resamples=100, confounds=False, keep_top=0)
    delta = next(tilt.value for tilt in seen.tilts if tilt.run == "corrected")
    before, after = (float(np.nanmean(seen.values[n, -1, 0])) for n in range(2))
    return delta, 100 * (before - after)


def claims(bench: Bench, tilt: float, seed: int) -> Iterator[tuple[str, bool]]:
    """What the bench claims, and whether it is true."""
    choice, plain = bench.choose(), float("nan")
    rng = np.random.default_rng(10_000 + seed)
    population = Simulated.drawn(rng, TRUTH, tilt, prefix="t")
    for candidate in (bench.baseline, *bench.eligible):
        outcome = choice.outcome_of(candidate.name)
        delta, loss = truth(candidate.name, bench, population)
        interval, change = (
            get(candidate.name, bench.pairs[0]) for get in (bench.tilt, bench.change)
        )
        yield f"{COVERED}{candidate.method or 'baseline'}", interval.low <= delta <= interval.high
        if change is None:
            plain = delta
        else:
            yield (
                f"{COVERED}{candidate.method} less the baseline",
                change.low <= delta - plain <= change.high,
            )
        if outcome == "inconclusive":
            continue
        fits = abs(delta) <= bench.margin and loss <= bench.budget
        yield (
            f"{'baseline' if not candidate.method else candidate.method} {outcome}",
            fits == (outcome in ("level", "within")),
        )


def simulation(seed: int) -> tuple[str, list[tuple[str, bool]]]:
    """Return the outcome of one simulation's sentence, and its claims."""
    with tempfile.TemporaryDirectory() as folder:
        tilt, bench = levelled(seed, Path(folder))
        return bench.choose().outcome, list(claims(bench, tilt, seed))


def recommended(seed: int) -> bool:
    """Whether something is recommended for a ranker that favours nobody."""
    with tempfile.TemporaryDirectory() as folder:
        return levelled(50_000 + seed, Path(folder), tilted=False)[1].choose().chosen is not None


def section(simulations: int) -> str:
    """Simulate, count, and say how many claims were true."""
    made_count, right, sentences = Counter[str](), Counter[str](), Counter[str]()
    with ProcessPoolExecutor() as pool:
        for number, (outcome, checked_claims) in enumerate(
            pool.map(simulation, range(simulations)), start=1
        ):
            sentences[outcome] += 1
            made_count.update(name for name, _ in checked_claims)
            right.update(name for name, true in checked_claims if true)
            say(f"simulation {number} of {simulations}: {outcome}")
        nulls = sum(pool.map(recommended, range(2 * simulations)))
    claimed = sorted(name for name in made_count if not name.startswith(COVERED))
    every, true = (sum(count[name] for name in claimed) for count in (made_count, right))
    rows = [[name, right[name], made_count[name]] for name in claimed]
    coverage_rows = [
        [name.removeprefix(COVERED), right[name], made_count[name]]
        for name in sorted(made_count)
        if name not in claimed
    ]
    outcome_counts = ", ".join(f"{name} {count}" for name, count in sorted(sentences.items()))
    return "\n\n".join(
        [
            (
                f"{simulations} simulations with {QUERIES} test queries each; their sentences: "
                f"{outcome_counts}."
            ),
            table(["claim", "true", "made"], [*rows, ["**all**", true, every]]),
            table(["interval of", "holds what further queries give", "of"], coverage_rows),
            target("claims that are true", 100 * true / max(every, 1), at_least=TRUE, unit=" %"),
            target(
                "recommended without a tilt",
                50 * nulls / simulations,
                at_most=RECOMMENDED,
                unit=" %",
            ),
        ]
    )


def main() -> None:
    """Measure and write the section."""
    args = arguments(__doc__.splitlines()[0]).parse_args()
    text = section(2 if args.quick else SIMULATIONS)
    publish(
        "mitigate-claims",
        "\n\n".join(["## What a bench of corrections claims", machine(PACKAGES), text]),
        args,
    )


if __name__ == "__main__":
    main()
