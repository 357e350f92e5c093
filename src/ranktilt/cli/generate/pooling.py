"""The pool of ``--pool``: the documents that are judged, or that the named rankers retrieve."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ranktilt.cli.notes import note
from ranktilt.cli.rankers import read_rankers

if TYPE_CHECKING:
    from ranktilt.data.collection import Collection
    from ranktilt.generation.pooling import Pool

_COMMA = re.compile(r",(?![^(]*\))")
"""A comma between two rankers, and not within the parentheses of a ranker's options."""


def draw_pool(collection: Collection, specs: str, depth: int | None, *, of: str) -> Pool:
    """Return the pool of a source's documents, and say how many it has.

    Parameters
    ----------
    collection : Collection
        The documents and queries.
    specs : str
        Rankers with commas between them.
    depth : int or None
        Documents per query and ranker; None for the default.
    of : str
        The source.
    """
    from ranktilt.generation.pooling import USUAL_DEPTH, pool

    rankers = read_rankers([spec.strip() for spec in _COMMA.split(specs) if spec.strip()])
    pooled = pool(collection, rankers, depth=depth or USUAL_DEPTH, of=of)
    for sentence in pooled.sentences:
        note(sentence)
    return pooled
