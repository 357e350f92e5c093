"""One word of the trade: how it is written, what it means, and which page says more."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ranktilt.reporting.glossary.measure_pages import anchor_of


@dataclass(frozen=True)
class Term:
    """One word of the trade."""

    title: str
    definition: str
    pattern: str = ""
    """What stands for it in a text, as a regular expression; the title itself where this is empty."""
    page: str = ""
    """Where docs/measures says more: a page's name, or with the section as in ``statistics#random-band``."""

    @property
    def anchor(self) -> str:
        """The name of its entry in the method notes."""
        plain = self.title.lower().replace("Δ", "delta").replace("δ", "delta")
        return "term-" + re.sub(r"[^a-z0-9]+", "-", plain).strip("-")

    @property
    def page_name(self) -> str:
        """The name of its page, without a section; empty where it has none."""
        return self.page.partition("#")[0]

    @property
    def page_anchor(self) -> str:
        """The name of the place on its page; empty where it has none."""
        return anchor_of(self.page) if self.page else ""

    @property
    def regex(self) -> str:
        """Return its regular expression."""
        return self.pattern or re.escape(self.title)
