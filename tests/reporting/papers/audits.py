"""Audits under the names of rankers and sources that a test asks for."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from ranktilt import Audit, audit
from tests.reporting.audits import ordered, twins

RERANKED = ("bm25", "tfidf", "bm25@100>>cross-encoder:minilm")


def named(found: Audit, runs: Sequence[str], **spec: Any) -> Audit:
    """The same audit with its runs under other names, and made from another folder."""
    names = dict(zip(found.runs, runs, strict=True))
    tilts = tuple(replace(tilt, run=names[tilt.run]) for tilt in found.tilts)
    return replace(found, runs=tuple(runs), tilts=tilts, spec={**found.spec, **spec})


@cache
def sourced(*sources: str, runs: tuple[str, ...] = ("bm25",)) -> Audit:
    """Audit twins of human text and these sources; human text is always first."""
    collection = twins(40, ("human", *sources))
    found = [ordered(collection, [("human", *sources)] * 40, name) for name in runs]
    return audit(collection, found, ["nDCG@1", "RR"], resamples=100)
