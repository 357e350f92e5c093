"""Options of a training, and its result.

A *positive* is a relevant document of a query, a *negative* one that is not relevant. A *source* is
the author of documents, such as ``human`` or a language model. A *version* of a document has the
same origin; a *twin* is a language model's version of a positive. A *re-ranker* orders anew what a
first search returned; a *retriever* is an encoder that searches by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import msgspec

from ranktilt.errors import UserError, shorten, unknown_name
from ranktilt.field_checks import check_fields
from ranktilt.presets import preset
from ranktilt.sizes import read_whole_number

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

    A step learns from one batch. An epoch is as many steps as it takes to learn from all rows.
    """

    steps: AtLeastOne | None = None
    """Training steps; one epoch by default."""
    minutes: AboveZero | None = None
    """Train for about this many minutes, with the learning rate scheduled by time."""
    epochs: AtLeastOne = 1
    """Epochs, if neither steps nor minutes are given."""
    batch: AtLeastOne = 32
    """Batch size: pairs of query and document, or queries of a retriever; smaller if memory is
    short."""
    rate: AboveZero = 1e-4
    """Peak learning rate."""
    warmup_steps: NotNegative | None = None
    """Warm-up steps; a tenth of all by default."""
    weight_decay: Annotated[float, msgspec.Meta(ge=0)] = 0.01
    """Weight decay of AdamW, on matrices; with 0 it is Adam."""
    seed: NotNegative = 0
    """Random seed of weights and draws."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """Arithmetic precision; weights stay float32."""
    device: Literal["cpu", "cuda"] | None = None
    """Device to train on; the GPU by default if there is one, else the CPU.

    The environment variable ``CUDA_VISIBLE_DEVICES`` chooses among several GPUs.
    """

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
    """Maximum number of positives per query and epoch, drawn anew in each epoch; None for all."""
    text: str = "title+text"
    """Part of a document to read: ``title+text``, ``text`` or ``title``."""
    # The two numbers of Askari et al. (CIKM 2023).
    max_query_tokens: AtLeastOne = 30
    """Truncate queries to this many tokens."""
    max_document_tokens: AtLeastOne = 200
    """Truncate documents to this many tokens."""
    alpha: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    """Weight of the debiased constraint, on the scale of the model's own scores.

    The constraint keeps a twin from scoring above its positive (`ranktilt.training.DebiasedLoss`).
    It is a sum over the batch, so it weighs more in larger batches.
    """
    twins: str | None = None
    """Source of the twins that the constraint compares with positives.

    By default the first source that is not learned from and has versions of documents that are.
    Documents of other sources are left out.
    """
    limits: tuple[tuple[str, int], ...] = ()
    """Number of relevant documents of some sources to learn from, drawn at random.

    Such as ``(("human", 500), ("llm", 500))``. Other sources have no limit.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, limit in self.limits:
            if limit < 1 or name not in (self.sources or ()):
                raise UserError(
                    "training: expected at least 1 document of a source to learn from, got "
                    f"{name}={limit}"
                )
        if self.sources is not None and not self.sources:
            raise UserError("training: expected at least one source, got none")


@dataclass(frozen=True, kw_only=True)
class RerankerTraining(Training):
    """How a re-ranker is trained: `Training`, and the choice of its positives and negatives.

    With negatives from BM25's top K, positives are by default the relevant documents among these K.
    Other relevant documents never reach a re-ranker. Negatives of BM25 share many words with the
    query, so relevant documents that share few would teach that few shared words mean relevance.

    A positive and its negatives are a group, and stay in one batch. With the binary loss, which
    looks at single pairs, the documents of a group may be in different batches.
    """

    negatives: str | None = None
    """Negatives from BM25's top K, ``bm25:K``, or from N random documents, ``random:N``.

    ``bm25:100`` by default. A version of a document relevant to the query, or a copy of its text,
    is never a negative.
    """
    positives: Literal["retrieved", "all"] | None = None
    """Positives are the relevant documents among BM25's top K, or all relevant documents.

    By default they are all relevant documents if negatives are random, else those among the top K.
    """
    triples: str | None = None
    """File (.tsv) with the ids of a query, a positive and a negative in each line.

    It takes the place of `negatives` and `positives`. ``ranktilt data build retrieval-qa`` writes
    such a file.
    """
    loss: Literal["softmax", "binary"] = "softmax"
    """Cross-entropy of the softmax over a group's scores, or binary cross-entropy of each pair."""
    dropout: bool = False
    """Whether the encoder's dropout is on."""

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
        """Return the options of a paper's preset.

        Parameters
        ----------
        name : str or None
            Name of the preset; None for the usual defaults.
        **overrides
            Options by name, which replace those of the preset.
        """
        defaults = {} if name is None else dict(preset(name).training)
        if name is not None and not defaults:
            raise UserError(f"preset {name!r} does not train a cross-encoder")
        if overrides.get("triples"):
            # Triples name positives and negatives themselves, and are refused beside these options.
            defaults.pop("negatives", None)
            defaults.pop("positives", None)
        for option in defaults:
            if option not in cls.__dataclass_fields__:
                raise unknown_name(
                    f"training option in preset {name!r}", option, cls.__dataclass_fields__
                )
        return cls(**{**defaults, **overrides})

    @property
    def pool(self) -> tuple[str, int]:
        """What negatives are drawn from: ``bm25`` or ``random`` documents, and their number."""
        kind, _, number = (self.negatives or "bm25:100").partition(":")
        size = read_whole_number(number)
        if kind not in NEGATIVES or size is None or size < 1:
            raise UserError(
                "training: expected negatives as bm25:K or random:N, such as random:1000, "
                f"got {shorten(self.negatives)}"
            )
        return kind, size

    @property
    def retrieved_only(self) -> bool:
        """Whether only relevant documents among BM25's top documents are positives."""
        return self.positives != "all" and self.pool[0] == "bm25"

    @property
    def rows_per_batch(self) -> int:
        """Number of rows in a batch: pairs, or groups of a positive and its negatives."""
        if self.loss == "binary":
            return self.batch
        # The batch size counts pairs, but a batch holds at least one group.
        return max(self.batch // (1 + self.negatives_per_positive), 1)


@dataclass(frozen=True, kw_only=True)
class RetrieverTraining(Training):
    """How a retriever is trained: `Training` with additions and other defaults.

    Without `sources` it learns from the collection's first source only. If a collection mixes human
    texts and rewrites, this is the human source, and the rewrites are the twins. The saved model
    cuts queries and documents at the larger of the two numbers of tokens, including special ones.
    """

    negatives_per_positive: AtLeastOne = 1
    """Mined negatives per positive."""
    depth: AtLeastOne = 100
    """Number of top documents that negatives are mined from."""
    rate: AboveZero = 2e-5
    """Peak learning rate."""
    negatives: Negatives = "in-batch"
    """Where negatives come from.

    ``in-batch``: the documents of the batch's other rows, and no others. All other schemes add
    mined negatives: ``bm25``, from BM25's top documents; ``ann``, from the model's own top
    documents, mined again in each epoch; ``controlled``, from those of BM25's top documents that
    are like the positive in perplexity and specificity.
    """
    loss: str = "MultipleNegativesRankingLoss"
    """A loss of sentence-transformers, as ``Name(option=value,…)``."""
    variant: Literal["paper", "code"] = "paper"
    """The debiased constraint as in the paper (Dai et al., KDD 2024), or as in its released
    code."""
    patience: AtLeastOne | None = None
    """Stop after this many epochs without improvement on the development split; keep the best
    epoch."""

    @property
    def mined_negatives(self) -> int:
        """Number of mined negatives in each row."""
        return 0 if self.negatives == "in-batch" else self.negatives_per_positive

    @property
    def has_constraint(self) -> bool:
        """Whether the debiased constraint, which needs twins, is part of the loss."""
        return self.alpha > 0 or self.variant == "code"


@dataclass(frozen=True, kw_only=True)
class LoraTraining(Schedule):
    """How a low-rank adapter is trained: `Schedule`, and the pairs of documents to learn from.

    Pairs, rank, rate, batch and share are those of Wang et al. (NAACL 2024, sec. 5), who adapt only
    the attention. Our own choices are alpha (twice the rank), the layers (all of the attention),
    optimizer and schedule, and the part of a document to read: they show titles alone
    (``text="title"``). Ask the adapted model with the same prompt, attribute, text and passage
    tokens.
    """

    pairs_per_epoch: AtLeastOne = 140_000
    """Approximate number of pairs of documents per epoch."""
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
    """Text that replaces ``{attribute}`` in the prompt."""
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
class TrainedModel:
    """A finished training."""

    folder: Path
    """Folder of the model. Rank with ``cross-encoder:FOLDER``, or ``dense:FOLDER`` for a
    retriever."""
    record: dict[str, Any]
    """Content of ``training.json`` there: ``spec``, ``collection``, ``packages`` and
    ``figures``."""
    resumed: int
    """Step that the call continued from: 0 for a new training, the last step if the training was
    finished before."""

    @property
    def figures(self) -> dict[str, Any]:
        """Number of queries and pairs learned from, duration, and the loss over time."""
        figures: dict[str, Any] = self.record["figures"]
        return figures
