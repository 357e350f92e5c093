"""Pooled rewriting on NFCorpus: what an audit loses when only judged and well-ranked documents are
rewritten.

The full rewrites are at hand, so a pool can be tried by leaving out the rewrites of all other
documents. Every human document stays. Relative Δ from the pooled collection is held against that of
the full one, query by query: the difference with its paired bootstrap interval, and whether the
pooled value lies within the full one's interval.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from common import ABSENT, machine, nfcorpus, publish, say, table
from common import arguments as common_arguments

from ranktilt import audit, bundled, load, ranker
from ranktilt.auditing.result import Audit
from ranktilt.data.collection import Collection
from ranktilt.data.runs.run import Run
from ranktilt.generation.pooling import Pool, pool, restrict_to_pool
from ranktilt.measures.contrast import relative_delta
from ranktilt.statistics.bootstrap import RESAMPLES, interval, resampled_means

PACKAGES = ("ranktilt", "numpy", "scipy", "polars", "sentence-transformers")
PAPER = ("nDCG@1", "nDCG@3", "nDCG@5", "AP@1", "AP@3", "AP@5")
DEEPER = ("nDCG@10", "nDCG@100", "R@100", "AP@1000")
AUDITED = ("bm25", "bm25(k1=0.9,b=0.4)", "tfidf", "dense:minilm")
POOLS = (("bm25",), ("bm25", "dense:minilm"))
DEPTHS = (10, 20, 50, 100)
FEW = 50
SPLITS = ("train", "dev", "test")
LEGEND = (
    "Every human document stays; rewrites of documents outside the pool are left out. Difference: "
    "pooled less full "
    "Relative Δ, in points, over the same queries. Within: the pooled value lies in the full one's "
    "95 % interval. 0 in "
    "interval: the paired bootstrap interval of the difference holds 0. Judged: whatever the grade."
)


class Plan(NamedTuple):
    """What is tried."""

    audited: Sequence[str]
    pools: Sequence[Sequence[str]]
    depths: Sequence[int]
    few: int
    resamples: int


FULL = Plan(AUDITED, POOLS, DEPTHS, FEW, RESAMPLES)
QUICK = Plan(("bm25", "tfidf"), (("bm25",),), (1, 3), 10, 200)


class Cell(NamedTuple):
    """One measure of one ranker: the full collection beside the pooled one."""

    run: str
    measure: str
    full: float
    low: float
    high: float
    pooled: float
    change_low: float
    change_high: float
    same_verdict: bool

    @property
    def change(self) -> float:
        """Pooled less full, in points."""
        return self.pooled - self.full

    @property
    def inside(self) -> bool:
        """Whether the pooled value lies within the full one's interval."""
        return self.low <= self.pooled <= self.high

    @property
    def zero(self) -> bool:
        """Whether the interval of the difference holds 0."""
        return self.change_low <= 0 <= self.change_high


class Trial(NamedTuple):
    """One pool and what it changed."""

    pool: Pool
    cells: list[Cell]
    pages: list[tuple[str, float, float, float, float]]
    """Per ranker ΔNDSR@20 of the full and of the pooled collection, each with the level of its
    random band.
    """


def judged_by(collection: Collection, queries: int) -> Collection:
    """Keep the judgments of so many queries, drawn with a seed."""
    names = collection.queries_with_judgments["id"]
    drawn = np.sort(
        np.random.default_rng(0).choice(len(names), min(queries, len(names)), replace=False)
    )
    judgments = collection.qrels.filter(pl.col("query_id").is_in(names.gather(drawn).implode()))
    return Collection(collection.docs, collection.queries, judgments, collection.spec)


def ranked(collection: Collection, plan: Plan) -> list[Run]:
    """Rank with each ranker."""
    return [ranker(text).rank(collection) for text in plan.audited]


def audited(collection: Collection, plan: Plan) -> Audit:
    """Audit with every measure that is looked at, and the card."""
    runs = ranked(collection, plan)
    return audit(
        collection, runs, [*PAPER, *DEEPER], card=True, confounds=False, resamples=plan.resamples
    )


def tried(collection: Collection, full_audit: Audit, chosen: Pool, plan: Plan) -> Trial:
    """Audit a pool, and hold it against the full collection."""
    part = audited(restrict_to_pool(collection, chosen), plan)
    kinds = [[t.verdict() for t in audit.tilts] for audit in (full_audit, part)]
    cells = []
    for number, (tilt, (run, measure)) in enumerate(
        zip(full_audit.tilts, _run_measures(full_audit), strict=True)
    ):
        columns = [
            audit.values[run, measure, group] for audit in (full_audit, part) for group in (1, 2)
        ]
        defined = ~np.isnan(columns).any(axis=0)
        means = resampled_means([c[defined] for c in columns], resamples=plan.resamples)
        spread = interval(relative_delta(*means[2:]) - relative_delta(*means[:2]))
        value = part.tilts[number].value
        same = kinds[0][number] == kinds[1][number]
        cells.append(
            Cell(
                tilt.run,
                tilt.measure,
                tilt.value,
                tilt.low,
                tilt.high,
                value,
                spread.low,
                spread.high,
                same,
            )
        )
    return Trial(chosen, cells, list(_pages(full_audit, part)))


def _run_measures(full_audit: Audit) -> Iterator[tuple[int, int]]:
    return (
        (run, measure)
        for run in range(len(full_audit.runs))
        for measure in range(len(full_audit.measures))
    )


def _pages(full_audit: Audit, part: Audit) -> Iterator[tuple[str, float, float, float, float]]:
    for run in full_audit.runs:
        effects = [
            next(e for e in audit.card_of(run) if e.estimand.key == "page")
            for audit in (full_audit, part)
        ]
        yield (run, *(n for e in effects for n in (e.value, e.neutral)))


def size_row(name: str, collection: Collection, rankers: Sequence[str], plan: Plan) -> list[Any]:
    """How many documents a pool has: the judged ones alone, and depth by depth."""
    chosen = [pool(collection, [])]
    chosen += [
        pool(collection, [ranker(text) for text in rankers], depth=depth) for depth in plan.depths
    ]
    texts = [
        f"{len(chosen_pool.ids):,} ({_percent(chosen_pool.saved / chosen_pool.documents)} saved)"
        for chosen_pool in chosen
    ]
    return [name, " + ".join(rankers), *texts]


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _signed(value: float, digits: int = 1) -> str:
    text = f"{value:+.{digits}f}"
    return text.lstrip("+-") if float(text) == 0 else text.replace("-", "−")


def summary(trials: Sequence[Trial], measures: Sequence[str], runs: Sequence[str]) -> str:
    """A line a pool: how far off it is over all rankers and some measures."""
    header = [
        "pool",
        "rewritten",
        "saved",
        "largest difference",
        "within",
        "0 in interval",
        "same verdict",
    ]
    rows = []
    for trial in trials:
        cells = [c for c in trial.cells if c.measure in measures and c.run in runs]
        worst = max(cells, key=lambda c: abs(c.change))
        rows.append(
            [
                pool_name(trial.pool),
                f"{len(trial.pool.ids):,}",
                _percent(trial.pool.saved / trial.pool.documents),
                f"{_signed(worst.change)} ({worst.run}, {worst.measure})",
                *(
                    f"{sum(flags)} of {len(cells)}"
                    for flags in (
                        [c.inside for c in cells],
                        [c.zero for c in cells],
                        [c.same_verdict for c in cells],
                    )
                ),
            ]
        )
    return table(header, rows)


def pool_name(chosen: Pool) -> str:
    """A pool in a few words."""
    names = " + ".join(chosen.spec["rankers"])
    return f"{names} @ {chosen.spec['depth']}" if names else "judged only"


def detail(trial: Trial, measures: Sequence[str]) -> str:
    """One pool, cell by cell: the full value, and the difference with its interval."""
    runs = list(dict.fromkeys(c.run for c in trial.cells))
    rows = []
    for run in runs:
        cells = [next(c for c in trial.cells if (c.run, c.measure) == (run, m)) for m in measures]
        rows.append(
            [
                f"{run}: full",
                *(f"{_signed(c.full)} [{_signed(c.low)}, {_signed(c.high)}]" for c in cells),
            ]
        )
        changes = [
            f"{_signed(c.change)} [{_signed(c.change_low)}, {_signed(c.change_high)}]"
            for c in cells
        ]
        rows.append(
            [
                "pooled − full",
                *(
                    f"{text}{'' if c.inside else ' !'}"
                    for text, c in zip(changes, cells, strict=True)
                ),
            ]
        )
    return table(["", *measures], rows)


def pages(trials: Sequence[Trial]) -> str:
    """ΔNDSR@20, which counts every document: full and pooled, each beside its level."""
    header = ["ranker", "full (level)"] + [pool_name(t.pool) for t in trials]
    rows = []
    for number, (run, value, level, _, _) in enumerate(trials[0].pages):
        cells = [t.pages[number] for t in trials]
        rows.append(
            [
                run,
                f"{_signed(value, 3)} ({_signed(level, 3)})",
                *(f"{_signed(c[3], 3)} ({_signed(c[4], 3)})" for c in cells),
            ]
        )
    return table(header, rows)


def part(title: str, collection: Collection, plan: Plan) -> list[str]:
    """Try all pools with the queries of one collection."""
    say(f"{title}: the full collection")
    full_audit = audited(collection, plan)
    trials = [tried(collection, full_audit, pool(collection, []), plan)]
    for rankers in plan.pools:
        for depth in plan.depths:
            chosen = pool(collection, [ranker(text) for text in rankers], depth=depth)
            say(f"{title}: {pool_name(chosen)}")
            trials.append(tried(collection, full_audit, chosen, plan))
    runs = list(plan.audited)
    outside = [r for r in runs if r not in {name for names in plan.pools for name in names}]
    last = trials[-len(plan.depths) :]
    cells = [c for t in trials if t.pool.spec["rankers"] for c in t.cells if c.measure in PAPER]
    met = "met" if all(c.inside for c in cells) else "MISSED"
    return [
        f"### {title} ({len(full_audit.queries)})",
        "- pooled Relative Δ at the papers' cutoffs within the full one's interval, rankers' "
        "pools: "
        f"**{sum(c.inside for c in cells)} of {len(cells)}** (target all: {met})",
        "At the papers' cutoffs (nDCG and AP at 1, 3, 5), all rankers:",
        summary(trials, PAPER, runs),
        f"Deeper ({', '.join(DEEPER)}), all rankers:",
        summary(trials, DEEPER, runs),
        f"The same cutoffs as the papers', rankers outside of every pool ({', '.join(outside)}):",
        summary(trials, PAPER, outside),
        (
            f"Cell by cell, {pool_name(last[0].pool)} (a mark, !, where the pooled value leaves "
            "the "
            "full interval):"
        ),
        detail(last[0], PAPER),
        "ΔNDSR@20, which counts all that stands on a page, with the level that random labels give:",
        pages(last),
    ]


def arguments() -> argparse.Namespace:
    """Read the command line."""
    return common_arguments(__doc__.splitlines()[0]).parse_args()


def main() -> None:
    """Measure everything and write the section."""
    args = arguments()
    folder = nfcorpus()
    if folder is None and not args.quick:
        publish("pool", f"## Pooled rewriting\n\n{ABSENT}", args)
        return
    plan = QUICK if args.quick else FULL
    collection = bundled() if args.quick or folder is None else load(folder)
    where = (
        "the bundled collection (a tiny plan, to which no target applies)"
        if args.quick
        else "NFCorpus"
    )
    lines = [f"## Pooled rewriting: {where}", machine(PACKAGES), LEGEND]
    few = judged_by(collection, plan.few)
    sizes = [size_row("test", collection, names, plan) for names in plan.pools]
    sizes += [size_row(f"{plan.few} of test", few, names, plan) for names in plan.pools]
    if folder is not None and not args.quick:
        every = Collection(
            collection.docs,
            collection.queries,
            pl.concat([load(folder, split=s).qrels for s in SPLITS]).unique(),
        )
        sizes += [size_row("all splits", every, names, plan) for names in plan.pools]
        sparse = load(folder.parent / "scifact")
        sizes.append(size_row("SciFact, test", sparse, POOLS[0], plan))
    header = ["queries", "pool", "judged only", *(f"depth {d}" for d in plan.depths)]
    lines += ["Human documents in the pool:", table(header, sizes)]
    lines += part("All test queries", collection, plan)
    lines += part(f"{plan.few} of the test queries", few, plan)
    publish("pool", "\n\n".join(lines), args)


if __name__ == "__main__":
    main()
