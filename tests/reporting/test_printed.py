"""Every kind of result in every format: as it is kept in ``printed/``, in any terminal, and with
its numbers whole.
"""

import os
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ranktilt import UserError, table
from ranktilt.auditing.gate.gate import gate
from ranktilt.data.artifact import Result
from ranktilt.explaining.check import check
from ranktilt.reporting.document import (
    Cell,
    Column,
    Document,
    Figure,
    Row,
    Table,
    name_column,
    single_section,
)
from ranktilt.reporting.interval_chart import IntervalChart
from ranktilt.reporting.output import notebook
from ranktilt.reporting.render.latex import render as latex
from ranktilt.reporting.render.markdown import escaped
from ranktilt.reporting.views import gate as gate_view
from ranktilt.reporting.views import view
from tests.auditing.arrays import audit_of
from tests.auditing.test_gate import HUMAN, LEVEL, UNSURE
from tests.reporting.audits import clear
from tests.reporting.openings import alone, colours, opened, sources, ungrouped, unjudged
from tests.reporting.readers import BLUE, BOLD, CODE, ORANGE, Markup, plain, screen, style
from tests.reporting.results import RESULTS, pairs, refused, result

PRINTED = Path(__file__).parent / "printed"
ENDINGS = {"table": "txt", "markdown": "md", "latex": "tex"}
PRINTS = [
    *((name, format) for name in RESULTS for format in ("table", "markdown")),
    *((name, "latex") for name in ("audit", "audit, card", "audit, no twins")),
]
OPENED = {
    "opened": opened,
    "opened, unjudged": unjudged,
    "opened, ungrouped": ungrouped,
    "opened, colours": colours,
    "opened, sources": lambda: sources("human", "llama", "gpt"),
    "opened, alone": lambda: alone(opened(), "It is gone."),
}
"""Audits with what they were made from."""
every = pytest.mark.parametrize("name", RESULTS)


@pytest.mark.parametrize(("name", "format"), PRINTS)
def test_a_result_is_printed_as_it_was(name: str, format: str) -> None:
    """Run with ``RANKTILT_PRINTED=write`` after a change that is wanted, and look at the
    difference.
    """
    text = table(result(name), format)
    assert text == stored(f"{slug(name)}.{ENDINGS[format]}", text)


def slug(name: str) -> str:
    return re.sub("[^a-z]+", "-", name)


def stored(name: str, text: str) -> str:
    """Return what is kept of a text, which is written first where that is asked for."""
    file = PRINTED / name
    if os.environ.get("RANKTILT_PRINTED") == "write":
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return file.read_text(encoding="utf-8")


def first_screen(document: Document) -> list[str]:
    """What stands below the headline: its meaning, and a chart row by row."""
    lines = [f"means: {document.meaning}"] if document.meaning else []
    for chart in document.first_figure_blocks:
        assert isinstance(chart, IntervalChart)
        scales = " | ".join(scale.title for scale in chart.scales)
        lines.append(f"chart: {chart.title} ({scales}). {chart.description}")
        for row in chart.rows:
            readings = (
                f"{reading.tone or '-'} {reading.text}" if reading else "none"
                for reading in row.readings
            )
            note = f" ({row.note})" if row.note else ""
            lines.append(f"  {row.label}{note}: {' | '.join(readings)}")
    return lines


def outline(document: Document) -> str:
    """What stands on a page, in its order: sentences, sections, figures in words, tables by their
    titles.
    """
    lines = [document.headline, *first_screen(document)]
    lines += [f"{line.tone or '-'}: {line.text}" for line in document.page_lines]
    for section in document.shown_sections("page"):
        lines += ["", f"{section.name}: {section.title}", *section.lead]
        for block in section.blocks_for("page"):
            if isinstance(block, Figure):
                lines.append(f"figure {block.layout or '-'}: {block.title}. {block.description}")
            elif isinstance(block, Table):
                titles = ", ".join(column.title for column in block.columns)
                lines.append(
                    f"table of {len(block.rows)}: {block.caption} ({titles}). {block.note}".strip()
                )
            elif section.name != "made":
                lines.append(block.kind)
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    "name", [*OPENED, *(name for name in RESULTS if not name.startswith(("models", "install")))]
)
def test_a_page_is_laid_out_as_it_was(name: str) -> None:
    """Kept and written like the printed results."""
    text = outline(view(OPENED[name]() if name in OPENED else result(name)))
    assert text == stored(f"{slug(name)}.page.txt", text)


@every
def test_no_terminal_is_too_narrow(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = plain(screen(result(name), monkeypatch, columns=80))
    # Commands to copy are not broken.
    broken = [line for line in text.splitlines() if not line.startswith("Next: ")]
    assert max(map(len, broken)) <= 80 or name == "models, in full"
    full_width = plain(screen(result(name), monkeypatch, columns=2000))
    full_width = re.sub(
        "raw [+−.0-9]+", "", full_width
    )  # of a column that narrow terminals go without
    if name.startswith(("audit", "comparison", "sources")):  # others leave columns out
        numbers = re.compile(r"[+−]\d*\.\d+\*?")
        assert set(numbers.findall(text)) >= set(numbers.findall(full_width))
    sentences = " ".join(line.text for line in view(result(name)).lines())
    assert set(re.findall(r"\w+", sentences)) <= set(re.findall(r"\w+", text))


@every
def test_colour_says_nothing_more(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    coloured = screen(result(name), monkeypatch, columns=2000)
    monkeypatch.setenv("NO_COLOR", "1")
    colourless = screen(result(name), monkeypatch, columns=2000)
    assert not {"3", "9"} & {
        part[:1] for code in CODE.findall(colourless) for part in code.split(";") if len(part) > 1
    }
    assert plain(coloured).split() == plain(colourless).split()
    words = [
        sorted(re.findall(r"[^\s─]+", text)) for text in (plain(coloured), table(result(name)))
    ]
    assert words[0] == words[1]  # a plain table wraps its texts


@every
def test_without_notes_tables_and_sentences_stay(name: str) -> None:
    document = view(result(name))
    for format in ("table", "markdown", "latex"):
        loud, quiet = (
            table(result(name), format, notes=notes).replace("\\", "") for notes in (True, False)
        )
        for note in (*document.legend, *document.notes):
            assert note.replace("\\", "") not in quiet
            assert format == "latex" or note.replace("\\", "") in loud
        for line in document.lines(notes=False):
            assert format == "latex" or line.text.replace("\\", "") in quiet


@every
def test_a_page_holds_every_row(name: str) -> None:
    text = table(result(name), "html")
    assert text.endswith("</html>\n")
    page = Markup(text)
    for block in view(result(name)).blocks("page"):
        if isinstance(block, Table):
            assert all(str(row.cells[0].text) in page.text for row in block.rows)


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(
        UserError,
        match=r"^unknown format 'markdwon'; did you mean 'markdown'\? \(valid: table, mark",
    ):
        table(clear(), "markdwon")


class TestColours:
    def test_a_favoured_side_and_outcomes_have_their_own(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        cases = [
            ("audit, clear", "+200.0*", {BLUE, BOLD}),
            ("audit, clear", "−200.0*", {ORANGE, BOLD}),
            ("audit", "+66.7", set()),
            ("audit, card", "+60.7 points", {BLUE, BOLD}),
            ("comparison, turned", "−80.0*", {BOLD}),
        ]
        for name, cell, expected in cases:
            assert style(screen(result(name), monkeypatch), cell) == expected, (name, cell)
        printed = screen(result("gate"), monkeypatch)
        codes = {
            name: code
            for code, name in re.findall(
                r"\x1b\[([\d;]+)m(level|inconclusive|tilted)\s*\x1b", printed
            )
        }
        assert codes == {"level": "32", "inconclusive": "33", "tilted": "1;31"}
        bad = screen(refused(), monkeypatch, columns=200)
        assert "1;31" in CODE.findall(bad)


class TestNarrow:
    @pytest.mark.parametrize(
        ("columns", "titles"),
        [(80, "found share human limit verdict"), (62, "found share verdict")],
    )
    def test_a_check_has_fewer_columns(
        self, columns: int, titles: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        lines = plain(screen(refused(), monkeypatch, columns=columns)).splitlines()
        assert ["check", *titles.split()] in [line.split() for line in lines]
        at = next(number for number, line in enumerate(lines) if line.startswith(" length ratio "))
        assert lines[at].endswith("  warning")
        assert lines[at + 1].strip() == "outside 0.9–1.1"


def test_long_name_folds_in_terminal_and_file_is_wide_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = "dense:" + "x" * 100
    lines = [
        line.strip()
        for line in plain(screen(clear((name, "b", "c")), monkeypatch, columns=60)).splitlines()
    ]
    start = next(i for i, line in enumerate(lines) if line.startswith("dense:"))
    assert "".join(lines[start:]).partition("all")[0] == name
    monkeypatch.setenv("COLUMNS", "20")
    text = table(clear(("a" * 70, "b", "c")))
    assert "\x1b" not in text
    assert re.search(r"Relative Δ +\+200\.0\* +0\.0 +40 +0\.0 %", text)


@pytest.mark.parametrize("name", ["[bold]x[/bold]", "[red]", ":smile:", "\x1b[31mred"])
def test_names_are_no_markup(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    escaped = name.replace("\x1b", r"\x1b")
    lines = plain(screen(clear((name, "b", "c")), monkeypatch, columns=400)).splitlines()
    assert escaped in [line.strip() for line in lines]
    assert f"refusals of {escaped} " in table(refused(("human", "llm", name)))


class TestMarkdown:
    @pytest.mark.parametrize(("audit", "sign"), [(LEVEL, "✅"), (HUMAN, "❌"), (UNSURE, "⚠️")])
    def test_a_gate_begins_with_its_outcome(self, audit: Any, sign: str) -> None:
        text = table(gate(audit), "markdown")
        assert text.startswith(f"## {sign} RankTilt: ")
        assert "Make it again" not in text

    @pytest.mark.parametrize(
        ("command", "expected"),
        [("a `b` c", "``a `b` c``"), ("`a", "`` `a ``"), ("a ``b", "```a ``b```")],
    )
    def test_backticks_do_not_end_the_code(self, command: str, expected: str) -> None:
        gate_result = gate(LEVEL)
        with_command = replace(gate_result, spec={**gate_result.spec, "command": command})
        assert f"Make it again: {expected}\n" in table(with_command, "markdown")

    def test_names_cannot_break_the_table_or_become_html(self) -> None:
        text = table(gate(audit_of(HUMAN.values, runs=["x|y\n<img src=x>"])), "markdown")
        assert r"| x\|y \<img src=x\> | nDCG@5 |" in text
        assert len(text.splitlines()) == 9


def test_length_ratio_beyond_limit_is_void_without_reason() -> None:
    twins = pairs(12, lambda n: " ".join([f"Note {n}.", *["word"] * 19, "end."]))
    assert "| 0.67–1.5 | void |" in table(check(twins), "markdown")


@every
def test_a_notebook_shows_the_answer_and_tables_without_scripts_and_network(name: str) -> None:
    case_result = result(name)
    page = Markup(
        case_result._repr_html_() if isinstance(case_result, Result) else notebook(case_result)
    )
    assert not {"script", "link", "iframe", "img"} & {tag for tag, _ in page.elements}
    assert view(result(name)).headline in page.text


def test_a_name_is_no_link_in_markdown() -> None:
    name = "[x](http://a.org) ~~y~~ &lt;"
    assert escaped(name) == r"[x]\(http://a.org) \~\~y\~\~ \&lt;"
    assert escaped("+5.0 [+1.0, +9.0] (n = 3)") == "+5.0 [+1.0, +9.0] (n = 3)"


def test_a_bracket_begins_no_row_of_latex() -> None:
    rows = (Row((Cell("[2pt]"), Cell("τ-b"))), Row((Cell("*"), Cell("1"))))
    text = latex(
        Document(
            kind="",
            headline="",
            sections=single_section([Table("c", (name_column("a"), Column("κ")), rows)]),
        )
    )
    assert "{}[2pt] & $\\tau$-b \\\\" in text
    assert "{}* & 1 \\\\" in text
    assert "a & $\\kappa$" in text


@pytest.mark.parametrize(
    ("limit", "allowed"),
    [
        (0.05, "−0.05 … +0.05"),
        (2.25, "−2.25 … +2.25"),
        (5.0, "−5.0 … +5.0"),
        (1 / 3, "−0.3 … +0.3"),
    ],
)
def test_a_limit_is_printed_as_it_was_asked_for(limit: float, allowed: str) -> None:
    check = SimpleNamespace(floor=-limit, ceiling=limit)
    assert gate_view._allowed_text(check) == allowed
