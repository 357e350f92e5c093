"""Pages in a real browser: every figure is drawn, nothing complains, asks for anything or runs,
numbers are there.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from ranktilt.reporting.document import Cell, Code, Column, Document, Row, Section, Table
from ranktilt.reporting.reload import LoadedAudit
from ranktilt.reporting.render.html import render as html_document
from ranktilt.reporting.report import report_page
from tests.explaining.checks import toy_check
from tests.reporting.audits import small, toy_source_audits, uneven
from tests.reporting.browser import Browser
from tests.reporting.openings import alone, colours, many, opened, sources, ungrouped, unjudged
from tests.reporting.readers import html
from tests.reporting.results import controlled as controlled_audit

pytestmark = pytest.mark.long

WHOLE = {
    "opened": opened,
    "unjudged": unjudged,
    "ungrouped": ungrouped,
    "many": lambda: many(12),
    "colours": colours,
    "sources": lambda: sources("human", "llama", "gpt"),
    "small": lambda: LoadedAudit(small()),
    "uneven": lambda: LoadedAudit(uneven()),
    "controlled": lambda: LoadedAudit(controlled_audit()),
    "alone": lambda: alone(opened()),
}
RESULTS = {"check": toy_check, "sources": toy_source_audits}
EVERY = (*WHOLE, *RESULTS)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    paths = {name: folder / f"{name} page.html" for name in EVERY}
    for name, path in paths.items():
        path.write_text(
            report_page([WHOLE[name]()]) if name in WHOLE else html(RESULTS[name]()),
            encoding="utf-8",
        )
    return paths


@pytest.mark.parametrize("name", EVERY)
def test_every_figure_is_drawn_within_its_place(
    browser: Browser, pages: dict[str, Path], name: str
) -> None:
    browser.open(pages[name], width=360)
    browser.run("document.querySelectorAll('details').forEach(fold => { fold.open = true; })")
    browser.until(
        "!document.querySelector('[data-figure]') || "
        "Number(document.documentElement.dataset.drawn) "
        "=== document.querySelectorAll('.plot').length"
    )
    sizes = browser.run(
        "[...document.querySelectorAll('.plot')].map(p => [p.clientWidth, "
        "Math.max(...[...p.querySelectorAll('svg.marks')].map(s => s.clientWidth))])"
    )
    assert len(sizes) == browser.run("Number(document.documentElement.dataset.drawn ?? 0)")
    assert bool(sizes) == (name != "ungrouped")
    assert all(0 < drawn <= limit for limit, drawn in sizes)
    assert browser.complaints == []
    assert browser.requests == [pages[name].as_uri()]


@pytest.mark.parametrize("width", [360, 1280])
def test_labels_and_ends_stay_inside_their_figure(
    browser: Browser, pages: dict[str, Path], width: int
) -> None:
    browser.open(pages["opened"], width=width)
    outside = browser.run(
        "[...document.querySelectorAll('#tilt .plot')].flatMap(plot => { const box = "
        "plot.getBoundingClientRect();"
        " const texts = '.role-axis-label text, .role-axis-title text, .role-legend-label text';"
        " return [...plot.querySelectorAll(texts)].filter(text => {"
        " const at = text.getBoundingClientRect(); return at.left < box.left - 1 || at.right > "
        "box.right + 1; })"
        ".map(text => text.textContent); })"
    )
    assert outside == []


def test_rows_of_the_forest_do_not_overlap(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["opened"], width=1920)
    tops = browser.run(
        "[...document.querySelectorAll('#tilt .plot .role-axis-label text')].map(t => "
        "t.getBoundingClientRect())"
        ".filter(box => box.height).map(box => [box.top, box.bottom, box.left, box.right])"
    )
    rows = sorted(tops)[:9]
    assert all(lower[0] >= upper[1] - 3 for upper, lower in pairwise(rows))


def test_drawn_marks_are_the_tilts_have_their_colour_and_tell_numbers(
    browser: Browser, pages: dict[str, Path]
) -> None:
    browser.open(pages["opened"])
    drawn = browser.run(
        "(() => { const plot = document.querySelector('#tilt .plot'), scale = plot.view.scale('x');"
        " return [...plot.querySelectorAll('.mark-symbol.role-mark path')].map(path => "
        "path.getAttribute('transform')"
        ".match(/-?[\\d.]+/g).map(Number)).map(([x, y]) => [y, Math.round(scale.invert(x))]); })()"
    )
    assert [x for _, x in sorted(drawn)] == [t.value for t in opened().audit.tilts]
    colour = browser.run(
        "getComputedStyle(document.documentElement).getPropertyValue('--first').trim()"
    )
    fills = (
        "[...document.querySelectorAll('#tilt .mark-symbol.role-mark path')].map(m => "
        "m.getAttribute('fill'))"
    )
    marks = browser.run(fills)
    assert colour in marks
    cell = browser.run("getComputedStyle(document.querySelector('#table-1 td.first')).color")
    assert cell == f"rgb({int(colour[1:3], 16)}, {int(colour[3:5], 16)}, {int(colour[5:7], 16)})"
    browser.run(
        "document.querySelector('#tilt .plot').scrollIntoView({behavior: 'instant', block: "
        "'center'})"
    )
    x, y = browser.run(
        "(() => { const box = document.querySelector('#tilt .mark-symbol.role-mark "
        "path').getBoundingClientRect();"
        " return [box.x + box.width / 2, box.y + box.height / 2]; })()"
    )
    browser.point(x - 3, y)
    browser.point(x, y)
    browser.until("!document.querySelector('.tip').hidden")
    assert "Relative Δ" in browser.run("document.querySelector('.tip').textContent")


def test_figures_follow_the_window(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["sources"], width=1280)
    browser.size(500)
    browser.until(
        "document.querySelector('.plot svg').clientWidth <= "
        "document.querySelector('.plot').clientWidth"
    )
    assert browser.run("document.documentElement.scrollWidth") == 500


def test_theme_follows_the_system_and_is_switched_by_keyboard(
    browser: Browser, pages: dict[str, Path]
) -> None:
    line = "document.querySelector('.plot .mark-line path').getAttribute('stroke')"
    for dark, ground, colour in (
        (True, "rgb(16, 18, 22)", "#e193bd"),
        (False, "rgb(245, 246, 248)", "#b8578f"),
    ):
        browser.open(pages["sources"], dark=dark)
        assert browser.run("getComputedStyle(document.body).backgroundColor") == ground
        assert browser.run(line) == colour
    browser.run("document.getElementById('theme').focus()")
    browser.press("Enter")
    browser.until(f"{line} === '#e193bd'")
    assert browser.run("document.documentElement.dataset.theme") == "dark"
    assert browser.run("document.getElementById('theme').getAttribute('aria-pressed')") == "true"
    browser.press("Enter")
    browser.until(f"{line} === '#b8578f'")
    assert browser.complaints == []


def test_a_cut_table_has_a_shadow_and_its_first_column_stays(
    browser: Browser, pages: dict[str, Path]
) -> None:
    browser.open(pages["sources"], width=360)
    name = "document.querySelector('#table tbody th').getBoundingClientRect().left"
    before = browser.run(name)
    scroll = (
        "(w => { w.scrollLeft = 100; return w.scrollLeft; })(document.querySelector('#table "
        ".wide'))"
    )
    assert browser.run(scroll) == 100
    assert browser.run(name) == before
    for scrolled in ("#table .wide", "nav ul"):
        assert "gradient" in browser.run(
            f"getComputedStyle(document.querySelector('{scrolled}')).backgroundImage"
        )


@pytest.mark.journey
def test_page_reads_without_scripts(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["check"], scripts=False)
    browser.call("Emulation.setScriptExecutionDisabled", value=False)
    assert browser.run("document.querySelectorAll('tbody tr').length") > 20
    assert "Scripts are off" in browser.run("document.body.innerText")
    assert browser.run("document.getElementById('theme').hidden") is True
    assert browser.complaints == []


def test_page_prints_in_light_colours(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["sources"], dark=True)
    browser.run("dispatchEvent(new Event('beforeprint'))")
    assert (
        browser.run("document.querySelector('.plot .mark-line path').getAttribute('stroke')")
        == "#b8578f"
    )
    browser.run("dispatchEvent(new Event('afterprint'))")
    browser.until(
        "document.querySelector('.plot .mark-line path').getAttribute('stroke') === '#e193bd'"
    )
    assert browser.run("'theme' in document.documentElement.dataset") is False
    assert len(browser.call("Page.printToPDF")["data"]) > 10_000


def test_page_prints_in_light_colours_without_scripts(
    browser: Browser, pages: dict[str, Path]
) -> None:
    browser.open(pages["check"], scripts=False, dark=True)
    browser.call("Emulation.setScriptExecutionDisabled", value=False)
    ink = "getComputedStyle(document.body).color"
    assert browser.run(ink) == "rgb(233, 235, 239)"
    browser.do(lambda page: page.emulate_media(media="print"))
    assert browser.run(ink) == "rgb(23, 25, 29)"


def test_nothing_is_cut_off_on_paper(browser: Browser, tmp_path: Path) -> None:
    columns = (
        Column("query", number=False, header=True),
        *(Column("part of Relative Δ") for _ in range(14)),
    )
    cells = (Cell("why is the sea so salty"), *(Cell("−1.44", -1.44, "second") for _ in range(14)))
    parts = (
        Code(label="command", text="ranktilt audit folder " + "-r bm25 " * 40),
        Table("Wide", columns, (Row(cells),)),
    )
    path = tmp_path / "paper.html"
    path.write_text(
        html_document(
            Document(
                kind="Test", headline="All is well.", sections=(Section("a", "A", blocks=parts),)
            )
        ),
        encoding="utf-8",
    )
    browser.open(path, width=794)
    browser.do(lambda page: page.emulate_media(media="print"))
    sizes = (
        "['pre', 'html'].map(name => document.querySelector(name)).map(one => one.scrollWidth "
        "- one.clientWidth)"
    )
    cut, seen = (
        browser.run(sizes),
        browser.run("getComputedStyle(document.querySelector('pre')).overflowX"),
    )
    browser.do(lambda page: page.emulate_media(media="screen"))
    assert cut == [0, 0]
    assert seen == "visible"


def test_broken_library_is_said_and_its_places_go(
    browser: Browser, pages: dict[str, Path], tmp_path: Path
) -> None:
    text = pages["sources"].read_text(encoding="utf-8")
    start = text.index('id="engine">') + len('id="engine">')
    path = tmp_path / "broken.html"
    path.write_text(text[:start] + "AAAA" + text[start + 4 :], encoding="utf-8")
    browser.open(pages["sources"])  # with scripts, whatever was before
    browser.call("Page.navigate", url=path.as_uri())
    browser.until(
        "document.getElementById('undrawn') && !document.getElementById('undrawn').hidden"
    )
    assert "could not be drawn" in browser.run("document.getElementById('undrawn').textContent")
    assert browser.run("document.querySelectorAll('.plot').length") == 0
