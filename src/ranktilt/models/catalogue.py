"""The model table: the papers' rankers by short name, as data."""

from __future__ import annotations

from dataclasses import dataclass

KINDS = ("dense", "cross-encoder", "monot5", "monobert")
"""What a model is for, by the name of the ranker that takes it."""
UNKNOWN = "not stated"
"""The licence of a model whose page names none."""


@dataclass(frozen=True)
class Model:
    """One model: where it comes from, and what a ranker must know to use it as its authors did."""

    name: str
    """Short name, unique among models of its kind: ``dense:minilm`` and ``cross-encoder:minilm`` are two models."""
    kind: str
    hub: str
    """Name on the model hub; empty where no checkpoint is published."""
    about: str
    licence: str
    """Of the weights, as their page states it."""
    source: str
    """Who made it and where it is described."""
    limit: int | None = None
    """Tokens of a text (dense) or of query and document together (re-rankers), special ones included."""
    pooling: str | None = None
    similarity: str | None = None
    query_prefix: str = ""
    document_prefix: str = ""
    tuned: bool = True
    """False marks a base model, which must be trained before it ranks."""
    also: tuple[str, ...] = ()
    """Other hub names of the same weights."""

    @property
    def spec(self) -> str:
        """What is typed for it: ``dense:minilm``."""
        return f"{self.kind}:{self.name}"

    @property
    def line(self) -> str:
        """The spec as it stands in a pipeline: re-rankers behind a first stage."""
        return self.spec if self.kind == "dense" else f"bm25@100>>{self.spec}"

    @property
    def hubs(self) -> tuple[str, ...]:
        """Every name it has on the hub, the first one first."""
        return (self.hub, *self.also) if self.hub else self.also


_TABLE = (
    Model(
        "minilm",
        "dense",
        "sentence-transformers/all-MiniLM-L6-v2",
        "small general encoder, 6 layers",
        "Apache-2.0",
        "all-MiniLM-L6-v2, sentence-transformers, after Wang et al., MiniLM, NeurIPS 2020",
        limit=256,
        pooling="mean",
        similarity="cosine",
    ),
    Model(
        "ance",
        "dense",
        "sentence-transformers/msmarco-roberta-base-ance-firstp",
        "ANCE (FirstP), RoBERTa base, MS MARCO",
        "Apache-2.0",
        "Xiong et al., Approximate Nearest Neighbor Negative Contrastive Learning, ICLR 2021",
        limit=512,
        pooling="cls",
        similarity="dot",
    ),
    Model(
        "tas-b",
        "dense",
        "sentence-transformers/msmarco-distilbert-base-tas-b",
        "TAS-Balanced, DistilBERT, MS MARCO",
        "Apache-2.0",
        "Hofstätter et al., Balanced Topic Aware Sampling, SIGIR 2021",
        limit=512,
        pooling="cls",
        similarity="dot",
    ),
    Model(
        "contriever",
        "dense",
        "facebook/contriever-msmarco",
        "Contriever, BERT base, MS MARCO",
        UNKNOWN,
        "Izacard et al., Unsupervised Dense Information Retrieval with Contrastive Learning, TMLR 2022",
        limit=512,
        pooling="mean",
        similarity="dot",
    ),
    Model(
        "cocondenser",
        "dense",
        "sentence-transformers/msmarco-bert-co-condensor",
        "coCondenser, BERT base, MS MARCO",
        "Apache-2.0",
        "Gao and Callan, Unsupervised Corpus Aware Language Model Pre-training, ACL 2022",
        limit=256,
        pooling="cls",
        similarity="dot",
    ),
    Model(
        "bert",
        "dense",
        "IR-Cocktail/bert-base-uncased-mean-v3-msmarco",
        "BERT base of the Cocktail paper, MS MARCO",
        UNKNOWN,
        "Dai et al., Cocktail, Findings of ACL 2024",
        pooling="mean",
        similarity="cosine",
    ),
    Model(
        "berm",
        "dense",
        "",
        "BERM: no checkpoint published, name a folder",
        UNKNOWN,
        "Xu et al., BERM: Training the Balanced and Extractable Representation for Matching, ACL 2023",
        pooling="cls",
        similarity="dot",
    ),
    Model(
        "minilm",
        "cross-encoder",
        "cross-encoder/ms-marco-MiniLM-L-6-v2",
        "MiniLM, 6 layers, MS MARCO",
        "Apache-2.0",
        "cross-encoder/ms-marco, sentence-transformers, after Wang et al., MiniLM, NeurIPS 2020",
        limit=512,
        also=("cross-encoder/ms-marco-MiniLM-L6-v2",),
    ),
    Model(
        "tinybert",
        "cross-encoder",
        "cross-encoder/ms-marco-TinyBERT-L-2-v2",
        "TinyBERT-L-2 (a BERT-Tiny), 2 layers, MS MARCO",
        "Apache-2.0",
        "cross-encoder/ms-marco, sentence-transformers, after Turc et al., Well-Read Students, 2019",
        limit=512,
        also=("cross-encoder/ms-marco-TinyBERT-L2-v2",),
    ),
    Model(
        "minilm-body",
        "cross-encoder",
        "microsoft/MiniLM-L12-H384-uncased",
        "MiniLM, 12 layers, untuned",
        "MIT",
        "Wang et al., MiniLM, NeurIPS 2020; the body that Askari et al., CIKM 2023, train",
        limit=512,
        tuned=False,
    ),
    Model(
        "bert-tiny-body",
        "cross-encoder",
        "nreimers/BERT-Tiny_L-2_H-128_A-2",
        "BERT-Tiny, 2 layers, untuned",
        UNKNOWN,
        "Turc et al., Well-Read Students, 2019; not the TinyBERT of Askari et al., CIKM 2023",
        limit=512,
        tuned=False,
    ),
    Model(
        "base",
        "monot5",
        "castorini/monot5-base-msmarco",
        "monoT5, T5 base, MS MARCO, 10 epochs",
        UNKNOWN,
        "Nogueira et al., Document Ranking with a Pretrained Sequence-to-Sequence Model, Findings of EMNLP 2020",
        limit=512,
    ),
    Model(
        "large",
        "monobert",
        "castorini/monobert-large-msmarco",
        "monoBERT large, first trained on MS MARCO's text",
        UNKNOWN,
        "Nogueira et al., Multi-Stage Document Ranking with BERT, 2019",
        limit=512,
    ),
    Model(
        "finetune-only",
        "monobert",
        "castorini/monobert-large-msmarco-finetune-only",
        "monoBERT large, fine-tuned only",
        UNKNOWN,
        "Nogueira et al., Multi-Stage Document Ranking with BERT, 2019",
        limit=512,
    ),
)

MODELS: dict[str, Model] = {one.spec: one for one in _TABLE}
"""Every model by what is typed for it."""


def model(name: str, kind: str | None = None) -> Model | None:
    """Look a model up by short name (``minilm``), spec (``dense:minilm``) or hub name (``org/name``).

    `kind` is the ranker that asks, or its spec: only models of its kind are found, else the first
    of any kind.
    """
    wanted = kind.partition(":")[0] if kind is not None else None
    fit = (one for one in MODELS.values() if wanted in (None, one.kind))
    return next((one for one in fit if name in (one.name, one.spec, *one.hubs)), None)
