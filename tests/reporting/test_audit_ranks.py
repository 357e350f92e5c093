"""Who stands at which rank, on the page: hand-counted shares, in figures, words and tables."""

import pytest

from ranktilt.reporting.document import Figure, Section, Table
from ranktilt.reporting.views.audit_sections import ranks_section
from tests.reporting.charts import by_name
from tests.reporting.charts import rows as rows_of
from tests.reporting.openings import alone, colours, many, opened, sources, unjudged

FILLED, FOUND = "Documents of each group down to a rank, in %", "Relevant documents of each group found down to a rank"


def figures(section: Section) -> list[Figure]:
    return [block for block in section.blocks if isinstance(block, Figure)]


def grid(section: Section, caption: str) -> Table:
    return next(block for block in section.blocks if isinstance(block, Table) and block.caption.startswith(caption))


def rows(section: Section, caption: str) -> list[list[str]]:
    return [[*row.group, *(cell.text for cell in row)] for row in grid(section, caption).rows]


def test_tables_count_what_stands_first() -> None:
    section = ranks_section(opened())
    assert [column.title for column in grid(section, FILLED).columns] == ["group", "rank 1"]
    assert rows(section, FILLED) == [
        ["people", "human", "100.0"], ["people", "llm", "0.0"],
        ["machines", "human", "0.0"], ["machines", "llm", "100.0"],
        ["nobody", "human", "50.0"], ["nobody", "llm", "50.0"],
    ]  # fmt: skip
    assert rows(section, FOUND)[:2] == [["people", "human", "100.0"], ["people", "llm", "0.0"]]


def test_lines_go_down_to_the_last_rank() -> None:
    filled, sooner = figures(ranks_section(opened()))
    assert by_name(filled.drawing) == {
        "people": [100, 50], "machines": [0, 50], "nobody": [50, 50],
    }  # fmt: skip
    assert by_name(sooner.drawing) == {
        "people": [100, 0], "machines": [-100, 0], "nobody": [0, 0],
    }  # fmt: skip
    assert rows_of(sooner.drawing, "rule") == [{"y": 0}]


def test_level_is_the_share_of_the_collection() -> None:
    assert rows_of(figures(ranks_section(opened()))[0].drawing, "rule") == [{"y": 50}]


def test_without_judgments_only_who_fills_the_page_is_shown() -> None:
    section = ranks_section(unjudged())
    (figure,) = figures(section)
    assert figure.half is False
    assert len([block for block in section.blocks if isinstance(block, Table)]) == 1


def test_each_of_several_groups_has_a_figure_of_its_own() -> None:
    human, gpt, llama, *sooner = figures(ranks_section(sources("human", "llama", "gpt")))
    assert [one.title.rpartition(" ")[2] for one in (human, gpt, llama)] == ["human", "gpt", "llama"]
    assert by_name(human.drawing)["run"] == pytest.approx([100, 50, 33.33], abs=0.01)
    assert [by_name(one.drawing)["run"] for one in sooner] == [[100, 100, 0], [100, 0, 0]]


def test_more_groups_than_are_drawn_are_in_the_table() -> None:
    section = ranks_section(colours(10))
    assert len([one for one in figures(section) if one.title.startswith("Who fills")]) == 3
    assert len(grid(section, FILLED).rows) == 10


def test_more_rankers_than_can_be_told_apart_are_in_the_table() -> None:
    section = ranks_section(many(12))
    assert len(by_name(figures(section)[0].drawing)) == 8
    assert "Drawn for the first 8 of 12 rankers; the tables hold all." in section.lead
    assert len(grid(section, FOUND).rows) == 24


@pytest.mark.parametrize("notes", [(), ("corpus.jsonl has changed since the audit.",)])
def test_it_says_why_it_is_left_out(notes: tuple[str, ...]) -> None:
    section = ranks_section(alone(opened(), *notes))
    assert section.blocks == ()
    assert section.lead[1:] == (notes or ("The audit was not opened together with its collection and runs.",))
