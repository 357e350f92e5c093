"""Prepare models for training: make a cross-encoder, cut texts, and switch dropout off.

A *cross-encoder* reads a query and a document together, and gives one score. It is an *encoder*, a
pretrained model, with a new last layer.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ranktilt.errors import UserError
from ranktilt.models import catalogue, checkpoint
from ranktilt.optional import need

FOR = "train cross-encoder"
"""Command, for messages."""


def find_base_model(name: str) -> Path:
    """Return the folder of an encoder, named by its folder, short name or hub name.

    A short name, such as ``minilm``, is looked up among retrievers, and then among re-rankers.
    """
    # A name may be that of both; the retriever is then meant.
    is_reranker = catalogue.model(name, "cross-encoder") and not catalogue.model(name, "dense")
    kind = "cross-encoder" if is_reranker else "dense"
    return checkpoint.find(name, for_=f"{kind}:{name}")


def require_encoder(name: str, query_tokens: int, document_tokens: int) -> tuple[Path, int]:
    """Return the encoder's folder, and the maximum number of tokens of a pair.

    A pair of a query and a document has at most `query_tokens` plus `document_tokens`, and the
    special tokens that the tokenizer puts around the two.

    Raises
    ------
    UserError
        If the model is no encoder, or a pair could be longer than the model reads.
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


def new_cross_encoder(folder: Path, max_tokens: int, seed: int) -> Any:
    """Return a cross-encoder: an encoder and a new last layer (head) that gives one score.

    Scores are logits, without a sigmoid.

    Parameters
    ----------
    folder : Path
        Folder of the encoder.
    max_tokens : int
        Maximum number of tokens of a pair of query and document.
    seed : int
        Random seed of the head's weights.
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
            processor_kwargs={**local_files, "model_max_length": max_tokens},
            config_kwargs={**local_files, "num_labels": 1},
        )
        return library.CrossEncoder(modules=[body], device="cpu", activation_fn=torch.nn.Identity())


def cut_texts(tokenizer: Any, max_tokens: int, texts: list[str]) -> list[str]:
    """Cut texts after `max_tokens` tokens, without special ones.

    Texts stay whole if the tokenizer does not say where in a text its tokens are.
    """
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
    for text, spans in zip(texts, encoded["offset_mapping"], strict=True):
        _start, end = spans[-1] if spans else (0, 0)  # of the last token
        cut.append(text[:end])
    return cut


def disable_dropout(model: Any) -> None:
    """Switch dropout off in all layers.

    On a CPU, attention with dropout cannot use its fast kernels, and a short training hardly
    overfits without dropout.
    """
    dropout = need("torch", extra="neural", for_="training").nn.Dropout
    for module in model.modules():
        if isinstance(module, dropout):
            module.p = 0.0
        # Layers of attention keep the probability as a number, and apply it themselves.
        for name, value in vars(module).items():
            if "dropout" in name and isinstance(value, float):
                setattr(module, name, 0.0)


def _transformer_folder(folder: Path) -> Path:
    """Return the folder of a model's encoder, which may be a subfolder.

    Earlier versions of sentence-transformers saved the encoder there.
    """
    modules = checkpoint.read_json(folder / "modules.json", list)
    path = modules[0].get("path", "") if modules and isinstance(modules[0], dict) else ""
    return folder / path if path and (folder / path).is_dir() else folder
