"""The table in a terminal: colour for the direction, a sign without colour, nothing cut off."""

import io
import re
from collections.abc import Callable

import pytest

from ranktilt import Audit, table
from ranktilt.reporting.terminal import show
from tests.reporting.audits import clear, small, three, uneven
from tests.reporting.test_card import torn
from tests.reporting.test_controls import made

CODE = re.compile(r"\x1b\[([\d;]*)m")
BLUE, ORANGE, BOLD = "38;5;27", "38;5;208", "1"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def colours(monkeypatch: pytest.MonkeyPatch, no_terminal: None) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")


def screen(audit: Audit, monkeypatch: pytest.MonkeyPatch, *, columns: int = 120, notes: bool = True) -> str:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("LINES", "50")
    stream = Terminal()
    show(audit, stream, notes=notes)
    return stream.getvalue()


def plain(text: str) -> str:
    return CODE.sub("", text)


def style(text: str, cell: str) -> set[str]:
    """Return the style in force where a cell's text begins, as a set of colour and weight."""
    before = text[: text.index(cell)]
    code = CODE.findall(before)[-1]
    return {found for found in (BLUE, ORANGE) if found in code} | ({BOLD} if code.startswith("1") else set())


def test_a_favoured_side_has_its_colour_in_bold(monkeypatch: pytest.MonkeyPatch) -> None:
    text = screen(clear(), monkeypatch)
    assert style(text, "+200.0*") == {BLUE, BOLD}
    assert style(text, "−200.0*") == {ORANGE, BOLD}


def test_a_direction_without_a_verdict_has_its_colour_only(monkeypatch: pytest.MonkeyPatch) -> None:
    text = screen(small(), monkeypatch)
    assert style(text, "+66.7") == {BLUE}
    assert style(text, "−76.0") == {ORANGE}


def test_level_has_no_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    row = [line for line in screen(clear(), monkeypatch).splitlines() if "Relative Δ" in line][2]
    assert "0.0" in row
    assert BLUE not in row
    assert ORANGE not in row


@pytest.mark.parametrize("audit", [small, clear, three, uneven])
def test_signs_say_the_same_without_colour(monkeypatch: pytest.MonkeyPatch, audit: Callable[[], Audit]) -> None:
    coloured = screen(audit(), monkeypatch, columns=400)
    monkeypatch.setenv("NO_COLOR", "1")
    colourless = screen(audit(), monkeypatch, columns=400)
    assert BLUE not in colourless
    assert ORANGE not in colourless
    assert plain(coloured) == plain(colourless)
    cells = re.findall(r"\x1b\[([\d;]*)m *([^\x1b]*)\x1b\[0m", coloured)
    signs = {colour: {cell[0] for code, cell in cells if colour in code} for colour in (BLUE, ORANGE)}
    assert signs[BLUE] <= {"+"}
    assert signs[ORANGE] <= {"−"}
    assert signs[BLUE] | signs[ORANGE]


@pytest.mark.parametrize("columns", [60, 80, 100, 200])
def test_no_number_is_cut_in_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    audit = clear(("people", "machines", "dense:sentence-transformers/a-model-with-a-long-name(similarity=dot)@100"))
    text = plain(screen(audit, monkeypatch, columns=columns, notes=False))
    lines = text.splitlines()
    assert max(map(len, lines)) <= columns
    assert "…" not in text
    numbers = re.findall(r"[+−]?\d+\.\d\*?", text.partition("favours")[0])
    wanted = re.findall(r"[+−]?\d+\.\d\*?", table(audit).partition("favours")[0])
    assert sorted(set(numbers)) == sorted(set(wanted))


def test_measures_spread_over_tables_where_one_is_too_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    titles = re.compile(r"nDCG@1|nDCG@3|AP@3")
    wide = plain(screen(small(), monkeypatch, columns=100, notes=False))
    assert [titles.findall(line) for line in wide.splitlines() if "queries" in line and "tied" in line] == [
        ["nDCG@1", "nDCG@3", "AP@3"]
    ]
    narrow = plain(screen(small(), monkeypatch, columns=50, notes=False))
    found = [titles.findall(line) for line in narrow.splitlines() if "tied twins" in line]
    assert [title for line in found for title in line] == ["nDCG@1", "nDCG@3", "AP@3"]
    assert len(found) > 1


def test_a_file_gets_plain_text_as_wide_as_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    audit = clear(("a" * 70, "b", "c"))
    stream = io.StringIO()
    show(audit, stream)
    text = stream.getvalue()
    assert "\x1b" not in text
    assert all(audit.verdict(run).sentence in text.splitlines() for run in audit.runs)
    assert "nDCG@1" in text
    assert re.search(r"Relative Δ +\+200\.0\* +0\.0 +40 +0\.0 %", text)


def test_a_long_name_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "dense:" + "x" * 60
    lines = [line.strip() for line in table(clear((name, "b", "c"))).splitlines()]
    start = next(i for i, line in enumerate(lines) if line.startswith("dense:"))
    joined = "".join(lines[start:]).partition("all")[0]
    assert joined == name


def test_notes_can_be_left_out_and_verdicts_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    audit = small()
    stream = io.StringIO()
    show(audit, stream, notes=False)
    text = stream.getvalue()
    assert "Intervals:" not in text
    assert "are not in the run" not in text
    assert audit.verdict("first").sentence in text


def test_names_are_no_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("[bold]x[/bold]", "[red]", ":smile:")
    text = plain(screen(clear(names), monkeypatch, columns=400))
    for name in names:
        assert f" {name} " in text
        assert f"{name} favours" in text or f"{name}: inconclusive" in text


def test_the_cards_answers_have_their_colour_in_bold_where_a_side_is_favoured(monkeypatch: pytest.MonkeyPatch) -> None:
    card = screen(torn(), monkeypatch).partition("the estimand card")[2]
    assert style(card, "+.607") == {BLUE, BOLD}
    assert style(card, "−100.0 %") == {ORANGE, BOLD}
    assert style(card, "−.162") == {ORANGE}


def test_controls_have_their_colours_too(monkeypatch: pytest.MonkeyPatch) -> None:
    found = screen(made(), monkeypatch).partition("raw and controlled")[2]
    assert style(found, "+200.0*") == {BLUE, BOLD}


@pytest.mark.parametrize("audit", [torn, made])
@pytest.mark.parametrize("columns", [60, 80, 120])
def test_no_number_of_card_and_controls_is_cut(
    monkeypatch: pytest.MonkeyPatch, audit: Callable[[], Audit], columns: int
) -> None:
    text = plain(screen(audit(), monkeypatch, columns=columns))
    assert max(map(len, text.splitlines())) <= columns
    assert "…" not in text.replace("version …”", "")
    numbers = re.compile(r"[+−]\d*\.\d+\*?")
    assert sorted(set(numbers.findall(text))) == sorted(set(numbers.findall(table(audit()))))


@pytest.mark.parametrize("audit", [torn, made])
def test_card_and_controls_say_the_same_without_colour(
    monkeypatch: pytest.MonkeyPatch, audit: Callable[[], Audit]
) -> None:
    coloured = screen(audit(), monkeypatch, columns=400)
    monkeypatch.setenv("NO_COLOR", "1")
    colourless = screen(audit(), monkeypatch, columns=400)
    assert BLUE not in colourless
    assert ORANGE not in colourless
    assert plain(coloured) == plain(colourless)
