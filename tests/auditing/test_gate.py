"""What is decided: by the gate, level, within, tilted or inconclusive; and query by query, once a
tilt is shown.
"""

import math
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranktilt import Audit, Collection, Run, measure
from ranktilt.auditing.audit import audit as run_audit
from ranktilt.auditing.effects import Change
from ranktilt.auditing.gate.gate import gate
from ranktilt.auditing.gate.result import Gate, GateRow, check_growth, check_loss, check_tilt, worst
from ranktilt.auditing.sequential import (
    BATCH,
    Look,
    SequentialAudit,
    decision_after,
    sequential_audit,
)
from ranktilt.measures.contrast import RelativeDelta
from ranktilt.rankers.base import Ranker, cut
from ranktilt.reporting.sentences.gate import (
    derived_words,
    gate_headline,
    gate_meaning,
    limit_reason,
    row_reason,
)
from ranktilt.reporting.sentences.notes import note_sentences
from ranktilt.reporting.sentences.sequential import decision_sentence, query_count_sentence
from ranktilt.statistics.variation import Variation
from tests.auditing.arrays import audit_of, noisy, tilt, two_group_audit
from tests.refusals import refused
from tests.reporting.audits import clear, ordered, twins

NAN = np.nan


def outcome(audit: Audit, **options: Any) -> tuple[str, int]:
    gate_result = gate(audit, **{"resamples": 400, **options})
    return gate_result.outcome, gate_result.exit_code


class TestTilt:
    @pytest.mark.parametrize(
        ("low", "high", "limit", "expected", "reason"),
        [
            (-15, 15, 15, "level", "0.0 % [−15.0, +15.0] lies within ±15 points"),
            (16, 30, 15, "tilted", "+23.0 % [+16.0, +30.0] lies entirely beyond +15.0"),
            (-30, -15.1, 15, "tilted", "−22.6 % [−30.0, −15.1] lies entirely beyond −15.0"),
            (
                15,
                30,
                15,
                "inconclusive",
                "[+15.0, +30.0]: a tilt toward human is shown; whether it is larger than the limit "
                "of 15 points is not",
            ),
            (
                -30,
                -15,
                15,
                "inconclusive",
                "[−30.0, −15.0]: a tilt toward llm is shown; whether it is larger than the limit "
                "of 15 points is not",
            ),
            (
                -40,
                40,
                15,
                "inconclusive",
                "[−40.0, +40.0] straddles the limits of −15.0 and +15.0, so",
            ),
            (16, 30, 30.5, "within", "lies within ±30.5 points, but still favours human"),
            (15.04, 30, 15, "tilted", "[+15.04, +30.00] lies entirely beyond +15.0"),
            (-4, 15.004, 15, "inconclusive", "[−4.000, +15.004] straddles the limit of +15.0, so"),
        ],
    )
    def test_the_interval_decides(
        self, low: float, high: float, limit: float, expected: str, reason: str
    ) -> None:
        check = check_tilt(tilt(low, high, p=1.0 if low <= 0 <= high else 0.01), limit)
        assert check.outcome == expected
        assert reason in limit_reason(check)
        assert (check.low, check.high, check.floor, check.ceiling) == (low, high, -limit, limit)

    @pytest.mark.parametrize(
        ("low", "high", "expected"),
        [
            (62, 88, "level"),
            (91, 120, "tilted"),
            (-5, 5, "tilted"),
            (50, 80, "inconclusive"),
        ],
    )
    def test_other_groups_are_level_at_the_middle_of_their_band(
        self, low: float, high: float, expected: str
    ) -> None:
        check = check_tilt(tilt(low, high, null_low=55.0, null_high=95.0), 15)
        assert check.outcome == expected
        assert (check.floor, check.ceiling) == (60, 90)
        assert "around +75.0, the median of random labels" in limit_reason(check)

    @pytest.mark.parametrize(
        ("effect", "reason"),
        [
            (
                tilt(0, 0, queries=1, error=0.0),
                "1 query is too few for a verdict (10 needed); Relative Δ 0.0 %",
            ),
            (
                tilt(60, 90, effective_n=2),
                "are worth 2 independent ones, too few for a verdict (10 needed); ",
            ),
            (
                tilt(16, 30, p=0.06),
                "lies entirely beyond +15.0, toward human, but corrected p = .060",
            ),
            (tilt(1, 2, value=NAN), "Relative Δ is undefined: nDCG@3 is 0 for both human and llm"),
            (
                tilt(NAN, NAN, queries=0),
                "is undefined: no query has relevant documents from both human and llm",
            ),
        ],
    )
    def test_inconclusive_cases(self, effect: Any, reason: str) -> None:
        check = check_tilt(effect, 15)
        assert check.outcome == "inconclusive"
        assert reason in limit_reason(check)

    @given(
        st.floats(-60, 60), st.floats(0, 40), st.sampled_from([0.001, 0.06, 0.9]), st.floats(0, 70)
    )
    def test_it_says_level_where_the_audit_favours_nobody(
        self, low: float, wide: float, p: float, to: float
    ) -> None:
        e = tilt(low, low + wide, p=p)
        outcome, verdict = check_tilt(e, to).outcome, e.verdict(to)
        assert (outcome == "level") == (verdict == "level")
        assert outcome != "tilted" or verdict in ("a", "b")


def change(low: float, high: float, **fields: Any) -> Change:
    arguments: dict[str, Any] = {
        "run": "r",
        "old_run": "r",
        "estimand": RelativeDelta(of=measure("RR")),
        "new": 30.0,
        "old": 10.0,
        "value": 20.0,
        "low": 0.0,
        "high": 0.0,
        "error": 1.0,
        "p": NAN,
        "p_corrected": NAN,
        "queries": 50,
        "excluded": 0,
        "a": "human",
        "b": "llm",
        "effective_n": 50,
        "family_size": 1,
        "dropped": 0,
        "neutral_new": 0.0,
        "neutral_old": 0.0,
        "growth": (low + high) / 2,
        "growth_low": low,
        "growth_high": high,
        "growth_error": 2.0,
        "twins": True,
    }
    return Change(**{**arguments, **fields})


class TestLoss:
    @pytest.mark.parametrize(
        ("low", "high", "outcome", "reason"),
        [
            (-1.0, 2.0, "level", "a loss of more than 1 point is excluded"),
            (-3.0, -1.1, "tilted", "a loss of more than 1 point is shown"),
            (
                -3.0,
                -1.0,
                "inconclusive",
                "a loss is shown; whether it is more than 1 point is not",
            ),
            (-1.1, 0.0, "inconclusive", "neither shown nor excluded"),
        ],
    )
    def test_interval_decides_about_one_point(
        self, low: float, high: float, outcome: str, reason: str
    ) -> None:
        changed = change(0, 0, estimand=measure("RR"), a="all", b="all")
        changed = replace(changed, value=(low + high) / 2, low=low, high=high)
        check = check_loss(changed, 1.0)
        assert check.outcome == outcome
        assert reason in limit_reason(check)
        assert (check.floor, check.ceiling) == (-1.0, math.inf)

    def test_lower_means_fail_whatever_the_tilt_is(self) -> None:
        values = np.tile([0.5, 0.6], 30)
        before, after = two_group_audit(values, values), two_group_audit(values - 0.3, values - 0.3)
        assert outcome(after, baseline=before) == ("level", 0)
        assert outcome(after, baseline=before, max_loss=5) == ("tilted", 1)
        assert outcome(after, baseline=before, max_loss=31) == ("level", 0)
        gated = gate(after, baseline=before, max_loss=5, resamples=400)
        assert "beyond the limit" in gate_headline(gated)
        assert "tilted" not in gate_headline(gated)
        (_, row) = gated.rows
        assert (row.groups, row.measure) == ("all", "nDCG@5")
        assert row_reason(row).startswith("nDCG@5 −30.0 points [−30.0, −30.0] since the baseline: ")

    def test_loss_needs_a_baseline_and_judgments(self) -> None:
        audit = two_group_audit(np.full(60, 0.5), np.full(60, 0.5))
        with refused("--max-loss needs a baseline: --baseline OLD.json"):
            gate(audit, max_loss=1)
        with refused("--max-loss: expected a number of points from 0 to 100, got -1"):
            gate(audit, baseline=audit, max_loss=-1)


class TestGrowth:
    @pytest.mark.parametrize(
        ("low", "high", "least", "expected"),
        [
            (1, 9, 0, "tilted"),
            (0, 9, 0, "inconclusive"),  # above means above
            (-9, 0, 0, "level"),
            (1, 9, 5, "inconclusive"),
            (6, 9, 5, "tilted"),
            (1, 5, 5, "level"),  # it grew, but by no more than is allowed
        ],
    )
    def test_shown_excluded_or_neither(
        self, low: float, high: float, least: float, expected: str
    ) -> None:
        check = check_growth(change(low, high), least)
        assert check.outcome == expected
        assert (check.low, check.high, check.floor, check.ceiling) == (low, high, -math.inf, least)

    @pytest.mark.parametrize(
        ("growth", "reason"),
        [
            (
                change(3, 7),
                (
                    "+5.0 points [+3.0, +7.0] since the baseline exceeds 2: Relative Δ +10.0 % "
                    "before, +30."
                ),
            ),
            (change(-7, 1), "−3.0 points [−7.0, +1.0] since the baseline does not exceed 2: "),
            (
                change(-3, 7),
                (
                    "straddles 2, so it neither passes nor fails; 50 queries would find 5.7 points "
                    "four times in five; "
                ),
            ),
            (
                change(-9, -1, effective_n=5),
                (
                    "5 independent ones, too few for a verdict (10 needed); growth −5.0 points "
                    "[−9.0, "
                ),
            ),
            (
                change(NAN, NAN, old=NAN),
                "is undefined: the baseline's Relative Δ or its random band is",
            ),
            (change(NAN, NAN), "is undefined: the new Relative Δ or its random band is"),
        ],
    )
    def test_reasons(self, growth: Change, reason: str) -> None:
        check = check_growth(growth, 2)
        assert reason in limit_reason(check)
        assert (check.outcome == "inconclusive") is (
            "above" not in reason and "exceed" not in reason
        )


def test_worst_check_decides_the_gate() -> None:
    assert worst(["inconclusive", "tilted", "within", "level"]) == "tilted"
    assert worst(["within", "inconclusive", "level"]) == "inconclusive"
    assert worst(["level", "within"]) == "within"
    checks = (check_tilt(tilt(-1, 1), 15), check_growth(change(3, 7), 0))
    row = GateRow(run="r", measure="RR", a="human", b="llm", queries=50, checks=checks)
    assert (row.outcome, row_reason(row)) == ("tilted", limit_reason(checks[1]))
    both = replace(row, checks=(checks[0], checks[0]))
    assert row_reason(both) == f"{limit_reason(checks[0])}; {limit_reason(checks[0])}"


LEVEL = two_group_audit(np.tile([0.5, 0.6], 30), np.tile([0.6, 0.5], 30))
HUMAN = two_group_audit(np.tile([0.9, 0.8], 30), np.tile([0.5, 0.6], 30))
UNSURE = two_group_audit(np.tile([1, 0, 0.2], 20), np.tile([0, 1, 0], 20))
NOTHING = two_group_audit(np.zeros(60), np.zeros(60))


def banded(audit: Audit, level: float) -> Audit:
    """The same values of groups that are not twins, level at some other value."""
    return two_group_audit(audit.values[0, 0, 1], audit.values[0, 0, 2], null=np.full(500, level))


class TestExitCodes:
    @pytest.mark.parametrize(
        ("audit", "options", "expected"),
        [
            (LEVEL, {}, ("level", 0)),
            (HUMAN, {}, ("tilted", 1)),
            (UNSURE, {"inconclusive": "pass"}, ("inconclusive", 0)),
            (HUMAN, {"max_tilt": 60}, ("within", 0)),
            (HUMAN, {"baseline": LEVEL}, ("tilted", 1)),
            (HUMAN, {"baseline": LEVEL, "min_effect": 60}, ("level", 0)),
            (LEVEL, {"baseline": NOTHING}, ("inconclusive", 3)),
            (banded(LEVEL, 48), {}, ("tilted", 1)),
        ],
    )
    def test_of_one_run(
        self, audit: Audit, options: dict[str, Any], expected: tuple[str, int]
    ) -> None:
        assert outcome(audit, **options) == expected

    def test_the_worst_run_and_measure_count(self) -> None:
        audit = clear(("people", "machines", "nobody"))
        assert outcome(audit, runs=["nobody"], max_tilt=70) == ("level", 0)
        assert outcome(audit, runs=["nobody"], max_tilt=15) == ("inconclusive", 3)
        assert outcome(audit, runs=["nobody", "machines"]) == outcome(audit) == ("tilted", 1)
        values = np.stack([LEVEL.values[0, 0], UNSURE.values[0, 0], HUMAN.values[0, 0]])[None]
        audit = audit_of(values, measures=("P@1", "RR", "AP"))
        assert outcome(audit) == ("level", 0)  # the primary measure alone
        assert outcome(audit, measures=["P@1", "RR"]) == ("inconclusive", 3)
        assert outcome(audit, measures=["RR", "AP", "P@1"]) == ("tilted", 1)


class TestRows:
    VALUES = np.random.default_rng(0).random((2, 2, 4, 40))
    AUDIT = audit_of(VALUES, runs="xy", measures=("RR", "P@1"), groups=("a", "b", "c"))

    def rows(self, **options: Any) -> list[tuple[str, ...]]:
        return [(r.run, r.measure, r.a, r.b) for r in gate(self.AUDIT, **options).rows]

    def test_every_run_and_pair_has_a_row_with_its_growth(
        self,
    ) -> None:
        assert self.rows() == [
            (run, "RR", *pair) for run in "xy" for pair in (("a", "b"), ("a", "c"), ("b", "c"))
        ]
        rows = self.rows(measures=["P@1", "RR"], runs=["y"], pairs=[("c", "a")])
        assert rows == [("y", "P@1", "c", "a"), ("y", "RR", "c", "a")]
        old = audit_of(self.VALUES[::-1], runs="yx", measures=("RR", "P@1"), groups=("a", "b", "c"))
        same = gate(self.AUDIT, baseline=old, measures=["P@1", "RR"], resamples=200)
        assert [c.name for r in same.rows for c in r.checks] == ["growth"] * 12
        assert all(c.value == 0 == c.low == c.high for r in same.rows for c in r.checks)
        assert any(
            note.startswith("each of the 12 growths has its own 95 % interval")
            for note in note_sentences(same.notes)
        )
        gated = gate(self.AUDIT, baseline=old, max_loss=1, resamples=200)
        losses = sum(check.name == "loss" for row in gated.rows for check in row.checks)
        assert losses > 1
        assert any(
            note.startswith(f"each of the 6 growths and {losses} losses has its own 95 % interval")
            for note in note_sentences(gated.notes)
        )

    @pytest.mark.parametrize(
        ("options", "limit", "names"),
        [
            ({}, 5.0, ["tilt"]),
            ({"max_tilt": 4}, 4, ["tilt"]),
            ({"baseline": LEVEL}, None, ["growth"]),
            ({"max_tilt": 15, "baseline": LEVEL}, 15, ["tilt", "growth"]),
        ],
    )
    def test_the_limit_is_fifteen_points(
        self, options: dict[str, Any], limit: float | None, names: list[str]
    ) -> None:
        gate_result = gate(LEVEL, resamples=200, **options)
        assert gate_result.spec["max_tilt"] == limit
        assert [c.name for c in gate_result.rows[0].checks] == names


TWO = audit_of(np.ones((2, 2, 3, 6)), runs=("bm25", "dense"), measures=("RR", "P@1"))


def baseline(queries: int = 6, runs: tuple[str, ...] = ("bm25", "dense"), **options: Any) -> Audit:
    """A baseline that holds less than the audit of two runs."""
    return audit_of(
        np.ones((len(runs), 1, 3, queries)), **{"runs": runs, "measures": ["RR"], **options}
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"measures": ["nDCG@7"]}, "unknown measure 'nDCG@7' (valid: RR, P@1)"),
        ({"measures": []}, "nothing to gate: the audit has no answer for these runs and pairs"),
        ({"runs": ["bm52"]}, "unknown run 'bm52'; did you mean 'bm25'? (valid: bm25, dense)"),
        ({"pairs": [("human", "gpt")]}, "unknown pair of groups 'human,gpt'"),
        (
            {"max_tilt": -1},
            (
                "--max-tilt: expected a margin of at least 0, such as 5 or 5% (points) or "
                "'0.5 ranks'; got -1"
            ),
        ),
        (
            {"max_tilt": 200},
            "--max-tilt: expected less than 200, the largest possible Relative Δ; got 200",
        ),
        ({"min_effect": 3}, "--min-effect needs a baseline: --baseline "),
        ({"min_effect": -1}, "--min-effect: expected a number of points of at least 0, got -1"),
        (
            {"min_effect": math.inf},
            "--min-effect: expected a number of points of at least 0, got inf",
        ),
        ({"inconclusive": "maybe"}, "unknown policy for inconclusive 'maybe' (valid: fail, pass)"),
        (
            {"baseline": baseline(5)},
            "the audits cover different queries: 1 query only in the new one ('q5'); that is 1 "
            "of 6 (16.7 %), more than --max-left-out 10; use the same judgments for both",
        ),
        ({"max_left_out": 20}, "--max-left-out needs a baseline: --baseline OLD.json"),
        (
            {"baseline": baseline(runs=("bm25", "tfidf"))},
            "the growth of dense RR human,llm is unknown: the baseline la",
        ),
        (
            {"baseline": baseline(), "measures": ["RR", "P@1"]},
            "the growth of bm25 P@1 human,llm is unknown: the basel",
        ),
    ],
)
def test_check_refusals(options: dict[str, Any], message: str) -> None:
    with refused(f"{message}…"):
        gate(TWO, **options)


def test_larger_baseline_and_audit_without_groups() -> None:
    gate_result = gate(TWO, baseline=TWO, runs=["dense"], measures=["P@1"], resamples=200)
    assert [(r.run, r.measure, r.outcome) for r in gate_result.rows] == [
        ("dense", "P@1", "inconclusive")
    ]  # of few queries
    assert not [
        n for n in note_sentences(gate_result.notes) if "left out" in n or "each growth" in n
    ]
    with refused("nothing to gate: this audit compares no groups; audit with --by COLUMN"):
        gate(audit_of(np.ones((1, 1, 1, 5)), groups=()))


def test_growth_is_of_the_queries_that_both_audits_hold() -> None:
    """Of 20 queries the baseline lacks the first, by which alone the new audit's tilt differs."""
    new = two_group_audit([1.0, *np.tile(0.5, 19)], [0.0, *np.tile(0.5, 19)])
    old = two_group_audit(np.tile(0.5, 19), np.tile(0.5, 19), queries=new.queries[1:])
    gate_result = gate(new, baseline=old, resamples=200)
    (check,) = gate_result.rows[0].checks
    assert (gate_result.outcome, check.value, check.queries, gate_result.rows[0].queries) == (
        "level",
        0,
        19,
        20,
    )
    assert "[0.0, 0.0] since the baseline on 19 common queries does not exceed 0" in limit_reason(
        check
    )
    assert (
        note_sentences(gate_result.notes)[0]
        == "left out: 1 of 20 queries (5.0 %): 1 query only in the new audit ('q0')"
    )
    assert any(
        "only 19 queries compare the groups" in note for note in note_sentences(gate_result.notes)
    )
    with refused("the audits cover different queries: …"):
        gate(new, baseline=old, max_left_out=4.9)


def test_noise_is_not_called_a_regression() -> None:
    """Two hundred null comparisons by 95 % intervals: five would lie above 0 by chance, 18 are too
    many.
    """
    rng = np.random.default_rng(77)
    decisions = [gate(noisy(rng), baseline=noisy(rng), resamples=499) for _ in range(200)]
    assert sum(f.exit_code == 1 for f in decisions) <= 18


QUESTIONS = ["Share@1", "NDSR@2", "HeadToHead", "RankGap(pairs=all)", "ExposureRatio", "NDKL@2"]


def answered(order: tuple[str, str], queries: int = 40) -> Audit:
    collection = twins(queries)
    run = ordered(collection, [order] * queries, "engine")
    plain = Collection(collection.docs, collection.queries, collection.qrels.clear())
    return run_audit(plain, run, QUESTIONS, primary="Share@1", resamples=300)


class TestShownTiltAcrossTheLimit:
    """An audit names a side, and its gate cannot say whether it is favoured too much."""

    def test_both_statements_are_in_headline_reason_and_file(self) -> None:
        check = check_tilt(tilt(2.0, 9.0), 5.0)
        row = GateRow(run="bm25", measure="nDCG@3", a="human", b="llm", queries=50, checks=(check,))
        assert (row.outcome, check.favours) == ("inconclusive", "human")
        assert row_reason(row).endswith(
            "a tilt toward human is shown; whether it is larger than the limit of 5 points is not"
        )
        gated = gate_of(row)
        assert gate_headline(gated) == (
            "bm25 is inconclusive: a tilt toward human is shown; whether it is larger than the "
            "limit is not (allowed: tilt within ±5 points of neutral)"
        )
        assert gate_meaning(gated).startswith("bm25 tilts, but these queries are too few to tell")
        (verdict,) = derived_words(gated)["verdicts"]
        assert (verdict["kind"], verdict["side"]) == ("inconclusive", "human")

    def test_several_comparisons_are_counted(self) -> None:
        checks = [check_tilt(tilt(2.0, 9.0), 5.0), check_tilt(tilt(-9.0, 9.0, p=0.8), 5.0)]
        rows = [
            GateRow(run=run, measure="nDCG@3", a="human", b="llm", queries=50, checks=(check,))
            for run, check in zip(("one", "two"), checks, strict=True)
        ]
        assert gate_headline(gate_of(*rows)).startswith(
            "inconclusive: 2 of 2 comparisons; in 1 of these a tilt is shown; whether it is larger "
            "than the limit is not (allowed: "
        )

    def test_growth_beyond_0_and_across_the_limit_is_shown(self) -> None:
        check = check_growth(change(1.0, 9.0), 5.0)
        assert "growth is shown; whether it is more than 5 points is not" in limit_reason(check)


def gate_of(*rows: GateRow) -> Gate:
    spec = {"max_tilt": 5.0, "baseline": False, "min_effect": 0.0, "inconclusive": "fail"}
    return Gate(spec=spec, rows=rows, notes=())


class TestAnyQuestion:
    HUMAN, LLM = answered(("human", "llm")), answered(("llm", "human"))

    @pytest.mark.parametrize(
        ("question", "limit", "expected", "value"),
        [
            (None, None, "tilted", 50.0),  # all of the first ranks where half is level
            ("Share@1", 60, "within", 50.0),
            ("NDSR@2", 5, "tilted", 22.6),  # (1 − 1/log2 3) / (1 + 1/log2 3)
            ("HeadToHead", 15, "tilted", 100.0),
            ("RankGap(pairs=all)", "0.5 ranks", "tilted", 1.0),
            ("RankGap(pairs=all)", "1 ranks", "within", 1.0),
            ("ExposureRatio", 20, "tilted", 158.5),  # log2 3
        ],
    )
    def test_is_held_against_its_own_unit(
        self, question: str | None, limit: Any, expected: str, value: float
    ) -> None:
        gate_result = gate(
            self.HUMAN, measures=None if question is None else [question], max_tilt=limit
        )
        (check,) = gate_result.rows[0].checks
        assert (check.outcome, check.value) == (expected, pytest.approx(value, abs=0.05))

    def test_gate_of_groups_with_random_lists_and_growth(
        self,
    ) -> None:
        (row,) = gate(self.HUMAN, measures=["NDKL@2"], max_tilt="2 NDKL").rows
        assert (row.a, row.b, row.outcome) == ("all", "all", "level")
        assert outcome(self.HUMAN, baseline=self.LLM, measures=["Share@1"]) == (
            "level",
            0,
        )  # as far as before
        even = replace(
            self.LLM,
            query_answers=tuple(
                replace(q, numerator=0 * q.numerator) for q in self.LLM.query_answers
            ),
        )
        assert outcome(self.HUMAN, baseline=even, measures=["Share@1"]) == ("tilted", 1)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (
                {"measures": ["HeadToHead"], "baseline": True},
                "the growth of engine HeadToHead human,llm is unknown",
            ),
            (
                {"measures": ["RankGap(pairs=all)"], "max_tilt": 15},
                "--max-tilt 15: RankGap(pairs=all) is counted in ",
            ),
            ({"measures": ["ScoreGap"]}, "unknown measure 'ScoreGap'"),  # which only describes
        ],
    )
    def test_limit_and_growth_refusals(self, options: dict[str, Any], message: str) -> None:
        with refused(f"{message}…"):
            gate(self.HUMAN, **{**options, "baseline": self.LLM if "baseline" in options else None})


# Sequential audits

DOCS = 40
"""Documents of each query, which no other query meets; every other one is of group a."""


@dataclass(frozen=True)
class Noisy(Ranker):
    """Random scores; those of group a are raised. Each query has its own, whenever it is asked."""

    raised: float = 0.0
    salt: int = 0
    silent: float = 0.0
    """Share of queries whose lists hold one group alone."""

    name = "noisy"

    def rank(self, collection: Collection, run: Run | None = None) -> Run:
        lists = []
        for name in collection.queries_with_judgments["id"]:
            rng = np.random.default_rng([self.salt, int(name)])
            scores = rng.normal(0, 1, DOCS)
            scores[::2] += self.raised
            rows = np.arange(DOCS)
            if rng.random() < self.silent:
                rows = rows[::2]
            lists.append((rows + DOCS * int(name), scores[rows]))
        parts = cut(iter(lists), collection.tie_keys(), None)
        return Run(
            tuple(collection.queries_with_judgments["id"]),
            *parts,
            collection.ids,
            {"ranker": "noisy"},
        )


def collection(queries: int = 600) -> Collection:
    docs = pl.DataFrame(
        {
            "id": [f"{side}{n}" for n in range(max(queries, 1) * DOCS // 2) for side in "ab"],
            "text": "",
        }
    )
    docs = docs.with_columns(source=pl.col("id").str.head(1))
    names = [str(n) for n in range(queries)]
    judgments = pl.DataFrame(schema={"query_id": pl.String, "doc_id": pl.String, "grade": pl.Int64})
    return Collection(docs, pl.DataFrame({"id": names, "text": "?"}), judgments)


def test_sequential_ends_early_for_strong_tilt(
    tmp_path: Path,
) -> None:
    result = sequential_audit(collection(), Noisy(2.0), 10)
    assert result.decision == "tilted"
    assert result.looks[-1].low > 0
    assert result.sent == result.answered == len(result.looks) * BATCH < 100
    assert result.looks[-1].documents == 20 * result.sent  # the first ten and ten of those below
    turned = sequential_audit(collection(), Noisy(-2.0), 10)
    assert "favours b" in decision_sentence(turned)
    assert SequentialAudit.load(result.save(tmp_path / "s.json")).looks == result.looks
    result = sequential_audit(collection(), Noisy(), 10)
    assert result.decision == "level"
    assert -0.1 <= result.looks[-1].low <= 0 <= result.looks[-1].high <= 0.1
    assert result.sent < 600
    result = sequential_audit(collection(), Noisy(), 1, max_queries=40)
    assert (result.decision, result.sent, result.of) == ("inconclusive", 40, 600)
    assert [look.queries for look in result.looks] == [16, 32, 40]
    assert result.looks[-1].documents == 800
    uninterrupted = sequential_audit(
        collection(200), Noisy(2.0), 10, "Share@40"
    )  # of 40 documents it is 0 whatever the ranker does
    assert uninterrupted.decision == "inconclusive"


def test_lists_of_one_group_say_nothing_and_are_counted() -> None:
    result = sequential_audit(collection(), Noisy(silent=0.5), 1, max_queries=64)
    silent = 64 - result.looks[-1].queries
    assert 15 < silent < 50
    with refused("Share@10 is undefined: no list of 32 queries holds both groups"):
        sequential_audit(collection(), Noisy(silent=1.0), 10, max_queries=32)


def test_deciding_check() -> None:
    for value, low, high, until, decision in (
        (0.2, 0.01, 0.4, 0.1, "tilted"),
        (-0.2, -0.4, -0.01, 0.5, "tilted"),
        (0.0, -0.1, 0.1, 0.1, "level"),
        (0.0, -0.1, 0.11, 0.1, "inconclusive"),
        (0.1, 0.0, 0.2, 0.1, "inconclusive"),
    ):
        look = Look(9, 90, value, low, high, 0.0, 0.0)
        assert decision_after(look, until, Variation(total=9, fixed={})) == decision, (
            value,
            low,
            high,
        )
    # Lists whose documents all have one score cannot show that anybody is level.
    assert (
        decision_after(
            Look(9, 90, 0.0, -0.1, 0.1, 0.0, 0.0), 0.1, Variation(total=9, fixed={"tied": 9})
        )
        == "inconclusive"
    )


@dataclass(frozen=True)
class Recurring(Ranker):
    """The same documents for every query: each has a quality of its own, and a score for each query
    beside it.
    """

    world: int

    name = "recurring"

    def rank(self, collection: Collection, run: Run | None = None) -> Run:
        number, rows = len(collection.ids), np.arange(len(collection.ids))
        quality = np.random.default_rng(self.world).normal(0, 1, number)
        draws = (
            np.random.default_rng([self.world, int(name)])
            for name in collection.queries_with_judgments["id"]
        )
        parts = cut(
            ((rows, quality + rng.normal(0, 1, number)) for rng in draws),
            collection.tie_keys(),
            None,
        )
        return Run(
            tuple(collection.queries_with_judgments["id"]),
            *parts,
            collection.ids,
            {"ranker": "recurring"},
        )


@pytest.mark.parametrize("twins", [False, True])
def test_the_same_documents_in_every_query_favour_no_side(twins: bool) -> None:
    """A coin tosses the labels of 60 documents or origins: queries alone would name a side in most
    such worlds.
    """
    plain, decisions, alone, text = collection(192), [], 0, ""
    for world in range(8):
        coin = np.random.default_rng([world, 1]).integers(0, 2, 60)
        names = ["ab"[side] for toss in coin for side in ((toss, 1 - toss) if twins else (toss,))]
        origins = [str(row // 2 * 2 if twins else row) for row in range(len(names))]
        docs = pl.DataFrame(
            {"id": [str(row) for row in range(len(names))], "source": names, "origin": origins}
        )
        tossed = Collection(docs.with_columns(text=pl.lit("")), plain.queries, plain.qrels)
        result = sequential_audit(tossed, Recurring(world), 3)
        decisions.append(result.decision)
        alone += any(look.query_low > 0 or look.query_high < 0 for look in result.looks)
        assert result.looks[-1].documents <= 60
        text += ": ".join((decision_sentence(result), query_count_sentence(result)))
    assert "tilted" not in decisions
    assert alone >= 4
    noun = "origins" if twins else "documents"
    assert re.search(f"recurring is undecided after 192 queries and \\d+ {noun}: Share@10", text)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stop_at_tilt": 0}, "expected a tilt above 0, such as 10 (points), got 0"),
        ({"stop_at_tilt": math.nan}, "expected a tilt above 0, such as 10 (points), got nan"),
        ({"stop_at_tilt": math.inf}, "expected a tilt above 0, such as 10 (points), got inf"),
        ({"max_queries": 0}, "expected at least 1 query to ask, got 0"),
        ({"by": ""}, "a sequential audit needs a column of groups (by)"),
        (
            {"measure": "nDCG@10"},
            "nDCG@10 cannot be estimated query by query; use Share@k, such as Share@10",
        ),
        (
            {"collection": collection(0)},
            "no query to ask: name a file of queries, or a collection that has some",
        ),
    ],
)
def test_gate_refusals(options: dict[str, Any], message: str) -> None:
    with refused(message):
        sequential_audit(
            **{"collection": collection(9), "ranker": Noisy(), "stop_at_tilt": 10, **options}
        )
