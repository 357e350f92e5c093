"""Two texts in the explorer: what is marked, what long and hostile ones do, what is said where
there is none.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.reporting.browser import Browser
from tests.reporting.openings import TEXTS, block, lists, page
from tests.reporting.test_explorer_browser import open_pair, open_query, rows, show

pytestmark = pytest.mark.long


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Callable[..., Browser]:
    def go(content: dict[str, Any] | None = None, texts: Any = TEXTS, **options: Any) -> Browser:
        path = tmp_path / "page.html"
        path.write_text(page(block(content, texts)), encoding="utf-8")
        browser.open(path, **options)
        show(browser)
        return browser

    return go


def pair(first: str, second: str, query: str = "bell 0") -> tuple[dict[str, Any], list[str]]:
    """Lists whose first query opens these two texts."""
    content = lists()
    content["queries"][0]["text"] = query
    return content, [first, second, *TEXTS[2:]]


def marks(browser: Browser, side: int, name: str) -> list[str]:
    marked: list[str] = browser.run(
        f"[...document.querySelectorAll('.texts article')[{side}].querySelectorAll('.text {name}')]"
        ".map(mark => mark.textContent)"
    )
    return marked


def style(browser: Browser, name: str, of: str) -> str:
    return str(browser.run(f"getComputedStyle(document.querySelector('.text {name}')).{of}"))


def test_words_of_one_side_are_marked_until_switched_off(
    opened: Callable[..., Browser],
) -> None:
    browser = opened()
    open_pair(browser)
    assert marks(browser, 0, "del") == ["river", "to", "sea"]
    assert marks(browser, 1, "ins") == ["stream", "toward", "ocean"]
    assert marks(browser, 0, "ins") == marks(browser, 1, "del") == []
    texts = browser.run("[...document.querySelectorAll('.explorer .text')].map(t => t.textContent)")
    assert texts == TEXTS[:2]
    legend = (
        "dashed line only in human · solid line only in llm · bold a word of the query (bell, 0)."
    )
    assert legend in browser.run("document.querySelector('.explorer').innerText")
    assert [style(browser, name, "textDecorationStyle") for name in ("del", "ins")] == [
        "dashed",
        "solid",
    ]
    browser.click(".switch")
    assert "underline" not in style(browser, "del", "textDecoration")
    browser.press("Space")
    assert "underline" in style(browser, "del", "textDecoration")


@pytest.mark.parametrize(
    ("first", "second", "gone", "new"),
    [
        ("a b c", "a b c", [], []),
        ("one two three four", "one four", ["two three"], []),
        ("one four", "one two, three four", [], ["two, three"]),
        ("all of it", "", ["all of it"], []),
        ("it\u2019s here", "it's here", [], []),
        ("naïve café", "NAÏVE CAFE", ["café"], ["CAFE"]),
        ("日本語の文", "日本の文", ["語"], []),
        ("a b c d e", "b c x d", ["a", "e"], ["x"]),
    ],
)
def test_differences(
    opened: Callable[..., Browser], first: str, second: str, gone: list[str], new: list[str]
) -> None:
    content, texts = pair(first, second)
    browser = opened(content, texts)
    open_pair(browser)
    assert marks(browser, 0, "del") == gone
    assert marks(browser, 1, "ins") == new


def longest(a: Sequence[str], b: Sequence[str]) -> int:
    """Length of the longest sequence that is part of both, by the textbook."""
    best = [0] * (len(b) + 1)
    for letter in a:
        row = [0]
        for index, letter_of_b in enumerate(b):
            row.append(best[index] + 1 if letter == letter_of_b else max(best[index + 1], row[-1]))
        best = row
    return best[-1]


def test_no_more_is_marked_than_must_be(browser: Browser, opened: Callable[..., Browser]) -> None:
    opened()
    compare = "window.ranktilt.differences.compare"
    draw = random.Random(0)
    cases = [
        [draw.choices("abcde"[: draw.randint(1, 5)], k=draw.randint(0, 25)) for _ in "ab"]
        for _ in range(500)
    ]
    cases.append([[str(int(draw.random() ** 2 * 4000)) for _ in range(9000)] for _ in "ab"])
    marked = browser.run(
        f"{json.dumps(cases)}.map(([a, b]) => {compare}(a, b).map(only => [...audience]))"
    )
    for (a, b), (only_a, only_b) in zip(cases, marked, strict=True):
        left = [word for word, only in zip(a, only_a, strict=True) if not only]
        right = [word for word, only in zip(b, only_b, strict=True) if not only]
        assert left == right
        if len(a) < 9000:
            assert len(left) == longest(a, b)
        else:  # cut short, as there is no end in sight, and still right
            assert len(left) > 200


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("cold SEA", ["cold", "sea"]),
        ("the river", ["river"]),
        ("the to", ["The", "to", "the"]),
        ("riv", []),
        ("Sea? (cold)", ["cold", "sea"]),
    ],
)
def test_words_of_the_query_are_marked(
    opened: Callable[..., Browser], query: str, expected: list[str]
) -> None:
    content, texts = pair(*TEXTS[:2], query=query)
    browser = opened(content, texts)
    open_pair(browser)
    assert marks(browser, 0, "mark") == expected


def test_the_first_group_stands_first_or_above_whichever_is_opened(
    opened: Callable[..., Browser],
) -> None:
    browser = opened()
    open_pair(browser, 3)
    ids = browser.run(
        "[...document.querySelectorAll('.texts article')].map(a => a.getAttribute('aria-label'))"
    )
    assert ids == ["human, d1-h", "llm, d1-l"]
    assert "bm25: rank 2–3 · score 7.25 · relevant" in browser.run(
        "document.querySelectorAll('article')[1].innerText"
    )
    corners = "[...document.querySelectorAll('.texts article')].map(a => a.getBoundingClientRect())"
    first, second = browser.run(f"{corners}.map(b => [b.left, b.top])")
    assert first[0] < second[0]
    assert first[1] == second[1]
    browser.size(360)
    first, second = browser.run(f"{corners}.map(b => [b.left, b.top])")
    assert first[0] == second[0]
    assert first[1] < second[1]


NOTHING = {
    None: "The collection does not contain this document.",
    " \n": "The document has no text.",
}


@pytest.mark.parametrize("text", NOTHING)
def test_a_document_without_a_twin_stands_alone_with_its_text(
    opened: Callable[..., Browser], text: str | None
) -> None:
    browser = opened(texts=[*TEXTS[:4], text])
    open_pair(browser, 4)
    assert NOTHING[text] in browser.run("document.querySelector('article').innerText")
    assert browser.run("document.querySelector('article .text')") is None
    assert browser.run("document.querySelectorAll('.texts article').length") == 1
    assert (
        browser.run("document.querySelector('.explorer h3').textContent")
        == "A document without a twin"
    )
    assert browser.run("document.querySelectorAll('.explorer :is(ins, del)').length") == 0


def test_another_twin_can_be_compared(opened: Callable[..., Browser]) -> None:
    content = lists(groups=["human", "llama", "gpt"], pairs=[["human", "llama"], ["human", "gpt"]])
    content["docs"].update(group=[0, 1, 2, 0, 1], twins=[[1, 2], [0, 2], [0, 1], [], []])
    content["tilt"] = [tilts * 2 for tilts in content["tilt"]]
    content["heads"] = [head * 2 for head in content["heads"]]
    content["values"] = [[[*values, values[0]] for values in run] for run in content["values"]]
    browser = opened(content, ["a b", "a c", "a d", "", ""])
    open_query(browser)
    browser.until("document.querySelector('.explorer .start')")
    assert rows(browser, ".results")[0][2] == "llama at 14, lower gpt at 2–3, lower"
    browser.click("[data-doc='0']")
    browser.until("document.querySelector('.explorer article')")
    assert marks(browser, 1, "ins") == ["c"]
    browser.choose("[data-keep=twin]", "gpt (d1-h)")
    browser.until("document.querySelectorAll('.text ins')[0]?.textContent === 'd'")
    assert browser.run("document.activeElement.dataset.keep") == "twin"
    assert browser.run("location.hash").endswith("&d=d0-h&t=d1-h")
    browser.choose(".controls label:nth-child(3) select", "human with gpt")
    badges = browser.run("[...document.querySelectorAll('article .badge')].map(b => b.className)")
    assert badges == ["badge first", "badge second"]


def test_a_page_without_texts_says_so_and_letters_are_cut_whole(
    opened: Callable[..., Browser],
) -> None:
    browser = opened(texts=None)
    open_query(browser)
    assert rows(browser, ".results")[0][1] == "H human relevant, grade 2 Rivers"
    browser.click("[data-doc='0']")
    browser.until("document.querySelector('.explorer article')")
    assert browser.run("document.querySelector('article').innerText").endswith(
        "This page does not include the text."
    )
    assert browser.complaints == []
    browser = opened(texts=[{"text": "a" + "\U0001f600" * 19_999, "of": 30_000}, *TEXTS[1:]])
    open_query(browser)
    browser.until("document.querySelector('.explorer .start')")
    start = browser.run("document.querySelector('.explorer .start').textContent")
    assert start == "a" + "\U0001f600" * 169 + " …"
    browser.click("[data-doc='0']")
    browser.until("document.querySelector('.explorer article')")
    cut = "This page includes the first 20,000 of 30,000 characters."
    assert cut in browser.run("document.querySelector('article').innerText")


def test_an_audit_without_groups_shows_what_it_has(opened: Callable[..., Browser]) -> None:
    content = lists(by="", groups=[], pairs=[], tilt=[[], []], heads=[[], []])
    content["values"] = [[values[:1] for values in run] for run in content["values"]]
    content["docs"].update(group=[-1] * 5, twins=[[]] * 5, source=["human", "llm"] * 2 + ["human"])
    browser = opened(content)
    assert rows(browser, ".queries")[0][1:] == ["50.0", "3"]
    titles = browser.run(
        "[...document.querySelectorAll('.queries thead button')].map(b => b.textContent)"
    )
    assert titles == ["query", "all,\u00a0%", "relevant"]
    open_query(browser)
    browser.until("document.querySelector('.explorer .start')")
    assert rows(browser, ".results")[1][1].startswith("no group human")
    assert rows(browser, ".overview")[0] == ["bm25", "50.0"]
    assert browser.complaints == []


def test_undefined_tilt_is_no_0_and_twins_need_no_judgments(
    opened: Callable[..., Browser],
) -> None:
    content = lists()
    content["tilt"][0][0][0] = [None] * len(content["queries"])
    browser = opened(content)
    key = browser.run("document.querySelector('.explorer .key span').textContent")
    assert key == "Relative Δ of bm25 by nDCG@3 is undefined."
    assert browser.complaints == []
    content = lists(measures=[], tilt=[[[]], [[]]], values=[[], []])
    content["queries"] = [{**query, "relevant": 0} for query in content["queries"]]
    browser = opened(content)
    assert rows(browser, ".queries")[1] == ["the river number 1 q01", "2 : 1", "1 of 4"]
    open_query(browser)
    text = browser.run("document.querySelector('.explorer').textContent")
    assert "3 pairs of twins: human ranks higher in 2" in text
    assert rows(browser, ".overview") == [["bm25", "0 of 3"], ["dense", "–"]]
    assert len(rows(browser, ".results")) == 6
    assert ["Further down: twins of those above"] in rows(browser, ".results")
    assert browser.complaints == []
