"""Documents are hostile text: nothing of them runs, loads, leads anywhere, or breaks what stands
around them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from ranktilt import audit
from ranktilt.reporting.reload import LoadedAudit
from ranktilt.reporting.report import report_page
from tests.reporting.browser import Browser
from tests.toy import collection_of, run_of

pytestmark = pytest.mark.long

ATTACKS = (
    "</script><script>window.run=1</script>",
    "<img src=x onerror='window.run=2'>",
    "<svg onload=window.run=3><animate onbegin=window.run=4 attributeName=x dur=1s>",
    "<a href='javascript:window.run=5'>javascript:window.run=6</a>",
    "{{7*7}}{% for x in y %}{{ x }}{% endfor %}${7*7}#{7*7}",
    "\u202egpj.exe\u2066\u2067\u200f reversed",
    "null\0byte\x1b[31m\x07\x85\ufeff",
    '"\' onmouseover=window.run=7 style=position:fixed;inset:0 x="',
    "<!--<script>window.run=8//--><![CDATA[</textarea></title></style>",
    "</td></tr></table></main></body></html><h1>gone",
    (
        "<iframe srcdoc='<script>parent.run=9</script>'></iframe><meta http-equiv=refresh "
        "content=0;url=//example.org>"
    ),
    "%{x}<extra>z</extra><b>$\\alpha$</b>",
    "W" * 700,
    "wide\u3000字\u0e01\u0e33\u0301\u0301\u0301\u0301\u0301\U0001f3f3\ufe0f\u200d\U0001f308" * 40,
    "line one\nline two\rline three\r\nline four\u2028five\u2029six\ttab",
    "__proto__",
    "  ",
)
"""Each stands where a plain word stands in the page it is compared with."""
LARGE = "<b onclick=window.run=10>" + "long text of two million letters " * 63_000
"""More than 2 MB."""
PLAIN = tuple(f"plain {number}" for number in range(len(ATTACKS)))
SIDES = ("A", "B")
HARMLESS = (
    "0 === document.querySelectorAll(`main img, main svg:not(.plot *), iframe, object, embed, "
    "base, form, video, main style, main link, meta[http-equiv=refresh]`).length"
)


def opened(words: tuple[str, ...], text: str) -> LoadedAudit:
    """An audit in which every name and every text is one of these words: as many queries as words,
    two twins each.
    """
    number = range(len(words))
    sources = [words[0] + "A", words[1] + "B"]
    docs = [
        {
            "id": f"{words[n]}{n}{side}",
            "title": words[(n + 1) % len(words)],
            "text": text if not n else f"{words[(n + 2) % len(words)]} in {side}",
            "source": source,
            "origin": f"{words[n]}{n}A",
        }
        for side, source in zip(SIDES, sources, strict=True)
        for n in number
    ]
    queries = {f"{words[n]}{n}": f"{words[(n + 3) % len(words)]} {n}" for n in number}
    qrels = {
        query: {f"{words[n]}{n}{side}": 1 for side in SIDES} for n, query in enumerate(queries)
    }
    collection = collection_of(docs, queries, qrels)
    scores = [
        {
            query: {
                f"{words[(n + m) % len(words)]}{(n + m) % len(words)}{side}": 9.0
                - m
                - (side == worse)
                for m in range(3)
                for side in SIDES
            }
            for n, query in enumerate(queries)
        }
        for worse in SIDES
    ]
    runs = [
        run_of(collection, query_scores, ranker=name)
        for query_scores, name in zip(scores, (words[1], words[7]), strict=True)
    ]
    result = audit(collection, runs, ["nDCG@1", "AP@3"], resamples=100, card=True)
    spec = {
        **result.spec,
        "command": words[0],
        words[2]: [words[3]],
        "collection": {"path": words[4], words[5]: words[6]},
    }
    return LoadedAudit(replace(result, spec=spec), collection, tuple(runs), words)


@dataclass
class Pages:
    """The same page with hostile and with plain words."""

    hostile: Path
    plain: Path


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Pages:
    folder = tmp_path_factory.mktemp("pages")
    hostile_pages = Pages(folder / "hostile.html", folder / "plain.html")
    hostile_pages.hostile.write_text(report_page([opened(ATTACKS, LARGE)]), encoding="utf-8")
    hostile_pages.plain.write_text(
        report_page([opened(PLAIN, "a long text " * 50)]), encoding="utf-8"
    )
    return hostile_pages


def shape(browser: Browser) -> Any:
    """Every table of the page as the number of cells in each row, every list as its length."""
    return browser.run(
        "[[...document.querySelectorAll('table')].map(t => [...t.rows].map(r => r.cells.length)),"
        " [...document.querySelectorAll('main ul, main dl')].map(l => l.children.length),"
        " document.querySelectorAll('h1, h2, h3, h4').length,"
        " [...document.querySelectorAll('script, style, main, section, figure')].map(e => "
        "e.tagName)]"
    )


def explored(browser: Browser) -> None:
    """Bring the explorer into sight, and wait until its queries are there."""
    browser.run("document.querySelector('.explorer').scrollIntoView({behavior: 'instant'})")
    browser.until("document.querySelector('.explorer button.open')")


def query_opened(browser: Browser, number: int = 0) -> None:
    explored(browser)
    browser.run(f"document.querySelectorAll('.explorer tbody button.open')[{number}].click()")
    browser.until("document.querySelector('.explorer .results button.open')")
    browser.until("document.querySelector('.explorer .results .start')")  # the texts are there


def pair_opened(browser: Browser, number: int = 0) -> None:
    browser.run(f"document.querySelectorAll('.explorer .results button.open')[{number}].click()")
    browser.until("document.querySelectorAll('.explorer .texts article').length == 2")


def back(browser: Browser) -> None:
    browser.run("document.querySelector('.explorer .steps button').click()")


def harm(browser: Browser, path: Path) -> dict[str, Any]:
    """What ran, was asked for, or was stopped, which says that it was tried; empty for a
    safe page.
    """
    handlers = (
        "[...document.querySelectorAll('*')].filter(e => e.getAttributeNames().some(n => "
        "/^on/.test(n)))"
    )
    links = "[...document.querySelectorAll('a')].map(a => a.getAttribute('href') ?? '#')"
    state = {
        "ran": browser.run("window.run ?? null"),
        "complaints": browser.complaints,
        "requests": []
        if browser.requests == [path.as_uri()]
        else browser.requests or ["none at all"],
        "stopped": browser.stopped,
        "harmful": not browser.run(HARMLESS),
        "handlers": browser.run(f"{handlers}.map(e => e.outerHTML.slice(0, 200))"),
        "links": browser.run(f"{links}.filter(h => !h.startsWith('#'))"),
    }
    return {name: value for name, value in state.items() if value not in (None, False, [])}


@pytest.mark.journey
def test_nothing_runs_and_the_page_is_whole(browser: Browser, pages: Pages) -> None:
    browser.open(pages.plain)
    plain_shape = shape(browser)
    browser.open(pages.hostile)
    assert shape(browser) == plain_shape
    assert harm(browser, pages.hostile) == {}


def test_nothing_turns_the_direction_or_hides(browser: Browser, pages: Pages) -> None:
    browser.open(pages.hostile)
    query_opened(browser, 5)
    for view in (lambda: None, lambda: pair_opened(browser)):
        view()
        outline = browser.run(
            "document.title + document.querySelector('header').outerHTML + "
            "document.querySelector('main').outerHTML"
        )
        assert set("\u202e\u2066\u2067\0\x1b\x07\ufeff") & set(outline) == set()
    assert "\\u202egpj.exe" in outline


def test_every_query_and_text_opens_and_none_runs(browser: Browser, pages: Pages) -> None:
    browser.open(pages.hostile)
    explored(browser)
    assert browser.run("document.querySelectorAll('.explorer tbody button.open').length") == len(
        ATTACKS
    )
    query_opened(browser)
    while True:
        assert browser.run("document.querySelectorAll('.explorer .results').length") == 1
        pair_opened(browser)
        back(browser)
        if (
            browser.run(
                "document.querySelector('.explorer [data-keep=\"Next query\"]').ariaDisabled"
            )
            == "true"
        ):
            break
        browser.run("document.querySelector('.explorer [data-keep=\"Next query\"]').click()")
        browser.until("document.querySelector('.explorer .results .start')")
    assert harm(browser, pages.hostile) == {}


def test_a_text_of_two_megabytes_is_shown_in_parts(browser: Browser, pages: Pages) -> None:
    browser.open(pages.hostile)
    explored(browser)
    browser.fill(".explorer input[type=search]", f"{ATTACKS[0]}0")
    query_opened(browser)
    pair_opened(browser)
    text = browser.run("document.querySelector('.explorer .texts').textContent")
    assert "long text of two million letters" in text
    assert f"{len(LARGE):,}" in text
    assert pages.hostile.stat().st_size < 4_000_000
    assert harm(browser, pages.hostile) == {}


def test_search_for_attack_is_a_search_and_address_is_inert(browser: Browser, pages: Pages) -> None:
    browser.open(pages.hostile)
    explored(browser)
    for words in ATTACKS:
        browser.fill(".explorer input[type=search]", words.split("\n")[0][:60])
        assert "quer" in browser.run("document.querySelector('.explorer .found').textContent")
    assert harm(browser, pages.hostile) == {}
    name = browser.run("document.querySelector('.explorer').id")
    unknown = ("q=%3Cimg src=x onerror=window.run=11%3E&r=none&d=no", "q=__proto__&d=constructor")
    for parts in (*unknown, "%", "q=%E0%A4%A", "?" * 5000):
        browser.run(f"location.hash = {json.dumps(f'#{name}?{parts}')}")
        browser.run("new Promise(done => setTimeout(done, 50))")
    assert browser.run("Boolean(document.querySelector('.explorer .queries'))")
    assert harm(browser, pages.hostile) == {}


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("view", ["page", "query", "pair"])
def test_no_text_widens_the_page(browser: Browser, pages: Pages, width: int, view: str) -> None:
    browser.open(pages.hostile, width=width)
    if view != "page":
        query_opened(browser, 10)
    if view == "pair":
        pair_opened(browser)
    assert browser.overflow == 0


def test_pointing_at_every_figure_shows_texts_as_texts(browser: Browser, pages: Pages) -> None:
    browser.open(pages.hostile)
    for number in range(browser.run("document.querySelectorAll('.plot').length")):
        plot = f"document.querySelectorAll('.plot')[{number}]"
        browser.run(f"{plot}.scrollIntoView({{behavior:'instant',block:'center'}})")
        x, y, width, height = browser.run(
            f"(box => [box.x, box.y, box.width, box.height])({plot}.getBoundingClientRect())"
        )
        for across in range(1, 8):
            for down in range(1, 5):
                browser.point(x + width * across / 8, y + height * down / 5)
    assert browser.run("document.querySelectorAll('.plot a[*|href], .plot image').length") == 0
    assert harm(browser, pages.hostile) == {}


def test_what_a_script_would_smuggle_in_is_stopped(browser: Browser, pages: Pages) -> None:
    browser.open(pages.plain)
    smuggled = {
        "script-src-elem": "add('script', {textContent: 'window.run = 1'})",
        "img-src": "add('img', {src: 'http://127.0.0.1:9/x.png'})",
        "frame-src": "add('iframe', {src: 'http://127.0.0.1:9/'})",
        "connect-src": "fetch('http://127.0.0.1:9/').catch(() => 0)",
        "style-src-elem": "add('link', {rel: 'stylesheet', href: 'http://127.0.0.1:9/x.css'})",
        "base-uri": "add('base', {href: 'http://127.0.0.1:9/'})",
    }
    for code in smuggled.values():
        browser.run(
            "(() => { const add = (tag, set) => document.body.appendChild("
            f"Object.assign(document.createElement(tag), set)); {code}; }})()"
        )
    browser.until(f"(window.stoppedByPolicy || []).length >= {len(smuggled)}")
    assert {address.split()[0] for address in browser.stopped} == set(smuggled)
    assert browser.run("window.run ?? null") is None
    assert browser.requests == [pages.plain.as_uri()]
