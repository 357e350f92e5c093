"""Whether a test bed can be trusted: the papers' tables and figures on both sides of a collection."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl

from ranktilt._version import __version__
from ranktilt.auditing.effects import FEW_QUERIES, Equivalence, Outcome
from ranktilt.collection import Collection
from ranktilt.datasets.check import check
from ranktilt.datasets.check_result import POOL, CheckResult, percent
from ranktilt.errors import UserError, counted, refuse_twice
from ranktilt.io.artifact import Result
from ranktilt.io.files import sha256
from ranktilt.measures.base import Measure, measure
from ranktilt.measures.ndcg import nDCG
from ranktilt.probes.base import others, reference_of, twin_sources
from ranktilt.probes.equivalence import ALPHA, MARGIN, equivalences
from ranktilt.probes.overlap import Overlap, OverlapProbe, terms_sentence
from ranktilt.probes.similarity import MAP_PAIRS, Similarity, SimilarityProbe, vectors_sentence
from ranktilt.probes.statistics import CollectionStatistics, statistics
from ranktilt.probes.vectors import require_encoder
from ranktilt.rankers.base import Ranker

_TITLES = "shared titles"
_ORDER: tuple[Outcome, ...] = (
    "equivalent", "different within the margin", "different", "inconclusive", "not tested",
)  # fmt: skip
_PACKAGES = {"numpy": "numpy", "polars": "polars", "scipy": "scipy", "scikit-learn": "sklearn"}


@dataclass(frozen=True, eq=False)
class Validation(Result, format="ranktilt-validation", version=1, noun="a validation", command="ranktilt validate"):
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

    def sentences(self) -> list[str]:
        """Say in words what was found: per source the terms, the vectors and the effectiveness of its rewrites."""
        found = []
        for source in self.sources:
            front = f"{source}: " if len(self.sources) > 1 else ""
            said = [terms_sentence(one, self.reference) for one in self.overlaps if one.source == source]
            said += [vectors_sentence(one) for one in self.similarities if one.source == source]
            said += effectiveness_sentences([row for row in self.effectiveness if row.source == source])
            found += [front + sentence for sentence in said]
        return found

    def derived(self) -> dict[str, Any]:
        """The verdict and the sentences, for those who read the file."""
        return {"fair": self.fair, "sentences": self.sentences()}


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
    found = check(collection, reference=first) if sources else None
    how = {
        "reference": first, "rankers": [repr(r) for r in rankers], "measures": [repr(m) for m in wanted],
        "similarity": None if similarity is None else repr(similarity), "map_pairs": map_pairs, "margin": margin,
        "alpha": alpha, "seed": seed,
    }  # fmt: skip
    return Validation(
        spec={**_provenance(collection), **how},
        reference=first,
        sources=tuple(sources),
        statistics=statistics(collection),
        overlaps=OverlapProbe().measure(collection, first, None),
        similarities=near,
        effectiveness=rows,
        check=found,
        notes=tuple(notes(collection, first, rows, found, similarity)),
    )


def _provenance(collection: Collection) -> dict[str, Any]:
    files = [str(file) for file in collection.spec.get("files", ())]
    return {
        **{name: collection.spec[name] for name in ("path", "split") if name in collection.spec},
        "ranktilt": __version__,
        "python": platform.python_version(),
        "packages": {name: version(name) for name, module in _PACKAGES.items() if find_spec(module)},
        "inputs": [{"path": file, "sha256": sha256(Path(file))} for file in files if Path(file).is_file()],
    }


def effectiveness_sentences(rows: Sequence[Equivalence]) -> list[str]:
    """Say per measure which rankers find both sides equally well, which do not, and which leave it open."""
    found = []
    for name in dict.fromkeys(row.measure for row in rows):
        for outcome in _ORDER:
            chosen = [row for row in rows if (row.measure, row.outcome) == (name, outcome)]
            if chosen:
                found.append(_outcome_sentence(chosen, name, outcome))
    return found


def _outcome_sentence(rows: Sequence[Equivalence], measure: str, outcome: Outcome) -> str:
    front = f"{', '.join(row.run for row in rows)} on each side alone, {measure}"
    differences = ", ".join(f"{row.value:+.3f}".replace("-", "−") for row in rows)
    widest = max(row.smallest for row in rows)
    margin = rows[0].margin
    return {
        "equivalent": f"{front}: equivalent within ±{margin:g}, shown down to ±{widest:.3f}",
        "different within the margin": f"{front}: different ({differences}), but within ±{margin:g}",
        "different": f"{front}: different ({differences})",
        "inconclusive": f"{front}: inconclusive; no difference is shown, but one of {widest:.3f} is not excluded",
        "not tested": f"{front}: not tested; it takes two queries with a relevant document on both sides",
    }[outcome]


def notes(
    collection: Collection,
    reference: str,
    rows: Sequence[Equivalence],
    check: CheckResult | None,
    encoder: Ranker | None,
) -> Iterator[str]:
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
    yield from _restricted(collection, reference, rows)
    yield from _thin(rows)
    if encoder is not None:
        yield from _read(collection, check, encoder)


def _restricted(collection: Collection, reference: str, rows: Sequence[Equivalence]) -> Iterator[str]:
    for row in {row.source: row for row in rows if row.left_out}.values():
        yield (
            f"effectiveness of {reference} and {row.source} is that of a search among the {row.pairs:,} pairs: "
            f"{counted(row.left_out, 'document', 'documents')} without a twin are on neither side"
        )
    if any(row.left_out for row in rows) and collection.docs.schema.get(POOL) == pl.Boolean:
        yield (
            "queries chose the documents that were rewritten (a pool): the easy ones to tell from the relevant are "
            "missing on both sides, and effectiveness is not comparable with that on the whole collection"
        )


def _thin(rows: Sequence[Equivalence]) -> Iterator[str]:
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


def _read(collection: Collection, check: CheckResult | None, encoder: Ranker) -> Iterator[str]:
    """What vectors were made of: shared titles bring twins nearer, and what is cut off counts nowhere."""
    if getattr(encoder, "text", "") == "title+text":
        for row in check.rows if check else ():
            if row.name == _TITLES and row.found:
                yield (
                    f"{percent(row.value)} of the twins of {row.source} share their title, which {encoder!r} reads "
                    "too: it brings them nearer; text=text leaves titles out"
                )
    about = getattr(encoder, "about", None)
    cut = about(collection).get("truncated") if about else None
    if cut and any(cut["share"].values()):
        shares = ", ".join(f"{percent(100 * share)} of {name}" for name, share in cut["share"].items())
        yield f"{encoder!r} reads {cut['limit']} tokens: what stands beyond them is in no vector ({shares} is longer)"
