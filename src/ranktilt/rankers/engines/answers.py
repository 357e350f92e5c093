"""What an engine answered: checked, put in falling order, and what is odd about it counted."""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from ranktilt.errors import UserError, shorten

Floats = npt.NDArray[np.float64]
Hits = list[tuple[str, float]]

EXPECTED = "a list of (document id, score)"


@dataclass
class Oddities:
    """Counts over all answers."""

    results: int = 0  # that came for the first time in their answer
    most: int = 0  # of the query that got most
    duplicates: int = 0  # the document had come before
    unknown: int = 0  # it is not in the collection
    not_finite: int = 0
    rising: int = 0  # the score is above the one before
    tied: int = 0
    fewer: int = 0  # queries with fewer results than asked for (or than there are documents)
    empty: int = 0
    first: dict[str, str] = field(default_factory=dict)  # where the first odd one of a kind was

    def counts(self) -> dict[str, int]:
        """Return what is odd by name, counts of 0 left out."""
        counts = {name: getattr(self, name) for name in ("duplicates", "unknown", "not_finite", "rising", "tied")}
        return {name: n for name, n in {**counts, "fewer": self.fewer, "empty": self.empty}.items() if n}

    def note(self, kind: str, document: str, query: str) -> None:
        """Count one, and keep the place of the first."""
        setattr(self, kind, getattr(self, kind) + 1)
        self.first.setdefault(kind, f"{document!r} for query {query!r}")


def checked(answer: Any, query: str, who: str) -> Hits:
    """Check the types of one answer: pairs of a string and a number, in the engine's order; returns them.

    `query` is the query's id and `who` the ranker, for the message of the `UserError`.
    """
    if not isinstance(answer, list | tuple):
        raise UserError(f"{who}: query {query!r}: expected {EXPECTED}, got {_described(answer)}")
    for rank, hit in enumerate(answer, start=1):
        fault = _fault(hit)
        if fault:
            raise UserError(f"{who}: query {query!r}, result {rank}: {fault}")
    return [(str(document), float(score)) for document, score in answer]


def _fault(hit: Any) -> str:
    if not (isinstance(hit, list | tuple) and len(hit) == 2):
        return f"expected a pair (document id, score), got {_described(hit)}"
    document, score = hit
    if not isinstance(document, str):
        hint = "; str(id) makes one" if isinstance(document, Real) else ""
        return f"expected the document id as a string, got {_described(document)}{hint}"
    if not isinstance(score, Real | np.number) or isinstance(score, bool):
        return f"expected the score as a number, got {_described(score)}"
    try:
        float(score), document.encode()
    except (OverflowError, UnicodeEncodeError):
        return f"expected a document id in valid Unicode and a score that a float holds, got {_described(hit)}"
    return ""


def _described(value: object) -> str:
    return "None" if value is None else f"{type(value).__name__} {shorten(value, 60)}"


def sifted(hits: Hits, query: str, known: Container[str], odd: Oddities) -> Hits:
    """Keep each document of an answer at its first place, unknown ones too, and count in `odd` what is odd."""
    kept: dict[str, float] = {}
    before = math.nan
    for document, score in hits:
        if document in kept:
            odd.note("duplicates", document, query)
            continue
        if document not in known:
            odd.note("unknown", document, query)
        if not math.isfinite(score):
            odd.note("not_finite", document, query)
        elif score > before:
            odd.note("rising", document, query)
        odd.tied += score == before
        kept[document] = before = score
    odd.results += len(kept)
    odd.most = max(odd.most, len(kept))
    odd.empty += not kept
    return list(kept.items())


def falling(scores: Sequence[float]) -> Floats:
    """Make scores, in the engine's order, fall strictly, keeping their order and, where they fall, their values.

    A score that is not below the one before, or is not finite, becomes the next number below the one before. Those
    ahead of the first finite score lie just above it. 0, −1, −2, … where none is finite, or no float32 is left. They
    fall as float32 too, in which trec_eval compares scores: a tie there would be broken by id.
    """
    ranks = -np.arange(len(scores), dtype=np.float64)
    start = next((place for place, score in enumerate(scores) if math.isfinite(score)), None)
    if start is None:
        return ranks
    single, out = np.float32, [float(score) for score in scores]
    with np.errstate(over="ignore"):
        for place in reversed(range(start)):
            out[place] = float(np.nextafter(single(out[place + 1]), single(np.inf)))
        for place in range(start + 1, len(out)):
            if not single(out[place]) < single(out[place - 1]) or math.isinf(out[place]):
                out[place] = float(np.nextafter(single(out[place - 1]), single(-np.inf)))
        made = np.array(out)
        narrow = made.astype(np.float32)
    return made if np.isfinite(narrow).all() and (np.diff(narrow) < 0).all() else ranks
