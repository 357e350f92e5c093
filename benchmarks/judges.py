"""Audits of judges: how long they take, and how often the preference for a family holds its true value.

Real grades of twelve judges stand for 33. Simulated systems of two families and judges of unequal quality are those of
the tests: a family of six among 18 systems that is better by .1, over 50 queries.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
from common import ROOT, arguments, machine, publish, shared, table, target

from ranktilt.judging.judge import judge
from ranktilt.run import Run
from ranktilt.statistics.family_difference import family_difference

PACKAGES = ("ranktilt", "numpy", "scipy", "polars")
JUDGES, SYSTEMS, QUERIES = 33, 60, 80
DRAWS = 2_000


def agreement(folder: Path, judges: int) -> tuple[float, int]:
    """Seconds of an audit of so many judges, and the pairs that each graded; reading the files counts."""
    files = sorted(path for path in folder.glob("*.qrels.gz") if "human" not in path.name)
    named = {f"{files[n % len(files)].name} {n}": files[n % len(files)] for n in range(judges)}
    start = time.perf_counter()
    found = judge(named, folder / "human.qrels.gz")
    return time.perf_counter() - start, max(row.pairs for row in found.overall)


def systems(runs: int, queries: int) -> float:
    """Seconds of comparing generated systems under two judges, families and few labels included."""
    rng = np.random.default_rng(1)
    docs = 100
    names = [(f"q{query}", f"{query}-{doc}") for query in range(queries) for doc in range(docs)]
    grades = rng.choice(4, len(names), p=[0.6, 0.2, 0.15, 0.05])
    frame = pl.DataFrame(names, ["query_id", "doc_id"], orient="row").with_columns(grade=pl.Series(grades))
    noisy = np.clip(grades + rng.integers(-1, 2, len(grades)), 0, 3)
    given = []
    for number in range(runs):
        scores = grades + rng.normal(0, 1 + number / runs, len(grades))
        rows = frame.select("query_id", "doc_id", score=pl.Series(scores))
        given.append(Run.from_frame(rows, spec={"ranker": f"run{number}"}))
    families = {f"run{number}": "even" if number % 2 == 0 else "odd" for number in range(runs)}
    start = time.perf_counter()
    judge(
        {"noisy": frame.with_columns(grade=pl.Series(noisy))},
        frame,
        runs=given,
        families=families,
        human_sample=docs * queries // 4,
    )
    return time.perf_counter() - start


def covered(draws: int) -> tuple[list[list[str]], float]:
    """A row for each judge and preference, and the share without a preference for which one is shown."""
    sys.path.insert(0, str(ROOT))
    from tests.judging.judged import MEMBER, WORLDS, world

    rows, shown = [], []
    for kind, how in WORLDS.items():
        for preference in (0.0, 0.05, 0.15):
            found = [family_difference(*world(seed, preference, **how), MEMBER) for seed in range(draws)]
            held = 100 * np.mean([one.low <= preference <= one.high for one in found])
            sided = 100 * np.mean([one.p < 0.05 for one in found])
            plain, value = (float(np.mean([getattr(one, name) for one in found])) for name in ("plain", "value"))
            shown += [sided] if preference == 0 else []
            rows.append([kind, f"{preference:g}", f"{held:.1f} %", f"{sided:.1f} %", f"{value:+.3f}", f"{plain:+.3f}"])
    return rows, float(np.mean(shown))


def main() -> None:
    """Measure, simulate, and write the section."""
    given = arguments(__doc__ or "").parse_args()
    folder, lines = shared("llm-judges"), list[str]()
    if folder is not None:
        seconds, pairs = agreement(folder, 3 if given.quick else JUDGES)
        lines.append(target(f"{JUDGES} judges × {pairs:,} pairs, with intervals", seconds, at_most=5, unit=" s"))
    compared = systems(*((6, 20) if given.quick else (SYSTEMS, QUERIES)))
    what = f"{SYSTEMS} systems × {QUERIES} queries under two judges: order, pairs, families, few labels"
    lines.append(target(what, compared, at_most=20, unit=" s"))
    rows, shown = covered(50 if given.quick else DRAWS)
    header = ["judge", "preference", "held by the interval", "shown", "mean", "plain difference"]
    text = [
        "## Audits of judges", machine(PACKAGES), "\n".join(lines),
        f"Preference for a family, {DRAWS:,} simulated worlds:", table(header, rows),
        target("shown without a preference", shown, at_most=6, unit=" %"),
    ]  # fmt: skip
    publish("judges", "\n\n".join(text), given)


if __name__ == "__main__":
    main()
