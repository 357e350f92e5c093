"""The encoder that a cross-encoder is made of: loaded from a folder, given a head, and saved again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ranktilt.errors import UserError
from ranktilt.io.files import cannot_write
from ranktilt.models import catalogue, checkpoint
from ranktilt.optional import need
from ranktilt.progress import report
from ranktilt.training.training_set import Ints

FOR = "train cross-encoder"
_ACTIVATION = {"activation_fn": "torch.nn.modules.linear.Identity"}
_TEXTS_AT_ONCE = 1024


@dataclass(frozen=True)
class TrainableModel:
    """An encoder with a head of one number, and its tokenizer."""

    folder: Path
    """Where the encoder came from."""
    model: Any
    """For training: float32 weights, on the device."""
    tokenizer: Any

    @classmethod
    def load(cls, name: str, device: str, seed: int, *, dropout: bool = False) -> TrainableModel:
        """Load an encoder by folder, short name or hub name, and give it a head drawn from a seed."""
        torch = need("torch", extra="neural", for_=FOR)
        found = find_base_model(name)
        checkpoint.refuse_code(found)
        folder = _transformer_folder(found)
        _require_files(folder)
        torch.manual_seed(seed)
        # Dropout on a processor costs half of the speed (it bars the fast attention kernels), and a run that is over
        # before many epochs has little to overfit.
        options: dict[str, Any] = {"num_labels": 1, **({} if dropout else _without_dropout(folder))}
        kind = "AutoModelForSequenceClassification"
        with checkpoint.loading(f"{found}: cannot be made a cross-encoder", for_=FOR):
            tokenizer = checkpoint.load_tokenizer(folder, for_=FOR)
            model = checkpoint.load(folder, kind, for_=FOR, check=partial(_require_encoder, found), **options)
            model = model.to(device)
        _require_tokenizer(found, tokenizer)
        return cls(found, model.train(), tokenizer)

    def limit(self, query: int, document: int) -> int:
        """Tokens of the longest pair, special ones included; `UserError` where the model has no place for so many."""
        special = int(self.tokenizer.num_special_tokens_to_add(pair=True))
        most = getattr(self.model.config, "max_position_embeddings", None)
        whole = query + document + special
        if isinstance(most, int) and 0 < most < whole:
            raise UserError(
                f"{self.folder}: has {most} places for tokens, and max_query_tokens={query}, max_document_tokens="
                f"{document} and {special} special tokens need {whole}; lower one of them"
            )
        return whole

    def cut(self, texts: Sequence[str], most: int, label: str) -> tuple[list[str], Ints]:
        """Cut texts at a number of tokens; returns them and how many tokens each has left."""
        kept, counts = list[str](), list[int]()
        for start in range(0, len(texts), _TEXTS_AT_ONCE):
            part = list(texts[start : start + _TEXTS_AT_ONCE])
            found = self.tokenizer(
                part, add_special_tokens=False, truncation=True, max_length=most, return_offsets_mapping=True
            )
            counts += [len(ids) for ids in found["input_ids"]]
            kept += [text[: at[-1][1]] if at else "" for text, at in zip(part, found["offset_mapping"], strict=True)]
            report(label, len(kept), len(texts))
        return kept, np.array(counts, dtype=np.int64)

    def features(self, queries: Sequence[str], documents: Sequence[str], limit: int) -> dict[str, Any]:
        """Turn pairs of texts into what the model takes, on its device."""
        found = self.tokenizer(
            list(queries), list(documents), padding=True, truncation=True, max_length=limit, return_tensors="pt"
        )
        return {name: value.to(self.model.device) for name, value in found.items()}

    def save(self, folder: Path, limit: int) -> None:
        """Write the model as sentence-transformers' ``CrossEncoder`` reads it; its score is the bare logit."""
        self.tokenizer.backend_tokenizer.no_truncation()  # what the last batch was cut and filled up to
        self.tokenizer.backend_tokenizer.no_padding()
        self.tokenizer.model_max_length = limit
        self.model.config.sentence_transformers = _ACTIVATION
        # safetensors and tokenizers have errors of their own for a full disk
        with checkpoint.loading(f"{folder}: cannot be written", for_=FOR):
            try:
                self.model.save_pretrained(folder)
                self.tokenizer.save_pretrained(folder)
            except OSError as error:
                raise cannot_write(folder, error) from error


def find_base_model(name: str) -> Path:
    """Find an encoder by folder, short name or hub name: a retriever's first, as in ``minilm``, then a re-ranker's."""
    kind = next((kind for kind in ("dense", "cross-encoder") if catalogue.model(name, kind)), "dense")
    return checkpoint.find(name, for_=f"{kind}:{name}")


def _transformer_folder(folder: Path) -> Path:
    """Where the encoder lies in a sentence-transformers folder: old ones keep it in a folder of its own."""
    modules = checkpoint.read_json(folder / "modules.json", list)
    path = modules[0].get("path", "") if modules and isinstance(modules[0], dict) else ""
    return folder / path if path and (folder / path).is_dir() else folder


def _require_files(folder: Path) -> None:
    if not (folder / "config.json").is_file():
        raise UserError(f"{folder}: expected an encoder's folder, got one without config.json")
    if not checkpoint.has_tokenizer(folder):
        raise UserError(
            f"{folder}: has no tokenizer (expected tokenizer.json); put the encoder's own beside its weights"
        )


def _without_dropout(folder: Path) -> dict[str, float]:
    config = checkpoint.read_json(folder / "config.json", dict)
    return {name: 0.0 for name, value in config.items() if "dropout" in name and isinstance(value, float)}


def _require_encoder(found: Path, folder: Path, model: Any, info: Mapping[str, Any]) -> None:
    """Refuse weights of another architecture, which would silently be drawn at random; a head is new anyway."""
    prefix = f"{model.base_model_prefix}."
    missing = sorted(name for name in info["missing_keys"] if name.startswith(prefix) and "pooler" not in name)
    if missing:
        kind = model.config.model_type
        raise UserError(
            f"{found}: its weights are not a {kind!r} encoder's: {missing[0]} is missing ({len(missing)} in all)"
        )


def _require_tokenizer(found: Path, tokenizer: Any) -> None:
    if not tokenizer.is_fast:
        raise UserError(f"{found}: its tokenizer does not say where tokens lie; a tokenizer.json is needed")
    if tokenizer.pad_token is None:
        raise UserError(f"{found}: its tokenizer has no padding token, so texts cannot share a batch")
