"""Which finding comes first, whatever order things were given in, and what a narrow terminal keeps
of a card.
"""

import math
from dataclasses import replace

import pytest

from ranktilt import Audit, audit
from ranktilt.auditing.answer.verdict import FindingKind, margins
from ranktilt.judging.judge import judge
from ranktilt.reporting.headline import headline, leading
from ranktilt.reporting.sentences.findings import Finding, sort_findings
from ranktilt.reporting.sentences.meaning import explanation_meaning
from ranktilt.reporting.views import view
from tests.auditing.arrays import tilt
from tests.auditing.test_gate import HUMAN, LEVEL
from tests.judging.judged import bed, grades
from tests.reporting.audits import ENDS, clear, explained, ordered, twins
from tests.reporting.readers import plain, screen


def finding_of(kind: FindingKind, size: float) -> Finding:
    return Finding(kind=kind, sentence=f"{kind} {size:g}", size=size)


def test_kind_comes_before_size() -> None:
    findings = [
        finding_of("level", 9.0),
        finding_of("inconclusive", 8.0),
        finding_of("described", 99.0),
        finding_of("conflict", 0.0),
        finding_of("favours", 1.5),
        finding_of("favours", 2.5),
        finding_of("inconclusive", math.nan),
    ]
    assert [finding.sentence for finding in sort_findings(findings)] == [
        "favours 2.5",
        "favours 1.5",
        "conflict 0",
        "inconclusive 8",
        "inconclusive nan",
        "level 9",
        "described 99",
    ]


def test_size_is_in_margins() -> None:
    # 20 points from level: four margins of 5; without a margin in its unit four standard errors of
    # 5.
    assert margins(tilt(10.0, 30.0), 5.0) == 4.0
    assert margins(tilt(10.0, 30.0), "2 ranks") == 4.0
    assert margins(replace(tilt(0.0, 0.0), error=0.0), "2 ranks") == 0.0


def test_headline_of_twelve_judges_names_best_and_favoured_side() -> None:
    collection = bed()
    even = collection.qrels
    judges = {"fond": grades(collection, for_llm=0.6)} | {
        f"even{number}": even for number in range(11)
    }
    result = judge(judges, collection=collection, resamples=1000)
    assert headline(result) == (
        "even0 has the highest κ (1.00 [1.00, 1.00]); 10 of the 11 others cannot be distinguished "
        "from it, fond agrees less. But fond favours llm text on twins."
    )
    sentences = [line.text for line in view(result).sentences]
    assert sentences[0] == headline(result).partition(". But")[0]
    assert sentences[1].startswith("fond favours llm text on twins: ")
    assert sentences[2].startswith("even0 is level between human and llm twins")
    assert view(result).meaning.startswith("Use even0, or a cheaper one of the 10 others")


def test_first_sentence_of_an_audit_is_the_largest_finding() -> None:
    audit = clear(("nobody", "machines", "people"))
    # The first favours human text and the second LLM text, both wholly; what favours nobody comes
    # last.
    names = [line.text.partition(" ")[0] for line in view(audit).sentences]
    assert names == ["nobody", "machines", "people"]
    assert headline(audit) == (
        "nobody favours human text; machines favours llm text; people is inconclusive (by nDCG@1)."
    )


def test_report_of_several_results_begins_with_what_is_tilted() -> None:
    assert [leading(result).kind for result in (LEVEL, HUMAN)] == ["level", "favours"]


def crowded() -> Audit:
    """An audit whose card has every question."""
    collection = twins(40)
    runs = [ordered(collection, [("human", "llm")] * 40, "people")]
    return audit(collection, runs, ["nDCG@1"], card=True, resamples=200)


@pytest.mark.parametrize("columns", [80, 100, 120])
def test_card_says_who_is_favoured_at_any_width(
    monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    printed = plain(screen(crowded(), monkeypatch, columns=columns, notes=False))
    card = printed.partition("The question card, every number")[2].partition("people favours")[0]
    heads = [line for line in card.splitlines() if "question" in line and "answer" in line]
    assert len(heads) == 1  # one table, not several below each other
    assert "favours" in heads[0]
    column = heads[0].index("favours")
    first = next(line for line in card.splitlines() if "Relative Δ" in line)
    assert first[column:].split()[0] == "human"
    assert max(map(len, card.splitlines())) <= columns


def test_properties_of_several_sources_are_counted_once() -> None:
    explanation = explained(*ENDS)
    effects = [
        replace(effect, low=-1.0, high=1.0)
        for result in explanation.results
        for effect in result.effects
    ]
    (first, *_) = explanation.results
    unshown = replace(explanation, results=(replace(first, effects=tuple(effects), findings=()),))
    quantities = len({effect.quantity for effect in effects})
    assert quantities < len(effects)
    assert leading(unshown).sentence == (
        f"No difference from human is shown in {quantities} properties."
    )
    assert "not shown to differ in anything measured" in explanation_meaning(unshown)
