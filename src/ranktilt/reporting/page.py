"""One self-contained HTML page: sections of tables, figures and texts, safe with any text and readable anywhere."""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from itertools import groupby
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import orjson

from ranktilt._version import __version__
from ranktilt.reporting.glossary import Glossary, visible

if TYPE_CHECKING:
    from markupsafe import Markup

Tone = Literal["", "good", "bad", "unsure", "first", "second"]
"""How a text is to be taken; ``first`` and ``second`` say which side of a comparison a number favours."""
SIGNS: dict[Tone, str] = {"": "", "good": "✓", "bad": "!", "unsure": "?", "first": "▲", "second": "▼"}
"""What stands beside a colour, for those who do not see it."""


@dataclass(frozen=True)
class Shown:
    """A text, the number it was rounded from, and how it is to be taken."""

    text: str
    value: float | int | None = None
    """Kept in the page unrounded (``data-value``)."""
    tone: Tone = ""

    @property
    def sign(self) -> str:
        """The sign of its tone; empty for none."""
        return SIGNS[self.tone]

    @property
    def exact(self) -> str:
        """The number so that it reads back as it is; NaN is ``nan``."""
        return repr(self.value)


@dataclass(frozen=True)
class Cell(Shown):
    """One cell of a table."""

    group: bool = False
    """Whether a new group of rows begins here; for the first cell of a row."""
    note: str = ""
    """A small second line, such as an interval."""


@dataclass(frozen=True)
class Fact(Shown):
    """One large figure with its name above and a note below."""

    label: str = ""
    note: str = ""


@dataclass(frozen=True)
class Column:
    """One column of a table."""

    title: str
    number: bool = True
    """Whether it holds numbers, which stand to the right."""
    header: bool = False
    """Whether its cells name their rows."""
    room: int = 0
    """Its least width, in letters of the text's size; for long texts, which would be broken into narrow lines."""
    hint: str = ""
    """What its title means, shown when pointed at."""


@dataclass(frozen=True)
class Table:
    """A table with its caption."""

    kind: ClassVar[str] = "table"
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    groups: tuple[tuple[str, int], ...] = ()
    """A row above the titles: a heading, empty for none, and how many columns it stands over."""
    folded: bool = False
    """Whether a reader unfolds it: what another table or figure says in short."""


@dataclass(frozen=True)
class Figure:
    """A figure, what it shows in words, and the same as a table."""

    kind: ClassVar[str] = "figure"
    title: str
    says: str
    """What a reader who cannot see it needs to know."""
    drawing: dict[str, Any]
    """As made by `ranktilt.reporting.figures`."""
    table: Table | None = None
    half: bool = False
    """Whether it shares a line with its neighbour where there is room."""

    @property
    def height(self) -> int:
        """Pixels."""
        return int(self.drawing["layout"]["height"])

    @property
    def json(self) -> Markup:
        """The drawing as JSON that no text in it can break out of."""
        from markupsafe import Markup

        return Markup(safe_json(self.drawing))


@dataclass(frozen=True)
class Facts:
    """A row of large figures."""

    kind: ClassVar[str] = "facts"
    facts: tuple[Fact, ...]


@dataclass(frozen=True)
class Pairs:
    """Names and values, one below the other."""

    kind: ClassVar[str] = "pairs"
    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Points:
    """A list of sentences."""

    kind: ClassVar[str] = "list"
    items: tuple[str, ...]


@dataclass(frozen=True)
class Code:
    """A command as one would type it."""

    kind: ClassVar[str] = "code"
    label: str
    text: str


@dataclass(frozen=True)
class Explorer:
    """Queries, ranked lists and texts to look through; without scripts, the table of those that matter most."""

    kind: ClassVar[str] = "explorer"
    caption: str
    says: str
    """What it holds, and what of the audit it leaves out."""
    lists: str
    """Queries, values and ranked lists: JSON, compressed with gzip, in base64."""
    texts: str
    """The documents' texts in the same form; empty for none."""
    rows: Table
    """The queries that contribute most, for readers without scripts and for print."""


Block = Table | Figure | Facts | Pairs | Points | Code | Explorer


@dataclass(frozen=True)
class Section:
    """A part of the page with a heading of its own."""

    name: str
    """Its anchor: letters, digits and hyphens."""
    title: str
    lead: tuple[str, ...] = ()
    blocks: tuple[Block, ...] = ()
    part: str = ""
    """The result it belongs to, where a page holds several: sections of one part that follow each other stand under
    one heading."""


@dataclass(frozen=True)
class Verdict:
    """One line of the answer at the top."""

    text: str
    tone: Tone
    aside: bool = False
    """Whether it is folded away, because there are many."""

    @property
    def sign(self) -> str:
        """The sign of its tone."""
        return SIGNS[self.tone]


@dataclass(frozen=True)
class Page:
    """What a page says, before any HTML."""

    title: str
    """In the browser's tab."""
    kind: str
    """What sort of page it is, and of what."""
    headline: str
    """The answer in one sentence."""
    verdicts: tuple[Verdict, ...]
    sections: tuple[Section, ...]
    notes: tuple[str, ...] = ()
    """How the numbers were reached; the definitions of the terms follow by themselves."""

    @property
    def parts(self) -> tuple[tuple[str, tuple[Section, ...]], ...]:
        """Sections that follow each other and belong to one result, with its name."""
        return tuple((part, tuple(some)) for part, some in groupby(self.sections, key=lambda section: section.part))


_EXPLORER = tuple(
    f"explorer/{name}.js" for name in ("elements", "differences", "queries", "lists", "pairs", "explorer")
)


@dataclass(frozen=True)
class _Engine:
    version: str
    packed: str
    digest: str


def render(page: Page) -> str:
    """Write a page as one HTML file that loads nothing, runs nothing of a document's, and reads without scripts.

    Parameters
    ----------
    page : Page
        What to write. Every text in it is taken as plain text.

    Returns
    -------
    str
        HTML. About 2 MB with figures (the drawing library, compressed), some kB without.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("ranktilt.reporting"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: visible(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    kinds = {block.kind for section in page.sections for block in section.blocks}
    engine = _engine() if "figure" in kinds else None
    scripts = [_template("page.js")]
    if "explorer" in kinds:
        scripts.append("\n".join(map(_template, _EXPLORER)))
    return environment.get_template("page.html").render(
        page=page,
        terms=Glossary(),
        engine=engine,
        scripts=[Markup(script) for script in scripts],
        explores="explorer" in kinds,
        policy=policy(scripts[0], *map(digest, scripts[1:]), *([engine.digest] if engine else [])),
        version=__version__,
    )


def policy(script: str, *digests: str) -> str:
    """Make the page's Content-Security-Policy: no network, no handlers, and only the scripts we wrote.

    Parameters
    ----------
    script : str
        A script that may run.
    *digests : str
        Those of other scripts that may run, as `digest` gives them.

    Returns
    -------
    str
        For the ``content`` of the ``meta`` element.
    """
    allowed = " ".join(f"'{one}'" for one in (digest(script), *digests))
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def digest(script: str) -> str:
    """Return a script's hash as a Content-Security-Policy names it: ``sha256-…``."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def safe_json(value: Any) -> str:
    r"""Write JSON for a script element: no text in it can end the element.

    Parameters
    ----------
    value : object
        Plain values and NumPy arrays; NaN is written as null.

    Returns
    -------
    str
        JSON without ``<``, ``>`` and ``&``, which are written as ``\u003c`` and so on.
    """
    text = orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY).decode()
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def _template(name: str) -> str:
    return resources.files("ranktilt.reporting").joinpath("templates", name).read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def _engine() -> _Engine:
    script = resources.files("plotly").joinpath("package_data", "plotly.min.js").read_text(encoding="utf-8")
    found = re.search(r"plotly\.js v([\w.]+)", script[:500])
    packed = base64.b64encode(gzip.compress(script.encode(), 9, mtime=0)).decode()
    return _Engine(found.group(1) if found else "", packed, digest(script))
