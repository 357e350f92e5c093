"""Coverage: how often the 95 % bootstrap interval holds a true value that is known.

Simulated collections of 50 and of 300 queries, drawn with replacement from a population of rankings whose own values
are therefore exactly the true ones (`ranktilt.auditing.simulated`). Values and intervals come from the functions that
an audit calls. An interval that claims 95 % should hold the true value in 93–97 % of 2,000 collections.

The script is not called coverage.py: beside the others it would stand in for the package of that name.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NamedTuple

from common import Watch, arguments, machine, publish, say, table

PACKAGES = ("ranktilt", "numpy", "scipy")
SIZES = (50, 300)
LOW, HIGH = 93.0, 97.0


class Plan(NamedTuple):
    """How much is simulated."""

    population: int
    draws: int
    resamples: int


FULL, QUICK = Plan(200_000, 2_000, 2_000), Plan(2_000, 20, 200)


def section(plan: Plan, seed: int) -> str:
    """Simulate, count, and write the table."""
    from ranktilt.auditing.simulated import coverage, population

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
    parts = ["## Coverage of intervals", machine(PACKAGES), section(plan, given.seed)]
    publish("intervals", "\n\n".join(parts), given)


if __name__ == "__main__":
    main()
