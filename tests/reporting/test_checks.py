"""A check as text: every row whole, the same words with and without colour, tables that other programs read."""

import csv
import io
import re
from collections.abc import Callable

import pytest

import ranktilt as rt
from ranktilt.collection import Collection
from ranktilt.datasets.check import check
from ranktilt.datasets.check_result import CheckLimits, CheckResult, CheckRow
from ranktilt.reporting.checks import FORMATS, checks, legend, show
from tests.toy import collection_of, toy

CODE = re.compile(r"\x1b\[([\d;]*)m")
RED = "31"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def colours(monkeypatch: pytest.MonkeyPatch, no_terminal: None) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("LINES", "50")


def screen(result: CheckResult, monkeypatch: pytest.MonkeyPatch, columns: int, *, notes: bool = True) -> str:
    monkeypatch.setenv("COLUMNS", str(columns))
    stream = Terminal()
    show(result, stream, notes=notes)
    return stream.getvalue()


def plain(text: str) -> str:
    return CODE.sub("", text)


BODY = "The river carries cold water to the sea."


def pairs(count: int, spoil: Callable[[int], str], *, names: tuple[str, ...] = ("human", "llm")) -> Collection:
    """Pairs of one length; the last source's texts are made by `spoil`."""
    docs = [
        {
            "id": f"d{n}-{name}",
            "text": spoil(n) if name == names[-1] else f"Text {n}. {BODY} {name}.",
            "source": name,
            "origin": f"d{n}",
        }
        for name in names
        for n in range(count)
    ]
    qrels = {f"q{n}": {f"d{n}-{name}": 1 for name in names} for n in range(count)}
    return collection_of(docs, dict.fromkeys(qrels, "river"), qrels)


def fair() -> CheckResult:
    return check(pairs(30, lambda n: f"Note {n}. {BODY} Yes."))


def void() -> CheckResult:
    return check(pairs(30, lambda n: f"Rewritten text: {n}. {BODY}" if n % 2 else f"Note {n}. {BODY} And so"))


def three() -> CheckResult:
    return check(pairs(12, lambda n: f"Rewritten text: {n}. {BODY}", names=("human", "llm", "a|b")))


CASES = [fair, void, three]


def refused(names: tuple[str, ...] = ("human", "llm")) -> CheckResult:
    return check(pairs(30, lambda n: f"I cannot rewrite this text {n}. Sorry, truly so.", names=names), examples=2)


TABLE = """\
                           found    share  human     limit  verdict
llm against human
  pairs missing a side   0 of 30    0.0 %           ≤ 10 %  ok
  identical pairs        0 of 30    0.0 %            ≤ 5 %  ok
  near-identical pairs   0 of 30    0.0 %          < 100 %  ok
    Jaccard similarity of terms ≥ 0.95
  refusals              30 of 30  100.0 %  0.0 %    ≤ 10 %  void
    the model declined to write: such a text cannot be relevant
    such as d0-llm, d1-llm, …
  boilerplate openings   0 of 30    0.0 %  0.0 %    ≤ 10 %  ok
  cut-off endings        0 of 30    0.0 %  0.0 %    ≤ 10 %  ok
  empty texts            0 of 30    0.0 %  0.0 %            ok
  duplicate texts        0 of 30    0.0 %  0.0 %            ok
  length ratio           0 of 30     0.82         0.67–1.5  warning (outside 0.9–1.1)
    rankers weigh length by themselves: a tilt may be one of length
    words for each word of the reference, median; quartiles 0.82 and 0.82
  script differs         0 of 30    0.0 %                   ok
  title prefixes         0 of 30    0.0 %  0.0 %            ok
  texts cut short        0 of 30    0.0 %  0.0 %            ok
  shared titles          0 of 30    0.0 %                   ok
  one-sided judgments    0 of 30    0.0 %            ≤ 5 %  ok

judgments and queries
  dangling judgments     0 of 60    0.0 %                   ok
  repeated queries       0 of 30    0.0 %                   ok

Void because of refusals (30 of 30, 100.0 %; limit ≤ 10 %).
"""


def test_the_table_as_it_is_printed() -> None:
    result = refused()
    assert checks(result) == TABLE + "\n".join(legend(result)) + "\n"


def test_without_notes_the_numbers_and_examples_stay() -> None:
    text = checks(refused(), notes=False)
    numbers = [line for line in TABLE.splitlines() if not line.startswith("    ") or line.strip().startswith("found")]
    assert [line for line in text.splitlines() if line[:4] != "    " or "found" in line] == numbers
    assert "    such as d0-llm, d1-llm, …" in text.splitlines()
    assert "declined" not in text
    assert "Warning:" not in text


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("case", CASES)
def test_every_row_is_in_every_format(case: Callable[[], CheckResult], format: str) -> None:
    result = case()
    text = checks(result, format)
    assert text.endswith("\n")
    for row in result.rows:
        assert text.count(row.name) >= sum(other.name == row.name for other in result.rows)


@pytest.mark.parametrize("columns", [80, 200])
@pytest.mark.parametrize("case", CASES)
def test_a_terminal_shows_the_same_words(
    case: Callable[[], CheckResult], columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = plain(screen(case(), monkeypatch, columns))
    assert max(map(len, text.splitlines())) <= max(columns, 69)
    assert text.split() == checks(case()).split()


def lengths(factor: float, count: int = 12) -> CheckResult:
    """A check of texts whose twins are longer or shorter by a factor."""
    return check(pairs(count, lambda n: " ".join([f"Note {n}.", *["word"] * round(11 * factor - 3), "end."])))


@pytest.mark.parametrize("columns", [60, 65])
def test_a_narrow_terminal_drops_the_limit_and_keeps_each_verdict_in_its_row(
    columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = refused()
    lines = plain(screen(result, monkeypatch, columns)).splitlines()
    assert lines[0].split() == ["found", "share", "human", "verdict"]
    for row in result.rows:
        line = next(line for line in lines if line.startswith(f"  {row.name} "))
        assert line.endswith(f"  {row.verdict}")
    at = next(number for number, line in enumerate(lines) if line.startswith("  length ratio "))
    assert lines[at + 1] == "    outside 0.9–1.1"


def test_a_still_narrower_one_drops_the_reference_too(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = plain(screen(refused(), monkeypatch, 54)).splitlines()
    assert lines[0].split() == ["found", "share", "verdict"]
    assert next(line for line in lines if line.startswith("  refusals ")).split()[-3:] == ["100.0", "%", "void"]


@pytest.mark.parametrize(
    ("factor", "ending"),
    [(1.0, "ok"), (1.3, "warning (outside 0.9–1.1)"), (0.8, "warning (outside 0.9–1.1)"), (2.0, "void")],
)
def test_a_length_ratio_within_its_limit_says_why_it_is_a_warning(factor: float, ending: str) -> None:
    result = lengths(factor)
    line = next(line for line in checks(result).splitlines() if line.startswith("  length ratio "))
    assert line.endswith(f"0.67–1.5  {ending}")
    assert f"| 0.67–1.5 | {ending} |" in checks(result, "markdown")
    assert (
        next(r for r in csv.DictReader(io.StringIO(checks(result, "csv"))) if r["name"] == "length ratio")["verdict"]
        == ending.partition(" ")[0]
    )


def test_a_length_ratio_of_nothing_has_no_reason() -> None:
    row = CheckRow("length ratio", "llm", "", 0, 0, float("nan"), "warning", limit="0.67–1.5")
    assert checks(CheckResult((row,), "human", ("llm",)), notes=False).splitlines()[2].endswith("0.67–1.5  warning")


def test_eighty_columns_hold_each_row_on_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    result = check(pairs(3000, lambda n: f"Note {n}. {BODY} Yes."))
    lines = plain(screen(result, monkeypatch, 80)).splitlines()
    for row in result.rows:
        line = next(line for line in lines if line.startswith(f"  {row.name} "))
        assert line.endswith(row.verdict)
    assert any("0 of 3,000" in line for line in lines)


@pytest.mark.parametrize("case", CASES)
def test_colour_marks_the_verdict_and_says_nothing_more(
    case: Callable[[], CheckResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    coloured = screen(case(), monkeypatch, 100)
    monkeypatch.setenv("NO_COLOR", "1")
    colourless = screen(case(), monkeypatch, 100)
    assert plain(coloured) == plain(colourless)
    red = [word for code, word in re.findall(r"\x1b\[([\d;]*)m([^\x1b]*)", coloured) if RED in code.split(";")]
    assert ("void" in red) == (not case().fair)
    assert not any(RED in code.split(";") for code in CODE.findall(colourless))


def test_names_are_no_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("human", "[red]x[/red]")
    assert "[red]x[/red] against human" in checks(refused(names))
    assert "d0-[red]x[/red]" in plain(screen(refused(names), monkeypatch, 100))


def test_a_long_name_of_the_reference_leaves_its_column_narrow() -> None:
    result = refused(("a-reference-with-a-long-name", "llm"))
    header, title, *_ = checks(result).splitlines()
    assert header.split() == ["found", "share", "reference", "limit", "verdict"]
    assert title == "llm against a-reference-with-a-long-name"


def test_markdown_is_a_table_and_a_list() -> None:
    lines = checks(three(), "markdown").splitlines()
    table, notes = lines[: lines.index("")], lines[lines.index("") + 1 :]
    columns = ["source", "check", "found", "share", "human", "limit", "verdict", "examples"]
    assert [cell.strip() for cell in table[0].strip("|").split("|")] == columns
    assert len(table) == 2 + 14 + 14 + 2
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in table} == {9}
    assert (
        "| a\\|b | boilerplate openings | 12 of 12 | 100.0 % | 0.0 % | ≤ 10 % | void | d0-a\\|b, d1-a\\|b, d2-a\\|b |"
        in table
    )
    assert notes[0] == "- Void because of boilerplate openings of a\\|b (12 of 12, 100.0 %; limit ≤ 10 %)."
    assert (
        "- a\\|b, boilerplate openings: the text begins with words about the rewrite, which no searcher asks for"
        in notes
    )
    assert all(note.startswith("- ") for note in notes)


def test_markdown_of_two_sources_needs_no_column_for_them() -> None:
    text = checks(refused(), "markdown", notes=False)
    assert text.startswith("| check | found |")
    assert text.splitlines()[-2:] == ["", "- Void because of refusals (30 of 30, 100.0 %; limit ≤ 10 %)."]


def test_csv_is_unrounded_and_leaves_the_undefined_empty() -> None:
    result = check(pairs(30, lambda n: f"I cannot rewrite {n}." if n < 7 else f"Note {n}. {BODY} Yes."))
    rows = list(csv.DictReader(io.StringIO(checks(result, "csv"))))
    assert [row["name"] for row in rows] == [row.name for row in result.rows]
    refusals = next(row for row in rows if row["name"] == "refusals")
    assert refusals == {
        "source": "llm", "name": "refusals", "found": "7", "total": "30", "value": repr(100 * 7 / 30),
        "reference": "0.0", "limit": "≤ 10 %", "verdict": "void", "note": "", "examples": "d0-llm; d1-llm; d2-llm",
    }  # fmt: skip
    assert rows[0]["reference"] == ""
    assert rows[-1]["source"] == ""


def test_csv_of_the_undefined() -> None:
    row = CheckRow("identical pairs", "llm", "", 0, 0, float("nan"), "warning")
    text = checks(CheckResult((row,), "human", ("llm",)), "csv")
    assert next(csv.DictReader(io.StringIO(text)))["value"] == ""
    assert " – " in checks(CheckResult((row,), "human", ("llm",)))


def test_the_legend_prints_its_thresholds() -> None:
    text = " ".join(legend(check(toy(), limits=CheckLimits(notice=2.5))))
    assert "a share over 2.5 %" in text
    assert "outside 0.9–1.1" in text
    assert "the share in human itself" in text


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(rt.UserError, match=r"unknown format 'latex' \(valid: table, markdown, csv\)"):
        checks(fair(), "latex")
