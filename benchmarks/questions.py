"""Questions to simulated worlds: each draws a world, asks a public function, and returns answers.

Every question takes a random generator, a seed and a number of resamples, and returns an
`Answer` for each estimand. Nothing here depends on how the package computes, but for `SHUFFLES`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any
from unittest.mock import patch

import numpy as np
import polars as pl
from common import nfcorpus
from worlds import (
    LABEL,
    LABELS,
    LabelDesign,
    LabelErrors,
    TwinDesign,
    World,
    factor_world,
    label_world,
    twin_world,
    wholly_one_sided_world,
    with_random_labels,
    with_random_sources,
    with_wrong_labels,
)

import ranktilt as rt
from ranktilt.auditing.null_distributions import base as null_distributions
from ranktilt.auditing.pairwise.decisions import SCHEMA, Decisions
from ranktilt.auditing.pairwise.pairs import two_groups

ALPHA = 0.05
SHUFFLES = 200
"""Random labels drawn for an audit, which draws 1,000 itself: the median of fewer, which is the
neutral value of groups that are no twins, adds .8 % to the variance that is tested, and errs
towards failing."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What one draw says about one estimand."""

    estimand: str
    value: float
    low: float
    high: float
    p: float
    """Not corrected."""
    neutral: float
    verdict: str
    queries: int
    effective_n: float

    @property
    def is_significant(self) -> bool:
        return self.p < ALPHA

    def excludes(self, value: float) -> bool:
        """Whether the interval lies on one side of a value."""
        return self.low > value or self.high < value


# ---- what is asked -------------------------------------------------------------------------------

TWIN_MEASURES = (
    "nDCG@10",
    "nDCG@1",
    "nDCG@3",
    "AP@10",
    "HeadToHead",
    "HeadToHead(over=pairs)",
)
LABEL_MEASURES = ("nDCG@10", "Share@10", "NDSR@20")
ERROR_MEASURES = ("Share@10", "NDSR@20")
ATTENTION_MEASURES = ("ExposureRatio", "AWRF", "NDKL")


def from_effect(effect: Any) -> Answer:
    """Read an effect of an audit or a comparison.

    An estimand over all groups at once favours none: its value is held against what random labels
    give, so the random band takes the place of the interval, and the value that of neutral.
    """
    is_sided = effect.estimand.sided
    return Answer(
        estimand=effect.name,
        value=effect.value,
        low=effect.low if is_sided else effect.null_low,
        high=effect.high if is_sided else effect.null_high,
        p=effect.p,
        neutral=effect.neutral if is_sided else effect.value,
        verdict=effect.side(effect.verdict()) or effect.verdict(),
        queries=effect.queries,
        effective_n=effect.sample,
    )


def audited(
    world: World,
    measures: Sequence[str],
    *,
    resamples: int,
    seed: int,
    **options: Any,
) -> Any:
    """Audit a world without what only pages need."""
    with patch.object(null_distributions, "SHUFFLES", SHUFFLES):
        return rt.audit(
            world.collection,
            world.runs,
            measures,
            confounds=False,
            keep_top=0,
            resamples=resamples,
            seed=seed,
            **options,
        )


def audit_answers(audit: Any) -> Iterator[Answer]:
    """Return each question's answer once, however many tables show it."""
    effects = {effect.name: effect for effect in (*audit.card, *audit.tilts)}
    return map(from_effect, effects.values())


def twins_audited(
    rng: np.random.Generator,
    seed: int,
    resamples: int,
    design: TwinDesign,
) -> Iterator[Answer]:
    """Ask every question about twins."""
    world = twin_world(rng, design)
    audit = audited(world, TWIN_MEASURES, card=True, resamples=resamples, seed=seed)
    return audit_answers(audit)


def labels_audited(
    rng: np.random.Generator,
    seed: int,
    resamples: int,
    design: LabelDesign,
    measures: Sequence[str] = LABEL_MEASURES,
) -> Iterator[Answer]:
    """Ask about labels."""
    world = label_world(rng, design)
    return audit_answers(audited(world, measures, by=LABEL, resamples=resamples, seed=seed))


def errors_audited(
    rng: np.random.Generator,
    seed: int,
    resamples: int,
    design: LabelDesign,
    errors: LabelErrors,
) -> Iterator[Answer]:
    """Ask about labels that err, corrected by the rates of a checked sample."""
    world, label_errors = with_wrong_labels(label_world(rng, design), rng, errors)
    audit = audited(
        world,
        ERROR_MEASURES,
        by=LABEL,
        resamples=resamples,
        seed=seed,
        label_errors=label_errors,
    )
    return audit_answers(audit)


def one_sided_audited(
    rng: np.random.Generator, seed: int, resamples: int, queries: int, origins: int, chance: float
) -> Iterator[Answer]:
    """Ask who is first where one pair is relevant to each query."""
    world = wholly_one_sided_world(rng, queries, origins, chance)
    audit = audited(world, ["nDCG@1"], resamples=resamples, seed=seed)
    return map(from_effect, audit.tilts)


def compared(
    world: World,
    measures: Sequence[str],
    seed: int,
    resamples: int,
    **options: Any,
) -> Iterator[Answer]:
    """Compare two runs of a world in what they favour."""
    audit = audited(world, measures, resamples=resamples, seed=seed, **options)
    baseline = world.runs[1].name
    comparison = rt.compare(audit, baseline_run=baseline, resamples=resamples, seed=seed)
    effects = {effect.name: effect for effect in (*comparison.tilts, *comparison.estimates)}
    for effect in effects.values():
        yield replace(from_effect(effect), estimand=f"change of {effect.name}")


def twins_compared(
    rng: np.random.Generator,
    seed: int,
    resamples: int,
    design: TwinDesign,
) -> Iterator[Answer]:
    """Compare what two runs do to twins: of questions about pairs, the primary one is compared."""
    world = twin_world(rng, design)
    yield from compared(world, TWIN_MEASURES, seed, resamples, primary="HeadToHead", card=True)
    for question in ("HeadToHead(over=pairs)", "RankGap"):
        yield from compared(world, [question], seed, resamples, primary=question)


def labels_compared(
    rng: np.random.Generator,
    seed: int,
    resamples: int,
    design: LabelDesign,
) -> Iterator[Answer]:
    """Compare what two runs do to labels."""
    return compared(label_world(rng, design), LABEL_MEASURES, seed, resamples, by=LABEL)


def effectiveness_compared(
    rng: np.random.Generator,
    seed: int,
    resamples: int,
    design: TwinDesign,
) -> Iterator[Answer]:
    """Compare how effective two equally good runs are."""
    world = twin_world(rng, design)
    audit = audited(world, ["nDCG@10"], resamples=resamples, seed=seed)
    baseline = world.runs[1].name
    comparison = rt.compare(audit, baseline_run=baseline, resamples=resamples, seed=seed)
    return map(from_effect, comparison.effectiveness)


# ---- real rankings ------------------------------------------------------------------------------

REAL_DEPTH = 30
TRAIN_QUERIES = 800


@cache
def nfcorpus_world(split: str, with_twins: bool) -> World:
    """Rank NFCorpus by BM25 and by TF-IDF, once a process: with its twins, or human texts alone."""
    collection = rt.load(nfcorpus(), split=split)
    if not with_twins:
        collection = collection.only_sources(["human"])
    judged = collection.queries_with_judgments["id"].to_list()
    if len(judged) > TRAIN_QUERIES:
        chosen = np.random.default_rng(7).choice(judged, TRAIN_QUERIES, replace=False)
        collection = collection.only_queries(chosen.tolist())
    runs = [rt.ranker(f"{name}@{REAL_DEPTH}").rank(collection) for name in ("bm25", "tfidf")]
    return World(collection=collection, runs=tuple(runs))


def nfcorpus_labels(
    rng: np.random.Generator,
    seed: int,
    resamples: int,
    split: str,
) -> Iterator[Answer]:
    """Toss a coin for each document, audit BM25, and compare it with TF-IDF."""
    world = nfcorpus_world(split, with_twins=False)
    labelled = replace(world, collection=with_random_labels(world.collection, rng))
    return audited_and_compared(labelled, ("nDCG@10", "NDSR@20"), seed, resamples, by=LABEL)


def nfcorpus_twins(rng: np.random.Generator, seed: int, resamples: int) -> Iterator[Answer]:
    """Toss a coin for each origin, audit BM25, and compare it with TF-IDF."""
    world = nfcorpus_world("test", with_twins=True)
    exchanged = replace(world, collection=with_random_sources(world.collection, rng))
    return audited_and_compared(
        exchanged, TWIN_MEASURES, seed, resamples, primary="HeadToHead", card=True
    )


def audited_and_compared(
    world: World, measures: Sequence[str], seed: int, resamples: int, **options: Any
) -> Iterator[Answer]:
    """Read the first run's effects, and its changes from the second, off one audit."""
    audit = audited(world, measures, resamples=resamples, seed=seed, **options)
    first, baseline = (run.name for run in world.runs)
    comparison = rt.compare(audit, baseline_run=baseline, resamples=resamples, seed=seed)
    answers = {}
    for effect in (*audit.card, *audit.tilts):
        if effect.run == first:
            answers[effect.name] = from_effect(effect)
    for effect in (*comparison.estimates, *comparison.tilts):
        name = f"change of {effect.name}"
        answers[name] = replace(from_effect(effect), estimand=name)
    return iter(answers.values())


# ---- choices between two documents ---------------------------------------------------------------

JUDGED_PAIRS = 20


@cache
def choosing_collection(queries: int, documents: int) -> rt.Collection:
    """Return documents and queries without judgments; the choices say what is relevant."""
    design = LabelDesign(queries=queries, documents=documents)
    return label_world(np.random.default_rng(0), design).collection


def drawn_choices(
    rng: np.random.Generator, queries: int, documents: int, tilt: float, models: int
) -> tuple[rt.Collection, list[Any]]:
    """Let models choose between documents; each model has favourites, which they share in part."""
    collection = with_random_labels(choosing_collection(queries, documents), rng)
    sides = two_groups(collection, LABEL, LABELS[0])
    first, second = np.flatnonzero(sides.code == 1), np.flatnonzero(sides.code == 0)
    size = queries * 2 * JUDGED_PAIRS
    left = first[rng.integers(0, len(first), size)]
    right = second[rng.integers(0, len(second), size)]
    query = np.repeat(np.arange(queries), 2 * JUDGED_PAIRS)
    unique = np.unique(np.stack([query, left, right], axis=1), axis=0, return_index=True)[1]
    query, left, right = query[unique], left[unique], right[unique]
    kind = np.where(unique % (2 * JUDGED_PAIRS) < JUDGED_PAIRS, "relevant", "irrelevant")
    common = rng.normal(size=documents)
    decisions = []
    for number in range(models):
        private = rng.normal(size=documents)
        worth = common if models == 1 else np.sqrt(0.7) * common + np.sqrt(0.3) * private
        by_query = rng.normal(scale=0.3, size=queries)[query]
        gap = worth[left] - worth[right] + tilt + by_query + rng.normal(size=len(query))
        chosen = np.where(gap > 0, left, right)
        pages = np.concatenate([np.stack([left, right]), np.stack([right, left])], axis=1)
        frame = pl.DataFrame(
            {
                "query": collection.queries["id"].gather(np.tile(query, 2)),
                "kind": np.tile(kind, 2),
                "first": collection.ids.gather(pages[0]),
                "second": collection.ids.gather(pages[1]),
                "choice": collection.ids.gather(np.tile(chosen, 2)),
                "reading": "imported",
            },
            schema=SCHEMA,
        )
        decisions.append(Decisions(frame=frame, sides=sides, model=f"model {number}"))
    return collection, decisions


def choices_audited(
    rng: np.random.Generator, seed: int, resamples: int, queries: int, documents: int
) -> Iterator[Answer]:
    """Ask whose documents a model prefers."""
    collection, (decisions,) = drawn_choices(rng, queries, documents, tilt=0.0, models=1)
    audit = rt.pairwise(collection, decisions, resamples=resamples, seed=seed)
    for outcome in audit.outcomes:
        answer = from_effect(audit.effect(outcome))
        yield replace(answer, estimand=f"preference, {outcome.kind} pairs")


def choices_compared(
    rng: np.random.Generator, seed: int, resamples: int, queries: int, documents: int
) -> Iterator[Answer]:
    """Compare whose documents two models prefer."""
    collection, decisions = drawn_choices(rng, queries, documents, tilt=0.0, models=2)
    audits = [rt.pairwise(collection, model, resamples=resamples, seed=seed) for model in decisions]
    comparison = rt.compare(audits[0], audits[1], resamples=resamples, seed=seed)
    for change in comparison.estimates:
        yield replace(from_effect(change), estimand=f"change of {change.name}")


# ---- effects of factors --------------------------------------------------------------------------


def factors_estimated(
    rng: np.random.Generator, seed: int, resamples: int, queries: int, origins: int
) -> Iterator[Answer]:
    """Ask what two factors do to ranks; of the two, which are alike, the first counts."""
    world = factor_world(rng, queries, origins, spread=0.4)
    effects = rt.factor_effects(world.collection, world.runs)
    for effect in effects.rows:
        if effect.effect == "length":
            yield Answer(
                estimand=f"factor, {effect.estimand}",
                value=effect.value,
                low=effect.low,
                high=effect.high,
                p=effect.p,
                neutral=0.0,
                verdict="shown" if effect.is_shown else "",
                queries=effect.queries,
                effective_n=min(effect.queries, effect.origins),
            )
