"""Neural encoders: encode each distinct text once, and cache its vector by content."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import polars as pl

from ranktilt.data.cache import (
    Keys,
    StoredVectors,
    VectorCache,
    Vectors,
    cache_folder,
    content_keys,
)
from ranktilt.errors import UserError, first_line
from ranktilt.models import catalogue, checkpoint
from ranktilt.models.batching import RESULTS_VERSION, BatchJob, Ints, batch_tokens, compute_missing
from ranktilt.models.checkpoint import read_json
from ranktilt.models.device import BACKENDS, inference
from ranktilt.models.token_counts import Tokens
from ranktilt.parallel.executor import Portable

Kind = Literal["query", "document"]
"""Kind of a text, which decides the prompt that the model puts before it."""
POOLINGS = ("auto", "mean", "cls", "lasttoken")
"""Ways to make one vector of a text from the vectors of its tokens."""
_PROMPTS = {"query": ("query",), "document": ("document", "passage", "corpus")}
"""Names that a model's prompt may have, by kind of text; the first one that it has counts."""


class TextEncoder(ABC):
    """A model that turns texts into vectors, on this machine or on a server."""

    store: str
    """Precision of the vectors on disk."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Hash of everything that the vectors depend on, except the texts."""

    @property
    @abstractmethod
    def about(self) -> dict[str, Any]:
        """Description of these vectors in ``ranktilt tools doctor``."""

    @abstractmethod
    def compute(
        self, texts: pl.Series, keys: Keys, *, kind: Kind, cache: VectorCache, label: str
    ) -> StoredVectors:
        """Compute the vectors that the cache lacks, put them into it, and return all vectors.

        `keys` has the cache's key of each text; the other parameters are those of `encode`.
        """

    def encode(
        self, texts: Sequence[str] | pl.Series, kind: Kind, label: str
    ) -> tuple[StoredVectors, Ints]:
        """Encode texts, each distinct text once.

        Returns the vectors of the distinct texts, in the order of the cache's files, and the row of
        each text among them. `kind` decides which prompt of the model applies; `label` names the
        work in the progress.
        """
        keys, first, row = np.unique(
            content_keys(texts, prefix=kind), return_index=True, return_inverse=True
        )
        folder = cache_folder() / "embeddings" / self.fingerprint
        cache = VectorCache(folder, dtype=self.store, about=self.about)
        is_cached, stored = cache.get(keys)
        if not is_cached.all():
            cache.require_writable()
            distinct = pl.Series(texts, dtype=pl.String).gather(first)
            stored = self.compute(distinct, keys, kind=kind, cache=cache, label=label)
        return stored, row


@dataclass(frozen=True, kw_only=True)
class Encoder(Portable, TextEncoder):
    """A sentence-transformers model in a local folder, with its vectors cached by content."""

    library_class: ClassVar[str] = "SentenceTransformer"
    """Class of sentence-transformers that loads the folder."""
    ranker: ClassVar[str] = "dense"
    """Name of the ranker, in messages."""

    name: str
    """Name of the model as the user typed it."""
    folder: Path
    """Folder of the model."""
    max_tokens: int | None
    """Tokens after which a text is cut; None for the model's limit."""
    precision: str
    """Precision of the forward pass."""
    device: str | None
    """Device that the model runs on; None takes a GPU if there is one."""
    backend: str = "torch"
    """Library that runs the model, one of `BACKENDS`."""
    store: str = "float32"
    """Precision of vectors on disk; with float16, every vector is rounded, even at first use."""
    pooling: str = "auto"
    """How the vectors of tokens become one, of `POOLINGS`; ``auto`` to do as the model says."""
    query_prefix: str | None = None
    """Text before each query; None for the model's prompt."""
    document_prefix: str | None = None
    """Text before each document; None for the model's prompt."""
    listed_similarity: str | None = None
    """Similarity of the model in the catalogue; it overrides the model's configuration."""

    @cached_property
    def fingerprint(self) -> str:
        """Hash of every file of the model, and of the options that its vectors depend on."""
        options = (self.max_tokens, self.precision, self.backend, self.store, self.pooling)
        prefixes = self.prefix("query"), self.prefix("document")
        return checkpoint.fingerprint(self.folder, RESULTS_VERSION, *options, *prefixes)

    @cached_property
    def similarity(self) -> str:
        """``cosine`` or ``dot``, by the catalogue, or else by the model's configuration.

        ``cosine`` if neither says.
        """
        return self.listed_similarity or self._config.get("similarity_fn_name") or "cosine"

    @cached_property
    def tokens(self) -> Tokens:
        """The model's tokenizer, with the prefix of documents."""
        return self.token_counter(self.prefix("document"))

    def token_counter(self, prompt: str) -> Tokens:
        """Return the model's tokenizer, with the prefix that the model puts before each text."""
        return Tokens(folder=self.folder, max_tokens=self.max_tokens, prompt=prompt)

    def prefix(self, kind: Kind) -> str:
        """Return the prefix of texts: the user's, else the model's first prompt of this kind."""
        prefix = self.query_prefix if kind == "query" else self.document_prefix
        if prefix is not None:
            return prefix
        prompts = self._config.get("prompts") or {}
        return next((str(prompts[name]) for name in _PROMPTS[kind] if prompts.get(name)), "")

    def compute(
        self, texts: pl.Series, keys: Keys, *, kind: Kind, cache: VectorCache, label: str
    ) -> StoredVectors:
        """Run the model over the texts that the cache lacks, and return all vectors."""
        job = BatchJob(
            keys=keys,
            lengths=self.token_counter(self.prefix(kind)).lengths(texts, label),
            compute=partial(self._vectors, kind=kind),
            take=lambda positions: texts.gather(positions).to_list(),
            context=self._inference,
            tokens=batch_tokens(self.device, self.precision),
        )
        return compute_missing(job, cache, label)

    @contextmanager
    def _inference(self) -> Iterator[None]:
        """Compute without gradients; the model's weights have the chosen precision."""
        with inference(self.module.device, "float32"):
            yield

    def _vectors(self, texts: list[str], kind: Kind) -> Vectors:
        """Encode some texts; an error of the library becomes a one-line `UserError`."""
        try:
            vectors = self._encoded(texts, kind)
        except (RuntimeError, IndexError, ValueError) as error:
            cut = "" if self.max_tokens is None else f" with max_tokens={self.max_tokens}"
            raise UserError(f"{self.folder}: cannot encode{cut}: {first_line(error)}") from error
        if not np.isfinite(vectors).all():
            raise UserError(f"{self.folder}: the model gives NaN or infinite vectors")
        return vectors

    def _encoded(self, texts: list[str], kind: Kind) -> Vectors:
        """Encode some texts with the prefix of their kind."""
        vectors = self.module.encode(
            texts,
            prompt=self.prefix(kind),
            batch_size=len(texts),
            task=kind,
            show_progress_bar=False,
        )
        return np.ascontiguousarray(vectors, dtype=np.float32)

    @property
    def about(self) -> dict[str, Any]:
        """Name, folder and options of the model, for the list of the cache."""
        options = {
            "max_tokens": self.max_tokens,
            "precision": self.precision,
            "store": self.store,
            "pooling": self.pooling,
            "query_prefix": self.query_prefix,
            "document_prefix": self.document_prefix,
        }
        if self.backend != BACKENDS[0]:
            options["backend"] = self.backend
        return {"model": self.name, "folder": str(self.folder.absolute()), "options": options}

    @cached_property
    def _config(self) -> dict[str, Any]:
        """Content of the model's configuration for sentence-transformers."""
        return read_json(self.folder / "config_sentence_transformers.json", dict)

    @cached_property
    def module(self) -> Any:
        """The loaded sentence-transformers model, for inference."""
        model = checkpoint.load_sentence_transformers(
            self.folder,
            self.library_class,
            device=self.device,
            backend=self.backend,
            for_=self.ranker,
            pooler=self._pooler_is_used,
            dtype=self.precision,
        )
        self._require_vocabulary(getattr(model, "tokenizer", None))
        if self.max_tokens is not None:
            model.max_seq_length = self.max_tokens
        if self.pooling != "auto":
            self._replace_pooling(model)
        return model

    @property
    def _pooler_is_used(self) -> bool:
        """Whether a module reads the output of BERT's pooler instead of the tokens' vectors."""
        files = self.folder.rglob("sentence_bert_config.json")
        return any(b"pooler_output" in file.read_bytes() for file in files)

    def _require_vocabulary(self, tokenizer: Any) -> None:
        """Refuse a tokenizer that has only special tokens.

        transformers makes up such a tokenizer if the folder has none.
        """
        special = getattr(tokenizer, "all_special_ids", None)
        if special is not None and len(tokenizer) <= len(set(special)):
            raise UserError(
                f"{self.folder}: no tokenizer: expected a tokenizer.json, or the vocabulary of one"
            )

    def _replace_pooling(self, model: Any) -> None:
        """Replace the model's pooling by the user's."""
        for index, module in enumerate(model):
            if type(module).__name__ == "Pooling":
                hidden_size = model[0].auto_model.config.hidden_size
                model[index] = type(module)(hidden_size, pooling_mode=self.pooling)
                return
        raise UserError(
            f"{self.folder}: the model has no pooling that pooling={self.pooling} could replace"
        )


def encoder(
    model: str,
    *,
    pooling: str = "auto",
    query_prefix: str | None = None,
    document_prefix: str | None = None,
    **options: Any,
) -> Encoder:
    """Return the encoder of a model by its path, short name or hub name, without loading it.

    An option that is not given has its value in the catalogue. For the pooling, the catalogue
    counts only if sentence-transformers did not save the folder, which would say it. `options` are
    further fields of `Encoder`.
    """
    folder = checkpoint.find(model, for_=f"dense:{model}")
    _refuse_reranker(folder)
    listed = catalogue.model(model, "dense")
    if listed is not None:
        has_modules = (folder / "modules.json").is_file()
        if pooling == "auto" and listed.pooling and not has_modules:
            pooling = listed.pooling
        if query_prefix is None:
            query_prefix = listed.query_prefix or None
        if document_prefix is None:
            document_prefix = listed.document_prefix or None
    return Encoder(
        name=model,
        folder=folder,
        pooling=pooling,
        query_prefix=query_prefix,
        document_prefix=document_prefix,
        listed_similarity=None if listed is None else listed.similarity,
        **options,
    )


def _refuse_reranker(folder: Path) -> None:
    """Refuse a classifier of pairs, which was not trained to make vectors of texts."""
    if (folder / "modules.json").is_file():
        return
    kinds = read_json(folder / "config.json", dict).get("architectures")
    kind = str(kinds[0]) if isinstance(kinds, list) and kinds else ""
    if kind.endswith("ForSequenceClassification"):
        raise UserError(f"{folder}: a {kind} is a re-ranker; cross-encoder:{folder} takes it")
