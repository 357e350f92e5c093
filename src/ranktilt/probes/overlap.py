"""What twins share in words: Jaccard similarity and overlap of their terms (Dai et al., KDD 2024, Fig. 3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ranktilt.collection import Collection
from ranktilt.datasets.check_result import percent
from ranktilt.errors import counted
from ranktilt.probes.base import NO_TWINS, Probe, ProbeResult, described, histogram, twin_sources
from ranktilt.probes.distribution import Distribution
from ranktilt.probes.effect_size import effect_size
from ranktilt.rankers.base import Ranker
from ranktilt.text.quality import share, term_counts


@dataclass(frozen=True, eq=False)
class Overlap:
    """What the twins of one source share with the reference."""

    source: str
    jaccard: Distribution
    """Terms of both over terms of either, 0 to 1."""
    overlap: Distribution
    """The share of the reference's terms that its rewrite kept, 0 to 1."""


def shared_terms(collection: Collection, reference: str, source: str) -> Overlap:
    """Compare the terms of every pair of twins, in the order of `Collection.pairs`; NaN where a side has no term.

    Terms are lower-cased runs of letters, digits and underscores of the texts without their titles (Dai et al., KDD
    2024, sec. 2.3.1 and Fig. 3).
    """
    left, right, both = _twin_terms(collection, reference, source)
    return Overlap(
        source,
        Distribution("Jaccard", share(both, left + right - both)),
        Distribution("overlap", share(both, left)),
    )


def _twin_terms(collection: Collection, reference: str, source: str) -> tuple[npt.NDArray[np.int64], ...]:
    """Distinct terms of each text of the reference, of its twin, and of both."""
    texts = collection.docs.select("id", "text")
    table = collection.pairs(reference, source).join(texts, left_on="a", right_on="id", maintain_order="left")
    table = table.join(texts, left_on="b", right_on="id", suffix="_b", maintain_order="left")
    return term_counts(table["text"], table["text_b"])


def terms_sentence(found: Overlap, reference: str) -> str:
    """Say how many terms rewrites keep."""
    if not found.overlap.count:
        return f"terms cannot be compared: no text of {reference} with a twin has a term"
    return (
        f"rewrites keep {percent(100 * found.overlap.mean)} of the terms of {reference} text; Jaccard "
        f"{found.jaccard.mean:.2f} (means over {counted(found.overlap.count, 'pair', 'pairs')})"
    )


class OverlapProbe(Probe[tuple[Overlap, ...]]):
    """How many words a rewrite keeps."""

    name = "overlap"
    question = "How many of a text's words does its rewrite keep?"
    citation = "Dai et al., KDD 2024, sec. 2.3.1 and Fig. 3"

    def measure(self, collection: Collection, reference: str, ranker: Ranker | None) -> tuple[Overlap, ...]:
        return tuple(shared_terms(collection, reference, name) for name in twin_sources(collection, reference))

    def describe(self, collection: Collection, reference: str, measured: tuple[Overlap, ...]) -> ProbeResult:
        """Make a row a source and quantity; the effect size is that of distinct terms a text."""
        found = [(one.source, kind) for one in measured for kind in (one.jaccard, one.overlap)]
        rows = [described(source, kind, of=kind.name) for source, kind in found]
        effects = []
        for one in measured:
            left, right, _ = _twin_terms(collection, reference, one.source)
            effects.append(effect_size(one.source, "distinct terms", left.astype(float), right.astype(float)))
        figures = [
            histogram("Jaccard similarity of twins' terms", "Jaccard", {one.source: one.jaccard for one in measured}),
            histogram("Share of terms that rewrites keep", "overlap", {one.source: one.overlap for one in measured}),
        ]
        said = [f"{one.source}: {terms_sentence(one, reference)}" for one in measured]
        return self.result(rows, effects, figures, f"{'; '.join(said) or NO_TWINS}.")
