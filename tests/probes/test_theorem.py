"""Theorem 4.1 on three tokens with distributions set by hand: each condition holds and fails in turn."""

import math
from collections.abc import Sequence

import numpy as np
import pytest

from ranktilt.errors import UserError
from ranktilt.probes.theorem import Condition, check_theorem, conditions, divergence, read_twin
from tests.toy import collection_of, versions


class Known:
    """A model of the tokens a, b and c, with one distribution alone and another after a text."""

    window = 100

    def __init__(self, alone: Sequence[float], given: Sequence[float]) -> None:
        self.alone, self.given = alone, given

    def distributions(self, text: str, given: str = "") -> np.ndarray:
        return np.log(np.tile(np.array(self.given if given else self.alone), (len(text), 1)))

    def scored_tokens(self, text: str) -> np.ndarray:
        return np.array(["abc".index(letter) for letter in text], dtype=np.int64)

    def reads_whole(self, given: str, text: str) -> bool:
        return len(given) + len(text) <= self.window


FLAT = (1 / 3, 1 / 3, 1 / 3)
SHARP, TURNED = (0.8, 0.1, 0.1), (0.1, 0.1, 0.8)


def checked(llm: Known, plm: Known, reader: Known | None, pairs: Sequence[tuple[str, str]]) -> dict[str, Condition]:
    found = conditions([read_twin(human, rewrite, llm, plm, reader) for human, rewrite in pairs])
    return {one.condition: one for one in found}


PAIRS = [("bc", "aab"), ("cb", "ab"), ("bc", "aaab")]


def test_all_hold() -> None:
    """The reader knows the human text, the origin tells of the rewrite, and the PLM writes as the LLM does."""
    llm, plm = Known(SHARP, SHARP), Known(SHARP, SHARP)
    found = checked(llm, plm, Known(TURNED, (0.6, 0.3, 0.1)), PAIRS)
    human = [-(2 * math.log(0.1)) / 2] * 3
    reader = [-(math.log(0.8) + math.log(0.1)) / 2] * 3
    after = [-(2 * math.log(0.6) + math.log(0.3)) / 3, -(math.log(0.6) + math.log(0.3)) / 2,
             -(3 * math.log(0.6) + math.log(0.3)) / 4]  # fmt: skip
    rewrite = [-(2 * math.log(0.8) + math.log(0.1)) / 3, -(math.log(0.8) + math.log(0.1)) / 2,
               -(3 * math.log(0.8) + math.log(0.1)) / 4]  # fmt: skip
    assert found["semantic superiority"].value == pytest.approx(np.mean(human) - np.mean(reader), abs=1e-9)
    assert found["conditional redundancy"].value == pytest.approx(np.mean(reader) - np.mean(after), abs=1e-9)
    assert found["bounded perplexity"].value == 0
    apart = 0.8 * math.log(0.8 / 0.6) + 0.1 * math.log(0.1 / 0.3)
    assert found["divergence, mean margin"].value == pytest.approx(apart, abs=1e-9)
    assert found["divergence, share of positions"].value == 1
    assert found["conclusion"].value == pytest.approx(np.mean(rewrite) - np.mean(human), abs=1e-9)
    assert {one.holds for one in found.values()} == {"yes"}


@pytest.mark.parametrize(("plm", "reader", "fails"), [
    (Known(TURNED, SHARP), Known(SHARP, (0.02, 0.02, 0.96)),
     ["semantic superiority", "conditional redundancy", "conclusion"]),
    (Known(SHARP, SHARP), Known(TURNED, (0.02, 0.02, 0.96)), ["conditional redundancy"]),
    (Known(SHARP, TURNED), Known(TURNED, (0.6, 0.3, 0.1)),
     ["divergence, share of positions", "divergence, mean margin"]),
    (Known(TURNED, TURNED), Known(SHARP, SHARP), None),
])  # fmt: skip
def test_each_fails_in_turn(plm: Known, reader: Known, fails: list[str] | None) -> None:
    found = checked(Known(SHARP, SHARP), plm, reader, PAIRS)
    failed = [name for name, one in found.items() if one.holds == "no"]
    if fails is None:
        assert "conclusion" in failed
        assert "semantic superiority" in failed
    else:
        assert failed == fails


def test_what_the_origin_tells_is_the_bound() -> None:
    """ε is the mean of what the origin takes off the PLM's perplexity, and counts against the divergence."""
    plm = Known(FLAT, SHARP)
    found = checked(Known(SHARP, SHARP), plm, Known(TURNED, FLAT), [("cc", "aa"), ("cc", "ab")])
    gains = [math.log(3) + math.log(0.8), math.log(3) + (math.log(0.8) + math.log(0.1)) / 2]
    epsilon = np.mean(gains)
    assert found["bounded perplexity"].value == pytest.approx(max(epsilon, 0), abs=1e-9)
    assert found["bounded perplexity"].note == f"largest of a twin: {gains[0]:.3f}"
    apart = 0.8 * math.log(0.8 * 3) + 0.2 * math.log(0.1 * 3)
    assert found["divergence, mean margin"].value == pytest.approx(apart - max(epsilon, 0), abs=1e-9)


def test_divergence_in_nats() -> None:
    p, q = np.log([[0.5, 0.5, 1e-300]]), np.log([[0.25, 0.5, 0.25]])
    assert divergence(p, q) == pytest.approx([0.5 * math.log(2)], abs=1e-9)
    with np.errstate(divide="ignore"):
        assert divergence(np.log([[1.0, 0.0]]), np.log([[0.5, 0.5]])) == pytest.approx([math.log(2)])


def test_without_a_reader_only_what_needs_none_is_checked() -> None:
    found = checked(Known(SHARP, SHARP), Known(SHARP, SHARP), None, PAIRS)
    assert list(found) == ["bounded perplexity", "conclusion"]


def test_an_interval_on_both_sides_of_the_limit_decides_nothing() -> None:
    one, other = (([*both, 1.0, math.nan, math.nan], np.empty(0)) for both in ((1.0, 2.0), (2.0, 1.0)))
    conclusion = conditions([one, other, one, other])[-1]
    assert conclusion.value == 0
    assert conclusion.low < 0 < conclusion.high
    assert conclusion.holds == "undecided"


def collection(*pairs: tuple[str, str]) -> object:
    return collection_of(versions(dict(zip(("human", "llm"), zip(*pairs, strict=True), strict=True))), {}, {})


def test_rows_and_sentence_of_a_collection() -> None:
    llm = plm = Known(SHARP, SHARP)
    found = check_theorem(collection(*PAIRS, ("", "")), llm, plm, Known(TURNED, (0.6, 0.3, 0.1)), names=["L", "P", "R"])  # type: ignore[arg-type]
    assert [row["source"] for row in found.rows] == ["llm"] * 6
    assert found.question.endswith("(LLM: L · B: P · H: R)")
    assert found.summary.startswith("llm: all conditions that were checked hold; the conclusion holds: −")
    assert found.summary.endswith("nats per token over 3 pairs of twins.")
    assert {row["origins cut"] for row in found.rows} == {0}
    plm.window = 5  # pairs of twins have 5, 4 and 6 letters
    cut = check_theorem(collection(*PAIRS, ("", "")), llm, Known(SHARP, SHARP), plm)  # type: ignore[arg-type]
    assert {row["origins cut"] for row in cut.rows} == {1}
    with pytest.raises(UserError, match="needs 3 twins with tokens on both sides, llm has 2"):
        check_theorem(collection(*PAIRS[:2]), llm, plm)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="no source has twins of human"):
        check_theorem(collection_of(versions({"human": "a"}), {}, {}), llm, plm)
