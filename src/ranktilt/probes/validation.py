"""Whether a test bed can be trusted: the papers' tables and figures on both sides of a collection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from ranktilt.auditing.audit import audit_provenance
from ranktilt.auditing.effects import FEW_QUERIES, Equivalence
from ranktilt.auditing.groups import grouping
from ranktilt.auditing.judged_rankings import Aligned, Judgments, group_values
from ranktilt.auditing.significance import EquivalenceTask, equivalence_rows
from ranktilt.collection import Collection
from ranktilt.datasets.check import CheckResult, check
from ranktilt.datasets.check_limits import LIMITS, CheckLimits
from ranktilt.datasets.stated_sources import with_stated_sources, without_source
from ranktilt.errors import UserError, counted, refuse_twice
from ranktilt.io.artifact import Result
from ranktilt.measures.base import Measure, measure
from ranktilt.measures.ndcg import nDCG
from ranktilt.measures.ranking import Floats
from ranktilt.probes.base import others, reference_of, twin_sources
from ranktilt.probes.similarity import MAP_PAIRS, Similarity, SimilarityProbe
from ranktilt.probes.text_probes import CollectionStatistics, Overlap, OverlapProbe, statistics
from ranktilt.probes.vectors import require_encoder
from ranktilt.rankers.base import Ranker
from ranktilt.rankers.candidates import check_reranked
from ranktilt.run import codes

MARGIN, ALPHA = 0.02, 0.05


@dataclass(frozen=True, eq=False)
class Validation(
    Result,
    format="ranktilt-validation",
    version=1,
    noun="a validation",
    command="ranktilt check --full",
):
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
        With two sources or more, whose documents are twins by ``origin``. Of one source there is
        little to say.
    rankers : sequence of Ranker, optional
        Ranked on each side alone; none leaves effectiveness out.
    measures : sequence of str or Measure, optional
        ``nDCG@10`` by default.
    reference : str, optional
        The source that each of the others is held against: ``"human"`` where there is one, or else
        the first.
    similarity : Ranker, optional
        An encoder, such as ``dense:minilm``, whose vectors of twins are compared; None leaves
        similarity out.
    map_pairs : int, optional
        Most pairs in the picture of both sides; 0 for no picture.
    margin : float, optional
        The largest difference in effectiveness that would not matter, in the measure's own unit (0
        to 1).
    alpha : float, optional
        Level of the tests of equivalence and of difference.
    limits : CheckLimits, optional
        From where on a fault voids the comparison.
    seed : int, optional
        Of every random draw.

    Returns
    -------
    Validation
        The papers' Table 1 (statistics), Table 2 (effectiveness) and Figures 3 to 5 (terms, map,
        similarity), and the check.

    Raises
    ------
    UserError
        If the reference is no source, a ranker or measure is given twice, a number is out of range,
        or a model is not there.

    References
    ----------
    Dai et al., KDD 2024, sec. 2 and 4.
    """
    first, everything = reference_of(collection, reference, to="validate"), collection
    collection = with_stated_sources(collection)
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
    rows = equivalences(
        collection, asked, wanted, reference=first, sources=paired, margin=margin, alpha=alpha
    )
    near: tuple[Similarity, ...] = ()
    if similarity is not None:
        near = SimilarityProbe(map_pairs=map_pairs, seed=seed).measure(
            collection, first, similarity
        )
    found = check(everything, reference=first, limits=limits) if sources else None
    sourceless = [without_source(everything.sourceless)] if everything.sourceless else []
    made = {name: collection.spec[name] for name in ("path", "split") if name in collection.spec}
    provenance = audit_provenance(collection, [])
    made |= {name: provenance[name] for name in ("ranktilt", "python", "packages", "inputs")}
    spec = {
        **made,
        "reference": first,
        "rankers": [repr(r) for r in rankers],
        "measures": [repr(m) for m in wanted],
        "similarity": None if similarity is None else repr(similarity),
        "map_pairs": map_pairs,
        "margin": margin,
        "alpha": alpha,
        "seed": seed,
    }
    return Validation(
        spec=spec,
        reference=first,
        sources=tuple(sources),
        statistics=statistics(everything),
        overlaps=OverlapProbe().measure(collection, first, None),
        similarities=near,
        effectiveness=rows,
        check=found,
        notes=(*_notes(collection, first, rows), *sourceless),
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


def split_by_source(
    collection: Collection, reference: str, source: str
) -> tuple[Collection, Collection]:
    """Take a collection apart into two that can be searched alone: the same content, written by two sources.

    Both hold all queries, the documents of their source that have a twin on the other side, and the
    judgments of these. Without that restriction the side with more documents would be the harder
    one to search, and a collection of which only a part was rewritten would say nothing.
    """
    sides = [collection.docs.filter(pl.col("source") == name) for name in (reference, source)]
    left, right = (
        a.join(b, on="origin", how="semi", maintain_order="left") for a, b in (sides, sides[::-1])
    )
    return alone(collection, left, reference), alone(collection, right, source)


def alone(collection: Collection, docs: pl.DataFrame, source: str) -> Collection:
    """The collection of some documents only, which `source` names: all queries, and the judgments of these."""
    judged = collection.qrels.join(
        docs, left_on="doc_id", right_on="id", how="semi", maintain_order="left"
    )
    return Collection(docs, collection.queries, judged, {**collection.spec, "only": source})


def equivalences(
    collection: Collection,
    rankers: Sequence[Ranker],
    measures: Sequence[Measure],
    *,
    reference: str,
    sources: Sequence[str],
    margin: float = MARGIN,
    alpha: float = ALPHA,
) -> tuple[Equivalence, ...]:
    """Rank each source alone with each ranker, and compare them query by query; by source, ranker and measure.

    Equivalence is shown where `tost_p` is below `alpha`, a difference where the corrected p is.
    """
    if not 0 < margin < 1:
        raise UserError(
            f"expected a margin above 0 and below 1, such as {MARGIN:g}, got {margin:g}"
        )
    if not 0 < alpha < 0.5:
        raise UserError(
            f"expected an alpha above 0 and below 0.5, such as {ALPHA:g}, got {alpha:g}"
        )
    for one in rankers:
        one.check()
    known, tasks = dict[tuple[str, tuple[str, ...]], Floats](), []
    for source in sources:
        sides = split_by_source(collection, reference, source)
        pairs = sides[0].docs["origin"].n_unique()
        either = collection.docs.filter(pl.col("source").is_in([reference, source])).height
        left_out = either - sum(side.docs.height for side in sides)
        for one in rankers if pairs else ():
            both = []
            for side in sides:
                key = repr(one), tuple(side.ids)
                if key not in known:  # a side that several comparisons share is ranked once
                    known[key] = _values(one, side, measures, collection.judged["id"])
                both.append(known[key])
            for m, a, b in zip(measures, *both, strict=True):
                tasks.append(
                    EquivalenceTask(repr(one), m, reference, source, a, b, pairs, left_out)
                )
    return equivalence_rows(tasks, margin=margin, alpha=alpha)


def _values(
    ranker: Ranker, side: Collection, measures: Sequence[Measure], queries: pl.Series
) -> Floats:
    """Values of these queries on one side, a row a measure; NaN where nothing is relevant."""
    groups = grouping(side, None)
    judgments = Judgments.of(side, groups)
    run = check_reranked(ranker.rank(side), None, ranker)
    found = group_values(Aligned.of(run, side, judgments), measures, groups, "expected")[:, 0]
    place = codes(queries, pl.Series(judgments.queries, dtype=pl.String))
    return np.pad(found, ((0, 0), (0, 1)), constant_values=np.nan)[:, place]
