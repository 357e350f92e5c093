"""The sections of an audit's page: which there are, and what stands for those that cannot be had."""

from dataclasses import replace

import pytest

from ranktilt.reporting.document import Explorer, Figure, Section
from ranktilt.reporting.reload import LoadedAudit
from ranktilt.reporting.views.audit_sections import audit_sections
from tests.reporting.openings import alone, colours, many, opened, sources, unjudged
from tests.reporting.results import controlled as made

WHY = "corpus.jsonl has changed since the audit."


def sections(found: LoadedAudit) -> dict[str, Section]:
    return {section.name: section for section in audit_sections(found)}


def kinds(section: Section) -> list[str]:
    return [block.kind for block in section.blocks]


def test_whole_audit_has_every_section_in_order() -> None:
    assert list(sections(opened())) == [
        "tilt", "table", "effectiveness", "card", "ranks", "queries", "confounds", "made",
    ]  # fmt: skip


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


def test_controls_that_change_nothing_say_so() -> None:
    raw = tuple(one for one in made().controls if one.control == "raw")
    section = sections(LoadedAudit(replace(made(), controls=raw)))["controls"]
    assert section.lead[1:] == ("No control changes a verdict on the primary measure.",)


def test_many_pairs_say_which_are_drawn() -> None:
    section = sections(colours())["tilt"]
    assert len(section.blocks) == 4
    assert section.lead[1].startswith("Drawn for the 4 of 21 pairs of groups that tilt most clearly")


@pytest.mark.parametrize("found", [opened(), many(), colours(), unjudged(), sources("human", "llama", "gpt")])
def test_every_figure_has_words(found: LoadedAudit) -> None:
    for section in audit_sections(found):
        for block in section.blocks:
            if isinstance(block, Figure):
                assert len(block.says.split()) > 5
                assert block.says.endswith(".")
