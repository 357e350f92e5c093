"""A word of the trade leads to what explains it, by mouse and by keyboard, with scripts and without."""

from __future__ import annotations

from pathlib import Path

import pytest

from ranktilt.reporting.reload import LoadedAudit
from tests.reporting.audits import small
from tests.reporting.browser import Browser
from tests.reporting.openings import audit_page

pytestmark = pytest.mark.long

WORD = "#tilt a.term[href='#measure-relative-delta']"
TARGET = "document.getElementById('measure-relative-delta')"
SEEN = f"(box => box.height > 100 && box.top >= 0 && box.top < innerHeight)({TARGET}.getBoundingClientRect())"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "audit.html"
    path.write_text(audit_page(LoadedAudit(small(card=True))), encoding="utf-8")
    return path


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_a_click_on_a_word_opens_its_page(browser: Browser, page: Path, scripts: bool) -> None:
    browser.open(page, scripts=scripts)
    assert browser.run("document.querySelectorAll('details.measure[open]').length") == 0
    browser.click(WORD)
    browser.until(SEEN)
    assert browser.run("document.querySelectorAll('details.measure[open]').length") == 1


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_the_keyboard_reaches_the_definition(browser: Browser, page: Path, scripts: bool) -> None:
    browser.open(page, scripts=scripts)
    browser.do(lambda shown: shown.locator(WORD).first.focus())
    title = browser.run("document.activeElement.querySelector('abbr').title")
    browser.press("Enter")
    browser.until(SEEN)
    assert browser.run(f"document.activeElement === {TARGET}")
    assert title in browser.run("document.activeElement.innerText")


def test_an_address_with_a_place_opens_it(browser: Browser, page: Path) -> None:
    browser.open(f"{page.as_uri()}#measure-statistics-correction")
    browser.until("document.getElementById('measure-statistics-correction').getBoundingClientRect().height > 0")
    assert browser.run("document.querySelector('details.measure[open] summary').textContent") == "Statistics"


def test_a_link_between_pages_opens_the_other(browser: Browser, page: Path) -> None:
    browser.open(f"{page.as_uri()}#measure-ndcg")
    browser.click("#measure-ndcg a[href='#measure-ties']")
    browser.until("document.getElementById('measure-ties').getBoundingClientRect().height > 100")
    assert browser.run("document.querySelectorAll('details.measure[open]').length") == 2


def test_open_pages_have_no_grave_fault(browser: Browser, page: Path) -> None:
    browser.open(page, policy=False)
    browser.run("document.querySelectorAll('#notes details').forEach(one => { one.open = true; })")
    assert browser.axe() == []
