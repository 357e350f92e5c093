"""An audit of judges: what both graded, systems that change places, twins graded apart, and what is
refused.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.stats import kendalltau

from ranktilt.data.runs.run import Run
from ranktilt.errors import DataError, UserError
from ranktilt.judging.gate import gate_judges
from ranktilt.judging.grades import join_grades, read_grades
from ranktilt.judging.judge import judge
from ranktilt.judging.result import JudgeAudit
from ranktilt.judging.source_results import twin_grades
from ranktilt.judging.systems.family_preference import families_of
from ranktilt.judging.systems.powered_estimates import sampled_queries
from ranktilt.judging.systems.systems import (
    SystemValues,
    rank_agreement,
    rescaled_human_grades,
    system_pairs,
    system_values,
)
from ranktilt.measures.base import measure
from ranktilt.reporting.output import table
from ranktilt.reporting.sentences.gate import row_reason
from ranktilt.reporting.sentences.judging.judge import judge_findings
from ranktilt.reporting.sentences.notes import note_sentences
from tests.judging.judged import FAMILIES, QUERIES, bed, full_audit, grades, runs
from tests.refusals import refused
from tests.toy import collection_of, versions

audit = cache(full_audit)


def pairs(*rows: tuple[str, str, int]) -> pl.DataFrame:
    return pl.DataFrame(
        rows, schema={"query_id": pl.String, "doc_id": pl.String, "grade": pl.Int64}, orient="row"
    )


HUMAN = pairs(("q1", "a", 0), ("q1", "b", 1), ("q2", "a", 2), ("q3", "z", 1))


def bare() -> JudgeAudit:
    """An audit without twins or systems."""
    return judge({"j": HUMAN}, HUMAN, resamples=100)


def test_pairs_of_one_side_are_counted_and_never_zero() -> None:
    judged = pairs(("q1", "a", 0), ("q2", "a", 1), ("q2", "c", 2), ("q9", "a", 2))
    side = join_grades(HUMAN, judged, "j")
    assert side.table.rows() == [("q1", "a", 0, 0), ("q2", "a", 2, 1)]
    assert (side.human_only, side.judge_only, side.human_queries) == (1, 1, 1)
    assert side.further_grades.rows() == [("q9", "a", 2)]
    assert list(note_sentences(side.notes())) == [
        "j: 1 pair graded by humans only and 1 by the judge only left out, not counted as 0",
        "j: 1 query graded by humans only left out",
        "j: 1 query graded by the judge only left out",
    ]


@pytest.mark.parametrize(
    ("judged", "message"),
    [
        (
            pairs(("q8", "a", 0)),
            "j and the human grades have no query in common: expected grades for the same pairs",
        ),
        (
            pairs(("q1", "x", 0), ("q2", "y", 1)),
            "j and the human grades share 2 query ids but no query with the same",
        ),
    ],
)
def test_grades_of_other_pairs_are_refused(judged: pl.DataFrame, message: str) -> None:
    with pytest.raises(UserError, match=f"^{message}"):
        join_grades(HUMAN, judged, "j")


def test_fractions_outside_the_scale_are_named_as_they_are_written() -> None:
    halves = HUMAN.with_columns(grade=pl.col("grade").cast(pl.Float64) + 0.5)
    top = HUMAN["grade"].max()
    with pytest.raises(UserError, match=rf"expected grades from 0 to {top}, got {top}\.5 "):
        judge({"j": halves}, HUMAN, resamples=100)


def test_suspicious_grades_few_common_pairs_and_stray_grades_are_pointed_out() -> None:
    for judged, warning in (
        (HUMAN, "warning: j always gives the human grade; are these the same labels?"),
        (
            HUMAN.with_columns(grade=pl.lit(1)),
            "j gives grade 1 to all pairs: κ is undefined",
        ),
    ):
        result = judge({"j": judged}, HUMAN, resamples=100)
        assert warning in note_sentences(result.notes)
        (row,) = result.overall
        assert (row.kappa.value == 1.0) if judged is HUMAN else np.isnan(row.kappa.value)
    # Of 30 pairs each one is shared: ids that coincide by chance.
    human, judged = (
        pairs(*(("q1", f"{side}{n}", n % 2) for n in range(29)), ("q1", "b", 1)) for side in "hj"
    )
    assert any(
        "shares only 1 pair with the human grades" in note
        for note in note_sentences(join_grades(human, judged, "j").notes())
    )
    # As in a published judge of 4,423 pairs with two fives.
    judged = pairs(*(("q", f"d{n}", n % 4) for n in range(200)), ("q", "x", 5))
    frame, notes = read_grades(judged, 3, "j")
    assert frame.height == 200
    assert note_sentences(notes) == ("warning: j: 1 grade outside 0 to 3 left out (5)",)


@pytest.mark.parametrize(
    ("lines", "top", "message"),
    [
        (
            "q1 0 a 4\nq1 0 b 1",
            3,
            ":1: expected whole grades from 0 to 3, got 4 (1 grade is not); --top-grade N sets",
        ),
        ("q1 0 b 1\nq1 0 a 1.5", 3, ":2: expected whole grades from 0 to 3, got 1.5"),
        ("q1 0 b 1\nq1 0 a -2", None, ":2: expected whole grades from 0 or more, got -2"),
    ],
)
def test_another_scale_is_refused(
    tmp_path: Path, lines: str, top: int | None, message: str
) -> None:
    file = tmp_path / "j.qrels"
    file.write_text(lines)
    with pytest.raises(DataError) as caught:
        read_grades(file, top, "j")
    assert message in str(caught.value)


def test_agreement_is_given_by_what_documents_share_and_counts_of_grades_add_up() -> None:
    agreements = [row for row in audit().agreements if row.judge == "fond"]
    names = [row.stratum for row in agreements]
    assert names[:3] == ["all", "source human", "source llm"]
    assert {"short documents", "long documents"} <= set(names)
    sides = {row.stratum: row for row in agreements}
    assert sides["all"].pairs == 480 == sides["source human"].pairs + sides["source llm"].pairs
    assert sides["source llm"].gap.low > 0.4
    assert abs(sides["source human"].gap.value) < 0.1
    assert sides["source human"].kappa.value > sides["source llm"].kappa.value
    agreements = audit()
    counts = [confusion for confusion in agreements.confusions if confusion.judge == "good"]
    assert (
        sum(count.pairs for count in counts)
        == 480
        == sum(r.pairs for r in agreements.by_query if r.judge == "good")
    )
    exact = sum(count.pairs for count in counts if count.human == count.grade) / 480
    assert exact == pytest.approx(
        next(row.exact.value for row in agreements.overall if row.judge == "good")
    )


def test_a_taste_for_models_text_is_found_on_twins_and_none_where_grades_are_the_same() -> None:
    result = audit()
    fond, good = result.main_gaps
    assert (fond.run, fond.verdict("0.1 grades"), good.verdict("0.1 grades")) == (
        "fond",
        "b",
        "level",
    )
    assert fond.value == pytest.approx(
        -(fond.details["lower"] - fond.details["higher"]) / 240, abs=0.2
    )
    assert {e.estimand.options.get("grade") for e in result.grade_gaps} == {None, "0", "1", "2"}
    assert any(row.name == "words" for row in result.confounds)
    collection = bed()
    result = judge({"same": collection.qrels}, collection=collection, resamples=100)
    (gap,) = result.main_gaps
    assert (gap.value, gap.low, gap.high, gap.p, gap.verdict("0.1 grades")) == (
        0.0,
        0.0,
        0.0,
        1.0,
        "level",
    )


def test_gaps_by_hand() -> None:
    """Two twins of two queries; one twin of a third has one grade only, and one pair two human
    grades.
    """
    docs = versions({"human": ["a", "b", "c", "d"], "llm": ["e", "f", "g", "h"]})
    human = {
        "q1": {"0-human": 1, "0-llm": 1},
        "q2": {"1-human": 0, "1-llm": 0, "3-human": 1, "3-llm": 0},
    }
    collection = collection_of(docs, {"q1": "x", "q2": "y", "q3": "z"}, human)
    judged = pairs(
        ("q1", "0-human", 2),
        ("q1", "0-llm", 1),
        ("q2", "1-human", 0),
        ("q2", "1-llm", 2),
        ("q3", "2-human", 1),
        ("q2", "3-human", 1),
        ("q2", "3-llm", 1),
    )
    twins, lone = twin_grades(collection.pairs("human", "llm"), judged, collection.qrels)
    assert lone == 1
    assert twins.filter("same").select("query_id", "gap", "human").rows() == [
        ("q1", 1.0, 1),
        ("q2", -2.0, 0),
    ]
    assert twins.filter(~pl.col("same")).height == 1
    result = judge({"j": judged}, collection=collection, top_grade=3, resamples=100)
    assert result.main_gaps[0].value == pytest.approx(-0.5)
    assert "j: 1 twin graded on one side only left out of the grade gap" in note_sentences(
        result.notes
    )
    assert "j: 1 twin with two human grades left out of the grade gap" in note_sentences(
        result.notes
    )


def test_gaps_use_human_grades_of_a_file() -> None:
    """The twins of d have two human grades by the file, and the collection does not judge them."""
    docs = versions({"human": ["a", "b", "d"], "llm": ["e", "f", "h"]})
    collection = collection_of(docs, {"q1": "x", "q2": "y"}, {"q1": {"0-human": 1, "0-llm": 0}})
    human = pairs(
        ("q1", "0-human", 1),
        ("q1", "0-llm", 1),
        ("q2", "1-human", 0),
        ("q2", "1-llm", 0),
        ("q2", "2-human", 1),
        ("q2", "2-llm", 0),
    )
    judged = pairs(
        ("q1", "0-human", 2),
        ("q1", "0-llm", 1),
        ("q2", "1-human", 0),
        ("q2", "1-llm", 2),
        ("q2", "2-human", 1),
        ("q2", "2-llm", 1),
    )
    result = judge({"j": judged}, human, collection=collection, top_grade=3, resamples=100)
    values = {gap.measure: gap.value for gap in result.grade_gaps}
    assert values == {"GradeGap": -0.5, "GradeGap(grade=0)": -2.0, "GradeGap(grade=1)": 1.0}


def test_systems_are_ordered_as_scipy_orders_them_and_raised_beyond_the_mean_one() -> None:
    """τ of means that are read off the result, under two judges."""
    for row in audit().rank_agreements:
        means = [
            (system.human, system.judged) for system in audit().systems if system.judge == row.judge
        ]
        assert row.tau.value == pytest.approx(kendalltau(*zip(*means, strict=True))[0])
        assert row.tau.low <= row.tau.value <= row.tau.high
        assert row.bias == pytest.approx(np.mean([judged - human for human, judged in means]))
    rows = [system for system in audit().systems if system.judge == "fond"]
    assert sum(system.relative.value for system in rows) == pytest.approx(0.0)
    for system in rows:
        away = system.judged - system.human - np.mean([row.judged - row.human for row in rows])
        assert system.relative.value == pytest.approx(away)
        assert system.relative.low <= system.relative.value <= system.relative.high


def test_pairs_of_systems_agree_are_lost_reversed_or_new_and_grades_are_put_on_one_scale() -> None:
    """Four systems over 30 queries: the judge turns a large difference round, loses one and makes
    one up.
    """
    human, judged, listed = (
        list[tuple[str, str, int]](),
        list[tuple[str, str, int]](),
        dict[str, dict[str, float]](),
    )
    for n in range(30):
        name = f"q{n}"
        human += [(name, "h", 1), (name, "j", 0)]
        judged += [(name, "h", 0), (name, "j", 1)]
        listed[name] = {"h": 2.0, "j": 1.0}
    turned = {query: {"h": 1.0, "j": 2.0} for query in listed}
    chosen = [
        Run.from_dict(listed, name="finds"),
        Run.from_dict(turned, name="turned", score_order="score"),
    ]
    graded = join_grades(pairs(*human), pairs(*judged), "j")
    ((values,), notes) = system_values(graded, chosen, [measure("P@1")])
    (row,) = system_pairs(values)
    assert (row.better, row.worse, row.fate, row.human, row.judged) == (
        "finds",
        "turned",
        "reversed",
        1.0,
        -1.0,
    )
    assert notes == []
    constant = replace(values, judged=values.human * 0 + 0.5)
    assert [system_pair.fate for system_pair in system_pairs(constant)] == ["lost"]
    new = replace(values, human=values.human * 0 + 0.5)
    assert [system_pair.fate for system_pair in system_pairs(new)] == ["new"]
    assert [
        system_pair.fate for system_pair in system_pairs(replace(values, judged=values.human))
    ] == ["agrees"]
    # Means of the judge's grades by human grade; 1 and 2 fall, and are pooled: (2 · 3 + 1 · 0)/3.
    frame = pairs(("q", "a", 0), ("q", "b", 1), ("q", "c", 1), ("q", "d", 2)).rename(
        {"grade": "human"}
    )
    frame = frame.with_columns(judged=pl.Series([1, 3, 3, 0]))
    assert rescaled_human_grades(frame).to_list() == [1.0, 2.0, 2.0, 2.0]


def test_a_family_that_reads_the_judge_is_favoured_and_tilts_are_given_under_both() -> None:
    """Systems that rank by the judge's own errors gain under it, and under no other judge."""
    preferences = {row.judge: row for row in audit().preferences}
    assert preferences["fond"].scales[0].preference.low > 0
    assert preferences["good"].verdict in (
        "level",
        "inconclusive",
        "depends on scale",
        "disfavours",
    )
    assert (
        preferences["fond"].scales[0].preference.value
        > preferences["good"].scales[0].preference.value
    )
    tilts = [tilt.change for tilt in audit().tilts if tilt.judge == "fond"]
    assert [tilt.run for tilt in tilts] == list(FAMILIES)
    assert all(tilt.value == pytest.approx(tilt.new - tilt.old) for tilt in tilts)


def test_few_human_labels_repair_a_judges_means_and_further_queries_of_the_judge_count() -> None:
    rows = [estimate for estimate in audit().corrected if estimate.judge == "good"]
    means, differences = rows[:6], rows[6:]
    assert [bool(estimate.minus) for estimate in rows] == [False] * 6 + [True] * 5
    assert all(
        estimate.queries < QUERIES and estimate.effective >= 0.99 * estimate.queries
        for estimate in means
    )
    assert (
        np.mean(
            [estimate.powered.low <= estimate.truth <= estimate.powered.high for estimate in rows]
        )
        > 0.7
    )
    by_name = {estimate.run: estimate for estimate in means}
    for difference in differences:
        assert difference.judge_only == pytest.approx(
            by_name[difference.run].judge_only - by_name[difference.minus].judge_only
        )
    collection = bed()
    few = collection.qrels.filter(pl.col("query_id").is_in([f"q{n}" for n in range(12)]))
    result = judge(
        {"good": grades(collection, noise=0.2)}, few, runs=runs(collection), resamples=100
    )
    assert {(estimate.queries, np.isnan(estimate.truth)) for estimate in result.corrected} == {
        (12, True)
    }
    assert np.median([estimate.effective for estimate in result.corrected]) > 13
    assert any(
        note.startswith("good: with it, 12 human queries are worth")
        for note in note_sentences(result.notes)
    )


def test_labels_are_drawn_by_whole_queries_and_runs_of_others_are_refused() -> None:
    graded = join_grades(HUMAN, HUMAN, "j")
    assert sampled_queries(graded, 3, 0)[1] <= 3
    assert sampled_queries(graded, 3, 5) == sampled_queries(graded, 3, 5)
    with refused("--human-sample 4: all 4 pairs have human grades; draw fewer of them"):
        sampled_queries(graded, 4, 0)
    with pytest.raises(UserError, match="too few for two queries"):
        sampled_queries(graded, 1, 0)
    with pytest.raises(UserError, match="r: no overlap: none of its 1 document"):
        judge(
            {"j": HUMAN}, HUMAN, runs=Run.from_dict({"q1": {"other": 1.0}}, name="r"), resamples=100
        )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: judge([], HUMAN), "expected the grades of at least one judge: --judge FILE"),
        (lambda: judge(["a/j.qrels", "b/j.txt.gz"], HUMAN), "judge 'j' is given twice"),
        (
            lambda: judge({"j": HUMAN}),
            "no human grades: name a file (--human FILE), or a collection with judgments",
        ),
        (
            lambda: judge({"j": HUMAN}, HUMAN, relevant=3),
            "expected the smallest relevant grade between 1 and 2, got 3",
        ),
        (
            lambda: judge({"j": HUMAN}, HUMAN, families={"a": "b"}),
            "families: need runs (--runs DIR)",
        ),
        (
            lambda: judge({"j": HUMAN}, HUMAN, human_sample=2),
            "a sample of human labels: need runs (--runs DIR)",
        ),
        (lambda: families_of(["a"], {}), "no family for 1 run: a; see --systems"),
        (
            lambda: families_of("ab", dict.fromkeys("ab", "x")),
            "expected systems of two families or more, got only 'x'",
        ),
        (
            lambda: families_of("abc", {"a": "x", "b": "y", "c": "y"}),
            "a family is compared if it has two systems ",
        ),
        (
            lambda: gate_judges(audit()),
            "an audit of judges needs a limit: --max-gap .1 (grades), --min-tau .8",
        ),
        (
            lambda: gate_judges(bare(), max_gap=0.1),
            "--max-gap needs twins: audit with a collection",
        ),
        (
            lambda: gate_judges(bare(), min_tau=0.1),
            "--min-tau needs systems: audit with --runs DIR",
        ),
        (
            lambda: gate_judges(audit(), max_gap=-0.1),
            "--max-gap: expected a number of grades of at least 0, got -0.1",
        ),
        (
            lambda: gate_judges(audit(), min_tau=80),
            "--min-tau: expected τ-b from -1 to 1, got 80",
        ),
    ],
)
def test_what_cannot_be_asked_is_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(UserError, match="^" + re.escape(message)):
        call()


def test_a_gate_holds_judges_to_limits_and_everything_is_kept_in_a_file(tmp_path: Path) -> None:
    for limits, outcomes, code in (
        ({"max_gap": 0.1}, ["tilted", "level"], 1),
        ({"max_gap": 1.0}, ["within", "level"], 0),
        ({"min_tau": -1.0}, ["level", "level"], 0),
        ({"min_tau": 1.0}, ["tilted", "inconclusive"], 1),
    ):
        decision = gate_judges(audit(), **limits)  # type: ignore[arg-type]
        assert ([row.outcome for row in decision.rows], decision.exit_code) == (outcomes, code)
    decision = audit()
    assert JudgeAudit.load(decision.save(tmp_path / "judge.json")) == decision
    assert decision.frame("agreements").height == len(decision.agreements)
    sentences = [finding.sentence for finding in judge_findings(decision)]
    assert sentences[0].startswith("good agrees better with humans than fond: κ .")
    assert sentences[2].startswith("fond favours llm text on twins: llm text is graded 0.")
    assert "Grade gap of twins, in grades" in table(decision)


def test_values_of_few_queries_have_no_intervals() -> None:
    """Five queries: κ, the order and what systems are raised by are values; the gate
    cannot decide.
    """
    collection = bed()
    names = [f"q{number}" for number in range(5)]
    human = collection.qrels.filter(pl.col("query_id").is_in(names))
    judged = grades(collection).filter(pl.col("query_id").is_in(names))
    result = judge({"good": judged}, human, runs=runs(collection), resamples=100)
    (order,) = result.rank_agreements
    (kappa,) = (row.kappa for row in result.overall)
    for estimate in (order.tau, order.rbo, kappa, result.systems[0].relative):
        assert not np.isnan(estimate.value)
        assert np.isnan([estimate.low, estimate.high]).all()
    assert "good: 5 queries, but intervals need 6" in note_sentences(result.notes)
    sentences = [finding.sentence for finding in judge_findings(result)]
    assert not any("nan" in sentence or "[" in sentence for sentence in sentences)
    (row,) = gate_judges(result, min_tau=0.1).rows
    assert row.outcome == "inconclusive"
    assert "has no interval: 5 queries are too few (6 needed)" in row_reason(row)


def test_few_labelled_queries_have_values_without_intervals() -> None:
    """Of 12 pairs a query, 36 labels are three queries: prediction-powered intervals need four."""
    collection = bed()
    result = judge(
        {"good": grades(collection)},
        collection.qrels,
        runs=runs(collection),
        human_sample=36,
        resamples=100,
    )
    assert {row.queries for row in result.corrected} == {3}
    assert np.isnan([row.powered.low for row in result.corrected]).all()
    assert not np.isnan([row.powered.value for row in result.corrected]).any()
    assert (
        "good: 3 human queries are enough for values, but intervals need 4 queries"
        in note_sentences(result.notes)
    )
    assert "nan" not in table(result)


def test_intervals_of_an_order_hold_their_own_value_among_many_good_systems() -> None:
    """30 systems of nearly one worth: resamples all agree less than the two orders do."""
    rng = np.random.default_rng(7)
    quality = 0.6 + rng.normal(0, 0.02, 30)
    human = quality[:, None] + rng.normal(0, 0.1, (30, 60))
    values = SystemValues(
        judge="j",
        measure="nDCG@10",
        bounds=(0.0, 1.0),
        runs=tuple(f"r{number}" for number in range(30)),
        queries=tuple(f"q{number}" for number in range(60)),
        human=human,
        judged=human + rng.normal(0, 0.02, (30, 60)),
        rescaled_human=human,
        further_judged=np.empty((30, 0)),
    )
    order = rank_agreement(values, seed=0)
    for estimate in (order.tau, order.tau_a, order.tau_ap, order.rbo):
        assert estimate.low <= estimate.value <= estimate.high <= 1
