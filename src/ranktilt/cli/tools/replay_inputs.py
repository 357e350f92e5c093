"""What ``ranktilt tools replay-log`` reads: candidates, and the collection of texts and groups.

*Candidates* are the documents that a first stage, such as BM25, gave the model to order.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ranktilt.cli import options
from ranktilt.cli.app import INPUT
from ranktilt.cli.label_options import LabelOptions
from ranktilt.cli.output import collection_files
from ranktilt.data.formats.notation import file_of
from ranktilt.errors import UserError

if TYPE_CHECKING:
    from ranktilt.data.collection import Collection
    from ranktilt.data.runs.run import Run


@Parameter(name="*", group=INPUT)
@dataclass(frozen=True, kw_only=True)
class ReplayInputs:
    """The candidates, and the collection that they come from."""

    candidates: Annotated[
        Path,
        Parameter(
            help="First-stage lists: a run, or rank_llm's JSON with texts.",
            metavar="RUN",
        ),
    ]
    folder: Annotated[
        Path | None,
        Parameter(
            name="--collection",
            help="Collection with texts, judgments and groups; optional if --candidates has texts.",
            metavar="DIR",
        ),
    ] = None
    score_order: options.ScoreOrder = None
    qrels: options.Qrels = None
    split: options.Split = None

    def files(self, labels: LabelOptions) -> list[Path]:
        """Return the files that are read, which no output may replace."""
        files = [self.candidates, *collection_files(self.folder)]
        files += [] if labels.labels is None else [Path(labels.labels.path)]
        return files if self.qrels is None else [*files, file_of(self.qrels)]

    def check(self) -> None:
        """Refuse a split without a collection that has it."""
        if self.split is not None and self.folder is None:
            raise UserError(
                "--split needs a collection (--collection DIR); or name a judgment file: --qrels "
                "FILE"
            )

    def load(self) -> tuple[Collection, Run]:
        """Return the collection, and the run of the candidates.

        Without ``--collection``, the candidates are the collection.
        """
        candidates, run = self._load_candidates()
        return candidates if self.folder is None else self._load_collection(self.folder), run

    def _load_collection(self, folder: Path) -> Collection:
        """Load the collection that has texts, judgments and groups; it may have no judgments."""
        from ranktilt.data.loading.load import NO_QRELS, load

        qrels = self.qrels
        if qrels is None and options.without_judgments(folder, self.split):
            qrels = NO_QRELS
        return load(folder, split=self.split, qrels=qrels, ignore_unknown=True)

    def _load_candidates(self) -> tuple[Collection, Run]:
        """Read the candidates as a collection and as a run; a file of ids gives empty texts."""
        from ranktilt.data.loading.load import NO_QRELS
        from ranktilt.data.runs.rank_llm import holds_texts, read_candidates
        from ranktilt.data.runs.run import Run

        qrels = None if self.qrels == NO_QRELS else self.qrels
        if holds_texts(self.candidates):
            return read_candidates(self.candidates, qrels=qrels)
        run = Run.load(self.candidates, score_order=self.score_order)
        return _collection_of_ids(run, self.candidates, qrels), run


def _collection_of_ids(run: Run, file: Path, qrels: str | None) -> Collection:
    """Return a collection with the ids of a run's documents and queries, whose texts are empty."""
    import polars as pl

    from ranktilt.data.collection import Collection
    from ranktilt.data.formats.judgments.qrels import read_qrels

    no_judgments = pl.DataFrame(
        schema={"query_id": pl.String, "doc_id": pl.String, "grade": pl.Int32}
    )
    judgments = read_qrels(qrels).drop("line") if qrels else no_judgments
    text_schema = {"id": pl.String, "text": pl.String}
    docs = pl.DataFrame({"id": run.ids, "text": ""}, schema=text_schema)
    queries = pl.DataFrame({"id": run.queries, "text": ""}, schema=text_schema)
    return Collection(docs, queries, judgments, {"files": [str(file)]})
