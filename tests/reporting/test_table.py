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


def markdown(audit: Audit) -> Grid:
    lines = [line for line in table(audit, "markdown").splitlines() if line.startswith("|")]
    return [markdown_cells(line) for line in lines]


def latex(audit: Audit) -> Grid:
    return [latex_cells(line) for line in table(audit, "latex").splitlines() if line.endswith(r"\\")]


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


@every_audit
def test_the_plain_table_holds_the_audits_numbers(name: str) -> None:
    body = re.split("─\n", table(of(name)))[1].split("\n\n\n")[0]
    for run, label, *cells in expected(of(name)):
        assert not run or f"\n {run}\n" in f"\n{body}"
        values, intervals = zip(*((cell + " [").split(" [")[:2] for cell in cells if cell), strict=True)
        line = r"\s+".join(map(re.escape, filter(None, (label, *values))))
        below = r"\s+".join(re.escape(f"[{one}") for one in intervals if one)
        assert re.search(rf"{line}\s+{below}", body)


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


def test_undefined_values_are_dashes() -> None:
    audit = small()
    nothing = audit.values.copy()
    nothing[0, 1] = np.nan
    empty = Audit(
        audit.spec, audit.runs, audit.measures, audit.groups, audit.queries, nothing, audit.tilts, audit.pair_counts, ()
    )
    assert [row[3] for row in markdown(empty)[2:5]] == ["–", "–", "–"]


def test_groups_that_are_no_twins_have_a_random_band() -> None:
    audit = of("uneven")
    bands = [row[2:4] for row in markdown(audit) if row[1] == "random band"]
    assert bands == [[interval(t.band_low, t.band_high) for t in audit.tilts]]
    assert all(t.band_low < 0 < t.band_high for t in audit.tilts)
    note = "Groups are not twins: level is the median of random labels (shuffled within each query), not 0."
    assert f"- {note}" in table(audit, "markdown")
    assert "test against shuffled labels" in table(audit)
    for name in ("small", "clear", "three"):
        assert "random band" not in table(of(name))


def test_more_than_two_groups_have_a_row_and_a_sentence_a_pair() -> None:
    audit = of("three")
    pairs = ["human | gpt", "human | llama", "gpt | llama"]
    labels = [row[1] for row in markdown(audit)[2:] if row[1].startswith("Relative")]
    assert labels == [f"Relative Δ {pair}" for pair in pairs]
    text = table(audit)
    for pair, side in zip(pairs, ("human", "human", "gpt"), strict=True):
        assert f"{pair}: run favours {side} text: " in text
    assert "+ favours human, − favours gpt (and likewise for the other pairs)." in text


def test_without_groups_there_is_nothing_to_compare() -> None:
    audit = small(by=None)
    assert markdown(audit)[2:] == [
        ["first", "all", "100.0", "100.0", "91.7", "3"],
        ["second@5", "all", "66.7", "53.8", "50.0", "3"],
    ]
    text = table(audit)
    assert "Means in %." in text
    assert "Relative" not in text
    assert "favours" not in text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {},
            [
                "Holm over 2 tests of nDCG@3, and over the other 4; the larger p of a paired sign-flip permutation",
                "200 resamples",
                "Ties: expected value",
            ],
        ),
        (
            {"test": "t"},
            ["Holm over 2 tests of nDCG@3, and over the other 4; the larger p of a paired t test"],
        ),
        ({"correction": "bonferroni"}, ["(Bonferroni over 2 tests of nDCG@3, and over the other 4"]),
        ({"ties": "trec_eval"}, ["Ties: trec_eval's, by id."]),
        ({"rounding": "paper"}, ["Means rounded to 0.1 % as in the papers."]),
        ({"resamples": 1000}, ["1,000 resamples"]),
    ],
)
def test_the_legend_says_how_it_was_computed(options: dict[str, str], words: list[str]) -> None:
    text = table(small(**options))
    for word in words:
        assert word in text
    if "rounding" not in options:
        assert "rounded" not in text


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
    text = table(clear(NASTY), "latex")
    live = "\n".join(line for line in text.splitlines() if not line.startswith("%"))
    plain = live.replace(r"\\", "").replace(r"\{", "").replace(r"\}", "")
    assert plain.count("{") == plain.count("}")
    assert re.sub(r"\\[$]", "", plain).count("$") % 2 == 0
    assert not re.search(r"(?<!\\)[%#_~^]", live)
    assert re.findall(r"\\(begin|end)\{tabular\}(\{.*\})?", live) == [("begin", "{llrrrr}"), ("end", "")]
    assert [live.count(rule) for rule in (r"\toprule", r"\midrule", r"\bottomrule")] == [1, 3, 1]
    assert all(line.count(" & ") == 5 for line in live.splitlines() if line.endswith(r"\\") and r"\&" not in line)
