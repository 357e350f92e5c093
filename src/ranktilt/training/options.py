"""Options of a training, and its result."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import msgspec

from ranktilt.errors import UserError, unknown
from ranktilt.field_checks import check_fields
from ranktilt.presets import preset

NEGATIVES = ("bm25", "random")
"""Pools that a re-ranker's negatives are drawn from."""
Negatives = Literal["in-batch", "bm25", "ann", "controlled"]
"""Where a retriever's negatives come from."""
AtLeastOne = Annotated[int, msgspec.Meta(ge=1)]
"""A whole number of 1 or more."""
NotNegative = Annotated[int, msgspec.Meta(ge=0)]
"""A whole number of 0 or more."""
AboveZero = Annotated[float, msgspec.Meta(gt=0)]
"""A number above 0."""


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """How long a training lasts, and how fast it learns: arguments of transformers' trainer.

    A step learns from one batch; an epoch is as many steps as all rows need.
    """

    steps: AtLeastOne | None = None
    """Training steps; one epoch by default."""
    minutes: AboveZero | None = None
    """Train for about this many minutes, with the learning rate scheduled by time."""
    epochs: AtLeastOne = 1
    """Epochs, if neither steps nor minutes are named."""
    batch: AtLeastOne = 32
    """Batch size: pairs, or queries of a retriever; smaller if memory is short."""
    rate: AboveZero = 1e-4
    """Peak learning rate."""
    warmup_steps: NotNegative | None = None
    """Warm-up steps; a tenth of all by default."""
    weight_decay: Annotated[float, msgspec.Meta(ge=0)] = 0.01
    """Weight decay of AdamW, on matrices; 0 is Adam."""
    seed: NotNegative = 0
    """Random seed of weights and draws."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """Arithmetic precision; weights stay float32."""
    device: Literal["cpu", "cuda"] | None = None
    """The GPU where there is one, else the processor; ``CUDA_VISIBLE_DEVICES`` says which GPU."""

    def __post_init__(self) -> None:
        check_fields(self, "training")
        if self.steps is not None and self.minutes is not None:
            raise UserError("training: choose a number of steps or of minutes, not both")


@dataclass(frozen=True, kw_only=True)
class Training(Schedule):
    """How an encoder is trained: `Schedule`, and what it learns from."""

    sources: tuple[str, ...] | None = None
    """Learn from documents of these sources only, such as ``("human",)``; from all by default."""
    negatives_per_positive: AtLeastOne = 4
    """Negatives per positive and epoch."""
    positives_per_query: AtLeastOne | None = 8
    """Maximum positives per query and epoch; the others come in later epochs. None for all."""
    text: str = "title+text"
    """Part of a document to read: ``title+text``, ``text`` or ``title``."""
    max_query_tokens: AtLeastOne = 30
    """Truncate queries to this many tokens."""
    max_document_tokens: AtLeastOne = 200
    """Truncate documents to this many tokens."""
    alpha: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    """Weight of the debiased constraint, on the scale of the model's own scores.

    The constraint keeps an LLM's version of a relevant document from scoring above it
    (`ranktilt.training.DebiasedLoss`). It is a sum over the batch, so that it weighs more in larger
    batches.
    """
    twins: str | None = None
    """Source whose documents the constraint compares; by default the first one with rewrites.

    Sources that are not named are not learned from.
    """
    limits: tuple[tuple[str, int], ...] = ()
    """Number of relevant documents of a source to learn from, drawn by the seed: ``(("human", 500),
    …)``."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, most in self.limits:
            if most < 1 or name not in (self.sources or ()):
                raise UserError(
                    "training: expected at least 1 document of a source to learn from, got "
                    f"{name}={most}"
                )
        if self.sources is not None and not self.sources:
            raise UserError("training: expected at least one source, got none")


@dataclass(frozen=True, kw_only=True)
class RerankerTraining(Training):
    """How a re-ranker is trained: as `Training` says, and what its positives and negatives are.

    With negatives from BM25's top K, only relevant documents that are also among them are positives
    by default. The others never reach a re-ranker; and beside negatives that share many words with
    the query, they would teach that few shared words are a sign of relevance.

    A positive and its negatives are a group. A group stays in one batch, which has at least one;
    the binary loss, which looks at single pairs, mixes them.
    """

    negatives: str | None = None
    """Negatives from BM25's top K, ``bm25:K``, or from N random documents, ``random:N``.

    ``bm25:100`` by default. A version or copy of a document relevant to the query is never a
    negative.
    """
    positives: Literal["retrieved", "all"] | None = None
    """Relevant documents among BM25's top K, or all of them.

    All is the default with random negatives.
    """
    triples: str | None = None
    """File of triples to learn from, in place of both: ids of query, positive and negative (.tsv),
    as ``ranktilt data build retrieval-qa`` writes it."""
    loss: Literal["softmax", "binary"] = "softmax"
    """Softmax over a group, or binary for each pair."""
    dropout: bool = False
    """Whether the encoder's own dropout is on."""

    def __post_init__(self) -> None:
        super().__post_init__()
        kind, size = self.pool
        if kind == "random" and size < self.negatives_per_positive:
            raise UserError(
                f"training: negatives={self.negatives} are fewer than the "
                f"{self.negatives_per_positive} of each positive (negatives_per_positive)"
            )
        if kind == "random" and self.positives == "retrieved":
            raise UserError(
                "training: positives=retrieved come from BM25's best K; set K with negatives=bm25:K"
            )
        if self.triples is not None and (self.negatives, self.positives) != (None, None):
            raise UserError(
                "training: triples already name positives and negatives; omit these two options"
            )

    @classmethod
    def from_preset(cls, name: str | None, **overrides: Any) -> Self:
        """Return a preset's training options; `overrides` replace them field by field."""
        defaults = {} if name is None else dict(preset(name).training)
        if name is not None and not defaults:
            raise UserError(f"preset {name!r} does not train a cross-encoder")
        if overrides.get("triples"):
            # Triples name positives and negatives themselves, and are refused beside these options.
            defaults.pop("negatives", None)
            defaults.pop("positives", None)
        for option in defaults:
            if option not in cls.__dataclass_fields__:
                raise unknown(
                    f"training option in preset {name!r}", option, cls.__dataclass_fields__
                )
        return cls(**{**defaults, **overrides})

    @property
    def pool(self) -> tuple[str, int]:
        """What negatives are drawn from: ``bm25`` or ``random``, and the number of documents."""
        kind, _, number = (self.negatives or "bm25:100").partition(":")
        if kind not in NEGATIVES or not number.isdecimal() or int(number) < 1:
            raise UserError(
                "training: expected negatives as bm25:K or random:N, such as random:1000, "
                f"got {self.negatives!r}"
            )
        return kind, int(number)

    @property
    def retrieved_only(self) -> bool:
        """Whether only relevant documents among BM25's best are positives."""
        return self.positives != "all" and self.pool[0] == "bm25"

    @property
    def rows_per_batch(self) -> int:
        """Rows of a batch: pairs, or groups of a positive and its negatives."""
        if self.loss == "binary":
            return self.batch
        return max(self.batch // (1 + self.negatives_per_positive), 1)


@dataclass(frozen=True, kw_only=True)
class RetrieverTraining(Training):
    """How a retriever is trained: `Training` with additions and other defaults.

    Without `sources` it learns from the collection's first source only, which is the human one of a
    mix; its LLM versions are the twins. The saved model cuts texts at the larger number of tokens,
    special ones included.
    """

    negatives_per_positive: AtLeastOne = 1
    """Mined negatives per positive."""
    depth: AtLeastOne = 100
    """Mine negatives from so many of the top documents."""
    rate: AboveZero = 2e-5
    """Peak learning rate."""
    negatives: Negatives = "in-batch"
    """Scheme of negatives.

    ``in-batch``: only those of the batch; ``bm25``: BM25's; ``ann``: the model's own, mined again
    in each epoch; ``controlled``: BM25's that are like the positive in perplexity and specificity.
    """
    loss: str = "MultipleNegativesRankingLoss"
    """A loss of sentence-transformers, as ``Name(option=value,…)``."""
    variant: Literal["paper", "code"] = "paper"
    """The constraint as in the paper, or as in the released code."""
    patience: AtLeastOne | None = None
    """Stop after this many epochs without improvement on the development split; keep the best
    epoch."""

    @property
    def mined_negatives(self) -> int:
        """Number of mined negatives in each row."""
        return 0 if self.negatives == "in-batch" else self.negatives_per_positive

    @property
    def constrained(self) -> bool:
        """Whether twins are learned from."""
        return self.alpha > 0 or self.variant == "code"


@dataclass(frozen=True, kw_only=True)
class LoraTraining(Schedule):
    """How an adapter is trained: `Schedule`, and what it learns from.

    Pairs, rank, rate, batch and share are those of Wang et al. (NAACL 2024, sec. 5), who adapt only
    the attention. Ours are alpha (twice the rank), the layers of attention (all), optimizer and
    schedule, and the part of a document to read; they show titles (``text="title"``). Ask the
    adapted model with the same prompt, attribute, text and passage tokens.
    """

    pairs_per_epoch: AtLeastOne = 140_000
    """Approximate number of pairs per epoch."""
    rank: AtLeastOne = 1
    """Rank of the adapter."""
    rate: AboveZero = 3e-3
    """Peak learning rate."""
    batch: AtLeastOne = 4
    """Batch size in pairs."""
    share: float = 0.8
    """Share of the queries to learn from; the rest are held out."""
    prompt: str = "pairwise-neutral"
    """``pairwise-neutral``, ``pairwise-sensitive``, another prompt by name, or a file."""
    attribute: str | None = None
    """Text for ``{attribute}`` in the prompt."""
    text: str = "title+text"
    """Part of a document to read: ``title+text``, ``text`` or ``title``."""
    passage_tokens: int = 300
    """Truncate documents to this many tokens."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.share < 1:
            raise UserError(
                f"training: expected a share of the queries above 0 and below 1, got {self.share:g}"
            )


@dataclass(frozen=True, kw_only=True)
class Trained:
    """A finished training."""

    folder: Path
    """The model's folder; rank with ``cross-encoder:FOLDER``, or ``dense:FOLDER`` for a
    retriever."""
    record: dict[str, Any]
    """Content of its ``training.json``: ``spec``, ``collection``, ``packages`` and ``figures``."""
    resumed: int
    """Step that this call continued from: 0 for a new training, all steps if it was finished."""

    @property
    def figures(self) -> dict[str, Any]:
        """Amounts learned from, duration, and how the loss fell."""
        figures: dict[str, Any] = self.record["figures"]
        return figures
