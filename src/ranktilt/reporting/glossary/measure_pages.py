"""The pages of docs/measures inside a report: what a term links to travels with the page that uses it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it.token import Token
    from markupsafe import Markup

NAMES = (
    "ndcg",
    "ap",
    "precision-recall",
    "rr",
    "relative-delta",
    "ndsr",
    "head-to-head",
    "rank-gap",
    "score-gap",
    "exposure-ratio",
    "share",
    "awrf",
    "ee-l",
    "ndkl",
    "statistics",
    "ties",
    "confounds-and-controls",
)
"""The pages, in the order of their index."""
_CHECKOUT = Path(__file__).parents[4] / "docs" / "measures"
_LINK = re.compile(r"(?P<page>[\w-]*)(?:\.md)?(?:#(?P<section>[\w-]+))?")


@dataclass(frozen=True)
class Part:
    """One section of a measure's page; the first has no title."""

    anchor: str
    title: str
    html: Markup
    """Safe HTML, without the title."""


@dataclass(frozen=True)
class MeasurePage:
    """One page of docs/measures, ready to stand in a report."""

    name: str
    title: str
    parts: tuple[Part, ...]


def anchor_of(target: str) -> str:
    """Return where a page, or one of its sections, stands in a report."""
    return "measure-" + target.replace("#", "-")


def measure_pages(names: Iterable[str]) -> tuple[MeasurePage, ...]:
    """Make the pages that a report carries, in the order of `NAMES`."""
    carried = frozenset(names) & frozenset(NAMES)
    return tuple(_page(name, carried) for name in NAMES if name in carried)


@lru_cache(maxsize=64)
def _page(name: str, carried: frozenset[str]) -> MeasurePage:
    from markdown_it import MarkdownIt
    from markupsafe import Markup

    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = reader.parse(_source(name))
    for token in tokens:
        if token.children:
            token.children = list(_linked(token.children, name, carried))
    (_, title, head), *rest = _sections(tokens)
    parts = [("", "", head), *rest]
    made = []
    for slug, heading, inside in parts:
        html = reader.renderer.render(list(_laid_out(inside, heading or title)), reader.options, {})
        html = html.replace("<pre>", '<pre tabindex="0">').replace("<h3>", "<h5>").replace("</h3>", "</h5>")
        made.append(Part(anchor_of(f"{name}#{slug}" if slug else name), heading, Markup(html)))
    return MeasurePage(name, title, tuple(made))


def _source(name: str) -> str:
    """A page's text: the package's, or the docs' in a checkout."""
    packaged = resources.files("ranktilt.reporting") / "measures" / f"{name}.md"
    file = packaged if packaged.is_file() else _CHECKOUT / f"{name}.md"
    return re.sub(r"^<!--.*?-->\n", "", file.read_text(encoding="utf-8"), flags=re.MULTILINE)


def _sections(tokens: Sequence[Token]) -> list[tuple[str, str, list[Token]]]:
    """Slug, title and tokens of each heading of the first two levels."""
    made: list[tuple[str, str, list[Token]]] = []
    at = 0
    while at < len(tokens):
        if tokens[at].type == "heading_open" and tokens[at].tag in ("h1", "h2"):
            title = _plain(tokens[at + 1])
            slug = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")  # as links to a heading name it
            made.append((slug, title, []))
            at += 3  # open, text, close
        else:
            made[-1][2].append(tokens[at])
            at += 1
    return made


def _plain(inline: Token) -> str:
    return "".join(child.content for child in inline.children or ())


def _linked(children: Sequence[Token], page: str, carried: frozenset[str]) -> Iterator[Token]:
    """Turn links among pages that are carried into anchors of the report, and drop all others."""
    kept = False
    for child in children:
        if child.type == "link_open":
            target = _LINK.fullmatch(str(child.attrGet("href")))
            name = (target["page"] or page) if target else ""
            kept = name in carried
            if target and kept:
                child.attrSet("href", "#" + anchor_of(f"{name}#{target['section']}" if target["section"] else name))
        if kept or child.type not in ("link_open", "link_close"):
            yield child


def _laid_out(tokens: Sequence[Token], title: str) -> Iterator[Token]:
    """Make tables without titles lists of facts, give others room and a caption, and fold the code of examples."""
    at = 0
    while at < len(tokens):
        token = tokens[at]
        if token.type == "table_open":
            end = next(i for i in range(at, len(tokens)) if tokens[i].type == "table_close") + 1
            yield from _table(tokens[at:end], title)
            at = end
            continue
        if token.type == "fence" and token.info == "python":
            yield _raw("<details><summary>The code of this example</summary>")
            yield token
            yield _raw("</details>")
        else:
            yield token
        at += 1


def _table(tokens: Sequence[Token], title: str) -> Iterator[Token]:
    from markupsafe import escape

    begin = next(i for i, token in enumerate(tokens) if token.type == "tbody_open")
    titled = any(_plain(token) for token in tokens[:begin])
    if not titled:
        rows = [token for token in tokens[begin:] if token.type in ("tr_open", "td_open", "inline", "td_close")]
        yield from (_raw('<dl class="pairs">'), *_celled(rows, "dt", "dd"), _raw("</dl>"))
        return
    yield _raw(f'<div class="wide" role="region" tabindex="0" aria-label="{escape(title)}">')
    yield tokens[0]
    yield _raw(f"<caption>{escape(title)}</caption>")
    yield from _celled(tokens[1:], "th", "td")
    yield _raw("</div>")


def _celled(tokens: Iterable[Token], first: str, other: str) -> Iterator[Token]:
    """Name the elements of a table's cells: the first of each row, and the others."""
    leads = True
    for token in tokens:
        if token.type == "tr_open":
            leads = True
        if token.type == "th_open":
            token.attrSet("scope", "col")
        if token.type in ("td_open", "td_close"):
            token.tag = first if leads else other
            if token.type == "td_open" and token.tag == "th":
                token.attrSet("scope", "row")
            leads = leads and token.type == "td_open"
        if token.type != "tr_open" or first == "th":
            yield token


def _raw(html: str) -> Token:
    from markdown_it.token import Token

    return Token("html_block", "", 0, content=html + "\n")
