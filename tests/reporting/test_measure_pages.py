"""The pages of docs/measures stand in a report: whole, with links that lead inside it, and safe."""

import html
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ranktilt.reporting.glossary import measure_pages as module
from ranktilt.reporting.glossary.measure_pages import NAMES, MeasurePage, measure_pages
from tests.house import tree

DOCS = tree.ROOT / "docs" / "measures"
ALL = measure_pages(NAMES)


def html_of(page: MeasurePage) -> str:
    return "".join(part.html for part in page.parts)


def targets(text: str) -> list[str]:
    return re.findall(r'href="([^"]*)"', text)


def written(folder: Path, name: str, text: str) -> MeasurePage:
    """Make a page from another text."""
    module._page.cache_clear()
    (folder / f"{name}.md").write_text(text, encoding="utf-8")
    return measure_pages([name])[0]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder in place of the docs."""
    monkeypatch.setattr(module, "_CHECKOUT", tmp_path)
    monkeypatch.setattr(module.resources, "files", lambda package: tmp_path / "package")
    module._page.cache_clear()
    yield tmp_path
    module._page.cache_clear()


def test_every_page_of_the_docs_can_be_carried() -> None:
    assert set(NAMES) == {page.stem for page in DOCS.glob("*.md")} - {"README"}
    assert [page.name for page in ALL] == list(NAMES)


@pytest.mark.parametrize("page", ALL, ids=lambda page: page.name)
def test_every_word_of_a_page_is_carried_under_its_titles(page: MeasurePage) -> None:
    source = (DOCS / f"{page.name}.md").read_text(encoding="utf-8")
    text = re.sub(r"^```.*?^```", "", source, flags=re.M | re.S)
    assert [page.title] == re.findall(r"^# (.+)$", text, re.MULTILINE)
    assert [part.title for part in page.parts] == ["", *re.findall(r"^## (.+)$", text, re.MULTILINE)]
    shown = html.unescape(re.sub(r"<[^>]*>", " ", html_of(page)))
    shown = " ".join([shown, page.title, *(part.title for part in page.parts)])
    words = set(re.findall(r"[^\W\d_]{4,}", re.sub(r"\]\([^)]*\)|^```\w*", "", source, flags=re.MULTILINE)))
    assert words - set(re.findall(r"[^\W\d_]{4,}", shown)) == set()


def test_every_link_leads_to_a_place_that_is_carried() -> None:
    anchors = {part.anchor for page in ALL for part in page.parts}
    links = [target for page in ALL for target in targets(html_of(page))]
    assert len(links) > 20
    assert {link.removeprefix("#") for link in links} <= anchors


def test_anchors_are_unlike_and_plain() -> None:
    anchors = [part.anchor for page in ALL for part in page.parts]
    assert len(set(anchors)) == len(anchors)
    assert all(re.fullmatch(r"measure-[a-z0-9-]+", anchor) for anchor in anchors)


def test_a_link_to_a_page_that_is_not_carried_is_plain_text() -> None:
    (alone,) = measure_pages(["ndcg"])
    assert targets(html_of(alone)) == []
    assert "two groups are compared by Relative Δ" in html_of(alone)
    both = measure_pages(["relative-delta", "ndcg"])
    assert targets(html_of(both[0])) == ["#measure-relative-delta"]


def test_pages_come_once_and_in_their_order() -> None:
    assert [page.name for page in measure_pages(["ties", "ap", "ties", "ndcg"])] == ["ndcg", "ap", "ties"]


def test_the_code_of_an_example_is_folded_away_and_its_output_is_not() -> None:
    page = html_of(ALL[NAMES.index("ndcg")])
    folded = "".join(re.findall(r"<details>.*?</details>", page, re.DOTALL))
    assert "import polars" in folded
    assert "import polars" not in page.replace(folded, "")
    assert "Relative Δ +45.3 %" in page.replace(folded, "")


def test_facts_are_a_list_of_names_and_values() -> None:
    facts = next(part.html for part in ALL[0].parts if part.title == "Facts")
    assert re.findall(r"<dt>(.*?)</dt>", facts) == ["range", "unit", "sign", "undefined", "ties", "needs"]
    assert facts.count("<dd>") == 6
    assert "<table" not in facts


def test_a_table_has_a_caption_titles_and_row_names(folder: Path) -> None:
    page = written(folder, "ties", "# T\n\n## What\n\n| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n")
    text = html_of(page)
    assert "<caption>What</caption>" in text
    assert re.findall(r'<th scope="col">(.*?)</th>', text) == ["a", "b"]
    assert re.findall(r'<th scope="row">(.*?)</th>', text) == ["1", "3"]
    assert re.findall(r"<td>(.*?)</td>", text) == ["2", "4"]
    assert '<div class="wide" role="region" tabindex="0" aria-label="What">' in text


def test_html_in_a_page_is_text(folder: Path) -> None:
    attack = "<script>alert(1)</script> <img src=x onerror=alert(1)>"
    table = f"| <b>a</b> | b |\n|---|---|\n| {attack} | 2 |\n"
    page = written(folder, "ties", f"# T\n\n{attack}\n\n## <i>x</i>\n\n{table}\n```text\n{attack}\n```\n\n`{attack}`\n")
    text = html_of(page)
    assert set(re.findall(r"</?(\w+)", text)) <= {
        "p", "div", "table", "caption", "thead", "tbody", "tr", "th", "td", "pre", "code",
    }  # fmt: skip
    assert text.count("&lt;script&gt;") == 4
    assert 'aria-label="&lt;i&gt;x&lt;/i&gt;"' in text


@pytest.mark.parametrize(
    "target",
    ["https://example.org/a", "../rankers.md", "README.md", "mailto:a@example.org", "rr.md"],
)
def test_a_link_that_leads_out_of_the_report_is_plain_text(target: str, folder: Path) -> None:
    text = html_of(written(folder, "ties", f"# T\n\nsee [there]({target}) and [here](#what)\n\n## What\n\nx\n"))
    assert targets(text) == ["#measure-ties-what"]
    assert "see there and" in text


def test_a_note_for_the_tests_is_not_shown(folder: Path) -> None:
    text = html_of(written(folder, "ties", "# T\n\nx\n\n<!-- no-test: slow -->\n```python\n1\n```\n"))
    assert "no-test" not in text
    assert "<details>" in text


def test_the_package_comes_before_the_checkout(folder: Path) -> None:
    inside = folder / "package" / "measures"
    inside.mkdir(parents=True)
    written(inside, "ties", "# of the package\n")
    assert written(folder, "ties", "# of the checkout\n").title == "of the package"


def test_pages_add_a_few_kilobytes_and_their_long_lines_can_be_reached_by_the_keyboard() -> None:
    assert sum(len(html_of(page).encode()) for page in ALL) < 84_000
    assert [page.name for page in ALL if "<pre>" in html_of(page)] == []
