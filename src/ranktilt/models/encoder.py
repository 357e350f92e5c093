"""Neural encoders: encode each distinct text once, and keep its vector by content."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from ranktilt.errors import UserError
from ranktilt.executing.executor import Portable
from ranktilt.executing.memory_limits import vector_folder
from ranktilt.io.cache import Keys, Stored, VectorCache, Vectors, content_keys
from ranktilt.models import checkpoint
from ranktilt.models.batching import RESULTS_VERSION, BatchJob, BatchShapes, Ints, Part, compute_missing, compute_parts
from ranktilt.models.batching import pad as padded
from ranktilt.models.checkpoint import read_json
from ranktilt.models.device import inference
from ranktilt.models.token_counts import NO_LIMIT, Tokens
from ranktilt.optional import need

Kind = Literal["query", "document"]
POOLINGS = ("auto", "mean", "cls", "lasttoken")
_PROMPTS = {"query": ("query",), "document": ("document", "passage", "corpus")}
_CHARACTERS_A_TOKEN = 4


class TextEncoder(ABC):
    """What turns texts into vectors: a model on this machine or a server's."""

    store: str

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Hash of everything that vectors depend on but the texts."""

    @property
    @abstractmethod
    def about(self) -> dict[str, Any]:
        """What ``ranktilt cache`` says of these vectors."""

    @abstractmethod
    def compute(self, texts: pl.Series, keys: Keys, kind: Kind, cache: VectorCache, label: str) -> Stored:
        """Put the vectors that the cache lacks into it, and return all of them."""

    def encode(self, texts: Sequence[str] | pl.Series, kind: Kind, label: str) -> tuple[Stored, Ints]:
        """Encode texts, each distinct one once: its vectors in the order of the cache's files, and each text's row.

        `kind` says which prompt applies, where there is one; `label` names the progress.
        """
        keys, first, row = np.unique(content_keys(texts, prefix=kind), return_index=True, return_inverse=True)
        cache = VectorCache(vector_folder() / "embeddings" / self.fingerprint, dtype=self.store, about=self.about)
        found, stored = cache.get(keys)
        if not found.all():
            cache.require_writable()
            distinct = pl.Series(texts, dtype=pl.String).gather(first)  # in the order in which files hold them
            stored = self.compute(distinct, keys, kind, cache, label)
        return stored, row


@dataclass(frozen=True, kw_only=True)
class Encoder(Portable, TextEncoder):
    """A sentence-transformers model in a local folder, with its vectors cached by content; see `Dense` for options."""

    name: str
    """The model as the user named it."""
    folder: Path
    max_tokens: int | None
    precision: str
    device: str | None
    store: str = "float32"
    """With float16 every vector has been through it, also the first time."""
    pooling: str = "auto"
    query_prefix: str | None = None
    document_prefix: str | None = None

    @cached_property
    def fingerprint(self) -> str:
        """Hash of every file of the model and of what else its vectors depend on."""
        options = (self.max_tokens, self.precision, self.store, self.pooling)
        prefixes = self.prefix("query"), self.prefix("document")
        return checkpoint.fingerprint(self.folder, RESULTS_VERSION, *options, *prefixes)

    @cached_property
    def similarity(self) -> str:
        """``cosine`` or ``dot``, as the model's own configuration says (cosine where it does not)."""
        return self._config.get("similarity_fn_name") or "cosine"

    @cached_property
    def tokens(self) -> Tokens:
        """The model's tokenizer, with what is put before documents."""
        return self._tokens("document")

    def prefix(self, kind: Kind) -> str:
        """What is put before each text: the user's, else the first prompt of the model that is for this kind."""
        given = self.query_prefix if kind == "query" else self.document_prefix
        if given is not None:
            return given
        prompts = self._config.get("prompts") or {}
        return next((str(prompts[name]) for name in _PROMPTS[kind] if prompts.get(name)), "")

    def compute(self, texts: pl.Series, keys: Keys, kind: Kind, cache: VectorCache, label: str) -> Stored:
        """Run the model over the texts that the cache lacks; see `TextEncoder.compute`."""
        job = BatchJob(
            keys=keys,
            lengths=self._lengths(texts, kind, label),
            take=lambda positions: texts.gather(positions).to_list(),
            prepare=partial(self._prepare, kind=kind),
            forward=partial(compute_parts, partial(self._forward, kind=kind)),
            context=self._inference,
            shapes=self._shapes,
        )
        return compute_missing(job, cache, label)

    @contextmanager
    def _inference(self) -> Iterator[None]:
        with inference(self.module.device, self.precision):
            yield

    @property
    def about(self) -> dict[str, Any]:
        """Name, folder and options; see `TextEncoder.about`."""
        options = {"max_tokens": self.max_tokens, "precision": self.precision, "store": self.store}
        options |= {"pooling": self.pooling, "query_prefix": self.query_prefix, "document_prefix": self.document_prefix}
        return {"model": self.name, "folder": str(self.folder.absolute()), "options": options}

    @cached_property
    def _config(self) -> dict[str, Any]:
        return read_json(self.folder / "config_sentence_transformers.json", dict)

    def _tokens(self, kind: Kind) -> Tokens:
        return Tokens(self.folder, self.max_tokens, self.prefix(kind))

    def _lengths(self, texts: pl.Series, kind: Kind, label: str) -> Ints:
        tokens = self._tokens(kind)
        if tokens.readable:
            counts = tokens.counts(texts, f"{label} (counting tokens)")
        else:
            counts = texts.str.len_chars().cast(pl.Int64).to_numpy() // _CHARACTERS_A_TOKEN + 2
        return counts if tokens.limit is None else np.minimum(counts, tokens.limit)

    @cached_property
    def _shapes(self) -> BatchShapes:
        model = self.module
        config = getattr(getattr(model[0], "auto_model", None), "config", None)
        limits = (model.max_seq_length, getattr(config, "max_position_embeddings", None))
        longest = [int(one) for one in limits if isinstance(one, int | float) and one > 0]
        return BatchShapes.on(self.device, min([*longest, NO_LIMIT]))

    def _prepare(self, texts: list[str], kind: Kind) -> list[Part]:
        model = self.module
        if not hasattr(model, "preprocess"):  # sentence-transformers 5 has no such step that is public
            return [(np.array([row]), [text]) for row, text in enumerate(texts)]
        features = model.preprocess(texts, prompt=self.prefix(kind) or None, task=kind)
        arrays = {name: value.numpy() if hasattr(value, "numpy") else value for name, value in features.items()}
        if getattr(arrays.get("attention_mask"), "shape", ())[:1] != (len(texts),):  # no transformer, so no padding
            return [(np.arange(len(texts)), features)]
        tokenizer = model.tokenizer
        padding = {"input_ids": tokenizer.pad_token_id or 0, "token_type_ids": tokenizer.pad_token_type_id}
        return padded(arrays, self._shapes, padding, left=tokenizer.padding_side == "left")

    def _forward(self, features: Any, kind: Kind) -> Vectors:
        model = self.module
        try:
            if isinstance(features, list):
                found = model.encode(features, prompt=self.prefix(kind), batch_size=len(features), task=kind)
            else:
                on_device = {name: _moved(value, model.device) for name, value in features.items()}
                found = model(on_device, task=kind)["sentence_embedding"].float().cpu().numpy()
        except (RuntimeError, IndexError) as error:
            cut = "" if self.max_tokens is None else f" with max_tokens={self.max_tokens}"
            raise UserError(f"{self.folder}: cannot encode{cut}: {checkpoint.first_line(error)}") from error
        vectors = np.ascontiguousarray(found, dtype=np.float32)
        if not np.isfinite(vectors).all():
            raise UserError(f"{self.folder}: the model gives NaN or infinite vectors")
        return vectors

    @cached_property
    def module(self) -> Any:
        """The loaded sentence-transformers model, for inference."""
        checkpoint.require_embeddings(self.folder)
        need("torch", extra="neural", for_="dense")
        library = need("sentence_transformers", extra="neural", for_="dense")
        checkpoint.refuse_code(self.folder)
        where = f" on device {self.device!r}" if self.device else ""
        failure = f"{self.folder}: cannot be loaded as a sentence-transformers model{where}"
        checked = checkpoint.weights_required(self.folder, pooler=self._pooler_is_used, for_="dense")
        with checkpoint.loading(failure, for_="dense"), checked:
            model = library.SentenceTransformer(
                str(self.folder), device=self.device, trust_remote_code=False, local_files_only=True
            )
        self._require_vocabulary(getattr(model, "tokenizer", None))
        if self.max_tokens is not None:
            model.max_seq_length = self.max_tokens
        if self.pooling != "auto":
            self._replace_pooling(model)
        return model.float().eval()

    @property
    def _pooler_is_used(self) -> bool:
        """Whether some module reads what a pooler gives, in place of the tokens' vectors."""
        files = self.folder.rglob("sentence_bert_config.json")
        return any("pooler_output" in file.read_text(encoding="utf-8") for file in files)

    def _require_vocabulary(self, tokenizer: Any) -> None:
        """Refuse a tokenizer of special tokens only, which transformers makes up where the folder holds none."""
        special = getattr(tokenizer, "all_special_ids", None)
        if special is not None and len(tokenizer) <= len(set(special)):
            raise UserError(f"{self.folder}: no tokenizer: expected a tokenizer.json, or the vocabulary of one")

    def _replace_pooling(self, model: Any) -> None:
        at = next((i for i, module in enumerate(model) if type(module).__name__ == "Pooling"), None)
        if at is None:
            raise UserError(f"{self.folder}: the model has no pooling that pooling={self.pooling} could replace")
        config = model[0].auto_model.config
        model[at] = type(model[at])(config.hidden_size, pooling_mode=self.pooling)


def _moved(value: Any, device: Any) -> Any:
    if isinstance(value, np.ndarray):
        value = need("torch", extra="neural", for_="dense").from_numpy(value)
    return value.to(device, non_blocking=True) if hasattr(value, "to") else value


def encoder(model: str, *, precision: str, device: str | None, **options: Any) -> Encoder:
    """Find a model by folder, short name or hub name; nothing is loaded; see `Encoder`."""
    folder = checkpoint.find(model, for_=f"dense:{model}")
    _refuse_reranker(folder)
    checkpoint.require_settings(folder)
    return Encoder(name=model, folder=folder, precision=precision, device=device, **options)


def _refuse_reranker(folder: Path) -> None:
    """Refuse a classifier of pairs, whose body alone would give vectors that were never meant to be any."""
    if (folder / "modules.json").is_file():
        return
    kinds = read_json(folder / "config.json", dict).get("architectures")
    kind = str(kinds[0]) if isinstance(kinds, list) and kinds else ""
    if kind.endswith("ForSequenceClassification"):
        raise UserError(f"{folder}: a {kind} is a re-ranker; cross-encoder:{folder} takes it")
