"""The explorer in a real browser: finding and opening queries, lists and texts by any pointer, in
any width.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ranktilt.reporting.document import Document, Section
from ranktilt.reporting.render.html import render as html_document
from tests.reporting.browser import Browser
from tests.reporting.openings import QUERIES, TEXTS, UNDEFINED, block, lists, page, part

pytestmark = pytest.mark.long

SIZES = sorted(
    (q for q in range(QUERIES) if q not in UNDEFINED), key=lambda q: (-abs(part(q) or 0), q)
)
"""Queries as they stand at first: by the size of their part, those before that come before."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="module")
def plain(folder: Path) -> Path:
    path = folder / "plain.html"
    path.write_text(page(block()), encoding="utf-8")
    return path


@pytest.fixture
def enter(browser: Browser, plain: Path) -> Callable[..., Browser]:
    def go(path: Path = plain, **options: Any) -> Browser:
        browser.open(path, **options)
        show(browser)
        return browser

    return go


def show(browser: Browser) -> None:
    browser.run("document.querySelector('.explorer').scrollIntoView({behavior: 'instant'})")
    browser.until("document.querySelector('.explorer .controls')")


def open_query(browser: Browser, query: int = 0) -> None:
    browser.fill("input[type=search]", f"q{query:02}")
    browser.click(f"[data-query='{query}']")
    browser.until("document.querySelector('.explorer h3')")


def open_pair(browser: Browser, doc: int = 0) -> None:
    open_query(browser)
    browser.until("document.querySelector('.explorer .start')")
    browser.click(f"[data-doc='{doc}']")
    browser.until("document.querySelector('.explorer article')")


def order(browser: Browser) -> list[int]:
    queries = browser.run(
        "[...document.querySelectorAll('.queries .open')].map(o => o.dataset.query)"
    )
    return list(map(int, queries))


def rows(browser: Browser, selector: str) -> list[list[str]]:
    cells: list[list[str]] = browser.run(
        f"[...document.querySelectorAll({selector!r} + ' tbody tr')].map(row => "
        "[...row.cells].map(cell => cell.innerText.replace(/\\s+/g, ' ').trim()))"
    )
    return cells


def status(browser: Browser) -> str:
    return str(browser.run("document.querySelector('.explorer [role=status]').textContent"))


def focused(browser: Browser) -> str:
    return str(browser.run("document.activeElement.textContent"))


def test_explorer_replaces_rows_when_near_but_not_on_paper(browser: Browser, plain: Path) -> None:
    browser.open(plain, height=300)
    assert browser.run("document.querySelector('.explorer .controls')") is None
    show(browser)
    visible = (
        "['.rows', '.explorer', 'nav'].map(part => document.querySelector(part).checkVisibility())"
    )
    assert browser.run(visible) == [False, True, True]
    browser.do(lambda page: page.emulate_media(media="print"))
    printed = browser.run(visible)
    browser.do(lambda page: page.emulate_media(media="screen"))
    assert printed == [True, False, False]
    assert browser.complaints == []
    assert browser.requests == [plain.as_uri()]


def test_queries_that_contribute_most_stand_first_and_sorting_goes_round(
    enter: Callable[..., Browser],
) -> None:
    browser = enter()
    assert order(browser) == SIZES[:25]
    assert status(browser) == "1–25 of 30 queries"
    assert browser.run("document.querySelector('[aria-sort]').getAttribute('aria-sort')") == "other"
    front = rows(browser, ".queries")[0]
    assert front == ["the river number 29 q29", "▲ +19.0", "29.0", "25.0", "50.0", "29 of 32", "3"]
    values = browser.run(
        "[...document.querySelector('.queries tbody tr').cells].map(cell => cell.dataset.value)"
    )
    assert values == [None, "19", "0.29", "0.25", "0.5", "29", "3"]
    browser.click("[aria-label='Next queries']")
    assert order(browser) == [*SIZES[25:], *UNDEFINED]
    assert status(browser) == "26–30 of 30 queries"
    browser.press("Enter")
    assert status(browser) == "26–30 of 30 queries"
    assert focused(browser) == "Next \u203a"
    browser.click("[aria-label='Previous queries']")
    assert order(browser) == SIZES[:25]
    browser = enter()
    defined = [q for q in range(QUERIES) if q not in UNDEFINED]
    for way, expected in (("descending", defined[::-1]), ("ascending", defined), ("other", SIZES)):
        browser.click("[data-keep='sort-part']")
        assert browser.run("document.querySelector('[aria-sort]').getAttribute('aria-sort')") == way
        assert order(browser) == expected[:25]
        browser.click("[aria-label='Next queries']")
        assert order(browser)[-2:] == list(UNDEFINED)
    browser.click("[data-keep='sort-text']")
    assert order(browser)[:3] == [0, 10, 12]


@pytest.mark.parametrize(
    ("typed", "count"),
    [
        ("river", 15),
        ("RIVER", 15),
        ("river 2", 5),
        ("q07", 1),
        ("bell", 15),
        ("  ", 30),
        ("nothing of it", 0),
    ],
)
def test_search_takes_every_word_in_text_or_id(
    enter: Callable[..., Browser], typed: str, count: int
) -> None:
    browser = enter()
    browser.fill("input[type=search]", typed)
    assert len(order(browser)) == min(count, 25)
    noun = "query" if count == 1 else "queries"
    assert f"{count} {noun}" + (f" with “{typed}”" if typed.strip() else "") in status(browser)
    assert (
        browser.run("document.querySelector('.explorer [role=status]').getAttribute('aria-live')")
        == "polite"
    )


def test_another_ranker_and_measure_show_their_numbers_in_colours_and_bars(
    enter: Callable[..., Browser],
) -> None:
    browser = enter()
    browser.choose(".controls label:nth-child(2) select", "RR")
    assert rows(browser, ".queries")[0][1] == "▲ +9.50"
    browser.choose(".controls select", "dense")
    assert {row[1] for row in rows(browser, ".queries")} == {"▲ +0.250"}
    assert rows(browser, ".queries")[0][5] == "–"
    assert "Relative Δ of dense by RR: +7.5 %" in browser.run(
        "document.querySelector('.key').textContent"
    )
    browser = enter()
    marks = browser.run(
        "[29, 0].map(q => document.querySelector(`[data-query='${q}']`).closest('tr')).map(row => {"
        " const t = row.querySelector('.tilt');"
        " const [bar, track] = ['i', '.bar'].map(one => "
        "t.querySelector(one).getBoundingClientRect());"
        " const right = bar.left + bar.width / 2 - track.left - track.width / 2;"
        " const colour = getComputedStyle(t).color;"
        " return [t.className, t.innerText.trim(), colour, right > 0, 200 * bar.width / "
        "track.width];"
        " })"
    )
    assert [mark[0] for mark in marks] == ["tilt first", "tilt second"]
    assert [mark[1] for mark in marks] == ["▲ +19.0", "▼ −10.0"]
    assert marks[0][2] != marks[1][2]
    assert [mark[3] for mark in marks] == [True, False]
    assert [mark[4] for mark in marks] == pytest.approx([100, 100 * 10 / 19], abs=2)


def test_a_query_opens_with_its_ranked_list_and_another_rankers(
    enter: Callable[..., Browser],
) -> None:
    browser = enter()
    open_query(browser)
    browser.until("document.querySelector('.explorer .start')")
    assert focused(browser) == "bell 0"
    first, second = (f"Rivers {TEXTS[side]}" for side in (0, 1))
    assert rows(browser, ".results") == [
        ["1", f"H human relevant, grade 2 {first}", "twin at 14, lower", "9.5"],
        ["2–3", "H human d1-h A bell rings in the tower.", "twin tied with it", "7.25"],
        ["2–3", "L llm relevant d1-l In the tower a bell rings.", "twin tied with it", "7.25"],
        ["4", "H human Alone Alone in its group.", "no twin", "1"],
        ["Further down: other relevant documents, and twins of those above"],
        ["14", f"L llm relevant {second}", "twin at 1, higher", "0.125"],
    ]
    caption = browser.run("document.querySelector('.results caption').textContent")
    assert caption == "What bm25 returns: the first 4 of 20 documents"
    assert "3 pairs of relevant twins: human ranks higher in 2, llm in 1, tied 0." in browser.run(
        "document.querySelector('.explorer').textContent"
    )
    assert [row[:2] for row in rows(browser, ".overview")] == [
        ["bm25", "▼ −10.0"],
        ["dense", "▲ +0.3"],
    ]
    browser.click("[data-keep='run-1']")
    assert rows(browser, ".results")[0][::3] == ["1", "3"]
    assert rows(browser, ".results")[0][2] == "twin not retrieved"
    assert rows(browser, ".results")[2][::2] == ["–", "twin at 1"]
    assert "3 more relevant documents" in browser.run(
        "document.querySelector('.lists').textContent"
    )
    assert focused(browser) == "dense"
    assert browser.run("document.activeElement.getAttribute('aria-pressed')") == "true"
    assert browser.run("document.querySelector('.controls select').value") == "1"
    assert browser.complaints == []


@pytest.mark.journey
def test_everything_works_by_keyboard_alone(enter: Callable[..., Browser]) -> None:
    browser = enter()
    browser.run("document.querySelector('.explorer input').focus()")
    browser.type("q00")
    browser.until("document.querySelectorAll('.queries .open').length === 1")
    for _ in range(30):
        if browser.run("document.activeElement.matches('.open')"):
            break
        browser.press("Tab")
    browser.press("Enter")
    browser.until("document.querySelector('.explorer .start')")
    assert focused(browser) == "bell 0"
    while not browser.run("document.activeElement.matches('.open')"):
        browser.press("Tab")
    browser.press("ArrowDown")
    assert focused(browser) == "d1-h"
    browser.press("ArrowUp")
    browser.press("Space")
    browser.until("document.querySelector('.explorer article')")
    assert focused(browser) == "Two texts of one document"
    browser.press("Escape")
    assert browser.run("document.activeElement.dataset.doc") == "0"
    browser.press("Escape")
    assert browser.run("document.activeElement.dataset.query") == "0"
    assert status(browser) == "1–1 of 1 query with “q00”"
    browser.press("Escape")
    assert browser.complaints == []


def test_address_leads_back_to_what_was_open(enter: Callable[..., Browser], plain: Path) -> None:
    browser = enter()
    open_pair(browser)
    address = browser.run("location.href")
    assert address.endswith("#queries-1-explorer?q=q00&r=bm25&d=d0-h")
    browser.run("history.back()")
    browser.until("document.querySelector('.explorer .results')")
    browser.run("history.back()")
    browser.until("document.querySelector('.explorer .queries')")
    browser.open("about:blank")
    browser.open(address)
    browser.until("document.querySelector('.explorer article')")
    assert [request.split("#")[0] for request in browser.requests] == [plain.as_uri()]


def test_damaged_lists_are_said_and_the_rows_come_back(browser: Browser, folder: Path) -> None:
    path = folder / "damaged.html"
    part = block()
    path.write_text(page(part).replace(part.lists, "AAAA"), encoding="utf-8")
    browser.open(path)
    browser.run("document.querySelector('.explorer').scrollIntoView({behavior: 'instant'})")
    browser.until("document.querySelector('.explorer [role=status]')")
    assert status(browser).startswith("The queries could not be opened (")
    assert browser.run("document.querySelector('.rows').checkVisibility()") is True


def test_going_back_closes_what_was_opened_in_another_explorer(
    browser: Browser, folder: Path
) -> None:
    path = folder / "both.html"
    path.write_text(page(block(), block(lists(runs=["other", "dense"]))), encoding="utf-8")
    browser.open(path)
    show(browser)
    browser.click("#queries [data-query='29']")
    browser.until("document.querySelector('#queries h3')")
    browser.run(
        "document.querySelector('#queries1 .explorer').scrollIntoView({behavior: 'instant'})"
    )
    browser.until("document.querySelector('#queries1 .explorer .controls')")
    browser.click("#queries1 [data-query='28']")
    browser.until("document.querySelector('#queries1 h3')")
    browser.run("history.back()")
    browser.until("document.querySelector('#queries1 .queries')")
    assert browser.run("document.querySelector('#queries h3').textContent") == "the river number 29"
    assert browser.run("location.hash").startswith("#queries-1-explorer?q=q29")
    browser.run("history.back()")
    browser.until("document.querySelector('#queries .queries')")
    assert browser.complaints == []


def test_link_and_back_leave_the_reader_where_he_was(
    enter: Callable[..., Browser],
) -> None:
    browser = enter()
    open_query(browser)
    browser.until("document.querySelector('.explorer .start')")
    browser.run(
        "document.querySelector('.explorer [data-doc=\"4\"]').setAttribute('data-mine', '')"
    )
    browser.run("location.hash = '#before'")
    browser.until("location.hash === '#before'")
    browser.run(
        "new Promise(done => { addEventListener('popstate', () => setTimeout(done)); "
        "history.back() })"
    )
    assert browser.run("location.hash").startswith("#queries-1-explorer?q=q00")
    assert browser.run(
        "Boolean(document.querySelector('.explorer [data-mine]'))"
    )  # the same elements, not new ones


def test_without_twins_a_sign_says_who_stands_higher(
    folder: Path, enter: Callable[..., Browser]
) -> None:
    docs = {**lists()["docs"], "twins": [[], [], [], [], []]}
    path = folder / "apart.html"
    path.write_text(page(block(lists(docs=docs, heads=[[[None] * QUERIES]] * 2))), encoding="utf-8")
    key = "document.querySelector('.explorer .key').textContent"
    titles = "[...document.querySelectorAll('.explorer th .sort')].map(one => one.textContent)"
    browser = enter()
    assert "▲ + favours human▼ − favours llm" in browser.run(key)
    assert "twins tied" in browser.run(titles)
    browser = enter(path)
    assert "▲ + human higher▼ − llm higher" in browser.run(key)
    assert "twins tied" not in browser.run(titles)
    open_query(browser)
    browser.until("document.querySelector('.explorer .between')")
    below = browser.run("document.querySelector('.explorer .between').textContent")
    assert below == "Further down: other relevant documents"
    assert browser.run("document.querySelectorAll('.explorer .twins').length") == 0


VIEWS: dict[str, Callable[[Browser], None]] = {
    "queries": lambda browser: None,
    "list": open_query,
    "pair": open_pair,
}


@pytest.mark.parametrize("view", VIEWS)
def test_everything_that_acts_is_large_enough_to_hit(
    browser: Browser, plain: Path, view: str
) -> None:
    browser.open(plain, width=360)
    show(browser)
    VIEWS[view](browser)
    sizes = browser.run(
        "[...document.querySelectorAll('.explorer :is(button, select, input[type=search], "
        ".switch), nav a')]"
        ".map(e => [e.outerHTML, e.getBoundingClientRect()]).map(([html, box]) => [html, "
        "box.width, box.height])"
    )
    assert sizes
    assert [html for html, width, height in sizes if min(width, height) < 24] == []


def test_navigation_shows_the_sections_of_the_part_that_is_read(
    browser: Browser, tmp_path: Path
) -> None:
    path = tmp_path / "parts.html"
    parts = (("Audit", ("one", "two")), ("Study", ("three", "four")))
    sections = tuple(
        Section(name, name, lead=("Text. " * 2000,), part=part)
        for part, names in parts
        for name in names
    )
    path.write_text(
        html_document(Document(kind="Test", headline="All is well.", sections=sections)),
        encoding="utf-8",
    )
    browser.open(path)
    links = (
        "[...document.querySelectorAll('nav a')].filter(a => a.checkVisibility()).map(a => "
        "a.textContent).join(' ')"
    )
    assert browser.run(links) == "Audit Study Method One Two"
    browser.click("nav a[href='#three-part']")
    browser.until(f"{links} === 'Audit Study Method Three Four'")
    heading, below = browser.run(
        "['h2#three-part', 'nav'].map(one => document.querySelector(one).getBoundingClientRect())"
        ".map((box, n) => n ? box.bottom : box.top)"
    )
    assert heading >= below
    assert browser.run("document.querySelector('nav').getBoundingClientRect().top") == 0
    marked = (
        "[...document.querySelectorAll('nav [aria-current]')].map(a => a.textContent).join(' ')"
    )
    browser.until(f"{marked} === 'Study Three'")
    browser.run("document.getElementById('four').scrollIntoView({behavior: 'instant'})")
    browser.until(f"{marked} === 'Study Four'")
    browser.open(path, scripts=False)
    assert browser.do(lambda page: page.locator("nav ul:visible").count()) == 3


def test_what_is_focused_is_not_behind_the_navigation(browser: Browser, plain: Path) -> None:
    browser.open(plain, height=400)
    show(browser)
    browser.run("document.querySelector('.pager button').focus()")
    below = "document.querySelector('nav').getBoundingClientRect().bottom"
    for _ in range(20):
        browser.press("Shift+Tab")
        at = "document.activeElement"
        assert browser.run(
            f"{at}.closest('nav, .top') || {at}.getBoundingClientRect().bottom > {below}"
        )
