"""Judges against each other: differences of κ and τ on the same queries, and who cannot be told
apart.
"""

import re
from itertools import combinations

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from scipy import stats

from ranktilt.judging.comparison import compare_orders
from ranktilt.judging.judge import judge
from ranktilt.judging.result import JudgeAudit
from ranktilt.judging.systems.systems import SystemValues
from ranktilt.reporting.headline import headline
from ranktilt.reporting.sentences.judging.judge import judge_findings
from ranktilt.reporting.sentences.judging.meaning import judge_next_commands, meaning_sentence
from ranktilt.statistics.correction import holm

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# query document human careful hasty
GRADES = """\
q1 a 0 0 0
q1 b 0 0 1
q1 c 1 1 1
q1 d 1 1 1
"""


def grades_of(rows: list[list[str]], column: int) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "query_id": [row[0] for row in rows],
            "doc_id": [row[1] for row in rows],
            "grade": [int(row[column]) for row in rows],
        }
    )


def test_difference_of_kappa_by_hand() -> None:
    """Of four pairs careful is right in all, κ 1; hasty in three: (.75 − .5) / (1 − .5) = .5."""
    rows = [line.split() for line in GRADES.splitlines()]
    human, careful, hasty = (grades_of(rows, column) for column in (2, 3, 4))
    audit = judge({"hasty": hasty, "careful": careful}, human, resamples=100)
    (comparison,) = audit.comparisons
    assert (comparison.judge_a, comparison.judge_b) == ("careful", "hasty")
    assert (comparison.difference, comparison.queries) == (0.5, 1)
    assert np.isnan([comparison.low, comparison.high, comparison.p]).all()
    assert [(row.judge, row.value, row.letters) for row in audit.standings] == [
        ("careful", 1.0, "a"),
        ("hasty", 0.5, "a"),
    ]
    assert headline(audit) == (
        "careful has the highest κ (1.00), but 1 query is too few to compare judges."
    )
    assert meaning_sentence(audit) == "Grade more queries before you choose among these judges."


def noisy(
    noises: dict[str, float], queries: int = 12, seed: int = 0
) -> tuple[Ints, dict[str, Ints]]:
    """Return human grades 0 to 2 and those of judges that see them through noise: (queries, 10)."""
    rng = np.random.default_rng(seed)
    human = rng.choice(3, (queries, 10), p=[0.5, 0.3, 0.2])
    judged = {
        name: np.clip(np.round(human + rng.normal(0, noise, human.shape)), 0, 2).astype(np.int64)
        for name, noise in noises.items()
    }
    return human, judged


def frame(grades: Ints) -> pl.DataFrame:
    cells = [
        (f"q{query:02}", f"d{doc}", int(grade)) for (query, doc), grade in np.ndenumerate(grades)
    ]
    return pl.DataFrame(cells, ["query_id", "doc_id", "grade"], orient="row")


def audited(noises: dict[str, float], queries: int = 12, resamples: int = 2_000) -> JudgeAudit:
    human, judged = noisy(noises, queries)
    return judge(
        {name: frame(grades) for name, grades in judged.items()},
        frame(human),
        resamples=resamples,
    )


def plain_kappa(human: Ints, judged: Ints) -> float:
    """Cohen's κ, counted pair by pair."""
    pairs = list(zip(human.ravel().tolist(), judged.ravel().tolist(), strict=True))
    observed = sum(first == second for first, second in pairs) / len(pairs)
    expected = 0.0
    for grade in range(3):
        of_human = sum(first == grade for first, _ in pairs) / len(pairs)
        of_judge = sum(second == grade for _, second in pairs) / len(pairs)
        expected += of_human * of_judge
    return (observed - expected) / (1 - expected)


def test_difference_of_kappa_as_counted_pair_by_pair() -> None:
    """The same resamples for both judges, each κ anew, and both ends by the formula."""
    resamples, queries = 400, 12
    human, judged = noisy({"fine": 0.4, "coarse": 0.8})
    audit = audited({"fine": 0.4, "coarse": 0.8}, resamples=resamples)
    (comparison,) = audit.comparisons
    draws = np.random.default_rng([0, 11]).multinomial(queries, [1 / queries] * queries, resamples)
    samples = []
    for draw in draws:
        chosen = np.repeat(np.arange(queries), draw)
        fine, coarse = (
            plain_kappa(human[chosen], judged[name][chosen]) for name in ("fine", "coarse")
        )
        samples.append(fine - coarse)
    value = plain_kappa(human, judged["fine"]) - plain_kappa(human, judged["coarse"])
    assert comparison.difference == pytest.approx(value)
    # 2.5 % of 400 resamples are ten: the tenth from either end, and the same turned round.
    ordered = sorted(samples)
    ends = [ordered[9], ordered[-10], 2 * value - ordered[9], 2 * value - ordered[-10]]
    stretch = (
        np.sqrt(queries / (queries - 1)) * stats.t.ppf(0.975, queries - 1) / stats.norm.ppf(0.975)
    )
    assert comparison.low == pytest.approx(value + stretch * (min(ends) - value))
    assert comparison.high == pytest.approx(value + stretch * (max(ends) - value))
    assert (comparison.p < 0.05) == (comparison.low > 0)


def test_pairs_of_judges_are_corrected_together() -> None:
    audit = audited({"a": 0.3, "b": 0.5, "c": 0.8, "d": 1.2}, queries=40)
    ps = [comparison.p for comparison in audit.comparisons]
    assert len(ps) == 6
    corrected = [comparison.p_corrected for comparison in audit.comparisons]
    assert corrected == pytest.approx(holm(np.array(ps)).tolist())
    pairs_shown = {(row.judge_a, row.judge_b) for row in audit.comparisons if row.is_shown}
    letters = {row.judge: set(row.letters) for row in audit.standings}
    for first, second in combinations([row.judge for row in audit.standings], 2):
        assert bool(letters[first] & letters[second]) == ((first, second) not in pairs_shown)


def test_judges_compare_on_the_pairs_that_both_graded() -> None:
    """A judge that graded the first five documents alone is held against the other on these."""
    human, judged = noisy({"all": 0.4, "half": 0.4})
    half = frame(judged["half"]).filter(pl.col("doc_id").is_in([f"d{n}" for n in range(5)]))
    audit = judge({"all": frame(judged["all"]), "half": half}, frame(human), resamples=200)
    (comparison,) = audit.comparisons
    by_name = {name: plain_kappa(human[:, :5], judged[name][:, :5]) for name in ("all", "half")}
    expected = by_name[comparison.judge_a] - by_name[comparison.judge_b]
    assert comparison.difference == pytest.approx(expected)
    assert not np.isnan(comparison.low)


def test_a_judge_of_one_grade_is_not_compared() -> None:
    human, judged = noisy({"fine": 0.3, "coarse": 0.9})
    constant = np.ones_like(human)
    judges = {"same": constant, **judged}
    audit = judge({n: frame(g) for n, g in judges.items()}, frame(human), resamples=200)
    assert [row.judge for row in audit.standings] == ["fine", "coarse", "same"]
    assert audit.standings[-1].letters == ""
    undefined = [row for row in audit.comparisons if "same" in (row.judge_a, row.judge_b)]
    assert all(np.isnan([row.difference, row.p_corrected]).all() for row in undefined)


def test_headline_says_who_cannot_be_distinguished() -> None:
    cases = {
        ("fine", "poor"): r"fine agrees better with humans than poor: κ .* against .*",
        ("fine", "twin"): r"No judge is shown to be the best: .* but (fine|twin) cannot be .*",
        ("fine", "twin", "poor"): r".* has the highest κ .*; (fine|twin) cannot be distinguished "
        r"from it, poor agrees less\.",
    }
    noises = {"fine": 0.4, "twin": 0.41, "poor": 1.5}
    for names, pattern in cases.items():
        audit = audited({name: noises[name] for name in names}, queries=40)
        assert re.fullmatch(pattern, headline(audit)), headline(audit)
        assert judge_findings(audit)[0].sentence + "." == headline(audit)


def test_meaning_leaves_out_judges_by_chance() -> None:
    audit = audited({"fine": 0.4, "twin": 0.41, "dice": 60.0}, queries=40)
    meaning = meaning_sentence(audit)
    assert "these grades give no reason to prefer one of them" in meaning
    assert meaning.startswith("dice may agree with humans only by chance.")
    assert "dice or" not in meaning
    (step,) = judge_next_commands(audit)
    assert step.command.startswith("ranktilt judge --human HUMAN --judge JUDGE --runs")


def order_values(
    judge: str, noise: float, seed: int, runs: int = 12, queries: int = 40
) -> SystemValues:
    rng = np.random.default_rng(1)
    quality = np.linspace(0.3, 0.7, runs)
    human = quality[:, None] + rng.normal(0, 0.15, (runs, queries))
    judged = human + np.random.default_rng(seed).normal(0, noise, (runs, queries))
    judged = judged + noise * np.random.default_rng(seed + 1).normal(0, 1, (runs, 1))
    return SystemValues(
        judge=judge,
        measure="nDCG@10",
        bounds=(0.0, 1.0),
        runs=tuple(f"r{number}" for number in range(runs)),
        queries=tuple(f"q{number}" for number in range(queries)),
        human=human,
        judged=judged,
        rescaled_human=human,
        further_judged=np.empty((runs, 0)),
    )


def test_difference_of_tau_as_scipy_computes_it() -> None:
    """The value exactly; the interval holds the percentiles of an independent bootstrap."""
    good, poor = order_values("good", 0.02, 5), order_values("poor", 0.5, 7)
    (comparison,) = compare_orders([poor, good], correction="holm", seed=0)
    taus = [stats.kendalltau(v.human.mean(1), v.judged.mean(1))[0] for v in (good, poor)]
    assert (comparison.judge_a, comparison.measure) == ("good", "nDCG@10")
    assert comparison.difference == pytest.approx(taus[0] - taus[1])
    rng, samples = np.random.default_rng(99), []
    for _ in range(500):
        chosen = rng.integers(0, 40, 40)
        pair = [
            stats.kendalltau(v.human[:, chosen].mean(1), v.judged[:, chosen].mean(1))[0]
            for v in (good, poor)
        ]
        samples.append(pair[0] - pair[1])
    low, high = np.quantile(samples, [0.025, 0.975])
    assert comparison.low <= low + 0.05
    assert high - 0.05 <= comparison.high
    assert comparison.low > 0
    assert comparison.is_shown


def test_orders_compare_on_systems_and_queries_of_both() -> None:
    first = order_values("first", 0.1, 5)
    second = order_values("second", 0.3, 7).subset(
        ("r3", "r1", "r2"), tuple(f"q{n}" for n in range(9))
    )
    (comparison,) = compare_orders([first, second], correction="holm", seed=0)
    same = first.subset(("r1", "r2", "r3"), tuple(f"q{n}" for n in range(9)))
    assert comparison.queries == 9
    taus = {v.judge: stats.kendalltau(v.human.mean(1), v.judged.mean(1))[0] for v in (same, second)}
    assert comparison.difference == pytest.approx(
        taus[comparison.judge_a] - taus[comparison.judge_b]
    )
