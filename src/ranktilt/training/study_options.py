"""Options of a training study."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field

from ranktilt.errors import UserError
from ranktilt.training.options import RerankerTraining

FULL = 1000
"""Number of a query's documents that the first stage finds and is measured on, as in the paper.

The paper is Askari et al. (CIKM 2023).
"""
Amounts = tuple[tuple[str, int], ...]
"""Number of documents of each source to learn from."""


@dataclass(frozen=True)
class ZeroShot:
    """A collection that nothing is learned from."""

    path: str
    """A folder, ``hub:OWNER/NAME``, ``irds:ID``, or a file of candidates with their texts, as
    rank_llm writes them."""
    _: KW_ONLY
    qrels: str | None = None
    """File of judgments; the collection's by default."""
    candidates: str | None = None
    """A run of the first stage; BM25's by default, or those of the file of candidates."""
    name: str = ""
    """Name in results; the path by default."""

    def for_file(self) -> dict[str, str]:
        """Return the fields that are set, as a study's file has them."""
        values = {
            "path": self.path,
            "qrels": self.qrels,
            "candidates": self.candidates,
            "name": self.name,
        }
        return {name: value for name, value in values.items() if value}


@dataclass(frozen=True, kw_only=True)
class StudyOptions:
    """Options of a training study: what is trained, and what it is tested on."""

    training: RerankerTraining = field(default_factory=RerankerTraining)
    """Training of each encoder; sources, seed and amounts come from the study."""
    seeds: int = 1
    """Trainings per ranker, each with its own seed."""
    depth: int = FULL
    """Number of BM25's documents to re-rank; recall and average precision are measured there."""
    queries: int | None = None
    """Most queries to test for each domain of each collection, drawn by `seed`; None for all."""
    disjoint: bool = False
    """Keep training and test apart.

    Documents that are relevant to a query of the training, and copies of their texts, are not in
    the test collection, and the other way round. A document that is relevant on both sides stays in
    both.
    """
    curve: tuple[Amounts, ...] = ()
    """Further rankers that learn from a number of documents of each source.

    ``((('human', 100), ('llm', 50)), …)``.
    """
    zero_shot: tuple[ZeroShot, ...] = ()
    """Collections that nothing is learned from."""
    train: str = "train"
    """Split to learn from."""
    test: str = "test"
    """Split to test on."""
    reference: str = "human"
    """The human side, whose answers count in the test."""
    seed: int = 0
    """Seed of the drawn queries, and of the first training."""

    def __post_init__(self) -> None:
        for name in ("seeds", "depth", "queries"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UserError(f"training study: expected {name} of at least 1, got {value}")
