"""Whether a test bed can be trusted: the papers' tables and figures on both sides of a collection."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl

from ranktilt._version import __version__
from ranktilt.auditing.equivalence import ALPHA, MARGIN, Equivalence, equivalences
from ranktilt.collection import Collection
from ranktilt.datasets.check import check
from ranktilt.datasets.check_result import Check
from ranktilt.datasets.statistics import Statistics, statistics
from ranktilt.errors import UserError, shorten, unknown
from ranktilt.io.artifact import Result
from ranktilt.io.files import sha256
from ranktilt.measures.base import Measure, measure, nDCG
from ranktilt.probes.overlap import Overlap, shared_terms
from ranktilt.probes.similarity import MAP_PAIRS, Similarity, twin_similarity
from ranktilt.probes.vectors import require_encoder
from ranktilt.probes.wording import effectiveness_sentences, notes, terms_sentence, vectors_sentence
from ranktilt.rankers.base import Ranker

_PACKAGES = {"numpy": "numpy", "polars": "polars", "scipy": "scipy", "scikit-learn": "sklearn"}


@dataclass(frozen=True, eq=False)
class Validation(
    Result, format="ranktilt-validation", version=2, noun="a validation", command="ranktilt validate", oldest=2,
    lacking="the values of single pairs",
):  # fmt: skip
    """What `validate` found; immutable.

    Parameters
    ----------
    spec : mapping
        How it was made: path, options, versions.
    reference : str
        The source that each of the others is held against.
    sources : tuple of str
        The others; empty where the collection has one source.
    statistics : Statistics
        Documents, words, queries and judgments of every source.
    overlaps : tuple of Overlap
        What twins share in words, a source each that has twins.
    similarities : tuple of Similarity
        How near twins lie in an encoder's space, a source each; empty where none was asked for.
    effectiveness : tuple of Equivalence
        Each ranker on each side alone: by source, ranker and measure; empty without judgments.
    check : Check or None
        What `check` finds; None where there is one source.
    notes : tuple of str
        What was left out, and why.
    """

    spec: Mapping[str, Any]
    reference: str
    sources: tuple[str, ...]
    statistics: Statistics
    overlaps: tuple[Overlap, ...] = field(metadata={"file": "terms"})
    similarities: tuple[Similarity, ...] = field(metadata={"file": "similarity"})
    effectiveness: tuple[Equivalence, ...]
    check: Check | None
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
            said += [vectors_sentence(one, self.reference) for one in self.similarities if one.source == source]
            said += effectiveness_sentences([row for row in self.effectiveness if row.source == source])
            found += [front + sentence for sentence in said]
        return found

    def derived(self) -> dict[str, Any]:
        """The verdict and the sentences, for those who read the file."""
        return {"fair": self.fair, "sentences": self.sentences()}

    def __post_init__(self) -> None:
        """Refuse options that are not numbers."""
        for name in ("alpha", "margin"):
            if type(self.spec.get(name, 0)) not in (int, float):
                raise TypeError(f"{name}: expected a number, got {shorten(self.spec[name])}")


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
    first = _reference(collection, reference)
    wanted = [measure(m) for m in measures] if measures else [nDCG @ 10]
    if similarity is not None:
        require_encoder(similarity)
    _refuse_repeats(rankers, wanted)
    if map_pairs < 0:
        raise UserError(f"expected 0 or more pairs in the map, got {map_pairs}")
    others = tuple(s for s in collection.sources if s != first)
    paired = tuple(s for s in others if collection.pairs(first, s).height)
    judged = bool(collection.qrels.filter(pl.col("grade") > 0).height)
    asked = rankers if judged else ()
    rows = equivalences(collection, asked, wanted, reference=first, sources=paired, margin=margin, alpha=alpha)
    near: tuple[Similarity, ...] = ()
    if similarity is not None:
        near = tuple(twin_similarity(collection, similarity, first, s, map_pairs=map_pairs, seed=seed) for s in paired)
    found = check(collection, reference=first) if others else None
    how = {
        "reference": first, "rankers": [repr(r) for r in rankers], "measures": [repr(m) for m in wanted],
        "similarity": None if similarity is None else repr(similarity), "map_pairs": map_pairs, "margin": margin,
        "alpha": alpha, "seed": seed,
    }  # fmt: skip
    return Validation(
        spec={**_provenance(collection), **how},
        reference=first,
        sources=others,
        statistics=statistics(collection),
        overlaps=tuple(shared_terms(collection, first, s) for s in paired),
        similarities=near,
        effectiveness=rows,
        check=found,
        notes=tuple(notes(collection, first, rows, found, similarity)),
    )


def _reference(collection: Collection, reference: str | None) -> str:
    sources = collection.sources
    if not sources:
        raise UserError("nothing to validate: the collection has no document")
    if reference is not None and reference not in sources:
        raise unknown("source", reference, sources)
    return reference or ("human" if "human" in sources else sources[0])


def _refuse_repeats(rankers: Sequence[Ranker], measures: Sequence[Measure]) -> None:
    for noun, names in (("ranker", [repr(r) for r in rankers]), ("measure", [repr(m) for m in measures])):
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise UserError(f"{noun} {twice!r} is given twice")


def _provenance(collection: Collection) -> dict[str, Any]:
    files = [str(file) for file in collection.spec.get("files", ())]
    return {
        **{name: collection.spec[name] for name in ("path", "split") if name in collection.spec},
        "ranktilt": __version__,
        "python": platform.python_version(),
        "packages": {name: version(name) for name, module in _PACKAGES.items() if find_spec(module)},
        "inputs": [{"path": file, "sha256": sha256(Path(file))} for file in files if Path(file).is_file()],
    }
