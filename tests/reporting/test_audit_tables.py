"""The tables of an audit: every number stands in one, unrounded, in its tone; and what is said of card and controls."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ranktilt import Audit, Collection, audit, table
from ranktilt.measures.base import estimand
from ranktilt.reporting.document import Row, Table
from ranktilt.reporting.views.audit_tables import (
    card_legend,
    card_table,
    conflict_sentences,
    confound_table,
    control_sentences,
    control_table,
    group_table,
)
from tests.reporting.audits import clear, small, three, uneven
from tests.reporting.openings import opened, sources, ungrouped, unjudged
from tests.reporting.papers.tex_reader import shown
from tests.reporting.results import controlled, torn
from tests.toy import run_of, toy

PAIR = ("human", "llm")
NASTY = (r"a|b*c_d`e`<f>\g", "50%_of {x} & $1 #2 ~^", "Δ−–±|")
SCORES = {
    "q1": {"d1-human": 3.0, "d1-llm": 2.0, "d3-llm": 2.0, "d2-human": 1.0, "d3-human": 1.0},
    "q2": {"d1-llm": 5.0, "d2-llm": 4.0, "d2-human": 3.0},
    "q3": {"d3-human": 2.0, "d3-llm": 2.0, "d1-human": 1.0},
}


def carded(*, judged: bool = True, order: str = "score", **options: Any) -> Audit:
    """A card whose counts can be told with a pencil."""
    plain = toy()
    collection = plain if judged else Collection(plain.docs, plain.queries, plain.qrels.clear())
    run = run_of(collection, SCORES, ranker="hand", score_order=order)
    return audit(collection, run, "nDCG@1" if judged else None, card=True, depth=3, **options)


def front(row: Row) -> str:
    return row.cells[0].text


def of_run(found: Table, run: str) -> list[Row]:
    return [row for row in found.rows if row.group == (run,)]


class TestMain:
    def test_numbers_are_kept_unrounded(self) -> None:
        found = small()
        means = {(r["run"], r["measure"], r["group"]): r["mean"] for r in found.by_group().to_dicts()}
        for run in found.runs:
            everything, human, llm, delta = of_run(group_table(found), run)
            for place, measure in enumerate(map(repr, found.measures), start=1):
                for row, group in ((everything, "all"), (human, "human"), (llm, "llm")):
                    assert row.cells[place].value == means[run, measure, group]
                (tilt,) = (t for t in found.tilts if (t.run, t.measure) == (run, measure))
                assert delta.cells[place].value == tilt.value
            share = delta.cells[-1]
            assert (share.value, share.text) == (found.tied_share(run, *PAIR), f"{100 * (share.value or 0):.1f} %")

    def test_only_what_the_verdict_finds_is_coloured(self) -> None:
        found = group_table(opened().audit)
        tones = {run: [cell.tone for cell in of_run(found, run)[-1].cells[1:3]] for run in opened().audit.runs}
        assert tones == {"people": ["first", ""], "machines": ["second", ""], "nobody": ["", ""]}
        assert all(not c.tone for row in found.rows for c in row.cells if not front(row).startswith("Relative"))


def test_every_row_is_as_long_as_the_header() -> None:
    audits = (small(), opened().audit, uneven(), sources("human", "llama", "gpt").audit, ungrouped().audit)
    tables = [group_table(one) for one in audits]
    tables += [card_table(opened().audit), control_table(controlled()), card_table(unjudged().audit)]
    for one in tables:
        assert {len(row.cells) for row in one.rows} == {len(one.columns)}


@pytest.mark.parametrize(
    ("name", "value", "printed"),
    [
        ("RelativeDelta(nDCG@3)", 12.34, "+12.3 %"), ("NDSR@20", -0.0504, "−5.0 points"),
        ("NDSR@20", 0.00001, "0.0 points"), ("HeadToHead(pairs=relevant)", -0.25, "−25.0 %"),
        ("RankGap", -3.25, "−3.2 ranks"), ("ScoreGap", 10.5, "+10.500 sd"), ("ExposureRatio", 0.98, ".980"),
        ("ScoreGap", np.nan, "–"),
    ],
)  # fmt: skip
def test_an_answer_has_its_sign_and_unit(name: str, value: float, printed: str) -> None:
    assert estimand(name).answer(value) == printed
    assert estimand(name).amount(value) == printed.split()[0]


class TestCard:
    def test_by_hand(self) -> None:
        found = [tuple(cell.text for cell in row.cells) for row in card_table(carded()).rows]
        assert found == [
            ("Relative Δ nDCG@1", "+100.0 %", "[0.0, +200.0]", "1.000", "–", "3 queries"),
            ("ΔNDSR@3", "−11.9 points", "[−53.1, +23.5]", "1.000", "–", "3 queries"),
            ("head-to-head, relevant twins", "−25.0 %", "[−100.0, 0.0]", "1.000", "–",
             "4 pairs: human 1, llm 2, tied 1; 3 queries"),
            ("head-to-head, other twins", "+33.3 %", "[−100.0, +100.0]", "1.000", "–",
             "3 pairs: human 2, llm 1, tied 0; 3 queries"),
            ("pair rank gap", "−0.4 ranks", "[−1.0, 0.0]", "1.000", "–",
             "4 pairs, 0 % of sides not retrieved; 3 queries"),
            ("score gap", "−.306 sd", "[−1.225, .000]", "1.000", "–",
             "4 pairs with both sides retrieved, raw −0.25; 3 queries"),
        ]  # fmt: skip

    def test_a_run_without_scores_says_so(self) -> None:
        assert card_table(carded(order="rank")).rows[-1].cells[-1].text == "no pair with two scores"
        assert "without the score gap, which only describes" in card_legend(carded(order="rank"))[0]

    def test_a_conflict_is_said_agreement_is_not(self) -> None:
        sentence = (
            "torn: the answers conflict: ΔNDSR@20 and head-to-head, other twins point to human; Relative Δ nDCG@1 and "
            "head-to-head, relevant twins and pair rank gap point to llm. Say which question you ask before you say "
            "what this ranker favours."
        )
        assert conflict_sentences(torn()) == [sentence]
        printed = table(torn()).splitlines()
        assert printed[printed.index(sentence) - 1] == torn().verdict("torn").sentence
        assert conflict_sentences(carded()) == conflict_sentences(three()) == []


class TestControls:
    SENTENCE = (
        "longest, control length: Relative Δ on nDCG@1 moves from +200.0 to 0.0 %; "
        "the verdict from favours human to level"
    )

    def test_numbers_are_exact_and_what_was_not_applied_says_why(self) -> None:
        found = {front(row): row.cells for row in control_table(controlled()).rows}
        length = next(one for one in controlled().controls if one.control == "length")
        assert [cell.value for cell in found["length"][1:3]] == [t.value for t in length.tilts]
        assert (found["length"][3].value, found["length"][3].text) == (
            length.moves[0].value, "−200.0 [−200.0, −200.0]",
        )  # fmt: skip
        assert [cell.text for cell in found["tokens"][1:]] == ["", "", "", "no token limit"]

    def test_stars_and_sides_go_by_the_correction_over_the_whole_table(self) -> None:
        found = controlled()
        weak = tuple(
            replace(c, tilts=tuple(replace(t, p_corrected=0.06) for t in c.tilts)) for c in found.controls
        )  # fmt: skip
        cells = [[row.cells[1] for row in control_table(one).rows] for one in (found, replace(found, controls=weak))]
        assert [[cell.text for cell in some] for some in cells] == [
            ["+200.0*", "0.0", "", "+200.0*"], ["+200.0", "0.0", "", "+200.0"],
        ]  # fmt: skip
        assert [[cell.tone for cell in some] for some in cells] == [["first", "", "", "first"], [""] * 4]

    def test_a_verdict_that_a_control_changes_is_said(self) -> None:
        found = controlled()
        unsure = tuple(replace(c, moves=tuple(m._replace(high=1.0) for m in c.moves)) for c in found.controls)
        same = tuple(replace(c, tilts=found.controls[0].tilts) if c.tilts else c for c in found.controls)
        assert control_sentences(found) == [self.SENTENCE]
        for format, mark in (("table", ""), ("markdown", "- "), ("latex", "% ")):
            assert mark + self.SENTENCE in table(found, format).splitlines()
        assert control_sentences(replace(found, controls=unsure)) == []
        assert control_sentences(replace(found, controls=same)) == []


def test_confounds_of_sides_and_of_twins_stand_in_columns_of_their_own() -> None:
    found = opened().audit
    rows = confound_table(found).rows
    assert front(rows[0]) == "words a document"
    values = [(row.cells[1].value, row.cells[3].value) for row in rows]
    sided = ("words", "query words", "cut-off endings", "boilerplate openings")
    assert values == [(one.value_a, None) if one.name in sided else (None, one.value_a) for one in found.confounds]
    assert [cell.text for cell in rows[-3].cells] == ["the same text", "", "", "100.0 %", "40"]


def main_table(audit: Audit, format: str) -> str:
    """The print down to what else differs."""
    return table(audit, format).partition("Beside who wrote it")[0]


def markdown(audit: Audit) -> list[list[str]]:
    """Cells of the table as a reader of Markdown sees them, line by line."""
    lines = [line for line in main_table(audit, "markdown").splitlines() if line.startswith("|")]
    assert all(line.startswith("| ") and line.endswith(" |") for line in lines)
    cells = [re.split(r"(?<!\\) \| |^\| | \|$", line)[1:-1] for line in lines]
    return [[re.sub(r"\\(.)", r"\1", cell).strip() for cell in line] for line in cells]


def test_the_toy_with_a_pencil() -> None:
    head, rule, *body = markdown(small())
    assert head == ["ranker", "group", "nDCG@1", "nDCG@3", "AP@3", "queries", "tied twins"]
    assert rule == ["---", "---", *["---:"] * 5]
    assert [[label, *(cell.split(" [")[0] for cell in cells)] for _, label, *cells in body] == [
        ["all", "100.0", "100.0", "91.7", "3", ""],
        ["human", "66.7", "86.0", "77.8", "3", ""],
        ["llm", "33.3", "70.4", "58.3", "3", ""],
        ["Relative Δ", "+66.7", "+20.1", "+28.6", "3", "0.0 %"],
        ["all", "66.7", "53.8", "50.0", "3", ""],
        ["human", "16.7", "27.2", "25.0", "3", ""],
        ["llm", "50.0", "60.5", "58.3", "3", ""],
        ["Relative Δ", "−100.0", "−76.0", "−80.0", "3", "50.0 %"],
    ]


def test_markdown_shows_names_as_they_are() -> None:
    audit = clear(NASTY)
    grid = markdown(audit)
    assert {len(row) for row in grid} == {6}
    assert [row[0] for row in grid if row[0]] == ["ranker", "---", *NASTY]
    listed = [line for line in table(audit, "markdown").splitlines() if line.startswith("- ")]
    assert not re.search(r"(?<!\\)[|*_`<>]", "".join(listed))


def test_latex_shows_names_as_they_are_and_is_balanced() -> None:
    live = "\n".join(line for line in main_table(clear(NASTY), "latex").splitlines() if not line.startswith("%"))
    lines = [line.removesuffix(r" \\").split(" & ") for line in live.splitlines() if line.endswith(r"\\")]
    assert [shown(cells[0]) for cells in lines if cells[0]] == ["Ranker", *(name.replace("−", "-") for name in NASTY)]
    plain = live.replace(r"\\", "").replace(r"\{", "").replace(r"\}", "")
    assert plain.count("{") == plain.count("}")
    assert re.sub(r"\\[$]", "", plain).count("$") % 2 == 0
    assert not re.search(r"(?<!\\)[%#_~^]", live)
    assert re.findall(r"\\(begin|end)\{tabular\}(\{.*\})?", live) == [("begin", "{llrrrr}"), ("end", "")]
    assert [live.count(rule) for rule in (r"\toprule", r"\midrule", r"\bottomrule")] == [1, 3, 1]
    assert all(line.count(" & ") == 5 for line in live.splitlines() if line.endswith(r"\\") and r"\&" not in line)
