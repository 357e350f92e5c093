"""What a ranker reads as the query: its text as it is, or put into a template that may name an attribute."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import polars as pl

from ranktilt.errors import UserError
from ranktilt.rankers.base import Ranker

QUERY = "{query}"
_SLOT = re.compile(r"\{(\w*)\}")
_EXAMPLE = 'query_template="{attribute} {query}",attribute=female'


@dataclass(frozen=True, kw_only=True)
class TemplatedQueries(Ranker):
    """A ranker whose queries can be asked about a group, as ``query_template="{attribute} {query}",attribute=female``.

    Wang et al., NAACL 2024, ask rankers that have no prompt in this way. Judgments stay those of the query.
    """

    query_template: str = QUERY
    attribute: str | None = None

    def require_template(self) -> None:
        """Refuse a template without a place for the query, and an attribute that the template has no place for."""
        slots = set(_SLOT.findall(self.query_template))
        if "query" not in slots or slots - {"query", "attribute"}:
            expected = f"expected {QUERY}, and {{attribute}} beside it or not, got {self.query_template!r}"
            raise UserError(f"{self.name}: query_template: {expected}")
        if ("attribute" in slots) != bool((self.attribute or "").strip()):
            raise UserError(f"{self.name}: attribute goes with the slot {{attribute}}, such as {_EXAMPLE}")

    def read_queries(self, texts: pl.Series) -> pl.Series:
        """Return what is read in place of these queries."""
        if self.query_template == QUERY:
            return texts

        def filled(text: str) -> str:
            words = {"query": text, "attribute": self.attribute or ""}
            return _SLOT.sub(lambda slot: words[slot[1]], self.query_template)

        return pl.Series(texts.name, map(filled, texts), dtype=pl.String)

    def template_spec(self, texts: pl.Series) -> dict[str, Any]:
        """Return what the run's spec says of the queries that were read, given those of the collection."""
        if self.query_template == QUERY:
            return {}
        example = {"query": texts[0], "read_as": self.read_queries(texts.head(1))[0]} if len(texts) else {}
        return {"queries_read": {"template": self.query_template, "attribute": self.attribute, **example}}
