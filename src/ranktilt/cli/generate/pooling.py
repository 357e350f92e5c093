"""The pool of ``--pool``: documents that are judged, or that these rankers retrieve."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ranktilt.cli.notes import note
from ranktilt.cli.rankers import read_rankers

if TYPE_CHECKING:
    from ranktilt.data.collection import Collection
    from ranktilt.generation.pooling import Pool

_COMMA = re.compile(r",(?![^(]*\))")
"""Between rankers, not within their brackets."""


def draw_pool(collection: Collection, specs: str, depth: int | None, *, of: str) -> Pool:
    """Pool what these rankers retrieve of a source, and say how much that is."""
    from ranktilt.generation.pooling import USUAL_DEPTH, pool

    rankers = read_rankers([spec.strip() for spec in _COMMA.split(specs) if spec.strip()])
    pooled = pool(collection, rankers, depth=depth or USUAL_DEPTH, of=of)
    for sentence in pooled.sentences:
        note(sentence)
    return pooled
