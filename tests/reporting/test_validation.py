"""A validation as text: every row in every format, the same words with and without colour."""

import csv
import io
import math
import re
from collections.abc import Callable

import pytest

import ranktilt as rt
from ranktilt.probes.validation import Validation
from ranktilt.reporting.checks import checks
from ranktilt.reporting.validation import FORMATS, show_validation, validation_table
from ranktilt.reporting.validation_layout import grids, legend
from tests.probes.validations import toy_validation

CODE = re.compile(r"\x1b\[([\d;]*)m")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def colours(monkeypatch: pytest.MonkeyPatch, no_terminal: None) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("LINES", "50")


def screen(found: Validation, monkeypatch: pytest.MonkeyPatch, columns: int, *, notes: bool = True) -> str:
    monkeypatch.setenv("COLUMNS", str(columns))
    stream = Terminal()
    show_validation(found, stream, notes=notes)
    return stream.getvalue()


def plain(text: str) -> str:
    return CODE.sub("", text)


def two() -> Validation:
    return toy_validation()


def three() -> Validation:
    return toy_validation(("human", "llm", "a|b"))


def one() -> Validation:
    return toy_validation(("human",))


CASES = [two, three, one]

EFFECTIVENESS = """\
Effectiveness on each side alone, nDCG@10

                  human   rewrite   difference     95 % interval   p different   p equivalent   shown from   queries   outcome
 ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
 llm
   bm25           0.322     0.318       +0.004   −0.003 … +0.011         0.524         < .001       ±0.010       300   equivalent within ±0.02
   tfidf          0.301     0.290       +0.011   +0.004 … +0.018         0.008          0.006       ±0.017       300   different within ±0.02
   dense:minilm   0.316     0.380       −0.064   −0.090 … −0.038        < .001          0.999       ±0.086       300   different
   bm25@5         0.250     0.245       +0.005   −0.031 … +0.041         0.785          0.206       ±0.035       300   inconclusive
   tfidf@1        0.500     0.400       +0.100             – … –             –              –            –         1   not tested
"""  # noqa: E501


def test_the_table_of_effectiveness_as_it_is_printed() -> None:
    assert EFFECTIVENESS in validation_table(two())


def test_tables_then_the_check_then_words() -> None:
    found = two()
    assert found.check is not None
    text = validation_table(found)
    places = [text.index(grid.title) for grid in grids(found)]
    places += [text.index(checks(found.check)), *(text.index(s) for s in found.sentences())]
    places += [text.index(line) for line in (*legend(found), *found.notes)]
    assert places == sorted(places)
    assert text.endswith(found.notes[-1] + "\n")


@pytest.mark.parametrize("case", CASES)
def test_without_notes_the_numbers_and_sentences_stay(case: Callable[[], Validation]) -> None:
    found = case()
    text = validation_table(found, notes=False)
    assert all(line not in text for line in (*legend(found), *found.notes))
    assert all(line in text for line in found.sentences())


@pytest.mark.parametrize("format", ["table", "markdown"])
@pytest.mark.parametrize("case", CASES)
def test_every_cell_is_in_both_formats(case: Callable[[], Validation], format: str) -> None:
    text = validation_table(case(), format).replace("\\", "")
    assert text.endswith("\n")
    for grid in grids(case()):
        for row in grid.rows:
            assert all(cell.strip() in text for cell in row if not set(cell) & set("▁▂▃▄▅▆▇█"))
        assert all(line in text for line in grid.below)


@pytest.mark.parametrize("case", CASES)
def test_a_wide_terminal_shows_the_same_words(case: Callable[[], Validation], monkeypatch: pytest.MonkeyPatch) -> None:
    text = plain(screen(case(), monkeypatch, 200))
    assert text.split() == validation_table(case()).split()


@pytest.mark.parametrize("columns", [80, 100, 120])
@pytest.mark.parametrize("case", CASES)
def test_a_narrow_one_leaves_columns_out_and_breaks_no_row(
    case: Callable[[], Validation], columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = plain(screen(case(), monkeypatch, columns))
    assert max(map(len, text.splitlines())) <= columns
    for row in case().effectiveness:
        lines = [line.rstrip() for line in text.splitlines() if line.startswith(f"   {row.run} ")]
        assert all(line.endswith(row.verdict) for line in lines)
        assert len(lines) == len(case().sources)
        assert f"{row.on_reference:.3f}" in lines[0]


def test_outcomes_have_their_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    text = screen(two(), monkeypatch, 200)
    coloured = {name: code for code, name in re.findall(r"\x1b\[([\d;]+)m([a-z]+)(?: within ±0.02)?\s*\x1b", text)}
    assert (coloured["equivalent"], coloured["different"], coloured["inconclusive"]) == ("32", "1;31", "33")


@pytest.mark.parametrize("case", CASES)
def test_markdown_is_tables_and_lists(case: Callable[[], Validation]) -> None:
    lines = validation_table(case(), "markdown").splitlines()
    before = ""
    for line in lines:
        cells = line.replace("\\|", "").count("|")
        if line.startswith("| ") and before.startswith("| "):
            assert cells == before.replace("\\|", "").count("|")
        before = line
    assert all(line == "" or line[:2] in ("| ", "- ", "**") for line in lines)


def test_markdown_has_no_pictures() -> None:
    assert not set(validation_table(two(), "markdown")) & set("▁▂▃▄▅▆▇█")


def records(found: Validation) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(validation_table(found, "csv"))))


class TestCsv:
    def test_a_line_a_number(self) -> None:
        found = two()
        table = {(r["part"], r["source"], r["name"], r["quantity"]): r["value"] for r in records(found)}
        assert len(table) == len(records(found))
        near = found.similarities[0]
        expected = {
            ("statistics", "human", "", "words"): 20.5,
            ("queries", "", "all", "words"): 12.38,
            ("terms", "llm", "Jaccard", "mean"): found.overlaps[0].jaccard.mean,
            ("terms", "llm", "overlap", "undefined"): 1,
            ("similarity", "llm", "twins", "above_0.95"): near.cosine.above(0.95),
            ("similarity", "llm", "dense:minilm", "auc"): 0.871,
            ("similarity", "llm", "dense:minilm", "nearest"): 0.9625,
            ("effectiveness", "llm", "bm25 nDCG@10", "p_equivalent"): 1e-05,
            ("check", "llm", "cut-off endings", "found"): 1,
        }
        assert {key: float(table[key]) for key in expected} == expected
        assert table["effectiveness", "llm", "bm25@5 nDCG@10", "outcome"] == "inconclusive"
        assert table["check", "llm", "cut-off endings", "verdict"] == "warning"

    def test_what_is_undefined_is_empty(self) -> None:
        rows = [r for r in records(two()) if r["name"] == "tfidf@1 nDCG@10"]
        assert {r["quantity"] for r in rows if not r["value"]} == {
            "low", "high", "p_different", "p_corrected", "p_equivalent", "smallest",
        }  # fmt: skip
        assert math.isnan(two().effectiveness[-1].low)

    def test_one_source(self) -> None:
        assert {row["part"] for row in records(one())} == {"statistics", "queries"}

    def test_notes_change_nothing(self) -> None:
        assert validation_table(two(), "csv", notes=False) == validation_table(two(), "csv")


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(rt.UserError, match=r"^unknown format 'html' \(valid: table, markdown, csv\)$"):
        validation_table(two(), "html")


def test_the_formats_are_listed() -> None:
    assert FORMATS == ("table", "markdown", "csv")
