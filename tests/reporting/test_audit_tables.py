"""The tables of an audit's page: every number of the audit stands in one, and cells are as the terminal prints them."""

import math
from dataclasses import replace

import pytest

from ranktilt import Audit
from ranktilt.auditing.confounds import Confound
from ranktilt.reporting.audit_tables import (
    card_overview,
    card_table,
    confound_tables,
    control_table,
    group_table,
    table_legend,
)
from ranktilt.reporting.card import lines
from ranktilt.reporting.controls import control_rows
from ranktilt.reporting.layout import rows
from ranktilt.reporting.page import Cell, Table
from tests.reporting.audits import small, uneven
from tests.reporting.openings import opened, sources, ungrouped, unjudged
from tests.reporting.test_controls import made

PAIR = ("human", "llm")
AUDITS = [small(), opened().audit, uneven(), sources("human", "llama", "gpt").audit, ungrouped().audit]


def front(row: tuple[Cell, ...]) -> str:
    return row[0].text


def of_run(table: Table, run: str) -> list[tuple[Cell, ...]]:
    """The rows from the one that names a ranker to the next group."""
    start = next(n for n, row in enumerate(table.rows) if row[0].group and front(row) == run)
    end = next((n for n in range(start + 1, len(table.rows)) if table.rows[n][0].group), len(table.rows))
    return list(table.rows[start:end])


@pytest.mark.parametrize("audit", AUDITS)
def test_cells_are_those_of_the_terminal(audit: Audit) -> None:
    printed = [row for row in rows(audit) if row.kind != "interval"]
    table = group_table(audit)
    count = len(audit.measures)
    assert len(table.rows) == len(printed)
    for shown, row in zip(table.rows, printed, strict=True):
        texts = [cell.text for cell in shown[1 : 1 + count]]
        wanted = [f"[{cell[0]}, {cell[1]}]" if row.kind == "band" else cell[0] for cell in row.cells]
        assert texts == wanted
        assert shown[1 + count].text == row.queries


@pytest.mark.parametrize("audit", AUDITS)
def test_intervals_stand_below_relative_delta(audit: Audit) -> None:
    printed = [row for row in rows(audit) if row.kind == "interval"]
    found = [row for row in group_table(audit).rows if front(row).startswith("Relative Δ")]
    count = len(audit.measures)
    assert len(found) == len(printed)
    for shown, row in zip(found, printed, strict=True):
        wanted = ["–" if cell[0] == "–" else f"[{cell[0]}, {cell[1]}]" for cell in row.cells]
        assert [cell.note for cell in shown[1 : 1 + count]] == wanted


def test_numbers_are_kept_unrounded() -> None:
    audit = small()
    table = group_table(audit)
    means = {(r["run"], r["measure"], r["group"]): r["mean"] for r in audit.by_group().to_dicts()}
    for run in audit.runs:
        everything, human, llm, delta = of_run(table, run)
        for place, measure in enumerate(map(repr, audit.measures), start=1):
            for row, group in ((everything, "all"), (human, "human"), (llm, "llm")):
                assert row[place].value == means[run, measure, group]
            (tilt,) = (t for t in audit.tilts if (t.run, t.measure) == (run, measure))
            assert delta[place].value == tilt.value


def test_only_what_the_verdict_finds_is_coloured() -> None:
    table = group_table(opened().audit)
    tones = {run: [cell.tone for cell in of_run(table, run)[-1][1:3]] for run in opened().audit.runs}
    assert tones == {"people": ["first", ""], "machines": ["second", ""], "nobody": ["", ""]}
    assert all(not cell.tone for row in table.rows for cell in row if not front(row).startswith("Relative"))


def test_ranker_stands_beside_all_documents() -> None:
    first = of_run(group_table(opened().audit), "people")
    assert [front(row) for row in first] == ["people", "human", "llm", "Relative Δ"]
    assert first[0][0].note == "all documents"


def test_tied_share_is_exact() -> None:
    audit = small()
    shares = [of_run(group_table(audit), run)[-1][-1] for run in audit.runs]
    assert [cell.value for cell in shares] == [audit.tied_share(run, *PAIR) for run in audit.runs]
    assert [cell.text for cell in shares] == [f"{100 * (cell.value or 0):.1f} %" for cell in shares]


def test_several_pairs_are_named() -> None:
    names = [front(row) for row in group_table(sources("human", "llama", "gpt").audit).rows]
    assert names[4:] == ["Relative Δ human | gpt", "Relative Δ human | llama", "Relative Δ gpt | llama"]


def test_uneven_groups_have_their_random_band() -> None:
    audit = uneven()
    *_, delta, band = group_table(audit).rows
    assert front(band) == "random band"
    tilt = audit.tilts[0]
    assert band[1].text == f"[{tilt.band_low:+.1f}, {tilt.band_high:+.1f}]".replace("-", "−")
    assert len(delta) == len(band) == 1 + len(audit.measures) + 1  # no column of tied twins


def test_without_groups_there_are_means_only() -> None:
    table = group_table(ungrouped().audit)
    assert [column.title for column in table.columns] == ["ranker and group", "nDCG@1", "P@2", "queries"]
    assert [front(row) for row in table.rows] == ["people", "machines", "nobody"]
    assert "▲" not in table.note


def test_legend_is_that_of_the_main_table_only() -> None:
    audit = made()
    assert [line.split()[0] for line in table_legend(audit)] == ["Means", "Intervals:"]
    carded = table_legend(opened().audit)
    assert not any(line.startswith("Card") for line in carded)
    assert "▲ favours human, ▼ favours llm" in group_table(opened().audit).note


def test_every_row_is_as_long_as_the_header() -> None:
    tables = [group_table(audit) for audit in AUDITS]
    tables += [card_overview(opened().audit), card_table(opened().audit), control_table(made())]
    tables += [card_overview(unjudged().audit), card_table(unjudged().audit)]
    for table in tables:
        assert {len(row) for row in table.rows} == {len(table.columns)}


def test_overview_has_a_row_a_ranker_and_a_column_a_question() -> None:
    audit = opened().audit
    table = card_overview(audit)
    assert [front(row) for row in table.rows] == list(audit.runs)
    for row in table.rows:
        wanted = lines(audit, front(row), PAIR)
        assert [cell.text for cell in row[1:]] == [line.answer for line in wanted]
        assert [cell.note for cell in row[1:]] == [line.interval for line in wanted]
        assert str([cell.value for cell in row[1:]]) == str([line.estimate.value for line in wanted])
    assert table.columns[1].hint.startswith("Relative Δ nDCG@1: is the right answer higher")


def test_overview_colours_what_favours_a_side() -> None:
    rows_ = {front(row): row for row in card_overview(opened().audit).rows}
    assert rows_["people"][1].tone == "first"
    assert rows_["machines"][1].tone == "second"
    assert rows_["nobody"][1].tone == ""


def test_overview_names_pairs_where_there_are_several() -> None:
    table = card_overview(sources("human", "llama", "gpt").audit)
    assert [row[0].note for row in table.rows] == ["human | gpt", "human | llama", "gpt | llama"]
    assert [row[0].group for row in table.rows] == [True, False, False]


def test_question_that_was_not_asked_has_no_column() -> None:
    titles = [column.title for column in card_overview(unjudged().audit).columns]
    assert "right answer higher" not in titles
    assert "twin above" in titles


def test_score_gap_is_spoken_of_only_where_it_stands() -> None:
    audit = opened().audit
    plain = replace(audit, estimates=tuple(one for one in audit.estimates if one.estimand.key != "score gap"))
    assert card_overview(audit).note.endswith("the answer is not significant; the score gap only describes.")
    assert card_overview(plain).note.endswith("the answer is not significant.")


def test_card_holds_every_line_of_the_terminal() -> None:
    audit = opened().audit
    table = card_table(audit)
    for run in audit.runs:
        heading, *found = of_run(table, run)
        assert all(cell.text == "" for cell in heading[1:])
        for row, line in zip(found, lines(audit, run, PAIR), strict=True):
            name, value, p, favours, basis = row
            assert (name.text, value.text, value.note) == (line.cells[0], line.answer, line.interval)
            assert (p.text, favours.text, basis.text) == (line.p, line.favours, line.basis)
            assert str([value.value, p.value]) == str([line.estimate.value, line.estimate.p_corrected])


def test_controls_are_those_of_the_terminal() -> None:
    audit = made()
    heading, *found = control_table(audit).rows
    assert front(heading) == "longest"
    wanted = control_rows(audit, "longest", PAIR)
    for shown, row in zip(found, wanted, strict=True):
        label, *values, moved = shown
        assert label.text == row.label
        assert tuple(cell.text for cell in values) == row.cells
        assert f"{moved.text} {moved.note}".strip() == row.moved
        assert label.note == row.changed


def test_controlled_numbers_are_exact() -> None:
    audit = made()
    length = next(one for one in audit.controls if one.control == "length")
    row = next(row for row in control_table(audit).rows if front(row) == "length")
    assert [cell.value for cell in row[1:3]] == [t.value for t in length.tilts]
    assert row[3].value == length.moves[0].value


def test_control_that_was_not_applied_says_why() -> None:
    row = next(row for row in control_table(made()).rows if front(row) == "tokens")
    assert [cell.text for cell in row[1:]] == ["", "", ""]
    assert row[0].note == "no token limit"


def test_confounds_of_sides_and_of_twins_are_apart() -> None:
    audit = opened().audit
    sides, alike = confound_tables(audit, PAIR)
    assert front(sides.rows[0]) == "words a document"
    assert [front(row) for row in alike.rows] == [
        "the same text", "nearly the same text (Jaccard ≥ .95)", "the same title",
    ]  # fmt: skip
    assert alike.rows[0][1].text == "100.0 %"
    assert alike.rows[0][2].value == 40
    shown = [row[1].value for row in (*sides.rows, *alike.rows)]
    assert shown == [one.value_a for one in audit.confounds]


def test_token_limit_names_its_ranker() -> None:
    cut = Confound("truncated", *PAIR, 0.5, math.nan, 80, "dense:x", 256)
    (table,) = confound_tables(replace(opened().audit, confounds=(cut,)), PAIR)
    (row,) = table.rows
    assert [cell.text for cell in row] == ["documents that dense:x cuts at 256 tokens", "50.0 %", "–", "80"]


def test_nothing_was_compared() -> None:
    assert confound_tables(uneven(), ("a", "b")) == []


def test_means_alone_are_not_called_relative_delta() -> None:
    assert group_table(ungrouped().audit).caption == "Means, in %"
    assert group_table(opened().audit).caption == "Means and Relative Δ, in %"
    assert group_table(uneven()).caption == "Means and Relative Δ, in %"
