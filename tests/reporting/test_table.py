"""The printed table: every number on it is the audit's, in every format."""

import re
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from ranktilt import Audit, table
from tests.reporting.audits import clear, small, three, uneven

Grid = list[list[str]]
AUDITS: dict[str, Callable[[], Audit]] = {"small": small, "clear": clear, "three": three, "uneven": uneven}
every_audit = pytest.mark.parametrize("name", AUDITS)


@cache
def of(name: str) -> Audit:
    """Make each audit once."""
    return AUDITS[name]()


def sign(value: float) -> str:
    """One decimal with its sign, a true minus; what rounds to nothing has none."""
    if np.isnan(value):
        return "–"
    text = f"{abs(value):.1f}"
    return text if text == "0.0" else ("+" if value > 0 else "−") + text


def interval(low: float, high: float) -> str:
    return f"[{sign(low)}, {sign(high)}]"


def expected(audit: Audit) -> Grid:
    """Build the whole grid from the audit's numbers: ranker, label, a cell a measure, queries, tied twins."""
    twins, grid = any(t.twins for t in audit.tilts), list[list[str]]()
    for r, run in enumerate(audit.runs):
        for g, group in enumerate(audit.groups):
            values = audit.values[r, :, g]
            means = [f"{100 * np.mean(row[~np.isnan(row)]):.1f}" for row in values]
            grid.append(["" if g else run, group, *means, str((~np.isnan(values[0])).sum()), *[""] * twins])
        for a, b in dict.fromkeys((t.a, t.b) for t in audit.tilts):
            tilts = [t for t in audit.tilts if (t.run, t.a, t.b) == (run, a, b)]
            label = "Relative Δ" if len(audit.groups) == 3 else f"Relative Δ {a} | {b}"
            deltas = [f"{sign(t.value)}{'*' * (t.p_corrected < 0.05)} {interval(t.low, t.high)}" for t in tilts]
            tied = audit.tied_share(run, a, b)
            share = "" if np.isnan(tied) else f"{100 * tied:.1f} %"
            grid.append(["", label, *deltas, str(tilts[0].queries), *[share] * twins])
            if not tilts[0].twins:
                grid.append(["", "random band", *(interval(t.band_low, t.band_high) for t in tilts), ""])
    return grid


def markdown_cells(line: str) -> list[str]:
    """Cells of a table's line, as a reader of Markdown sees them."""
    assert line.startswith("| ")
    assert line.endswith(" |")
    cells = re.split(r"(?<!\\) \| |^\| | \|$", line)[1:-1]
    return [re.sub(r"\\(.)", r"\1", cell).strip() for cell in cells]


UNTEX = {
    r"\textbackslash{}": "\\", r"\textasciitilde{}": "~", r"\textasciicircum{}": "^", r"\textbar{}": "|",
    r"\textless{}": "<", r"\textgreater{}": ">", "$-$": "−", r"$\Delta$": "Δ", r"$\alpha$": "α", r"$\pm$": "±",
    "--": "–", r"\ldots{}": "…",
    r"\&": "&", r"\%": "%", r"\$": "$", r"\#": "#", r"\_": "_", r"\{": "{", r"\}": "}",
}  # fmt: skip


def latex_cells(line: str) -> list[str]:
    """Cells of a table's line, as a reader of the page sees them."""
    assert line.endswith(r" \\")
    cells = line.removesuffix(r" \\").split(" & ") if not line.startswith(" & ") else ["", *line[3:-3].split(" & ")]
    return [
        "".join(UNTEX.get(p, p) for p in re.split(f"({'|'.join(map(re.escape, UNTEX))})", c)).strip() for c in cells
    ]


def main_table(audit: Audit, format: str) -> str:
    """The print down to what else differs."""
    return table(audit, format).partition("Beside who wrote it")[0]


def markdown(audit: Audit) -> Grid:
    lines = [line for line in main_table(audit, "markdown").splitlines() if line.startswith("|")]
    return [markdown_cells(line) for line in lines]


def latex(audit: Audit) -> Grid:
    return [latex_cells(line) for line in main_table(audit, "latex").splitlines() if line.endswith(r"\\")]


@every_audit
def test_markdown_holds_the_audits_numbers(name: str) -> None:
    audit = of(name)
    measures = [repr(m) for m in audit.measures]
    head, rule, *body = markdown(audit)
    assert head[: 3 + len(measures)] == ["ranker", "group", *measures, "queries"]
    assert rule == ["---", "---"] + ["---:"] * (len(head) - 2)
    assert body == expected(audit)


@every_audit
def test_latex_holds_the_audits_numbers(name: str) -> None:
    audit = of(name)
    measures = [repr(m) for m in audit.measures]
    head, *body = latex(audit)
    assert head[: 3 + len(measures)] == ["Ranker", "group", *measures, "queries"]
    assert body == expected(audit)


def test_the_toy_with_a_pencil() -> None:
    body = [[label, *(cell.split(" [")[0] for cell in cells)] for _, label, *cells in markdown(of("small"))[2:]]
    assert body == [
        ["all", "100.0", "100.0", "91.7", "3", ""],
        ["human", "66.7", "86.0", "77.8", "3", ""],
        ["llm", "33.3", "70.4", "58.3", "3", ""],
        ["Relative Δ", "+66.7", "+20.1", "+28.6", "3", "0.0 %"],
        ["all", "66.7", "53.8", "50.0", "3", ""],
        ["human", "16.7", "27.2", "25.0", "3", ""],
        ["llm", "50.0", "60.5", "58.3", "3", ""],
        ["Relative Δ", "−100.0", "−76.0", "−80.0", "3", "50.0 %"],
    ]


NASTY = (r"a|b*c_d`e`<f>\g", "50%_of {x} & $1 #2 ~^", "Δ−–±|")


def test_markdown_shows_names_as_they_are() -> None:
    audit = clear(NASTY)
    grid = markdown(audit)
    assert {len(row) for row in grid} == {6}
    assert [row[0] for row in grid if row[0]] == ["ranker", "---", *NASTY]
    listed = [line for line in table(audit, "markdown").splitlines() if line.startswith("- ")]
    assert not re.search(r"(?<!\\)[|*_`<>]", "".join(listed))


def test_latex_shows_names_as_they_are() -> None:
    audit = clear(NASTY)
    grid = latex(audit)
    assert {len(row) for row in grid} == {6}
    assert [row[0] for row in grid if row[0]] == ["Ranker", *NASTY]


def test_latex_is_balanced() -> None:
    text = main_table(clear(NASTY), "latex")
    live = "\n".join(line for line in text.splitlines() if not line.startswith("%"))
    plain = live.replace(r"\\", "").replace(r"\{", "").replace(r"\}", "")
    assert plain.count("{") == plain.count("}")
    assert re.sub(r"\\[$]", "", plain).count("$") % 2 == 0
    assert not re.search(r"(?<!\\)[%#_~^]", live)
    assert re.findall(r"\\(begin|end)\{tabular\}(\{.*\})?", live) == [("begin", "{llrrrr}"), ("end", "")]
    assert [live.count(rule) for rule in (r"\toprule", r"\midrule", r"\bottomrule")] == [1, 3, 1]
    assert all(line.count(" & ") == 5 for line in live.splitlines() if line.endswith(r"\\") and r"\&" not in line)
