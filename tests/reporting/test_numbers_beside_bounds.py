"""Numbers are not rounded onto a bound that they do not touch: .05, neutral values, limits."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from ranktilt import table
from ranktilt.auditing.result import Audit
from ranktilt.explaining.base import EffectSize
from ranktilt.measures.printing import ends_apart, signed
from ranktilt.reporting.numbers import ends, p_value, probability
from ranktilt.reporting.sentences.citing.cite import p_words
from ranktilt.reporting.sentences.explaining.probes import effect_sentence
from ranktilt.reporting.sentences.grammar import ratio_words
from tests.reporting.audits import toy_audit, toy_tilt


@pytest.mark.parametrize(
    ("p", "text"),
    [
        (0.0496, ".0496"),
        (0.04996, ".04996"),
        (0.05, ".050"),
        (0.0504, ".0504"),
        (0.051, ".051"),
        (0.0009, "< .001"),
        (0.9999, "1.000"),
    ],
)
def test_p_is_told_from_its_level(p: float, text: str) -> None:
    assert p_value(p) == p_words(p) == text
    assert probability(p) == (text if text.startswith("<") else f"= {text}")


@pytest.mark.parametrize(
    ("low", "high", "texts"),
    [
        (0.03, 4.2, ("+0.03", "+4.20")),
        (-4.2, -0.004, ("−4.200", "−0.004")),
        (0.0, 4.2, ("0.0", "+4.2")),
        (1e-9, 4.2, ("0.0", "+4.2")),
        (-1.0, 4.2, ("−1.0", "+4.2")),
        (float("nan"), float("nan"), ("–", "–")),
    ],
)
def test_ends_are_told_from_zero(low: float, high: float, texts: tuple[str, str]) -> None:
    assert ends(low, high) == texts


def test_ends_are_told_from_other_neutral_values() -> None:
    assert ends_apart((1.004, 1.5), 1.0, ratio_words) == ("1.004", "1.500")
    assert ends_apart((50.02, 60.0), 50.0, signed) == ("+50.02", "+60.00")


def starred_audit() -> Audit:
    """An audit whose interval ends close to 0, and whose p is close to .05."""
    tilt = replace(toy_tilt("bm25", "llm", 5.03, 5.0), p=0.0496, p_corrected=0.0496)
    return toy_audit([tilt])


@pytest.mark.parametrize("format", ["table", "markdown", "latex", "html"])
def test_star_stands_beside_an_interval_that_excludes_zero(format: str) -> None:
    audit = starred_audit()
    text = table(audit, format)
    assert "0.03" in text
    assert ".0496" in text
    assert not re.search(r"\[(\+|−|-)?0\.0[,\s&]", text)


def test_sentence_of_an_effect_size_is_told_from_zero() -> None:
    effect = EffectSize(
        source="llm",
        quantity="words",
        pairs=90,
        reference_mean=10.0,
        source_mean=11.0,
        g=0.2,
        low=0.003,
        high=0.4,
    )
    assert "g = +0.20 [+0.003, +0.400]" in effect_sentence("human", effect)
