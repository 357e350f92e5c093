"""From per-query values to effects, from effects to one plain sentence a ranker, and to what to do
next.
"""

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

from ranktilt.auditing.answer.command_words import explain_labels_words, json_file
from ranktilt.auditing.answer.next_steps import next_steps
from ranktilt.auditing.answer.verdict import Verdict, verdict_for
from ranktilt.auditing.confounds import Confound
from ranktilt.auditing.effects import Effect, conflict_of
from ranktilt.auditing.result import PAIR_COUNTS, Audit
from ranktilt.auditing.significance import InferenceOptions, Sample, correct_p_values, effects
from ranktilt.measures.base import measure as as_measure
from ranktilt.measures.contrast import RelativeDelta
from ranktilt.measures.margin import read_margin
from ranktilt.reporting.numbers import decimal, fixed, probability
from ranktilt.reporting.sentences.findings import step_words
from ranktilt.reporting.sentences.verdicts import conflict_sentence
from tests.auditing.arrays import answer, tilt, two_group_audit
from tests.auditing.test_gate import HUMAN, LEVEL, UNSURE

NAN = math.nan


def verdict_on(tilts: list[Effect], margin: float = 5, **more: Any) -> Verdict:
    """The verdict where the first question is the primary one."""
    return verdict_for(tilts[0].measure, tilts, margin, **more)


HOW = InferenceOptions(
    resamples=1000, seed=0, test="permutation", correction="holm", rounding="none"
)


class TestTheRule:
    @pytest.mark.parametrize(
        ("effect", "expected"),
        [
            (tilt(-30, -10), "b"),
            (tilt(10, 30, p=0.05), "inconclusive"),
            (tilt(0, 30), "inconclusive"),  # the interval must exclude 0
            (tilt(-5, 5, p=0.9), "level"),
            (tilt(-5.1, 4, p=0.9), "inconclusive"),
            (tilt(1, 4, p=0.001), "a"),  # small but sure
            (tilt(NAN, NAN, p=NAN), "inconclusive"),
            (tilt(10, 30, value=NAN), "inconclusive"),  # both means round to 0 on paper
        ],
    )
    def test_for_twins_level_is_0(self, effect: Effect, expected: str) -> None:
        assert effect.neutral == 0
        assert effect.verdict() == expected
        assert effect.side(expected) == {"a": "human", "b": "llm"}.get(expected, "")

    @pytest.mark.parametrize(
        ("effect", "expected"),
        [
            (tilt(60, 90, p=0.6), "inconclusive"),
            (tilt(72, 78, p=0.6), "level"),
            (tilt(100, 120, p=0.002), "a"),
            (tilt(-10, 10, p=0.002), "b"),  # 0 is far below what random labels give
            (tilt(60, 90, p=0.002), "inconclusive"),
        ],
    )
    def test_level_is_middle_of_random_band(self, effect: Effect, expected: str) -> None:
        banded = tilt(effect.low, effect.high, effect.p, null_low=55.0, null_high=95.0)
        assert banded.neutral == 75
        assert banded.verdict() == expected

    @pytest.mark.parametrize("effect", [tilt(10, 30), tilt(-4, 4, p=1.0)])
    @pytest.mark.parametrize(
        ("queries", "fields", "enough"),
        [
            (9, {}, False),
            (10, {}, True),
            (50, {"effective_n": 9.9}, False),  # a few of them carry most
            (50, {"effective_n": 10.0}, True),
        ],
    )
    def test_few_queries_say_nothing(
        self, effect: Effect, queries: int, fields: dict[str, int], enough: bool
    ) -> None:
        few = replace(effect, queries=queries, **fields)
        assert few.testable is enough
        assert few.verdict() == (effect.verdict() if enough else "inconclusive")

    def test_level_band_of_group_without_twins(
        self,
    ) -> None:
        assert (
            tilt(72, 78, p=0.6, null_low=55.0, null_high=95.0, queries=10, family_size=90).verdict()
            == "level"
        )
        assert (
            tilt(72, 78, p=0.6, null_low=55.0, null_high=95.0, queries=9).verdict()
            == "inconclusive"
        )
        assert [tilt(-20, 20, p=0.9).verdict(margin) for margin in (20.0, 19.9)] == [
            "level",
            "inconclusive",
        ]


class TestSentences:
    def test_who_is_favoured_and_which_measures_agree(self) -> None:
        others = [tilt(-9, -5, measure="AP@3"), tilt(-20, 20, p=0.5, measure="AP@5")]
        verdict = verdict_on([tilt(-30.04, -9.96, p=0.0004), *others])
        assert verdict.sentence == (
            "bm25 favours llm text: nDCG@3 is 25.0 % for llm text and 30.0 % for human text "
            "(Relative Δ −20.0 % [−30.0, −10.0], corrected p < .001); 2 of 3 "
            "measures give this answer (AP@5 is inconclusive)"
        )
        assert (verdict.run, verdict.kind, verdict.side, verdict.agree, verdict.measures) == (
            "bm25",
            "favours",
            "llm",
            2,
            3,
        )
        assert "favours human documents:" in verdict_on([tilt(10, 30)], noun="documents").sentence
        verdict = verdict_on(
            [
                tilt(-4, 3, p=0.8),
                tilt(-1, 1, p=0.8, measure="P@5"),
                tilt(-1, 9, p=0.8, measure="RR"),
            ]
        )
        assert verdict.sentence.startswith(
            "bm25 is level between human and llm, within ±5 points: nDCG@3 is 30.0 % for"
        )
        assert (verdict.kind, verdict.side, verdict.agree) == ("level", None, 2)

    @pytest.mark.parametrize(
        ("effect", "reason"),
        [
            (
                tilt(-4, 18, p=0.31, error=7.5),
                "these queries would find a tilt of 21 % four times in five, a smaller one less "
                "often; nDCG@3 is ",
            ),
            (
                tilt(-143, -126, p=0.31, error=8.6, null_low=-148.0, null_high=-128.0),
                "these queries would find a tilt of 25 % four times in five, a smaller one less "
                "often; nDCG@3 is 30.0 % for human text and 25.0 % for llm text "
                "(Relative Δ −134.5 % "
                "[−143.0, −126.0], neutral value −138.0 %, corrected p = .310)",
            ),
            (
                tilt(-150, 190, p=1.0, error=100.0),
                "these queries could not detect any tilt; nDCG@3 is",
            ),
            (
                tilt(-5, 30, p=0.0496),
                "p is below .05, but the interval includes the neutral value (0.0 %); nDCG@3 is",
            ),
            (
                tilt(p=0.002, queries=4),
                "4 queries are too few for a verdict (10 needed); nDCG@3 is",
            ),
            (
                tilt(p=0.002, effective_n=1),
                "these queries and documents are worth 1 independent one, too few for a verdict "
                "(10 needed); nDCG@3 is",
            ),
            (
                tilt(NAN, NAN, NAN, queries=0, error=NAN),
                "no query has relevant documents from both human and llm",
            ),
            (tilt(NAN, NAN, p=1.0, error=NAN), "nDCG@3 is 0 for both human and llm"),
            (
                answer(-0.01, 0.4, p_corrected=0.002, run="bm25"),
                "p is below .05, but the interval includes the neutral value "
                "(0.0 points); human text fills 19.5 points more of the first 20 ranks than llm "
                "text "
                "(+19.5 points [−1.0",
            ),
        ],
    )
    def test_inconclusive_says_why(self, effect: Effect, reason: str) -> None:
        verdict = verdict_on([effect])
        assert verdict.sentence.startswith(f"bm25 is inconclusive: {reason}")
        assert (verdict.kind, verdict.side) == ("inconclusive", None)

    def test_inconclusive_names_what_other_measures_find(self) -> None:
        others = [
            tilt(10, 30, measure="P@5"),
            tilt(-30, -10, measure="AP"),
            tilt(5, 9, measure="RR"),
            tilt(0, 1, 1, measure="R@5"),
        ]
        verdict = verdict_on([tilt(-4, 18, p=0.31), *others, tilt(-9, 9, p=1, measure="AP@3")], 5)
        assert verdict.sentence.endswith(
            "; but human is favoured on P@5, RR; llm is favoured on AP; it is level on R@5"
        )
        assert verdict.agree == 2


class TestTilts:
    def side(self, a: list[float], b: list[float], measure: str = "P@1", **fields: Any) -> Sample:
        return Sample(
            run="bm25",
            estimand=RelativeDelta(of=as_measure(measure)),
            a="human",
            b="llm",
            numerator=np.array(a),
            denominator=np.array(b),
            **fields,
        )

    def test_effect_by_hand_drops_and_counts_empty_resamples(
        self,
    ) -> None:
        (effect,) = effects([self.side([1.0, 1.0, 1.0], [0.5, 0.0, 0.0])], HOW)
        # Means 1 and 1/6; 2 of 8 sign vectors are as far out; a resample with query 1 k times has
        # means 1 and k/6.
        assert effect.value == pytest.approx(100 * (5 / 6) / (7 / 12))
        assert effect.checks["sign flips"] == 2 / 8
        # They carry .75, .5 and .5 of the denominator: 1.75² / 1.0625 = 2.9 queries, too few for an
        # interval.
        assert effect.sample == pytest.approx(1.75**2 / 1.0625)
        assert np.isnan([effect.low, effect.high, effect.p, effect.p_corrected]).all()
        (effect,) = effects([self.side([1.0, 1.0, 1.0] * 4, [0.5, 0.0, 0.0] * 4)], HOW)
        # A resample with the first kind k of 12 times has means 1 and k/24: k is 1 to 7 in 95 %
        # (binomial).
        factor = (
            math.sqrt(effect.sample / (effect.sample - 1))
            * stats.t.ppf(0.975, effect.sample - 1)
            / 1.959964
        )
        ends = [effect.value + factor * (200 * (24 - k) / (24 + k) - effect.value) for k in (7, 1)]
        assert effect.low == pytest.approx(ends[0], rel=1e-6)
        assert effect.high == pytest.approx(min(200.0, ends[1]), rel=1e-6)
        assert effect.dropped == 0
        assert (effect.null_low, effect.null_high, effect.twins) == (0, 0, True)
        (effect,) = effects([self.side([1.0, 0.0, 0.0], [0.0, 0.0, 0.0])], HOW)
        assert effect.value == 200
        assert np.isnan([effect.low, effect.high, effect.error]).all()  # one query says anything
        assert effect.dropped == pytest.approx(1000 * 8 / 27, abs=60)

    def test_the_family_is_every_p_in_the_table(self) -> None:
        strong, weak = (
            self.side([1.0] * 12, [0.0] * 11 + [0.5]),
            self.side([1.0, 0.0] * 6, [0.0, 1.0] * 6, "AP"),
        )
        undefined = self.side(
            [np.nan] * 6 + [1.0] * 6, [1.0] * 6 + [np.nan] * 6, "RR"
        )  # no query in common
        strong_effects = effects([strong, weak, undefined], HOW)
        assert strong_effects[0].checks["sign flips"] == 2 / 2**12
        assert strong_effects[0].p < 0.001
        assert strong_effects[0].p_corrected == 2 * strong_effects[0].p
        assert strong_effects[1].p_corrected == 1.0
        none = strong_effects[2]
        assert np.isnan([none.value, none.low, none.high, none.p, none.p_corrected]).all()
        assert (none.queries, none.excluded) == (0, 12)

    def test_paired_t_by_name_rounds_means_of_value_only(self) -> None:
        a, b = [0.9, 0.8, 0.7, 0.9], [0.5, 0.6, 0.4, 0.6]
        (effect,) = effects([self.side(a, b)], replace(HOW, test="t"))
        # Differences .4 .2 .3 .3: t² = 54 on 3 degrees of freedom, whose distribution has a closed
        # form.
        assert effect.p == pytest.approx(
            1 - 2 / math.pi * (math.atan(18**0.5) + 18**0.5 / 19), abs=1e-12
        )
        a, b = [0.22049] * 4, [0.16951] * 4
        rounded, plain = (
            effects([self.side(a, b)], replace(HOW, rounding=r))[0] for r in ("paper", "none")
        )
        assert rounded.value == pytest.approx(100 * 5 / 19.5)
        assert rounded.mean_a == plain.mean_a == 0.22049
        assert (rounded.low, rounded.high) == (plain.low, plain.high)

    def test_the_band_and_its_p_come_from_the_shuffled_labels(self) -> None:
        null = np.arange(-499.0, 501.0) / 10
        (effect,) = effects([self.side([0.6] * 8, [0.2] * 8).with_random_labels(null)], HOW)
        assert effect.value == pytest.approx(100)
        assert (effect.null_low, effect.null_high) == (-47.5, 47.6)
        assert effect.checks["shuffled labels"] == pytest.approx(2 / 1001)
        assert effect.p == 2 * 0.5**8  # eight queries say exactly the same
        assert not effect.twins


def question(kind: str, low: float, high: float) -> Effect:
    return answer(low, high, kind, run="bm25", error=0.05, p_corrected=0.001, queries=50)


CLEAR, OTHER, OPEN = (0.1, 0.3), (-0.3, -0.1), (-0.1, 0.3)
PARTS = {
    "pairs": 10.0,
    "wins": 6.0,
    "losses": 4.0,
    "ties": 0.0,
    "mean_wins": 0.6,
    "mean_losses": 0.4,
    "query_wins": 30.0,
}


@pytest.mark.parametrize(
    ("others", "ending"),
    [
        ([], "corrected p = .001)"),
        ([CLEAR], "; both questions give this answer"),
        ([OPEN], "; 1 of 2 questions gives this answer (ΔNDSR@20 is inconclusive)"),
        (
            [OPEN, OTHER],
            "; 1 of 3 questions gives this answer (pair rank gap favours llm; ΔNDSR@20 is "
            "inconclusive)",
        ),
        (
            [CLEAR, OPEN, CLEAR],
            "; 3 of 4 questions give this answer (pair rank gap is inconclusive)",
        ),
        ([OPEN, OPEN, OPEN], "; 1 of 4 questions gives this answer (3 are inconclusive)"),
    ],
)
def test_the_card_says_what_its_other_questions_answer(
    others: list[tuple[float, float]], ending: str
) -> None:
    kinds = ["page", "rank gap", "other twins"]
    first = replace(question("twins", *CLEAR), details=PARTS)
    questions = [first, *(question(k, *ends) for k, ends in zip(kinds, others, strict=False))]
    verdict = verdict_on([*questions, question("score gap", *CLEAR)])
    assert verdict.sentence.startswith(
        "bm25 favours human text: the human version ranks higher in 60.0 % of twins, the llm "
        "version in 40.0 %, on average over queries (+20.0 % ["
    )
    assert verdict.sentence.endswith(ending)
    assert (verdict.agree, verdict.measures) == (1 + others.count(CLEAR), 1 + len(others))


def test_a_side_may_be_favoured_no_more_than_slightly() -> None:
    verdict = verdict_on([tilt(1, 4)])
    assert (verdict.kind, verdict.side, verdict.slight) == ("favours", "human", True)
    assert verdict.sentence.startswith("bm25 favours human text slightly, within ±5 points: ")
    assert not verdict_on([tilt(1, 5.1)]).slight


@pytest.mark.parametrize(
    ("kind", "low", "high", "margin", "expected"),
    [
        ("page", -0.04, 0.04, 5, "level"),  # ±5 points are ±.05
        ("page", -0.06, 0.04, 5, "inconclusive"),
        ("twins", -0.05, 0.05, "5 %", "level"),
        ("rank gap", -0.4, 0.4, 5, "inconclusive"),  # nothing is level in points of ranks
        ("rank gap", -0.4, 0.4, "0.5 ranks", "level"),
        ("page", -0.04, 0.04, "0.5 ranks", "inconclusive"),
    ],
)
def test_a_margin_is_in_the_questions_own_unit(
    kind: str, low: float, high: float, margin: Any, expected: str
) -> None:
    verdict = answer(low, high, kind, p_corrected=0.5, details=PARTS)
    assert verdict.verdict(read_margin(margin)) == expected


def test_primary_question_is_own_family_and_no_vote_is_said() -> None:
    tilts = [
        tilt(10, 30, p=p, measure=m) for p, m in ((0.04, "nDCG@10"), (0.02, "RR"), (0.03, "P@5"))
    ]
    corrected_tilts = correct_p_values(tilts, "holm", as_measure("nDCG@10"))
    assert [e.p_corrected for e in corrected_tilts] == pytest.approx([0.04, 0.04, 0.04])
    assert [e.family_size for e in corrected_tilts] == [1, 2, 2]
    assert [e.family_size for e in correct_p_values(tilts, "holm")] == [3, 3, 3]
    corrected_tilts = {votes: answer(0.1, 0.3, effective_n=votes) for votes in (-1, 0, 9, 10)}
    assert {votes: e.sample for votes, e in corrected_tilts.items()} == {-1: 40, 0: 0, 9: 9, 10: 10}
    assert {votes: e.testable for votes, e in corrected_tilts.items()} == {
        -1: True,
        0: False,
        9: False,
        10: True,
    }


EXTRA = {
    "pairs": 30.0,
    "wins": 12.0,
    "losses": 10.0,
    "ties": 8.0,
    "alone": 3.0,
    "both": 25.0,
    "both_wins": 9.0,
    "both_losses": 8.0,
    "absent": 0.2,
    "raw": -0.5,
    "shares": 0.4,
}


class TestFromTheOtherSide:
    def test_every_sign_turns(self) -> None:
        effect = answer(0.1, 0.4, null_low=0.15, null_high=0.3, details=EXTRA).swapped()
        assert (effect.a, effect.b) == ("llm", "human")
        assert (effect.value, effect.low, effect.high) == (-0.25, -0.4, -0.1)
        assert (effect.neutral, effect.null_low, effect.null_high) == (
            pytest.approx(-0.225),
            -0.3,
            -0.15,
        )
        assert (effect.error, effect.p, effect.p_corrected, effect.queries) == (
            pytest.approx(0.075),
            0.001,
            0.01,
            40,
        )
        parts = effect.details
        assert (parts["wins"], parts["losses"], parts["ties"]) == (10, 12, 8)
        assert (parts["both_wins"], parts["both_losses"], parts["both"]) == (8, 9, 25)
        assert (parts["raw"], parts["shares"], parts["pairs"], parts["absent"]) == (
            0.5,
            -0.4,
            30,
            0.2,
        )

    def test_deterministic_without_negative_zero(self) -> None:
        effect = answer(0.0, 0.0, details={**EXTRA, "raw": 0.0, "shares": 0.0})
        assert effect.swapped().swapped() == effect
        turned = effect.swapped()
        numbers = (
            turned.value,
            turned.low,
            turned.high,
            turned.neutral,
            turned.null_low,
            turned.null_high,
        )
        assert not any(np.signbit([*numbers, turned.details["raw"], turned.details["shares"]]))


def test_a_p_value_has_a_relation_sign_unless_it_is_undefined() -> None:
    printed = {
        0.0009: "< .001",
        0.001: "= .001",
        0.05: "= .050",
        1.0: "= 1.000",
        math.nan: "undefined",
    }
    assert {p: probability(p) for p in printed} == printed


def conflict_words(effects: list[Effect]) -> str:
    conflict = conflict_of(effects)
    return "" if conflict is None else conflict_sentence(conflict)


def test_opposite_signs_are_said_in_words() -> None:
    card = [
        answer(-5, 6, kind="relative delta"),
        answer(0.03, 0.07),
        answer(-0.2, -0.1, kind="relevant twins"),
        answer(-0.4, -0.3, kind="other twins"),
    ]
    assert conflict_words(card).startswith(
        "r gives conflicting answers: ΔNDSR@20 points to human; head-to-head, relevant twins and "
        "head-to-head, other "
        "twins point to llm. "
    )
    page = answer(0.1, 0.2, null_low=0.3, null_high=0.5)  # which lies below its level
    assert "head-to-head, other twins points to human" in conflict_words(
        [page, answer(0.1, 0.2, kind="other twins")]
    )
    cases: list[tuple[float, float, dict[str, Any]]] = [
        (-0.4, 0.0, {}),
        (NAN, NAN, {}),
        (-0.4, -0.2, {"kind": "score gap"}),
        (-0.4, -0.2, {"p_corrected": 0.05}),
        (-0.4, -0.2, {"p_corrected": NAN}),
    ]
    for low, high, more in cases:  # one side or none is no conflict, and the score gap never is
        assert (
            conflict_words([answer(0.1, 0.2), answer(low, high, **{"kind": "rank gap", **more})])
            == ""
        ), (low, more)


TEXTS = (Confound("words", "human", "llm", 50, 48, 60),)


def of(
    audit: Audit,
    *,
    ranker: str = "bm25",
    confounds: tuple[Confound, ...] = TEXTS,
    **collection: Any,
) -> Audit:
    """An audit of one run over a folder, or over labels."""
    run = {"ranker": ranker, **({"file": "engine.trec"} if ranker.startswith("replay:") else {})}
    audit = two_group_audit(audit.values[0, 0, 1], audit.values[0, 0, 2], measures=["nDCG@10"])
    spec = {
        **audit.spec,
        "collection": collection or {"path": "data", "layout": "beir"},
        "runs": [run],
    }
    counts = {
        "run": "run",
        "a": "human",
        "b": "llm",
        "query": "q1",
        "relevant": True,
        "wins": 30,
        "losses": 0,
        "ties": 0,
        "both": 30,
        "alone": 0,
    }
    return replace(
        audit,
        spec=spec,
        confounds=confounds,
        pair_counts=pl.DataFrame([counts], schema=PAIR_COUNTS),
    )


def commands(audit: Audit) -> list[str]:
    return [step.command for step in next_steps(audit)]


ASKED = "-m nDCG@10 --set statistics.resamples=1000"
"""What the audits of these tests ask otherwise than usual, and commands after them repeat."""


def test_tilt_is_explained_levelled_and_gated_with_given_options() -> None:
    assert commands(of(HUMAN)) == [
        "ranktilt explain data -r bm25 --attribution",
        f"ranktilt mitigate data -r bm25 {ASKED} --save-ranker mitigated -o mitigated.html",
        f"ranktilt audit data -r bm25 {ASKED} --json audit.json && ranktilt gate audit.json "
        "--max-tilt 5",
    ]
    file = {"columns": {"doc_id": "url", "source": "is_ai"}, "names": {"1": "ai"}}
    origin = {"labels": "pages.csv", "label_file": file}
    assert commands(of(HUMAN, ranker="replay:engine.trec", confounds=(), **origin))[:2] == [
        (
            "ranktilt audit --run engine.trec --groups pages.csv:id=url,source=is_ai --name 1=ai "
            f"{ASKED} --card"
        ),
        (
            "ranktilt mitigate --run engine.trec --groups pages.csv:id=url,source=is_ai --name "
            f"1=ai {ASKED} --save-run mitigated.trec -o mitigated.html"
        ),
    ]


def test_steps_name_all_that_was_read_and_how() -> None:
    origin = {"path": "my data", "layout": "beir", "split": "dev", "ignore_unknown": True}
    assert commands(
        of(LEVEL, ranker="replay:engine.trec(score_order=rank,queries=q.tsv)", **origin)
    ) == [
        "ranktilt audit 'my data' --run engine.trec --score-order rank --queries q.tsv --split dev "
        f"--ignore-unknown {ASKED} --json audit.json && ranktilt gate audit.json --max-tilt 5"
    ]
    chosen = of(
        HUMAN, path="data", layout="beir", only_sources=["human", "llm"], without_sources=["gpt"]
    )
    assert commands(chosen)[1:] == [
        f"ranktilt mitigate data -r bm25 --pair human,llm {ASKED} --save-ranker mitigated "
        "-o mitigated.html",
        f"ranktilt audit data -r bm25 --source human --source llm {ASKED} --json audit.json && "
        "ranktilt gate audit.json --max-tilt 5",
    ]
    paired = replace(
        chosen,
        spec={
            **chosen.spec,
            "collection": of(HUMAN).spec["collection"],
            "pairs": [("llm", "rest")],
        },
    )
    assert f" -r bm25 --pair llm,rest {ASKED} --json " in commands(paired)[-1]


@pytest.mark.parametrize(
    ("command", "file"),
    [
        ("ranktilt audit DIR --json new.json -o page.html", "new.json"),
        ("ranktilt audit DIR --json='my audit.json'", "my audit.json"),
        ("ranktilt audit DIR --json -", "audit.json"),
        ("ranktilt audit DIR", "audit.json"),
        ("ranktilt audit it's", "audit.json"),
    ],
)
def test_json_file_of_a_command(command: str, file: str) -> None:
    assert json_file(command, "audit.json") == file


def test_command_that_explains_labels_names_their_column() -> None:
    by_source = of(HUMAN, ranker="replay:engine.trec", labels="pages.csv")
    by_shop = replace(by_source, spec={**by_source.spec, "by": "shop"})
    expected = "ranktilt explain --run engine.trec --groups pages.csv{} --reference human"
    for audit, column in ((by_source, ""), (by_shop, " --by shop")):
        words = explain_labels_words(audit, ["run"], ("human", "llm"))
        assert " ".join(words) == expected.format(column)


def test_impossible_step_is_not_suggested() -> None:
    audit = of(HUMAN)
    twinless = replace(
        audit,
        tilts=tuple(replace(tilt, twins=False) for tilt in audit.tilts),
        pair_counts=audit.pair_counts.clear(),
    )
    verbs = [command.partition(" data")[0] for command in commands(twinless)]
    assert verbs == [
        "ranktilt check",
        "ranktilt mitigate",
        "ranktilt audit",
    ]  # neither explain nor twins
    assert commands(of(HUMAN, ranker="<my ranker>")) == []  # an object in memory
    assert (
        commands(of(HUMAN, ranker="bm25", labels="pages.csv")) == []
    )  # labels have no texts to rank
    assert commands(of(HUMAN, ranker="")) == []


def test_next_step_for_confounds_and_open_verdict() -> None:
    cut = Confound("cut-off endings", "human", "llm", 0.02, 0.4, 120)
    assert commands(of(HUMAN, confounds=(cut,)))[0] == "ranktilt check data"
    alike = Confound("near-identical", "human", "llm", 0.3, 0.3, 60)
    assert commands(of(LEVEL, confounds=(alike,)))[0] == "ranktilt check data"
    audit = of(UNSURE)
    (tilt,) = audit.tilts
    needed = np.ceil(60 * (tilt.detectable / 10) ** 2)
    steps = next_steps(audit)
    assert (step_words(steps[0]), steps[0].command) == (
        (
            f"About {needed:,.0f} queries in all (you have 60) would find a tilt of ±10 points "
            "four times in five; audit again with more"
        ),
        f"ranktilt audit data -r bm25 {ASKED}",
    )
    assert steps[1].command == f"ranktilt audit data -r bm25 {ASKED} --card"
    assert [step_words(step) for step in next_steps(of(LEVEL))] == ["Keep it this way in CI"]
    assert commands(of(HUMAN, path="bundled")) == []  # no folder of that name was read
    assert next_steps(replace(HUMAN, spec={**HUMAN.spec, "collection": {}})) == ()


@pytest.mark.parametrize("values", [HUMAN, LEVEL, UNSURE])
def test_json_holds_verdicts_steps_and_effects(values: Audit) -> None:
    audit = of(values)
    content = json.loads(audit.to_json())
    (verdict,), (effect,) = content["verdicts"], content["effects"]
    assert (verdict["kind"], verdict["sentence"]) == (
        audit.verdict("run").kind,
        audit.verdict("run").sentence,
    )
    assert (verdict["primary"], verdict["margin"], verdict["side"]) == (
        "nDCG@10",
        5.0,
        effect["side"],
    )
    assert (effect["question"], effect["value"], effect["unit"]) == (
        "nDCG@10",
        audit.tilts[0].value,
        "%",
    )
    assert [step["command"] for step in content["next_steps"]] == commands(audit)


def test_limit_of_nothing_is_crossed_by_any_shown_tilt() -> None:
    assert tilt(2.0, 9.0).extent(0.0) == "beyond"
    assert tilt(-1.0, 9.0, p=0.3).extent(0.0) == "across"
    assert tilt(0.0, 0.0, p=1.0).extent(0.0) == "within"


def test_number_that_rounds_to_0_has_no_sign() -> None:
    assert [decimal(-0.004, 2), fixed(-0.004, 2)] == ["0.00", "0.00"]
    assert [decimal(-1234.56), fixed(-0.006, 2)] == ["−1,234.6", "−0.01"]
