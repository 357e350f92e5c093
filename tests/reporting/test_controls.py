"""Raw beside controlled, as printed: the audit's numbers in every format, and what moved in words."""

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar

import numpy as np
import pytest

from ranktilt import Audit, Collection, audit, controls, table
from ranktilt.auditing.controls import CONTROLS
from ranktilt.auditing.result import RAW
from ranktilt.rankers.base import FirstStage, Rows, Scores
from ranktilt.reporting.controls import control_legend, control_rows, control_sentences, control_titles
from tests.reporting.audits import clear
from tests.toy import collection_of

PAIR = ("human", "llm")


@dataclass(frozen=True)
class Longest(FirstStage):
    """Ranks the documents of a query's number by their words."""

    name: ClassVar[str] = "longest"

    def candidates(self, collection: Collection, slack: int) -> Iterator[tuple[Rows, Scores]]:
        words = np.array([float(len(text.split())) for text in collection.texts(self.text)])
        number = np.array([int(name.partition("-")[0]) for name in collection.ids])
        for query in collection.judged["id"]:
            rows = np.flatnonzero(number == int(query[1:]))
            yield rows, words[rows]


@cache
def made(sources: tuple[str, ...] = PAIR) -> Audit:
    """40 queries with one pair each; human text has one word more, and every second title is shared."""
    docs = [
        {
            "id": f"{n}-{source}", "title": f"T{n}" if n % 2 else source, "source": source, "origin": f"{n}-human",
            "text": f"{source} w{n} v{n}" + " more" * (len(sources) - 1 - place),
        }
        for place, source in enumerate(sources) for n in range(40)
    ]  # fmt: skip
    grades = {f"q{n}": {f"{n}-{s}": 1 for s in sources} for n in range(40)}
    collection = collection_of(docs, dict.fromkeys(grades, "x"), grades)
    ranker = Longest()
    run = ranker.rank(collection)
    raw = audit(collection, run, ["nDCG@1", "R@2"], resamples=300)
    return controls(collection, [ranker], [run], raw, which=["length", "tokens", "titles"])


def grid(found: Audit) -> list[list[str]]:
    """Rows of the controls in Markdown: ranker, control, a cell a measure, moved, changed."""
    block = next(part for part in table(found, "markdown").split("\n\n") if part.startswith("| ranker | control"))
    return [[c.strip().replace("\\", "") for c in re.split(r" \| ", line[2:-2])] for line in block.splitlines()[2:]]


def test_titles_of_the_columns() -> None:
    assert control_titles(made()) == ("nDCG@1", "R@2", "moved on nDCG@1", "changed")


def test_markdown_by_hand() -> None:
    assert grid(made()) == [
        ["longest", "raw", "+200.0*", "0.0", "", ""],
        ["", "length", "0.0", "0.0", "−200.0 [−200.0, −200.0]", "40 of 80 documents changed"],
        ["", "tokens", "", "", "", "no token limit"],
        ["", "titles", "+200.0*", "0.0", "0.0 [0.0, 0.0]", "40 of 80 documents changed"],
    ]


def test_latex_holds_the_same_cells() -> None:
    body = table(made(), "latex").split(r"\begin{tabular}{llrrrl}")[1].split(r"\end{tabular}")[0]
    printed = [line for line in body.splitlines() if line.endswith(r"\\")]
    assert printed[0] == r"Ranker & control & nDCG@1 & R@2 & moved on nDCG@1 & changed \\"
    for line, cells in zip(printed[1:], grid(made()), strict=True):
        assert line.removesuffix(r" \\").replace("$-$", "−").split(" & ") == cells


def test_csv_has_a_line_a_control_and_measure_unrounded() -> None:
    rows = [r for r in csv.DictReader(io.StringIO(table(made(), "csv"))) if r["row"].startswith("control ")]
    names = [(c.control, t.measure) for c in made().controls for t in c.tilts]
    assert [(r["row"].removeprefix("control "), r["measure"]) for r in rows] == names
    assert len(rows) == 6
    tilts = [t for c in made().controls for t in c.tilts]
    moves = [m for c in made().controls for m in (c.moves or [None] * len(c.tilts))]
    for row, tilt, move in zip(rows, tilts, moves, strict=True):
        assert (row["run"], row["group"], row["queries"]) == ("longest", "human|llm", "40")
        for column in ("value", "low", "high", "p", "p_corrected", "detectable"):
            assert float(row[column]) == getattr(tilt, column)
        for column, name in (("moved", "value"), ("moved_low", "low"), ("moved_high", "high")):
            assert row[column] == "" if move is None else float(row[column]) == getattr(move, name)


def test_the_plain_page() -> None:
    block = table(made()).split("longest: raw and controlled\n")[1].split("\nlongest favours")[0]
    cells = [re.split(r"\s{2,}", line.strip()) for line in block.splitlines() if line.strip(" ─")]
    assert cells == [
        ["nDCG@1", "R@2", "moved on nDCG@1"],
        ["raw", "+200.0*", "0.0"],
        ["length", "0.0", "0.0", "−200.0 [−200.0, −200.0]"],
        ["40 of 80 documents changed"],
        ["tokens"],
        ["no token limit"],
        ["titles", "+200.0*", "0.0", "0.0 [0.0, 0.0]"],
        ["40 of 80 documents changed"],
    ]


def test_each_pair_has_its_rows_and_what_was_not_applied_stands_in_all() -> None:
    found = made(("human", "a", "b"))
    named = [row[0] for row in grid(found) if row[0]]
    assert named == ["longest, human and a", "longest, human and b", "longest, a and b"]
    for pair in found.pairs:
        assert [row.label for row in control_rows(found, "longest", pair)] == ["raw", "length", "tokens", "titles"]
    assert "longest, human | b: raw and controlled" in table(found)


def test_stars_and_sides_go_by_the_correction_over_the_whole_table() -> None:
    found = made()
    rows = control_rows(found, "longest", PAIR)
    assert [row.favoured for row in rows] == [("a", ""), ("", ""), ("", ""), ("a", "")]
    weak = tuple(
        replace(c, tilts=tuple(replace(t, p_corrected=0.06) for t in c.tilts)) for c in found.controls
    )  # fmt: skip
    rows = control_rows(replace(found, controls=weak), "longest", PAIR)
    assert [row.cells[:1] for row in rows] == [("+200.0",), ("0.0",), ("",), ("+200.0",)]
    assert [row.favoured[0] for row in rows] == ["", "", "", ""]


def test_an_undefined_value_is_a_dash() -> None:
    found = made()
    raw = replace(found.controls[0], tilts=tuple(replace(t, value=np.nan) for t in found.controls[0].tilts))
    rows = control_rows(replace(found, controls=(raw,)), "longest", PAIR)
    assert rows[0].cells[0].startswith("–")


class TestWords:
    SENTENCE = (
        "longest, control length: Relative Δ on nDCG@1 moves from +200.0 to 0.0 %; "
        "the verdict from favours human to level"
    )

    @pytest.mark.parametrize(("form", "mark"), [("table", ""), ("markdown", "- "), ("latex", "% ")])
    def test_a_verdict_that_a_control_changes_is_said(self, form: str, mark: str) -> None:
        assert control_sentences(made()) == [self.SENTENCE]
        assert mark + self.SENTENCE in table(made(), form).splitlines()

    def test_a_move_whose_interval_holds_0_is_not(self) -> None:
        found = made()
        unsure = tuple(replace(c, moves=tuple(m._replace(high=1.0) for m in c.moves)) for c in found.controls)
        assert control_sentences(replace(found, controls=unsure)) == []

    def test_a_verdict_that_stays_is_not(self) -> None:
        found = made()
        same = tuple(replace(c, tilts=found.controls[0].tilts) if c.tilts else c for c in found.controls)
        assert control_sentences(replace(found, controls=same)) == []

    def test_there_is_no_legend_where_no_control_was_applied(self) -> None:
        audit = made()
        raw = tuple(one for one in audit.controls if one.control == RAW)
        assert raw
        assert control_legend(replace(audit, controls=raw)) == []

    def test_the_legend_says_what_each_control_takes_away(self) -> None:
        (legend,) = control_legend(made())
        for name in ("length", "titles"):
            assert f"{name}: {CONTROLS[name]}" in legend
        assert "boilerplate" not in legend
        assert "tokens" not in legend  # it was not applied to any run
        assert "over the raw and controlled values together (6 tests)" in legend
        assert legend in table(made())

    def test_without_controls_nothing_is_said_of_them(self) -> None:
        assert control_legend(clear()) == []
        assert control_sentences(clear()) == []
        assert "control" not in table(clear())
