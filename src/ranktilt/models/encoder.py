"""Neural encoders: find the model, encode each distinct text once, keep the vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ranktilt.errors import UserError, unknown
from ranktilt.executing import memory_limits as chunks
from ranktilt.io.cache import STORES, Keys, Stored, VectorCache, Vectors, content_keys
from ranktilt.models import checkpoint as hub
from ranktilt.models.batching import (
    BUDGET,
    GPU_BUDGET,
    VERSION,
    Ints,
    Job,
    Part,
    Shapes,
    assembled,
    computing,
    fill,
    fixed,
)
from ranktilt.models.checkpoint import PRECISIONS, read_json
from ranktilt.models.folder import fingerprint, first_line, require_rows, require_settings, weights_required
from ranktilt.models.pairs import NO_LIMIT
from ranktilt.models.token_counts import Tokens
from ranktilt.optional import need

__all__ = ["POOLINGS", "PRECISIONS", "STORES", "Encoder", "Kind", "Vectors", "encoder"]

Kind = Literal["query", "document"]
POOLINGS = ("auto", "mean", "cls", "lasttoken")
_PROMPTS = {"query": ("query",), "document": ("document", "passage", "corpus")}
_CHARACTERS_A_TOKEN = 4


@dataclass(frozen=True, kw_only=True)
class Encoder:
    """A sentence-transformers model in a local folder, with its vectors cached by content.

    Parameters
    ----------
    name : str
        The model as the user named it.
    folder : Path
        The model.
    max_tokens : int or None
        Tokens after which a text is cut; the model's own limit where None.
    precision : {"float32", "bfloat16"}
        Of the forward pass.
    device : str or None
        Torch's name of the device; the fastest there is where None.
    store : {"float32", "float16"}
        As which vectors are kept. float16 halves the cache, and every vector has been through it, also the first time.
    pooling : {"auto", "mean", "cls", "lasttoken"}
        How a text's vector is made from those of its tokens; ``auto`` is the model's own way, the mean where a
        bare transformer has none.
    query_prefix, document_prefix : str or None
        What is put before each text; the model's own where None.
    """

    name: str
    folder: Path
    max_tokens: int | None
    precision: str
    device: str | None
    store: str
    pooling: str
    query_prefix: str | None
    document_prefix: str | None

    @cached_property
    def fingerprint(self) -> str:
        """Hash of every file of the model and of what else its vectors depend on."""
        options = (self.max_tokens, self.precision, self.store, self.pooling)
        return fingerprint(self.folder, VERSION, *options, self.prefix("query"), self.prefix("document"))

    @cached_property
    def similarity(self) -> str:
        """``cosine`` or ``dot``, as the model's own configuration says (cosine where it does not)."""
        return self._config.get("similarity_fn_name") or "cosine"

    @cached_property
    def tokens(self) -> Tokens:
        """The model's tokenizer, with what is put before documents."""
        return self._tokens("document")

    def prefix(self, kind: Kind) -> str:
        """What is put before each text: the user's, else the first prompt of the model that is for this kind.

        Parameters
        ----------
        kind : {"query", "document"}
            Of the texts.

        Returns
        -------
        str
            Empty where there is none.
        """
        given = self.query_prefix if kind == "query" else self.document_prefix
        if given is not None:
            return given
        prompts = self._config.get("prompts") or {}
        return next((str(prompts[name]) for name in _PROMPTS[kind] if prompts.get(name)), "")

    def encode(self, texts: Sequence[str], kind: Kind, label: str) -> tuple[Stored, Ints]:
        """Encode texts, each distinct one once.

        Parameters
        ----------
        texts : sequence of str
            Any number, repeats allowed.
        kind : {"query", "document"}
            Which prompt applies, where there is one.
        label : str
            Names the progress.

        Returns
        -------
        stored : Stored, shape (n_distinct, d)
            One row a distinct text, in the order in which they lie in the cache's files.
        row : ndarray of int64, shape (n_texts,)
            Row of each text.

        Raises
        ------
        UserError
            If the model cannot be loaded or gives no numbers, or the cache cannot be written.
        """
        distinct, keys, row = distinct_texts(texts, kind)
        folder = chunks.vector_folder() / "embeddings" / self.fingerprint
        cache = VectorCache(folder, dtype=self.store, about=self._about)
        found, stored = cache.get(keys)
        if found.all():
            return stored, row
        cache.require_writable()
        job = Job(
            keys=keys,
            lengths=self._lengths(distinct, kind, label),
            prepare=lambda positions: self._prepare([distinct[i] for i in positions], kind),
            forward=lambda parts: assembled(lambda features: self._forward(features, kind), parts),
            computing=lambda: computing(self._model.device, self.precision),
            shapes=self._shapes,
        )
        return fill(job, cache, label), row

    @property
    def _about(self) -> dict[str, Any]:
        options = {"max_tokens": self.max_tokens, "precision": self.precision, "store": self.store}
        options |= {"pooling": self.pooling, "query_prefix": self.query_prefix, "document_prefix": self.document_prefix}
        return {"model": self.name, "folder": str(self.folder.absolute()), "options": options}

    @cached_property
    def _config(self) -> dict[str, Any]:
        return read_json(self.folder / "config_sentence_transformers.json", dict)

    def _tokens(self, kind: Kind) -> Tokens:
        return Tokens(self.folder, self.max_tokens, self.prefix(kind))

    def _lengths(self, texts: list[str], kind: Kind, label: str) -> Ints:
        tokens = self._tokens(kind)
        if tokens.readable:
            counts = tokens.counts(texts, f"{label} (counting tokens)")
        else:
            counts = np.array([len(text) // _CHARACTERS_A_TOKEN + 2 for text in texts], dtype=np.int64)
        return counts if tokens.limit is None else np.minimum(counts, tokens.limit)

    @cached_property
    def _shapes(self) -> Shapes:
        model = self._model
        config = getattr(getattr(model[0], "auto_model", None), "config", None)
        places = (model.max_seq_length, getattr(config, "max_position_embeddings", None))
        longest = [int(one) for one in places if isinstance(one, int | float) and one > 0]
        return Shapes(GPU_BUDGET if hub.on_gpu(self.device) else BUDGET, min([*longest, NO_LIMIT]))

    def _prepare(self, texts: list[str], kind: Kind) -> list[Part]:
        model = self._model
        if not hasattr(model, "preprocess"):  # sentence-transformers 5 has no such step that is public
            return [(np.array([row]), [text]) for row, text in enumerate(texts)]
        made = model.preprocess(texts, prompt=self.prefix(kind) or None, task=kind)
        arrays = {name: value.numpy() if hasattr(value, "numpy") else value for name, value in made.items()}
        if getattr(arrays.get("attention_mask"), "shape", ())[:1] != (len(texts),):  # no transformer, so no padding
            return [(np.arange(len(texts)), made)]
        tokenizer = model.tokenizer
        padding = {"input_ids": tokenizer.pad_token_id or 0, "token_type_ids": tokenizer.pad_token_type_id}
        return fixed(arrays, self._shapes, padding, left=tokenizer.padding_side == "left")

    def _forward(self, features: Any, kind: Kind) -> Vectors:
        model = self._model
        try:
            if isinstance(features, list):
                made = model.encode(features, prompt=self.prefix(kind), batch_size=len(features), task=kind)
            else:
                on_device = {name: _moved(value, model.device) for name, value in features.items()}
                made = model(on_device, task=kind)["sentence_embedding"].float().cpu().numpy()
        except (RuntimeError, IndexError) as error:
            cut = "" if self.max_tokens is None else f" with max_tokens={self.max_tokens}"
            raise UserError(f"{self.folder}: cannot encode{cut}: {first_line(error)}") from error
        vectors = np.ascontiguousarray(made, dtype=np.float32)
        if not np.isfinite(vectors).all():
            raise UserError(f"{self.folder}: the model gives NaN or infinite vectors")
        return vectors

    @cached_property
    def _model(self) -> Any:
        require_rows(self.folder)
        need("torch", extra="neural", for_="dense")
        library = need("sentence_transformers", extra="neural", for_="dense")
        need("transformers", extra="neural", for_="dense").utils.logging.disable_progress_bar()
        hub.refuse_code(self.folder)
        try:
            with weights_required(self.folder, pooler=self._pooler_is_used, for_="dense"):
                model = library.SentenceTransformer(
                    str(self.folder), device=self.device, trust_remote_code=False, local_files_only=True
                )
        except UserError:
            raise
        except Exception as error:  # each library has its own ways to fail at a broken folder or an absent device
            where = f" on device {self.device!r}" if self.device else ""
            message = f"{self.folder}: cannot be loaded as a sentence-transformers model{where}: {first_line(error)}"
            raise UserError(message) from error
        self._require_words(getattr(model, "tokenizer", None))
        if self.max_tokens is not None:
            model.max_seq_length = self.max_tokens
        if self.pooling != "auto":
            self._pool(model)
        return model.eval()

    @property
    def _pooler_is_used(self) -> bool:
        """Whether some module reads what a pooler gives, in place of the tokens' vectors."""
        files = self.folder.rglob("sentence_bert_config.json")
        return any("pooler_output" in file.read_text(encoding="utf-8") for file in files)

    def _require_words(self, tokenizer: Any) -> None:
        """Refuse a tokenizer of special tokens only, which transformers makes up where the folder holds none."""
        special = getattr(tokenizer, "all_special_ids", None)
        if special is not None and len(tokenizer) <= len(set(special)):
            raise UserError(f"{self.folder}: no tokenizer: expected a tokenizer.json, or the vocabulary of one")

    def _pool(self, model: Any) -> None:
        """Put the pooling that was asked for in place of the model's own."""
        at = next((i for i, module in enumerate(model) if type(module).__name__ == "Pooling"), None)
        if at is None:
            raise UserError(f"{self.folder}: the model has no pooling that pooling={self.pooling} could replace")
        config = model[0].auto_model.config
        model[at] = type(model[at])(config.hidden_size, pooling_mode=self.pooling)


def distinct_texts(texts: Sequence[str], kind: Kind) -> tuple[list[str], Keys, Ints]:
    """Find the distinct texts, in the order in which files hold them.

    Parameters
    ----------
    texts : sequence of str
        Any number, repeats allowed.
    kind : {"query", "document"}
        Part of the keys.

    Returns
    -------
    distinct : list of str
        In the order of their keys.
    keys : ndarray of 16-byte records
        One a distinct text.
    row : ndarray of int64, shape (n_texts,)
        Place of each text in `distinct`.
    """
    distinct = list(dict.fromkeys(texts))
    keys = content_keys(distinct, prefix=kind)
    order = np.argsort(keys)
    number = {distinct[i]: row for row, i in enumerate(order)}
    row = np.fromiter((number[text] for text in texts), dtype=np.int64, count=len(texts))
    return list(number), keys[order], row


def _moved(value: Any, device: Any) -> Any:
    if isinstance(value, np.ndarray):
        value = need("torch", extra="neural", for_="dense").from_numpy(value)
    return value.to(device, non_blocking=True) if hasattr(value, "to") else value


def _refuse_reranker(folder: Path) -> None:
    """Refuse a classifier of pairs, whose body alone would give vectors that were never meant to be any."""
    if (folder / "modules.json").is_file():
        return
    kinds = read_json(folder / "config.json", dict).get("architectures")
    kind = str(kinds[0]) if isinstance(kinds, list) and kinds else ""
    if kind.endswith("ForSequenceClassification"):
        raise UserError(f"{folder}: a {kind} is a re-ranker; cross-encoder:{folder} takes it")


def encoder(
    model: str,
    *,
    max_tokens: int | None,
    precision: str,
    device: str | None,
    store: str = "float32",
    pooling: str = "auto",
    query_prefix: str | None = None,
    document_prefix: str | None = None,
) -> Encoder:
    """Find a model by folder, short name or hub name.

    Parameters
    ----------
    model : str
        See `ranktilt.models.checkpoint.find`.
    max_tokens : int or None
        See `Encoder`.
    precision : {"auto", "float32", "bfloat16"}
        ``auto`` is bfloat16 where what computes has instructions for it, else float32.
    device : str or None
        See `Encoder`.
    store : {"float32", "float16"}, optional
        See `Encoder`.
    pooling : {"auto", "mean", "cls", "lasttoken"}, optional
        See `Encoder`.
    query_prefix, document_prefix : str or None, optional
        See `Encoder`.

    Returns
    -------
    Encoder
        Nothing is loaded yet.

    Raises
    ------
    UserError
        If there is no such model, precision, store or pooling.
    """
    precision = hub.resolve(precision, device=device)
    folder = hub.find(model, for_=f"dense:{model}")
    _refuse_reranker(folder)
    require_settings(folder)
    for what, value, valid in (("store", store, STORES), ("pooling", pooling, POOLINGS)):
        if value not in valid:
            raise unknown(f"{what} of dense", value, valid)
    return Encoder(
        name=model,
        folder=folder,
        max_tokens=max_tokens,
        precision=precision,
        device=device,
        store=store,
        pooling=pooling,
        query_prefix=query_prefix,
        document_prefix=document_prefix,
    )
