"""Models to train: a cross-encoder from an encoder, texts cut at tokens, dropout switched off."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ranktilt.errors import UserError
from ranktilt.models import catalogue, checkpoint
from ranktilt.optional import need

FOR = "train cross-encoder"
"""Command, for messages."""


def find_base_model(name: str) -> Path:
    """Find an encoder by folder, short name or hub name.

    A short name is that of a retriever, as in ``minilm``, or else of a re-ranker.
    """
    is_reranker = catalogue.model(name, "cross-encoder") and not catalogue.model(name, "dense")
    kind = "cross-encoder" if is_reranker else "dense"
    return checkpoint.find(name, for_=f"{kind}:{name}")


def require_encoder(name: str, query_tokens: int, document_tokens: int) -> tuple[Path, int]:
    """Return the encoder's folder, and the number of tokens of the longest pair.

    A pair of query and document has `query_tokens` and `document_tokens` at most, and the special
    tokens that the tokenizer puts around the two.

    Raises
    ------
    UserError
        If the model is no encoder, or its texts could be longer than it reads.
    """
    model_folder = find_base_model(name)
    checkpoint.refuse_code(model_folder)
    folder = _transformer_folder(model_folder)
    checkpoint.require(folder, ranker="a cross-encoder")
    with checkpoint.loading(f"{model_folder}: cannot be turned into a cross-encoder", for_=FOR):
        tokenizer = checkpoint.load_tokenizer(folder, for_=FOR)
        config = checkpoint.load(folder, "AutoModel", for_=FOR, pooler=False).config
    if not tokenizer.is_fast or tokenizer.pad_token is None:
        raise UserError(
            f"{model_folder}: expected a tokenizer.json with a padding token, "
            "so that texts are cut and batched"
        )
    special_tokens = int(tokenizer.num_special_tokens_to_add(pair=True))
    pair_tokens = query_tokens + document_tokens + special_tokens
    positions = getattr(config, "max_position_embeddings", None)
    if isinstance(positions, int) and 0 < positions < pair_tokens:
        raise UserError(
            f"{folder}: takes {positions} tokens, but max_query_tokens={query_tokens}, "
            f"max_document_tokens={document_tokens} and {special_tokens} special tokens need "
            f"{pair_tokens}; lower one of them"
        )
    return folder, pair_tokens


def new_cross_encoder(folder: Path, limit: int, seed: int) -> Any:
    """Return a cross-encoder: an encoder and a new last layer (head) that gives one score.

    The head's weights are drawn from `seed`. Scores are logits, without a sigmoid. `folder` and
    `limit`, the tokens of the longest pair, come from `require_encoder`.
    """
    torch = need("torch", extra="neural", for_=FOR)
    library = need("sentence_transformers", extra="train", for_=FOR)
    modules = need("sentence_transformers.base.modules", extra="train", for_=FOR)
    with (
        torch.random.fork_rng(devices=[]),
        checkpoint.loading(f"{folder}: cannot be turned into a cross-encoder", for_=FOR),
    ):
        torch.manual_seed(seed)
        local_files = {"trust_remote_code": False, "local_files_only": True}
        body = modules.Transformer(
            str(folder),
            transformer_task="sequence-classification",
            model_kwargs={**local_files, "dtype": "float32"},
            processor_kwargs={**local_files, "model_max_length": limit},
            config_kwargs={**local_files, "num_labels": 1},
        )
        return library.CrossEncoder(modules=[body], device="cpu", activation_fn=torch.nn.Identity())


def cut_texts(tokenizer: Any, max_tokens: int, texts: list[str]) -> list[str]:
    """Cut texts at a number of tokens; leave them if the tokenizer does not locate its tokens."""
    if not getattr(tokenizer, "is_fast", False):
        return texts
    encoded = tokenizer(
        texts,
        add_special_tokens=False,
        truncation=True,
        max_length=max_tokens,
        return_offsets_mapping=True,
    )
    cut = []
    for text, offsets in zip(texts, encoded["offset_mapping"], strict=True):
        _, end = offsets[-1] if offsets else (0, 0)
        cut.append(text[:end])
    return cut


def without_dropout(model: Any) -> None:
    """Switch dropout off.

    On a processor, dropout prevents the fast kernels of attention, and a short training hardly
    overfits.
    """
    dropout = need("torch", extra="neural", for_="training").nn.Dropout
    for module in model.modules():
        if isinstance(module, dropout):
            module.p = 0.0
        for name, value in vars(module).items():
            if "dropout" in name and isinstance(value, float):
                setattr(module, name, 0.0)


def _transformer_folder(folder: Path) -> Path:
    """Return the encoder's folder: sentence-transformers used to save it in a subfolder."""
    modules = checkpoint.read_json(folder / "modules.json", list)
    path = modules[0].get("path", "") if modules and isinstance(modules[0], dict) else ""
    return folder / path if path and (folder / path).is_dir() else folder
