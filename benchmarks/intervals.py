"""Intervals and p-values where the right answer is known: coverage, level, power and verdicts.

Simulations: some 60 small worlds (`worlds.py`), null ones and tilted ones (`scenarios.py`), are
drawn 2,000 times each and audited by the public functions (`questions.py`). A row (`counting.py`)
fails where type I exceeds 6 %, or the coverage of the 95 % interval falls below 93 %, by more than
2.6 Monte Carlo errors, or where p and interval disagree in more than 3 % of draws.

Power: a tilt of exactly the printed detectable effect must be found in 80 % of draws.

Level: with real rankings and sources that a coin exchanged for each origin, a side must be named in
some 5 % of audits.

The script is not called coverage.py, which would hide the package of that name.

    python benchmarks/intervals.py --jobs 2
    python benchmarks/intervals.py --only "compare twins" --only NFCorpus --draws 400
"""

from __future__ import annotations

import argparse
import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from common import ABSENT, arguments, machine, nfcorpus, publish, say, shared, table
from counting import HEADER, Effort, Row, simulated_rows
from questions import ALPHA, audited
from scenarios import scenarios
from worlds import (
    LABEL,
    LabelDesign,
    TwinDesign,
    World,
    label_world,
    twin_world,
    with_random_sources,
)

import ranktilt as rt
from ranktilt.statistics.correction import correct

PACKAGES = ("ranktilt", "numpy", "scipy")


class Plan(NamedTuple):
    """How much is simulated."""

    draws: int
    resamples: int
    labelings: int
    """Labelings of real rankings, and sequential worlds."""
    power_draws: int


FULL = Plan(draws=2_000, resamples=1_000, labelings=200, power_draws=400)
QUICK = Plan(draws=2, resamples=200, labelings=2, power_draws=2)
RANKERS = ("bm25", "tfidf", "dense:minilm")
POWER_ALLOWANCE = 5.0


def simulated_section(plan: Plan, args: argparse.Namespace) -> str:
    """Draw every scenario, count, and write the table."""
    chosen = scenarios()
    if args.only:
        chosen = [scenario for scenario in chosen if _is_chosen(scenario.name, args.only)]
    if not chosen:
        names = "\n".join(scenario.name for scenario in scenarios())
        raise SystemExit(f"no scenario begins with {args.only}; there are:\n{names}")
    effort = Effort(
        draws=args.draws or plan.draws,
        resamples=plan.resamples,
        jobs=args.jobs,
        rough_truth=args.quick,
        seed=args.seed,
    )
    rows: list[Row] = []
    for scenario_rows in simulated_rows(chosen, effort):
        rows += scenario_rows
        for row in scenario_rows:
            say(f"  {' | '.join(row.cells)}")
    failed = [row for row in rows if row.faults]
    conservative = sum("conservative" in row.remarks for row in rows)
    lost = sum("findings are lost" in row.remarks for row in rows)
    met = "MISSED" if failed else "met"
    lines = [
        f"{effort.draws:,} draws of each scenario (fewer where a draw takes seconds), "
        f"{effort.resamples:,} resamples each (an audit makes 10,000). Effective n: median.",
        table(HEADER, [row.cells for row in rows]),
        f"- rows that fail: **{len(failed)} of {len(rows)}** (target 0: {met})\n"
        f"- conservative: {conservative}; findings are lost: {lost}",
    ]
    return "\n\n".join(lines)


def _is_chosen(name: str, texts: Sequence[str]) -> bool:
    return any(name.startswith(text) for text in texts)


# ---- power --------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class PowerCase:
    """A table of runs of which the first one tilts by what the table says it could detect."""

    name: str
    primary: str
    draw: Callable[[np.random.Generator, float], World]
    """Takes a random generator and a tilt."""
    by: str = "source"


def tilted_twins(rng: np.random.Generator, tilt: float, design: TwinDesign) -> World:
    """Draw twins of which the first run favours one side."""
    return twin_world(rng, replace(design, lead=tilt))


def tilted_labels(rng: np.random.Generator, tilt: float, design: LabelDesign) -> World:
    """Draw documents of which one label is worth more."""
    return label_world(rng, replace(design, tilt=tilt))


def power_cases(*, quick: bool) -> Iterator[PowerCase]:
    """Return tables of several sizes, and several primary questions."""
    sizes = ((1, 300), (9, 300), (32, 300), (9, 50), (32, 50))
    for runs, queries in sizes[:1] if quick else sizes:
        design = TwinDesign(queries=queries, origins=2_000, runs=runs)
        yield PowerCase(
            name=f"Relative Δ nDCG@10, runs: {runs}, queries: {queries}",
            primary="nDCG@10",
            draw=partial(tilted_twins, design=design),
        )
    both_vary = TwinDesign(queries=80, origins=80, by_query=0.5, by_origin=0.5)
    for primary in ("nDCG@10", "HeadToHead", "NDSR@20"):
        yield PowerCase(
            name=f"{primary}, both vary, runs: 1, queries: 80",
            primary=primary,
            draw=partial(tilted_twins, design=both_vary),
        )
    queries = 20 if quick else 100
    labels = LabelDesign(queries=queries, documents=queries * 40, disjoint=True)
    yield PowerCase(
        name=f"Share@10, labels, runs: 1, queries: {queries}",
        primary="Share@10",
        draw=partial(tilted_labels, design=labels),
        by=LABEL,
    )


def power_section(plan: Plan, args: argparse.Namespace) -> str:
    """Count how often a table finds a tilt of the size that it says it could detect."""
    rows = []
    for case in power_cases(quick=args.quick):
        say(f"power: {case.name}")
        tilt = 0.2
        # Twice: what a tilt does to an estimand is no straight line.
        for salt in (1, 2):
            pilots = _first_effects(case, tilt, max(plan.power_draws // 10, 2), salt)
            tilt *= _mean(pilots, "detectable") / _mean(pilots, "tilt")
        effects = _first_effects(case, tilt, plan.power_draws, 3)
        power = 100 * _mean(effects, "is_found")
        amounts = [f"{_mean(effects, column):.4g}" for column in ("tilt", "detectable")]
        met = "met" if abs(power - 80) <= POWER_ALLOWANCE else "MISSED"
        rows.append([case.name, *amounts, f"{power:.1f} %", met])
    header = ["primary question", "true tilt", "printed detectable effect", "found"]
    header.append(f"80 ± {POWER_ALLOWANCE:g} %")
    return f"{plan.power_draws:,} tables each, Holm.\n\n{table(header, rows)}"


def _first_effects(case: PowerCase, tilt: float, draws: int, salt: int) -> list[dict[str, float]]:
    """Audit many tables; return what each says of its first run, the one that tilts."""
    effects = []
    for number in range(draws):
        world = case.draw(np.random.default_rng([number, salt, 14]), tilt)
        audit = audited(world, [case.primary], by=case.by, resamples=1_000, seed=number)
        effect = next(
            effect
            for effect in (*audit.tilts, *audit.card)
            if effect.run == world.runs[0].name and effect.measure == case.primary
        )
        effects.append(
            {
                "tilt": effect.value - effect.neutral,
                "detectable": effect.detectable,
                "is_found": float(effect.favours == "a"),
            }
        )
    return effects


def _mean(effects: Sequence[Mapping[str, float]], column: str) -> float:
    return float(np.mean([effect[column] for effect in effects]))


# ---- level: real rankings of twins -------------------------------------------------------------

LEVEL_MEASURES = ("nDCG@1", "nDCG@3", "AP@5", "nDCG@10")


def level_section(plan: Plan, args: argparse.Namespace) -> str:
    """Count how often a side is named where a coin decided for each origin which text is whose."""
    folder = nfcorpus()
    if folder is None:
        return ABSENT
    collections = {"NFCorpus, Llama-2 rewrites": rt.load(folder)}
    scifact = shared("scifact")
    if not args.quick and scifact is not None:
        collections["SciFact, made-up twins"] = with_thinned_twins(rt.load(scifact))
    parts = []
    for name, collection in collections.items():
        rankers = RANKERS[:1] if args.quick else RANKERS
        runs = [rt.ranker(text).rank(collection) for text in rankers]
        say(f"{name}: {plan.labelings} labelings of {len(runs)} runs")
        parts.append(f"{name}:\n\n{_named_sides(collection, runs, plan.labelings)}")
    return "\n\n".join(parts)


def with_thinned_twins(collection: rt.Collection) -> rt.Collection:
    """Add a second source: the same texts without every third word."""
    thinned = collection.docs["text"].map_elements(_thinned, return_dtype=pl.String)
    docs = collection.docs.with_columns(source=pl.lit("whole"), origin=pl.col("id"))
    twin_ids = pl.format("{}-thinned", "id")
    twins = docs.with_columns(id=twin_ids, source=pl.lit("thinned"), text=thinned)
    qrels = collection.qrels
    twin_qrels = qrels.with_columns(doc_id=pl.format("{}-thinned", "doc_id"))
    every_doc, every_qrel = pl.concat([docs, twins]), pl.concat([qrels, twin_qrels])
    return rt.Collection(every_doc, collection.queries, every_qrel)


def _thinned(text: str) -> str:
    words = text.split()
    return " ".join(word for number, word in enumerate(words) if number % 3 != 2)


def _named_sides(collection: rt.Collection, runs: Sequence[rt.Run], labelings: int) -> str:
    """Count how often each question names a side, run by run."""
    counts: dict[str, Counter[str]] = {}
    for number in range(labelings):
        labelled = with_random_sources(collection, np.random.default_rng([number, 8]))
        world = World(collection=labelled, runs=tuple(runs))
        audit = audited(world, LEVEL_MEASURES, card=True, resamples=1_000, seed=number)
        effects = {(effect.name, effect.run): effect for effect in (*audit.card, *audit.tilts)}
        for (name, run), effect in effects.items():
            is_named = effect.p < ALPHA and bool(effect.leans)
            counts.setdefault(name, Counter())[run] += is_named
    rows, shares = [], []
    for name, by_run in counts.items():
        line = [100 * by_run[run.name] / labelings for run in runs]
        rows.append([name, *(f"{share:.1f} %" for share in line)])
        shares += line
    header = ["a side named, p < .05", *(run.name for run in runs)]
    return f"{table(header, rows)}\n\n{_level_line(shares)}"


def _level_line(shares: Sequence[float]) -> str:
    mean, most = float(np.mean(shares)), max(shares)
    met = "met" if most <= 8.5 and 2 <= mean <= 6 else "MISSED"
    return (
        f"- over all **{mean:.1f} %** (target 2–6 %), at most **{most:.1f} %** (target 8.5 %): "
        f"{met}"
    )


# ---- verdicts: one primary question against a table of measures ----------------------------------

QUERY_COUNTS = (50, 100, 200, 323)
"""Queries of NFCorpus that are drawn."""
LIFTS = (0.0, 0.04, 0.08, 0.15)
SIX_MEASURES = ("nDCG@1", "nDCG@3", "nDCG@5", "AP@1", "AP@3", "AP@5")
"""The measures that are a family in the paper's tables."""
PRIMARY = "nDCG@10"


@dataclass(frozen=True, kw_only=True)
class VerdictDraw:
    """What one labeling of NFCorpus gives."""

    by_primary: bool
    """Whether the primary question names a side for any run."""
    by_first_of_six: bool
    """Whether nDCG@1 does, corrected over six measures and all runs."""
    tilt: float
    primary_ratio: float
    """Value over standard error."""
    first_ratio: float


def verdict_section(plan: Plan, args: argparse.Namespace) -> str:
    """Hold verdicts on the primary question against those on the first of a table of measures."""
    folder = nfcorpus()
    if folder is None:
        return ABSENT
    collection = rt.load(folder)
    rankers = RANKERS[:1] if args.quick else RANKERS
    runs = [rt.ranker(f"{text}@100").rank(collection) for text in rankers]
    lifts = LIFTS[::3] if args.quick else LIFTS
    counts = QUERY_COUNTS[-1:] if args.quick else QUERY_COUNTS
    rows, errors, needed = [], [], []
    for lift, size in product(lifts, counts):
        say(f"verdicts: {size} queries, {lift:g}")
        draws = [
            _verdict_draw(collection, runs if lift == 0 else runs[:1], size, lift, number)
            for number in range(2 * plan.labelings)
        ]
        by_primary, by_first, tilt, *ratios = np.mean([astuple(draw) for draw in draws], axis=0)
        cells = ["–", "–"]
        if lift:
            # Queries for 80 % power at 5 % alone, and at the first step of Holm over six.
            queries = [
                size * ((critical + 0.84) / ratio) ** 2
                for critical, ratio in zip((1.96, 2.64), ratios, strict=True)
            ]
            cells = [f"{count:,.0f}" for count in queries]
            if size == QUERY_COUNTS[-1]:
                needed.append(100 * queries[0] / queries[1])
        else:
            errors.append(100 * by_primary)
        shares = [f"{100 * share:.1f} %" for share in (by_primary, by_first)]
        rows.append([f"{size}", f"{tilt:.1f} %", *shares, *cells])
    header = [
        "queries",
        f"true tilt, {PRIMARY}",
        "shown by the primary question",
        "by nDCG@1 of six",
        "queries for 80 %",
        "by nDCG@1 of six",
    ]
    met = ["met" if max(errors) <= 5.5 else "MISSED", "met" if max(needed) <= 60 else "MISSED"]
    return (
        f"NFCorpus, sources by a coin for each origin, {2 * plan.labelings} labelings a row. "
        f"Without a tilt: some verdict of {len(runs)} rankers; with one: BM25's, whose scores of "
        f"one source are lifted.\n\n{table(header, rows)}\n\n"
        f"- family-wise error at most **{max(errors):.1f} %** (target 5.5 %): {met[0]}\n"
        f"- queries for the same power: at most **{max(needed):.0f} %** of those by nDCG@1 "
        f"(target 60 %): {met[1]}"
    )


def _verdict_draw(
    collection: rt.Collection, runs: Sequence[rt.Run], size: int, lift: float, number: int
) -> VerdictDraw:
    """Label NFCorpus by coins, draw queries, lift one side, and audit."""
    labelled = with_random_sources(collection, np.random.default_rng([number, 10]))
    rng = np.random.default_rng([number, 12])
    chosen = rng.choice(labelled.queries_with_judgments["id"].to_numpy(), size, replace=False)
    part = labelled.only_queries(chosen.tolist())
    side = sorted(part.sources)[0]
    lifted = [lifted_run(run, part, side, lift) if lift else run for run in runs]
    world = World(collection=part, runs=tuple(lifted))
    audit = audited(world, [*SIX_MEASURES, PRIMARY], primary=PRIMARY, resamples=1_000, seed=number)
    by_measure = {
        measure: [tilt.seen_from(side) for tilt in audit.tilts if tilt.measure == measure]
        for measure in (*SIX_MEASURES, PRIMARY)
    }
    family = list(itertools.chain.from_iterable(by_measure[measure] for measure in SIX_MEASURES))
    corrected = correct(np.array([tilt.p for tilt in family]), "holm")
    primary, first = by_measure[PRIMARY], by_measure[SIX_MEASURES[0]]
    return VerdictDraw(
        by_primary=any(tilt.favours for tilt in primary),
        by_first_of_six=any(
            p < ALPHA and bool(tilt.leans)
            for tilt, p in zip(family, corrected.tolist(), strict=True)
            if tilt.measure == SIX_MEASURES[0]
        ),
        tilt=primary[0].value,
        primary_ratio=_ratio(primary[0]),
        first_ratio=_ratio(first[0]),
    )


def _ratio(effect: Any) -> float:
    return float(effect.value / effect.error) if effect.error else 0.0


def lifted_run(run: rt.Run, collection: rt.Collection, side: str, lift: float) -> rt.Run:
    """Lift the scores of one source, in standard deviations of each list."""
    is_side = (collection.docs["source"] == side).to_numpy()
    docs, scores = run.docs.copy(), run.scores.copy()
    for start, end in itertools.pairwise(run.offsets.tolist()):
        part = slice(start, end)
        gain = lift * run.scores[part].std() if end > start else 0.0
        own_scores = run.scores[part] + gain * is_side[run.docs[part]]
        order = np.argsort(-own_scores, kind="stable")
        docs[part], scores[part] = run.docs[part][order], own_scores[order]
    return rt.Run(run.queries, run.offsets, docs, scores, ids=run.ids, spec=run.spec)


# ---- sequential audits ---------------------------------------------------------------------------
LISTS = 100
SEQUENTIAL: dict[str, tuple[int, float, int, float | None]] = {
    "twins of 300 origins, 600 queries until 3": (600, 3, 600, None),
    "twins of 300 origins, 1,500 queries until 2": (1500, 2, 600, None),
    "labels, 300 queries over 400 documents until 3": (300, 3, 400, None),
    "labels, 300 queries over 10,000 until 3": (300, 3, 10_000, None),
    "labels, 1,500 queries over 400 until 3": (1500, 3, 400, None),
}
"""Queries, until, documents, and the tilt that is planted in lists of drawn documents, which hardly
recur.
"""
PLANTED = ((0, 0.0), (5, 0.12), (10, 0.235), (20, 0.49))
for _kind, (_points, _tilt) in product(("labels", "twins"), PLANTED):
    SEQUENTIAL[f"{_kind}, planted {_points} points, until 10"] = (400, 10, 20_000, _tilt)


class _Simulated(NamedTuple):
    """Ranks by documents' quality and a query's noise; where a tilt is planted, lists of documents
    that it drew.
    """

    world: int
    tilt: float | None

    def rank(self, collection: Any) -> Any:
        fixed = np.random.default_rng([self.world, 1]).normal(0, 0.5, collection.docs.height)
        if self.tilt is not None:
            fixed = np.where(collection.docs["source"] == "a", self.tilt / 2, -self.tilt / 2)
        lists = []
        for name in collection.queries["id"]:
            rng, drawn = np.random.default_rng([self.world, 2, int(name)]), np.arange(len(fixed))
            if self.tilt is not None:
                drawn = np.add.outer(
                    2 * rng.choice(len(fixed) // 2, LISTS // 2, replace=False), (0, 1)
                ).ravel()
            score = fixed[drawn] + rng.normal(0, 1, len(drawn))
            first = np.argsort(-score)[:LISTS]
            lists.append((drawn[first], score[first]))
        docs, scores = (np.concatenate(parts) for parts in zip(*lists, strict=True))
        return rt.Run(
            collection.queries["id"].to_list(),
            LISTS * np.arange(len(lists) + 1),
            docs,
            scores,
            collection.ids,
        )


def sequential_section(plan: Plan, args: argparse.Namespace) -> str:
    """Count what sequential audits decide where a coin tossed the labels, and where a tilt was
    planted.
    """
    from ranktilt.auditing.sequential import decision_after

    rows = []
    for name, (queries, until, number, tilt) in SEQUENTIAL.items():
        say(f"sequential: {name}")
        queries_frame = pl.DataFrame({"id": [str(n) for n in range(queries)], "text": "?"})
        none = pl.DataFrame(schema={"query_id": pl.String, "doc_id": pl.String, "grade": pl.Int64})
        ends: list[list[tuple[str, int]]] = [[], []]
        for world in range(plan.labelings):
            coin, ids = np.random.default_rng([world, 3]).integers(0, 2, number), np.arange(number)
            docs = pl.DataFrame({"id": ids.astype(str), "text": ""})
            if name.startswith("twins"):
                coin[1::2] = 1 - coin[::2]
                docs = docs.with_columns(origin=pl.Series((ids - ids % 2).astype(str)))
            labelled = docs.with_columns(source=pl.Series(np.where(coin, "a", "b")))
            sequential = rt.sequential_audit(
                rt.Collection(labelled, queries_frame, none),
                _Simulated(world, tilt),
                until,
                seed=world,
            )
            alone = [
                look._replace(low=look.query_low, high=look.query_high) for look in sequential.looks
            ]
            for looks, end in zip((sequential.looks, alone), ends, strict=True):
                last = next(
                    (
                        look
                        for look in looks
                        if decision_after(look, until / 100, sequential.variation) != "inconclusive"
                    ),
                    looks[-1],
                )
                end.append((decision_after(last, until / 100, sequential.variation), last.queries))
        cells = []
        for end in ends:
            decisions, lengths = zip(*end, strict=True)
            cells += [
                f"{100 * decisions.count(decision) / plan.labelings:.1f} %"
                for decision in ("tilted", "level")
            ]
            cells.append(f"{np.median(lengths):.0f}")
        rows.append([name, *cells])
    header = [
        "",
        "tilted",
        "level",
        "queries (median)",
        "by queries alone: tilted",
        "level",
        "queries",
    ]
    return f"{plan.labelings} worlds each, lists of {LISTS}, Share@10.\n\n" + table(header, rows)


SECTIONS = {
    "Simulations": simulated_section,
    "Power at the detectable effect": power_section,
    "Sides by chance": level_section,
    "Verdicts on the primary question": verdict_section,
    "Sequential audits": sequential_section,
}


def main() -> None:
    """Measure everything and write the section."""
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--draws", type=int, help="draws of each scenario (2,000)")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument(
        "--only",
        action="append",
        metavar="NAME",
        help="only scenarios whose names begin so, and no other section; repeatable",
    )
    args = parser.parse_args()
    plan = QUICK if args.quick else FULL
    sections = {"Simulations": simulated_section} if args.only else SECTIONS
    parts = ["## Coverage, power and level", machine(PACKAGES)]
    for title, section in sections.items():
        parts += [f"### {title}", section(plan, args)]
    text = "\n\n".join(parts)
    if args.only and args.output is None:
        print(text)
    else:
        publish("intervals", text, args)


if __name__ == "__main__":
    main()
