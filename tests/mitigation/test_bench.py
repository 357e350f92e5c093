"""The bench: the smallest candidate that is level within the budget; and the α sweep, one of
models.
"""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from ranktilt import Collection, Run, UserError, audit, compare, table
from ranktilt.auditing.groups import ALL
from ranktilt.explaining.equivalence import only_group
from ranktilt.mitigation.bench_result import Bench
from ranktilt.mitigation.retriever_sweep import SweepOptions, retriever_sweep, sweep_alphas
from ranktilt.rankers.dense.retriever import Dense
from ranktilt.reporting.sentences.mitigation.mitigate import (
    bench_headline,
    bench_notes,
    check_reason,
    cost_reason,
    detail_sentence,
    limits,
    nearest_sentence,
)
from ranktilt.reporting.sentences.mitigation.next_commands import ways_on
from ranktilt.reporting.views.experiments.bench_chart import bench_chart
from ranktilt.training import mining
from tests.mitigation.planted import DIAL, bench_of, collection, planted, swept
from tests.refusals import refused
from tests.training.material import marked, marked_mix
from tests.training.test_retriever import BM

PAIR = ("human", "llm")
CANNOT = "cannot be mitigated within the budget"
ONES = (planted(0, (60, 0, 0)), planted(1, (0, 0, 0)))
"""A baseline that is tilted, and what levels it for nothing."""


def test_the_smallest_that_is_level_within_the_budget_is_chosen() -> None:
    bench = swept(budget=5)
    choice = bench.choose()
    assert [candidate.name for candidate in bench.candidates] == [
        "α = 0",
        "α = 0.001",
        "α = 0.01",
        "α = 0.1",
    ]
    assert [bench.tilt(candidate.name, PAIR).value for candidate in bench.candidates] == [
        -200,
        -100,
        0,
        200,
    ]
    assert [choice.outcome_of(candidate.name) for candidate in bench.candidates] == [
        "tilted",
        "tilted",
        "level",
        "tilted",
    ]
    assert choice.chosen == bench.candidates[2]
    assert choice.outcome == "mitigated"
    over = swept({**DIAL, 1.0: (0, 60, 0)}).choose()
    assert [over.is_overcorrected(step.name) for step in over.bench.candidates] == [False] * 3 + [
        True
    ] * 2
    level = swept({0: (0, 0, 0), 1: (0, 0, 0)}).choose()
    assert (level.chosen, level.outcome, level.is_tilted) == (None, "level", False)
    assert bench_headline(level).startswith("Not mitigated: α = 0 is level between human and llm")


def test_each_method_has_its_smallest_and_unmet_budget_leaves_none() -> None:
    swaps = [
        planted(strength, (0, 0, 0), method="swap", name=f"swap({strength})")
        for strength in (0.5, 0.9)
    ]
    bench = bench_of(
        collection(),
        [*ONES[:1], planted(1, (0, 0, 1)), *swaps],
        ["nDCG@1"],
        resamples=200,
        budget=10,
    )
    assert bench_headline(bench.choose()) == (
        "Mitigated by swap(0.5): it cut the tilt from −200.0 % to 0.0 % [0.0, 0.0], within ±5 "
        "points, at no measurable loss"
    )
    assert detail_sentence(bench.choose()) == (
        "It is the smallest candidate of swap within ±5 points at a loss of at most 10 points of "
        "nDCG@10; nDCG@10 changes by 0.0 points [0.0, 0.0] over all documents and 0.0 points "
        "[0.0, 0.0] on human documents alone"
    )
    bench = swept({0: (60, 0, 0), 1: (0, 0, 24)})
    choice = bench.choose()
    assert (choice.chosen, choice.outcome) == (None, CANNOT)
    assert bench_headline(choice).startswith(
        "Cannot be mitigated within the budget: α = 1 cut the tilt from −200.0 % to 0.0 % at a "
        "loss of "
    )
    assert bench_headline(choice).endswith("; a loss of more than 1 point of nDCG@10 is shown")
    assert "a loss of more than 1 point is shown" in nearest_sentence(choice)
    assert bench.choose(budget=50).chosen == bench.candidates[1]


def test_open_interval_is_inconclusive_and_bound_never_printed_as_limit() -> None:
    choice = swept().choose(budget=0.4)  # one query of 60 lost: about 0.6 points, from 0 to 2
    assert (choice.outcome, choice.outcome_of("α = 0.01")) == ("inconclusive", "inconclusive")
    assert nearest_sentence(choice).startswith("Nearest is α = 0.01: nDCG@10 −0.")
    assert (
        nearest_sentence(choice).count(
            "a loss of more than 0.4 points is neither shown nor excluded"
        )
        == 2
    )
    bench = swept({0: (60, 0, 0), 1: (15, 15, 0)})
    choice = bench.choose()
    tilt = bench.tilt("α = 1", PAIR)
    assert tilt.low < -5 < 5 < tilt.high
    assert choice.outcome == "inconclusive"
    assert bench.choose(margin=max(-tilt.low, tilt.high)).chosen is not None
    for low, message in (
        (
            -1.04,
            (
                "[−1.04, −0.20] over all documents: a loss is shown; whether it is more than 1 "
                "point is not"
            ),
        ),
        (-0.96, "[−0.96, −0.20] over all documents: a loss of more than 1 point is excluded"),
    ):
        change = swept().change("α = 0.01", (ALL, ALL))
        assert change is not None
        assert cost_reason(replace(change, low=low, high=-0.2), 1).endswith(message)


def test_level_means_level_on_every_source_even_untrained() -> None:
    sources = ("one", "two")
    mixed = collection(sources)
    plain = planted(0, (60, 0, 0), sources=sources)
    levelled = planted(1, (0, 0, 0), sources=sources)
    frame = levelled.mixed.frame()
    lifted = frame.with_columns(pl.col("score") + pl.col("doc_id").str.starts_with("two"))
    lifted_candidate = levelled._replace(mixed=Run.from_frame(lifted, spec=levelled.mixed.spec))
    bench = bench_of(mixed, [plain, lifted_candidate], ["nDCG@1"], resamples=200)
    assert bench.pairs == (("human", "one"), ("human", "two"))
    assert bench.choose().outcome_of("α = 1") == "tilted"
    only = bench_of(mixed, [plain, levelled], ["nDCG@1"], resamples=200, pairs=[("human", "one")])
    assert only.choose().chosen == levelled.candidate


def test_values_equal_audit_and_comparison_and_are_saved_and_read(
    tmp_path: Path,
) -> None:
    bench, mixed = swept(), collection()
    runs = [planted(strength, DIAL[strength]) for strength in (0, 0.001)]
    audits = [
        audit(mixed, run.mixed, list(bench.measures), resamples=200, confounds=False)
        for run in runs
    ]
    for tilt in audits[1].tilts:
        mine = bench.tilt("α = 0.001", PAIR, tilt.measure)
        assert (mine.value, mine.low, mine.high, mine.p) == (
            tilt.value,
            tilt.low,
            tilt.high,
            tilt.p,
        )
    compared = compare(audits[1], audits[0], resamples=200)
    for theirs, pair in [
        *((t, PAIR) for t in compared.tilts),
        *((m, (ALL, ALL)) for m in compared.effectiveness),
    ]:
        change = bench.change("α = 0.001", pair, theirs.measure)
        assert change is not None
        assert (change.value, change.low, change.high, change.p) == (
            theirs.value,
            theirs.low,
            theirs.high,
            theirs.p,
        )
        assert change.family_size == len(bench.changes) == 3 * 3 * 3
    run_alone = runs[1].alone
    assert run_alone is not None
    alone = audit(only_group(mixed), run_alone, list(bench.measures), by=None)
    means = alone.by_group().filter(group=ALL)
    assert [bench.mean("α = 0.001", "human", m).value for m in means["measure"]] == means[
        "mean"
    ].to_list()
    file = bench.save(tmp_path / "bench.json")
    assert Bench.load(file) == bench
    content = json.loads(file.read_bytes())
    assert (content["format"], content["outcome"], content["chosen"]) == (
        "ranktilt-bench",
        "inconclusive",
        None,
    )
    assert [run["ranker"] for run in content["spec"]["runs"]] == [
        candidate.ranker for candidate in bench.candidates
    ]


def test_human_effectiveness_counts_and_undefined_is_not_level() -> None:
    plain, level = ONES
    trials = [plain, level._replace(alone=planted(1, (0, 0, 24)).alone)]
    bench = bench_of(collection(), trials, ["nDCG@1"], resamples=200)
    assert [change.high < -1 for change in bench.costs("α = 1")] == [False, True]
    assert bench.choose().outcome == CANNOT
    without = bench_of(
        collection(), [trial._replace(alone=None) for trial in trials], ["nDCG@1"], resamples=200
    )
    assert without.document_sets == (ALL,)
    assert without.choose().chosen == level.candidate
    assert (
        "effectiveness on human documents alone is unknown, as they were not ranked alone"
        in list(bench_notes(without))
    )
    none = ONES[1]._replace(
        mixed=Run.from_frame(FRAME.filter(FRAME["doc_id"].str.starts_with("other")))
    )
    bench = bench_of(collection(), [ONES[0], none], ["nDCG@1"], resamples=200)
    assert np.isnan(bench.tilt("α = 1", PAIR).value)
    choice = bench.choose()
    assert [choice.outcome_of(name) for name in ("α = 0", "α = 1")] == [
        "tilted",
        "tilted",
    ]  # it finds nothing at all
    assert nearest_sentence(choice).startswith("Nearest is α = 1: ")
    assert json.loads(bench.to_json())["outcome"] == CANNOT
    assert "α = 1 leaves nDCG@1 undefined" in bench_headline(choice)


FRAME = ONES[1].mixed.frame()
FEWER = ONES[1]._replace(
    mixed=Run.from_frame(FRAME.filter(FRAME["query_id"] != "q7"), spec=ONES[1].mixed.spec)
)


@pytest.mark.parametrize(
    ("trials", "options", "message"),
    [
        (
            ONES[1:],
            {},
            (
                "a bench needs one baseline, the ranker without any correction (no method), and "
                "at least one candidate"
            ),
        ),
        ((*ONES, planted(2, (0, 0, 0), name="α = 1")), {}, "candidate 'α = 1' is given twice"),
        (
            (ONES[0], FEWER),
            {},
            "α = 1 and α = 0 ranked different queries (1 query is in only one of them, first 'q7'",
        ),
        (
            (ONES[0], ONES[1]._replace(alone=None)),
            {},
            "α = 1 has no run of human documents alone, but others have; rank ",
        ),
        (
            (ONES[0], ONES[1]._replace(alone=ONES[1].mixed)),
            {},
            "α = 1: its run of human documents alone contains others ",
        ),
        (
            ONES,
            {"budget": -0.1},
            "expected a budget of at least 0 and below 100 points, such as 1, got -0.1",
        ),
        (ONES, {"margin": -1}, "expected a margin of at least 0 and below 200 points, got -1"),
    ],
)
def test_what_makes_no_bench_is_refused(trials: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match="^" + re.escape(message)):
        bench_of(collection(), trials, ["nDCG@1"], resamples=200, **options)


TRIALS = [planted(strength, counts) for strength, counts in DIAL.items()]


def benched(
    *measures: str, trials: Any = TRIALS, mixed: Collection | None = None, **options: Any
) -> Bench:
    return bench_of(mixed or collection(), trials, measures, **{"resamples": 200, **options})


def unjudged() -> Collection:
    return Collection(collection().docs, collection().queries, collection().qrels.clear())


def test_primary_question_is_judged_and_share_is_in_points() -> None:
    bench = benched("HeadToHead", "nDCG@1", "Share@1", primary="HeadToHead")
    assert bench.primary == "HeadToHead"
    assert bench.questions == ("HeadToHead", "nDCG@1", "Share@1", "nDCG@10")
    assert bench.measures == ("nDCG@1", "nDCG@10")
    # Both always retrieved: the human twin wins none, none, none and all; in the others they tie.
    assert [bench.tilt(candidate.name, PAIR).value for candidate in bench.candidates] == [
        -1,
        -0.5,
        0,
        1,
    ]
    choice = bench.choose(budget=5)
    assert choice.chosen == bench.candidates[2]
    assert nearest_sentence(choice) == ""
    # All 60 queries on one side: the interval ends at 100 · (2 · .025^(1/60) − 1) = 88.1.
    assert check_reason(choice, choice.checks["α = 0"][0]) == (
        "head-to-head −100.0 % [−100.0, −88.1] lies entirely beyond −5.0, toward llm"
    )
    bench = benched("Share@1", "nDCG@1", primary="Share@1")
    # Two of three candidates are human, and one of the two twins; ties at the top count half.
    assert bench.tilt("α = 0", PAIR).value == pytest.approx(-2 / 3)
    result = audit(
        collection(), [trial.mixed for trial in TRIALS[:2]], ["Share@1", "nDCG@1"], resamples=200
    )
    theirs = compare(result, baseline_run=result.runs[0], resamples=200).estimates[0]
    mine = bench.change("α = 0.001", PAIR, "Share@1")
    assert mine is not None
    assert (mine.value, mine.low, mine.high, mine.p) == (
        theirs.value,
        theirs.low,
        theirs.high,
        theirs.p,
    )


def test_ratio_is_level_within_percent_and_moved_lists_are_cost() -> None:
    mixed = unjudged()
    twins = Collection(
        mixed.docs.filter(~pl.col("id").str.starts_with("other")), mixed.queries, mixed.qrels
    )

    def among_twins(run: Run) -> Run:
        frame = run.frame()
        return Run.from_frame(
            frame.filter(~frame["doc_id"].str.starts_with("other")), spec=run.spec
        )

    runs = [
        candidate._replace(mixed=among_twins(candidate.mixed), alone=None) for candidate in ONES
    ]
    bench = benched("ExposureRatio", trials=runs, mixed=twins)
    low, equal = (bench.tilt(step.name, PAIR) for step in bench.candidates)
    assert (low.value, equal.value) == (pytest.approx(0.6309, abs=1e-4), 1.0)
    # A list of two twins that tie cannot vary, so that nothing is shown; asked about the margin
    # alone it is level.
    assert bench.choose().chosen is None
    bench = replace(bench, tilts=tuple(replace(tilt, variation=None) for tilt in bench.tilts))
    assert bench.choose().chosen == bench.candidates[1]
    message = check_reason(bench.choose(), bench.choose().checks["α = 0"][0])
    assert message.endswith(
        "lies entirely beyond 1.058 (around 1.108, the median of random labels), toward llm"
    )
    trials = [trial._replace(alone=None) for trial in TRIALS]
    bench = benched("Share@1", trials=trials, mixed=unjudged())
    assert (bench.measures, bench.document_sets, bench.effectiveness) == ((), (), ())
    choice = bench.choose()
    assert bench.costs("α = 0.01") == []
    assert limits(choice) == "within ±5 points with at most 20 % of the first ten replaced"
    assert [moved.candidate for moved in bench.movements] == ["α = 0.001", "α = 0.01", "α = 0.1"]
    assert "first 10 replaced, %" in table(bench)
    chart = bench_chart(choice)
    assert chart is not None
    assert chart.description.endswith("of the cost, at most 20 % replaced.")
    reading = chart.rows[0].readings[1]
    assert reading is not None
    loss = bench.loss(chart.rows[0].label)
    assert reading.text == f"{loss:.1f} % of the first ten replaced"


def test_what_was_chosen_on_other_queries_is_judged_alone(tmp_path: Path) -> None:
    bench = benched("nDCG@1", selected=["α = 0.1"], budget=5)
    choice = bench.choose()
    assert [candidate.name for candidate in bench.eligible] == ["α = 0.1"]
    assert (choice.chosen, choice.outcome) == (
        None,
        CANNOT,
    )  # α = 0.01 is level, and was not chosen
    words = ["ranktilt", "mitigate", "DIR", "--method", "offset"]
    force = "apply a correction all the same (--set mitigate.always=true)"
    assert ways_on(bench, words) == (
        f"allow a higher --budget, try other methods (omit --method) or {force}"
    )
    assert ways_on(bench, words[:3]) == f"allow a higher --budget or {force}"
    assert bench_headline(choice).startswith(
        "Cannot be mitigated within the budget: α = 0.1 moved the tilt from −"
    )
    right = benched("nDCG@1", selected=["α = 0.01"], budget=5).choose()
    assert bench_headline(right).startswith("Mitigated by α = 0.01: it cut the tilt from −")
    assert detail_sentence(right).startswith("It was chosen on other queries; nDCG@10 changes by ")
    assert Bench.load(bench.save(tmp_path / "bench.json")) == bench


@pytest.mark.parametrize(
    ("measures", "message"),
    [
        ((), "a bench needs a measure to judge level by, such as nDCG@3 or Share@10"),
        (
            ("AWRF",),
            "AWRF does not say which of two groups it favours; use one that does, such as Share@10",
        ),
        (
            ("RankGap",),
            "level is judged in percent, and RankGap has another unit; put Share@10 first",
        ),
    ],
)
def test_questions_that_no_bench_can_ask_are_refused(
    measures: tuple[str, ...], message: str
) -> None:
    with refused(message):
        benched(*measures)
    mixed = collection()
    alone = Collection(mixed.docs.with_columns(origin=pl.col("id")), mixed.queries, mixed.qrels)
    trials = [trial._replace(alone=None) for trial in TRIALS]
    with refused("HeadToHead cannot be answered: there are no twins; nDCG@10 or Share@10 can"):
        benched("HeadToHead", trials=trials, mixed=alone, primary="HeadToHead")


@pytest.mark.neural
def test_paper_strengths_go_with_model_scores_and_refusals_come_first(
    tiny: Path, tmp_path: Path
) -> None:
    assert sweep_alphas(["0.5", "0"], None) == [0.0, 0.5]
    assert sweep_alphas(["paper"], 700.0) == [1e-4, 5e-4, 1e-3, 5e-3, 1e-2]
    assert sweep_alphas(["paper", "0", "0.07"], 1.0) == [0.0, 0.07, 0.35, 0.7, 3.5, 7.0]
    with refused("--debias: expected a number of at least 0, or paper, got 'much'"):
        sweep_alphas(["much"], None)
    for text in ("-1", "nan", "inf"):
        with refused(f"training: expected alpha of at least 0, got {float(text)}"):
            sweep_alphas([text], None)
    with refused("expected a budget of at least 0 and below 100 points, such as 1, got 500"):
        retriever_sweep(
            marked(),
            marked_mix(),
            tiny,
            tmp_path / "m",
            options=SweepOptions(alphas=[0.1], budget=500),
        )
    with refused(
        "a sweep compares sources, and the test collection has 'human' alone; mix it first"
    ):
        retriever_sweep(
            marked(),
            only_group(marked_mix()),
            tiny,
            tmp_path / "m",
            options=SweepOptions(alphas=[0.1]),
        )
    with refused("besides the baseline, a sweep needs an alpha above 0, or other negatives"):
        retriever_sweep(
            marked(), marked_mix(), tiny, tmp_path / "m", options=SweepOptions(alphas=[0.0])
        )
    assert not (tmp_path / "m").exists()


@pytest.mark.neural
def test_a_sweep_is_its_models_on_a_bench(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched: list[str] = []
    rank = mining.BM25.rank
    monkeypatch.setattr(
        mining.BM25, "rank", lambda *arguments: searched.append("bm25") or rank(*arguments)
    )
    bench, trained = retriever_sweep(
        marked(),
        marked_mix(),
        tiny,
        tmp_path / "models",
        options=SweepOptions(
            alphas=[3.0, 0.1],
            negatives=["bm25", "controlled"],
            training=replace(BM, device="cpu"),
            measures=("nDCG@3", "AP@3"),
            resamples=200,
        ),
    )
    assert searched == ["bm25"]  # mined once for all of them
    assert [model.folder.name for model in trained] == [
        "alpha-0",
        "alpha-0.1",
        "alpha-3",
        "negatives-controlled",
    ]
    assert [step.name for step in bench.candidates] == [
        "α = 0",
        "α = 0.1",
        "α = 3",
        "controlled negatives",
    ]
    assert bench.methods == ("debias", "controlled negatives")
    assert trained[3].record["spec"]["alpha"] == 0
    assert bench.baseline.name == "α = 0"
    assert bench.pairs == (("human", "llm"),)
    assert bench.document_sets == ("all", "human")
    record = trained[2].record["spec"]
    assert (record["alpha"], record["negatives"], record["steps"]) == (3.0, "bm25", 5)
    model = Dense(str(tmp_path / "models" / "alpha-3"), k=100, device="cpu")
    reference_run = only_group(marked_mix())
    result = audit(marked_mix(), model.rank(marked_mix()), "nDCG@3", confounds=False, resamples=200)
    only = audit(reference_run, model.rank(reference_run), "nDCG@10", by=None)
    assert bench.tilt("α = 3", ("human", "llm")).value == pytest.approx(result.tilts[0].value)
    assert bench.mean("α = 3", "human").value == pytest.approx(float(only.values.mean()))


@pytest.mark.neural
def test_kinds_of_negatives_alone_are_held_against_the_first(tiny: Path, tmp_path: Path) -> None:
    bench, _ = retriever_sweep(
        marked(),
        marked_mix(),
        tiny,
        tmp_path / "models",
        options=SweepOptions(
            negatives=["in-batch", "bm25"],
            training=replace(BM, steps=1),
            measures=("nDCG@3",),
            resamples=100,
        ),
    )
    assert [(step.name, step.method) for step in bench.candidates] == [
        ("bm25 negatives", ""),
        ("in-batch negatives", "in-batch negatives"),
    ]
