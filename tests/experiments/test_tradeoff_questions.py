"""A bench of other questions than Relative Δ, of what was chosen before, and of what becomes of other groups."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from ranktilt.auditing.audit import audit
from ranktilt.auditing.comparison.compare import compare
from ranktilt.collection import Collection
from ranktilt.experiments.tradeoff import Trial, bench
from ranktilt.experiments.tradeoff_result import Bench
from ranktilt.reporting.output import table
from tests.experiments.planted import DIAL, collection, trial
from tests.refusals import refused

PAIR = ("human", "llm")
TRIALS = [trial(strength, counts) for strength, counts in DIAL.items()]


def benched(*measures: str, trials: Any = TRIALS, mixed: Collection | None = None, **options: Any) -> Bench:
    return bench(mixed or collection(), trials, measures, **{"resamples": 200, **options})


def unjudged() -> Collection:
    return Collection(collection().docs, collection().queries, collection().qrels.clear())


def test_the_primary_question_is_the_one_that_is_judged() -> None:
    found = benched("HeadToHead", "nDCG@1", "Share@1", primary="HeadToHead")
    assert found.primary == "HeadToHead"
    assert found.questions == ("HeadToHead", "nDCG@1", "Share@1", "nDCG@10")
    assert found.measures == ("nDCG@1", "nDCG@10")
    # Both always retrieved: the human twin wins none, none, none and all; in the others they tie.
    assert [found.tilt(one.name, PAIR).value for one in found.interventions] == [-1, -0.5, 0, 1]
    choice = found.choose(budget=0.05)
    assert choice.chosen == found.interventions[2]
    assert choice.sentences == ()
    assert choice.rows["α = 0"][0].checks[0].reason == (
        "toward llm: head-to-head −100.0 % [−100.0, −100.0] lies wholly beyond −5.0"
    )


def test_a_share_is_judged_in_points_and_its_change_is_that_of_a_comparison() -> None:
    found = benched("Share@1", "nDCG@1", primary="Share@1")
    # Two of three candidates are human, and one of the two twins; ties at the top count half.
    assert found.tilt("α = 0", PAIR).value == pytest.approx(-2 / 3)
    whole = audit(collection(), [one.mixed for one in TRIALS[:2]], ["Share@1", "nDCG@1"], resamples=200)
    theirs = compare(whole, baseline_run=whole.runs[0], resamples=200).estimates[0]
    mine = found.change("α = 0.001", PAIR, "Share@1")
    assert mine is not None
    assert (mine.value, mine.low, mine.high, mine.p) == (theirs.value, theirs.low, theirs.high, theirs.p)
    text = table(found)
    assert "Share@1: + favours human. Tilt: level where its whole interval lies within ±5 points" in text


def test_a_ratio_is_level_within_percent_of_one() -> None:
    level = [trial(0, (60, 0, 0)), trial(1, (0, 0, 0))]
    mixed = unjudged()
    docs = mixed.docs.filter(~pl.col("id").str.starts_with("other"))
    twins = Collection(docs, mixed.queries, mixed.qrels)
    runs = [one._replace(mixed=_only(one.mixed, docs["id"]), alone=None) for one in level]
    found = benched("ExposureRatio", trials=runs, mixed=twins)
    low, equal = (found.tilt(one.name, PAIR) for one in found.interventions)
    assert (low.value, equal.value) == (pytest.approx(0.6309, abs=1e-4), 1.0)
    assert found.choose().chosen == found.interventions[1]
    reason = found.choose().rows["α = 0"][0].checks[0].reason
    assert reason.endswith("lies wholly beyond 1.058 around the median of random labels (1.108)")


def _only(run: Any, ids: pl.Series) -> Any:
    frame = run.frame()
    return type(run).from_frame(frame.filter(frame["doc_id"].is_in(ids.implode())), spec=run.spec)


def test_without_judgments_nothing_is_said_of_the_cost() -> None:
    trials = [one._replace(alone=None) for one in TRIALS]
    found = benched("Share@1", trials=trials, mixed=unjudged())
    assert (found.measures, found.over, found.effectiveness) == ((), (), ())
    choice = found.choose()
    assert found.costs("α = 0.01") == []
    assert choice.limits == "within ±5 points"
    assert "cost" not in table(found)


def test_what_was_chosen_on_other_queries_is_judged_alone(tmp_path: Path) -> None:
    found = benched("nDCG@1", selected=["α = 0.1"], budget=0.05)
    choice = found.choose()
    assert [one.name for one in found.judged] == ["α = 0", "α = 0.1"]
    assert (choice.chosen, choice.outcome) == (None, "tilted")  # α = 0.01 is level, and was not chosen
    assert choice.headline.startswith("No intervention, of those chosen on other queries, is level within ±5 points")
    right = benched("nDCG@1", selected=["α = 0.01"], budget=0.05).choose()
    assert right.headline.startswith("α = 0.01, chosen on other queries, is level within ±5 points")
    assert Bench.load(found.save(tmp_path / "bench.json")) == found


@pytest.mark.parametrize(
    ("measures", "said"),
    [
        ((), "a bench needs a measure on which level is judged, such as nDCG@3 or Share@10"),
        (("AWRF",), "AWRF favours none of two groups; a bench levels what does, such as Share@10"),
        (("Share",), "measure Share needs a cutoff, such as Share@10"),
        (("RankGap",), "level is judged in percent, and RankGap has another unit; ask for Share@10 first"),
    ],
)
def test_questions_that_no_bench_can_ask_are_refused(measures: tuple[str, ...], said: str) -> None:
    with refused(said):
        benched(*measures)


def test_a_question_of_twins_where_there_are_none_is_refused() -> None:
    mixed = collection()
    alone = Collection(mixed.docs.with_columns(origin=pl.col("id")), mixed.queries, mixed.qrels)
    trials = [Trial(one.intervention, one.mixed) for one in TRIALS]
    with refused("HeadToHead cannot be answered: there are no twins; nDCG@10 or Share@10 can"):
        benched("HeadToHead", trials=trials, mixed=alone, primary="HeadToHead")
