"""Twins, the two versions of a document by two sources, for prompts that show both.

A *source* is who wrote a document, such as a human or a language model.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from ranktilt.data.collection import Collection
from ranktilt.data.runs.run import codes
from ranktilt.errors import UserError

Pair = tuple[str, str]
"""Two sources, a and b, whose versions of one document are twins."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Twins:
    """The two versions of each document that has two, as rows of a collection."""

    twin_of: dict[int, int]
    """Row of the other version, by the row of a version."""
    rows_of_a: frozenset[int]
    """Rows of the versions of source a."""

    @classmethod
    def from_collection(cls, collection: Collection, pair: Pair) -> Twins:
        """Return the twins of two sources; if a source has several versions, the first counts."""
        pairs = collection.pairs(*pair)
        pairs = pairs.unique("origin", keep="first", maintain_order=True)
        if not pairs.height:
            raise UserError(
                f"no document has a version of {pair[0]} and one of {pair[1]}; twins share an "
                "origin (see ranktilt check DIR)"
            )
        rows_a = codes(pairs["a"], collection.ids).tolist()
        rows_b = codes(pairs["b"], collection.ids).tolist()
        twin_of = dict(zip(rows_a, rows_b, strict=True)) | dict(zip(rows_b, rows_a, strict=True))
        return cls(twin_of=twin_of, rows_of_a=frozenset(rows_a))

    def first_pairs(self, rows: Sequence[int], count: int) -> list[int]:
        """Return both versions of the first `count` documents of `rows` that have two.

        The version of source a comes first, and then that of source b.
        """
        versions = list[int]()
        for row in rows:
            if row in self.twin_of and row not in versions:
                version_a = row if row in self.rows_of_a else self.twin_of[row]
                versions += [version_a, self.twin_of[version_a]]
            if len(versions) == 2 * count:
                break
        return versions

    def with_exchanged_positions(self, rows: Sequence[int]) -> list[int]:
        """Return the order in which the two versions of each document have exchanged positions."""
        return [self.twin_of[row] for row in rows]

    def randomly_ordered(self, rows: Sequence[int], rng: random.Random) -> list[int]:
        """Order the two versions of each document at random; they stay next to each other.

        `rows` holds both versions of each document, one after the other.
        """
        order = list[int]()
        for version in rows[::2]:  # the first version of each document
            versions = [version, self.twin_of[version]]
            order += versions if rng.random() < 0.5 else versions[::-1]
        return order
