"""Versions of a designed collection for prompts: one of each document, drawn for each repeat.

A designed collection has several versions of each document, which differ in factors such as length.
A query may be asked several times; these are its repeats.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from ranktilt.data.collection import Collection
from ranktilt.errors import UserError
from ranktilt.explaining.factors.effects import FactorDesign
from ranktilt.generation.versions.design import PREFIX


@dataclass(frozen=True, kw_only=True, eq=False)
class DrawnVersions:
    """The versions of each document of a designed collection, as rows of the collection."""

    document_of: tuple[int, ...]
    """Number of the document of each row."""
    versions_of: dict[int, tuple[int, ...]]
    """Rows of each document's versions."""

    @classmethod
    def from_collection(cls, collection: Collection) -> DrawnVersions:
        """Group the rows of a designed collection by document.

        `UserError` if it has no design, or no factor whose effect can be estimated.
        """
        if not any(name.startswith(PREFIX) for name in collection.docs.columns):
            raise UserError(
                "--by-factor needs versions by design: a collection with columns factor:NAME, as "
                "ranktilt generate versions DIR --factors position,length writes it"
            )
        # This refuses a design that says nothing about factors, before a model is asked.
        FactorDesign.from_collection(
            collection, collection.spec.get("design", {}).get("failed", ())
        )
        document_of = tuple(collection.origin_codes().tolist())
        rows_by_document: dict[int, list[int]] = {}
        for row, document in enumerate(document_of):
            rows_by_document.setdefault(document, []).append(row)
        versions_of = {document: tuple(rows) for document, rows in rows_by_document.items()}
        return cls(document_of=document_of, versions_of=versions_of)

    def of_first_documents(self, rows: Sequence[int], count: int) -> list[int]:
        """Return all versions of the first `count` documents of a list, document by document."""
        documents = list(dict.fromkeys(self.document_of[row] for row in rows))[:count]
        versions = list[int]()
        for document in documents:
            versions += self.versions_of[document]
        return versions

    def draw(self, rows: Sequence[int], query: str, repeat: int, *, seed: int) -> list[int]:
        """Draw a version of each document of a list, for a query and the number of a repeat.

        A document with n versions shows each of them once in n repeats, in random order.
        """
        versions_drawn = list[int]()
        for document in dict.fromkeys(self.document_of[row] for row in rows):
            versions = self.versions_of[document]
            rng = random.Random(f"{seed} {query} {document} versions")
            order = rng.sample(versions, len(versions))
            versions_drawn.append(order[(repeat - 1) % len(order)])
        return versions_drawn
