"""Options of a training study, which compares rankers that learned from different sources.

A *source* is the author of documents: people (the reference) or a language model. A study trains
cross-encoders, which re-rank the documents that a *first stage* (BM25) finds for each query.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field

from ranktilt.errors import UserError
from ranktilt.field_checks import is_whole_number, printed
from ranktilt.training.options import RerankerTraining

PAPER_DEPTH = 1000
"""Number of documents that the first stage returns for each query in Askari et al. (CIKM 2023)."""
Amounts = tuple[tuple[str, int], ...]
"""Pairs of a source and the number of its documents to learn from."""


@dataclass(frozen=True)
class ZeroShot:
    """A test collection that nothing is learned from."""

    path: str
    """Where the collection is.

    A folder; ``hub:OWNER/NAME``, a data set of the Hugging Face hub; ``irds:ID``, one of
    ir_datasets; or a file of candidates (documents to re-rank) with their texts, as the package
    rank_llm writes it.
    """
    _: KW_ONLY
    qrels: str | None = None
    """File of judgments; the collection's by default."""
    candidates: str | None = None
    """File of a first stage's run, whose documents are re-ranked.

    By default these are BM25's documents, or the candidates if `path` is a file of them.
    """
    name: str = ""
    """Name in results; by default the last part of the path."""

    def given_fields(self) -> dict[str, str]:
        """Return the fields that are set, by name."""
        values = {
            "path": self.path,
            "qrels": self.qrels,
            "candidates": self.candidates,
            "name": self.name,
        }
        return {name: value for name, value in values.items() if value}


@dataclass(frozen=True, kw_only=True)
class StudyOptions:
    """Options of a training study: which rankers are trained, and what they are tested on."""

    training: RerankerTraining = field(default_factory=RerankerTraining)
    """Options of each training; the study sets its `sources`, `seed` and `limits`."""
    seeds: int = 1
    """Number of trainings per ranker, each with its own seed."""
    depth: int = PAPER_DEPTH
    """Number of BM25's documents to re-rank for each query, and cutoff of recall and average
    precision."""
    queries: int | None = None
    """Maximum number of queries to test for each domain of each collection, drawn at random; None
    for all."""
    disjoint: bool = False
    """Keep relevant documents of the training out of the test, and the other way round.

    Documents that are relevant in one split, and copies of their texts, are removed from the other.
    A document that is relevant in both splits stays in both, because each needs it.
    """
    curve: tuple[Amounts, ...] = ()
    """Rankers for a learning curve, each with the number of documents of each source to learn from.

    Such as ``((('human', 100), ('llm', 50)), …)``. They are trained besides the rankers that learn
    from all documents of one source.
    """
    zero_shot: tuple[ZeroShot, ...] = ()
    """Test collections that nothing is learned from."""
    train: str = "train"
    """Split to learn from."""
    test: str = "test"
    """Split to test on."""
    reference: str = "human"
    """Source of the documents that people wrote; only these are ranked in a test, except where
    Relative Δ is measured."""
    seed: int = 0
    """Seed of the drawn queries, and of the first training; further trainings count up from it."""

    def __post_init__(self) -> None:
        for name in ("seeds", "depth", "queries"):
            value = getattr(self, name)
            if value is not None and (not is_whole_number(value) or value < 1):
                raise UserError(
                    f"training study: expected {name} of at least 1, got {printed(value)}"
                )
