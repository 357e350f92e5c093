"""The model table: the papers' rankers by short name, as data."""

from __future__ import annotations

from dataclasses import dataclass

KINDS = ("dense", "cross-encoder", "monot5", "monobert")
"""What a model is for, by the name of the ranker that takes it."""
UNKNOWN = "not stated"
"""The licence of a model whose page names none."""


@dataclass(frozen=True, kw_only=True)
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
        name="minilm",
        kind="dense",
        hub="sentence-transformers/all-MiniLM-L6-v2",
        about="small general encoder, 6 layers",
        licence="Apache-2.0",
        source="all-MiniLM-L6-v2, sentence-transformers, after Wang et al., MiniLM, NeurIPS 2020",
        limit=256,
        pooling="mean",
        similarity="cosine",
    ),
    Model(
        name="ance",
        kind="dense",
        hub="sentence-transformers/msmarco-roberta-base-ance-firstp",
        about="ANCE (FirstP), RoBERTa base, MS MARCO",
        licence="Apache-2.0",
        source="Xiong et al., Approximate Nearest Neighbor Negative Contrastive Learning, ICLR 2021",
        limit=512,
        pooling="cls",
        similarity="dot",
    ),
    Model(
        name="tas-b",
        kind="dense",
        hub="sentence-transformers/msmarco-distilbert-base-tas-b",
        about="TAS-Balanced, DistilBERT, MS MARCO",
        licence="Apache-2.0",
        source="Hofstätter et al., Balanced Topic Aware Sampling, SIGIR 2021",
        limit=512,
        pooling="cls",
        similarity="dot",
    ),
    Model(
        name="contriever",
        kind="dense",
        hub="facebook/contriever-msmarco",
        about="Contriever, BERT base, MS MARCO",
        licence=UNKNOWN,
        source="Izacard et al., Unsupervised Dense Information Retrieval with Contrastive Learning, TMLR 2022",
        limit=512,
        pooling="mean",
        similarity="dot",
    ),
    Model(
        name="cocondenser",
        kind="dense",
        hub="sentence-transformers/msmarco-bert-co-condensor",
        about="coCondenser, BERT base, MS MARCO",
        licence="Apache-2.0",
        source="Gao and Callan, Unsupervised Corpus Aware Language Model Pre-training, ACL 2022",
        limit=256,
        pooling="cls",
        similarity="dot",
    ),
    Model(
        name="bert",
        kind="dense",
        hub="IR-Cocktail/bert-base-uncased-mean-v3-msmarco",
        about="BERT base of the Cocktail paper, MS MARCO",
        licence=UNKNOWN,
        source="Dai et al., Cocktail, Findings of ACL 2024",
        pooling="mean",
        similarity="cosine",
    ),
    Model(
        name="berm",
        kind="dense",
        hub="",
        about="BERM: no checkpoint published, name a folder",
        licence=UNKNOWN,
        source="Xu et al., BERM: Training the Balanced and Extractable Representation for Matching, ACL 2023",
        pooling="cls",
        similarity="dot",
    ),
    Model(
        name="minilm",
        kind="cross-encoder",
        hub="cross-encoder/ms-marco-MiniLM-L-6-v2",
        also=("cross-encoder/ms-marco-MiniLM-L6-v2",),
        about="MiniLM, 6 layers, MS MARCO",
        licence="Apache-2.0",
        source="cross-encoder/ms-marco, sentence-transformers, after Wang et al., MiniLM, NeurIPS 2020",
        limit=512,
    ),
    Model(
        name="tinybert",
        kind="cross-encoder",
        hub="cross-encoder/ms-marco-TinyBERT-L-2-v2",
        also=("cross-encoder/ms-marco-TinyBERT-L2-v2",),
        about="TinyBERT (BERT-Tiny), 2 layers, MS MARCO",
        licence="Apache-2.0",
        source="cross-encoder/ms-marco, sentence-transformers, after Turc et al., Well-Read Students, 2019",
        limit=512,
    ),
    Model(
        name="minilm-body",
        kind="cross-encoder",
        hub="microsoft/MiniLM-L12-H384-uncased",
        about="MiniLM, 12 layers, untuned",
        licence="MIT",
        source="Wang et al., MiniLM, NeurIPS 2020; the body that Askari et al., CIKM 2023, train",
        limit=512,
        tuned=False,
    ),
    Model(
        name="tinybert-body",
        kind="cross-encoder",
        hub="nreimers/BERT-Tiny_L-2_H-128_A-2",
        about="TinyBERT (BERT-Tiny), 2 layers, untuned",
        licence=UNKNOWN,
        source="Turc et al., Well-Read Students, 2019; the body that Askari et al., CIKM 2023, train",
        limit=512,
        tuned=False,
    ),
    Model(
        name="base",
        kind="monot5",
        hub="castorini/monot5-base-msmarco",
        about="monoT5, T5 base, MS MARCO, 10 epochs",
        licence=UNKNOWN,
        source="Nogueira et al., Document Ranking with a Pretrained Sequence-to-Sequence Model, Findings of EMNLP 2020",
        limit=512,
    ),
    Model(
        name="large",
        kind="monobert",
        hub="castorini/monobert-large-msmarco",
        about="monoBERT large, first trained on MS MARCO's text",
        licence=UNKNOWN,
        source="Nogueira et al., Multi-Stage Document Ranking with BERT, 2019",
        limit=512,
    ),
    Model(
        name="finetune-only",
        kind="monobert",
        hub="castorini/monobert-large-msmarco-finetune-only",
        about="monoBERT large, fine-tuned only",
        licence=UNKNOWN,
        source="Nogueira et al., Multi-Stage Document Ranking with BERT, 2019",
        limit=512,
    ),
)

MODELS: dict[str, Model] = {one.spec: one for one in _TABLE}
"""Every model by what is typed for it."""


def model(name: str, kind: str | None = None) -> Model | None:
    """Look a model up by short name (``minilm``), spec (``dense:minilm``) or hub name (``org/name``).

    `kind` is the ranker that asks, or its spec: only models of its kind are found, else the first of any kind. None
    where the table has none: a local folder, or another model of the hub.
    """
    wanted = kind.partition(":")[0] if kind is not None else None
    fit = (one for one in MODELS.values() if wanted in (None, one.kind))
    return next((one for one in fit if name in (one.name, one.spec, *one.hubs)), None)
