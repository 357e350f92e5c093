"""The training study from planted runs: means, tests, marks, seeds, Relative Δ, and what is
refused.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import stats

from ranktilt import Run, audit
from ranktilt.reporting.sentences.notes import note_sentences
from ranktilt.reporting.sentences.training_study import study_headline
from ranktilt.training.study_comparison import answer_overlaps, compare_trainings
from ranktilt.training.study_evaluation import Rankings, study_measures
from ranktilt.training.study_result import BASELINE, TrainingStudy
from tests.mitigation import planted
from tests.mitigation.planted import (
    HUMAN,
    LLM,
    QUESTIONS,
    RANKS,
    SIDES,
    alone,
    mixed,
    mixture,
    ranked,
    ranked_at,
    studied,
)
from tests.refusals import refused

NAMES = ("BM25", "mini trained on human", "mini trained on llm")


def test_means_are_the_audits_and_binary_measures_at_grade_two() -> None:
    evaluation = studied().evaluations[0]
    assert (evaluation.queries, evaluation.documents, evaluation.depth) == (
        QUESTIONS,
        QUESTIONS,
        1000,
    )
    assert evaluation.rankers == NAMES
    assert evaluation.groups == ("all", "art", "law")
    assert evaluation.measures == ("AP@1000", "nDCG@10", "RR@10", "R@1000")
    assert [evaluation.mean(name, "AP@1000").value for name in NAMES] == pytest.approx(
        [0.1, 1.0, 0.5]
    )
    assert evaluation.mean(NAMES[2], "RR@10", "law").queries == QUESTIONS / 2
    expected = audit(alone(), ranked_at(alone(), 3, spoilt=9), "nDCG@10", by=None, resamples=1000)
    uneven = compare_trainings([HUMAN], [with_spoilt(3, 9)], resamples=1000).evaluations[0]
    assert uneven.mean(NAMES[1], "nDCG@10").value == pytest.approx(expected.values[0, 0, 0].mean())
    assert list(map(repr, study_measures(alone(), 100))) == ["AP@100", "nDCG@10", "RR@10", "R@100"]
    graded = studied(sets=[ranked(grade=2)]).evaluations[0]
    assert graded.measures[4:] == ("AP(rel=2)@1000", "RR(rel=2)@10", "R(rel=2)@1000")
    assert graded.mean(NAMES[2], "RR(rel=2)@10").value == 0.5


def with_spoilt(rank: int, spoilt: int) -> Rankings:
    """The human training at this rank, and one lower for so many questions."""
    base = ranked({BASELINE: 10, HUMAN.run: rank})
    return replace(
        base, runs={**base.runs, HUMAN.run: ranked_at(base.collection, rank, spoilt=spoilt)}
    )


def test_paired_t_test_is_the_papers_with_domain_daggers() -> None:
    rankings = with_spoilt(1, 13)
    evaluation = compare_trainings([HUMAN], [rankings], resamples=1000).evaluations[0]
    runs = [rankings.runs[BASELINE], replace(rankings.runs[HUMAN.run], spec={"ranker": "h"})]
    old, new = audit(alone(), runs, "RR@10", by=None).values[:, 0, 0]
    p = stats.ttest_rel(new, old).pvalue
    row = next(row for row in evaluation.t_tests if row.measure == "RR@10")
    assert row.p == pytest.approx(p)
    assert row.p_corrected == pytest.approx(
        3 * p
    )  # AP, nDCG and RR of one pair; recall is not compared
    assert (row.run, row.old_run) == (NAMES[1], NAMES[0])
    assert row.value == pytest.approx(100 * (new - old).mean())
    plain, spoilt = (
        ranked({BASELINE: 10, HUMAN.run: 2, LLM.run: 2}),
        ranked_at(alone(), 1, spoilt=13).frame(),
    )
    in_law = pl.col("query_id").str.tail(1).str.contains("[13579]")
    # in law it is as good as the other one, and no better
    spoilt_in_art = pl.concat(
        [spoilt.filter(~in_law), plain.runs[HUMAN.run].frame().filter(in_law)]
    )
    rankings = replace(
        plain,
        runs={
            **plain.runs,
            HUMAN.run: Run.from_frame(spoilt_in_art, queries=plain.runs[BASELINE].queries),
        },
    )
    evaluation, groups = studied(sets=[rankings]).evaluations[0], ("all", "art", "law")
    values = [
        audit(alone(), run, "RR@10", by="domain", pairs=[]).values[0, 0]
        for run in rankings.runs.values()
    ]
    for number, group in enumerate(groups[:2]):
        p = stats.ttest_rel(values[1][number], values[2][number], nan_policy="omit").pvalue
        key = (NAMES[2], NAMES[1], "RR@10", group)
        row = next(r for r in evaluation.t_tests if (r.run, r.old_run, r.measure, r.a) == key)
        assert (row.p, row.family_size) == (
            pytest.approx(p),
            3 * 3,
        )  # pairs of rankers and measures, of one domain
        assert row.value == pytest.approx(100 * np.nanmean(values[2][number] - values[1][number]))
    assert len(evaluation.differences) == len(groups) * 3 * 3
    for test in ("t", "permutation"):
        assert [evaluation.best(NAMES[1], "RR@10", group, test=test) for group in groups] == [
            True,
            True,
            False,
        ]


def test_dagger_beats_every_other_ranker_and_seeds_are_one() -> None:
    result = studied().evaluations[0]
    assert [result.best(name, "RR@10") for name in NAMES] == [False, True, False]
    assert [result.best(name, "RR@10", test="permutation") for name in NAMES] == [
        False,
        True,
        False,
    ]
    assert not any(result.best(name, "R@1000") for name in NAMES)
    tied = studied(sets=[ranked({**RANKS, LLM.run: 1})]).evaluations[0]
    assert not any(tied.best(name, "RR@10") for name in NAMES)  # both beat BM25 alone
    worst = studied(sets=[ranked({**RANKS, BASELINE: 1, HUMAN.run: 3})]).evaluations[0]
    assert worst.best(BASELINE, "RR@10")
    again = replace(HUMAN, seed=1)
    result = studied((HUMAN, again), sets=[ranked({BASELINE: 10, HUMAN.run: 1, again.run: 2})])
    two_seeds = result.evaluations[0]
    assert two_seeds.rankers == NAMES[:2]
    assert two_seeds.mean(NAMES[1], "RR@10").value == 0.75
    spread = next(row for row in two_seeds.seeds if row.measure == "RR@10")
    assert spread.values == (1.0, 0.5)
    assert spread.deviation == pytest.approx(np.std([1, 0.5], ddof=1))
    assert "each trained ranker is the mean of 2 trainings with different seeds" in note_sentences(
        result.notes
    )
    assert any(
        note.startswith("warning: one training per ranker shows little")
        for note in note_sentences(studied().notes)
    )


def test_tilt_of_each_training_and_query_words_in_answers() -> None:
    study = studied(mixed=mixture(SIDES))
    assert [tilt.value for tilt in study.tilts if tilt.measure == "nDCG@1"] == [-200, 200, -200]
    (change,) = (row for row in study.tilt_changes if row.measure == "nDCG@1")
    assert (change.run, change.old_run) == (LLM.run, HUMAN.run)
    assert (change.new, change.old, change.value) == (-200, 200, -400)
    assert change.is_shown
    whole_audit = audit(
        mixed(), mixture(SIDES).runs[HUMAN.run], "nDCG@10", confounds=False, resamples=1000
    )
    (tilt,) = [tilt for tilt in study.tilts if NAMES[1] in tilt.run and tilt.measure == "nDCG@10"]
    assert (tilt.value, tilt.null_low) == (
        whole_audit.tilts[0].value,
        whole_audit.tilts[0].null_low,
    )
    human, llm = answer_overlaps(mixed())
    # "Blue red green grey? q7" has five words: human answers hold blue, the others blue and green
    assert (human.source, human.pairs, human.mean, human.median) == ("human", QUESTIONS, 0.2, 0.2)
    assert (llm.mean, llm.low, llm.high) == (0.4, 0.4, 0.4)


def test_sentences_say_what_differs_and_a_study_is_saved_and_read(tmp_path: Path) -> None:
    study = studied(mixed=mixture(SIDES))
    assert study.contrasts == [("mini", NAMES[2], NAMES[1])]
    assert ": −36.9 points of nDCG@10 on qa, test and Relative Δ −90.5 points" in study_headline(
        study
    )
    assert "significantly better on 0 and worse on 1 of 1 other collection" in study_headline(
        planted.training_study()
    )
    level = studied(sets=[ranked({**RANKS, LLM.run: 1})])
    assert study_headline(level).endswith(": 0.0 points of nDCG@10 on qa, test, not significant")
    lone = studied((HUMAN,), sets=[ranked({BASELINE: 3, HUMAN.run: 1})])
    assert study_headline(lone) == "1 training, but no two sides to compare"
    again = [replace(training, seed=1) for training in (HUMAN, LLM)]
    sides = {**SIDES, again[0].run: "human", again[1].run: "human"}
    ranks = {**RANKS, again[0].run: 1, again[1].run: 1}
    several = studied((HUMAN, LLM, *again), sets=[ranked(ranks)], mixed=mixture(sides))
    assert study_headline(several).endswith("Relative Δ −90.5 to 0.0 points over 2 comparisons")
    tuned = (replace(HUMAN, tuned="retrieval"), replace(LLM, tuned="retrieval"))
    notes = note_sentences(studied(tuned, sets=[ranked(depth=100)]).notes)
    assert any(note.startswith("mini is already tuned for retrieval; ") for note in notes)
    study = planted.training_study()
    assert TrainingStudy.load(study.save(tmp_path / "study.json")) == study
    assert planted.MANY[1].name == "mini trained on 10 human and 40 llm"
    assert LLM.run == "mini trained on llm, seed 0"


def test_refusals() -> None:
    base = ranked()
    bare = replace(base, collection=replace(base.collection, qrels=base.collection.qrels.clear()))
    for arguments, message in (
        (((), [base]), "a training study needs a trained ranker and a collection that it ranked"),
        (((HUMAN, LLM), [base, base]), "collection 'qa, test (supervised)' is given twice"),
        (
            ((HUMAN, LLM), [bare]),
            "qa, test: no judgments (qrels), so that no ranker can be measured on it",
        ),
        (((HUMAN, LLM), [ranked({BASELINE: 1, HUMAN.run: 1})]), f"qa, test: no run of {LLM.run}"),
    ):
        with refused(message):
            compare_trainings(*arguments)
