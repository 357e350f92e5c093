"""What the words on a page mean: each is marked where it first stands in a section, and listed in the method notes."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING

from ranktilt.measures.base import every_estimand

if TYPE_CHECKING:
    from markupsafe import Markup


@dataclass(frozen=True)
class Term:
    """One word that is explained."""

    title: str
    definition: str
    pattern: str = ""
    """What stands for it in a text, as a regular expression; the title itself where this is empty."""

    @property
    def anchor(self) -> str:
        """The name of its entry in the method notes."""
        plain = self.title.lower().replace("δ", "delta")
        return "term-" + re.sub(r"[^a-z0-9]+", "-", plain).strip("-")


_FILE = tomllib.loads(
    resources.files("ranktilt.reporting").joinpath("terms.toml").read_text(encoding="utf-8")
)
TERMS = (
    *(Term(one.term, one.definition, one.pattern) for one in every_estimand() if one.definition),
    *(Term(title, **said) for title, said in _FILE.items()),
)
"""Estimands by their own definitions, and the other words of `terms.toml`."""


class Glossary:
    """Marks the terms in the texts of one page, and remembers which it met."""

    def __init__(self, terms: tuple[Term, ...] = TERMS) -> None:
        self._terms = terms
        parts = [
            f"(?P<t{number}>{term.pattern or re.escape(term.title)})"
            for number, term in enumerate(terms)
        ] or ["(?!)"]
        self._regex = re.compile(r"(?<![\w:@./-])(?:" + "|".join(parts) + r")(?![\w=-]|\.\w)")
        self._section: set[int] = set()
        self._met: set[int] = set()

    def used(self) -> tuple[Term, ...]:
        """The terms met so far and those that their definitions use, by title."""
        known, new = set[int](), set(self._met)
        while new:
            known |= new
            texts = [self._terms[number].definition for number in new]
            new = {
                self._number(match) for text in texts for match in self._regex.finditer(text)
            } - known
        return tuple(
            sorted(
                (self._terms[number] for number in known), key=lambda term: term.title.casefold()
            )
        )

    def fresh(self) -> str:
        """Begin a section: each term is marked again where it first stands; returns the empty string."""
        self._section = set()
        return ""

    def mark(self, text: str) -> Markup:
        """Escape a text, and give each of its terms, the first time in a section, a definition to hover and a link."""
        from markupsafe import Markup, escape

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
            out += escape(text[end : match.start()]) + link.format(
                term.anchor, term.definition, match.group()
            )
            end = match.end()
        return out + escape(text[end:])

    def hint(self, title: str, hint: str) -> Markup:
        """Give a title a definition of its own to hover, and the link of the first term in either."""
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
        return int((match.lastgroup or "t0")[1:])


def _together(text: str) -> str:
    """Let no line break part a number from its unit, nor one end of an interval from the other."""
    text = re.sub(r"(?<=\d) %", "\u00a0%", text)
    text = re.sub(r"\bp ([<=>]) (?=[\d.])", "p\u00a0\\1\u00a0", text)
    return re.sub(r"(\[[−+.\d]+), (?=[−+.\d]+\])", "\\1,\u00a0", text)


_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]"
)


def visible(text: str) -> str:
    """Write out what would act on a text without being seen: control characters and changes of direction."""
    return _HIDDEN.sub(lambda match: f"\\u{ord(match.group()):04x}", text)
