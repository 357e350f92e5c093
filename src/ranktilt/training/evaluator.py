"""What a model favours while it is trained, as sentence-transformers' trainers ask their evaluators.

Only `ranktilt.training.SourceBiasEvaluator` imports this module, so that sentence-transformers is
loaded when needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import polars as pl

from ranktilt.auditing.audit import audit
from ranktilt.data.cache import Stored, Vectors
from ranktilt.data.collection import Collection
from ranktilt.data.run import Run
from ranktilt.errors import UserError
from ranktilt.measures.base import Measure, estimand
from ranktilt.optional import need
from ranktilt.rankers.base import FirstStage, Rows, Scores
from ranktilt.rankers.dense.search import search
from ranktilt.rankers.lexical.bm25 import BM25
from ranktilt.training.training_set import of_sources

_FOR = "SourceBiasEvaluator"
_RESAMPLES = 2_000

evaluation: Any = need("sentence_transformers.base.evaluation", extra="train", for_=_FOR)


class SourceBiasEvaluator(evaluation.BaseEvaluator):  # type: ignore[misc]  # an optional package: no types
    """Measures, at each evaluation of a training, which source a model favours and what that costs.

    A bi-encoder searches the collection exactly; a cross-encoder re-ranks BM25's documents. For
    each measure M, the reference source H and each other source S there are the numbers

    - ``M_H`` and ``M_S``: effectiveness (0 to 1) where only this source's documents count as relevant, on the ranking
      of all sources;
    - ``relative_delta_M_S``, ``relative_delta_M_S_low`` and ``relative_delta_M_S_high``: Relative Δ in percent and its
      95 % interval; positive values favour H;
    - ``M_H_only``: effectiveness (0 to 1) where the documents of H are ranked alone. That of the first measure is the
      primary metric, by which a trainer may choose its best checkpoint.

    They are NaN where they are not defined.

    Parameters
    ----------
    collection : Collection
        The mixed collection with the queries and judgments to evaluate on, such as ``load(DIR,
        split="dev")``.
    measures : sequence of str, optional
        Measures of relevance.
    source : str, optional
        The reference source, with which each other one is compared.
    name : str, optional
        Put before the keys; a trainer puts ``eval_`` before it.
    depth : int, optional
        Documents a query that are ranked; of a cross-encoder: that BM25 finds for it.
    text : {"title+text", "text", "title"}, optional
        What of a document is read.
    batch_size : int, optional
        Texts, or pairs of texts, that the model reads at once.

    Raises
    ------
    UserError
        If the collection has no other source, nothing is judged, or an option is unknown.
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
        self.others = tuple(one for one in collection.sources if one != source)
        if not self.others:
            raise UserError(
                f"{_FOR}: the collection has one source ({source}); mix it with rewrites first"
            )
        asked = [estimand(one) for one in measures]
        if strange := [one for one in asked if not isinstance(one, Measure)]:
            raise UserError(
                f"{_FOR}: {strange[0]!r} is no measure of relevance; expected one such as nDCG@10"
            )
        self.measures, self.mixed, self.alone = (
            [repr(one) for one in asked],
            collection,
            of_sources(collection, [source]),
        )
        if not (self.alone.qrels["grade"] > 0).any():
            raise UserError(f"{_FOR}: no document of source {source!r} is judged relevant")
        self.source, self.name, self.depth, self.text = source, name, depth, text
        self.batch_size = batch_size
        self.first_stage = BM25(k=depth, text=text)
        self.primary_metric = f"{self.measures[0]}_{source}_only"

    def __call__(
        self, model: Any, output_path: str | None = None, epoch: float = -1, steps: int = -1
    ) -> dict[str, float]:
        """Rank with the model as it is now; see `SourceBiasEvaluator` for the keys of what comes back."""
        mixed, alone = self._runs(model)
        pairs = [(self.source, other) for other in self.others]
        found = audit(
            self.mixed,
            mixed,
            self.measures,
            pairs=pairs,
            confounds=False,
            resamples=_RESAMPLES,
            keep_top=0,
        )
        means = {
            (one["measure"], one["group"]): one["mean"]
            for one in found.by_group().iter_rows(named=True)
        }
        metrics = {
            f"{name}_{source}": means[name, source]
            for name in self.measures
            for source in self.mixed.sources
        }
        for effect in found.tilts:
            key = f"relative_delta_{effect.measure}_{effect.b}"
            metrics |= {key: effect.value, f"{key}_low": effect.low, f"{key}_high": effect.high}
        only = audit(self.alone, alone, self.measures, by=None, keep_top=0).by_group()
        metrics |= {
            f"{one['measure']}_{self.source}_only": one["mean"]
            for one in only.iter_rows(named=True)
        }
        named: dict[str, float] = self.prefix_name_to_metrics(metrics, self.name)
        self.store_metrics_in_model_card_data(model, named, epoch, steps)
        return named

    def _runs(self, model: Any) -> tuple[Run, Run]:
        """Rank all documents, and those of the reference source alone."""
        library = need("sentence_transformers", extra="train", for_=_FOR)
        if isinstance(model, library.CrossEncoder):
            return self._reranked(model, self.mixed), self._reranked(model, self.alone)
        similarity = model.similarity_fn_name
        if similarity not in ("cosine", "dot"):
            raise UserError(f"{_FOR}: the model compares by {similarity!r}; expected cosine or dot")
        documents = self._vectors(model.encode_document, self.mixed.texts(self.text))
        queries = self._vectors(model.encode_query, self.mixed.queries_with_judgments["text"])
        retriever = _EncodedTexts(
            k=self.depth,
            text=self.text,
            documents=documents,
            queries=queries,
            cosine=similarity == "cosine",
        )
        return retriever.rank(self.mixed), retriever.rank(self.alone)

    def _vectors(self, encode: Any, texts: pl.Series) -> dict[str, Vectors]:
        """Encode each distinct text once."""
        distinct = texts.unique(maintain_order=True).to_list()
        found = encode(
            distinct, batch_size=self.batch_size, show_progress_bar=False, convert_to_tensor=True
        )
        vectors = found.float().cpu().numpy()
        if not np.isfinite(vectors).all():
            raise UserError(f"{_FOR}: the model gives NaN or infinite vectors")
        return dict(zip(distinct, vectors, strict=True))

    def _reranked(self, model: Any, collection: Collection) -> Run:
        """BM25's documents, which no training changes, by a cross-encoder's scores; each distinct pair is read once."""
        first = collection.memo((_FOR, self.first_stage), lambda: self.first_stage.rank(collection))
        texts = collection.docs.select(doc_id="id", text=collection.texts(self.text))
        entries = (
            first.frame()
            .select("query_id", "doc_id")
            .join(texts, on="doc_id", maintain_order="left")
        )
        queries = collection.queries.select(query_id="id", query="text")
        entries = entries.join(queries, on="query_id", maintain_order="left")
        pairs = entries.select("query", "text").unique(maintain_order=True)
        bare = need(
            "torch", extra="neural", for_=_FOR
        ).nn.Identity()  # in float32 an activation would tie high scores
        options = {"batch_size": self.batch_size, "activation_fn": bare, "show_progress_bar": False}
        scores = np.asarray(model.predict(pairs.rows(), **options))
        if scores.ndim != 1:
            raise UserError(
                f"{_FOR}: expected a model with one score for a pair, got {scores.shape[1]}"
            )
        if not np.isfinite(scores).all():
            raise UserError(f"{_FOR}: the model gives NaN or infinite scores")
        scored = pairs.with_columns(score=pl.Series(scores, dtype=pl.Float64))
        found = entries.join(scored, on=["query", "text"], maintain_order="left")
        spec = {"ranker": "loaded-cross-encoder"}
        return Run.from_frame(found, queries=first.queries, spec=spec, score_order="score")

    def get_config_dict(self) -> dict[str, Any]:
        """Return what a model card says of the evaluation."""
        return {
            "measures": self.measures,
            "source": self.source,
            "depth": self.depth,
            "text": self.text,
        }


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class _EncodedTexts(FirstStage):
    """Exact search over vectors in memory, given by text."""

    name: ClassVar[str] = "loaded-encoder"

    documents: dict[str, Vectors]
    queries: dict[str, Vectors]
    cosine: bool

    def __repr__(self) -> str:
        return self.name

    def candidates(self, collection: Collection, slack: int) -> Iterator[tuple[Rows, Scores]]:
        """Search; see `FirstStage.candidates`."""
        documents = np.stack([self.documents[text] for text in collection.texts(self.text)])
        queries = np.stack(
            [self.queries[text] for text in collection.queries_with_judgments["text"]]
        )
        stored = Stored(documents, np.arange(len(documents)))
        for rows, scores in search(
            queries, stored, self.depth + slack, cosine=self.cosine, label=""
        ):
            yield rows, scores.astype(np.float64)
