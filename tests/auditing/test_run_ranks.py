"""Ranks of runs: intervals and letters from tests of every two, what is refused, real runs."""

from collections import defaultdict
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from scipy import stats

from ranktilt import Collection, Run, RunRanks, audit, compare, table
from ranktilt.auditing.comparison.options import ComparisonOptions
from ranktilt.auditing.comparison.ranks.answers import RunAnswer
from ranktilt.auditing.comparison.ranks.order import order_runs, ranks_of_orders
from ranktilt.auditing.comparison.ranks.result import RunOrder
from ranktilt.auditing.groups import ALL
from ranktilt.auditing.result import Audit
from ranktilt.auditing.significance import Sample, mean_sample
from ranktilt.measures.base import estimand, measure
from ranktilt.reporting.sentences.comparison.run_ranks import order_sentence
from ranktilt.reporting.sentences.notes import note_sentences
from tests.auditing.arrays import audit_of
from tests.refusals import refused

Floats = npt.NDArray[np.float64]
QUICK = {"resamples": 400}
OPTIONS = ComparisonOptions(resamples=999, seed=0, correction="holm", max_left_out=10)
NAN = np.nan


def values_of(
    levels: list[float], *, tilts: list[float] | None = None, queries: int = 60
) -> Floats:
    """Return values of runs for all documents, for human and for llm text; noise has one size."""
    rng = np.random.default_rng(7)
    by_query = rng.uniform(0.3, 0.6, queries)
    values = np.empty((len(levels), 1, 3, queries))
    for run, level in enumerate(levels):
        tilt = 0.0 if tilts is None else tilts[run]
        for group, shift in enumerate((0.0, tilt / 2, -tilt / 2)):
            values[run, 0, group] = by_query + level + shift + rng.normal(0, 0.05, queries)
    return np.clip(values, 0, 1)


def ranks_of(audits: Audit, *more: Audit, **options: Any) -> RunRanks:
    ranks: RunRanks = compare(audits, *more, **{**QUICK, **options})
    return ranks


def intervals(order: RunOrder) -> dict[str, tuple[int, int, str]]:
    return {rank.run: (rank.best_rank, rank.worst_rank, rank.letters) for rank in order.ranks}


THREE = audit_of(values_of([0.0, 0.2, 0.2], tilts=[0.2, 0.0, 0.0]), runs=("low", "x", "y"))


def test_runs_are_ranked_by_effectiveness_and_by_tilt() -> None:
    tilts, effectiveness = ranks_of(THREE).orders()
    assert intervals(effectiveness) == {"x": (1, 2, "a"), "y": (1, 2, "a"), "low": (3, 3, "b")}
    assert intervals(tilts) == {"low": (1, 1, "a"), "x": (2, 3, "b"), "y": (2, 3, "b")}
    assert effectiveness.shown_pairs == tilts.shown_pairs == 2
    assert order_sentence(effectiveness) in {
        "On nDCG@5, either x or y may be the most effective of 3 runs; 2 of 3 pairs of runs can be "
        "distinguished",
        "On nDCG@5, either y or x may be the most effective of 3 runs; 2 of 3 pairs of runs can be "
        "distinguished",
    }
    assert order_sentence(tilts).startswith(
        "On Relative Δ nDCG@5 (human | llm), low leans furthest toward human of 3 runs; either "
    )


def test_pairs_of_runs_have_the_numbers_of_a_comparison() -> None:
    ranks = ranks_of(THREE)
    comparison = compare(THREE, baseline_run="low", **QUICK)  # type: ignore[call-overload]
    changes = {(change.measure, change.a): change for change in comparison.tilts}
    for change in (*comparison.tilts, *comparison.effectiveness):
        changes[repr(change.estimand), change.run] = change
    for difference in ranks.differences:
        if "low" not in (difference.higher, difference.lower):
            continue
        sign = 1 if difference.lower == "low" else -1
        run = difference.higher if sign == 1 else difference.lower
        change = changes[difference.question, run]
        ends = (change.low, change.high) if sign == 1 else (-change.high, -change.low)
        assert difference.p >= change.p * (1 - 1e-9)
        assert (difference.low, difference.high) == pytest.approx(ends)
        assert difference.value == pytest.approx(sign * change.value)
    (tilt,) = [tilt for tilt in THREE.tilts if tilt.run == "low"]
    by_audit = compare(THREE, resamples=1000).ranks[0]
    assert by_audit.run == "low"
    assert by_audit.value == pytest.approx(tilt.value)
    assert (by_audit.low, by_audit.high) == pytest.approx((tilt.low, tilt.high))


def test_p_is_corrected_over_all_pairs_of_one_question() -> None:
    ranks = ranks_of(THREE)
    for order in ranks.orders():
        ordered = sorted(difference.p for difference in order.differences)
        corrected = sorted(difference.p_corrected for difference in order.differences)
        by_holm = np.minimum(np.maximum.accumulate(np.array(ordered) * [3, 2, 1]), 1)
        assert corrected == pytest.approx(by_holm)


def test_several_audits_are_ranked_together(tmp_path: Path) -> None:
    values = values_of([0.0, 0.2, 0.2])
    files = []
    for index, name in enumerate(("jan", "feb", "mar")):
        alone = audit_of(values[[index]], runs=("engine",))
        files.append(alone.save(tmp_path / f"{name}.json"))
    ranks = ranks_of(*map(Audit.load, files))
    assert ranks.runs == ("engine (jan)", "engine (feb)", "engine (mar)")
    together = ranks_of(audit_of(values, runs=("jan", "feb", "mar")))
    renamed = [replace(rank, run=f"engine ({rank.run})") for rank in together.ranks]
    for rank, expected in zip(ranks.ranks, renamed, strict=True):
        assert (rank.low, rank.high) == pytest.approx((expected.low, expected.high))
        assert rank == replace(expected, low=rank.low, high=rank.high)
    assert RunRanks.load(ranks.save(tmp_path / "ranks.json")).ranks == ranks.ranks


def test_queries_that_not_all_audits_hold_are_left_out() -> None:
    values = values_of([0.0, 0.2, 0.2])
    names = [[f"q{row + shift}" for row in range(60)] for shift in (0, 1, 2)]
    audits = [
        audit_of(values[[index]], runs=(f"run{index}",), queries=names[index]) for index in range(3)
    ]
    ranks = ranks_of(*audits)
    assert {rank.queries for rank in ranks.ranks} == {58}
    assert "left out: 4 of 62 queries that are not in all audits ('q0', 'q1', 'q60', …)" in (
        note_sentences(ranks.notes)
    )
    with refused(
        "the audits cover different queries: 4 queries are not in all of them ('q0', 'q1', 'q60', "
        "…), 6.5 % and more than --max-left-out 5; audit all runs on the same queries"
    ):
        ranks_of(*audits, max_left_out=5)
    with refused("the audits have no query in common; rank runs that were audited on the …"):
        ranks_of(*audits[:2], audit_of(values[[2]], queries=[f"x{row}" for row in range(60)]))


def test_identical_runs_share_their_ranks() -> None:
    values = values_of([0.0, 0.2])[[0, 1, 1]]
    ranks = ranks_of(audit_of(values, runs=("low", "x", "twin of x")))
    (same,) = [pair for pair in ranks.orders()[1].differences if pair.value == 0]
    assert (same.low, same.high, same.p_corrected) == (0.0, 0.0, 1.0)
    assert intervals(ranks.orders()[1])["x"] == (1, 2, "a")
    assert "x and twin of x have the same nDCG@5 in each query, so they share their ranks" in (
        note_sentences(ranks.notes)
    )


@pytest.mark.parametrize(
    ("queries", "words"), [(1, "1 query is too few"), (8, "8 queries are too few")]
)
def test_few_queries_rank_nothing(queries: int, words: str) -> None:
    values = values_of([0.0, 0.2, 0.4], queries=queries)
    ranks = ranks_of(audit_of(values, runs=("a", "b", "c")))
    assert set(intervals(ranks.orders()[1]).values()) == {(1, 3, "a")}
    assert order_sentence(ranks.orders()[1]) == f"{words} to rank 3 runs on nDCG@5"
    assert words in table(ranks, "table")


def test_a_run_without_an_answer_is_not_ranked() -> None:
    values = values_of([0.0, 0.1, 0.2, 0.3])
    values[3] = NAN
    ranks = ranks_of(audit_of(values, runs=("a", "b", "c", "d")))
    assert list(intervals(ranks.orders()[1])) == ["c", "b", "a"]
    assert "warning: not ranked by nDCG@5: d has no answer to it" in note_sentences(ranks.notes)


def test_a_run_with_few_answers_is_named() -> None:
    values = values_of([0.0, 0.1, 0.2, 0.3])
    values[3, :, :, 20:] = NAN
    ranks = ranks_of(audit_of(values, runs=("a", "b", "c", "d")))
    assert (
        "warning: nDCG@5: 40 of 60 queries left out, because they do not count for every run; d "
        "has the fewest (20): without it the others are ranked on more"
    ) in note_sentences(ranks.notes)


def test_rank_refusals() -> None:
    values = values_of([0.0])
    plain = audit_of(values, runs=("a",))
    others = audit_of(values, runs=("b",), groups=("u", "v"))
    with refused(
        "the audits have no pair of groups in common: audit 1 has human | llm; audit 2 has u | v; "
        "audit 3 has u | v; audit all runs with the same groups"
    ):
        ranks_of(plain, others, others)
    with refused("the audits have no measure and no question in common; audit all runs with …"):
        ranks_of(plain, plain, audit_of(values, measures=("P@1",)))
    with refused(
        "the audits differ in ties: 'expected' (audit 1) and 'id' (audit 3); use the same for both"
    ):
        ranks_of(plain, plain, audit_of(values, ties="id"))
    with refused(
        "only audits of rankings are compared three or more at a time, got a comparison; compare "
        "two: NEW.json OLD.json"
    ):
        ranks_of(plain, plain, compare(plain, plain, **QUICK))  # type: ignore[call-overload]


@pytest.mark.long
def test_two_hundred_runs_print_the_first_of_them() -> None:
    values = values_of([0.001 * run for run in range(200)], queries=12)
    ranks = compare(audit_of(values, runs=[f"run{run}" for run in range(200)]), resamples=100)
    printed = table(ranks, "table")
    assert len(ranks.differences) == 2 * 19_900
    assert len(printed.splitlines()) < 90
    assert "The table has the first 30 of 200 runs; -o and --json have all." in printed


def per_query(folder: Path) -> dict[str, dict[str, float]]:
    """Compute nDCG@10 of each run and query, by the formula alone."""
    grades = defaultdict[str, dict[str, int]](dict)
    for line in (folder / "qrels.dl19-passage.txt").read_text().splitlines():
        query, _, doc, grade = line.split()
        grades[query][doc] = int(grade)
    discounts = 1 / np.log2(np.arange(2, 12))
    gains = defaultdict[str, dict[str, float]](dict)
    for file in sorted((folder / "runs").glob("*.trec")):
        ranking = defaultdict[str, dict[int, int]](dict)
        for line in file.read_text().splitlines():
            query, _, doc, rank, *_ = line.split()
            ranking[query][int(rank)] = grades[query].get(doc, 0)
        for query, judged in grades.items():
            top = [ranking[query][rank] for rank in sorted(ranking[query])[:10]]
            ideal = sorted(judged.values(), reverse=True)[:10]
            gains[file.stem][query] = float(
                (np.array(top) @ discounts[: len(top)]) / (ideal @ discounts[: len(ideal)])
            )
    return gains


def test_nine_runs_of_dl19(shared_data: Path) -> None:
    folder = shared_data / "dl19"
    runs = [Run.load(file) for file in sorted((folder / "runs").glob("*.trec"))]
    columns = {"query_id": pl.String, "zero": pl.String, "doc_id": pl.String, "grade": pl.Int32}
    qrels = pl.read_csv(
        folder / "qrels.dl19-passage.txt", separator=" ", has_header=False, schema=columns
    )
    ids = pl.concat([qrels["doc_id"], *(run.ids.alias("doc_id") for run in runs)]).unique()
    docs, queries = (
        names.alias("id").to_frame().with_columns(text=pl.lit(""))
        for names in (ids.sort(), qrels["query_id"].unique().sort())
    )
    audited = audit(Collection(docs, queries, qrels), runs, ["nDCG@10"], by=None)
    (order,) = compare(audited).orders()
    values = {run: [*by_query.values()] for run, by_query in per_query(folder).items()}
    assert {rank.run: rank.value for rank in order.ranks} == pytest.approx(
        {run: 100 * float(np.mean(row)) for run, row in values.items()}
    )
    agree_with_t_tests(order, corrected_t_tests(values))
    assert (order.ranks[0].run, order.ranks[0].best_rank) == ("splade-vicuna7b-top100", 1)
    assert intervals(order)["bm25"][:2] == (9, 9)
    repeats = [rank for rank in order.ranks if "gpt35" in rank.run]
    assert len(repeats) == 5
    assert set.intersection(*(set(rank.letters) for rank in repeats))


def corrected_t_tests(values: dict[str, list[float]]) -> dict[frozenset[str], float]:
    """Return the p of every two runs by paired t tests and Holm's steps, written out."""
    pairs = list(combinations(values, 2))
    ps = [float(stats.ttest_rel(values[a], values[b]).pvalue) for a, b in pairs]
    corrected, largest = {}, 0.0
    for step, index in enumerate(np.argsort(ps)):
        largest = max(largest, min(ps[index] * (len(ps) - step), 1.0))
        corrected[frozenset(pairs[index])] = largest
    return corrected


def agree_with_t_tests(order: RunOrder, expected: dict[frozenset[str], float]) -> None:
    """Check all decisions but those that Student's t leaves close, and the ranks they make.

    No difference is shown that Student's t does not show.
    """
    significant = [pair for pair in order.differences if pair.is_shown]
    assert len(expected) == len(order.differences)
    for pair in order.differences:
        p = expected[frozenset((pair.higher, pair.lower))]
        assert pair.is_shown or p > 0.03
        assert not pair.is_shown or p < 0.05
    for rank in order.ranks:
        assert rank.best_rank == 1 + sum(pair.lower == rank.run for pair in significant)
        assert rank.worst_rank == len(order.ranks) - sum(
            pair.higher == rank.run for pair in significant
        )
    letters = {rank.run: set(rank.letters) for rank in order.ranks}
    for pair in order.differences:
        assert pair.is_shown != bool(letters[pair.higher] & letters[pair.lower])


def order_of(values: dict[str, Floats], options: ComparisonOptions) -> RunOrder:
    """Rank runs by the means of their values per query."""
    answers = [
        RunAnswer(
            run=run, sample=mean_sample(run, measure("P@1"), ALL, row, distinct=None), neutral=0.0
        )
        for run, row in values.items()
    ]
    tested = order_runs(answers, options, rate_error=0.0)
    ranks, differences = ranks_of_orders([tested], options.correction)
    return RunOrder(ranks=tuple(ranks), differences=tuple(differences))


def test_twelve_judges_by_how_often_they_agree_with_humans(shared_data: Path) -> None:
    """Each judge's share of pairs graded as humans do, by query, as if judges were runs."""
    schema = {"query": pl.String, "zero": pl.String, "doc": pl.String, "grade": pl.Int32}
    grades = {}
    for file in sorted((shared_data / "llm-judges").glob("*.qrels.gz")):
        frame = pl.read_csv(file, separator=" ", has_header=False, schema=schema)
        grades[file.name.removesuffix(".qrels.gz")] = frame
    humans = grades.pop("human")
    shares = {}
    for judge, frame in grades.items():
        pairs = humans.join(frame, on=["query", "doc"])
        same = pairs.with_columns(same=pl.col("grade") == pl.col("grade_right"))
        by_query = same.group_by("query").agg(pl.col("same").mean()).sort("query")
        shares[judge] = by_query["same"].to_numpy().astype(np.float64)
    order = order_of(shares, replace(OPTIONS, resamples=10_000))
    assert len(order.ranks) == 12
    agree_with_t_tests(order, corrected_t_tests({name: [*row] for name, row in shares.items()}))


@pytest.mark.long
@pytest.mark.parametrize(
    ("shifts", "true_ranks"),
    [
        ([0.0] * 6, [(1, 6)] * 6),
        ([0.0] * 12, [(1, 12)] * 12),
        (
            [0.3, 0.2, 0.2, 0.1, 0.1, 0.0],
            [(1, 1), (2, 3), (2, 3), (4, 5), (4, 5), (6, 6)],
        ),
    ],
)
def test_all_intervals_of_ranks_hold_the_true_ones(
    shifts: list[float], true_ranks: list[tuple[int, int]]
) -> None:
    draws, queries = 300, 25
    covered = 0
    for seed in range(draws):
        rng = np.random.default_rng([seed, len(shifts), queries])
        # A query is equally hard for most runs, and values pile up at 0 and 1, as measures' do.
        by_query = rng.beta(1, 1, queries)
        is_shared = rng.random((len(shifts), queries)) < 0.6
        unshared = rng.beta(0.6, 0.6, (len(shifts), queries))
        values = np.where(is_shared, by_query, unshared) + np.array(shifts)[:, None]
        ranks = {
            int(rank.run): (rank.best_rank, rank.worst_rank)
            for rank in order_of({str(run): row for run, row in enumerate(values)}, OPTIONS).ranks
        }
        covered += all(
            ranks[run][0] <= best and worst <= ranks[run][1]
            for run, (best, worst) in enumerate(true_ranks)
        )
    # Three Monte Carlo errors below 95 % would be a fault.
    assert covered / draws >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / draws)


def test_difference_of_corrected_answers_may_exceed_bounds() -> None:
    # Corrected for label errors, a share difference can lie beyond −1 and 1.
    noise = np.random.default_rng(0).normal(0, 0.1, (2, 40))
    answers = []
    for name, value, deviations in zip(("new", "old"), (1.5, -1.5), noise, strict=True):
        sample = Sample(
            run=name,
            estimand=estimand("Share@10"),
            a="ai",
            b="human",
            numerator=value + deviations,
            denominator=np.ones(40),
            twins=False,
            is_bounded=False,
        )
        answers.append(RunAnswer(run=name, sample=sample, neutral=0.0))
    [change] = order_runs(answers, OPTIONS, rate_error=0.0).changes
    assert change.low < change.value < change.high
    assert change.value == pytest.approx(3, abs=0.1)
