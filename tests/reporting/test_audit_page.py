"""An audit as a page: its headline says what was found, and its sentences are the terminal's."""

from dataclasses import replace
from typing import Any

import pytest

from ranktilt import Audit
from ranktilt.reporting.document import Sentence
from ranktilt.reporting.numbers import percent
from ranktilt.reporting.reload import LoadedAudit
from ranktilt.reporting.views import view
from ranktilt.reporting.views.audit import audit_headline
from ranktilt.reporting.views.audit import view as audit_contents
from ranktilt.reporting.views.audit_tables import group_table
from tests.reporting.audits import clear, small, three, uneven
from tests.reporting.markup import Markup
from tests.reporting.openings import (
    ATTACK,
    alone,
    audit_page,
    colours,
    hostile,
    many,
    opened,
    sources,
    ungrouped,
    unjudged,
)
from tests.reporting.results import beside, temperatures, torn
from tests.reporting.results import controlled as made

HUMAN, LLM, LEVEL, OPEN = ("favours", "human"), ("favours", "llm"), ("level", None), ("inconclusive", None)


@pytest.fixture(scope="module")
def text() -> str:
    return audit_page(opened())


@pytest.fixture(scope="module")
def shown(text: str) -> Markup:
    return Markup(text)


def audit_verdicts(audit: Audit) -> tuple[Sentence, ...]:
    """The lines at the top of the page."""
    return tuple(audit_contents(audit).page_lines)


def found(*kinds: tuple[Any, str | None]) -> Audit:
    """An audit whose rankers a, b, c … have these verdicts."""
    names = tuple("abcdefghij"[: len(kinds)])
    plain = small()
    tilt = replace(plain.tilts[0], queries=50, votes=50)
    by_kind = {
        HUMAN: replace(tilt, value=50.0, low=40.0, high=60.0, p_corrected=0.01),
        LLM: replace(tilt, value=-50.0, low=-60.0, high=-40.0, p_corrected=0.01),
        LEVEL: replace(tilt, value=0.0, low=-1.0, high=1.0, p_corrected=1.0),
        OPEN: replace(tilt, value=0.0, low=-50.0, high=50.0, p_corrected=1.0),
    }
    tilts = tuple(replace(by_kind[kind], run=name) for name, kind in zip(names, kinds, strict=True))
    values = plain.values[:1].repeat(len(names), axis=0)[:, :1]
    spec = {**plain.spec, "primary": "nDCG@1"}
    return replace(plain, spec=spec, runs=names, tilts=tilts, values=values, measures=plain.measures[:1])


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ([HUMAN, LLM], "a favours human text; b favours llm text"),
        ([OPEN, HUMAN, OPEN], "b favours human text; a and c are inconclusive"),
        ([LEVEL, LEVEL, HUMAN, LEVEL], "c favours human text; 3 of 4 rankers are level"),
        ([LLM, LLM, LLM], "all 3 rankers favour llm text"),
        ([OPEN, LEVEL, LLM, HUMAN], "d favours human text; c favours llm text; b is level; a is inconclusive"),
    ],
)
def test_headline_says_who_does_what(kinds: list[tuple[Any, str | None]], expected: str) -> None:
    assert audit_headline(found(*kinds)) == f"{expected} (by nDCG@1)."


def test_the_words_of_one_verdict_are_the_headline_and_its_numbers_the_line_below() -> None:
    audit = found(HUMAN)
    (line,) = audit_verdicts(audit)
    head = audit_headline(audit)
    assert head.startswith("a favours human text: nDCG@1 is ")
    assert head.endswith(" for llm text.")
    assert line.text == "Relative Δ +50.0 % [+40.0, +60.0], corrected p = .010"
    assert line.tone == "first"


def test_headline_of_several_pairs_counts_them() -> None:
    assert audit_headline(three()) == "run favours one side in all 3 pairs of groups (by RR)."
    assert "run is inconclusive in all 21 pairs of groups (by " in audit_headline(colours().audit)


def test_headline_of_several_pairs_and_many_rankers_counts_comparisons() -> None:
    plain = three()
    runs = tuple(f"run {n}" for n in range(5))
    tilts = tuple(replace(t, run=run, p_corrected=1.0 if run == "run 0" else 0.0) for run in runs for t in plain.tilts)
    audit = replace(plain, runs=runs, tilts=tilts, values=plain.values.repeat(5, axis=0))
    assert audit_headline(audit) == (
        "of 15 comparisons (5 rankers, 3 pairs of groups) 12 favour one side and 3 are inconclusive (by RR)."
    )


def test_headline_without_judgments_names_the_question_of_the_card() -> None:
    assert audit_headline(unjudged().audit) == (
        "people favours human text; machines favours llm text; nobody is inconclusive (by head-to-head)."
    )


def test_headline_without_groups_says_so() -> None:
    assert audit_headline(ungrouped().audit) == (
        "people has the highest mean of 3 rankers: nDCG@1 100.0 %; no groups were compared."
    )
    one = replace(ungrouped().audit, runs=("people",), values=ungrouped().audit.values[:1])
    assert audit_headline(one) == "people: nDCG@1 100.0 %; no groups were compared."


@pytest.mark.parametrize(
    "audit", [small(), clear(), three(), uneven(), made(), torn(), opened().audit, unjudged().audit, ungrouped().audit]
)
def test_verdicts_are_the_sentences_of_the_terminal(audit: Audit) -> None:
    printed = [one.text for one in audit_contents(audit).lines()]
    shown = [one.text for one in audit_verdicts(audit)]
    alone = len(audit.runs) == len(audit.judged_pairs) == 1  # the words are the headline
    assert shown[alone:] == printed[alone:]
    if alone:
        assert f"{audit_headline(audit)[:-1]} ({shown[0]}".replace(")", "") == printed[0].replace(")", "")


def test_tone_follows_the_pair_and_not_the_name() -> None:
    audit = found(HUMAN, OPEN)
    turned = replace(audit, tilts=tuple(t.swapped() for t in audit.tilts))
    verdict, _ = audit_verdicts(turned)
    assert verdict.tone == "second"
    assert verdict.text.startswith("a favours human text")


def test_every_view_gives_the_protected_side_and_the_other_one_tone_each() -> None:
    men = [line.tone for line in view(beside()).sentences if "favours male documents" in line.text]
    assert men == ["second"]
    found = replace(beside(), protected="male", unprotected="female")
    assert view(found).sentences[0].text.startswith("stored favours female documents")
    assert view(found).sentences[0].tone == "second"
    study = {line.text.split(":")[0]: line.tone for line in view(temperatures()).sentences[1:]}
    assert list(study.values()) == ["second", "unsure", "first"]


def test_of_many_verdicts_those_that_favour_a_side_come_first() -> None:
    sides = [verdict.tone in ("first", "second") for verdict in audit_verdicts(many().audit)]
    assert sides == sorted(sides, reverse=True)
    assert sum(sides) == sum(many().audit.verdict(run).kind == "favours" for run in many().audit.runs)
    assert audit_verdicts(found(*[OPEN] * 6, HUMAN))[0].tone == "first"
    assert [verdict.tone for verdict in audit_verdicts(found(OPEN, HUMAN))] == ["unsure", "first"]


def test_main_table_reads_back_as_the_audit(shown: Markup) -> None:
    audit = opened().audit
    grid = shown.grid("Means and Relative Δ")
    for place, measure in enumerate(map(repr, audit.measures)):
        means = audit.by_group().filter(measure=measure)
        numbers = grid.numbers(measure)
        assert numbers[0::4] == means.filter(group="all")["mean"].to_list()
        assert numbers[1::4] == means.filter(group="human")["mean"].to_list()
        assert numbers[2::4] == means.filter(group="llm")["mean"].to_list()
        assert numbers[3::4] == [t.value for t in audit.tilts if t.measure == measure]
        printed = group_table(audit).rows
        cells = [cell for cell in grid.column(measure) if cell]
        assert cells[0] == printed[0][place + 1].text == percent(numbers[0])
        assert cells[3].lstrip("▲▼ ").startswith(printed[3][place + 1].text)
        assert printed[3][place + 1].interval in cells[3]


@pytest.mark.parametrize(
    "whole",
    [
        LoadedAudit(small(rounding="paper", ties="trec_eval", test="t", correction="bonferroni", missing="exclude")),
        many(12), colours(), unjudged(), ungrouped(), alone(colours(2), "It is gone."),
        sources("human", "llama", "gpt"), LoadedAudit(made()), LoadedAudit(torn()),
    ],
)  # fmt: skip
def test_every_audit_has_a_page(whole: LoadedAudit) -> None:
    text = audit_page(whole)
    page = Markup(text)
    ids = [attributes["id"] for _, attributes in page.elements if attributes.get("id")]
    assert len(ids) == len(set(ids))
    for attributes in page.of("a"):
        target = attributes.get("href") or ""
        assert not target.startswith("#") or target[1:] in ids
    for grid in page.grids:
        assert len({len(row) for row in grid.rows}) == 1


def test_names_are_hostile_and_do_nothing() -> None:
    text = audit_page(hostile())
    assert ATTACK not in text
    assert "<script>window.run" not in text
    assert "\u202e" not in text
    assert "{{7*7}}" in text
    plain = [tag for tag, _ in Markup(audit_page(opened())).elements if tag in ("script", "img")]
    assert [tag for tag, _ in Markup(text).elements if tag in ("script", "img")] == plain
