"""The meanings of the words on a page.

Each word is marked where it first occurs in a section, and listed in the method notes.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import resources
from itertools import chain
from typing import TYPE_CHECKING

from ranktilt.measures.base import every_estimand
from ranktilt.reporting.shown_names import direction_parts, short_names

if TYPE_CHECKING:
    from markupsafe import Markup


@dataclass(frozen=True, kw_only=True)
class Term:
    """One word that is explained."""

    title: str
    """The word as a heading."""
    definition: str
    """What it means."""
    pattern: str = ""
    """Regular expression that matches it in a text; by default the title itself."""

    @property
    def anchor(self) -> str:
        """The name of its entry in the method notes."""
        plain = self.title.lower().replace("δ", "delta")
        return "term-" + re.sub(r"[^a-z0-9]+", "-", plain).strip("-")


_FILE = tomllib.loads(
    resources.files("ranktilt.reporting").joinpath("terms.toml").read_text(encoding="utf-8")
)
"""The terms, as the file holds them."""
TERMS = (
    *(
        Term(title=estimand.term, definition=estimand.definition, pattern=estimand.pattern)
        for estimand in every_estimand()
        if estimand.definition
    ),
    *(Term(title=title, **fields) for title, fields in _FILE.items()),
)
"""Estimands by their own definitions, and the other words of `terms.toml`."""


class Glossary:
    """Marks the terms in the texts of one page, and remembers which it met.

    Long names among `names` are shortened, and shown whole when pointed at.
    """

    def __init__(self, terms: tuple[Term, ...] = TERMS, names: Iterable[str] = ()) -> None:
        self._terms = terms
        self._short = {visible(name): visible(short) for name, short in short_names(names).items()}
        longest_first = sorted(map(re.escape, self._short), key=len, reverse=True)
        self._long_names = re.compile("|".join(longest_first) or "(?!)")
        parts = [
            f"(?P<t{number}>{term.pattern or re.escape(term.title)})"
            for number, term in enumerate(terms)
        ] or ["(?!)"]
        self._regex = re.compile(r"(?<![\w:@./-])(?:" + "|".join(parts) + r")(?![\w=-]|\.\w)")
        self._section: set[int] = set()
        self._met: set[int] = set()

    def used(self) -> tuple[Term, ...]:
        """Return the terms met so far and those that their definitions use, by title."""
        used, new = set[int](), set(self._met)
        while new:
            used |= new
            texts = [self._terms[number].definition for number in new]
            matches = chain.from_iterable(map(self._regex.finditer, texts))
            new = {self._number(match) for match in matches} - used
        terms = [self._terms[number] for number in used]
        return tuple(sorted(terms, key=lambda term: term.title.casefold()))

    def fresh(self) -> str:
        """Begin a section, in which each term is marked again; return the empty string."""
        self._section = set()
        return ""

    def mark(self, text: str) -> Markup:
        """Escape a text, and mark each of its terms the first time in a section.

        A mark has a definition to hover and a link.
        """
        from markupsafe import Markup

        text = _together(visible(text))
        out, end = Markup(""), 0
        for match in self._regex.finditer(text):
            number = self._number(match)
            self._met.add(number)
            if number in self._section:
                continue
            self._section.add(number)
            term = self._terms[number]
            link = Markup('<a class="term" href="#{}"><abbr title="{}">{}</abbr></a>')
            out += self._plain(text[end : match.start()]) + link.format(
                term.anchor, term.definition, match.group()
            )
            end = match.end()
        return out + self._plain(text[end:])

    def unmarked(self, text: str) -> Markup:
        """Escape a text without marking its terms; its names are shown as `mark` shows them."""
        return self._plain(_together(visible(text)))

    def _plain(self, text: str) -> Markup:
        """Escape a text, shorten its long names, and keep words from right to left together."""
        from markupsafe import Markup

        out, end = Markup(""), 0
        for match in self._long_names.finditer(text):
            short = Markup('<abbr title="{}">{}</abbr>')
            out += _escaped(text[end : match.start()])
            out += short.format(match.group(), self._short[match.group()])
            end = match.end()
        return out + _escaped(text[end:])

    def hint(self, title: str, hint: str) -> Markup:
        """Give a title its definition to hover, and the link of the first term in either."""
        from markupsafe import Markup

        abbr = Markup('<abbr title="{}">{}</abbr>').format(visible(hint), visible(title))
        met = self._regex.search(_together(f"{title}: {hint}"))
        if met is None:
            return abbr
        self._met.add(self._number(met))
        return Markup('<a class="term" href="#{}">{}</a>').format(
            self._terms[self._number(met)].anchor, abbr
        )

    @staticmethod
    def _number(match: re.Match[str]) -> int:
        """Return the number of the term that a pattern has found."""
        return int((match.lastgroup or "t0")[1:])


def _escaped(text: str) -> Markup:
    """Escape a text, with words from right to left in marks of their own."""
    from markupsafe import Markup, escape

    isolate = Markup("<bdi>{}</bdi>")
    parts = direction_parts(text)
    return Markup("").join(
        isolate.format(part) if is_turned else escape(part) for part, is_turned in parts
    )


def _together(text: str) -> str:
    """Let no line break part a number from its unit, nor one end of an interval from the other."""
    text = re.sub(r"(?<=\d) %", "\u00a0%", text)
    text = re.sub(r"\bp ([<=>]) (?=[\d.])", "p\u00a0\\1\u00a0", text)
    return re.sub(r"(\[[−+.\d]+), (?=[−+.\d]+\])", "\\1,\u00a0", text)


_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
"""Signs that nobody sees, which could hide a part of a name."""


def visible(text: str) -> str:
    """Write out control characters and changes of direction, which act without being seen."""
    return _HIDDEN.sub(lambda match: f"\\u{ord(match.group()):04x}", text)
