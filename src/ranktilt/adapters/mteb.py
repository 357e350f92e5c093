"""mteb: a model that searches as a ranker, and a ranker as such a model.

mteb is a benchmark of text embeddings. Its models search a corpus, or re-rank the candidates of
each query.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from ranktilt.adapters.base import ObjectRanker, object_spec
from ranktilt.data.collection import Collection
from ranktilt.data.formats.ids import ids_of
from ranktilt.data.runs.run import Run
from ranktilt.errors import UserError, shorten
from ranktilt.optional import need
from ranktilt.rankers.base import DEPTH, Ranker, require_depth

_NO_NAME = "no_model_name/available"
"""Name that mteb gives a model without a name."""


@dataclass(frozen=True)
class MtebRanker(ObjectRanker):
    """A model of mteb that searches a corpus (its ``SearchProtocol``), or encodes texts.

    mteb searches with the vectors of an encoder, as it does in its tasks.
    """

    model: Any
    """The model."""
    k: int = DEPTH
    """Number of documents for each query."""
    batch_size: int = 32
    """Number of texts that the model encodes together."""
    name: ClassVar[str] = "mteb"
    reranks: ClassVar[bool] = False
    fixed: ClassVar[tuple[str, ...]] = ("model",)
    """Fields that a user cannot set as options."""

    def __post_init__(self) -> None:
        require_depth(self.name, self.k)

    def rank(self, collection: Collection, run: Run | None = None) -> Run:
        """Index the documents, titles included, and search for each judged query."""
        if run is not None:
            raise UserError(
                f"{self!r} searches the whole collection and cannot re-rank; put it first"
            )
        model = self.model
        if not hasattr(model, "search"):
            models = need("mteb.models", extra="adapters", for_="models of mteb")
            model = models.SearchEncoderWrapper(model)
        datasets = need("datasets", extra="train", for_="models of mteb")
        task = {
            "encode_kwargs": {"batch_size": self.batch_size, "show_progress_bar": False},
            "task_metadata": _task(),
            "hf_split": "test",
            "hf_subset": "default",
            "num_proc": None,
        }
        docs = collection.docs.select(
            "id", pl.col("title").fill_null(""), pl.col("text").fill_null("")
        )
        corpus = datasets.Dataset.from_dict(docs.to_dict(as_series=False))
        queries = datasets.Dataset.from_dict(
            collection.queries_with_judgments.select("id", "text").to_dict(as_series=False)
        )
        with _without_bars(datasets):
            model.index(corpus, **task)
            results = model.search(queries, top_k=self.k, **task)
        # Larger scores are better; the documents of a query come in no order.
        frame = Run.from_dict(results, score_order="score").frame()
        spec = {"ranker": repr(self), **object_spec(self.model)}
        return Run.from_frame(frame, queries=collection.queries_with_judgments["id"], spec=spec)

    def __repr__(self) -> str:
        name = str(self.model.mteb_model_meta.name or _NO_NAME)
        # mteb has no name for a model that it did not load.
        if name == _NO_NAME:
            name = type(self.model).__name__
        return f"mteb:{name}@{self.k}"


@contextmanager
def _without_bars(datasets: Any) -> Iterator[None]:
    """Keep the datasets library from drawing progress bars, which it does even for a few texts."""
    were_shown = not datasets.are_progress_bars_disabled()
    datasets.disable_progress_bars()
    try:
        yield
    finally:
        if were_shown:
            datasets.enable_progress_bars()


@dataclass
class MtebModel:
    """A ranker of RankTilt as mteb evaluates models (its ``SearchProtocol``)."""

    ranker: Ranker
    """The ranker."""
    docs: pl.DataFrame | None = None
    """Documents to search; None until mteb calls `index`."""

    @property
    def mteb_model_meta(self) -> Any:
        """Description of the model that mteb writes with its results."""
        meta = need("mteb.models.model_meta", extra="adapters", for_="models of mteb").ModelMeta
        return meta.create_empty({"name": f"ranktilt/{self.ranker!r}", "revision": "1"})

    def index(self, corpus: Any, **_: Any) -> None:
        """Keep the documents to be searched."""
        title = corpus["title"] if "title" in corpus.column_names else [""] * len(corpus)
        ids = ids_of(list(corpus["id"]), "corpus: id")
        self.docs = pl.DataFrame({"id": ids, "title": list(title), "text": list(corpus["text"])})

    def search(
        self,
        queries: Any,
        *,
        top_k: int,
        top_ranked: Mapping[str, list[str]] | None = None,
        **_: Any,
    ) -> dict[str, dict[str, float]]:
        """Rank documents, or each query's candidates; return the `top_k` scores of each query."""
        if type(top_k) is not int or top_k < 1:
            raise UserError(f"top_k: expected a whole number of 1 or more, got {shorten(top_k)}")
        ids = ids_of(list(queries["id"]), "queries: id")
        query_texts = pl.DataFrame({"id": ids, "text": list(queries["text"])})
        if self.docs is None:
            raise UserError(f"{self.ranker!r}: index the corpus before you search it")
        no_judgments = pl.DataFrame(
            schema={"query_id": pl.String, "doc_id": pl.String, "grade": pl.Float64}
        )
        collection = Collection(self.docs, query_texts, no_judgments)
        run = None
        if top_ranked:
            candidates = {}
            # Candidates have an order, and no scores: the negative rank keeps it.
            for query, names in top_ranked.items():
                candidates[query] = {doc: -float(rank) for rank, doc in enumerate(names)}
            run = Run.from_dict(candidates)
        ranked = self.ranker.rank(collection, run).frame()
        best = ranked.group_by("query_id", maintain_order=True).head(top_k)
        scores: dict[str, dict[str, float]] = {name: {} for name in query_texts["id"]}
        for query, doc, score in best.select("query_id", "doc_id", "score").iter_rows():
            scores[query][doc] = score
        return scores


def as_mteb(ranker: Ranker) -> MtebModel:
    """Return a ranker of RankTilt as a model that searches, for mteb.

    Parameters
    ----------
    ranker : Ranker
        Searches a task's corpus, or re-ranks the candidates of a re-ranking task.

    Returns
    -------
    MtebModel
        A model for ``mteb.evaluate``.
    """
    return MtebModel(ranker)


def _task() -> Any:
    """Return metadata of a task, which mteb's models need; it describes no public task."""
    kind = need("mteb.abstasks.task_metadata", extra="adapters", for_="models of mteb").TaskMetadata
    return kind(
        name="RankTilt",
        description="A collection of RankTilt.",
        type="Retrieval",
        main_score="ndcg_at_10",
        eval_langs=["eng-Latn"],
        dataset={"path": "none", "revision": "1"},
    )
