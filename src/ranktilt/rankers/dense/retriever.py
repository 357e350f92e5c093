"""Dense retrieval: exact search over the vectors of a sentence encoder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
import polars as pl

from ranktilt.data.cache import STORES, StoredVectors, Vectors
from ranktilt.data.collection import Collection
from ranktilt.data.runs.run import Run
from ranktilt.errors import UserError
from ranktilt.models.device import BACKENDS, PRECISIONS
from ranktilt.models.encoder import POOLINGS, Encoder, encoder
from ranktilt.models.token_counts import Tokens
from ranktilt.rankers.base import (
    FirstStage,
    Rows,
    ScoredRows,
    TemplatedQueries,
    encoder_provenance,
    require_backend,
    require_choices,
    require_range,
    reranked_run,
)
from ranktilt.rankers.candidates import FITTED, Candidates, truncated_spec
from ranktilt.rankers.dense.direction import Direction
from ranktilt.rankers.dense.embedding_server import PREFIX, EmbeddingServer
from ranktilt.rankers.dense.search import TextCopies, score_pairs, search

SIMILARITIES = ("auto", "cosine", "dot")
"""Ways to compare vectors; ``auto`` is the model's own."""


@dataclass(frozen=True)
class Dense(TemplatedQueries, FirstStage):
    """Ranks a collection, or a run's candidates, by the similarity of a sentence encoder's vectors.

    `model` is a local folder, ``minilm``, a hub name (code in a model is never run), or
    ``openai:MODEL`` behind a server. An option that is ``auto`` or None takes the model's own
    value; for a plain transformer, which has none, that of the model table
    (`ranktilt.models.catalogue`).

    `project` names a direction, as `fit_direction` learns it, that is removed from the documents'
    vectors (`Direction.remove`). Vectors that are compared by cosine have unit length before the
    removal, and are not scaled again after it.
    """

    name: ClassVar[str] = "dense"
    argument: ClassVar[str | None] = "model"
    reranks: ClassVar[bool] = True

    model: str
    """Folder, short name or hub name of the model, or ``openai:MODEL``."""
    similarity: str = field(default="auto", kw_only=True)
    """How vectors are compared, one of `SIMILARITIES`."""
    max_tokens: int | None = field(default=None, kw_only=True)
    """Tokens after which a text is cut; None for the model's limit."""
    precision: str = field(default="float32", kw_only=True)
    """Arithmetic of the model."""
    device: str | None = field(default=None, kw_only=True)
    """Device of the model; None chooses one."""
    backend: str = field(default=BACKENDS[0], kw_only=True)
    """Library that runs the model."""
    store: str = field(default="float32", kw_only=True)
    """Type of the cached numbers; with float16 every vector is rounded."""
    pooling: str = field(default="auto", kw_only=True)
    """How the vectors of tokens become one."""
    query_prefix: str | None = field(default=None, kw_only=True)
    """Text before each query; None for the model's prompt."""
    document_prefix: str | None = field(default=None, kw_only=True)
    """Text before each document; None for the model's prompt."""
    base_url: str | None = field(default=None, kw_only=True)
    """Address of the server, for ``openai:MODEL``."""
    requests_per_minute: int | None = field(default=None, kw_only=True)
    """Most requests to the server in a minute."""
    project: str | None = field(default=None, kw_only=True)
    """File of a direction that is removed from the documents' vectors; None for none."""
    project_strength: float = field(default=1.0, kw_only=True)
    """Share of the direction that is removed, 0 to 1."""
    learned: Direction | None = field(default=None, kw_only=True, repr=False, compare=False)
    """The direction that `project` names, if it is in memory; then no file is read."""
    k: int | None = field(default=None, kw_only=True)  # type: ignore[assignment]
    """Number of documents for each query; None for the default depth, or all candidates."""

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
        if not self.model.startswith(PREFIX):
            self._refuse_server_options()

    def _refuse_server_options(self) -> None:
        """Refuse options of a server for a model on this machine."""
        for option in ("base_url", "requests_per_minute"):
            if getattr(self, option) is not None:
                raise UserError(
                    f"dense: {option} is for a server's model, such as "
                    f"dense:{PREFIX}MODEL({option}=…)"
                )

    def provenance(self) -> dict[str, Any]:
        model = self.encoder
        return model.provenance if isinstance(model, EmbeddingServer) else encoder_provenance(model)

    def about(self, collection: Collection) -> dict[str, Any]:
        """Return the query template, what the model cut off, and the direction, for a spec."""
        texts = collection.texts(self.text)
        return {
            **self.template_spec(collection.queries_with_judgments["text"]),
            **self._truncated_spec(texts, np.arange(len(texts)), collection.docs["source"]),
            **self._direction_spec(collection),
        }

    def _truncated_spec(
        self, texts: pl.Series, text_index: Rows, sources: pl.Series
    ) -> dict[str, Any]:
        """Return, for a spec, which share of each source's documents is not read to the end.

        `text_index` has the position of each document's text in `texts`, and `sources` the source
        of each document. Empty where the limit of the model is not known.
        """
        limit = self._token_limit()
        if limit is None:
            return {}
        if isinstance(self.encoder, EmbeddingServer):
            is_truncated = self.encoder.truncated(texts)
        else:
            counts = self.encoder.tokens.counts(texts, f"{self!r}: counting tokens")
            is_truncated = counts > limit
        return truncated_spec(sources, is_truncated[text_index], limit)

    def _token_limit(self) -> int | None:
        """Return how many tokens of a text are read; None where that is not known."""
        if isinstance(self.encoder, EmbeddingServer):
            return self.encoder.max_tokens
        tokens = self.tokens()
        return None if tokens is None else tokens.limit

    def tokens(self) -> Tokens | None:
        """Return the model's tokenizer; None if it cannot be read without the model's code."""
        tokens = self.encoder.tokens if isinstance(self.encoder, Encoder) else None
        return tokens if tokens is not None and tokens.readable else None

    @cached_property
    def encoder(self) -> Encoder | EmbeddingServer:
        """The model with the options of the model table; nothing is loaded or asked yet."""
        if self.model.startswith(PREFIX):
            return self._embedding_server()
        return encoder(
            self.model,
            max_tokens=self.max_tokens,
            precision=self.precision,
            device=self.device,
            backend=self.backend,
            store=self.store,
            pooling=self.pooling,
            query_prefix=self.query_prefix,
            document_prefix=self.document_prefix,
        )

    def _embedding_server(self) -> EmbeddingServer:
        """Return the server of the model; refuse options that only a model on this machine has."""
        for name, default in (
            ("precision", PRECISIONS[0]),
            ("pooling", POOLINGS[0]),
            ("backend", BACKENDS[0]),
        ):
            if getattr(self, name) != default:
                raise UserError(
                    f"dense:{self.model}: {name} is for a model on this machine; "
                    "here the server decides"
                )
        return EmbeddingServer.from_text(
            self.model,
            base_url=self.base_url,
            requests_per_minute=self.requests_per_minute,
            store=self.store,
            max_tokens=self.max_tokens,
            query_prefix=self.query_prefix or "",
            document_prefix=self.document_prefix or "",
        )

    def rank(self, collection: Collection, run: Run | None = None) -> Run:
        """Search the collection, or score a run's candidates.

        Both give a document the same score, to the last bit.
        """
        if run is None:
            return super().rank(collection)
        return self._rerank(collection, Candidates.from_run(collection, run, self))

    def candidates(self, collection: Collection, slack: int) -> Iterator[ScoredRows]:
        """Search the vectors of the distinct texts, and yield all documents with the best texts."""
        cosine, texts = self.cosine, collection.texts(self.text)
        documents, text_row = self._document_vectors(texts)
        queries = self._query_vectors(collection.queries_with_judgments["text"])
        copies = TextCopies.from_rows(text_row, len(documents))
        matches = search(
            queries,
            documents,
            self.depth + slack,
            cosine=cosine,
            label=f"{self!r}: searching",
            project=self._projection(),
        )
        for text_rows, scores in matches:
            yield copies.rows(text_rows, scores)

    def _rerank(self, collection: Collection, candidates: Candidates) -> Run:
        """Score the documents of a run again."""
        cosine = self.cosine
        rows, text_index = np.unique(candidates.rows, return_inverse=True)
        texts = collection.texts(self.text).gather(rows)
        documents, text_row = self._document_vectors(texts)
        scores = score_pairs(
            self._query_vectors(candidates.texts),
            documents,
            query=candidates.query,
            row=text_row[text_index],
            cosine=cosine,
            project=self._projection(),
        )
        sources = collection.docs["source"].gather(candidates.rows)
        spec = {
            **self.provenance(),
            **self.template_spec(candidates.texts),
            **self._truncated_spec(texts, text_index, sources),
            **self._direction_spec(collection),
        }
        return reranked_run(
            self, collection, candidates, scores=scores.astype(np.float64), spec=spec
        )

    def _document_vectors(self, texts: pl.Series) -> tuple[StoredVectors, Rows]:
        """Return the vectors of the distinct texts, and the row of each text among them."""
        return self.encoder.encode(texts, "document", f"{self!r}: encoding documents")

    def _query_vectors(self, texts: pl.Series) -> Vectors:
        """Return the vector of each query."""
        stored, row = self.encoder.encode(
            self.read_queries(texts), "query", f"{self!r}: encoding queries"
        )
        return stored.take(row)

    @cached_property
    def direction(self) -> Direction | None:
        """The direction that is removed from documents' vectors; refused if of another model."""
        if self.project is None:
            return None
        direction = self.learned or Direction.load(self.project)
        is_of_model = self.encoder.fingerprint == direction.spec["fingerprint"]
        if not is_of_model or self.cosine != direction.spec["cosine"]:
            unprojected = repr(replace(self, project=None, project_strength=1.0))
            raise UserError(
                f"{self.project} is a direction of {direction.spec['model']}; "
                f"it does not fit vectors of {unprojected}"
            )
        return direction

    def _projection(self) -> Callable[[Vectors], Vectors] | None:
        """Return the function that removes the direction; it is applied to queries.

        See `Direction.remove` for why this equals a removal from the documents.
        """
        if self.direction is None or not self.project_strength:
            return None
        return partial(self.direction.remove, strength=self.project_strength)

    def _direction_spec(self, collection: Collection) -> dict[str, Any]:
        """Return the direction, and the queries that it learned from."""
        if self.direction is None:
            return {}
        fitted = {"file": self.project, "queries": self.direction.queries(collection)}
        return {"direction": dict(self.direction.spec), FITTED: fitted}

    def check(self) -> None:
        """Refuse a similarity or a direction that does not fit, and a server without a key."""
        # Both properties refuse what does not fit the model.
        _ = self.cosine, self.direction
        if isinstance(self.encoder, EmbeddingServer):
            self.encoder.model.check()

    @property
    def cosine(self) -> bool:
        """Whether vectors are compared by cosine; otherwise by dot product."""
        similarity = self.encoder.similarity if self.similarity == "auto" else self.similarity
        if similarity not in SIMILARITIES:
            raise UserError(
                f"{self!r}: the model asks for {similarity!r}, which is not supported; "
                "choose cosine or dot"
            )
        return similarity == "cosine"
