"""What can be chosen in a training, and its result."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol, Self

from ranktilt.collection import TEXT_CHOICES
from ranktilt.errors import UserError, unknown
from ranktilt.models.device import TRAINING_PRECISIONS

MINING = ("in-batch", "bm25", "ann", "cross")
REFERENCES = ("paper", "code")
RERANKER_LOSSES = ("softmax", "binary")
PRESETS: dict[str, dict[str, Any]] = {
    "paper": {
        "rate": 7e-6, "batch": 32, "max_query_tokens": 30, "max_document_tokens": 200, "loss": "binary",
        "negatives": 4, "depth": 1000,
    },
    "notebook": {
        "rate": 2e-5, "batch": 32, "max_query_tokens": 64, "max_document_tokens": 445, "loss": "binary",
        "negatives": 4, "epochs": 5, "depth": 1000,
    },
}  # fmt: skip
"""How Askari et al. (2023) train cross-encoders: as their paper says, and as their notebook does, whose pairs take 512
tokens, three special ones included."""
_AT_LEAST_ONE = (
    "negatives",
    "positives",
    "depth",
    "steps",
    "epochs",
    "batch",
    "max_query_tokens",
    "max_document_tokens",
)


class Schedule(Protocol):
    """How long a training goes on, and how fast it learns."""

    @property
    def steps(self) -> int | None:
        """Batches to learn from."""

    @property
    def minutes(self) -> float | None:
        """About how long it may take."""

    @property
    def rate(self) -> float:
        """Highest learning rate."""

    @property
    def seed(self) -> int:
        """Of every draw."""


def require_precision(precision: str) -> None:
    """Refuse what gradients are not computed in here; float16 would need them scaled."""
    if precision not in TRAINING_PRECISIONS:
        raise unknown("precision of training", precision, TRAINING_PRECISIONS)


def require_schedule(asked: Schedule, counts: Sequence[str]) -> None:
    """Refuse options out of their range; those named in `counts` are at least 1, or None."""
    for name in counts:
        value = getattr(asked, name)
        if value is not None and value < 1:
            raise UserError(f"training: expected {name} of at least 1, got {value}")
    for name in ("rate", "minutes"):
        value = getattr(asked, name)
        if value is not None and not (math.isfinite(value) and value > 0):
            raise UserError(f"training: expected {name} above 0, got {value}")
    if asked.seed < 0:
        raise UserError(f"training: expected a seed of at least 0, got {asked.seed}")
    if asked.steps is not None and asked.minutes is not None:
        raise UserError("training: choose a number of steps or of minutes, not both")


@dataclass(frozen=True, kw_only=True)
class Training:
    """How a re-ranker is trained; the same options on the same machine and threads give the same weights.

    Parameters
    ----------
    sources : tuple of str, optional
        Learn from documents of these sources only, such as ``("human",)``; from all by default. ``llm`` stands for
        the one beside the first, where no source is called so.
    limits : tuple of (str, int), optional
        How many relevant documents of a source are learned from, drawn by the seed: ``(("human", 500), ("llm", 500))``.
    negatives : int, optional
        Negatives of each positive.
    positives : int, optional
        Most positives of one query in an epoch, drawn anew in each, so that broad queries do not rule.
    depth : int, optional
        How many of BM25's documents the positives and negatives are taken from.
    text : {"title+text", "text", "title"}, optional
        What of a document is read.
    loss : {"softmax", "binary"}, optional
        The cross-entropy of choosing the positive among its group, or that of each pair by itself, as relevant or not.
    epochs : int, optional
        Where neither `steps` nor `minutes` are given.
    steps : int, optional
        Batches to learn from.
    minutes : float, optional
        About how long the training may take, loading included: a few steps are timed, and as many are made as fit.
        ``training.json`` says how many they were; the same number as `steps` gives the same weights again.
    batch : int, optional
        Pairs of query and document learned from at once; whole groups of a positive and its negatives, one at least.
    rate : float, optional
        Highest learning rate: it rises over the first tenth of the steps and falls to 0 over the rest.
    seed : int, optional
        Of the head's first weights and of every draw; at least 0.
    max_query_tokens, max_document_tokens : int, optional
        Tokens after which queries and documents are cut.
    precision : {"float32", "bfloat16"}, optional
        Of forward and backward pass. Weights are kept in float32.
    device : str, optional
        Torch's name of the device; the first GPU where there is one, else the processor.
    alpha : float, optional
        Weight of the debiased constraint, on the scale of the model's own scores: an LLM's version of a relevant
        document may not score above it (`ranktilt.training.DebiasedLoss`). 0 leaves it out. It is meant for a whole
        batch; one with fewer rows counts as if it were filled up with rows like its own.
    twins : str, optional
        The source whose versions the constraint holds against the relevant documents; by default the first one that
        has any. Sources that are not named are not learned from.

    Raises
    ------
    UserError
        For a value out of its range.
    """

    sources: tuple[str, ...] | None = None
    negatives: int = 4
    positives: int = 8
    depth: int = 100
    text: str = "title+text"
    steps: int | None = None
    minutes: float | None = None
    batch: int = 32
    rate: float = 1e-4
    seed: int = 0
    max_query_tokens: int = 30
    max_document_tokens: int = 200
    precision: str = "float32"
    device: str | None = None
    alpha: float = 0.0
    twins: str | None = None
    limits: tuple[tuple[str, int], ...] = ()
    loss: str = "softmax"
    epochs: int = 1

    def __post_init__(self) -> None:
        require_schedule(self, _AT_LEAST_ONE)
        self.require_loss()
        for name, most in self.limits:
            if most < 1 or name not in (self.sources or ()):
                raise UserError(
                    f"training: expected at least 1 document of a source that is learned from, got {name}={most}"
                )
        if not (math.isfinite(self.alpha) and self.alpha >= 0):
            raise UserError(f"training: expected an alpha of at least 0, got {self.alpha}")
        if self.sources is not None and not self.sources:
            raise UserError("training: expected at least one source, got none")
        if self.text not in TEXT_CHOICES:
            raise unknown("text choice of training", self.text, TEXT_CHOICES)
        require_precision(self.precision)

    @classmethod
    def of_preset(cls, name: str | None, **given: Any) -> Self:
        """Return the options of a preset, of which those that are given take the place."""
        if name is not None and name not in PRESETS:
            raise unknown("preset", name, PRESETS)
        return cls(**{**PRESETS.get(name or "", {}), **given})

    def require_loss(self) -> None:
        """Refuse a loss that there is none of."""
        if self.loss not in RERANKER_LOSSES:
            raise unknown("loss", self.loss, RERANKER_LOSSES)

    @property
    def groups(self) -> int:
        """Groups of a positive and its negatives in a batch."""
        return max(self.batch // (1 + self.negatives), 1)

    def spec(self) -> dict[str, Any]:
        """Return the options as a record keeps them."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class RetrieverTraining(Training):
    """How a retriever is trained: as `Training` says, but for these.

    Parameters
    ----------
    sources : tuple of str, optional
        By default the collection's first source only, which is the human one of a mix: its LLM versions are the twins.
    negatives : int, optional
        Mined negatives of each positive; the other documents of a batch are negatives too where the loss says so.
    mine : {"in-batch", "bm25", "ann", "cross"}, optional
        Where negatives come from: nowhere else than the batch; BM25's best; the model's own best, searched anew before
        each epoch (as ANCE does); or BM25's best that a teacher, such as a cross-encoder, scores below the positive.
    loss : str, optional
        A loss of sentence-transformers with its options, such as ``"MultipleNegativesRankingLoss(scale=20)"``.
    reference : {"paper", "code"}, optional
        The constraint as Dai et al. write it, or as their released code computes it.
    max_query_tokens, max_document_tokens : int, optional
        Special tokens included; the saved model cuts at the larger of the two.
    patience : int, optional
        Stop once so many epochs have brought no better effectiveness on the dev queries, and keep the best epoch's
        weights; None goes on to the end. Needs dev queries.
    """

    negatives: int = 1
    rate: float = 2e-5
    mine: str = "in-batch"
    loss: str = "MultipleNegativesRankingLoss"
    reference: str = "paper"
    patience: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        require_schedule(self, ("patience",))
        if self.mine not in MINING:
            raise unknown("mining scheme", self.mine, MINING)
        if self.reference not in REFERENCES:
            raise unknown("reference of the constraint", self.reference, REFERENCES)

    def require_loss(self) -> None:
        """Leave it to the training, which knows sentence-transformers' losses."""

    @property
    def groups(self) -> int:
        """Rows of a batch: a query, its positive, and the negatives."""
        return self.batch

    @property
    def constrained(self) -> bool:
        """Whether twins are learned from."""
        return self.alpha > 0 or self.reference == "code"


@dataclass(frozen=True)
class Trained:
    """A training that is over."""

    folder: Path
    """The model; ``cross-encoder:FOLDER``, or ``dense:FOLDER`` of a retriever, ranks with it."""
    record: dict[str, Any]
    """What its ``training.json`` holds: ``spec``, ``collection``, ``packages`` and ``figures``."""
    resumed: int
    """Step from which this call went on: 0 for a fresh training, all steps where there was nothing left to do."""

    @property
    def figures(self) -> dict[str, Any]:
        """How much was learned from, how long it took, and how the loss fell."""
        found: dict[str, Any] = self.record["figures"]
        return found


def learning_rate(step: int, steps: int, highest: float) -> float:
    """Return the learning rate of a step: a straight line up over the first tenth, and down to 0 over the rest."""
    rising = max(steps // 10, 1)
    return highest * min((step + 1) / rising, (steps - step) / (steps - rising) if steps > rising else 1.0)
