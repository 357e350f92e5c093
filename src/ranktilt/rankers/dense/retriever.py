"""Dense retrieval: exact search over the vectors of a sentence encoder."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.data.cache import STORES, Keys, Stored, VectorCache, Vectors
from ranktilt.data.collection import Collection
from ranktilt.data.run import Run
from ranktilt.errors import UserError
from ranktilt.llm.base import LLM, llm
from ranktilt.llm.prompts import cut_tokens
from ranktilt.models import catalogue
from ranktilt.models.checkpoint import find
from ranktilt.models.device import BACKENDS, PRECISIONS
from ranktilt.models.encoder import POOLINGS, Encoder, Kind, TextEncoder, encoder
from ranktilt.models.token_counts import Tokens
from ranktilt.progress import report
from ranktilt.rankers.base import (
    FirstStage,
    Rows,
    Scores,
    TemplatedQueries,
    encoder_provenance,
    installed_versions,
    require_backend,
    require_choices,
    require_range,
    reranked_run,
)
from ranktilt.rankers.candidates import FITTED, Candidates, truncated_spec
from ranktilt.rankers.dense.direction import Direction
from ranktilt.rankers.dense.search import score_pairs, search

SIMILARITIES = ("auto", "cosine", "dot")
PREFIX = "openai:"
"""What names a model of a server instead of one on this machine."""


@dataclass(frozen=True)
class Dense(TemplatedQueries, FirstStage):
    """Ranks by the similarity of a sentence encoder's vectors: a whole collection, or a run's candidates.

    `model` is a local folder, ``minilm``, a hub name (code in a model is never run), or
    ``openai:MODEL`` behind a server. What is ``auto`` or None is the model's own, for a bare
    transformer the model table's. `project` names a direction, as `fit_direction` learns it, whose
    component is removed from the documents' vectors (of unit length where they are compared by
    cosine, to which they are not brought again), by the part that `project_strength` says.
    """

    name: ClassVar[str] = "dense"
    argument: ClassVar[str | None] = "model"
    reranks: ClassVar[bool] = True

    model: str
    similarity: str = field(default="auto", kw_only=True)
    max_tokens: int | None = field(default=None, kw_only=True)
    precision: str = field(default="float32", kw_only=True)
    device: str | None = field(default=None, kw_only=True)
    backend: str = field(default=BACKENDS[0], kw_only=True)
    store: str = field(default="float32", kw_only=True)
    pooling: str = field(default="auto", kw_only=True)
    query_prefix: str | None = field(default=None, kw_only=True)
    document_prefix: str | None = field(default=None, kw_only=True)
    base_url: str | None = field(default=None, kw_only=True)
    requests_per_minute: int | None = field(default=None, kw_only=True)
    project: str | None = field(default=None, kw_only=True)
    project_strength: float = field(default=1.0, kw_only=True)
    learned: Direction | None = field(default=None, kw_only=True, repr=False, compare=False)
    """The direction that `project` names, where it is at hand: no file is read then."""
    k: int | None = field(default=None, kw_only=True)  # type: ignore[assignment]

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_template()
        require_choices(
            self, similarity=SIMILARITIES, precision=PRECISIONS, store=STORES, pooling=POOLINGS
        )
        require_backend(self)
        require_range(self, "max_tokens", least=1)
        require_range(self, "project_strength", least=0, most=1)
        if self.project is None and self.project_strength != 1:
            raise UserError("dense: project_strength needs a direction: project=FILE")
        for option in () if self.model.startswith(PREFIX) else ("base_url", "requests_per_minute"):
            if getattr(self, option) is not None:
                raise UserError(
                    f"dense: {option} is for a server's model, such as dense:{PREFIX}MODEL({option}=…)"
                )

    def provenance(self) -> dict[str, Any]:
        model = self.encoder
        return model.provenance if isinstance(model, EmbeddingServer) else encoder_provenance(model)

    def about(self, collection: Collection) -> dict[str, Any]:
        limit, over = self._truncated(collection.texts(self.text))
        truncated = {} if limit is None else truncated_spec(collection.docs["source"], over, limit)
        return {
            **self.template_spec(collection.queries_with_judgments["text"]),
            **truncated,
            **self._direction_spec(collection),
        }

    def _truncated(self, texts: pl.Series) -> tuple[int | None, npt.NDArray[np.bool_]]:
        """Tokens after which texts are cut, None where that is not known, and which texts are."""
        model, tokens = self.encoder, self.tokens()
        if isinstance(model, EmbeddingServer):
            return model.max_tokens, np.array(
                [cut_tokens(text, model.max_tokens) != text for text in texts], dtype=np.bool_
            )
        if tokens is None or tokens.limit is None:
            return None, np.zeros(len(texts), dtype=np.bool_)
        return tokens.limit, tokens.counts(texts, f"{self!r}: counting tokens") > tokens.limit

    def tokens(self) -> Tokens | None:
        """Return the model's tokenizer; None where it has none that can be read without the model's own code."""
        tokens = self.encoder.tokens if isinstance(self.encoder, Encoder) else None
        return tokens if tokens is not None and tokens.readable else None

    @cached_property
    def encoder(self) -> Encoder | EmbeddingServer:
        """The model, with what the model table knows of it; nothing is loaded or asked yet."""
        if self.model.startswith(PREFIX):
            return self._embedding_server()
        known = catalogue.model(self.model, self.name)
        pooling, query, document = self.pooling, self.query_prefix, self.document_prefix
        if known is not None:
            bare = not (find(self.model, for_=f"dense:{self.model}") / "modules.json").is_file()
            pooling = known.pooling if pooling == "auto" and bare and known.pooling else pooling
            query = known.query_prefix or None if query is None else query
            document = known.document_prefix or None if document is None else document
        return encoder(
            self.model,
            max_tokens=self.max_tokens,
            precision=self.precision,
            device=self.device,
            backend=self.backend,
            store=self.store,
            pooling=pooling,
            query_prefix=query,
            document_prefix=document,
        )

    def _embedding_server(self) -> EmbeddingServer:
        for name, default in (
            ("precision", PRECISIONS[0]),
            ("pooling", POOLINGS[0]),
            ("backend", BACKENDS[0]),
        ):
            if getattr(self, name) != default:
                raise UserError(
                    f"dense:{self.model}: {name} is for a model on this machine; here the server decides"
                )
        return EmbeddingServer(
            model=llm(
                self.model, base_url=self.base_url, requests_per_minute=self.requests_per_minute
            ),
            store=self.store,
            max_tokens=self.max_tokens,
            query_prefix=self.query_prefix or "",
            document_prefix=self.document_prefix or "",
        )

    def rank(self, collection: Collection, run: Run | None = None) -> Run:
        """Search the collection, or score a run's candidates: of the same vectors, to the last bit as a search does."""
        if run is None:
            return super().rank(collection)
        return self._rerank(collection, Candidates.from_run(collection, run, self))

    def candidates(self, collection: Collection, slack: int) -> Iterator[tuple[Rows, Scores]]:
        cosine, texts = self.cosine, collection.texts(self.text)
        documents, row, queries = self._vectors(texts, collection.queries_with_judgments["text"])
        copies = TextCopies.from_rows(row, len(documents))
        label, k = f"{self!r}: searching", self.depth + slack
        for found, scores in search(
            queries, documents, k, cosine=cosine, label=label, project=self._projection()
        ):
            yield copies.rows(found, scores)

    def _rerank(self, collection: Collection, found: Candidates) -> Run:
        cosine = self.cosine
        rows, place = np.unique(found.rows, return_inverse=True)
        texts = collection.texts(self.text).gather(rows)
        documents, row, queries = self._vectors(texts, found.texts)
        scores = score_pairs(
            queries, documents, found.query, row[place], cosine=cosine, project=self._projection()
        ).astype(np.float64)
        limit, over = self._truncated(texts)
        truncated = {} if limit is None else found.truncated(over[place], limit, collection)
        about = {**truncated, **self._direction_spec(collection)}
        spec = {**self.provenance(), **self.template_spec(found.texts), **about}
        return reranked_run(self, collection, found, scores, spec)

    def _vectors(self, texts: pl.Series, queries: pl.Series) -> tuple[Stored, Rows, Vectors]:
        """Vectors of the distinct texts, the row of each text, and each query's vector."""
        documents, row = self.encoder.encode(texts, "document", f"{self!r}: encoding documents")
        asked = self.read_queries(queries)
        query_vectors, query = self.encoder.encode(asked, "query", f"{self!r}: encoding queries")
        return documents, row, query_vectors.take(query)

    @cached_property
    def direction(self) -> Direction | None:
        """What is removed from documents' vectors, read once; refused where another model made it."""
        if self.project is None:
            return None
        found = self.learned or Direction.load(self.project)
        if (self.encoder.fingerprint, self.cosine) != (
            found.spec["fingerprint"],
            found.spec["cosine"],
        ):
            bare = repr(replace(self, project=None, project_strength=1.0))
            raise UserError(
                f"{self.project} is a direction of {found.spec['model']}; it does not fit vectors of {bare}"
            )
        return found

    def _projection(self) -> Callable[[Vectors], Vectors] | None:
        """What is done to the queries, in place of the documents, to remove the direction."""
        if self.direction is None or not self.project_strength:
            return None
        return partial(self.direction.remove, strength=self.project_strength)

    def _direction_spec(self, collection: Collection) -> dict[str, Any]:
        """The direction, and the queries to which a document is relevant whose twin it was learned from."""
        if self.direction is None:
            return {}
        fitted = {"file": self.project, "queries": self.direction.queries(collection)}
        return {"direction": dict(self.direction.spec), FITTED: fitted}

    def check(self) -> None:
        _ = self.cosine, self.direction
        if isinstance(self.encoder, EmbeddingServer):
            self.encoder.model.check()

    @property
    def cosine(self) -> bool:
        """Whether vectors are compared by cosine; by dot product otherwise."""
        known = catalogue.model(self.model, self.name)
        similarity = self.similarity
        if similarity == "auto":
            similarity = known.similarity if known and known.similarity else self.encoder.similarity
        if similarity not in SIMILARITIES:
            message = f"{self!r}: the model asks for {similarity!r}, which is not supported; choose cosine or dot"
            raise UserError(message)
        return similarity == "cosine"


@dataclass(frozen=True)
class TextCopies:
    """Documents that share a text share its vector and so, to the last bit, its score."""

    order: Rows
    start: Rows
    count: Rows

    @classmethod
    def from_rows(cls, row: Rows, n_texts: int) -> TextCopies:
        """Group documents, given the text of each, by their texts."""
        count = np.bincount(row, minlength=n_texts)
        return cls(np.argsort(row, kind="stable"), np.cumsum(count) - count, count)

    def rows(self, texts: Rows, scores: npt.NDArray[np.float32]) -> tuple[Rows, Scores]:
        """Rows and scores of all documents with these texts."""
        count = self.count[texts]
        within = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
        rows = self.order[np.repeat(self.start[texts], count) + within]
        return rows, np.repeat(scores, count).astype(np.float64)


@dataclass(frozen=True, kw_only=True)
class EmbeddingServer(TextEncoder):
    """An embedding model behind an OpenAI-compatible server, with its vectors cached by content.

    A text is cut after `max_tokens`, at four bytes a token: the server's tokens are not known here.
    """

    model: LLM
    store: str
    max_tokens: int | None
    query_prefix: str
    document_prefix: str

    similarity = "cosine"

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the server's address, the model's name and of what else its vectors depend on."""
        parts = (
            self.model.identity,
            self.store,
            str(self.max_tokens),
            self.query_prefix,
            self.document_prefix,
        )
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]

    @property
    def about(self) -> dict[str, Any]:
        return {
            "model": f"{PREFIX}{self.model.name}",
            "options": {**self.model.spec, "store": self.store},
        }

    @property
    def provenance(self) -> dict[str, Any]:
        """Model, address and client, for a run's spec; no key is in it."""
        model = {**self.model.spec, "fingerprint": self.fingerprint}
        return {"model": model, "packages": installed_versions("openai")}

    def encode(
        self, texts: Sequence[str] | pl.Series, kind: Kind, label: str
    ) -> tuple[Stored, Rows]:
        return super().encode([cut_tokens(text, self.max_tokens) for text in texts], kind, label)

    def compute(
        self, texts: pl.Series, keys: Keys, kind: Kind, cache: VectorCache, label: str
    ) -> Stored:
        """Ask the server for what the cache lacks.

        Each answer is kept at once, so that an interruption pays for nothing twice but what was
        under way. Vectors of another length than those kept are refused.
        """
        found, stored = cache.get(keys)
        missing = np.flatnonzero(~found)
        prefix = self.query_prefix if kind == "query" else self.document_prefix
        done, dimension = len(keys) - len(missing), stored.shape[1]
        report(label, done, len(keys))
        for positions, vectors in self.model.embed(
            [f"{prefix}{texts[i]}" or " " for i in missing.tolist()]
        ):
            if dimension not in (0, vectors.shape[1]):
                raise UserError(
                    f"{PREFIX}{self.model.name} now gives vectors of {vectors.shape[1]} numbers, and {cache.folder} "
                    f"holds those of {dimension}: another model answers under that name; remove the folder to go on"
                )
            dimension = vectors.shape[1]
            cache.put(keys[missing[positions]], vectors)
            done += len(positions)
            report(label, done, len(keys))
        return cache.get(keys)[1]
