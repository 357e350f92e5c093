"""An evaluator for sentence-transformers' trainers: which source a model favours in training.

A *source* is the author of documents: people or a language model. Relative Δ is the difference of
the effectiveness on two sources, in percent of their mean. Only the attribute
`ranktilt.training.SourceBiasEvaluator` imports this module, so that sentence-transformers is loaded
when needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

import numpy as np
import polars as pl

from ranktilt.auditing.audit import audit
from ranktilt.data.cache import StoredVectors, Vectors
from ranktilt.data.collection import Collection
from ranktilt.data.runs.run import Run
from ranktilt.errors import UserError
from ranktilt.measures.base import Measure, estimand
from ranktilt.optional import need
from ranktilt.rankers.base import FirstStage, Rows, Scores
from ranktilt.rankers.dense.search import search
from ranktilt.rankers.lexical.bm25 import BM25
from ranktilt.training.training_set import only_sources

_FOR = "SourceBiasEvaluator"
"""Name of the feature that needs the library, for messages."""
_RESAMPLES = 2_000
"""Bootstrap resamples of each interval; fewer than an audit's, because each epoch has intervals."""

evaluation: Any = need("sentence_transformers.base.evaluation", extra="train", for_=_FOR)


# An optional package: no types.
class SourceBiasEvaluator(evaluation.BaseEvaluator):  # type: ignore[misc]
    """Measure at each evaluation of a training which source the model favours.

    It also measures effectiveness, because a model may lose some of it. A bi-encoder searches the
    collection exactly; a cross-encoder re-ranks BM25's documents. For each measure M, the reference
    source H and each other source S there are these metrics:

    - ``M_H`` and ``M_S``: effectiveness (0 to 1) where only this source's documents count as
      relevant, on the ranking of all sources;
    - ``relative_delta_M_S``, ``relative_delta_M_S_low`` and ``relative_delta_M_S_high``: Relative Δ
      in percent and its 95 % interval; positive values favour H;
    - ``M_H_only``: effectiveness (0 to 1) where the documents of H are ranked alone. For the first
      measure this is the primary metric, by which a trainer may choose its best checkpoint.

    A metric is NaN where it is not defined.

    Parameters
    ----------
    collection : Collection
        The mixed collection with the queries and judgments to evaluate on, such as ``load(DIR,
        split="dev")``.
    measures : sequence of str, optional
        Measures of relevance.
    source : str, optional
        The reference source, with which each other source is compared.
    name : str, optional
        Prefix of the metrics' names; a trainer puts ``eval_`` before it.
    depth : int, optional
        Number of documents to rank for each query. A cross-encoder re-ranks that many of BM25's.
    text : {"title+text", "text", "title"}, optional
        Which part of a document the model reads.
    batch_size : int, optional
        Number of texts, or of pairs of texts, in a batch.

    Raises
    ------
    UserError
        If the collection has no source besides the reference, no document of the reference is
        judged relevant, or a measure is unknown.
    """

    def __init__(
        self,
        collection: Collection,
        *,
        measures: Sequence[str] = ("nDCG@10",),
        source: str = "human",
        name: str = "",
        depth: int = 100,
        text: str = "title+text",
        batch_size: int = 32,
    ) -> None:
        super().__init__()
        if source not in collection.sources:
            raise collection.unknown_source(source)
        self.other_sources = tuple(name for name in collection.sources if name != source)
        if not self.other_sources:
            raise UserError(
                f"{_FOR}: the collection has one source ({source}); mix it with rewrites first"
            )
        self.measures = list[str]()
        for measure_name in measures:
            measure = estimand(measure_name)
            if not isinstance(measure, Measure):
                raise UserError(
                    f"{_FOR}: expected a measure of relevance, such as nDCG@10, got {measure!r}"
                )
            self.measures.append(repr(measure))
        self.mixed = collection
        self.alone = only_sources(collection, [source])
        if not (self.alone.qrels["grade"] > 0).any():
            raise UserError(f"{_FOR}: no document of source {source!r} is judged relevant")
        self.source = source
        self.name = name
        self.depth = depth
        self.text = text
        self.batch_size = batch_size
        self.first_stage = BM25(k=depth, text=text)
        self.primary_metric = f"{self.measures[0]}_{source}_only"

    def __call__(
        self, model: Any, output_path: str | None = None, epoch: float = -1, steps: int = -1
    ) -> dict[str, float]:
        """Return the metrics of the model as it is now, by name.

        The trainer passes `epoch` and `steps`, which are noted in the model card.
        """
        mixed_run, alone_run = self._runs(model)
        metrics = {**self._mixed_metrics(mixed_run), **self._alone_metrics(alone_run)}
        prefixed: dict[str, float] = self.prefix_name_to_metrics(metrics, self.name)
        self.store_metrics_in_model_card_data(model, prefixed, epoch, steps)
        return prefixed

    def _mixed_metrics(self, run: Run) -> dict[str, float]:
        """Return means by source and Relative Δ, on the ranking of all sources."""
        mixed_audit = audit(
            self.mixed,
            run,
            self.measures,
            pairs=[(self.source, source) for source in self.other_sources],
            # Neither other differences between the sources nor the lists are read here.
            confounds=False,
            resamples=_RESAMPLES,
            keep_top=0,
        )
        means = {
            (row["measure"], row["group"]): row["mean"]
            for row in mixed_audit.by_group().iter_rows(named=True)
        }
        metrics = {
            f"{measure}_{source}": means[measure, source]
            for measure, source in product(self.measures, self.mixed.sources)
        }
        for effect in mixed_audit.tilts:
            key = f"relative_delta_{effect.measure}_{effect.b}"
            metrics |= {key: effect.value, f"{key}_low": effect.low, f"{key}_high": effect.high}
        return metrics

    def _alone_metrics(self, run: Run) -> dict[str, float]:
        """Return the effectiveness of the ranking of the reference source alone."""
        means = audit(self.alone, run, self.measures, by=None, keep_top=0).by_group()
        return {
            f"{row['measure']}_{self.source}_only": row["mean"]
            for row in means.iter_rows(named=True)
        }

    def _runs(self, model: Any) -> tuple[Run, Run]:
        """Rank all documents, and those of the reference source alone."""
        library = need("sentence_transformers", extra="train", for_=_FOR)
        if isinstance(model, library.CrossEncoder):
            return self._rerank(model, self.mixed), self._rerank(model, self.alone)
        similarity = model.similarity_fn_name
        if similarity not in ("cosine", "dot"):
            raise UserError(f"{_FOR}: the model compares by {similarity!r}; expected cosine or dot")
        documents = self._encode(model.encode_document, self.mixed.texts(self.text))
        queries = self._encode(model.encode_query, self.mixed.queries_with_judgments["text"])
        retriever = _VectorSearch(
            k=self.depth,
            text=self.text,
            documents=documents,
            queries=queries,
            cosine=similarity == "cosine",
        )
        return retriever.rank(self.mixed), retriever.rank(self.alone)

    def _encode(self, encode: Any, texts: pl.Series) -> dict[str, Vectors]:
        """Return the vector of each distinct text, by the text.

        `encode` is the model's method for queries or for documents.
        """
        distinct = texts.unique(maintain_order=True).to_list()
        tensor = encode(
            distinct, batch_size=self.batch_size, show_progress_bar=False, convert_to_tensor=True
        )
        vectors = tensor.float().cpu().numpy()
        if not np.isfinite(vectors).all():
            raise UserError(f"{_FOR}: the model gives NaN or infinite vectors")
        return dict(zip(distinct, vectors, strict=True))

    def _rerank(self, model: Any, collection: Collection) -> Run:
        """Re-rank BM25's documents with a cross-encoder, which reads each distinct pair once."""
        # BM25 does not change in a training, so all evaluations share its run.
        candidates = collection.memo(
            (_FOR, self.first_stage), lambda: self.first_stage.rank(collection)
        )
        texts = collection.docs.select(doc_id="id", text=collection.texts(self.text))
        queries = collection.queries.select(query_id="id", query="text")
        rows = candidates.frame().select("query_id", "doc_id")
        rows = rows.join(texts, on="doc_id", maintain_order="left")
        rows = rows.join(queries, on="query_id", maintain_order="left")
        pairs = rows.select("query", "text").unique(maintain_order=True)
        scored_pairs = pairs.with_columns(score=self._score_pairs(model, pairs))
        rows = rows.join(scored_pairs, on=["query", "text"], maintain_order="left")
        spec = {"ranker": "loaded-cross-encoder"}
        return Run.from_frame(rows, queries=candidates.queries, spec=spec, score_order="score")

    def _score_pairs(self, model: Any, pairs: pl.DataFrame) -> pl.Series:
        """Return a score for each pair of the texts of query and document."""
        torch = need("torch", extra="neural", for_=_FOR)
        scores = np.asarray(
            model.predict(
                pairs.rows(),
                batch_size=self.batch_size,
                activation_fn=torch.nn.Identity(),  # a sigmoid would tie high scores in float32
                show_progress_bar=False,
            )
        )
        if scores.ndim != 1:
            raise UserError(
                f"{_FOR}: expected a model with one score for a pair, got {scores.shape[1]}"
            )
        if not np.isfinite(scores).all():
            raise UserError(f"{_FOR}: the model gives NaN or infinite scores")
        return pl.Series(scores, dtype=pl.Float64)

    def get_config_dict(self) -> dict[str, Any]:
        """Return the evaluation's entries in a model card."""
        return {
            "measures": self.measures,
            "source": self.source,
            "depth": self.depth,
            "text": self.text,
        }


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class _VectorSearch(FirstStage):
    """Exact search with vectors that were computed before.

    Vectors are looked up by text. Documents of the reference have the same texts in both
    collections, so their vectors are computed once.
    """

    name: ClassVar[str] = "loaded-encoder"

    documents: dict[str, Vectors]
    """Vectors of documents, by text."""
    queries: dict[str, Vectors]
    """Vectors of queries, by text."""
    cosine: bool
    """Whether vectors are compared by cosine; otherwise by dot product."""

    def __repr__(self) -> str:
        return self.name

    def candidates(self, collection: Collection, slack: int) -> Iterator[tuple[Rows, Scores]]:
        """Yield the best documents of each judged query, as rows of the collection with scores.

        There are `slack` more of them than `depth`, because some may be left out later.
        """
        documents = np.stack([self.documents[text] for text in collection.texts(self.text)])
        queries = np.stack(
            [self.queries[text] for text in collection.queries_with_judgments["text"]]
        )
        stored = StoredVectors(documents, np.arange(len(documents)))
        for rows, scores in search(
            queries, stored, self.depth + slack, cosine=self.cosine, label=""
        ):
            yield rows, scores.astype(np.float64)
