"""Audits of judges: how long they take, and how often their intervals hold the true value.

Real grades of twelve judges stand for 33. Simulated systems of two families and judges of unequal
quality are those of the tests: a family of six among 18 systems that is better by .1, over 50
queries. Orders of systems and means from few labels are simulated here; an interval that claims 95
% should hold the true value in 93 % of 2,000 draws, less 2.6 Monte Carlo errors.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
from common import ROOT, arguments, machine, publish, say, shared, table, target
from scipy import special

from ranktilt.data.runs.run import Run
from ranktilt.judging.judge import judge
from ranktilt.statistics.bootstrap import blocks, resampled_means
from ranktilt.statistics.judges.family_difference import family_difference
from ranktilt.statistics.judges.prediction_powered import powered_mean
from ranktilt.statistics.judges.rank_correlation import (
    PERSISTENCE,
    coefficient_interval,
    kendall_tau,
    near_resamples,
    rank_biased_overlap,
    top_weighted_tau,
)

Floats = npt.NDArray[np.float64]

PACKAGES = ("ranktilt", "numpy", "scipy", "polars")
JUDGES, SYSTEMS, QUERIES = 33, 60, 80
DRAWS = 2_000
LEAST, MOST = 0.93, 0.97
"""Shares of draws between which an interval of 95 % should hold the truth."""
MONTE_CARLO_ERRORS = 2.6
ROUNDING = 1e-9


def agreement(folder: Path, judges: int) -> tuple[float, int]:
    """Seconds of an audit of so many judges, and the pairs that each graded; reading the files
    counts.
    """
    files = sorted(path for path in folder.glob("*.qrels.gz") if "human" not in path.name)
    judge_files = {
        f"{files[n % len(files)].name} {n}": files[n % len(files)] for n in range(judges)
    }
    start = time.perf_counter()
    result = judge(judge_files, folder / "human.qrels.gz")
    return time.perf_counter() - start, max(row.pairs for row in result.overall)


def systems(runs: int, queries: int) -> float:
    """Seconds of comparing generated systems under two judges, families and few labels included."""
    rng = np.random.default_rng(1)
    docs = 100
    names = [(f"q{query}", f"{query}-{doc}") for query in range(queries) for doc in range(docs)]
    grades = rng.choice(4, len(names), p=[0.6, 0.2, 0.15, 0.05])
    frame = pl.DataFrame(names, ["query_id", "doc_id"], orient="row").with_columns(
        grade=pl.Series(grades)
    )
    noisy = np.clip(grades + rng.integers(-1, 2, len(grades)), 0, 3)
    scored_runs = []
    for number in range(runs):
        scores = grades + rng.normal(0, 1 + number / runs, len(grades))
        rows = frame.select("query_id", "doc_id", score=pl.Series(scores))
        scored_runs.append(Run.from_frame(rows, spec={"ranker": f"run{number}"}))
    families = {f"run{number}": "even" if number % 2 == 0 else "odd" for number in range(runs)}
    start = time.perf_counter()
    judge(
        {"noisy": frame.with_columns(grade=pl.Series(noisy))},
        frame,
        runs=scored_runs,
        families=families,
        human_sample=docs * queries // 4,
    )
    return time.perf_counter() - start


def covered(draws: int) -> tuple[list[list[str]], float, float]:
    """A row for each judge and preference, and the share without a preference for which one is
    shown.

    The third is the largest share of draws in which p is below .05 but the interval holds 0, or the
    reverse.
    """
    sys.path.insert(0, str(ROOT))
    from tests.judging.judged import MEMBER, WORLDS, world

    rows, shown_rows, disagreed = [], [], []
    for kind, options in WORLDS.items():
        for preference in (0.0, 0.05, 0.15):
            differences = [
                family_difference(*world(seed, preference, **options), MEMBER)
                for seed in range(draws)
            ]
            coverage = float(
                np.mean(
                    [difference.low <= preference <= difference.high for difference in differences]
                )
            )
            sided = 100 * np.mean([difference.p < 0.05 for difference in differences])
            disagreed.append(
                100
                * np.mean(
                    [
                        (difference.p < 0.05) is (difference.low <= 0 <= difference.high)
                        for difference in differences
                    ]
                )
            )
            plain, value = (
                float(np.mean([getattr(difference, name) for difference in differences]))
                for name in ("plain", "value")
            )
            shown_rows += [sided] if preference == 0 else []
            numbers = [f"{sided:.1f} %", f"{value:+.3f}", f"{plain:+.3f}"]
            rows.append(
                [
                    kind,
                    f"{preference:g}",
                    f"{100 * coverage:.1f} %",
                    coverage_verdict(coverage, draws),
                    *numbers,
                ]
            )
    return rows, float(np.mean(shown_rows)), float(max(disagreed))


def coverage_verdict(share: float, draws: int) -> str:
    """Say whether intervals hold the truth as often as they should."""
    lowest = LEAST - MONTE_CARLO_ERRORS * float(np.sqrt(LEAST * (1 - LEAST) / draws))
    if share < lowest:
        return "MISSED"
    return "conservative" if share > MOST else "met"


class OrderWorld(NamedTuple):
    """Systems under humans and a judge: what they are worth, and values of drawn queries."""

    human_quality: Floats
    judged_quality: Floats
    human: Floats
    judged: Floats
    """(systems, queries)."""


class Judge(NamedTuple):
    """How systems and a judge are simulated."""

    taste: float
    """Standard deviation of what the judge adds to a system in all queries."""
    good_systems: float
    """Share of systems that are nearly equal, at the top."""


JUDGES_OF_ORDER = {
    "a judge with tastes": Judge(taste=0.05, good_systems=0.0),
    "a good judge": Judge(taste=0.02, good_systems=0.0),
    "a judge with tastes, many good systems": Judge(taste=0.05, good_systems=2 / 3),
}
SIZES_OF_ORDER = ((10, 53), (10, 200), (30, 100), (63, 53))
FAULTLESS = "a judge with the human order"
"""Its coefficients are 1: noise alone makes both orders differ, and no resampling tells how much
less without it.
"""
SIZES_OF_FAULTLESS = ((10, 53), (30, 100))
ORDER_RESAMPLES = 400
COEFFICIENTS: dict[str, tuple[Callable[[Floats, Floats], Floats], float]] = {
    "τ-b": (kendall_tau, -1.0),
    "τ_AP": (top_weighted_tau, -1.0),
    "RBO": (rank_biased_overlap, 0.0),
}
"""Coefficients, and the least that each can be."""


def order_world(seed: int, systems: int, queries: int, judge: Judge) -> OrderWorld:
    """Draw systems whose values differ by .08 (the good ones by .013), and queries that disturb
    them by .15.
    """
    rng = np.random.default_rng([seed, systems, queries])
    human_quality = 0.5 + rng.normal(0, 0.08, systems)
    is_good = np.arange(systems) < judge.good_systems * systems
    human_quality = np.where(is_good, 0.65 + rng.normal(0, 0.013, systems), human_quality)
    judged_quality = 0.15 + 0.8 * human_quality + rng.normal(0, judge.taste, systems)
    difficulty = rng.normal(0, 0.15, queries)
    noise = rng.normal(0, 0.15, (systems, queries))
    judged_noise = 0.6 * noise + rng.normal(0, 0.1, (systems, queries))
    judged_difficulty = 0.7 * difficulty + rng.normal(0, 0.1, queries)
    return OrderWorld(
        human_quality=human_quality,
        judged_quality=judged_quality,
        human=human_quality[:, None] + difficulty + noise,
        judged=judged_quality[:, None] + judged_difficulty + judged_noise,
    )


def order_row(kind: str, systems: int, queries: int, draws: int) -> list[str]:
    """Count how often intervals of coefficients hold that of what systems are worth."""
    hits = dict.fromkeys(COEFFICIENTS, 0)
    for seed in range(draws):
        world = order_world(
            seed, systems, queries, JUDGES_OF_ORDER.get(kind, Judge(taste=0.0, good_systems=0.0))
        )
        means = resampled_means([*world.human, *world.judged], resamples=ORDER_RESAMPLES, seed=seed)
        resampled = np.stack(means, axis=1)
        samples = tie_free_coefficients(resampled[:, :systems], resampled[:, systems:])
        observed = np.concatenate([world.human.mean(1), world.judged.mean(1)])
        near = near_resamples(observed, resampled)
        near_samples = tie_free_coefficients(near[:, :systems], near[:, systems:])
        for name, (coefficient, least) in COEFFICIENTS.items():
            truth = float(coefficient(world.human_quality, world.judged_quality))
            value = float(coefficient(world.human.mean(1), world.judged.mean(1)))
            interval = coefficient_interval(value, samples[name], near_samples[name], least=least)
            hits[name] += interval.low - ROUNDING <= truth <= interval.high + ROUNDING
            if seed == 0:
                expected = coefficient(resampled[:, :systems], resampled[:, systems:])
                np.testing.assert_allclose(samples[name], expected, atol=ROUNDING)
    row = [kind, f"{systems}", f"{queries}"]
    for hit_count in hits.values():
        share = hit_count / draws
        row.append(f"{100 * share:.1f} %, {coverage_verdict(share, draws)}")
    return row


def tie_free_coefficients(human: Floats, judged: Floats) -> dict[str, Floats]:
    """Compute all coefficients of many orders without ties, some ten times as fast as where ties
    may come.
    """
    resamples, systems = human.shape
    above_both = np.empty((resamples, systems))
    for start, stop in blocks(resamples, systems**2, 1 << 18):
        by_human, by_judge = human[start:stop], judged[start:stop]
        is_above = by_human[:, None, :] > by_human[:, :, None]
        is_above &= by_judge[:, None, :] > by_judge[:, :, None]
        above_both[start:stop] = is_above.sum(-1)
    human_rank, judged_rank = (
        np.argsort(np.argsort(-means, axis=1), axis=1) for means in (human, judged)
    )
    pairs = systems * (systems - 1) / 2
    shares = np.divide(
        above_both, judged_rank, out=np.zeros_like(above_both), where=judged_rank > 0
    )
    later_rank = np.maximum(human_rank, judged_rank)
    row = np.arange(resamples)[:, None] * systems
    entries = np.bincount((row + later_rank).ravel(), minlength=resamples * systems).reshape(
        resamples, systems
    )
    overlap = entries.cumsum(axis=1) / np.arange(1, systems + 1)
    weights = PERSISTENCE ** np.arange(systems)
    return {
        "τ-b": 2 * above_both.sum(1) / pairs - 1,
        "τ_AP": 2 * shares.sum(1) / (systems - 1) - 1,
        "RBO": (1 - PERSISTENCE) * (overlap @ weights) + PERSISTENCE**systems * overlap[:, -1],
    }


LABELS = (2, 3, 4, 5, 8, 12, 23)
LABELLED_QUERIES = 80
CORRELATIONS = (0.3, 0.6, 0.9)


def few_labels_row(labels: int, draws: int) -> list[str]:
    """Count how often prediction-powered intervals hold the mean of values that are cut off at 0
    and 1.
    """
    grid = special.ndtri((np.arange(100_000) + 0.5) / 100_000)
    truth = float(_cut_off(grid, 0.45, 0.28).mean())
    row = [f"{labels}"]
    for correlation in CORRELATIONS:
        hits, intervals = 0, 0
        for seed in range(draws):
            rng = np.random.default_rng([seed, labels, int(10 * correlation)])
            human = rng.normal(0, 1, LABELLED_QUERIES)
            noise = np.sqrt(1 - correlation**2) * rng.normal(0, 1, LABELLED_QUERIES)
            judged = _cut_off(correlation * human + noise, 0.6, 0.22)
            powered = powered_mean(
                _cut_off(human[:labels], 0.45, 0.28), judged[:labels], judged[labels:]
            )
            intervals += not np.isnan(powered.low)
            hits += powered.low <= truth <= powered.high
        share = hits / draws
        row.append(
            f"{100 * share:.1f} %, {coverage_verdict(share, draws)}" if intervals else "no interval"
        )
    return row


def _cut_off(normal: Floats, mean: float, spread: float) -> Floats:
    values: Floats = np.clip(mean + spread * normal, 0, 1)
    return values


def main() -> None:
    """Measure, simulate, and write the section."""
    args = arguments(__doc__ or "").parse_args()
    folder, lines = shared("llm-judges"), list[str]()
    if folder is not None:
        seconds, pairs = agreement(folder, 3 if args.quick else JUDGES)
        lines.append(
            target(
                f"{JUDGES} judges × {pairs:,} pairs, with intervals", seconds, at_most=5, unit=" s"
            )
        )
    compared = systems(*((6, 20) if args.quick else (SYSTEMS, QUERIES)))
    title = (
        f"{SYSTEMS} systems × {QUERIES} queries under two judges: order, pairs, families, few "
        "labels"
    )
    lines.append(target(title, compared, at_most=20, unit=" s"))
    draws = 50 if args.quick else DRAWS
    rows, shown_rows, disagreed = covered(draws)
    header = [
        "judge",
        "preference",
        "held by the interval",
        "target",
        "shown",
        "mean",
        "plain difference",
    ]
    orders = []
    for systems_count, queries in SIZES_OF_ORDER[:1] if args.quick else SIZES_OF_ORDER:
        for kind in JUDGES_OF_ORDER:
            say(f"order: {systems_count} systems, {queries} queries, {kind}")
            orders.append(order_row(kind, systems_count, queries, draws))
    faultless = []
    for systems_count, queries in SIZES_OF_FAULTLESS[:1] if args.quick else SIZES_OF_FAULTLESS:
        faultless.append(order_row(FAULTLESS, systems_count, queries, draws))
    few = []
    for labels in LABELS:
        say(f"few labels: {labels}")
        few.append(few_labels_row(labels, draws))
    correlations = [f"correlation {correlation:g}" for correlation in CORRELATIONS]
    errors = f"{MONTE_CARLO_ERRORS} Monte Carlo errors"
    target_note = f"Target: {100 * LEAST:g} %, less {errors}; above {100 * MOST:g} %: conservative."
    text = [
        "## Audits of judges",
        machine(PACKAGES),
        "\n".join(lines),
        f"Preference for a family, {draws:,} simulated worlds a row. {target_note}",
        table(header, rows),
        target("shown without a preference", shown_rows, at_most=6, unit=" %")
        + "\n"
        + target("interval and p disagree, at most", disagreed, at_most=3, unit=" %"),
        "Orders of systems: how often the interval of a coefficient holds that of what systems "
        f"are worth, {draws:,} "
        f"draws a row of systems, judge and queries, {ORDER_RESAMPLES} resamples.",
        table(["judge", "systems", "queries", *COEFFICIENTS], orders),
        "The limit of these intervals, where the truth is 1:",
        table(["judge", "systems", "queries", *COEFFICIENTS], faultless),
        "Few labels: how often the interval of a prediction-powered mean holds the truth, "
        f"{draws:,} draws of "
        f"{LABELLED_QUERIES} queries each.",
        table(["labelled queries", *correlations], few),
    ]
    publish("judges", "\n\n".join(text), args)


if __name__ == "__main__":
    main()
