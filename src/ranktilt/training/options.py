"""What can be chosen in a training, and its result."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self

from ranktilt.errors import UserError, unknown
from ranktilt.option import Option

MINING = ("in-batch", "bm25", "ann", "cross")
VARIANTS = ("paper", "code")
RERANKER_LOSSES = ("softmax", "binary")
NEGATIVES = ("bm25", "random")
POSITIVES = ("retrieved", "all")
_TRIPLES: dict[str, Any] = {
    "batch": 32, "loss": "binary", "negatives": "random:1000", "negatives_per_positive": 4, "positives": "all",
    "positives_per_query": None,
}  # fmt: skip
PRESETS: dict[str, dict[str, Any]] = {
    "paper": {**_TRIPLES, "rate": 7e-6, "max_query_tokens": 30, "max_document_tokens": 200, "weight_decay": 0.0},
    "notebook": {
        **_TRIPLES, "rate": 2e-5, "max_query_tokens": 70, "max_document_tokens": 350, "weight_decay": 0.01,
        "warmup_steps": 5000, "dropout": True, "epochs": 1000,
    },
}  # fmt: skip
"""How Askari et al. (2023) train cross-encoders: as their paper says, and as the notebook that they published does.

Weight decay 0 makes AdamW the paper's Adam. The notebook's 5 epochs of 1,000 triples a positive, of which each fifth
shows the positive, are 1,000 of ours. docs/redo/askari.md says line by line what is theirs, ours, and not known."""


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """How long a training goes on, and how fast it learns: what becomes arguments of a trainer of transformers.

    Parameters
    ----------
    steps, minutes, epochs : optional
        Batches to learn from; or about how long the training may take, loading included, with a learning rate by the
        clock, so that two such trainings differ; else epochs.
    batch : int, optional
        How much is learned from at once; less from the first batch on that does not fit into memory.
    rate, warmup_steps : optional
        Highest learning rate, and the steps over which it rises, a tenth of all by default; then it falls to 0.
    weight_decay : float, optional
        Of AdamW, on matrices; 0 makes it Adam.
    seed : int, optional
        Of first weights and of every draw; at least 0.
    precision : {"float32", "bfloat16"}, optional
        Of forward and backward pass. Weights are kept in float32.
    device : {"cpu", "cuda"}, optional
        The GPU where there is one, else the processor.
    """

    steps: Annotated[int | None, Option("Batches to learn from (default: an epoch).", "N")] = None
    minutes: Annotated[float | None, Option("As many batches as fit into about so many minutes.", "M")] = None
    epochs: Annotated[int, Option("Without --steps or --minutes.", "N")] = 1
    batch: Annotated[int, Option("Pairs of query and document, or queries of a retriever, a step.", "N")] = 32
    rate: Annotated[float, Option("Highest learning rate.", "X", flag="--learning-rate")] = 1e-4
    warmup_steps: Annotated[
        int | None, Option("Steps over which the learning rate rises (default: a tenth of all).", "N")
    ] = None
    weight_decay: Annotated[float, Option("Of AdamW; 0 is Adam.", "X")] = 0.01
    seed: Annotated[int, Option("Of first weights and of every draw.")] = 0
    precision: Annotated[str, Option("Precision of the arithmetic; weights stay in float32.", "float32|bfloat16")] = (
        "float32"
    )
    device: str | None = None

    def __post_init__(self) -> None:
        from ranktilt.models.device import TRAINING_PRECISIONS  # late: --help needs the fields alone

        self.require_at_least(1, "steps", "epochs", "batch")
        self.require_at_least(0, "seed", "warmup_steps", "weight_decay")
        for name in ("rate", "minutes"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value > 0):
                raise UserError(f"training: expected {name} above 0, got {value}")
        if self.steps is not None and self.minutes is not None:
            raise UserError("training: choose a number of steps or of minutes, not both")
        if self.precision not in TRAINING_PRECISIONS:  # float16 would need its gradients scaled
            raise unknown("precision of training", self.precision, TRAINING_PRECISIONS)
        if self.device not in (None, "cpu", "cuda"):
            raise UserError(
                f"training: expected cpu or cuda as device, got {self.device!r}; CUDA_VISIBLE_DEVICES says which GPU"
            )

    def require_at_least(self, least: int, *names: str) -> None:
        """Refuse options below a number, or infinite; None is no number."""
        for name in names:
            value = getattr(self, name)
            if value is not None and not least <= value < math.inf:
                raise UserError(f"training: expected {name} of at least {least}, got {value}")


@dataclass(frozen=True, kw_only=True)
class Training(Schedule):
    """How an encoder is trained: as `Schedule` says, and what it learns from.

    Parameters
    ----------
    sources : tuple of str, optional
        Learn from documents of these sources only, such as ``("human",)``; from all by default. ``llm`` stands for
        the one beside the first, where no source is called so.
    limits : tuple of (str, int), optional
        How many relevant documents of a source are learned from, drawn by the seed: ``(("human", 500), ("llm", 500))``.
    negatives_per_positive, positives_per_query : int, optional
        How many negatives each positive is learned against, and most positives of one query, so that broad queries do
        not rule (None for all): in an epoch, drawn anew in each.
    text : {"title+text", "text", "title"}, optional
        What of a document is read.
    max_query_tokens, max_document_tokens : int, optional
        Tokens after which queries and documents are cut.
    alpha : float, optional
        Weight of the debiased constraint, on the scale of the model's own scores: an LLM's version of a relevant
        document may not score above it (`ranktilt.training.DebiasedLoss`). 0 leaves it out. Summed over a batch: it
        weighs more in larger ones.
    twins : str, optional
        The source whose versions the constraint holds against the relevant documents; by default the first one that
        has any. Sources that are not named are not learned from.
    """

    sources: tuple[str, ...] | None = None
    negatives_per_positive: Annotated[int, Option("Negatives of each positive in an epoch.", "N")] = 4
    positives_per_query: int | None = 8
    text: str = "title+text"
    max_query_tokens: Annotated[int, Option("Truncate queries to this many tokens.", "N")] = 30
    max_document_tokens: Annotated[int, Option("Truncate documents to this many tokens.", "N")] = 200
    alpha: Annotated[float, Option("Weight of the debiased constraint on the logits.", "α", flag="--debias")] = 0.0
    twins: Annotated[
        str | None, Option("The source that the constraint compares (default: the first with versions).", "SOURCE")
    ] = None
    limits: tuple[tuple[str, int], ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        counts = ("negatives_per_positive", "positives_per_query", "max_query_tokens", "max_document_tokens")
        self.require_at_least(1, *counts)
        self.require_at_least(0, "alpha")
        for name, most in self.limits:
            if most < 1 or name not in (self.sources or ()):
                raise UserError(
                    f"training: expected at least 1 document of a source that is learned from, got {name}={most}"
                )
        if self.sources is not None and not self.sources:
            raise UserError("training: expected at least one source, got none")
        from ranktilt.collection import TEXT_CHOICES  # late, too

        if self.text not in TEXT_CHOICES:
            raise unknown("text choice of training", self.text, TEXT_CHOICES)


@dataclass(frozen=True, kw_only=True)
class RerankerTraining(Training):
    """How a re-ranker is trained: as `Training` says, and what its positives and negatives are.

    Parameters
    ----------
    negatives : str, optional
        Where they come from: ``"bm25:100"`` (the default), BM25's best 100 of the query, or ``"random:1000"``, 1,000
        documents for each positive, drawn at random; never a version or copy of what is relevant to the query.
    positives : {"retrieved", "all"}, optional
        Those among the same best of BM25 (the default of ``bm25:K``), because only those reach a re-ranker: against
        what BM25 finds, the others teach that few shared words are a sign of relevance. Or all that are judged relevant
        (the default of ``random:N``).
    triples : str, optional
        A file of query, positive and negative, a line each, in place of both: as ``ranktilt data build retrieval-qa``
        writes it.
    loss : {"softmax", "binary"}, optional
        The cross-entropy of choosing the positive among its negatives, or that of each pair by itself, as relevant or
        not.
    batch : int, optional
        Pairs of query and document learned from at once. Positives stay with their negatives, one group at least, but
        for the binary loss, whose pairs are mixed.
    dropout : bool, optional
        Whether the encoder's own dropout is on.
    """

    negatives: Annotated[
        str | None,
        Option(
            "Draw negatives from BM25's best K, or from N documents at random (default: bm25:100).", "bm25:K|random:N"
        ),
    ] = None
    positives: Annotated[
        str | None,
        Option(
            "Learn from the relevant documents among BM25's best K, or from all (default with random negatives).",
            "retrieved|all",
        ),
    ] = None
    triples: Annotated[str | None, Option("Learn from lines of query, positive and negative (.tsv).", "FILE")] = None
    loss: Annotated[str, Option("Choose in a group, or judge each pair.", "softmax|binary")] = "softmax"
    dropout: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.loss not in RERANKER_LOSSES:
            raise unknown("loss", self.loss, RERANKER_LOSSES)
        if self.positives is not None and self.positives not in POSITIVES:
            raise unknown("choice of positives", self.positives, POSITIVES)
        kind, size = self.pool
        if kind == "random" and size < self.negatives_per_positive:
            raise UserError(
                f"training: negatives={self.negatives} are fewer than the {self.negatives_per_positive} of each "
                "positive (negatives_per_positive)"
            )
        if kind == "random" and self.positives == "retrieved":
            raise UserError("training: positives=retrieved are those of BM25's best K, which negatives=bm25:K names")
        if self.triples is not None and (self.negatives, self.positives) != (None, None):
            raise UserError("training: triples say what is positive and negative; leave out positives and negatives")

    @classmethod
    def of_preset(cls, name: str | None, **given: Any) -> Self:
        """Return the options of a preset, of which those that are given take the place."""
        if name is not None and name not in PRESETS:
            raise unknown("preset", name, PRESETS)
        replaced = {"negatives", "positives"} if given.get("triples") else set()
        preset = {name: value for name, value in PRESETS.get(name or "", {}).items() if name not in replaced}
        return cls(**{**preset, **given})

    @property
    def pool(self) -> tuple[str, int]:
        """Where negatives are drawn from, ``bm25`` or ``random``, and of how many documents."""
        kind, _, number = (self.negatives or "bm25:100").partition(":")
        if kind not in NEGATIVES or not number.isdecimal() or int(number) < 1:
            raise UserError(
                f"training: expected negatives as bm25:K or random:N, such as random:1000, got {self.negatives!r}"
            )
        return kind, int(number)

    @property
    def retrieved_only(self) -> bool:
        """Whether positives are those among BM25's best alone."""
        return self.positives != "all" and self.pool[0] == "bm25"

    @property
    def rows(self) -> int:
        """Rows of a batch: pairs, or groups of a positive and its negatives."""
        return self.batch if self.loss == "binary" else max(self.batch // (1 + self.negatives_per_positive), 1)


@dataclass(frozen=True, kw_only=True)
class RetrieverTraining(Training):
    """How a retriever is trained: as `Training` says, but for these.

    Parameters
    ----------
    sources : tuple of str, optional
        By default the collection's first source only, which is the human one of a mix: its LLM versions are the twins.
    negatives_per_positive : int, optional
        Mined negatives of each positive; the other documents of a batch are negatives too where the loss says so.
    depth : int, optional
        How many of a scheme's best documents the negatives are drawn from.
    batch : int, optional
        Queries learned from at once.
    mine : {"in-batch", "bm25", "ann", "cross"}, optional
        Where negatives come from: nowhere else than the batch; BM25's best; the model's own best, searched anew before
        each epoch (as ANCE does); or BM25's best that a teacher, such as a cross-encoder, scores below the positive.
    loss : str, optional
        A loss of sentence-transformers with its options, such as ``"MultipleNegativesRankingLoss(scale=20)"``.
    variant : {"paper", "code"}, optional
        The constraint as Dai et al. write it, or as their released code computes it.
    max_query_tokens, max_document_tokens : int, optional
        Special tokens included; the saved model cuts at the larger of the two.
    patience : int, optional
        Stop once so many epochs have brought no better effectiveness on the dev queries, and keep the best epoch's
        weights; None goes on to the end. Needs dev queries.
    """

    negatives_per_positive: Annotated[int, Option("Mined negatives of each positive.", "N")] = 1
    depth: Annotated[int, Option("Negatives are among the best K documents.", "K")] = 100
    rate: Annotated[float, Option("Highest learning rate.", "X", flag="--learning-rate")] = 2e-5
    mine: Annotated[str, Option("Negatives: in-batch, bm25, ann (anew each epoch) or cross.", "SCHEME")] = "in-batch"
    loss: Annotated[str, Option("A loss of sentence-transformers, as Name(option=value,…).", "LOSS")] = (
        "MultipleNegativesRankingLoss"
    )
    variant: Annotated[str, Option("The constraint as written, or as released.", "paper|code")] = "paper"
    patience: Annotated[int | None, Option("Stop after N epochs without a better one; needs --dev.", "N")] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_at_least(1, "patience", "depth")
        if self.mine not in MINING:
            raise unknown("mining scheme", self.mine, MINING)
        if self.variant not in VARIANTS:
            raise unknown("variant of the constraint", self.variant, VARIANTS)

    @property
    def constrained(self) -> bool:
        """Whether twins are learned from."""
        return self.alpha > 0 or self.variant == "code"


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
