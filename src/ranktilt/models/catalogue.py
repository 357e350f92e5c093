"""The model table: the papers' rankers by short name, as data.

The *spec* of a model is what users type to rank with it, such as ``dense:minilm``: its *kind*,
which is the name of the ranker that takes it, and its short name. The *hub* is Hugging Face's. The
*source* of a model is its authors, with their publication.
"""

from __future__ import annotations

from dataclasses import dataclass

KINDS = ("dense", "cross-encoder", "monot5", "monobert")
"""What a model is for, by the name of the ranker that takes it."""
UNKNOWN = "not stated"
"""The licence of a model whose page names none."""


@dataclass(frozen=True, kw_only=True)
class Model:
    """A model's origin, and what a ranker must know to use it as its authors did."""

    name: str
    """Short name, unique within a kind: ``dense:minilm`` is not ``cross-encoder:minilm``."""
    kind: str
    """Name of the ranker that takes it, one of `KINDS`."""
    hub: str
    """Name on the model hub; empty where no checkpoint is published."""
    about: str
    """What distinguishes it, in a few words."""
    licence: str
    """Licence of the weights, as their page states it."""
    source: str
    """Authors, and the publication that describes the model."""
    limit: int | None = None
    """Most tokens of a text (dense) or of query and document (re-rankers), with special ones."""
    pooling: str | None = None
    """How a dense model makes one vector of its tokens'; None to do as the folder says."""
    similarity: str | None = None
    """How a dense model compares vectors; None to do as the folder says."""
    query_prefix: str = ""
    """Text before each query."""
    document_prefix: str = ""
    """Text before each document."""
    tuned: bool = True
    """False marks a base model, which must be trained before it ranks."""
    aliases: tuple[str, ...] = ()
    """Other hub names of the same weights."""

    @property
    def spec(self) -> str:
        """Text that users type for this model: ``dense:minilm``."""
        return f"{self.kind}:{self.name}"

    @property
    def line(self) -> str:
        """The spec as part of a pipeline: a re-ranker comes after a first stage."""
        return self.spec if self.kind == "dense" else f"bm25@100>>{self.spec}"

    @property
    def hubs(self) -> tuple[str, ...]:
        """Every name that the model has on the hub, its main name first."""
        return (self.hub, *self.aliases) if self.hub else self.aliases


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
        source=(
            "Xiong et al., Approximate Nearest Neighbor Negative Contrastive Learning, ICLR 2021"
        ),
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
        source=(
            "Izacard et al., Unsupervised Dense Information Retrieval with Contrastive Learning, "
            "TMLR 2022"
        ),
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
        source=(
            "Xu et al., BERM: Training the Balanced and Extractable Representation for Matching, "
            "ACL 2023"
        ),
        pooling="cls",
        similarity="dot",
    ),
    Model(
        name="minilm",
        kind="cross-encoder",
        hub="cross-encoder/ms-marco-MiniLM-L-6-v2",
        about="MiniLM, 6 layers, MS MARCO",
        licence="Apache-2.0",
        source=(
            "cross-encoder/ms-marco, sentence-transformers, after Wang et al., MiniLM, NeurIPS 2020"
        ),
        limit=512,
        aliases=("cross-encoder/ms-marco-MiniLM-L6-v2",),
    ),
    Model(
        name="tinybert",
        kind="cross-encoder",
        hub="cross-encoder/ms-marco-TinyBERT-L-2-v2",
        about="TinyBERT-L-2 (a BERT-Tiny), 2 layers, MS MARCO",
        licence="Apache-2.0",
        source=(
            "cross-encoder/ms-marco, sentence-transformers, after Turc et al., Well-Read Students, "
            "2019"
        ),
        limit=512,
        aliases=("cross-encoder/ms-marco-TinyBERT-L2-v2",),
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
        name="bert-tiny-body",
        kind="cross-encoder",
        hub="nreimers/BERT-Tiny_L-2_H-128_A-2",
        about="BERT-Tiny, 2 layers, untuned",
        licence=UNKNOWN,
        source=(
            "Turc et al., Well-Read Students, 2019; not the TinyBERT of Askari et al., CIKM 2023"
        ),
        limit=512,
        tuned=False,
    ),
    Model(
        name="base",
        kind="monot5",
        hub="castorini/monot5-base-msmarco",
        about="monoT5, T5 base, MS MARCO, 10 epochs",
        licence=UNKNOWN,
        source=(
            "Nogueira et al., Document Ranking with a Pretrained Sequence-to-Sequence Model, "
            "Findings of EMNLP 2020"
        ),
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
"""The models, by paper."""

MODELS: dict[str, Model] = {listed.spec: listed for listed in _TABLE}
"""Every model by its spec."""


def model(name: str, kind: str | None = None) -> Model | None:
    """Look up a model by its short name (``minilm``), spec (``dense:minilm``) or hub name.

    `kind` is a ranker's name or spec, and restricts the search to models of that kind. Without it,
    the first model of any kind that fits is returned. None means that the catalogue has no such
    model.
    """
    ranker = kind.partition(":")[0] if kind is not None else None
    for candidate in MODELS.values():
        is_of_kind = ranker is None or ranker == candidate.kind
        if is_of_kind and name in (candidate.name, candidate.spec, *candidate.hubs):
            return candidate
    return None
