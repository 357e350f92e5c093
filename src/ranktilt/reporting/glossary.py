"""The glossary of a page: terms, such as nDCG, with their definitions.

A term is marked where it first occurs in a section, with its definition and a link to its entry in
the page's method notes, which list the terms that occur. Measures (*estimands*) define their own
terms; all other definitions are in ``terms.toml``.
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
    """One term and its definition."""

    title: str
    """The term as a heading."""
    definition: str
    """What the term means."""
    pattern: str = ""
    """Regular expression that matches it in a text; by default the title itself."""

    @property
    def anchor(self) -> str:
        """The anchor of its entry in the method notes."""
        plain = self.title.lower().replace("δ", "delta")
        return "term-" + re.sub(r"[^a-z0-9]+", "-", plain).strip("-")


_FILE = tomllib.loads(
    resources.files("ranktilt.reporting").joinpath("terms.toml").read_text(encoding="utf-8")
)
"""The terms of `terms.toml`, by their titles."""
TERMS = (
    *(
        Term(title=estimand.term, definition=estimand.definition, pattern=estimand.pattern)
        for estimand in every_estimand()
        if estimand.definition
    ),
    *(Term(title=title, **fields) for title, fields in _FILE.items()),
)
"""Every term: the measures (estimands), which define themselves, and those of `terms.toml`."""


class Glossary:
    """Marks the terms in the texts of one page, and remembers which occurred.

    Long names among `names`, such as those of rankers, are shortened, and shown in full when
    pointed at.
    """

    def __init__(self, terms: tuple[Term, ...] = TERMS, names: Iterable[str] = ()) -> None:
        self._terms = terms
        self._short = {visible(name): visible(short) for name, short in short_names(names).items()}
        longest_first = sorted(map(re.escape, self._short), key=len, reverse=True)
        matches_nothing = "(?!)"
        self._long_names = re.compile("|".join(longest_first) or matches_nothing)
        # A group for each term, named by the term's index: t0, t1, …
        groups = [
            f"(?P<t{index}>{term.pattern or re.escape(term.title)})"
            for index, term in enumerate(terms)
        ] or [matches_nothing]
        # Not within a longer word, a path, a file name or an option such as --measure=nDCG.
        self._regex = re.compile(r"(?<![\w:@./-])(?:" + "|".join(groups) + r")(?![\w=-]|\.\w)")
        self._marked_in_section: set[int] = set()
        self._occurred: set[int] = set()

    def used(self) -> tuple[Term, ...]:
        """Return the terms that occurred so far and those in their definitions, by title."""
        used, new = set[int](), set(self._occurred)
        while new:
            used |= new
            texts = [self._terms[index].definition for index in new]
            matches = chain.from_iterable(map(self._regex.finditer, texts))
            new = {self._term_index(match) for match in matches} - used
        terms = [self._terms[index] for index in used]
        return tuple(sorted(terms, key=lambda term: term.title.casefold()))

    def fresh(self) -> str:
        """Begin a section, in which each term is marked again.

        Return the empty string, because templates call it where they print.
        """
        self._marked_in_section = set()
        return ""

    def mark(self, text: str) -> Markup:
        """Escape a text, and mark each of its terms the first time in a section.

        A mark is a link to the term's entry, and shows the definition when pointed at.
        """
        from markupsafe import Markup

        text = _without_bad_breaks(visible(text))
        link = Markup('<a class="term" href="#{}"><abbr title="{}">{}</abbr></a>')
        marked, end = Markup(""), 0
        for match in self._regex.finditer(text):
            index = self._term_index(match)
            self._occurred.add(index)
            if index in self._marked_in_section:
                continue
            self._marked_in_section.add(index)
            term = self._terms[index]
            marked += self._with_short_names(text[end : match.start()])
            marked += link.format(term.anchor, term.definition, match.group())
            end = match.end()
        return marked + self._with_short_names(text[end:])

    def unmarked(self, text: str) -> Markup:
        """Escape a text without marking its terms; its names are shown as `mark` shows them."""
        return self._with_short_names(_without_bad_breaks(visible(text)))

    def _with_short_names(self, text: str) -> Markup:
        """Escape a text and shorten its long names, which show in full when pointed at."""
        from markupsafe import Markup

        shortened, end = Markup(""), 0
        for match in self._long_names.finditer(text):
            short = Markup('<abbr title="{}">{}</abbr>')
            shortened += _escaped(text[end : match.start()])
            shortened += short.format(match.group(), self._short[match.group()])
            end = match.end()
        return shortened + _escaped(text[end:])

    def hint(self, title: str, hint: str) -> Markup:
        """Return a title that shows a hint when pointed at.

        It is a link to the entry of the first term in title or hint, if there is any.
        """
        from markupsafe import Markup

        abbr = Markup('<abbr title="{}">{}</abbr>').format(visible(hint), visible(title))
        match = self._regex.search(_without_bad_breaks(f"{title}: {hint}"))
        if match is None:
            return abbr
        index = self._term_index(match)
        self._occurred.add(index)
        return Markup('<a class="term" href="#{}">{}</a>').format(self._terms[index].anchor, abbr)

    @staticmethod
    def _term_index(match: re.Match[str]) -> int:
        """Return the index of the term that a match is of, from the name of its group."""
        return int((match.lastgroup or "t0")[1:])


def _escaped(text: str) -> Markup:
    """Escape a text, with words from right to left in ``<bdi>`` elements."""
    from markupsafe import Markup, escape

    isolate = Markup("<bdi>{}</bdi>")
    parts = direction_parts(text)
    return Markup("").join(
        isolate.format(part) if is_right_to_left else escape(part)
        for part, is_right_to_left in parts
    )


def _without_bad_breaks(text: str) -> str:
    """Prevent line breaks between a number and its unit, and between the ends of an interval."""
    text = re.sub(r"(?<=\d) %", "\u00a0%", text)
    text = re.sub(r"\bp ([<=>]) (?=[\d.])", "p\u00a0\\1\u00a0", text)
    return re.sub(r"(\[[−+.\d]+), (?=[−+.\d]+\])", "\\1,\u00a0", text)


_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff]"
)
"""Invisible characters, which could hide a part of a name."""


def visible(text: str) -> str:
    """Write control characters and changes of direction as codes: a backslash, u, four digits."""
    return _HIDDEN.sub(lambda match: f"\\u{ord(match.group()):04x}", text)
