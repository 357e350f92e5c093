"""An audit's page in a real browser: every figure is drawn, nothing complains, and the numbers are the audit's."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from ranktilt.reporting.reload import LoadedAudit
from tests.reporting.audits import small, uneven
from tests.reporting.browser import Browser
from tests.reporting.openings import alone, audit_page, colours, many, opened, sources, ungrouped, unjudged
from tests.reporting.results import controlled as made

pytestmark = pytest.mark.long

WHOLE = {
    "opened": opened, "unjudged": unjudged, "ungrouped": ungrouped, "many": lambda: many(12), "colours": colours,
    "sources": lambda: sources("human", "llama", "gpt"), "small": lambda: LoadedAudit(small()),
    "uneven": lambda: LoadedAudit(uneven()), "controlled": lambda: LoadedAudit(made()),
    "alone": lambda: alone(opened()),
}  # fmt: skip


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("audits")
    found = {name: folder / f"{name}.html" for name in WHOLE}
    for name, path in found.items():
        path.write_text(audit_page(WHOLE[name]()), encoding="utf-8")
    return found


@pytest.mark.parametrize("name", list(WHOLE))
def test_every_figure_is_drawn_without_a_complaint(browser: Browser, pages: dict[str, Path], name: str) -> None:
    browser.open(pages[name])
    plots = browser.run("document.querySelectorAll('[data-figure]').length")
    assert browser.run("document.querySelectorAll('.plot svg.marks').length >= 1") is (plots > 0)
    assert browser.run("Number(document.documentElement.dataset.drawn ?? 0)") == plots
    assert browser.complaints == []
    assert browser.requests == [pages[name].as_uri()]


@pytest.mark.parametrize("width", [360, 1280])
def test_labels_and_ends_stay_inside_their_figure(browser: Browser, pages: dict[str, Path], width: int) -> None:
    browser.open(pages["opened"], width=width)
    outside = browser.run(
        "[...document.querySelectorAll('#tilt .plot')].flatMap(plot => { const box = plot.getBoundingClientRect();"
        " const texts = '.role-axis-label text, .role-axis-title text, .role-legend-label text';"
        " return [...plot.querySelectorAll(texts)].filter(text => {"
        " const at = text.getBoundingClientRect(); return at.left < box.left - 1 || at.right > box.right + 1; })"
        ".map(text => text.textContent); })"
    )
    assert outside == []


def test_rows_of_the_forest_do_not_overlap(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["opened"], width=1920)
    tops = browser.run(
        "[...document.querySelectorAll('#tilt .plot .role-axis-label text')].map(t => t.getBoundingClientRect())"
        ".filter(box => box.height).map(box => [box.top, box.bottom, box.left, box.right])"
    )
    rows = sorted(tops)[:9]
    assert all(lower[0] >= upper[1] - 3 for upper, lower in pairwise(rows))


def test_drawn_marks_are_the_tilts(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["opened"])
    drawn = browser.run(
        "(() => { const plot = document.querySelector('#tilt .plot'), scale = plot.view.scale('x');"
        " return [...plot.querySelectorAll('.mark-symbol.role-mark path')].map(path => path.getAttribute('transform')"
        ".match(/-?[\\d.]+/g).map(Number)).map(([x, y]) => [y, Math.round(scale.invert(x))]); })()"
    )
    assert [x for _, x in sorted(drawn)] == [t.value for t in opened().audit.tilts]


def test_side_has_its_colour_in_figure_and_table(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["opened"])
    colour = browser.run("getComputedStyle(document.documentElement).getPropertyValue('--first').trim()")
    marks = browser.run(
        "[...document.querySelectorAll('#tilt .mark-symbol.role-mark path')].map(m => m.getAttribute('fill'))"
    )
    assert colour in marks
    cell = browser.run("getComputedStyle(document.querySelector('#table-1 td.first')).color")
    assert cell == f"rgb({int(colour[1:3], 16)}, {int(colour[3:5], 16)}, {int(colour[5:7], 16)})"


def test_pointing_at_a_mark_tells_its_numbers(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["opened"])
    browser.run("document.querySelector('#tilt .plot').scrollIntoView({behavior: 'instant', block: 'center'})")
    x, y = browser.run(
        "(() => { const box = document.querySelector('#tilt .mark-symbol.role-mark path').getBoundingClientRect();"
        " return [box.x + box.width / 2, box.y + box.height / 2]; })()"
    )
    browser.point(x - 3, y)
    browser.point(x, y)
    browser.until("!document.querySelector('.tip').hidden")
    assert "Relative Δ" in browser.run("document.querySelector('.tip').textContent")
