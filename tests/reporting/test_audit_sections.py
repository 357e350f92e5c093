"""The sections of an audit's page: which there are, and what stands for those that cannot be had."""

from dataclasses import replace

import pytest

from ranktilt.reporting.document import Code, Explorer, Figure, Section, Table
from ranktilt.reporting.reload import LoadedAudit
from ranktilt.reporting.views.audit_sections import audit_sections
from tests.reporting.audits import clear
from tests.reporting.openings import alone, colours, many, opened, sources, ungrouped, unjudged, with_spec
from tests.reporting.results import controlled as made
from tests.reporting.results import torn

WHY = "corpus.jsonl has changed since the audit."


def sections(found: LoadedAudit) -> dict[str, Section]:
    return {section.name: section for section in audit_sections(found)}


def kinds(section: Section) -> list[str]:
    return [block.kind for block in section.blocks]


def test_whole_audit_has_every_section_in_order() -> None:
    assert list(sections(opened())) == [
        "tilt", "table", "effectiveness", "card", "ranks", "queries", "confounds", "controls", "made",
    ]  # fmt: skip


def test_without_groups_there_are_means_queries_and_how_it_was_made() -> None:
    found = sections(ungrouped())
    assert list(found) == ["table", "queries", "made"]
    assert kinds(found["queries"]) == ["explorer"]
    assert found["queries"].lead == ("How well each query is answered, and what was found for it.",)


def test_without_judgments_there_are_no_means() -> None:
    found = sections(unjudged())
    assert list(found) == ["tilt", "card", "ranks", "queries", "confounds", "made"]
    assert kinds(found["tilt"]) == ["figure"]
    assert "Nothing is judged" in found["tilt"].lead[0]


def test_audit_alone_says_why_queries_and_ranks_are_missing() -> None:
    found = sections(alone(opened(), WHY))
    for name in ("queries", "ranks"):
        assert found[name].blocks == ()
        assert WHY in found[name].lead


def test_explorer_is_carried_with_its_collection() -> None:
    section = sections(opened())["queries"]
    assert section.lead[0].endswith("what the two texts look like side by side.")
    (block,) = section.blocks
    assert isinstance(block, Explorer)
    assert block.texts


def test_explorer_is_left_out_on_request() -> None:
    section = next(s for s in audit_sections(opened(), budget=0) if s.name == "queries")
    assert section.blocks == ()
    assert section.lead == ("Queries, ranked lists and texts are left out, as was asked for.",)


def test_card_that_was_not_asked_for_is_named_with_how_to_ask() -> None:
    command = "ranktilt audit sets/a -r bm25 --json audit.json"
    section = sections(alone(LoadedAudit(with_spec(clear(), command=command))))["card"]
    (code,) = section.blocks
    assert code == Code("How to ask for it", "ranktilt audit --card sets/a -r bm25 --json audit.json")


@pytest.mark.parametrize(("name", "option"), [("card", "--card"), ("controls", "--controls")])
def test_audit_made_in_python_has_a_hint_too(name: str, option: str) -> None:
    (code,) = sections(LoadedAudit(clear()))[name].blocks
    assert isinstance(code, Code)
    assert code.text == f"ranktilt audit {option} DIR -r RANKER"


def test_conflicts_are_said_in_words() -> None:
    lead = sections(LoadedAudit(torn()))["card"].lead
    assert any("the answers conflict" in sentence for sentence in lead)
    assert not any("conflict" in sentence for sentence in sections(opened())["card"].lead)


def test_controls_say_which_verdicts_they_change() -> None:
    section = sections(LoadedAudit(made()))["controls"]
    assert kinds(section) == ["figure", "table"]
    assert section.lead[1:] == (
        "longest, control length: Relative Δ on nDCG@1 moves from +200.0 to 0.0 %; the verdict from favours human to "
        "level.",
    )


def test_controls_that_change_nothing_say_so() -> None:
    raw = tuple(one for one in made().controls if one.control == "raw")
    section = sections(LoadedAudit(replace(made(), controls=raw)))["controls"]
    assert section.lead[1:] == ("No control changes a verdict on the primary measure.",)


def test_confounds_are_said_as_in_the_terminal() -> None:
    section = sections(opened())["confounds"]
    assert section.lead[1].startswith("Beside who wrote it (human and llm): words a document 2 and 2;")
    assert all(isinstance(block, Table) for block in section.blocks)
    assert "confounds" not in sections(colours())


def test_each_pair_has_a_figure() -> None:
    found = sections(sources("human", "llama", "gpt"))
    assert kinds(found["tilt"]) == ["figure"] * 3
    assert kinds(found["effectiveness"]) == ["figure"] * 3
    assert found["tilt"].lead == ("Each figure compares two groups.",)


def test_many_pairs_say_which_are_drawn() -> None:
    section = sections(colours())["tilt"]
    assert len(section.blocks) == 4
    assert section.lead[1].startswith("Drawn for the 4 of 21 pairs of groups that tilt most clearly")


def test_sides_are_named_by_what_they_are() -> None:
    assert "relevant human text higher" in sections(opened())["tilt"].lead[0]


def test_groups_without_twins_are_not_level_at_0() -> None:
    found = sections(colours(2))
    two = found["tilt"].lead[0]
    assert "relevant documents of c0 stand higher" in two
    assert "0 is not level" in two
    assert "holds 0" not in two
    assert "controls" not in found  # which only change twins


@pytest.mark.parametrize("found", [opened(), many(), colours(), unjudged(), sources("human", "llama", "gpt")])
def test_every_figure_has_words(found: LoadedAudit) -> None:
    for section in audit_sections(found):
        for block in section.blocks:
            if isinstance(block, Figure):
                assert len(block.says.split()) > 5
                assert block.says.endswith(".")


def test_notes_stand_with_how_it_was_made() -> None:
    audit = replace(opened().audit, notes=("warning: only 3 queries",))
    assert "warning: only 3 queries" in str(sections(LoadedAudit(audit))["made"].blocks)


def test_two_texts_are_promised_of_twins_alone() -> None:
    lead = "Which queries make the difference, what was found for each, and what the texts say."
    assert sections(colours())["queries"].lead == (lead,)
