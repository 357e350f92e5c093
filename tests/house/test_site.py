"""The documentation site: built without network or warnings, searchable, and as wide as its window."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.house import tree
from tests.reporting.browser import Browser, Chromium

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-W",
        "--keep-going",
        "-q",
        "-b",
        "html",
        str(tree.ROOT / "docs"),
        str(folder),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.journey
def test_every_command_and_page_is_in_it(site: Path) -> None:
    listed = (site / "llms.txt").read_text(encoding="utf-8")
    assert "[ranktilt audit](reference/cli/audit.html)" in listed
    assert "[ranktilt data describe](reference/cli/data-describe.html)" in listed
    assert [
        line
        for line in listed.splitlines()
        if line.startswith("- ") and not (site / line[:-1].partition("](")[2]).exists()
    ] == []


@pytest.mark.journey
def test_no_link_is_broken_and_no_markup_is_left(site: Path) -> None:
    pages = {page.resolve(): page.read_text(encoding="utf-8") for page in site.rglob("*.html")}
    names = {page: set(re.findall(r' id="([^"]+)"', text)) for page, text in pages.items()}
    broken = []
    for page, text in pages.items():
        for link in re.findall(r' (?:href|src)="([^"]+)"', text):
            address = urlsplit(link.replace("&amp;", "&"))
            there = (page.parent / unquote(address.path)).resolve() if address.path else page
            if address.scheme or link == "#":
                continue
            if not there.exists() or (address.fragment and unquote(address.fragment) not in names.get(there, ())):
                broken.append(f"{page.relative_to(site)}: {link}")
        prose = re.sub(r"<(pre|script|style)\b.*?</\1>", "", text, flags=re.DOTALL)
        broken += [f"{page.relative_to(site)}: {left}" for left in re.findall(r".{20}`.{20}", prose)]
    assert broken == []


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Chromium() as chromium, Browser(chromium=chromium) as one:
        yield one


@pytest.mark.parametrize("words", ["tie", "exposure ratio", "mteb"])
def test_search_finds(site: Path, browser: Browser, words: str) -> None:
    browser.do(lambda page: page.goto(f"{(site / 'search.html').as_uri()}?q={words}"))
    browser.until("document.querySelector('ul.search li a')")
    hits = browser.run("[...document.querySelectorAll('ul.search li')].map(hit => hit.textContent.toLowerCase())")
    assert any(words in hit for hit in hits)


@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_is_wider_than_the_window(site: Path, browser: Browser, width: int) -> None:
    browser.size(width)
    for name in ("index", "start", "audit", "python", "reading-the-card", "ndcg"):
        page = next(site.rglob(f"{name}.html"))
        browser.do(lambda tab, page=page: tab.goto(page.as_uri()))
        assert browser.overflow == 0, name
