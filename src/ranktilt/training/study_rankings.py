"""Rankings of a training study, by the first stage and each trained ranker.

The *first stage* is BM25, or a run from a file. Trained rankers re-rank its documents. A *side* is
the documents of one source (author).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from ranktilt.data.collection import Collection
from ranktilt.data.loading.load import load
from ranktilt.data.runs.run import Run
from ranktilt.explaining.equivalence import only_group
from ranktilt.rankers.lexical.bm25 import BM25
from ranktilt.rankers.rerank.cross_encoder import CrossEncoder
from ranktilt.training.options import RerankerTraining
from ranktilt.training.study_evaluation import Rankings
from ranktilt.training.study_options import PAPER_DEPTH, StudyOptions
from ranktilt.training.study_result import BASELINE, Kind, TrainedRanker

_SPLITS = ("train", "dev", "test")
"""Splits whose queries BM25 ranks alone, where the collection has them."""


@dataclass(frozen=True, kw_only=True)
class StudyFolder:
    """The folder to which a study's models and runs are written."""

    path: Path
    """Path of the folder."""
    training: RerankerTraining
    """Options of the trainings."""

    def model(self, trained_ranker: TrainedRanker) -> Path:
        """Return the folder of a ranker's model."""
        return self.path / "models" / _slug(trained_ranker.run)

    def ranker(self, trained_ranker: TrainedRanker) -> CrossEncoder:
        """Return the trained cross-encoder, with the training's limits on texts."""
        return CrossEncoder(
            str(self.model(trained_ranker)),
            text=self.training.text,
            device=self.training.device,
            max_query_tokens=self.training.max_query_tokens,
            max_document_tokens=self.training.max_document_tokens,
        )

    def save_run(self, run: Run, *, collection: str, ranker: str) -> None:
        """Save a run in a file that is named after the collection and the ranker."""
        run.save(self.path / "runs" / f"{_slug(collection)}--{_slug(ranker)}.trec")


def _slug(name: str) -> str:
    """Return the name with hyphens in place of characters that a file name may not have."""
    return re.sub(r"[^\w.]+", "-", name).strip("-")


@dataclass(frozen=True, kw_only=True)
class CollectionRanker:
    """Ranks collections with the first stage and with trained rankers, and saves the runs."""

    folder: StudyFolder
    """Folder for the runs."""
    options: StudyOptions
    """Options of the study."""

    def rank(
        self,
        name: str,
        kind: Kind,
        collection: Collection,
        rankers: Sequence[TrainedRanker],
        *,
        candidates: Run | None = None,
    ) -> Rankings:
        """Rank a collection with the first stage, re-rank with each ranker, and save the runs.

        Parameters
        ----------
        name : str
            Name of the collection in results.
        kind : Kind
            Kind of evaluation.
        collection : Collection
            Documents and queries to rank.
        rankers : sequence of TrainedRanker
            The rankers that re-rank.
        candidates : Run, optional
            Run to re-rank; BM25's by default.
        """
        depth = self.options.depth
        if candidates is None:
            first_stage = BM25(k=depth, text=self.options.training.text).rank(collection)
        else:
            first_stage = _top_documents(candidates, collection, depth)
            # The given run may be shorter than the depth of the options.
            longest_list = int(np.diff(first_stage.offsets).max(initial=1))
            depth = min(depth, longest_list)
        runs = {BASELINE: first_stage}
        for trained_ranker in rankers:
            cross_encoder = self.folder.ranker(trained_ranker)
            runs[trained_ranker.run] = cross_encoder.rank(collection, first_stage)
        for ranker, run in runs.items():
            self.folder.save_run(run, collection=name, ranker=ranker)
        return Rankings(name=name, kind=kind, collection=collection, runs=runs, depth=depth)


def _top_documents(run: Run, collection: Collection, depth: int) -> Run:
    """Return the top `depth` documents of each judged query, in the order of the run."""
    judged = collection.queries_with_judgments["id"].to_list()
    rows = run.frame().filter((pl.col("rank") <= depth) & pl.col("query_id").is_in(judged))
    queries_of_run = set(run.queries)
    queries = [query for query in judged if query in queries_of_run]
    return Run.from_frame(rows, queries=queries, spec=run.spec)


def first_stages(folder: str | Path, name: str, sources: Sequence[str]) -> Iterator[Rankings]:
    """Rank all queries of each split of a collection with BM25, on each source's documents alone.

    Parameters
    ----------
    folder : str or Path
        Folder of the collection.
    name : str
        Name of the collection in results.
    sources : sequence of str
        Sources (authors) whose documents are ranked.
    """
    qrels_files = (Path(folder) / "qrels").glob("*.tsv*")
    splits = {path.name.partition(".")[0] for path in qrels_files}
    for split in _SPLITS:
        if split not in splits:
            continue
        mixed = load(folder, split=split, ignore_unknown=True)
        for source in sources:
            side = only_group(mixed, source)
            if (side.qrels["grade"] > 0).any():
                yield Rankings(
                    name=f"{name}-{split} ({source} responses)",
                    kind="first stage",
                    collection=side,
                    runs={BASELINE: BM25(k=PAPER_DEPTH).rank(side)},
                    depth=PAPER_DEPTH,
                    split=split,
                    side=source,
                )
