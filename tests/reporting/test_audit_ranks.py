"""Who stands at which rank, on the page: hand-counted shares, in figures, words and tables."""

import pytest

from ranktilt.auditing.audit import audit
from ranktilt.reporting.document import Figure, Section, Table
from ranktilt.reporting.reload import LoadedAudit
from ranktilt.reporting.views.audit_sections import ranks_section
from tests.reporting.charts import by_name
from tests.reporting.charts import rows as rows_of
from tests.reporting.openings import alone, colours, many, opened, sources, unjudged
from tests.toy import collection_of, run_of

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


def test_several_groups_have_a_line_each_below_each_other() -> None:
    section = ranks_section(sources("human", "llama", "gpt"))
    filled, found = figures(section)
    assert filled.title == "run: results"
    first = {name: heights[0] for name, heights in by_name(filled.drawing).items()}
    assert first == {"human": 100, "gpt": 0, "llama": 0}
    assert list(first) == ["human", "gpt", "llama"]
    third = {name: heights[2] for name, heights in by_name(filled.drawing).items()}
    assert third == pytest.approx({"human": 33.33, "gpt": 33.33, "llama": 33.33})
    assert by_name(found.drawing) == {
        "human": [100, 100, 100], "gpt": [0, 0, 100], "llama": [0, 100, 100],
    }  # fmt: skip


def test_more_groups_than_can_be_told_apart_are_in_the_table() -> None:
    section = ranks_section(colours(10))
    filled = figures(section)[0]
    assert len(by_name(filled.drawing)) == 8
    assert "Drawn for 8 of 10 groups." in filled.says
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


def test_difference_between_ranks_has_a_band_over_queries() -> None:
    """Of twenty results all of one group stand on the first ten, for one query of the one, for one of the other."""
    docs = [
        {"id": f"d{n}", "text": "x", "source": "s", "origin": f"d{n}", "kind": "a" if n < 10 else "b"}
        for n in range(20)
    ]
    collection = collection_of(docs, {"q": "x", "p": "y"}, {q: {"d0": 1, "d19": 1} for q in "qp"})
    best = {"q": {f"d{n}": -float(n) for n in range(20)}, "p": {f"d{n}": float(n) for n in range(20)}}

    def drawn(*queries: str) -> Figure:
        run = run_of(collection, {q: best[q] for q in queries}, ranker="r")
        found = audit(collection, run, "nDCG@3", by="kind", resamples=100)
        return figures(ranks_section(LoadedAudit(found, collection, (run,))))[-1]

    alone = rows_of(drawn("q").drawing, "rect")
    assert [(row["x"], row["end"]) for row in alone] == [(rank, rank + 2) for rank in range(0, 20, 2)]
    assert [row["y"] for row in alone] == [20] * 5 + [-20] * 5
    assert all(row["low"] == row["y"] == row["high"] for row in alone)  # one query has no spread
    both = drawn("q", "p")  # resamples hold q twice, p twice, or one of each: 20, -20 or 0
    assert {(row["y"], row["low"], row["high"]) for row in rows_of(both.drawing, "rect")} == {(0, -20, 20)}
    assert "less that of b: 0.0 points [−20.0, +20.0] on ranks 1 to 2;" in both.says
    assert "on which ranks" not in figures(ranks_section(opened()))[-1].title
