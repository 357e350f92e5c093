"""The explorer for everybody: in every width and both themes, by any pointer, read aloud, with the audit's numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ranktilt.reporting.document import Document, Section
from ranktilt.reporting.explorer.section import explorer
from ranktilt.reporting.render.html import render as html_document
from tests.reporting.browser import Browser
from tests.reporting.explorables import block, lists, page
from tests.reporting.explored import opened
from tests.reporting.test_explorer_browser import open_pair, open_query, rows, show

pytestmark = pytest.mark.long

VIEWS: dict[str, Callable[[Browser], None]] = {"queries": lambda browser: None, "list": open_query, "pair": open_pair}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pages") / "plain.html"
    path.write_text(page(block()), encoding="utf-8")
    return path


@pytest.mark.parametrize("width", [360, 1280])
def test_long_names_stay_inside(browser: Browser, tmp_path: Path, width: int) -> None:
    name, query = "n" * 120, "q" * 300
    content = lists(groups=["human", name], pairs=[["human", name]], runs=[name, "dense"], measures=[name, "RR"])
    content["queries"][0]["text"] = content["docs"]["title"][0] = content["docs"]["id"][0] = query
    path = tmp_path / "long.html"
    path.write_text(page(block(content)), encoding="utf-8")
    browser.open(path, width=width)
    show(browser)
    assert browser.overflow == 0
    for view in (open_query, open_pair):
        view(browser)
        assert browser.overflow == 0
        browser.press("Escape")
        browser.press("Escape")


@pytest.mark.parametrize("view", VIEWS)
def test_everything_that_acts_is_large_enough_to_hit(browser: Browser, plain: Path, view: str) -> None:
    browser.open(plain, width=360)
    show(browser)
    VIEWS[view](browser)
    sizes = browser.run(
        "[...document.querySelectorAll('.explorer :is(button, select, input[type=search], .switch), nav a')]"
        ".map(e => [e.outerHTML, e.getBoundingClientRect()]).map(([html, box]) => [html, box.width, box.height])"
    )
    assert sizes
    assert [html for html, width, height in sizes if min(width, height) < 24] == []


def test_navigation_says_where_the_reader_is(browser: Browser, plain: Path) -> None:
    browser.open(plain)
    browser.click("nav a[href='#after']")
    browser.until("document.querySelector('nav [aria-current]')?.textContent === 'After'")
    browser.run("document.getElementById('queries').scrollIntoView({behavior: 'instant'})")
    browser.until("document.querySelector('nav [aria-current]')?.textContent === 'Queries'")
    assert browser.run("document.querySelectorAll('nav [aria-current]').length") == 1
    assert browser.run("document.querySelector('nav').getBoundingClientRect().top") == 0


def test_navigation_shows_the_sections_of_the_part_that_is_read(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "parts.html"
    parts = (("Audit", ("one", "two")), ("Study", ("three", "four")))
    sections = tuple(Section(name, name, ("Text. " * 2000,), part=part) for part, names in parts for name in names)
    path.write_text(html_document(Document("Test", "All is well.", sections)), encoding="utf-8")
    browser.open(path)
    shown = "[...document.querySelectorAll('nav a')].filter(a => a.checkVisibility()).map(a => a.textContent).join(' ')"
    assert browser.run(shown) == "Audit Study Method notes one two"
    browser.click("nav a[href='#three-part']")
    browser.until(f"{shown} === 'Audit Study Method notes three four'")
    heading, below = browser.run(
        "['h2#three-part', 'nav'].map(one => document.querySelector(one).getBoundingClientRect())"
        ".map((box, n) => n ? box.bottom : box.top)"
    )
    assert heading >= below
    marked = "[...document.querySelectorAll('nav [aria-current]')].map(a => a.textContent).join(' ')"
    browser.until(f"{marked} === 'Study three'")
    browser.open(path, scripts=False)
    assert browser.do(lambda one: one.locator("nav ul:visible").count()) == 3


def test_what_is_focused_is_not_behind_the_navigation(browser: Browser, plain: Path) -> None:
    browser.open(plain, height=400)
    show(browser)
    browser.run("document.querySelector('.pager button').focus()")
    below = "document.querySelector('nav').getBoundingClientRect().bottom"
    for _ in range(20):
        browser.press("Shift+Tab")
        at = "document.activeElement"
        assert browser.run(f"{at}.closest('nav, .top') || {at}.getBoundingClientRect().bottom > {below}")


def test_numbers_of_the_page_are_those_of_the_audit(browser: Browser, tmp_path: Path) -> None:
    given = opened()
    made = explorer(given)
    assert made is not None
    path = tmp_path / "audit.html"
    path.write_text(page(made), encoding="utf-8")
    browser.open(path)
    show(browser)
    cells = browser.run(
        "[...document.querySelectorAll('.queries tbody tr')].map(row => [row.querySelector('small').textContent,"
        " ...[...row.cells].slice(1).map(cell => cell.dataset.value ?? null)])"
    )
    audit = given.audit
    assert sorted(row[0] for row in cells) == sorted(audit.queries)
    for name, points, *values in cells:
        at = audit.queries.index(name)
        known = [float(audit.values[0, 0, column, at]) for column in (1, 2, 0)]
        assert [float(value) for value in values[:3]] == pytest.approx(known, rel=1e-4)
        means = [sum(audit.values[0, 0, column]) / len(audit.queries) for column in (1, 2)]
        share = 200 * (known[0] - known[1]) / (len(audit.queries) * sum(means))
        assert float(points) == pytest.approx(share, rel=1e-4)
    assert sum(float(row[1]) for row in cells) == pytest.approx(audit.tilts[0].value, rel=1e-3)
    browser.click("[data-query='0']")
    browser.until("document.querySelector('.explorer .start')")
    assert rows(browser, ".results")[0][0] == "1"
    assert browser.complaints == []
