"""Coverage, power and level: intervals, detectable effects and tests where the right answer is known.

Coverage: simulated collections of 50 and of 300 queries, drawn with replacement from a population of rankings whose own
values are therefore exactly the true ones (`simulated_rankings.py`).
Values and intervals come from the functions
that an audit calls. An interval that claims 95 % should hold the true value in 93–97 % of 2,000 collections.

Power: a table of tests, one of which has a true Relative Δ of exactly the printed detectable effect, must find it in
80 % of draws, whatever the size of the table.

Level: with real rankings and sources that a coin exchanged for each origin, a side must be named in some 5 % of audits;
and where a coin labels each document, in some 5 % of pairwise audits of a judge who has favourite documents.

The script is not called coverage.py: beside the others it would stand in for the package of that name.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
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
    from simulated_rankings import coverage, population

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

    from ranktilt.auditing.significance import InferenceOptions, Sample, effects
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
    rows = [[name, *(f"{share:.1f} %" for share in row)] for name, row in shares.items()]
    goal = _goal([share for row in shares.values() for share in row])
    return table(["a side named, p < .05", *(run.name for run in runs)], rows) + "\n\n" + goal


def pairwise_section(plan: Plan) -> str:
    """Count how often a judge of pairs who has favourite documents, the longer ones, is said to favour a side."""
    import numpy as np
    import polars as pl

    import ranktilt as rt

    def made(documents: int) -> Any:
        rng, ids, queries = np.random.default_rng(documents), range(documents), [f"q{n}" for n in range(44)]
        docs = pl.DataFrame({"id": [f"d{n}" for n in ids], "text": ["x" * (n + 1) for n in ids]})
        relevant = [(query, f"d{n}", 1) for query in queries for n in rng.choice(documents, 12, replace=False)]
        qrels = pl.DataFrame(relevant, orient="row", schema=["query_id", "doc_id", "grade"])
        return rt.Collection(docs, pl.DataFrame({"id": queries, "text": queries}), qrels)

    worlds = [(f"{docs:,} documents × 44 queries", made(docs), 0.0) for docs in (60, 2_000)]
    worlds.append(("2,000 × 44, 9.2 points put in", made(2_000), 0.331))
    if plan is FULL and (folder := nfcorpus()) is not None:
        worlds.append(("NFCorpus", rt.load(folder), 0.0))
    rows, level = [], []
    for name, collection, tilt in worlds:
        say(f"pairs: {name}")
        draws = np.array([_of_pairs(collection, tilt, seed) for seed in range(plan.labelings)])
        for kind, shares in zip(("relevant", "irrelevant"), (100 * draws.mean(axis=0)).tolist(), strict=True):
            rows.append([f"{name}, {kind}", f"{shares[0]:.1f} %", f"{shares[1]:.1f} points"])
            level += [] if tilt else [shares[0]]
    header = ["choices between documents with labels by a coin", "a side named, p < .05", "detectable"]
    return f"{plan.labelings} labelings each.\n\n{table(header, rows)}\n\n{_goal(level)}"


def _of_pairs(collection: Any, tilt: float, seed: int) -> list[list[float]]:
    """For both kinds of pairs: is a side named, and what could have been detected."""
    import polars as pl
    from scipy import special, stats

    from ranktilt.auditing.pairwise.choices import SCHEMA, Decisions, pairwise
    from ranktilt.auditing.pairwise.pairs import draw_pairs, two_groups
    from ranktilt.statistics.correction import detectable_effect

    labeled = with_random_labels(collection, [seed, 9])
    rank = stats.rankdata(labeled.docs["text"].str.len_chars().to_numpy()) / (labeled.docs.height + 1)
    sides = two_groups(labeled, LABEL, LABELS[0])
    worth = dict(zip(labeled.ids, special.ndtri(rank) + tilt * sides.code, strict=True))
    pairs = draw_pairs(labeled, sides, seed=seed).frame.iter_rows()
    orders = [(query, kind, *order) for query, kind, a, b in pairs for order in ((a, b), (b, a))]
    choices = [(*row, max(row[2:], key=worth.__getitem__), "imported") for row in orders]
    decisions = Decisions(pl.DataFrame(choices, SCHEMA, orient="row"), sides, "judge")
    outcomes = pairwise(labeled, decisions, resamples=1_000, seed=seed).outcomes
    return [
        [o.p < 0.05 and o.preference.uneven, detectable_effect(o.error, queries=min(o.votes, o.documents))]
        for o in outcomes
    ]


LABEL, LABELS = "label", ("first", "second")


def with_random_labels(collection: Any, seed: Sequence[int]) -> Any:
    """Give every document one of two labels that mean nothing, in the column ``label``; a fair coin decides."""
    import numpy as np
    import polars as pl

    import ranktilt as rt

    drawn = np.random.default_rng(seed).integers(0, 2, collection.docs.height)
    names = pl.Series(LABEL, np.array(LABELS)[drawn], dtype=pl.String)
    return rt.Collection(collection.docs.with_columns(names), collection.queries, collection.qrels)


def with_random_sources(collection: Any, seed: Sequence[int]) -> Any:
    """Let a fair coin decide for each origin whether its documents of the first two sources exchange their sources."""
    import numpy as np
    import polars as pl

    import ranktilt as rt

    one, two = collection.sources[:2]
    docs = collection.docs
    turned = np.random.default_rng(seed).integers(0, 2, docs["origin"].n_unique()).astype(bool)
    mine = pl.Series(turned[collection.origin_codes()])
    exchanged = docs["source"].replace({one: two, two: one})
    source = docs.select(pl.when(mine).then(exchanged).otherwise("source").alias("source"))
    return rt.Collection(docs.with_columns(source), collection.queries, collection.qrels)


def _goal(shares: Sequence[float]) -> str:
    mean, most = sum(shares) / len(shares), max(shares)
    met = "met" if most <= 8.5 and 2 <= mean <= 6 else "MISSED"
    return f"- over all **{mean:.1f} %** (target 2–6 %), at most **{most:.1f} %** (target 8.5 %): {met}"


ASKED = (50, 100, 200, 323)
"""Queries of NFCorpus that are drawn."""
LIFTS = (0.0, 0.04, 0.08, 0.15)
BEFORE = ("nDCG@1", "nDCG@3", "nDCG@5", "AP@1", "AP@3", "AP@5")
"""Measures that were one family, of which the first gave the verdict."""


def verdict_section(plan: Plan) -> str:
    """Hold verdicts on the primary question against those on the first of a table of measures."""
    import numpy as np

    import ranktilt as rt

    folder = nfcorpus()
    if folder is None:
        return ABSENT
    collection, full = rt.load(folder), plan is FULL
    runs = [rt.ranker(f"{text}@100").rank(collection) for text in (RANKERS if full else RANKERS[:1])]
    rows, errors, needed = [], [], []
    for lift, size in product(LIFTS if full else LIFTS[::3], ASKED if full else ASKED[-1:]):
        say(f"verdicts: {size} queries, {lift:g}")
        found = np.array([
            _verdicts(with_random_sources(collection, [number, 10]), runs if not lift else runs[:1], size, lift, number)
            for number in range(2 * plan.labelings)
        ])  # fmt: skip
        now, before = (100 * found[:, :2].mean(axis=0)).tolist()
        delta, *z = found[:, 2:].mean(axis=0).tolist()
        cells = ["–", "–"]
        if lift:
            need = [size * ((critical + 0.84) / ratio) ** 2 for critical, ratio in zip((1.96, 2.64), z, strict=True)]
            cells = [f"{need[0]:,.0f}", f"{need[1]:,.0f}"]
            needed += [100 * need[0] / need[1]] if size == ASKED[-1] else []
        else:
            errors.append(now)
        rows.append([f"{size}", f"{delta:.1f} %", f"{now:.1f} %", f"{before:.1f} %", *cells])
    header = ["queries", "true tilt, nDCG@10", "shown by the primary question", "by nDCG@1 of six", "queries for 80 %",
              "by nDCG@1 of six"]  # fmt: skip
    met = ["met" if max(errors) <= 5.5 else "MISSED", "met" if max(needed) <= 60 else "MISSED"]
    return (
        f"NFCorpus, sources by a coin for each origin, {2 * plan.labelings} labelings a row. Without a tilt: some "
        f"verdict of {len(runs)} rankers; with one: BM25's, whose scores of one source are lifted.\n\n"
        f"{table(header, rows)}\n\n- family-wise error at most **{max(errors):.1f} %** (target 5.5 %): {met[0]}\n"
        f"- queries for the same power: at most **{max(needed):.0f} %** of those by nDCG@1 (target 60 %): {met[1]}"
    )


def _verdicts(collection: Any, runs: Sequence[Any], size: int, lift: float, seed: int) -> list[float]:
    """Is a side named by the primary question, and by nDCG@1 of six measures; tilt and ratios to the error."""
    import numpy as np

    from ranktilt.auditing.audit import audit
    from ranktilt.auditing.significance import corrected

    rng = np.random.default_rng([seed, 12])
    part = collection.only_queries(rng.choice(collection.judged["id"].to_numpy(), size, replace=False).tolist())
    side = sorted(collection.sources)[0]
    held = [_lifted(run, collection, side, lift) if lift else run for run in runs]
    found = audit(part, held, confounds=False, keep_top=0, resamples=1_000, seed=seed)
    table_of = corrected([replace(t, tests=1) for t in found.tilts if t.measure in BEFORE], "holm")
    before = [t.seen_from(side) for t in table_of if t.measure == BEFORE[0]]
    now = [t.seen_from(side) for t in found.tilts if t.measure == "nDCG@10"]
    ratios = [some[0].value / some[0].error if some[0].error else 0.0 for some in (now, before)]
    return [any(t.favours for t in now), any(t.favours for t in before), now[0].value, *ratios]


def _lifted(run: Any, collection: Any, side: str, lift: float) -> Any:
    """The run with the scores of one source lifted, in standard deviations of each list."""
    import numpy as np

    from ranktilt.run import Run, collection_rows

    first = (collection.docs["source"] == side).to_numpy()[collection_rows(run, collection)]
    docs, scores = run.docs.copy(), run.scores.copy()
    for start, end in zip(run.offsets[:-1], run.offsets[1:], strict=True):
        if start == end:
            continue
        part = slice(start, end)
        own = run.scores[part] + lift * run.scores[part].std() * first[run.docs[part]]
        order = np.argsort(-own, kind="stable")
        docs[part], scores[part] = run.docs[part][order], own[order]
    return Run(run.queries, run.offsets, docs, scores, run.ids, run.spec)


LABELLED = ((300, 400), (300, 2_000), (300, 10_000), (1_500, 400))
LABEL_QUESTIONS = ("nDCG@10", "Share@10", "NDSR@20")


def labels_section(plan: Plan) -> str:
    """Count how often a side is named where a coin tossed the labels of documents that are no twins."""
    import numpy as np
    from simulated import labelled

    sizes = LABELLED if plan is FULL else ((30, 60),)
    rows = []
    for queries, documents in sizes:
        say(f"{plan.labelings} worlds of {queries} queries over {documents:,} documents")
        named: Counter[str] = Counter()
        for number in range(plan.labelings):
            world = labelled(np.random.default_rng([number, queries, documents]), queries, documents)
            named.update(e.name for e in _labels_audit(world.collection, world.run, number) if _side(e))
        rows.append([f"{queries:,} over {documents:,}", *_shares(named, plan.labelings)])
    rows += _labels_of_nfcorpus(plan)
    level = _goal([float(cell.split()[0]) for row in rows for cell in row[1:]])
    return table(["queries over documents", *_QUESTIONS], rows) + f"\n\n{level}\n{_labels_power(plan)}"


_QUESTIONS = ("Relative Δ nDCG@10", "Share@10", "ΔNDSR@20")


def _labels_audit(collection: Any, run: Any, seed: int, measures: Sequence[str] = LABEL_QUESTIONS) -> list[Any]:
    from ranktilt.auditing.audit import audit

    found = audit(collection, run, measures, by="side", confounds=False, resamples=1_000, seed=seed, keep_top=0)
    return [*found.tilts, *(e for e in found.estimates if e.estimand.kind != "relevance")]


def _side(e: Any) -> bool:
    return e.p < 0.05 and bool(e.leans)


def _shares(named: Counter[str], draws: int) -> list[str]:
    return [f"{100 * named[name] / draws:.1f} %" for name in _QUESTIONS]


def _labels_of_nfcorpus(plan: Plan) -> list[list[str]]:
    """The same with the human documents of NFCorpus, ranked by BM25."""
    import numpy as np
    import polars as pl

    import ranktilt as rt

    folder, rows = nfcorpus(), []
    for split, draws in (("test", plan.labelings), ("train", plan.labelings // 5)) if folder and plan is FULL else ():
        whole = rt.load(folder, split=split)
        docs = whole.docs.filter(pl.col("source") == "human")
        human = rt.Collection(docs, whole.queries, whole.qrels.filter(pl.col("doc_id").is_in(docs["id"].implode())))
        run = rt.ranker("bm25@100").rank(human)
        say(f"{draws} labelings of NFCorpus, {split}")
        named: Counter[str] = Counter()
        for number in range(draws):
            side = np.random.default_rng([number, 9]).integers(0, 2, docs.height)
            sides = docs.with_columns(pl.Series("side", np.where(side == 1, "first", "second")))
            collection = rt.Collection(sides, human.queries, human.qrels)
            named.update(e.name for e in _labels_audit(collection, run, number) if _side(e))
        rows.append([f"NFCorpus, {split}, {human.judged.height:,} queries, {draws} draws", *_shares(named, draws)])
    return rows


def _labels_power(plan: Plan) -> str:
    """How often a tilt of the size of the detectable effect is found where each document stands in one list."""
    import numpy as np
    from simulated import LISTED, labelled

    queries = 300 if plan is FULL else 30

    def answers(tilt: float, draws: int, salt: int) -> list[Any]:
        worlds = (
            labelled(np.random.default_rng([n, salt]), queries, queries * LISTED, tilt, fresh=True)
            for n in range(draws)
        )
        # One question alone: the others, tilted too, would take part of Holm's correction away.
        return [_labels_audit(world.collection, world.run, n, ["Share@10"])[0] for n, world in enumerate(worlds)]

    pilot = answers(0.2, max(plan.labelings // 10, 2), 10)
    slope = float(np.mean([e.value - e.level for e in pilot])) / 0.2
    size = float(np.mean([e.detectable for e in pilot]))
    found = answers(size / slope, plan.labelings, 11)
    share = 100 * float(np.mean([e.favours == "a" for e in found]))
    met = "met" if abs(share - 80) <= 5 else "MISSED"
    return (
        f"- a tilt of {100 * size:.1f} points of Share@10, the detectable effect, where no document recurs: found in "
        f"**{share:.1f} %** (target 80 ± 5 %): {met}"
    )


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
    parts += ["### Verdicts on the primary question", verdict_section(plan)]
    parts += ["### Sides by chance where groups are not twins", labels_section(plan)]
    parts += ["### Pairwise choices", pairwise_section(plan)]
    parts += ["### Sequential audits", sequential_section(plan)]
    publish("intervals", "\n\n".join(parts), given)


if __name__ == "__main__":
    main()
