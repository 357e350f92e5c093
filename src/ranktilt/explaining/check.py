"""Whether a collection makes a fair comparison: contents, faults, and how alike its sides are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from ranktilt.auditing.effects import FEW_QUERIES, Equivalence
from ranktilt.auditing.instrument import InstrumentRow, check_instrument
from ranktilt.auditing.provenance import audit_provenance
from ranktilt.data.artifact import Coded, Result
from ranktilt.data.check_limits import LIMITS, CheckLimits
from ranktilt.data.collection import Collection
from ranktilt.data.contents import Contents, contents_of
from ranktilt.data.faults import FaultRow, Verdict, find_faults
from ranktilt.data.label_remarks import label_remarks
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
from ranktilt.data.stated_sources import source_hint, with_stated_sources
from ranktilt.errors import UserError, refuse_twice
from ranktilt.explaining.base import EffectSize, TextProbe, effect_size, twin_rows, twin_sources
from ranktilt.explaining.equivalence import ALPHA, MARGIN, equivalences
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
"""Properties measured for every text: the probes of `explain` that need no model."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CheckResult(
    Result, format="ranktilt-check", version=1, noun="a check", command="ranktilt check"
):
    """What `check` found; immutable.

    Parameters
    ----------
    spec : mapping
        How it was made: path, options, versions.
    reference : str
        The source that all others are compared with; empty where nothing is compared.
    sources : tuple of str
        All sources but the reference; the only one where there is one; empty where no document
        names a source.
    contents : Contents
        Documents, words, queries and judgments of every source.
    faults : tuple of FaultRow
        By source, and those on the whole collection last.
    limits : CheckLimits
        From where on a fault voids the comparison.
    features : tuple of EffectSize
        How the texts of each source differ from their twins, a property each.
    terms : tuple of Overlap
        What twins share in words, a source each that has twins.
    similarity : tuple of Similarity
        How near twins lie in an encoder's space, a source each; empty without an encoder or twins.
    effectiveness : tuple of Equivalence
        Each ranker on each side alone: by source, ranker and measure; empty without rankers, twins
        or judgments.
    instrument : tuple of InstrumentRow
        Audits with sources by a coin, ranker by ranker, where they were asked for.
    notes : tuple of Note
        What was left out, and why.
    """

    spec: Mapping[str, Any]
    reference: str
    sources: tuple[str, ...]
    contents: Contents
    faults: tuple[FaultRow, ...]
    limits: CheckLimits = LIMITS
    features: tuple[EffectSize, ...] = ()
    terms: tuple[Overlap, ...] = ()
    similarity: tuple[Similarity, ...] = ()
    effectiveness: tuple[Equivalence, ...] = ()
    instrument: tuple[InstrumentRow, ...] = ()
    notes: tuple[Coded[Note], ...] = ()

    @property
    def is_compared(self) -> bool:
        """Whether there are two sides at all."""
        return bool(self.reference)

    @property
    def is_void(self) -> bool:
        """Whether a fault voids the comparison, or audits name a side more often than chance."""
        return bool(self.of("void")) or not all(row.is_calibrated for row in self.instrument)

    @property
    def fair(self) -> bool:
        """Whether sides are compared, and nothing voids it."""
        return self.is_compared and not self.is_void

    def of(self, verdict: Verdict) -> tuple[FaultRow, ...]:
        """Return the faults with a verdict."""
        return tuple(row for row in self.faults if row.verdict == verdict)

    def derived(self) -> dict[str, Any]:
        return {"fair": self.fair}


def check(
    collection: Collection,
    rankers: Sequence[Ranker] = (),
    measures: Sequence[str | Measure] | None = None,
    *,
    reference: str | None = None,
    limits: CheckLimits = LIMITS,
    similarity: Ranker | None = None,
    map_pairs: int = MAP_PAIRS,
    equivalence: float = MARGIN,
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
        source are on no side, and counted; where one source is left beside them, its texts are
        examined, and compared with none. Load it with ``ignore_unknown=True``, so that judgments of
        unknown documents are counted.
    rankers : sequence of Ranker, optional
        Ranked on each side alone, and compared query by query; none leaves effectiveness out.
    measures : sequence of str or Measure, optional
        Of effectiveness, ``nDCG@10`` by default; with `instrument` those of its audits, too.
    reference : str, optional
        The source that the others are compared with: ``"human"`` where there is one, or else the
        first.
    limits : CheckLimits, optional
        From where on a fault voids the comparison.
    similarity : Ranker, optional
        An encoder, such as ``dense:minilm``, whose vectors of twins are compared; None leaves
        similarity out.
    map_pairs : int, optional
        Most pairs in the picture of both sides; 0 for no picture.
    equivalence : float, optional
        The largest difference in effectiveness that would not matter, in the measure's own unit (0
        to 1).
    alpha : float, optional
        Level of the tests of equivalence and of difference.
    instrument : bool, optional
        Also toss coins for the sources, 200 times: how often does an audit of the rankers name a
        side?
    seed : int, optional
        Of every random draw.
    examples : int, optional
        Most ids to name for a fault.

    Returns
    -------
    CheckResult
        What each source holds (Table 1 of the paper), faults, text features, terms (its Figure 3),
        the map and similarity (Figures 4 and 5), effectiveness (Table 2) and the instrument. Faults
        and the instrument decide whether it is fair.

    Raises
    ------
    UserError
        If the collection is empty or names too many sources, the reference is no source, a ranker
        or measure is given twice, a number is out of range, or a model is not there.

    References
    ----------
    Dai et al., KDD 2024, sec. 2 and 4.
    """
    _require_documents(collection, reference)
    if similarity is not None:
        require_encoder(similarity)
    chosen_measures = [measure(text) for text in measures] if measures else [nDCG @ 10]
    refuse_twice([repr(ranker) for ranker in rankers], "ranker")
    refuse_twice([repr(chosen) for chosen in chosen_measures], "measure")
    if map_pairs < 0:
        raise UserError(f"expected 0 or more pairs in the map, got {map_pairs}")
    first, others = _reference_and_others(collection, reference)
    stated = with_stated_sources(collection) if collection.sources else collection
    twinned = twin_sources(stated, first) if first else []
    is_judged = bool(collection.qrels.filter(pl.col("grade") > 0).height)
    rows = equivalences(
        stated,
        rankers if is_judged else (),
        chosen_measures,
        reference=first,
        sources=twinned,
        margin=equivalence,
        alpha=alpha,
    )
    similarities: tuple[Similarity, ...] = ()
    if similarity is not None and twinned:
        probe = SimilarityProbe(map_pairs=map_pairs, seed=seed)
        similarities = probe.measure(stated, first, similarity)
    asked_parts: dict[Part, bool] = {
        "effectiveness": bool(rankers),
        "similarity": similarity is not None,
        "instrument": instrument,
    }
    options = {
        "reference": first,
        "rankers": [repr(ranker) for ranker in rankers],
        "measures": [repr(chosen) for chosen in chosen_measures],
        "similarity": None if similarity is None else repr(similarity),
        "map_pairs": map_pairs,
        "equivalence": equivalence,
        "alpha": alpha,
        "seed": seed,
    }
    instrument_rows: tuple[InstrumentRow, ...] = ()
    if instrument and first:
        instrument_rows = check_instrument(stated, rankers, measures, seed=seed)
    omissions = _omission_notes(
        asked_parts, is_sided=bool(first), has_twins=bool(twinned), is_judged=is_judged
    )
    return CheckResult(
        spec=_provenance(collection) | options,
        reference=first,
        sources=others,
        contents=contents_of(collection),
        faults=find_faults(collection, first, others, limits=limits, examples=examples),
        limits=limits,
        features=tuple(_feature_effects(stated, first, twinned)),
        terms=OverlapProbe().measure(stated, first, None) if twinned else (),
        similarity=similarities,
        effectiveness=rows,
        instrument=instrument_rows,
        notes=(
            *_source_notes(collection, first),
            *omissions,
            *_effectiveness_notes(rows, first),
        ),
    )


def _require_documents(collection: Collection, reference: str | None) -> None:
    if not collection.docs.height:
        raise UserError("nothing to check: the collection has no document")
    collection.require_few_sources()
    if reference is not None and reference not in collection.sources:
        raise collection.unknown_source(reference)


def _reference_and_others(
    collection: Collection, reference: str | None
) -> tuple[str, tuple[str, ...]]:
    """Return the reference, empty where nothing is compared, and the sources to examine."""
    sources = collection.sources
    if len(sources) < 2:
        return "", sources
    first = reference or ("human" if "human" in sources else sources[0])
    return first, tuple(source for source in sources if source != first)


def _provenance(collection: Collection) -> dict[str, Any]:
    """Say where the collection comes from, and what read it."""
    origin = {name: collection.spec[name] for name in ("path", "split") if name in collection.spec}
    provenance = audit_provenance(collection, [])
    readers = {name: provenance[name] for name in ("ranktilt", "python", "packages", "inputs")}
    return origin | readers


def _feature_effects(
    collection: Collection, reference: str, sources: Sequence[str]
) -> Iterator[EffectSize]:
    """Compare each property of each source's texts with that of their twins; source by source."""
    if not sources:
        return
    values = {
        feature.unit: feature.measure(collection, reference, None) for feature in TEXT_FEATURES
    }
    for source in sources:
        reference_rows, source_rows = twin_rows(collection, reference, source)
        for name, value in values.items():
            yield effect_size(source, name, value[reference_rows], value[source_rows])


def _source_notes(collection: Collection, reference: str) -> Iterator[Note]:
    """Note how labels are written, and which documents are compared with none."""
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
    asked_parts: Mapping[Part, bool], *, is_sided: bool, has_twins: bool, is_judged: bool
) -> Iterator[Note]:
    """Note which parts were asked for and left out."""
    sides: Literal["no twins", "one side"] = "no twins" if is_sided else "one side"
    for part, is_asked in asked_parts.items():
        is_possible = is_sided if part == "instrument" else has_twins
        if is_asked and not is_possible:
            yield PartLeftOut(part=part, reason=sides)
        elif is_asked and part == "effectiveness" and not is_judged:
            yield PartLeftOut(part=part, reason="nothing relevant")


def _effectiveness_notes(rows: Sequence[Equivalence], reference: str) -> Iterator[Note]:
    """Note which documents and queries effectiveness is based on."""
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
