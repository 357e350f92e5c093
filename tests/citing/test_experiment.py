"""Twins and labels in context: a planted preference is found, and a fair model is not."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from ranktilt.citing.experiment.comparisons import (
    label_table,
    paired_citations,
    version_table,
)
from ranktilt.citing.experiment.experiment import context_experiment
from ranktilt.citing.experiment.gate import gate_experiment
from ranktilt.citing.experiment.paired import paired_share
from ranktilt.citing.experiment.result import ContextEffect, ContextExperiment
from ranktilt.citing.making.contexts import build_contexts
from ranktilt.citing.making.make import make_answers
from ranktilt.citing.making.settings import AnswerMaking
from ranktilt.errors import UserError
from ranktilt.llm.base import Failure
from ranktilt.llm.journal import Journal
from tests.citing.planted import (
    PAIR,
    PlantedModel,
    World,
    by_position,
    draw_citations,
    draw_labelled_documents,
    fair,
    fond_of_first,
    fond_of_human_label,
    fond_of_llm,
    planted_experiment,
    ranked_run,
    shown_documents,
    twin_collection,
)
from tests.generation.scripted import Scripted
from tests.toy import run_of, toy

QUERIES, ORIGINS = 60, 90
Experiment = Callable[..., ContextExperiment]


@pytest.fixture
def experiment(tmp_path: Path) -> Experiment:
    """Ask a planted model about twins, with all labels unless others are named."""
    return partial(planted_experiment, journal=tmp_path / "journal")


def verdicts(result: ContextExperiment) -> dict[str, str]:
    """Return the verdict on the first effect of each question."""
    questions = ("version", "label", "position")
    effects = [result.effect(question) for question in questions]  # type: ignore[arg-type]
    return {
        effect.question: effect.side(effect.verdict(result.margin)) for effect in effects if effect
    }


def test_fair_model_favours_nothing(experiment: Experiment) -> None:
    result = experiment(fair)
    assert verdicts(result) == {"version": "", "label": "", "position": ""}
    assert [effect.is_primary for effect in result.effects] == [True, True] + [False] * 4
    assert {effect.family_size for effect in result.primary} == {2}


def test_model_fond_of_a_side_is_found_apart_from_its_label(experiment: Experiment) -> None:
    result = experiment(fond_of_llm)
    assert verdicts(result) == {"version": "llm", "label": "", "position": ""}
    assert result.headline.startswith("Where an answer cites only one of two versions, it is the ")
    version = result.effects[0]
    # .6 · .7 against .3 · .4, of a model that cites each by itself.
    assert version.low < 100 * 0.42 / (0.42 + 0.12) < version.high
    assert gate_experiment(result, max_tilt=5).outcome == "tilted"
    row = gate_experiment(result, max_tilt=version.value - 50).rows[0]
    assert (row.outcome, row.checks[0].favours) == ("inconclusive", "llm")


def test_model_fond_of_the_first_position_favours_no_side(experiment: Experiment) -> None:
    result = experiment(fond_of_first, order="ranked")
    assert verdicts(result) == {"version": "", "label": "", "position": ""}, "adjacent alike"
    result = experiment(fond_of_first)
    assert verdicts(result) == {"version": "", "label": "", "position": "first"}
    rates = [rate.value for rate in result.positions]
    assert min(rates[:2]) > 0.7 > 0.4 > max(rates[2:])


def test_model_fond_of_a_label_is_found_whoever_wrote_the_text(experiment: Experiment) -> None:
    result = experiment(fond_of_human_label)
    assert verdicts(result) == {"version": "", "label": "human", "position": ""}
    by_labels = {
        effect.labels: effect.side(effect.verdict(5.0))
        for effect in result.effects
        if effect.question == "version"
    }
    assert by_labels == {"none": "", "both": "", "true": "human", "swapped": "llm"}


def test_labels_alone_need_no_twins(tmp_path: Path) -> None:
    collection = twin_collection(QUERIES, ORIGINS)
    session = make_answers(
        collection,
        PlantedModel(fond_of_human_label),
        ranked_run(collection, ORIGINS, depth=8, is_mixed=True),
        AnswerMaking(shown_labels=("true", "swapped")),
        journal=Journal(tmp_path / "journal"),
    )
    result = context_experiment(session, resamples=1_000)
    assert [effect.question for effect in result.effects] == ["label"]
    assert result.effects[0].side(result.effects[0].verdict(5.0)) == "human"


def test_both_versions_stand_in_both_positions() -> None:
    collection = twin_collection(queries=3, origins=12)
    run = ranked_run(collection, 12, depth=8)
    making = AnswerMaking(has_twins=True, context=6, repeats=2)
    contexts = build_contexts(collection, run, making, PAIR).contexts
    assert len(contexts) == 3 * 2 * 2
    for first, second in zip(contexts[::2], contexts[1::2], strict=True):
        assert (first.is_swapped, second.is_swapped) == (False, True)
        first_names = [collection.ids[row] for row in first.rows]
        second_names = [collection.ids[row] for row in second.rows]
        assert second_names == [
            name.replace("human", "x").replace("llm", "human").replace("x", "llm")
            for name in first_names
        ]
        assert len(set(first_names)) == 6
    ranked = build_contexts(
        collection, run, AnswerMaking(has_twins=True, context=6, order="ranked"), PAIR
    )
    rows = ranked.contexts[0].rows
    origins = [collection.docs["origin"][row] for row in rows]
    assert origins[::2] == origins[1::2], "both versions of a document follow each other"
    best = run.frame().filter(run.frame()["query_id"] == "q0")["doc_id"].to_list()
    assert origins[::2] == best[:3]


def shown_rows(table: str) -> pl.DataFrame:
    """Return rows of shown documents, from a table of text with a header."""
    header, *lines = [line.split() for line in table.strip().splitlines()]
    frame = pl.DataFrame(lines, schema=header, orient="row").with_columns(
        pl.col("answer", "position").cast(pl.Int64)
    )
    rank = pl.when(pl.col("citation") == "cited").then(1)
    return frame.with_columns(
        query=pl.lit("q"),
        repeat=pl.lit(1),
        is_swapped=pl.col("order") == "swapped",
        citation_rank=rank,
        id=pl.format("{}-{}", "origin", "group"),
    )


def test_version_table_by_hand() -> None:
    table = version_table(
        shown_rows("""
            answer order   shown_label position origin group citation
            0      first   none        1        d1     llm   cited
            0      first   none        2        d1     human -
            1      swapped none        1        d1     human cited
            1      swapped none        2        d1     llm   cited
            2      first   true        1        d1     llm   cited
            2      first   true        2        d1     human cited
        """),
        PAIR,
    )
    columns = ["answer", "cited_a", "cited_b", "cited_first", "cited_second"]
    assert table.select(columns).rows() == [
        (0, True, False, True, False),
        (1, True, True, True, True),
    ]


def test_label_table_by_hand() -> None:
    table = label_table(
        shown_rows("""
            answer order shown_label position origin group citation
            0      first true        1        d1     llm   cited
            0      first true        2        d2     human cited
            0      first true        3        d3     other cited
            1      first swapped     1        d1     llm   -
            1      first swapped     2        d2     human -
            2      first none        1        d1     llm   -
        """),
        PAIR,
    )
    assert table.select("origin", "cited_a", "cited_b").rows() == [
        ("d1", True, False),
        ("d2", False, True),
    ]


def test_share_by_hand_and_turned_around() -> None:
    citations = draw_citations(World(preference=0.8, by_origin=0.5), np.random.default_rng(3))
    share = paired_share(citations, resamples=500, seed=1)
    only_a = citations.is_cited_a & ~citations.is_cited_b
    only_b = citations.is_cited_b & ~citations.is_cited_a
    assert (share.only_a, share.only_b) == (only_a.sum(), only_b.sum())
    assert share.value == pytest.approx(100 * only_a.sum() / (only_a.sum() + only_b.sum()))
    turned = paired_share(
        type(citations)(
            query=citations.query,
            origin=citations.origin,
            weight=citations.weight,
            is_cited_a=citations.is_cited_b,
            is_cited_b=citations.is_cited_a,
        ),
        resamples=500,
        seed=1,
    )
    assert (turned.low, turned.high) == (
        pytest.approx(100 - share.high, abs=1e-12),
        pytest.approx(100 - share.low, abs=1e-12),
    )
    assert turned.p == share.p


def test_interval_and_p_say_one_thing() -> None:
    for seed in range(60):
        citations = draw_citations(World(preference=0.3), np.random.default_rng(seed))
        share = paired_share(citations, resamples=200, seed=seed)
        assert (share.p < 0.05) == (not share.low <= 50 <= share.high), seed


def test_every_query_counts_alike_however_often_it_was_asked(experiment: Experiment) -> None:
    once, thrice = (
        experiment(fond_of_llm, shown_labels=("none",), repeats=repeats) for repeats in (1, 3)
    )
    assert [effect.queries for effect in (*once.effects, *thrice.effects)] == [QUERIES] * 4
    assert thrice.effects[0].effective_n == pytest.approx(once.effects[0].effective_n, rel=0.2)
    assert thrice.effects[0].error < once.effects[0].error


def test_models_that_decide_nothing(experiment: Experiment) -> None:
    everything = experiment(lambda _: 1.0, shown_labels=("none",))
    effect = everything.effects[0]
    assert np.isnan(effect.value)
    assert effect.verdict(5.0) == "inconclusive"
    assert "so that nothing is decided" in everything.headline
    with pytest.raises(UserError, match="none of 240 answers cite a document"):
        experiment(lambda _: 0.0, shown_labels=("none",), repeats=2, order_seed=1)


def test_few_documents_stay_open(tmp_path: Path) -> None:
    collection = toy()
    session = make_answers(
        collection,
        PlantedModel(lambda document: float("grow on old" in document.text)),
        run_of(collection, {"q1": {"d1-human": 1.0}, "q2": {"d1-llm": 1.0}}),
        AnswerMaking(has_twins=True),
        journal=Journal(tmp_path / "journal"),
    )
    result = context_experiment(session, resamples=200)
    assert (result.effects[0].value, result.effects[0].verdict(5.0)) == (0.0, "inconclusive")
    assert "a verdict needs 10" in result.headline
    assert gate_experiment(result).exit_code == 3


def test_answers_in_one_order_alone_compare_nothing(tmp_path: Path) -> None:
    collection = twin_collection(queries=4, origins=9)

    def says(prompt: str, _times: int) -> str | Failure:
        is_llm_first = "a llm hand" in shown_documents(prompt)[0].text
        return "[1]." if is_llm_first else Failure(kind="unavailable", message="away")

    session = make_answers(
        collection,
        Scripted(says),
        ranked_run(collection, 9, depth=4),
        AnswerMaking(has_twins=True, context=2),
        journal=Journal(tmp_path / "journal"),
    )
    with pytest.raises(UserError, match="no query has its answers in both orders; run the command"):
        context_experiment(session)


def test_answers_that_vary_nothing_are_refused(tmp_path: Path) -> None:
    collection = toy()
    session = make_answers(
        collection,
        Scripted(lambda *_: "[1]"),
        run_of(collection, {"q1": {"d1-human": 2.0, "d1-llm": 1.0}}),
        journal=Journal(tmp_path / "journal"),
    )
    with pytest.raises(UserError, match="these answers vary nothing"):
        context_experiment(session)


def test_file_keeps_everything(experiment: Experiment, tmp_path: Path) -> None:
    result = experiment(fond_of_human_label)
    loaded = ContextExperiment.load(result.save(tmp_path / "experiment.json"))
    assert loaded.effects == result.effects
    assert loaded.headline == result.headline
    assert [note.kind for note in loaded.notes] == [note.kind for note in result.notes]


def effect_with(low: float, high: float) -> ContextEffect:
    return ContextEffect(
        question="version",
        labels="none",
        is_primary=True,
        a="llm",
        b="human",
        value=(low + high) / 2,
        low=low,
        high=high,
        error=1.0,
        p=0.01 if low > 50 or high < 50 else 0.5,
        p_corrected=0.01 if low > 50 or high < 50 else 0.5,
        effective_n=40.0,
        rate_a=1.0,
        rate_b=1.0,
        only_a=1,
        only_b=1,
        both=1,
        neither=1,
        queries=40,
        documents=40,
        family_size=1,
    )


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (51.0, 60.0, "a"),
        (40.0, 49.0, "b"),
        (46.0, 54.0, "level"),
        (44.0, 54.0, "inconclusive"),
        (46.0, 56.0, "inconclusive"),
    ],
)
def test_verdict_goes_by_the_interval(low: float, high: float, verdict: str) -> None:
    assert effect_with(low, high).verdict(5.0) == verdict


@pytest.mark.long
@pytest.mark.parametrize(
    "world",
    [
        World(),
        World(by_origin=1.0, by_query=1.0),
        World(by_origin=1.0, origins=20),
        World(by_origin=0.7, by_query=0.7, queries=25, origins=40),
        World(by_origin=0.7, position=1.5),
    ],
    ids=["plain", "both", "few documents", "few queries", "position"],
)
def test_worlds_without_preference_are_rarely_rejected(world: World) -> None:
    """At most .05 and three Monte Carlo errors over 400 worlds; a position effect is found."""
    rejections, of_position = 0, 0
    for seed in range(400):
        citations = draw_citations(world, np.random.default_rng(seed))
        rejections += paired_share(citations, resamples=500, seed=seed).p < 0.05
        if world.position:
            turned = by_position(citations)
            of_position += paired_share(turned, resamples=500, seed=seed).p < 0.05
    assert rejections / 400 <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 400)
    assert not world.position or of_position > 390


@pytest.mark.long
def test_worlds_with_a_preference_are_found() -> None:
    world = World(preference=1.0, by_origin=0.7, by_query=0.5)
    detections = 0
    for seed in range(300):
        citations = draw_citations(world, np.random.default_rng(seed))
        share = paired_share(citations, resamples=500, seed=seed)
        detections += share.p < 0.05 and share.value > 50
    assert detections >= 295


@pytest.mark.long
def test_labels_that_mean_nothing_are_rarely_rejected_and_a_preference_is_found() -> None:
    """Unbalanced sides, and answers that cite much or little, make no label effect."""
    rejections, detections = 0, 0
    for seed in range(300):
        for preference in (0.0, 1.0):
            documents = draw_labelled_documents(preference, np.random.default_rng(seed))
            citations = paired_citations(label_table(documents, PAIR), ("cited_a", "cited_b"))
            share = paired_share(citations, resamples=300, seed=seed)
            if preference:
                detections += share.p < 0.05 and share.value > 50
            else:
                rejections += share.p < 0.05
    assert rejections / 300 <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 300)
    assert detections / 300 > 0.8
