"""Paired differences of estimands about groups, between runs of one audit too; and of two models'
choices.
"""

from dataclasses import replace
from functools import cache
from itertools import product
from math import log2, sqrt
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from scipy import stats

from ranktilt import Audit, Collection, Comparison, PairwiseAudit, Run, audit, compare
from ranktilt.auditing.effects import Change
from ranktilt.auditing.pairwise.result import QueryChoices
from ranktilt.reporting.layouts.figures import paper_figures
from ranktilt.reporting.layouts.results import cells_of, tables_of
from ranktilt.reporting.sentences.notes import note_sentences
from ranktilt.reporting.views.compare.compare import choices_of, ratios
from tests.auditing.arrays import noisy, two_group_audit
from tests.refusals import refused
from tests.toy import collection_of, run_of

SIDED = ("ExposureRatio@4", "ExposureRatio(aggregate=means)", "Share@2", "NDSR@3")
WHOLE = ("AWRF@3", "NDKL", "EEL@3")
QUICK: dict[str, Any] = {
    "resamples": 300,
    "confounds": False,
    "by": "gender",
    "pairs": [("f", "m")],
}


def people(lists: list[str]) -> Collection:
    """A document for each letter of each list, f or m; all of a query are candidates, the first two
    relevant.
    """
    docs = [
        {"id": f"{q}-{n}", "text": "", "source": "s", "origin": f"{q}-{n}", "gender": letter}
        for q, letters in enumerate(lists)
        for n, letter in enumerate(letters)
    ]
    qrels = {f"q{q}": {f"{q}-0": 1, f"{q}-1": 1} for q in range(len(lists))}
    return collection_of(docs, dict.fromkeys(qrels, "who"), qrels)


def ranked(collection: Collection, orders: list[list[int]], name: str) -> Run:
    """Each query's documents in this order, by their number."""
    scores = {
        f"q{q}": {f"{q}-{n}": -float(rank) for rank, n in enumerate(order)}
        for q, order in enumerate(orders)
    }
    return run_of(collection, scores, ranker=name)


def shuffled(lists: list[str], seed: int, lift: float = 0.0) -> list[list[int]]:
    """Random orders in which an f stands higher by a `lift`."""
    rng = Random(seed)
    scores = [
        {n: rng.random() + lift * (letter == "f") for n, letter in enumerate(letters)}
        for letters in lists
    ]
    return [
        sorted(scores_of_query, key=lambda n: -scores_of_query[n]) for scores_of_query in scores
    ]


def lists_of(queries: int, seed: int = 0) -> list[str]:
    rng = Random(seed)
    return ["".join(rng.sample("fmfmmm", 6)) for _ in range(queries)]


LISTS = lists_of(12)
PEOPLE = people(LISTS)
ORDERS = {
    "neutral": shuffled(LISTS, 1),
    "female": shuffled(LISTS, 2, lift=0.4),
    "male": shuffled(LISTS, 3, lift=-0.4),
}
RUNS = [ranked(PEOPLE, orders, name) for name, orders in ORDERS.items()]


@cache
def audit_of_all() -> Audit:
    """The audit of every run by every measure."""
    return audit(PEOPLE, RUNS, ["P@3", *SIDED, *WHOLE], **QUICK)


def without_documents(audit: Audit) -> Audit:
    """The audit as if queries alone made its differences uncertain."""
    return replace(audit, contributions=None)


def change_of(comparison: Comparison, run: str, measure: str) -> Change:
    (change,) = (c for c in comparison.estimates if (c.run, c.measure) == (run, measure))
    return change


class TestByHand:
    """One f and two m a query; under the new run the f leads two of six lists that it
    ended before.
    """

    LISTS: ClassVar = ["fmm"] * 6
    OLD: ClassVar = [[1, 2, 0]] * 6
    NEW: ClassVar = [[0, 1, 2], [0, 1, 2], *[[1, 2, 0]] * 4]
    FIRST, LAST = 1 / ((1 / log2(3) + 1 / 2) / 2), (1 / 2) / ((1 + 1 / log2(3)) / 2)

    def both(self, *measures: str) -> Comparison:
        collection = people(self.LISTS)
        runs = [
            ranked(collection, orders, name)
            for name, orders in (("old", self.OLD), ("new", self.NEW))
        ]
        audited = without_documents(audit(collection, runs, measures, **QUICK))
        return compare(audited, baseline_run="old", resamples=2000)

    def test_exposure_ratio(self) -> None:
        change = change_of(self.both("ExposureRatio"), "new", "ExposureRatio")
        assert change.old == pytest.approx(self.LAST)
        assert change.new == pytest.approx((2 * self.FIRST + 4 * self.LAST) / 6)
        assert change.value == pytest.approx((self.FIRST - self.LAST) / 3)
        # Each resample draws the two queries that differ k times of six: 0 to 4 times in 95 %. The
        # ends lie √(6/5) · t(.975; 5) / 1.96 times as far from the value, which is twice.
        steps = (self.FIRST - self.LAST) / 6
        factor = sqrt(6 / 5) * stats.t.ppf(0.975, 5) / stats.norm.ppf(0.975)
        assert [change.low / steps, change.high / steps] == pytest.approx(
            [2 - 2 * factor, 2 + 2 * factor]
        )
        assert (change.queries, change.excluded) == (6, 0)
        assert change.p > 0.05

    @pytest.mark.parametrize("measure", ["ExposureRatio", "AWRF@1"])
    def test_difference_names_side_if_shown(self, measure: str) -> None:
        comparison = self.both(measure)
        change = change_of(comparison, "new", measure)
        sides = []
        for sign in (1, -1):
            low, high = sorted((sign * 0.1, sign * 0.9))
            uncertain = replace(
                change, p_corrected=0.01, value=sign * 0.5, low=low, high=high, effective_n=20
            )
            assert not replace(uncertain, low=-0.1, high=0.1).is_shown
            (verdict,) = replace(comparison, estimates=(uncertain,)).verdicts()
            assert verdict.is_shown
            sides.append(verdict.sentence.split(":")[0].removeprefix("new "))
        toward = [f"leans further toward {side} than old in ExposureRatio" for side in "fm"]
        higher = [f"has a {word} AWRF@1 than old" for word in ("higher", "lower")]
        assert sides == {"ExposureRatio": toward, "AWRF@1": higher}[measure]


def exposures(order: list[int], letters: str, cutoff: int) -> tuple[float, float]:
    """Mean attention of either group, as the definition says it."""
    seen = {
        n: 1 / log2(1 + rank) if rank <= cutoff else 0.0 for rank, n in enumerate(order, start=1)
    }
    of = {g: [seen[n] for n, letter in enumerate(letters) if letter == g] for g in "fm"}
    return sum(of["f"]) / len(of["f"]), sum(of["m"]) / len(of["m"])


def share(order: list[int], letters: str, cutoff: int) -> float:
    first = [letters[n] for n in order[:cutoff]]
    return first.count("f") / cutoff - letters.count("f") / len(letters)


def naive(name: str, measure: str, keep: npt.NDArray[np.int64]) -> float:
    """An estimand over these queries, some of them repeatedly."""
    pairs = [
        exposures(ORDERS[name][q], LISTS[q], 4 if measure.endswith("@4") else 99) for q in keep
    ]
    if measure == "ExposureRatio@4":
        return float(np.mean([value_a / value_b for value_a, value_b in pairs]))
    if measure == "Share@2":
        return float(np.mean([share(ORDERS[name][q], LISTS[q], 2) for q in keep]))
    mean_a, mean_b = np.mean(pairs, axis=0)
    return float(mean_a / mean_b)


@pytest.mark.parametrize("measure", SIDED[:3])
def test_difference_equals_naive_computation(measure: str) -> None:
    change = change_of(
        compare(without_documents(audit_of_all()), baseline_run="neutral", resamples=4000),
        "female",
        measure,
    )
    every = np.arange(len(LISTS))
    new, old = naive("female", measure, every), naive("neutral", measure, every)
    assert (change.new, change.old, change.value) == pytest.approx((new, old, new - old))
    rng = np.random.default_rng(5)
    draws = [rng.integers(0, len(LISTS), len(LISTS)) for _ in range(4000)]
    moved = [naive("female", measure, keep) - naive("neutral", measure, keep) for keep in draws]
    assert change.error == pytest.approx(np.std(moved), rel=0.05)
    count = change.sample  # 12 of equal weight, fewer where a ratio of means weighs them
    factor = sqrt(count / (count - 1)) * stats.t.ppf(0.975, count - 1) / stats.norm.ppf(0.975)
    ends = change.value + factor * (np.quantile(moved, [0.025, 0.975]) - change.value)
    assert [change.low, change.high] == pytest.approx(ends, abs=0.1 * np.std(moved) + 0.02)
    assert count == 12 or "means" in measure
    assert (change.p < 0.05) == (not change.low <= 0 <= change.high)


class TestOneAudit:
    def test_every_other_run_is_compared_with_it(self) -> None:
        comparison = compare(audit_of_all(), baseline_run="neutral", resamples=300)
        assert comparison.runs == (("female", "neutral"), ("male", "neutral"))
        assert [(c.run, c.measure) for c in comparison.estimates] == list(
            product(("female", "male"), (*SIDED, *WHOLE))
        )
        assert [c.run for c in comparison.effectiveness] == ["female", "male"]
        assert comparison.spec["baseline_run"] == "neutral"
        assert comparison.spec["family_size"] == 2 * (2 + len(SIDED) + len(WHOLE))
        assert not any(
            "is compared with" in note or "left out" in note
            for note in note_sentences(comparison.notes)
        )
        for change in comparison.estimates:
            effects = {e.run: e.value for e in audit_of_all().card if e.measure == change.measure}
            assert (change.new, change.old) == pytest.approx(
                (effects[change.run], effects["neutral"])
            )

    def test_exchanging_the_runs_negates_every_difference_exactly(self) -> None:
        there, back = (
            [
                c
                for c in compare(audit_of_all(), baseline_run=old, resamples=300).estimates
                if c.run == new
            ]
            for new, old in (("female", "neutral"), ("neutral", "female"))
        )
        for change, mirrored in zip(there, back, strict=True):
            assert (mirrored.new, mirrored.old, mirrored.value) == (
                change.old,
                change.new,
                -change.value,
            )
            assert (mirrored.low, mirrored.high, mirrored.error, mirrored.p) == (
                -change.high,
                -change.low,
                change.error,
                change.p,
            )
            assert (mirrored.growth, mirrored.growth_low) == (-change.growth, -change.growth_high)

    def test_file_round_trip_and_identical_runs(self, tmp_path: Path) -> None:
        back = Audit.load(audit_of_all().save(tmp_path / "audit.json"))
        assert back == audit_of_all()
        assert len(back.query_answers) == 3 * (len(SIDED) + len(WHOLE))
        comparison = compare(back, baseline_run="neutral", resamples=300)
        assert Comparison.load(comparison.save(tmp_path / "comparison.json")) == comparison
        # The file that an audit was read from is part of the comparison's spec.
        of_made = compare(audit_of_all(), baseline_run="neutral", resamples=300)
        assert comparison.tilts == of_made.tilts
        assert comparison.estimates == of_made.estimates
        twice = audit(
            PEOPLE,
            [RUNS[0], ranked(PEOPLE, ORDERS["neutral"], "again")],
            ["P@3", "AWRF@3"],
            **QUICK,
        )
        (verdict,) = compare(twice, baseline_run="neutral", resamples=100).verdicts()
        assert (verdict.run, verdict.old_run, verdict.kind) == ("again", "neutral", "identical")

    def test_what_is_refused(self) -> None:
        with refused(
            "unknown run 'neutrall'; did you mean 'neutral'? (valid: neutral, female, male)"
        ):
            compare(audit_of_all(), baseline_run="neutrall")
        either = (
            "give either an old audit (OLD.json) or a run of the same audit (--baseline-run RUN); "
            "an audit of 3 runs or more needs neither"
        )
        with refused(either):
            compare(audit_of_all(), audit_of_all(), baseline_run="neutral")
        alone = audit(PEOPLE, RUNS[0], ["AWRF@3"], **QUICK)
        with refused(either):
            compare(alone)
        with refused("--baseline-run compares the runs of one audit, so give one; or omit it"):
            compare(audit_of_all(), audit_of_all(), audit_of_all(), baseline_run="neutral")
        two_runs = audit(PEOPLE, RUNS[:2], ["AWRF@3"], **QUICK)
        with refused(
            "to compare the two runs of an audit, name the one to compare with: --baseline-run "
            "'neutral' or 'female'"
        ):
            compare(two_runs)
        with refused("nothing to compare: the audit has no run other than 'neutral'"):
            compare(alone, baseline_run="neutral")


def without_first_query(audit: Audit) -> Audit:
    answers = tuple(
        replace(q, numerator=q.numerator[1:], denominator=q.denominator[1:])
        for q in audit.query_answers
    )
    return replace(
        audit, queries=audit.queries[1:], values=audit.values[..., 1:], query_answers=answers
    )


class TestTwoAudits:
    def test_pairs_may_stand_the_other_way_round_but_for_ratios(self) -> None:
        new, old = (audit(PEOPLE, run, ["P@3", *SIDED], **QUICK) for run in RUNS[:2])
        turned = audit(PEOPLE, RUNS[1], ["P@3", *SIDED], **{**QUICK, "pairs": [("m", "f")]})
        straight, turned_round = (compare(new, base, resamples=300) for base in (old, turned))
        assert [c.measure for c in turned_round.estimates] == list(SIDED[2:])
        for change in turned_round.estimates:
            twin = change_of(straight, "neutral", change.measure)
            assert (change.a, change.value, change.low, change.p) == (
                "f",
                twin.value,
                twin.low,
                twin.p,
            )
        assert any(
            "left out: 2 questions only in the new audit ('ExposureRatio@4 f,m', " in n
            for n in note_sentences(turned_round.notes)
        )

    def test_queries_may_stand_in_another_order(self) -> None:
        new, old = (audit(PEOPLE, run, [*SIDED, *WHOLE], **QUICK) for run in RUNS[:2])
        order = list(range(len(LISTS)))[::-1]
        turned = replace(
            old,
            queries=tuple(old.queries[n] for n in order),
            values=old.values[..., order],
            query_answers=tuple(
                replace(q, numerator=q.numerator[order], denominator=q.denominator[order])
                for q in old.query_answers
            ),
        )
        straight, turned_round = (compare(new, base, resamples=300) for base in (old, turned))
        assert [c.value for c in turned_round.estimates] == pytest.approx(
            [c.value for c in straight.estimates]
        )
        assert [c.p for c in turned_round.estimates] == pytest.approx(
            [c.p for c in straight.estimates], abs=0.05
        )

    def test_questions_about_groups_are_compared_on_common_queries(self) -> None:
        new, old = (audit(PEOPLE, run, [*SIDED, *WHOLE], **QUICK) for run in RUNS[:2])
        fewer_new, fewer_old = (without_first_query(whole_audit) for whole_audit in (new, old))
        comparison, alone = (
            compare(new, fewer_old, resamples=300),
            compare(fewer_new, fewer_old, resamples=300),
        )
        assert comparison.estimates == alone.estimates
        assert {change.queries + change.excluded for change in comparison.estimates} == {
            len(LISTS) - 1
        }

    def test_repeated_queries_count_as_one(self) -> None:
        lists = [*LISTS[:6], *LISTS[:6]]
        collection = people(lists)
        queries = collection.queries.with_columns(
            text=pl.Series([f"who {n % 6}" for n in range(12)])
        )
        twice = Collection(collection.docs, queries, collection.qrels)
        once = people(LISTS[:6])
        changes = []
        for chosen_queries, count in ((once, 6), (twice, 12)):
            orders = [(shuffled(LISTS[:6], seed) * 2)[:count] for seed in (1, 2)]
            runs = [ranked(chosen_queries, order, f"r{n}") for n, order in enumerate(orders)]
            audited = without_documents(
                audit(chosen_queries, runs, "ExposureRatio", **QUICK)
            )  # the copies have their own
            changes += compare(audited, baseline_run="r0", resamples=500).estimates
        once, repeated = (
            (change.low, change.high, change.error, change.sample) for change in changes
        )
        assert once == pytest.approx(repeated)


SPEC = {
    "by": "gender",
    "count_rule": "each",
    "margin": 5.0,
    "correction": "holm",
    "resamples": 500,
    "asked": "x",
}


def result(
    won: dict[str, tuple[int, int]], model: str = "model", kind: Any = "relevant", **spec: Any
) -> PairwiseAudit:
    """What was chosen of women and men in each query."""
    rows = [
        QueryChoices(
            kind=kind,
            query=query,
            pairs=4,
            units=8,
            protected=women,
            unprotected=men,
            inconsistent=0,
            unparsed=8 - women - men,
            readable=women + men,
            first=0,
        )
        for query, (women, men) in won.items()
    ]
    return PairwiseAudit(
        spec={**SPEC, **spec},
        model=model,
        protected="female",
        unprotected="male",
        outcomes=(),
        by_query=tuple(rows),
    )


NEW = {"q0": (3, 1), "q1": (2, 2), "q2": (1, 3), "q3": (4, 0)}
OLD = {"q3": (2, 2), "q0": (1, 3), "q2": (1, 3), "q1": (2, 2)}


def test_by_hand() -> None:
    """10 of 16 choices against 6 of 16: +12.5 points against −12.5; only q0 and q3 differ."""
    comparison = compare(result(NEW, "after"), result(OLD, "before"), resamples=500)
    (change,) = comparison.estimates
    assert (change.new, change.old, change.value, change.growth) == (0.125, -0.125, 0.25, 0)
    # Four queries differ by 8, 0, 0 and 8 of 16: V is 4/16² · 4/3, t has three degrees of freedom.
    assert change.p > 0.05
    assert change.low < 0 < change.high
    assert (change.run, change.old_run, change.a, change.b) == ("after", "before", "female", "male")
    assert (change.queries, change.excluded) == (4, 0)
    before, after = ratios(change)
    assert (before.value, after.value) == pytest.approx((6 / 10, 10 / 6))
    assert before.low <= before.value <= before.high
    back = compare(result(OLD, "before"), result(NEW, "after"), resamples=500).estimates[0]
    assert (back.value, back.low, back.high, back.p) == (
        -change.value,
        -change.high,
        -change.low,
        change.p,
    )


def test_kinds_are_one_family_and_undecided_queries_are_noted() -> None:
    rows = [
        result(chosen, kind=kind).by_query
        for chosen in (NEW, OLD)
        for kind in ("relevant", "irrelevant")
    ]
    new, old = (replace(result(NEW), by_query=a + b) for a, b in (rows[:2], rows[2:]))
    comparison = compare(new, old, resamples=500)
    assert list(choices_of(comparison)) == ["relevant", "irrelevant"]
    assert all(np.isnan(change.p_corrected) for change in comparison.estimates)  # of four queries
    assert not any("other pairs" in note for note in note_sentences(comparison.notes))
    comparison = compare(
        result({**NEW, "q4": (0, 0)}), result({**OLD, "q4": (4, 0)}), resamples=500
    )
    assert (comparison.estimates[0].value, comparison.estimates[0].excluded) == (0.25, 1)
    assert (
        "1 of 5 queries excluded: preference on relevant pairs is not defined under both runs"
        in note_sentences(comparison.notes)
    )
    comparison = compare(result(NEW), result(OLD, asked="y"), resamples=500)
    assert note_sentences(comparison.notes)[0].startswith(
        "the models chose between different pairs of the same queries; "
    )


def test_choices_compared_on_common_queries() -> None:
    """The four queries of above; of a fifth, in which men alone are chosen, only the new model was
    asked.
    """
    new, old = result({**NEW, "q7": (0, 4)}, "after"), result(OLD, "before")
    comparison = compare(new, old, resamples=500, max_left_out=20)
    (change,) = comparison.estimates
    assert (change.new, change.old, change.queries) == (0.125, -0.125, 4)
    assert note_sentences(comparison.notes)[0] == (
        "relevant pairs: left out: 1 of 5 queries (20.0 %): 1 query only in the new pairwise audit "
        "('q7')"
    )
    assert comparison.verdicts()[0].sentence.endswith(", on 4 common queries")
    with refused(
        "the pairwise audits cover different queries: 1 query only in the new one ('q7'); that "
        "is 1 of …"
    ):
        compare(new, old, resamples=500, max_left_out=19)


def test_a_kind_of_pairs_that_one_audit_lacks_is_left_out() -> None:
    both = replace(
        result(NEW), by_query=result(NEW).by_query + result(NEW, kind="irrelevant").by_query
    )
    comparison = compare(both, result(OLD), resamples=500)
    assert list(choices_of(comparison)) == ["relevant"]
    assert (
        note_sentences(comparison.notes)[0]
        == "left out: irrelevant pairs, which only the new pairwise audit has"
    )


def test_a_model_that_becomes_fair_is_said_to_tilt_less() -> None:
    tilted = {f"q{n}": (n % 2, 8 - n % 2) for n in range(40)}
    fair = {f"q{n}": (4 - n % 3, 4) for n in range(40)}  # 121 of 281 against 20 of 320
    (verdict,) = compare(result(fair, "after"), result(tilted, "before"), resamples=500).verdicts()
    assert verdict.is_shown
    assert (
        "further toward female than before in preference on relevant pairs: difference +36.8 "
        in verdict.sentence
    )
    assert verdict.sentence.endswith("; the tilt itself shrank")


def test_file_round_trip_and_figure(tmp_path: Path) -> None:
    comparison = compare(result(NEW, "after", path="lists"), result(OLD, "before"), resamples=500)
    assert Comparison.load(comparison.save(tmp_path / "found.json")) == comparison
    assert tables_of(comparison) == ["wang-fig4"]
    cells = {
        cell.target: (cell.dataset, cell.system, cell.value)
        for cell in cells_of(comparison, "wang-fig4")
    }
    assert cells == {
        "before": ("lists", "before", 6 / 10),
        "after": ("lists", "before", pytest.approx(10 / 6)),
    }
    assert b"before: before" in paper_figures([comparison], layout="wang-fig4")["wang-figure-4.svg"]
    with refused("nothing to draw: Comparison has no figures"):
        paper_figures([compare(*map(noisy, map(np.random.default_rng, (0, 1))), resamples=100)])


@pytest.mark.parametrize(
    ("old", "message"),
    [
        (
            replace(result(OLD), protected="male"),
            "the pairwise audits compare different groups: female ",
        ),
        (
            result(OLD, by="region"),
            "the pairwise audits compare different groups: female and male by gender (new), female",
        ),
        (
            result(OLD, count_rule="both-agree"),
            "the pairwise audits count choices differently: 'each' (new), 'both-",
        ),
        (
            result({"q0": (1, 1), "q9": (1, 1)}),
            "the pairwise audits cover different queries: 3 queries only in the "
            "new one ('q1', 'q2', 'q3'), 1 query only in the old one ('q9'); that is 4 of 5 (80.0 "
            "%), more than "
            "--max-left-out 10; ask both about the same queries (--queries)",
        ),
        (
            result(OLD, kind="irrelevant"),
            "the pairwise audits have no kind of pairs in common: left out: relevant pairs, "
            "which only the new pairwise audit has; left out: irrelevant pairs, which only the "
            "old pairwise audit has",
        ),
        (
            two_group_audit([1], [0]),
            "expected two audits, or two pairwise audits: NEW.json OLD.json",
        ),
    ],
)
def test_estimand_refusals(old: PairwiseAudit | Audit, message: str) -> None:
    with refused(f"{message}…"):
        compare(result(NEW), old)
    with refused(
        "the pairwise audits have no choices per query; run both again (ranktilt pairwise)"
    ):
        compare(result({}), result({}))
