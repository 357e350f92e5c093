"""Whether a test bed can be trusted: the papers' tables and figures on both sides of a collection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from ranktilt.auditing.audit import audit_provenance
from ranktilt.auditing.effects import FEW_QUERIES, Equivalence
from ranktilt.collection import Collection
from ranktilt.datasets.check import check
from ranktilt.datasets.check_limits import LIMITS, CheckLimits
from ranktilt.datasets.check_result import CheckResult
from ranktilt.errors import UserError, counted, refuse_twice
from ranktilt.io.artifact import Result
from ranktilt.measures.base import Measure, measure
from ranktilt.measures.ndcg import nDCG
from ranktilt.probes.base import others, reference_of, twin_sources
from ranktilt.probes.equivalence import ALPHA, MARGIN, equivalences
from ranktilt.probes.similarity import MAP_PAIRS, Similarity, SimilarityProbe
from ranktilt.probes.text_probes import CollectionStatistics, Overlap, OverlapProbe, statistics
from ranktilt.probes.vectors import require_encoder
from ranktilt.rankers.base import Ranker


@dataclass(frozen=True, eq=False)
class Validation(Result, format="ranktilt-validation", version=1, noun="a validation", command="ranktilt check --full"):
    """What `validate` found; immutable.

    Parameters
    ----------
    spec : mapping
        How it was made: path, options, versions.
    reference : str
        The source that each of the others is held against.
    sources : tuple of str
        The others; empty where the collection has one source.
    statistics : CollectionStatistics
        Documents, words, queries and judgments of every source.
    overlaps : tuple of Overlap
        What twins share in words, a source each that has twins.
    similarities : tuple of Similarity
        How near twins lie in an encoder's space, a source each; empty where none was asked for.
    effectiveness : tuple of Equivalence
        Each ranker on each side alone: by source, ranker and measure; empty without judgments.
    check : CheckResult or None
        What `check` finds; None where there is one source.
    notes : tuple of str
        What was left out, and why.
    """

    spec: Mapping[str, Any]
    reference: str
    sources: tuple[str, ...]
    statistics: CollectionStatistics
    overlaps: tuple[Overlap, ...] = field(metadata={"file": "terms"})
    similarities: tuple[Similarity, ...] = field(metadata={"file": "similarity"})
    effectiveness: tuple[Equivalence, ...]
    check: CheckResult | None
    notes: tuple[str, ...]

    @property
    def fair(self) -> bool:
        """Whether `check` found nothing that voids a comparison; True where there was nothing to check."""
        return self.check is None or self.check.fair

    def derived(self) -> dict[str, Any]:
        """The verdict, for those who read the file."""
        return {"fair": self.fair}


def validate(
    collection: Collection,
    rankers: Sequence[Ranker] = (),
    measures: Sequence[str | Measure] | None = None,
    *,
    reference: str | None = None,
    similarity: Ranker | None = None,
    map_pairs: int = MAP_PAIRS,
    margin: float = MARGIN,
    alpha: float = ALPHA,
    limits: CheckLimits = LIMITS,
    seed: int = 0,
) -> Validation:
    """Validate a test bed as its first paper does: whether both sides are alike in all but who wrote them.

    Parameters
    ----------
    collection : Collection
        With two sources or more, whose documents are twins by ``origin``. Of one source there is little to say.
    rankers : sequence of Ranker, optional
        Ranked on each side alone; none leaves effectiveness out.
    measures : sequence of str or Measure, optional
        ``nDCG@10`` by default.
    reference : str, optional
        The source that each of the others is held against: ``"human"`` where there is one, or else the first.
    similarity : Ranker, optional
        An encoder, such as ``dense:minilm``, whose vectors of twins are compared; None leaves similarity out.
    map_pairs : int, optional
        Most pairs in the picture of both sides; 0 for no picture.
    margin : float, optional
        The largest difference in effectiveness that would not matter, in the measure's own unit (0 to 1).
    alpha : float, optional
        Level of the tests of equivalence and of difference.
    limits : CheckLimits, optional
        From where on a fault voids the comparison.
    seed : int, optional
        Of every random draw.

    Returns
    -------
    Validation
        The papers' Table 1 (statistics), Table 2 (effectiveness) and Figures 3 to 5 (terms, map, similarity), and
        the check.

    Raises
    ------
    UserError
        If the reference is no source, a ranker or measure is given twice, a number is out of range, or a model is not
        there.

    References
    ----------
    Dai et al., KDD 2024, sec. 2 and 4.
    """
    first = reference_of(collection, reference, to="validate")
    wanted = [measure(m) for m in measures] if measures else [nDCG @ 10]
    if similarity is not None:
        require_encoder(similarity)
    refuse_twice([repr(r) for r in rankers], "ranker")
    refuse_twice([repr(m) for m in wanted], "measure")
    if map_pairs < 0:
        raise UserError(f"expected 0 or more pairs in the map, got {map_pairs}")
    sources, paired = others(collection, first), twin_sources(collection, first)
    judged = bool(collection.qrels.filter(pl.col("grade") > 0).height)
    asked = rankers if judged else ()
    rows = equivalences(collection, asked, wanted, reference=first, sources=paired, margin=margin, alpha=alpha)
    near: tuple[Similarity, ...] = ()
    if similarity is not None:
        near = SimilarityProbe(map_pairs=map_pairs, seed=seed).measure(collection, first, similarity)
    found = check(collection, reference=first, limits=limits) if sources else None
    made = {name: collection.spec[name] for name in ("path", "split") if name in collection.spec}
    provenance = audit_provenance(collection, [])
    made |= {name: provenance[name] for name in ("ranktilt", "python", "packages", "inputs")}
    spec = {
        **made, "reference": first, "rankers": [repr(r) for r in rankers], "measures": [repr(m) for m in wanted],
        "similarity": None if similarity is None else repr(similarity), "map_pairs": map_pairs, "margin": margin,
        "alpha": alpha, "seed": seed,
    }  # fmt: skip
    return Validation(
        spec=spec,
        reference=first,
        sources=tuple(sources),
        statistics=statistics(collection),
        overlaps=OverlapProbe().measure(collection, first, None),
        similarities=near,
        effectiveness=rows,
        check=found,
        notes=tuple(_notes(collection, first, rows)),
    )


def _notes(collection: Collection, reference: str, rows: Sequence[Equivalence]) -> Iterator[str]:
    """Say what a validation leaves out, and what stands on little."""
    sources = others(collection, reference)
    if not sources:
        yield f"only source {reference!r}: there is nothing to compare, so that only its statistics are given"
        return
    for source in sources:
        if not collection.pairs(reference, source).height:
            yield f"{source} has no document of the same origin as one of {reference}: nothing of it can be compared"
    if not collection.qrels.filter(pl.col("grade") > 0).height:
        yield "no document is judged relevant: effectiveness is left out"
    for row in {row.source: row for row in rows if row.left_out}.values():
        yield (
            f"effectiveness of {reference} and {row.source} is that of a search among the {row.pairs:,} pairs: "
            f"{counted(row.left_out, 'document', 'documents')} without a twin are on neither side"
        )
    excluded = max(rows, key=lambda row: row.excluded, default=None)
    if excluded is not None and excluded.excluded:
        total = counted(excluded.queries + excluded.excluded, "query", "queries")
        yield f"up to {excluded.excluded} of {total} excluded: no relevant document on both sides"
    fewest = min((row.queries for row in rows), default=FEW_QUERIES)
    if fewest < FEW_QUERIES:
        yield (
            f"warning: only {counted(fewest, 'query is', 'queries are')} compared; t tests of fewer than "
            f"{FEW_QUERIES} are not to rely on"
        )
