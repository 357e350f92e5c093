"""Models to be trained: a cross-encoder made of an encoder, texts cut at tokens, and dropout switched off."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ranktilt.errors import UserError
from ranktilt.models import catalogue, checkpoint
from ranktilt.optional import need

FOR = "train cross-encoder"


def find_base_model(name: str) -> Path:
    """Find an encoder by folder, short name or hub name: a retriever's first, as in ``minilm``, then a re-ranker's."""
    kind = next(
        (kind for kind in ("dense", "cross-encoder") if catalogue.model(name, kind)), "dense"
    )
    return checkpoint.find(name, for_=f"{kind}:{name}")


def require_encoder(name: str, query_tokens: int, document_tokens: int) -> tuple[Path, int]:
    """Refuse what is no encoder, and texts too long for it; returns its folder and the tokens of the longest pair."""
    found = find_base_model(name)
    checkpoint.refuse_code(found)
    folder = _transformer_folder(found)
    checkpoint.require(folder, ranker="a cross-encoder")
    with checkpoint.loading(f"{found}: cannot be made a cross-encoder", for_=FOR):
        tokenizer = checkpoint.load_tokenizer(folder, for_=FOR)
        config = checkpoint.load(folder, "AutoModel", for_=FOR, pooler=False).config
    if not tokenizer.is_fast or tokenizer.pad_token is None:
        raise UserError(
            f"{found}: expected a tokenizer.json with a padding token, so that texts are cut and batched"
        )
    special = int(tokenizer.num_special_tokens_to_add(pair=True))
    most, whole = (
        getattr(config, "max_position_embeddings", None),
        query_tokens + document_tokens + special,
    )
    if isinstance(most, int) and 0 < most < whole:
        raise UserError(
            f"{folder}: has {most} places for tokens, and max_query_tokens={query_tokens}, max_document_tokens="
            f"{document_tokens} and {special} special tokens need {whole}; lower one of them"
        )
    return folder, whole


def new_cross_encoder(folder: Path, limit: int, seed: int) -> Any:
    """Give an encoder that `require_encoder` let pass a head of one number, drawn from a seed; scores are logits."""
    torch = need("torch", extra="neural", for_=FOR)
    library = need("sentence_transformers", extra="train", for_=FOR)
    modules = need("sentence_transformers.base.modules", extra="train", for_=FOR)
    with (
        torch.random.fork_rng(devices=[]),
        checkpoint.loading(f"{folder}: cannot be made a cross-encoder", for_=FOR),
    ):
        torch.manual_seed(seed)
        own = {"trust_remote_code": False, "local_files_only": True}
        body = modules.Transformer(
            str(folder),
            transformer_task="sequence-classification",
            model_kwargs={**own, "dtype": "float32"},
            processor_kwargs={**own, "model_max_length": limit},
            config_kwargs={**own, "num_labels": 1},
        )
        return library.CrossEncoder(modules=[body], device="cpu", activation_fn=torch.nn.Identity())


def cut_texts(tokenizer: Any, most: int, texts: list[str]) -> list[str]:
    """Cut texts at a number of tokens, where the tokenizer says which characters these are."""
    if not getattr(tokenizer, "is_fast", False):
        return texts
    asked = {
        "add_special_tokens": False,
        "truncation": True,
        "max_length": most,
        "return_offsets_mapping": True,
    }
    found = tokenizer(texts, **asked)["offset_mapping"]
    return [text[: at[-1][1]] if at else "" for text, at in zip(texts, found, strict=True)]


def without_dropout(model: Any) -> None:
    """Switch dropout off: on a processor it bars the fast kernels of attention, and a short run overfits little."""
    dropout = need("torch", extra="neural", for_="training").nn.Dropout
    for module in model.modules():
        if isinstance(module, dropout):
            module.p = 0.0
        for name, value in vars(module).items():
            if "dropout" in name and isinstance(value, float):
                setattr(module, name, 0.0)


def _transformer_folder(folder: Path) -> Path:
    """Where the encoder lies in a sentence-transformers folder: old ones keep it in a folder of its own."""
    modules = checkpoint.read_json(folder / "modules.json", list)
    path = modules[0].get("path", "") if modules and isinstance(modules[0], dict) else ""
    return folder / path if path and (folder / path).is_dir() else folder
