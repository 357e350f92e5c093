"""Both pages in a real browser: no complaint, no request, nothing of a text's runs, and the numbers are there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ranktilt.probes.similarity import Map
from ranktilt.probes.validation import Validation
from ranktilt.reporting.document import Cell, Code, Column, Document, Row, Section, Table
from ranktilt.reporting.render.html import render as html_document
from tests.probes.validations import toy_effectiveness, toy_validation
from tests.reporting.browser import Browser
from tests.reporting.screen import html
from tests.reporting.studies import toy_study

pytestmark = pytest.mark.long

ATTACK = "</script><script>window.run=1</script><img src=x onerror='window.run=2'>"
ATTACKS = (
    ATTACK,
    "<a href=https://example.org>x</a><b onmouseover='window.run=3'>y</b>",
    "{{7*7}}{% for x in y %}${7*7}",
    "\u202egpj.exe\u2066",
    "%{x}<extra>z</extra>",
)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    texts = {"validation": html(toy_validation()), "study": html(toy_study())}
    found = {name: folder / f"{name} page.html" for name in texts}
    for name, path in found.items():
        path.write_text(texts[name], encoding="utf-8")
    return found


def hostile() -> Validation:
    """A validation in which every name is an attack."""
    validation = toy_validation(("human", ATTACK))
    ids = tuple(ATTACKS[n % len(ATTACKS)] + str(n) for n in range(40))
    sources = ("human",) * 20 + (ATTACK,) * 20
    drawn = Map(np.arange(40.0), np.arange(40.0) % 7, ids, sources, 40)
    rows = tuple(replace(row, run=attack, b=ATTACK) for row, attack in zip(toy_effectiveness(), ATTACKS, strict=True))
    return replace(
        validation,
        similarities=(replace(validation.similarities[0], map=drawn, model=ATTACK),),
        effectiveness=rows,
        notes=ATTACKS,
        spec={"path": ATTACK, "command": ATTACK, ATTACK: [ATTACK]},
    )


@pytest.mark.parametrize("name", ["validation", "study"])
def test_every_figure_is_drawn_within_its_place(browser: Browser, pages: dict[str, Path], name: str) -> None:
    browser.open(pages[name], width=360)
    sizes = browser.run("[...document.querySelectorAll('.plot')].map(p => [p.clientWidth, "
                        "Math.max(...[...p.querySelectorAll('svg.marks')].map(s => s.clientWidth))])")  # fmt: skip
    assert len(sizes) == browser.run("Number(document.documentElement.dataset.drawn)") > 0
    assert all(0 < drawn <= place for place, drawn in sizes)


def test_figures_follow_the_window(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["study"], width=1280)
    browser.call("Emulation.setDeviceMetricsOverride", width=500, height=900, deviceScaleFactor=1, mobile=False)
    browser.until("document.querySelector('.plot svg').clientWidth <= document.querySelector('.plot').clientWidth")
    assert browser.run("document.documentElement.scrollWidth") == 500


@pytest.mark.journey
def test_hostile_texts_run_nothing(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "hostile.html"
    path.write_text(html(hostile()), encoding="utf-8")
    browser.open(path)
    assert browser.run("window.run ?? null") is None
    assert (
        browser.run("document.querySelectorAll('img, main script:not([type]), [onerror], [onmouseover]').length") == 0
    )
    assert browser.run("document.querySelectorAll('.plot a[*|href]').length") == 0
    assert browser.complaints == []
    assert browser.requests == [path.as_uri()]
    assert "{{7*7}}" in browser.run("document.body.textContent")
    assert "\u202e" not in browser.run("document.documentElement.outerHTML")


@pytest.mark.parametrize("dark", [False, True])
def test_theme_follows_the_system(browser: Browser, pages: dict[str, Path], dark: bool) -> None:
    browser.open(pages["study"], dark=dark)
    ground = browser.run("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(16, 18, 22)" if dark else "rgb(245, 246, 248)")
    line = browser.run("document.querySelector('.plot .mark-line path').getAttribute('stroke')")
    assert line == ("#e193bd" if dark else "#b8578f")


def test_theme_is_switched_by_keyboard(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["study"])
    browser.run("document.getElementById('theme').focus()")
    browser.press("Enter")
    browser.until("document.querySelector('.plot .mark-line path').getAttribute('stroke') === '#e193bd'")
    assert browser.run("document.documentElement.dataset.theme") == "dark"
    assert browser.run("document.getElementById('theme').getAttribute('aria-pressed')") == "true"
    browser.press("Enter")
    browser.until("document.querySelector('.plot .mark-line path').getAttribute('stroke') === '#b8578f'")
    assert browser.complaints == []


def test_a_cut_table_has_a_shadow_and_its_first_column_stays(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["study"], width=360)
    name = "document.querySelector('#table tbody th').getBoundingClientRect().left"
    before = browser.run(name)
    assert (
        browser.run("(w => { w.scrollLeft = 200; return w.scrollLeft; })(document.querySelector('#table .wide'))")
        == 200
    )
    assert browser.run(name) == before
    for scrolled in ("#table .wide", "nav ul"):
        assert "gradient" in browser.run(f"getComputedStyle(document.querySelector('{scrolled}')).backgroundImage")


@pytest.mark.journey
def test_page_reads_without_scripts(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["validation"], scripts=False)
    browser.call("Emulation.setScriptExecutionDisabled", value=False)
    assert browser.run("document.querySelectorAll('tbody tr').length") > 20
    assert "Scripts are off" in browser.run("document.body.innerText")
    assert browser.run("document.getElementById('theme').hidden") is True
    assert browser.complaints == []


def test_page_prints_in_light_colours(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["study"], dark=True)
    browser.run("dispatchEvent(new Event('beforeprint'))")
    assert browser.run("document.querySelector('.plot .mark-line path').getAttribute('stroke')") == "#b8578f"
    browser.run("dispatchEvent(new Event('afterprint'))")
    browser.until("document.querySelector('.plot .mark-line path').getAttribute('stroke') === '#e193bd'")
    assert browser.run("'theme' in document.documentElement.dataset") is False
    assert len(browser.call("Page.printToPDF")["data"]) > 10_000


def test_nothing_is_cut_off_on_paper(browser: Browser, tmp_path: Path) -> None:
    columns = (Column("query", number=False, header=True), *(Column("part of Relative Δ") for _ in range(14)))
    cells = (Cell("why is the sea so salty"), *(Cell("−1.44", -1.44, "second") for _ in range(14)))
    parts = (Code("command", "ranktilt audit folder " + "-r bm25 " * 40), Table("Wide", columns, (Row(cells),)))
    path = tmp_path / "paper.html"
    path.write_text(html_document(Document("Test", "All is well.", (Section("a", "A", (), parts),))), encoding="utf-8")
    browser.open(path, width=794)
    browser.do(lambda one: one.emulate_media(media="print"))
    sizes = "['pre', 'html'].map(name => document.querySelector(name)).map(one => one.scrollWidth - one.clientWidth)"
    cut, seen = browser.run(sizes), browser.run("getComputedStyle(document.querySelector('pre')).overflowX")
    browser.do(lambda one: one.emulate_media(media="screen"))
    assert cut == [0, 0]
    assert seen == "visible"


def test_broken_library_is_said_and_its_places_go(browser: Browser, pages: dict[str, Path], tmp_path: Path) -> None:
    text = pages["study"].read_text(encoding="utf-8")
    start = text.index('id="engine">') + len('id="engine">')
    path = tmp_path / "broken.html"
    path.write_text(text[:start] + "AAAA" + text[start + 4 :], encoding="utf-8")
    browser.open(pages["study"])  # with scripts, whatever was before
    browser.call("Page.navigate", url=path.as_uri())
    browser.until("document.getElementById('undrawn') && !document.getElementById('undrawn').hidden")
    assert "could not be drawn" in browser.run("document.getElementById('undrawn').textContent")
    assert browser.run("document.querySelectorAll('.plot').length") == 0


def test_large_map_is_drawn(browser: Browser, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    pairs = 2000
    ids = tuple(f"d{n % pairs}-{'human' if n < pairs else 'llm'}" for n in range(2 * pairs))
    sources = ("human",) * pairs + ("llm",) * pairs
    validation = toy_validation()
    drawn = Map(rng.normal(size=2 * pairs), rng.normal(size=2 * pairs), ids, sources, pairs)
    path = tmp_path / "large.html"
    similar = replace(validation.similarities[0], map=drawn)
    path.write_text(html(replace(validation, similarities=(similar,))), encoding="utf-8")
    browser.open(path)
    assert browser.run("document.querySelectorAll('.plot .mark-symbol.role-mark path').length") > 2 * pairs
    assert browser.complaints == []
    assert path.stat().st_size < 3_000_000
