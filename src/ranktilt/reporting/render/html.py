"""A document as one self-contained HTML page, or as HTML for a notebook; both safe with any text.

The *explorer* is the part of a page in which a reader looks through queries, lists and texts.
The page's scripts are the only ones that its Content-Security-Policy allows, each by its hash
(*digest*). Figures are drawn by Vega-Lite (the *drawing library*), which the page contains.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import os
import re
from dataclasses import replace
from datetime import UTC, date, datetime
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING, Any

import orjson

from ranktilt._version import __version__
from ranktilt.reporting.document import Cell, Document, Table
from ranktilt.reporting.glossary import Glossary, visible
from ranktilt.reporting.tones import LOOKS

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

_EXPLORER_SCRIPTS = tuple(
    f"explorer/{name}.js"
    for name in ("elements", "differences", "queries", "lists", "pairs", "explorer")
)
"""Files of the explorer's scripts, in the order in which they run."""


def render(document: Document, *, notes: bool = True) -> str:
    """Return one HTML file that loads nothing and can be read without scripts.

    Every text of the document is escaped. The file has some 400 kB with figures (the drawing
    library, compressed), and some kB without. A page always has its notes; `notes` is there because
    all renderers have it.
    """
    from markupsafe import Markup

    kinds = {block.kind for block in document.blocks("page")}
    scripts = [_compact(_template("page.js"))]
    if "explorer" in kinds:
        scripts.append(_compact("\n".join(map(_template, _EXPLORER_SCRIPTS))))
    digests = [digest(script) for script in scripts[1:]]  # `policy` adds that of the first
    engine = None  # the drawing library, where there are figures
    if "figure" in kinds:
        engine, engine_digest = _engine()
        digests.append(engine_digest)
    template = _environment().get_template("page.html")
    return template.render(
        page=document,
        terms=Glossary(names=document.names),
        date=page_date(),
        engine=engine,
        scripts=[Markup(script) for script in scripts],
        explores="explorer" in kinds,
        draws_intervals=bool(document.first_figure_blocks) or "intervals" in kinds,
        policy=policy(scripts[0], *digests),
        version=__version__,
    )


def page_date() -> date:
    """Return the date that a page names: today's, or that of ``SOURCE_DATE_EPOCH``.

    That variable holds seconds since 1970, and makes a build give the same page on any day; see
    https://reproducible-builds.org/specs/source-date-epoch/.
    """
    seconds = os.environ.get("SOURCE_DATE_EPOCH", "")
    if not seconds.isdecimal():
        return datetime.now(tz=UTC).date()
    return datetime.fromtimestamp(int(seconds), tz=UTC).date()


def html_fragment(document: Document) -> str:
    """Return the findings and tables as HTML for a notebook, without scripts and styles."""
    return _environment().get_template("fragment.html").render(page=document, terms=Glossary(()))


@lru_cache(maxsize=1)
def _environment() -> Environment:
    """Return Jinja's environment for the templates, which escapes every text.

    It keeps what it compiles, which takes longer than to fill a template.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        keep_trailing_newline=True,
        loader=PackageLoader("ranktilt.reporting"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: visible(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "rows": _page_rows,
        "json": lambda value: Markup(safe_json(value)),
        "compact": _compact_style,
        "sign": lambda tone: LOOKS[tone].sign,
        "ended": lambda sentence: sentence if sentence.endswith(".") else f"{sentence}.",
    }
    return environment


def _page_rows(table: Table) -> list[tuple[bool, list[Cell]]]:
    """Return the rows of a page's table: whether a line is above each, and its cells.

    The heading of a group is a row itself.
    """
    rows: list[tuple[bool, list[Cell]]] = []
    previous_group: tuple[str, ...] = ()
    for row in table.rows:
        if row.group != previous_group and any(row.group):
            heading = Cell(row.group[0], note=", ".join(filter(None, row.group[1:])))
            rows.append((True, [heading, *[Cell("")] * (len(table.columns) - 1)]))
        previous_group = row.group
        rows.append((row.rule, [_page_cell(cell) for cell in row.shown_cells]))
    return rows


def _page_cell(cell: Cell) -> Cell:
    """Return a cell with its interval as text where it has no text, and as note otherwise."""
    return replace(
        cell,
        text=cell.text or cell.interval,
        note=cell.note or (cell.interval if cell.text else ""),
    )


def policy(script: str, *digests: str) -> str:
    """Return the page's Content-Security-Policy: no network, no handlers, and only these scripts.

    `script` is the text of a script, `digests` are the hashes of the others.
    """
    allowed = " ".join(f"'{script_digest}'" for script_digest in (digest(script), *digests))
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def digest(script: str) -> str:
    """Return a script's hash as a Content-Security-Policy names it: ``sha256-…``."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def safe_json(value: Any) -> str:
    r"""Write JSON for a script element.

    ``<``, ``>`` and ``&`` are written as ``\\u003c`` and so on, NaN as null.
    """
    text = orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY).decode()
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def _compact_style(style: str) -> Markup:
    """Leave out the comments of a style sheet, and blanks around its punctuation."""
    from markupsafe import Markup

    text = re.sub(r"/\*.*?\*/", "", str(style), flags=re.DOTALL)
    text = re.sub(r"\s*([{};])\s*", r"\1", re.sub(r"([:,])\s+", r"\1", text))
    return Markup(text.replace(";}", "}"))


def _compact(script: str) -> str:
    """Leave out the indentation and the comments of a script; ours have each on its own line."""
    lines = (line.strip() for line in script.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("//"))


def _template(name: str) -> str:
    """Return the text of a file in the folder of templates."""
    return (
        resources.files("ranktilt.reporting")
        .joinpath("templates", name)
        .read_text(encoding="utf-8")
    )


@lru_cache(maxsize=1)
def _engine() -> tuple[str, str]:
    """Return the drawing library, compressed and in base64, and the hash of its script."""
    script = "\n".join(
        _template(f"vega/{name}.min.js") for name in ("vega", "vega-lite", "vega-interpreter")
    )
    packed = base64.b64encode(gzip.compress(script.encode(), 9, mtime=0)).decode()
    return packed, digest(script)
