"""Every kind of page, in every state, for readers of every kind: by axe-core, by keyboard, and in
narrow windows.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from ranktilt.reporting.reload import LoadedAudit
from ranktilt.reporting.report import report_page
from tests.explaining.checks import toy_check
from tests.reporting.audits import toy_source_audits
from tests.reporting.browser import Browser
from tests.reporting.openings import toy_opened

pytestmark = pytest.mark.long

KINDS = ("audit", "alone", "check", "sources", "combined")
VIEWS = ("audit", "query", "pair")
"""What the audit's page shows: its explorer untouched, a query opened, a pair opened."""
UNFOLD = "document.querySelectorAll('details').forEach(part => { part.open = true; })"
MOST = 1000
"""More presses of Tab than any of these pages needs."""

_FOCUSED = """(element => {
  const box = element.getBoundingClientRect(), style = getComputedStyle(element);
  const ids = (element.getAttribute('aria-labelledby') || '').split(' ');
  const labels = ids.map(id => document.getElementById(id));
  const names = [element.ariaLabel, ...labels.map(label => label?.textContent),
    element.textContent, element.title,
    ...[...(element.labels || [])].map(label => label.textContent)];
  const last = window.before;
  window.before = element;
  return {
    tag: element.outerHTML.slice(0, 120), end: element === document.body,
    name: names.map(name => (name || '').trim()).find(Boolean) || '',
    seen: box.width > 0 && box.height > 0 && box.bottom > 0 && box.top < innerHeight &&
      box.right > 0 && box.left < innerWidth &&
      style.visibility === 'visible' && Number(style.opacity) > 0,
    ring: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 1 ||
      style.boxShadow !== 'none',
    follows: !last ||
      Boolean(last.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING),
  };
})(document.activeElement)"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    judged = toy_opened(card=True)
    alone = LoadedAudit(judged.audit, notes=("corpus.jsonl is not there any more.",))
    check, sources = toy_check(), toy_source_audits()
    results: dict[str, list[Any]] = {
        "audit": [judged],
        "alone": [alone],
        "check": [check],
        "sources": [sources],
        "combined": [judged, check, sources, alone],
    }
    folder = tmp_path_factory.mktemp("pages")
    for name, listed in results.items():
        (folder / f"{name}.html").write_text(report_page(listed), encoding="utf-8")
    return {name: folder / f"{name}.html" for name in results}


def bring(browser: Browser, view: str) -> None:
    """Open the audit's explorer as far as a view says."""
    browser.run("document.querySelector('.explorer').scrollIntoView({behavior: 'instant'})")
    browser.until("document.querySelector('.explorer .queries button.open')")
    if view == "audit":
        return
    browser.click(".explorer .queries button.open")
    browser.until("document.querySelector('.explorer .results .start')")
    if view == "pair":
        browser.click(".explorer .results button.open")
        browser.until("document.querySelectorAll('.explorer .texts article').length == 2")


def test_axe_sees_what_is_wrong(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "bad.html"
    path.write_text(
        "<!DOCTYPE html><title>x</title><img src='data:,'><p "
        "style='color:#ccc;background:#fff'>pale</p>"
    )
    browser.open(path, policy=False)
    assert {line.split()[1] for line in browser.axe()} == {
        "color-contrast",
        "html-has-lang",
        "image-alt",
    }


@pytest.mark.parametrize(
    ("name", "width", "dark"),
    [
        ("combined", 360, False),
        ("combined", 1280, True),
        ("alone", 1280, False),
        ("check", 360, True),
        ("query", 1280, False),
        ("query", 360, True),
        ("pair", 1280, True),
        ("pair", 360, False),
    ],
)
def test_axe_finds_nothing_serious(
    browser: Browser, pages: dict[str, Path], name: str, width: int, dark: bool
) -> None:
    browser.open(pages.get(name, pages["audit"]), width=width, dark=dark, policy=False)
    if name in VIEWS:
        bring(browser, name)
    assert browser.axe() == []


@pytest.mark.journey
def test_axe_finds_nothing_serious_where_everything_is_unfolded(
    browser: Browser, pages: dict[str, Path]
) -> None:
    browser.open(pages["audit"], policy=False)
    browser.run(UNFOLD)
    assert browser.axe() == []


@pytest.mark.parametrize(
    ("name", "width"),
    [
        *(("combined", width) for width in (320, 360, 1280, 1920)),
        *((name, 320) for name in KINDS[:-1]),
    ],
)
def test_no_page_is_wider_than_its_window(
    browser: Browser, pages: dict[str, Path], name: str, width: int
) -> None:
    browser.open(pages[name], width=width)
    assert browser.overflow == 0
    browser.run(UNFOLD)
    assert browser.overflow == 0
    assert browser.complaints == []
    assert browser.requests == [pages[name].as_uri()]


@pytest.mark.parametrize("view", ["", *VIEWS])
def test_the_keyboard_reaches_everything_in_order(
    browser: Browser, pages: dict[str, Path], view: str
) -> None:
    browser.open(pages["audit" if view else "combined"])
    if view:
        bring(browser, view)
    browser.run(
        "document.activeElement.blur(), getSelection().removeAllRanges(), "
        "document.body.setAttribute('tabindex', '-1'), document.body.focus({preventScroll: true}), "
        "document.body.removeAttribute('tabindex')"
    )
    reached = []
    for _ in range(MOST):
        browser.press("Tab")
        stop = browser.run(_FOCUSED)
        if stop["end"]:
            break
        reached.append(stop)
    assert reached[0]["name"] == "Skip to the content"
    assert len(reached) < MOST
    for quality in ("name", "seen", "ring", "follows"):
        assert [stop["tag"] for stop in reached if not stop[quality]] == [], quality
    left_out = browser.run(
        "[...document.querySelectorAll('a[href], button, input, select, summary')].filter(e => "
        "e.tabIndex < 0 && "
        "e.checkVisibility()).map(e => e.outerHTML.slice(0, 120))"
    )
    assert left_out == []


@pytest.mark.parametrize("name", KINDS)
def test_every_page_is_marked_up_for_readers_who_see_none(
    browser: Browser, pages: dict[str, Path], name: str
) -> None:
    browser.open(pages[name], width=1280)
    assert browser.run("document.title").strip()
    levels = browser.run(
        "[...document.querySelectorAll('h1, h2, h3, h4, h5')].filter(h => h.checkVisibility())"
        ".map(h => Number(h.tagName[1]))"
    )
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(below <= above + 1 for above, below in pairwise(levels))
    bare = browser.run(
        "[...document.querySelectorAll('table')].filter(t => !t.caption?.textContent.trim() || "
        "!t.tHead || "
        "!t.querySelector('th[scope=col]')).map(t => t.outerHTML.slice(0, 200))"
    )
    assert bare == []
    descriptions = browser.run(
        "[...document.querySelectorAll('.plot')].map(p => "
        "document.getElementById(p.getAttribute('aria-describedby')).textContent)"
    )
    assert descriptions
    assert all(len(text.split()) >= 5 for text in descriptions)
    browser.run("document.documentElement.style.fontSize = '200%'")
    assert browser.overflow == 0


def test_nothing_is_known_by_its_colour_alone(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["combined"])
    unsigned = browser.run(
        "[...document.querySelectorAll('td.first, td.second, td.good, td.bad, td.unsure, .verdicts "
        "li')]"
        ".filter(e => !e.querySelector('.sign')?.textContent.trim()).map(e => e.outerHTML.slice(0, "
        "120))"
    )
    assert unsigned == []
    assert browser.run("document.querySelectorAll('td.first, td.second').length") > 0


def test_motion_is_not_forced_on_anyone(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["audit"])
    browser.do(lambda page: page.emulate_media(reduced_motion="reduce"))
    moving = browser.run(
        "[...document.querySelectorAll('html, main *')].filter(e => { const s = "
        "getComputedStyle(e); "
        "return s.animationName !== 'none' || s.scrollBehavior === 'smooth' || "
        "s.transitionDuration.split(',').some(t => parseFloat(t) > 0.01) && !e.closest('.plot'); })"
        ".map(e => e.outerHTML.slice(0, 120))"
    )
    browser.do(lambda page: page.emulate_media(reduced_motion="null"))
    assert moving == []
