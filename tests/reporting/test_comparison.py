"""A comparison as printed: for the terminal, Markdown and CSV."""

import csv
import io
import re

import numpy as np
import pytest

from ranktilt.auditing.compare import Comparison, compare
from ranktilt.errors import UserError
from ranktilt.reporting.comparison import comparison_table, legend, rows, show_comparison
from tests.auditing.arrays import audit_of, one
from tests.reporting.test_terminal import BLUE, BOLD, ORANGE, Terminal, plain, style

NAN = np.nan
TILE = np.tile([0.9, 0.7, 0.8], 12)


def turned() -> Comparison:
    """Human text led by 40 %, now LLM text does by as much; effectiveness fell from 70 to 35 %."""
    new, old = (
        one(0.5 * TILE, 0.75 * TILE, overall=0.35 + 0 * TILE),
        one(0.75 * TILE, 0.5 * TILE, overall=0.7 + 0 * TILE),
    )
    return compare(new, old, resamples=200)


def many() -> Comparison:
    """Two runs, two measures and three groups."""
    values = np.random.default_rng(0).random((2, 2, 4, 40))
    names = {"runs": ("bm25", "dense"), "measures": ("nDCG@3", "RR"), "groups": ("a", "b", "c")}
    return compare(*(audit_of(v, **names) for v in (values, values[:, :, ::-1])), resamples=200)


def undefined() -> Comparison:
    """Nothing at all in the new run, and effectiveness known for no query."""
    new, old = one([0, 0], [0, 0], overall=[NAN, NAN], runs=["n"]), one([1, 1], [1, 1], runs=["o"])
    return compare(new, old, resamples=200)


def screen(comparison: Comparison, monkeypatch: pytest.MonkeyPatch, *, columns: int = 120, notes: bool = True) -> str:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("LINES", "50")
    stream = Terminal()
    show_comparison(comparison, stream, notes=notes)
    return stream.getvalue()


def test_rows_by_hand() -> None:
    found = [(r.label, *("|".join(c) for c in r.cells), r.queries) for r in rows(turned())]
    assert found == [
        ("effectiveness: old", "70.0", "36"),
        ("new", "35.0", ""),
        ("difference", "−35.0*", ""),
        ("95 % interval", "−35.0|−35.0", ""),
        ("Relative Δ: old", "+40.0", "36"),
        ("new", "−40.0", ""),
        ("difference", "−80.0*", ""),
        ("95 % interval", "−80.0|−80.0", ""),
        ("growth of the tilt", "0.0", ""),
        ("95 % interval", "0.0|0.0", ""),
    ]
    assert {r.run for r in rows(turned())} == {"run against its old run"}


def test_undefined_is_a_dash() -> None:
    found = rows(undefined())
    assert [r.cells for r in found[:4]] == [(("–",),)] * 3 + [(("–", "–"),)]
    assert [(r.label, r.cells[0]) for r in found[4:8]] == [
        ("Relative Δ: old", ("0.0",)),
        ("new", ("–",)),
        ("difference", ("–",)),
        ("95 % interval", ("–", "–")),
    ]
    assert found[0].run == "n against o"


def test_every_run_and_pair_has_its_rows() -> None:
    found = rows(many())
    assert list(dict.fromkeys(r.run for r in found)) == ["bm25 against its old run", "dense against its old run"]
    assert len(found) == 2 * (4 + 3 * 6)
    assert [r.label for r in found if r.label.startswith("Relative")][:3] == [
        "Relative Δ a | b: old",
        "Relative Δ a | c: old",
        "Relative Δ b | c: old",
    ]
    assert {len(r.cells) for r in found} == {2}


def test_the_legend_says_what_the_numbers_are() -> None:
    assert legend(turned()) == [
        "Effectiveness: means over all relevant documents in %. Differences are new − old, in points.",
        "Relative Δ in %: + favours human, − favours llm. Growth of the tilt: |Δ new| − |Δ old|; above 0 the new run "
        "tilts more, whichever way.",
        "* corrected p < .05 (Holm over 2 tests; permutation tests: systems exchanged query by query for Relative Δ, "
        "sign flips for effectiveness).",
        "Intervals: paired bootstrap over queries, 200 resamples.",
    ]
    assert "(and likewise for the other pairs)" in legend(many())[1]
    assert "Holm over 16 tests" in legend(many())[2]


def test_without_groups_the_legend_is_of_effectiveness_alone() -> None:
    both = [audit_of(np.full((1, 1, 1, 30), 0.5), groups=())] * 2
    text = comparison_table(compare(*both, resamples=100))
    assert "Relative" not in text
    assert "(Holm over 1 test; permutation tests: sign flips for effectiveness)" in text


def test_plain_text_has_table_verdicts_legend_and_notes() -> None:
    found = undefined()
    text = comparison_table(found)
    lines = text.splitlines()
    assert lines[1].split() == ["nDCG@5", "queries"]
    assert lines[3].strip() == "n against o"
    said = [v.sentence for v in found.verdicts()]
    assert lines[-len([*said, *legend(found), *found.notes]) :] == [*said, *legend(found), *found.notes]
    assert "\x1b" not in text
    assert not any(line.endswith(" ") for line in lines)


def test_without_notes_the_verdicts_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    text = " ".join(plain(screen(undefined(), monkeypatch, notes=False)).split())
    assert undefined().verdicts()[0].sentence in text
    assert "Intervals" not in text
    assert "warning" not in text


def test_a_shown_difference_has_the_colour_of_its_side(monkeypatch: pytest.MonkeyPatch) -> None:
    assert style(screen(turned(), monkeypatch), "−80.0*") == {ORANGE, BOLD}
    back = compare(one(0.75 * TILE, 0.5 * TILE), one(0.5 * TILE, 0.75 * TILE), resamples=200)
    assert style(screen(back, monkeypatch), "+80.0*") == {BLUE, BOLD}


def test_effectiveness_takes_no_side(monkeypatch: pytest.MonkeyPatch) -> None:
    assert style(screen(turned(), monkeypatch), "−35.0*") == {BOLD}


@pytest.mark.parametrize("columns", [50, 60, 120])
def test_where_the_measures_do_not_fit_they_stand_in_more_tables(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    text = plain(screen(many(), monkeypatch, columns=columns))
    assert max(map(len, text.splitlines())) <= columns
    assert "nDCG@3" in text
    assert re.search(r"\bRR\b", text)
    for row in rows(many()):
        for cell in row.cells:
            assert all(part in text for part in cell)


def test_markdown() -> None:
    lines = comparison_table(turned(), "markdown").splitlines()
    assert lines[:4] == [
        "| runs |  | nDCG@5 | queries |",
        "| --- | --- | ---: | ---: |",
        "| run against its old run | effectiveness: old | 70.0 | 36 |",
        "|  | new | 35.0 |  |",
    ]
    assert "|  | 95 % interval | −80.0 … −80.0 |  |" in lines
    assert lines[12] == ""
    assert lines[13].startswith(
        "- run lies 80.0 points further toward llm than its old run: Relative Δ −40.0 % against +40.0 %"
    )
    assert r"\|Δ new\| − \|Δ old\|" in lines[16]


def test_csv_has_a_line_a_quantity_unrounded() -> None:
    found = many()
    lines = list(csv.DictReader(io.StringIO(comparison_table(found, "csv"))))
    assert [r["quantity"] for r in lines] == ["effectiveness"] * 4 + ["relative_delta"] * 12
    for row, change in zip(lines, (*found.means, *found.tilts), strict=True):
        assert (row["run"], row["measure"]) == (change.run, change.measure)
        assert [float(row[k]) for k in ("new", "old", "value", "low", "high", "p", "p_corrected")] == [
            change.new, change.old, change.value, change.low, change.high, change.p, change.p_corrected,
        ]  # fmt: skip
    assert float(lines[-1]["growth_low"]) == found.tilts[-1].growth_low
    assert lines[0]["growth"] == ""


def test_an_unknown_format() -> None:
    with pytest.raises(UserError, match=r"unknown format 'html' \(valid: table, markdown, csv\)"):
        comparison_table(turned(), "html")
