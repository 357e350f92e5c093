"""Scenarios in which the right answer is known: a table of worlds and of what is asked about them.

The null ones first, then those with a tilt whose true value is known. To add one, add it to the
table; its world belongs to `worlds.py`, what is asked about it to `questions.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from common import nfcorpus
from questions import (
    ATTENTION_MEASURES,
    ERROR_MEASURES,
    LABEL_MEASURES,
    TRAIN_QUERIES,
    Answer,
    choices_audited,
    choices_compared,
    effectiveness_compared,
    errors_audited,
    factors_estimated,
    labels_audited,
    labels_compared,
    nfcorpus_labels,
    nfcorpus_twins,
    one_sided_audited,
    twins_audited,
    twins_compared,
)
from worlds import LabelDesign, LabelErrors, TwinDesign


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A world, and what is asked about it."""

    name: str
    draw: Callable[[np.random.Generator, int, int], Iterable[Answer]]
    """Takes a random generator, a seed and a number of resamples."""
    truth: Callable[[bool], Mapping[str, float]] | None = None
    """How far each estimand truly lies from its neutral value, roughly where asked so; None where
    not at all.

    What is neutral for labels depends on how many documents of a world have each label, which a
    coin decides: an audit infers how far the value lies from that.
    """
    twins: bool = True
    thrift: int = 1
    """By how much fewer draws are made, where one takes seconds."""


# ---- the table ----------------------------------------------------------------------------------

FEW, MANY = 40, 3_000
SPREAD = 0.5


def scenarios() -> tuple[Scenario, ...]:
    """Return every scenario; the name says what varies, over how many documents and queries."""
    rows = [*_twin_scenarios(), *_label_scenarios(), *_comparison_scenarios(), *_real_scenarios()]
    rows += [*_degenerate_scenarios(), *_choice_scenarios(), *_shifted_scenarios()]
    rows += _error_scenarios()
    for queries, origins in ((40, 40), (80, 200)):
        draw = partial(factors_estimated, queries=queries, origins=origins)
        rows.append(Scenario(name=f"factors, {origins} origins, {queries} queries", draw=draw))
    return tuple(rows)


def _twins(name: str, **design: Any) -> Scenario:
    return Scenario(name=name, draw=partial(twins_audited, design=TwinDesign(**design)))


def _twin_scenarios() -> Iterator[Scenario]:
    yield _twins("twins, queries vary, many, 80", queries=80, origins=MANY, by_query=SPREAD)
    for queries in (30, 80, 300):
        yield _twins(
            f"twins, documents vary, few, {queries}",
            queries=queries,
            origins=FEW,
            by_origin=SPREAD,
        )
    for queries in (30, 300):
        yield _twins(
            f"twins, documents vary, many, {queries}",
            queries=queries,
            origins=MANY,
            by_origin=SPREAD,
        )
    # As many origins as queries, and one spread: both add the same variance.
    for queries in (30, 80, 300):
        yield _twins(
            f"twins, both vary, {queries}",
            queries=queries,
            origins=queries,
            by_query=SPREAD,
            by_origin=SPREAD,
        )


def _labels(name: str, measures: Sequence[str] = LABEL_MEASURES, **design: Any) -> Scenario:
    draw = partial(labels_audited, design=LabelDesign(**design), measures=measures)
    return Scenario(name=name, draw=draw, twins=False)


def _label_scenarios() -> Iterator[Scenario]:
    # Share@k shuffles whole lists, which takes long where there are many.
    no_share = ("nDCG@10", "NDSR@20")
    sizes = [(50, 100, LABEL_MEASURES), (50, 1_000, LABEL_MEASURES), (200, 400, no_share)]
    for queries, documents, measures in sizes:
        yield _labels(
            f"labels, half, {documents} documents, {queries}",
            measures,
            queries=queries,
            documents=documents,
        )
    yield _labels("labels, 10 %, 400 documents, 80", queries=80, documents=400, share=0.1)
    yield _labels("labels, 90 %, 400 documents, 80", queries=80, documents=400, share=0.9)
    yield _labels("labels, popular, 400 documents, 80", queries=80, documents=400, popularity=1.5)
    # A ranker that finds what is relevant brings attention nearer to AWRF's target than random
    # rankings do, and so is no null of it.
    for name, more in (("half", {}), ("10 %", {"share": 0.1}), ("popular", {"popularity": 1.5})):
        yield _labels(
            f"attention, {name}, 200 documents, 40",
            ATTENTION_MEASURES,
            queries=40,
            documents=200,
            listed=20,
            relevant=4,
            skill=0.0,
            **more,
        )


def _error_scenarios() -> Iterator[Scenario]:
    """Labels with 3 and 10 % errors both ways, and with errors that differ by length.

    The ranker prefers long documents, so that errors by length would make findings.
    """
    usual = LabelDesign(queries=80, documents=400, long=0.5)
    kinds = {
        "3 %": LabelErrors(short=0.03, long=0.03, checked=100),
        "10 %": LabelErrors(short=0.10, long=0.10, checked=100),
        "10 % short, 2 % long": LabelErrors(short=0.10, long=0.02, checked=100),
        "10 %, 20 checked": LabelErrors(short=0.10, long=0.10, checked=20),
    }
    for share, share_name in ((0.5, "half"), (0.1, "10 %")):
        for name, errors in kinds.items():
            design = replace(usual, share=share)
            yield Scenario(
                name=f"label errors {name}, {share_name} first, 80",
                draw=partial(errors_audited, design=design, errors=errors),
                twins=False,
            )
            tilted = replace(design, tilt=0.3)
            yield Scenario(
                name=f"tilted label errors {name}, {share_name} first, 80",
                draw=partial(errors_audited, design=tilted, errors=errors),
                truth=partial(labels_truth, design=tilted, measures=ERROR_MEASURES),
                twins=False,
            )


def _comparison_scenarios() -> Iterator[Scenario]:
    by_origin = TwinDesign(queries=80, origins=FEW, by_origin=SPREAD, runs=2)
    by_both = TwinDesign(queries=80, origins=80, by_query=SPREAD, by_origin=SPREAD, runs=2)
    designs = {
        "documents vary, few, 80": by_origin,
        "documents vary, many, 80": replace(by_origin, origins=MANY),
        "both vary, 80": by_both,
        "both vary, 300": replace(by_both, queries=300, origins=300),
    }
    for name, design in designs.items():
        yield Scenario(name=f"compare twins, {name}", draw=partial(twins_compared, design=design))
    effectiveness = TwinDesign(queries=80, origins=MANY, runs=2)
    yield Scenario(
        name="compare effectiveness, 80",
        draw=partial(effectiveness_compared, design=effectiveness),
    )
    labels = LabelDesign(queries=80, documents=400, runs=2)
    label_designs = {
        "half, 100 documents, 80": replace(labels, documents=100),
        "half, 1000 documents, 80": replace(labels, documents=1_000),
        "10 %, 400 documents, 80": replace(labels, share=0.1),
        "popular, 400 documents, 80": replace(labels, popularity=1.5),
    }
    for name, label_design in label_designs.items():
        draw = partial(labels_compared, design=label_design)
        yield Scenario(name=f"compare labels, {name}", draw=draw, twins=False)


def _real_scenarios() -> Iterator[Scenario]:
    if nfcorpus() is None:
        return
    yield Scenario(name="NFCorpus twins, 323", draw=nfcorpus_twins)
    for split, count, thrift in (("test", 323, 4), ("train", TRAIN_QUERIES, 10)):
        yield Scenario(
            name=f"NFCorpus labels, {split}, {count}",
            draw=partial(nfcorpus_labels, split=split),
            twins=False,
            thrift=thrift,
        )


CHANCE = 0.895


def _degenerate_scenarios() -> Iterator[Scenario]:
    """Relative Δ@1 is 158 in truth, and 200 in many a sample."""
    truth = {"Relative Δ nDCG@1": 200 * (2 * CHANCE - 1)}
    for queries, origins in ((12, 12), (30, 30), (60, 15)):
        size = f"{origins} origins, {queries}"
        for name, chance, value in (
            ("one-sided", CHANCE, lambda rough: truth),
            ("even-sided", 0.5, None),
        ):
            draw = partial(one_sided_audited, queries=queries, origins=origins, chance=chance)
            yield Scenario(name=f"{name}, {size}", draw=draw, truth=value)


def _choice_scenarios() -> Iterator[Scenario]:
    for queries, documents in ((44, 60), (44, 2_000), (80, 80)):
        size = f"{documents} documents, {queries}"
        for name, draw in (("choices", choices_audited), ("compare choices", choices_compared)):
            yield Scenario(
                name=f"{name}, {size}",
                draw=partial(draw, queries=queries, documents=documents),
                twins=False,
            )


def _shifted_scenarios() -> Iterator[Scenario]:
    for queries in (50, 300):
        by_query = TwinDesign(queries=queries, origins=MANY, by_query=SPREAD, lead=0.4)
        by_both = replace(by_query, origins=queries, by_origin=SPREAD)
        for name, design in {"queries vary": by_query, "both vary": by_both}.items():
            yield Scenario(
                name=f"tilted twins, {name}, {queries}",
                draw=partial(twins_audited, design=design),
                truth=partial(twins_truth, design=design),
            )
    for queries in (50, 200):
        labels = LabelDesign(queries=queries, documents=8 * queries, tilt=0.3)
        yield Scenario(
            name=f"tilted labels, {8 * queries} documents, {queries}",
            draw=partial(labels_audited, design=labels),
            truth=partial(labels_truth, design=labels),
            twins=False,
        )


# ---- truths -------------------------------------------------------------------------------------

TRUTH_RESAMPLES = 100


def twins_truth(rough: bool, design: TwinDesign) -> dict[str, float]:
    """Return the mean tilts of large worlds in which no document recurs."""
    worlds, queries = (2, 500) if rough else (20, 5_000)
    large = replace(design, queries=queries, fresh=True)
    return _mean_tilts(
        list(twins_audited(np.random.default_rng([number, 11]), number, TRUTH_RESAMPLES, large))
        for number in range(worlds)
    )


def labels_truth(
    rough: bool, design: LabelDesign, measures: Sequence[str] = LABEL_MEASURES
) -> dict[str, float]:
    """Return the mean tilts of large worlds in which no document recurs."""
    worlds, queries = (2, 100) if rough else (10, 1_000)
    documents = queries * design.listed
    large = replace(design, queries=queries, documents=documents, disjoint=True)
    return _mean_tilts(
        list(
            labels_audited(
                np.random.default_rng([number, 11]),
                number,
                TRUTH_RESAMPLES,
                design=large,
                measures=measures,
            )
        )
        for number in range(worlds)
    )


def _mean_tilts(worlds: Iterable[Sequence[Answer]]) -> dict[str, float]:
    tilts: dict[str, list[float]] = {}
    for answers in worlds:
        for answer in answers:
            tilts.setdefault(answer.estimand, []).append(answer.value - answer.neutral)
    return {estimand: float(np.mean(numbers)) for estimand, numbers in tilts.items()}
