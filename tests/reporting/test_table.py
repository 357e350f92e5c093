"""The printed table, computed with a pencil, and names that would break it."""

import re

from ranktilt import Audit, table
from tests.reporting.audits import clear, small
from tests.reporting.papers.tex_reader import shown

NASTY = (r"a|b*c_d`e`<f>\g", "50%_of {x} & $1 #2 ~^", "Δ−–±|")


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
