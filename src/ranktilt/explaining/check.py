"""Whether a collection makes a fair comparison: contents, faults, and how alike its sides are.

A *source* is the author of documents. The two *sides* of a comparison are the documents of the
*reference*, usually human, and those of one other source. *Twins* are documents of the same origin
on different sides. A *fault* is something else in which the sides differ, such as cut-off texts.
The *instrument* is the audit itself: it is tested with sources that are assigned by coin tosses,
where it should find no difference. Two sides are *equivalent* for a ranker if they are shown to be
equally easy to search.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from ranktilt.auditing.checks.equivalence import Equivalence
from ranktilt.auditing.checks.instrument import InstrumentRow, check_instrument
from ranktilt.auditing.effects import FEW_QUERIES
from ranktilt.auditing.storage.provenance import audit_provenance
from ranktilt.data.collection import Collection
from ranktilt.data.faults.check_limits import EQUIVALENCE, LIMITS, CheckLimits
from ranktilt.data.faults.contents import contents_of
from ranktilt.data.faults.faults import find_faults
from ranktilt.data.labels.label_remarks import label_remarks
from ranktilt.data.labels.stated_sources import source_hint, with_stated_sources
from ranktilt.data.notes.base import Note
from ranktilt.data.notes.groups import DocumentsUnlabelled
from ranktilt.data.notes.inputs import TextsNotExamined
from ranktilt.data.notes.texts import (
    EffectivenessNotTested,
    EffectivenessOfPairs,
    FewQueriesTested,
    Part,
    PartLeftOut,
    QueriesOfOneSideExcluded,
    SourceWithoutOrigins,
)
from ranktilt.errors import UserError, refuse_twice
from ranktilt.explaining.base import EffectSize, TextProbe, effect_size, twin_rows, twin_sources
from ranktilt.explaining.check_result import CheckResult
from ranktilt.explaining.equivalence import ALPHA, equivalences
from ranktilt.explaining.similarity import MAP_PAIRS, Similarity, SimilarityProbe
from ranktilt.explaining.text_probes import (
    Overlap,
    OverlapProbe,
    QueryWordsProbe,
    ReadabilityProbe,
    SentenceLengthProbe,
    SpecificityProbe,
    TypeTokenProbe,
    WordsProbe,
)
from ranktilt.explaining.vectors import require_encoder
from ranktilt.field_checks import require_seed, require_whole_number
from ranktilt.measures.base import Measure, measure
from ranktilt.measures.ndcg import nDCG
from ranktilt.rankers.base import Ranker

TEXT_FEATURES: tuple[TextProbe, ...] = (
    WordsProbe(),
    SentenceLengthProbe(),
    ReadabilityProbe(),
    TypeTokenProbe(),
    SpecificityProbe(),
    QueryWordsProbe(),
)
"""Properties measured for every text; the probes need no model."""


def check(
    collection: Collection,
    rankers: Sequence[Ranker] = (),
    measures: Sequence[str | Measure] | None = None,
    *,
    reference: str | None = None,
    limits: CheckLimits = LIMITS,
    similarity: Ranker | None = None,
    map_pairs: int = MAP_PAIRS,
    equivalence: float = EQUIVALENCE,
    alpha: float = ALPHA,
    instrument: bool = False,
    seed: int = 0,
    examples: int = 3,
) -> CheckResult:
    """Check that a collection makes a fair comparison: its sides differ only in who wrote them.

    Parameters
    ----------
    collection : Collection
        With two sources or more, whose documents are twins by ``origin``. Documents without a
        source are counted, but on no side. If only one source is left, its texts are examined
        without a comparison. Load it with ``ignore_unknown=True`` to count judgments of unknown
        documents.
    rankers : sequence of Ranker, optional
        Rank each side alone with these, and compare effectiveness query by query; none to skip
        this.
    measures : sequence of str or Measure, optional
        Measures of effectiveness, ``nDCG@10`` by default. With `instrument` its audits use them
        too.
    reference : str, optional
        The source that the others are compared with: ``"human"`` if there is such a source, else
        the first.
    limits : CheckLimits, optional
        How large a fault must be to void the comparison.
    similarity : Ranker, optional
        An encoder, such as ``dense:minilm``, to compare the vectors of twins with; None to skip
        this.
    map_pairs : int, optional
        Maximum number of pairs in the picture of both sides; 0 for no picture.
    equivalence : float, optional
        The largest difference in effectiveness that would not matter, in points.
    alpha : float, optional
        Significance level of the tests of equivalence and of difference.
    instrument : bool, optional
        Also assign sources by coin tosses, 200 times, to see how often an audit of the rankers
        names a side.
    seed : int, optional
        Random seed of every draw.
    examples : int, optional
        Maximum number of ids to name for a fault.

    Returns
    -------
    CheckResult
        Contents of each source (Table 1 of the paper), faults, text features, terms (its Figure 3),
        the map and similarity (Figures 4 and 5), effectiveness (Table 2) and the instrument. Faults
        and the instrument decide whether it is fair.

    Raises
    ------
    UserError
        If the collection is empty or names too many sources, the reference is not a source, a
        ranker or measure is given twice, a number is out of range, or a model is missing.

    References
    ----------
    Dai et al., KDD 2024, sec. 2 and 4.
    """
    reference = None if reference is None else collection.source_named(reference)
    _require_documents(collection, reference)
    if similarity is not None:
        require_encoder(similarity)
    chosen_measures = _checked_measures(measures)
    refuse_twice([repr(ranker) for ranker in rankers], "ranker")
    require_whole_number(map_pairs, "0 or more pairs in the map", least=0)
    require_whole_number(examples, "0 or more examples of a fault", least=0)
    require_seed(seed)
    compared = ComparedSources.from_collection(collection, reference)
    is_judged = bool(collection.qrels.filter(pl.col("grade") > 0).height)
    rows = equivalences(
        compared.collection,
        rankers if is_judged else (),
        chosen_measures,
        reference=compared.reference,
        sources=compared.sources_with_twins,
        margin=equivalence,
        alpha=alpha,
    )
    similarities = compared.similarities(similarity, map_pairs=map_pairs, seed=seed)
    instrument_rows: tuple[InstrumentRow, ...] = ()
    if instrument and compared.reference:
        instrument_rows = check_instrument(compared.collection, rankers, measures, seed=seed)
    options = {
        "reference": compared.reference,
        "rankers": [repr(ranker) for ranker in rankers],
        "measures": [repr(effectiveness) for effectiveness in chosen_measures],
        "similarity": None if similarity is None else repr(similarity),
        "map_pairs": map_pairs,
        "equivalence": equivalence,
        "alpha": alpha,
        "seed": seed,
    }
    omissions = _omission_notes(
        {
            "effectiveness": bool(rankers),
            "similarity": similarity is not None,
            "instrument": instrument,
        },
        is_sided=bool(compared.reference),
        has_twins=bool(compared.sources_with_twins),
        is_judged=is_judged,
    )
    faults = find_faults(
        collection, compared.reference, compared.sources, limits=limits, examples=examples
    )
    notes = (
        *_source_notes(collection, compared.reference),
        *omissions,
        *effectiveness_notes(rows, compared.reference),
    )
    return CheckResult(
        spec=_provenance(collection) | options,
        reference=compared.reference,
        sources=compared.sources,
        contents=contents_of(collection),
        faults=faults,
        limits=limits,
        features=tuple(compared.feature_effects()),
        terms=compared.shared_terms(),
        similarity=similarities,
        effectiveness=rows,
        instrument=instrument_rows,
        notes=notes,
    )


def _require_documents(collection: Collection, reference: str | None) -> None:
    """Refuse a collection without documents, with too many sources, or without the reference."""
    if not collection.docs.height:
        raise UserError("nothing to check: the collection has no document")
    collection.require_few_sources()
    if reference is not None and reference not in collection.sources:
        raise collection.unknown_source(reference)


def _checked_measures(texts: Sequence[str | Measure] | None) -> list[Measure]:
    """Return the measures of effectiveness, nDCG@10 by default; refuse one that is given twice."""
    measures: list[Measure] = [nDCG @ 10]
    if texts:
        measures = [measure(text) for text in texts]
    refuse_twice([repr(effectiveness) for effectiveness in measures], "measure")
    return measures


def _provenance(collection: Collection) -> dict[str, Any]:
    """Return where the collection comes from, and the versions of the programs that read it."""
    paths = {name: collection.spec[name] for name in ("path", "split") if name in collection.spec}
    provenance = audit_provenance(collection, [])
    names = ("ranktilt", "python", "packages", "inputs")
    return paths | {name: provenance[name] for name in names}


# ---- the sides -----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class ComparedSources:
    """The reference of a collection, and the sources that are compared with it."""

    collection: Collection
    """The collection, with only those documents that state a source."""
    reference: str
    """The source that all others are compared with; empty if nothing is compared."""
    sources: tuple[str, ...]
    """All sources but the reference, or the only source."""
    sources_with_twins: Sequence[str]
    """Sources that have twins in the reference."""

    @classmethod
    def from_collection(cls, collection: Collection, reference: str | None) -> ComparedSources:
        """Choose the reference and the sources to compare; a single source is not compared.

        Without a given `reference` it is ``human`` if there is such a source, else the first.
        """
        sources = collection.sources
        stated = with_stated_sources(collection) if sources else collection
        if len(sources) < 2:
            return cls(collection=stated, reference="", sources=sources, sources_with_twins=())
        reference = reference or ("human" if "human" in sources else sources[0])
        return cls(
            collection=stated,
            reference=reference,
            sources=tuple(source for source in sources if source != reference),
            sources_with_twins=twin_sources(stated, reference),
        )

    def feature_effects(self) -> Iterator[EffectSize]:
        """Yield how far each feature of each source's texts differs from that of their twins."""
        if not self.sources_with_twins:
            return
        # Each feature is measured once for all documents.
        values_by_unit = {
            feature.unit: feature.measure(self.collection, self.reference, None)
            for feature in TEXT_FEATURES
        }
        for source in self.sources_with_twins:
            reference_rows, source_rows = twin_rows(self.collection, self.reference, source)
            for unit, values in values_by_unit.items():
                yield effect_size(source, unit, values[reference_rows], values[source_rows])

    def shared_terms(self) -> tuple[Overlap, ...]:
        """Measure how many words twins share, for each source with twins."""
        if not self.sources_with_twins:
            return ()
        return OverlapProbe().measure(self.collection, self.reference, None)

    def similarities(
        self, encoder: Ranker | None, *, map_pairs: int, seed: int
    ) -> tuple[Similarity, ...]:
        """Measure how similar the vectors of twins are; empty without an encoder or twins.

        Parameters
        ----------
        encoder : Ranker or None
            A ranker with an encoder.
        map_pairs : int
            Maximum number of pairs in a picture of the vectors; 0 for no picture.
        seed : int
            Random seed of the pairs of unrelated texts that twins are compared with.
        """
        if encoder is None or not self.sources_with_twins:
            return ()
        probe = SimilarityProbe(map_pairs=map_pairs, seed=seed)
        return probe.measure(self.collection, self.reference, encoder)


# ---- notes ---------------------------------------------------------------------------------------


def _source_notes(collection: Collection, reference: str) -> Iterator[Note]:
    """Yield notes on how labels are written, and on documents that are not compared."""
    yield from label_remarks("source", collection.docs["source"])
    if not collection.sources:
        yield source_hint(collection)
        yield TextsNotExamined()
    elif collection.sourceless:
        yield DocumentsUnlabelled(by="source", documents=collection.sourceless)
    for source in collection.sources if reference else ():
        if source != reference and not collection.pairs(reference, source).height:
            yield SourceWithoutOrigins(source=source, reference=reference)


def _omission_notes(
    requested_parts: Mapping[Part, bool], *, is_sided: bool, has_twins: bool, is_judged: bool
) -> Iterator[Note]:
    """Yield a note on each part of a check that was asked for and left out, with the reason.

    Parameters
    ----------
    requested_parts : mapping of str to bool
        Whether each part was asked for.
    is_sided : bool
        Whether there are two sources to compare.
    has_twins : bool
        Whether any source has twins of the reference.
    is_judged : bool
        Whether any document is judged relevant.
    """
    reason: Literal["no twins", "one side"] = "no twins" if is_sided else "one side"
    for part, is_requested in requested_parts.items():
        # Coins can be tossed for any two sources; the other parts compare twins.
        is_possible = is_sided if part == "instrument" else has_twins
        if is_requested and not is_possible:
            yield PartLeftOut(part=part, reason=reason)
        elif is_requested and part == "effectiveness" and not is_judged:
            yield PartLeftOut(part=part, reason="nothing relevant")


def effectiveness_notes(rows: Sequence[Equivalence], reference: str) -> Iterator[Note]:
    """Yield notes on documents and queries that the comparison of effectiveness leaves out."""
    # All rows of a source leave out the same documents.
    for row in {row.source: row for row in rows if row.left_out}.values():
        yield EffectivenessOfPairs(
            source=row.source, reference=reference, pairs=row.pairs, left_out=row.left_out
        )
    most_excluded = max(rows, key=lambda row: row.excluded, default=None)
    if most_excluded is not None and most_excluded.excluded:
        yield QueriesOfOneSideExcluded(
            excluded=most_excluded.excluded,
            queries=most_excluded.queries + most_excluded.excluded,
            are_alike=len({row.excluded for row in rows}) == 1,
        )
    fewest = min((row.queries for row in rows), default=FEW_QUERIES)
    if not fewest:
        yield EffectivenessNotTested()
    elif fewest < FEW_QUERIES:
        yield FewQueriesTested(queries=fewest)
