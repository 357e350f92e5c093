"""What one query, or two, cannot show is neither computed nor printed."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan

import numpy as np
import orjson
import pytest

from ranktilt.auditing.audit import audit
from ranktilt.auditing.comparison.compare import compare
from ranktilt.auditing.effects import Effect
from ranktilt.auditing.gate.gate import gate
from ranktilt.auditing.pairwise.result import PairOutcome, PairwiseAudit, Share
from ranktilt.auditing.result import Audit
from ranktilt.measures.base import estimand
from ranktilt.reporting.output import table
from ranktilt.reporting.sentences.effects import effect_words
from ranktilt.reporting.sentences.gate import limit_reason
from ranktilt.reporting.views.audit.tables import table_legend
from tests.auditing.arrays import tilt, two_group_audit
from tests.toy import collection_of, run_of

HUMAN, LLM = [0.5, 0.4, 0.6, 0.5, 0.4, 0.7], [0.3, 0.2, 0.5, 0.1, 0.3, 0.2]
"""Values of six queries."""
TOO_FEW = (
    "these queries and documents are worth 1.96 independent ones, too few for a verdict (10 needed)"
)
"""Of the first two: they carry .4 and .3 of the denominator, (.7)² / (.4² + .3²) = 1.96."""


def audit_of_first(queries: int) -> Audit:
    """An audit of the first so many of the six queries, which come again and again."""
    return two_group_audit((3 * HUMAN)[:queries], (3 * LLM)[:queries], resamples=200)


@pytest.mark.parametrize(
    ("queries", "has_interval", "has_test"),
    [(1, False, False), (2, False, False), (4, True, False), (9, True, False), (12, True, True)],
)
def test_interval_takes_three_queries_and_test_ten(
    queries: int, has_interval: bool, has_test: bool
) -> None:
    [effect] = audit_of_first(queries).tilts
    intervals = [effect.low, effect.high, effect.error, effect.p]
    tests = [effect.p_corrected, effect.detectable]
    assert [isnan(value) for value in intervals] == [not has_interval] * 4
    assert [isnan(value) for value in tests] == [not has_test] * 2
    assert not isnan(effect.value)


def test_too_few_for_a_table_has_p_of_its_own_alone() -> None:
    effect = tilt(p=0.016, queries=20, effective_n=9.9, family_size=12)
    assert (effect.p, isnan(effect.p_corrected)) == (0.016, True)
    assert tilt(p=0.016, queries=20, effective_n=10.0, family_size=12).p_corrected == 0.016


def test_two_informative_queries_of_forty_make_no_interval() -> None:
    effect = tilt(queries=40, effective_n=2)
    assert (isnan(effect.low), effect.verdict()) == (True, "inconclusive")


def test_sentence_of_two_queries_has_neither_interval_nor_p() -> None:
    # Means .45 and .25: 200 · .2 / .7 = 57.1.
    assert audit_of_first(2).verdict("run").sentence == (
        f"run is inconclusive: {TOO_FEW}; nDCG@5 is 45.0 % for human text and 25.0 % for llm text "
        "(Relative Δ +57.1 %)"
    )


def test_file_of_two_queries_holds_null() -> None:
    saved = orjson.loads(audit_of_first(2).to_json())
    [effect] = saved["tilts"]
    for name in ("low", "high", "error", "p", "p_corrected", "detectable"):
        assert effect[name] is None
    [row] = saved["effects"]
    assert (row["low"], row["high"], row["p"]) == (None, None, None)


def test_table_and_legend_of_two_queries_speak_of_no_interval() -> None:
    text = table(audit_of_first(2), "csv")
    row = next(line for line in text.splitlines() if "Relative Δ" in line)
    assert "57.1" in row
    assert "[" not in row
    legend = "\n".join(table_legend(audit_of_first(2)))
    assert "interval" not in legend
    assert "corrected" not in legend


def test_comparison_and_gate_of_two_queries_say_why() -> None:
    new, old = audit_of_first(2), two_group_audit(LLM[:2], HUMAN[:2], resamples=200)
    sentences = [verdict.sentence for verdict in compare(new, old, resamples=200).verdicts()]
    # +57.1 − (−57.1) points.
    assert sentences[0] == (
        f"run: no difference from its old run in tilt on nDCG@5 can be shown: {TOO_FEW}; "
        "difference +114.3 points"
    )
    [row] = gate(new, baseline=old, max_tilt=5.0).rows
    assert [limit_reason(check) for check in row.checks] == [
        f"{TOO_FEW}; Relative Δ +57.1 %",
        f"{TOO_FEW}; growth 0.0 points since the baseline",
    ]


def test_two_identical_queries_are_still_identical() -> None:
    [verdict] = compare(audit_of_first(2), audit_of_first(2), resamples=200).verdicts()
    assert verdict.kind == "identical"


def share_effect(even: float, value: float, *, neutral: float) -> Effect:
    return Effect(
        run="r",
        estimand=estimand("Share@10"),
        a="human",
        b="ai",
        value=value,
        low=value,
        high=value,
        error=0.0,
        p=0.01,
        p_corrected=0.01,
        queries=3,
        twins=False,
        null_low=neutral - 0.05,
        null_high=neutral + 0.05,
        null_median=neutral,
        details={"even_a": even, "even_b": 1 - even},
    )


@pytest.mark.parametrize(
    ("even", "value", "shares"),
    [
        # 11 of 12 candidates, 10 of 10 ranks: 100 − 91.7 = 8.3.
        (11 / 12, 1 / 12, ("100.0", "91.7", "+8.3")),
        # 7 of 12 and 2 of 3: 58.33 and 66.67, where 66.7 − 58.3 would be 8.4.
        (7 / 12, 1 / 12, ("66.7", "58.4", "+8.3")),
        (1 / 2, -1 / 3, ("16.7", "50.0", "−33.3")),
    ],
)
def test_shares_of_sentence_differ_by_its_answer(
    even: float, value: float, shares: Sequence[str]
) -> None:
    standing, listed, answer = shares
    text = effect_words(share_effect(even, value, neutral=-1 / 60), "text")
    assert text.startswith(
        f"human text fills {standing} % of the first 10 ranks and makes up {listed} % of the "
        f"candidates ({answer} points"
    )
    assert text.endswith("neutral value −1.7 points)")
    assert round(float(standing) - float(listed), 1) == float(answer.replace("−", "-"))


def test_means_say_their_queries_where_the_table_has_others() -> None:
    # The third query has no relevant llm text: human .5, .3, .9 in the table, and .4 beside llm's
    # .2.
    result = two_group_audit([0.5, 0.3, 0.9], [0.3, 0.1, np.nan], resamples=200)
    assert result.by_group().filter(group="human")["mean"].to_list() == [pytest.approx(1.7 / 3)]
    assert (
        "nDCG@5 is 40.0 % for human text and 20.0 % for llm text over the 2 queries with both"
        in (result.verdict("run").sentence)
    )


def test_small_means_have_digits_enough_for_their_tilt() -> None:
    # .0012 and .0008 are 40 % apart, which .1 % and .1 % do not tell.
    effect = tilt(39.9, 40.1, mean_a=0.0012, mean_b=0.0008)
    assert "nDCG@3 is 0.12 % for human text and 0.08 % for llm text" in effect_words(effect, "text")


def outcome(**fields: object) -> PairOutcome:
    nothing, none = (
        Share(value=np.nan, low=np.nan, high=np.nan),
        Share(value=0.0, low=0.0, high=0.0),
    )
    arguments = {
        "kind": "relevant",
        "queries": 6,
        "pairs": 24,
        "decided": 0,
        "protected": none,
        "unprotected": none,
        "inconsistent": none,
        "unparsed": none,
        "preference": nothing,
        "first": nothing,
        "error": np.nan,
        "effective_n": 0.0,
        "p": np.nan,
        **fields,
    }
    return PairOutcome(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        (
            {"unparsed": Share(value=1.0, low=1.0, high=1.0)},
            "no answer could be read, 24 of 24 pairs are unparsed",
        ),
        (
            {"inconsistent": Share(value=1.0, low=1.0, high=1.0)},
            "both orders disagree on 24 of 24 pairs",
        ),
        (
            {
                "inconsistent": Share(value=0.75, low=0.5, high=1.0),
                "unparsed": Share(value=0.25, low=0.0, high=0.5),
            },
            "25.0 % of the pairs are unparsed, and both orders disagree on 75.0 %",
        ),
    ],
)
def test_pairwise_says_why_nothing_was_decided(fields: dict[str, object], reason: str) -> None:
    pair_outcome = outcome(**fields)
    audited = PairwiseAudit(
        spec={"margin": 5.0, "by": "source", "count_rule": "both-agree"},
        model="m",
        protected="human",
        unprotected="llm",
        outcomes=(pair_outcome,),
    )
    assert audited.verdict(pair_outcome).sentence == f"m: inconclusive on relevant pairs: {reason}"


def test_share_of_lists_has_no_interval_of_one_query() -> None:
    docs = [
        {"id": f"d{n}", "text": f"t {n}", "source": "human" if n < 6 else "llm"} for n in range(12)
    ]
    collection = collection_of(docs, {"q": "t"}, {})
    result = audit(
        collection, run_of(collection, {"q": {f"d{n}": 12.0 - n for n in range(12)}}), "Share@10"
    )
    [effect] = result.card
    assert (round(effect.value, 3), isnan(effect.low), isnan(effect.p)) == (0.1, True, True)
